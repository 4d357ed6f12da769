"""Paired shares: of the same texts, how many keep the right answer in one run and not in the other.

With n texts, b of which only the other run keeps and c only the first, the difference of the shares is (b - c) / n.
It is d (2 t - 1), where d = (b + c) / n is the share of texts that differ and t = b / (b + c) that of them which only
the other keeps. Clopper and Pearson bound d at 99 % and t at 96 %, so that the product is bounded at 95 % whatever the
population, if the texts were drawn from it at random; and it is on one side of 0 where t is on one side of 1/2, much as
McNemar's test sees it. Texts whose answer is open count wherever they widen the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..counting.binomial import clopper_pearson

DIGITS = 6
OF_DIFFERING, OF_SIDE = Fraction(1, 100), Fraction(4, 100)
"""How the doubt of 5 % is shared: over how many texts differ, and over which way they do."""
METHOD = (
    "Interval: 95 %, of the population if the texts were drawn from it at random; the Clopper-Pearson interval (99 %) "
    "of the share of texts that differ, times that (96 %) of the way they differ; texts that are open widen it. p: "
    "McNemar's exact test, two-sided, with open texts counted as is worst for a difference"
)
Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Pairs:
    """Numbers of texts that only the other run keeps (gained), and that only the first does (lost); open texts make
    intervals of them, and of the number of texts that differ at all."""

    texts: int
    gained: int
    lost: int
    gained_at_most: int
    lost_at_most: int
    differ_at_most: int

    @property
    def difference(self) -> Ends:
        low, high = self.gained - self.lost_at_most, self.gained_at_most - self.lost
        return Fraction(low, self.texts), Fraction(high, self.texts)

    @property
    def interval(self) -> Ends:
        """At 95 %."""
        differ = (
            clopper_pearson(self.gained + self.lost, self.texts, OF_DIFFERING)[0],
            clopper_pearson(self.differ_at_most, self.texts, OF_DIFFERING)[1],
        )
        sides = 2 * side(self.gained, self.lost_at_most)[0] - 1, 2 * side(self.gained_at_most, self.lost)[1] - 1
        low, high = (differ[end] * sides[which] for which, end in enumerate((sides[0] < 0, sides[1] > 0)))
        return low, high

    @property
    def p(self) -> float:
        if self.gained > self.lost_at_most:
            return mcnemar(self.gained, self.lost_at_most)
        if self.lost > self.gained_at_most:
            return mcnemar(self.gained_at_most, self.lost)
        return 1.0


def side(gained: int, lost: int) -> Ends:
    """Of the texts that differ, the share that only the other run keeps: at 96 %."""
    return clopper_pearson(gained, gained + lost, OF_SIDE) if gained + lost else (Fraction(0), Fraction(1))


def pairs_of(both: Iterable[tuple[bool | None, bool | None]]) -> Pairs:
    """Of what the first and the other run say of each text."""
    texts = gained = lost = most_gained = most_lost = alike = 0
    for first, other in both:
        texts += 1
        gained += first is False and other is True
        lost += first is True and other is False
        most_gained += first is not True and other is not False
        most_lost += first is not False and other is not True
        alike += first is not None and first is other
    return Pairs(texts, gained, lost, most_gained, most_lost, texts - alike)


def mcnemar(gained: int, lost: int) -> float:
    """Twice the probability that of so many fair coins as few or fewer fall on the rarer side."""
    total, fewer = gained + lost, min(gained, lost)
    tail = sum(math.comb(total, number) for number in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 1 << total)))


def told(pairs: Pairs) -> dict[str, Any]:
    """For the file of a comparison."""
    return {
        "difference": outwards(*pairs.difference),
        "interval": outwards(*pairs.interval),
        "gained": {"low": pairs.gained, "high": pairs.gained_at_most},
        "lost": {"low": pairs.lost, "high": pairs.lost_at_most},
        "p": pairs.p,
    }


def outwards(low: Fraction, high: Fraction) -> dict[str, float]:
    """Six digits, rounded outwards; one number where both ends are the same."""
    if low == high:
        return dict.fromkeys(("low", "high"), round(float(low), DIGITS))
    power = 10**DIGITS
    return {"low": math.floor(low * power) / power, "high": math.ceil(high * power) / power}
