"""Backward substitution in float64, with a bound on what rounding and doubtful choices can do to the result.

Errors are taken step by step: the float coefficients of a node are given, the step is done once more over the reals
from exactly these, and the difference in the coefficients handed on, weighed by the magnitudes M of what they belong to
(values_beyond_cut.py), is what the step can have cost. With V = sum |c| M of the node,

    x W + b        growth(n) V, n terms per coefficient        copies added up    growth(copies) V
    rectifier      growth(n) V + sum |c| doubt of its line     maximum            likewise
    a sum of parts handed on by several readers                unit |sum| M each time
    the constant   unit |constant| each time something is added
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import (
    Affine,
    Constant,
    Maximum,
    Network,
    Node,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)

from ..form.unsure import Unsure
from .float64_rounding import UNIT, Array, Floats, growth

Columns = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Given:
    """Coefficients [B, R, size] of a node's elements; with `columns` (ascending), of these only, the others being 0."""

    values: Floats
    columns: Columns | None = None

    def dense(self, size: int) -> Floats:
        if self.columns is None:
            return self.values
        result: Array = np.zeros((*self.values.shape[:2], size))
        result[..., self.columns] = self.values
        return result

    def at(self, array: Any) -> Any:
        """The columns of an array [..., size]."""
        return array if self.columns is None else array[..., self.columns]


@dataclass(frozen=True, eq=False)
class Replaced:
    """A nonlinear step: what its input gets, what is added to the constant, and the doubt [B, R] beside rounding."""

    passed: Given
    constant: Floats
    doubt: Floats
    terms: int


Replace = Callable[[int, Given], Replaced]


@dataclass(eq=False)
class Substitution:
    """The function so far: coefficients handed to nodes, the constant [B, R] and the error [B, R]."""

    network: Network
    sizes: Mapping[int, Floats]
    constant: Floats
    error: Floats
    handed: dict[int, Given]

    def hand(self, source: int, more: Given) -> None:
        if source in self.handed:
            size = self.network.nodes[source].size
            more = Given(self.handed[source].dense(size) + more.dense(size))
            self.error = self.error + 2 * UNIT * weighed(more.values, self.sizes[source])
        self.handed[source] = more

    def add(self, constant: Floats) -> None:
        self.constant = self.constant + constant
        self.error = self.error + 2 * UNIT * np.abs(self.constant)

    def linear(self, node: Node, given: Given, weight: Floats) -> None:
        """One layer that is no rectifier and no maximum."""
        sources = node.inputs
        match node.layer:
            case Constant(value):
                self.add(given.values @ given.at(value.reshape(-1)))
                self.error = self.error + growth(given.values.shape[2] + 2) * weight
            case Affine(matrix, bias):
                values = given.dense(node.size)
                blocks = values.reshape(*values.shape[:2], -1, len(bias))
                self.add(blocks.sum(axis=2) @ bias)
                self.error = self.error + growth(blocks.shape[2] + len(bias) + 4) * weight
                self.hand(sources[0], Given((blocks @ matrix.T).reshape(*values.shape[:2], -1)))
            case Scaling(multiply, divide, add, _):
                self.add(given.values @ given.at(add.reshape(-1)))
                self.error = self.error + growth(given.values.shape[2] + 6) * weight
                self.hand(sources[0], Given(given.values * given.at((multiply / divide).reshape(-1)), given.columns))
            case Sum(signs):
                for sign, source in zip(signs, sources, strict=True):
                    self.hand(source, Given(given.values * sign, given.columns))
            case Rearrangement(order):
                index = given.at(order.reshape(-1))
                elements, copies = np.unique(index, return_inverse=True)
                most = int(np.bincount(copies).max(initial=1))
                values = given.values
                if most == 1:
                    values = values[..., np.argsort(index, kind="stable")]
                else:
                    sort = np.argsort(index, kind="stable")
                    starts = np.searchsorted(index[sort], elements)
                    values = np.add.reduceat(values[..., sort], starts, axis=2)
                    self.error = self.error + growth(most) * weight
                start = 0
                for source in sources:
                    size = self.network.nodes[source].size
                    inside = slice(*np.searchsorted(elements, (start, start + size)).tolist())
                    if inside.stop > inside.start:
                        self.hand(source, Given(values[..., inside], elements[inside] - start))
                    start += size
            case _:
                raise Unsure(f"a {type(node.layer).__name__} read across the cut")


def weighed(values: Floats, sizes: Floats) -> Floats:
    """[B, R]: sum |c| M of coefficients [B, R, n], with sizes [n], or [B, n]."""
    if sizes.ndim == 1:
        return np.asarray(np.abs(values) @ sizes)
    return np.asarray((np.abs(values) @ sizes[:, :, None])[..., 0])


def substitute(
    network: Network, sizes: Mapping[int, Floats], node: int, coefficients: Floats, replace: Replace
) -> Substitution:
    """A function [B, R, size] of a node rewritten until only nodes of the cut are handed anything."""
    nothing: Floats = np.zeros(coefficients.shape[:2])
    state = Substitution(network, sizes, nothing, nothing, {node: Given(coefficients)})
    kept: dict[int, Given] = {}
    for index in range(node, -1, -1):
        given = state.handed.pop(index, None)
        if given is None:
            continue
        if index in network.cut:
            kept[index] = given
            continue
        layer = network.nodes[index].layer
        weight = weighed(given.values, given.at(sizes[index]))
        if isinstance(layer, Rectifier | Maximum):
            found = replace(index, given)
            state.add(found.constant)
            state.error = state.error + found.doubt + growth(found.terms) * weight
            state.hand(network.nodes[index].inputs[0], found.passed)
        else:
            state.linear(network.nodes[index], given, weight)
    state.handed = kept
    return state
