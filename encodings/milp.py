"""A mixed-integer linear program as plain data: variables, sparse rows, and what a vector of values makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Variable:
    """low <= value <= high, whole if `binary`; `kind` and `index` say what it stands for: swap[3,17]."""

    kind: str
    index: tuple[int, ...]
    low: float
    high: float
    binary: bool = False
    cost: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind}[{','.join(str(number) for number in self.index)}]"


@dataclass(frozen=True, eq=False)
class Row:
    """low <= sum of coefficients[i] * value[columns[i]] <= high, no column twice."""

    name: str
    columns: Indices
    coefficients: Floats
    low: float
    high: float

    @property
    def sides(self) -> int:
        """1 for an equation or a single inequality, 2 for both: how many rows it is where rows have one sense."""
        return 2 if np.isfinite(self.low) and np.isfinite(self.high) and self.low != self.high else 1


@dataclass(frozen=True)
class Size:
    """What decides whether a limited licence will do, known before any solver is asked."""

    variables: int
    rows: int
    binaries: int

    def __str__(self) -> str:
        return f"{self.variables:,} variables ({self.binaries:,} binary), {self.rows:,} rows"


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise the sum of cost * value over the rows."""

    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @cached_property
    def size(self) -> Size:
        return Size(len(self.variables), sum(row.sides for row in self.rows), sum(one.binary for one in self.variables))

    @cached_property
    def low(self) -> Floats:
        return np.array([one.low for one in self.variables])

    @cached_property
    def high(self) -> Floats:
        return np.array([one.high for one in self.variables])

    @cached_property
    def cost(self) -> Floats:
        return np.array([one.cost for one in self.variables])

    @cached_property
    def binary(self) -> NDArray[np.bool_]:
        return np.array([one.binary for one in self.variables], dtype=np.bool_)

    def violation(self, values: Floats) -> float:
        """How far `values` are outside the bounds, the rows or (for binaries) the whole numbers: the largest of all."""
        worst = [0.0, *(self.low - values), *(values - self.high)]
        worst += np.abs(values - np.round(values))[self.binary].tolist()
        for row in self.rows:
            activity = float(row.coefficients @ values[row.columns])
            worst += [row.low - activity, activity - row.high]
        return float(max(worst))
