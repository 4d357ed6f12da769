"""Rounding of float64: what n operations can do to a number, and the sum of the greatest entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]

UNIT = 2.0**-53
GRID = 2.0**-64
"""Bounds of elements are rounded outward to multiples of this (FORMAT section 7)."""
SLOP = 1.0 + 2.0**-20
"""Covers the rounding of error bounds themselves: sums of up to 2**30 numbers that are none of them negative."""
TINY = 2.0**-200
"""More than all that underflows: fewer than 2**60 operations lose 2**-1074 each, times magnitudes below LARGEST."""
LARGEST = 2.0**400


def growth(operations: Array | float, unit: float = UNIT) -> Array:
    """(1 + u)**n - 1 <= n u / (1 - n u), the relative error of n operations; infinite when n u >= 1/2."""
    product = np.asarray(operations, dtype=np.float64) * unit
    return np.where(product < 0.5, product / np.where(product < 0.5, 1.0 - product, 1.0), np.inf) * SLOP


def top(values: Floats, k: int) -> Floats:
    """[n]: the sum of the k greatest of each column of `values` [m, n]."""
    if k < len(values):
        laid = np.ascontiguousarray(values.T)
        laid.partition(len(values) - k - 1, axis=1)
        return np.asarray(laid[:, len(values) - k :].sum(axis=1))
    return np.asarray(values.sum(axis=0))
