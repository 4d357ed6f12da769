"""Points in few dimensions, sorted into a tree of boxes; every box holds consecutive points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PARTS = 4
"""Children of a box."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Box 0 holds all points; `order` are the points in the order of the boxes; `first` is a box's first child, or -1.

    The children of a box are boxes first .. first + PARTS - 1; some may be empty (start = stop).
    """

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    first: NDArray[np.int64]
    center: Array
    """[boxes, dimensions]."""
    radius: Array
    """[boxes, dimensions]: half the width, rounded up, of the smallest box around the points."""

    @classmethod
    def of(cls, points: Array, small: int) -> Boxes:
        """Split, at medians along the widest sides, until at most `small` points are in a box."""
        order = np.arange(len(points))
        spans, first = [(0, len(points))], [-1]
        at = 0
        while at < len(spans):
            start, stop = spans[at]
            if stop - start > small:
                first[at] = len(spans)
                for half in halves(points, order, start, stop):
                    for part in halves(points, order, *half):
                        spans.append(part)
                        first.append(-1)
            at += 1
        starts, stops = (np.array(ends, dtype=np.int64) for ends in zip(*spans, strict=True))
        low, high = np.zeros((len(spans), points.shape[1])), np.zeros((len(spans), points.shape[1]))
        for number, (start, stop) in enumerate(spans):
            if stop > start:
                inside = points[order[start:stop]]
                low[number], high[number] = inside.min(axis=0), inside.max(axis=0)
        center = (low + high) / 2
        radius = np.maximum(high - center, center - low) * (1.0 + 2.0**-40)
        return cls(order, starts, stops, np.array(first, dtype=np.int64), center, radius)

    def points(self, box: int) -> NDArray[np.int64]:
        return self.order[self.start[box] : self.stop[box]]

    def children(self, boxes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these boxes, one box after the other, without the empty ones."""
        found: NDArray[np.int64] = (self.first[boxes, None] + np.arange(PARTS)).reshape(-1)
        return np.asarray(found[self.start[found] < self.stop[found]])

    def level_of(self, count: int) -> NDArray[np.int64]:
        """The first level of at least so many boxes, with any smallest boxes above it."""
        inner, last = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        while len(inner) and len(inner) + len(last) < count:
            last = np.concatenate([last, inner[self.first[inner] < 0]])
            inner = self.children(inner[self.first[inner] >= 0])
        return np.concatenate([last, inner])

    def points_of(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[n, points] of [n, boxes]: the points in a marked box."""
        inner = np.flatnonzero(self.first >= 0)
        known = marked.copy()
        for box in inner.tolist():  # parents come before their children
            first = self.first[box]
            known[:, first : first + PARTS] |= known[:, box, None]
        return np.take(known, self.leaf_of_point, axis=1)

    @cached_property
    def leaf_of_point(self) -> NDArray[np.int64]:
        """[points]: the smallest box that each is in."""
        found = np.zeros(len(self.order), dtype=np.int64)
        for box in np.flatnonzero(self.first < 0).tolist():
            found[self.points(box)] = box
        return found


def halves(points: Array, order: Array, start: int, stop: int) -> list[tuple[int, int]]:
    """Sort these points along the side that is widest, and cut them in the middle."""
    if stop - start < 2:
        return [(start, stop), (stop, stop)]
    inside = points[order[start:stop]]
    side = int(np.ptp(inside, axis=0).argmax())
    order[start:stop] = order[start:stop][np.argsort(inside[:, side], kind="stable")]
    middle = (start + stop) // 2
    return [(start, middle), (middle, stop)]
