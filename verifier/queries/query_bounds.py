"""Linear lower bounds over boxes, for many regions at once, widened by a bound on every rounding of this arithmetic.

A region is a box and bounds of the neurons' inputs. Backward substitution (CROWN) replaces relu(z) by a line below or
above it, layer by layer, down to the inputs; a linear function is least in a corner of the box.

Rounding: with u = 2**-53, S_i = sum of |W_ij| max |h_j| + |b_i| over the whole box, and m_i the coefficient that
neuron i's input has on the way down, computing and adding up the rows of layer i loses at most n u |m_i| S_i for each
neuron, n counting operations; the same for the rounding of the stack's own matrices. The sum of all that is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.normal_form import UNIT, Functions, Stack, handed_back
from swapproof.encodings.bounds.relaxation import rectifier_lines
from swapproof.encodings.network import Floats, Indices

Truths = NDArray[np.bool_]

SLOP = 1.01
"""Covers second-order terms and the rounding of the error bounds themselves."""
TINY = 1e-290
"""Covers underflow."""


@dataclass(eq=False)
class InputRegions:
    """Boxes [n, inputs] and, for each layer, bounds [n, size] of the neurons' inputs and their decided phases.

    A phase is 1 (input at least 0), -1 (at most 0) or 0 (open). `nodes` are places in a record of the search, and
    below its cuts the bounds of the last one are kept.
    """

    low: Floats
    high: Floats
    least: list[Floats]
    greatest: list[Floats]
    phases: list[Indices]
    nodes: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kept_least: list[Floats] = field(default_factory=list)
    kept_greatest: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.low):
            self.nodes = np.zeros(len(self.low), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.low)

    def take(self, index: Indices | Truths | slice) -> InputRegions:
        return InputRegions(
            self.low[index],
            self.high[index],
            [part[index] for part in self.least],
            [part[index] for part in self.greatest],
            [part[index] for part in self.phases],
            self.nodes[index],
            [part[index] for part in self.kept_least],
            [part[index] for part in self.kept_greatest],
        )

    def keep(self, rows: Truths) -> None:
        """The bounds of these."""
        pairs = (self.kept_least, self.least), (self.kept_greatest, self.greatest)
        self.kept_least, self.kept_greatest = (
            [np.where(rows[:, None], new, old) for old, new in zip(kept, now, strict=True)] for kept, now in pairs
        )

    def fall_back(self) -> None:
        """To the bounds that are kept."""
        self.least, self.greatest = list(self.kept_least), list(self.kept_greatest)

    def empty(self) -> Truths:
        """[n]: whether some bounds crossed: nothing is in the region."""
        crossed = (self.low > self.high).any(axis=1)
        for low, high in zip(self.least, self.greatest, strict=True):
            crossed |= (low > high).any(axis=1)
        return np.asarray(crossed)

    def open_neurons(self, layer: int) -> Truths:
        return np.asarray((self.least[layer] < 0) & (self.greatest[layer] > 0))


def joined(parts: list[InputRegions]) -> InputRegions:
    layers = range(len(parts[0].least))
    kept_by_part = [part.kept_least for part in parts], [part.kept_greatest for part in parts]
    return InputRegions(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        [np.concatenate([part.least[i] for part in parts]) for i in layers],
        [np.concatenate([part.greatest[i] for part in parts]) for i in layers],
        [np.concatenate([part.phases[i] for part in parts]) for i in layers],
        np.concatenate([part.nodes for part in parts]),
        *([np.concatenate(layer) for layer in zip(*kept, strict=True)] for kept in kept_by_part),
    )


@dataclass(eq=False)
class InputLines:
    """Of each layer [n, size]: lower slope, upper slope, upper intercept.

    With `parts` upper slopes are multiples of 1 / parts, as they are for the checker of certificates.
    """

    parts: float = 0.0
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    raised: list[Floats] = field(default_factory=list)

    def add(self, low: Floats, high: Floats) -> None:
        found = rectifier_lines(0.0, low, high, self.parts)
        for lines, array in zip((self.lower, self.upper, self.raised), found, strict=True):
            lines.append(array)


@dataclass(frozen=True, eq=False)
class Bounded:
    """Of each region and row: a lower bound [n, R], the coefficients of the inputs [n, R, inputs] behind it, and what
    was taken off for rounding."""

    low: Floats
    coefficients: Floats
    rounding: Floats | float = 0.0


@dataclass(frozen=True, eq=False)
class Descended:
    """Of each region and row: constant [n, R] and coefficients [n, R, inputs] of a linear lower bound, what rounding
    can take away, and the coefficients that each layer's outputs had on the way."""

    constant: Floats
    error: Floats
    coefficients: Floats
    given: list[Floats]


