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

from ..network import SMOOTH, Affine, At, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
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
Parts = Sequence[Coefficients | None]
"""What each input of a node is handed; None: nothing."""


@dataclass(eq=False)
class Rewriting:
    """One substitution, and the constant [...] that it has come to so far.

    Whoever carries errors along overrides `come_to`, `add` and `charge`, which are told of every rounding.
    """

    network: Network
    replace: Replace
    constant: Array

    def size(self, node: int) -> int:
        return self.network.nodes[node].size

    def come_to(self, more: Array) -> None:
        """One more constant part."""
        self.constant = self.constant + more

    def add(self, source: int, one: Coefficients, more: Coefficients) -> Coefficients:
        size = self.size(source)
        return Coefficients(one.dense(size) + more.dense(size))

    def charge(self, operations: int, given: Coefficients, at: At) -> None:
        """What is handed on of this node's coefficients, and what they add to the constant, met so many roundings."""

    def down(self, node: int, coefficients: Array) -> dict[int, Coefficients]:
        """Coefficients of the cut nodes, of a function [..., size] of a node."""
        cut = self.network.cut
        reached = backward(self.network, COEFFICIENTS, self, node, Coefficients(coefficients), self.add, cut)
        return {index: given for index, given in reached if index in cut}

    def hold(self, layer: Constant, given: Coefficients, at: At) -> Parts:
        self.come_to(given.values @ given.at(layer.value.reshape(-1)))
        self.charge(given.values.shape[-1] + 2, given, at)
        return []

    def rearrange(self, layer: Rearrangement, given: Coefficients, at: At) -> Parts:
        copies = copies_of(given.at(layer.index.reshape(-1)).tobytes())
        if copies.most > 1:
            self.charge(copies.most, given, at)
        moved = gathered(copies, given)
        return [part_of(moved, part, len(at.node.inputs) == 1) for part in self.network.laid(at.node)]

    def multiply(self, layer: Affine, given: Coefficients, at: At) -> Parts:
        values = given.dense(at.node.size)
        blocks = values.reshape(*values.shape[:-1], -1, len(layer.bias))
        self.come_to(blocks.sum(axis=-2) @ layer.bias)
        self.charge(blocks.shape[-2] + len(layer.bias) + 4, given, at)
        return [Coefficients((blocks @ layer.weight.T).reshape(*values.shape[:-1], -1))]

    def scale(self, layer: Scaling, given: Coefficients, at: At) -> Parts:
        self.come_to(given.values @ given.at(layer.add.reshape(-1)))
        self.charge(given.values.shape[-1] + 6, given, at)
        factors = given.at((layer.multiply / layer.divide).reshape(-1))
        return [Coefficients(given.values * factors, given.columns)]

    def add_up(self, layer: Sum, given: Coefficients, at: At) -> Parts:
        return [Coefficients(given.values * sign, given.columns) for sign in layer.signs]

    def relax(self, layer: Rectifier | Maximum, given: Coefficients, at: At) -> Parts:
        passed, extra = self.replace(at.index, given)
        self.come_to(extra)
        return [passed]


COEFFICIENTS: Meaning[Parts] = Meaning(
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
    {
        Embedding: "words are reached at the cut, and this one is read across it",
        **dict.fromkeys(SMOOTH, "it has no bounding lines: smooth networks are bounded by intervals"),
    },
)


def substituted(
    network: Network, node: int, coefficients: Array, replace: Replace
) -> tuple[dict[int, Coefficients], Array]:
    """Coefficients of the cut nodes, and the constant [...], of a function [..., size] of a node."""
    rewriting = Rewriting(network, replace, np.zeros(coefficients.shape[:-1]))
    return rewriting.down(node, coefficients), rewriting.constant


def gathered(copies: Copies, given: Coefficients) -> Coefficients:
    """The coefficients of all copies of an element added up, for the inputs laid end to end."""
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


def part_of(whole: Coefficients, part: slice, alone: bool) -> Coefficients | None:
    """Of one input; None: nothing."""
    columns = whole.columns
    if columns is None or (alone and len(columns) == part.stop):
        return Coefficients(whole.values)
    inside = slice(*np.searchsorted(columns, (part.start, part.stop)).tolist())
    if inside.start == inside.stop:
        return None
    return Coefficients(whole.values[..., inside], columns[inside] - part.start)
