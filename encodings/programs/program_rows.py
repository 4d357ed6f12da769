"""The variables and rows of an integer program as they are written down, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..network import Affine, At, Constant, Rearrangement, Scaling, Sum
from ..walk import Kind
from .affine_functions import Expressions, added, joined
from .integer_program import Floats, Indices, Row, Variable

INFINITY = float("inf")


@dataclass(kw_only=True)
class Rows:
    """Written to by whoever walks a network; `inputs`: what nonlinear elements read are variables of their own."""

    inputs: bool
    variables: list[Variable] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def variable(self, variable: Variable) -> int:
        self.variables.append(variable)
        return len(self.variables) - 1

    def input(self, index: tuple[int, int], functions: Expressions, row: int, low: float, high: float) -> Expressions:
        """What a nonlinear element reads; a function of one variable or none stays as it is."""
        one = functions.taken(np.array([row]))
        columns, coefficients = one.terms(0)
        if not self.inputs or len(columns) <= 1:
            return one
        variable = Variable("input", index, low, high)
        x, constant = self.variable(variable), float(one.constant[0])
        self.rows.append(Row(variable.name, np.append(columns, x), np.append(coefficients, -1.0), -constant, -constant))
        return Expressions.of_terms(np.array([0]), np.array([x]), np.array([1.0]), np.zeros(1))

    def compare(
        self,
        name: str,
        terms: dict[int, float],
        x: Expressions,
        *,
        times: float = 1.0,
        low: float = -INFINITY,
        high: float = INFINITY,
    ) -> None:
        """low <= sum of the terms - times * x <= high."""
        self.rows.append(compared(name, terms, x, times, low, high))


def hold(writer: Rows, layer: Constant, inputs: list[Expressions], at: At) -> Expressions:
    return Expressions.fixed(layer.value)


def rearrange(writer: Rows, layer: Rearrangement, inputs: list[Expressions], at: At) -> Expressions:
    return joined(inputs).taken(layer.index)


def multiply(writer: Rows, layer: Affine, inputs: list[Expressions], at: At) -> Expressions:
    return inputs[0].mapped(layer.weight, layer.bias)


def scale(writer: Rows, layer: Scaling, inputs: list[Expressions], at: At) -> Expressions:
    return inputs[0].scaled((layer.multiply / layer.divide).reshape(-1), layer.add.reshape(-1))


def add_up(writer: Rows, layer: Sum, inputs: list[Expressions], at: At) -> Expressions:
    return added(inputs, layer.signs)


LINEAR: Mapping[Kind, Callable[..., Expressions]] = {
    Constant: hold,
    Rearrangement: rearrange,
    Affine: multiply,
    Scaling: scale,
    Sum: add_up,
}
"""The layers that add neither variables nor rows."""


def compared(name: str, terms: dict[int, float], x: Expressions, times: float, low: float, high: float) -> Row:
    """low <= sum of the terms - times * x <= high."""
    columns, coefficients = x.terms(0)
    if not times:
        columns, coefficients = columns[:0], coefficients[:0]
    moved = times * float(x.constant[0])
    own: tuple[Indices, Floats] = np.array(list(terms), dtype=np.int64), np.array(list(terms.values()))
    return Row(name, np.append(own[0], columns), np.append(own[1], -times * coefficients), low + moved, high + moved)


def replaced(functions: Expressions, variables: dict[int, int]) -> Expressions:
    """The functions, some of them now single variables."""
    if not variables:
        return functions
    elements = np.array(list(variables), dtype=np.int64)
    columns = np.array(list(variables.values()), dtype=np.int64)
    kept = ~np.isin(functions.rows, elements)
    constant = functions.constant.copy()
    constant[elements] = 0.0
    return Expressions.of_terms(
        np.concatenate([functions.rows[kept], elements]),
        np.concatenate([functions.columns[kept], columns]),
        np.concatenate([functions.coefficients[kept], np.ones(len(columns))]),
        constant,
    )


def distinct(functions: Expressions, start: int, places: list[int]) -> list[int]:
    """The first of every set of equal functions: padding repeats an element of its window."""
    seen: dict[tuple[bytes, bytes, float], int] = {}
    for place in places:
        columns, coefficients = functions.terms(start + place)
        key = columns.tobytes(), coefficients.tobytes(), float(functions.constant[start + place])
        seen.setdefault(key, place)
    return list(seen.values())
