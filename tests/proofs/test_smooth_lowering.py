"""Smooth and recurrent operators are lowered as FORMAT 4.2 and 4.4 say: they compute what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest
from graph_builder import Builder, floats, tokens
from smooth_cases import CURVES, GATES, LENGTH, ROWS, SIZE, WIDTH, cell, model, session
from smooth_values import logits_of

from swapproof.proofs import exact_network as networks
from swapproof.proofs import lower


def network_of(data: bytes) -> networks.Network:
    found = lower.read_model(data).lower([["words", [0] * LENGTH]], [])
    return networks.Network(found.data, found.numbers, found.no_float32)


def agrees(data: bytes, seed: int) -> networks.Network:
    network, run, rng = network_of(data), session(data), np.random.default_rng(seed)
    for text in rng.integers(0, ROWS, size=(4, LENGTH)).tolist():
        (expected,) = run.run(None, {"tokens": [text]})
        np.testing.assert_allclose(logits_of(network, text), expected[0], rtol=2e-4, atol=2e-4)
    return network


@pytest.mark.parametrize("name", CURVES)
def test_smooth_operators_compute_what_onnxruntime_computes(name: str) -> None:
    for seed in range(2):
        network = agrees(model(CURVES[name], seed), seed)
        assert network.smooth != (name == "HardSigmoid")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", list(GATES))
def test_recurrent_networks_compute_what_onnxruntime_computes(operator: str, direction: str) -> None:
    """Every output, with and without biases, a length and initial states; stacked; states that depend on tokens."""
    for output in range(2 + (operator == "LSTM")):
        for rest in ("", "B", "SI", "BSI"):
            agrees(model(cell(operator, direction, output, rest), 1), 2)
    agrees(model(cell(operator, direction, 0, "BI", variable=True), 3), 4)
    agrees(model(cell(operator, direction, 1, "B", stacked=2), 5), 6)
    if operator == "GRU":
        for rest in ("", "BSI"):
            network = agrees(model(cell(operator, direction, 0, rest, linear_before_reset=1), 7), 8)
    network = network_of(model(cell(operator, direction, 1, "B"), 1))
    shared = {id(layer.weights[0]) for layer in network.layers if isinstance(layer, networks.Affine)}
    assert len(shared) <= 5 * (1 + (direction == "bidirectional"))


def test_activations_in_any_capitals_are_read_others_are_not() -> None:
    usual = model(cell("LSTM", "forward", 1), 0)
    named = model(cell("LSTM", "forward", 1, activations=["SIGMOID", "tanh", "Tanh"]), 0)
    hashes = {lower.read_model(data).lower([["words", [0] * LENGTH]], []).sha256 for data in (usual, named)}
    assert len(hashes) == 1
    for wrong, said in (
        ({"activations": ["Relu", "Tanh", "Tanh"]}, "activations"),
        ({"clip": 3.0}, "clip"),
        ({"input_forget": 1}, "input_forget"),
        ({"hidden_size": 7}, "do not fit"),
    ):
        b, rng = Builder(), np.random.default_rng(0)
        x = b.call("Gather", b.constant(rng.normal(size=(ROWS, WIDTH)).astype(np.float32)), "tokens")
        read = b.call("Transpose", x, perm=[1, 0, 2])
        w, r = [b.constant(rng.normal(size=(1, 12, n)).astype(np.float32)) for n in (WIDTH, SIZE)]
        b.node("LSTM", [read, w, r], ["", "h"], **{"hidden_size": SIZE, **wrong})
        b.node("Reshape", ["h", b.wholes(1, 3)], ["out"])
        data = b.proto([tokens(1, LENGTH)], [floats("out", 1, 3)], opset=20).SerializeToString()
        with pytest.raises(lower.Unusable, match=said):
            network_of(data)


@pytest.mark.parametrize("name", ["Softmax", "Sigmoid", "Tanh"])
def test_at_the_very_end_they_are_heads(name: str) -> None:
    b = Builder()
    x = b.call("Gather", b.constant(np.eye(ROWS, 3, dtype=np.float32)), "tokens")
    b.node(name, [b.call("ReduceSum", x, b.wholes(1), keepdims=0)], ["out"])
    data = b.proto([tokens(1, LENGTH)], [floats("out", 1, 3)], opset=17).SerializeToString()
    assert not network_of(data).smooth
