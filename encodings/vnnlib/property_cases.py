"""From assertions to cases: formulas of and, or and atoms as boxes with conjunctions, empty ones dropped on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from ..errors import BadInput, OutOfTime, Unsupported
from .linear_property import Atom, Case, Tensor

MOST_CASES = 100_000
"""Of the disjunctive normal form."""
LARGEST = 10**100
"""The search computes in float64: products and squares of what is compared must be far from where that ends."""


@dataclass(frozen=True)
class And:
    parts: tuple[Formula, ...]
    line: int


@dataclass(frozen=True)
class Or:
    parts: tuple[Formula, ...]
    line: int


Formula = And | Or | Atom


Conjunction = tuple[Atom, ...]


def count(formula: Formula) -> int:
    """Conjunctions of its disjunctive normal form."""
    match formula:
        case Atom():
            return 1
        case And(parts):
            return math.prod(count(part) for part in parts)
        case Or(parts):
            return sum(count(part) for part in parts)


def conjunctions(formula: Formula) -> Iterator[Conjunction]:
    match formula:
        case Atom():
            yield (formula,)
        case And(parts):
            for chosen in product(*(list(conjunctions(part)) for part in parts)):
                yield tuple(one for part in chosen for one in part)
        case Or(parts):
            for part in parts:
                yield from conjunctions(part)


@dataclass
class Box:
    """Bounds met so far, input -> value; outputs count -1, -2, ..., and are bounded to see what contradicts itself."""

    low: dict[int, Fraction] = field(default_factory=dict)
    high: dict[int, Fraction] = field(default_factory=dict)
    atoms: list[Atom] = field(default_factory=list)
    ends: dict[int, frozenset[Fraction]] = field(default_factory=dict)
    """Values that a strict bound keeps an input from."""

    def with_atoms(self, more: Sequence[Atom]) -> Box | None:
        """None when nothing is left."""
        result = Box(dict(self.low), dict(self.high), list(self.atoms), dict(self.ends))
        for one in more:
            if not one.inputs and not one.outputs:
                if one.constant > 0 or (one.strict and one.constant == 0):
                    return None
                continue
            bounded = [*one.inputs.items(), *((-1 - place, c) for place, c in one.outputs.items())]
            if len(bounded) == 1:
                ((place, coefficient),) = bounded
                bound = -one.constant / coefficient
                if coefficient > 0:
                    result.high[place] = min(bound, result.high.get(place, bound))
                else:
                    result.low[place] = max(bound, result.low.get(place, bound))
                if one.strict:
                    result.ends[place] = result.ends.get(place, frozenset()) | {bound}
                if result.leaves_nothing_of(place):
                    return None
                if not one.strict and place >= 0:
                    continue
            result.atoms.append(one)
        return result

    def leaves_nothing_of(self, place: int) -> bool:
        """Whether no value of this one is between its bounds: x < 1/2 and x > 1/2 leave none either."""
        low, high = self.low.get(place), self.high.get(place)
        if low is None or high is None:
            return False
        return low > high or (low == high and low in self.ends.get(place, ()))


def cases_of(asserted: Sequence[Formula], inputs: Tensor, source: str, until: float | None = None) -> tuple[Case, ...]:
    """The disjunctive normal form of all that is asserted; `source` is named in errors.

    Raises OutOfTime when time.monotonic() has passed `until`.
    """
    single = [formula for formula in asserted if count(formula) == 1]
    plain = [one for formula in single for part in conjunctions(formula) for one in part]
    boxes = [box for box in (Box().with_atoms(plain),) if box is not None]
    for formula in sorted((f for f in asserted if count(f) > 1), key=count):
        if not boxes:
            break  # nothing satisfies what was read: the rest may be of any size
        if len(boxes) * count(formula) > 10 * MOST_CASES:
            raise too_many(source, formula)
        options = [option for option in conjunctions(formula) if in_time(source, formula, until)]
        found = (box.with_atoms(option) for box in boxes for option in options if in_time(source, formula, until))
        boxes = [box for box in found if box is not None]
        if len(boxes) > MOST_CASES:
            raise too_many(source, formula)
    return tuple(closed(box, inputs, source) for box in boxes)


def in_time(source: str, formula: Formula, until: float | None) -> bool:
    if until is not None and time.monotonic() > until:
        raise OutOfTime(f"{source} line {formula.line}: the disjunctions were not multiplied out in time")
    return True


def too_many(source: str, formula: Formula) -> Unsupported:
    return Unsupported(
        f"{source} line {formula.line}: the disjunctions multiply to more than {MOST_CASES} cases; split the query"
    )


def closed(box: Box, inputs: Tensor, source: str) -> Case:
    for place in range(inputs.size):
        for name, ends in (("lower", box.low), ("upper", box.high)):
            if place not in ends:
                raise Unsupported(f"{source} line {inputs.line}: {inputs.element(place)} has no {name} bound")
            if abs(ends[place]) > LARGEST:
                raise BadInput(
                    f"{source} line {inputs.line}: {inputs.element(place)}: its {name} bound is beyond "
                    f"{float(LARGEST):g}, where float64 has no room to compute; narrow it"
                )
    places = range(inputs.size)
    return Case(tuple(box.low[i] for i in places), tuple(box.high[i] for i in places), tuple(box.atoms))
