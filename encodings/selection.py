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
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .incremental import Differences

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Places:
    """The swaps of a query laid out by position and choice: `swaps[p, c]` is a swap's number in `differences`, or -1.

    Positions are numbered in the order in which a search decides them; a position's swaps fill its first columns.
    """

    differences: Differences
    swaps: NDArray[np.int64]
    made: tuple[int, ...] = ()
    """Swaps of every sentence, at other positions."""

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
        return Places(self.differences, self.swaps[order], self.made)

    def after(self, made: Iterable[int], start: int) -> Places:
        """The positions from `start` on, when these swaps are made."""
        return Places(self.differences, self.swaps[start:], (*self.made, *made))

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
    def positions(self) -> NDArray[np.int64]:
        """[P]: the positions in the model's input."""
        return np.asarray(self.differences.positions[self.swaps[:, 0]])

    @cached_property
    def by_choice(self) -> Array:
        """[C, P, width]: the rows, choice by choice."""
        return np.ascontiguousarray(self.rows.transpose(1, 0, 2))

    def gains(self, coefficients: Array, part: slice, columns: Array | None = None) -> Array:
        """[..., P, C] of g(s) for functions [..., width] of a part of the cut (of these columns); 0 for no swap."""
        rows = self.rows[:, :, part]
        rows = rows if columns is None else rows[:, :, columns]
        flat = coefficients @ rows.reshape(self.swaps.size, rows.shape[2]).T
        return np.asarray(flat.reshape(*flat.shape[:-1], *self.swaps.shape))

    def falls(self, parts: Sequence[tuple[Array, slice, Array | None]]) -> Array:
        """[..., P]: how far one swap can lower sums of functions [..., width], each of a part of the cut; 0 at least.

        Choice by choice, so that no array holds all gains.
        """
        shape = parts[0][0].shape[:-1] if parts else ()
        least = np.zeros((int(np.prod(shape)), self.count))
        for rows in self.by_choice:
            gains: Array | None = None
            for coefficients, part, columns in parts:
                mine = rows[:, part] if columns is None else rows[:, part][:, columns]
                more = coefficients.reshape(len(least), coefficients.shape[-1]) @ mine.T
                gains = more if gains is None else np.add(gains, more, out=gains)
            if gains is not None:
                np.minimum(least, gains, out=least)
        return np.negative(least, out=least).reshape(*shape, self.count)


def greatest(best: Array, k: int) -> Array:
    """[...]: the sum of the k greatest of `best` [..., P], which are none of them negative."""
    count = best.shape[-1]
    if k <= 0 or count == 0:
        return np.zeros(best.shape[:-1])
    if k < count:
        best = np.partition(best, count - k, axis=-1)[..., count - k :]
    return np.asarray(best.sum(axis=-1))


def suffix_sums(best: Array, k: int) -> Array:
    """[P + 1, k + 1, M]: at (i, j) the sum of the j greatest of `best[i:]`; no number in `best` [P, M] is negative."""
    count, functions = best.shape
    sums = np.zeros((count + 1, k + 1, functions))
    leading = np.zeros((k + 1, functions))  # the k greatest so far, descending, below a greatest of all
    leading[0] = np.inf
    for i in range(count - 1, -1, -1):
        leading[1:] = np.maximum(leading[1:], np.minimum(leading[:-1], best[i]))
        np.cumsum(leading[1:], axis=0, out=sums[i, 1:])
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
    ordered = -np.sort(-best, axis=0)
    spare = ordered[k] if k < count else np.zeros(best.shape[1])
    counted = best >= ordered[min(k, count) - 1]
    return np.asarray(ordered[:k].sum(axis=0) - np.where(counted, best - spare, 0.0))
