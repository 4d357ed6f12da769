"""Products of matrices without rounding: the exact number as the sum of two float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BITS = 53
AT_ONCE = 1 << 22
"""Numbers of the left matrix."""


def multiplied(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """left right^T as high + low, and what is still missing, at most."""
    parts = max(AT_ONCE // max(left.shape[1], 1), 1)
    found = [_multiplied(left[start : start + parts], right) for start in range(0, max(len(left), 1), parts)]
    high, low, lost = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return high, low, lost


def _multiplied(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """By slices of so few bits that float64 holds the sums of their products."""
    bits = (BITS - max(left.shape[1] - 1, 1).bit_length()) // 2
    high = np.zeros((len(left), len(right)))
    low, lost = np.zeros_like(high), np.zeros_like(high)
    columns = list(sliced(right, bits))
    for rows in sliced(left, bits):
        for column in columns:
            high, rest = two_sum(high, rows @ column.T)
            low, rest = two_sum(low, rest)
            lost += np.abs(rest)
    high, low = two_sum(high, low)
    return high, low, lost


def sliced(values: Floats, bits: int) -> Iterator[Floats]:
    """Matrices that sum to this one, whose rows are whole multiples, up to 2^bits, of a power of two."""
    rest = values
    while rest.any():
        exponents = np.frexp(np.abs(rest).max(axis=1, keepdims=True))[1] - bits
        part = np.ldexp(np.rint(np.ldexp(rest, -exponents)), exponents)
        yield part
        rest = rest - part


def two_sum(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """The sum and what rounding took from it."""
    total = left + right
    back = total - left
    return total, (left - (total - back)) + (right - back)
