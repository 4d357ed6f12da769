"""Intervals of the elements of a smooth network (FORMAT.md, sections 15.1 to 15.3): the rules of the layers, margins.

    intervals = Intervals(space, blocks, q, kernel)    space: of check.py, the words of a text seen by a network

This file is trusted, as check.py is. Standard library only, exact integers only: x stands for x 2**-q. What cannot be
proved raises `Refused`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import compress, count
from math import isqrt, lcm
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import enclosures, onnx_file
    from . import exact_network as networks
    from . import smooth_blocks as blocks_of_network
    from . import sums as room

    weighted = room.weighted_sums
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]
    blocks_of_network, weighted = sys.modules["smooth_blocks"], sys.modules["weighted_sums"]

require = onnx_file.require
Block = blocks_of_network.Block
Blocks = blocks_of_network.Blocks
EXP, RECIPROCAL, SQRT, LIMIT_BITS = enclosures.EXP, enclosures.RECIPROCAL, enclosures.SQRT, enclosures.LIMIT_BITS
Curves = enclosures.Curves
picker = weighted.picker
Rows = weighted.Dense | weighted.Sparse

HEAVY = "no claim at level kernel is possible: terms, their sums or their number are too large"

# ------------------------------------------------------------------------------------------------------------- stores


class Result(NamedTuple):
    """Of a block: lows and highs and a number of its own; at level kernel, of affine layers and of all affine in the
    words, sizes, roundings and errors too, and of others sizes if some layer adds them up: the rest is 0."""

    columns: tuple[list[int], ...]
    stamp: int


class Store:
    """Columns of all elements, and of each block the stamp of the result that is in it; None where there is none."""

    def __init__(self, elements: int, blocks: int, columns: int) -> None:
        self.columns = [[0] * elements for _ in range(columns)]
        self.stamps: list[int | None] = [None] * blocks

    def write(self, block: Block, result: Result | None) -> None:
        self.stamps[block.number] = result.stamp if result else None
        if result:
            for own, new in zip(self.columns, result.columns, strict=False):
                own[block.start : block.stop] = new


# -------------------------------------------------------------------------------------------------------- the network


class Margin(NamedTuple):
    """z_winner - z_loser is the sum of coefficients times elements, plus a constant, over a scale."""

    pick: weighted.Pick
    coefficients: list[int]
    sizes: list[int]
    constant: int
    scale: int


Columns = tuple[list[int], ...]
"""Lows and highs and, at level kernel, sizes, roundings and errors."""


def ceiling(above: int, below: int) -> int:
    return -(-above // below)


def magnitudes(lows: Sequence[int], highs: Sequence[int]) -> list[int]:
    return [y if x + y >= 0 else -x for x, y in zip(lows, highs, strict=True)]


def roundings_of(weights: list[int], sizes: Sequence[int], roundings: Sequence[int], whole: int) -> int:
    """n of a sum whose terms were rounded so often before; those with a weight of 1 are added as they are."""
    terms = [(x, w == whole) for x, w, s in zip(roundings, weights, sizes, strict=True) if w and s]
    others = max([x for x, added in terms if not added], default=0)
    return len(terms) + 3 + sum([x for x, added in terms if added]) + others


class Intervals:
    """The rules of the layers (15.1, 15.3) and margins (15.2), at one precision and level, for one text."""

    def __init__(self, space: Any, blocks: Blocks, q: int, kernel: bool) -> None:
        self.space, self.blocks, self.q, self.kernel = space, blocks, q, kernel
        self.network: networks.Network = space.network
        self.curves, self.limit, self.stamps = Curves(q), 1 << LIMIT_BITS + q, count()
        self.picks: dict[tuple[int, int], weighted.Pick] = {}
        self.sums: dict[int, list[Rows]] = {}
        self.matrices: dict[tuple[int, ...], weighted.Matrix] = {}
        self.known: dict[Any, list[int]] = {}
        self.margins: dict[tuple[int, int], Margin] = {}
        self.whole: list[list[int]] = []
        if kernel:
            reason = self.network.no_float32
            require(not reason, f"no claim at level kernel is possible: {reason}")
            self.whole = self.whole_space()

    def new_store(self) -> Store:
        return Store(len(self.network.owner), len(self.blocks.found), 5 if self.kernel else 2)

    def result(
        self, block: Block, lows: list[int], highs: list[int], widths: Sequence[int] | None = None, *more: list[int]
    ) -> Result:
        """Intervals, widened at level kernel, if they are within the limit."""
        if self.kernel and widths is not None:
            lows, highs = list(map(sub, lows, widths)), list(map(add, highs, widths))
        if block.layer.depth and max(max(highs), -min(lows)) >= self.limit:
            affine = isinstance(block.layer, networks.Affine)
            for i, low, high in zip(range(block.start, block.stop), lows, highs, strict=True):
                sunk = affine and not self.blocks.firm[i]
                fits = i in self.blocks.unlimited or (high < self.limit and (sunk or low > -self.limit))
                require(fits, f"a number of 2**{LIMIT_BITS} or more at precision {self.q}")
        if self.kernel and block.summed:
            more = more or (magnitudes(lows, highs),)
        return Result((lows, highs, *more), next(self.stamps))

    def picked(self, block: Block, sources: Sequence[int], side: int = 0) -> weighted.Pick:
        """What the elements of a block read, of what all of its layer do; `side`: of products the second factors."""
        if (block.number, side) not in self.picks:
            here = slice(block.start - block.layer.start, block.stop - block.layer.start)
            self.picks[block.number, side] = picker(sources[here])
        return self.picks[block.number, side]

    # ---- affine layers

    def sums_of(self, layer: networks.Affine, places: Sequence[int]) -> list[Rows]:
        """The rows in some places of a layer: those that share a list if they are many, and others by their lengths."""
        by_list: dict[int, list[int]] = {}
        for place in places:
            by_list.setdefault(layer.pairs[place][0], []).append(place)
        found: list[Rows] = []
        by_length: dict[int, list[int]] = {}
        scale = lcm(layer.size_scale, layer.bias_scale)
        scales = weighted.Scales(layer.size_scale, scale // layer.size_scale, scale)

        def given(here: list[int]) -> tuple[list[list[int]], list[int]]:
            weights = [layer.weights[layer.pairs[place][1]] for place in here]
            return weights, [layer.biases[place] * (scale // layer.bias_scale) << self.q for place in here]

        for at, here in by_list.items():
            length = len(layer.lists[at])
            if len(here) < weighted.PACKED or not length:
                by_length.setdefault(length, []).extend(here)  # in order again below: lists may take turns
                continue
            rows, biases = given(here)
            key = tuple(map(id, rows))
            matrix = self.matrices[key] = self.matrices.get(key) or weighted.Matrix(rows)
            found.append(weighted.Dense(scales, here, biases, layer.lists[at], matrix, self.blocks.block_of))
        for here in map(sorted, by_length.values()):
            rows, biases = given(here)
            lists = [layer.lists[layer.pairs[place][0]] for place in here]
            found.append(weighted.Sparse(scales, here, biases, lists, rows))
        return found

    def affine(self, block: Block, store: Store) -> Result:
        """The exact sums over the intervals, rounded; at level kernel widened by what they may be rounded by."""
        layer: Any = block.layer
        first = block.start - block.layer.start
        if block.number not in self.sums:
            self.sums[block.number] = self.sums_of(layer, range(first, block.stop - block.layer.start))
        columns = [[0] * (block.stop - block.start) for _ in range(6 if self.kernel else 2)]
        for sums in self.sums[block.number]:
            least, greatest, *reach = sums.ends(store, self.known)
            below = sums.times * sums.scales.scale
            found = [least.floors(1, 0, below), greatest.floors(1, below - 1, below)]
            if self.kernel:
                found += self.rounding(sums, reach[0], store.columns[2:])
            if len(sums.places) == block.stop - block.start:
                columns = found
                break
            for column, numbers in zip(columns, found, strict=True):
                for place, number in zip(sums.places, numbers, strict=True):
                    column[place - first] = number
        lows, highs, *more = columns
        return self.result(block, lows, highs, *more)

    def rounding(self, sums: Rows, reach: weighted.Column, columns: Sequence[list[int]]) -> list[list[int]]:
        """Of each sum, given T over the scale: by how much it may be rounded, its size, roundings n and error e."""
        whole, factor, scale = sums.scales
        most, unit = scale * self.limit, scale << 32
        fits = sums.bias <= most and sums.heaviest <= whole << LIMIT_BITS
        sizes, roundings, errors = [sums.whole.pick(column) for column in columns]
        n, largest = sums.whole.used[0] + 3, max(sizes, default=0)
        clean = 0 not in sizes and not any(roundings) and not any(errors) and largest <= self.limit
        if clean and sums.whole.used.count(n - 3) == len(sums.whole.used):
            fits = fits and n <= 65_280
            require(fits and (sums.norm * largest * factor + sums.bias <= most or max(reach.numbers()) <= most), HEAVY)
            lost = reach.floors(257 * n, 2 * unit - 1, unit)
            return [lost, reach.floors(1, scale - 1, scale), [n] * len(lost), lost]
        start, totals = 0, reach.numbers()
        found: list[list[int]] = [[], [], [], []]
        for group in [sums.whole] if clean else sums.groups:
            sizes, roundings, errors = [group.pick(column) for column in columns]
            here = totals[start : (start := start + len(group.used))]
            if 0 in sizes or any(roundings):
                ns = [roundings_of(weights, sizes, roundings, whole) for weights in group.sizes]
            else:
                ns = [used + 3 for used in group.used]
            fits = fits and max(ns) <= 65_280 and max(here) <= most
            if max(sizes, default=0) > self.limit:
                fits = fits and all(max(compress(sizes, weights), default=0) <= self.limit for weights in group.sizes)
            require(fits, HEAVY)
            lost = [1 - (-x * 257 * total // unit) for x, total in zip(ns, here, strict=True)]
            carried = lost
            if any(errors):
                given = [ceiling(sum(map(mul, weights, errors)), whole) for weights in group.sizes]
                carried = list(map(add, given, lost))
            for column, numbers in zip(found, (lost, [-(-x // scale) for x in here], ns, carried), strict=True):
                column += numbers
        return found

    def whole_space(self) -> list[list[int]]:
        """Sizes, roundings and errors of constants and of layers affine in the words, for all options of the text."""
        network, size = self.network, len(self.network.owner)
        columns = [[0] * size for _ in range(3)]
        scale = network.owner[0].scale
        columns[0][: len(network.constants)] = [ceiling(abs(x) << self.q, scale) for x in network.constants]
        for layer in network.earlier:
            here = slice(layer.start, layer.start + layer.size)
            if isinstance(layer, networks.Affine):
                for sums in self.sums_of(layer, range(layer.size)):
                    totals = [
                        sum(map(mul, weights, each.pick(columns[0]))) for each in sums.groups for weights in each.sizes
                    ]
                    reach = [x * sums.scales.factor + abs(b) for x, b in zip(totals, sums.biases, strict=True)]
                    _, *found = self.rounding(sums, weighted.Plain(reach), columns)
                    for column, numbers in zip(columns, found, strict=True):
                        for place, number in zip(sums.places, numbers, strict=True):
                            column[layer.start + place] = number
            elif isinstance(layer, networks.Embedding):
                rows = [map(layer.row, self.space.tokens[p]) for p in layer.positions]
                greatest = [max(map(abs, column)) for found in rows for column in zip(*found, strict=True)]
                columns[0][here] = [ceiling(x << self.q, layer.scale) for x in greatest]
            require(max(columns[0][here], default=0) < self.limit, f"a number of 2**{LIMIT_BITS} or more")
        return columns

    # ---- other layers

    def exact(self, block: Block, lows: Iterable[int], highs: Iterable[int]) -> Result:
        """Of a block affine in the words, from the least and the greatest of its exact numbers."""
        scale, q, here = block.layer.scale, self.q, slice(block.start, block.stop)
        more = [column[here] for column in self.whole]
        ends = [(x << q) // scale for x in lows], [ceiling(x << q, scale) for x in highs]
        return self.result(block, *ends, *more[2:], *more)

    def rectifier(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        pick = self.picked(block, layer.sources)
        lows, highs = [pick(column) for column in store.columns[:2]]
        widths = [ceiling(4 * 257 * x, 1 << 32) + 1 for x in magnitudes(lows, highs)] if layer.p else None
        below = [x if x > 0 else x * layer.p // layer.q for x in lows]
        return self.result(block, below, [x if x > 0 else ceiling(x * layer.p, layer.q) for x in highs], widths)

    def maximum(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        found = []
        for window in layer.windows[block.start - layer.start : block.stop - layer.start]:
            pick = picker(layer.sources[window.start : window.stop])
            found.append([max(pick(column)) for column in store.columns[:2]])
        lows, highs = map(list, zip(*found, strict=True))
        return self.result(block, lows, highs)

    def product(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        q = self.q
        here = slice(block.start - layer.start, block.stop - layer.start)
        firsts, seconds = layer.firsts[here], layer.seconds[here]
        picks = [self.picked(block, layer.firsts), self.picked(block, layer.seconds, 1)]
        ends = [pick(column) for pick in picks for column in store.columns[:2]]
        parts = [*zip(*ends, strict=True)]
        lows = [
            (a if c >= 0 else b) * c >> q if a >= 0 else min(a * c, a * d, b * c, b * d) >> q for a, b, c, d in parts
        ]
        highs = [
            -((b if d >= 0 else a) * -d >> q) if a >= 0 else -(-max(a * c, a * d, b * c, b * d) >> q)
            for a, b, c, d in parts
        ]
        for at in [at for at, (i, j) in enumerate(zip(firsts, seconds, strict=True)) if i == j]:
            low, high, *_ = parts[at]
            lows[at] = 0 if low < 0 < high else min(low * low, high * high) >> q
        return self.result(block, lows, highs, self.relative(lows, highs, 2 * 257, 32))

    def relative(self, lows: list[int], highs: list[int], factor: int, bits: int) -> list[int] | None:
        """What an interval is widened by where an error is relative: its size times factor / 2**bits."""
        return [1 - (-factor * x >> bits) for x in magnitudes(lows, highs)] if self.kernel else None

    def curve(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        q = self.q
        pick = self.picked(block, layer.sources)
        lows, highs = [[*pick(column)] for column in store.columns[:2]]
        if layer.function == RECIPROCAL:
            outside = all(low > 0 or high < 0 for low, high in zip(lows, highs, strict=True))
            require(outside, f"1/x where x may be 0, at precision {q}")
            lows, highs = [(1 << 2 * q) // x for x in highs], [ceiling(1 << 2 * q, x) for x in lows]
            return self.result(block, lows, highs, self.relative(lows, highs, 1, 23))
        if layer.function == SQRT:
            require(min(lows) >= 0, f"the root of what may be below 0, at precision {q}")
            lows, highs = [isqrt(x << q) for x in lows], [isqrt((x << q) - 1) + 1 if x else 0 for x in highs]
            return self.result(block, lows, highs, self.relative(lows, highs, 1, 23))
        if layer.function == EXP:
            require(max(highs) <= 28 << q, f"exp of more than 28 at precision {q}")
        ends = highs if lows == highs else [*lows, *highs]
        floors = self.curves.floors(layer.function, ends)
        below, above = floors[: len(lows)], floors[-len(lows) :]
        above = [y + (x != 0) for x, y in zip(highs, above, strict=True)]
        if layer.function == EXP:
            return self.result(block, below, above, self.relative(below, above, 1, 22))
        width = ceiling(1 << q, 1 << 21) + 1 if self.kernel else 0
        return self.result(block, [x - width for x in below], [x + width for x in above])

    def computed(self, block: Block, store: Store) -> Result:
        """A block that is not affine in the words, by the rule of its layer, from what is in the store."""
        return RULES[type(block.layer)](self, block, store)

    # ---- margins

    def margin(self, winner: int, loser: int) -> Margin:
        """Substituted through the affine layers that are not affine in the words."""
        if (winner, loser) not in self.margins:
            network, constant = self.network, Fraction(0)
            function = {network.logits[winner]: Fraction(1)}
            function[network.logits[loser]] = function.get(network.logits[loser], Fraction(0)) - 1

            def define(i: int, c: Fraction) -> Iterable[tuple[int, Fraction]] | None:
                nonlocal constant
                layer = network.owner[i]
                if not layer.depth or not isinstance(layer, networks.Affine):
                    return None
                at, of = layer.pairs[i - layer.start]
                constant += c * Fraction(layer.biases[i - layer.start], layer.bias_scale)
                factor = c / layer.size_scale
                return [(j, factor * w) for j, w in zip(layer.lists[at], layer.weights[of], strict=True)]

            found = networks.substitute(function, define)
            scale = lcm(constant.denominator, *[c.denominator for c in found.values()])
            coefficients = [int(c * scale) for c in found.values()]
            pick = picker([*found]) if found else lambda column: ()
            sizes = list(map(abs, coefficients))
            self.margins[winner, loser] = Margin(pick, coefficients, sizes, int(constant * scale), scale)
        return self.margins[winner, loser]

    def certain(self, store: Store, winner: int, loser: int) -> bool:
        """Whether one class beats the other, by the intervals in the store."""
        margin = self.margin(winner, loser)
        lows, highs = [margin.pick(column) for column in store.columns[:2]]
        middle = sum(map(mul, margin.coefficients, map(add, lows, highs))) + (2 * margin.constant << self.q)
        twice = middle - sum(map(mul, margin.sizes, map(sub, highs, lows)))
        if not self.kernel:
            return twice > 0 or (twice == 0 and winner < loser)
        error = sum([store.columns[4][self.network.logits[each]] for each in (winner, loser)]) + 1
        return bool(twice > 2 * margin.scale * error)


RULES: dict[type[networks.Layer], Callable[[Intervals, Block, Store], Result]] = {
    networks.Affine: Intervals.affine,
    networks.Rectifier: Intervals.rectifier,
    networks.Maximum: Intervals.maximum,
    networks.Product: Intervals.product,
    networks.Curve: Intervals.curve,
}
