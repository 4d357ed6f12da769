"""Linear real arithmetic with choices as plain data, every number an exact rational: what an SMT solver is asked.

Terms number what they speak of: swaps come first (0 or 1), then the outputs of units in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Linear:
    """constant + sum of coefficient * term."""

    constant: Fraction
    terms: tuple[tuple[int, Fraction], ...] = ()

    def value(self, of: list[Fraction]) -> Fraction:
        return self.constant + sum((factor * of[term] for term, factor in self.terms), Fraction(0))


@dataclass(frozen=True)
class Unit:
    """out = max over the inputs; a rectifier's are x and slope x. `name` says which: relu[1,17].

    Where a smaller out cannot help any rival, out >= the inputs need not be asked (`below` False); where a greater one
    cannot, out <= some input need not (`above` False).
    """

    name: str
    inputs: tuple[Linear, ...]
    below: bool = True
    above: bool = True


@dataclass(frozen=True)
class Margin:
    """logit[label] - logit[rival]: the rival wins when it is below 0, or at 0 if it also wins ties."""

    value: Linear
    wins_ties: bool


@dataclass(frozen=True)
class Formula:
    """At most one swap a position, at most `k` in all, and some rival wins: those whose bounds exclude it are left out.

    `made` are swaps that are fixed, beside these.
    """

    swaps: tuple[tuple[int, int], ...]
    """(position, token), ordered by position."""
    k: int
    units: tuple[Unit, ...]
    margins: tuple[Margin, ...]
    made: tuple[tuple[int, int], ...] = ()
    fewest: bool = False
    """Ask for the least number of swaps, not for any."""

    @property
    def settled(self) -> bool:
        """No rival has a margin whose ends leave it a chance: there is nothing to ask."""
        return not self.margins

    @property
    def positions(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, (position, _) in enumerate(self.swaps):
            found.setdefault(position, []).append(number)
        return found

    @property
    def variables(self) -> int:
        return len(self.swaps) + len(self.units)

    @property
    def size(self) -> str:
        return f"{len(self.swaps)} choices, {len(self.units)} units"

    def broken(self, chosen: set[int]) -> bool:
        """Whether a rival wins after these swaps, by evaluating the formula exactly."""
        known = [Fraction(int(number in chosen)) for number in range(len(self.swaps))]
        for unit in self.units:
            known.append(max(one.value(known) for one in unit.inputs))
        found = [(margin.value.value(known), margin.wins_ties) for margin in self.margins]
        return any(value < 0 or (value == 0 and ties) for value, ties in found)

    def solution(self, chosen: set[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.array([float(number in chosen) for number in range(len(self.swaps))])
