"""VIPR certificates, version 1.0: a mixed-integer linear program, and a proof that it has no solution.

A derived constraint is an assumption (asm), a suitable linear combination of earlier constraints (lin), such a
combination with its right side rounded (rnd), or what holds on both sides of an integer disjunction (uns). The program
is infeasible when the last one is an absurdity, 0 >= a positive number, that rests on no assumption. Everything is an
exact rational; combinations are computed here from their multipliers, so that a line says what its reason gives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Literal

from ..errors import Unsupported

Sense = Literal["G", "L", "E"]
SIGNS = {"G": 1, "E": 0, "L": -1}


@dataclass(frozen=True, eq=False)
class Row:
    """sum of terms[v] * v >= right (G), <= right (L) or = right (E), over variable numbers v."""

    name: str
    sense: Sense
    right: Fraction
    terms: Mapping[int, Fraction]

    @cached_property
    def whole(self) -> tuple[dict[int, int], int, int]:
        """Terms and right side as whole numbers, and what they are to be divided by."""
        under = lcm(self.right.denominator, *(c.denominator for c in self.terms.values()))
        terms = {v: c.numerator * (under // c.denominator) for v, c in self.terms.items()}
        return terms, self.right.numerator * (under // self.right.denominator), under

    @property
    def absurd(self) -> bool:
        return not self.terms and self.right > 0 and self.sense == "G"

    def text(self) -> str:
        terms = "".join(f" {v} {self.terms[v]}" for v in sorted(self.terms))
        return f"{self.name} {self.sense} {self.right} {len(self.terms)}{terms}"


@dataclass(eq=False)
class Program:
    """Variables and constraints, each known by a key; what only bounds a variable comes before the other rows."""

    names: list[str] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    variables: dict[Hashable, int] = field(default_factory=dict)
    bounds: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    keys: list[list[Hashable]] = field(default_factory=lambda: [[], []])

    def variable(self, key: Hashable, name: str, *, integer: bool = False) -> int:
        number = self.variables[key] = len(self.names)
        self.names.append(name)
        if integer:
            self.integers.append(number)
        return number

    def add(self, key: Hashable, name: str, sense: Sense, right: Fraction, terms: Mapping[int, Fraction]) -> None:
        kept = {v: c for v, c in terms.items() if c}
        simple = len(kept) == 1
        (self.bounds if simple else self.rows).append(Row(name, sense, right, kept))
        self.keys[0 if simple else 1].append(key)

    def constraints(self) -> tuple[list[Row], dict[Hashable, int]]:
        """All in the order of the file, and the number of each key."""
        numbers = {key: number for number, key in enumerate([*self.keys[0], *self.keys[1]])}
        return [*self.bounds, *self.rows], numbers


class Proof:
    """Derivations, one line each, over the constraints of a program."""

    def __init__(self, program: Program, most: int) -> None:
        self.program, self.most = program, most
        self.constraints, self.numbers = program.constraints()
        self.given = len(self.constraints)
        self.reasons: list[str] = []
        self.assumptions: dict[tuple[object, ...], int] = {}
        self.written = 0
        """Characters of the derivations."""

    def assume(self, sense: Sense, right: Fraction, terms: Mapping[int, Fraction]) -> int:
        """An assumption; the same one is stated once and used again."""
        key = (sense, right, tuple(sorted(terms.items())))
        if key not in self.assumptions:
            self.assumptions[key] = self.add(sense, right, terms, "asm")
        return self.assumptions[key]

    def combine(self, multipliers: Mapping[int, Fraction], weakened: Fraction | None = None) -> int:
        """The G constraint that these multiples add up to; `weakened` is a smaller right side for it."""
        used = {number: factor for number, factor in sorted(multipliers.items()) if factor}
        rows = {number: self.constraints[number] for number in used}
        common = lcm(*(factor.denominator * rows[number].whole[2] for number, factor in used.items()))
        totals: dict[int, int] = {}
        whole_right = 0
        for number, factor in used.items():
            if factor * SIGNS[rows[number].sense] < 0:
                raise ArithmeticError(f"constraint {number} has a multiplier of the wrong sign")
            given, right_side, under = rows[number].whole
            times = factor.numerator * (common // (factor.denominator * under))
            whole_right += times * right_side
            for variable, coefficient in given.items():
                totals[variable] = totals.get(variable, 0) + times * coefficient
        terms = {variable: Fraction(total, common) for variable, total in totals.items() if total}
        right = Fraction(whole_right, common)
        if weakened is not None and weakened > right:
            raise ArithmeticError(f"a right side of {right} cannot become {weakened}")
        pairs = "".join(f" {number} {factor}" for number, factor in used.items())
        return self.add("G", right if weakened is None else weakened, terms, f"lin {len(used)}{pairs}")

    def unsplit(self, left: int, low: int, right: int, high: int) -> int:
        """What both `left`, assuming `low`, and `right`, assuming `high`, say: the weaker of the two."""
        one, other = self.constraints[left], self.constraints[right]
        if one.absurd or other.absurd:
            shared = other if one.absurd else one
        elif one.terms == other.terms and one.sense == other.sense == "G":
            shared = one if one.right <= other.right else other
        else:
            raise ArithmeticError(f"constraints {left} and {right} say different things")
        return self.add(shared.sense, shared.right, shared.terms, f"uns {left} {low} {right} {high}")

    def add(self, sense: Sense, right: Fraction, terms: Mapping[int, Fraction], reason: str) -> int:
        number = len(self.constraints)
        self.constraints.append(Row(f"d{number}", sense, right, terms))
        self.reasons.append(reason)
        self.written += len(reason) + 12 * len(terms)
        if self.written > self.most:
            raise Unsupported(f"the derivation is longer than {self.most:,} characters: raise --most-megabytes")
        return number

    def lines(self, remarks: Iterable[str]) -> Iterator[str]:
        """The text of the file."""
        program = self.program
        yield from (f"% {remark}" for remark in remarks)
        yield "VER 1.0"
        yield f"VAR {len(program.names)}"
        yield from program.names
        yield f"INT {len(program.integers)}"
        yield from map(str, program.integers)
        yield "OBJ min"
        yield "0"
        yield f"CON {self.given} {len(program.bounds)}"
        yield from (row.text() for row in self.constraints[: self.given])
        yield "RTP infeas"
        yield "SOL 0"
        yield f"DER {len(self.reasons)}"
        for row, reason in zip(self.constraints[self.given :], self.reasons, strict=True):
            yield f"{row.text()} {{ {reason} }} -1"
