"""What a run of `attack` says of a data set: counts, shares and means, and one line that defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .. import exit_codes
from ..runs.vacuity import little_said
from .attack_goals import Goal
from .attack_limits import Limits

DIGITS = 6


def summary_of_attack(
    lines: Iterable[Mapping[str, Any]], texts: int, method: str, goal: Goal, limits: Limits, labels: Sequence[str]
) -> dict[str, Any]:
    """The summary of these lines of results.jsonl, of `texts` texts asked for."""
    lines = list(lines)
    failed = [line for line in lines if line["attack"].get("failed")]
    answered = [line for line in lines if not line["attack"].get("failed")]
    attacked = [line for line in answered if attackable(line, goal)]
    broken = [line for line in attacked if line["min_swaps"]["high"] is not None]
    right = sum(line["status"] != "already_wrong" for line in answered)
    candidates = sum(line["candidates"] for line in attacked)
    little = little_said(answered, labels)
    incomplete = bool(failed) or len(lines) < texts or not candidates
    return {
        "quantity": "attack",
        "method": method,
        "target": None if goal.target is None else labels[goal.target],
        "texts": texts,
        "already_wrong": sum(line["status"] == "already_wrong" for line in answered),
        "failed": len(failed),
        "out_of_time": sum(bool(line["attack"].get("out_of_time")) for line in lines),
        "attacked": len(attacked),
        "broken": len(broken),
        "clean": share(right, texts),
        "aua": share(right - len(broken), texts),
        "suc": share(len(broken), len(attacked)),
        "asr1": share(sum(line["min_swaps"]["high"] == 1 for line in broken), len(attacked)),
        "swaps": mean([line["min_swaps"]["high"] for line in broken]),
        "swapped_share": mean([Fraction(line["min_swaps"]["high"], line["positions"]) for line in broken]),
        "requests": mean([line["requests"] for line in attacked]),
        "evaluations": mean([line["evaluations"] for line in attacked if line["evaluations"] is not None]),
        "gradients": mean([line["attack"].get("gradients", 0) for line in attacked]),
        "similarity": mean([line["witness"]["similarity"] for line in broken if "similarity" in line["witness"]]),
        "perplexity_ratio": mean(
            [line["witness"]["perplexity_ratio"] for line in broken if "perplexity_ratio" in line["witness"]]
        ),
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "candidates": candidates,
        "definition": definition(goal, limits, labels),
        "verdict": {
            "exit_code": exit_codes.INCOMPLETE if incomplete else exit_codes.HOLDS,
            "sentence": verdict(len(lines), texts, len(failed), candidates),
        },
        **({"vacuous": little} if little else {}),
    }


def attackable(line: Mapping[str, Any], goal: Goal) -> bool:
    """Whether the attack could want anything of this text."""
    return bool(line["status"] != "already_wrong" and line["label"] != goal.target)


def share(part: int, whole: int) -> dict[str, Any]:
    """With its denominator."""
    return {"of": whole, "number": part, "share": round(part / whole, DIGITS) if whole else None}


def mean(numbers: Sequence[int | float | Fraction]) -> float | None:
    return round(float(sum(numbers) / len(numbers)), DIGITS) if numbers else None


def definition(goal: Goal, limits: Limits, labels: Sequence[str]) -> str:
    aim = "another class than the label" if goal.target is None else f"the class {labels[goal.target]}"
    rules = "; ".join(limits.sentences) or "no limits but the frozen space"
    return (
        f"Goal: {aim} (argmax, lowest index first), of texts that the model answers rightly"
        f"{'' if goal.target is None else ' and that are of another class'}. Clean and Aua are shares of all texts, "
        "Aua of those still answered rightly; Suc and ASR1 (one swap) of the texts attacked; swaps and %S (swaps per "
        "word of the text) are means over broken texts; requests (sentences asked about, before any cache) and "
        f"evaluations (no sentence twice) are means over attacked texts, without replays. Limits: {rules}."
    )


def verdict(known: int, texts: int, failed: int, candidates: int) -> str:
    if known < texts:
        return f"incomplete: {texts - known} texts are not attacked yet"
    if failed:
        return f"incomplete: {failed} texts have no answer"
    return "finished" if candidates else "there is nothing to swap in any text: nothing was attacked"
