"""Margins to first order at one sentence, and what is left of each element (FORMAT.md, sections 18.2 and 18.3).

    z_label - z_rival = margin at the sentence + sum of mu d over what is affine in the words + sum of lambda rest,

d the difference of an element from its number at the sentence, rest what the line of its layer leaves. In float64; the
last digits are counted by whoever asks.

A checker expands about other numbers: each lies where the interval of its element at the sentence says, which at level
kernel leaves it seven digits. What it finds is not lower than what is found here, since its bound depends on them
through slopes alone. Be m the numbers here, n = m + h those of the checker, s and s + t the slopes that they give, and
lambda, lambda + g the multipliers. In the sum of what the checker adds up, an h has the coefficient

    (what readers of the element add to its multiplier) - (its multiplier),

which is 0, or below a unit for what was rounded down. So its cost of an element that reads y is the least of

    (lambda + g) (f(y) - m_x - (s + t) (y - m_y)) >= lambda rest - |lambda| |t d| - |g| (|rest| + |t d|),

with |t| at most |h_y| times the greatest second derivative for a curve, and |h_z| for a product y z; a maximum and a
rectifier have another slope, if another element, or the other side, may be the one. Of a sum t = 0. And g is at most,
over all that read the element, the sum of |g| (|s| + |t|) + |lambda| |t|, and a unit for rounding down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from ..regions.arithmetic import ABSOLUTE, FUNCTION, OUTWARDS, SHARE, Ends, KernelEnds
from ..regions.program import CONSTANTS, Bend, Blend, Curve, Dense, Most, Product, Stretch
from ..regions.region import Question

Array = NDArray[Any]
ODD = {"tanh": 0.0, "sigmoid": 1.0, "erf": 0.0, "reciprocal": 0.0}
"""Functions with f(-x) = c - f(x)."""
ERF_SLOPE = 2 / np.sqrt(np.pi)
SLOPE = 2.0**-40
"""A slope may be off by so much besides, in float64 and in a checker, whose units and constants are finer."""


class Unfit(Exception):
    """A network, or numbers, that this bound says nothing of."""


def slopes(function: str, x: Floats, y: Floats) -> Floats:
    """f'(x), y = f(x)."""
    match function:
        case "exp":
            return y
        case "tanh":
            return 1 - y * y
        case "sigmoid":
            return y * (1 - y)
        case "erf":
            return np.asarray(ERF_SLOPE * np.exp(-x * x))
        case "reciprocal":
            return -y * y
        case _:
            return 0.5 / y


def curvature(function: str, x: Floats) -> Floats:
    """The magnitude of the second derivative, or more: between numbers of one sign it is greatest at one of them."""
    match function:
        case "exp":
            return np.exp(x)
        case "reciprocal":
            return np.asarray(2 / np.abs(x) ** 3)
        case "sqrt":
            return np.asarray(0.25 * x**-1.5)
        case _:
            return np.ones_like(x)


class Line(NamedTuple):
    """What a piece reads, in a place of its rule: the slope in it at the sentence, by how much that of a checker may
    be another, and the numbers there."""

    read: tuple[Stretch, ...]
    slope: Floats
    tilt: Floats
    numbers: Floats


