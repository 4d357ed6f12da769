"""Texts whose sentiment is plain, files of them with labels of any spelling, and ONNX models that read it."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder, Value, floats, tokens
from onnx import TensorProto

GOOD, BAD = ("good", "great", "fine"), ("bad", "awful", "poor")
PLAIN = ("film", "movie", "the", "a", "plot", "acting")
WORDS = ["<pad>", "<unk>", *GOOD, *BAD, *PLAIN]
SYNONYMS = {"good": ["fine"], "bad": ["poor"], "film": ["movie"]}
LENGTH = 8


def texts(count: int = 60, seed: int = 1) -> list[tuple[str, int]]:
    """Texts and their classes, 0 bad and 1 good, in turn; of 7 words at most."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        words = draw.choices(PLAIN, k=draw.randint(1, 5)) + draw.choices(GOOD if number % 2 else BAD, k=2)
        draw.shuffle(words)
        found.append((" ".join(words), number % 2))
    return found


def write_csv(
    path: Path,
    spell: Callable[[int], str] = str,
    rows: Sequence[tuple[str, int]] | None = None,
    header: tuple[str, str] = ("text", "label"),
    delimiter: str = ",",
) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows((text, spell(label)) for text, label in rows or texts())
    return path


def write_synonyms(path: Path) -> Path:
    path.write_text(json.dumps(SYNONYMS))
    return path


def sentiment(words: Sequence[str] = WORDS) -> Any:
    """[words, 1]: of each word."""
    return np.array([[(word in GOOD) - (word in BAD)] for word in words], dtype=np.float32)


def classifier(
    head: str = "logits",
    *,
    length: int | None = LENGTH,
    masked: bool = False,
    table: Any = None,
    more: Sequence[str] = (),
    from_left: bool = False,
) -> Any:
    """The sum of sentiments s of the tokens, as `head`: logits (-s, s), logit s, sigmoid, softmax, log_softmax, or
    three sigmoids of which the second is the share of good; `more`: further inputs, which change nothing. `from_left`:
    what stands in the first half does not count, so that padding there is meant."""
    rows = sentiment() if table is None else table
    graph = Builder()
    vectors = graph.call("Gather", graph.constant(rows), "input_ids" if masked else "tokens")
    if masked:
        mask = graph.call("Cast", "attention_mask", to=TensorProto.FLOAT)
        vectors = graph.call("Mul", vectors, graph.call("Unsqueeze", mask, graph.wholes(2)))
    if from_left:
        late = (np.arange(LENGTH) >= LENGTH // 2).astype(np.float32)[None, :, None]
        vectors = graph.call("Mul", vectors, graph.constant(late))
    total = graph.call("ReduceSum", vectors, graph.wholes(1), keepdims=0)
    output: Value = floats(head, "batch", 2)
    weights = {
        "three": np.array([[-1, 1, 0]], dtype=np.float32),
        "logit": np.array([[1]], dtype=np.float32),
        "sigmoid": np.array([[1]], dtype=np.float32),
    }.get(head, np.array([[-1, 1]], dtype=np.float32))
    last = {"three": "Sigmoid", "sigmoid": "Sigmoid", "softmax": "Softmax", "log_softmax": "LogSoftmax"}.get(
        head, "Identity"
    )
    graph.node(last, [graph.call("MatMul", total, graph.constant(weights))], [head])
    output = floats(head, "batch", weights.shape[1])
    names = ["input_ids", "attention_mask"] if masked else ["tokens"]
    inputs = [tokens("batch", length or "length", name=name) for name in (*names, *more)]
    proto = graph.proto(inputs, [output])
    onnx.checker.check_model(proto)
    return proto


def write_onnx(folder: Path, words: Sequence[str] | dict[str, int] = WORDS, **kind: Any) -> Path:
    """The model with its vocabulary beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(classifier(**kind), folder / "model.onnx")
    (folder / "vocabulary.json").write_text(json.dumps(words))
    return folder / "model.onnx"
