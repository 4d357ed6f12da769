"""Bounds of neurons and functions over regions of a box certificate (FORMAT.md, section 14.3), sound over the reals.

They follow the checker's recipe in float64. Take an answer x of a region, and let z_i and h_i be what neurons read and
give there: every bound below holds at x, by induction over layers, cuts and splits. On the way down a function is a sum
of c_j h_j, m_i z_i and a constant, and at x |h_j| is at most what the bounds say, |z_i| at most S_i: the sum of the
terms of its row taken absolutely. Computing the row, and handing m_i times its n weights on, where they are added to
those of the other rows of the layer, loses at most growth(n + rows) |m_i| S_i; intercepts of lines, inputs and
constants lose their own share. All that is added up beside the function, and taken off every lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.bounds.relaxation import rectifier_lines

from ..numbers.float64_rounding import LARGEST, SLOP, TINY, Floats, growth
from .float_network import FloatNetwork, Rectified, Rows
from .float_regions import Flags, Regions, crossed

TIE = 2.0**-30
"""With an end nearer to 0 than this part of the other, or with ends of nearly one size, another line may be the
checker's."""
VAGUE = 2.0**20
"""So near to 0, in units of what rounding costs, both ends say nothing of which line is the checker's."""


@dataclass(frozen=True, eq=False)
class Lines:
    """[n, size] each: a x - d below and s x + t above; d makes up for the lower line that the checker may have."""

    lower: Floats
    upper: Floats
    raised: Floats
    doubt: Floats

    @classmethod
    def of(cls, slope: float, low: Floats, high: Floats, chosen: Floats | None = None) -> Lines:
        """`chosen` lower slopes; below 0 where none is. t errs upwards; any lower slope from `slope` to 1 is sound."""
        level = np.where(np.abs(high + low) <= TIE * (high - low), slope, -1.0)
        least = level if chosen is None else np.where(chosen >= 0, np.maximum(chosen, slope), level)
        lower, upper, raised = rectifier_lines(slope, low, high, chosen=least)
        own = np.where(least >= 0, least, np.where(high > -low, 1.0, slope))
        # Computed ends err outwards and are not 0: phases make those that are.
        off, on = (high != 0) & (np.abs(high) <= TIE * -low), (low != 0) & (np.abs(low) <= TIE * high)
        lower = np.where(off, slope, np.where(on, 1.0, lower))
        apart = np.where(off | on, np.abs(own - lower), 0.0)
        if chosen is None:
            apart = np.where((level >= 0) & ~off & ~on, 1.0 - slope, apart)
        else:
            apart = np.where((level >= 0) & (chosen < 0) & ~off & ~on, 1.0 - slope, apart)
        return cls(lower, upper, raised * (1.0 + 2.0**-50), apart * np.maximum(np.abs(low), np.abs(high)))


def both_signs(low: Floats, high: Floats) -> Flags:
    """Where that is no matter of rounding."""
    return ((low < -TIE * high) & (high > -TIE * low)) | ~np.isfinite(low) | ~np.isfinite(high)


@dataclass(frozen=True, eq=False)
class Function:
    """[n, R, ...]: at every answer the rows are at least constant + given x, less the error."""

    constant: Floats
    given: Floats
    error: Floats
    risen: Floats
    """[n, R, neurons], or none: what the upper line of each takes off."""

    def least(self, regions: Regions) -> Floats:
        """[n, R]: the least between the ends."""
        above, below = np.maximum(self.given, 0.0), np.minimum(self.given, 0.0)
        found = self.constant + (above @ regions.low[:, :, None] + below @ regions.high[:, :, None])[:, :, 0]
        return np.asarray(found - self.error)


