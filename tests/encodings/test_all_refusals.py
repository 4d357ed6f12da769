"""All that bars reading a file is told at once, and nothing of what can be read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cases import cases
from graph_builder import Builder, floats, tokens
from hypothesis import given
from pooled_models import Pooled, pooled
from random_graphs import Sample
from random_networks import networks

from swapproof.encodings.onnx_files.refusals import refusals_of


def saved(folder: Path, proto: Any) -> Path:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return path


@cases(30)
@given(networks(half=True))
def test_of_what_can_be_read_nothing_is_refused(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert refusals_of(sample.save(Path(folder)), length=sample.length) == ()


@pytest.mark.parametrize("ending", ["one", "flat", "sigmoid", "column", "softmax", "more"])
def test_what_is_adapted_is_not_refused(ending: str, tmp_path: Path) -> None:
    made = Pooled(ending=ending, roles=("tokens", "mask", "types"), opset=23, length=None)
    assert refusals_of(saved(tmp_path, pooled(made)), None, "logits" if ending == "more" else None) == ()


def encoder() -> Any:
    """Two layers of attention, GELU by its formula, a layer norm by name, a sigmoid and two other curves inside."""
    b, draw = Builder(), np.random.default_rng(0)
    weight = b.constant(draw.normal(size=(4, 4)).astype(np.float32))
    x = b.call("Gather", b.constant(draw.normal(size=(9, 4)).astype(np.float32)), "tokens")
    for _ in range(2):
        scores = b.call("MatMul", x, b.call("Transpose", b.call("MatMul", x, weight), perm=[0, 2, 1]))
        x = b.call("Add", x, b.call("MatMul", b.call("Softmax", scores, axis=-1), x))
        x = b.call("LayerNormalization", x, b.constant(np.ones(4, np.float32)))
        half = b.call("Mul", b.call("Add", b.call("Erf", x), b.constant(np.float32(1))), b.constant(np.float32(0.5)))
        x = b.call("Mul", x, half)
    x = b.call("Mish", b.call("Mul", x, b.call("Sigmoid", x)))
    x = b.call("Softplus", b.call("Erf", x))
    x = b.call("ReduceMean", x, b.wholes(1), keepdims=0)
    b.node("Gemm", [x, b.constant(draw.normal(size=(4, 2)).astype(np.float32))], ["logits"])
    return b.proto([tokens("batch", 5)], [floats("logits", "batch", 2)], opset=18)


def test_every_kind_of_obstacle_is_told_once_with_what_helps(tmp_path: Path) -> None:
    lines = refusals_of(saved(tmp_path, encoder()))
    assert [line.split(" (node ")[0] for line in lines] == [
        "Mish",
        "Softplus",
        "Softmax",
    ]
    assert all('road = "run"' in line for line in lines)
    assert "train with these or Relu" in lines[0]
    assert "and 1 more" in lines[2]
    assert not any("\n" in line for line in lines)


def test_what_is_wrong_with_inputs_is_told_with_the_rest(tmp_path: Path) -> None:
    """Two inputs of unknown role, one of numbers, and a recurrent layer that reads the texts as steps."""
    b = Builder()
    x = b.call("Gather", b.constant(np.ones((9, 4), np.float32)), "x")
    weights = [b.constant(np.ones(shape, np.float32)) for shape in ((1, 8, 4), (1, 8, 2))]
    _, state = b.parts("LSTM", 2, x, *weights, hidden_size=2)
    b.node("Squeeze", [state, b.wholes(0)], ["logits"])
    proto = b.proto([tokens("batch", 5, name="x"), floats("y", "batch", 5)], [floats("logits", "batch", 2)])
    lines = refusals_of(saved(tmp_path, proto))
    assert any("input x has a role that its name does not tell" in line for line in lines)
    assert any("input y is float" in line for line in lines)
    assert any(line.startswith("LSTM") and "[steps, 1, size] is read" in line for line in lines)


def test_a_file_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    (line,) = refusals_of(tmp_path / "model.onnx")
    assert "not a readable ONNX model" in line
