"""A network as operations of torch on the embedded words: the meaning that auto_LiRPA is given.

Every value is a tensor [1, elements], whatever its shape was, or an array where no word changes it. What is repeated,
joined or padded is a selection of elements; a maximum of many is one of pairs, each b + ReLU(a - b).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import values
from ..network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Maximum,
    Network,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Meaning, forward

Array = NDArray[Any]
Tensor = Any


@dataclass(frozen=True, eq=False)
class Words:
    """[1, elements] of all embedded words, and where each embedding of the network lies among them.

    Sizes are those of the network: while torch records what is done, a tensor's own are no plain numbers.
    """

    torch: Any
    network: Network
    tensor: Tensor
    parts: dict[int, slice]

    @property
    def elements(self) -> int:
        return sum(part.stop - part.start for part in self.parts.values())

    def sizes(self, at: At) -> list[int]:
        """Of the inputs of a node."""
        return [self.network.nodes[source].size for source in at.node.inputs]

    def of(self, array: Array) -> Tensor:
        return self.torch.as_tensor(np.array(array))

    def select(self, x: Tensor, size: int, index: Array) -> Tensor:
        """Elements of x, which has as many."""
        if index.size == size and np.array_equal(index, np.arange(index.size)):
            return x
        return x.index_select(1, self.of(index.astype(np.int64)))


def look_up(words: Words, layer: Embedding, inputs: list[Any], at: At) -> Tensor:
    part = words.parts[at.index]
    return words.select(words.tensor, words.elements, np.arange(part.start, part.stop))


def hold(words: Words, layer: Constant, inputs: list[Any], at: At) -> Array:
    return layer.value


def rearrange(words: Words, layer: Rearrangement, inputs: list[Any], at: At) -> Tensor:
    """Elements of what moves, selected; the others are put in by a mask and an addend."""
    moving = [x for x in inputs if not isinstance(x, np.ndarray)]
    places, fixed, count = list[Array](), list[Array](), 0
    for x, size in zip(inputs, words.sizes(at), strict=True):
        if isinstance(x, np.ndarray):
            places.append(np.full(x.size, -1))
            fixed.append(x.reshape(-1).astype(np.float64))
        else:
            places.append(np.arange(count, count + size))
            fixed.append(np.zeros(size))
            count += size
    index = layer.index.reshape(-1)
    place, value = np.concatenate(places)[index], np.concatenate(fixed)[index]
    joined = moving[0] if len(moving) == 1 else words.torch.cat(moving, 1)
    found = words.select(joined, count, np.maximum(place, 0))
    if (place < 0).any():
        found = found * words.of((place >= 0).astype(np.float64)) + words.of(value)
    return found


def multiply(words: Words, layer: Affine, inputs: list[Any], at: At) -> Tensor:
    (x,) = inputs
    width, outputs = layer.weight.shape
    rows = words.sizes(at)[0] // width
    weight = words.of(layer.weight.T.astype(np.float64))
    bias = words.of(np.broadcast_to(layer.bias, outputs).astype(np.float64))
    if rows == 1:
        return words.torch.nn.functional.linear(x, weight, bias)
    return words.torch.nn.functional.linear(x.reshape(1, rows, width), weight, bias).reshape(1, rows * outputs)


def scale(words: Words, layer: Scaling, inputs: list[Any], at: At) -> Tensor:
    factor, more = (
        np.broadcast_to(part, at.node.shape).reshape(-1) for part in (layer.multiply / layer.divide, layer.add)
    )
    found = inputs[0] if (factor == 1).all() else inputs[0] * words.of(factor)
    return found + words.of(more) if more.any() else found


def add_up(words: Words, layer: Sum, inputs: list[Any], at: At) -> Tensor:
    total: Tensor = None
    fixed = np.zeros(at.node.size)
    for sign, x in zip(layer.signs, inputs, strict=True):
        if isinstance(x, np.ndarray):
            fixed = fixed + sign * x.reshape(-1)
        elif total is None:
            total = x if sign == 1 else -x
        else:
            total = total + x if sign == 1 else total - x
    return total + words.of(fixed) if fixed.any() else total


def rectify(words: Words, layer: Rectifier, inputs: list[Any], at: At) -> Tensor:
    """max(x, 0) + s min(x, 0) = s x + (1 - s) max(x, 0)."""
    (x,) = inputs
    found = words.torch.relu(x)
    if layer.slope == 0:
        return found
    slope, rest = (words.of(np.full(at.node.size, value)) for value in (layer.slope, 1 - layer.slope))
    return x * slope + found * rest


def take_greatest(words: Words, layer: Maximum, inputs: list[Any], at: At) -> Tensor:
    """Halves against each other, until one is left; an odd one is its own rival."""
    (x,) = inputs
    count = at.node.size
    width = words.sizes(at)[0] // count
    while width > 1:
        half = (width + 1) // 2
        starts = np.arange(count)[:, None] * width
        first, second = starts + np.arange(half), starts + np.minimum(np.arange(half) + half, width - 1)
        a, b = (words.select(x, count * width, index.reshape(-1)) for index in (first, second))
        x, width = b + words.torch.relu(a - b), half
    return x


def multiply_pairs(words: Words, layer: Product, inputs: list[Any], at: At) -> Tensor:
    factors = [words.of(x.reshape(-1).astype(np.float64)) if isinstance(x, np.ndarray) else x for x in inputs]
    constant = [isinstance(x, np.ndarray) for x in inputs]
    return factors[1] * factors[0] if constant[0] else factors[0] * factors[1]


def bend(words: Words, layer: Curve, inputs: list[Any], at: At) -> Tensor:
    return getattr(words.torch, layer.function)(inputs[0])


TORCH: Meaning[Any] = Meaning(
    "operation of torch",
    {
        Embedding: look_up,
        Constant: hold,
        Rearrangement: rearrange,
        Affine: multiply,
        Scaling: scale,
        Sum: add_up,
        Rectifier: rectify,
        Maximum: take_greatest,
        Product: multiply_pairs,
        Curve: bend,
    },
)


def fixed_values(network: Network) -> dict[int, Array]:
    """Node -> its value, of all that no word changes."""
    moving = set[int]()
    for index, node in enumerate(network.nodes):
        if isinstance(node.layer, Embedding) or any(source in moving for source in node.inputs):
            moving.add(index)
    still = [index for index in range(len(network.nodes)) if index not in moving]
    none = np.zeros((1, network.length), dtype=np.int64)
    found = values(network, none, wanted=still) if still else {}
    return {index: found[index][0] for index in still}


def logits_of(words: Words) -> Tensor:
    """[1, classes]."""
    network = words.network
    return forward(network, TORCH, words, fixed_values(network))[len(network.nodes) - 1]
