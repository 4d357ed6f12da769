"""What a run of `measure --quantity pr` says of a data set: counts, means and shares, and the definition of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ... import exit_codes
from ..binomial import outwards
from ..joint_statements import Ends, Measured, Together, measured, together

MOSTLY_ROBUST = Fraction(9, 10)
DIGITS = 9

DEFINITION = (
    "PR at radius r: share of the sentences with at most r swaps, the original included, whose answer is the gold "
    "label (argmax, lowest index first). Texts already answered wrongly are left out and counted. exact: every "
    "sentence counted, over the reals (with --sampled: judged, each once, where samples would be no fewer); "
    "deterministic: what is not settled counts as broken at the low end and as "
    "robust at the high end; sampled: uniformly, and samples that rounding decides are failures at the low end and "
    "robust at the high end; Clopper-Pearson intervals if the number of samples was fixed beforehand, else (a width, "
    "the clock) a confidence sequence, which holds whenever the drawing stops. Each text's own interval holds at its "
    "confidence by itself; mean PR and the share of texts with PR > 0.9 hold together at the confidence beside them, "
    "for each radius by itself"
)


def summarise(lines: Iterable[Mapping[str, Any]], radius: int, texts: int, delta: Fraction) -> dict[str, Any]:
    """The summary of these lines of results.jsonl, of `texts` texts asked for."""
    lines = list(lines)
    kinds = Counter(line["status"] for line in lines)
    fractions = [line["robust_fraction"] for line in lines if line["robust_fraction"] is not None]
    contradictions = [line["id"] for line in lines if "contradiction" in line]
    missing = texts - sum(measured_or_left_out(line) for line in lines)
    code = exit_codes.UNCHECKED if contradictions else exit_codes.INCOMPLETE if missing else exit_codes.HOLDS
    exact = kinds["exact"] == len(fractions)
    stops = Counter(one["sample"]["stopped"] for one in fractions if "sample" in one)
    summary = {
        "quantity": "pr",
        "radius": radius,
        "texts": texts,
        "already_wrong": kinds["already_wrong"],
        "ambiguous": kinds["ambiguous"],
        "lost": kinds["lost"],
        "measured": len(fractions),
        "exact": kinds["exact"],
        "deterministic": kinds["deterministic"],
        "sampled": kinds["sampled"],
        **said(together([measured(one, delta, samples=False) for one in fractions], MOSTLY_ROBUST, delta), exact=exact),
        "samples": {"texts": sum(stops.values()), **{f"stopped_by_{name}": stops[name] for name in sorted(stops)}},
        "rounding": rounding(fractions, delta),
        "sentences": str(sum(int(one["total"]) for one in fractions)),
        "certificates": sum(line["certificate"] is not None for line in lines),
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "slowest": max([line["seconds"] for line in lines], default=0.0),
        "contradictions": len(contradictions),
        "definition": DEFINITION,
        "verdict": {"exit_code": code, "sentence": verdict(code, contradictions, missing)},
    }
    if any("robust" in one and "sample" in one for one in fractions):
        summary["with_samples"] = said(together([measured(one, delta) for one in fractions], MOSTLY_ROBUST, delta))
    return summary


def measured_or_left_out(line: Mapping[str, Any]) -> bool:
    if line["status"] == "sampled":
        return "sample" in line["robust_fraction"]
    return bool(line["status"] != "lost")


def said(found: Together | None, *, exact: bool = False) -> dict[str, Any]:
    """Mean and share, and the probability with which both hold; certainty is 1."""
    if found is None:
        nothing = {"low": None, "high": None}
        return {"robust_fraction": nothing, "share_above_0.9": nothing, "confidence": None}
    return {
        "robust_fraction": ends(found.mean, exact=exact),
        "share_above_0.9": ends(found.above, exact=found.above[0] == found.above[1]),
        "confidence": float(found.confidence),
    }


def ends(found: Ends, *, exact: bool) -> dict[str, float]:
    """Rounded outwards; one rounded number when both ends are the same but for that."""
    low, high = (round(float(found[0]), DIGITS),) * 2 if exact else outwards(*found, DIGITS)
    return {"low": low, "high": high}


def rounding(fractions: Sequence[Mapping[str, Any]], delta: Fraction) -> dict[str, Any]:
    """Of counted texts: sentences whose answer rounding may change, and the mean if it changes all of them."""
    decided = [int(one.get("rounding_may_decide", 0)) for one in fractions]
    texts = [either_way(one, count, delta) for one, count in zip(fractions, decided, strict=True)]
    exact = all(one["kind"] == "exact" for one in fractions) and not any(decided)
    found = said(together(texts, MOSTLY_ROBUST, delta), exact=exact)
    return {
        "texts": sum(count > 0 for count in decided),
        "sentences": str(sum(decided)),
        "robust_fraction": found["robust_fraction"],
    }


def either_way(fraction: Mapping[str, Any], count: int, delta: Fraction) -> Measured:
    """The ends when `count` sentences may be counted wrongly, those of the samples as they are."""
    text, total = measured(fraction, delta, samples=False), int(fraction["total"])
    return replace(
        text,
        low=max(Fraction(0), text.low - Fraction(count, total)),
        high=min(Fraction(1), text.high + Fraction(count, total)),
    )


def verdict(code: int, contradictions: Sequence[int], missing: int) -> str:
    match code:
        case exit_codes.UNCHECKED:
            return f"the certificate of text {contradictions[0]} contradicts its count; believe nothing of this run"
        case exit_codes.INCOMPLETE:
            return f"{missing} texts were not measured"
        case _:
            return "every text was measured"
