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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.bounds.substitution import Coefficients, copies_of, gathered
from swapproof.encodings.network import (
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.walk import Meaning, backward

from .float64_rounding import UNIT, Floats, growth
from .values_beyond_cut import ACROSS


@dataclass(frozen=True, eq=False)
class Replaced:
    """A nonlinear step: what its input gets, what is added to the constant, and the doubt [B, R] beside rounding."""

    passed: Coefficients
    constant: Floats
    doubt: Floats
    terms: int


Replace = Callable[[At, Coefficients], Replaced]
"""(nonlinear node, its coefficients [B, R, ...]) -> what it is replaced by."""
Parts = list[Coefficients | None]


@dataclass(eq=False)
class Substitution:
    """The function so far: coefficients handed to nodes of the cut, the constant [B, R] and the error [B, R]."""

    network: Network
    sizes: Mapping[int, Floats]
    replace: Replace
    constant: Floats
    error: Floats
    handed: dict[int, Coefficients] = field(default_factory=dict)

    def join(self, source: int, one: Coefficients, more: Coefficients) -> Coefficients:
        size = self.network.nodes[source].size
        both = Coefficients(one.dense(size) + more.dense(size))
        self.error = self.error + 2 * UNIT * weighed(both.values, self.sizes[source])
        return both

    def add(self, constant: Floats) -> None:
        self.constant = self.constant + constant
        self.error = self.error + 2 * UNIT * np.abs(self.constant)

    def rounded(self, operations: int, given: Coefficients, at: At) -> None:
        self.error = self.error + growth(operations) * weighed(given.values, given.at(self.sizes[at.index]))

    def hold(self, layer: Constant, given: Coefficients, at: At) -> Parts:
        self.add(given.values @ given.at(layer.value.reshape(-1)))
        self.rounded(given.values.shape[2] + 2, given, at)
        return []

    def multiply(self, layer: Affine, given: Coefficients, at: At) -> Parts:
        values = given.dense(at.node.size)
        blocks = values.reshape(*values.shape[:2], -1, len(layer.bias))
        self.add(blocks.sum(axis=2) @ layer.bias)
        self.rounded(blocks.shape[2] + len(layer.bias) + 4, given, at)
        return [Coefficients((blocks @ layer.weight.T).reshape(*values.shape[:2], -1))]

    def scale(self, layer: Scaling, given: Coefficients, at: At) -> Parts:
        self.add(given.values @ given.at(layer.add.reshape(-1)))
        self.rounded(given.values.shape[2] + 6, given, at)
        factors = given.at((layer.multiply / layer.divide).reshape(-1))
        return [Coefficients(given.values * factors, given.columns)]

    def add_up(self, layer: Sum, given: Coefficients, at: At) -> Parts:
        return [Coefficients(given.values * sign, given.columns) for sign in layer.signs]

    def rearrange(self, layer: Rearrangement, given: Coefficients, at: At) -> Parts:
        copies = copies_of(given.at(layer.index.reshape(-1)).tobytes())
        if copies.most > 1:
            self.rounded(copies.most, given, at)
        values, parts = gathered(layer.index, given).values, self.network.laid(at.node)
        insides = [np.searchsorted(copies.elements, (part.start, part.stop)).tolist() for part in parts]
        return [
            Coefficients(values[..., first:stop], copies.elements[first:stop] - part.start) if stop > first else None
            for part, (first, stop) in zip(parts, insides, strict=True)
        ]

    def relax(self, layer: Rectifier | Maximum, given: Coefficients, at: At) -> Parts:
        found = self.replace(at, given)
        self.add(found.constant)
        self.error = self.error + found.doubt
        self.rounded(found.terms, given, at)
        return [found.passed]


REWRITTEN: Meaning[Sequence[Coefficients | None]] = Meaning(
    "backward substitution in float64",
    {
        Constant: Substitution.hold,
        Rearrangement: Substitution.rearrange,
        Affine: Substitution.multiply,
        Scaling: Substitution.scale,
        Sum: Substitution.add_up,
        Rectifier: Substitution.relax,
        Maximum: Substitution.relax,
    },
    {Embedding: ACROSS},
)


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
    state = Substitution(network, sizes, replace, nothing, nothing)
    given = Coefficients(coefficients)
    reached = backward(network, REWRITTEN, state, node, given, state.join, network.cut)
    state.handed = {index: part for index, part in reached if index in network.cut}
    return state
