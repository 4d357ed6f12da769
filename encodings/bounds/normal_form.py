"""A network in normal form: layers of ReLUs, each affine in the input and in all layers before it.

    h_0 = x,    z_i = sum over j < i of W_ij h_j + b_i,    h_i = max(z_i, 0),    y = sum over j of V_j h_j + c

Every network of the eight layers has this form: max(x, s x) = s x + (1 - s) relu(x), and max(a, b) = a + relu(b - a).
The matrices are products in float64; beside each goes a bound on what its rounding can amount to, so that bounds of
the normal form can be widened to bounds of the network over the reals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import Unsupported
from ..network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Floats,
    Indices,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Kind, Meaning, forward

UNIT = 2.0**-53
MOST_NUMBERS = 2**27
"""Of all matrices together: a gigabyte."""


@dataclass(frozen=True, eq=False)
class Functions:
    """Rows f = sum of weights[j] h_j + bias; `sizes` and `bias_size` are the same of absolute values throughout.

    The exact weights differ from these by at most roundings * UNIT * sizes (to first order; a little more is allowed).
    """

    weights: Mapping[int, Floats]
    bias: Floats
    sizes: Mapping[int, Floats]
    bias_size: Floats
    roundings: int

    def __len__(self) -> int:
        return len(self.bias)

    def mapped(self, matrix: Floats, roundings: int) -> Functions:
        """matrix @ rows."""
        absolute = np.abs(matrix)
        return Functions(
            {j: matrix @ w for j, w in self.weights.items()},
            matrix @ self.bias,
            {j: absolute @ w for j, w in self.sizes.items()},
            absolute @ self.bias_size,
            self.roundings + roundings,
        )

    def scaled(self, factor: Floats) -> Functions:
        absolute = np.abs(factor)
        return Functions(
            {j: factor[:, None] * w for j, w in self.weights.items()},
            factor * self.bias,
            {j: absolute[:, None] * w for j, w in self.sizes.items()},
            absolute * self.bias_size,
            self.roundings + 3,
        )

    def shifted(self, added: Floats) -> Functions:
        return Functions(
            self.weights, self.bias + added, self.sizes, self.bias_size + np.abs(added), self.roundings + 1
        )

    def absolute(self) -> Functions:
        """With the size of every weight in its place."""
        weights = {j: np.abs(w) for j, w in self.weights.items()}
        return Functions(weights, np.abs(self.bias), self.sizes, self.bias_size, self.roundings)

    def taken(self, index: Indices) -> Functions:
        return Functions(
            {j: w[index] for j, w in self.weights.items()},
            self.bias[index],
            {j: w[index] for j, w in self.sizes.items()},
            self.bias_size[index],
            self.roundings,
        )


def fixed(values: Floats) -> Functions:
    return Functions({}, values, {}, np.abs(values), 0)


def identity(layer: int, size: int) -> Functions:
    eye = np.eye(size)
    return Functions({layer: eye}, np.zeros(size), {layer: eye}, np.zeros(size), 0)


def total(parts: list[Functions], signs: tuple[int, ...]) -> Functions:
    weights: dict[int, Floats] = {}
    sizes: dict[int, Floats] = {}
    for sign, part in zip(signs, parts, strict=True):
        for j, w in part.weights.items():
            weights[j] = weights[j] + sign * w if j in weights else sign * w
            sizes[j] = sizes[j] + part.sizes[j] if j in sizes else part.sizes[j]
    bias = np.sum([sign * part.bias for sign, part in zip(signs, parts, strict=True)], axis=0)
    bias_size = np.sum([part.bias_size for part in parts], axis=0)
    return Functions(weights, bias, sizes, bias_size, max(part.roundings for part in parts) + len(parts))


def joined(parts: list[Functions], widths: Mapping[int, int]) -> Functions:
    """The rows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    used = sorted({j for part in parts for j in part.weights})
    rows = {
        name: {
            j: np.concatenate([getattr(part, name).get(j, np.zeros((len(part), widths[j]))) for part in parts])
            for j in used
        }
        for name in ("weights", "sizes")
    }
    bias, bias_size = (np.concatenate([getattr(part, name) for part in parts]) for name in ("bias", "bias_size"))
    return Functions(rows["weights"], bias, rows["sizes"], bias_size, max(part.roundings for part in parts))


