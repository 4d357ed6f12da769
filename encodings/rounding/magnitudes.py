"""Bounds of absolute values carried forward through a network: |W| a + |b| for every layer W x + b with |x| <= a."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Floats,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
    Table,
)
from ..space import SwapSpace
from ..walk import Meaning, forward, gather

Array = NDArray[Any]
SLOP = 1.0 + 2.0**-20
"""Covers the rounding of this computation."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embedding node -> bound [batch, *shape]."""

    network: Network
    bounds: Mapping[int, Array]

    def look_up(self, layer: Embedding, inputs: list[Array], at: At) -> Array:
        return self.bounds[at.index]

    def hold(self, layer: Constant, inputs: list[Array], at: At) -> Array:
        batch = len(next(iter(self.bounds.values())))
        return np.broadcast_to(np.abs(layer.value), (batch, *at.node.shape))

    def rearrange(self, layer: Rearrangement, inputs: list[Array], at: At) -> Array:
        return gather(layer, inputs)

    def multiply(self, layer: Affine, inputs: list[Array], at: At) -> Array:
        found = inputs[0] @ np.abs(layer.weight) + np.abs(layer.bias)
        return np.asarray(found.reshape(len(found), *at.node.shape))

    def scale(self, layer: Scaling, inputs: list[Array], at: At) -> Array:
        return np.asarray(np.abs(layer.multiply / layer.divide) * inputs[0] + np.abs(layer.add))

    def add_up(self, layer: Sum, inputs: list[Array], at: At) -> Array:
        return reduce(np.add, inputs)

    def rectify(self, layer: Rectifier, inputs: list[Array], at: At) -> Array:
        return inputs[0]

    def take_greatest(self, layer: Maximum, inputs: list[Array], at: At) -> Array:
        # A constant far below the others, a mask's, plays no part.
        fixed = constants(self.network, at.node.inputs[0]).reshape(*at.node.shape, -1)
        low, high = (np.where(np.isnan(fixed), sign * inputs[0], fixed).max(axis=-1) for sign in (-1, 1))
        return np.asarray(np.maximum(-low, high))


MAGNITUDES: Meaning[Array] = Meaning(
    "bound of its magnitude",
    {
        Embedding: Embedded.look_up,
        Constant: Embedded.hold,
        Rearrangement: Embedded.rearrange,
        Affine: Embedded.multiply,
        Scaling: Embedded.scale,
        Sum: Embedded.add_up,
        Rectifier: Embedded.rectify,
        Maximum: Embedded.take_greatest,
    },
    dict.fromkeys(SMOOTH, "it depends on both ends of what is read: smooth networks are bounded by intervals"),
)


def magnitudes(network: Network, embedded: Mapping[int, Array], at_cut: Mapping[int, Array]) -> dict[int, Array]:
    """Node -> bound [batch, *shape], from bounds of the embeddings; `at_cut` are further bounds of cut nodes."""

    def finish(at: At, found: Array) -> Array:
        found = found * SLOP
        return np.minimum(found, at_cut[at.index]) if at.index in at_cut else found

    return forward(network, MAGNITUDES, Embedded(network, embedded), finish=finish)


@lru_cache(maxsize=64)
def constants(network: Network, index: int) -> Floats:
    """[size]: the numbers of those elements of a node that are constants, NaN for others."""
    node = network.nodes[index]
    if isinstance(node.layer, Constant):
        return node.layer.value.reshape(-1)
    if isinstance(node.layer, Rearrangement):
        inputs = [constants(network, source) for source in node.inputs]
        return gather(node.layer, inputs, leading=0).reshape(-1)
    return np.full(node.size, np.nan)


def greatest(table: Floats | Table, spaces: Sequence[SwapSpace]) -> Floats:
    """[texts, positions, width]: the greatest |value| over the choices of each position."""
    magnitude: Floats = np.abs(table[np.array([space.original for space in spaces], dtype=np.int64)])
    places = [(text, position) for text, space in enumerate(spaces) for position in space.swappable]
    if places:
        options = [spaces[text].choices[position][1:] for text, position in places]
        counts = np.array(list(map(len, options)))
        others = np.abs(table[list(chain.from_iterable(options))])
        highest = np.maximum.reduceat(others, np.cumsum(counts) - counts, axis=0)
        at = tuple(np.array(places).T)
        magnitude[at] = np.maximum(magnitude[at], highest)
    return magnitude
