"""What a value is while a program is evaluated: a number, or two ends between which a checker's interval lies.

Arrays are [rows, size] of numbers, or [rows, 2, size] of low and high ends. Ends are rigorous: every operation moves
them outwards by more than float64 can have rounded, and then by a unit of the checker's precision, so that they hold
the intervals of FORMAT.md, section 15.1, which round outwards to that unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..network import Floats, Function
from ..smooth.curves import CURVES

Array = NDArray[Any]
HALF = 2.0**-53
FUNCTION = 2.0**-46
"""How far numpy's exp, tanh, sigmoid, erf may be off in float64, and the root and the reciprocal of their value: they
are good to a few units of 2**-53; a test compares them with the checker's enclosures."""
TINY = 2.0**-1000
COMPUTED = 1 << 14
"""Roundings that may be in a weight of the margins: more than the terms that affine pieces on the way add up."""
OUTWARDS = np.array([[-1.0], [1.0]])
LIMIT = 2.0**39
"""Checkers refuse numbers of 2**40 and more. What may be so large is NaN, which nothing turns into a number again.

They do not refuse affine elements for being too low if only maxima, exp and other such elements read them, as scores
are that a mask hides (FORMAT.md, section 15.1): their low end is minus infinity, of which anything else makes NaN.
"""


class Arithmetic(Protocol):
    """Values of one kind. Indices of elements are of the last axis, rows of the first."""

    @property
    def block(self) -> int:
        """Rows computed at a time: what they hold fits the cache."""

    @property
    def composes(self) -> bool:
        """Whether products may pass over sums, which a checker does not do."""

    @property
    def adds_words(self) -> bool:
        """Whether `enclosed` is all that is to be said of sums over the words."""

    @property
    def dtype(self) -> type[np.floating[Any]]: ...

    def enclosed(self, x: Array, error: Floats, units: Floats) -> Array:
        """Numbers that are off by `error` at most, [rows, size]; of a checker's intervals the ends may lie so many
        units further out."""

    def given(self, numbers: Floats, parts: int = 1) -> Array:
        """Of exact numbers [rows, size]; one of so many parts of a sum, which round as they are added."""

    def multiply(self, x: Array, matrix: Floats, parts: int) -> Array:
        """x @ matrix."""

    def scale(self, x: Array, weights: Floats, parts: int) -> Array:
        """Element by element."""

    def closed(self, total: Array, roundings: Floats) -> Array:
        """The sum of all parts is an affine piece now, whose elements a runtime rounds so often."""

    def tail(self, x: Array, matrix: Floats, sizes: Floats, parts: int, reach: float) -> Array:
        """What a piece adds to the margins; `sizes` are the magnitudes of its weights in the logits compared, and
        `reach` is how many times larger a number may become on the way."""

    def margins(self, total: Array, roundings: float, paths: Floats) -> Array:
        """The sum of all that: the margins. A runtime rounds so often on the way to a logit, by `paths`."""

    def bend(self, x: Array, slope: float) -> Array: ...

    def most(self, x: Array) -> Array:
        """What is the greatest of several."""

    def product(self, x: Array, y: Array, *, square: bool) -> Array: ...

    def curve(self, function: Function, x: Array) -> Array: ...


@dataclass(eq=False)
class Plain:
    """Numbers in one precision."""

    dtype: type[np.floating[Any]]
    kept: dict[int, tuple[Floats, Array]] = field(default_factory=dict)
    block: int = 512
    composes: ClassVar[bool] = True
    adds_words: ClassVar[bool] = True

    def enclosed(self, x: Array, error: Floats, units: Floats) -> Array:
        return x.astype(self.dtype, copy=False)

    def cast(self, matrix: Floats) -> Array:
        """Once for each matrix."""
        if matrix.dtype == self.dtype:
            return matrix
        held = self.kept.get(id(matrix))
        if held is None:
            held = self.kept[id(matrix)] = matrix, matrix.astype(self.dtype)
        return held[1]

    def given(self, numbers: Floats, parts: int = 1) -> Array:
        return numbers.astype(self.dtype)

    def multiply(self, x: Array, matrix: Floats, parts: int) -> Array:
        return np.asarray(x @ self.cast(matrix))

    def scale(self, x: Array, weights: Floats, parts: int) -> Array:
        return np.asarray(x * self.cast(weights))

    def closed(self, total: Array, roundings: Floats) -> Array:
        return total

    def tail(self, x: Array, matrix: Floats, sizes: Floats, parts: int, reach: float) -> Array:
        return self.multiply(x, matrix, parts)

    def margins(self, total: Array, roundings: float, paths: Floats) -> Array:
        return total

    def bend(self, x: Array, slope: float) -> Array:
        return np.asarray(np.maximum(x, x * self.dtype(slope)))

    def most(self, x: Array) -> Array:
        return x

    def product(self, x: Array, y: Array, *, square: bool) -> Array:
        return np.asarray(x * y)

    def curve(self, function: Function, x: Array) -> Array:
        return CURVES[function](x)