class QueryBounds:
    """Bounds over regions inside one box, for one stack."""

    def __init__(self, stack: Stack, low: Floats, high: Floats, parts: float = 0.0) -> None:
        self.stack = stack
        self.parts = parts
        self.depth = len(stack.layers)
        self.magnitude = [np.maximum(np.abs(low), np.abs(high))]
        """Of h_j, over the whole box."""
        self.errors = [self.unit(len(low)) * self.magnitude[0]]
        """Of h_0 and then z_i: what a coefficient of one costs in rounding."""
        self.whole = InputRegions(low[None], high[None], [], [], [])
        for layer in stack.layers:
            width = len(layer)
            self.whole.phases.append(np.zeros((1, width), dtype=np.int64))
            self.errors.append((self.unit(width) + SLOP * layer.roundings * UNIT) * self.size(layer))
            limit = np.full((1, width), np.inf)
            self.whole.least.append(-limit)
            self.whole.greatest.append(limit)
            self.tighten(self.whole, len(self.magnitude) - 1)
            self.magnitude.append(np.maximum(self.whole.greatest[-1][0], 0.0))

    def unit(self, width: int) -> float:
        return SLOP * UNIT * (2 * width + 6 * self.depth + 32)

    def size(self, rows: Functions) -> Floats:
        """[R]: a bound of |rows|, every term taken absolutely."""
        return rows.bias_size + sum((size @ self.magnitude[j] for j, size in rows.sizes.items()), np.zeros(len(rows)))

    def refresh(self, regions: InputRegions) -> None:
        """Bounds of all layers, layer after layer; what was known stays known."""
        lines = InputLines(self.parts)
        for layer in range(self.depth):
            self.tighten(regions, layer, lines)
            if layer + 1 < self.depth:
                lines.add(regions.least[layer], regions.greatest[layer])

    def tighten(self, regions: InputRegions, layer: int, lines: InputLines | None = None) -> None:
        """The bounds of one layer, in place: intervals, then backward substitution for what intervals leave open."""
        rows = self.stack.layers[layer]
        low, high = self.intervals(rows, regions)
        low, high = np.maximum(low, regions.least[layer]), np.minimum(high, regions.greatest[layer])
        if self.parts:  # as a checker of certificates does, which keeps bounds without both signs as they are
            kept = (regions.least[layer] >= 0) | (regions.greatest[layer] <= 0)
            low, high = np.where(kept, regions.least[layer], low), np.where(kept, regions.greatest[layer], high)
        if any(j > 0 for j in rows.weights):
            both = (low < 0) & (high > 0)
            places = np.flatnonzero(both.any(axis=0))
            if len(places):
                if lines is None:
                    lines = InputLines(self.parts)
                    for before in range(layer):
                        lines.add(regions.least[before], regions.greatest[before])
                found = self.least(two_sided(rows.taken(places)), regions, lines).low
                if self.parts:  # as a checker of certificates does, which bounds no others so
                    found[~np.tile(both[:, places], 2)] = -np.inf
                low[:, places] = np.maximum(low[:, places], found[:, : len(places)])
                high[:, places] = np.minimum(high[:, places], -found[:, len(places) :])
        phases = regions.phases[layer]
        regions.least[layer] = np.where(phases > 0, np.maximum(low, 0.0), low)
        regions.greatest[layer] = np.where(phases < 0, np.minimum(high, 0.0), high)

    def intervals(self, rows: Functions, regions: InputRegions) -> tuple[Floats, Floats]:
        """[n, R] twice, by interval arithmetic from the layers before."""
        low = np.broadcast_to(rows.bias, (len(regions), len(rows))).copy()
        high = low.copy()
        fan = 0
        for j, weight in rows.weights.items():
            first = regions.low if j == 0 else np.maximum(regions.least[j - 1], 0.0)
            last = regions.high if j == 0 else np.maximum(regions.greatest[j - 1], 0.0)
            middle, radius = (first + last) / 2, (last - first) / 2
            center, spread = middle @ weight.T, radius @ np.abs(weight).T
            low += center - spread
            high += center + spread
            fan += weight.shape[1]
        error = (2 * self.unit(fan) + SLOP * rows.roundings * UNIT) * self.size(rows) + TINY
        return low - error, high + error

    def least(self, rows: Functions, regions: InputRegions, lines: InputLines) -> Bounded:
        """Lower bounds of rows that read layers 0 .. len(lines.lower)."""
        shape = (len(regions), len(rows))
        row_error = (SLOP * rows.roundings * UNIT + self.unit(1)) * self.size(rows) + TINY
        found = self.descend(rows.weights, np.broadcast_to(rows.bias, shape), np.broadcast_to(row_error, shape), lines)
        given = found.coefficients
        rounding = SLOP * found.error
        return Bounded(found.constant + self.lowest(given, regions) - rounding, given, rounding)

    def lowest(self, given: Floats, regions: InputRegions) -> Floats:
        """[n, R]: the least of the linear functions with these coefficients [n, R, inputs]."""
        above, below = np.maximum(given, 0.0), np.minimum(given, 0.0)
        return np.asarray((above @ regions.low[:, :, None] + below @ regions.high[:, :, None])[:, :, 0])

    def corners(self, given: Floats, regions: InputRegions) -> Floats:
        """[n, inputs]: where the linear function with coefficients [n, inputs] is least."""
        return np.where(given >= 0, regions.low, regions.high)

    def descend(
        self,
        weights: Mapping[int, Floats],
        constant: Floats,
        error: Floats,
        lines: InputLines,
        splits: Sequence[Floats] | None = None,
    ) -> Descended:
        """Functions [n, R] by their coefficients of h_j, as lower bounds that are linear in x.

        `splits` [n, size] of each layer are multipliers of its neurons' inputs, taken off.
        """
        count, rows = constant.shape
        given_at: list[Floats] = [np.zeros((count, rows, 0))] * len(lines.lower)

        def through(i: int, given: Floats | None) -> Floats | None:
            nonlocal constant, error
            if given is None:
                if splits is None:
                    return None
                given = np.zeros((count, rows, self.stack.widths[i]))
            given_at[i - 1] = given
            above, below = np.maximum(given, 0.0), np.minimum(given, 0.0)
            lower, upper, raised = (part[i - 1][:, None, :] for part in (lines.lower, lines.upper, lines.raised))
            passed = above * lower + below * upper
            constant = constant + (below * raised).sum(axis=-1)
            sizes = np.abs(passed)
            if splits is not None:
                passed = passed - splits[i - 1][:, None, :]
                # A split's multiplier is added to the rest, so both sizes count.
                sizes = np.abs(passed) + 2 * np.abs(splits[i - 1][:, None, :])
            flat, sizes = (part.reshape(-1, part.shape[-1]) for part in (passed, sizes))
            constant = constant + (flat @ self.stack.layers[i - 1].bias).reshape(count, rows)
            error = error + (sizes @ self.errors[i]).reshape(count, rows)
            return passed

        found = handed_back(self.stack.layers[: len(lines.lower)], weights, through)
        shape = (count, rows, self.stack.inputs)
        coefficients = np.broadcast_to(np.zeros(1) if found is None else found, shape)
        return Descended(constant, error + np.abs(coefficients) @ self.errors[0], coefficients, given_at)

    def all_lines(self, regions: InputRegions) -> InputLines:
        lines = InputLines(self.parts)
        for low, high in zip(regions.least, regions.greatest, strict=True):
            lines.add(low, high)
        return lines


