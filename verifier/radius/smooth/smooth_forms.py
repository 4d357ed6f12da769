"""Forms of a smooth network in float64: what the checker of balls will find, near enough to look for radii with.

In a ball around c an element x is  f + g d + r,  |r| <= e,  d being the input's way from c in units of the ball's
half-widths: ||d|| <= 1. The rules are those of FORMAT.md, section 16.6, without their roundings; nothing here proves
anything. `slopes=False` has slopes of what is affine in the input alone, so that the rest is intervals, to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swapproof.encodings.canonical import Form
from swapproof.encodings.canonical_layers import PADDING, Bends, Curved, Greatest, Inputs, Pairs, Rows, Step
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Floats, Function, Indices
from swapproof.encodings.smooth.curves import CURVES

from ..moving_ball import SMALLEST, Ball

MOST_NUMBERS = 1 << 27
"""Of slopes of all elements together: a gigabyte."""
POINTS = 64
"""Evaluated at a time."""
TINY = 1e-9
"""Half-widths of a ball in which slopes are derivatives."""
DERIVATIVES: dict[Function, Callable[[Floats, Floats], Floats]] = {
    "exp": lambda x, y: y,
    "tanh": lambda x, y: 1 - y * y,
    "sigmoid": lambda x, y: y * (1 - y),
    "erf": lambda x, y: 2 / np.sqrt(np.pi) * np.exp(-x * x),
    "reciprocal": lambda x, y: -y * y,
    "sqrt": lambda x, y: 0.5 / np.maximum(y, SMALLEST),
}
"""Of f at x, given y = f(x)."""


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows of an affine layer that read one list."""

    rows: Indices
    read: Indices
    weights: Floats
    sizes: Floats
    """Magnitudes of the weights."""
    bias: Floats


@dataclass(frozen=True, eq=False)
class MovingLines:
    """Of lines the part that moves, by rows of forms; the rest is a number."""

    rows: Indices
    read: Indices
    weights: Floats
    sizes: Floats
    fixed: Floats


@dataclass(frozen=True, eq=False)
class SmoothNetwork:
    """The canonical network in float64."""

    constants: Floats
    steps: tuple[Step, ...]
    lines: dict[int, tuple[Lines, ...]]
    starts: Indices
    logits: Indices

    @classmethod
    def of(cls, form: Form) -> SmoothNetwork:
        sizes = [len(form.constants), *(step.size for step in form.steps)]
        lines = {at: lines_of(step) for at, step in enumerate(form.steps) if isinstance(step, Rows)}
        return cls(form.constants.astype(np.float64), form.steps, lines, np.cumsum(sizes), form.logits)

    @property
    def elements(self) -> int:
        return int(self.starts[-1])

    def values(self, inputs: Floats) -> Floats:
        """[elements], or [n, elements] of inputs [n, ...]."""
        found = np.zeros((*inputs.shape[:-1], self.elements))
        found[..., : len(self.constants)] = self.constants
        for at, step in enumerate(self.steps):
            part = found[..., self.starts[at] : self.starts[at + 1]]
            match step:
                case Inputs():
                    part[...] = inputs
                case Rows():
                    for each in self.lines[at]:
                        part[..., each.rows] = found[..., each.read] @ each.weights.T + each.bias
                case Bends(slope, read):
                    part[...] = np.maximum(found[..., read], 0) + slope * np.minimum(found[..., read], 0)
                case Greatest(windows):
                    part[...] = found[..., windows].max(axis=-1)
                case Pairs(read):
                    part[...] = found[..., read[:, 0]] * found[..., read[:, 1]]
                case Curved(function, read):
                    part[...] = CURVES[function](found[..., read])
                case _:
                    raise Unsupported("a layer without forms")
        return found

    def difference(self, label: int, rival: int) -> tuple[dict[int, float], float]:
        """z_label - z_rival through affine layers, down to elements of others, and a number."""
        function = {int(self.logits[label]): 1.0}
        other = int(self.logits[rival])
        function[other] = function.get(other, 0.0) - 1.0
        total, left = 0.0, {}
        while function:
            top = max(function)
            c = function.pop(top)
            at = int(np.searchsorted(self.starts, top, side="right")) - 1
            if at < 0 or not isinstance(self.steps[at], Rows):
                left[top] = c
                continue
            place = top - int(self.starts[at])
            for each in self.lines[at]:
                (met,) = np.nonzero(each.rows == place)
                if len(met):
                    total += c * float(each.bias[met[0]])
                    for element, w in zip(each.read.tolist(), each.weights[met[0]].tolist(), strict=True):
                        function[element] = function.get(element, 0.0) + c * w
        return left, total

    @property
    def inputs(self) -> slice:
        return slice(int(self.starts[0]), int(self.starts[1]))

    def moving(self, free: Indices) -> list[Indices]:
        """Of each layer the places of elements that are computed from these inputs."""
        moves = np.zeros(self.elements, dtype=bool)
        found: list[Indices] = []
        for at, step in enumerate(self.steps):
            part = moves[self.starts[at] : self.starts[at + 1]]
            match step:
                case Inputs():
                    part[free] = True
                case Rows():
                    for each in self.lines[at]:
                        part[each.rows] = moves[each.read].any()
                case Greatest(windows):
                    part[:] = moves[windows].any(axis=1)
                case Pairs(read):
                    part[:] = moves[read].any(axis=1)
                case Bends(_, read) | Curved(_, read):
                    part[:] = moves[read]
            found.append(np.flatnonzero(part))
        return found


