"""A network in normal form: layers of ReLUs, each affine in the input and in all layers before it.

    h_0 = x,    z_i = sum over j < i of W_ij h_j + b_i,    h_i = max(z_i, 0),    y = sum over j of V_j h_j + c

Every network of the eight layers has this form: max(x, s x) = s x + (1 - s) relu(x), and max(a, b) = a + relu(b - a).
The matrices are products in float64; beside each goes a bound on what its rounding can amount to, so that bounds of
the normal form can be widened to bounds of the network over the reals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import Unsupported
from ..network import (
    Affine,
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
    """`layers[i - 1]` are the z_i; `output` is y."""

    inputs: int
    layers: tuple[Functions, ...]
    output: Functions

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


def applied(rows: Functions, known: list[Floats]) -> Floats:
    result = np.broadcast_to(rows.bias, (len(known[0]), len(rows)))
    for j, w in rows.weights.items():
        result = result + known[j] @ w.T
    return np.asarray(result)


def stack_of(network: Network) -> Stack:
    """The normal form of a network whose node 0 is its input."""
    widths = {0: network.nodes[0].size}
    layers: list[Functions] = []
    known: list[Functions] = []
    spent = 0

    def relu(inputs: Functions) -> Functions:
        layers.append(inputs)
        widths[len(layers)] = len(inputs)
        return identity(len(layers), len(inputs))

    for node in network.nodes:
        parts = [known[source] for source in node.inputs]
        spent += node.size * sum(widths.values())
        if spent > MOST_NUMBERS:
            raise Unsupported(f"{node.origin}: the network up to here needs {spent:,} numbers as dense matrices")
        match node.layer:
            case Embedding():
                known.append(identity(0, node.size))
            case Constant(value):
                known.append(fixed(value.reshape(-1)))
            case Rearrangement(index):
                known.append(joined(parts, widths).taken(index.reshape(-1)))
            case Affine(weight, bias):
                blocks = len(parts[0]) // len(weight)
                matrix = np.asarray(np.kron(np.eye(blocks), weight.T), dtype=np.float64)
                known.append(parts[0].mapped(matrix, len(weight) + 2).shifted(np.tile(bias, blocks)))
            case Scaling(multiply, divide, add, _):
                known.append(parts[0].scaled((multiply / divide).reshape(-1)).shifted(add.reshape(-1)))
            case Sum(signs):
                known.append(total(parts, signs))
            case Rectifier(slope):
                active = relu(parts[0])
                if slope == 0.0:
                    known.append(active)
                else:
                    size = len(parts[0])
                    leaked = parts[0].scaled(np.full(size, slope))
                    known.append(total([leaked, active.scaled(np.full(size, 1.0 - slope))], (1, 1)))
            case Maximum():
                window = len(parts[0]) // node.size
                columns = [parts[0].taken(np.arange(node.size) * window + place) for place in range(window)]
                while len(columns) > 1:
                    pairs = zip(columns[0:-1:2], columns[1::2], strict=False)
                    rest = columns[len(columns) // 2 * 2 :]
                    columns = [total([a, relu(total([b, a], (1, -1)))], (1, 1)) for a, b in pairs] + rest
                known.append(columns[0])
    return Stack(widths[0], tuple(layers), known[-1])
