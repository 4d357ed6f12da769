"""LSTMs that read the words one by one, and whose states the margins are a sum of.

z_label - z_rival = constant + sum over directions and steps of h_t v_t
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..network import Floats
from ..regions.program import CONSTANTS, Dense, Look, Program
from .lstm_steps import Cell, cells_of

if TYPE_CHECKING:
    from ..regions.region import Question


@dataclass(frozen=True, eq=False)
class Step:
    """One cell: what it makes of the state before it, of the options of its word, and what it adds to the margins."""

    cell: Cell
    word: int | None
    recurrent: Floats | None
    """[H, gates]; None at first."""
    inputs: Floats
    """[options, gates]: rows without the state."""
    shown: Floats | None
    """[H, rivals]"""
    sizes: Floats
    """[gates]: at least the magnitudes of all that the inputs add up, whatever the option."""
    shares: Floats
    """[gates]: by how much more they may be off where what is read is, by a unit each; ..."""
    error: Floats
    """[gates]: ... and by how much what is read is off in float64."""
    constants: tuple[tuple[Floats, Floats], ...]
    """Constants that are read, and their weights [constants, gates]."""
    terms: int
    """That are added up, with those of the state."""
    looked_up: bool
    """Whether nothing is computed before."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A direction; `memory` is c before the first step."""

    steps: tuple[Step, ...]
    memory: Floats
    words: frozenset[int]


def chains_of(question: Question) -> tuple[Chain, ...] | None:
    """None where the margins are not sums over the steps of such chains."""
    cells, program = cells_of(question.program), question.program
    needed = set(question.needed_shortly)
    cell_of = {cell.state: cell for cell in cells.values() if cell.state in needed}
    if not question.tail.parts or not all(state in cell_of for state in question.tail.parts):
        return None
    after: dict[int, Cell] = {}
    first: list[Cell] = []
    for cell in cell_of.values():
        before = [source for source in program.reads[cell.rows] if source in cell_of]
        if not before:
            first.append(cell)
        elif len(before) > 1 or before[0] in after:
            return None
        else:
            after[before[0]] = cell
    found = []
    for cell in first:
        order = [cell]
        while order[-1].state in after:
            order.append(after[order[-1].state])
        chain = chain_of(question, order)
        if chain is None:
            return None
        found.append(chain)
    return tuple(found) if sum(len(chain.steps) for chain in found) == len(cell_of) else None


def chain_of(question: Question, order: list[Cell]) -> Chain | None:
    steps, seen = [], set[int]()
    for place, cell in enumerate(order):
        step = step_of(question, cell, order[place - 1] if place else None)
        if step is None or step.word in seen:
            return None
        seen |= set() if step.word is None else {step.word}
        steps.append(step)
    start = order[0]
    size = question.program.pieces[start.memory].size
    memory = np.zeros(size)
    for part in start.before:
        if part.piece != CONSTANTS:
            return None
        memory[part.place] = question.program.constants[part.index]
    return Chain(tuple(steps), memory, frozenset(seen))


def step_of(question: Question, cell: Cell, before: Cell | None) -> Step | None:
    program: Program = question.program
    operation = program.pieces[cell.rows].operation
    whole = slice(0, program.pieces[cell.state].size)
    if not isinstance(operation, Dense):
        return None
    if before is not None and [(part.piece, part.index, part.place) for part in cell.before] != [
        (before.memory, whole, whole)
    ]:
        return None
    inputs, recurrent, word = question.constants[cell.rows][None], None, None
    sizes = question.constant_sizes[cell.rows].copy()
    shares, error, looked_up = np.zeros_like(sizes), np.zeros_like(sizes), True
    constants = list[tuple[Floats, Floats]]()
    for part, matrix in zip(operation.read, operation.matrices, strict=True):
        if part.piece == CONSTANTS:
            constants.append((program.constants[part.index], matrix))
            continue
        if before is not None and part.piece == before.state:
            if part.index != whole or recurrent is not None:
                return None
            recurrent = matrix
            continue
        words = question.reached[part.piece]
        if not program.pieces[part.piece].affine or len(words) > 1 or (words and word not in (None, *words)):
            return None
        word = next(iter(words), word)
        own = question.word_sums.of(part.piece)
        values = own.base[None] if not words else own.base + own.changes[next(iter(words))]
        inputs = inputs + values[:, part.index] @ matrix
        magnitudes = np.abs(matrix)
        sizes += np.abs(values[:, part.index]).max(axis=0) @ magnitudes
        shares += magnitudes.sum(axis=0)
        error += own.error()[part.index] @ magnitudes
        looked_up &= isinstance(program.pieces[part.piece].operation, Look)
    if (recurrent is None) is not (before is None):
        return None
    shown = question.tail.parts.get(cell.state)
    terms = sum(map(len, operation.matrices))
    return Step(cell, word, recurrent, inputs, shown, sizes, shares, error, tuple(constants), terms, looked_up)
