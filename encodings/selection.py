"""Extremes of affine functions of the words: choosing at most k swaps is picking the k best positions.

A function f(sentence) = f(original) + sum of g(s) over the swaps s of the sentence, at most one a position and at most
k in all, has the greatest value f(original) + the k greatest positive d_p, with d_p the greatest g of position p.

A search that goes through the positions in one fixed order meets only regions of one kind: some swaps made, all
positions before `start` decided, at most k swaps left among those from `start` on. Their extremes are sums of table
entries.
"""

from __future__ import annotations

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
        return Places(self.differences, self.swaps[order])

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

    def gains(self, coefficients: Array, part: slice, columns: Array | None = None) -> Array:
        """[..., P, C] of g(s) for functions [..., width] of a part of the cut (of these columns); 0 for no swap."""
        rows = self.differences.rows[:, part]
        flat = coefficients @ (rows if columns is None else rows[:, columns]).T
        padded = np.concatenate([flat, np.zeros((*flat.shape[:-1], 1))], axis=-1)
        return np.take(padded, self.swaps, axis=-1)


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
