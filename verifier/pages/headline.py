"""What a run claims, in one sentence: how many texts withstand how many swaps, on what ground, and which is weakest.

Whatever may be false is rounded to the safe side: low ends down, high ends up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..counting.binomial import clopper_pearson

USUAL = 2
"""Swaps that a run is described by when nobody asked for a number."""
DOUBT = Fraction(1, 20)
GROUNDS = {
    "float32": "proved",
    "kernel": "proved within stated errors of the runtime's functions (kernel)",
    "real": "proved over real arithmetic",
    "replay": "evaluated in full, not proved",
}
"""Level of truth -> what a low end at this level is."""


@dataclass(frozen=True)
class Headline:
    """Shares of the texts that keep the right answer under `radius` swaps, and that are not known to lose it; the
    confidence interval of the share in the population; least number of swaps that breaks a text, and how many."""

    radius: int
    low: float
    high: float
    population: tuple[Fraction, Fraction]
    weakest: tuple[int, int] | None
    sentence: str


def headline(summary: Mapping[str, Any]) -> Headline | None:
    """None of a run that did not check, says little, or has no text."""
    total = summary["texts"]
    if summary["contradictions"] or summary["vacuous"] or not total:
        return None
    radius = claimed_radius(summary)
    low, high = ends_at(summary, radius)
    population = of_population(low, high, total)
    weakest = weakest_texts(summary)
    parts = [
        f"{share_of(low, high)} of the {total:,} texts keep the right answer under any {swaps(radius)}"
        f"{standing(summary, radius)}",
        f"95 % interval for the population {down(population[0], 0)} to {up(population[1], 0)} %",
        weakness(weakest),
    ]
    return Headline(radius, low, high, population, weakest, "; ".join(parts))


def claimed_radius(summary: Mapping[str, Any]) -> int:
    """The one asked for; else the greatest of a required share; else 2, or 1 where no text withstands 2."""
    required = [one["at"] for one in summary["requirements"] if one["at"] and one["require"] != "baseline"]
    if required:
        return int(max(required))
    return USUAL if ends_at(summary, USUAL)[0] else 1


def ends_at(summary: Mapping[str, Any], radius: int) -> tuple[float, float]:
    """Accuracy under so many swaps; beyond the last radius of the summary nothing changes any more."""
    shares = summary["accuracy_under_attack"]
    both = shares.get(str(radius)) or shares[max(shares, key=int)]
    return both["low"], both["high"]


def of_population(low: float, high: float, total: int) -> tuple[Fraction, Fraction]:
    """Clopper-Pearson at 95 %, if the texts were drawn at random: from the low end of the least share of texts to the
    high end of the greatest."""
    least, most = round(low * total), round(high * total)
    return clopper_pearson(least, total, DOUBT)[0], clopper_pearson(most, total, DOUBT)[1]


def weakest_texts(summary: Mapping[str, Any]) -> tuple[int, int] | None:
    """The least number of swaps known to break a text that is answered rightly, and how many such texts there are."""
    total = summary["texts"]
    for radius, both in summary["accuracy_under_attack"].items():
        broken = total - round(both["high"] * total) - summary["already_wrong"]
        if broken > 0:
            return int(radius), broken
    return None


def standing(summary: Mapping[str, Any], radius: int) -> str:
    """What the texts that withstand so many swaps stand on; of several levels, how much on each."""
    found = {}
    for level, part in summary["levels"].items():
        shares = part["certified_accuracy"]
        share = shares.get(str(radius)) or shares[max(shares, key=int)]
        if share:
            found[level] = share
    if len(found) <= 1:
        return "".join(f", {GROUNDS[level]}" for level in found)
    parts = [f"{down(share)} % {GROUNDS[level]}" for level, share in found.items()]
    return f" ({', '.join(parts)})"


def share_of(low: float, high: float) -> str:
    if low == high:
        return f"{down(low)} %"
    return f"Between {down(low)} % and {up(high)} %"


def weakness(weakest: tuple[int, int] | None) -> str:
    match weakest:
        case None:
            return "no text that is answered rightly is known to fall"
        case number, 1:
            return f"the weakest text falls to {swaps(number)}"
        case number, texts:
            return f"the weakest {texts:,} texts fall to {swaps(number)}"


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"


def down(share: float | Fraction, digits: int = 1) -> str:
    """In percent, rounded down: what is claimed is never more than what was found."""
    return f"{math.floor(hundreds(share, digits)) / 10**digits:.{digits}f}"


def up(share: float | Fraction, digits: int = 1) -> str:
    return f"{math.ceil(hundreds(share, digits)) / 10**digits:.{digits}f}"


def hundreds(share: float | Fraction, digits: int) -> Fraction:
    """Shares of a summary are decimals of six digits."""
    exact = Fraction(repr(share)) if isinstance(share, float) else share
    scale: int = 100 * 10**digits
    return exact * scale
