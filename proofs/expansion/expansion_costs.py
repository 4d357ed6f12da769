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
from itertools import compress
from math import isqrt, lcm
from operator import mul, sub
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


class Bend(NamedTuple):
    """Of an element of a curve, about the center n of what it reads: n itself, -n where the curve is odd and n where
    not, the slope, what the curve is at n and at -n, floors and ceilings, and the center of the element."""

    n: int
    turned: int
    slope: int
    floor: int
    turned_floor: int
    turned_ceiling: int
    own: int


class Rests:
    """The part of each element that no line about the center holds.

    Rules give R of an element whose factor is not below 0, and R' of others: a factor times R' is less there.
    """

    def __init__(self, intervals: rules.Intervals, center: list[int]) -> None:
        self.intervals, self.q, self.kernel, self.network = intervals, intervals.q, intervals.kernel, intervals.network
        self.center = center
        self.known: dict[int, list[tuple[int, int]]] = {}
        self.sums: dict[int, list[int]] = {}
        self.bends: dict[int, list[Bend]] = {}
        self.width = ceiling(1 << self.q, 1 << 21) + 1 if self.kernel else 0
        """What curves are widened by."""

    def costs(self, block: Block, found: Result, store: Store, weighed: Sequence[Weights]) -> list[int]:
        """The sum over the elements, for each of several margins."""
        below = map(sub, found.columns[0], self.center[block.start : block.stop])
        falls = [x if x < 0 else 0 for x in below]
        fallen, widths, totals = sum(falls), self.widths(block, found, store) if self.kernel else None, []
        for weights in weighed:
            parts = weights.parts[block.number]
            if isinstance(block.layer, networks.Affine):
                if parts.constant is None:
                    parts.constant = sum(map(mul, parts.factors, self.affine(block, parts.factors)))
                total = parts.constant
            else:
                total = sum(map(mul, parts.factors, RULES[type(block.layer)](self, block, found, store, parts.factors)))
            total += fallen if parts.inexact is None else sum(compress(falls, parts.inexact))
            if isinstance(widths, int):
                total -= widths * parts.charge
            elif widths:
                total -= sum(map(mul, parts.charged, widths))
            totals.append(total)
        return totals

    def widths(self, block: Block, found: Result, store: Store) -> Sequence[int] | int:
        """At level kernel what intervals are widened by, or a little more; one number where all have the same."""
        layer = block.layer
        if isinstance(layer, networks.Affine):
            sizes, roundings = found.columns[2:4]
            return [1 - (-257 * n * s >> 32) for s, n in zip(sizes, roundings, strict=True)]
        if isinstance(layer, networks.Product):
            return [1 - (-2 * 257 * p >> 32) for p in rules.magnitudes(*found.columns[:2])]
        if isinstance(layer, networks.Rectifier) and layer.p:
            lows, highs = [self.read(block, column) for column in store.columns[:2]]
            return [1 - (-4 * 257 * x >> 32) for x in rules.magnitudes(lows, highs)]
        return self.width if isinstance(layer, networks.Curve) else 0

    def read(self, block: Block, column: list[int]) -> Sequence[int]:
        """Of what the elements of a rectifier or a curve read, one each."""
        layer: Any = block.layer
        return self.intervals.picked(block, layer.sources)(column)

    # ---- R or R', by the kind of layer

    def affine(self, block: Block, factors: Sequence[int]) -> list[int]:
        """The same whatever was read."""
        layer: Any = block.layer
        scale = lcm(layer.size_scale, layer.bias_scale)
        if block.number not in self.sums:
            totals = self.sums[block.number] = []
            for place in range(block.start - layer.start, block.stop - layer.start):
                at, of = layer.pairs[place]
                total = sum(map(mul, layer.weights[of], [self.center[i] for i in layer.lists[at]]))
                bias = layer.biases[place] * (scale // layer.bias_scale) << self.q
                totals.append(total * (scale // layer.size_scale) + bias)
        parts = zip(factors, self.sums[block.number], self.center[block.start : block.stop], strict=True)
        return [(total // scale if factor >= 0 else ceiling(total, scale)) - own for factor, total, own in parts]

    def rectifier(self, block: Block, found: Result, store: Store, factors: Sequence[int]) -> list[int]:
        layer: Any = block.layer
        p, q = layer.p, layer.q
        parts = [self.read(block, column) for column in (*store.columns[:2], self.center)]
        rests = []
        for factor, low, high, n, own in zip(factors, *parts, self.center[block.start : block.stop], strict=True):
            a = q if n >= 0 else p
            ends = (low, high, 0) if low < 0 < high else (low, high)
            each = [t * (q if t > 0 else p) - a * (t - n) - own * q for t in ends]
            rests.append(min(each) // q if factor >= 0 else ceiling(max(each), q))
        return rests

    def maximum(self, block: Block, found: Result, store: Store, factors: Sequence[int]) -> list[int]:
        layer: Any = block.layer
        below, above = store.columns[:2]
        rests = []
        for i, factor in zip(range(block.start, block.stop), factors, strict=True):
            window = layer.windows[i - layer.start]
            elements = layer.sources[window.start : window.stop]
            chosen = self.chosen(elements)
            one, other = (below, above) if factor >= 0 else (above, below)
            most = max([0, *[one[k] - other[chosen] for k in elements if k != chosen]])
            rests.append(self.center[chosen] - self.center[i] + most)
        return rests

    def chosen(self, elements: Sequence[int]) -> int:
        """The first of the greatest at the center."""
        return max(elements, key=self.center.__getitem__)

    def product(self, block: Block, found: Result, store: Store, factors: Sequence[int]) -> list[int]:
        layer: Any = block.layer
        q, center = self.q, self.center
        picks = [self.intervals.picked(block, layer.firsts), self.intervals.picked(block, layer.seconds, 1)]
        columns = [pick(column) for pick in picks for column in (*store.columns[:2], center)]
        rests = []
        for factor, least, most, m, low, high, n, own in zip(
            factors, *columns, center[block.start : block.stop], strict=True
        ):
            a, b, c, d = least - m, most - m, low - n, high - n
            if a <= 0 <= b and c <= 0 <= d:
                one, other = (a * d, b * c) if factor >= 0 else (-a * c, -b * d)
                end = one if one < other else other
                rests.append((end + m * n >> q) - own if factor >= 0 else -(end - m * n >> q) - own)
            elif factor >= 0:
                rests.append((min(a * c, a * d, b * c, b * d) + m * n >> q) - own)
            else:
                rests.append(-(-max(a * c, a * d, b * c, b * d) - m * n >> q) - own)
        here = slice(block.start - layer.start, block.stop - layer.start)
        pairs = zip(layer.firsts[here], layer.seconds[here], strict=True)
        for at in [at for at, (i, j) in enumerate(pairs) if i == j and factors[at] >= 0]:
            low, high, n = [column[at] for column in columns[:3]]
            end = 0 if low < n < high else min((low - n) ** 2, (high - n) ** 2)
            rests[at] = (end + n * n >> q) - center[block.start + at]
        return rests

    def curve(self, block: Block, found: Result, store: Store, factors: Sequence[int]) -> list[int]:
        """Less its line at n, a curve has its extremes at the ends, at n, or at -n."""
        q, one, rests = self.q, 1 << self.q, []
        if block.number not in self.bends:
            self.bends[block.number] = self.bends_of(block)
        ends = [self.read(block, column) for column in store.columns[:2]]
        at_ends = self.at_ends(block, found, ends)
        for factor, low, high, f, g, (n, turned, slope, y, z, over, own) in zip(
            factors, *ends, *at_ends, self.bends[block.number], strict=True
        ):
            a, b = low - n, high - n
            far = b if a + b > 0 else -a
            far = 2 * NEAR if 0 < far <= one else 2 * NEAR * -(-far >> q)
            if factor >= 0:
                rest, other = f + (-slope * a >> q), g + (-slope * b >> q)
                if other < rest:
                    rest = other
                if y < rest and a <= 0 <= b:
                    rest = y
                if z < rest and low <= turned <= high:
                    rest = z
                rests.append(rest - own - far)
            else:
                rest, other = f + 1 - (slope * a >> q), g + 1 - (slope * b >> q)
                if other > rest:
                    rest = other
                if y >= rest and a <= 0 <= b:
                    rest = y + 1
                if over > rest and low <= turned <= high:
                    rest = over
                rests.append(rest - own + far)
        return rests

    def bends_of(self, block: Block) -> list[Bend]:
        layer: Any = block.layer
        odd, whole = layer.function in ODD, (layer.function == SIGMOID) << self.q
        parts = self.read(block, self.center), self.lines(block), self.center[block.start : block.stop]
        found = []
        for n, (slope, y), own in zip(*parts, strict=True):
            low = whole - y - 1 + (2 * slope * n >> self.q) if odd else y
            high = whole - y - (-2 * slope * n >> self.q) if odd else y + 1
            found.append(Bend(n, -n if odd else n, slope, y, low, high, own))
        return found

    def at_ends(self, block: Block, found: Result, ends: Sequence[Sequence[int]]) -> Sequence[list[int]]:
        """Floors of a curve at the ends of what it reads: where it rises its own ends tell, a floor and a ceiling,
        widened at level kernel. Only at 0 a number may be whole."""
        layer: Any = block.layer
        if layer.function in (RECIPROCAL, SQRT):
            return [self.floors(layer.function, numbers) for numbers in ends]
        lows, highs = found.columns[:2]
        width = self.width
        return [x + width for x in lows], [y - width - (x != 0) for x, y in zip(ends[1], highs, strict=True)]

    # ---- curves at the center

    def floors(self, function: int, numbers: Sequence[int]) -> list[int]:
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


RULES: dict[type[networks.Layer], Callable[[Rests, Block, Result, Store, Sequence[int]], list[int]]] = {
    networks.Rectifier: Rests.rectifier,
    networks.Maximum: Rests.maximum,
    networks.Product: Rests.product,
    networks.Curve: Rests.curve,
}


class Parts:
    """Of the elements of a block: lambda; whether mu is another number, or None if all are; and at level kernel how
    often what float32 may be off by counts, and the sum of that. `constant` is a cost that is the same everywhere."""

    def __init__(self, factors: list[int], inexact: Sequence[bool], charged: list[int]) -> None:
        self.factors, self.inexact = factors, None if all(inexact) else inexact
        self.charged, self.charge = charged, sum(charged)
        self.constant: int | None = None


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
        self.matrices: dict[tuple[int, ...], rules.weighted.Matrix] = {}
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
        charged = [*map(abs, factors)]
        if isinstance(layer, networks.Affine):
            if rests.kernel:
                charged = [*map(self.charged, range(block.start, block.stop))]
            more = self.scale // layer.size_scale
            by_list: dict[int, tuple[list[list[int]], list[int]]] = {}
            for place, factor in enumerate(factors, block.start - first):
                at, of = layer.pairs[place]
                rows, own = by_list.setdefault(at, ([], []))
                rows.append(layer.weights[of])
                own.append(factor)
            for at, given in by_list.items():
                for held, sums in zip((mu, self.sizes), self.multiplied(*given), strict=True):
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
        return Parts(factors, [rest != 0 for _, rest in pairs], charged)

    def multiplied(self, rows: list[list[int]], factors: list[int]) -> tuple[list[int], list[int]]:
        """The sum of factors times rows, and of their magnitudes."""
        if len(rows) < rules.weighted.PACKED:
            pairs = [(rows, factors), ([list(map(abs, row)) for row in rows], list(map(abs, factors)))]
            found = [[sum(map(mul, column, given)) for column in zip(*each, strict=True)] for each, given in pairs]
            return found[0], found[1]
        key = tuple(map(id, rows))
        if key not in self.matrices:
            self.matrices[key] = rules.weighted.Matrix([[*column] for column in zip(*rows, strict=True)])
        matrix = self.matrices[key]
        width = -(-(matrix.norm.bit_length() + max(map(abs, factors)).bit_length() + 2) // 64) * 64
        (weights, sizes), unpacked = matrix.columns(width), matrix.fields(width).unpacked
        return unpacked(sum(map(mul, factors, weights))), unpacked(sum(map(mul, map(abs, factors), sizes)))


def weighted(network: networks.Network) -> list[Any]:
    """The layers whose multipliers have denominators of their own."""
    return [layer for layer in network.later if isinstance(layer, networks.Affine | networks.Rectifier)]
