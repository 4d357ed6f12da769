"""The canonical network that check.js makes of an ONNX file, byte for byte, beside the same written down by hand from
section 4.3 of FORMAT.md."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import pytest
from javascript_networks import (
    CHECKER,
    SECONDS,
    Inputs,
    Row,
    Statement,
    Words,
    affine,
    embedding,
    layers_of,
    lowered,
    maximum,
    network,
    rectifier,
)  # fmt: skip

onnx = pytest.importorskip("onnx")
np = pytest.importorskip("numpy")

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")
node = onnx.helper.make_node

TABLE = [[1.0, 2.0], [3.0, -0.5], [0.25, 0.0]]
TWO: Inputs = [["words", [0, 2]]]
PAIR = [[0, [[0], [1]]], [1, [[2], [0]]]]


def model(
    nodes: list[Any], constants: dict[str, Any], inputs: tuple[str, ...] = ("tokens",), double: bool = False
) -> bytes:
    """Floats become FLOAT or DOUBLE, integers INT64. The logits are called z."""
    kind = np.float64 if double else np.float32
    kept = []
    for name, value in constants.items():
        array = np.array(value)
        kept.append(onnx.numpy_helper.from_array(array.astype(kind) if array.dtype == np.float64 else array, name))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [info(name, onnx.TensorProto.INT64, [1, None]) for name in inputs],
        [info("z", onnx.TensorProto.FLOAT, [1, 2])], kept,
    )  # fmt: skip
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())


def check(data: bytes, expected: bytes, inputs: Inputs = TWO, words: Words = PAIR) -> None:
    """Both the hash and the bytes."""
    (line,) = lowered([Statement(data, inputs, words)], whole=True)
    assert not line.startswith("none"), line
    hash_, found = line.split()
    assert bytes.fromhex(found) == expected
    assert hash_ == hashlib.sha256(expected).hexdigest()
    assert layers_of(expected)


EMBED = [node("Gather", ["table", "tokens"], ["e"]), node("Flatten", ["e"], ["f"])]  # elements 0 to 3, of TWO


def embedded(nodes: list[Any], constants: dict[str, Any], **options: Any) -> bytes:
    return model(EMBED + nodes, {"table": TABLE} | constants, **options)


def test_a_network_of_one_hidden_layer() -> None:
    """Weights are columns of B; equal rows are two rows with one list and one sequence of weights."""
    w = [[1.0, 0.5, 1.0], [2.0, 0.0, 2.0], [3.0, -1.0, 3.0], [4.0, 8.0, 4.0]]
    nodes = [
        node("Gemm", ["f", "w", "b"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "v"], ["z"]),
    ]  # fmt: skip
    data = embedded(nodes, {"w": w, "b": [0.0, 1.0, -1.0], "v": [[1.0, 0.0], [0.0, 1.0], [-0.0, 1.0]]})
    every = [0, 1, 2, 3]
    check(data, network([
        embedding(TABLE, [0, 1]),
        affine((every, [1, 2, 3, 4], 0), (every, [0.5, 0, -1, 8], 1), (every, [1, 2, 3, 4], -1)),
        rectifier(0, [4, 5, 6]),
        affine(([7, 8, 9], [1, 0, 0], 0), ([7, 8, 9], [0, 1, 1], 0)),
    ], [10, 11], 2))  # fmt: skip


def test_several_inputs_and_words_over_spans() -> None:
    """Positions count through all inputs; a constant mask is numbers in no layer; the words themselves play no part."""
    nodes = [
        node("Gather", ["table", "second"], ["e"]),
        node("Cast", ["mask"], ["m"], to=onnx.TensorProto.FLOAT), node("Unsqueeze", ["m", "two"], ["u"]),
        node("Mul", ["e", "u"], ["masked"]), node("ReduceSum", ["masked", "one"], ["s"], keepdims=0),
        node("Gather", ["table", "first"], ["g"]), node("ReduceSum", ["g", "one"], ["t"], keepdims=0),
        node("Sub", ["t", "s"], ["z"]),
    ]  # fmt: skip
    data = model(nodes, {"table": TABLE, "one": [1], "two": [2]}, inputs=("first", "mask", "second"))
    expected = network([
        embedding(TABLE, [5, 6, 7]),
        *[affine(*(([i], [m], 0) for i, m in enumerate([1, 1, 1, 1, 0, 0])))],
        affine(([6, 8, 10], [1, 1, 1], 0), ([7, 9, 11], [1, 1, 1], 0)),
        embedding(TABLE, [0, 1]),
        affine(([14, 16], [1, 1], 0), ([15, 17], [1, 1], 0)),
        affine(([18, 12], [1, -1], 0), ([19, 13], [1, -1], 0)),
    ], [20, 21], 8)  # fmt: skip
    inputs: Inputs = [["words", [0, 1]], ["constant", [1, 1, 0]], ["words", [2, 2, 0]]]
    for words in ([[0, [[0, 1], [2, 2]]], [5, [[2]]], [6, [[2, 0], [0, 2], [1, 1]]]], []):
        check(data, expected, inputs, words)


def test_bent_lines_and_limits() -> None:
    """PRelu and Abs read (Relu(x), x); Max and Clip with numbers are three layers each, but for the limit 0."""
    nodes = [
        node("PRelu", ["f", "s"], ["p"]), node("Abs", ["p"], ["a"]), node("Max", ["a", "c"], ["m"]),
        node("Clip", ["m", "zero", "top"], ["k"]), node("Slice", ["k", "from", "to", "axis"], ["z"]),
    ]  # fmt: skip
    constants = {"s": [0.25, 0.25, 3.0, 1.0], "c": [[0.0, 1.0, 0.0, -2.0]], "zero": 0.0, "top": 6.0}
    data = embedded(nodes, constants | {"from": [1], "to": [3], "axis": [1]})
    four = range(4)
    check(data, network([
        embedding(TABLE, [0, 1]),
        rectifier(0, [0, 1, 2, 3]), affine(*(([4 + i, i], [1 - s, s], 0) for i, s in enumerate([0.25, 0.25, 3, 1]))),
        rectifier(0, [8, 9, 10, 11]), affine(*(([12 + i, 8 + i], [2, -1], 0) for i in four)),
        affine(*(([16 + i], [1], -c) for i, c in enumerate([0, 1, 0, -2]))), rectifier(0, [20, 21, 22, 23]),
        affine(*(([24 + i], [1], c) for i, c in enumerate([0, 1, 0, -2]))),
        rectifier(0, [28, 29, 30, 31]),
        affine(*(([32 + i], [-1], 6) for i in four)), rectifier(0, [36, 37, 38, 39]),
        affine(*(([40 + i], [-1], 6) for i in four)),
    ], [45, 46], 2))  # fmt: skip


def test_windows_are_sets_and_constants_are_numbers() -> None:
    """-0 is 0; equal numbers are one element; Sum adds elements where Add has a bias; padding never wins."""
    nodes = [
        node("Concat", ["f", "n", "f"], ["c"], axis=1),  # 0..3 of the layer, -1, 0, 0, 2, and 0..3 again
        node("Unsqueeze", ["c", "axis"], ["u"]),
        node("MaxPool", ["u"], ["m"], kernel_shape=[9], strides=[3], pads=[1, 1]),  # 12 + 2 places: two windows
        node("Squeeze", ["m", "axis"], ["q"]), node("Sum", ["q", "one", "q"], ["s"]), node("Add", ["s", "one"], ["t"]),
        node("Max", ["t", "q", "one"], ["z"]),
    ]  # fmt: skip
    data = embedded(nodes, {"n": [[-1.0, -0.0, 0.0, 2.0]], "one": [[1.0]], "axis": [1]})
    # Constants: -1, 0, 1, 2 are 0 to 3; the embedding is 4 to 7.
    first = [0, 1, 4, 5, 6, 7]  # places -1 to 7 without the padding; the last is 2
    check(data, network([
        embedding(TABLE, [0, 1]),
        maximum(sorted({*first, 3}), [0, 1, 3, 4, 5, 6, 7]),
        affine(([8, 2, 8], [1, 1, 1], 0), ([9, 2, 9], [1, 1, 1], 0)),
        affine(([10], [1], 1), ([11], [1], 1)),
        maximum([2, 8, 12], [2, 9, 13]),
    ], [14, 15], 2, [-1, 0, 1, 2]))  # fmt: skip


def test_a_least_value_negates_its_inputs_one_after_another() -> None:
    nodes = [node("Split", ["f", "half"], ["a", "b"], axis=1), node("Min", ["a", "b", "c"], ["z"])]
    data = embedded(nodes, {"half": [2, 2], "c": 0.5})
    check(data, network([
        embedding(TABLE, [0, 1]),
        affine(*(([i], [-1], 0) for i in (1, 2, 3, 4, 0, 0))), maximum([5, 7, 9], [6, 8, 10]),
        affine(([11], [-1], 0), ([12], [-1], 0)),
    ], [13, 14], 2, [0.5]))  # fmt: skip


def test_a_convolution_leaves_its_padding_out() -> None:
    """Lists and weights of the border are shorter; two groups read different channels with the same weights."""
    nodes = [
        node("Reshape", ["f", "shape"], ["x"]), node("Conv", ["x", "w", "b"], ["y"], group=2, pads=[1, 1]),
        node("ReduceMean", ["y", "last"], ["m"], keepdims=0), node("Identity", ["m"], ["z"]),
    ]  # fmt: skip
    w = [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]]
    data = embedded(nodes, {"shape": [1, 2, 2], "w": w, "b": [0.0, 7.0], "last": [2]})
    check(data, network([
        embedding(TABLE, [0, 1]),
        affine(([0, 1], [2, 3], 0), ([0, 1], [1, 2], 0), ([2, 3], [2, 3], 7), ([2, 3], [1, 2], 7)),
        affine(([4, 5], [0.5, 0.5], 0), ([6, 7], [0.5, 0.5], 0)),
    ], [8, 9], 2))  # fmt: skip


def test_an_empty_list_of_strides_is_none() -> None:
    nodes = [
        node("Unsqueeze", ["f", "axis"], ["x"]), node("AveragePool", ["x"], ["y"], kernel_shape=[3]),
        node("Squeeze", ["y", "axis"], ["z"]),
    ]  # fmt: skip
    data = onnx.load_from_string(embedded(nodes, {"axis": [1]}))
    for name in ("strides", "dilations", "pads"):
        data.graph.node[3].attribute.add(name=name, type=onnx.AttributeProto.INTS)
    thirds = [Fraction(1, 3)] * 3
    expected = network([embedding(TABLE, [0, 1]), affine(([0, 1, 2], thirds, 0), ([1, 2, 3], thirds, 0))], [4, 5], 2)
    check(bytes(data.SerializeToString()), expected)


def test_numbers_have_three_forms() -> None:
    """A division by 3 is of no float; a DOUBLE is of a longer one; and what is computed has no float32 level."""
    nodes = [node("Mul", ["f", "n"], ["g"]), node("Div", ["g", "d"], ["h"]), node("MatMul", ["h", "w"], ["z"])]
    w = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0**-149, 0.0]]
    constants = {"n": [0.1, 1.0, 2.0, 0.5], "d": [3.0, 1.0, -3.0, 0.5], "w": w}
    for double in (False, True):
        tenth = 0.1 if double else float(np.float32(0.1))
        thirds: list[Fraction | float] = [Fraction(1, 3), 1, Fraction(-1, 3), 2]
        check(embedded(nodes, constants, double=double), network([
            embedding(TABLE, [0, 1]),
            affine(*(([i], [n], 0) for i, n in enumerate([tenth, 1, 2, 0.5]))),
            affine(*(([4 + i], [n], 0) for i, n in enumerate(thirds))),
            affine(([8, 9, 10, 11], [1, 0, 0, 2.0**-149], 0), ([8, 9, 10, 11], [0, 1, 0, 0], 0)),
        ], [12, 13], 2, float32=0 if double else 1))  # fmt: skip


def test_a_normalised_batch_has_roots_of_40_bits() -> None:
    nodes = [
        node("Gemm", ["f", "w"], ["x"]),
        node("BatchNormalization", ["x", "scale", "b", "mean", "var"], ["z"], epsilon=0.5),
    ]  # fmt: skip
    constants = {"scale": [1.0, 3.0], "b": [0.5, 0.0], "mean": [2.0, -1.0], "var": [1.5, 0.25]}
    data = embedded(nodes, constants | {"w": [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]})
    roots = [Fraction(isqrt(2**80 // 2), 2**40), Fraction(isqrt(2**82 // 3), 2**40)]  # of 1/2 and 4/3
    rows: list[Row] = [([4], [roots[0]], Fraction(1, 2) - 2 * roots[0]), ([5], [3 * roots[1]], 3 * roots[1])]
    check(data, network([
        embedding(TABLE, [0, 1]), affine(([0, 1, 2, 3], [1, 0, 0, 0], 0), ([0, 1, 2, 3], [0, 1, 0, 0], 0)),
        affine(*rows),
    ], [6, 7], 2, float32=0))  # fmt: skip


def test_what_the_logits_do_not_depend_on_is_left_out() -> None:
    """A layer that no kept layer reads goes, with its constants; one of which one element is read stays whole."""
    nodes = [
        node("Gather", ["table", "tokens"], ["again"]), node("Relu", ["again"], ["idle"]),
        node("Mul", ["f", "n"], ["g"]), node("Flatten", ["idle"], ["i"]),
        node("Concat", ["i", "c", "g"], ["all"], axis=1), node("Slice", ["all", "from", "to", "axis"], ["h"]),
        node("ReduceSum", ["h"], ["same"], noop_with_empty_axes=1), node("Gemm", ["same", "w"], ["z"], transB=1),
    ]  # fmt: skip
    constants = {"n": 3.0, "c": [[9.0, 8.0]], "from": [5], "to": [7], "axis": [1], "w": [[1.0, 1.0], [0.0, 1.0]]}
    data = embedded(nodes, constants)
    # 8 and the first element of g.
    check(data, network([
        embedding(TABLE, [0, 1]), affine(*(([1 + i], [3], 0) for i in range(4))),
        affine(([0, 5], [1, 1], 0), ([0, 5], [0, 1], 0)),
    ], [9, 10], 2, [8]))  # fmt: skip


def test_the_program_prints_a_network(tmp_path: Path) -> None:
    data = embedded([node("Slice", ["f", "from", "to", "axis"], ["z"])], {"from": [0], "to": [2], "axis": [1]})
    (tmp_path / "m.onnx").write_bytes(data)
    (tmp_path / "statement.json").write_text(json.dumps({"inputs": TWO, "words": PAIR}, indent=1))
    command = ["node", str(CHECKER), "--network", str(tmp_path / "m.onnx"), str(tmp_path / "statement.json")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    expected = network([embedding(TABLE, [0, 1])], [0, 1], 2)
    assert result.stdout.split() == [hashlib.sha256(expected).hexdigest(), expected.hex()]
    assert result.returncode == 0
    (tmp_path / "statement.json").write_text(json.dumps({"inputs": [], "words": PAIR}))
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stdout) == (2, "")


A_WORD = [[0, [[0], [1]]]]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], []), ([["words", []]], []), ([["constant", [0, 1]]], []), ([["mask", [0, 1]]], []),
        ([["words", [0, -1]]], []), ([["words", [0, 2**31]]], []), ([["words", [0, 1], 1]], []),
        ([["words", [0, 1.5]]], []), ([["words", "01"]], []), ({}, []), (TWO, {}), (TWO, [[0]]), (TWO, [[0, []]]),
        (TWO, [[0, [[]]]]), (TWO, [[0, [[0], [0]]]]), (TWO, [[0, [[1], [0]]]]), (TWO, [[0, [[0], [1, 2]]]]),
        (TWO, [[0, [[0, 2], [1, 1]]], [1, [[2]]]]), (TWO, [[1, [[2]]], [0, [[0]]]]), (TWO, [[1, [[2, 0]]]]),
        (TWO, [[2, [[0]]]]), (TWO, [[-1, [[0]]]]), (TWO, A_WORD + A_WORD), (TWO, [[0, [[0], [2**31]]]]),
        ([["words", [0]], ["words", [1]]], [[0, [[0, 1], [1, 1]]]]),
        ([["words", [0]], ["constant", [1]]], [[1, [[1], [0]]]]), (TWO, [[0, [[0], [3]]]]),
        ([["words", [0, 1]], ["words", [1]]], []), ([["words", [0, 1, 2]]], []),
    ],
)  # fmt: skip
def test_statements_that_are_refused(inputs: Any, words: Any) -> None:
    """Also those that fit the page, but not the model: another number of inputs or positions, a row the table lacks."""
    graph = [node("Slice", ["f", "from", "to", "axis"], ["z"])]
    data = embedded(graph, {"from": [0], "to": [2], "axis": [1]})
    fixed = onnx.load_from_string(data)
    fixed.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 2
    (line,) = lowered([Statement(bytes(fixed.SerializeToString()), inputs, words)])
    assert line.startswith("none: ")
