"""Sums that a runtime joins: a product that starts from a residual or a bias rounds otherwise than the file says.

One swap makes thousands of terms of 2**-24 appear beside a 1, so that what is rounded depends on the order of adding.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.cli import main

PIECES, UNIT = 12, 2.0**-24
WIDTH = 256 * PIECES
LEVELS = ("ORT_ENABLE_ALL", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL")
TASK = """[model]
onnx = "model.onnx"
vocabulary = "vocabulary.json"
labels = ["one", "other"]
[data]
file = "data.jsonl"
text = "text"
label = "label"
[swaps]
file = "synonyms.json"
"""


def weights(second: bool) -> dict[str, np.ndarray]:
    """Terms a little below and a little above the unit of float32; `second` says where the text's own 1 stands."""
    table, product = np.zeros((3, WIDTH), np.float32), np.zeros((WIDTH, 2), np.float32)
    table[1, int(second)], table[2, 2::256] = 1, 1
    product[2:WIDTH:256] = UNIT * (1 - 2.0**-10), UNIT * (1 + 2.0**-10)
    return {"table": table, "product": product}


def residual(gap: int) -> onnx.ModelProto:
    """MatMul, then Add of what a Relu gives: a runtime makes it a Gemm that begins with the residual."""
    held = weights(second=False)
    held["table"][2, :2] = 1 + gap * UNIT, 1
    ends = {"start": np.array([0]), "end": np.array([2]), "axis": np.array([1])}
    middle = [
        helper.make_node("Slice", ["flat", *ends], ["some"]),
        helper.make_node("Relu", ["some"], ["kept"]),
        helper.make_node("MatMul", ["flat", "product"], ["made"]),
        helper.make_node("Add", ["made", "kept"], ["logits"]),
    ]
    return model(middle, held | ends, "batch")


def constant(gap: int) -> onnx.ModelProto:
    """The same with a bias, which the product begins with."""
    held = weights(second=True)
    held["product"][1, 0] = 2.0**-10
    held["bias"] = np.array([1 + gap * UNIT, 1], np.float32)
    middle = [
        helper.make_node("MatMul", ["flat", "product"], ["made"]),
        helper.make_node("Add", ["made", "bias"], ["logits"]),
    ]
    return model(middle, held, 1)


def model(middle: list[onnx.NodeProto], held: dict[str, np.ndarray], batch: str | int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("Flatten", ["embedded"], ["flat"]),
        *middle,
    ]
    graph = helper.make_graph(
        nodes,
        "joined",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [batch, 1])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 2])],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def answers(path: Path, tokens: int, level: str) -> np.ndarray:
    """The logits of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"tokens": np.array([[tokens]], np.int64)})[0][0], dtype=np.float64)


@pytest.mark.parametrize("gap", [2, 8, 16, 20])
@pytest.mark.parametrize("made", [residual, constant])
def test_no_claim_at_float32_is_broken_by_a_runtime(made: object, gap: int, tmp_path: Path) -> None:
    """However the runtime joins the sums: a line of level float32 says nothing that its answers contradict."""
    assert callable(made)
    onnx.save(made(gap), tmp_path / "model.onnx")
    (tmp_path / "vocabulary.json").write_text(json.dumps(["<pad>", "good", "fine"]))
    (tmp_path / "data.jsonl").write_text(json.dumps({"text": "good", "label": "one"}) + "\n")
    (tmp_path / "synonyms.json").write_text(json.dumps({"good": ["fine"]}))
    (tmp_path / "task.toml").write_text(TASK)
    assert main(["certify", str(tmp_path / "task.toml"), "--out", str(tmp_path / "run")]) in (0, 3)
    (line,) = (json.loads(raw) for raw in (tmp_path / "run" / "results.jsonl").read_text().splitlines())
    broken = [level for level in LEVELS if answers(tmp_path / "model.onnx", 2, level).argmax() != 0]
    assert not (broken and line["level"] == "float32" and line["min_swaps"]["low"] > 1), (broken, line)


@pytest.mark.parametrize("made", [residual, constant])
def test_the_bound_holds_for_the_runtime_however_it_is_optimised(made: object, tmp_path: Path) -> None:
    """What onnxruntime gives is no farther from the reals than the bound, for both sentences."""
    assert callable(made)
    path = tmp_path / "model.onnx"
    onnx.save(made(20), path)
    network = network_of(open_model(path), 1)
    claims, space = claims_of(network), SwapSpace(((1, 2),))
    assert claims is not None
    bound = claims.margin_errors(claims.whole([space]), 0)[0, 1]
    for token in (1, 2):
        first, second = exact_logits(network, [token])[0]
        for level in LEVELS:
            found = answers(path, token, level)
            assert abs(float(first - second) - (found[0] - found[1])) <= bound