@dataclass(frozen=True, eq=False)
class Stack:
    """`layers[i - 1]` are the z_i; `output` is y; `sources[i - 1]` is the node that h_i was made for."""

    inputs: int
    layers: tuple[Functions, ...]
    output: Functions
    sources: tuple[int, ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Of h_0, h_1, ..."""
        return (self.inputs, *(len(layer) for layer in self.layers))

    @property
    def neurons(self) -> int:
        return sum(self.widths[1:])

    def values(self, x: Floats) -> tuple[list[Floats], Floats]:
        """The z_i [batch, size] and y [batch, outputs] at points [batch, inputs]."""
        known, inputs = [x], []
        for layer in self.layers:
            inputs.append(applied(layer, known))
            known.append(np.maximum(inputs[-1], 0.0))
        return inputs, applied(self.output, known)


def handed_back(
    layers: Sequence[Functions], handed: Mapping[int, Floats], through: Callable[[int, Floats | None], Floats | None]
) -> Floats | None:
    """Coefficients of x of sum over j of handed[j] h_j, None where there are none.

    `through` gives the coefficients of z_i that stand for those of h_i; it is asked of the last layer first, with None
    where nothing reads h_i.
    """
    handed = dict(handed)
    for i in range(len(layers), 0, -1):
        passed = through(i, handed.pop(i, None))
        if passed is not None:
            flat = passed.reshape(-1, passed.shape[-1])
            for j, weight in layers[i - 1].weights.items():
                more = (flat @ weight).reshape(*passed.shape[:-1], -1)
                handed[j] = handed[j] + more if j in handed else more
    return handed.get(0)


def applied(rows: Functions, known: list[Floats]) -> Floats:
    result = np.broadcast_to(rows.bias, (len(known[0]), len(rows)))
    for j, w in rows.weights.items():
        result = result + known[j] @ w.T
    return np.asarray(result)


@dataclass(eq=False)
class Stacking:
    """The layers of a stack as they are met."""

    widths: dict[int, int]
    layers: list[Functions] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    spent: int = 0
    """Numbers in all matrices so far."""

    def room(self, at: At) -> None:
        self.spent += at.node.size * sum(self.widths.values())
        if self.spent > MOST_NUMBERS:
            raise Unsupported(
                f"{at.node.origin}: the network up to here needs {self.spent:,} numbers as dense matrices"
            )

    def relu(self, inputs: Functions, at: At) -> Functions:
        self.layers.append(inputs)
        self.sources.append(at.index)
        self.widths[len(self.layers)] = len(inputs)
        return identity(len(self.layers), len(inputs))

    def start(self, layer: Embedding, inputs: list[Functions], at: At) -> Functions:
        return identity(0, at.node.size)

    def hold(self, layer: Constant, inputs: list[Functions], at: At) -> Functions:
        return fixed(layer.value.reshape(-1))

    def rearrange(self, layer: Rearrangement, inputs: list[Functions], at: At) -> Functions:
        return joined(inputs, self.widths).taken(layer.index.reshape(-1))

    def multiply(self, layer: Affine, inputs: list[Functions], at: At) -> Functions:
        blocks = len(inputs[0]) // len(layer.weight)
        matrix = np.asarray(np.kron(np.eye(blocks), layer.weight.T), dtype=np.float64)
        return inputs[0].mapped(matrix, len(layer.weight) + 2).shifted(np.tile(layer.bias, blocks))

    def scale(self, layer: Scaling, inputs: list[Functions], at: At) -> Functions:
        return inputs[0].scaled((layer.multiply / layer.divide).reshape(-1)).shifted(layer.add.reshape(-1))

    def add_up(self, layer: Sum, inputs: list[Functions], at: At) -> Functions:
        return total(inputs, layer.signs)

    def rectify(self, layer: Rectifier, inputs: list[Functions], at: At) -> Functions:
        (x,), slope = inputs, layer.slope
        active = self.relu(x, at)
        if slope == 0.0:
            return active
        leaked = x.scaled(np.full(len(x), slope))
        return total([leaked, active.scaled(np.full(len(x), 1.0 - slope))], (1, 1))

    def take_greatest(self, layer: Maximum, inputs: list[Functions], at: At) -> Functions:
        size, window = at.node.size, len(inputs[0]) // at.node.size
        columns = [inputs[0].taken(np.arange(size) * window + place) for place in range(window)]
        while len(columns) > 1:
            pairs = zip(columns[0:-1:2], columns[1::2], strict=False)
            rest = columns[len(columns) // 2 * 2 :]
            columns = [total([a, self.relu(total([b, a], (1, -1)), at)], (1, 1)) for a, b in pairs] + rest
        return columns[0]


def sized(rule: Callable[..., Functions]) -> Callable[..., Functions]:
    """The rule, once there is room for what it makes."""

    def found(stacking: Stacking, layer: object, inputs: list[Functions], at: At) -> Functions:
        stacking.room(at)
        return rule(stacking, layer, inputs, at)

    return found


RULES: Mapping[Kind, Callable[..., Functions]] = {
    Embedding: Stacking.start,
    Constant: Stacking.hold,
    Rearrangement: Stacking.rearrange,
    Affine: Stacking.multiply,
    Scaling: Stacking.scale,
    Sum: Stacking.add_up,
    Rectifier: Stacking.rectify,
    Maximum: Stacking.take_greatest,
}
NORMAL_FORM: Meaning[Functions] = Meaning(
    "normal form",
    {kind: sized(rule) for kind, rule in RULES.items()},
    dict.fromkeys(SMOOTH, "it is made of rectifiers"),
)


def stack_of(network: Network) -> Stack:
    """The normal form of a network whose node 0 is its input."""
    stacking = Stacking({0: network.nodes[0].size})
    output = forward(network, NORMAL_FORM, stacking)[len(network.nodes) - 1]
    return Stack(stacking.widths[0], tuple(stacking.layers), output, tuple(stacking.sources))
