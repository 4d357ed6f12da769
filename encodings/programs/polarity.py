"""Which way a neuron can move a margin: a wrong value that can only raise a minimum needs no row against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Affine, Constant, Embedding, Maximum, Rearrangement, Rectifier, Scaling, Sum
from ..query import Query

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
        flags[last][0, query.label] = True
        flags[last][1, [query.rivals[rival] for rival in rivals]] = True
        for index in range(last, -1, -1):
            node, own = network.nodes[index], flags[index]
            inputs = [flags[source] for source in node.inputs]
            match node.layer:
                case Embedding() | Constant():
                    continue
                case Rearrangement(order):
                    moved = np.zeros((2, sum(part.shape[1] for part in inputs)), dtype=np.bool_)
                    for side in (0, 1):
                        moved[side, order.reshape(-1)[own[side]]] = True
                    ends = np.cumsum([0, *(part.shape[1] for part in inputs)])
                    for number, part in enumerate(inputs):
                        part |= moved[:, ends[number] : ends[number + 1]]
                case Affine(weight, bias):
                    blocks = own.reshape(2, -1, len(bias)).astype(np.float64)
                    up, down = (weight > 0).T.astype(np.float64), (weight < 0).T.astype(np.float64)
                    inputs[0][0] |= ((blocks[0] @ up + blocks[1] @ down) > 0).reshape(-1)
                    inputs[0][1] |= ((blocks[1] @ up + blocks[0] @ down) > 0).reshape(-1)
                case Scaling(multiply, divide, _, _):
                    factor = (multiply / divide).reshape(-1)
                    inputs[0] |= (own & (factor > 0)) | (own[::-1] & (factor < 0))
                case Sum(signs):
                    for sign, part in zip(signs, inputs, strict=True):
                        part |= own if sign > 0 else own[::-1]
                case Rectifier():
                    inputs[0] |= own
                case Maximum():
                    inputs[0] |= np.repeat(own, inputs[0].shape[1] // own.shape[1], axis=1)
        return cls(flags)
