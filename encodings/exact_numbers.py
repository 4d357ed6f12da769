"""Exact numbers in arrays: float64 where that holds them, else Fractions; each calculation once per distinct pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import Indices

Numbers = NDArray[Any]
"""Exact numbers: float64, or objects that are Fractions."""


def exact(number: float | Fraction) -> Fraction:
    return number if isinstance(number, Fraction) else Fraction(number)


def exact_numbers(values: Sequence[Fraction]) -> Numbers:
    """As float64 if all of them are."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    try:
        rounded = [float(value) for value in values]
    except OverflowError:
        return found
    return np.array(rounded) if all(Fraction(r) == v for r, v in zip(rounded, values, strict=True)) else found


def is_all(numbers: Numbers, value: float) -> bool:
    if not any(numbers.strides) and numbers.size:  # a broadcast number
        return bool(numbers.flat[0] == value)
    return bool((numbers == value).all())


def ids(numbers: Numbers) -> Indices:
    """Equal where the numbers are."""
    if numbers.dtype == object:
        known: dict[Fraction, int] = {}
        return np.array([known.setdefault(number, len(known)) for number in numbers.tolist()], dtype=np.int64)
    if len(numbers) and is_all(numbers, numbers[0]):
        return np.zeros(len(numbers), dtype=np.int64)
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def distinct(numbers: Numbers) -> tuple[list[Fraction], Indices]:
    which = ids(numbers)
    _, first = np.unique(which, return_index=True)
    return [exact(number) for number in numbers[first].tolist()], which


def combined(function: Callable[..., Fraction], left: Numbers, right: Numbers) -> Numbers:
    """Element by element, each pair once."""
    (a, which_a), (b, which_b) = distinct(left), distinct(right)
    pairs, which = np.unique(which_a * len(b) + which_b, return_inverse=True)
    found = [function(a[pair // len(b)], b[pair % len(b)]) for pair in pairs.tolist()]
    return np.asarray(exact_numbers(found)[which.reshape(-1)])


def products(left: Numbers, right: Numbers) -> Numbers:
    for one, other in ((left, right), (right, left)):
        if is_all(one, 1.0):
            return other
        if is_all(one, 0.0):
            return one
    return combined(lambda a, b: a * b, left, right)


def quotients(left: Numbers, right: Numbers) -> Numbers:
    return left if is_all(right, 1.0) else combined(lambda a, b: a / b, left, right)


def in_order(which: Indices) -> tuple[Indices, Indices]:
    """The distinct numbers in the order in which they first come, and the place of each in it."""
    found, first, inverse = np.unique(which, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return found[order], place[inverse.reshape(-1)]


def distinct_rows(matrix: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    if not len(matrix):
        return matrix, np.zeros(0, dtype=np.int64)
    if matrix.shape[1] == 1:
        found, which = np.unique(matrix[:, 0], return_inverse=True)
        return found[:, None], which.reshape(-1)
    known: dict[bytes, int] = {}
    names = [known.setdefault(row.tobytes(), len(known)) for row in np.ascontiguousarray(matrix)]
    which = np.array(names, dtype=np.int64)
    return matrix[np.unique(which, return_index=True)[1]], which


def number_bytes(numbers: NDArray[Any]) -> tuple[int, Any]:
    numbers = numbers.ravel()
    if numbers.dtype == object:
        values = [exact(number) for number in numbers.tolist()]
        numbers = exact_numbers(values)
        if numbers.dtype == object:
            return 3, ",".join(f"{value.numerator:x}/{value.denominator:x}" for value in values).encode()
    if numbers.dtype != np.float32:
        with np.errstate(over="ignore"):
            single = numbers.astype(np.float32)
        if not np.array_equal(single, numbers):
            return 2, np.ascontiguousarray(without_signs(numbers), dtype="<f8").data
        numbers = single
    return 1, np.ascontiguousarray(without_signs(numbers), dtype="<f4").data


def without_signs(numbers: NDArray[Any]) -> NDArray[Any]:
    """0 for -0."""
    return np.asarray(numbers + numbers.dtype.type(0))
