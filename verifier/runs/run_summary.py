"""The summary of a run: counts, means and shares, each an interval where texts are open, and the verdict of the run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from .store import Store, intact

STAGE = "min_swaps"
"""The stage of the store whose lines are results.jsonl."""

DEFINITIONS = {
    "min_swaps": (
        "smallest number of word swaps after which another class than the gold label wins (argmax, lowest index "
        "first); "
        "[low, high]: low is proved, high is a sentence that really fools the model"
    ),
    "mmws": (
        "mean of min_swaps over texts with a finite minimum: texts already wrong and texts proved unbreakable are left "
        "out. low: mean of the low ends, high: of the high ends; open texts without a witness, which may turn out "
        "unbreakable, count at their low end or their number of words, each only if that widens the interval"
    ),
    "accuracy": "texts whose answer is the gold label / all texts",
    "certified_accuracy": "texts proved robust to r swaps (min_swaps.low > r) / all texts",
    "accuracy_under_attack": "low: certified accuracy; high: texts not known to be broken by r swaps / all texts",
}


MOST_SWAPS = 65_537
"""One more than the words of a text: what certificates can be about."""


@dataclass(frozen=True)
class RunVerdict:
    """One verdict drives the banner and the exit code."""

    code: int
    sentence: str


@dataclass(frozen=True)
class Short:
    """What the summary needs of a line."""

    id: int
    status: str
    low: float
    high: int | None
    words: int
    level: str = "float32"


def short(line: Mapping[str, Any]) -> Short:
    """An unbreakable text withstands any number of swaps, an ambiguous one is proved nothing."""
    ends, (words, level) = line["min_swaps"], (line["positions"], line["level"])
    match line["status"]:
        case "unbreakable":
            return Short(line["id"], "unbreakable", math.inf, None, words, level)
        case "ambiguous":
            return Short(line["id"], "ambiguous", 0, ends["high"], words, level)
        case status:
            return Short(line["id"], status, ends["low"], ends["high"], words, level)


def summary_of(store: Store) -> dict[str, Any]:
    """The content of summary.json: a function of the store alone, also while texts are missing."""
    with intact(store.path):
        return summary_from(store.results(STAGE), store.facts())


def summary_from(lines: Iterable[Mapping[str, Any]], facts: Mapping[str, str]) -> dict[str, Any]:
    """The same of these lines of results.jsonl and the facts of a store."""
    about: dict[str, Any] = json.loads(facts["about"])
    radius = json.loads(facts.get("radius", "null"))  # written last: a run killed while it began has none yet
    if radius is not None and (type(radius) is not int or radius < 0):
        raise ValueError(f"a radius of {radius!r}")
    found = summarise(lines, radius, json.loads(facts["total"]))
    return found | about | found  # what follows from the lines is not for the store to say


def summarise(
    lines: Iterable[Mapping[str, Any]], radius: int | None = None, expected: int | None = None
) -> dict[str, Any]:
    """Of the lines of results.jsonl, read once and not kept; `expected` texts there should be."""
    texts: list[Short] = []
    statuses: Counter[str] = Counter()
    levels: Counter[str] = Counter()
    correct = cut = cut_words = unknown = candidates = evaluations = requests = contradictions = 0
    seconds = 0.0
    for line in lines:
        texts.append(short(line))
        statuses[line["status"]] += 1
        levels[line["level"]] += 1
        correct += line["predicted"] == line["label"]
        cut += line["cut"] > 0
        cut_words += line["cut"]
        unknown += line["unknown"]
        candidates += line["candidates"]
        evaluations += line["evaluations"]
        requests += line["requests"]
        contradictions += "contradiction" in line
        seconds += line["seconds"]
    total = len(texts)
    summary: dict[str, Any] = {
        "texts": total,
        **{status: statuses[status] for status in ("already_wrong", "unbreakable", "exact", "open", "ambiguous")},
        "contradictions": contradictions,
        "levels": dict(sorted(levels.items())),
        "mmws": mmws(texts),
        "accuracy": share(correct, total),
        "certified_accuracy": {},
        "accuracy_under_attack": {},
        "exact_counts": counts(text.high for text in texts if text.status == "exact"),
        "open_counts": counts(text.low for text in texts if text.status == "open"),
        "candidates": candidates,
        "cut_texts": cut,
        "cut_words": cut_words,
        "unknown_words": unknown,
        "evaluations": evaluations,
        "requests": requests,
        "seconds": round(seconds, 3),
    }
    for r in radii(texts, radius):
        low = share(sum(robust(text, r) for text in texts), total)
        high = share(sum(not broken(text, r) for text in texts), total)
        summary["certified_accuracy"][str(r)] = low
        summary["accuracy_under_attack"][str(r)] = {"low": low, "high": high}
    missing = 0 if expected is None else expected - total
    verdict = verdict_of(texts, contradictions, radius, missing)
    if missing:
        summary["not_settled_yet"] = missing
    summary["radius"] = radius
    summary["verdict"] = {"exit_code": verdict.code, "sentence": verdict.sentence}
    summary["definitions"] = DEFINITIONS
    return summary


def robust(text: Short, radius: int) -> bool:
    """Proved to withstand this many swaps."""
    return text.low > radius


def broken(text: Short, radius: int) -> bool:
    """Known to break with this many swaps or fewer."""
    return text.high is not None and text.high <= radius


def mmws(texts: Iterable[Short]) -> dict[str, float | int | None]:
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
    return {
        "low": None if low is None else round(low, 6),
        "high": None if high is None else round(-high, 6),
        "texts": len(sure),
        "open_without_witness": len(perhaps),
    }


def least_mean(sure: Sequence[float], perhaps: Sequence[float]) -> float | None:
    """Of these numbers and any of those: the ones below the mean, in ascending order, are what lowers it."""
    counted, total = len(sure), sum(sure)
    for number in sorted(perhaps):
        if counted and number * counted >= total:
            break
        counted, total = counted + 1, total + number
    return total / counted if counted else None


def counts(ends: Iterable[float | None]) -> dict[str, int]:
    """End -> number of texts that have it, in ascending order."""
    found = Counter(int(end) for end in ends if end is not None)
    return {str(end): found[end] for end in sorted(found)}


def radii(texts: Iterable[Short], radius: int | None) -> Iterable[int]:
    """1 up to where nothing changes any more, and the radius asked for at least."""
    ends = [end for text in texts for end in (text.low, text.high) if end is not None and end < math.inf]
    top = int(max([1, *ends]))
    if top > MOST_SWAPS:
        raise ValueError(f"{top} swaps in one text: a text has at most {MOST_SWAPS - 1} words")
    if radius is not None and radius > MOST_SWAPS:
        return (*range(1, top + 1), radius)
    return range(1, max(top, radius or 1) + 1)


def share(part: int, total: int) -> float:
    return round(part / total, 6) if total else 0.0


def verdict_of(texts: Sequence[Short], contradictions: int, radius: int | None, missing: int = 0) -> RunVerdict:
    if contradictions:
        return RunVerdict(UNCHECKED, f"{contradictions} of {len(texts)} texts did not check: do not rely on this run")
    if missing and (radius is None or not any(broken(text, radius) for text in texts)):
        return RunVerdict(
            INCOMPLETE, f"{missing} of {len(texts) + missing} texts are not settled yet: run certify again"
        )
    if radius is None:
        unsettled = sum(text.status in ("open", "ambiguous") for text in texts)
        rest = f", {unsettled} of them not closed" if unsettled else ""
        return RunVerdict(HOLDS, f"{every(len(texts))} ended in a checked interval{rest}")
    failed = sum(broken(text, radius) for text in texts)
    proved = sum(robust(text, radius) for text in texts)
    if failed:
        wrong = sum(text.status == "already_wrong" for text in texts)
        rest = f", {wrong} of them without a swap: they are answered wrongly" if wrong else ""
        return RunVerdict(VIOLATED, f"not robust to {swaps(radius)}: {failed} of {len(texts)} texts break{rest}")
    if proved < len(texts):
        return RunVerdict(
            INCOMPLETE, f"robustness to {swaps(radius)} is open for {len(texts) - proved} of {len(texts)} texts"
        )
    real = sum(text.level == "real" for text in texts)
    rest = f", {real} of them over real arithmetic only, without what float32 rounds" if real else ""
    return RunVerdict(HOLDS, f"proved robust to {swaps(radius)}: {every(len(texts))}{rest}")


def every(number: int) -> str:
    return "the one text" if number == 1 else f"all {number:,} texts"


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"
