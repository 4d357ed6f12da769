"""A line of results.jsonl of a model that was run: the same keys as of one that was read, at level `replay`."""

from __future__ import annotations

from typing import Any

import numpy as np

from swapproof.encodings.sentence_counts import counts

from ..runs.results import covered, opening, pieces
from ..tasks.inputs import Text
from .simple_prover import Found

LEVEL = "replay"


def status_of(found: Found, text: Text) -> str:
    if found.ambiguous:
        return "ambiguous"
    if found.high == 0:
        return "already_wrong"
    if found.high == found.harmless + 1:
        return "exact"
    return "unbreakable" if found.harmless == len(text.swaps.swappable) else "open"


def line_of(text: Text, found: Found, transcript: str | None, spent: dict[str, Any]) -> dict[str, Any]:
    """`spent`: seconds, evaluations, requests."""
    status = status_of(found, text)
    low, high = found.harmless + 1, found.high
    if status == "unbreakable":
        low = len(text.encoded.words) + 1
    if status == "ambiguous":
        low, high = 0, None
    line = opening(text, found.predicted if found.predicted >= 0 else None) | {
        "min_swaps": {"low": low, "high": high},
        "status": status,
        "level": LEVEL,
        "witness": None if high is None else witness_of(text, found),
        "certificate": None,
        "transcript": transcript,
        "engine": found.engine,
        **spent,
    }
    if status in ("open", "ambiguous"):
        line["reason"] = found.reason or "no engine could do more"
    if status == "open" and found.partly is not None and found.partly.evaluated:
        partly = found.partly
        by_swaps = counts([len(text.swaps.options[word]) - 1 for word in text.swaps.swappable], partly.swaps)
        below = sum(by_swaps[: partly.swaps])
        line["covered"] = covered(partly.swaps, str(below + partly.evaluated), str(below + partly.total), LEVEL)
    return line


def witness_of(text: Text, found: Found) -> dict[str, Any]:
    swaps = []
    for word in [] if found.witness is None else np.flatnonzero(found.witness).tolist():
        options = text.frozen.words[word]
        swaps.append(
            {
                "position": word,
                "from": options[0],
                "to": options[int(found.witness[word])] if found.witness is not None else "",
                "characters": list(text.encoded.spans[word]),
            }
        )
    sentence = "".join(piece.after for piece in pieces(text.encoded.text, swaps))
    return {"swaps": swaps, "sentence": sentence, "levels": [LEVEL]}