def two_sided(rows: Functions) -> Functions:
    """The rows, then the rows negated."""
    return Functions(
        {j: np.concatenate([w, -w]) for j, w in rows.weights.items()},
        np.concatenate([rows.bias, -rows.bias]),
        {j: np.concatenate([w, w]) for j, w in rows.sizes.items()},
        np.concatenate([rows.bias_size, rows.bias_size]),
        rows.roundings,
    )


def contracted(regions: InputRegions, bounded: Bounded) -> None:
    """Where coefficients c and bound L say that a row, which must be <= 0, is at least L + c (x - corner): shrink.

    c_j > 0: x_j <= low_j - L / c_j. c_j < 0: x_j >= high_j - L / c_j. Rounded outwards by a relative 2**-40.
    """
    slack = 2.0**-40
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for row in range(bounded.low.shape[1]):
            c, room = bounded.coefficients[:, row, :], np.maximum(-bounded.low[:, row, None], 0.0) * (1 + slack)
            step = room / np.abs(c)
            reach = regions.low + step
            reach += slack * (np.abs(regions.low) + step) + TINY
            drop = regions.high - step
            drop -= slack * (np.abs(regions.high) + step) + TINY
            regions.high = np.where(c > 0, np.minimum(regions.high, reach), regions.high)
            regions.low = np.where(c < 0, np.maximum(regions.low, drop), regions.low)


