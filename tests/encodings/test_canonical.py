"""The canonical network: its bytes, evaluated as FORMAT.md says, are the network; names in the file change nothing."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import pytest
from canonical_bytes import Bytes
from canonical_cases import odd
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_models import STYLES, masked
from numeric_models import Numeric, numeric_models
from onnx import TensorProto, helper, numpy_helper
from random_networks import Sample, networks

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.numeric_input import numeric_network, open_numeric
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model, read_network
from swapproof.proofs import check_box, lower


def read(sample: Sample) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        return read_network(sample.save(Path(folder)), sample.length)


odd_ones = st.integers(0, 10**6).map(odd)


@given(st.one_of(networks(heads=False), odd_ones))
def test_its_bytes_compute_what_the_network_does(sample: Sample) -> None:
    network = read(sample)
    numbers: dict[str, bytes] = {}
    found = canonical_network(network, keep=numbers)
    if found.data is None:
        assert found.reason
        assert network.inexact or (network.account is not None and network.account.foreign)
        return
    assert found.sha256 == hashlib.sha256(found.data).hexdigest()
    layers = Bytes(found.data, numbers)
    for tokens in sample.sentences(3):
        assert layers.logits_of(tokens.tolist()) == exact_logits(network, tokens.tolist())[0]


@given(st.one_of(networks(heads=False), odd_ones))
def test_names_and_where_constants_are_stored_change_nothing(sample: Sample) -> None:
    here, there = (canonical_network(read(one)) for one in (sample, replace(sample, model=renamed(sample.model))))
    assert (here.data, here.numbers) == (there.data, there.numbers)


@settings(max_examples=300)
@given(st.one_of(networks(), odd_ones))
def test_the_checkers_reader_writes_the_same(sample: Sample) -> None:
    theirs = lowered(sample.model.SerializeToString(), [0] * sample.length)
    try:
        ours = canonical_network(read(sample)).sha256
    except (Unsupported, BadInput):
        return
    assert ours is None or theirs is None or ours == theirs


def lowered(data: bytes, tokens: list[int], words: Sequence[Any] = (), folder: Path | None = None) -> str | None:
    files = {} if folder is None else {path.name: path.read_bytes() for path in folder.glob("*.bin")}
    try:
        return str(lower.read_model(data, files).lower([["words", tokens]], list(words)).sha256)
    except (lower.Refused, lower.Unusable):
        return None


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.parent.rglob("*.onnx")), ids=lambda path: path.stem)
def test_the_checkers_reader_writes_the_same_of_every_model_in_the_tests(path: Path) -> None:
    try:
        model = open_model(path)
        length = model.length or 5
        ours = canonical_network(network_of(model, length, [[1]] * length))
    except (Unsupported, BadInput):
        return
    theirs = lowered(path.read_bytes(), [1] * length, (), path.parent)
    assert theirs in (None, ours.sha256)


@given(numeric_models())
def test_the_checkers_reader_writes_the_same_of_networks_of_numbers(sample: Numeric) -> None:
    with tempfile.TemporaryDirectory() as folder:
        network = numeric_network(open_numeric(sample.save(Path(folder))))
    ours = canonical_network(network, inputs="numbers")
    assert ours.data is not None
    assert ours.sha256 == check_box.read_model(sample.model.SerializeToString()).lower().sha256


@pytest.mark.parametrize("style", STYLES)
def test_masks_of_the_padding_are_constants_of_the_certificate(style: str, tmp_path: Path) -> None:
    for source in range(4):
        sample = masked(style, source, 5, 7)
        choices = [[1, 2], [3], [2, 4, 5], [0], [0]]
        network = network_of(open_model(sample.save(tmp_path)), 5, choices)
        words = [[place, [[token] for token in row]] for place, row in enumerate(choices) if len(row) > 1]
        ours = canonical_network(network)
        assert ours.data is not None
        assert ours.sha256 == lowered(sample.model.SerializeToString(), [row[0] for row in choices], words)


def renamed(model: Any) -> Any:
    """With other names, and every initializer a Constant node and the other way round."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    graph = other.graph
    keep = {value.name for value in (*graph.input, *graph.output)}
    for node in graph.node:
        node.name = f"other {node.name}"
        for names in (node.input, node.output):
            names[:] = [name if name in keep or not name else f"x{name}" for name in names]
    nodes = [
        helper.make_node("Constant", [], [f"x{tensor.name}"], value=tensor)
        for tensor in graph.initializer
        if tensor.name not in keep
    ]
    constants = [node for node in graph.node if node.op_type == "Constant"]
    rest = [node for node in graph.node if node.op_type != "Constant"]
    tensors = [numpy_helper.from_array(numpy_helper.to_array(n.attribute[0].t), n.output[0]) for n in constants]
    del graph.node[:], graph.initializer[:]
    graph.node.extend([*nodes, *rest])
    graph.initializer.extend(tensors)
    return other


def test_it_is_fast() -> None:
    """A dense classifier of 50 positions in a few milliseconds, 100 filters over 200 positions in a fraction of a
    second (with room for other work on the machine)."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name)

    def seconds(nodes: list[Any], tensors: list[Any], length: int) -> float:
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, length])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2])],
            tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        network = read(Sample(model, length, 20_000, 2, (), 0, 1))
        assert canonical_network(network).data
        start = perf_counter()
        for _ in range(3):
            canonical_network(network)
        return (perf_counter() - start) / 3

    node = helper.make_node
    top = [node("Relu", ["z"], ["y"]), node("Gemm", ["y", "V", "c"], ["logits"])]
    for size in (2, 50):
        bottom = [
            node("Gather", ["E", "tokens"], ["e"]),
            node("Flatten", ["e"], ["f"]),
            node("MatMul", ["f", "W"], ["m"]),
            node("Add", ["m", "b"], ["z"]),
        ]
        tensors = [weights("E", 20_000, size), weights("W", 50 * size, 64), weights("b", 64)]
        spent = seconds([*bottom, *top], [*tensors, weights("V", 64, 2), weights("c", 2)], 50)
        print(f"dense, embedding {size}: {spent * 1e3:.1f} ms")
        assert spent < 0.1
    filters = [
        node("Gather", ["E", "tokens"], ["e"]),
        node("Transpose", ["e"], ["t"], perm=[0, 2, 1]),
        node("Conv", ["t", "W", "b"], ["z"], kernel_shape=[3], pads=[1, 1]),
        node("Relu", ["z"], ["r"]),
        node("ReduceMax", ["r"], ["y"], axes=[2], keepdims=0),
        node("Gemm", ["y", "V", "c"], ["logits"]),
    ]
    tensors = [weights("E", 20_000, 50), weights("W", 100, 50, 3), weights("b", 100)]
    spent = seconds(filters, [*tensors, weights("V", 100, 2), weights("c", 2)], 200)
    print(f"filters: {spent * 1e3:.1f} ms")
    assert spent < 1.0
