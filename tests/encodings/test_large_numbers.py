"""Models of numbers too large for any float32 bound: nothing is claimed at that level, and nothing is said of numpy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny import write_task

from swapproof.encodings.network import Account, Affine, Embedding, Layer, Network, Node, Rectifier
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.cli import main


def larger(task: Path, factors: dict[str, float]) -> None:
    """The model of the task with these constants multiplied."""
    proto = onnx.load(task.parent / "model.onnx")
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor) * np.float32(factors.get(tensor.name, 1.0))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    onnx.save(proto, task.parent / "model.onnx")


FACTORS = [{"table": 1e16}, {"w1": 1e16}, {"table": 1e16, "w1": 1e12, "w2": 1e8}]


@pytest.mark.parametrize("factors", FACTORS)
def test_certify_and_kappa_are_silent_and_claim_nothing_of_float32(
    factors: dict[str, float], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    task = write_task(tmp_path / "task")
    larger(task, factors)
    assert main(["certify", str(task), "--out", str(tmp_path / "run")]) == 0
    assert main(["measure", str(task), "--quantity", "kappa", "--out", str(tmp_path / "kappa")]) == 0
    assert [str(one.message) for one in recwarn] == []
    lines = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {line["level"] for line in lines if line["min_swaps"]["low"]} == {"real"}
    network = network_of(open_model(task.parent / "model.onnx"), 6)
    space = SwapSpace(tuple((token, 2) for token in range(3, 9)))
    claims = claims_of(network)
    assert claims is not None
    assert np.isposinf(claims.margin_errors(claims.whole([space]), 0)).all()


def test_magnitudes_beyond_float64_are_infinite_errors() -> None:
    """Where infinity times 0 is no number, up to a last layer that passes it on."""
    affine = Affine(np.array([[1e300, 0.0], [0.0, 1.0]]), np.zeros(2))
    layers: list[Layer] = [Embedding(np.full((3, 2), 1e300), np.array([[0]])), affine, affine, Rectifier(0.5)]
    nodes = [Node(layer, (index - 1,) if index else (), (1, 2), "") for index, layer in enumerate(layers)]
    claims = claims_of(Network(tuple(nodes), 1, 3, account=Account(len(nodes))))
    assert claims is not None
    assert np.isposinf(claims.margin_errors(claims.whole([SwapSpace(((0, 1, 2),))]), 0)).all()
