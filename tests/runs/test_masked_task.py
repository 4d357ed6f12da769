"""A model that leaves the padding out, end to end: what is certified is what onnxruntime says of every sentence."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from masked_models import masked
from tiny import LENGTH, SYNONYMS, WORDS, write_task

from swapproof.verifier.cli import main

TEXTS = (
    "a good film",
    "the great bad movie",
    "awful",
    "the film was great",
    "bad bad film",
    "great good the a film movie",
)
LABELS = ("negative", "positive")


@pytest.mark.parametrize("style", ["float", "fill", "greatest", "lengths"])
def test_texts_of_any_length_are_settled(style: str, tmp_path: Path) -> None:
    """The least number of swaps by enumeration; certificates that both checks accept, whatever the number of words."""
    sample = masked(style, 3, LENGTH, len(WORDS))
    (tmp_path / "task").mkdir()
    session = onnxruntime.InferenceSession(sample.save(tmp_path / "task", "masked.onnx"))

    def tokens(words: tuple[str, ...]) -> list[int]:
        ids = [WORDS.index(word) if word in WORDS else 1 for word in words]
        return ids + [0] * (LENGTH - len(ids))

    def answer(words: tuple[str, ...]) -> int:
        return int(session.run(None, {"tokens": np.array([tokens(words)])})[0][0].argmax())

    rows = [(text, LABELS[answer(tuple(text.split()))]) for text in TEXTS]
    task = write_task(tmp_path / "task", rows, model_onnx="masked.onnx")
    run = tmp_path / "run"
    assert main(["certify", str(task), "--out", str(run), "--jobs", "1"]) == 0
    assert main(["check", str(run)]) == 0
    assert main(["check", str(run), "--exact"]) == 0
    statuses = set()
    for line in map(json.loads, (run / "results.jsonl").read_text().splitlines()):
        statuses.add(line["status"])
        words = line["text"].split()
        options = [(word, *SYNONYMS.get(word, ())) for word in words]
        broken = [s for s in itertools.product(*options) if answer(s) != line["label"]]
        least = min((sum(a != b for a, b in zip(s, words, strict=True)) for s in broken), default=None)
        if line["status"] != "ambiguous":
            assert line["status"] in ("exact", "unbreakable")
            assert line["min_swaps"]["high"] == least
    assert statuses & {"exact", "unbreakable"}
