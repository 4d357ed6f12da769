"""Swaps that can lower some linear function most: the corners of the hull of a position's swaps and of no swap at all.

With words embedded in one or two dimensions, what a swap changes in any affine function is linear in a point of the
plane. A point has the least value of some linear function iff the directions from it to all others leave more than half
a turn free. In more dimensions every swap counts as a corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Embedding
from ..query import Query

Array = NDArray[Any]

SLACK = 1e-9
"""Of an angle: a swap that is nearly between others stays a corner."""


def corners(
    query: Query, positions: NDArray[np.int64], tokens: NDArray[np.int64], swaps: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """[P, C]: which of these swaps, -1 for none, a minimum over a position and its original word may need.

    `positions` and `tokens`: of the swaps of the query, by their numbers.
    """
    there = swaps >= 0
    points = plane(query, positions, tokens, swaps)
    if points is None or swaps.shape[1] < 2:
        return there
    return np.asarray(there & extreme(points))


def extreme(points: Array) -> NDArray[np.bool_]:
    """[P, C]: which of the points [P, C, 2] are corners of the hull of their row and 0, or on an edge."""
    points = np.concatenate([points, np.zeros((len(points), 1, 2))], axis=1)
    towards = points[:, None] - points[:, :, None]
    same = ~towards.any(axis=3)
    angles = np.arctan2(towards[..., 1], towards[..., 0])
    # What lies in the same place has no direction: it takes that of another.
    some = np.where(same, -np.pi, angles).max(axis=2, keepdims=True)
    angles = np.sort(np.where(same, some, angles), axis=2)
    turn = np.diff(angles, axis=2, append=angles[:, :, :1] + 2 * np.pi).max(axis=2)
    return np.asarray((turn > np.pi - SLACK)[:, :-1])


def plane(
    query: Query, positions: NDArray[np.int64], tokens: NDArray[np.int64], swaps: NDArray[np.int64]
) -> Array | None:
    """[P, C, 2]: where each swap leads from the original word; 0 for none; None for words of more dimensions."""
    network, original = query.network, np.array(query.space.original)
    tables = [node.layer.table for node in network.nodes if isinstance(node.layer, Embedding)]
    size = sum(table.shape[1] for table in tables)
    if size > 2:
        return None
    there = swaps >= 0
    points = np.zeros((*swaps.shape, 2))
    before = original[positions[swaps[there]]]
    steps = [table[tokens[swaps[there]]] - table[before] for table in tables]
    points[there, :size] = np.concatenate(steps, axis=1)
    return points
