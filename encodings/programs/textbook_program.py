"""The integer program of the minimum word swap paper (MMWS), as it is in the textbook: what we are measured against.

    minimise    sum of swap[p, t] over the positions p and their alternatives t
    subject to  sum over the choices t of swap[p, t] = 1                      for every position p
                embedded word at p = sum over t of table[t] * swap[p, t]
                y = relu(x):  y >= x,  y <= x - l (1 - a),  y <= u a,  y >= 0,  a binary      for l <= x <= u
                y = max x_i:  y >= x_i,  y <= x_i + (u_max,-i - l_i)(1 - a_i),  sum of a_i = 1,  a_i binary
                logit[rival] - logit[label] >= TOLERANCE

with one program for each rival class. Affine layers are substituted, but for the inputs x of nonlinear ones, which are
variables on request: solvers differ in what suits them. l and u are by interval arithmetic over the space; neurons and
window elements whose outcome they settle are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..evaluation import values
from ..network import SMOOTH, At, Embedding, Maximum, Rectifier
from ..query import Query
from ..space import SwapSpace
from ..walk import Meaning, forward
from .affine_functions import Expressions, added
from .integer_program import Floats, Indices, Program, Row, Variable
from .program_rows import INFINITY, LINEAR, Rows, distinct, replaced

TOLERANCE = 1e-5
"""Stands for "strictly greater", which a linear program cannot say: ten times what solvers let a row be violated.

It never decides a verdict: the solution is replayed, and a solver's claim that there is none is only a claim."""


@dataclass(frozen=True, eq=False)
class Textbook:
    """The rows that hold in every sentence of the space; `against` adds the change of class."""

    query: Query
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    logits: Expressions
    remark: str = ""
    """How this program departs from the one that is usual here."""

    @classmethod
    def of(cls, query: Query, *, inputs: bool = True) -> Textbook:
        """`inputs`: whether each nonlinear element's input is a variable of its own, defined by a row of its own."""
        writer = Writer(query.space, inputs=inputs)
        logits = forward(query.network, ROWS, writer)[len(query.network.nodes) - 1]
        remark = "" if inputs else "no variables for the inputs of neurons"
        return cls(query, tuple(writer.variables), tuple(writer.rows), logits, remark)

    def margin(self, rival: int) -> Expressions:
        """logit[rival] - logit[label]."""
        pair = [self.logits.taken(np.array([rival])), self.logits.taken(np.array([self.query.label]))]
        return added(pair, (1, -1))

    def against(self, rival: int) -> Program:
        """The fewest swaps that make this class win."""
        margin = self.margin(rival)
        columns, coefficients = margin.terms(0)
        low = TOLERANCE - float(margin.constant[0])
        return Program(self.variables, (*self.rows, Row(f"class[{rival}]", columns, coefficients, low, INFINITY)))

    def sentence(self, solution: Floats) -> tuple[int, ...]:
        """The token ids of a solution: at each position the choice with the greatest value."""
        best: dict[int, tuple[float, int]] = {}
        for variable, value in zip(self.variables, solution, strict=True):
            if variable.kind == "swap":
                position, token = variable.index
                best[position] = max(best.get(position, (-INFINITY, token)), (float(value), token))
        return self.query.space.sentence((position, token) for position, (_, token) in best.items())

    def assignment(self, tokens: tuple[int, ...]) -> Floats:
        """The values that the network itself gives to the variables for a sentence."""
        nodes = self.query.network.nodes
        found = values(self.query.network, np.array([tokens], dtype=np.int64), wanted=range(len(nodes)))
        flat = {index: array.reshape(-1) for index, array in found.items()}
        result = np.zeros(len(self.variables))
        windows: dict[tuple[int, int], list[tuple[float, int]]] = {}
        for column, variable in enumerate(self.variables):
            match variable.kind, variable.index:
                case "swap", (position, token):
                    result[column] = tokens[position] == token
                case "input", (node, element):
                    result[column] = flat[nodes[node].inputs[0]][element]
                case "relu" | "maximum", (node, element):
                    result[column] = flat[node][element]
                case "active", (node, element):
                    result[column] = flat[nodes[node].inputs[0]][element] > 0
                case "largest", (node, element, place):
                    x = flat[nodes[node].inputs[0]].reshape(nodes[node].size, -1)[element, place]
                    windows.setdefault((node, element), []).append((float(x), column))
        for window in windows.values():
            result[max(window)[1]] = 1.0
        return result

    def get_error(self, tokens: tuple[int, ...]) -> float:
        """How far, for one sentence, the network is from satisfying the rows and the rows from giving its logits."""
        assigned = self.assignment(tokens)
        logits = values(self.query.network, np.array([tokens], dtype=np.int64))[len(self.query.network.nodes) - 1]
        apart = float(np.abs(self.logits.values(assigned) - logits.reshape(-1)).max())
        return max(apart, Program(self.variables, self.rows).violation(assigned))


