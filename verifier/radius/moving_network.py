"""The network of a case in normal form: some inputs move, all other elements are the numbers they are at the center.

Layers and elements are those of FORMAT.md section 16.3, so a proof names a neuron by its place here. All of it is
float64 without error bounds: nothing here proves anything; the checker computes everything again, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions, Stack
from swapproof.encodings.canonical import Form
from swapproof.encodings.canonical_layers import PADDING, Bends, Greatest, Inputs, Rows
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Floats, Indices

from ..queries.query_bounds import Truths
from ..queries.search_tree import TreeLayer

MOST_NUMBERS = 1 << 26
"""Of all matrices of a case together: half a gigabyte."""


@dataclass(frozen=True, eq=False)
class PlainRows:
    """An affine layer as arrays: lists [lists, K] (PADDING behind), weights [weights, K] with 0 behind."""

    lists: Indices
    weights: Floats
    list_of: Indices
    weights_of: Indices
    bias: Floats


PlainStep = PlainRows | Bends | Greatest | Inputs


@dataclass(frozen=True, eq=False)
class PlainNetwork:
    """The canonical network in float64: its steps, where each begins, and the logits."""

    constants: Floats
    steps: tuple[PlainStep, ...]
    starts: Indices
    logits: Indices

    @classmethod
    def of(cls, form: Form) -> PlainNetwork:
        steps: list[PlainStep] = []
        for step in form.steps:
            if isinstance(step, Rows):
                width = step.lists.shape[1]
                weights = np.zeros((len(step.weights), width))
                for row, own in enumerate(step.weights):
                    weights[row, : len(own)] = own.astype(np.float64)
                bias = np.asarray(step.bias, dtype=np.float64)
                steps.append(PlainRows(step.lists, weights, step.list_of, step.weights_of, bias))
            elif isinstance(step, Bends | Greatest | Inputs):
                steps.append(step)
            else:
                raise Unsupported("a network that is not made of rectifiers and maxima has no radius yet")
        sizes = [len(form.constants), *(step.size for step in form.steps)]
        return cls(form.constants.astype(np.float64), tuple(steps), np.cumsum(sizes), form.logits)

    def values(self, inputs: Floats) -> Floats:
        """[elements], at these inputs."""
        found = np.zeros(int(self.starts[-1]))
        found[: len(self.constants)] = self.constants
        for number, step in enumerate(self.steps):
            part = slice(self.starts[number], self.starts[number + 1])
            match step:
                case Inputs():
                    found[part] = inputs
                case PlainRows():
                    read = np.where(step.lists == PADDING, 0.0, found[step.lists])
                    if len(step.lists) * len(step.weights) <= 4 * len(step.bias):
                        found[part] = (read @ step.weights.T)[step.list_of, step.weights_of] + step.bias
                    else:
                        found[part] = (read[step.list_of] * step.weights[step.weights_of]).sum(axis=1) + step.bias
                case Bends(slope, read):
                    found[part] = np.maximum(found[read], 0.0) + slope * np.minimum(found[read], 0.0)
                case Greatest(windows):
                    found[part] = found[windows].max(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class Moving:
    """The stack over the inputs that move, and how a certificate calls its layers."""

    stack: Stack
    layers: tuple[TreeLayer | None, ...]


@dataclass(eq=False)
class Building:
    """Functions of the elements that move. An element is an output h_j of the stack (`unit`), or a row of `rows`."""

    values: Floats
    widths: list[int]
    unit: dict[int, tuple[int, int]] = field(default_factory=dict)
    rows: dict[int, tuple[dict[int, Floats], float]] = field(default_factory=dict)
    layers: list[Functions] = field(default_factory=list)
    names: list[TreeLayer | None] = field(default_factory=list)
    spent: int = 0

    def functions(self, elements: Sequence[int]) -> Functions:
        """Those of these elements, one a row."""
        bias = np.zeros(len(elements))
        weights: dict[int, Floats] = {}

        def of(j: int) -> Floats:
            if j not in weights:
                self.spent += len(elements) * self.widths[j]
                if self.spent > MOST_NUMBERS:
                    raise Unsupported("too many neurons depend on these words for a bound; let fewer words move")
                weights[j] = np.zeros((len(elements), self.widths[j]))
            return weights[j]

        for at, i in enumerate(elements):
            if i in self.unit:
                j, place = self.unit[i]
                of(j)[at, place] = 1.0
            elif i in self.rows:
                own, bias[at] = self.rows[i]
                for j, row in own.items():
                    of(j)[at] = row
            else:
                bias[at] = self.values[i]
        return functions_of(weights, bias)

    def keep(self, elements: Sequence[int], found: Functions) -> None:
        for at, i in enumerate(elements):
            self.rows[i] = {j: w[at] for j, w in found.weights.items()}, float(found.bias[at])

    def rectified(self, inputs: Functions, name: TreeLayer | None) -> int:
        """A layer of the stack; its number."""
        self.layers.append(inputs)
        self.names.append(name)
        self.widths.append(len(inputs))
        return len(self.widths) - 1


def functions_of(weights: dict[int, Floats], bias: Floats) -> Functions:
    return Functions(weights, bias, {j: np.abs(w) for j, w in weights.items()}, np.abs(bias), 8)


def moving_network(network: PlainNetwork, values: Floats, free: Indices) -> Moving:
    """`values` of all elements at the center; `free` are the inputs that move."""
    moves = np.zeros(len(values), dtype=np.bool_)
    building = Building(values, [len(free)])
    for number, step in enumerate(network.steps):
        start = int(network.starts[number])
        match step:
            case Inputs():
                moves[start + free] = True
                building.unit.update((start + int(i), (0, place)) for place, i in enumerate(free))
            case PlainRows():
                add_rows(building, step, start, moves)
            case Bends(slope, read):
                here = np.flatnonzero(moves[read])
                moves[start + here] = True
                inputs = building.functions(read[here].tolist())
                layer = building.rectified(inputs, TreeLayer(number, slope))
                if slope == 0:
                    building.unit.update((start + int(i), (layer, place)) for place, i in enumerate(here))
                else:
                    weights = {j: slope * w for j, w in inputs.weights.items()}
                    weights[layer] = (1.0 - slope) * np.eye(len(here))
                    building.keep((start + here).tolist(), functions_of(weights, slope * inputs.bias))
            case Greatest(windows):
                here = np.flatnonzero(moves[windows].any(axis=1))
                moves[start + here] = True
                add_maxima(building, windows[here], (start + here).tolist(), moves)
    output = building.functions(network.logits.tolist())
    stack = Stack(len(free), tuple(building.layers), output, tuple(range(len(building.layers))))
    return Moving(stack, tuple(building.names))


def add_rows(building: Building, step: PlainRows, start: int, moves: Truths) -> None:
    """Affine elements: of every list what moves, the rest a number."""
    read = np.where(step.lists == PADDING, 0.0, building.values[step.lists])
    moved = moves[step.lists] & (step.lists != PADDING)
    here = np.flatnonzero(moved.any(axis=1)[step.list_of])
    moves[start + here] = True
    for at in np.unique(step.list_of[here]).tolist():
        rows = here[step.list_of[here] == at]
        weights = step.weights[step.weights_of[rows]]
        places = np.flatnonzero(moved[at])
        fixed = weights @ np.where(moved[at], 0.0, read[at]) + step.bias[rows]
        inner = building.functions(step.lists[at, places].tolist())
        used = weights[:, places]
        found = {j: used @ w for j, w in inner.weights.items()}
        building.keep((start + rows).tolist(), functions_of(found, used @ inner.bias + fixed))


def add_maxima(building: Building, windows: Indices, elements: list[int], moves: Truths) -> None:
    """max(a, b) = a + relu(b - a), by halves; proofs have no names for these rectifiers. Of what does not move in a
    window only the greatest is there."""
    if not elements:
        return
    still = np.where(moves[windows], -np.inf, building.values[windows])
    greatest = np.take_along_axis(windows, still.argmax(axis=1)[:, None], axis=1)
    windows = np.take_along_axis(windows, np.argsort(~moves[windows], axis=1, kind="stable"), axis=1)
    moving = moves[windows].sum(axis=1)
    chosen = windows[:, : int(moving.max())]
    chosen = np.where(moves[chosen], chosen, greatest)
    if np.isfinite(still).any():
        chosen = np.hstack([chosen, greatest])
    columns = [building.functions(column.tolist()) for column in chosen.T]
    while len(columns) > 1:
        pairs = list(zip(columns[0:-1:2], columns[1::2], strict=False))
        rest = columns[len(columns) // 2 * 2 :]
        columns = [greater(building, a, b) for a, b in pairs] + rest
    building.keep(elements, columns[0])


def greater(building: Building, a: Functions, b: Functions) -> Functions:
    layer = building.rectified(added(b, a, -1.0), None)
    return added(a, functions_of({layer: np.eye(len(a))}, np.zeros(len(a))), 1.0)


def added(a: Functions, b: Functions, sign: float) -> Functions:
    weights = dict(a.weights)
    for j, w in b.weights.items():
        weights[j] = weights[j] + sign * w if j in weights else sign * w
    return functions_of(weights, a.bias + sign * b.bias)
