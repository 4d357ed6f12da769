"""A query as a formula over exact rationals: the network's own float weights, bounds by exact selection and intervals.

The part before the first nonlinear layer is affine in the words, hence base + sum of what each swap adds, both exact.
Units whose outcome these bounds settle are replaced: nothing here is rounded, so `unsat` means that at most k swaps are
harmless over the reals, if the solver is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from ..exact_evaluation import exact_values
from ..network import SMOOTH, Affine, At, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from ..programs.exact_functions import Function, Terms, combined
from ..programs.polarity import Polarity
from ..query import Query
from ..walk import Meaning, forward
from .formula import Formula, Linear, Margin, Unit

ZERO, ONE = Fraction(0), Fraction(1)
Forms = list["Form"]
"""Of the elements of a node."""


@dataclass(frozen=True, eq=False)
class Form:
    """A function of words (position, token) and units, and what it lies between."""

    function: Function
    low: Fraction
    high: Fraction


@dataclass
class Writer:
    query: Query
    polarity: Polarity
    k: int
    swaps: list[tuple[int, int]]
    units: list[Unit] = field(default_factory=list)
    ends: dict[tuple[int, int], tuple[Fraction, Fraction]] = field(default_factory=dict)
    """(node, element) -> of every unit."""
    places: dict[tuple[int, int], int] = field(default_factory=dict)
    """The same -> its number as a term."""

    @cached_property
    def numbers(self) -> dict[tuple[int, int], int]:
        return {swap: number for number, swap in enumerate(self.swaps)}

    def form(self, function: Function) -> Form:
        """With its ends: swaps by the k best positions, units one by one."""
        down: dict[int, Fraction] = {}
        up: dict[int, Fraction] = {}
        low = high = function.constant
        for (position, _), factor in function.words.items():
            down[position] = min(down.get(position, ZERO), factor)
            up[position] = max(up.get(position, ZERO), factor)
        for unit, factor in function.units.items():
            ends = [factor * end for end in self.ends[unit]]
            low, high = low + min(ends), high + max(ends)
        low += sum(sorted(down.values())[: self.k], ZERO)
        high += sum(sorted(up.values(), reverse=True)[: self.k], ZERO)
        return Form(function, low, high)

    def linear(self, form: Form) -> Linear:
        """The same by numbers: swaps, then units."""
        terms = [(self.numbers[key], factor) for key, factor in form.function.words.items()]
        terms += [(self.places[key], factor) for key, factor in form.function.units.items()]
        return Linear(form.function.constant, tuple(sorted(terms)))

    def combine(self, parts: list[tuple[Fraction, Form]], constant: Fraction = ZERO) -> Form:
        return self.form(combined([(factor, part.function) for factor, part in parts], constant))

    def unit(self, name: str, at: tuple[int, int], inputs: list[Form]) -> Form:
        """max of these; the forms that another always exceeds are left out."""
        least = max(one.low for one in inputs)
        able = [one for one in inputs if one.high > least]
        leaders = [one for one in inputs if one.low == least]
        if not able:
            return leaders[0]
        distinct = {self.linear(one): one for one in (*able, *leaders[:1])}
        able = list(distinct.values())
        if len(able) == 1:
            return able[0]
        raises, lowers = (bool(flags[at[1]]) for flags in self.polarity.of_node(at[0]))
        self.units.append(Unit(f"{name}[{at[0]},{at[1]}]", tuple(distinct), raises, lowers))
        self.places[at] = len(self.swaps) + len(self.units) - 1
        self.ends[at] = low, high = least, max(one.high for one in able)
        return Form(Function(ZERO, {}, {at: ONE}), low, high)

    def rectified(self, at: tuple[int, int], slope: Fraction, x: Form) -> Form:
        if x.low >= 0 or slope == 1:
            return x
        scaled = Form(combined([(slope, x.function)]), x.low * slope, x.high * slope)
        if x.high <= 0:
            return scaled
        found = self.unit("relu", at, [x, scaled])
        # The interval of both, taken together: max(x, slope x) is monotone in x.
        self.ends[at] = scaled.low, x.high
        return Form(found.function, scaled.low, x.high)

    def hold(self, layer: Constant, inputs: list[Forms], at: At) -> Forms:
        return [self.combine([], Fraction(float(one))) for one in layer.value.reshape(-1)]

    def rearrange(self, layer: Rearrangement, inputs: list[Forms], at: At) -> Forms:
        together = [one for part in inputs for one in part]
        return [together[place] for place in layer.index.reshape(-1).tolist()]

    def multiply(self, layer: Affine, inputs: list[Forms], at: At) -> Forms:
        width, outputs = layer.weight.shape
        columns = [
            [(row, Fraction(float(layer.weight[row, m]))) for row in np.flatnonzero(layer.weight[:, m])]
            for m in range(outputs)
        ]
        added = [Fraction(float(one)) for one in layer.bias]
        return [
            self.combine([(factor, inputs[0][block + row]) for row, factor in columns[m]], added[m])
            for block in range(0, len(inputs[0]), width)
            for m in range(outputs)
        ]

    def scale(self, layer: Scaling, inputs: list[Forms], at: At) -> Forms:
        times, under, more = (
            [Fraction(float(one)) for one in part.flat] for part in (layer.multiply, layer.divide, layer.add)
        )
        return [self.combine([(m / d, one)], a) for m, d, one, a in zip(times, under, inputs[0], more, strict=True)]

    def add_up(self, layer: Sum, inputs: list[Forms], at: At) -> Forms:
        signs = [Fraction(sign) for sign in layer.signs]
        return [self.combine(list(zip(signs, ones, strict=True))) for ones in zip(*inputs, strict=True)]

    def rectify(self, layer: Rectifier, inputs: list[Forms], at: At) -> Forms:
        slope = Fraction(float(layer.slope))
        return [self.rectified((at.index, e), slope, one) for e, one in enumerate(inputs[0])]

    def take_greatest(self, layer: Maximum, inputs: list[Forms], at: At) -> Forms:
        width = len(inputs[0]) // at.node.size
        windows = [inputs[0][e * width : (e + 1) * width] for e in range(at.node.size)]
        return [self.unit("maximum", (at.index, e), window) for e, window in enumerate(windows)]


TERMS: Meaning[Forms] = Meaning(
    "terms in a formula",
    {
        Constant: Writer.hold,
        Rearrangement: Writer.rearrange,
        Affine: Writer.multiply,
        Scaling: Writer.scale,
        Sum: Writer.add_up,
        Rectifier: Writer.rectify,
        Maximum: Writer.take_greatest,
    },
    {
        Embedding: "words are reached at the cut, and this one is read across it",
        **dict.fromkeys(SMOOTH, "formulas are piecewise linear"),
    },
)


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
    known: dict[int, Forms] = {}
    for index, part in cut.base.items():
        words: list[Terms] = [{} for _ in part]
        for number in numbers:
            for element, difference in cut.rows[number][index].items():
                words[element][cut.swaps[number]] = difference
        constants = [one + sum((row[index].get(e, ZERO) for row in fixed), ZERO) for e, one in enumerate(part)]
        known[index] = [writer.form(Function(base, of, {})) for of, base in zip(words, constants, strict=True)]
    logits = forward(network, TERMS, writer, known)[len(network.nodes) - 1]
    margins = []
    for rival in query.rivals:
        margin = writer.combine([(ONE, logits[query.label]), (-ONE, logits[rival])])
        ties = rival < query.label
        if margin.low < 0 or (margin.low == 0 and ties):
            margins.append(Margin(writer.linear(margin), ties))
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
