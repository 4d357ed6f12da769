"""What a run of `measure --quantity pr` says of a data set: counts, means and shares, and the definition of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOSTLY_ROBUST = 0.9
DIGITS = 9
HOLDS, INCOMPLETE, UNCHECKED = 0, 3, 4

DEFINITION = (
    "PR at radius r: share of the sentences with at most r swaps, the original included, whose answer is the gold "
    "label (argmax, lowest index first). Texts already answered wrongly are left out and counted. exact: every "
    "sentence counted; deterministic: what is not settled counts as broken at the low end and as robust at the high "
    "end; sampled: Clopper-Pearson interval at the stated confidence for each text by itself, samples that rounding "
    "decides counted as failures at the low end and as robust at the high end"
)


def summarise(lines: Iterable[Mapping[str, Any]], radius: int, texts: int) -> dict[str, Any]:
    """The summary of these lines of results.jsonl, of `texts` texts asked for."""
    lines = list(lines)
    kinds = Counter(line["status"] for line in lines)
    measured = [line["robust_fraction"] for line in lines if line["robust_fraction"] is not None]
    contradictions = [line["id"] for line in lines if "contradiction" in line]
    unknown = [line["id"] for line in lines if line["status"] == "sampled" and "sample" not in line["robust_fraction"]]
    code = UNCHECKED if contradictions else INCOMPLETE if unknown or len(lines) < texts else HOLDS
    return {
        "quantity": "pr",
        "radius": radius,
        "texts": texts,
        "already_wrong": kinds["already_wrong"],
        "ambiguous": kinds["ambiguous"],
        "measured": len(measured),
        "exact": kinds["exact"],
        "deterministic": kinds["deterministic"],
        "sampled": kinds["sampled"],
        "robust_fraction": {end: mean([one[end] for one in measured]) for end in ("low", "high")},
        f"share_above_{MOSTLY_ROBUST}": {
            end: mean([float(one[end] > MOSTLY_ROBUST) for one in measured]) for end in ("low", "high")
        },
        "sentences": str(sum(int(one["total"]) for one in measured)),
        "certificates": sum(line["certificate"] is not None for line in lines),
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "slowest": max([line["seconds"] for line in lines], default=0.0),
        "contradictions": len(contradictions),
        "definition": DEFINITION,
        "verdict": {"exit_code": code, "sentence": verdict(code, contradictions, unknown, texts - len(lines))},
    }


def mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), DIGITS) if values else None


def verdict(code: int, contradictions: Sequence[int], unknown: Sequence[int], missing: int) -> str:
    match code:
        case 4:
            return f"the certificate of text {contradictions[0]} contradicts its count; believe nothing of this run"
        case 3:
            return f"{len(unknown) + missing} texts were not measured"
        case _:
            return "every text was measured"
