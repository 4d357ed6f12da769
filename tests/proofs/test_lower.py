"""lower.py writes the canonical network that FORMAT section 4 describes, and it computes what onnxruntime computes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from masked_models import STYLES, masked
from numeric_models import SHAPES, numeric
from onnx import TensorProto, helper, numpy_helper
from random_graphs import Sample
from random_networks import networks, tiny_networks

from swapproof.proofs import check_box, lower


def u32(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def floats(*numbers: float) -> bytes:
    """Numbers of form 1, as a network refers to them."""
    return u32(1) + sha256(struct.pack(f"<{len(numbers)}f", *numbers)).digest()


@dataclass
class Net:
    """A canonical network, read by nothing that lower.py shares."""

    float32: int
    positions: int
    constants: list[Fraction]
    layers: list[tuple[Any, ...]] = field(default_factory=list)
    logits: list[int] = field(default_factory=list)

    def values(self, sentence: Sequence[int], numbers: Sequence[float] = ()) -> list[Fraction]:
        found = list(self.constants)
        for layer in self.layers:
            match layer:
                case ("numbers", _):
                    found += map(Fraction, numbers)
                case ("embedding", width, table, positions):
                    found += [table[sentence[p] * width + j] for p in positions for j in range(width)]
                case ("affine", lists, weights, rows, biases):
                    dots = [sum(w * found[i] for i, w in zip(lists[a], weights[k], strict=True)) for a, k in rows]
                    found += [dot + bias for dot, bias in zip(dots, biases, strict=True)]
                case ("rectifier", alpha, elements):
                    found += [max(found[i], 0) + alpha * min(found[i], 0) for i in elements]
                case ("maximum", windows):
                    found += [max(found[i] for i in window) for window in windows]
        return [found[i] for i in self.logits]

    @property
    def kinds(self) -> list[str]:
        return [layer[0] for layer in self.layers]


class Reader:
    """Reads a canonical network; whatever the page says of its form must hold."""

    def __init__(self, lowered: lower.Lowered) -> None:
        self.data, self.numbers_apart, self.at = lowered.data, lowered.numbers, 16
        assert self.data[:16] == b"swapproof net 2\n"
        assert sha256(self.data).hexdigest() == lowered.sha256
        self.used: set[bytes] = set()
        self.read: set[int] = set()

    def one(self) -> int:
        self.at += 4
        return int(struct.unpack_from("<I", self.data, self.at - 4)[0])

    def some(self) -> list[int]:
        return [self.one() for _ in range(self.one())]

    def lists(self) -> list[tuple[int, ...]]:
        return [tuple(self.some()) for _ in range(self.one())]

    def numbers(self, count: int) -> list[Fraction]:
        form, digest = self.one(), self.data[self.at : self.at + 32]
        self.at += 32
        self.used.add(digest)
        data = self.numbers_apart[digest]
        assert sha256(data).digest() == digest
        if form == 3:
            found = [
                Fraction(int(a, 16), int(b, 16)) for a, b in (text.split("/") for text in data.decode().split(","))
            ]
            assert data.decode() == ",".join(f"{x.numerator:x}/{x.denominator:x}" for x in found)
            assert not all(abs(x) < 2**1000 and Fraction(float(x)) == x for x in found)
        else:
            stored = struct.unpack(f"<{len(data) // (4 * form)}{'fd'[form - 1]}", data)
            assert all(str(x) != "-0.0" for x in stored)
            assert form == 1 or not all(float(np.float32(x)) == x for x in stored)
            found = list(map(Fraction, stored))
        assert len(found) == count
        return found

    def layer(self, size: int) -> tuple[tuple[Any, ...], int]:
        """A layer after so many elements, and how many it has."""
        match self.one():
            case 0:
                count = self.one()
                return ("numbers", count), count
            case 1:
                rows, width = self.one(), self.one()
                table, positions = self.numbers(rows * width), self.some()
                return ("embedding", width, table, positions), width * len(positions)
            case 2:
                lists, lengths = self.lists(), self.some()
                numbers, ends = self.numbers(sum(lengths)), list(accumulate(lengths))
                weights = [tuple(numbers[end - n : end]) for end, n in zip(ends, lengths, strict=True)]
                rows_of = [(self.one(), self.one()) for _ in range(self.one())]
                biases = self.numbers(len(rows_of))
                for distinct, used in ((lists, [a for a, _ in rows_of]), (weights, [k for _, k in rows_of])):
                    assert len(set(distinct)) == len(distinct)
                    assert list(dict.fromkeys(used)) == list(range(len(distinct)))
                self.meet([i for each in lists for i in each], size)
                return ("affine", lists, weights, rows_of, biases), len(rows_of)
            case 3:
                (alpha,), elements = self.numbers(1), self.some()
                self.meet(elements, size)
                return ("rectifier", alpha, elements), len(elements)
            case 4:
                windows = self.lists()
                assert all(window == tuple(sorted(set(window))) for window in windows)
                self.meet([i for window in windows for i in window], size)
                return ("maximum", windows), len(windows)
            case 5:
                flat = [self.one() for _ in range(2 * self.one())]
                self.meet(flat, size)
                return ("product", list(zip(flat[::2], flat[1::2], strict=True))), len(flat) // 2
            case 6:
                function, elements = self.one(), self.some()
                self.meet(elements, size)
                return ("curve", function, elements), len(elements)
        raise AssertionError("an unknown kind of layer")

    def meet(self, elements: Sequence[int], size: int) -> None:
        assert all(i < size for i in elements)
        self.read.update(elements)

    def network(self) -> Net:
        float32, positions, constants = self.one(), self.one(), self.one()
        net = Net(float32, positions, self.numbers(constants))
        assert net.constants == sorted(set(net.constants))
        sizes = [constants]
        for _ in range(self.one()):
            layer, size = self.layer(sum(sizes))
            net.layers.append(layer)
            sizes.append(size)
        net.logits = self.some()
        self.meet(net.logits, sum(sizes))
        assert self.at == len(self.data)
        assert self.used == set(self.numbers_apart)
        assert self.read >= set(range(constants))
        for layer, size, end in zip(net.layers, sizes[1:], list(accumulate(sizes))[1:], strict=True):
            assert layer[0] == "numbers" or self.read & set(range(end - size, end))
        return net


def read(lowered: lower.Lowered) -> Net:
    return Reader(lowered).network()


def onnx(
    nodes: Sequence[Any],
    weights: dict[str, Any],
    *,
    inputs: dict[str, Any] | None = None,
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> bytes:
    """A model of these nodes whose output is `out`."""
    shapes = inputs or {"tokens": ["batch", "length"]}
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("out", kind, ["batch", None])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return made.SerializeToString()  # type: ignore[no-any-return]


def f32(*rows: Any) -> Any:
    return np.array(rows, np.float32)


def words(*tokens: int) -> list[Any]:
    return [["words", list(tokens)]]


def node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


EMBED = node("Gather", "table tokens", "x")
FLAT = node("Flatten", "x", "flat")


def run(data: bytes, **inputs: Sequence[int]) -> list[float]:
    """The logits by onnxruntime, without optimisation."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    fed = {name: np.array([value], np.int64) for name, value in inputs.items()}
    return list(map(float, session.run(None, fed)[0].ravel()))


