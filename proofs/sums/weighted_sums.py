"""Rows of weights over columns of numbers (FORMAT.md, sections 15.1 and 15.3): intervals of sums, and their sizes.

    Dense(scales, places, biases, elements, matrix, block_of)       rows that have one list: packed
    Sparse(scales, places, biases, lists, rows)                     rows with lists of their own, of one length
    low, high, *sizes = sums.ends(store, known)                  of all rows, each a Packed or a Plain

This file is trusted, as check.py is. Standard library only, exact integers only; nothing is refused here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count, groupby
from operator import add, itemgetter, mul, sub
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import packed_columns
else:
    packed_columns = sys.modules["packed_columns"]

Fields = packed_columns.Fields
fields_of = packed_columns.fields_of

MAX_SUMS = 1 << 10
"""Packed sums that are kept."""
PACKED = 8
"""So many rows with one list are multiplied at once."""

Pick = Callable[[list[int]], Sequence[int]]
"""Some elements, in some order, of a column of all."""


def picker(elements: Sequence[int]) -> Pick:
    """The elements named, perhaps none, by a slice if they follow each other."""
    if not elements:
        return itemgetter(slice(0))
    start, stop = elements[0], elements[0] + len(elements)
    if [*elements] == [*range(start, stop)]:
        return itemgetter(slice(start, stop))
    return itemgetter(*elements)


class Scales(NamedTuple):
    """Of a layer: sums of weights over `whole` times `factor`, and biases, are over `scale`."""

    whole: int
    factor: int
    scale: int


# ------------------------------------------------------------------------------------------------------ numbers of rows


class Packed(NamedTuple):
    """A number for every row, of a magnitude of at most 2**bits, in one integer."""

    total: int
    fields: Fields
    bits: int

    def floors(self, factor: int, more: int, below: int) -> list[int]:
        """floor((x factor + more) / below), for each."""
        return self.fields.floors(self.total, self.bits, factor, more, below)

    def numbers(self) -> list[int]:
        return self.fields.unpacked(self.total)


class Plain(NamedTuple):
    """The same, one by one."""

    found: list[int]

    def floors(self, factor: int, more: int, below: int) -> list[int]:
        if factor == below == 1 and not more:
            return self.found
        shift = below.bit_length() - 1
        if below == 1 << shift:
            return [x * factor + more >> shift for x in self.found]
        return [(x * factor + more) // below for x in self.found]

    def numbers(self) -> list[int]:
        return self.found


Column = Packed | Plain

# ------------------------------------------------------------------------------------------------------------ packed


class Matrix:
    """Rows of weights for one list, integers over one scale; layers with the same weights share it."""

    def __init__(self, rows: Sequence[list[int]]) -> None:
        self.rows, self.sizes = rows, [list(map(abs, row)) for row in rows]
        self.norm = max(map(sum, self.sizes))
        self.used = [len(row) - row.count(0) for row in rows]
        self.heaviest = max(map(max, self.sizes))
        self.known: dict[int, tuple[list[int], list[int]]] = {}
        self.width = 0
        """The greatest that was asked for: what is kept of one is of no use for another."""

    def fields(self, width: int) -> Fields:
        return fields_of(len(self.rows), width)

    def columns(self, width: int) -> tuple[list[int], list[int]]:
        """Of the weights and of their magnitudes: so a column times a number is one product."""
        if width not in self.known:
            pack = self.fields(width).packed
            columns = [[pack(column) for column in zip(*rows, strict=True)] for rows in (self.rows, self.sizes)]
            self.known[width] = columns[0], columns[1]
        return self.known[width]


class Group(NamedTuple):
    """Rows with one list: where it is, weights and their magnitudes; and how many of each are not 0."""

    pick: Pick
    weights: Sequence[list[int]]
    sizes: Sequence[list[int]]
    used: list[int]


class Dense:
    """Rows of an affine layer that have one list, by their places in a block.

    The list is cut into runs (where it begins, first element, length, block), and what a run adds is kept.
    """

    times = 2
    """So many times the ends of rows are given."""

    def __init__(
        self,
        scales: Scales,
        places: list[int],
        biases: list[int],
        elements: Sequence[int],
        matrix: Matrix,
        block_of: Sequence[int],
    ) -> None:
        self.scales, self.places, self.biases, self.bias = scales, places, biases, max(map(abs, biases))
        self.matrix, self.pick = matrix, picker(elements)
        self.whole = Group(self.pick, matrix.rows, matrix.sizes, matrix.used)
        self.groups, self.norm, self.heaviest = [self.whole], matrix.norm, matrix.heaviest
        self.packed_biases: dict[int, tuple[int, int]] = {}
        step, at = count(), 0
        self.runs: list[tuple[int, int, int, int]] = []
        for _, group in groupby(elements, lambda i: (i - next(step), block_of[i])):
            run = list(group)
            self.runs.append((at, run[0], len(run), block_of[run[0]]))
            at += len(run)

    def bits(self, columns: Sequence[Sequence[int]]) -> int:
        """2 to this is above twice any sum and twice its bias together, for columns like these."""
        bits = max(*map(max, columns), -min(columns[0])).bit_length()
        return max(self.norm.bit_length() + bits + (self.scales.factor - 1).bit_length(), self.bias.bit_length()) + 2

    def ends(self, store: Any, known: dict[Any, list[int]]) -> list[Column]:
        """Over the scale: twice the least and twice the greatest of each row; at level kernel the sum of |w| s and |b|.

        Twice a sum of w x is that of w (l + u) and at most that of |w| (u - l) away, and both are taken on.
        """
        columns = [self.pick(column) for column in store.columns[:3]]
        lows, highs, *more = columns
        factor, bits = self.scales.factor, self.bits(columns)
        width = self.matrix.width = max(self.matrix.width, -(-(bits + 1) // 8) * 8)
        fields, (weights, sizes) = self.matrix.fields(width), self.matrix.columns(width)
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
        bias, of_size = self.packed(fields)
        totals = [middle - radius, middle + radius, *rest]
        added = zip(totals, (2 * bias, 2 * bias, of_size), strict=False)
        return [Packed(total * factor + more, fields, bits) for total, more in added]

    def packed(self, fields: Fields) -> tuple[int, int]:
        """Biases, and their magnitudes."""
        if fields.width not in self.packed_biases:
            self.packed_biases[fields.width] = fields.packed(self.biases), fields.packed([*map(abs, self.biases)])
        return self.packed_biases[fields.width]


# --------------------------------------------------------------------------------------------------------- one by one


class Sparse:
    """Rows of an affine layer with lists of their own, all of one length, by their places in a block."""

    def __init__(
        self,
        scales: Scales,
        places: list[int],
        biases: list[int],
        lists: Sequence[Sequence[int]],
        rows: Sequence[list[int]],
    ) -> None:
        self.scales, self.places, self.biases, self.bias = scales, places, biases, max(map(abs, biases))
        self.lists, self.rows = lists, rows
        self.by_column = len(lists) > len(lists[0]) > 0
        self.picks = [picker(elements) for elements in (zip(*lists, strict=True) if self.by_column else lists)]
        different = [*{id(row): row for row in rows}.values()]
        weights = {w for row in different for w in row}
        self.alike = weights.pop() if len(weights) == 1 and min(weights) > 0 else 0
        """The weight, above 0, that stands everywhere, if there is such a one."""
        self.times = 1 if self.alike else 2
        sizes = [list(map(abs, row)) for row in different]
        self.norm, self.heaviest = max(map(sum, sizes)), max([max(row, default=0) for row in sizes])

    @cached_property
    def sizes(self) -> list[list[int]]:
        return [list(map(abs, row)) for row in self.rows]

    @cached_property
    def groups(self) -> list[Group]:
        """One for each row."""
        return [
            Group(picker(elements), [row], [sizes], [len(row) - row.count(0)])
            for elements, row, sizes in zip(self.lists, self.rows, self.sizes, strict=True)
        ]

    @cached_property
    def whole(self) -> Group:
        """Of all rows, and the elements that some of them reads."""
        used = [len(row) - row.count(0) for row in self.rows]
        return Group(picker(sorted({i for elements in self.lists for i in elements})), self.rows, [], used)

    @cached_property
    def lines(self) -> list[tuple[list[int], list[int]]]:
        """Weights and their magnitudes, as they are picked."""
        pairs = self.rows, self.sizes
        weights, sizes = [[[*line] for line in zip(*rows, strict=True)] if self.by_column else rows for rows in pairs]
        return [*zip(weights, sizes, strict=True)]

    def added(self, lines: Sequence[Sequence[int]]) -> list[int]:
        """Of each row."""
        return [*map(sum, zip(*lines, strict=True))] if self.by_column else [*map(sum, lines)]

    def ends(self, store: Any, known: dict[Any, list[int]]) -> list[Column]:
        """As of dense rows, but once and not twice the ends where all weights are alike and above 0."""
        columns = [[pick(column) for pick in self.picks] for column in store.columns[:3]]
        if self.alike:
            totals, factor = [self.added(lines) for lines in columns], self.scales.factor * self.alike
        else:
            found, factor = [], self.scales.factor
            for (weights, sizes), lows, highs, *more in zip(self.lines, *columns, strict=True):
                middles, radii = map(mul, weights, map(add, lows, highs)), map(mul, sizes, map(sub, highs, lows))
                found.append([[*middles], [*radii], *[[*map(mul, sizes, column)] for column in more]])
            middle, radius, *rest = [self.added(lines) for lines in zip(*found, strict=True)]
            totals = [[*map(sub, middle, radius)], [*map(add, middle, radius)], *rest]
        if factor == 1 and not self.bias:
            return [Plain(total) for total in totals]
        biases = [x * self.times for x in self.biases]
        added = zip(totals, (biases, biases, map(abs, self.biases)), strict=False)
        return [Plain([x * factor + b for x, b in zip(total, more, strict=True)]) for total, more in added]
