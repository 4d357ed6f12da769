"""What the summary of a run needs of its lines: the ends of every text, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

REPLAY = "replay"
"""The level of low ends that are evaluated in full; all others are proved."""


@dataclass(frozen=True)
class Short:
    """What the summary needs of a line."""

    id: int
    status: str
    low: float
    high: int | None
    words: int
    level: str = "float32"
    candidates: int = 1


def short(line: Mapping[str, Any]) -> Short:
    """An unbreakable text withstands any number of swaps, an ambiguous one is proved nothing."""
    ends, rest = line["min_swaps"], (line["positions"], line["level"], line["candidates"])
    match line["status"]:
        case "unbreakable":
            return Short(line["id"], "unbreakable", math.inf, None, *rest)
        case "ambiguous":
            return Short(line["id"], "ambiguous", 0, ends["high"], *rest)
        case status:
            return Short(line["id"], status, ends["low"], ends["high"], *rest)


def robust(text: Short, radius: int) -> bool:
    """Proved to withstand this many swaps, or found to by evaluating every sentence with as many."""
    return text.low > radius


def broken(text: Short, radius: int) -> bool:
    """Known to break with this many swaps or fewer."""
    return text.high is not None and text.high <= radius


@dataclass(frozen=True)
class MeanEnds:
    """The ends of MMWS; None where no text has a minimum. `texts` have a witness, `perhaps` may have none at all."""

    low: Fraction | None
    high: Fraction | None
    texts: int
    perhaps: int


def mean_ends(texts: Iterable[Short]) -> MeanEnds:
    """The mean of min_swaps over the texts that have one.

    An open text without a witness may have none; if it has one, then at most as many as it has words. Whether these
    texts count or not, the mean lies between the least that counting some of them at their low ends can give and the
    greatest that counting some at their numbers of words can give.
    """
    found = [text for text in texts if text.status in ("exact", "open")]
    sure = [(text.low, text.high) for text in found if text.high is not None]
    perhaps = [text for text in found if text.high is None]
    low = least_mean([low for low, _ in sure], [text.low for text in perhaps])
    high = least_mean([-high for _, high in sure], [-text.words for text in perhaps])
    return MeanEnds(low, None if high is None else -high, len(sure), len(perhaps))


def mmws(texts: Iterable[Short]) -> dict[str, float | int | None]:
    """The same for a summary, in six digits."""
    ends = mean_ends(texts)
    low, high = (None if end is None else round(float(end), 6) for end in (ends.low, ends.high))
    return {"low": low, "high": high, "texts": ends.texts, "open_without_witness": ends.perhaps}


def least_mean(sure: Sequence[float], perhaps: Sequence[float]) -> Fraction | None:
    """Of these numbers and any of those: the ones below the mean, in ascending order, are what lowers it."""
    counted, total = len(sure), sum(sure)
    for number in sorted(perhaps):
        if counted and number * counted >= total:
            break
        counted, total = counted + 1, total + number
    return Fraction(total) / counted if counted else None  # a dishonest line may have other numbers than whole ones


def share(part: int, total: int) -> float:
    return round(part / total, 6) if total else 0.0


def percent_down(part: int, whole: int) -> str:
    """What is at least so much is rounded down: it is never said to be more than was found."""
    return f"{10_000 * part // max(whole, 1) / 100:.2f} %"


def percent_up(part: int, whole: int) -> str:
    return f"{-(-10_000 * part // max(whole, 1)) / 100:.2f} %"


def every(number: int) -> str:
    return "the one text" if number == 1 else f"all {number:,} texts"


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"


def unsettled(missing: int, settled: int) -> str:
    return f"{missing:,} of {missing + settled:,} texts are not settled yet"
