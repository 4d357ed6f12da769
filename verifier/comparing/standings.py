"""What a run says of each text, whatever it measured: an interval of which more is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Moved = Literal["better", "worse", "same", "not settled"]
MOVES: tuple[Moved, ...] = ("worse", "better", "not settled", "same")


@dataclass(frozen=True)
class Standing:
    """Of one text in one run: `low` and `high` of the swaps it takes to fool the model (inf: no number does), of
    the share of sentences that keep their label, or of its safe radius; `wrong`: answered wrongly as it stands."""

    low: float
    high: float
    wrong: bool = False

    def keeps(self, radius: int) -> bool | None:
        """Whether the right answer withstands so many swaps, where that is known."""
        return True if self.low > radius else False if self.high <= radius else None

    @property
    def exact(self) -> bool:
        return self.low == self.high


WRONG = Standing(0, 0, True)
UNKNOWN = Standing(0, math.inf)


def of_certify(line: Mapping[str, Any]) -> Standing:
    """An unbreakable text withstands every number of swaps; of an ambiguous one nothing is proved."""
    ends = line["min_swaps"]
    high = math.inf if ends["high"] is None else ends["high"]
    match line["status"]:
        case "already_wrong":
            return WRONG
        case "unbreakable":
            return Standing(math.inf, math.inf)
        case "ambiguous":
            return Standing(0, high)
        case _:
            return Standing(ends["low"], high)


def of_attack(line: Mapping[str, Any]) -> Standing:
    """The swaps with which this attack broke the text; inf where it did not, which proves nothing."""
    if line["status"] == "already_wrong":
        return WRONG
    if line["attack"].get("failed"):
        return UNKNOWN
    high = line["min_swaps"]["high"]
    return Standing(math.inf, math.inf) if high is None else Standing(high, high)


def of_pr(line: Mapping[str, Any]) -> Standing:
    """The share of sentences that keep their label."""
    found = line["robust_fraction"]
    if line["status"] == "already_wrong":
        return WRONG
    return Standing(0.0, 1.0) if found is None else Standing(found["low"], found["high"])


def of_kappa(line: Mapping[str, Any]) -> Standing:
    """The share of the vocabulary that flips it nowhere."""
    flips, unknown, words = (line[name] for name in ("words_that_flip_it", "words_not_known", "words"))
    if line["ambiguous"]:
        return Standing(0.0, 1.0)
    return Standing(1 - (flips + unknown) / words, 1 - flips / words)


def of_radius(line: Mapping[str, Any]) -> Standing:
    """How far the vectors of the text may move before the class changes; inf where no change was met."""
    ends = line["safe_radius"]
    if line["status"] == "already_wrong":
        return WRONG
    high = math.inf if ends["high"] is None else ends["high"]
    return Standing(0.0 if ends["low"] is None else ends["low"], high)


STANDINGS = {"certify": of_certify, "attack": of_attack, "pr": of_pr, "kappa": of_kappa, "msr": of_radius}


def moved(first: Standing, other: Standing) -> Moved:
    """How a text stands in the other run, as far as both intervals say it."""
    if first.wrong or other.wrong:
        if first.wrong and other.wrong:
            return "same"
        known = other if first.wrong else first
        if known.low == 0 and known.high > 0:
            return "not settled"  # whether it is answered rightly at all
        return "better" if first.wrong else "worse"
    if other.low > first.high:
        return "better"
    if other.high < first.low:
        return "worse"
    return "same" if first.exact and other.exact else "not settled"


def tally(moves: Iterable[Moved]) -> dict[str, int]:
    found = list(moves)
    return {name.replace(" ", "_"): found.count(name) for name in MOVES}