SHARES = (0.5, 1.0)
"""Multipliers tried for the one linear fact, in units of what balances it with a neuron's own row."""
CHUNK = 1 << 16
"""Numbers worked on at a time: they should stay in the cache."""


def sharpened(bounds: QueryBounds, regions: InputRegions, low: Floats, coefficients: Floats, neurons: Indices) -> None:
    """Bounds of these neurons of the first layer, where a function at least L + c (x - corner) must be <= 0.

    With x = m + r t, -1 <= t <= 1, p = w r, q = c r and V the function's bound in the middle, for every u >= 0

        w x + b >= w m + b + u V - |p + u q|        w x + b <= w m + b - u V + |u q - p|        (|.| sums all)
    """
    layer = bounds.stack.layers[0]
    if 0 not in layer.weights:  # a maximum of numbers that do not move: nothing to sharpen
        return
    weight, errors = layer.weights[0][neurons], 2 * bounds.errors[1][neurons]
    step = max(1, CHUNK // max(1, weight.size))
    slack = 2.0**-40
    for first in range(0, len(regions), step):
        part = slice(first, first + step)
        middle, radius = (regions.low[part] + regions.high[part]) / 2, (regions.high[part] - regions.low[part]) / 2
        q = coefficients[part] * radius
        size = np.abs(q).sum(axis=1)
        value = low[part] + size
        p = weight * radius[:, None, :]
        own = radius @ np.abs(weight).T
        center = middle @ weight.T + layer.bias[neurons]
        least, greatest = regions.least[0][part, neurons], regions.greatest[0][part, neurons]
        balance = own / np.maximum(size, 1e-300)[:, None]
        for share in SHARES:
            u = share * balance
            uq = u[:, :, None] * q[:, None, :]
            gain = u * value[:, None]
            error = errors + slack * (np.abs(gain) + u * size[:, None] + own) + TINY
            moved = p + uq
            least = np.maximum(least, center + gain - np.abs(moved, out=moved).sum(axis=2) - error)
            np.subtract(uq, p, out=moved)
            greatest = np.minimum(greatest, center - gain + np.abs(moved, out=moved).sum(axis=2) + error)
        regions.least[0][part, neurons], regions.greatest[0][part, neurons] = least, greatest
