"""Extremes of affine functions of the words: choosing at most k swaps is picking the k best positions.

A function f(sentence) = f(original) + sum of g(s) over the swaps s of the sentence, at most one a position and at most
k in all, has the greatest value f(original) + the k greatest positive d_p, with d_p the greatest g of position p.

A search that goes through the positions in one fixed order meets only regions of one kind: some swaps made, all
positions before `start` decided, at most k swaps left among those from `start` on. Their extremes are sums of table
entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .swap_corners import corners
from .swap_differences import Differences

Array = NDArray[Any]
Part = tuple[Array, slice, Array | None]
"""Functions [n, R, width] of a part of the cut, perhaps of these columns of it only."""

BLOCK_CELLS = 1 << 16
"""Numbers in one block of gains: it stays in the second-level cache."""
NARROW = 2
"""How many times fewer columns must be left for it to pay."""


@dataclass(frozen=True, eq=False)
class Corners:
    """Swaps p * C + c, choice by choice; positions with many of them first."""

    blocks: tuple[NDArray[np.int64], ...]
    """One swap of each of the first positions, another of each of those that have another, ..."""
    place: NDArray[np.int64]
    """[P]: where a position stands in each block that is long enough."""

    @classmethod
    def of(cls, chosen: NDArray[np.bool_]) -> Corners:
        """Of a table [P, C]."""
        counts = chosen.sum(axis=1)
        order = np.argsort(-counts, kind="stable")
        first = np.argsort(~chosen, axis=1, kind="stable") + np.arange(len(chosen))[:, None] * chosen.shape[1]
        blocks = (first[order[counts[order] > number], number] for number in range(int(counts.max(initial=0))))
        return cls(tuple(blocks), np.argsort(order, kind="stable"))

    @cached_property
    def flat(self) -> NDArray[np.int64]:
        """All blocks, one after the other."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self.blocks])

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """Where each block is in `flat`."""
        ends = np.cumsum([0, *(len(block) for block in self.blocks)]).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))

    def most(self, gains: Array) -> Array:
        """[..., P], in the order of `place`: the most that one swap gives, each of them `gains` [..., flat]; or 0."""
        best = np.zeros((*gains.shape[:-1], len(self.place)))
        for part in self.parts:
            mine = best[..., : part.stop - part.start]
            np.maximum(mine, gains[..., part], out=mine)
        return best


