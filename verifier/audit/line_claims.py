"""What a line of results.jsonl may claim: as much as its certificate states, or less."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..engines import NAMES
from ..runs.results import covered, strongest

Known = dict[str, Any]
"""Keys, each with the known keys of what it holds (an object, or objects in a list); None where those are free."""

OF_A_TEXT: Known = dict.fromkeys(
    (
        *("id", "text", "label", "answer", "predicted", "positions", "candidates", "cut", "unknown"),
        *("status", "level", "certificate", "seconds", "evaluations", "reason", "contradiction"),
    )
)
OF_CERTIFY: Known = OF_A_TEXT | {
    "min_swaps": dict.fromkeys(("low", "high")),
    "witness": {"swaps": dict.fromkeys(("position", "from", "to", "characters")), "sentence": None, "levels": None},
    "engine": None,
    "rounding": None,
    "requests": None,
    "history": dict.fromkeys(("engine", "low", "high", "seconds")),
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
    **dict.fromkeys(("labels", "remarks", "observed", "engines", "seconds_per_text")),
    "data": dict.fromkeys(("skipped", "defects", "ended")),
    "swaps": dict.fromkeys(("source", "sha256", "considered", "removed", "kept", "fixed", "dropped_on_reading")),
    "model": dict.fromkeys(
        (
            *("file", "sha256", "opset", "tokens", "classes", "embedding_rows", "embedding_rows_without_a_word"),
            *("hidden_units", "final_function", "largest_difference_from_onnxruntime"),
            "largest_difference_from_the_model_given",
        )
    ),
    "versions": dict.fromkeys(("swapproof", "numpy", "onnx", "onnxruntime")),
}
"""What a run says it is about: shown in summary and report."""
LEVELS = ("real", "float32", "kernel")
WHOLE = ("label", "predicted", "positions", "candidates", "cut", "unknown", "evaluations", "requests")
READ_LOG = "textattack"
"""The engine of lines from a log of TextAttack, which does not say how many of its requests were answered anew."""
ENGINE_NAMES = ("replay", *NAMES)


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
        unknown = (*("high end", "predicted"), *(("evaluations",) if line["engine"] == READ_LOG else ()))
        missing = value is None and name in unknown
        if not missing and (type(value) is not int or value < 0):
            yield f"has {value!r} as its {name}, not a whole number"
    seconds = line["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        yield f"has {seconds!r} as its seconds"


@dataclass(frozen=True)
class Claim:
    """What a line claims of a text of so many words, beside what the statement of its certificate proves and shows."""

    line: Mapping[str, Any]
    words: int
    statement: Mapping[str, Any] | None

    def part(self, name: str) -> Any:
        return None if self.statement is None else self.statement[name]

    @property
    def low(self) -> int:
        return int(self.line["min_swaps"]["low"])

    @property
    def high(self) -> int | None:
        found: int | None = self.line["min_swaps"]["high"]
        return found

    @property
    def proved(self) -> int:
        """The low end that is proved."""
        lower = self.part("lower")
        return 0 if lower is None else int(lower["swaps"]) + 1

    @property
    def shown(self) -> int | None:
        """The swaps of the certificate's witness."""
        upper = self.part("upper")
        return None if upper is None else len(upper["swaps"])

    @property
    def movable(self) -> int:
        return 0 if self.statement is None else sum(len(options) > 1 for _, options in self.statement["words"])


Fact = Callable[[Claim], bool]
STATUSES: dict[str, dict[str, Fact]] = {
    "unbreakable": {
        "claims unbreakable, and {harmless} swaps are proved harmless": (
            lambda claim: claim.proved > claim.movable and claim.high is None
        ),
        "has another low end than words + 1": lambda claim: claim.low == claim.words + 1,
    },
    "exact": {"claims an exact minimum with two ends": lambda claim: claim.low == claim.high and claim.low > 0},
    "already_wrong": {"claims to be already wrong, with swaps": lambda claim: claim.low == claim.high == 0},
    "open": {"claims to be open, with a witness of 0 swaps": lambda claim: claim.high != 0},
    "ambiguous": {},
}
"""What must hold of both ends of a line with this status, and what it does otherwise."""


