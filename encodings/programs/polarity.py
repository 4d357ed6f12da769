"""Which way a neuron can move a margin: a wrong value that can only raise a minimum needs no row against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
from ..query import Query
from ..walk import Meaning, backward

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Polarity:
    """Node -> [2, size]: whether a greater value can raise one of the margins, and whether it can lower one.

    Rectifiers and maxima never turn a direction: they are monotone.
    """

    flags: dict[int, Flags]

    def of_node(self, index: int) -> tuple[Flags, Flags]:
        """(raises, lowers)."""
        raises, lowers = self.flags[index]
        return raises, lowers

    @classmethod
    def of(cls, query: Query, rivals: Sequence[int]) -> Polarity:
        network = query.network
        last = len(network.nodes) - 1
        flags = {index: np.zeros((2, node.size), dtype=np.bool_) for index, node in enumerate(network.nodes)}
        asked = flags[last].copy()
        asked[0, query.label] = True
        asked[1, [query.rivals[rival] for rival in rivals]] = True
        flags.update(backward(network, DIRECTIONS, network, last, asked, lambda _, one, more: one | more))
        return cls(flags)


def end(network: Network, layer: Embedding | Constant, own: Flags, at: At) -> list[Flags]:
    return []


def rearrange(network: Network, layer: Rearrangement, own: Flags, at: At) -> list[Flags]:
    laid = network.laid(at.node)
    moved = np.zeros((2, laid[-1].stop), dtype=np.bool_)
    for side in (0, 1):
        moved[side, layer.index.reshape(-1)[own[side]]] = True
    return [moved[:, part] for part in laid]


def multiply(network: Network, layer: Affine, own: Flags, at: At) -> list[Flags]:
    blocks = own.reshape(2, -1, len(layer.bias)).astype(np.float64)
    up, down = (layer.weight > 0).T.astype(np.float64), (layer.weight < 0).T.astype(np.float64)
    return [np.stack([blocks[0] @ up + blocks[1] @ down, blocks[1] @ up + blocks[0] @ down]).reshape(2, -1) > 0]


def scale(network: Network, layer: Scaling, own: Flags, at: At) -> list[Flags]:
    factor = (layer.multiply / layer.divide).reshape(-1)
    return [(own & (factor > 0)) | (own[::-1] & (factor < 0))]


def add_up(network: Network, layer: Sum, own: Flags, at: At) -> list[Flags]:
    return [own if sign > 0 else own[::-1] for sign in layer.signs]


def rectify(network: Network, layer: Rectifier, own: Flags, at: At) -> list[Flags]:
    return [own]


def take_greatest(network: Network, layer: Maximum, own: Flags, at: At) -> list[Flags]:
    return [np.repeat(own, network.nodes[at.node.inputs[0]].size // at.node.size, axis=1)]


def multiply_pairs(network: Network, layer: Product, own: Flags, at: At) -> list[Flags]:
    """Either, as the sign of the other factor says."""
    return [own | own[::-1]] * 2


def bend(network: Network, layer: Curve, own: Flags, at: At) -> list[Flags]:
    """All of them rise, but 1 / x."""
    return [own | own[::-1] if layer.function == "reciprocal" else own]


DIRECTIONS: Meaning[Sequence[Flags]] = Meaning(
    "known direction",
    {
        Embedding: end,
        Constant: end,
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
