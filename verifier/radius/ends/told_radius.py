"""What the line of a text says of its radius, and of those of its words."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Floats

from ..saliency import agreement, effects, lime_weights
from ..seeking.nearest_words import WordsFound
from .moving_words import GAP, Words
from .text_place import TextPlace, upwards


def told(at: TextPlace, sets: Sequence[Words]) -> dict[str, Any]:
    """What the line of the text says."""
    low, high = min(float(each.low) for each in sets), min(each.high for each in sets)
    contradicted = next((each for each in sets if float(each.low) > each.high), None)
    parts = [told_of(at, each) for each in sets]
    part: dict[str, Any] = {
        "status": "exact" if low >= (1 - GAP) * high and high < math.inf else "open",
        "level": "real",
        "safe_radius": {"low": low, "high": finite(high)},
        "words" if at.question.words == "one" else "sets": parts,
    }
    if at.question.words == "one" and (at.question.saliency or at.question.lime):
        add_saliency(at, sets, parts)
        part["agreement"] = agreement(parts)
    if contradicted is not None:
        place = ", ".join(map(str, contradicted.words))
        part["contradiction"] = (
            f"words {place}: a ball of {float(contradicted.low)} is proved, and a point within breaks"
        )
    return part


def told_of(at: TextPlace, each: Words) -> dict[str, Any]:
    words = {"positions": list(each.words), "words": [at.name(word) for word in each.words]}
    if at.question.words == "one":
        words = {"position": each.words[0], "word": at.name(each.words[0])}
    point = None
    if each.point is not None:
        data = np.ascontiguousarray(each.point.astype(at.room.behind.model.kind)).tobytes()
        point = {"distance": each.point_distance, "vector": b64encode(data).decode()}
    part = {**words, "low": float(each.low), "high": finite(each.high), "exact": each.closed, "point": point}
    if each.found is not None:
        part |= told_of_words(at, each, each.found)
    elif each.sentence is not None:
        swaps = [{"position": word, "to": to} for word, to in each.sentence.items()]
        part["sentence"] = {"distance": each.sentence_distance, "swaps": swaps}
    return part


def effects_of(at: TextPlace, each: Words) -> dict[str, float]:
    many, nothing = len(at.setting.words), at.setting.nothing
    return effects(each.moving.stack, each.answering(), each.balls, many, nothing)


def add_saliency(at: TextPlace, sets: Sequence[Words], parts: Sequence[dict[str, Any]]) -> None:
    """Exact effects of each word that is one token, and LIME's weights."""
    for each, part in zip(sets, parts, strict=True):
        if len(each.free) != len(at.setting.nothing):
            raise Unsupported("--saliency is of words that are one token each")
        part["saliency"] = effects_of(at, each)
    if at.question.lime:
        own = at.text.encoded.words
        weights = lime_weights(own, at.text.label, partial(scores_without, at), at.question.lime)
        for each, part in zip(sets, parts, strict=True):
            part["saliency"]["lime"] = weights[each.words[0]] if each.words[0] < len(own) else 0.0


def scores_without(at: TextPlace, rows: Sequence[Sequence[str | None]]) -> Floats:
    """[n, classes]: with the padding's vector in the place of words that are None."""
    points = np.repeat(at.exact_center[None], len(rows), axis=0).reshape(len(rows), -1, len(at.setting.nothing))
    for number, row in enumerate(rows):
        for word, kept in enumerate(row):
            if kept is None:
                points[number, at.places[word][0]] = at.setting.nothing
    return at.answers(points.reshape(len(rows), -1)).astype(np.float64)[:, : at.setting.labels]


def told_of_words(at: TextPlace, each: Words, found: WordsFound) -> dict[str, Any]:
    swap = None
    if found.row is not None:
        to = at.setting.names[int(at.setting.candidates[found.row])]
        swap = {"to": to, "distance": upwards(found.distance)}
    proved = float(each.low) > found.farthest * (1 + 1e-9)
    safe = "proved" if proved else "evaluated" if found.harmless else None
    part: dict[str, Any] = {"swap": swap, "any_word": safe, "same_vector": found.same}
    if at.question.same_part_of_speech:
        row = None if each.like is None else each.like.row
        part["swap_alike"] = None
        if each.like is not None and row is not None:
            to = at.setting.names[int(at.setting.candidates[row])]
            part["swap_alike"] = {"to": to, "distance": upwards(each.like.distance)}
    return part


def finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