def test_a_tiny_network_has_the_bytes_that_the_page_says() -> None:
    """Two positions, a Gemm of 2 to 2 with one column twice, a Relu, and a constant among the logits."""
    data = onnx(
        [
            EMBED,
            FLAT,
            node("Gemm", "flat w b", "h"),
            node("Relu", "h", "r"),
            helper.make_node("Concat", ["r", "half"], ["out"], axis=1),
        ],
        {"table": f32([1], [2.5], [-0.0]), "w": f32([3, 3], [-4, -4]), "b": f32(0.5, -1), "half": f32([0.5])},
    )
    lowered = lower.read_model(data).lower(words(1, 0), [])
    assert lowered.data == b"".join(
        [
            b"swapproof net 2\n",
            u32(1, 2, 1) + floats(0.5) + u32(3),
            u32(1, 3, 1) + floats(1, 2.5, 0.0) + u32(2, 0, 1),
            u32(2) + u32(1, 2, 1, 2) + u32(1, 2) + floats(3, -4) + u32(2, 0, 0, 0, 0) + floats(0.5, -1),
            u32(3) + floats(0) + u32(2, 3, 4),
            u32(3, 5, 6, 0),
        ]
    )
    assert lowered.sha256 == sha256(lowered.data).hexdigest()
    assert lowered.no_float32 == ""
    assert read(lowered).values([1, 0]) == [4, Fraction(5, 2), Fraction(1, 2)]


