"""Requirements of a run of `certify`, each with the ends of what it is about, its answer, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from .known_ends import (
    REPLAY,
    Short,
    broken,
    every,
    mean_ends,
    percent_down,
    percent_up,
    robust,
    share,
    swaps,
    unsettled,
)

Answer = Literal["true", "false", "not settled"]


@dataclass(frozen=True)
class Requirement:
    """What must hold of a run, and whether it does: `low` and `high` are the ends of what is compared with `least`: a
    share of all texts; of `radius` and `no_text_broken_by`, of those that the model answers rightly; of `mmws`, the
    mean, which no text may have."""

    require: Literal["radius", "no_text_broken_by", "certified_accuracy", "accuracy", "mmws", "baseline", "rho"]
    at: int | None
    least: float | None
    low: float | None
    high: float | None
    answer: Answer
    sentence: str


@dataclass(frozen=True)
class Accuracy:
    """Numbers of texts: all that are settled, answered rightly, and of no known answer."""

    texts: int
    correct: int
    unanswered: int


def answered_requirements(
    texts: Sequence[Short],
    radius: int | None,
    require: Mapping[str, Sequence[Any]],
    accuracy: Accuracy,
    missing: int,
) -> list[Requirement]:
    """`require` as [require] of a task; `missing` texts are not settled yet."""
    found = [] if radius is None else [radius_requirement(texts, radius, missing)]
    found += [no_text_requirement(texts, at, missing) for at in require.get("no_text_broken_by", ())]
    for name in ("certified_accuracy", "baseline"):
        found += [
            certified_requirement(texts, gate["at"], gate["least"], missing, of_baseline=name == "baseline")
            for gate in require.get(name, ())
        ]
    found += [accuracy_requirement(accuracy, gate["least"], missing) for gate in require.get("accuracy", ())]
    found += [mmws_requirement(texts, gate["least"], missing) for gate in require.get("mmws", ())]
    return found


def required_in(summary: Mapping[str, Any]) -> dict[str, list[Any]]:
    """[require] of the run with this summary."""
    said: dict[str, list[Any]] = {}
    for one in summary["requirements"]:
        match one["require"]:
            case "no_text_broken_by":
                said.setdefault("no_text_broken_by", []).append(one["at"])
            case "certified_accuracy" | "baseline" | "accuracy" | "mmws" as name:
                said.setdefault(name, []).append({"at": one["at"], "least": one["least"]})
    return said


def required(one: Mapping[str, Any]) -> str:
    """What a requirement of a summary asks for, whatever was found."""
    at, least = one["at"], one["least"]
    match one["require"]:
        case "radius" | "no_text_broken_by":
            return f"robust to {swaps(at)}"
        case "mmws" | "rho" as name:
            return f"{'MMWS' if name == 'mmws' else name} at least {least:g}"
        case name:
            rest = ", as the baseline has it" if name == "baseline" else ""
            return f"accuracy{f' under {swaps(at)}' if at else ''} at least {100 * least:g} %{rest}"


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


def no_text_requirement(texts: Sequence[Short], at: int, missing: int) -> Requirement:
    """The same as of a radius, said in the task file."""
    return replace(radius_requirement(texts, at, missing), require="no_text_broken_by")


def certified_requirement(
    texts: Sequence[Short], at: int, least: float, missing: int, *, of_baseline: bool = False
) -> Requirement:
    """At least this share of all texts withstands so many swaps; `of_baseline`: as many as in an earlier run."""
    held = [text for text in texts if robust(text, at)]
    unbroken = sum(not broken(text, at) for text in texts)
    total = len(texts) + missing
    answer = compared(len(held), unbroken + missing, total, least)
    low, high = share(len(held), total), share(unbroken + missing, total)
    what = f"accuracy under {swaps(at)}" if at else "accuracy"
    ends = len(held), unbroken + missing, total
    sentence = said(what, ends, least, answer, f", {standing(held)}" if held and at else "")
    if not of_baseline:
        return Requirement("certified_accuracy", at, least, low, high, answer, sentence)
    return Requirement("baseline", at, least, low, high, answer, f"{sentence}, as the baseline has it")


def accuracy_requirement(found: Accuracy, least: float, missing: int) -> Requirement:
    """At least this share of all texts is answered rightly."""
    total, most = found.texts + missing, found.correct + found.unanswered + missing
    answer = compared(found.correct, most, total, least)
    low, high = share(found.correct, total), share(most, total)
    sentence = said("accuracy", (found.correct, most, total), least, answer, "")
    return Requirement("accuracy", None, least, low, high, answer, sentence)


def mmws_requirement(texts: Sequence[Short], least: float, missing: int) -> Requirement:
    """The mean of min_swaps, over the texts that some number of swaps breaks, is so great."""
    ends, wanted = mean_ends(texts), Fraction(str(least))
    low, high = (None if end is None else round(float(end), 6) for end in (ends.low, ends.high))

    def answered(answer: Answer, sentence: str) -> Requirement:
        return Requirement("mmws", None, least, low, high, answer, f"{sentence}, and {least:g} is required")

    if missing:
        return answered("not settled", f"MMWS is open: {unsettled(missing, len(texts))}")
    if ends.low is None or ends.high is None:
        return answered("not settled", "MMWS is of no text: none is known to be broken by any number of swaps")
    if not ends.texts:
        return answered("not settled", "MMWS is of no text that is known to be broken by any number of swaps")
    if ends.low >= wanted:
        return answered("true", f"MMWS is at least {floored(ends.low)}")
    if ends.high < wanted:
        return answered("false", f"MMWS is at most {ceiled(ends.high)}")
    return answered("not settled", f"MMWS lies in [{floored(ends.low)}, {ceiled(ends.high)}]")


def rho_requirement(rho: tuple[Fraction, Fraction], least: float) -> Requirement:
    """rho of a run of `measure --quantity kappa` is so great."""
    (low, high), wanted = rho, Fraction(str(least))
    answer: Answer = "true" if low >= wanted else "false" if high < wanted else "not settled"
    what = {
        "true": f"rho is at least {down(low)}",
        "false": f"rho is at most {up(high)}",
        "not settled": f"rho lies in [{down(low)}, {up(high)}]",
    }
    sentence = f"{what[answer]}, and {least:g} is required"
    return Requirement("rho", None, least, float(low), float(high), answer, sentence)


def down(share: Fraction) -> str:
    return f"{math.floor(share * 1_000_000) / 1_000_000:.6f}"


def up(share: Fraction) -> str:
    return f"{math.ceil(share * 1_000_000) / 1_000_000:.6f}"


def floored(mean: Fraction) -> str:
    return f"{math.floor(mean * 1000) / 1000:.3f}"


def ceiled(mean: Fraction) -> str:
    return f"{math.ceil(mean * 1000) / 1000:.3f}"


def compared(low: int, high: int, total: int, least: float) -> Answer:
    """A share between two of these texts with the share that is required."""
    wanted = Fraction(str(least)) * total
    if not total:
        return "not settled"
    return "true" if low >= wanted else "false" if high < wanted else "not settled"


def said(what: str, ends: tuple[int, int, int], least: float, answer: Answer, standing: str) -> str:
    """`ends`: the least and the greatest number of texts, of how many."""
    low, high, total = ends
    required = f"{100 * least:g} % is required"
    match answer:
        case "true":
            return f"{what} is at least {percent_down(low, total)} ({low:,} of {total:,}{standing}), and {required}"
        case "false":
            return f"{what} is at most {percent_up(high, total)} ({high:,} of {total:,}), and {required}"
    return f"{what} lies in [{percent_down(low, total)}, {percent_up(high, total)}], and {required}"


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


def rightly(number: int) -> str:
    those = "the one text" if number == 1 else f"the {number:,} texts"
    return f"{those} that the model answers rightly"
