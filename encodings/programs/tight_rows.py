"""The variables and rows of our integer program, layer by layer from the network's cut: see `tight_program`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ..network import SMOOTH, At, Embedding, Maximum, Network, Rectifier
from ..query import Query
from ..walk import Meaning, forward
from .affine_functions import Expressions, added
from .integer_program import Exclusive, Floats, Indicator, Program, Row, Variable
from .polarity import Polarity
from .program_reduction import Reduction
from .program_rows import INFINITY, LINEAR, Rows, compared, distinct, replaced
from .textbook_program import TOLERANCE


@dataclass(frozen=True)
class Options:
    """What a program is made of: each can be turned off, so that its worth can be measured."""

    objective: Literal["margin", "swaps"] = "margin"
    relu: Literal["big_m", "indicator", "exclusive"] = "big_m"
    maximum: Literal["k_way", "pairwise"] = "k_way"
    inputs: bool = False
    """Variables for what undecided neurons read; without, the rows name the swaps themselves."""
    one_sided: bool = True
    probing: bool = True
    domination: bool = True
    cuts: bool = True
    start: bool = True
    together: bool = False
    """One program for all rival classes, with a binary for each."""


@dataclass
class Writer(Rows):
    """Writes variables and rows down, layer by layer from the cut."""

    reduction: Reduction
    options: Options
    polarity: Polarity
    indicators: list[Indicator] = field(default_factory=list)
    exclusives: list[Exclusive] = field(default_factory=list)
    neurons: dict[tuple[int, int], tuple[Expressions, int]] = field(default_factory=dict)
    """(rectifier node, element) -> what it reads, and the column of what it gives."""

    def __post_init__(self) -> None:
        differences, k = self.reduction.differences, self.reduction.k
        cost = float(self.options.objective == "swaps")
        for position, token in zip(differences.positions.tolist(), differences.tokens.tolist(), strict=True):
            self.variables.append(Variable("swap", (position, token), 0.0, 1.0, True, cost))
        count = len(self.variables)
        for position in np.unique(differences.positions).tolist():
            columns = np.flatnonzero(differences.positions == position)
            if len(columns) > 1:
                self.rows.append(Row(f"word[{position}]", columns, np.ones(len(columns)), -INFINITY, 1.0))
        if k < len(np.unique(differences.positions)):
            self.rows.append(Row("budget", np.arange(count), np.ones(count), -INFINITY, float(k)))

    @cached_property
    def network(self) -> Network:
        return self.reduction.differences.query.network

    @property
    def query(self) -> Query:
        return self.reduction.differences.query

    def margins(self, rivals: Sequence[int]) -> Expressions:
        """logit[label] - logit[rival] for each."""
        differences, network = self.reduction.differences, self.network
        known: dict[int, Expressions] = {}
        for index, part in differences.parts.items():
            swaps, elements = np.nonzero(differences.rows[:, part])
            coefficients = differences.rows[:, part][swaps, elements]
            known[index] = Expressions.of_terms(elements, swaps, coefficients, differences.base[part].copy())
        logits = forward(network, ROWS, self, known)[len(network.nodes) - 1]
        own = logits.taken(np.full(len(rivals), self.query.label))
        return added([own, logits.taken(np.array([self.query.rivals[rival] for rival in rivals]))], (1, -1))

    def rectify(self, layer: Rectifier, inputs: list[Expressions], at: At) -> Expressions:
        (read,), slope, index = inputs, layer.slope, at.index
        low, high = self.reduction.elements[at.node.inputs[0]]
        outputs: dict[int, int] = {}
        raises, lowers = self.polarity.of_node(index)
        for element in np.flatnonzero((low < 0) & (high > 0) & (slope < 1) & (raises | lowers)).tolist():
            x = self.input((index, element), read, element, float(low[element]), float(high[element]))
            sides = (bool(raises[element]), bool(lowers[element])) if self.options.one_sided else (True, True)
            outputs[element] = self.neuron((index, element), slope, x, float(low[element]), float(high[element]), sides)
            self.neurons[index, element] = x, outputs[element]
        settled = read.scaled(np.where(low >= 0, 1.0, slope), np.zeros(len(read)))
        return replaced(settled, outputs)

    def neuron(
        self, at: tuple[int, int], slope: float, x: Expressions, low: float, high: float, sides: tuple[bool, bool]
    ) -> int:
        """`sides`: whether y must be kept from being too small, and from being too great."""
        where, (below, above) = f"[{at[0]},{at[1]}]", sides
        y = self.variable(Variable("relu", at, min(0.0, slope * low), high))
        if self.options.relu == "exclusive" and above:
            # x = y' - n', at most one of them above 0, and y = y' - slope n'.
            positive = y if not slope else self.variable(Variable("positive", at, 0.0, high))
            negative = self.variable(Variable("negative", at, 0.0, -low))
            self.compare(f"parts{where}", {positive: 1.0, negative: -1.0}, x, low=0.0, high=0.0)
            if slope:
                columns = np.array([y, positive, negative])
                self.rows.append(Row(f"leaky{where}", columns, np.array([1.0, -1.0, slope]), 0.0, 0.0))
            self.exclusives.append(Exclusive(f"either{where}", (positive, negative)))
            return y
        if below:
            self.compare(f"above{where}", {y: 1.0}, x, low=0.0)
            if slope:
                self.compare(f"above_slope{where}", {y: 1.0}, x, times=slope, low=0.0)
        if above:
            a = self.variable(Variable("active", at, 0.0, 1.0, True))
            if self.options.relu == "indicator":
                self.when(a, True, f"if_active{where}", {y: 1.0}, x, high=0.0)
                self.when(a, False, f"if_inactive{where}", {y: 1.0}, x, times=slope, high=0.0)
            else:
                room = (1.0 - slope) * -low
                self.compare(f"if_active{where}", {y: 1.0, a: room}, x, high=room)
                self.compare(f"if_inactive{where}", {y: 1.0, a: (slope - 1.0) * high}, x, times=slope, high=0.0)
        return y

    def take_greatest(self, layer: Maximum, inputs: list[Expressions], at: At) -> Expressions:
        (functions,), index, size = inputs, at.index, at.node.size
        low, high = (end.reshape(size, -1) for end in self.reduction.elements[at.node.inputs[0]])
        width, leaders = low.shape[1], low.argmax(axis=1)
        raises, lowers = self.polarity.of_node(index)
        outputs: dict[int, int] = {}
        for element in np.flatnonzero(raises | lowers).tolist():
            leader, least = int(leaders[element]), float(low[element].max())
            able = [leader, *(place for place in np.flatnonzero(high[element] > least).tolist() if place != leader)]
            able = distinct(functions, element * width, able)
            if len(able) == 1:
                continue
            sides = (bool(raises[element]), bool(lowers[element])) if self.options.one_sided else (True, True)
            read = [
                self.input((index, n), functions, n, float(low[element, place]), float(high[element, place]))
                for place in able
                for n in [element * width + place]
            ]
            ends = [(float(low[element, place]), float(high[element, place])) for place in able]
            choose = self.pairwise if self.options.maximum == "pairwise" else self.k_way
            outputs[element] = choose((index, element), able, read, ends, sides)
        return replaced(functions.taken(leaders + np.arange(size) * width), outputs)

    def k_way(
        self,
        at: tuple[int, int],
        places: list[int],
        read: list[Expressions],
        ends: list[tuple[float, float]],
        sides: tuple[bool, bool],
    ) -> int:
        """y >= x_i; y <= x_i + (u of the others - l_i)(1 - a_i), one a_i is 1."""
        y = self.variable(Variable("maximum", at, max(low for low, _ in ends), max(high for _, high in ends)))
        chosen = []
        for number, (place, x) in enumerate(zip(places, read, strict=True)):
            where = f"[{at[0]},{at[1]},{place}]"
            if sides[0]:
                self.compare(f"above{where}", {y: 1.0}, x, low=0.0)
            if sides[1]:
                a = self.variable(Variable("largest", (*at, place), 0.0, 1.0, True))
                chosen.append(a)
                if self.options.relu == "indicator":
                    self.when(a, True, f"if_largest{where}", {y: 1.0}, x, high=0.0)
                    continue
                others = max(high for other, (_, high) in enumerate(ends) if other != number)
                room = max(0.0, others - ends[number][0])
                self.compare(f"if_largest{where}", {y: 1.0, a: room}, x, high=room)
        if chosen:
            self.rows.append(Row(f"one[{at[0]},{at[1]}]", np.array(chosen), np.ones(len(chosen)), 1.0, 1.0))
        return y

    def pairwise(
        self,
        at: tuple[int, int],
        places: list[int],
        read: list[Expressions],
        ends: list[tuple[float, float]],
        sides: tuple[bool, bool],
    ) -> int:
        """m_1 = x_1; m_i = the greater of m_(i-1) and x_i; a = 1 where x_i is taken."""
        best, (low, high) = read[0], ends[0]
        y = -1
        for place, x, (bottom, top) in zip(places[1:], read[1:], ends[1:], strict=True):
            where = f"[{at[0]},{at[1]},{place}]"
            y = self.variable(Variable("pair", (*at, places[0], place), max(low, bottom), max(high, top)))
            if sides[0]:
                self.compare(f"above{where}", {y: 1.0}, x, low=0.0)
                self.compare(f"above_before{where}", {y: 1.0}, best, low=0.0)
            if sides[1]:
                a = self.variable(Variable("taken", (*at, places[0], place), 0.0, 1.0, True))
                if self.options.relu == "indicator":
                    self.when(a, True, f"if_taken{where}", {y: 1.0}, x, high=0.0)
                    self.when(a, False, f"if_left{where}", {y: 1.0}, best, high=0.0)
                else:
                    room, other = max(0.0, high - bottom), max(0.0, top - low)
                    self.compare(f"if_taken{where}", {y: 1.0, a: room}, x, high=room)
                    self.compare(f"if_left{where}", {y: 1.0, a: -other}, best, high=0.0)
            best = Expressions.of_terms(np.array([0]), np.array([y]), np.ones(1), np.zeros(1))
            low, high = max(low, bottom), max(high, top)
        return y

    def finished(self, margins: Expressions, rivals: Sequence[int], low: int) -> Program:
        if self.options.objective == "swaps":
            return self.fewest(margins, rivals, low)
        offset, costs = 0.0, np.zeros(len(self.variables))
        if len(rivals) == 1:
            columns, coefficients = margins.terms(0)
            costs[columns], offset = coefficients, float(margins.constant[0])
        else:
            bottom, top = self.reach(margins)
            margin = self.variable(Variable("margin", (), float(bottom.min()), float(top.min()), cost=1.0))
            costs = np.append(costs, 1.0)
            for number, chosen in enumerate(self.classes(rivals)):
                costs = np.append(costs, 0.0)
                one, room = margins.taken(np.array([number])), float(top[number] - bottom.min())
                self.compare(f"margin[{number}]", {margin: 1.0, chosen: -room}, one, low=-room)
        variables = tuple(
            replace(one, cost=float(cost)) if cost else one for one, cost in zip(self.variables, costs, strict=True)
        )
        return Program(variables, tuple(self.rows), tuple(self.indicators), tuple(self.exclusives), offset)

    def fewest(self, margins: Expressions, rivals: Sequence[int], low: int) -> Program:
        count = len(self.reduction.differences.positions)
        if low and count:
            self.rows.append(Row("at_least", np.arange(count), np.ones(count), float(low), INFINITY))
        if len(rivals) == 1:
            columns, coefficients = margins.terms(0)
            top = -TOLERANCE - float(margins.constant[0])
            self.rows.append(Row("broken", columns, coefficients, -INFINITY, top))
        else:
            _, highest = self.reach(margins)
            for number, chosen in enumerate(self.classes(rivals)):
                columns, coefficients = margins.terms(number)
                room = float(highest[number]) + TOLERANCE
                top = room - TOLERANCE - float(margins.constant[number])
                row = np.append(columns, chosen), np.append(coefficients, room)
                self.rows.append(Row("broken", *row, -INFINITY, top))
        return Program(tuple(self.variables), tuple(self.rows), tuple(self.indicators), tuple(self.exclusives))

    def classes(self, rivals: Sequence[int]) -> list[int]:
        """A binary for each rival class, one of them 1."""
        chosen = [self.variable(Variable("class", (self.query.rivals[rival],), 0.0, 1.0, True)) for rival in rivals]
        self.rows.append(Row("one_class", np.array(chosen), np.ones(len(chosen)), 1.0, 1.0))
        return chosen

    def reach(self, margins: Expressions) -> tuple[Floats, Floats]:
        """How small and how great each margin can be, from the bounds of the variables."""
        low, high = (np.array([getattr(one, end) for one in self.variables]) for end in ("low", "high"))
        group = np.full(len(self.variables), -1, dtype=np.int64)
        return margins.bounds(low, high, group)

    def when(
        self, column: int, value: bool, name: str, terms: dict[int, float], x: Expressions, *, times: float = 1.0,
        high: float,
    ) -> None:  # fmt: skip
        self.indicators.append(Indicator(column, value, compared(name, terms, x, times, -INFINITY, high)))


ROWS: Meaning[Expressions] = Meaning(
    "rows in our program",
    {**LINEAR, Rectifier: Writer.rectify, Maximum: Writer.take_greatest},
    {
        Embedding: "words are reached at the cut, and this one is read across it",
        **dict.fromkeys(SMOOTH, "rows are linear"),
    },
)