@dataclass(eq=False)
class FloatBounds:
    """Of these regions, layer by layer."""

    network: FloatNetwork
    regions: Regions
    low: list[Floats] = field(default_factory=list)
    high: list[Floats] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    sizes: list[Floats] = field(default_factory=list)
    """The greatest |h|."""
    costs: list[Floats] = field(default_factory=list)
    """What a coefficient of one of what a neuron reads costs in rounding."""

    @classmethod
    def of(cls, network: FloatNetwork, regions: Regions) -> FloatBounds:
        """Fresh regions have their bounds already: all of them, or none."""
        found, fresh = cls(network, regions), bool(regions.fresh.all())
        for layer in network.layers:
            found.costs.append(found.cost(layer.rows))
            low, high = regions.kept_low[:, layer.neurons], regions.kept_high[:, layer.neurons]
            if not fresh:
                low, high = found.bounded(layer.rows, low, high)
                phases = regions.phases[:, layer.neurons]
                low = np.where(phases > 0, np.maximum(low, 0.0), low)
                high = np.where(phases < 0, np.minimum(high, 0.0), high)
            found.add(layer, low, high)
        return found

    def add(self, layer: Rectified, low: Floats, high: Floats) -> None:
        self.low.append(low)
        self.high.append(high)
        self.lines.append(Lines.of(layer.slope, low, high))
        self.sizes.append(np.maximum(np.abs(low) * layer.slope, np.maximum(np.abs(high) * layer.slope, high)) * SLOP)

    def usable(self) -> Flags:
        """[n]: whether all bounds are numbers, and none so large that tiny ones count beside it."""
        found = np.ones(len(self.regions), dtype=np.bool_)
        for low, high in zip(self.low, self.high, strict=True):
            found &= (np.maximum(np.abs(low), np.abs(high)) < LARGEST).all(axis=1)
        return found

    def clear(self) -> Flags:
        """[n]: whether no neuron reads what is nearly 0 for certain; but what is 0 whatever the inputs are."""
        found = np.ones(len(self.regions), dtype=np.bool_)
        for low, high, cost in zip(self.low, self.high, self.costs, strict=True):
            found &= ((np.maximum(np.abs(low), np.abs(high)) > VAGUE * cost) | (cost <= 4 * TINY)).all(axis=1)
        return found

    def crossed(self) -> Flags:
        found = np.zeros(len(self.regions), dtype=np.bool_)
        for low, high in zip(self.low, self.high, strict=True):
            found |= crossed(low, high)
        return found

    # ---- rounding

    def cost(self, rows: Rows) -> Floats:
        """[n, R]: growth(n + rows) S, with room for what the same numbers lose on the way down and in intervals."""
        added = sum(w.shape[1] for w in rows.weights.values()) + rows.inputs.shape[1] + len(rows.bias)
        total = self.regions.reach @ np.abs(rows.inputs).T + np.abs(rows.bias)
        for j, w in rows.weights.items():
            total = total + self.sizes[j] @ np.abs(w).T
        return np.asarray(growth(4.0 * added + 8.0 * len(self.network.layers) + 64) * total * SLOP + TINY)

    # ---- bounds of what neurons read

    def bounded(self, rows: Rows, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Kept bounds without both signs stay, others become the better of both."""
        both = both_signs(low, high)
        if rows.weights:
            lows, highs = self.deep(rows, low, high)
        else:
            lows, highs = self.extremes(rows.inputs, rows.bias, both)
            lows, highs = np.maximum(low, lows), np.minimum(high, highs)
        return np.where(both, lows, low), np.where(both, highs, high)

    def extremes(self, functions: Floats, bias: Floats, asked: Flags | None = None) -> tuple[Floats, Floats]:
        """Of rows affine in the inputs: between the ends, and where these have both signs, and are `asked` for, beyond
        the plane."""
        regions = self.regions
        size = regions.reach @ np.abs(functions).T + np.abs(bias)
        error = growth(4.0 * functions.shape[1] + 32) * size * SLOP + TINY
        center, spread = regions.extremes(functions)
        low, high = center - spread + bias - error, center + spread + bias + error
        both = both_signs(low, high) & regions.planed[:, None]
        some, columns = np.nonzero(both if asked is None else both & asked)
        if len(some):
            at = some, columns
            lows, highs = regions.beyond(some, functions[columns], center[at], size[at])
            low[at] = np.maximum(low[at], bias[columns] + lows - error[at])
            high[at] = np.minimum(high[at], bias[columns] + highs + error[at])
        return low, high

    def deep(self, rows: Rows, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """By intervals, and where these have both signs by substitution too."""
        lows, highs = self.intervals(rows)
        low, high = np.maximum(low, lows), np.minimum(high, highs)
        both = both_signs(low, high)
        columns = np.flatnonzero(both.any(axis=0))
        if len(columns):
            found = self.substituted(rows.taken(columns).two_sided()).least(self.regions)
            lows, highs = found[:, : len(columns)], -found[:, len(columns) :]
            own, here = both[:, columns], (slice(None), columns)
            low[here] = np.where(own, np.maximum(low[here], lows), low[here])
            high[here] = np.where(own, np.minimum(high[here], highs), high[here])
        return low, high

    def intervals(self, rows: Rows) -> tuple[Floats, Floats]:
        """Every rectifier, and every element affine in the inputs, between its own bounds."""
        low = np.broadcast_to(rows.bias, (len(self.regions), len(rows.bias))).copy()
        high, error = low.copy(), self.costs[len(self.low)].copy()
        parts: list[tuple[Floats, Floats, Floats]] = []
        for j, w in rows.weights.items():
            slope = self.network.layers[j].slope
            first, last = self.low[j], self.high[j]
            parts.append((w, np.maximum(first, slope * first), np.maximum(last, slope * last)))
        if len(rows.given):
            columns, bases = self.network.columns[rows.given], self.network.bases[rows.given]
            parts.append((rows.shares, *self.extremes(columns, bases)))
            low -= rows.shares @ bases  # which the bias of a row holds already
            high -= rows.shares @ bases
            size = self.regions.reach @ np.abs(columns).T + np.abs(bases)
            error += growth(4.0 * (columns.shape[1] + len(columns)) + 32) * size @ np.abs(rows.shares).T
        for w, first, last in parts:
            up, down = np.maximum(w, 0.0).T, np.minimum(w, 0.0).T
            low += first @ up + last @ down
            high += last @ up + first @ down
        return low - error * SLOP, high + error * SLOP

    # ---- functions

    def substituted(self, rows: Rows) -> Function:
        """The same rows for every region."""
        shape = (len(self.regions), len(rows.bias))
        given = {j: np.broadcast_to(w, (shape[0], *w.shape)) for j, w in rows.weights.items()}
        inputs = np.broadcast_to(rows.inputs, (*shape, self.network.inputs))
        return self.descended(given, inputs, np.broadcast_to(rows.bias, shape), self.cost(rows), self.lines, None)

    def weighed(self, rows: Rows, weights: Floats, slopes: Floats, betas: Floats) -> Function:
        """A sum of rows with weights [n, K], by slopes [n, neurons], below 0 where none is set, and betas."""
        lines = [
            Lines.of(layer.slope, low, high, slopes[:, layer.neurons])
            for layer, low, high in zip(self.network.layers, self.low, self.high, strict=True)
        ]
        given = {j: (weights @ w)[:, None] for j, w in rows.weights.items()}
        error = (weights * self.cost(rows)).sum(axis=1, keepdims=True) * (8.0 + len(rows.bias))
        inputs, constant = (weights @ rows.inputs)[:, None], (weights @ rows.bias)[:, None]
        return self.descended(given, inputs, constant, error, lines, betas * self.regions.phases)

    def descended(
        self,
        given: Mapping[int, Floats],
        inputs: Floats,
        constant: Floats,
        error: Floats,
        lines: Sequence[Lines],
        pulls: Floats | None,
    ) -> Function:
        """Coefficients [n, R, size] of rectifiers replaced, the last first; `pulls` [n, neurons]: phase times beta."""
        handed, relative = dict(given), growth(4.0 * self.network.neurons + 64)
        risen = np.zeros((*constant.shape, 0 if pulls is None else self.network.neurons))
        for j in range(len(lines) - 1, -1, -1):
            layer, line = self.network.layers[j], lines[j]
            pull = None if pulls is None else pulls[:, None, layer.neurons]
            values = handed.pop(j, None)
            if values is None:
                if pull is None or not pull.any():
                    continue
                values = np.zeros((*constant.shape, len(layer.rows.bias)))
            above, below = np.maximum(values, 0.0), np.minimum(values, 0.0)
            passed = above * line.lower[:, None] + below * line.upper[:, None]
            raised = (below @ line.raised[:, :, None])[:, :, 0]
            if line.doubt.any():
                raised = raised - (above @ line.doubt[:, :, None])[:, :, 0]
            sizes = np.abs(passed)
            if pull is not None:
                risen[:, :, layer.neurons] = -below * line.raised[:, None]
                sizes = sizes + 2 * np.abs(pull)
                passed = passed - pull
            error = error - relative * raised + (sizes @ self.costs[j][:, :, None])[:, :, 0]
            flat = passed.reshape(-1, passed.shape[-1])
            constant = constant + raised + (flat @ layer.rows.bias).reshape(constant.shape)
            for i, w in layer.rows.weights.items():
                more = (flat @ w).reshape(*constant.shape, -1)
                handed[i] = handed[i] + more if i in handed else more
            inputs = inputs + (flat @ layer.rows.inputs).reshape(*constant.shape, -1)
        ends = (np.abs(inputs) @ self.regions.reach[:, :, None])[:, :, 0] + np.abs(constant)
        rounding = growth(4.0 * self.network.inputs + 8.0 * len(lines) + 64) * ends
        return Function(constant, inputs, (error + rounding) * SLOP + TINY, risen)
