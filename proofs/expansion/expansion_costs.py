"""What an expansion at one sentence loses, element by element (FORMAT.md, sections 18.2 and 18.3).

    rests = Rests(intervals, center)                    center: a number for every element, about which it is expanded
    weights = Weights(rests, winner, loser)             the multipliers of a margin
    rests.costs(block, found, store, [weights])         costs of a block whose sources are in the store, their sums

This file is trusted, as check.py is. Standard library only, exact integers only. What cannot be
proved raises `Refused`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import repeat
from math import isqrt, lcm
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from .. import enclosures, onnx_file
    from .. import exact_network as networks
    from .. import smooth_intervals as rules
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]
    rules = sys.modules["smooth_intervals"]

require, in_time, ceiling = onnx_file.require, onnx_file.in_time, rules.ceiling
Block = rules.Block
Result = rules.Result
Store = rules.Store
EXP, TANH, SIGMOID, ERF, RECIPROCAL, SQRT = range(1, 7)
ODD = (TANH, SIGMOID, ERF, RECIPROCAL)
"""Curves f with f(-x) = c - f(x)."""
NEAR = 8
"""The slopes of curves are less than this from their derivatives, in units."""
ERF_SLOPE = 130657381209852114387528029350014196574164286124850014242073919076264802271585
"""floor(2**256 2 / sqrt(pi))"""

Pair = tuple[list[int], list[int]]
"""R and R' of the elements of a block."""