def agrees(sample: Sample, folder: Path, sentences: Sequence[Sequence[int]]) -> None:
    model = lower.read_model(sample.model.SerializeToString())
    net = read(model.lower(words(*sentences[0]), []))
    expected = sample.runner(sample.save(folder), optimised=False)(np.array(sentences))
    for sentence, row in zip(sentences, expected, strict=True):
        np.testing.assert_allclose(list(map(float, net.values(sentence))), row, rtol=2e-3, atol=2e-3)


@settings(max_examples=100)
@given(networks(heads=False), st.integers(0, 1000))
def test_random_networks_compute_what_onnxruntime_computes(
    tmp_path_factory: pytest.TempPathFactory, sample: Sample, source: int
) -> None:
    """Every operator that the random networks have; some of these are outside the format."""
    try:
        agrees(sample, tmp_path_factory.mktemp("random"), sample.sentences(2, source).tolist())
    except lower.Unusable:
        reject()


@settings(max_examples=30)
@given(tiny_networks())
def test_classical_networks_compute_what_onnxruntime_computes(
    tmp_path_factory: pytest.TempPathFactory, sample: Sample
) -> None:
    agrees(sample, tmp_path_factory.mktemp("tiny"), sample.sentences(2).tolist())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("source", range(3))
def test_a_mask_made_of_the_tokens_is_a_constant(style: str, source: int, tmp_path: Path) -> None:
    sample = masked(style, source, 4, 6)
    sentence = [3, 5, 1, 0]
    model = lower.read_model(sample.model.SerializeToString())
    net = read(model.lower(words(*sentence), [[0, [[3], [2]]], [1, [[5], [4]]]]))
    expected = sample.runner(sample.save(tmp_path), optimised=False)(np.array([sentence, [2, 4, 1, 0]]))
    for tokens, row in zip(([3, 5, 1, 0], [2, 4, 1, 0]), expected, strict=True):
        np.testing.assert_allclose(list(map(float, net.values(tokens))), row, rtol=1e-4, atol=1e-4)
    assert model.lower(words(2, 4, 1, 0), [[1, [[4], [5]]]]).data is model.lower(words(*sentence), []).data
    assert model.lower(words(2, 4, 0, 0), []).data is not model.lower(words(*sentence), []).data
    with pytest.raises(lower.Refused, match="all choices of a position"):
        model.lower(words(*sentence), [[1, [[5], [0]]]])


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("source", range(4))
def test_networks_of_numbers_compute_what_onnxruntime_computes(kind: str, source: int) -> None:
    made = numeric(kind, source, small=True)
    data = made.model.SerializeToString()
    model = check_box.read_model(data)
    net = read(model.lower())
    assert (net.float32, net.positions, net.layers[0]) == (0, 0, ("numbers", model.inputs))
    assert (model.inputs, model.outputs) == (int(np.prod(made.shape)), made.outputs)
    point = np.random.default_rng(source).integers(-8, 9, model.inputs) / 4
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    shaped = point.astype(np.float32).reshape([d if isinstance(d, int) else 1 for d in x.shape])
    expected = session.run(None, {x.name: shaped})[0].ravel()
    np.testing.assert_allclose(list(map(float, net.values([], point.tolist()))), expected, atol=1e-4)


def test_several_inputs_are_numbered_one_after_the_other() -> None:
    """A mask is a constant; two inputs of words are looked up in tables of their own."""
    data = onnx(
        [
            node("Gather", "table first", "x"),
            node("Cast", "mask", "m", to=TensorProto.FLOAT),
            node("Unsqueeze", "m last", "column"),
            node("Mul", "x column", "kept"),
            node("ReduceSum", "kept one", "sum", keepdims=0),
            node("Gather", "other second", "y"),
            node("ReduceMax", "y", "top", axes=[1], keepdims=0),
            node("Add", "sum top", "out"),
        ],
        {
            "table": f32([1, 2], [3, 5], [7, 11]),
            "other": f32([0, 1], [4, 0]),
            "last": np.array([-1]),
            "one": np.array([1]),
        },
        inputs={"first": ["b", "n"], "mask": ["b", "n"], "second": [1, 2]},
    )
    model = lower.read_model(data)
    lowered = model.lower([["words", [2, 1, 0]], ["constant", [1, 1, 0]], ["words", [0, 1]]], [])
    net = read(lowered)
    assert net.positions == 8
    assert [layer[3] for layer in net.layers if layer[0] == "embedding"] == [[0, 1, 2], [6, 7]]
    assert net.values([2, 1, 0, 1, 1, 0, 0, 1]) == run(data, first=[2, 1, 0], mask=[1, 1, 0], second=[0, 1])
    assert model.lower([["words", [0, 0, 0]], ["constant", [1, 1, 0]], ["words", [1, 1]]], []) is lowered
    other = model.lower([["words", [2, 1, 0]], ["constant", [1, 0, 0]], ["words", [0, 1]]], [])
    assert other.sha256 != lowered.sha256
    with pytest.raises(lower.Refused, match="3 inputs"):
        model.lower(words(1, 2), [])
    with pytest.raises(lower.Refused, match="reads 2 tokens"):
        model.lower([["words", [1]], ["constant", [1]], ["words", [1]]], [])
    with pytest.raises(lower.Refused, match="beyond the embedding"):
        model.lower([["words", [2, 1, 0]], ["constant", [1, 1, 0]], ["words", [0, 2]]], [])


