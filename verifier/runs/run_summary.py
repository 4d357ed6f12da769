"""The summary of a run: counts, means and shares, each an interval where texts are open, and the verdict of the run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from ..gates.known_ends import REPLAY, Short, broken, every, mmws, percent_down, robust, share, short, unsettled
from ..gates.requirements import Accuracy, Requirement, answered_requirements, gist, standing
from .store import Store, intact
from .vacuity import UNOBSERVED, Seen

STAGE = "min_swaps"
"""The stage of the store whose lines are results.jsonl."""

DEFINITIONS = {
    "min_swaps": (
        "smallest number of word swaps after which another class than the gold label wins (argmax, lowest index "
        "first); "
        "[low, high]: low is proved or, at the level replay, was found by evaluating every sentence with fewer swaps; "
        "high is a sentence that really fools the model"
    ),
    "mmws": (
        "mean of min_swaps over texts with a finite minimum: texts already wrong and unbreakable ones are left "
        "out. low: mean of the low ends, high: of the high ends; open texts without a witness, which may turn out "
        "unbreakable, count at their low end or their number of words, each only if that widens the interval"
    ),
    "accuracy": "texts whose answer is the gold label / all texts",
    "certified_accuracy": (
        "texts robust to r swaps (min_swaps.low > r), proved or, at the level replay, evaluated in full / all texts"
    ),
    "accuracy_under_attack": "low: certified accuracy; high: texts not known to be broken by r swaps / all texts",
}


MOST_SWAPS = 65_537
"""One more than the words of a text: what certificates can be about."""


@dataclass(frozen=True)
class RunVerdict:
    """One verdict drives the banner and the exit code."""

    code: int
    sentence: str


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
    found = summarise(lines, radius, json.loads(facts["total"]), json.loads(facts.get("require", "{}")), about)
    return found | about | found  # what follows from the lines is not for the store to say


def summarise(
    lines: Iterable[Mapping[str, Any]],
    radius: int | None = None,
    expected: int | None = None,
    require: Mapping[str, Sequence[Any]] = UNOBSERVED,
    about: Mapping[str, Any] = UNOBSERVED,
) -> dict[str, Any]:
    """Of the lines of results.jsonl, read once and not kept; `expected` texts there should be; `require` as [require]
    of a task; `about`: what the run says it is about."""
    texts: list[Short] = []
    statuses: Counter[str] = Counter()
    seen = Seen()
    correct = unanswered = cut = cut_words = unknown = candidates = evaluations = requests = contradictions = 0
    seconds = 0.0
    for line in lines:
        texts.append(short(line))
        statuses[line["status"]] += 1
        seen.add(line)
        correct += line["predicted"] == line["label"]
        unanswered += line["predicted"] is None
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
        "vacuous": seen.findings(about),
        "levels": {},
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
    summary["levels"] = by_level(texts, [int(name) for name in summary["certified_accuracy"]])
    missing = 0 if expected is None else expected - total
    requirements = answered_requirements(texts, radius, require, Accuracy(total, correct, unanswered), missing)
    verdict = verdict_of(texts, contradictions, requirements, summary["vacuous"], missing)
    if missing:
        summary["not_settled_yet"] = missing
    summary["radius"] = radius
    summary["requirements"] = [asdict(requirement) for requirement in requirements]
    summary["verdict"] = {"exit_code": verdict.code, "sentence": verdict.sentence}
    summary["definitions"] = DEFINITIONS
    return summary


def by_level(texts: Sequence[Short], radii: Sequence[int]) -> dict[str, Any]:
    """Level of truth -> texts whose line stands on it, and the part of certified accuracy that does."""
    found = {}
    for level in sorted({text.level for text in texts}):
        own = [text for text in texts if text.level == level]
        shares = {str(r): share(sum(robust(text, r) for text in own), len(texts)) for r in radii}
        found[level] = {"texts": len(own), "certified_accuracy": shares}
    return found


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


def verdict_of(
    texts: Sequence[Short],
    contradictions: int,
    requirements: Sequence[Requirement] = (),
    vacuous: Sequence[str] = (),
    missing: int = 0,
) -> RunVerdict:
    """What did not check comes first, then what makes a run say little, then what is violated, then what is open."""
    if contradictions:
        return RunVerdict(UNCHECKED, f"{contradictions} of {len(texts)} texts did not check: do not rely on this run")
    answers = {requirement.answer for requirement in requirements}
    sentence = gist(requirements) if requirements else ended(texts, missing)
    if vacuous:
        more = f" (and {len(vacuous) - 1} more)" if len(vacuous) > 1 else ""
        sentence = f"this says little: {vacuous[0]}{more}; {sentence}"
        return RunVerdict(INCOMPLETE if requirements or missing else HOLDS, sentence)
    if "false" in answers:
        return RunVerdict(VIOLATED, sentence)
    if missing:
        rest = f"; {sentence}" if requirements else ""
        return RunVerdict(INCOMPLETE, f"{unsettled(missing, len(texts))}: run certify again{rest}")
    return RunVerdict(INCOMPLETE if "not settled" in answers else HOLDS, sentence)


def ended(texts: Sequence[Short], missing: int) -> str:
    """What is to be said where nothing is required."""
    if missing:
        return f"{unsettled(missing, len(texts))}: run certify again"
    open_ones = sum(text.status in ("open", "ambiguous") for text in texts)
    rest = f", {open_ones:,} of them not closed" if open_ones else ""
    held = [text for text in texts if robust(text, 1)]
    sure = all(robust(text, 1) or broken(text, 1) for text in texts)
    if held:
        least = f"{'' if sure else 'at least '}{percent_down(len(held), len(texts))}"
        rest += f"; {least} keep the right answer whichever single word is swapped ({standing(held)})"
    evaluated = sum(text.level == REPLAY and text.low > 0 for text in texts)
    if not evaluated:
        return f"{every(len(texts))} ended in a checked interval{rest}"
    return f"{every(len(texts))} ended in an interval{rest}; {evaluated:,} low ends are evaluated in full, not proved"
