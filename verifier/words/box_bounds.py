"""Bounds of a margin with one hidden layer over whole boxes of words, of which one is put into a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.incremental import Differences
from swapproof.encodings.query import Query
from swapproof.encodings.selection import Places
from swapproof.encodings.shallow import shallow_margin
from swapproof.encodings.word_boxes import Boxes

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Form:
    """A margin as sum of weights * relu(y) + linear part; state vectors hold all y, then the linear part."""

    weights: Array
    matrix: Array
    """[width, N + 1]: from the cut to states."""
    constant: float

    def states(self, cuts: Array) -> Array:
        states = cuts @ self.matrix
        states[:, -1] += self.constant
        return np.asarray(states)


def shallow_form(query: Query, rival: int) -> Form:
    """`shallow_margin` read off at the unit vectors of the cut."""
    width = sum(query.network.nodes[index].size for index in query.network.cut)
    numbers = np.arange(width)
    units = Differences(query, numbers, numbers, np.zeros(width), np.eye(width))
    shallow = shallow_margin(Places(units, numbers[None]), rival)
    return Form(shallow.weights, shallow.rows[0], float(shallow.base[-1]))


class BoxBounds:
    """Bounds of sum of w relu(y) + linear part, y and the linear part affine in a word's coordinates, on boxes.

    On a box each y lies in [center - radius, center + radius]. Where it has one sign relu is linear; else
    relu(y) <= h (y - l) / (h - l), and relu(y) >= y or 0. The linear function that results has its least value at a
    corner of the box.
    """

    def __init__(self, boxes: Boxes, steps: Array, weights: Array) -> None:
        self.centers = (boxes.center @ steps).astype(np.float32)
        self.spreads = (boxes.radius @ np.abs(steps)).astype(np.float32)
        self.radius = boxes.radius.astype(np.float32)
        self.steps = steps.astype(np.float32)
        self.weights = weights.astype(np.float32)
        self.directions = np.ascontiguousarray(self.steps[:, :-1].T)
        self.concave = {sign: sign * weights < 0 for sign in (1, -1)}

    def signs(self, states: Array, boxes: Array, guard: Array) -> NDArray[np.int8]:
        """[n]: 1 where the least margin exceeds the guard, -1 where the greatest is below minus it, else 0.

        The margin at the center says which of the two to try.
        """
        center = states + self.centers[boxes]
        margins = np.maximum(center[:, :-1], np.float32(0)) @ self.weights + center[:, -1]
        result = np.zeros(len(states), dtype=np.int8)
        for sign in (1, -1):
            some = np.flatnonzero(sign * margins > guard)
            least = self.least(sign, center[some], boxes[some])
            result[some[least > guard[some]]] = sign
        return result

    def least(self, sign: int, center: Array, boxes: Array) -> Array:
        """[n]: a lower bound of sign * margin."""
        y, spread = center[:, :-1], self.spreads[boxes, :-1]
        low, high = y - spread, y + spread
        unstable = (low < 0) & (high > 0)
        slopes = (y > 0).astype(np.float32)  # right where y has one sign, and sound below relu where it has not
        chord = unstable & self.concave[sign]
        np.divide(high, high - low, out=slopes, where=chord)
        slopes *= np.float32(sign) * self.weights
        raised = np.where(chord, slopes * low, np.float32(0)).sum(axis=1)
        gradient = slopes @ self.directions + np.float32(sign) * self.steps[:, -1]
        reach = (np.abs(gradient) * self.radius[boxes]).sum(axis=1)
        return np.asarray((slopes * y).sum(axis=1) + np.float32(sign) * center[:, -1] - raised - reach)
