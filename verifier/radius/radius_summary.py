"""What a run of `measure --quantity msr` says of a data set: means, shares, and the definition of each number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import exit_codes
from .radius_setting import RadiusQuestion

DIGITS = 9
NORMS = {"l2": "L2", "linf": "Linf"}
MOVING = {
    "one": "one word at a time; the radius of a text is the least of its words'",
    "all": "all words of the text together",
}


def definition(question: RadiusQuestion) -> str:
    """The sentences that a table of radii stands under."""
    moving = MOVING.get(
        question.words, f"{question.words} words of the text together, those of the smallest plain balls"
    )
    padding = "padding moves too" if question.padding else "padding never moves"
    unit = (
        "each dimension in units of its range over all words, rounded up to 24 significant bits"
        if question.units == "scaled"
        else "the vectors as they are"
    )
    return (
        f"Safe radius: the {NORMS[question.norm]} distance from the vectors of a text to the nearest point at which "
        "another class has the greatest output, lowest index first, among the classes of [model] labels. What moves: "
        f"{moving}; all else stays, and {padding}. Units: {unit}; points may lie outside the range of the words' "
        "vectors (balls are not clipped). normalised: divided by the diameter, the greatest distance of two words of "
        "the vocabulary. low: proved over the reals of the network behind the embedding, certificate checked. high: a "
        "point or a word at which onnxruntime gave another class. exact: the ends differ by at most 0.1 %. Texts that "
        "are answered wrongly have radius 0 and are left out of means. safe against any word: no word of the "
        "vocabulary at that place changes the class; proved where the ball holds all words, evaluated where every word "
        "was looked at"
    )


def summarise_radii(lines: Iterable[Mapping[str, Any]], question: RadiusQuestion, texts: int) -> dict[str, Any]:
    """The summary of these lines of results.jsonl, of `texts` texts asked for."""
    lines = list(lines)
    contradictions = [line["id"] for line in lines if "contradiction" in line]
    measured = [line for line in lines if line["status"] in ("exact", "open")]
    lost = texts - sum(line["status"] != "lost" for line in lines)
    key = "words" if question.words == "one" else "sets"
    parts = [part for line in measured for part in line[key]]
    diameter = next((line["diameter"] for line in measured), None)
    code = exit_codes.UNCHECKED if contradictions else exit_codes.INCOMPLETE if lost else exit_codes.HOLDS
    return {
        **question.fact(),
        "texts": texts,
        "already_wrong": sum(line["status"] == "already_wrong" for line in lines),
        "lost": lost,
        "measured": len(measured),
        "exact": sum(line["status"] == "exact" for line in measured),
        "dimensions": next((line["dimensions"] for line in measured), None),
        "diameter": diameter,
        "safe_radius": ends([line["safe_radius"] for line in measured]),
        "sets": len(parts),
        "sets_exact": sum(part["exact"] for part in parts),
        "set_radius": ends(parts),
        "normalised": normalised(ends(parts), diameter),
        "proved_share": None if not parts else round(sum(part["low"] > 0 for part in parts) / len(parts), DIGITS),
        "words_that_change_it": sum(part.get("swap") is not None for part in parts),
        **({"alike": alike(parts)} if question.same_part_of_speech else {}),
        "any_word": {how: sum(part.get("any_word") == how for part in parts) for how in ("proved", "evaluated")},
        "agreement": agreements(measured),
        "same_vector": sum(part.get("same_vector", 0) for part in parts),
        "by_position": by_position(measured) if key == "words" else [],
        "certificates": sum(line["certificate"] is not None for line in lines),
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "slowest": max([line["seconds"] for line in lines], default=0.0),
        "contradictions": len(contradictions),
        "definition": definition(question),
        "verdict": {"exit_code": code, "sentence": verdict(code, contradictions, lost)},
    }


def ends(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means; the high one only where all have one, for the others may have any radius; and that of those that do."""
    highs = [part["high"] for part in parts if part["high"] is not None]
    return {
        "low": mean([part["low"] for part in parts]),
        "high": mean(highs) if len(highs) == len(parts) else None,
        "with_high": len(highs),
        "of": len(parts),
        "high_of_these": mean(highs),
    }


def alike(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Words that a word of the same part of speech changes, and the mean distances of both nearest words of these."""
    both = [part for part in parts if part.get("swap_alike") is not None]
    return {
        "words": len(both),
        "distance": mean([part["swap_alike"]["distance"] for part in both]),
        "of_any": mean([part["swap"]["distance"] for part in both if part["swap"] is not None]),
    }


def agreements(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean rank correlation of each explanation with each effect, over the texts that have one."""
    names = {(name, effect) for line in lines for name, own in line.get("agreement", {}).items() for effect in own}
    found: dict[str, Any] = {}
    for name, effect in sorted(names):
        told = [line["agreement"].get(name, {}).get(effect) for line in lines]
        found.setdefault(name, {})[effect] = mean([one for one in told if one is not None])
    return found


def mean(numbers: Sequence[float]) -> float | None:
    return round(sum(numbers) / len(numbers), DIGITS) if numbers else None


def normalised(means: Mapping[str, Any], diameter: float | None) -> dict[str, Any]:
    return {
        end: None if means[end] is None or not diameter else round(means[end] / diameter, DIGITS)
        for end in ("low", "high")
    }


def by_position(lines: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The mean low end of each position, over the texts that have a word there."""
    longest = max([len(line["words"]) for line in lines], default=0)
    columns = [[line["words"][at]["low"] for line in lines if at < len(line["words"])] for at in range(longest)]
    return [mean(column) for column in columns]


def verdict(code: int, contradictions: Sequence[int], lost: int) -> str:
    match code:
        case exit_codes.UNCHECKED:
            return (
                f"text {contradictions[0]}: what is proved and what was replayed contradict each other; believe nothing"
            )
        case exit_codes.INCOMPLETE:
            return f"{lost} texts were not measured"
        case _:
            return "every text was measured"
