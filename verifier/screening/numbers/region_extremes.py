"""The extremes of affine functions of the words over many regions of one text at once, by selection of swaps.

A region lets every position have some of its swaps (a cell), or demands one of them. Positions that may be swapped are
mostly the same from region to region: what they can add to each element of the cut is summed up once for each such set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.greatest_sums import sums_of_greatest
from swapproof.encodings.network import Network

from ..form.tree_leaves import Cells, Leaf, Settings
from .float64_rounding import Array, Floats, growth
from .ranked_swaps import Ranked
from .swap_moves import Moves

KEPT = 1 << 23
"""Numbers in the tables kept at a time."""


class Sets:
    """What the cells of a tree and its sets of free positions can do to the cut, computed when first asked for."""

    def __init__(self, moves: Moves, cells: Cells, k: int) -> None:
        self.moves, self.cells, self.k = moves, cells, k
        most = max((size - 1 for size in cells.sizes), default=0)
        self.allowed = np.zeros((len(cells.listed) + 1, most), dtype=np.bool_)  # the last row is NONE
        for number, (_, mask) in enumerate(cells.listed):
            self.allowed[number] = [mask >> choice & 1 for choice in range(1, most + 1)]
        counts = [size - 1 for size in cells.sizes]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.position = np.array([*(i for i, _ in cells.listed), 0], dtype=np.int64)
        """Of every cell, and of NONE."""
        self.counts = self.allowed.sum(axis=1)
        """Swaps of every cell."""
        self.ranked = np.argsort(~self.allowed, axis=1, kind="stable") + self.first[self.position, None]
        """[cells + 1, C]: the numbers of a cell's swaps, and then those of others."""
        self.reaches: dict[int, tuple[Floats, Floats]] = {}
        self.tables: dict[int, tuple[Floats, Floats]] = {}
        self.listed: dict[tuple[int, int], tuple[NDArray[np.int64], Floats] | None] = {}
        """(free, spare) -> up to so many of these swaps, in every way, and what they add to the cut; None: too many."""
        self.weight = moves.gross(k, growth(moves.width + 2 * k + 128))
        """[width]: the error of an extreme, per unit of coefficient."""

    @cached_property
    def rows(self) -> Floats:
        """[swaps, width], when every position moves every element."""
        return np.concatenate([*self.moves.rows, np.zeros((0, self.moves.width))])

    @cached_property
    def whole(self) -> tuple[Ranked, Floats, NDArray[np.int64]]:
        """All swaps of every position, how far each lowers every element of the cut, and the place of each there."""
        counts = np.diff(self.first)
        ranked = Ranked.of(counts, self.first[:-1, None] + np.arange(self.allowed.shape[1]))
        return ranked, -self.rows[ranked.swaps], np.argsort(ranked.swaps)

    @cached_property
    def padded(self) -> Floats | None:
        """[swaps + 1, width], the last row 0, unless that is large and mostly 0."""
        if not self.moves.dense and (self.first[-1] + 1) * self.moves.width > KEPT:
            return None
        result = np.zeros((int(self.first[-1]) + 1, self.moves.width))
        for start, elements, rows in zip(self.first, self.moves.touched, self.moves.rows, strict=False):
            result[start : start + len(rows), elements] = rows
        return result

    def moved(self, swaps: NDArray[np.int64]) -> Floats:
        """[n, width]: what these swaps [n, m] by number, -1 for none, add to the cut."""
        moves, total = self.moves, np.zeros((len(swaps), self.moves.width))
        for column in swaps.T:
            if self.padded is not None:
                total += self.padded[column]
                continue
            there = np.flatnonzero(column >= 0)
            positions = np.searchsorted(self.first, column[there], side="right") - 1
            for i in np.unique(positions):
                rows = there[positions == i]
                total[np.ix_(rows, moves.touched[i])] += moves.rows[i][column[rows] - self.first[i]]
        return total

    def keep(self, key: tuple[int, int], found: tuple[NDArray[np.int64], Floats] | None) -> None:
        if sum(part[0].size + part[1].size for part in self.listed.values() if part is not None) > KEPT:
            self.listed.clear()
        self.listed[key] = found

    def reach(self, cell: int) -> tuple[Floats, Floats]:
        """[touched] each: how far a swap of the cell can lower and raise the elements its position moves."""
        if cell not in self.reaches:
            i, _ = self.cells.listed[cell]
            rows = self.moves.rows[i][self.allowed[cell, : self.cells.sizes[i] - 1]]
            self.reaches[cell] = -rows.min(axis=0), rows.max(axis=0)
        return self.reaches[cell]

    def table(self, free: int) -> tuple[Floats, Floats]:
        """[up to k + 1, width] each: the sums of the j greatest falls and rises over a set of free positions."""
        if free not in self.tables:
            if sum(falls.size + rises.size for falls, rises in self.tables.values()) > KEPT:
                self.tables.clear()
            row = self.cells.rows[free]
            parts: tuple[list[Floats], list[Floats]] = ([], [])
            for i, cell in enumerate(row):
                found = self.reach(int(cell)) if cell >= 0 else None
                if found is None and self.moves.dense:
                    continue
                for side in (0, 1):
                    nothing = np.zeros(len(self.moves.touched[i]))
                    parts[side].append(nothing if found is None else np.maximum(found[side], 0.0))
            falls, rises = (sums_of_greatest(self.moves.per_element(part), self.k) for part in parts)
            self.tables[free] = falls, rises
        return self.tables[free]


