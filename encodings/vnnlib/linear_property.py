"""A property of a network with numbers as inputs: is there an input in one of some boxes with linear facts about it?

A property is a disjunction of cases; a case is a box of inputs and a conjunction of linear atoms over inputs and
outputs. All numbers are rationals, exactly as they were written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Tensor:
    """A declared input or output; `kind` is "Real" or an ONNX element type."""

    name: str
    kind: str
    shape: tuple[int, ...]
    line: int = 0
    numbered: bool = False
    """Version 1: its elements are X_0, X_1, ... and it has no shape of its own."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def element(self, place: int) -> str:
        """The name of one element: X_3, or X[0,3]."""
        if self.numbered:
            return f"{self.name}_{place}"
        indices: list[int] = []
        for size in reversed(self.shape):
            indices.insert(0, place % size)
            place //= size
        return f"{self.name}[{','.join(map(str, indices))}]"


@dataclass(frozen=True)
class Atom:
    """sum of inputs[i] * x_i + sum of outputs[j] * y_j + constant <= 0, or < 0 when strict."""

    inputs: Mapping[int, Fraction]
    outputs: Mapping[int, Fraction]
    constant: Fraction
    strict: bool = False
    line: int = 0

    def value(self, x: Mapping[int, Fraction], y: Mapping[int, Fraction]) -> Fraction:
        """The left side."""
        total = self.constant + sum((c * x[i] for i, c in self.inputs.items()), Fraction(0))
        return total + sum((c * y[j] for j, c in self.outputs.items()), Fraction(0))

    def holds(self, x: Mapping[int, Fraction], y: Mapping[int, Fraction]) -> bool:
        value = self.value(x, y)
        return value < 0 if self.strict else value <= 0


@dataclass(frozen=True)
class Case:
    """low[i] <= x_i <= high[i], and all atoms; strict bounds of inputs are atoms as well."""

    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    atoms: tuple[Atom, ...]


@dataclass(frozen=True)
class Property:
    """Satisfiable when some case is; `version` is that of VNN-LIB, 1 or 2."""

    version: int
    network: str
    inputs: Tensor
    outputs: Tensor
    cases: tuple[Case, ...]
    source: str = field(default="", compare=False)
