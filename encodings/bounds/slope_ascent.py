"""Slopes for the margin of any network, improved step by step over the whole space with at most k swaps.

The bound at slopes a is the least value, over the words, of what backward substitution makes of the margin, less the
excess T_G of the groups. It is concave in the slopes of one layer. With x the sentence where the least is reached, x_G
the one where T_G is, and v the values that follow when every nonlinear layer is replaced by the line that bounds it,
from x on, a direction of ascent is

    c_j v_j          for a neuron with coefficient c_j >= 0 and input v_j,
    |c_j| (v_j(x_G) - v_j(x))    for one of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import NUMBERS, Batch, rectify, take_greatest
from ..network import At, Maximum, Rectifier
from ..walk import Meaning, forward
from .chosen_slopes import Multipliers, grouped, joinable, on_grid, patterns
from .linear_bounds import ElementBounds, LinearBounds
from .relaxation import BELOW_CHORD, chord_slope, rectifier_lines, replaced_maximum
from .substitution import Coefficients, substituted

Array = NDArray[Any]


@dataclass(eq=False)
class Met:
    """A rectifier during one step: its coefficients, which elements are in a group, and the line all follow."""

    coefficients: Array
    together: Array
    line: Array
    offset: Array


class SlopeAscent:
    """One `step` after the other; `best` is the greatest bound so far."""

    def __init__(self, linear: LinearBounds) -> None:
        self.linear, self.network = linear, linear.network
        self.bounds = ElementBounds(linear, linear.whole())
        self.first = joinable(self.network)
        self.slopes: dict[int, Array] = {}
        self.unstable: dict[int, Array] = {}
        self.own: dict[int, float] = {}
        for index, node in enumerate(self.network.nodes):
            if isinstance(node.layer, Rectifier):
                low, high = self.ends(index)
                self.own[index] = own = node.layer.slope
                self.unstable[index] = (low < 0) & (high > 0) & (own < 1)
                self.slopes[index] = np.where(high > -low, 1.0, own)
        self.groups: tuple[tuple[int, tuple[int, ...]], ...] = ()
        self.best, self.best_slopes = -np.inf, dict(self.slopes)
        self.guess()

    def ends(self, index: int) -> tuple[Array, Array]:
        low, high = self.bounds.of(self.network.nodes[index].inputs[0])
        return low[0], high[0]

    def guess(self) -> None:
        """First-layer slopes by the sign of their coefficient; those of the other layers are the usual ones."""
        met, _, _ = self.substituted()
        for index in self.first:
            if index in met:
                low, high = self.ends(index)
                chord = chord_slope(self.own[index], low, high)
                concave = self.unstable[index] & (met[index].coefficients < 0)
                self.slopes[index] = np.where(concave, BELOW_CHORD * chord, self.slopes[index])
                self.slopes[index] = np.maximum(self.slopes[index], self.own[index])

    def substituted(self) -> tuple[dict[int, Met], Array, float]:
        """Rectifiers met, the linear function [width] of the cut, and its constant; the joint excess left out."""
        network, met = self.network, dict[int, Met]()
        self.follow: dict[int, Callable[[Array], Array]] = {}

        def replace(index: int, given: Coefficients) -> tuple[Coefficients, Array]:
            node = network.nodes[index]
            coefficients = given.dense(node.size)
            low, high = self.ends(index)
            if isinstance(node.layer, Maximum):
                shape = (1, node.size, -1)
                low, high = low.reshape(shape), high.reshape(shape)
                passed, constant = replaced_maximum(low, high, coefficients[None, None])
                self.follow[index] = self.maximum(low[0], high[0], coefficients, node.shape)
                return Coefficients(passed.values[0, 0], passed.columns), constant[0, 0]
            lower, upper, raised = rectifier_lines(self.own[index], low, high, chosen=self.slopes[index])
            together = self.unstable[index] & (coefficients < 0) if index in self.first else np.zeros(node.size, bool)
            line = np.where((coefficients >= 0) | together, lower, upper)
            offset = np.where((coefficients >= 0) | together, 0.0, raised)
            met[index] = Met(coefficients, together, line, offset)
            return Coefficients(coefficients * line), np.asarray(coefficients @ offset)

        kept, constant = substituted(network, self.linear.last, self.linear.coefficients, replace)
        function = np.zeros(self.linear.differences.width)
        for index, part in self.linear.differences.parts.items():
            if index in kept:
                function[part] += kept[index].dense(part.stop - part.start)
        return met, function, float(constant)

    def maximum(self, low: Array, high: Array, coefficients: Array, shape: tuple[int, ...]) -> Callable[[Array], Array]:
        best = low.argmax(axis=1)
        others = high.copy()
        np.put_along_axis(others, best[:, None], -np.inf, axis=1)
        follows = (coefficients >= 0) | (others.max(axis=1, initial=-np.inf) <= low.max(axis=1))

        def value(x: Array) -> Array:
            chosen = np.take_along_axis(x.reshape(low.shape), best[:, None], axis=1)[:, 0]
            return np.asarray(np.where(follows, chosen, high.max(axis=1)).reshape(1, *shape))

        return value

    def group(self, size: int) -> None:
        """At most `size` first-layer neurons with a negative coefficient together; the best bound starts anew."""
        met, _, _ = self.substituted()
        concave = [
            (index, element)
            for index in self.first
            if index in met
            for element in np.flatnonzero(met[index].together).tolist()
        ]
        order = sorted(range(len(concave)), key=lambda n: concave[n])
        parts = grouped(order, concave, size)
        self.groups = tuple((concave[part[0]][0], tuple(concave[n][1] for n in part)) for part in parts)

    def step(self, reach: float) -> float:
        """The bound at the present slopes; then move them towards a bound that is better by `reach`."""
        met, function, constant = self.substituted()
        places = self.linear.places
        flat = self.linear.rows.reshape(places.swaps.size, self.linear.differences.width)
        swaps, fall = self.taken((flat @ -function).reshape(1, *places.swaps.shape))
        state = self.linear.base + flat[swaps[0]].sum(axis=0)
        bound = constant + float(self.linear.base @ function) - float(fall[0])
        values, reached = self.followed(met, state)
        direction: dict[int, Array] = {}
        for index, layer in met.items():
            x = values[self.network.nodes[index].inputs[0]].reshape(-1)
            c = layer.coefficients
            direction[index] = np.where(c >= 0, c * x, np.where(layer.together, -c * (reached[index] - x), 0.0))
            direction[index] *= self.unstable[index]
            excess = self.excesses.get(index)
            if excess is not None:
                bound -= excess
        if bound > self.best:
            self.best, self.best_slopes = bound, dict(self.slopes)
        length = sum(float(d @ d) for d in direction.values())
        if length > 0:
            factor = (self.best - bound + reach) / length
            for index, d in direction.items():
                self.slopes[index] = np.clip(self.slopes[index] + factor * d, self.own[index], 1.0)
        return bound

    def followed(self, met: dict[int, Met], state: Array) -> tuple[dict[int, Array], dict[int, Array]]:
        """Values of all nodes from this cut on when nonlinear layers follow their lines, and where groups peak."""
        reached: dict[int, Array] = {}
        self.excesses: dict[int, float] = {}

        def follow(batch: Batch, layer: Rectifier, inputs: list[Array], at: At) -> Array:
            if at.index not in met:
                return rectify(batch, layer, inputs, at)
            here, x = met[at.index], inputs[0].reshape(-1)
            y = here.line * x + here.offset
            peak = x
            if here.together.any():
                peak, self.excesses[at.index] = self.peaks(at.index, here)
                y = y + np.where(here.together, np.maximum(peak, layer.slope * peak) - here.line * peak, 0.0)
            reached[at.index] = peak
            return np.asarray(y.reshape(1, *at.node.shape))

        def choose(batch: Batch, layer: Maximum, inputs: list[Array], at: At) -> Array:
            chosen = self.follow.get(at.index)
            return take_greatest(batch, layer, inputs, at) if chosen is None else chosen(inputs[0])

        lines: Meaning[Array] = Meaning("line to follow", {**NUMBERS.rules, Rectifier: follow, Maximum: choose})
        return forward(self.network, lines, Batch(1), self.network.split_cut(state[None])), reached

    def peaks(self, index: int, layer: Met) -> tuple[Array, float]:
        """Where each neuron of a group lies when its group peaks, and the sum of the peaks."""
        low, high = self.ends(index)
        own, slopes, weights = self.own[index], layer.line, np.where(layer.together, -layer.coefficients, 0.0)
        up, down = (1.0 - slopes) * high, (own - slopes) * low
        reached, alone = np.where(up >= down, high, low), layer.together.copy()
        total = 0.0
        source = self.network.nodes[index].inputs[0]
        first = self.linear.differences.parts[source].start
        for number, members in self.groups:
            if number != index:
                continue
            which = np.array([j for j in members if layer.together[j]], dtype=np.int64)
            if len(which) < 2:
                continue
            alone[which] = False
            bits = own + (1.0 - own) * patterns(len(which))
            functions = (bits - slopes[which]) * weights[which]
            rows, base = self.linear.rows[:, :, first + which], self.linear.base[first + which]
            flat = rows.reshape(-1, len(which))
            swaps, rise = self.taken((functions @ flat.T).reshape(-1, *rows.shape[:2]))
            values = functions @ base + rise
            winner = int(values.argmax())
            total += float(values[winner])
            reached[which] = base + flat[swaps[winner]].sum(axis=0)
        total += float((np.maximum(up, down) * weights)[alone].sum())
        return reached, total

    def multipliers(self) -> Multipliers:
        """The best slopes so far, on the grid, where they matter."""
        self.slopes = dict(self.best_slopes)
        met, _, _ = self.substituted()
        slopes = {}
        for index, layer in met.items():
            members = [element for number, group in self.groups if number == index for element in group]
            matters = self.unstable[index] & (layer.coefficients > 0)
            matters[members] = True
            slopes[index] = np.where(matters, on_grid(self.best_slopes[index], self.own[index]), -1.0)
        return Multipliers(slopes, self.groups)

    def taken(self, gains: Array) -> tuple[list[Array], Array]:
        """For functions [m, P, C]: the swaps (p * C + c) that give the most, and what they give [m]."""
        linear, (count, width) = self.linear, gains.shape[1:]
        gains = np.where(linear.places.there, gains, -np.inf)
        choice = gains.argmax(axis=2)
        best = np.take_along_axis(gains, choice[:, :, None], axis=2)[:, :, 0]
        if linear.k < count:
            chosen = np.argpartition(-best, linear.k, axis=1)[:, : linear.k]
        else:
            chosen = np.tile(np.arange(count), (len(best), 1))
        worth = np.take_along_axis(best, chosen, axis=1) > 0
        gained = np.where(worth, np.take_along_axis(best, chosen, axis=1), 0.0).sum(axis=1)
        swaps = chosen * width + np.take_along_axis(choice, chosen, axis=1)
        return [row[kept] for row, kept in zip(swaps, worth, strict=True)], gained