@dataclass(frozen=True, eq=False)
class Places:
    """The swaps of a query laid out by position and choice: `swaps[p, c]` is a swap's number in `differences`, or -1.

    Positions are numbered in the order in which a search decides them; a position's swaps fill its first columns.
    """

    differences: Differences
    swaps: NDArray[np.int64]
    made: tuple[int, ...] = ()
    """Swaps of every sentence, at other positions."""
    known: NDArray[np.bool_] | None = None
    """[P, C]: the corners, when they were found before."""

    @classmethod
    def of(cls, differences: Differences) -> Places:
        """Positions in the order of the text."""
        if not len(differences.positions):
            return cls(differences, np.empty((0, 1), dtype=np.int64))
        _, place, count = np.unique(differences.positions, return_inverse=True, return_counts=True)
        swaps = np.full((len(count), count.max()), -1, dtype=np.int64)
        swaps[place, np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)] = np.arange(len(place))
        return cls(differences, swaps)

    def reordered(self, order: Array) -> Places:
        return Places(self.differences, self.swaps[order], self.made, self.telling[order])

    def after(self, made: Iterable[int], start: int) -> Places:
        """The positions from `start` on, when these swaps are made."""
        return Places(self.differences, self.swaps[start:], (*self.made, *made), self.telling[start:])

    @cached_property
    def base(self) -> Array:
        """[width]: the cut of the sentence with the swaps made so far."""
        return np.asarray(self.differences.base + self.differences.rows[list(self.made)].sum(axis=0))

    @property
    def count(self) -> int:
        return len(self.swaps)

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """[P, C]: whether there is such a swap."""
        return self.swaps >= 0

    @cached_property
    def rows(self) -> Array:
        """[P, C, width]: what each swap adds to the cut; 0 where there is none."""
        padded = np.concatenate([self.differences.rows, np.zeros((1, self.differences.width))])
        return np.asarray(padded[self.swaps])

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """[P]: the word at every place, as certificates number them."""
        return np.searchsorted(np.unique(self.differences.positions), self.positions)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """[P]: the positions in the model's input."""
        return np.asarray(self.differences.positions[self.swaps[:, 0]])

    @cached_property
    def telling(self) -> NDArray[np.bool_]:
        """[P, C]: the swaps that a minimum over a position may need."""
        query, positions, tokens = self.differences.query, self.differences.positions, self.differences.tokens
        return corners(query, positions, tokens, self.swaps) if self.known is None else self.known

    @cached_property
    def corners(self) -> Corners:
        return Corners.of(self.telling)

    @cached_property
    def by_corner(self) -> Array:
        """[width, corners]: what the swaps of `corners` take from the cut, all blocks side by side."""
        return np.ascontiguousarray(-self.differences.rows[self.swaps.reshape(-1)[self.corners.flat]].T)

    def gains(self, coefficients: Array, part: slice, columns: Array | None = None) -> Array:
        """[..., P, C] of g(s) for functions [..., width] of a part of the cut (of these columns); 0 for no swap."""
        rows = self.rows[:, :, part]
        rows = rows if columns is None else rows[:, :, columns]
        flat = coefficients @ rows.reshape(self.swaps.size, rows.shape[2]).T
        return np.asarray(flat.reshape(*flat.shape[:-1], *self.swaps.shape))

    def falls(self, parts: Sequence[Part], more: Array | None = None) -> Array:
        """[n, R, P]: how far one swap can lower sums of functions [n, R, width], each of a part of the cut; 0 at least.

        `more` [n, R, corners]: what each swap of `corners` lowers them by besides. Where the functions of a region
        share few columns, only these are multiplied.
        """
        count, functions = parts[0][0].shape[:2]
        found = np.empty((count * functions, self.count))
        narrow = narrowed(*parts[0]) if len(parts) == 1 else None
        if narrow is not None:
            values, columns = narrow
            rows = max(1, BLOCK_CELLS // max(1, self.by_corner.shape[1] * max(functions, columns.shape[1])))
            blocks = [slice(first, first + rows) for first in range(0, count, rows)]
            gains = (values[block] @ self.by_corner[columns[block]] for block in blocks)
        else:
            tables = [
                self.by_corner[part] if columns is None else self.by_corner[part][columns] for _, part, columns in parts
            ]
            flat = [values.reshape(len(found), values.shape[2]) for values, _, _ in parts]
            rows = max(1, BLOCK_CELLS // max(1, self.by_corner.shape[1]))
            blocks = [slice(first, first + rows) for first in range(0, len(found), rows)]
            gains = (
                reduce(np.add, (values[block] @ table for values, table in zip(flat, tables, strict=True)))
                for block in blocks
            )
        first = 0
        others = None if more is None else more.reshape(len(found), -1)
        for block_gains in gains:
            if others is not None:
                flat_gains = block_gains.reshape(-1, others.shape[1])
                flat_gains += others[first : first + len(flat_gains)]
            best = self.corners.most(block_gains)
            best = best.reshape(prod(best.shape[:-1]), self.count)
            np.take(best, self.corners.place, axis=1, out=found[first : first + len(best)], mode="clip")
            first += len(best)
        return found.reshape(count, functions, self.count)


def narrowed(values: Array, part: slice, columns: Array | None) -> tuple[Array, Array] | None:
    """Functions [n, R, m] and their columns [n, m] of the cut, when those of each region have few that are not 0."""
    if columns is None:
        return None
    used = (values != 0).any(axis=1)
    most = int(used.sum(axis=1).max(initial=0))
    if NARROW * most > len(columns):
        return None
    chosen = np.argsort(~used, axis=1, kind="stable")[:, :most]
    return np.take_along_axis(values, chosen[:, None], axis=2), columns[chosen] + part.start


def greatest(best: Array, k: int) -> Array:
    """[...]: the sum of the k greatest of `best` [..., P], which are none of them negative."""
    count = best.shape[-1]
    if k <= 0 or count == 0:
        return np.zeros(best.shape[:-1])
    if k < count:
        best = np.partition(best, count - k, axis=-1)[..., count - k :]
    return np.asarray(best.sum(axis=-1))


def sums_of_greatest(best: Array, k: int) -> Array:
    """[k + 1, M]: at j the sum of the j greatest of `best` [P, M]; k is at most P."""
    chosen = np.partition(best, len(best) - k, axis=0)[len(best) - k :] if 0 < k < len(best) else best[:k]
    return np.concatenate([np.zeros((1, best.shape[1])), -np.cumsum(np.sort(-chosen, axis=0), axis=0)])


def suffix_sums(best: Array, k: int) -> Array:
    """[P + 1, k + 1, M]: at (i, j) the sum of the j greatest of `best[i:]`; no number in `best` [P, M] is negative."""
    count, functions = best.shape
    sums = np.zeros((count + 1, k + 1, functions), dtype=best.dtype)
    for i in range(count - 1, -1, -1):  # the best with this row, or the best without it
        np.add(sums[i + 1, :-1], best[i], out=sums[i, 1:])
        np.maximum(sums[i, 1:], sums[i + 1, 1:], out=sums[i, 1:])
    return sums


def leaving(best: Array, start: Array, left: Array) -> Array:
    """[n, R]: the sum of the left[n] greatest of `best` [n, R, P] from position start[n] on, none of them negative.

    `best` is overwritten.
    """
    count, most = best.shape[2], int(left.max(initial=0))
    if not most or not count:
        return np.zeros(best.shape[:2])
    if start.any():
        best *= (np.arange(count) >= start[:, None])[:, None, :]
    if most < count:
        best = np.partition(best, count - most, axis=2)[:, :, count - most :]
    if (left < most).any():
        best = np.sort(best, axis=2)[:, :, ::-1]
        best *= (np.arange(best.shape[2]) < left[:, None])[:, None, :]
    return np.asarray(best.sum(axis=2))


def greatest_without_each(best: Array, k: int) -> Array:
    """[P, N]: the sum of the k greatest of `best` [P, N] but row p; no number is negative."""
    count = len(best)
    if not k:
        return np.zeros_like(best)
    ordered = -np.sort(-best, axis=0) if k + 1 >= count else -np.sort(np.partition(-best, k, axis=0)[: k + 1], axis=0)
    spare = ordered[k] if k < count else np.zeros(best.shape[1])
    counted = best >= ordered[min(k, count) - 1]
    return np.asarray(ordered[:k].sum(axis=0) - np.where(counted, best - spare, 0.0))