def lines_of(step: Rows) -> tuple[Lines, ...]:
    order = np.argsort(step.list_of, kind="stable")
    cuts = np.flatnonzero(np.diff(step.list_of[order])) + 1
    bias = np.asarray(step.bias, dtype=np.float64)
    matrices: dict[bytes, tuple[Floats, Floats]] = {}
    found = []
    for rows in np.split(order, cuts):
        read = step.lists[step.list_of[rows[0]]]
        key = step.weights_of[rows].tobytes()
        if key not in matrices:
            matrix = np.array([step.weights[at].astype(np.float64) for at in step.weights_of[rows]])
            matrices[key] = matrix, np.abs(matrix)
        found.append(Lines(rows, read[read != PADDING], *matrices[key], bias[rows]))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Forms:
    """Of some elements: f [n], g [n, inputs] and e [n]."""

    f: Floats
    g: Floats
    e: Floats


@dataclass(eq=False)
class BallForms:
    """Forms over balls of one place, which differ in their radius; `values` are those of all elements at the center."""

    network: SmoothNetwork
    values: Floats
    free: Indices
    norm: str
    slopes: bool = True

    def __post_init__(self) -> None:
        self.places = self.network.moving(self.free)
        count = sum(map(len, self.places))
        if count * len(self.free) > MOST_NUMBERS:
            raise Unsupported("too many numbers depend on these words for a bound; let fewer words move")
        self.row = np.full(self.network.elements, -1)
        """Of the moving elements: their place among themselves."""
        first = 0
        for start, places in zip(self.network.starts, self.places, strict=False):
            self.row[start + places] = np.arange(first, first + len(places))
            first += len(places)
        self.count = first
        self.lines = {
            at: [each for each in lines if (self.row[each.read] >= 0).any()] for at, lines in self.network.lines.items()
        }
        self.cost = len(self.free) + sum(each.weights.size for lines in self.lines.values() for each in lines)

    def reach(self, g: Floats) -> Floats:
        return np.asarray(np.abs(g).sum(axis=-1) if self.norm == "linf" else np.sqrt((g * g).sum(axis=-1)))

    def of(self, half: Floats) -> Forms:
        """Of all moving elements, over the ball of these half-widths; e is infinite where nothing is known."""
        inputs = len(self.free)
        found = Forms(np.zeros(self.count), np.zeros((self.count, inputs)), np.zeros(self.count))
        with np.errstate(all="ignore"):
            for at, step in enumerate(self.network.steps):
                places = self.places[at]
                if not len(places):
                    continue
                here = self.row[self.network.starts[at] + places]
                f, g, e = self.rule(found, at, step, places, half)
                if not self.slopes and not isinstance(step, Inputs | Rows):
                    g, e = np.zeros_like(g), e + self.reach(g)
                found.f[here], found.g[here], found.e[here] = f, g, e
        return found

    def logits(self, points: Floats) -> Floats:
        """[n, classes], with these numbers [n, inputs] where the center was; all else as it was found there."""
        network = self.network
        found: list[Floats] = []
        for first in range(0, len(points), POINTS):
            part = points[first : first + POINTS]
            every = np.repeat(self.values[None], len(part), axis=0)
            for at, step in enumerate(network.steps):
                places, start = self.places[at], network.starts[at]
                if not len(places):
                    continue
                here = start + places
                match step:
                    case Inputs():
                        every[:, here] = part
                    case Rows():
                        for each in self.lines[at]:
                            every[:, start + each.rows] = every[:, each.read] @ each.weights.T + each.bias
                    case Bends(slope, read):
                        x = every[:, read[places]]
                        every[:, here] = np.maximum(x, 0) + slope * np.minimum(x, 0)
                    case Greatest(windows):
                        every[:, here] = every[:, windows[places]].max(axis=-1)
                    case Pairs(read):
                        every[:, here] = every[:, read[places, 0]] * every[:, read[places, 1]]
                    case Curved(function, read):
                        every[:, here] = CURVES[function](every[:, read[places]])
            found.append(every[:, network.logits])
        return np.concatenate(found)

    def gradient(self, label: int, rival: int, at: Floats | None = None) -> Floats:
        """Of the margin, in the inputs that move; at the center, or where these are `at`."""
        here = self
        if at is not None:
            # Of other elements that move no value is read.
            here = copy(self)
            here.values = self.values.copy()
            here.values[self.network.inputs][self.free] = at
        found = here.of(np.full(len(self.free), TINY))
        total = np.zeros(len(self.free))
        for element, c in self.network.difference(label, rival)[0].items():
            if here.row[element] >= 0:
                total += c * found.g[here.row[element]]
        return total / TINY

    def read(self, found: Forms, elements: Indices) -> tuple[Floats, Floats, Floats]:
        """Also of elements that do not move."""
        rows = self.row[elements]
        moves = rows >= 0
        f = np.where(moves, found.f[rows], self.values[elements])
        return f, np.where(moves[:, None], found.g[rows], 0.0), np.where(moves, found.e[rows], 0.0)

    def rule(self, found: Forms, at: int, step: Step, places: Indices, half: Floats) -> tuple[Floats, Floats, Floats]:
        match step:
            case Inputs():
                return self.values[self.network.starts[at] + places], np.diag(half), np.zeros(len(places))
            case Rows():
                return self.affine(found, at, places)
            case Bends(slope, read):
                return self.bent(*self.read(found, read[places]), slope)
            case Greatest(windows):
                return self.greatest(found, windows[places])
            case Pairs(read):
                return self.product(found, read[places])
            case Curved(function, read):
                return self.curved(*self.read(found, read[places]), function)
        raise Unsupported("a layer without forms")

    @cached_property
    def moving_lines(self) -> dict[int, list[MovingLines]]:
        found: dict[int, list[MovingLines]] = {}
        for at, lines in self.lines.items():
            found[at] = []
            for each in lines:
                rows = self.row[each.read]
                (here,) = np.nonzero(rows >= 0)
                fixed = each.bias
                if len(here) < len(rows):
                    other = np.delete(each.read, here)
                    fixed = np.delete(each.weights, here, axis=1) @ self.values[other] + each.bias
                # A slice is no copy.
                part = slice(here[0], here[-1] + 1) if here[-1] - here[0] + 1 == len(here) else here
                found[at].append(MovingLines(each.rows, rows[here], each.weights[:, part], each.sizes[:, part], fixed))
        return found

    def affine(self, found: Forms, at: int, places: Indices) -> tuple[Floats, Floats, Floats]:
        network, inputs = self.network, len(self.free)
        size = int(network.starts[at + 1] - network.starts[at])
        f, g, e = np.zeros(size), np.zeros((size, inputs)), np.zeros(size)
        for each in self.moving_lines[at]:
            f[each.rows] = each.weights @ found.f[each.read] + each.fixed
            g[each.rows] = each.weights @ found.g[each.read]
            e[each.rows] = each.sizes @ found.e[each.read]
        return f[places], g[places], e[places]

    def bent(self, f: Floats, g: Floats, e: Floats, slope: float) -> tuple[Floats, Floats, Floats]:
        width = self.reach(g) + e
        low, high = f - width, f + width
        a = np.where(low >= 0, 1.0, np.where(high <= 0, slope, (high - slope * low) / (high - low)))
        over = np.where((low < 0) & (high > 0), np.maximum((slope - a) * low, (1 - a) * high), 0.0)
        return a * f + over / 2, a[:, None] * g, a * e + over / 2

    def greatest(self, found: Forms, windows: Indices) -> tuple[Floats, Floats, Floats]:
        """The one that is greatest at the center, and by how much another may pass it."""
        parts = [self.read(found, column) for column in windows.T]
        f = np.array([part[0] for part in parts])
        best, every = f.argmax(axis=0), np.arange(len(windows))
        g, e = np.array([part[1] for part in parts]), np.array([part[2] for part in parts])
        top = f[best, every], g[best, every], e[best, every]
        passed = f - top[0] + self.reach(g - top[1]) + e + top[2]
        passed[best, every] = 0.0
        over = np.maximum(passed.max(axis=0), 0.0)
        return top[0] + over / 2, top[1], top[2] + over / 2

    def product(self, found: Forms, read: Indices) -> tuple[Floats, Floats, Floats]:
        (f, g, e), (h, k, d) = self.read(found, read[:, 0]), self.read(found, read[:, 1])
        r, s = self.reach(g), self.reach(k)
        same = read[:, 0] == read[:, 1]
        half = np.where(same, r * s / 2, 0.0)
        left = np.where(same, half, r * s) + (np.abs(f) + r + e) * d + (np.abs(h) + s) * e
        return f * h + half, f[:, None] * k + h[:, None] * g, left

    def curved(self, f: Floats, g: Floats, e: Floats, function: Function) -> tuple[Floats, Floats, Floats]:
        """The better of a line and a constant."""
        curve, derivative = CURVES[function], DERIVATIVES[function]
        width = self.reach(g) + e
        low, high = f - width, f + width
        if function in ("reciprocal", "sqrt") and not (low > 0).all():
            return f, g, np.full_like(e, np.inf)
        at_low, at_f, at_high = curve(low), curve(f), curve(high)
        a = derivative(f, at_f)
        # Where f is convex or concave it lies between the line of this slope at f and that plus what its ends are off.
        off = np.stack([at_low - at_f + a * width, at_high - at_f - a * width])
        most = np.where(np.abs(off).max(axis=0) == off.max(axis=0), off.max(axis=0), off.min(axis=0))
        middle, reach = at_f + most / 2, np.abs(most) / 2
        if function in ("tanh", "sigmoid", "erf"):
            ends = np.stack([derivative(low, at_low), derivative(high, at_high)])
            least, greatest = ends.min(axis=0), derivative(np.zeros(1), curve(np.zeros(1)))
            mixed = (low < 0) & (high > 0)
            slope = (least + greatest) / 2
            a = np.where(mixed, slope, a)
            middle = np.where(mixed, at_f, middle)
            reach = np.where(mixed, (greatest - least) / 2 * width, reach)
        flat = np.abs(at_high - at_low) / 2
        constant = np.full(len(f), True) if not self.slopes else ~(reach < flat)
        a = np.where(constant, 0.0, a)
        middle = np.where(constant, (at_low + at_high) / 2, middle)
        return middle, a[:, None] * g, np.abs(a) * e + np.where(constant, flat, reach)

    def margin(self, ball: Ball) -> float:
        """The least margin that is certain in the ball, of the label over the rival."""
        with np.errstate(all="ignore"):
            least = self.least(self.of(ball.half), ball)
        return least if np.isfinite(least) else -np.inf

    def least(self, found: Forms, ball: Ball) -> float:
        difference = self.network.difference(ball.label, ball.rival)
        total, g, e = difference[1], np.zeros(len(self.free)), 0.0
        for element, c in difference[0].items():
            row = self.row[element]
            if row < 0:
                total += c * self.values[element]
            else:
                total, g, e = total + c * found.f[row], g + c * found.g[row], e + abs(c) * found.e[row]
        return float(total - self.reach(g) - e)
