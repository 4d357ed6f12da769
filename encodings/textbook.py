"""The textbook mixed-integer model of min_swaps: one binary per word choice, big-M rectifiers and maxima, as plain data.

    minimise   number of swaps
    one choice per position:       sum over c of b[p, c] = 1
    y = relu(z), l <= z <= u:      y >= 0, y >= z, y <= u a, y <= z - l (1 - a), a binary
    y = max over w of z_w:         y >= z_w, y <= z_w + (max u - l_w) (1 - a_w), sum a_w = 1
    margin against one rival:      z_label - z_rival <= -tolerance

The bounds l, u are those of all sentences, by plain intervals behind the first layer. What solvers are compared with: nobody's
best model, but the one of the published work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluation import needed
from .incremental import Differences
from .network import Affine, Constant, Embedding, Layer, Maximum, Rearrangement, Rectifier, Scaling, Sum
from .query import Query

Array = NDArray[Any]
Terms = dict[int, float]

TOLERANCE = 1e-6
"""A solver's strict inequality; its answers are claims, so this decides no verdict."""


@dataclass(frozen=True)
class Row:
    """low <= sum terms <= high."""

    terms: Terms
    low: float
    high: float


@dataclass
class Milp:
    """Minimise the sum of `costs`; variable v lies in [low[v], high[v]] and is whole when `whole[v]`."""

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    costs: Terms = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    choices: dict[tuple[int, int], int] = field(default_factory=dict)
    """(position, token) -> its binary; fixed positions have none."""

    def variable(self, low: float, high: float, *, whole: bool = False) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.low) - 1

    def row(self, terms: Terms, low: float = -np.inf, high: float = np.inf) -> None:
        self.rows.append(Row({v: c for v, c in terms.items() if c}, low, high))

    def sentence(self, query: Query, values: Array) -> tuple[int, ...]:
        """The token ids that these values of the variables choose."""
        swaps = [at for at, v in self.choices.items() if values[v] > 0.5 and at[1] != query.space.original[at[0]]]
        return query.space.sentence(swaps)


@dataclass(frozen=True)
class Element:
    """terms + constant, between low and high in every sentence."""

    terms: Terms
    constant: float
    low: float
    high: float


def textbook_model(query: Query, rival: int) -> Milp:
    """Against one rival class."""
    milp = Milp()
    differences = Differences.of(query)
    for position in query.space.swappable:
        options = query.space.choices[position]
        for token in options:
            milp.choices[position, token] = milp.variable(0.0, 1.0, whole=True)
        milp.row({milp.choices[position, token]: 1.0 for token in options}, 1.0, 1.0)
        milp.costs |= {milp.choices[position, token]: 1.0 for token in options[1:]}
    binaries = [milp.choices[int(p), int(t)] for p, t in zip(differences.positions, differences.tokens, strict=True)]
    known: dict[int, list[Element]] = {
        index: cut_elements(differences, binaries, part) for index, part in differences.parts.items()
    }
    last = len(query.network.nodes) - 1
    for index in needed(query.network, frozenset(known)):
        node = query.network.nodes[index]
        inputs = [element for source in node.inputs for element in known[source]]
        known[index] = elements_of(milp, node.layer, inputs, [known[source] for source in node.inputs], node.size)
    margin = combined([(1.0, known[last][query.label]), (-1.0, known[last][rival])], 0.0)
    milp.row(margin.terms, high=-TOLERANCE - margin.constant)
    return milp


def cut_elements(differences: Differences, binaries: list[int], part: slice) -> list[Element]:
    _, place = np.unique(differences.positions, return_inverse=True)
    count = int(place.max(initial=-1)) + 1
    rows = differences.rows[:, part]
    down, up = np.zeros((count, rows.shape[1])), np.zeros((count, rows.shape[1]))
    np.minimum.at(down, place, rows)
    np.maximum.at(up, place, rows)
    base = differences.base[part]
    low, high = base + down.sum(axis=0), base + up.sum(axis=0)
    found = []
    for e in range(rows.shape[1]):
        terms = {binaries[s]: float(rows[s, e]) for s in np.flatnonzero(rows[:, e])}
        found.append(Element(terms, float(base[e]), float(low[e]), float(high[e])))
    return found


def combined(parts: list[tuple[float, Element]], constant: float) -> Element:
    """constant + sum of factor * element."""
    terms: Terms = {}
    low = high = constant
    for factor, element in parts:
        if not factor:
            continue
        constant += factor * element.constant
        ends = factor * element.low, factor * element.high
        low, high = low + min(ends), high + max(ends)
        for variable, coefficient in element.terms.items():
            terms[variable] = terms.get(variable, 0.0) + factor * coefficient
    return Element(terms, constant, low, high)


def elements_of(
    milp: Milp, layer: Layer, inputs: list[Element], separate: list[list[Element]], size: int
) -> list[Element]:
    """The elements of a layer of this size, new variables where it is not linear."""
    match layer:
        case Constant(value):
            return [Element({}, float(x), float(x), float(x)) for x in value.reshape(-1)]
        case Rearrangement(index):
            return [inputs[i] for i in index.reshape(-1).tolist()]
        case Affine(weight, bias):
            width = len(weight)
            return [
                combined(list(zip(weight[:, m].tolist(), inputs[first : first + width], strict=True)), float(bias[m]))
                for first in range(0, len(inputs), width)
                for m in range(weight.shape[1])
            ]
        case Scaling(multiply, divide, add, _):
            factors = (multiply / divide).reshape(-1).tolist()
            shifts = add.reshape(-1).tolist()
            return [combined([(f, x)], s) for f, x, s in zip(factors, inputs, shifts, strict=True)]
        case Sum(signs):
            return [combined(list(zip(signs, parts, strict=True)), 0.0) for parts in zip(*separate, strict=True)]
        case Rectifier(slope):
            return [rectified(milp, slope, x) for x in inputs]
        case Maximum():
            width = len(inputs) // size
            return [largest(milp, inputs[first : first + width]) for first in range(0, len(inputs), width)]
        case Embedding():
            raise ValueError("an embedding behind the cut")


def rectified(milp: Milp, slope: float, x: Element) -> Element:
    """max(x, slope x) = slope x + (1 - slope) relu(x)."""
    if x.low >= 0:
        return x
    if x.high <= 0:
        return combined([(slope, x)], 0.0)
    y, a = milp.variable(0.0, x.high), milp.variable(0.0, 1.0, whole=True)
    milp.row({**x.terms, y: -1.0}, high=-x.constant)
    milp.row({y: 1.0, a: -x.high}, high=0.0)
    milp.row({**{v: -c for v, c in x.terms.items()}, y: 1.0, a: -x.low}, high=x.constant - x.low)
    relu = Element({y: 1.0}, 0.0, 0.0, x.high)
    return combined([(slope, x), (1.0 - slope, relu)], 0.0)


def largest(milp: Milp, window: list[Element]) -> Element:
    low, high = max(x.low for x in window), max(x.high for x in window)
    live = [x for x in window if x.high > low or x.low == low]
    if len(live) == 1:
        return live[0]
    y = milp.variable(low, high)
    flags = []
    for x in live:
        a = milp.variable(0.0, 1.0, whole=True)
        flags.append(a)
        milp.row({**{v: -c for v, c in x.terms.items()}, y: 1.0}, low=x.constant)
        reach = high - x.low
        milp.row({**{v: -c for v, c in x.terms.items()}, y: 1.0, a: reach}, high=x.constant + reach)
    milp.row(dict.fromkeys(flags, 1.0), 1.0, 1.0)
    return Element({y: 1.0}, 0.0, low, high)
