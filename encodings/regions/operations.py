"""The value of one piece from those of what it reads, in any arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from .arithmetic import COMPUTED, HALF, MORE, OUTWARDS, Arithmetic, Ends
from .program import CONSTANTS, Bend, Blend, Curve, Dense, Look, Most, Piece, Product, Stretch

if TYPE_CHECKING:
    from .region import Question

Array = NDArray[Any]


class Part(NamedTuple):
    """Some rows [n, ..., elements], and which of them stands in each row that is asked for: all as they are, if None.

    Products are made of the n rows, which are fewer.
    """

    found: Array
    rows: NDArray[np.integer[Any]] | None = None

    def spread(self, made: Array) -> Array:
        """What was made of these rows, for each row that is asked for."""
        return made if self.rows is None else made[self.rows]


Read = Callable[[Stretch], Part]
"""The values of a stretch; of constants there may be one row."""


def applied(
    piece: Piece, arithmetic: Arithmetic, read: Read, constant: Array | None, roundings: Floats | None
) -> Array:
    """`constant`: of an affine piece, [1, ..., size] of what depends on no other (constants are not read again)."""
    match piece.operation:
        case Dense(stretches, matrices):
            total, parts = known(constant), len(stretches) + 1
            for part, matrix in zip(stretches, matrices, strict=True):
                if part.piece >= 0:
                    own = read(part)
                    total = total + own.spread(arithmetic.multiply(own.found, matrix, parts))
            return arithmetic.closed(total, known(roundings))
        case Blend(stretches, weights):
            total = known(constant)
            for part, factors in zip(stretches, weights, strict=True):
                if part.piece >= 0:
                    own = read(part)
                    added = own.spread(arithmetic.scale(own.found, factors, len(stretches) + 1))
                    total = np.repeat(total, len(added), axis=0) if len(total) < len(added) else total
                    total[..., part.place] += added
            return arithmetic.closed(total, known(roundings))
        case Bend(stretches, slope):
            return arithmetic.bend(joined(stretches, read), slope)
        case Most(columns):
            found = joined(columns[0], read)
            for column in columns[1:]:
                found = np.maximum(found, joined(column, read))
            return arithmetic.most(found)
        case Product(left, right, square):
            x = joined(left, read)
            return arithmetic.product(x, x if square else joined(right, read), square=square)
        case Curve(stretches, function):
            return arithmetic.curve(function, joined(stretches, read))
        case Look():
            raise TypeError("tokens are looked up by whoever knows them")


def known(numbers: Array | None) -> Array:
    if numbers is None:
        raise TypeError("an affine piece has a constant part, and is rounded")
    return numbers


def joined(stretches: tuple[Stretch, ...], read: Read) -> Array:
    """Laid end to end."""
    parts = [part.spread(part.found) for part in map(read, stretches)]
    if len(parts) == 1:
        return parts[0]
    rows = max(map(len, parts))
    found = np.empty((rows, *parts[0].shape[1:-1], sum(part.shape[-1] for part in parts)), dtype=parts[0].dtype)
    for part, own in zip(stretches, parts, strict=True):
        found[..., part.place] = own
    return found


def constant_part(question: Question, piece: int, arithmetic: Arithmetic) -> Array:
    """[1, ..., size]: of an affine piece, what depends on no other; its size is that of all constants in it."""
    operation = question.program.pieces[piece].operation
    parts = len(operation.read) + 1 if isinstance(operation, Dense | Blend) else 1
    found = rounded(arithmetic.given(question.constants[piece][None], parts), question.constant_sizes[piece])
    if (
        isinstance(arithmetic, Ends)
        and isinstance(operation, Dense | Blend)
        and not question.program.pieces[piece].affine
    ):
        weights = operation.matrices if isinstance(operation, Dense) else operation.weights
        for part, factors in zip(operation.read, weights, strict=True):
            units = (
                inexact(question.program.constants[part.index], arithmetic.unit) if part.piece == CONSTANTS else None
            )
            if units is None or not units.any():
                continue
            if isinstance(operation, Dense):
                found[:, :2] += OUTWARDS * (units @ np.abs(factors) * MORE)
            else:
                found[:, :2, part.place] += OUTWARDS * (units * np.abs(factors) * MORE)
    if found.ndim == 3 and found.shape[1] == 3:
        found[:, 2] = question.constant_sizes[piece]
    return found


def inexact(numbers: Floats, unit: float) -> Floats:
    """A unit, where a constant is no multiple of it: a checker rounds each by itself, and then multiplies."""
    return np.where(np.floor(numbers / unit) * unit == numbers, 0.0, unit)


def rounded(ends: Array, sizes: Floats) -> Array:
    """Outwards by what computing constants of these magnitudes may have cost."""
    if ends.ndim == 3:
        ends[:, :2] += OUTWARDS * (COMPUTED * HALF * sizes)
    return ends


def constant_margins(question: Question, arithmetic: Arithmetic) -> Array:
    """[1, ..., rivals]: of what no piece adds; its size is that of both logits."""
    found = rounded(arithmetic.given(question.tail.constant[None], len(question.tail.parts) + 1), question.tail.size)
    if isinstance(arithmetic, Ends):
        for numbers, weights in question.tail.constants:
            found[:, :2] += OUTWARDS * (inexact(numbers, arithmetic.unit) @ weights * MORE)
    if found.ndim == 3 and found.shape[1] == 3:
        found[:, 2] = question.tail.size
    return found


def looked_up(question: Question, operation: Look, tokens: NDArray[np.int64], arithmetic: Arithmetic) -> Array:
    """[tokens, ..., width] of a position; sizes are those of all its options, whatever the region."""
    found = arithmetic.given(np.asarray(operation.table[tokens], dtype=np.float64))
    word = question.word_at.get(operation.position)
    if found.ndim == 3 and found.shape[1] == 3 and word is not None:
        every = np.asarray(operation.table[np.array(question.tokens[word])], dtype=np.float64)
        found[:, 2] = arithmetic.given(every)[:, 2].max(axis=0)

    return found
