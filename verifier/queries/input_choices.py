"""Inputs that must lie near one of two ends, and bounds of neurons: what the least values of an atom's parts say.

An atom is f(x) = c + sum of g_i(x_i) + sum of v_n relu(z_n(x)) <= 0: g_i gathers what reads the input i alone, n counts
the other neurons of the first layer. With m the least values of all parts added up and s = -m, every part is at most s
above its own least value: x_i is where g_i is so low, which may be at two places with a gap between them, and z_n is
bounded above where v_n > 0, below where v_n < 0. A formula of logic written as a network says everything so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swapproof.encodings.bounds.normal_form import UNIT
from swapproof.encodings.network import Floats, Indices

from .query_bounds import SLOP, TINY, QueryBounds, Truths
from .question import Question

ROOM = 2.0**-40
"""What is granted to the rounding of everything here, in parts of the numbers' sizes."""


@dataclass(frozen=True, eq=False)
class Choices:
    """`inputs` [c] lie at most at `left` or at least at `right`, and are split `at` some point between them.

    Of every input with the conjunction, rows r are above 0 where `base`[r] + sum of `lefts`[r, i] over inputs on the
    left + sum of `rights`[r, i] over those on the right is; all these are at least 0. `neurons` [r] are what a row
    bounds above (-1: an atom itself).
    """

    inputs: Indices
    left: Floats
    right: Floats
    at: Floats
    base: Floats
    lefts: Floats
    rights: Floats
    matrix: Floats
    """[r, c]: what rows read of these inputs."""
    neurons: Indices
    bounding: Truths
    """[atoms]: whether an atom bounds neurons."""


def choices(question: Question, bounds: QueryBounds) -> Choices | None:
    """None where no input has a choice."""
    atoms, layer = question.atoms, bounds.stack.layers[0] if bounds.depth else None
    if layer is None or bounds.depth > 1 or not len(atoms):
        return None
    weight, low, high = layer.weights.get(0), question.low, question.high
    if weight is None:
        return None
    fan = (weight != 0).sum(axis=1)
    owner = np.where(fan == 1, np.abs(weight).argmax(axis=1), -1)
    least, greatest = bounds.whole.least[0][0], bounds.whole.greatest[0][0]
    straight = atoms.weights.get(0, np.zeros((len(atoms), len(low))))
    bent = atoms.weights.get(1, np.zeros((len(atoms), len(layer))))
    size = bounds.size(atoms)
    error = (ROOM + SLOP * atoms.roundings * UNIT) * size + np.abs(bent) @ bounds.errors[1] + TINY
    shared = np.flatnonzero(owner < 0)
    found: dict[int, tuple[float, float, float]] = {}
    rows: list[tuple[Floats, float, int]] = []
    for k in range(len(atoms)):
        parts = np.where(bent[k] > 0, np.maximum(least, 0.0), np.maximum(greatest, 0.0)) * bent[k]
        shapes = {
            i: Shape(low[i], high[i], straight[k, i], bent[k, own], weight[own, i], layer.bias[own])
            for i in range(len(low))
            if (own := np.flatnonzero((owner == i) & (bent[k] != 0))).size or straight[k, i]
        }
        spare = error[k] - (atoms.bias[k] + parts[shared].sum() + sum(shape.least for shape in shapes.values()))
        if spare < 0:  # the atom cannot hold: any search sees that
            return None
        for n in shared[bent[k, shared] != 0]:
            reach = (parts[n] + spare) / bent[k, n]
            if bent[k, n] > 0 and reach < greatest[n]:
                rows.append((weight[n], layer.bias[n] - reach, int(n)))
            if bent[k, n] < 0 and reach > max(least[n], 0.0):
                rows.append((-weight[n], reach - layer.bias[n], int(n)))
        if not bent[k].any():
            rows.append((straight[k], atoms.bias[k] - error[k], -1))
        for i, shape in shapes.items():
            ends = shape.ends(spare)
            unit = np.arange(len(low)) == i
            rows += [(sign * unit, -sign * end, -1) for sign, end in zip((-1.0, 1.0), ends, strict=True)]
            gap = shape.gap(spare)
            if gap is not None and (i not in found or gap[1] - gap[0] > found[i][1] - found[i][0]):
                found[i] = gap
    if not found or not rows:
        return None
    inputs = np.array(sorted(found))
    left, right, at = (np.array([found[i][part] for i in inputs.tolist()]) for part in range(3))
    matrix, constant = np.array([row for row, _, _ in rows]), np.array([row for _, row, _ in rows])
    up, down = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    base = constant + up @ low + down @ high
    base -= ROOM * (np.abs(constant) + np.abs(matrix) @ np.maximum(np.abs(low), np.abs(high))) + TINY
    neurons = np.array([row for _, _, row in rows])
    base -= np.where(neurons < 0, 0.0, 2 * bounds.errors[1][neurons])
    rights = up[:, inputs] * np.maximum(right - low[inputs], 0.0)
    lefts = -down[:, inputs] * np.maximum(high[inputs] - left, 0.0)
    bounding = np.asarray(bent[:, neurons[neurons >= 0]].any(axis=1))
    return Choices(inputs, left, right, at, base, lefts, rights, matrix[:, inputs], neurons, bounding)


class Shape:
    """g(x) = a x + sum of v relu(w x + b) for low <= x <= high, by its values where it bends."""

    def __init__(self, low: float, high: float, a: float, v: Floats, w: Floats, b: Floats) -> None:
        kinks = -b / w
        self.points = np.unique(np.concatenate([[low, high], kinks[(kinks > low) & (kinks < high)]]))
        bent = np.maximum(np.outer(self.points, w) + b, 0.0)
        self.values = a * self.points + bent @ v
        self.least = float(self.values.min())
        steepest = abs(a) + float(np.abs(v * w).sum())
        self.room = ROOM * (steepest * max(abs(low), abs(high)) + float(np.abs(v * b).sum()))
        """Where the function may lie below its values at neighbouring points, and these be off."""

    def ends(self, spare: float) -> tuple[float, float]:
        """Between which g is at most `spare` above its least value."""
        over = self.values - (self.least + spare + 2 * self.room)
        inside = np.flatnonzero(over <= 0)
        first, last = int(inside[0]), int(inside[-1])
        low = self.crossing(first, first - 1, over) if first else float(self.points[0])
        high = self.crossing(last, last + 1, over) if last + 1 < len(over) else float(self.points[-1])
        return low, high

    def gap(self, spare: float) -> tuple[float, float, float] | None:
        """The widest interval inside on which g is more than `spare` above its least value, and a point in it."""
        over = self.values - (self.least + spare + 2 * self.room)
        best: tuple[float, float, float] | None = None
        place, last = 0, len(self.points) - 1
        while place < last:
            if over[place] > 0 or over[place + 1] <= 0:
                place += 1
                continue
            end = place + 1
            while end < last and over[end] > 0:
                end += 1
            if over[end] > 0:
                break
            left, right = self.crossing(place, place + 1, over), self.crossing(end, end - 1, over)
            width = right - left
            slack = ROOM * (abs(left) + abs(right)) + ROOM * width
            top = float(self.points[place + 1 : end][over[place + 1 : end].argmax()])
            if width > 4 * slack and (best is None or width > best[1] - best[0]):
                best = left + slack, right - slack, top
            place = end
        return best

    def crossing(self, inner: int, outer: int, over: Floats) -> float:
        """Where the line from a point at most 0 to one above meets 0."""
        share = -over[inner] / (over[outer] - over[inner])
        return float(self.points[inner] + share * (self.points[outer] - self.points[inner]))
