"""Sums of the greatest numbers: of all, of those from a place on, or without one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FEW, WIDE = 8, 256
"""So few of rows of so many numbers are found sooner one by one than by sorting."""


def greatest(best: Array, k: int) -> Array:
    """[...]: the sum of the k greatest of `best` [..., P], which are none of them negative."""
    count = best.shape[-1]
    if k <= 0 or count == 0:
        return np.zeros(best.shape[:-1])
    if k < count:
        best = np.partition(best, count - k, axis=-1)[..., count - k :]
    return np.asarray(best.sum(axis=-1))


def sums_of_greatest(values: Array, k: int) -> Array:
    """[min(k, n) + 1, ...]: at j the sum of the j greatest of `values` [n, ...], none of them negative."""
    count = len(values)
    k = min(k, count)
    if k == 0:
        return np.zeros((1, *values.shape[1:]))
    if k <= FEW and values[0].size >= WIDE:
        return streamed(values, k)
    if k < count:
        values = np.partition(values, count - k, axis=0)[count - k :]
    sums = np.zeros((k + 1, *values.shape[1:]), dtype=values.dtype)
    np.cumsum(np.sort(values, axis=0)[::-1], axis=0, out=sums[1:])
    return sums


def streamed(values: Array, k: int) -> Array:
    """The same, each row of `values` sorted into the greatest so far: for few of many."""
    sums: Array = np.zeros((k + 1, *values.shape[1:]), dtype=values.dtype)
    for row in values:
        for best in sums[1:]:
            smaller = np.minimum(best, row)
            np.maximum(best, row, out=best)
            row = smaller
    return np.cumsum(sums, axis=0, out=sums)


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
