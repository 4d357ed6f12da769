"""Linear bounds of the nonlinear layers between bounds of their inputs, with the slopes a certificate checker uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pools.counted_swaps import TIE, first_greatest
from .substitution import Coefficients

Array = NDArray[Any]

SLOPE_STEPS = 2.0**16
"""Slopes of upper lines are multiples of 1 / SLOPE_STEPS."""
BELOW_CHORD = 0.7
"""Measured: the best lower slopes of neurons with a negative coefficient lie well below the chord's."""


def chord_slope(slope: float, low: Array, high: Array, steps: float = 0.0) -> Array:
    """Of y = max(x, slope x) for low <= x <= high: 1 or slope where that is stable, else of the line through both ends.

    With `steps` that line's is a multiple of 1 / steps, the nearest.
    """
    unstable = (low < 0) & (high > 0)
    width = np.where(unstable, high - low, 1.0)
    chord = np.floor(steps * (high - slope * low) / width + 0.5) / steps if steps else (high - slope * low) / width
    return np.where(unstable, chord, np.where(low >= 0, 1.0, slope))


def rectifier_lines(
    slope: float, low: Array, high: Array, steps: float = SLOPE_STEPS, chosen: Array | None = None
) -> tuple[Array, Array, Array]:
    """Lower line a x and upper line s x + t of y = max(x, slope x) for low <= x <= high, as arrays a, s, t.

    Stable: y = x, or y = slope x. Else a is chosen, or (where that is below 0) 1 if high > -low, else slope; s is the
    chord's slope, and t = max((slope - s) low, (1 - s) high), since y - s x is convex.
    """
    unstable = (low < 0) & (high > 0)
    upper = chord_slope(slope, low, high, steps)
    usual = np.where(high > -low * (1.0 + TIE), 1.0, slope)
    lower = np.where(unstable, usual if chosen is None else np.where(chosen >= 0, chosen, usual), upper)
    raised = np.where(unstable, np.maximum((slope - upper) * low, (1.0 - upper) * high), 0.0)
    return lower, upper, raised


def replaced_rectifier(slope: float, low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """c y >= (c a or c s) x + min(c, 0) t, by the sign of c; [1, R, size] for all regions alike, or [n, R, size]."""
    lower, upper, raised = rectifier_lines(slope, low, high)
    up, down = np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)
    passed = up * lower[:, None]
    passed += down * upper[:, None]
    if len(coefficients) == 1:
        return passed, raised @ down[0].T
    return passed, (down @ raised[:, :, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class Picked:
    """Of y = max over w of x_w: the first x_w with the greatest low, whether no other can exceed it, the greatest high.

    [n, out] each.
    """

    best: Array
    certain: Array
    highest: Array


def picked(low: Array, high: Array) -> Picked:
    """low and high [n, out, w]."""
    size = np.maximum(np.abs(low).max(axis=-1), np.abs(high).max(axis=-1))
    best, top = first_greatest(low, size), high.argmax(axis=-1)
    chosen = np.take_along_axis(low, best[..., None], axis=-1)[..., 0]
    highest = np.take_along_axis(high, top[..., None], axis=-1)[..., 0]
    others = highest.copy()
    n, element = np.nonzero(best == top)  # of the others, another one is the highest
    rest = high[n, element]
    rest[np.arange(len(n)), best[n, element]] = -np.inf
    others[n, element] = rest.max(axis=-1, initial=-np.inf)
    return Picked(best, others <= chosen + TIE * size, highest)


def replaced_maximum(low: Array, high: Array, coefficients: Array) -> tuple[Coefficients, Array]:
    """y = max over w of x_w, low and high [n, out, w]: the first x_w with the greatest low bounds y from below.

    From above: that same element when no other can exceed it, else the greatest high.
    """
    found = picked(low, high)
    return replaced_by(found, found.highest, low.shape[2], coefficients)


def replaced_by(
    found: Picked, above: Array, width: int, coefficients: Array, below: Array | None = None
) -> tuple[Coefficients, Array]:
    """The same, with other constants [n, out] above, and below, where these are no NaN."""
    coefficients = np.broadcast_to(coefficients, (len(above), *coefficients.shape[1:]))
    alone = np.ones(above.shape, dtype=bool) if below is None else np.isnan(below)
    follows = ((coefficients >= 0) & alone[:, None, :]) | found.certain[:, None, :]
    side = above[:, None, :] if below is None else np.where(coefficients >= 0, below[:, None, :], above[:, None, :])
    constant = np.where(follows, 0.0, coefficients * side).sum(axis=-1)
    elements = found.best + np.arange(above.shape[1]) * width
    columns = np.unique(elements[alone | found.certain]) if below is not None else np.unique(elements)
    passed = np.zeros((*coefficients.shape[:-1], max(1, len(columns))))
    n, function, element = np.nonzero(follows)
    passed[n, function, np.searchsorted(columns, elements[n, element])] = coefficients[n, function, element]
    columns = columns if len(columns) else np.zeros(1, dtype=np.int64)
    return Coefficients(passed, columns), constant
