"""Models of newer opsets, and with functions of their own, are converted, and answer as onnxruntime does of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens
from onnx import helper
from random_networks import assembled
from random_steps import STEPS

from swapproof.encodings.agreement import agree
from swapproof.encodings.evaluation import logits
from swapproof.encodings.onnx_files.adaptation import adapted, write_model
from swapproof.encodings.onnx_files.model_ports import Scores
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.proofs.lower import read_model

NEWER = (23, 24, 25, 26)
"""Those that the installed onnxruntime loads."""


@pytest.mark.parametrize("step", sorted(STEPS))
def test_operators_of_newer_opsets_are_read_by_conversion(step: str) -> None:
    sample = assembled((step,), 1, opset=NEWER[sorted(STEPS).index(step) % len(NEWER)])
    with tempfile.TemporaryDirectory() as folder:
        made = adapted(sample.save(Path(folder)), Scores(sample.classes))
        assert made is not None
        path = Path(folder) / "made.onnx"
        write_model(made[0], path)
        run = sample.runner(Path(folder) / "model.onnx")
        agree(read_network(path, sample.length), run, sample.sentences(4))
        first = path.read_bytes()
        again = adapted(Path(folder) / "model.onnx", Scores(sample.classes))
        assert again is not None
        write_model(again[0], path)
        assert path.read_bytes() == first
        read_model(first)


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    """A function of two nodes, called twice."""
    inner = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    twice = helper.make_function("own", "Twice", ["x"], ["z"], inner, [helper.make_opsetid("", 17)])
    b, table = Builder(), np.array([[1, -1], [-2, 3], [0.5, 0.25]], dtype=np.float32)
    x = b.call("ReduceSum", b.call("Gather", b.constant(table), "tokens"), b.wholes(1), keepdims=0)
    b.nodes.append(helper.make_node("Twice", [x], ["h"], domain="own"))
    b.nodes.append(helper.make_node("Twice", ["h"], ["logits"], domain="own"))
    proto = b.proto([tokens("batch", 2)], [floats("logits", "batch", 2)])
    proto.functions.append(twice)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    onnx.save(proto, tmp_path / "model.onnx")
    made = adapted(tmp_path / "model.onnx", Scores(2))
    assert made is not None
    assert made[1].notes == ("model-local functions are inlined",)
    write_model(made[0], tmp_path / "made.onnx")
    ids = np.array([[0, 0], [0, 1], [1, 2]])
    expected = 4 * np.maximum(table[ids].sum(axis=1), 0)
    assert np.array_equal(logits(read_network(tmp_path / "made.onnx", 2), ids), expected)
