"""What the folder of a run says, and what brute force through its model does."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tiny import LENGTH, WORDS

Capture = pytest.CaptureFixture[str]


def results(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


def session(run: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(str(run / "model.onnx"), providers=["CPUExecutionProvider"])


def ids(words: list[str], length: int = LENGTH) -> list[int]:
    known = [WORDS.index(word) if word in WORDS else 1 for word in words]
    return known + [0] * (length - len(known))


def fewest_swaps(run: Path, choices: list[list[str]], label: int, length: int = LENGTH) -> int | None:
    """By asking onnxruntime about every sentence."""
    sentences = list(itertools.product(*choices))
    logits = session(run).run(None, {"tokens": np.array([ids(list(words), length) for words in sentences])})[0]
    original = tuple(options[0] for options in choices)
    swaps = [
        sum(a != b for a, b in zip(words, original, strict=True))
        for words, row in zip(sentences, logits, strict=True)
        if int(row.argmax()) != label
    ]
    return min(swaps, default=None)


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what the clock wrote, in the lines and in what they tell of engines."""
    return [
        {key: timeless(value) if key == "history" else value for key, value in line.items() if key != "seconds"}
        for line in lines
    ]
