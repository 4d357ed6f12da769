"""The question as a mixed-integer program, for a solver to find what the search did not: only its witness counts."""

from __future__ import annotations

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions
from swapproof.encodings.network import Floats, Indices
from swapproof.encodings.programs.integer_program import Program, Row, Variable
from swapproof.encodings.solvers.solver_answer import Outcome
from swapproof.encodings.solvers.solver_table import HIGHS

from .query_bounds import QueryBounds
from .question import Question

ENOUGH = 1e-4
"""How far below 0 the worst atom is wanted, in parts of the atoms' size: then rounding does not undo a witness."""
INFINITY = float("inf")


def program_of(question: Question, bounds: QueryBounds) -> tuple[Program, Indices]:
    """Minimise the greatest atom, and the columns of the inputs.

    y = relu(z): y >= z, y <= z - l (1 - a), y <= u a, a binary, for l <= z <= u; settled neurons are 0 or z.
    """
    stack, whole = question.stack, bounds.whole
    variables = [Variable("input", (i,), float(question.low[i]), float(question.high[i])) for i in range(stack.inputs)]
    rows: list[Row] = []
    columns: list[Indices] = [np.arange(stack.inputs)]

    def terms(functions: Functions, row: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for j, weight in functions.weights.items():
            for place in np.flatnonzero(weight[row]):
                column = int(columns[j][place])
                found[column] = found.get(column, 0.0) + float(weight[row, place])
        return found

    def add(name: str, found: dict[int, float], low: float, high: float) -> None:
        kept = {column: value for column, value in found.items() if value}
        rows.append(Row(name, np.array(list(kept), dtype=np.int64), np.array(list(kept.values())), low, high))

    for i, layer in enumerate(stack.layers, 1):
        least, greatest = whole.least[i - 1][0], whole.greatest[i - 1][0]
        own = []
        for neuron in range(len(layer)):
            low, high, bias = float(least[neuron]), float(greatest[neuron]), float(layer.bias[neuron])
            y = len(variables)
            own.append(y)
            variables.append(Variable("relu", (i, neuron), max(low, 0.0), max(high, 0.0)))
            if high <= 0:
                continue
            z, where = terms(layer, neuron), f"[{i},{neuron}]"
            minus = {column: -value for column, value in z.items()}
            if low >= 0:
                add(f"equal{where}", minus | {y: 1.0}, bias, bias)
                continue
            a = len(variables)
            variables.append(Variable("active", (i, neuron), 0.0, 1.0, True))
            add(f"above{where}", minus | {y: 1.0}, bias, INFINITY)
            add(f"if_active{where}", minus | {y: 1.0, a: -low}, -INFINITY, bias - low)
            add(f"if_inactive{where}", {y: 1.0, a: -high}, -INFINITY, 0.0)
        columns.append(np.array(own, dtype=np.int64))
    size = float(bounds.size(question.atoms).max(initial=0.0))
    worst = len(variables)
    variables.append(Variable("worst", (0,), -ENOUGH * size, size, cost=1.0))
    for row in range(len(question.atoms)):
        bias = float(question.atoms.bias[row])
        add(f"atom[{row}]", terms(question.atoms, row) | {worst: -1.0}, -INFINITY, -bias)
    return Program(tuple(variables), tuple(rows)), columns[0]


def last_resort(question: Question, bounds: QueryBounds, seconds: float) -> tuple[Outcome, Floats | None]:
    """What HiGHS says, and the input of its best solution."""
    program, columns = program_of(question, bounds)
    outcome = HIGHS.solve(program, seconds)
    return outcome, None if outcome.solution is None else outcome.solution[columns]