def test_a_product_over_many_lines_holds_each_weight_once() -> None:
    """And its numbers are the same at every length."""
    rng = np.random.default_rng(0)
    data = onnx(
        [
            EMBED,
            node("Transpose", "w", "turned", perm=[1, 0]),
            node("MatMul", "x turned", "h"),
            node("ReduceMax", "h", "out", axes=[1], keepdims=0),
        ],
        {"table": rng.normal(size=(50, 8)).astype(np.float32), "w": rng.normal(size=(6, 8)).astype(np.float32)},
    )
    model = lower.read_model(data)
    short, long = model.lower(words(*range(5)), []), model.lower(words(*range(40)), [])
    net = read(long)
    _, lists, weights, rows, _ = net.layers[1]
    assert (len(lists), len(weights), len(rows)) == (40, 6, 240)
    assert len(short.numbers.keys() & long.numbers.keys()) == 3
    np.testing.assert_allclose(list(map(float, net.values(range(40)))), run(data, tokens=range(40)), rtol=1e-5)


def test_the_negations_of_a_minimum_are_one_layer() -> None:
    """A constant among the inputs is a constant element."""
    data = onnx(
        [EMBED, FLAT, node("Neg", "flat", "n"), node("Min", "flat c n", "out")],
        {"table": f32([1], [-2], [0.5]), "c": f32(0.25)},
    )
    net = read(lower.read_model(data).lower(words(0, 1), []))
    assert net.kinds == ["embedding", "affine", "affine", "maximum", "affine"]
    assert net.layers[2][1] == [(1,), (2,), (0,), (3,), (4,)]
    assert net.layers[2][3] == [(0, 0), (1, 0), (2, 0), (2, 0), (3, 0), (4, 0)]
    for sentence in ([0, 1], [2, 2]):
        assert net.values(sentence) == run(data, tokens=sentence)


@pytest.mark.parametrize(
    ("nodes", "kinds"),
    [
        ([node("Abs", "flat", "out")], ["rectifier", "affine"]),
        ([node("PRelu", "flat s", "out")], ["rectifier", "affine"]),
        ([node("Max", "flat zeros", "out")], ["rectifier"]),
        ([node("Max", "s flat", "out")], ["affine", "rectifier", "affine"]),
        ([node("Max", "flat", "out")], []),
        ([node("ReduceSum", "flat", "out", noop_with_empty_axes=1)], []),
        ([node("Clip", "flat low low", "out")], ["affine", "rectifier", "affine", "affine", "rectifier", "affine"]),
        ([node("Relu", "flat", "idle"), node("Neg", "idle", "out2"), node("Neg", "flat", "out")], ["affine"]),
        ([node("Split", "flat", "out")], []),
    ],
)  # fmt: skip
def test_operators_make_the_layers_of_the_page(nodes: list[Any], kinds: list[str]) -> None:
    weights = {"table": f32([1], [-2], [0.5]), "s": f32(0.1, 3), "zeros": f32(0, 0), "low": np.float32(-1)}
    data = onnx([EMBED, FLAT, *nodes], weights)
    net = read(lower.read_model(data).lower(words(0, 1), []))
    assert net.kinds == ["embedding", *kinds]
    np.testing.assert_allclose(list(map(float, net.values([0, 1]))), run(data, tokens=[0, 1]), rtol=1e-6)


