"""Bounds of absolute values carried forward through a network: |W| a + |b| for every layer W x + b with |x| <= a."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import needed
from ..network import Affine, Constant, Embedding, Floats, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum

Array = NDArray[Any]
SLOP = 1.0 + 2.0**-20
"""Covers the rounding of this computation."""


def magnitudes(network: Network, embedded: Mapping[int, Array], at_cut: Mapping[int, Array]) -> dict[int, Array]:
    """Node -> bound [batch, *shape], from bounds of the embeddings; `at_cut` are further bounds of cut nodes."""
    known: dict[int, Array] = {}
    batch = len(next(iter(embedded.values())))
    for index in needed(network, frozenset()):
        node = network.nodes[index]
        inputs = [known[source] for source in node.inputs]
        match node.layer:
            case Embedding():
                found = embedded[index]
            case Constant(value):
                found = np.broadcast_to(np.abs(value), (batch, *node.shape))
            case Rearrangement(order):
                flat = [x.reshape(batch, -1) for x in inputs]
                found = np.take(np.concatenate(flat, axis=1), order.ravel(), axis=1).reshape(batch, *node.shape)
            case Affine(weight, bias):
                found = inputs[0] @ np.abs(weight) + np.abs(bias)
                found = found.reshape(batch, *node.shape)
            case Scaling(multiply, divide, add, _):
                found = np.abs(multiply / divide) * inputs[0] + np.abs(add)
            case Sum():
                found = reduce(np.add, inputs)
            case Rectifier():
                found = inputs[0]
            case Maximum():
                # A constant far below the others, a mask's, plays no part.
                fixed = constants(network, node.inputs[0]).reshape(*node.shape, -1)
                low, high = (np.where(np.isnan(fixed), sign * inputs[0], fixed).max(axis=-1) for sign in (-1, 1))
                found = np.maximum(-low, high)
        known[index] = found * SLOP
        if index in at_cut:
            known[index] = np.minimum(known[index], at_cut[index])
    return known


@lru_cache(maxsize=64)
def constants(network: Network, index: int) -> Floats:
    """[size]: the numbers of those elements of a node that are constants, NaN for others."""
    node = network.nodes[index]
    match node.layer:
        case Constant(value):
            return value.reshape(-1)
        case Rearrangement(order):
            return np.concatenate([constants(network, source) for source in node.inputs])[order.reshape(-1)]
        case _:
            return np.full(node.size, np.nan)