@dataclass
class Writer(Rows):
    """Writes variables and rows down, layer by layer."""

    space: SwapSpace
    columns: dict[int, Indices] = field(default_factory=dict)
    """Swappable position -> the columns of its choices."""

    def __post_init__(self) -> None:
        for position in self.space.swappable:
            first, choices = len(self.variables), self.space.choices[position]
            for place, token in enumerate(choices):
                self.variables.append(Variable("swap", (position, token), 0.0, 1.0, True, float(place > 0)))
            self.columns[position] = np.arange(first, len(self.variables))
            self.rows.append(Row(f"word[{position}]", self.columns[position], np.ones(len(choices)), 1.0, 1.0))

    def embed(self, layer: Embedding, inputs: list[Expressions], at: At) -> Expressions:
        table, positions = layer.table, layer.positions
        size = table.shape[1]
        rows, columns, coefficients = [], [], []
        constant = np.zeros((positions.size, size))
        for place, position in enumerate(positions.reshape(-1).tolist()):
            choices = self.space.choices[position]
            if len(choices) == 1:
                constant[place] = table[choices[0]]
                continue
            words = np.asarray(table[list(choices)], dtype=np.float64)
            rows.append(np.repeat(np.arange(size) + place * size, len(choices)))
            columns.append(np.tile(self.columns[position], size))
            coefficients.append(words.T.reshape(-1))
        if not rows:
            return Expressions.fixed(constant)
        return Expressions.of_terms(
            np.concatenate(rows), np.concatenate(columns), np.concatenate(coefficients), constant.reshape(-1)
        )

    def bounds(self, functions: Expressions) -> tuple[Floats, Floats]:
        group = np.full(len(self.variables), -1, dtype=np.int64)
        for number, columns in enumerate(self.columns.values()):
            group[columns] = number
        low, high = (np.array([getattr(one, end) for one in self.variables]) for end in ("low", "high"))
        return functions.bounds(low, high, group)

    def rectify(self, layer: Rectifier, inputs: list[Expressions], at: At) -> Expressions:
        """y = max(x, slope x): y >= x, y >= slope x, y <= x - (1 - slope) l (1 - a), y <= slope x + (1 - slope) u a."""
        (read,), slope, index = inputs, layer.slope, at.index
        low, high = self.bounds(read)
        outputs: dict[int, int] = {}
        for element in np.flatnonzero((low < 0) & (high > 0) & (slope < 1)).tolist():
            least, greatest = float(low[element]), float(high[element])
            x = self.input((index, element), read, element, least, greatest)
            y = self.variable(Variable("relu", (index, element), min(0.0, slope * least), greatest))
            a = self.variable(Variable("active", (index, element), 0.0, 1.0, True))
            where, room = f"[{index},{element}]", (1.0 - slope) * -least
            self.compare(f"above{where}", {y: 1.0}, x, low=0.0)
            if slope:
                self.compare(f"above_slope{where}", {y: 1.0}, x, times=slope, low=0.0)
            self.compare(f"if_active{where}", {y: 1.0, a: room}, x, high=room)
            self.compare(f"if_inactive{where}", {y: 1.0, a: (slope - 1.0) * greatest}, x, times=slope, high=0.0)
            outputs[element] = y
        settled = read.scaled(np.where(low >= 0, 1.0, slope), np.zeros(len(read)))
        return replaced(settled, outputs)

    def take_greatest(self, layer: Maximum, inputs: list[Expressions], at: At) -> Expressions:
        """y = max over i of x_i, without the elements that another always exceeds, and without copies."""
        (read,), index, size = inputs, at.index, at.node.size
        low, high = (end.reshape(size, -1) for end in self.bounds(read))
        width, leaders = low.shape[1], low.argmax(axis=1)
        outputs: dict[int, int] = {}
        for element, leader in enumerate(leaders.tolist()):
            least = float(low[element, leader])
            able = [leader, *(place for place in np.flatnonzero(high[element] > least).tolist() if place != leader)]
            able = distinct(read, element * width, able)
            if len(able) == 1:
                continue
            y = self.variable(Variable("maximum", (index, element), least, float(high[element, able].max())))
            chosen = []
            for place in able:
                number, bottom = element * width + place, float(low[element, place])
                x = self.input((index, number), read, number, bottom, float(high[element, place]))
                a = self.variable(Variable("largest", (index, element, place), 0.0, 1.0, True))
                chosen.append(a)
                room = max(0.0, float(max(high[element, other] for other in able if other != place)) - bottom)
                self.compare(f"above[{index},{element},{place}]", {y: 1.0}, x, low=0.0)
                self.compare(f"if_largest[{index},{element},{place}]", {y: 1.0, a: room}, x, high=room)
            self.rows.append(Row(f"one[{index},{element}]", np.array(chosen), np.ones(len(chosen)), 1.0, 1.0))
            outputs[element] = y
        return replaced(read.taken(leaders + np.arange(size) * width), outputs)


ROWS: Meaning[Expressions] = Meaning(
    "rows in the textbook's program",
    {**LINEAR, Embedding: Writer.embed, Rectifier: Writer.rectify, Maximum: Writer.take_greatest},
    dict.fromkeys(SMOOTH, "rows are linear"),
)
