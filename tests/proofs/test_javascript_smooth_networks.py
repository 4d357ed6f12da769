"""check.js on smooth and recurrent operators: networks written down by hand from sections 4.2 to 4.4 of FORMAT.md, and
the same hashes as check.py's lowering on random models, whole and broken."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from cases import FACTOR, drawn_seed
from graph_builder import Builder, floats, tokens
from javascript_networks import (
    Inputs,
    Row,
    Statement,
    Words,
    affine,
    curve,
    embedding,
    layers_of,
    lowered,
    maximum,
    network,
    product,
    rectifier,
)  # fmt: skip
from onnx import helper, numpy_helper
from proof_cases import lowered as lowered_by_python
from smooth_graphs import recurrent, smooth_model, unary

from swapproof.proofs import check
from swapproof.proofs.writing import certificate as c

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

EXP, TANH, SIGMOID, ERF, RECIPROCAL, SQRT = range(1, 7)
TABLE = [[1.0, 2.0], [3.0, -0.5], [0.25, 0.0]]
INPUTS: Inputs = [["words", [0, 2]]]
WORDS: Words = [[0, [[0], [1]]], [1, [[2], [0]]]]
HALF = Fraction(1, 2)


def start() -> tuple[Builder, str]:
    """Elements 0 to 3 of the layers, as a variable of shape (1, 2, 2)."""
    b = Builder()
    return b, b.call("Gather", b.constant(np.array(TABLE, np.float32)), "tokens")


def finish(b: Builder, logits: str, opset: int = 20) -> bytes:
    return bytes(b.proto([tokens(1, 2)], [floats(logits, 1, "n")], opset=opset).SerializeToString())


def check_bytes(model: bytes, layers: list[bytes], logits: list[int], **more: Any) -> None:
    expected = network([embedding(TABLE, [0, 1]), *layers], logits, 2, **more)
    (line,) = lowered([Statement(model, INPUTS, WORDS)], whole=True)
    assert not line.startswith("none: "), line
    found = bytes.fromhex(line.split()[1])
    assert layers_of(found) == layers_of(expected)
    assert found == expected


def test_curves_products_and_quotients() -> None:
    b, x = start()
    y = b.call("Div", b.call("Exp", x), b.call("Sqrt", b.call("Mul", x, x)))
    one = b.call("Div", b.constant(np.array([3.0, 0.5], np.float32)), y)
    check_bytes(finish(b, b.call("Flatten", one)), [
        curve(EXP, range(4)), product(*((i, i) for i in range(4))), curve(SQRT, range(8, 12)),
        curve(RECIPROCAL, range(12, 16)), product(*((4 + i, 16 + i) for i in range(4))),
        curve(RECIPROCAL, range(20, 24)), affine(*(([24 + i], [[3.0, 0.5][i % 2]], 0) for i in range(4))),
    ], [28, 29, 30, 31], float32=0)  # fmt: skip


def test_both_forms_of_gelu() -> None:
    r, g, h = (Fraction(float(np.float32(x))) for x in (0.7071067811865476, 0.7978845608028654, 0.044715))
    b, x = start()
    y = b.call("Flatten", b.call("Gelu", b.call("Gelu", x), approximate="tanh"))
    rows: list[Row] = [([8 + i], [HALF], HALF) for i in range(4)]
    inner: list[Row] = [([16 + i, 24 + i], [g, g * h], 0) for i in range(4)]
    check_bytes(finish(b, y), [
        affine(*(([i], [r], 0) for i in range(4))), curve(ERF, range(4, 8)), affine(*rows),
        product(*((i, 12 + i) for i in range(4))),
        product(*((16 + i, 16 + i) for i in range(4))), product(*((20 + i, 16 + i) for i in range(4))),
        affine(*inner), curve(TANH, range(28, 32)), affine(*(([32 + i], [HALF], HALF) for i in range(4))),
        product(*((16 + i, 36 + i) for i in range(4))),
    ], [40, 41, 42, 43])  # fmt: skip


def test_a_softmax_and_a_normalised_layer() -> None:
    """Lines run along the axis; the largest, the sums and the roots are one element a line."""
    b, x = start()
    y = b.call("Softmax", x, axis=1)
    z = b.call("LayerNormalization", y, b.constant(np.array([2.0, 3.0], np.float32)), epsilon=0.25, axis=2)
    lines = [0, 1, 0, 1]
    check_bytes(finish(b, b.call("Flatten", z)), [
        maximum([0, 2], [1, 3]), affine(*(([i, 4 + lines[i]], [1, -1], 0) for i in range(4))), curve(EXP, range(6, 10)),
        affine(*((list(pair), [1, 1], 0) for pair in ((10, 12), (11, 13)))), curve(RECIPROCAL, [14, 15]),
        product(*((10 + i, 16 + lines[i]) for i in range(4))),  # 18 to 21
        affine(([18, 19], [HALF, HALF], 0), ([20, 21], [HALF, HALF], 0)),
        affine(*(([18 + i, 22 + i // 2], [1, -1], 0) for i in range(4))),
        product(*((24 + i, 24 + i) for i in range(4))),
        affine(([28, 29], [HALF, HALF], 0.25), ([30, 31], [HALF, HALF], 0.25)), curve(SQRT, [32, 33]),
        curve(RECIPROCAL, [34, 35]), product(*((24 + i, 36 + i // 2) for i in range(4))),
        affine(*(([38 + i], [[2.0, 3.0][i % 2]], 0) for i in range(4))),
    ], [42, 43, 44, 45], float32=0)  # fmt: skip


def test_a_hard_sigmoid_and_a_product_of_matrices() -> None:
    b, x = start()
    y = b.call("MatMul", x, b.call("HardSigmoid", x, alpha=0.25, beta=0.5))
    cells = [[(i, 20), (i + 1, 22), (i, 21), (i + 1, 23)] for i in (0, 2)]
    check_bytes(finish(b, b.call("Flatten", y)), [
        affine(*(([i], [0.25], 0.5) for i in range(4))), rectifier(0, list(range(4, 8))),
        affine(*(([8 + i], [-1], 1) for i in range(4))), rectifier(0, list(range(12, 16))),
        affine(*(([16 + i], [-1], 1) for i in range(4))),
        product(*cells[0], *cells[1]), affine(*(([24 + 2 * i, 25 + 2 * i], [1, 1], 0) for i in range(4))),
    ], [32, 33, 34, 35])  # fmt: skip


def cell(operator: str, gates: int, *more: str, **options: Any) -> tuple[Builder, str]:
    """Over two words of two numbers each, one hidden unit: the last state twice."""
    b, x = start()
    steps = b.call("Transpose", x, perm=[1, 0, 2])
    w = b.constant(np.arange(1, 2 * gates + 1, dtype=np.float32).reshape(1, gates, 2))
    r = b.constant(np.arange(gates, dtype=np.float32).reshape(1, gates, 1) - 0.5)
    b.node(operator, [steps, w, r, *more], ["", "last"], hidden_size=1, **options)
    flat = b.call("Reshape", "last", b.wholes(1, 1))
    return b, b.call("Concat", flat, flat, axis=1)


def gate(i: int, x: list[int], h: int, one: list[int], b: tuple[float, float] = (0, 0)) -> Row:
    return [*x, h, *one], [2 * i + 1, 2 * i + 2, i - 0.5, *([b[1]] if one else [])], b[0]


def test_an_lstm_is_seven_layers_a_step() -> None:
    """Without B there is no element 1; states begin with the constant 0, element 0."""
    b, last = cell("LSTM", 4)
    layers: list[bytes] = []
    h, c_, at = 0, 0, 5
    for step in range(2):
        x = [1 + 2 * step, 2 + 2 * step]
        layers += [
            affine(*(gate(i, x, h, []) for i in range(4))), curve(SIGMOID, range(at, at + 3)), curve(TANH, [at + 3]),
            product((at + 6, c_), (at + 4, at + 7)), affine(([at + 8, at + 9], [1, 1], 0)), curve(TANH, [at + 10]),
            product((at + 5, at + 11)),
        ]  # fmt: skip
        h, c_, at = at + 12, at + 10, at + 13
    check_bytes(finish(b, last), layers, [h, h], constants=[0])


def test_a_gru_resets_before_or_behind_its_matrix() -> None:
    """With B the element 1 has R's biases; backwards from the second word, of which sequence_lens leaves one."""
    biases = [0.5, -1.0, 4.0, 0.25, 8.0, -2.0]
    for linear in (0, 1):
        b, last = cell("GRU", 3, "bias", linear_before_reset=linear, direction="reverse")
        b.initializers.append(numpy_helper.from_array(np.array([biases], np.float32), "bias"))
        layers: list[bytes] = []
        h, at = 0, 6  # constants 0 and 1, embedding 2 to 5
        for x in ([4, 5], [2, 3]):
            rows = [gate(i, x, h, [1], (biases[i], biases[3 + i])) for i in range(2)]
            layers += [affine(*rows), curve(SIGMOID, [at, at + 1])]
            z, r = at + 2, at + 3
            if linear:
                layers += [
                    affine(([h, 1], [1.5, biases[5]], 0)), product((r, at + 4)), affine((x, [5, 6], biases[2])),
                    affine(([at + 6, at + 5], [1, 1], 0)), curve(TANH, [at + 7]),
                ]  # fmt: skip
                at += 8
            else:
                layers += [
                    product((r, h)), affine(gate(2, x, at + 4, [1], (biases[2], biases[5]))), curve(TANH, [at + 5]),
                ]  # fmt: skip
                at += 6
            layers += [
                affine(([z], [-1], 1)), product((at + 1, at), (z, h)), affine(([at + 2, at + 3], [1, 1], 0)),
            ]  # fmt: skip
            h, at = at + 4, at + 5
        check_bytes(finish(b, last), layers, [h, h], constants=[0, 1])


