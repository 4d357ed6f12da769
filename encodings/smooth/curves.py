"""The elementary functions of smooth layers on arrays of floats, in the float type that they are given.

Each is within a few units of its type: nothing is proved with these values, whose errors nobody has bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats, Function

Array = NDArray[Any]

STEPS = 64
"""Points to a unit at which the error function is known."""
EDGE = 6
"""From here on the error function is 1 in float64."""
TERMS = 9


def exponential(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x))


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), exactly 0 where exp(-x) is beyond the float type."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def logistic_to(x: Array, out: Array) -> None:
    """The same, to a few units of 1: (1 + tanh(x / 2)) / 2, of which numpy is quicker."""
    np.multiply(x, x.dtype.type(0.5), out=out)
    np.tanh(out, out=out)
    out *= x.dtype.type(0.5)
    out += x.dtype.type(0.5)


def error_function(x: Array) -> Array:
    """erf(c + d) = erf(c) + 2 / sqrt(pi) exp(-c^2) (d - H1(c) d^2/2! + H2(c) d^3/3! - ...), c the nearest point.

    H1 = 2 c, H(n+1) = 2 c H(n) - 2 n H(n-1), the polynomials of Hermite.
    """
    size = np.clip(np.abs(x.astype(np.float64)), 0, EDGE)  # NaN stays
    place = np.nan_to_num(np.rint(size * STEPS)).astype(np.int64)
    point, rest = place / STEPS, size - place / STEPS
    before, now = np.zeros_like(point), np.ones_like(point)
    power, total = rest.copy(), rest.copy()
    for n in range(1, TERMS):
        before, now = now, 2 * point * now - 2 * (n - 1) * before
        power = power * -rest / (n + 1)
        total += now * power
    found = known_points()[place] + 2 / math.sqrt(math.pi) * np.exp(-point * point) * total
    return np.asarray(np.copysign(found, x), dtype=x.dtype)


@lru_cache(maxsize=1)
def known_points() -> Floats:
    return np.array([math.erf(place / STEPS) for place in range(EDGE * STEPS + 1)])


def inverse(x: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(1 / x)


def root(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(x))


CURVES: Mapping[Function, Callable[[Array], Array]] = {
    "exp": exponential,
    "tanh": np.tanh,
    "sigmoid": logistic,
    "erf": error_function,
    "reciprocal": inverse,
    "sqrt": root,
}
