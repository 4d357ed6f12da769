"""What layers affine in the words carry to the margins at level `kernel`, and how far numbers may grow on the way.

By FORMAT.md, section 15.3, their elements have a size s and an error e over the whole space, whatever the region:

    s = sum |w| s + |b|,    e = sum |w| e + n 257 s / 2^32 + rounding up
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from .arithmetic import LIMIT, SHARE, Arithmetic, KernelEnds
from .program import CONSTANTS, Blend, Dense, Look, Piece, Program

if TYPE_CHECKING:
    from .region import Question

Array = NDArray[Any]
MOST_ROUNDINGS = 65_000
"""The checkers refuse more than 65,280."""
UNITS = 4.0
"""What rounding up adds to an e, at most."""


@dataclass(frozen=True, eq=False)
class Carried:
    """To each rival's margin: this much, and so many units of the precision."""

    error: Floats
    units: Floats


@dataclass(frozen=True, eq=False)
class Element:
    """Of a piece affine in the words: s and e, each as a number and what rounding up adds to it, in units."""

    size: Floats
    size_units: Floats
    error: Floats
    error_units: Floats


def last_margins(question: Question, arithmetic: Arithmetic, total: Array) -> Array:
    """[rows, ..., rivals] of the sum of all parts."""
    found = arithmetic.margins(total, question.last_roundings, question.paths)
    if not isinstance(arithmetic, KernelEnds):
        return found
    known = carried(question)
    if known is None:
        return np.full_like(found, np.nan)
    return arithmetic.moved(found, known.error + arithmetic.unit * known.units)


@lru_cache(maxsize=2)
def carried(question: Question) -> Carried | None:
    """None where level `kernel` might be refused for a number that is too large."""
    if not fits(question):
        return None
    found: dict[int, Element] = {}
    for number, piece in enumerate(question.program.pieces):
        if not piece.affine:
            continue
        found[number] = own = element(question, number, piece, found)
        if not (own.size < LIMIT).all():
            return None
    error, units = np.zeros(len(question.tail.size)), np.zeros(len(question.tail.size))
    for source, sizes in question.tail.sizes.items():
        if source in found:
            error += found[source].error @ sizes * (1 + 2.0**-30)
            units += found[source].error_units @ sizes * (1 + 2.0**-30)
    return Carried(error, units)


def element(question: Question, number: int, piece: Piece, found: Mapping[int, Element]) -> Element:
    operation = piece.operation
    if isinstance(operation, Look):
        word = question.word_at.get(operation.position)
        tokens = [question.original[operation.position]] if word is None else question.tokens[word]
        rows = np.abs(np.asarray(operation.table[np.array(tokens)], dtype=np.float64))
        nothing = np.zeros(piece.size)
        return Element(rows.max(axis=0), nothing + 1, nothing, nothing)
    if not isinstance(operation, Dense | Blend):
        raise TypeError(f"{type(operation).__name__} is not affine")
    totals = [question.constant_sizes[number].copy(), np.zeros(piece.size), np.zeros(piece.size), np.zeros(piece.size)]
    weights = operation.matrices if isinstance(operation, Dense) else operation.weights
    for part, factors in zip(operation.read, weights, strict=True):
        if part.piece == CONSTANTS:
            continue
        below = found[part.piece]
        for total, of in zip(totals, (below.size, below.size_units, below.error, below.error_units), strict=True):
            if isinstance(operation, Dense):
                total += of[part.index] @ np.abs(factors)
            else:
                total[part.place] += of[part.index] * np.abs(factors)
    size, size_units, error, error_units = [total * (1 + 2.0**-30) for total in totals]
    share = SHARE * question.roundings[number]
    return Element(size, size_units + 1, error + share * size, error_units + share * (size_units + 1) + UNITS)


def fits(question: Question) -> bool:
    """Whether weights and numbers of roundings are within the limits of the checkers, with room."""
    most = max((float(each.max(initial=0)) for each in question.roundings.values()), default=0.0)
    return most <= MOST_ROUNDINGS and largest(question.program) < LIMIT


def largest(program: Program) -> float:
    """Magnitude of any weight or bias."""
    found = 0.0
    for piece in program.pieces:
        match piece.operation:
            case Dense(_, weights, bias) | Blend(_, weights, bias):
                found = max(found, *[float(np.abs(each).max(initial=0)) for each in (*weights, bias)])
    return found
