"""Joint groups: T, the greatest of sum |c_j| (y_j - a_j x_j) over a region, for many regions at once.

T is the maximum over patterns d in {slope, 1} of the maximum over the region of sum |c_j| (d_j - a_j) x_j, an affine
function of the words each. The patterns of all groups are functions of a few elements of the cut; while the
coefficients c are the same, what swaps add to them is computed once for all regions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from .balls import SLOP, UNIT, Floats, running_tops
from .sets import Batch, Sets, best
from .tree import Settings

MOST = 1 << 22
"""Numbers in the table of what every swap adds to every pattern, and in those of sets of free positions."""


@dataclass(eq=False)
class Patterns:
    """Functions [groups, width, members] of elements [groups, members] of the cut; what swaps add to them."""

    sets: Sets
    functions: Floats
    columns: NDArray[np.int64]
    rises: dict[int, Floats] = field(default_factory=dict)
    tops: dict[tuple[int, int], Floats] = field(default_factory=dict)

    @cached_property
    def rows(self) -> tuple[Floats, NDArray[np.int64]]:
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
        return np.ascontiguousarray(rows.reshape(len(rows), *self.columns.shape).transpose(1, 0, 2)), first

    @cached_property
    def whole(self) -> Floats:
        """[positions, groups * width]: the most a swap of a position adds."""
        rows, first = self.rows
        groups, width, _ = self.functions.shape
        result = np.zeros((len(first) - 1, groups, width))
        for group in range(groups):  # one at a time: it stays in the cache
            gains = rows[group] @ self.functions[group].T
            for i, (start, end) in enumerate(pairwise(first.tolist())):
                if start < end:
                    np.maximum.reduce(gains[start:end], axis=0, out=result[i, group])
        return result.reshape(len(result), -1)

    def of_cell(self, cell: int) -> Floats:
        """[groups * width]: the most a swap of the cell adds."""
        if cell not in self.rises:
            i, mask = self.sets.cells.listed[cell]
            size = self.sets.cells.sizes[i]
            rows, first = self.rows
            if mask >> 1 == (1 << size - 1) - 1 or first[i] == first[i + 1]:
                self.rises[cell] = self.whole[i]
            else:
                own = rows[:, first[i] : first[i + 1]][:, self.sets.allowed[cell, : size - 1]]
                self.rises[cell] = (own @ self.functions.transpose(0, 2, 1)).max(axis=1).reshape(-1)
        return self.rises[cell]

    def of_free(self, free: int, most: int) -> Floats:
        """[up to most + 1, groups * width]: the sums of the j greatest rises over a set of free positions."""
        if (free, most) not in self.tops:
            if sum(top.size for top in self.tops.values()) > MOST:
                self.tops.clear()
            cells = [int(cell) for cell in self.sets.cells.rows[free] if cell >= 0]
            rises = np.array([self.of_cell(cell) for cell in cells]).reshape(len(cells), self.functions[..., 0].size)
            self.tops[free, most] = running_tops(np.maximum(rises, 0.0, out=rises), most)
        return self.tops[free, most]

    def heights(self, batch: Batch) -> Floats:
        """[B, groups]: over every region the maximum of every group's patterns."""
        groups, width, _ = self.functions.shape
        result = np.empty((len(batch.leaves), groups))
        start = (self.functions @ self.sets.moves.base[self.columns][:, :, None]).reshape(-1)
        for row, plan in batch.plans.items():
            gains = np.zeros((len(start), len(self.sets.moves.touched)))
            for i, cell in enumerate(batch.placed[0][row]):
                if cell >= 0:
                    gains[:, i] = self.of_cell(int(cell))
            result[row] = (start + best(plan, gains)).reshape(groups, width).max(axis=1)
        height = np.empty_like(start)  # one row at a time: it stays in the cache
        for free, rows in batch.unplanned.items():
            tops = self.of_free(free, max(batch.leaves[row].spare for row in rows))
            for row in rows:
                leaf = batch.leaves[row]
                np.add(start, tops[min(leaf.spare, len(tops) - 1)], out=height)
                for _, cell in leaf.forced:
                    np.add(height, self.of_cell(cell), out=height)
                np.max(height.reshape(groups, width), axis=1, out=result[row])
        return result