STATEMENT: tuple[Inputs, Words] = ([["words", [1, 2, 3]]], [[0, [[1], [2]]], [2, [[3], [0]]]])


def hash_by_python(model: bytes) -> str:
    inputs = [c.Input("words", (1, 2, 3))]
    words = [c.Word(0, ((1,), (2,))), c.Word(2, ((3,), (0,)))]
    try:
        return lowered_by_python(model, inputs, words).sha256
    except (check.Refused, check.Unusable):
        return "none"


def compare(models: list[bytes]) -> Counter[bool]:
    """How many have a network (the same), and how many have none."""
    lines = lowered([Statement(model, *STATEMENT) for model in models])
    hashes = [line.split(":")[0] for line in lines]
    for model, line, found in zip(models, lines, hashes, strict=True):
        assert found == hash_by_python(model), (line, onnx.load_from_string(model).graph.node)
    return Counter(found != "none" for found in hashes)


def test_random_models_have_the_same_network() -> None:
    seed = drawn_seed()
    assert compare([smooth_model(seed + i) for i in range(60 * FACTOR)]) == {True: 60 * FACTOR}


OPERATORS = [
    "Exp", "Tanh", "Sigmoid", "Erf", "Reciprocal", "Sqrt", "Mul", "Div", "Pow", "HardSigmoid", "Gelu", "Softmax",
    "LogSoftmax", "LayerNormalization", "ReduceL2", "ReduceSumSquare", "MatMul", "LSTM", "GRU", "RNN", "Add",
    "ReduceMax", "Relu",
]  # fmt: skip
ATTRIBUTES = [
    "axis", "axes", "keepdims", "noop_with_empty_axes", "alpha", "beta", "epsilon", "stash_type", "approximate",
    "hidden_size", "direction", "layout", "activations", "input_forget", "linear_before_reset", "clip",
    "activation_alpha",
]  # fmt: skip
VALUES: list[Any] = [
    0, 1, -1, 2, -2, 0.5, 0.0, -0.25, [0], [1], [1, 2], [-1], ["Sigmoid", "Tanh", "Tanh"], ["TANH"],
    ["sigmoid", "tanh"], ["Sigmoid", "Tanh"] * 2, ["Relu"], "none", "tanh", "forward", "reverse", "bidirectional",
    "Reverse", [0.5], [],
]  # fmt: skip