class Rests:
    """The part of each element that no line about the center holds."""

    def __init__(self, intervals: rules.Intervals, center: list[int]) -> None:
        self.intervals, self.q, self.kernel, self.network = intervals, intervals.q, intervals.kernel, intervals.network
        self.center = center
        self.sums: dict[int, Pair] = {}
        self.known: dict[int, list[tuple[int, int]]] = {}

    def costs(self, block: Block, found: Result, store: Store, weighed: Sequence[Weights]) -> list[int]:
        """The sum over the elements, for each of several margins."""
        lows, highs = RULES[type(block.layer)](self, block, found, store)
        below = map(sub, found.columns[0], self.center[block.start : block.stop])
        falls = list(map(min, below, repeat(0)))
        widths = self.widths(block, found, store) if self.kernel else None
        totals = []
        for weights in weighed:
            factors, inexact = weights.parts[block.number]
            parts = map(min, map(mul, factors, lows), map(mul, factors, highs))
            parts = map(add, parts, map(mul, inexact, falls))
            if widths:
                affine = isinstance(block.layer, networks.Affine)
                charged = map(weights.charged, range(block.start, block.stop)) if affine else map(abs, factors)
                parts = map(sub, parts, map(mul, charged, widths))
            totals.append(sum(parts))
        return totals

    def widths(self, block: Block, found: Result, store: Store) -> list[int]:
        """At level kernel what intervals are widened by, or a little more."""
        layer = block.layer
        if isinstance(layer, networks.Affine):
            return [ceiling(n * 257 * s, 1 << 32) + 1 for s, n in zip(found.columns[2], found.columns[3], strict=True)]
        if isinstance(layer, networks.Product):
            return [ceiling(2 * 257 * p, 1 << 32) + 1 for p in rules.magnitudes(*found.columns[:2])]
        if isinstance(layer, networks.Rectifier) and layer.p:
            ends = [self.read(block, column) for column in store.columns[:2]]
            return [ceiling(4 * 257 * x, 1 << 32) + 1 for x in rules.magnitudes(*ends)]
        return [ceiling(1 << self.q, 1 << 21) + 1 if isinstance(layer, networks.Curve) else 0] * len(found.columns[0])

    def read(self, block: Block, column: list[int]) -> list[int]:
        """Of what the elements of a rectifier or a curve read, one each."""
        layer: Any = block.layer
        return [column[i] for i in layer.sources[block.start - layer.start : block.stop - layer.start]]

    # ---- R and R', by the kind of layer

    def affine(self, block: Block, found: Result, store: Store) -> Pair:
        """The same whatever was read."""
        if block.number not in self.sums:
            layer: Any = block.layer
            scale = lcm(layer.size_scale, layer.bias_scale)
            totals = []
            for place in range(block.start - layer.start, block.stop - layer.start):
                at, of = layer.pairs[place]
                total = sum(map(mul, layer.weights[of], [self.center[i] for i in layer.lists[at]]))
                bias = layer.biases[place] * (scale // layer.bias_scale) << self.q
                totals.append(total * (scale // layer.size_scale) + bias)
            own = self.center[block.start : block.stop]
            lows = [total // scale - x for total, x in zip(totals, own, strict=True)]
            self.sums[block.number] = lows, [ceiling(total, scale) - x for total, x in zip(totals, own, strict=True)]
        return self.sums[block.number]

    def rectifier(self, block: Block, found: Result, store: Store) -> Pair:
        layer: Any = block.layer
        p, q = layer.p, layer.q
        parts = [self.read(block, column) for column in (*store.columns[:2], self.center)]
        lows, highs = [], []
        for low, high, n, own in zip(*parts, self.center[block.start : block.stop], strict=True):
            a = q if n >= 0 else p
            ends = (low, high, 0) if low < 0 < high else (low, high)
            rests = [t * (q if t > 0 else p) - a * (t - n) - own * q for t in ends]
            lows.append(min(rests) // q)
            highs.append(ceiling(max(rests), q))
        return lows, highs

    def maximum(self, block: Block, found: Result, store: Store) -> Pair:
        layer: Any = block.layer
        below, above = store.columns[:2]
        lows, highs = [], []
        for i in range(block.start, block.stop):
            window = layer.windows[i - layer.start]
            elements = layer.sources[window.start : window.stop]
            chosen = self.chosen(elements)
            others = [k for k in elements if k != chosen]
            rest = self.center[chosen] - self.center[i]
            lows.append(rest + max([0, *[below[k] - above[chosen] for k in others]]))
            highs.append(rest + max([0, *[above[k] - below[chosen] for k in others]]))
        return lows, highs

    def chosen(self, elements: Sequence[int]) -> int:
        """The first of the greatest at the center."""
        return max(elements, key=self.center.__getitem__)

    def product(self, block: Block, found: Result, store: Store) -> Pair:
        layer: Any = block.layer
        q, (below, above), center = self.q, store.columns[:2], self.center
        here = slice(block.start - layer.start, block.stop - layer.start)
        lows, highs = [], []
        for i, j, own in zip(layer.firsts[here], layer.seconds[here], center[block.start : block.stop], strict=True):
            m, n = center[i], center[j]
            a, b, c, d = below[i] - m, above[i] - m, below[j] - n, above[j] - n
            ends: tuple[int, ...] = (a * c, a * d, b * c, b * d)
            if i == j:
                ends = (a * a, b * b, 0) if a < 0 < b else (a * a, b * b)
            lows.append((min(ends) + m * n >> q) - own)
            highs.append(-(-max(ends) - m * n >> q) - own)
        return lows, highs

    def curve(self, block: Block, found: Result, store: Store) -> Pair:
        """Less its line at n, a curve has its extremes at the ends, at n, or at -n."""
        layer: Any = block.layer
        q, most, odd = self.q, (1 << self.q) - 1, layer.function in ODD
        turned = (layer.function == SIGMOID) << q
        ends = [self.read(block, column) for column in store.columns[:2]]
        at_ends = self.at_ends(block, found, ends)
        parts = self.read(block, self.center), self.center[block.start : block.stop], self.lines(block)
        lows, highs = [], []
        for low, high, f, g, n, own, (slope, y) in zip(*ends, *at_ends, *parts, strict=True):
            a, b = slope * (low - n), slope * (high - n)
            least, greatest = min(f + (-a >> q), g + (-b >> q)), max(f - (a >> q), g - (b >> q)) + 1
            if low <= n <= high:
                least, greatest = min(least, y), max(greatest, y + 1)
            if odd and low <= -n <= high:
                least = min(least, turned - y - 1 + (2 * slope * n >> q))
                greatest = max(greatest, turned - y - (-2 * slope * n >> q))
            far = 2 * NEAR * (max(abs(low - n), abs(high - n)) + most >> q)
            lows.append(least - own - far)
            highs.append(greatest - own + far)
        return lows, highs

    def at_ends(self, block: Block, found: Result, ends: Sequence[list[int]]) -> Sequence[list[int]]:
        """Floors of a curve at the ends of what it reads: where it rises its own ends tell, a floor and a ceiling,
        widened at level kernel. Only at 0 a number may be whole."""
        layer: Any = block.layer
        if layer.function in (RECIPROCAL, SQRT):
            return [self.floors(layer.function, numbers) for numbers in ends]
        width = ceiling(1 << self.q, 1 << 21) + 1 if self.kernel else 0
        lows, highs = found.columns[:2]
        return [x + width for x in lows], [y - width - (x != 0) for x, y in zip(ends[1], highs, strict=True)]

    # ---- curves at the center

    def floors(self, function: int, numbers: list[int]) -> list[int]:
        """floor(2**q f(x 2**-q)), for each."""
        if function == RECIPROCAL:
            return [(1 << 2 * self.q) // x for x in numbers]
        if function == SQRT:
            return [isqrt(x << self.q) for x in numbers]
        return self.intervals.curves.floors(function, numbers)

    def lines(self, block: Block) -> list[tuple[int, int]]:
        """Of each curve of a block the slope, and the floor."""
        if block.number not in self.known:
            layer: Any = block.layer
            numbers = self.read(block, self.center)
            function, least = layer.function, min(numbers)
            fits = all(numbers) if function == RECIPROCAL else least > 0 if function == SQRT else True
            require(fits, "a curve that has no slope at the sentence of references")
            require(not self.kernel or function in (TANH, SIGMOID, ERF), "a curve of relative errors in an expansion")
            floors = self.floors(function, numbers)
            slopes = [self.slope(function, x, y) for x, y in zip(numbers, floors, strict=True)]
            self.known[block.number] = list(zip(slopes, floors, strict=True))
        return self.known[block.number]

    def slope(self, function: int, x: int, y: int) -> int:
        """At x, y being the floor there (FORMAT section 16.6)."""
        q = self.q
        if function == EXP:
            return y
        if function == TANH:
            return (1 << q) - (y * y >> q)
        if function == SIGMOID:
            return y * ((1 << q) - y) >> q
        if function == ERF:
            return ERF_SLOPE * enclosures.floor_of(EXP, -(x * x >> q), q) >> 256
        return -((1 << 3 * q) // (x * x)) if function == RECIPROCAL else isqrt((1 << 3 * q - 2) // x)


RULES: dict[type[networks.Layer], Callable[[Rests, Block, Result, Store], Pair]] = {
    networks.Affine: Rests.affine,
    networks.Rectifier: Rests.rectifier,
    networks.Maximum: Rests.maximum,
    networks.Product: Rests.product,
    networks.Curve: Rests.curve,
}


class Parts(NamedTuple):
    """Of the elements of a block: lambda, and whether mu is another number, as 0 or 1."""

    factors: list[int]
    inexact: list[int]


class Weights:
    """Multipliers of z_winner - z_loser: mu of every element, over `scale`; `parts` of each block not affine in words.

    `sizes` are sums of the magnitudes of what readers add to mu, one by one: a sum may have another float32 value in
    each.
    `base` is 2**q times the margin of the numbers of the center, over `unit`.
    """

    def __init__(self, rests: Rests, winner: int, loser: int) -> None:
        network, q, blocks = rests.network, rests.q, rests.intervals.blocks.found
        margin = rests.intervals.margin(winner, loser)
        scales = [layer.size_scale if isinstance(layer, networks.Affine) else layer.q for layer in weighted(network)]
        self.unit = lcm(margin.scale, *set(scales))
        self.scale, self.mu, self.sizes = self.unit << q, [0] * len(network.owner), [0] * len(network.owner)
        elements = margin.pick([*range(len(network.owner))])
        for i, c in zip(elements, margin.coefficients, strict=True):
            self.add(i, (c * (self.unit // margin.scale) << q) << q)
        total = sum(map(mul, margin.coefficients, margin.pick(rests.center))) + (margin.constant << q)
        self.base = total * (self.unit // margin.scale) << q
        self.parts: dict[int, Parts] = {}
        for block in reversed(blocks):
            if block.layer.depth:
                self.parts[block.number] = self.passed_on(rests, block)
                in_time(rests.intervals.space.stop)

    def add(self, i: int, x: int) -> None:
        self.mu[i] += x
        self.sizes[i] += abs(x)

    def charged(self, i: int) -> int:
        """How often what float32 may be off by in an element counts."""
        return ceiling(self.sizes[i], self.scale)

    def passed_on(self, rests: Rests, block: Block) -> Parts:
        """Those of a block, which adds to those of what it reads."""
        mu, layer, first = self.mu, block.layer, block.layer.start
        pairs = [divmod(mu[i], self.scale) for i in range(block.start, block.stop)]
        factors = [factor for factor, _ in pairs]
        center, unit = rests.center, self.unit
        if isinstance(layer, networks.Affine):
            more = self.scale // layer.size_scale
            by_list: dict[int, list[list[int]]] = {}
            for place, factor in enumerate(factors, block.start - first):
                at, of = layer.pairs[place]
                terms = [x * factor for x in layer.weights[of]]
                added = [terms, [*map(abs, terms)]] if rests.kernel else [terms]
                for sums, some in zip(by_list.setdefault(at, [[0] * len(terms) for _ in added]), added, strict=True):
                    sums[:] = map(add, sums, some)
            for at, both in by_list.items():
                for held, sums in zip((mu, self.sizes), both, strict=False):
                    for i, x in zip(layer.lists[at], sums, strict=True):
                        held[i] += x * more
        elif isinstance(layer, networks.Product):
            here = slice(block.start - first, block.stop - first)
            for i, j, factor in zip(layer.firsts[here], layer.seconds[here], factors, strict=True):
                self.add(i, factor * center[j] * unit)
                self.add(j, factor * center[i] * unit)
        elif isinstance(layer, networks.Curve):
            here = slice(block.start - first, block.stop - first)
            for i, factor, (slope, _) in zip(layer.sources[here], factors, rests.lines(block), strict=True):
                self.add(i, factor * slope * unit)
        elif isinstance(layer, networks.Rectifier):
            here = slice(block.start - first, block.stop - first)
            for i, factor in zip(layer.sources[here], factors, strict=True):
                self.add(i, factor * (layer.q if center[i] >= 0 else layer.p) * (self.scale // layer.q))
        elif isinstance(layer, networks.Maximum):
            for factor, window in zip(factors, layer.windows[block.start - first : block.stop - first], strict=True):
                self.add(rests.chosen(layer.sources[window.start : window.stop]), factor * self.scale)
        return Parts(factors, [int(rest != 0) for _, rest in pairs])


def weighted(network: networks.Network) -> list[Any]:
    """The layers whose multipliers have denominators of their own."""
    return [layer for layer in network.later if isinstance(layer, networks.Affine | networks.Rectifier)]
