"""A transcript: which sentences of a text a model was asked, and what it answered, for whoever asks it again.

Canonical JSON: `id`, `model` (what it is, and the SHA-256 of its files), `decision`, `text` and `context` (SHA-256),
`words` ([first character, last, options], of the words that may move), `label`, and
`lower`: every one of the `sentences` with at most `swaps` swaps keeps the label; `least`: the least margin met;
`beyond`: with `swaps` swaps, the first `evaluated` of the `sentences` in the order that `ranked` gives, likewise;
`upper`: the (word, option) pairs of a sentence that another class wins.
A part that is not claimed is null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import Identity
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.swapped_text import SwapText

from ..runs.keys_once import once
from .sentence_order import SentenceOrder
from .simple_prover import Found, Partly

FORMAT, VERSION = "swapproof replay", 1
KEYS = frozenset(
    (
        *("format", "version", "id", "model", "decision", "text", "context", "words", "label"),
        *("lower", "beyond", "upper"),
    )
)


def statement_of(id: int, identity: Identity, decision: Decision, text: SwapText, label: int) -> dict[str, Any]:
    """What a transcript is about, before it claims anything."""
    others = [field for place, field in enumerate(text.fields) if place != text.moving]
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": id,
        "model": identity.account,
        "decision": asdict(decision),
        "text": sha256(text.text),
        "context": sha256(others[0]) if others else None,
        "words": [[*text.spans[word], list(text.options[word])] for word in text.swappable],
        "label": label,
    }


def transcript_of(statement: Mapping[str, Any], text: SwapText, found: Found) -> dict[str, Any] | None:
    """None where nothing is claimed."""
    lower = upper = beyond = None
    if found.harmless >= 0 and not found.ambiguous:
        sentences = sum(SentenceOrder.of_text(text.options).counts[: found.harmless + 1])
        lower = {"swaps": found.harmless, "sentences": str(sentences), "least": repr(found.least)}
    if found.witness is not None and not found.ambiguous:
        place = {word: number for number, word in enumerate(text.swappable)}
        upper = [[place[word], int(found.witness[word])] for word in np.flatnonzero(found.witness).tolist()]
    partly = found.partly
    if partly is not None and partly.evaluated and not found.ambiguous:
        beyond = {
            "swaps": partly.swaps,
            "evaluated": str(partly.evaluated),
            "sentences": str(partly.total),
            "ranked": [[word, list(options)] for word, options in partly.order.ranked],
        }
    if lower is None and upper is None:
        return None
    return {**statement, "lower": lower, "beyond": beyond, "upper": upper}


def written(transcript: Mapping[str, Any]) -> bytes:
    return json.dumps(transcript, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def read_transcript(data: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not JSON ({getattr(error, 'msg', error)})") from None
    if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise BadInput(f"{where}: not a {FORMAT!r} of version {VERSION}")
    if found.keys() != KEYS:
        raise BadInput(f"{where}: has the keys {', '.join(sorted(found))}")
    return found


def known_from(transcript: Mapping[str, Any], text: SwapText) -> Found:
    """What an earlier try found, for the next one to go on from; its witness is asked about again."""
    lower, beyond = transcript["lower"], transcript["beyond"]
    found = Found(harmless=-1 if lower is None else lower["swaps"])
    if lower is not None:
        found.least = float(lower["least"])
    if transcript["upper"] is not None:
        found.witness, found.engine = row_of(transcript["upper"], text), "greedy"
    if beyond is not None and beyond["swaps"] > 1:
        ranked = tuple((word, tuple(options)) for word, options in beyond["ranked"])
        found.order = SentenceOrder(ranked, len(text.spans))
        found.partly = Partly(beyond["swaps"], found.order, int(beyond["evaluated"]), int(beyond["sentences"]))
    return found


def row_of(swaps: Any, text: SwapText) -> Any:
    """[words]: the option of every word after these (word that may move, option) pairs."""
    row = np.zeros(len(text.spans), dtype=np.int32)
    for place, option in swaps:
        row[text.swappable[place]] = option
    return row


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
