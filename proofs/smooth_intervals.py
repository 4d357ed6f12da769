"""Intervals of the elements of a smooth network (FORMAT.md, sections 15.1 to 15.3): the rules of the layers, margins.

    intervals = Intervals(space, blocks, q, kernel)    space: of check.py, the words of a text seen by a network

This file is trusted, as check.py is. Standard library only, exact integers only: x stands for x 2**-q. Order: stores of
results, sums of many products, the network. What cannot be proved raises `Refused`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import compress, count, groupby
from math import isqrt, lcm
from operator import add, itemgetter, mul, neg, sub
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import enclosures, onnx_file
    from . import exact_network as networks
    from . import smooth_blocks as blocks_of_network
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]
    blocks_of_network = sys.modules["smooth_blocks"]

require = onnx_file.require
Block = blocks_of_network.Block
Blocks = blocks_of_network.Blocks
EXP, RECIPROCAL, SQRT, LIMIT_BITS = enclosures.EXP, enclosures.RECIPROCAL, enclosures.SQRT, enclosures.LIMIT_BITS
Curves = enclosures.Curves

MAX_SUMS = 1 << 10
"""Packed sums that are kept."""
PACKED = 8
"""So many rows with one list are multiplied at once."""

# ------------------------------------------------------------------------------------------------------------- stores


class Result(NamedTuple):
    """Of a block: lows and highs and, at level kernel, sizes, roundings and errors; and a number of its own."""

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
            for own, new in zip(self.columns, result.columns, strict=True):
                own[block.start : block.stop] = new


# ----------------------------------------------------------------------------------------------- sums of many products

Pick = Callable[[list[int]], Sequence[int]]
"""Some elements, in some order, of a column of all."""


def picker(elements: Sequence[int]) -> Pick:
    """The elements named, by a slice if they follow each other."""
    start, stop = elements[0], elements[0] + len(elements)
    if [*elements] == [*range(start, stop)]:
        return itemgetter(slice(start, stop))
    return itemgetter(*elements)


class Matrix:
    """Rows of weights for one list, integers over one scale; layers with the same weights share it.

    Packed, a column is one integer with `width` bits for every row, so that a product with a number is one product.
    """

    def __init__(self, rows: Sequence[list[int]]) -> None:
        self.rows, self.sizes = rows, [list(map(abs, row)) for row in rows]
        self.norm = max(map(sum, self.sizes)).bit_length()
        self.used = [len(row) - row.count(0) for row in rows]
        self.greatest = [max(row) for row in self.sizes]
        self.packed: dict[int, tuple[list[int], list[int]]] = {}

    def columns(self, width: int) -> tuple[list[int], list[int]]:
        """Of the weights and of their magnitudes, all below half of 2**width: half is added to each, its bytes are laid
        end to end, and all halves are taken off again."""
        if width not in self.packed:
            half, step = 1 << width - 1, width // 8
            every = half * (((1 << width * len(self.rows)) - 1) // ((1 << width) - 1))

            def laid(column: Sequence[int]) -> int:
                return int.from_bytes(b"".join([(x + half).to_bytes(step, "little") for x in column]), "little") - every

            both = [zip(*rows, strict=True) for rows in (self.rows, self.sizes)]
            weights, sizes = [[laid(column) for column in columns] for columns in both]
            self.packed[width] = weights, sizes
        return self.packed[width]

    def unpacked(self, total: int, width: int) -> list[int]:
        """Of each row, where it is below 2**(width - 1) in magnitude: half of 2**width is added, then taken off."""
        half, step = 1 << width - 1, width // 8
        every = ((1 << width * len(self.rows)) - 1) // ((1 << width) - 1)
        data = (total + half * every).to_bytes(step * len(self.rows), "little")
        return [int.from_bytes(data[at : at + step], "little") - half for at in range(0, len(data), step)]


class Group(NamedTuple):
    """Rows with one list: where it is, weights and their magnitudes; of each how many are not 0, and the greatest."""

    pick: Pick
    weights: Sequence[list[int]]
    sizes: Sequence[list[int]]
    used: list[int]
    greatest: list[int]


class Dense:
    """Rows of an affine layer that have one list, by their places in a block.

    The list is cut into runs (where it begins, first element, length, block), and what a run adds is kept.
    """

    def __init__(
        self, places: list[int], biases: list[int], elements: Sequence[int], matrix: Matrix, block_of: Sequence[int]
    ) -> None:
        self.places, self.biases, self.matrix, self.pick = places, biases, matrix, picker(elements)
        self.whole = Group(self.pick, matrix.rows, matrix.sizes, matrix.used, matrix.greatest)
        self.groups = [self.whole]
        step, at = count(), 0
        self.runs: list[tuple[int, int, int, int]] = []
        for _, group in groupby(elements, lambda i: (i - next(step), block_of[i])):
            run = list(group)
            self.runs.append((at, run[0], len(run), block_of[run[0]]))
            at += len(run)

    def halves(self, store: Store, q: int, known: dict[Any, list[int]]) -> list[list[int]]:
        """Twice the least and twice the greatest of each sum; and, at level kernel, the sum of |w| s."""
        lows, highs, *more = [self.pick(column) for column in store.columns[:3]]
        bits = max(max(highs), -min(lows), *map(max, more)).bit_length()
        width = -(-(self.matrix.norm + 2 + q + 8 + max(0, -(-(bits - q - 8) // 16) * 16)) // 8) * 8
        weights, sizes = self.matrix.columns(width)
        totals = [0] * (2 + len(more))
        for at, first, length, block in self.runs:
            key = id(self.matrix), width, at, first, store.stamps[block]
            if key not in known:
                if len(known) >= MAX_SUMS:
                    known.clear()
                here = slice(at, at + length)
                middles, radii = map(add, lows[here], highs[here]), map(sub, highs[here], lows[here])
                known[key] = [sum(map(mul, middles, weights[here])), sum(map(mul, radii, sizes[here]))]
                known[key] += [sum(map(mul, column[here], sizes[here])) for column in more]
            totals = list(map(add, totals, known[key]))
        middle, radius, *rest = totals
        return [self.matrix.unpacked(total, width) for total in (middle - radius, middle + radius, *rest)]


class Sparse:
    """Rows of an affine layer with lists of their own, all of one length, by their places in a block."""

    def __init__(
        self, places: list[int], biases: list[int], lists: Sequence[Sequence[int]], weights: Sequence[list[int]]
    ) -> None:
        self.places, self.biases = places, biases
        self.groups = [
            Group(picker(elements), [row], [sizes], [len(row) - row.count(0)], [max(sizes, default=0)])
            for elements, row, sizes in zip(lists, weights, [list(map(abs, row)) for row in weights], strict=True)
        ]
        every = [i for elements in lists for i in elements]
        sizes = [group.sizes[0] for group in self.groups]
        used, greatest = ([group.used[0] for group in self.groups], [group.greatest[0] for group in self.groups])
        self.whole = Group(picker(every), weights, sizes, used, greatest)
        """Where the lists are all, one after the other."""
        self.by_column = len(lists) > len(lists[0])
        lines = (
            zip(zip(*lists, strict=True), zip(*weights, strict=True), strict=True)
            if self.by_column
            else zip(lists, weights, strict=True)
        )
        self.lines = [(picker(elements), [*row], list(map(abs, row))) for elements, row in lines]

    def halves(self, store: Store, q: int, known: dict[Any, list[int]]) -> list[list[int]]:
        """As of dense rows; column by column of all rows if there are more rows than columns."""
        found: list[list[list[int]]] = []
        for pick, weights, sizes in self.lines:
            lows, highs, *more = [pick(column) for column in store.columns[:3]]
            middles, radii = map(mul, weights, map(add, lows, highs)), map(mul, sizes, map(sub, highs, lows))
            found.append([[*middles], [*radii], *[[*map(mul, sizes, column)] for column in more]])
        totals = [
            [*map(sum, zip(*rows, strict=True))] if self.by_column else [*map(sum, rows)]
            for rows in zip(*found, strict=True)
        ]
        return [list(map(sub, *totals[:2])), list(map(add, *totals[:2])), *totals[2:]]


# -------------------------------------------------------------------------------------------------------- the network


class Margin(NamedTuple):
    """z_winner - z_loser is the sum of coefficients times elements, plus a constant, over a scale."""

    pick: Pick
    coefficients: list[int]
    sizes: list[int]
    constant: int
    scale: int


Columns = tuple[list[int], ...]
"""Lows and highs and, at level kernel, sizes, roundings and errors."""


def ceiling(above: int, below: int) -> int:
    return -(-above // below)


def magnitudes(lows: Iterable[int], highs: Iterable[int]) -> list[int]:
    return list(map(max, map(neg, lows), highs))


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
        self.picks: dict[tuple[int, int], Pick] = {}
        self.sums: dict[int, list[Dense | Sparse]] = {}
        self.matrices: dict[tuple[int, ...], Matrix] = {}
        self.known: dict[Any, list[int]] = {}
        self.margins: dict[tuple[int, int], Margin] = {}
        self.whole: list[list[int]] = []
        if kernel:
            reason = self.network.no_float32
            require(not reason, f"no claim at level kernel is possible: {reason}")
            self.whole = self.whole_space()

    def new_store(self) -> Store:
        return Store(len(self.network.owner), len(self.blocks.found), 5 if self.kernel else 2)

    def result(self, block: Block, lows: list[int], highs: list[int], widths: Any = None, more: Any = None) -> Result:
        """Intervals, widened at level kernel, if they are within the limit."""
        if self.kernel:
            lows, highs = list(map(sub, lows, widths)), list(map(add, highs, widths))
            more = more or (magnitudes(lows, highs), [0] * len(lows), [0] * len(lows))
        if block.layer.depth and max(max(highs), -min(lows)) >= self.limit:
            for i, low, high in zip(range(block.start, block.stop), lows, highs, strict=True):
                fits = max(-low, high) < self.limit or i in self.blocks.unlimited
                require(fits, f"a number of 2**{LIMIT_BITS} or more at precision {self.q}")
        return Result((lows, highs, *more) if self.kernel else (lows, highs), next(self.stamps))

    def picked(self, block: Block, sources: Sequence[int], side: int = 0) -> Pick:
        """What the elements of a block read, of what all of its layer do; `side`: of products the second factors."""
        if (block.number, side) not in self.picks:
            here = slice(block.start - block.layer.start, block.stop - block.layer.start)
            self.picks[block.number, side] = picker(sources[here])
        return self.picks[block.number, side]

    # ---- affine layers

    def sums_of(self, layer: networks.Affine, places: Sequence[int]) -> list[Dense | Sparse]:
        """The rows in some places of a layer: those that share a list if they are many, and others by their lengths."""
        by_list: dict[int, list[int]] = {}
        for place in places:
            by_list.setdefault(layer.pairs[place][0], []).append(place)
        found: list[Dense | Sparse] = []
        by_length: dict[int, list[int]] = {}
        twice = 2 * lcm(layer.size_scale, layer.bias_scale) // layer.bias_scale

        def given(here: list[int]) -> tuple[list[list[int]], list[int]]:
            weights = [layer.weights[layer.pairs[place][1]] for place in here]
            return weights, [layer.biases[place] * twice << self.q for place in here]

        for at, here in by_list.items():
            length = len(layer.lists[at])
            if len(here) < PACKED or not length:
                by_length.setdefault(length, []).extend(here)
                continue
            rows, biases = given(here)
            key = tuple(map(id, rows))
            matrix = self.matrices[key] = self.matrices.get(key) or Matrix(rows)
            found.append(Dense(here, biases, layer.lists[at], matrix, self.blocks.block_of))
        for here in by_length.values():
            rows, biases = given(here)
            found.append(Sparse(here, biases, [layer.lists[layer.pairs[place][0]] for place in here], rows))
        return found

    def affine(self, block: Block, store: Store) -> Result:
        """The exact sums over the intervals, rounded; at level kernel widened by what they may be rounded by."""
        layer: Any = block.layer
        first = block.start - block.layer.start
        if block.number not in self.sums:
            self.sums[block.number] = self.sums_of(layer, range(first, block.stop - block.layer.start))
        scale = lcm(layer.size_scale, layer.bias_scale)
        factor, twice = scale // layer.size_scale, 2 * scale
        columns = [[0] * (block.stop - block.start) for _ in range(6 if self.kernel else 2)]
        for sums in self.sums[block.number]:
            least, greatest, *sizes = sums.halves(store, self.q, self.known)
            found = [[(x * factor + b) // twice for x, b in zip(least, sums.biases, strict=True)]]
            found.append([-((-x * factor - b) // twice) for x, b in zip(greatest, sums.biases, strict=True)])
            if self.kernel:
                found += self.rounding(layer, sums, sizes[0], store.columns[2:])
            for column, numbers in zip(columns, found, strict=True):
                for place, number in zip(sums.places, numbers, strict=True):
                    column[place - first] = number
        lows, highs, *more = columns
        return self.result(block, lows, highs, more[0], tuple(more[1:])) if more else self.result(block, lows, highs)

    def rounding(
        self, layer: networks.Affine, sums: Dense | Sparse, totals: list[int], columns: Sequence[list[int]]
    ) -> list[list[int]]:
        """Of each sum, given the sums of |w| s: by how much it may be rounded, its size, roundings n and error e."""
        scale = lcm(layer.size_scale, layer.bias_scale)
        factor, most, unit, start = scale // layer.size_scale, scale * self.limit, scale << 32, 0
        found: list[list[int]] = [[], [], [], []]
        sizes, roundings, errors = [sums.whole.pick(column) for column in columns]
        plain = 0 not in sizes and not any(roundings) and not any(errors) and max(sizes, default=0) <= self.limit
        for group in [sums.whole] if plain else sums.groups:
            sizes, roundings, errors = [group.pick(column) for column in columns]
            here = slice(start, start := start + len(group.used))
            biases = [abs(x) >> 1 for x in sums.biases[here]]
            reach = [x * factor + bias for x, bias in zip(totals[here], biases, strict=True)]
            if 0 in sizes or any(roundings):
                n = [roundings_of(weights, sizes, roundings, layer.size_scale) for weights in group.sizes]
            else:
                n = [used + 3 for used in group.used]
            fits = max(n) <= 65_280 and max(reach) <= most and max(biases) <= most
            fits = fits and max(group.greatest) <= layer.size_scale << LIMIT_BITS
            if max(sizes, default=0) > self.limit:
                fits = fits and all(max(compress(sizes, weights), default=0) <= self.limit for weights in group.sizes)
            require(fits, "no claim at level kernel is possible: terms, their sums or their number are too large")
            lost = [1 - (-x * 257 * total // unit) for x, total in zip(n, reach, strict=True)]
            carried = lost
            if any(errors):
                given = [ceiling(sum(map(mul, weights, errors)), layer.size_scale) for weights in group.sizes]
                carried = list(map(add, given, lost))
            for column, numbers in zip(found, (lost, [-(-x // scale) for x in reach], n, carried), strict=True):
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
                    _, *found = self.rounding(layer, sums, totals, columns)
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
        return self.result(block, *ends, more[2], tuple(more)) if more else self.result(block, *ends)

    def rectifier(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        pick = self.picked(block, layer.sources)
        lows, highs = [pick(column) for column in store.columns[:2]]
        widths = [ceiling(4 * 257 * x, 1 << 32) + 1 if layer.p else 0 for x in magnitudes(lows, highs)]
        below = [x if x > 0 else x * layer.p // layer.q for x in lows]
        return self.result(block, below, [x if x > 0 else ceiling(x * layer.p, layer.q) for x in highs], widths)

    def maximum(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        found = []
        for window in layer.windows[block.start - layer.start : block.stop - layer.start]:
            pick = picker(layer.sources[window.start : window.stop])
            found.append([max(pick(column)) for column in store.columns[:2]])
        lows, highs = map(list, zip(*found, strict=True))
        return self.result(block, lows, highs, [0] * len(lows))

    def product(self, block: Block, store: Store) -> Result:
        layer: Any = block.layer
        q = self.q
        here = slice(block.start - layer.start, block.stop - layer.start)
        firsts, seconds = layer.firsts[here], layer.seconds[here]
        picks = [self.picked(block, layer.firsts), self.picked(block, layer.seconds, 1)]
        ends = [pick(column) for pick in picks for column in store.columns[:2]]
        lows, highs = [], []
        for i, j, a, b, c, d in zip(firsts, seconds, *ends, strict=True):
            if a >= 0:
                least, greatest = a * c if c >= 0 else b * c, b * d if d >= 0 else a * d
            else:
                products = a * c, a * d, b * c, b * d
                least, greatest = min(products), max(products)
                if i == j:
                    least = b * b if b < 0 else 0
            lows.append(least >> q)
            highs.append(-(-greatest >> q))
        return self.result(block, lows, highs, self.relative(lows, highs, 2 * 257, 32))

    def relative(self, lows: list[int], highs: list[int], factor: int, bits: int) -> list[int] | None:
        """What an interval is widened by where an error is relative: its size times factor / 2**bits."""
        return [ceiling(factor * x, 1 << bits) + 1 for x in magnitudes(lows, highs)] if self.kernel else None

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
        floors = self.curves.floors(layer.function, highs)
        lows = floors if lows == highs else self.curves.floors(layer.function, lows)
        highs = [floor + (x != 0) for floor, x in zip(floors, highs, strict=True)]
        absolute = [-(-(1 << q) >> 21) + 1] * len(lows)
        return self.result(block, lows, highs, self.relative(lows, highs, 1, 22) if layer.function == EXP else absolute)

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