class Multipliers:
    """Of all rivals: piece -> [size, rivals], mu of what is affine in the words, lambda of all else."""

    def __init__(
        self,
        question: Question,
        center: Mapping[int, Floats],
        doubt: Mapping[int, Floats],
        values: Mapping[int, Floats],
        ends: Ends,
    ) -> None:
        self.question, self.center, self.kernel = question, center, isinstance(ends, KernelEnds)
        self.doubt = doubt
        """How much larger the numbers of a checker may be than those of the center."""
        self.values = values
        """What the rules of pieces give where they read the numbers of the center, which may be others there."""
        self.unit = ends.unit
        program = question.program
        self.of: dict[int, Floats] = {piece: matrix.copy() for piece, matrix in question.tail.parts.items()}
        self.sizes = {piece: np.abs(given) for piece, given in self.of.items()} if self.kernel else {}
        """At level kernel, sums of the magnitudes of what readers add, one by one."""
        self.loose = {piece: np.zeros_like(given) for piece, given in self.of.items()}
        """By how much a multiplier of a checker, and the sum of magnitudes, may be another: |g|."""
        self.lines: dict[int, list[Line]] = {}
        for number in reversed(question.needed):
            if not program.pieces[number].affine:
                self.pass_on(number)
        self.size = float(sum(np.abs(each).sum() for each in self.of.values()))

    def add(self, part: Stretch, given: Floats, loose: Floats, sizes: Floats | None = None) -> None:
        if part.piece == CONSTANTS:
            return
        added = [(self.of, given), (self.loose, loose)]
        if self.kernel:
            added.append((self.sizes, np.abs(given) if sizes is None else sizes))
        for of, more in added:
            held = of.setdefault(part.piece, np.zeros((self.question.program.pieces[part.piece].size, more.shape[1])))
            if isinstance(part.index, slice):
                held[part.index] += more
            else:
                np.add.at(held, part.index, more)

    def read(self, parts: Sequence[Stretch], size: int) -> tuple[Floats, Floats]:
        """Numbers at the sentence, and how much larger those of a checker may be (constants: less than SLOPE)."""
        found, doubt = np.empty(size), np.zeros(size)
        for part in parts:
            if part.piece == CONSTANTS:
                found[part.place] = self.question.program.constants[part.index]
            else:
                found[part.place] = self.center[part.piece][part.index]
                doubt[part.place] = self.doubt[part.piece][part.index]
        return found, doubt

    def pass_on(self, number: int) -> None:
        """Of one piece, which adds to those of what it reads."""
        piece = self.question.program.pieces[number]
        nothing = np.zeros((piece.size, len(self.question.tail.size)))
        given = self.of.setdefault(number, nothing)
        self.sizes.setdefault(number, nothing.copy())
        loose = self.loose[number] = self.loose.get(number, nothing) + self.unit
        match piece.operation:
            case Dense(parts, matrices):
                for part, matrix in zip(parts, matrices, strict=True):
                    sizes = np.abs(matrix)
                    self.add(part, matrix @ given, sizes @ loose, sizes @ np.abs(given) if self.kernel else None)
            case Blend(parts, weights):
                for part, factors in zip(parts, weights, strict=True):
                    self.add(part, factors[:, None] * given[part.place], np.abs(factors)[:, None] * loose[part.place])
            case _:
                self.lines[number] = self.lines_of(number)
                for parts, slope, tilt, _ in self.lines[number]:
                    more = np.abs(slope)[:, None] * loose + tilt[:, None] * (np.abs(given) + loose)
                    for part in parts:
                        self.add(part, (slope[:, None] * given)[part.place], more[part.place])

    def lines_of(self, number: int) -> list[Line]:
        piece = self.question.program.pieces[number]
        match piece.operation:
            case Product(left, right):
                (x, more_x), (y, more_y) = self.read(left, piece.size), self.read(right, piece.size)
                return [Line(left, y, more_y + SLOPE, x), Line(right, x, more_x + SLOPE, y)]
            case Curve(parts, function):
                x, more = self.read(parts, piece.size)
                slope = slopes(function, x, self.values[number])
                bent = more * np.maximum(curvature(function, x), curvature(function, x + more))
                return [Line(parts, slope, bent + SLOPE * (1 + np.abs(slope)), x)]
            case Bend(parts, alpha):
                x, more = self.read(parts, piece.size)
                return [
                    Line(parts, np.where(x >= 0, 1.0, alpha), np.where((x < 0) & (x + more >= 0), 1 - alpha, 0.0), x)
                ]
            case Most(columns):
                found, doubts = zip(*[self.read(parts, piece.size) for parts in columns], strict=True)
                best, highest = np.argmax(found, axis=0), np.add(found, doubts) + SLOPE
                places = np.arange(piece.size)
                chosen = np.array(found)[best, places]
                highest[best, places] = -np.inf
                tilt = np.where(highest.max(axis=0) < chosen - SLOPE, 0.0, 1.0)
                return [
                    Line(parts, np.where(best == at, 1.0, 0.0), tilt, x)
                    for at, (parts, x) in enumerate(zip(columns, found, strict=True))
                ]
        raise TypeError("tokens are looked up")

    # ---- costs

    def costs(self, number: int, found: Array, read: Sequence[Array], ends: Ends) -> Floats:
        """[rows, rivals]: of a piece, from its ends and from those of what it reads, all of it in order."""
        given = self.of[number]
        low, high = self.rests(number, found, read, ends)
        more = self.values[number] - self.center[number]
        low, high = low + more, high + more
        costs = low @ np.maximum(given, 0) + high @ np.minimum(given, 0)
        turned = np.zeros_like(low)
        for at, line in enumerate(self.lines.get(number, ())):
            of = read[min(at, len(read) - 1)]
            turned = turned + line.tilt * np.abs(of[:, :2] - line.numbers).max(axis=1)
        loose, size = self.loose[number], np.abs(given)
        costs -= turned @ size + (np.maximum(np.abs(low), np.abs(high)) + turned) @ loose
        below = self.center[number] + self.doubt[number] - found[:, 0]
        costs = costs - ends.unit * np.maximum(below, 0).sum(axis=1)[:, None]
        if isinstance(ends, KernelEnds):
            affine = isinstance(self.question.program.pieces[number].operation, Dense | Blend)
            charged = (self.sizes[number] if affine else size) + loose
            costs -= (self.widths(number, found, read) + 3 * ends.unit) @ charged
        return np.asarray(costs)

    def widths(self, number: int, found: Array, read: Sequence[Array]) -> Floats:
        """[rows, size]: what intervals of float32 values were widened by."""
        match self.question.program.pieces[number].operation:
            case Dense() | Blend():
                return np.asarray(SHARE * self.question.roundings[number] * found[:, 2])
            case Product():
                return np.asarray(2 * SHARE * found[:, 2])
            case Curve():
                return np.full((1, found.shape[2]), ABSOLUTE)
            case Bend(_, alpha) if alpha:
                return np.asarray(4 * SHARE * np.abs(read[0][:, :2]).max(axis=1))
            case _:
                return np.zeros((1, found.shape[2]))

    def rests(self, number: int, found: Array, read: Sequence[Array], ends: Ends) -> tuple[Floats, Floats]:
        """[rows, size] each: the least and the greatest of what the line about the sentence leaves."""
        piece, own = self.question.program.pieces[number], self.values[number]
        match piece.operation:
            case Dense() | Blend():
                nothing = np.zeros((1, piece.size))
                return nothing, nothing
            case Product(left, right, square):
                x = read[0][:, :2] - self.read(left, piece.size)[0]
                y = x if square else read[1][:, :2] - self.read(right, piece.size)[0]
                a, b, c, d = x[:, 0] * y[:, 0], x[:, 0] * y[:, 1], x[:, 1] * y[:, 0], x[:, 1] * y[:, 1]
                low, high = (
                    np.minimum(np.minimum(a, b), np.minimum(c, d)),
                    np.maximum(np.maximum(a, b), np.maximum(c, d)),
                )
                return (np.where((x[:, 0] < 0) & (x[:, 1] > 0), 0.0, np.minimum(a, d)) if square else low), high
            case Curve(parts, function):
                return self.curve_rests(function, self.read(parts, piece.size)[0], own, found, read[0], ends)
            case Bend(parts, alpha):
                x, n = read[0][:, :2], self.read(parts, piece.size)[0]
                slope = np.where(n >= 0, 1.0, alpha)
                rest = np.maximum(x, alpha * x) - slope * (x - n) - own
                kink = np.where((x[:, 0] < 0) & (x[:, 1] > 0), slope * n - own, rest[:, 0])
                return np.minimum(rest.min(axis=1), kink), np.maximum(rest.max(axis=1), kink)
            case Most(columns):
                at = np.array([self.read(parts, piece.size)[0] for parts in columns])
                best = np.argmax(at, axis=0)
                every = np.stack([x[:, :2] for x in read])  # [columns, rows, 2, size]
                places = np.arange(piece.size)
                chosen = np.moveaxis(every[best, :, :, places], 0, -1)
                others = every.copy()
                others[best, :, :, places] = -np.inf
                low = np.maximum(0.0, others[:, :, 0].max(axis=0) - chosen[:, 1])
                return low, np.maximum(0.0, others[:, :, 1].max(axis=0) - chosen[:, 0])
        raise TypeError("tokens are looked up")

    def curve_rests(
        self, function: str, n: Floats, own: Floats, found: Array, x: Array, ends: Ends
    ) -> tuple[Floats, Floats]:
        if isinstance(ends, KernelEnds) and function not in ("tanh", "sigmoid", "erf"):
            raise Unfit("a curve of relative errors")
        slope = slopes(function, n, own)
        lost = 2 * (FUNCTION + ends.unit)
        values = found[:, 1::-1] if function == "reciprocal" else found[:, :2]
        if isinstance(ends, KernelEnds):  # what it was widened by counts apart
            values = values - OUTWARDS * (ABSOLUTE + 2 * ends.unit)
        rest = values - own - slope * (x[:, :2] - n)
        size = lost * np.maximum(1.0, np.abs(values))
        low = np.minimum(rest[:, 0] - size[:, 0], rest[:, 1] - size[:, 1])
        high = np.maximum(rest[:, 0] + size[:, 0], rest[:, 1] + size[:, 1])
        inside = (x[:, 0] <= n) & (n <= x[:, 1])
        low, high = np.where(inside, np.minimum(low, 0.0), low), np.where(inside, np.maximum(high, 0.0), high)
        if function in ODD:
            there = (x[:, 0] <= -n) & (-n <= x[:, 1])
            turned = ODD[function] - 2 * own + 2 * slope * n
            low, high = np.where(there, np.minimum(low, turned), low), np.where(there, np.maximum(high, turned), high)
        return low, high