def test_layers_without_effect_are_left_out_and_their_lookups_checked() -> None:
    """The second table reaches the output through a Slice that takes nothing of it."""
    data = onnx(
        [
            EMBED,
            node("Gather", "small tokens", "y"),
            helper.make_node("Concat", ["x", "y"], ["both"], axis=1),
            node("Slice", "both from to one", "kept"),
            node("Flatten", "kept", "out"),
        ],
        {
            "table": f32([1], [2], [3]),
            "small": f32([1], [2]),
            "from": np.array([0]),
            "to": np.array([2]),
            "one": np.array([1]),
        },
    )
    model = lower.read_model(data)
    assert read(model.lower(words(0, 1), [])).kinds == ["embedding"]
    with pytest.raises(lower.Refused, match="beyond the embedding"):
        model.lower(words(0, 1), [[1, [[1], [2]]]])


def test_numbers_are_written_in_the_first_form_that_holds_them() -> None:
    """A third is no float64, the nearest float64 to 0.1 no float32; 1/3 three times is one weight."""
    data = onnx(
        [EMBED, node("ReduceMean", "x", "m", axes=[1], keepdims=0), node("Mul", "m tenth", "out")],
        {"table": np.array([[1.0, 2.0]] * 3), "tenth": np.array([0.1, 0.5])},
        kind=TensorProto.DOUBLE,
    )
    lowered = lower.read_model(data).lower(words(0, 1, 2), [])
    assert b"1/3,1/3,1/3" in lowered.numbers.values()
    assert struct.pack("<2d", 0.1, 0.5) in lowered.numbers.values()
    assert struct.pack("<6f", 1, 2, 1, 2, 1, 2) in lowered.numbers.values()
    assert lowered.no_float32 == "the model is not FLOAT"
    assert read(lowered).float32 == 0


BIG, SMALL = np.float32(2.0**24 + 2), np.float32(2.0**-130)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("Softmax", "flat", "out")], "ends in Softmax"),
        ([node("Gemm", "flat eye", "out", alpha=0.5)], "scales"),
        ([node("Gemm", "flat eye row", "out", beta=0.5)], "scales"),
        ([node("Gemm", "flat eye", "out", beta=0.5)], ""),
        ([node("Add", "one one", "two"), node("Add", "flat two", "out")], ""),
        ([node("Mul", "one half", "c"), node("Add", "flat c", "out")], "round"),
        ([node("Add", "one big", "c"), node("Add", "flat c", "out")], "round"),
        ([node("Mul", "zero small", "c"), node("Add", "flat c", "out")], "below"),
        ([node("ReduceSum", "row", "c"), node("Add", "flat c", "out")], "round"),
        ([node("ReduceSum", "row", "c", noop_with_empty_axes=1), node("Add", "flat c", "out")], ""),
        ([node("BatchNormalization", "flat ones zeros zeros ones", "out")], "BatchNormalization"),
    ],
)
def test_float32_is_claimable_unless_the_page_says_why_not(nodes: list[Any], reason: str) -> None:
    weights = {
        "table": f32([1], [2]), "eye": f32([1, 0], [0, 1]), "row": f32(0.5, 1), "one": f32(1), "half": f32(0.5),
        "zero": f32(0), "big": BIG, "small": SMALL, "ones": f32(1, 1), "zeros": f32(0, 0),
    }  # fmt: skip
    lowered = lower.read_model(onnx([EMBED, FLAT, *nodes], weights)).lower(words(0, 1), [])
    assert read(lowered).float32 == (reason == "")
    assert reason in lowered.no_float32
    assert bool(reason) == bool(lowered.no_float32)


def test_roots_of_a_batch_normalisation_are_multiples_of_two_to_the_minus_40() -> None:
    weights = {"table": f32([1], [2]), "scale": f32(1, 1), "zeros": f32(0, 0), "var": f32(2, 4)}
    nodes = [EMBED, FLAT, node("BatchNormalization", "flat scale zeros zeros var", "out", epsilon=0.0)]
    net = read(lower.read_model(onnx(nodes, weights)).lower(words(0, 0), []))
    root = Fraction(int(2**40 / 2**0.5), 2**40)
    assert net.values([0, 0]) == [root, Fraction(1, 2)]
    weights["var"] = f32(2.0**-27, 1)
    with pytest.raises(lower.Unusable, match="variance"):
        lower.read_model(onnx(nodes, weights)).lower(words(0, 0), [])


