"""Operators that are written with others: what is read computes what onnxruntime computes of the model as given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_builder import Builder, floats, tokens

from swapproof.encodings.evaluation import logits
from swapproof.encodings.onnx_files.adaptation import adapted, write_model
from swapproof.encodings.onnx_files.model_ports import Scores
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.onnx_files.refusals import refusals_of
from swapproof.encodings.smooth.expanded_operators import EXPANSIONS
from swapproof.proofs import lower

LENGTH = 3
CASES: list[tuple[str, dict[str, Any]]] = [
    *((operator, {}) for operator in sorted(EXPANSIONS) if operator not in ("And", "Or")),  # of masks
    ("Celu", {"alpha": 0.5}),
    ("Elu", {"alpha": 0.25}),
    ("Selu", {"alpha": 0.5, "gamma": 1.5}),
    ("ReduceMin", {"keepdims": 0}),
]


def saved(operator: str, attributes: dict[str, Any], path: Path, opset: int, kind: Any) -> None:
    b, rng = Builder(), np.random.default_rng(5)
    x = b.call("Gather", b.constant(2 * rng.normal(size=(9, 4)).astype(kind)), "tokens")
    if operator == "ReduceMin":
        named: dict[str, Any] = attributes | ({"axes": [1]} if opset < 18 else {})
        x = b.call(operator, x, *([b.wholes(1)] if opset >= 18 else []), **named)
    else:
        others = [x, b.constant(rng.normal(size=4).astype(kind))] if operator == "Mean" else []
        x = b.call(operator, x, *others, **attributes)
    flat = b.call("Flatten", x)
    width = 4 if operator == "ReduceMin" else 4 * LENGTH
    b.node("MatMul", [flat, b.constant(rng.normal(size=(width, 2)).astype(kind))], ["logits"])
    proto = b.proto([tokens("batch", LENGTH)], [floats("logits", "batch", 2)], opset=opset)
    if kind is np.float64:
        proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    onnx.save(proto, path)


@pytest.mark.parametrize(
    ("operator", "attributes", "opset", "kind"),
    [
        *((*case, opset, np.float32) for case in CASES for opset in (17, 22)),
        *((*case, 18, np.float64) for case in CASES if case[0] not in ("Celu", "Mean")),  # onnxruntime has none
    ],
)
def test_what_is_written_is_what_was_given(
    operator: str, attributes: dict[str, Any], opset: int, kind: Any, tmp_path: Path
) -> None:
    given, path = tmp_path / "given.onnx", tmp_path / "model.onnx"
    saved(operator, attributes, given, opset, kind)
    assert refusals_of(given) == ()
    made = adapted(given, Scores(2))
    assert made is not None
    assert made[1].notes == (f"{operator} is written with operators that are read",)
    write_model(made[0], path)
    sentences = np.random.default_rng(1).integers(0, 9, size=(20, LENGTH))
    sessions = [onnxruntime.InferenceSession(str(one), providers=["CPUExecutionProvider"]) for one in (given, path)]
    answers = [session.run(None, {"tokens": sentences})[0] for session in sessions]
    np.testing.assert_allclose(answers[1], answers[0], atol=2e-5)
    np.testing.assert_allclose(logits(read_network(path, LENGTH), sentences), answers[0], atol=2e-5)
    assert lower.read_model(path.read_bytes(), {}).lower([["words", sentences[0].tolist()]], []).sha256


def test_models_of_two_floating_types_are_left_alone(tmp_path: Path) -> None:
    """Which of them a node has is not looked for."""
    given = tmp_path / "given.onnx"
    saved("Elu", {}, given, 17, np.float32)
    proto = onnx.load(given)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1), "other"))
    onnx.save(proto, given)
    assert adapted(given, Scores(2)) is None
    assert any(line.startswith("Elu ") for line in refusals_of(given))
