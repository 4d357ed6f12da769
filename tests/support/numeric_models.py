"""Hypothesis strategies for small ONNX networks of numbers: dense, residual, with maxima, convolutions and leaks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_builder import Builder, floats
from hypothesis import strategies as st

SHAPES = ("dense", "deep", "residual", "leaky", "maximum", "image")


@dataclass(frozen=True)
class Numeric:
    """A model from X [1, ...] to Y [1, outputs]."""

    model: Any
    shape: tuple[int, ...]
    outputs: int
    kind: str
    source: int

    def __repr__(self) -> str:
        return f"Numeric({self.kind}, {list(self.shape)} to {self.outputs}, seed {self.source})"

    def save(self, folder: Path) -> Path:
        path = folder / "model.onnx"
        onnx.save(self.model, path)
        return path


def numeric(kind: str, source: int, *, opset: int = 13, small: bool = False) -> Numeric:
    random = np.random.default_rng(source)
    g = Builder()
    size, outputs = int(random.integers(1, 4)), int(random.integers(1, 4))
    shape: tuple[int, ...] = (1, size)

    def numbers(*shape: int) -> str:
        scale = 1.0 / np.sqrt(max(1, shape[0]))
        array = random.integers(-2, 3, size=shape) if small else random.normal(size=shape) * scale
        return g.constant(array.astype(np.float32))

    def dense(name: str, before: int, after: int) -> str:
        return g.call("Gemm", name, numbers(before, after), numbers(after))

    at, width = "X", size
    if kind == "image":
        shape = (1, 1, 3, 3)
        at = g.call("Conv", at, numbers(2, 1, 2, 2), numbers(2), kernel_shape=[2, 2])
        at = g.call("MaxPool", g.call("Relu", at), kernel_shape=[2, 2])
        at, width = g.call("Flatten", at), 2
    for _ in range({"dense": 1, "maximum": 1, "image": 1, "leaky": 2, "residual": 2, "deep": 3}[kind]):
        after = width if kind == "residual" else int(random.integers(2, 7))
        made = dense(at, width, after)
        made = g.call("LeakyRelu", made, alpha=0.1) if kind == "leaky" else g.call("Relu", made)
        at = g.call("Add", made, at) if kind == "residual" else made
        width = after
    if kind == "maximum":
        at = g.call("Max", at, dense(at, width, width), dense(at, width, width))
    g.node("Gemm", [at, numbers(width, outputs), numbers(outputs)], ["Y"])
    model = g.proto([floats("X", *shape)], [floats("Y", 1, outputs)], name="numeric", opset=opset)
    return Numeric(model, shape, outputs, kind, source)


@st.composite
def numeric_models(draw: st.DrawFn, kinds: tuple[str, ...] = SHAPES) -> Numeric:
    kind, source = draw(st.sampled_from(kinds)), draw(st.integers(0, 2**32 - 1))
    return numeric(kind, source, opset=draw(st.sampled_from([9, 11, 13, 17])), small=draw(st.booleans()))
