"""What a line of results.jsonl may claim: as much as its certificate states, or less."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..engines import ENGINES, OUTSIDE, SMALL_PROOFS
from ..runs.results import covered, strongest

Known = dict[str, Any]
"""Keys, each with the known keys of what it holds (an object, or objects in a list); None where those are free."""

OF_A_TEXT: Known = dict.fromkeys(
    (
        *("id", "text", "label", "predicted", "positions", "candidates", "cut", "unknown"),
        *("status", "level", "certificate", "seconds", "evaluations", "reason", "contradiction"),
    )
)
OF_CERTIFY: Known = OF_A_TEXT | {
    "min_swaps": dict.fromkeys(("low", "high")),
    "witness": {"swaps": dict.fromkeys(("position", "from", "to", "characters")), "sentence": None, "levels": None},
    "engine": None,
    "requests": None,
    "covered": dict.fromkeys(("swaps", "robust", "total", "level")),
    "claims": dict.fromkeys(("low", "by", "detail")),
    "dispute": None,
}
INTERVAL: Known = dict.fromkeys(("low", "high"))
OF_MEASURE: Known = OF_A_TEXT | {
    "radius": None,
    "robust_fraction": {
        **dict.fromkeys(("low", "high", "kind", "total", "robust", "broken", "open", "rounding_may_decide")),
        "sample": {
            **dict.fromkeys(("share", "confidence", "samples", "stopped", "robust_samples", "ambiguous_samples")),
            **dict.fromkeys(("anytime", "clopper_pearson", "hoeffding", "enumerated"), INTERVAL),
            **dict.fromkeys(("sampled_from", "seed")),
        },
    },
}


OF_A_RUN: Known = {
    **dict.fromkeys(("labels", "remarks", "engines", "seconds_per_text")),
    "swaps": dict.fromkeys(("source", "sha256", "considered", "removed", "kept", "fixed", "dropped_on_reading")),
    "model": dict.fromkeys(
        (
            *("file", "sha256", "opset", "tokens", "classes", "embedding_rows", "embedding_rows_without_a_word"),
            *("hidden_units", "final_function", "largest_difference_from_onnxruntime"),
        )
    ),
    "versions": dict.fromkeys(("swapproof", "numpy", "onnx", "onnxruntime")),
}
"""What a run says it is about: shown in summary and report."""
LEVELS = ("real", "float32")
WHOLE = ("label", "predicted", "positions", "candidates", "cut", "unknown", "evaluations", "requests")
ENGINE_NAMES = ("replay", *(engine.name for engine in (*ENGINES, *OUTSIDE, *SMALL_PROOFS.values())))


def additions(value: Any, known: Known, within: str = "", what: str = "line") -> Iterator[str]:
    """What a line says that no line says: nothing compares it with anything."""
    for item in value if isinstance(value, list) else [value]:
        for key, inner in item.items() if isinstance(item, dict) else ():
            if key not in known:
                yield f"has the key {within + key!r}, which no {what} has"
            elif known[key] is not None:
                yield from additions(inner, known[key], f"{within}{key}.", what)


def no_numbers(line: Mapping[str, Any]) -> Iterator[str]:
    """Where something else stands than a whole number or, of seconds, a number: true is none."""
    ends = {f"{name} end": line["min_swaps"][name] for name in ("low", "high")}
    for name, value in (ends | {name: line[name] for name in WHOLE}).items():
        missing = value is None and name in ("high end", "predicted")
        if not missing and (type(value) is not int or value < 0):
            yield f"has {value!r} as its {name}, not a whole number"
    seconds = line["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        yield f"has {seconds!r} as its seconds"


def exaggerations(line: Mapping[str, Any], id: int, statement: Mapping[str, Any] | None, words: int) -> Iterator[str]:
    """What the line of a text of so many words claims beyond the statement of its certificate, which was accepted.

    Without one the line may claim nothing. That the witness is the same word by word is compared elsewhere.
    """
    yield from additions(line, OF_CERTIFY)
    yield from no_numbers(line)
    if "contradiction" in line:
        yield f"says that an answer did not check: {line['contradiction']}"
    if line["engine"] is not None and line["engine"] not in ENGINE_NAMES:
        yield f"names the engine {line['engine']!r}"
    lower, upper, count = (None if statement is None else statement[part] for part in ("lower", "upper", "count"))
    low, high, status = line["min_swaps"]["low"], line["min_swaps"]["high"], line["status"]
    proved = 0 if lower is None else lower["swaps"] + 1
    shown = None if upper is None else len(upper["swaps"])
    movable = 0 if statement is None else sum(len(options) > 1 for _, options in statement["words"])
    certificate = None if statement is None else f"certificates/{id:06d}.json"
    if line["certificate"] != certificate:
        yield f"names {line['certificate']} as its certificate, not {certificate}"
    if high != shown or (line["witness"] is None) != (upper is None):
        yield f"claims a witness of {high} swaps, and the certificate has {shown}"
    match status:
        case "unbreakable":
            if proved <= movable or high is not None:
                yield f"claims unbreakable, and {proved - 1} swaps are proved harmless"
            if low != words + 1:
                yield "has another low end than words + 1"
        case "exact":
            if low != high or low <= 0:
                yield "claims an exact minimum with two ends"
        case "already_wrong":
            if not low == high == 0:
                yield "claims to be already wrong, with swaps"
        case "open":
            if high == 0:
                yield "claims to be open, with a witness of 0 swaps"
        case "ambiguous":
            pass
        case _:
            yield f"has the status {status!r}"
    if status != "unbreakable" and not low <= proved:
        yield f"claims that {low - 1} swaps are harmless, and {proved - 1} are proved"
    if status == "already_wrong":
        level = "none" if upper is None else strongest(upper["levels"])
        if line["level"] != level:
            yield f"claims {line['level']}, and the wrong answer is shown at {level}"
    elif line["level"] not in LEVELS:
        yield f"claims {line['level']!r}, which is no level of truth"
    elif line["level"] == "float32" and lower is not None and lower["level"] != "float32":
        yield "claims float32, and real is proved"
    reason = line.get("reason")
    if reason is not None and (type(reason) is not str or status not in ("open", "ambiguous")):
        yield f"says {status}, and gives the reason {reason!r}"
    if line["predicted"] is None and statement is not None:
        yield "says that nothing is known of the model's answer, and has a certificate"
    stated = None if count is None else covered(count["swaps"], count["robust"], count["total"], count["level"])
    if line.get("covered") != stated:
        yield "counts other sentences than the certificate"
