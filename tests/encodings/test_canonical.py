"""The canonical network: its bytes, evaluated as FORMAT.md says, are the network; names in the file change nothing."""

from __future__ import annotations

import hashlib
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import onnx
import pytest
from canonical_cases import odd
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_models import STYLES, masked
from onnx import TensorProto, helper, numpy_helper
from random_networks import Sample, networks

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model, read_network
from swapproof.proofs import lower


class Bytes:
    """Section 4.3 of FORMAT.md, read back; `numbers` are what the hashes in it stand for."""

    def __init__(self, data: bytes, numbers: dict[str, bytes]) -> None:
        self.data, self.at, self.behind = data, 0, numbers
        assert self.take(16) == b"swapproof net 2\n"
        self.float32, self.positions = self.u32(), self.u32()
        count = self.u32()
        self.constants = self.numbers()
        assert len(self.constants) == count
        assert self.constants == sorted(set(self.constants))
        self.layers = [self.layer() for _ in range(self.u32())]
        self.logits = self.u32s(self.u32())
        assert self.at == len(data)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u32s(self, count: int) -> list[int]:
        return list(struct.unpack(f"<{count}I", self.take(4 * count)))

    def numbers(self) -> list[Fraction]:
        form = self.u32()
        kept = self.behind[self.take(32).hex()]
        assert kept[:1] == str(form).encode()
        if form == 3:
            pairs = [text.split("/") for text in kept[1:].decode().split(",")]
            found = [Fraction(int(p, 16), int(q, 16)) for p, q in pairs]
            assert [f"{x.numerator:x}/{x.denominator:x}" for x in found] == [f"{p}/{q}" for p, q in pairs]
            return found
        array = np.frombuffer(kept[1:], dtype="<f4" if form == 1 else "<f8")
        assert not (np.signbit(array) & (array == 0)).any()
        return [Fraction(float(number)) for number in array]

    def layer(self) -> tuple[Any, ...]:
        kind = self.u32()
        if kind == 1:
            rows, columns = self.u32(), self.u32()
            table = self.numbers()
            return kind, [table[row * columns : (row + 1) * columns] for row in range(rows)], self.u32s(self.u32())
        if kind == 2:
            lists = [self.u32s(self.u32()) for _ in range(self.u32())]
            lengths = self.u32s(self.u32())
            flat = iter(self.numbers())
            weights = [[next(flat) for _ in range(length)] for length in lengths]
            assert next(flat, None) is None
            pairs = [(self.u32(), self.u32()) for _ in range(self.u32())]
            for distinct, used in ((lists, [a for a, _ in pairs]), (weights, [b for _, b in pairs])):
                assert len({tuple(x) for x in distinct}) == len(distinct)
                assert list(dict.fromkeys(used)) == list(range(len(distinct)))
            return kind, lists, weights, pairs, self.numbers()
        if kind == 3:
            return kind, self.numbers()[0], self.u32s(self.u32())
        assert kind == 4
        windows = [self.u32s(self.u32()) for _ in range(self.u32())]
        assert all(window == sorted(set(window)) for window in windows)
        return kind, windows

    def logits_of(self, tokens: Sequence[int]) -> list[Fraction]:
        assert len(tokens) == self.positions
        x = list(self.constants)
        for kind, *parts in self.layers:
            match kind:
                case 1:
                    table, positions = parts
                    x += [number for position in positions for number in table[tokens[position]]]
                case 2:
                    lists, weights, pairs, biases = parts
                    rows = zip(pairs, biases, strict=True)
                    x += [
                        sum((w * x[k] for w, k in zip(weights[b], lists[a], strict=True)), bias)
                        for (a, b), bias in rows
                    ]
                case 3:
                    alpha, read = parts
                    x += [max(x[k], 0) + alpha * min(x[k], 0) for k in read]
                case 4:
                    x += [max(x[k] for k in window) for window in parts[0]]
        return [x[k] for k in self.logits]


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
