"""ONNX classifiers written by hand, operator by operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """One ONNX node; `inputs` are names separated by spaces."""
    return helper.make_node(operator, inputs.split(), [output], **attributes)


MLP = [
    node("Gather", "table tokens", "embedded", axis=0),
    node("Flatten", "embedded", "flat", axis=1),
    node("Gemm", "flat w1 b1", "before"),
    node("Relu", "before", "hidden"),
    node("Gemm", "hidden w2 b2", "logits"),
]


def save(
    folder: Path,
    nodes: list[Any],
    weights: dict[str, Any],
    *,
    length: int,
    classes: int = 2,
    batch: int | str = "batch",
) -> Path:
    """A model from `tokens` int64 [batch, length] to `logits` float32 [batch, classes]."""
    graph = helper.make_graph(
        nodes,
        "handmade",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [batch, length])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, classes])],
        [numpy_helper.from_array(np.asarray(array, dtype=np.float32), name) for name, array in weights.items()],
    )
    path = folder / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path