class Groups:
    """The joint groups of one setting."""

    def __init__(self, sets: Sets, settings: Settings) -> None:
        self.sets = sets
        self.nodes: dict[int, list[tuple[list[int], Floats]]] = {}
        for index, pairs in settings.joint:
            elements, values = zip(*pairs, strict=True)
            self.nodes.setdefault(index, []).append((list(elements), np.array(values) / 64))
        self.known: dict[tuple[int, bytes], list[Patterns]] = {}

    def at(self, index: int) -> bool:
        return index in self.nodes

    def members(self, index: int) -> NDArray[np.bool_]:
        result = np.zeros(self.size(index), dtype=np.bool_)
        for elements, _ in self.nodes[index]:
            result[elements] = True
        return result

    def slopes(self, index: int) -> Floats:
        result = np.zeros(self.size(index))
        for elements, slopes in self.nodes[index]:
            result[elements] = slopes
        return result

    def size(self, index: int) -> int:
        return self.sets.moves.query.network.nodes[index].size

    def rise(self, batch: Batch, index: int, slope: float, weights: Floats) -> tuple[Floats, Floats]:
        """[B] each: the sum of T over the groups of a rectifier, and its error; `weights` [B, size] are |c| or 0.

        Every number of a pattern is an extreme of a function with coefficients of at most |c|, so the error of T is at
        most sum |c| (weight of the element), as for other functions; twice that covers the products d - a times |c|.
        """
        total, error = np.zeros(len(weights)), np.zeros(len(weights))
        part = self.sets.moves.parts[self.sets.moves.query.network.nodes[index].inputs[0]]
        _, first, which = np.unique(weights, axis=0, return_index=True, return_inverse=True)
        for number, row in enumerate(first):
            rows = np.flatnonzero(which.reshape(-1) == number)
            same = Batch(batch.sets, [batch.leaves[int(at)] for at in rows]) if len(first) > 1 else batch
            for patterns in self.patterns(index, slope, weights[row], part.start):
                found = patterns.heights(same)
                total[rows] += found.sum(axis=1)
                error[rows] += 2 * UNIT * (found.shape[1] + 4) * np.abs(found).sum(axis=1)
            error[rows] += 2 * (weights[row] @ self.sets.weight[part])
        return total, error * SLOP

    def patterns(self, index: int, slope: float, weights: Floats, start: int) -> list[Patterns]:
        key = index, weights.tobytes()
        if key not in self.known:
            if len(self.known) >= 4:
                self.known.clear()
            self.known[key] = list(self.made(index, slope, weights, start))
        return self.known[key]

    def made(self, index: int, slope: float, weights: Floats, start: int) -> list[Patterns]:
        found = []
        groups = [(np.array(elements), slopes) for elements, slopes in self.nodes[index]]
        # Elements that play no part double the patterns in vain.
        kept = [(elements[weights[elements] > 0], slopes[weights[elements] > 0]) for elements, slopes in groups]
        for size in range(1, 9):
            group = [(elements, slopes) for elements, slopes in kept if len(elements) == size]
            ends = np.array(list(product((slope, 1.0), repeat=size)))
            swaps = int(self.sets.first[-1])
            at_once = max(1, MOST // max(1, max(len(self.sets.allowed), swaps) * len(ends)))
            for first in range(0, len(group), at_once):
                block = group[first : first + at_once]
                functions = np.array([(ends - slopes) * weights[elements] for elements, slopes in block])
                columns = np.array([elements for elements, _ in block])
                found.append(Patterns(self.sets, functions, columns + start))
        return found
