"""Joint groups: T, the greatest of sum |c_j| (y_j - a_j x_j) over a region, for many regions at once.

T is the maximum over patterns d in {slope, 1} of the maximum over the region of sum |c_j| (d_j - a_j) x_j, an affine
function of the words each. What swaps add to the elements x_j is gathered once for a proof. Where many regions share
the slopes a_j and the coefficients c, what every cell adds to every pattern is computed once for all of them; a region
alone goes through its own cells only. Most leaves hold with more room than float32 can err, in half the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.greatest_sums import sums_of_greatest

from ..form.tree_leaves import Joint
from .float64_rounding import SLOP, UNIT, Array, Floats, growth, top
from .ranked_swaps import Numbers, Ranked
from .region_extremes import Batch, Sets

MOST = 1 << 22
"""Numbers in the table of what every cell adds to every pattern, and in those of sets of free positions."""
KEPT = 4
"""Tables of what cells add, for so many choices of slopes and coefficients."""

NARROW = 2.0**-24
"""The unit of float32."""
SMALL, TINIEST = 2.0**20, 2.0**-60

Number = type[np.float32] | type[np.float64]
Alike = tuple[int, Joint, bytes]
"""A rectifier, its groups, and the bytes of its coefficients: what regions share that share their patterns."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements [groups, members] of the cut, and what swaps add to them, as numbers of this type."""

    sets: Sets
    columns: Numbers
    number: Number

    @cached_property
    def rows(self) -> tuple[Array, Numbers]:
        """[groups, swaps, members]: what swaps add to the elements, of positions that move any of them; and [positions
        + 1] the first swap of each position there."""
        moves, flat = self.sets.moves, self.columns.reshape(-1)
        if moves.dense:
            rows, first = self.sets.rows[:, flat], self.sets.first
        else:
            parts, counts = [np.zeros((0, len(flat)))], [0]
            for elements, own in zip(moves.touched, moves.rows, strict=True):
                _, at, there = np.intersect1d(elements, flat, return_indices=True)
                part = np.zeros((len(own) if len(at) else 0, len(flat)))
                part[:, there] = own[: len(part), at]
                parts.append(part)
                counts.append(len(part))
            rows, first = np.concatenate(parts), np.cumsum(counts, dtype=np.int64)
        laid = rows.reshape(len(rows), *self.columns.shape).transpose(1, 0, 2)
        return np.ascontiguousarray(laid, dtype=self.number), first

    def ranked(self, cells: Numbers) -> Ranked:
        """By rows: cells of positions that move nothing have none."""
        _, first = self.rows
        at = self.sets.position[cells]
        counts = np.where(first[at] < first[at + 1], self.sets.counts[cells], 0)
        return Ranked.of(counts, self.sets.ranked[cells] + (first - self.sets.first)[at, None])


