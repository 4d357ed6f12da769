"""Groups of positions with ranges of swaps: what sets of swaps fit them, and the best of these.

Groups are nested or disjoint. The best totals with exactly m swaps inside a group form a concave sequence: joining
groups merges their sorted increments, cutting to a range drops both ends (FORMAT section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numbers.float64_rounding import Floats

Group = tuple[frozenset[int], int, int]
"""Positions, and the least and greatest number of swaps among them."""


@dataclass(frozen=True)
class Step:
    """One group: its own free and forced positions, the groups right inside it, and its range."""

    free: list[int]
    forced: list[int]
    inside: list[int]
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The groups of one region, the smallest first and the group of all positions last."""

    steps: list[Step]

    @classmethod
    def of(cls, groups: Sequence[Group], free: Sequence[int], forced: Sequence[int]) -> Plan:
        steps: list[Step] = []
        left, held = set(free) | set(forced), list[tuple[frozenset[int], int]]()
        for members, low, high in sorted(groups, key=lambda group: len(group[0])):
            here = left & members
            left -= members
            inside = [number for other, number in held if other <= members]
            held = [pair for pair in held if not pair[0] <= members]
            held.append((members, len(steps)))
            own = [i for i in free if i in here], [i for i in forced if i in here]
            steps.append(Step(*own, inside, low, high))
        return cls(steps)

    def best(self, gains: Floats) -> Floats | None:
        """[R]: the greatest total of gains [R, P] over the sets of positions that fit; None when none does."""
        done: list[tuple[int, Floats, Floats]] = []
        for step in self.steps:
            swaps, total = len(step.forced), gains[:, step.forced].sum(axis=1)
            parts = [gains[:, step.free]]
            for number in step.inside:
                count, sums, increments = done[number]
                swaps, total = swaps + count, total + sums
                parts.append(increments)
            increments = -np.sort(-np.concatenate(parts, axis=1), axis=1)
            must = max(step.low - swaps, 0)
            if must > increments.shape[1] or swaps + must > step.high:
                return None
            total = total + increments[:, :must].sum(axis=1)
            done.append((swaps + must, total, increments[:, must : step.high - swaps]))
        _, total, increments = done[-1]
        return np.asarray(total + np.maximum(increments, 0.0).sum(axis=1))

    @property
    def is_empty(self) -> bool:
        places = [i for step in self.steps for i in (*step.free, *step.forced)]
        return self.best(np.zeros((1, max(places, default=-1) + 1))) is None


def fitting(groups: Sequence[Group], positions: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """[n]: whether sentences swapped at `positions` [n, m] (`count` for none) keep every group's range."""
    result = np.ones(len(positions), dtype=np.bool_)
    for members, low, high in groups:
        inside = np.zeros(count + 1, dtype=np.int64)
        inside[list(members)] = 1
        swaps = inside[positions].sum(axis=1)
        result &= (swaps >= low) & (swaps <= high)
    return result