def exaggerations(line: Mapping[str, Any], id: int, statement: Mapping[str, Any] | None, words: int) -> Iterator[str]:
    """What the line of a text of so many words claims beyond the statement of its certificate, which was accepted.

    Without one the line may claim nothing. That the witness is the same word by word is compared elsewhere.
    """
    yield from additions(line, OF_CERTIFY)
    yield from no_numbers(line)
    claim = Claim(line, words, statement)
    if "contradiction" in line:
        yield f"says that an answer did not check: {line['contradiction']}"
    if line["engine"] is not None and line["engine"] not in ENGINE_NAMES:
        yield f"names the engine {line['engine']!r}"
    yield from other_history(claim)
    certificate = None if statement is None else f"certificates/{id:06d}.json"
    if line["certificate"] != certificate:
        yield f"names {line['certificate']} as its certificate, not {certificate}"
    yield from other_ends(claim)
    yield from other_level(claim)
    reason = line.get("reason")
    if reason is not None and (type(reason) is not str or line["status"] not in ("open", "ambiguous")):
        yield f"says {line['status']}, and gives the reason {reason!r}"
    rounding = line.get("rounding")
    if rounding is not None and (type(rounding) is not str or not rounding_may_decide(claim)):
        yield f"says {line['status']} at the level {line['level']}, and that rounding decides: {rounding!r}"
    if line["predicted"] is None and statement is not None:
        yield "says that nothing is known of the model's answer, and has a certificate"
    count = claim.part("count")
    stated = None if count is None else covered(count["swaps"], count["robust"], count["total"], count["level"])
    if line.get("covered") != stated:
        yield "counts other sentences than the certificate"


def rounding_may_decide(claim: Claim) -> bool:
    """Between the ends, or below a low end that is proved over the reals only."""
    return claim.line["status"] == "open" or (
        claim.line["status"] in ("exact", "unbreakable") and claim.line["level"] == "real"
    )


def other_history(claim: Claim) -> Iterator[str]:
    """Where what is told of the engines is none of a search, or goes beyond what is proved and shown in the end."""
    most = claim.words + 1 if claim.proved > claim.movable else claim.proved
    for step in claim.line.get("history", ()):
        engine, low, high, seconds = (step[name] for name in ("engine", "low", "high", "seconds"))
        if engine not in ENGINE_NAMES:
            yield f"tells of the engine {engine!r}"
        if type(low) is not int or not 0 <= low <= most:
            yield f"tells that {engine} found the low end {low!r}, beyond what is proved"
        if high is not None and (type(high) is not int or claim.shown is None or high < claim.shown):
            yield f"tells that {engine} found the high end {high!r}, beyond what is shown"
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            yield f"tells that {engine} took {seconds!r} seconds"


def other_ends(claim: Claim) -> Iterator[str]:
    """Where the ends are not those of the status, or claim more than is proved or shown."""
    status = claim.line["status"]
    if claim.high != claim.shown or (claim.line["witness"] is None) != (claim.shown is None):
        yield f"claims a witness of {claim.high} swaps, and the certificate has {claim.shown}"
    if status not in STATUSES:
        yield f"has the status {status!r}"
        return
    for otherwise, holds in STATUSES[status].items():
        if not holds(claim):
            yield otherwise.format(harmless=claim.proved - 1)
    if status != "unbreakable" and not claim.low <= claim.proved:
        yield f"claims that {claim.low - 1} swaps are harmless, and {claim.proved - 1} are proved"


def other_level(claim: Claim) -> Iterator[str]:
    """Where another level of truth is claimed than the low end is proved at or, of a wrong answer, shown at."""
    level, lower, upper = claim.line["level"], claim.part("lower"), claim.part("upper")
    if claim.line["status"] == "already_wrong":
        shown = "none" if upper is None else strongest(upper["levels"])
        if level != shown:
            yield f"claims {level}, and the wrong answer is shown at {shown}"
    elif level not in LEVELS:
        yield f"claims {level!r}, which is no level of truth"
    elif level != "real" and lower is not None and lower["level"] != level:
        yield f"claims {level}, and {lower['level']} is proved"
