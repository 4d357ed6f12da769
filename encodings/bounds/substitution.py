"""Backward substitution: a linear function of a network's last values rewritten in terms of earlier ones.

sum c_i y_i + constant, with y = W x + b, is sum (W c)_i x_i + (constant + c b), and so on for every linear layer. What
a nonlinear layer is replaced by is up to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Affine, At, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from ..walk import Meaning, backward

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


Relaxed = tuple[Coefficients, Array]
"""Coefficients of the input of a nonlinear node, and the constant part [...]."""
Replace = Callable[[int, Coefficients], Relaxed]
"""(nonlinear node, its coefficients) -> what it is replaced by."""


@dataclass(eq=False)
class Rewriting:
    """One substitution, and the constant [...] that it has come to so far."""

    network: Network
    replace: Replace
    constant: Array

    def size(self, node: int) -> int:
        return self.network.nodes[node].size

    def add(self, source: int, one: Coefficients, more: Coefficients) -> Coefficients:
        size = self.size(source)
        return Coefficients(one.dense(size) + more.dense(size))

    def hold(self, layer: Constant, given: Coefficients, at: At) -> list[Coefficients]:
        self.constant = self.constant + given.values @ given.at(layer.value.reshape(-1))
        return []

    def rearrange(self, layer: Rearrangement, given: Coefficients, at: At) -> list[Coefficients]:
        moved = gathered(layer.index, given)
        return [part_of(moved, part, len(at.node.inputs) == 1) for part in self.network.laid(at.node)]

    def multiply(self, layer: Affine, given: Coefficients, at: At) -> list[Coefficients]:
        values = given.dense(at.node.size)
        blocks = values.reshape(*values.shape[:-1], -1, len(layer.bias))
        self.constant = self.constant + blocks.sum(axis=-2) @ layer.bias
        return [Coefficients((blocks @ layer.weight.T).reshape(*values.shape[:-1], -1))]

    def scale(self, layer: Scaling, given: Coefficients, at: At) -> list[Coefficients]:
        self.constant = self.constant + given.values @ given.at(layer.add.reshape(-1))
        factors = given.at((layer.multiply / layer.divide).reshape(-1))
        return [Coefficients(given.values * factors, given.columns)]

    def add_up(self, layer: Sum, given: Coefficients, at: At) -> list[Coefficients]:
        return [Coefficients(given.values * sign, given.columns) for sign in layer.signs]

    def relax(self, layer: Rectifier | Maximum, given: Coefficients, at: At) -> list[Coefficients]:
        passed, extra = self.replace(at.index, given)
        self.constant = self.constant + extra
        return [passed]


COEFFICIENTS: Meaning[Sequence[Coefficients]] = Meaning(
    "backward substitution",
    {
        Constant: Rewriting.hold,
        Rearrangement: Rewriting.rearrange,
        Affine: Rewriting.multiply,
        Scaling: Rewriting.scale,
        Sum: Rewriting.add_up,
        Rectifier: Rewriting.relax,
        Maximum: Rewriting.relax,
    },
    {Embedding: "words are reached at the cut, and this one is read across it"},
)


def substituted(
    network: Network, node: int, coefficients: Array, replace: Replace
) -> tuple[dict[int, Coefficients], Array]:
    """Coefficients of the cut nodes, and the constant [...], of a function [..., size] of a node."""
    rewriting = Rewriting(network, replace, np.zeros(coefficients.shape[:-1]))
    reached = backward(network, COEFFICIENTS, rewriting, node, Coefficients(coefficients), rewriting.add, network.cut)
    return {index: given for index, given in reached if index in network.cut}, rewriting.constant


def gathered(order: Array, given: Coefficients) -> Coefficients:
    """The coefficients of all copies of an element added up, for the inputs laid end to end."""
    copies = copies_of(given.at(order.reshape(-1)).tobytes())
    values = given.values[..., copies.sort]
    return Coefficients(
        values if copies.most == 1 else np.add.reduceat(values, copies.starts, axis=-1), copies.elements
    )


@dataclass(frozen=True, eq=False)
class Copies:
    """The elements read; where their copies are, by element; where each one's start; how many one has at most."""

    elements: Array
    sort: Array
    starts: Array
    most: int


@lru_cache(maxsize=64)
def copies_of(order: bytes) -> Copies:
    index = np.frombuffer(order, dtype=np.int64)
    sort = np.argsort(index, kind="stable")
    elements, starts, counts = np.unique(index[sort], return_index=True, return_counts=True)
    return Copies(elements, sort, starts, int(counts.max(initial=1)))


def part_of(whole: Coefficients, part: slice, alone: bool) -> Coefficients:
    columns = whole.columns
    if columns is None or (alone and len(columns) == part.stop):
        return Coefficients(whole.values)
    inside = slice(*np.searchsorted(columns, (part.start, part.stop)).tolist())
    return Coefficients(whole.values[..., inside], columns[inside] - part.start)
