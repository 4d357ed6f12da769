"""Small classifiers whose words are vectors: behind an embedding of their own, or given the vectors themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder, floats, tokens

LENGTH = 4
WORDS = ["<pad>", "<unk>", *"abcdefgh"]
TEXTS = ["a b c", "c d e f", "g", "h h a"]
CLASSES = ["no", "yes"]


def table(random: np.random.Generator, width: int) -> Any:
    """Two words have one vector."""
    rows = random.normal(size=(len(WORDS), width)).astype(np.float32)
    rows[0] = 0
    rows[4] = rows[3]
    return rows


def flat_model(seed: int, width: int = 2, hidden: int = 5, classes: int = 2) -> Any:
    """logits = W2 relu(W1 flatten(embedding) + b1) + b2."""
    random, g = np.random.default_rng(seed), Builder()

    def numbers(*shape: int) -> str:
        return g.constant((random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    at = g.call("Gather", g.constant(table(random, width)), "tokens", axis=0)
    at = g.call("Flatten", at, axis=1)
    at = g.call("Relu", g.call("Gemm", at, numbers(LENGTH * width, hidden), numbers(hidden)))
    g.node("Gemm", [at, numbers(hidden, classes), numbers(classes)], ["logits"])
    return g.proto([tokens("batch", LENGTH)], [floats("logits", "batch", classes)])


def grid_model(seed: int, width: int = 3, classes: int = 4) -> Any:
    """Vectors as a grid of 2 by 2, a convolution in two dimensions, their mean, and a softmax over too many classes."""
    random, g = np.random.default_rng(seed), Builder()

    def numbers(*shape: int) -> str:
        return g.constant((random.normal(size=shape)).astype(np.float32))

    at = g.call("Reshape", "vectors", g.wholes(-1, 2, 2, width))
    at = g.call("Transpose", at, perm=[0, 3, 1, 2])
    at = g.call("Relu", g.call("Conv", at, numbers(4, width, 2, 2), numbers(4), kernel_shape=[2, 2], pads=[0, 0, 1, 1]))
    at = g.call("Flatten", g.call("GlobalAveragePool", at))
    bias = np.full(classes, -50, dtype=np.float32)
    bias[:2] = 0
    at = g.call("Gemm", at, numbers(4, classes), g.constant(bias))
    g.node("Softmax", [at], ["Y"], axis=1)
    return g.proto([floats("vectors", None, LENGTH, width)], [floats("Y", None, classes)], opset=13)


def recurrent_model(seed: int, width: int = 2, units: int = 3, scale: float = 1.0) -> Any:
    """The last state of an LSTM, which reads as many vectors as there are words before the padding."""
    random, g = np.random.default_rng(seed), Builder()

    def numbers(*shape: int) -> str:
        return g.constant((scale * random.normal(size=shape)).astype(np.float32))

    at = g.call("Gather", g.constant(table(random, width)), "tokens", axis=0)
    real = g.call("Cast", g.call("Greater", "tokens", g.wholes(0)), to=6)
    words = g.call("ReduceSum", real, g.wholes(1), keepdims=0)
    at = g.call("Transpose", at, perm=[1, 0, 2])
    inputs = [at, numbers(1, 4 * units, width), numbers(1, 4 * units, units), numbers(1, 8 * units), words]
    g.node("LSTM", inputs, ["", "last"], hidden_size=units)
    at = g.call("Reshape", "last", g.wholes(-1, units))
    g.node("Gemm", [at, numbers(units, 2), numbers(2)], ["logits"])
    return g.proto([tokens("batch", LENGTH)], [floats("logits", "batch", 2)])


def attending_model(seed: int, width: int = 2) -> Any:
    """x + softmax(x x^T) x, normalised, then the mean of all positions."""
    random, g = np.random.default_rng(seed), Builder()
    at = g.call("Gather", g.constant(table(random, width)), "tokens", axis=0)
    scores = g.call("MatMul", at, g.call("Transpose", at, perm=[0, 2, 1]))
    at = g.call("Add", at, g.call("MatMul", g.call("Softmax", scores, axis=-1), at))
    scale = g.constant(random.normal(size=width).astype(np.float32))
    at = g.call("LayerNormalization", at, scale, epsilon=0.1)
    at = g.call("ReduceMean", at, axes=[1], keepdims=0)
    weights = g.constant(random.normal(size=(width, 2)).astype(np.float32))
    g.node("MatMul", [at, weights], ["logits"])
    return g.proto([tokens("batch", LENGTH)], [floats("logits", "batch", 2)], opset=17)


def write(folder: Path, model: Any, vectors: Any = None, labels: list[str] | None = None, **changes: Any) -> Path:
    """A task of it, whose labels are its own answers unless they are said."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "vocabulary.json").write_text(json.dumps(WORDS))
    (folder / "none.json").write_text("{}")
    if vectors is not None:
        np.save(folder / "vectors.npy", vectors)
    labels = labels or [CLASSES[answer] for answer in answers(model, vectors)]
    rows = ["text\tlabel", *(f"{text}\t{label}" for text, label in zip(TEXTS, labels, strict=True))]
    (folder / "texts.tsv").write_text("\n".join(rows) + "\n")
    lines = {"onnx": '"model.onnx"', "vocabulary": '"vocabulary.json"', "length": str(LENGTH)}
    lines["labels"] = json.dumps(CLASSES)
    if vectors is not None:
        lines["embeddings"] = '"vectors.npy"'
    lines |= changes
    keys = "\n".join(f"{key} = {value}" for key, value in lines.items() if value is not None)
    data = '[data]\nfile = "texts.tsv"\ntext = "text"\nlabel = "label"\n'
    (folder / "task.toml").write_text(f'[model]\n{keys}\n{data}[swaps]\nfile = "none.json"\n')
    return folder / "task.toml"


def encoded() -> Any:
    rows = [[WORDS.index(word) for word in text.split()] for text in TEXTS]
    return np.array([row + [0] * (LENGTH - len(row)) for row in rows], dtype=np.int64)


def answers(model: Any, vectors: Any = None) -> list[int]:
    """Of onnxruntime, among the first two classes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (value,) = session.get_inputs()
    fed = encoded() if value.type != "tensor(float)" else vectors[encoded()].astype(np.float32)
    return [int(row[:2].argmax()) for row in session.run(None, {value.name: fed})[0]]
