"""Hypothesis strategies for small ONNX networks of numbers: dense, residual, with maxima, convolutions and leaks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

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
    nodes: list[Any] = []
    weights: list[Any] = []
    size, outputs = int(random.integers(1, 4)), int(random.integers(1, 4))
    shape: tuple[int, ...] = (1, size)

    def numbers(*shape: int) -> str:
        scale = 1.0 / np.sqrt(max(1, shape[0]))
        array = random.integers(-2, 3, size=shape) if small else random.normal(size=shape) * scale
        weights.append(numpy_helper.from_array(array.astype(np.float32), f"w{len(weights)}"))
        return f"w{len(weights) - 1}"

    def call(operator: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def dense(name: str, before: int, after: int) -> str:
        return call("Gemm", name, numbers(before, after), numbers(after))

    at, width = "X", size
    if kind == "image":
        shape = (1, 1, 3, 3)
        at = call("Conv", at, numbers(2, 1, 2, 2), numbers(2), kernel_shape=[2, 2])
        at = call("MaxPool", call("Relu", at), kernel_shape=[2, 2])
        at, width = call("Flatten", at), 2
    for _ in range({"dense": 1, "maximum": 1, "image": 1, "leaky": 2, "residual": 2, "deep": 3}[kind]):
        after = width if kind == "residual" else int(random.integers(2, 7))
        made = dense(at, width, after)
        made = call("LeakyRelu", made, alpha=0.1) if kind == "leaky" else call("Relu", made)
        at = call("Add", made, at) if kind == "residual" else made
        width = after
    if kind == "maximum":
        at = call("Max", at, dense(at, width, width), dense(at, width, width))
    nodes.append(helper.make_node("Gemm", [at, numbers(width, outputs), numbers(outputs)], ["Y"]))
    graph = helper.make_graph(
        nodes,
        "numeric",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1, outputs])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return Numeric(model, shape, outputs, kind, source)


@st.composite
def numeric_models(draw: st.DrawFn, kinds: tuple[str, ...] = SHAPES) -> Numeric:
    kind, source = draw(st.sampled_from(kinds)), draw(st.integers(0, 2**32 - 1))
    return numeric(kind, source, opset=draw(st.sampled_from([9, 11, 13, 17])), small=draw(st.booleans()))
