"""LSTMs and GRUs that read the words one by one, and whose states the margins are a sum of.

z_label - z_rival = constant + sum over directions and steps of h_t v_t
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..network import Floats
from ..regions.program import CONSTANTS, Dense, Look
from .gru_steps import Gated, covers, gated_of
from .lstm_steps import Cell, cells_of

if TYPE_CHECKING:
    from ..regions.region import Question


@dataclass(frozen=True, eq=False)
class Step:
    """One cell: what it makes of the state before it, of the options of its word, and what it adds to the margins."""

    cell: Cell | Gated
    word: int | None
    recurrent: Floats | None
    """[H, gates], of a GRU without x, its last columns; None at first."""
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
    """A direction; `memory` is c before the first step, of a GRU h."""

    steps: tuple[Step, ...]
    memory: Floats
    words: frozenset[int]


@lru_cache(maxsize=4)
def chains_of(question: Question) -> tuple[Chain, ...] | None:
    """None where the margins are not sums over the steps of such chains."""
    program, needed = question.program, set(question.needed_shortly)
    cells: list[Cell | Gated] = [*cells_of(program).values(), *gated_of(program).values()]
    cell_of = {cell.state: cell for cell in cells if shown_by(cell) in needed}
    if not question.tail.parts or not {*map(shown_by, cell_of.values())}.issuperset(question.tail.parts):
        return None
    after: dict[int, Cell | Gated] = {}
    first: list[Cell | Gated] = []
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


def chain_of(question: Question, order: list[Cell | Gated]) -> Chain | None:
    steps, seen, joined = [], set[int](), dict[tuple[int, ...], Floats]()
    for place, cell in enumerate(order):
        step = step_of(question, cell, order[place - 1] if place else None, joined)
        if step is None or step.word in seen or type(cell) is not type(order[0]):
            return None
        seen |= set() if step.word is None else {step.word}
        steps.append(step)
    start = order[0]
    size = question.program.pieces[start.state].size
    read = np.zeros(2 * size)
    for part in start.before:
        if part.piece != CONSTANTS:
            return None
        read[part.place] = question.program.constants[part.index]
    return Chain(tuple(steps), read[size:] if isinstance(start, Gated) else read[:size], frozenset(seen))


def step_of(
    question: Question, cell: Cell | Gated, before: Cell | Gated | None, joined: dict[tuple[int, ...], Floats]
) -> Step | None:
    """`joined`: recurrent matrices side by side, once for all steps, by what they are; the program keeps these."""
    size = question.program.pieces[cell.state].size
    whole = slice(0, size)
    kept = None if before is None else before.state if isinstance(before, Gated) else before.memory
    if kept is not None and not all(part.piece == kept and covers(whole, part.index) for part in cell.before):
        return None
    if kept is not None and len(cell.before) != 1:
        return None
    state = None if before is None else before.state
    rows = [cell.rows] if isinstance(cell, Cell) else [cell.rows, cell.inner, cell.taken]
    found = [reading(question, number, state) for number in rows]
    reads = [read for read in found if read is not None]
    words = {read.word for read in reads} - {None}
    if len(reads) < len(rows) or len(words) > 1:
        return None
    recurrent = [read.recurrent for read in reads if read.recurrent is not None]
    asked = 0 if before is None else 1 if isinstance(cell, Cell) else 2
    if len(recurrent) != asked or (asked == 2 and reads[2].recurrent is not None):
        return None
    shown = question.tail.parts.get(shown_by(cell))
    beside = recurrent[0] if recurrent else None
    if len(recurrent) > 1:
        name = tuple(map(id, recurrent))
        beside = joined[name] = joined[name] if name in joined else np.concatenate(recurrent, axis=1)
    options = max(len(read.inputs) for read in reads)
    wide = [np.zeros_like(read.sizes) for read in reads]

    def across(at: int, matrix: Floats) -> Floats:
        """In the columns of all."""
        return np.concatenate(
            [matrix if at == i else np.zeros((len(matrix), len(w))) for i, w in enumerate(wide)], axis=1
        )

    return Step(
        cell,
        next(iter(words), None),
        beside,
        np.concatenate([np.repeat(r.inputs, options if len(r.inputs) == 1 else 1, axis=0) for r in reads], axis=1),
        None if shown is None else shown[:size],
        np.concatenate([read.sizes for read in reads]),
        np.concatenate([read.shares for read in reads]),
        np.concatenate([read.error for read in reads]),
        tuple((numbers, across(at, matrix)) for at, read in enumerate(reads) for numbers, matrix in read.constants),
        max(read.terms for read in reads),
        all(read.looked_up for read in reads),
    )


def shown_by(cell: Cell | Gated) -> int:
    """The piece that the margins are written of: of a GRU what its state adds up, which so is there twice alike."""
    return cell.mixed if isinstance(cell, Gated) else cell.state


@dataclass(frozen=True, eq=False)
class Reading:
    """What an affine piece makes of the state before it and of the options of one word, as a step says."""

    word: int | None
    recurrent: Floats | None
    inputs: Floats
    sizes: Floats
    shares: Floats
    error: Floats
    constants: tuple[tuple[Floats, Floats], ...]
    terms: int
    looked_up: bool


def reading(question: Question, number: int, state: int | None) -> Reading | None:
    program = question.program
    operation = program.pieces[number].operation
    if not isinstance(operation, Dense):
        return None
    inputs, recurrent, word = question.constants[number][None], None, None
    sizes = question.constant_sizes[number].copy()
    shares, error, looked_up = np.zeros_like(sizes), np.zeros_like(sizes), True
    constants = list[tuple[Floats, Floats]]()
    for part, matrix in zip(operation.read, operation.matrices, strict=True):
        if part.piece == CONSTANTS:
            constants.append((program.constants[part.index], matrix))
            continue
        if part.piece == state:
            if not covers(slice(0, program.pieces[part.piece].size), part.index) or recurrent is not None:
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
    terms = sum(map(len, operation.matrices))
    return Reading(word, recurrent, inputs, sizes, shares, error, tuple(constants), terms, looked_up)