@dataclass(eq=False)
class Patterns:
    """Functions [groups, width, members] of elements of the cut; what cells add to them."""

    elements: Elements
    functions: Floats
    tops: dict[tuple[int, int], Array] = field(default_factory=dict)

    @property
    def sets(self) -> Sets:
        return self.elements.sets

    @cached_property
    def start(self) -> Array:
        """[groups, width]: of the text itself."""
        base = self.sets.moves.base[self.elements.columns]
        return np.asarray((self.functions @ base[:, :, None])[..., 0], dtype=self.elements.number)

    @cached_property
    def numbers(self) -> Array:
        """[groups, members, width]: the functions in the type of the elements."""
        return self.functions.transpose(0, 2, 1).astype(self.elements.number)

    def rises(self, group: int, ranked: Ranked, count: int) -> Array:
        """[cells, width]: the most a swap of each cell adds to the functions of a group."""
        return ranked.most(self.elements.rows[0][group, ranked.swaps] @ self.numbers[group], count)

    @cached_property
    def table(self) -> Array:
        """[cells, groups * width]: of all cells of the proof."""
        groups, width, _ = self.functions.shape
        count = len(self.sets.counts) - 1
        result: Array = np.empty((count, groups, width), dtype=self.elements.number)
        step = max(1, MOST // max(1, self.sets.ranked.shape[1] * width))
        for at in range(0, count, step):
            cells = np.arange(at, min(at + step, count))
            ranked = self.elements.ranked(cells)
            for group in range(groups):  # one at a time: it stays in the cache
                result[cells, group] = self.rises(group, ranked, len(cells))
        return result.reshape(count, groups * width)

    def of_free(self, free: int, most: int) -> Array:
        """[up to most + 1, groups * width]: the sums of the j greatest rises over a set of free positions."""
        if (free, most) not in self.tops:
            if sum(tops.size for tops in self.tops.values()) > MOST:
                self.tops.clear()
            row = self.sets.cells.rows[free]
            self.tops[free, most] = sums_of_greatest(np.maximum(self.table[row[row >= 0]], 0.0), most)
        return self.tops[free, most]

    def heights(self, batch: Batch) -> Floats:
        """[B, groups]: over every region the maximum of every group's patterns, from the table of all cells."""
        groups, width, _ = self.functions.shape
        result, start = np.empty((len(batch.leaves), groups)), self.start.reshape(-1)
        height, path = np.empty_like(start), list[int]()  # one row at a time: it stays in the cache
        steps = [start]  # with the first forced cells of the row before
        for free, rows in batch.by_free.items():
            tops = self.of_free(free, max(batch.leaves[row].spare for row in rows))
            for row in sorted(rows, key=lambda row: batch.leaves[row].forced):
                leaf = batch.leaves[row]
                cells = [cell for _, cell in leaf.forced]
                shared = next((i for i, (a, b) in enumerate(zip(path, cells, strict=False)) if a != b), len(path))
                del steps[min(shared, len(cells)) + 1 :]
                for cell in cells[len(steps) - 1 :]:
                    steps.append(steps[-1] + self.table[cell])
                path = cells
                np.add(steps[-1], tops[min(leaf.spare, len(tops) - 1)], out=height)
                np.max(height.reshape(groups, width), axis=1, out=result[row])
        return result

    def heights_alone(self, batch: Batch, row: int) -> Floats:
        """[groups]: the same of one region, from its own cells."""
        places = np.flatnonzero(batch.placed[0][row] >= 0)
        cells, forced = (part[row, places] for part in batch.placed)
        ranked, result = self.elements.ranked(cells), np.empty(len(self.functions))
        for group, start in enumerate(self.start):
            rises = self.rises(group, ranked, len(cells))
            free = np.maximum(rises[~forced], 0.0)
            height = start + rises[forced].sum(axis=0) + top(free, batch.leaves[row].spare)
            result[group] = height.max()
        return result


@dataclass(eq=False)
class Tables:
    """What is kept of one proof from batch to batch; numbers are of this type."""

    sets: Sets
    number: Number
    elements: dict[tuple[int, bytes], Elements] = field(default_factory=dict)
    patterns: dict[Alike, list[Patterns]] = field(default_factory=dict)

    def elements_at(self, columns: Numbers) -> Elements:
        key = len(columns), columns.tobytes()
        if key not in self.elements:
            if len(self.elements) * columns.size * int(self.sets.first[-1]) > MOST:
                self.elements.clear()
            self.elements[key] = Elements(self.sets, columns, self.number)
        return self.elements[key]

    def weight(self, part: slice) -> Floats:
        """[size]: the error of an extreme, per unit of coefficient.

        In float32 a product and its two factors are rounded, then added up with 7 others, with those of k swaps, and
        with the text's.
        """
        if self.number is np.float64:
            return self.sets.weight[part]
        k = self.sets.k
        return self.sets.moves.gross(k, growth(k + 24, NARROW))[part]

    def keep(self, key: Alike, patterns: list[Patterns]) -> None:
        if len(self.patterns) >= KEPT:
            self.patterns.clear()
        self.patterns[key] = patterns


@dataclass(frozen=True, eq=False)
class Groups:
    """The joint groups of a batch."""

    tables: Tables
    batch: Batch

    def at(self, index: int) -> tuple[NDArray[np.bool_], Floats] | None:
        """[B, size] each: which elements of a rectifier are in a group, and with which slopes; None where none is."""
        shape = len(self.batch.leaves), self.batch.network.nodes[index].size
        members, slopes = np.zeros(shape, dtype=np.bool_), np.zeros(shape)
        for settings, rows in self.batch.settings.items():
            pairs = [pair for node, group in settings.joint if node == index for pair in group]
            if pairs:
                elements, values = zip(*pairs, strict=True)
                members[np.ix_(rows, elements)] = True
                slopes[np.ix_(rows, elements)] = np.array(values) / 64
        return (members, slopes) if members.any() else None

    def rise(self, index: int, slope: float, weights: Floats) -> tuple[Floats, Floats]:
        """[B] each: the sum of T over the groups of a rectifier, and its error; `weights` [B, size] are |c| or 0.

        Every number of a pattern is an extreme of a function with coefficients of at most |c|, so the error of T is at
        most sum |c| (weight of the element), as for other functions; twice that covers the products d - a times |c|.
        In float32, where numbers are SMALL nothing overflows, and what underflows is less than TINIEST: 2**-126 of each
        product or factor, for at most 2**22 elements and 2**20 swaps. Where they are not, the error is infinite.
        """
        batch, sets = self.batch, self.batch.sets
        part = batch.parts[batch.network.nodes[index].inputs[0]]
        alike: dict[Alike, list[int]] = {}
        for row, leaf in enumerate(batch.leaves):
            alike.setdefault((index, leaf.settings.joint, weights[row].tobytes()), []).append(row)
        total, error = np.zeros(len(weights)), 2 * (weights @ self.tables.weight(part))
        if self.tables.number is np.float32:
            reach = sets.moves.gross(sets.k, np.ones(1))[part]
            small = (weights < SMALL).all(axis=1) & bool((reach < SMALL).all())
            error += np.where(small, TINIEST, np.inf)
        for key, rows in alike.items():
            for found in self.heights(key, slope, weights[rows[0]], part.start, rows):
                total[rows] += found.sum(axis=1)
                error[rows] += 2 * UNIT * (found.shape[1] + 4) * np.abs(found).sum(axis=1)
        return total, np.where(weights.any(axis=1), error * SLOP, 0.0)

    def heights(self, key: Alike, slope: float, weights: Floats, start: int, rows: list[int]) -> Iterator[Floats]:
        """[rows, groups]: T of some groups after the other, for rows that are alike."""
        batch, sets = self.batch, self.batch.sets
        patterns = self.tables.patterns.get(key)
        # Tables of all cells are worth their while for many regions.
        if patterns is None and len(rows) * int(sets.first[-1]) < int(sets.counts.sum()):
            for each in self.made(key, slope, weights, start):
                yield np.array([each.heights_alone(batch, row) for row in rows])
            return
        if patterns is None:
            patterns = list(self.made(key, slope, weights, start))
            self.tables.keep(key, patterns)
        own = batch if len(rows) == len(batch.leaves) else Batch(sets, [batch.leaves[row] for row in rows])
        for each in patterns:
            yield each.heights(own)

    def made(self, key: Alike, slope: float, weights: Floats, start: int) -> Iterator[Patterns]:
        """Groups of one size together."""
        index, joint, _ = key
        # Elements that play no part double the patterns in vain.
        kept = [[(i, a) for i, a in group if weights[i] > 0] for node, group in joint if node == index]
        sets = self.batch.sets
        for size in sorted({len(group) for group in kept} - {0}):
            groups = np.array([group for group in kept if len(group) == size])
            elements, slopes = groups[..., 0], groups[..., 1] / 64
            ends = every_end(slope, size)
            at_once = max(1, MOST // max(1, max(len(sets.allowed), int(sets.first[-1])) * len(ends)))
            for first in range(0, len(groups), at_once):
                block = slice(first, first + at_once)
                functions = (ends - slopes[block, None]) * weights[elements[block][:, None]]
                yield Patterns(self.tables.elements_at(elements[block] + start), functions)


@lru_cache(maxsize=64)
def every_end(slope: float, size: int) -> Floats:
    """[2**size, size]: the patterns."""
    return np.array(list(product((slope, 1.0), repeat=size)))
