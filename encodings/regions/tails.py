"""Margins, and other affine pieces, written as functions of the pieces that are not affine, or affine in the words.

    z_label - z_rival = constant + sum over pieces of x_piece @ matrix

It is the substitution of FORMAT.md, section 15.2. So a mean over time followed by a linear layer asks every step for
its own part of the margins, and nothing as wide as the mean has to be formed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ..network import Floats
from .program import CONSTANTS, Blend, Dense, Program, Stretch


@dataclass(frozen=True, eq=False)
class Affine:
    """An affine function of several pieces."""

    parts: Mapping[int, Floats]
    """Piece -> [its size, outputs]."""
    constant: Floats
    """[outputs]"""
    through: Mapping[int, Floats]
    """The affine pieces that were written as what they read: [their size, outputs]."""
    constants: tuple[tuple[Floats, Floats], ...]
    """Those of the network that were added up: [n], and what they were multiplied by, [n, outputs]."""


@dataclass(frozen=True, eq=False)
class Tail:
    """The margins [rivals]."""

    parts: Mapping[int, Floats]
    constant: Floats
    sizes: Mapping[int, Floats]
    """Piece -> [its size, rivals]: magnitudes of its weights in the two logits compared, over all ways to them."""
    size: Floats
    """[rivals]: the same of what is constant."""
    through: Mapping[int, Floats]
    """The affine pieces on the way, with the same."""
    constants: tuple[tuple[Floats, Floats], ...] = ()
    """Those of the network in `constant`: [n], and what they are multiplied by, [n, rivals]."""


def margins(program: Program, label: int, rivals: Sequence[int]) -> Tail:
    """Of the label against each rival."""
    label_only = np.zeros((program.classes, len(rivals)))
    label_only[label] = 1.0
    rival_only = np.zeros_like(label_only)
    rival_only[list(rivals), np.arange(len(rivals))] = 1.0
    nothing = np.zeros(len(rivals))

    def down(weights: Floats, *, sizes: bool) -> Affine:
        parts = [weights[part.place] for part in program.logits]
        return written(program, program.logits, parts, nothing, lambda _: True, sizes=sizes)

    found, sized = down(label_only - rival_only, sizes=False), down(label_only + rival_only, sizes=True)
    return Tail(found.parts, found.constant, sized.parts, sized.constant, sized.through, sized.constants)


def written(
    program: Program,
    read: Sequence[Stretch],
    weights: Sequence[Floats],
    constant: Floats,
    through: Callable[[int], bool],
    *,
    sizes: bool = False,
) -> Affine:
    """The sum of what is read times a matrix [elements, outputs] for each stretch, down through those affine pieces for
    which `through` says so; with magnitudes in place of all numbers, if asked for."""
    asked: dict[int, Floats] = {}
    waiting = list[int]()
    """A heap of what is asked for, the last piece first: whoever asks for it stands behind it."""
    total, constants = constant.copy(), list[tuple[Floats, Floats]]()

    def plain(numbers: Floats) -> Floats:
        return np.abs(numbers) if sizes else numbers

    def ask(part: Stretch, given: Floats) -> None:
        nonlocal total
        if part.piece == CONSTANTS:
            constants.append((program.constants[part.index], given))
            total = total + plain(constants[-1][0]) @ given
            return
        if part.piece in program.zeros:
            return
        held = asked.get(part.piece)
        if held is None:
            held = asked[part.piece] = np.zeros((program.pieces[part.piece].size, given.shape[1]))
            heappush(waiting, -part.piece)
        if isinstance(part.index, slice):
            held[part.index] += given
        else:
            np.add.at(held, part.index, given)

    for part, matrix in zip(read, weights, strict=True):
        ask(part, matrix)
    parts: dict[int, Floats] = {}
    passed: dict[int, Floats] = {}
    while waiting:
        top = -heappop(waiting)
        given, piece = asked.pop(top), program.pieces[top]
        match piece.operation:
            case Dense(below, matrices, bias) if not piece.affine and through(top):
                total = total + plain(bias) @ given
                for part, matrix in zip(below, matrices, strict=True):
                    ask(part, plain(matrix) @ given)
                passed[top] = given
            case Blend(below, factors, bias) if not piece.affine and through(top):
                total = total + plain(bias) @ given
                for part, factor in zip(below, factors, strict=True):
                    ask(part, plain(factor)[:, None] * given[part.place])
                passed[top] = given
            case _:
                parts[top] = given
    return Affine(parts, total, passed, tuple(constants))
