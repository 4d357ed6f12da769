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
from ..network import SMOOTH, Affine, At, Constant, Embedding, Floats, Maximum, Rearrangement, Rectifier, Scaling, Sum
from ..query import Query
from ..space import SwapSpace
from ..walk import Meaning, backward, needed

Terms = dict[tuple[int, int], Fraction]


@dataclass(frozen=True, eq=False)
class Function:
    constant: Fraction
    words: Terms
    """(position, choice > 0) -> what this choice adds to the original."""
    units: Terms
    """(nonlinear node, element) -> coefficient of its output."""


def combined(parts: Iterable[tuple[Fraction, Function]], constant: Fraction = Fraction(0)) -> Function:
    """constant + sum of factor * function."""
    words, units = Terms(), Terms()
    for factor, part in parts:
        constant += factor * part.constant
        for total, terms in ((words, part.words), (units, part.units)):
            for key, coefficient in terms.items():
                more = factor * coefficient
                total[key] = total[key] + more if key in total else more
    return Function(constant, *({key: c for key, c in total.items() if c} for total in (words, units)))


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
    reached = needed(network, ())
    for index in reached:
        FUNCTIONS.rule(network.nodes[index])
    rewriting = Rewriting(query)
    layers = []
    for index in reached:
        node = network.nodes[index]
        if isinstance(node.layer, Rectifier):
            inputs = tuple(rewriting.function(node.inputs[0], e) for e in range(node.size))
            layers.append(Layer(index, Fraction(node.layer.slope), inputs))
    logits = tuple(rewriting.function(last, c) for c in range(network.classes))
    return Exact(tuple(layers), logits)


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
        self.query, self.network = query, query.network
        self.columns: dict[int, list[list[tuple[int, int]]]] = {}
        self.rows: dict[tuple[int, int], tuple[list[list[int]], Fraction]] = {}

    def function(self, index: int, element: int) -> Function:
        self.constant, self.units = Fraction(0), Terms()
        self.places: dict[int, list[tuple[int, Fraction, dict[int, int]]]] = {}
        for _ in backward(self.network, FUNCTIONS, self, index, Given(Fraction(1), {element: 1}), joined):
            pass
        words: Terms = {}
        for position, readers in self.places.items():
            values = [Fraction(0)] * len(self.query.space.choices[position])
            for n, scale, kernel in readers:
                rows, unit = self.rows[n, position]
                factor = scale * unit
                for choice, row in enumerate(rows):
                    values[choice] += factor * sum(c * row[d] for d, c in kernel.items())
            self.constant += values[0]
            words.update({(position, c): v - values[0] for c, v in enumerate(values) if c and v != values[0]})
        return Function(self.constant, words, self.units)

    def look_up(self, layer: Embedding, given: Given, at: At) -> list[Given]:
        width = at.node.shape[-1]
        kernels: dict[int, dict[int, int]] = {}
        for e, c in given.coefficients.items():
            kernels.setdefault(e // width, {})[e % width] = c
        for place, kernel in kernels.items():
            position = int(layer.positions.reshape(-1)[place])
            self.places.setdefault(position, []).append((at.index, given.scale, kernel))
            if (at.index, position) not in self.rows:
                integers, scale = dyadic(np.asarray(layer.table[list(self.query.space.choices[position])]))
                self.rows[at.index, position] = integers.tolist(), scale
        return []

    def rectify(self, layer: Rectifier, given: Given, at: At) -> list[Given]:
        self.units.update({(at.index, e): c * given.scale for e, c in given.coefficients.items() if c})
        return []

    def hold(self, layer: Constant, given: Given, at: At) -> list[Given]:
        self.add(given, layer.value.reshape(-1))
        return []

    def rearrange(self, layer: Rearrangement, given: Given, at: At) -> list[Given]:
        order, parts = layer.index.reshape(-1), self.network.laid(at.node)
        moved = [(int(order[e]), c) for e, c in given.coefficients.items()]
        found = [Given(given.scale) for _ in parts]
        for one, part in zip(found, parts, strict=True):
            one.add(given.scale, [(e - part.start, c) for e, c in moved if part.start <= e < part.stop])
        return found

    def multiply(self, layer: Affine, given: Given, at: At) -> list[Given]:
        factors, grid = dyadic_weight(layer)
        if at.index not in self.columns:
            self.columns[at.index] = [[(k, int(w)) for k, w in enumerate(column) if w] for column in factors.T]
        (rows, outputs), columns = layer.weight.shape, self.columns[at.index]
        found = Given(given.scale * grid)
        for e, c in given.coefficients.items():
            start = e // outputs * rows
            found.add(found.scale, [(start + k, c * w) for k, w in columns[e % outputs]])
        self.add(given, layer.bias)
        return [found]

    def scale(self, layer: Scaling, given: Given, at: At) -> list[Given]:
        times, under = (array.reshape(-1) for array in (layer.multiply, layer.divide))
        ratios = {e: Fraction(float(times[e])) / Fraction(float(under[e])) for e in given.coefficients}
        common = lcm(*(ratio.denominator for ratio in ratios.values()))
        self.add(given, layer.add.reshape(-1))
        return [Given(given.scale / common, {e: int(c * ratios[e] * common) for e, c in given.coefficients.items()})]

    def add_up(self, layer: Sum, given: Given, at: At) -> list[Given]:
        return [Given(given.scale, {e: sign * c for e, c in given.coefficients.items()}) for sign in layer.signs]

    def add(self, given: Given, constants: Floats) -> None:
        """What the coefficients make of constants, which repeat from block to block."""
        size = len(constants)
        self.constant += given.scale * sum(
            c * Fraction(float(constants[e % size])) for e, c in given.coefficients.items()
        )


def joined(source: int, one: Given, more: Given) -> Given:
    one.add(more.scale, list(more.coefficients.items()))
    return one


FUNCTIONS: Meaning[Sequence[Given]] = Meaning(
    "exact affine function",
    {
        Embedding: Rewriting.look_up,
        Constant: Rewriting.hold,
        Rearrangement: Rewriting.rearrange,
        Affine: Rewriting.multiply,
        Scaling: Rewriting.scale,
        Sum: Rewriting.add_up,
        Rectifier: Rewriting.rectify,
    },
    dict.fromkeys((Maximum, *SMOOTH), "only feed-forward networks of affine layers and rectifiers can be written"),
)