@dataclass(frozen=True, eq=False)
class Batch:
    """Regions that are bounded together; none of them is empty."""

    sets: Sets
    leaves: Sequence[Leaf]

    @property
    def network(self) -> Network:
        return self.sets.moves.query.network

    @property
    def parts(self) -> dict[int, slice]:
        """Cut node -> its part of the width."""
        return self.sets.moves.parts

    @property
    def errors(self) -> Floats:
        """[width]: of an element in any of the regions."""
        return self.sets.moves.errors(self.sets.k)

    @property
    def weight(self) -> Floats:
        """[width]: the error of an extreme, per unit of coefficient."""
        return self.sets.weight

    @cached_property
    def settings(self) -> dict[Settings, list[int]]:
        """Rows by their multipliers."""
        found: dict[Settings, list[int]] = {}
        for row, leaf in enumerate(self.leaves):
            found.setdefault(leaf.settings, []).append(row)
        return found

    @cached_property
    def spare(self) -> NDArray[np.int64]:
        """[B]: swaps left beside the forced ones."""
        return np.array([leaf.spare for leaf in self.leaves], dtype=np.int64)

    @cached_property
    def by_free(self) -> dict[int, NDArray[np.int64]]:
        """Set of free positions -> the rows of the regions that have it."""
        found: dict[int, list[int]] = {}
        for row, leaf in enumerate(self.leaves):
            found.setdefault(leaf.free, []).append(row)
        return {free: np.array(rows) for free, rows in found.items()}

    @cached_property
    def forced(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Rows and cells: the first cell each of them forces, then the second, and so on."""
        found: list[tuple[list[int], list[int]]] = []
        for row, leaf in enumerate(self.leaves):
            for number, (_, cell) in enumerate(leaf.forced):
                if number == len(found):
                    found.append(([], []))
                found[number][0].append(row)
                found[number][1].append(cell)
        return [(np.array(rows), np.array(cells)) for rows, cells in found]

    @cached_property
    def placed(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """[B, P]: the cell of every position, and whether a swap is forced there."""
        cells = np.array([self.sets.cells.rows[leaf.free] for leaf in self.leaves]).reshape(len(self.leaves), -1)
        forced = np.zeros(cells.shape, dtype=np.bool_)
        for row, leaf in enumerate(self.leaves):
            for i, cell in leaf.forced:
                cells[row, i], forced[row, i] = cell, True
        return cells, forced

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """[B, width]: the least and greatest value of every element of the cut."""
        moves = self.sets.moves
        low, high = np.empty((len(self.leaves), moves.width)), np.empty((len(self.leaves), moves.width))
        for free, rows in self.by_free.items():
            falls, rises = self.sets.table(free)
            at = np.minimum(self.spare[rows], len(falls) - 1)
            low[rows], high[rows] = moves.base - falls[at], moves.base + rises[at]
        return self.with_forced(low, high)

    @cached_property
    def forced_ends(self) -> tuple[Floats, Floats]:
        """[B, width]: the same where no swap is made that is not forced."""
        base = np.repeat(self.sets.moves.base[None], len(self.leaves), axis=0)
        return self.with_forced(base.copy(), base)

    def with_forced(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Ends [B, width], changed in place, with what the forced swaps add to them."""
        moves = self.sets.moves
        for rows, cells in self.forced:
            if moves.dense:
                distinct, which = np.unique(cells, return_inverse=True)
                reaches = [self.sets.reach(int(cell)) for cell in distinct]
                low[rows] -= np.array([fall for fall, _ in reaches])[which]
                high[rows] += np.array([rise for _, rise in reaches])[which]
                continue
            for row, cell in zip(rows, cells, strict=True):
                fall, rise = self.sets.reach(int(cell))
                elements = moves.touched[self.sets.cells.listed[cell][0]]
                low[row, elements] -= fall
                high[row, elements] += rise
        return low, high

    def least(self, coefficients: Floats, more: Floats | None = None) -> Floats:
        """[B, R]: the minimum over each region of functions [B, R, width] of the cut, which each swap lowers by `more`
        [B, R, swaps] besides."""
        cells, forced = self.placed
        total = coefficients @ self.sets.moves.base
        if not cells.shape[1]:
            return np.asarray(total)
        return self.selected(total, self.falls(coefficients, cells, more), forced)

    def selected(self, total: Floats, falls: Floats, forced: NDArray[np.bool_]) -> Floats:
        """[B, R]: less the forced falls and the greatest of the others."""
        fixed = forced[:, None, :]
        total = total - np.where(fixed, falls, 0.0).sum(axis=2)
        falls = np.where(fixed, 0.0, np.maximum(falls, 0.0))
        most = max(int(self.spare.max()), 0)
        if most < falls.shape[2]:
            if not most:
                return np.asarray(total)
            falls = np.partition(falls, falls.shape[2] - most, axis=2)[:, :, falls.shape[2] - most :]
        if (self.spare < falls.shape[2]).any():
            falls = np.sort(falls, axis=2)[:, :, ::-1]
            falls = falls * (np.arange(falls.shape[2]) < self.spare[:, None])[:, None, :]
        return np.asarray(total - falls.sum(axis=2))

    def falls(self, coefficients: Floats, cells: NDArray[np.int32], more: Floats | None = None) -> Floats:
        """[B, R, P]: how far the best swap allowed at a position lowers each function; -inf where none is."""
        moves, sets = self.sets.moves, self.sets
        if moves.dense:
            return self.dense_falls(coefficients, cells, more)
        allowed = sets.allowed[cells]
        result: Array = np.empty((*coefficients.shape[:2], len(moves.touched)))
        for i, elements in enumerate(moves.touched):
            gains = coefficients[:, :, elements] @ moves.rows[i].T
            if more is not None:
                gains -= more[:, :, sets.first[i] : sets.first[i + 1]]
            result[:, :, i] = np.where(allowed[:, None, i, : gains.shape[2]], -gains, -np.inf).max(axis=2)
        return result

    def dense_falls(self, coefficients: Floats, cells: NDArray[np.int32], more: Floats | None = None) -> Floats:
        """First over all swaps of every position, and then anew where a cell has some of them only."""
        sets, (batch, functions, width) = self.sets, coefficients.shape
        ranked, falls, places = sets.whole
        gains = falls @ coefficients.reshape(-1, width).T
        if more is not None:
            gains += more.transpose(2, 0, 1).reshape(-1, batch * functions)[ranked.swaps]
        rows, at = np.nonzero((cells >= 0) & (sets.counts[cells] < np.diff(sets.first)))
        own = cells[rows, at]
        swaps = np.minimum(sets.ranked[own], len(places) - 1)
        there = np.arange(swaps.shape[1]) < sets.counts[own, None]
        some = gains.reshape(-1, batch, functions)[places[swaps], rows[:, None]]
        some = np.where(there[:, :, None], some, -np.inf).max(axis=1, initial=-np.inf)
        every = ranked.most(gains, cells.shape[1]).reshape(-1, batch, functions)
        result = np.where(cells[:, None] >= 0, every.transpose(1, 2, 0), -np.inf)
        result[rows, :, at] = some
        return np.asarray(result)