def changed_array(array: Any, source: random.Random) -> Any:
    kinds = [np.float64, np.float32, np.int64]
    match source.randrange(6):
        case 0:
            return array.reshape(-1)
        case 1:
            return array[None]
        case 2:
            return array.reshape(-1)[:1]
        case 3:
            return array.astype(source.choice(kinds))
        case 4:
            return np.squeeze(array)
        case _:
            return np.full_like(array, source.choice([0, 1, 2, 3, 0.5, -1]))


def mutant(model: Any, source: random.Random) -> bytes:
    """An operator, an attribute, an input, an output or a constant is changed."""
    graph = model.graph
    node = source.choice(graph.node)
    names = ["", "tokens", *(each.name for each in graph.initializer), *(out for n in graph.node for out in n.output)]
    match source.randrange(9):
        case 0:
            node.op_type = source.choice(OPERATORS)
        case 1 if node.attribute:
            node.attribute.remove(source.choice(node.attribute))
        case 2 | 3:
            name, value = source.choice(ATTRIBUTES), source.choice(VALUES)
            for each in [each for each in node.attribute if each.name == name]:
                node.attribute.remove(each)
            kind = onnx.AttributeProto.STRINGS if value == [] else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        case 4:
            node.input[source.randrange(len(node.input))] = source.choice(names)
        case 5:
            node.input.append(source.choice(names))
        case 6:
            node.output.append(source.choice(["", "another"]))
        case 7:
            node.output[0] = source.choice(["", "another"])
        case _:
            tensor = source.choice(graph.initializer)
            changed = changed_array(numpy_helper.to_array(tensor), source)
            tensor.CopyFrom(numpy_helper.from_array(np.array(changed), tensor.name))
    return bytes(model.SerializeToString())


def test_broken_models_have_the_same_network_or_none() -> None:
    seed = drawn_seed()
    models = []
    for i in range(200 * FACTOR):
        model = smooth_model(seed + i, steps=[recurrent, unary] if i % 3 == 0 else None)
        models.append(mutant(onnx.load_from_string(model), random.Random(seed + i)))
    assert min(compare(models).values()) > 20