def test_a_table_is_hashed_as_it_lies_in_the_file() -> None:
    table = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    table[3, 1] = 0.0
    plain = lower.read_model(onnx([EMBED, node("Flatten", "x", "out")], {"table": table})).lower(words(0, 1), [])
    assert sha256(table.tobytes()).digest() in plain.numbers
    table[3, 1] = -0.0
    signed = lower.read_model(onnx([EMBED, node("Flatten", "x", "out")], {"table": table})).lower(words(0, 1), [])
    assert signed.sha256 == plain.sha256


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_numbers_that_are_not_finite_are_outside_the_format(value: float) -> None:
    with pytest.raises(lower.Unusable, match="NaN or infinity"):
        lower.read_model(onnx([EMBED, node("Flatten", "x", "out")], {"table": f32([1], [value])}))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([EMBED, node("Relu", "later", "out"), node("Neg", "x", "later")], "before it is defined"),
        ([EMBED, node("LogSoftmax", "x", "s"), node("Flatten", "s", "out")], "after LogSoftmax"),
        ([EMBED, node("Softplus", "x", "out")], "outside the format"),
        ([EMBED, node("Relu", "x", "out", slope=1)], "slope"),
        ([EMBED, node("Flatten", "x", "out", axis=1.0)], "axis"),
        ([EMBED, node("ReduceSum", "x", "out", keepdims=2)], "keepdims is 2"),
        ([EMBED, node("Constant", "", "one", value_ints=[1]), node("ReduceSum", "x one", "out", axes=[1])], "twice"),
        ([EMBED, node("Softmax", "x", "out", axis=1)], "not the last"),
        ([EMBED, node("MaxPool", "x", "out", kernel_shape=[1], storage_order=1)], "storage_order"),
        ([EMBED, node("Neg", "table", "c"), node("Add", "x c", "out")], "Neg"),
        ([EMBED, node("Relu", "x", "out")], "shape"),
        ([node("Flatten", "table", "out")], "depend on the tokens"),
        ([EMBED, node("Neg", "x", "x")], "twice"),
        ([EMBED, node("Relu", "x", "out"), node("Neg", "x", "tokens")], "twice"),
    ],
)
def test_what_is_outside_the_format_is_unusable(nodes: list[Any], message: str) -> None:
    with pytest.raises(lower.Unusable, match=message):
        lower.read_model(onnx(nodes, {"table": f32([1], [2])})).lower(words(0, 1), [])


def test_nodes_that_do_not_count_may_be_anything() -> None:
    nodes = [EMBED, node("Erf", "x", "idle", slope=1), FLAT, node("Neg", "flat", "out"), node("Foo", "idle", "more")]
    assert read(lower.read_model(onnx(nodes, {"table": f32([1], [2])})).lower(words(0, 1), [])).kinds[1:] == ["affine"]


def test_external_tensors_are_bound_by_the_certificate() -> None:
    """Their file is given, and its hash is the model's to tell."""
    table = f32([1], [2])
    proto = numpy_helper.from_array(table, "table")
    proto.ClearField("raw_data")
    proto.data_location = TensorProto.EXTERNAL
    proto.external_data.add(key="location", value="weights.bin")
    graph = helper.make_graph(
        [EMBED, node("Flatten", "x", "out")],
        "made",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["b", "n"])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["b", "c"])],
        [proto],
    )
    opsets = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    model = lower.read_model(data, {"weights.bin": table.tobytes()})
    assert model.tensors == {"weights.bin": sha256(table.tobytes()).hexdigest()}
    assert read(model.lower(words(1, 0), [])).values([1, 0]) == [2, 1]
    with pytest.raises(lower.Refused, match="does not bind"):
        lower.read_model(data)
    with pytest.raises(lower.Unusable, match="numbers for shape"):
        lower.read_model(data, {"weights.bin": table.tobytes()[:-4]})


def test_lowering_stops_when_its_time_is_up() -> None:
    model = lower.read_model(onnx([EMBED, node("Flatten", "x", "out")], {"table": f32([1], [2])}))
    with pytest.raises(lower.Refused, match="time allowed"):
        model.lower(words(0, 1), [], stop=-inf)
    assert read(model.lower(words(0, 1), [])).kinds == ["embedding"]


def test_options_of_several_integers_are_looked_up_place_by_place() -> None:
    model = lower.read_model(onnx([EMBED, node("Flatten", "x", "out")], {"table": f32([1], [2], [3])}))
    assert model.lower(words(0, 1, 2), [[1, [[1, 2], [0, 0]]]]) is model.lower(words(0, 1, 2), [])
    with pytest.raises(lower.Refused, match="beyond"):
        model.lower(words(0, 1, 2), [[1, [[1, 2], [0, 3]]]])
