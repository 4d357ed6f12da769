"""A network on numbers: the value of every node, for a batch of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import (
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
from .smooth.curves import CURVES
from .walk import Meaning, forward, gather

Array = NDArray[Any]
Inputs = list[Array]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences evaluated together, and the float type that does it."""

    size: int
    tokens: Array | None = None
    dtype: type[np.floating[Any]] = np.float64


def look_up(batch: Batch, layer: Embedding, inputs: Inputs, at: At) -> Array:
    if batch.tokens is None:
        raise ValueError("tokens are needed to evaluate an embedding")
    return layer.table[batch.tokens[:, layer.positions]].astype(batch.dtype, copy=False)


def hold(batch: Batch, layer: Constant, inputs: Inputs, at: At) -> Array:
    return np.broadcast_to(layer.value.astype(batch.dtype), (batch.size, *at.node.shape))


def rearrange(batch: Batch, layer: Rearrangement, inputs: Inputs, at: At) -> Array:
    return gather(layer, inputs)


def multiply(batch: Batch, layer: Affine, inputs: Inputs, at: At) -> Array:
    flat = inputs[0].reshape(-1, layer.weight.shape[0])
    found = flat @ layer.weight.astype(batch.dtype, copy=False) + layer.bias.astype(batch.dtype)
    return np.asarray(found.reshape(batch.size, *at.node.shape))


def scale(batch: Batch, layer: Scaling, inputs: Inputs, at: At) -> Array:
    times, under, more = (part.astype(batch.dtype) for part in (layer.multiply, layer.divide, layer.add))
    return inputs[0] * times / under + more


def add_up(batch: Batch, layer: Sum, inputs: Inputs, at: At) -> Array:
    total = inputs[0] if layer.signs[0] == 1 else -inputs[0]
    for sign, x in zip(layer.signs[1:], inputs[1:], strict=True):
        total = total + x if sign == 1 else total - x
    return total


def rectify(batch: Batch, layer: Rectifier, inputs: Inputs, at: At) -> Array:
    (x,) = inputs
    return np.maximum(x, batch.dtype(0)) if layer.slope == 0 else np.maximum(x, x * batch.dtype(layer.slope))


def take_greatest(batch: Batch, layer: Maximum, inputs: Inputs, at: At) -> Array:
    return np.asarray(inputs[0].max(axis=-1))


def multiply_pairs(batch: Batch, layer: Product, inputs: Inputs, at: At) -> Array:
    return inputs[0] * inputs[1]


def bend(batch: Batch, layer: Curve, inputs: Inputs, at: At) -> Array:
    return CURVES[layer.function](inputs[0])


NUMBERS: Meaning[Array] = Meaning(
    "value in floats",
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


def values(
    network: Network,
    tokens: Array | None = None,
    given: Mapping[int, Array] | None = None,
    dtype: type[np.floating[Any]] = np.float64,
    wanted: Sequence[int] = (),
) -> dict[int, Array]:
    """Node index -> array [batch, *shape], for the wanted nodes (the last one, unless said) and all they need.

    `tokens` is [batch, length]; `given` holds nodes already known, whose inputs are then not computed.
    """
    size = len(tokens) if tokens is not None else len(next(iter((given or {}).values())))
    return forward(network, NUMBERS, Batch(size, tokens, dtype), given, wanted)


def logits(network: Network, tokens: Array, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """[batch, classes] for token ids [batch, length], by numpy in the given precision."""
    return np.asarray(values(network, tokens, dtype=dtype)[len(network.nodes) - 1][:, 0, :])
