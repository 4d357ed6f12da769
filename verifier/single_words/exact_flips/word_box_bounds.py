"""Bounds of a margin with one hidden layer over whole boxes of words, of which one is put into a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .word_boxes import Boxes

Array = NDArray[Any]
WIDER = np.float32(1e-20)
"""Added to the half width of every interval, so that one can divide by it."""


@dataclass(frozen=True, eq=False)
class Form:
    """A margin as sum of weights * relu(y) + linear part; state vectors hold all y, then the linear part."""

    weights: Array
    """Ascending: first the `falling` negative ones."""
    matrix: Array
    """[width, N + 1]: from the cut to states."""
    constant: float

    @property
    def falling(self) -> int:
        return int((self.weights < 0).sum())

    def states(self, cuts: Array) -> Array:
        states = cuts @ self.matrix
        states[:, -1] += self.constant
        return np.asarray(states)


class BoxBounds:
    """Bounds of margin(x) = sum of w relu(y) + linear part, all y and the linear part affine in a word's x, on boxes.

    On the box |x - c| <= r each y lies within s = |steps| r of its value at c, written y too, and with sign = 1 or -1

        sign * margin(x) >= value + g (x - c) >= value - |g| r

    Terms with sign * w > 0 are bounded by the tangent of relu at y. The others, where relu may have a kink in
    [y - s, y + s], by its chord there, which is (s - |y|) / 2 above relu at c and has the slope (y + s) / (2 s).
    """

    def __init__(self, boxes: Boxes, steps: Array, form: Form) -> None:
        self.center, self.radius = boxes.center.astype(np.float32), boxes.radius.astype(np.float32)
        self.steps = steps.astype(np.float32)
        self.absolute = np.abs(self.steps[:, :-1])
        self.weights = form.weights.astype(np.float32)
        self.directions = np.ascontiguousarray(self.steps[:, :-1].T * self.weights[:, None])
        parts = slice(0, form.falling), slice(form.falling, len(form.weights))
        self.chords, self.tangents = {1: parts[0], -1: parts[1]}, {1: parts[1], -1: parts[0]}
        self.halved = np.abs(self.weights) / 2

    def at_centers(self, states: Array, boxes: Array) -> tuple[Array, Array]:
        """[n, N + 1] and [n]: the state and the margin at the center of each box."""
        center = self.center[boxes] @ self.steps
        center += states
        return center, self.margins(center)

    def margins(self, states: Array) -> Array:
        return np.asarray(np.maximum(states[:, :-1], np.float32(0)) @ self.weights + states[:, -1])

    def linear(self, sign: int, center: Array, margins: Array, boxes: Array) -> tuple[Array, Array]:
        """The value [n] and g [n, dimensions] of the bound of sign * margin."""
        chords, tangents = self.chords[sign], self.tangents[sign]
        y = center[:, chords]
        spread = self.radius[boxes] @ self.absolute[:, chords]
        spread += WIDER
        above = np.abs(y)
        np.subtract(spread, above, out=above)
        np.maximum(above, np.float32(0), out=above)
        value = np.float32(sign) * margins - above @ self.halved[chords]
        with np.errstate(over="ignore"):  # an infinite slope is clipped as well
            slopes = np.divide(y, spread, out=above)
        slopes += np.float32(1)
        slopes *= np.float32(0.5)
        np.clip(slopes, np.float32(0), np.float32(1), out=slopes)
        gradient = slopes @ self.directions[chords]
        gradient += (center[:, tangents] > 0).astype(np.float32) @ self.directions[tangents]
        gradient += self.steps[:, -1]
        gradient *= np.float32(sign)
        return value, gradient

    def least(self, value: Array, gradient: Array, boxes: Array) -> Array:
        """[n]: a lower bound of sign * margin on the whole box."""
        np.abs(gradient, out=(size := np.empty_like(gradient)))
        size *= self.radius[boxes]
        return np.asarray(value - size.sum(axis=1))
