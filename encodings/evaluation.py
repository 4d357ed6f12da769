"""A network on numbers: the value of every node, for a batch of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import Affine, Constant, Embedding, Layer, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum

Array = NDArray[Any]


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
    known: dict[int, Array] = dict(given or {})
    batch = len(tokens) if tokens is not None else len(next(iter(known.values())))
    for index in needed(network, frozenset(known), wanted):
        node = network.nodes[index]
        inputs = [known[source] for source in node.inputs]
        known[index] = layer_value(node.layer, inputs, node.shape, batch, tokens, dtype)
    return known


def needed(network: Network, given: frozenset[int], wanted: Sequence[int] = ()) -> list[int]:
    """The nodes to compute for the wanted ones (the last one, unless said) when `given` are there, in order."""
    found: set[int] = set()
    waiting = list(wanted) or [len(network.nodes) - 1]
    while waiting:
        index = waiting.pop()
        if index not in found and index not in given:
            found.add(index)
            waiting.extend(network.nodes[index].inputs)
    return sorted(found)


def layer_value(
    layer: Layer,
    inputs: list[Array],
    shape: tuple[int, ...],
    batch: int,
    tokens: Array | None,
    dtype: type[np.floating[Any]],
) -> Array:
    match layer:
        case Embedding(table, positions):
            if tokens is None:
                raise ValueError("tokens are needed to evaluate an embedding")
            return table[tokens[:, positions]].astype(dtype, copy=False)
        case Constant(value):
            return np.broadcast_to(value.astype(dtype), (batch, *shape))
        case Rearrangement(index):
            return rearranged(layer, index, inputs, (batch, *shape))
        case Affine(weight, bias):
            (x,) = inputs
            flat = x.reshape(-1, weight.shape[0])
            return np.asarray((flat @ weight.astype(dtype, copy=False) + bias.astype(dtype)).reshape(batch, *shape))
        case Scaling(multiply, divide, add, _):
            (x,) = inputs
            return x * multiply.astype(dtype) / divide.astype(dtype) + add.astype(dtype)
        case Sum(signs):
            total = inputs[0] if signs[0] == 1 else -inputs[0]
            for sign, x in zip(signs[1:], inputs[1:], strict=True):
                total = total + x if sign == 1 else total - x
            return total
        case Rectifier(slope):
            (x,) = inputs
            return np.maximum(x, dtype(0)) if slope == 0 else np.maximum(x, x * dtype(slope))
        case Maximum():
            (x,) = inputs
            return np.asarray(x.max(axis=-1))


def rearranged(layer: Rearrangement, index: NDArray[np.int64], inputs: list[Array], shape: tuple[int, ...]) -> Array:
    if len(inputs) == 1:
        (x,) = inputs
        if index.size == x[0].size and layer.is_reshape:
            return x.reshape(shape)
        flat = x.reshape(shape[0], -1)
    else:
        flat = np.concatenate([x.reshape(shape[0], -1) for x in inputs], axis=1)
    return np.take(flat, index.ravel(), axis=1).reshape(shape)


def logits(network: Network, tokens: Array, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """[batch, classes] for token ids [batch, length], by numpy in the given precision."""
    return np.asarray(values(network, tokens, dtype=dtype)[len(network.nodes) - 1][:, 0, :])