@dataclass(eq=False)
class Ends:
    """Low and high ends that hold the intervals of a checker whose numbers are multiples of `unit`.

    Every end is moved outwards by what float64 may have rounded of it. A part of a sum is moved by its share of what
    adding up may round too: with n parts x_i, in any order, at most n u times the sum of their magnitudes, u = 2**-53.
    """

    unit: float
    sizes: dict[int, tuple[Floats, Floats, Floats]] = field(default_factory=dict)
    block: int = 128
    composes: ClassVar[bool] = False
    adds_words: ClassVar[bool] = True
    dtype: ClassVar[type[np.floating[Any]]] = np.float64

    def enclosed(self, x: Array, error: Floats, units: Floats) -> Array:
        return self.moved(np.stack([x, x], axis=1), error + units * self.unit)

    def given(self, numbers: Floats, parts: int = 1) -> Array:
        error = (2 * parts + 2) * HALF * np.abs(numbers) + self.unit
        return self.sunk(np.stack([numbers - error, numbers + error], axis=1))

    def size(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Magnitudes, and their sum for each output, a little more than they are; once for each matrix."""
        held = self.sizes.get(id(matrix))
        if held is None:
            magnitudes = np.abs(matrix)
            held = self.sizes[id(matrix)] = matrix, magnitudes, magnitudes.sum(axis=0) * (1 + 2.0**-30)
        return held[1], held[2]

    def multiply(self, x: Array, matrix: Floats, parts: int) -> Array:
        return self.multiplied(x, matrix, self.size(matrix)[1], parts)

    def multiplied(self, x: Array, matrix: Floats, totals: Floats, parts: int) -> Array:
        """Middle and radius by two products; the error is that of sums of so many terms, which together are at most
        the greatest value times these totals."""
        magnitudes = self.size(matrix)[0]
        low, high = x[:, 0], x[:, 1]
        middle, radius = (low + high) * 0.5, (high - low) * 0.5
        greatest = np.maximum(np.abs(low).max(axis=1, initial=0), np.abs(high).max(axis=1, initial=0))
        error = (len(matrix) + 8 + parts) * 4 * HALF * greatest[:, None] * totals + TINY
        centre, reach = middle @ matrix, radius @ magnitudes
        reach += error
        found = np.empty((len(x), 2, centre.shape[1]))
        np.subtract(centre, reach, out=found[:, 0])
        np.add(centre, reach, out=found[:, 1])
        return found

    def scale(self, x: Array, weights: Floats, parts: int) -> Array:
        if (weights >= 0).all():
            found = x * weights
        elif (weights <= 0).all():
            found = x[:, ::-1] * weights
        else:
            found = np.where(weights >= 0, x, x[:, ::-1]) * weights
        return self.moved(found, (2 * parts + 2) * HALF * np.abs(found) + TINY)

    def limited(self, ends: Array) -> Array:
        """NaN in place of what checkers refuse."""
        if np.abs(ends).max(initial=0) < LIMIT:
            return ends
        return np.where((np.abs(ends) < LIMIT).all(axis=1, keepdims=True), ends, np.nan)

    def sunk(self, ends: Array) -> Array:
        """NaN in place of what is too large, and minus infinity of what is too low."""
        if np.abs(ends).max(initial=0) < LIMIT:
            return ends
        found = np.where((ends < LIMIT).all(axis=1, keepdims=True), ends, np.nan)
        found[:, 0][found[:, 0] <= -LIMIT] = -np.inf
        return found

    def moved(self, ends: Array, error: Array | float) -> Array:
        """Outwards by this."""
        return np.asarray(ends + OUTWARDS * error)

    def rounded(self, ends: Array) -> Array:
        """Outwards by what a few roundings may have cost, and by a unit."""
        return self.limited(self.moved(ends, 4 * HALF * np.abs(ends) + self.unit))

    def closed(self, total: Array, roundings: Floats) -> Array:
        return self.sunk(self.moved(total, 4 * HALF * np.abs(total) + self.unit))

    def tail(self, x: Array, matrix: Floats, sizes: Floats, parts: int, reach: float) -> Array:
        """The weights were themselves computed, by sums of products whose magnitudes sum to their sizes."""
        return self.within(x, reach, self.multiplied(x, matrix, self.size(sizes)[1], parts + COMPUTED))

    def within(self, x: Array, reach: float, found: Array) -> Array:
        """NaN where a number so many times larger than those of x is beyond the limit."""
        fits = np.abs(x).max(axis=(1, 2), initial=0) * reach < LIMIT
        return found if fits.all() else np.where(fits[:, None, None], found, np.nan)

    def margins(self, total: Array, roundings: float, paths: Floats) -> Array:
        return self.rounded(total)

    def bend(self, x: Array, slope: float) -> Array:
        return self.rounded(np.maximum(x, x * slope))

    def most(self, x: Array) -> Array:
        return self.limited(x)

    def product(self, x: Array, y: Array, *, square: bool) -> Array:
        found = np.empty((max(len(x), len(y)), 2, x.shape[2]))
        if square:
            squares = x * x
            np.minimum(squares[:, 0], squares[:, 1], out=found[:, 0])
            np.maximum(squares[:, 0], squares[:, 1], out=found[:, 1])
            found[:, 0][(x[:, 0] < 0) & (x[:, 1] > 0)] = 0.0
            return self.rounded(found)
        a, b = x[:, 0] * y[:, 0], x[:, 0] * y[:, 1]
        c, d = x[:, 1] * y[:, 0], x[:, 1] * y[:, 1]
        np.minimum(np.minimum(a, b), np.minimum(c, d), out=found[:, 0])
        np.maximum(np.maximum(a, b), np.maximum(c, d), out=found[:, 1])
        return self.rounded(found)

    def curve(self, function: Function, x: Array) -> Array:
        with np.errstate(all="ignore"):
            found = CURVES[function](x if function == "exp" else self.limited(x))
            if function == "reciprocal":
                apart = (x[:, :1] > 0) | (x[:, 1:] < 0)
                found = np.where(apart, found[:, ::-1], np.nan)
            elif function == "sqrt":
                found = np.where(x[:, :1] >= 0, found, np.nan)
            bounded = function in ("tanh", "sigmoid", "erf")
            found = self.moved(found, (FUNCTION if bounded else FUNCTION * np.abs(found)) + self.unit)
        return self.limited(found)


SHARE = 257 * 2.0**-32 * (1 + 2.0**-20)
"""Of a sum of magnitudes, for each rounding."""
ABSOLUTE, EXP, ROOT = 2.0**-21, 2.0**-22, 2.0**-23
MORE = 1 + 2.0**-36
"""Times a sum of magnitudes of up to 2**16 terms in float64: no less than the sum."""


@dataclass(eq=False)
class KernelEnds(Ends):
    """Ends of every float32 evaluation whose functions err no more than FORMAT.md, section 15.3, says.

    Arrays are [rows, 3, size]: low and high ends, and sizes, which for affine pieces are the sums of all magnitudes.
    """

    adds_words: ClassVar[bool] = False

    def sized(self, ends: Array) -> Array:
        """With sizes, of what is not affine."""
        sizes = np.maximum(np.abs(ends[:, :1]), np.abs(ends[:, 1:]))
        return self.limited(np.concatenate([ends, sizes], axis=1))

    def given(self, numbers: Floats, parts: int = 1) -> Array:
        return self.sized(super().given(numbers, parts))

    def multiply(self, x: Array, matrix: Floats, parts: int) -> Array:
        sizes = x[:, 2] @ self.size(matrix)[0] * MORE
        return np.concatenate([super().multiply(x[:, :2], matrix, parts), sizes[:, None]], axis=1)

    def scale(self, x: Array, weights: Floats, parts: int) -> Array:
        sizes = x[:, 2:] * np.abs(weights) * MORE
        return np.concatenate([super().scale(x[:, :2], weights, parts), sizes], axis=1)

    def closed(self, total: Array, roundings: Floats) -> Array:
        sizes = total[:, 2:] * MORE + 2 * self.unit
        ends = super().closed(total[:, :2], roundings)
        ends = self.moved(ends, SHARE * roundings * sizes + 2 * self.unit)
        return self.limited(np.concatenate([ends, sizes], axis=1))

    def tail(self, x: Array, matrix: Floats, sizes: Floats, parts: int, reach: float) -> Array:
        reached = x[:, 2] @ sizes * MORE
        found = np.concatenate([super().tail(x[:, :2], matrix, sizes, parts, reach), reached[:, None]], axis=1)
        return self.within(x, reach, found)

    def margins(self, total: Array, roundings: float, paths: Floats) -> Array:
        sizes = total[:, 2:] * MORE + 2 * self.unit
        ends = super().margins(total[:, :2], roundings, paths)
        return self.moved(ends, SHARE * roundings * sizes + 4 * self.unit * (1 + paths))

    def bend(self, x: Array, slope: float) -> Array:
        found = super().bend(x[:, :2], slope)
        if slope:
            reach = np.maximum(np.abs(x[:, :1]), np.abs(x[:, 1:2]))
            found = self.moved(found, 4 * SHARE * reach + 2 * self.unit)
        return self.sized(found)

    def most(self, x: Array) -> Array:
        return self.sized(x[:, :2])

    def product(self, x: Array, y: Array, *, square: bool) -> Array:
        found = super().product(x[:, :2], y[:, :2], square=square)
        reach = np.maximum(np.abs(found[:, :1]), np.abs(found[:, 1:]))
        return self.sized(self.moved(found, 2 * SHARE * reach + 2 * self.unit))

    def curve(self, function: Function, x: Array) -> Array:
        found = super().curve(function, x[:, :2])
        if function in ("tanh", "sigmoid", "erf"):
            return self.sized(self.moved(found, ABSOLUTE + 2 * self.unit))
        share = (EXP if function == "exp" else ROOT) * (1 + 2.0**-20)
        reach = np.maximum(np.abs(found[:, :1]), np.abs(found[:, 1:]))
        return self.sized(self.moved(found, share * reach + 2 * self.unit))
