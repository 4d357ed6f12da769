"""A mixed-integer linear program as plain data: variables, sparse rows, and what a vector of values makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    word: str | None = None
    """Of a swap whose word is known: it is then named by it, swap[3,"fine"]."""

    @property
    def name(self) -> str:
        parts = [str(number) for number in self.index]
        if self.word is not None:
            parts[-1] = json.dumps(self.word, ensure_ascii=False)
        return f"{self.kind}[{','.join(parts)}]"


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


@dataclass(frozen=True, eq=False)
class Indicator:
    """The row holds whenever the binary variable `column` is `value`; it has one finite side."""

    column: int
    value: bool
    row: Row


@dataclass(frozen=True)
class Exclusive:
    """At most one of these columns, none of them negative, is above 0 (a special ordered set of type 1)."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Size:
    """What decides whether a limited licence will do, known before any solver is asked."""

    variables: int
    rows: int
    binaries: int
    special: int = 0
    """Indicators and exclusive sets."""

    def __str__(self) -> str:
        more = f", {self.special:,} special constraints" if self.special else ""
        return f"{self.variables:,} variables ({self.binaries:,} binary), {self.rows:,} rows{more}"


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise offset + the sum of cost * value over the rows; `start` is a solution to begin with, if one is known."""

    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    indicators: tuple[Indicator, ...] = ()
    exclusives: tuple[Exclusive, ...] = ()
    offset: float = 0.0
    start: Floats | None = None

    @cached_property
    def size(self) -> Size:
        return Size(
            len(self.variables),
            sum(row.sides for row in self.rows),
            sum(one.binary for one in self.variables),
            len(self.indicators) + len(self.exclusives),
        )

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

    def objective(self, values: Floats) -> float:
        return self.offset + float(self.cost @ values)

    def violation(self, values: Floats) -> float:
        """How far `values` are outside the bounds, the rows or (for binaries) the whole numbers: the largest of all."""
        worst = [0.0, *(self.low - values), *(values - self.high)]
        worst += np.abs(values - np.round(values))[self.binary].tolist()
        held = [one.row for one in self.indicators if (values[one.column] > 0.5) == one.value]
        for row in (*self.rows, *held):
            activity = float(row.coefficients @ values[row.columns])
            worst += [row.low - activity, activity - row.high]
        worst += [float(np.sort(values[list(one.columns)])[-2]) for one in self.exclusives]
        return float(max(worst))

    def spelt(self, words: Mapping[tuple[int, int], str]) -> Program:
        """The same program, its swaps named by their words where `words` knows (position, token)."""
        named = (
            replace(one, word=words.get((one.index[0], one.index[1]))) if one.kind == "swap" else one
            for one in self.variables
        )
        return replace(self, variables=tuple(named))
