"""Texts that fewer swaps break than are required, as SARIF 2.1.0: what code hosts show beside a change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...gates.known_ends import broken, short
from ...versions import versions
from ..headline import claimed_radius, swaps

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    "text-broken": "Swapping words for their candidates changes the answer: replayed through the deployed model.",
    "requirement-violated": "A requirement of the run does not hold.",
    "requirement-open": "A requirement of the run is neither proved nor refuted.",
}


def as_sarif(summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A finding for each requirement that does not hold or is open, and for each text broken by as many swaps as are
    asked about; texts that are answered wrongly anyway are not asked about."""
    results = [requirement(one) for one in summary["requirements"] if one["answer"] != "true"]
    radius = asked_radius(summary)
    violated = any(one["answer"] == "false" and one["at"] == radius for one in summary["requirements"])
    asked = (line for line in lines if line["status"] != "already_wrong" and broken(short(line), radius))
    results += [finding(line, radius, "error" if violated else "note") for line in asked]
    found = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "swapproof",
                        "version": versions("swapproof")["swapproof"],
                        "rules": [{"id": id, "shortDescription": {"text": text}} for id, text in RULES.items()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    yield json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def asked_radius(summary: Mapping[str, Any]) -> int:
    """The greatest number of swaps that is required; of a run of which nothing is, the one it is described by."""
    required = [one["at"] for one in summary["requirements"] if one["at"] and one["require"] != "baseline"]
    return int(max(required, default=claimed_radius(summary)))


def requirement(one: Mapping[str, Any]) -> dict[str, Any]:
    violated = one["answer"] == "false"
    return {
        "ruleId": "requirement-violated" if violated else "requirement-open",
        "level": "error" if violated else "warning",
        "message": {"text": one["sentence"]},
        "locations": [place("task.toml", 1)],
    }


def finding(line: Mapping[str, Any], radius: int, level: str) -> dict[str, Any]:
    high = line["min_swaps"]["high"]
    changed = ", ".join(f"{one['from']} -> {one['to']}" for one in (line["witness"] or {"swaps": ()})["swaps"])
    said = f"Text {line['id']} falls to {swaps(high)}" + (f" ({changed})" if changed else "")
    return {
        "ruleId": "text-broken",
        "level": level,
        "message": {"text": f"{said}; asked about: {swaps(radius)}. {line['text']}"},
        "locations": [place("texts.jsonl", line["id"] + 1)],
        "partialFingerprints": {"swapproofText/v1": str(line["id"])},
    }


def place(file: str, line: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": line}}}
