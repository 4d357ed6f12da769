"""The most that a swap of each of some cells adds: their first swaps side by side, then the second ones, and so on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .float64_rounding import Floats

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """The swaps of some cells: one of each, then a second of those that have two, and so on."""

    order: Numbers
    """The cells that have any, those with most first."""
    swaps: Numbers
    sizes: list[int]
    """How many cells have a first swap, a second, and so on."""

    @classmethod
    def of(cls, counts: Numbers, swaps: Numbers) -> Ranked:
        """From how many of `swaps` [cells, C] are a cell's own: the first ones."""
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        there = np.arange(int(counts.max(initial=0)))[:, None] < counts[order]
        return cls(order, swaps[order].T[: len(there)][there], there.sum(axis=1).tolist())

    def most(self, gains: Floats, count: int) -> Floats:
        """[count, ...]: of each cell, from what every one of `swaps` adds, which is lost; 0 where it has none."""
        greatest, start = gains[: len(self.order)], len(self.order)
        for size in self.sizes[1:]:
            np.maximum(greatest[:size], gains[start : start + size], out=greatest[:size])
            start += size
        result = np.zeros((count, *gains.shape[1:]), dtype=gains.dtype)
        result[self.order] = greatest
        return result
