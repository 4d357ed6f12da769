"""The checker's network over its inputs as matrices in float64: every number is the exact one, rounded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.proofs import check, check_box

from ..form.unsure import Unsure
from ..numbers.float64_rounding import LARGEST, Floats

LEAST = 2.0**-800
"""Smaller weights may lose more than a part of themselves."""
Terms = dict[int, int]
"""Of a number: coefficients of integers of elements, over its own scale."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Sum of weights[j] h_j + inputs x + bias, h_j being the values of the j-th rectifier.

    `given` has the elements affine in the inputs that rows read beside rectifiers, by their slots, and `shares` how
    they do; `inputs` has them too.
    """

    weights: Mapping[int, Floats]
    inputs: Floats
    bias: Floats
    given: Sequence[int]
    shares: Floats

    def taken(self, index: NDArray[np.int64]) -> Rows:
        weights = {j: w[index] for j, w in self.weights.items()}
        return Rows(weights, self.inputs[index], self.bias[index], self.given, self.shares[index])

    def two_sided(self) -> Rows:
        """The rows, then the rows negated."""
        pairs = {j: np.concatenate([w, -w]) for j, w in self.weights.items()}
        parts = [np.concatenate([part, -part]) for part in (self.inputs, self.bias, self.shares)]
        return Rows(pairs, parts[0], parts[1], self.given, parts[2])


@dataclass(frozen=True, eq=False)
class Rectified:
    """A rectifier: its place among all layers, that of its neurons among all, what they read, its slope below 0."""

    number: int
    neurons: slice
    rows: Rows
    slope: float


def rounded(above: int, below: int) -> float:
    """above / below in float64, correctly rounded."""
    try:
        found = above / below
    except OverflowError:
        raise Unsure("weights beyond float64") from None
    if above and not LEAST < abs(found) < LARGEST:
        raise Unsure("weights of very different sizes")
    return found


class FloatNetwork:
    """Raises Unsure for what is not followed in float64: maxima, and numbers that rectifiers read twice."""

    def __init__(self, space: check_box.Space) -> None:
        self.space, network = space, space.network
        self.inputs = len(network.inputs)
        self.index: dict[int, tuple[int, int]] = {}
        """Element of a rectifier -> its place among rectifiers, and there."""
        self.neuron: dict[int, int] = {}
        """Element of a rectifier -> its place among all neurons."""
        self.layers: list[Rectified] = []
        read: set[int] = set()
        for layer in network.nonlinear:
            if not isinstance(layer, check.Rectifier):
                raise Unsure("maxima")
            sources = list(layer.sources)
            if len(read | set(sources)) != len(read) + len(sources):
                raise Unsure("a number that rectifiers read twice")
            read.update(sources)
            if any(network.owner[i].depth and not isinstance(network.owner[i], check.Affine) for i in sources):
                raise Unsure("a rectifier of a rectifier")
            rows, first = self.rows([self.terms(i) for i in sources]), len(self.neuron)
            if rows.weights and any(not network.owner[i].depth for i in sources):
                raise Unsure("a rectifier of elements of different depth")
            number = network.layers.index(layer)
            self.layers.append(Rectified(number, slice(first, first + layer.size), rows, layer.p / layer.q))
            for at in range(layer.size):
                self.index[layer.start + at] = len(self.layers) - 1, at
                self.neuron[layer.start + at] = first + at
        self.neurons = len(self.neuron)
        pairs = list(zip(space.columns, space.scales, strict=True))
        self.columns = np.array([[self.of_input(c, scale) for c in column] for column, scale in pairs])
        self.bases = np.array([rounded(base, scale) for base, scale in zip(space.base, space.scales, strict=True)])

    def of_input(self, c: int, scale: int) -> float:
        return rounded(c * self.space.network.input_scale, scale) if c else 0.0

    def terms(self, i: int) -> tuple[Terms, int, int]:
        """Of an element, through affine layers down to rectifiers and elements affine in the inputs: coefficients and
        a constant, over a scale."""
        network = self.space.network
        owner, constant, factor, top = network.owner, 0, 1, i
        while owner[top].depth and isinstance(layer := owner[top], check.Affine):
            row = layer.rows[top - layer.start]
            elements, constant = layer.lists[row.read], constant + factor * row.bias
            plain = all(not owner[at].depth or isinstance(owner[at], check.Rectifier) for at in elements)
            if plain and len(set(elements)) == len(elements):
                weights = row.weights if factor == 1 else [factor * weight for weight in row.weights]
                return dict(zip(elements, weights, strict=True)), constant, owner[i].scale
            if len(elements) != 1:
                break
            factor, top = factor * row.weights[0], elements[0]
        constant = 0

        def define(top: int, c: int) -> Iterable[tuple[int, int]] | None:
            nonlocal constant
            inner = owner[top]
            if not inner.depth or not isinstance(inner, check.Affine):
                return None
            row = inner.rows[top - inner.start]
            constant += c * row.bias
            return zip(inner.lists[row.read], [c * weight for weight in row.weights], strict=True)

        return check.substitute({i: 1}, define), constant, owner[i].scale

    def rows(self, terms: Sequence[tuple[Terms, int, int]]) -> Rows:
        """Of terms over a scale each: the integer of an element is its value times the scale of its owner."""
        owner, space = self.space.network.owner, self.space
        weights: dict[int, Floats] = {}
        given: dict[int, int] = {}
        shares: list[tuple[int, int, float]] = []
        inputs, bias = np.zeros((len(terms), self.inputs)), np.zeros(len(terms))
        for row, (found, constant, scale) in enumerate(terms):
            total = [0] * self.inputs
            for i, c in found.items():
                if i in self.index:
                    layer, at = self.index[i]
                    if layer not in weights:
                        weights[layer] = np.zeros((len(terms), len(self.layers[layer].rows.bias)))
                    weights[layer][row, at] = rounded(c * owner[i].scale, scale)
                elif c:
                    slot = self.space.network.slot[i]
                    constant += c * space.base[slot]
                    total = [x + c * y for x, y in zip(total, space.columns[slot], strict=True)]
                    shares.append((row, given.setdefault(slot, len(given)), rounded(c * owner[i].scale, scale)))
            inputs[row] = [self.of_input(c, scale) for c in total]
            bias[row] = rounded(constant, scale)
        spread = np.zeros((len(terms), len(given)))
        for row, column, share in shares:
            spread[row, column] = share
        return Rows(weights, inputs, bias, list(given), spread)

    def constraints(self, tree: check_box.Tree) -> Rows:
        """The left sides of the constraints."""
        found = []
        for terms, constant in tree.rows:
            scale = self.space.network.scale * self.space.network.input_scale
            total: Terms = {}
            constant *= scale
            for i, c in terms:
                inner, added, own = self.terms(i)
                if scale % own:
                    raise Unsure("an output over another scale")
                constant += c * added * (scale // own)
                for at, weight in inner.items():
                    total[at] = total.get(at, 0) + c * weight * (scale // own)
            found.append((total, constant, scale * tree.common))
        return self.rows(found)
