"""Backward substitution: a linear function of a network's last values rewritten in terms of earlier ones.

sum c_i y_i + constant, with y = W x + b, is sum (W c)_i x_i + (constant + c b), and so on for every linear layer. What a
nonlinear layer is replaced by is up to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum

Array = NDArray[Any]
Replace = Callable[[int, Array], tuple[Array, Array]]
"""(nonlinear node, coefficients [..., its size]) -> (coefficients of its input, constant part [...])."""


def substituted(network: Network, node: int, coefficients: Array, replace: Replace) -> tuple[dict[int, Array], Array]:
    """Coefficients [..., size] of the cut nodes, and the constant [...], of a function [..., size] of a node."""
    handed: dict[int, Array] = {node: coefficients}
    constant: Array = np.zeros(coefficients.shape[:-1])
    kept: dict[int, Array] = {}
    for index in range(node, -1, -1):
        given = handed.pop(index, None)
        if given is None:
            continue
        if index in network.cut:
            kept[index] = given
            continue
        layer, inputs = network.nodes[index].layer, network.nodes[index].inputs
        match layer:
            case Constant(value):
                constant = constant + given @ value.reshape(-1)
            case Affine(weight, bias):
                blocks = given.reshape(*given.shape[:-1], -1, len(bias))
                constant = constant + blocks.sum(axis=-2) @ bias
                hand(handed, inputs[0], (blocks @ weight.T).reshape(*given.shape[:-1], -1))
            case Scaling(multiply, divide, add, _):
                constant = constant + given @ add.reshape(-1)
                hand(handed, inputs[0], given * (multiply / divide).reshape(-1))
            case Sum(signs):
                for sign, source in zip(signs, inputs, strict=True):
                    hand(handed, source, given * sign)
            case Rearrangement(order):
                sizes = [network.nodes[source].size for source in inputs]
                parts = gathered(order.tobytes(), sum(sizes), given)
                for source, part in zip(inputs, np.split(parts, np.cumsum(sizes)[:-1], axis=-1), strict=True):
                    hand(handed, source, part)
            case Rectifier() | Maximum():
                passed, extra = replace(index, given)
                constant = constant + extra
                hand(handed, inputs[0], passed)
            case Embedding():
                raise ValueError(f"node {index}: an embedding that is read across the cut")
    return kept, constant


def hand(handed: dict[int, Array], source: int, coefficients: Array) -> None:
    handed[source] = handed[source] + coefficients if source in handed else coefficients


def gathered(order: bytes, size: int, given: Array) -> Array:
    """[..., size]: the coefficients of all copies of an element added up."""
    elements, copies, starts = copies_of(order)
    result = np.zeros((*given.shape[:-1], size))
    if copies is None:
        result[..., elements] = given
    else:
        result[..., elements] = np.add.reduceat(given[..., copies], starts, axis=-1)
    return result


@lru_cache(maxsize=64)
def copies_of(order: bytes) -> tuple[Array, Array | None, Array | None]:
    """The elements read; where their copies are, sorted by element, and where each element's copies start."""
    index = np.frombuffer(order, dtype=np.int64)
    elements, starts, counts = np.unique(np.sort(index), return_index=True, return_counts=True)
    if counts.max(initial=1) == 1:
        return index, None, None
    return elements, np.argsort(index, kind="stable"), starts
