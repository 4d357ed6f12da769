"""The rows of a report.html, unpacked as a browser does it, and lines of results.jsonl made up for one."""

from __future__ import annotations

import base64
import json
import random
import zlib
from typing import Any

OPENING, CLOSING = '<script id="packed" type="text/plain">', "</script>"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ABOUT: dict[str, Any] = {
    "labels": ["negative", "positive"],
    "remarks": [],
    "swaps": {
        "source": "synonyms.json", "sha256": "ab" * 32, "considered": 9, "removed": {}, "kept": 9, "fixed": {},
        "dropped_on_reading": {},
    },
    "model": {"file": "model.onnx"},
    "engines": ["greedy", "exact"],
    "seconds_per_text": 60.0,
    "versions": {},
}  # fmt: skip


def rows_in(page: str) -> tuple[dict[str, Any], list[list[Any]] | None, list[list[Any]]]:
    """What they are about, the options that the rows number, and the rows: [line, places of its options]."""
    _, rest = page.split(OPENING)
    text = zlib.decompress(base64.b64decode(rest.split(CLOSING)[0], validate=True)).decode()
    (about, options), *rows = map(json.loads, text.removesuffix("\n").split("\n"))
    return about, options, rows


def facts(texts: int) -> dict[str, str]:
    """Of a store of so many texts."""
    return {"about": json.dumps(ABOUT), "total": str(texts), "vocabulary": "ab" * 32, "texts": "cd" * 32}


def made_lines(texts: int, seed: int) -> tuple[list[dict[str, Any]], dict[int, list[list[str]]]]:
    """Lines of texts of random words, of every status, and what their words can be swapped for."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(2, 9))) for _ in range(4000)]
    synonyms = {word: draw.sample(words, draw.randint(0, 6)) for word in words}
    lines, spaces = [], {}
    for id in range(texts):
        chosen = draw.choices(words, k=draw.randint(6, 30))
        movable = [place for place, word in enumerate(chosen) if synonyms[word]]
        swaps = draw.sample(movable, min(len(movable), draw.randint(1, 5)))
        lines.append(made_line(draw, id, chosen, {place: synonyms[chosen[place]][0] for place in sorted(swaps)}))
        spaces[id] = [[word, *synonyms[word]] for word in chosen]
    return lines, spaces


def made_line(draw: random.Random, id: int, words: list[str], swaps: dict[int, str]) -> dict[str, Any]:
    ends = {
        "exact": (len(swaps), len(swaps)),
        "unbreakable": (len(words) + 1, None),
        "open": (1, len(swaps) + 1),
        "ambiguous": (0, None),
        "already_wrong": (0, 0),
    }
    (status,) = draw.choices(list(ends), [55, 20, 10, 1, 14]) if swaps else ["unbreakable"]
    label = draw.randint(0, 1)
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    taken = [
        {"position": at, "from": words[at], "to": to, "characters": [starts[at], starts[at] + len(words[at])]}
        for at, to in (swaps if status in ("exact", "open") else {}).items()
    ]
    sentence = " ".join(swaps.get(place, word) for place, word in enumerate(words))
    return {
        "id": id, "text": " ".join(words), "label": label,
        "predicted": 1 - label if status == "already_wrong" else label,
        "positions": len(words), "candidates": len(words), "cut": 0, "unknown": 0,
        "min_swaps": dict(zip(("low", "high"), ends[status], strict=True)), "status": status,
        "level": draw.choice(["float32", "float32", "real"]),
        "witness": {"swaps": taken, "sentence": sentence, "levels": ["replay"]} if taken else None,
        "certificate": f"certificates/{id:06d}.json", "engine": draw.choice(["greedy", "exact"]),
        "seconds": round(draw.lognormvariate(-4, 2), 4), "evaluations": draw.randint(1, 5000), "requests": 5,
        **({"reason": "exact: out of time at 2 swaps"} if status == "open" else {}),
    }  # fmt: skip
