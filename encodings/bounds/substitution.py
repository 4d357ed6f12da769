"""Backward substitution: a linear function of a network's last values rewritten in terms of earlier ones.

sum c_i y_i + constant, with y = W x + b, is sum (W c)_i x_i + (constant + c b), and so on for every linear layer. What
a nonlinear layer is replaced by is up to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """[..., size] of a node's elements; with `columns` (ascending), of these elements only, the others being 0."""

    values: Array
    columns: Array | None = None

    def dense(self, size: int) -> Array:
        if self.columns is None:
            return self.values
        result = np.zeros((*self.values.shape[:-1], size))
        result[..., self.columns] = self.values
        return result

    def at(self, array: Array) -> Array:
        """The columns of an array [..., size]."""
        return array if self.columns is None else array[..., self.columns]


Replace = Callable[[int, Coefficients], tuple[Coefficients, Array]]
"""(nonlinear node, its coefficients) -> (coefficients of its input, constant part [...])."""


def substituted(
    network: Network, node: int, coefficients: Array, replace: Replace
) -> tuple[dict[int, Coefficients], Array]:
    """Coefficients of the cut nodes, and the constant [...], of a function [..., size] of a node."""
    handed: dict[int, Coefficients] = {node: Coefficients(coefficients)}
    constant: Array = np.zeros(coefficients.shape[:-1])
    kept: dict[int, Coefficients] = {}
    for index in range(node, -1, -1):
        given = handed.pop(index, None)
        if given is None:
            continue
        if index in network.cut:
            kept[index] = given
            continue
        layer, inputs = network.nodes[index].layer, network.nodes[index].inputs
        sizes = [network.nodes[source].size for source in inputs]
        match layer:
            case Constant(value):
                constant = constant + given.values @ given.at(value.reshape(-1))
            case Affine(weight, bias):
                values = given.dense(network.nodes[index].size)
                blocks = values.reshape(*values.shape[:-1], -1, len(bias))
                constant = constant + blocks.sum(axis=-2) @ bias
                passed = Coefficients((blocks @ weight.T).reshape(*values.shape[:-1], -1))
                hand(handed, inputs[0], passed, sizes[0])
            case Scaling(multiply, divide, add, _):
                constant = constant + given.values @ given.at(add.reshape(-1))
                factors = given.at((multiply / divide).reshape(-1))
                hand(handed, inputs[0], Coefficients(given.values * factors, given.columns), sizes[0])
            case Sum(signs):
                for sign, source, size in zip(signs, inputs, sizes, strict=True):
                    hand(handed, source, Coefficients(given.values * sign, given.columns), size)
            case Rearrangement(order):
                moved = gathered(order, given)
                starts = [sum(sizes[:number]) for number in range(len(sizes))]
                for source, start, size in zip(inputs, starts, sizes, strict=True):
                    hand(handed, source, part_of(moved, start, size, len(inputs) == 1), size)
            case Rectifier() | Maximum():
                passed, extra = replace(index, given)
                constant = constant + extra
                hand(handed, inputs[0], passed, sizes[0])
            case Embedding():
                raise ValueError(f"node {index}: an embedding that is read across the cut")
    return kept, constant


def hand(handed: dict[int, Coefficients], source: int, more: Coefficients, size: int) -> None:
    if source in handed:
        more = Coefficients(handed[source].dense(size) + more.dense(size))
    handed[source] = more


def gathered(order: Array, given: Coefficients) -> Coefficients:
    """The coefficients of all copies of an element added up, for the inputs laid end to end."""
    index = given.at(order.reshape(-1))
    elements, copies, starts = copies_of(index.tobytes())
    if copies is None or starts is None:
        return Coefficients(given.values[..., np.argsort(index, kind="stable")], elements)
    return Coefficients(np.add.reduceat(given.values[..., copies], starts, axis=-1), elements)


@lru_cache(maxsize=64)
def copies_of(order: bytes) -> tuple[Array, Array | None, Array | None]:
    """The elements read; where their copies are, sorted by element, and where each element's copies start."""
    index = np.frombuffer(order, dtype=np.int64)
    elements, starts, counts = np.unique(np.sort(index), return_index=True, return_counts=True)
    if counts.max(initial=1) == 1:
        return elements, None, None
    return elements, np.argsort(index, kind="stable"), starts


def part_of(whole: Coefficients, start: int, size: int, alone: bool) -> Coefficients:
    columns = whole.columns
    if columns is None or (alone and len(columns) == size):
        return Coefficients(whole.values)
    inside = slice(*np.searchsorted(columns, (start, start + size)).tolist())
    return Coefficients(whole.values[..., inside], columns[inside] - start)
