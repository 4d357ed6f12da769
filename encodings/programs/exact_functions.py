"""A piecewise-linear network as exact affine functions of words and rectifiers: what rectifiers read, and the logits.

    function = constant + sum of words[p, c] * [choice c > 0 stands at position p] + sum of units[n, e] * y[n, e]

where y[n, e] is element e of the output of the rectifier at node n. Weights are dyadic floats, so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from ..exact_evaluation import dyadic, dyadic_weight
from ..network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from ..query import Query
from ..space import SwapSpace

Terms = dict[tuple[int, int], Fraction]


@dataclass(frozen=True, eq=False)
class Function:
    constant: Fraction
    words: Terms
    """(position, choice > 0) -> what this choice adds to the original."""
    units: Terms
    """(rectifier node, element) -> coefficient of its output."""


class Vectors:
    """What words do to functions, as whole numbers over a common denominator."""

    def __init__(self, space: SwapSpace) -> None:
        self.order = [(p, c) for p in space.swappable for c in range(1, len(space.choices[p]))]
        self.place = {pair: at for at, pair in enumerate(self.order)}
        self.known: dict[Function, tuple[NDArray[Any], int]] = {}

    def vector(self, function: Function) -> tuple[NDArray[Any], int]:
        """[pairs] of Python integers, and what they are to be divided by."""
        if function not in self.known:
            common = lcm(*(value.denominator for value in function.words.values()))
            found = np.zeros(len(self.order), dtype=object)
            for pair, value in function.words.items():
                found[self.place[pair]] = value.numerator * (common // value.denominator)
            self.known[function] = found, common
        return self.known[function]

    def total(self, parts: Iterable[tuple[Function, Fraction]]) -> tuple[dict[tuple[int, int], int], int]:
        """The words of sum factor * function, and the common denominator."""
        used = [(self.vector(function), factor) for function, factor in parts if factor and function.words]
        common = lcm(*(factor.denominator * under for (_, under), factor in used))
        found = np.zeros(len(self.order), dtype=object)
        for (vector, under), factor in used:
            found += vector * (factor.numerator * (common // (factor.denominator * under)))
        return {pair: value for pair, value in zip(self.order, found.tolist(), strict=True) if value}, common


@dataclass(frozen=True, eq=False)
class Layer:
    """A rectifier on which the logits depend: y = max(x, slope x) for every input x."""

    node: int
    slope: Fraction
    inputs: tuple[Function, ...]


@dataclass(frozen=True, eq=False)
class Exact:
    """The whole network; layers in order, each reading only words and earlier layers."""

    layers: tuple[Layer, ...]
    logits: tuple[Function, ...]


def exact_functions(query: Query) -> Exact:
    """Refuses networks with maxima, and those whose constants are rounded real numbers."""
    network = query.network
    if network.inexact:
        raise Unsupported(f"{network.inexact[0]}: its constants are rounded, so the network has no exact program")
    last = len(network.nodes) - 1
    reached = ancestors(network, last)
    for index in sorted(reached):
        if isinstance(network.nodes[index].layer, Maximum):
            origin = network.nodes[index].origin
            raise Unsupported(f"{origin}: only feed-forward networks of affine layers and rectifiers can be written")
    rewriting = Rewriting(query)
    layers = []
    for index in sorted(reached):
        node = network.nodes[index]
        if isinstance(node.layer, Rectifier):
            inputs = tuple(rewriting.function(node.inputs[0], e) for e in range(node.size))
            layers.append(Layer(index, Fraction(node.layer.slope), inputs))
    logits = tuple(rewriting.function(last, c) for c in range(network.classes))
    return Exact(tuple(layers), logits)


def ancestors(network: Network, target: int) -> set[int]:
    found, waiting = set(), [target]
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += network.nodes[index].inputs
    return found


@dataclass
class Given:
    """Coefficients of the elements of one node: integers times one scale."""

    scale: Fraction
    coefficients: dict[int, int] = field(default_factory=dict)

    def add(self, scale: Fraction, terms: Sequence[tuple[int, int]]) -> None:
        if scale != self.scale:
            common = Fraction(1, lcm(scale.denominator, self.scale.denominator))
            old, new = int(self.scale / common), int(scale / common)
            self.scale = common
            self.coefficients = {e: c * old for e, c in self.coefficients.items()}
            terms = [(e, c * new) for e, c in terms]
        for element, c in terms:
            self.coefficients[element] = self.coefficients.get(element, 0) + c


class Rewriting:
    """Rewrites elements backwards, layer by layer, down to rectifiers and embedded words."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.nodes = query.network.nodes
        self.columns: dict[int, list[list[tuple[int, int]]]] = {}
        self.rows: dict[tuple[int, int], tuple[list[list[int]], Fraction]] = {}

    def function(self, index: int, element: int) -> Function:
        given = {index: Given(Fraction(1), {element: 1})}
        constant, units = Fraction(0), {}
        places: dict[int, list[tuple[int, Fraction, dict[int, int]]]] = {}
        for n in range(index, -1, -1):
            part = given.pop(n, None)
            if part is None:
                continue
            match self.nodes[n].layer:
                case Rectifier():
                    units.update({(n, e): c * part.scale for e, c in part.coefficients.items() if c})
                case Embedding(_, positions):
                    width = self.nodes[n].shape[-1]
                    kernels: dict[int, dict[int, int]] = {}
                    for e, c in part.coefficients.items():
                        kernels.setdefault(e // width, {})[e % width] = c
                    for place, kernel in kernels.items():
                        position = int(positions.reshape(-1)[place])
                        places.setdefault(position, []).append((n, part.scale, kernel))
                case _:
                    constant += self.backward(n, part, given)
        words: Terms = {}
        for position, readers in places.items():
            values = [Fraction(0)] * len(self.query.space.choices[position])
            for n, scale, kernel in readers:
                rows, unit = self.embedded(n, position)
                factor = scale * unit
                for choice, row in enumerate(rows):
                    values[choice] += factor * sum(c * row[d] for d, c in kernel.items())
            constant += values[0]
            words.update({(position, c): v - values[0] for c, v in enumerate(values) if c and v != values[0]})
        return Function(constant, words, units)

    def embedded(self, n: int, position: int) -> tuple[list[list[int]], Fraction]:
        """The rows of the choices at a position, as integers times a scale."""
        if (n, position) not in self.rows:
            layer = self.nodes[n].layer
            if not isinstance(layer, Embedding):
                raise TypeError(f"node {n} is no embedding")
            integers, scale = dyadic(np.asarray(layer.table[list(self.query.space.choices[position])]))
            self.rows[n, position] = integers.tolist(), scale
        return self.rows[n, position]

    def backward(self, n: int, part: Given, given: dict[int, Given]) -> Fraction:
        """Hands the coefficients of a linear node on to what it reads; returns the constant part."""
        node, scale, items = self.nodes[n], part.scale, list(part.coefficients.items())

        def hand(source: int, scale: Fraction, terms: Sequence[tuple[int, int]]) -> None:
            given.setdefault(source, Given(scale)).add(scale, terms)

        match node.layer:
            case Constant(value):
                flat = value.reshape(-1)
                return scale * sum(c * Fraction(float(flat[e])) for e, c in items)
            case Rearrangement(index):
                order, starts = index.reshape(-1), [0]
                for source in node.inputs:
                    starts.append(starts[-1] + self.nodes[source].size)
                for at, source in enumerate(node.inputs):
                    moved = [(int(order[e]) - starts[at], c) for e, c in items]
                    size = starts[at + 1] - starts[at]
                    hand(source, scale, [(e, c) for e, c in moved if 0 <= e < size])
                return Fraction(0)
            case Affine(weight, bias) as layer:
                if n not in self.columns:
                    factors, _ = dyadic_weight(layer)
                    self.columns[n] = [[(k, int(w)) for k, w in enumerate(column) if w] for column in factors.T]
                rows, outputs = weight.shape
                grid = dyadic_weight(layer)[1]
                for e, c in items:
                    start = e // outputs * rows
                    hand(node.inputs[0], scale * grid, [(start + k, c * w) for k, w in self.columns[n][e % outputs]])
                return scale * sum(c * Fraction(float(bias[e % outputs])) for e, c in items)
            case Scaling(multiply, divide, add, _):
                times, under, more = (array.reshape(-1) for array in (multiply, divide, add))
                ratios = {e: Fraction(float(times[e])) / Fraction(float(under[e])) for e, _ in items}
                common = lcm(*(ratio.denominator for ratio in ratios.values()))
                hand(node.inputs[0], scale / common, [(e, int(c * ratios[e] * common)) for e, c in items])
                return scale * sum(c * Fraction(float(more[e])) for e, c in items)
            case Sum(signs):
                for source, sign in zip(node.inputs, signs, strict=True):
                    hand(source, scale, [(e, sign * c) for e, c in items])
                return Fraction(0)
        raise TypeError(f"node {n} is not linear")
