"""A query as a formula over exact rationals: the network's own float weights, bounds by exact selection and intervals.

The part before the first nonlinear layer is affine in the words, hence base + sum of what each swap adds, both exact.
Units whose outcome these bounds settle are replaced: nothing here is rounded, so `unsat` means that at most k swaps are
harmless over the reals, if the solver is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..exact_evaluation import exact_values
from ..network import Affine, Constant, Embedding, Maximum, Network, Node, Rearrangement, Rectifier, Scaling, Sum
from ..programs.polarity import Polarity
from ..query import Query
from .formula import Formula, Linear, Margin, Unit

ZERO = Fraction(0)


@dataclass(frozen=True)
class Form:
    """An affine function: {term: coefficient} and constant, between low and high."""

    terms: dict[int, Fraction]
    constant: Fraction
    low: Fraction
    high: Fraction

    @property
    def linear(self) -> Linear:
        return Linear(self.constant, tuple(sorted(self.terms.items())))


@dataclass
class Writer:
    query: Query
    polarity: Polarity
    k: int
    swaps: list[tuple[int, int]]
    units: list[Unit] = field(default_factory=list)
    ends: list[tuple[Fraction, Fraction]] = field(default_factory=list)
    """Of every unit."""

    def form(self, terms: dict[int, Fraction], constant: Fraction) -> Form:
        """With its ends: swaps by the k best positions, units one by one."""
        down: dict[int, Fraction] = {}
        up: dict[int, Fraction] = {}
        low = high = constant
        for term, factor in terms.items():
            if term < len(self.swaps):
                position = self.swaps[term][0]
                down[position] = min(down.get(position, ZERO), factor)
                up[position] = max(up.get(position, ZERO), factor)
                continue
            ends = [factor * end for end in self.ends[term - len(self.swaps)]]
            low, high = low + min(ends), high + max(ends)
        low += sum(sorted(down.values())[: self.k], ZERO)
        high += sum(sorted(up.values(), reverse=True)[: self.k], ZERO)
        return Form(terms, constant, low, high)

    def unit(self, name: str, index: int, element: int, inputs: list[Form]) -> Form:
        """max of these; the forms that another always exceeds are left out."""
        least = max(one.low for one in inputs)
        able = [one for one in inputs if one.high > least]
        if not able:
            return next(one for one in inputs if one.low == least)
        leaders = [one for one in inputs if one.low == least]
        distinct = {(tuple(sorted(one.terms.items())), one.constant): one for one in (*able, *leaders[:1])}
        able = list(distinct.values())
        if len(able) == 1:
            return able[0]
        raises, lowers = self.polarity.of_node(index)
        linear = tuple(one.linear for one in able)
        self.units.append(Unit(f"{name}[{index},{element}]", linear, bool(raises[element]), bool(lowers[element])))
        self.ends.append((least, max(one.high for one in able)))
        low, high = self.ends[-1]
        return Form({len(self.swaps) + len(self.units) - 1: Fraction(1)}, ZERO, low, high)

    def rectified(self, index: int, element: int, slope: Fraction, x: Form) -> Form:
        if x.low >= 0 or slope == 1:
            return x
        terms = {term: factor * slope for term, factor in x.terms.items() if slope}
        scaled = Form(terms, x.constant * slope, x.low * slope, x.high * slope)
        if x.high <= 0:
            return scaled
        found = self.unit("relu", index, element, [x, scaled])
        # The interval of both, taken together: max(x, slope x) is monotone in x.
        self.ends[-1] = (scaled.low, x.high)
        return Form(found.terms, found.constant, *self.ends[-1])

    def combined(self, parts: list[tuple[Fraction, Form]], constant: Fraction) -> Form:
        terms: dict[int, Fraction] = {}
        for factor, part in parts:
            constant += factor * part.constant
            for term, coefficient in part.terms.items():
                terms[term] = terms.get(term, ZERO) + factor * coefficient
        return self.form({term: factor for term, factor in terms.items() if factor}, constant)

    def layer(self, index: int, node: Node, inputs: list[list[Form]]) -> list[Form]:
        match node.layer:
            case Constant(value):
                return [Form({}, Fraction(float(one)), *[Fraction(float(one))] * 2) for one in value.reshape(-1)]
            case Rearrangement(order):
                together = [one for part in inputs for one in part]
                return [together[place] for place in order.reshape(-1).tolist()]
            case Affine(weight, bias):
                width, outputs = weight.shape
                columns = [
                    [(row, Fraction(float(weight[row, m]))) for row in np.flatnonzero(weight[:, m])]
                    for m in range(outputs)
                ]
                added = [Fraction(float(one)) for one in bias]
                return [
                    self.combined([(factor, inputs[0][block + row]) for row, factor in columns[m]], added[m])
                    for block in range(0, len(inputs[0]), width)
                    for m in range(outputs)
                ]
            case Scaling(multiply, divide, add, _):
                factors = [
                    Fraction(float(m)) / Fraction(float(d)) for m, d in zip(multiply.flat, divide.flat, strict=True)
                ]
                return [
                    self.combined([(factor, one)], Fraction(float(more)))
                    for factor, one, more in zip(factors, inputs[0], add.flat, strict=True)
                ]
            case Sum(signs):
                return [
                    self.combined([(Fraction(sign), one) for sign, one in zip(signs, ones, strict=True)], ZERO)
                    for ones in zip(*inputs, strict=True)
                ]
            case Rectifier(slope):
                exact = Fraction(float(slope))
                return [self.rectified(index, e, exact, one) for e, one in enumerate(inputs[0])]
            case Maximum():
                width = len(inputs[0]) // node.size
                return [
                    self.unit("maximum", index, e, inputs[0][e * width : (e + 1) * width]) for e in range(node.size)
                ]
            case Embedding():
                raise ValueError(f"node {index} is before the cut")


@dataclass(frozen=True, eq=False)
class ExactCut:
    """The values before the first nonlinear layers: of the text, and what each swap adds, over the reals."""

    query: Query
    swaps: tuple[tuple[int, int], ...]
    base: dict[int, list[Fraction]]
    rows: tuple[dict[int, dict[int, Fraction]], ...]
    """Of each swap: node -> element -> difference."""

    @staticmethod
    @lru_cache(maxsize=1)
    def of(query: Query) -> ExactCut:
        base = exact_cut(query.network, query.space.original)
        swaps = tuple((p, t) for p in query.space.swappable for t in query.space.choices[p][1:])
        rows = []
        for swap in swaps:
            after = exact_cut(query.network, query.space.sentence([swap]))
            rows.append(
                {
                    index: {e: a - b for e, (a, b) in enumerate(zip(part, base[index], strict=True)) if a != b}
                    for index, part in after.items()
                }
            )
        return ExactCut(query, swaps, base, tuple(rows))


def formula(query: Query, k: int, made: tuple[tuple[int, int], ...] = (), *, fewest: bool = False) -> Formula:
    """Whether a rival wins after the swaps `made` and at most k others, at positions after theirs."""
    network, cut = query.network, ExactCut.of(query)
    last = max((position for position, _ in made), default=-1)
    numbers = [number for number, (position, _) in enumerate(cut.swaps) if position > last]
    swaps = [cut.swaps[number] for number in numbers]
    k = min(k, len({position for position, _ in swaps}))
    writer = Writer(query, Polarity.of(query, range(len(query.rivals))), k, swaps)
    fixed = [cut.rows[cut.swaps.index(swap)] for swap in made]
    known: dict[int, list[Form]] = {}
    for index, part in cut.base.items():
        terms: list[dict[int, Fraction]] = [{} for _ in part]
        for place, number in enumerate(numbers):
            for element, difference in cut.rows[number][index].items():
                terms[element][place] = difference
        constants = [one + sum((row[index].get(e, ZERO) for row in fixed), ZERO) for e, one in enumerate(part)]
        known[index] = [writer.form(of, constant) for of, constant in zip(terms, constants, strict=True)]
    for index, node in enumerate(network.nodes):
        if index not in known and (index not in network.linear or isinstance(node.layer, Constant)):
            known[index] = writer.layer(index, node, [known[source] for source in node.inputs])
    logits = known[len(network.nodes) - 1]
    margins = []
    for rival in query.rivals:
        margin = writer.combined([(Fraction(1), logits[query.label]), (Fraction(-1), logits[rival])], ZERO)
        ties = rival < query.label
        if margin.low < 0 or (margin.low == 0 and ties):
            margins.append(Margin(margin.linear, ties))
    return Formula(tuple(swaps), k, tuple(writer.units), tuple(margins), made, fewest)


def parts(query: Query, k: int) -> Iterator[Formula]:
    """The question about k swaps by its first swap, in the order of positions: with one more fixed, more is settled."""
    if k <= 1:
        yield formula(query, k)
        return
    for swap in ExactCut.of(query).swaps:
        yield formula(query, k - 1, (swap,))


def exact_cut(network: Network, tokens: tuple[int, ...]) -> dict[int, list[Fraction]]:
    """The cut of a sentence over the reals."""
    known = exact_values(network, tokens, wanted=network.cut)
    return {
        index: [int(one) * known[index].scale for one in known[index].integers.reshape(-1)] for index in network.cut
    }


def chosen_of(query: Query, problem: Formula, tokens: tuple[int, ...]) -> set[int]:
    """Numbers of the swaps that make this sentence."""
    done = set(query.space.swaps_of(tokens))
    return {number for number, swap in enumerate(problem.swaps) if swap in done}
