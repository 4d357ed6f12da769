"""What is claimed at level float32 is certain to the checkers: the bound here is above theirs, and not far above."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np
import onnx
from canonical_bytes import Bytes
from canonical_cases import odd
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from random_networks import Sample, networks

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.space import SwapSpace

GAP = 2.0**-24


def read(sample: Sample) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        return read_network(sample.save(Path(folder)), sample.length)


@given(st.one_of(networks(heads=False, kinds=False), st.integers(0, 10**6).map(odd)))
def test_it_is_above_the_bound_of_the_checkers(sample: Sample) -> None:
    network, numbers = read(sample), dict[str, bytes]()
    random = Random(sample.random_source)
    choices = [random.sample(range(sample.vocabulary), random.randint(1, 2)) for _ in range(sample.length)]
    tokens = [random.choice(options) for options in choices]
    found = canonical_network(network, keep=numbers)
    claims = claims_of(network)
    assert (claims is None) == (found.data is None or not found.float32)
    if claims is None or found.data is None:
        return
    whole = claims.whole([SwapSpace(tuple(map(tuple, choices)))])
    claimed = claims.margin_errors(whole, 0)[0]
    layers = Bytes(found.data, numbers)
    theirs = layers.rounding(choices)
    if theirs is None:
        assert np.isposinf(claimed).all()
        return
    local = claims.margin_errors(claims.of_sentences(whole, values(network, np.array([tokens]))), 0)[0]
    for ours, errors in ((claimed, theirs), (local, layers.rounding(choices, tokens))):
        assert errors is not None
        for rival in range(1, sample.classes):
            bound = errors[0] + errors[rival] + 2**-64
            assert bound <= ours[rival]
            assert ours[rival] <= 4 * bound + 2**-50


def fused(addend: str, tmp_path: Path) -> float:
    """The margin bound of a MatMul whose terms all meet the addend of the Add that follows: onnxruntime starts the sum
    from it, and answers wrongly at an exact margin of 16 to 20 units."""
    width = 12 * 256
    table, weight = np.zeros((3, width), np.float32), np.zeros((width, 2), np.float32)
    table[1, 0] = table[2, 0] = table[2, 1] = 1.0
    table[2, 2::256] = 1.0
    weight[2::256] = GAP
    nodes = [
        helper.make_node("Gather", ["E", "tokens"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "W"], ["m"]),
        helper.make_node("Slice", ["f", "start", "end", "axis"], ["part"]),
        helper.make_node("Relu", ["part"], ["r"]),
        helper.make_node("Add", ["m", addend], ["logits"]),
    ]
    tensors = {"E": table, "W": weight, "b": np.array([1.0, 1.0], np.float32)}
    tensors |= {name: np.array([number]) for name, number in (("start", 0), ("end", 2), ("axis", 1))}
    graph = helper.make_graph(
        nodes,
        "fused",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, 1])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    claims = claims_of(read_network(tmp_path / "m.onnx"))
    assert claims is not None
    return float(claims.margin_errors(claims.whole([SwapSpace(((1, 2),))]), 0)[0, 1])


def test_an_addend_meets_the_roundings_of_the_sum_before_it(tmp_path: Path) -> None:
    for addend in ("b", "r"):
        assert fused(addend, tmp_path) > 20 * GAP
