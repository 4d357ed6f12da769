"""ONNX classifiers outside what is read, for the texts of `tiny`: an LSTM, attention, one that mixes its batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tiny import LENGTH, SENTIMENT, WORDS

HIDDEN = 5


def arrays() -> dict[str, Any]:
    """The sentiment of each word is the first number of its embedding."""
    generator = np.random.default_rng(3)
    table = generator.normal(size=(len(WORDS), HIDDEN)).astype(np.float32) / 4
    table[:, 0] = SENTIMENT
    out = np.zeros((HIDDEN, 2), dtype=np.float32)
    out[0] = [-1, 1]
    recurrent = generator.normal(size=(1, 4 * HIDDEN, HIDDEN)).astype(np.float32) / 3
    inputs = generator.normal(size=(1, 4 * HIDDEN, HIDDEN)).astype(np.float32) / 3
    inputs[0, 3 * HIDDEN, 0] = 2  # the first cell gathers sentiment
    return {"table": table, "w": inputs, "r": recurrent, "out": out, "bias": np.array([0.1, 0], dtype=np.float32)}


def save(path: Path, nodes: Sequence[Any], more: dict[str, Any], outputs: int = 2) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    given = {**arrays(), **more}
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        list(nodes),
        "unreadable",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", LENGTH])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", outputs])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in given.items() if name in used],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    onnx.checker.check_model(proto)
    onnx.save(proto, path)


def lstm(path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("Transpose", ["embedded"], ["steps"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["steps", "w", "r"], ["", "last"], hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["last", "first"], ["state"]),
        helper.make_node("Gemm", ["state", "out", "bias"], ["logits"]),
    ]
    save(path, nodes, {"first": np.array([0], dtype=np.int64)})


def attention(path: Path) -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("Transpose", ["embedded"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["embedded", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "embedded"], ["mixed"]),
        helper.make_node("LayerNormalization", ["mixed", "scale"], ["normal"], axis=-1),
        helper.make_node("ReduceMean", ["normal", "one"], ["pooled"], keepdims=0),
        helper.make_node("Gemm", ["pooled", "out", "bias"], ["logits"]),
    ]
    save(path, nodes, {"scale": np.ones(HIDDEN, dtype=np.float32), "one": np.array([1], dtype=np.int64)})


def batch_mixing(path: Path) -> None:
    """Logits less their mean over the batch."""
    from onnx import helper

    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("ReduceMean", ["embedded", "one"], ["pooled"], keepdims=0),
        helper.make_node("Tanh", ["pooled"], ["bent"]),
        helper.make_node("Gemm", ["bent", "out", "bias"], ["own"]),
        helper.make_node("ReduceMean", ["own", "zero"], ["mean"], keepdims=1),
        helper.make_node("Mul", ["mean", "half"], ["less"]),
        helper.make_node("Sub", ["own", "less"], ["logits"]),
    ]
    numbers = {"zero": np.array([0], dtype=np.int64), "one": np.array([1], dtype=np.int64)}
    save(path, nodes, {**numbers, "half": np.float32(0.5)})


def per_word(path: Path) -> None:
    """A logit of each word: no classifier of texts."""
    from onnx import helper

    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("MatMul", ["embedded", "out"], ["each"]),
        helper.make_node("Sigmoid", ["each"], ["squashed"]),
        helper.make_node("ReduceMax", ["squashed", "two"], ["logits"], keepdims=0),
    ]
    save(path, nodes, {"two": np.array([2], dtype=np.int64)}, outputs=LENGTH)
