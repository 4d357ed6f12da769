"""The summary of a run: counts, means and shares, each an interval where texts are open, and the verdict of the run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
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


REPLAY = "replay"
"""The level of low ends that are evaluated in full; all others are proved."""
MOST_SWAPS = 65_537
"""One more than the words of a text: what certificates can be about."""


@dataclass(frozen=True)
class RunVerdict:
    """One verdict drives the banner and the exit code."""

    code: int
    sentence: str


Answer = Literal["true", "false", "not settled"]


@dataclass(frozen=True)
class Requirement:
    """What must hold of a run, and whether it does: `low` and `high` are the ends of the share that is compared with
    `least`, of all texts or, of `radius`, of those that the model answers rightly."""

    require: Literal["radius", "certified_accuracy", "accuracy"]
    at: int | None
    least: float | None
    low: float
    high: float
    answer: Answer
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
    require: Mapping[str, Sequence[Mapping[str, Any]]] = UNOBSERVED,
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
    requirements = [] if radius is None else [radius_requirement(texts, radius, missing)]
    certified, accuracies = (require.get(name, ()) for name in ("certified_accuracy", "accuracy"))
    requirements += [certified_requirement(texts, gate["at"], gate["least"], missing) for gate in certified]
    requirements += [accuracy_requirement(total, correct, unanswered, gate["least"], missing) for gate in accuracies]
    verdict = verdict_of(texts, contradictions, requirements, summary["vacuous"], missing)
    if missing:
        summary["not_settled_yet"] = missing
    summary["radius"] = radius
    summary["requirements"] = [asdict(requirement) for requirement in requirements]
    summary["verdict"] = {"exit_code": verdict.code, "sentence": verdict.sentence}
    summary["definitions"] = DEFINITIONS
    return summary


def required_in(summary: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """[require] of the run with this summary."""
    said: dict[str, list[dict[str, Any]]] = {"certified_accuracy": [], "accuracy": []}
    for one in summary["requirements"]:
        if one["require"] in said:
            said[one["require"]].append({"at": one["at"], "least": one["least"]})
    return said


def by_level(texts: Sequence[Short], radii: Sequence[int]) -> dict[str, Any]:
    """Level of truth -> texts whose line stands on it, and the part of certified accuracy that does."""
    found = {}
    for level in sorted({text.level for text in texts}):
        own = [text for text in texts if text.level == level]
        shares = {str(r): share(sum(robust(text, r) for text in own), len(texts)) for r in radii}
        found[level] = {"texts": len(own), "certified_accuracy": shares}
    return found


def robust(text: Short, radius: int) -> bool:
    """Proved to withstand this many swaps, or found to by evaluating every sentence with as many."""
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


def radius_requirement(texts: Sequence[Short], radius: int, missing: int) -> Requirement:
    """Every text that the model answers rightly withstands so many swaps."""
    asked = [text for text in texts if text.status != "already_wrong"]
    failed = sum(broken(text, radius) for text in asked)
    held = [text for text in asked if robust(text, radius)]
    idle = sum(text.candidates == 0 for text in asked)
    least, most = share(len(held), len(asked) + missing), share(len(asked) - failed + missing, len(asked) + missing)

    def answered(answer: Answer, sentence: str) -> Requirement:
        return Requirement("radius", radius, None, least, most, answer, sentence)

    if failed:
        return answered("false", f"not robust to {swaps(radius)}: {failed:,} of {rightly(len(asked))} break")
    if missing:
        return answered("not settled", f"robustness to {swaps(radius)} is open: {unsettled(missing, len(texts))}")
    if not asked:
        return answered("not settled", f"robustness to {swaps(radius)} is of no text: the model answers none rightly")
    if idle == len(asked):
        what = f"robustness to {swaps(radius)} says nothing"
        return answered("not settled", f"{what}: {rightly(idle)} {'has' if idle == 1 else 'have'} nothing to swap")
    if len(held) < len(asked):
        left = len(asked) - len(held)
        return answered("not settled", f"robustness to {swaps(radius)} is open for {left:,} of {rightly(len(asked))}")
    rest = f", {idle:,} of them with nothing to swap" if idle else ""
    number = every(len(asked)) + " that the model answers rightly"
    evaluated = sum(text.level == REPLAY for text in held)
    if evaluated == len(held):
        return answered("true", f"robust to {swaps(radius)}, evaluated in full: {number}{rest}")
    if evaluated:
        return answered("true", f"robust to {swaps(radius)}, {standing(held)}: {number}{rest}")
    real = sum(text.level == "real" for text in held)
    rest += f", {real:,} of them over real arithmetic only, without what float32 rounds" if real else ""
    kernel = sum(text.level == "kernel" for text in held)
    rest += f", {kernel:,} of them while the runtime's functions err no more than FORMAT.md states" if kernel else ""
    return answered("true", f"proved robust to {swaps(radius)}: {number}{rest}")


def standing(texts: Sequence[Short]) -> str:
    """What the low ends of these texts stand on."""
    evaluated = sum(text.level == REPLAY for text in texts)
    if not evaluated:
        return "proved"
    if evaluated == len(texts):
        return "evaluated in full"
    return f"{len(texts) - evaluated:,} proved and {evaluated:,} evaluated in full"


def certified_requirement(texts: Sequence[Short], at: int, least: float, missing: int) -> Requirement:
    """At least this share of all texts withstands so many swaps."""
    held = [text for text in texts if robust(text, at)]
    unbroken = sum(not broken(text, at) for text in texts)
    total = len(texts) + missing
    answer = compared(len(held), unbroken + missing, total, least)
    low, high = share(len(held), total), share(unbroken + missing, total)
    sentence = said(f"accuracy under {swaps(at)}", low, high, least, answer, f" ({standing(held)})" if held else "")
    return Requirement("certified_accuracy", at, least, low, high, answer, sentence)


def accuracy_requirement(total: int, correct: int, unanswered: int, least: float, missing: int) -> Requirement:
    """At least this share of all texts is answered rightly."""
    most = correct + unanswered + missing
    answer = compared(correct, most, total + missing, least)
    low, high = share(correct, total + missing), share(most, total + missing)
    return Requirement("accuracy", None, least, low, high, answer, said("accuracy", low, high, least, answer, ""))


def compared(low: int, high: int, total: int, least: float) -> Answer:
    """A share between two of these texts with the share that is required."""
    wanted = Fraction(str(least)) * total
    if not total:
        return "not settled"
    return "true" if low >= wanted else "false" if high < wanted else "not settled"


def said(what: str, low: float, high: float, least: float, answer: Answer, standing: str) -> str:
    required = f"{100 * least:g} % is required"
    match answer:
        case "true":
            return f"{what} is at least {100 * low:.2f} %{standing}, and {required}"
        case "false":
            return f"{what} is at most {100 * high:.2f} %, and {required}"
    return f"{what} lies in [{100 * low:.2f} %, {100 * high:.2f} %], and {required}"


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


def gist(requirements: Sequence[Requirement]) -> str:
    """The requirement there is; of several, those that do not hold, else those that are not settled."""
    if len(requirements) == 1:
        return requirements[0].sentence
    for answer, one, several in (("false", "does not hold", "do not hold"), ("not settled", "is open", "are open")):
        found = [requirement.sentence for requirement in requirements if requirement.answer == answer]
        if found:
            is_so = one if len(found) == 1 else several
            return f"{len(found)} of {len(requirements)} requirements {is_so}: {'; '.join(found)}"
    return f"all {len(requirements)} requirements hold"


def ended(texts: Sequence[Short], missing: int) -> str:
    """What is to be said where nothing is required."""
    if missing:
        return f"{unsettled(missing, len(texts))}: run certify again"
    open_ones = sum(text.status in ("open", "ambiguous") for text in texts)
    rest = f", {open_ones:,} of them not closed" if open_ones else ""
    held = [text for text in texts if robust(text, 1)]
    sure = all(robust(text, 1) or broken(text, 1) for text in texts)
    if held:
        least = f"{'' if sure else 'at least '}{100 * share(len(held), len(texts)):.2f} %"
        rest += f"; {least} keep the right answer whatever word is swapped ({standing(held)})"
    evaluated = sum(text.level == REPLAY and text.low > 0 for text in texts)
    if not evaluated:
        return f"{every(len(texts))} ended in a checked interval{rest}"
    return f"{every(len(texts))} ended in an interval{rest}; {evaluated:,} low ends are evaluated in full, not proved"


def unsettled(missing: int, settled: int) -> str:
    return f"{missing:,} of {missing + settled:,} texts are not settled yet"


def rightly(number: int) -> str:
    those = "the one text" if number == 1 else f"the {number:,} texts"
    return f"{those} that the model answers rightly"


def every(number: int) -> str:
    return "the one text" if number == 1 else f"all {number:,} texts"


def swaps(number: int) -> str:
    return "1 swap" if number == 1 else f"{number} swaps"
