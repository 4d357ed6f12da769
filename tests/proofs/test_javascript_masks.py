"""check.js on minus infinity: what sections 4.1 and 4.2 of FORMAT.md make of masks, written down by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_checkers import verdicts_of
from graph_builder import Builder, floats, tokens
from javascript_networks import (
    Inputs,
    Statement,
    affine,
    certificate,
    claim,
    curve,
    embedding,
    lowered,
    maximum,
    network,
    product,
    rectifier,
    write_certificates,
)  # fmt: skip
from onnx import TensorProto, helper

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")

INF = float("inf")
LOW = float("nan")  # stands for minus infinity, or for a number in its place
LEAST = 2.0**-126
EXP, RECIPROCAL = 1, 5
TABLE = [[1.0, 2.0], [3.0, -0.5], [0.25, 0.0]]
INPUTS: Inputs = [["words", [0, 2]]]


class Graph(Builder):
    """From `x`, two words of two numbers: elements 0 to 3 of the layers."""

    def __init__(self, low: float = -INF) -> None:
        super().__init__()
        self.low = low
        self.x = self.call("Gather", self.numbers(TABLE), "tokens")

    def numbers(self, values: Any) -> str:
        array = np.array(values, np.float32)
        return self.constant(np.where(np.isnan(array), np.float32(self.low), array))

    def masked(self, condition: Any) -> str:
        """x where the condition is 1."""
        return self.call("Where", self.constant(np.array(condition, bool)), self.x, self.numbers(LOW))

    def statement(self, logits: str) -> Statement:
        model = self.proto([tokens(1, 2)], [floats(self.call("Flatten", logits), 1, "n")], opset=20)
        return Statement(bytes(model.SerializeToString()), INPUTS, [])


Make = Callable[[Graph, str], str]
"""From what is LOW in one place, of shape (1, 2, 2)."""


def written(layers: list[bytes], logits: list[int], **more: Any) -> bytes:
    return network([embedding(TABLE, [0, 1]), *layers], logits, 2, **more)


def expect(statement: Statement, expected: bytes) -> None:
    (line,) = lowered([statement], whole=True)
    assert not line.startswith("none: "), line
    assert bytes.fromhex(line.split()[1]) == expected


def test_a_maximum_is_of_the_words_that_are_not_masked() -> None:
    """Where one has no such words, a Relu makes it 0: this has a float32 level."""
    g = Graph()
    top = g.call("ReduceMax", g.masked([[[1], [0]]]), g.wholes(2), keepdims=0)
    expect(g.statement(g.call("Relu", top)), written([maximum([1, 2]), rectifier(0, [5])], [6, 0], constants=[0]))


def test_masks_by_moving() -> None:
    """Padded, pooled, set beside, reversed; and the greatest of inputs, one of which is numbers."""
    g = Graph()
    padded = g.call("Pad", g.x, g.wholes(0, 1, 0, 0, 0, 0), g.numbers(-INF))
    pooled = g.call("MaxPool", g.call("Transpose", padded, perm=[0, 2, 1]), kernel_shape=[2])  # rows 4, 5 and 6, 7
    beside = g.call("Concat", pooled, g.numbers([[[-INF, 0.5], [-INF, -INF]]]), axis=2)
    turned = g.call("Slice", beside, g.wholes(-1), g.wholes(-9), g.wholes(2), g.wholes(-1))
    most = g.call("Max", turned, turned, g.numbers([[[-INF], [-2.0]]]))
    expect(g.statement(g.call("GlobalMaxPool", most)), written([
        maximum([3 - 1], [2, 4], [3], [3, 5]),
        maximum([1], [7], [6], [0], [0], [0, 9], [0, 8]), maximum([10, 11, 12], [13, 14, 15, 16]),
    ], [17, 18], constants=[-2, 0.5]))  # fmt: skip


def test_attention_sees_what_is_not_masked() -> None:
    """The second word sees both, the first itself: what is masked weighs 0, and its products are left out."""
    g = Graph()
    weights = g.call("Softmax", g.call("Add", g.x, g.numbers([[0, -INF], [0, 0]])))
    expect(g.statement(g.call("MatMul", weights, g.x)), written([
        affine(([0], [1], 0), ([2], [1], 0), ([3], [1], 0)), maximum([4], [5, 6]),
        affine(([4, 7], [1, -1], 0), ([5, 8], [1, -1], 0), ([6, 8], [1, -1], 0)), curve(EXP, [9, 10, 11]),
        affine(([12], [1], 0), ([13, 14], [1, 1], 0)), curve(RECIPROCAL, [15, 16]),
        product((12, 17), (13, 18), (14, 18)),
        product((19, 0), (19, 1), (20, 0), (21, 2), (20, 1), (21, 3)),
        affine(([22], [1], 0), ([23], [1], 0), ([24, 25], [1, 1], 0), ([26, 27], [1, 1], 0)),
    ], [28, 29, 30, 31], float32=0))  # fmt: skip


def test_lines_along_another_axis() -> None:
    g = Graph()
    weights = g.call("Softmax", g.masked([[1, 0], [1, 1]]), axis=1)
    expect(g.statement(g.call("Neg", weights)), written([
        maximum([1, 3], [4]), affine(([1, 5], [1, -1], 0), ([3, 5], [1, -1], 0), ([4, 6], [1, -1], 0)),
        curve(EXP, [7, 8, 9]), affine(([10, 11], [1, 1], 0), ([12], [1], 0)), curve(RECIPROCAL, [13, 14]),
        product((10, 15), (11, 15), (12, 16)), affine(*(([i], [-1], 0) for i in (17, 0, 18, 19))),
    ], [20, 21, 22, 23], constants=[0], float32=0))  # fmt: skip


def test_sums_products_and_powers_of_masked_words() -> None:
    g = Graph()
    total = g.call("Sum", g.x, g.numbers([[0.5, -INF], [0.5, 0.5]]), g.x)
    scaled = g.call("Div", g.call("Mul", total, g.numbers([[-2.0, 2.0], [0.0, 4.0]])), g.numbers(0.5))
    shifted = g.call("Sub", g.call("Add", scaled, g.numbers([[1.0, 1.0], [-INF, 1.0]])), g.x)
    expect(g.statement(g.call("Exp", shifted)), written([
        affine(*(([i, 1, i], [1, 1, 1], 0) for i in (2, 4, 5))), affine(([6], [-2], 0), ([7], [0], 0), ([8], [4], 0)),
        affine(*(([i], [2], 0) for i in (9, 10, 11))), affine(([12], [1], 1), ([14], [1], 1)),
        affine(([15, 2], [1, -1], 0), ([16, 5], [1, -1], 0)), curve(EXP, [17, 18]),
    ], [19, 0, 0, 20], constants=[0, 0.5], float32=0))  # fmt: skip


def test_a_product_of_matrices_without_any_product() -> None:
    """Its sums are of nothing; and the layer of products is not made."""
    g = Graph()
    nothing = g.call("Relu", g.masked([[0, 0], [0, 1]]))
    rows = g.call("Slice", nothing, g.wholes(0), g.wholes(1), g.wholes(1))
    empty = network([affine(([], [], 0), ([], [], 0))], [0, 1], 2, float32=0)
    expect(g.statement(g.call("MatMul", rows, g.x)), empty)
    g = Graph()
    nothing = g.call("Relu", g.masked([[0, 0], [0, 1]]))
    expect(g.statement(g.call("MatMul", nothing, g.x)), written([
        rectifier(0, [3]), product((4, 2), (4, 3)),
        affine(([], [], 0), ([], [], 0), ([5], [1], 0), ([6], [1], 0)),
    ], [7, 8, 9, 10], float32=0))  # fmt: skip


@pytest.mark.parametrize("low", [-INF, 0.5])
def test_what_calculates_with_it_has_no_float32_level(low: float) -> None:
    """Moves, maxima and rectifiers have."""
    makers: list[tuple[bool, Make]] = [
        (True, lambda g, m: g.call("Relu", m)), (True, lambda g, m: g.call("Max", m, g.numbers(0.0))),
        (True, lambda g, m: g.call("Relu", g.call("Sum", m))),
        (True, lambda g, m: g.call("ReduceMax", g.call("Concat", m, g.x, axis=2), g.wholes(2))),
        (False, lambda g, m: g.call("Exp", m)), (False, lambda g, m: g.call("Relu", g.call("Add", m, g.x))),
        (False, lambda g, m: g.call("Relu", g.call("Add", g.x, g.numbers([LOW, 1.0])))),
        (False, lambda g, m: g.call("Relu", g.call("Sub", m, g.x))),
        (False, lambda g, m: g.call("Relu", g.call("Sum", m, g.x, g.x))),
        (False, lambda g, m: g.call("Relu", g.call("Mul", m, g.numbers(0.5)))),
        (False, lambda g, m: g.call("Relu", g.call("Div", m, g.numbers(0.5)))),
    ]  # fmt: skip
    statements = []
    for _, make in makers:
        g = Graph(low)
        statements.append(g.statement(make(g, g.masked([[0, 1], [1, 1]]))))
    flags = [bytes.fromhex(line.split()[1])[16] for line in lowered(statements, whole=True)]
    assert flags == [int(is_kept or low > -INF) for is_kept, _ in makers]


# ---- constants: each is set beside x as the third input of a Max, whose windows show what it is ----------------------


def beside(g: Graph, number: str) -> Statement:
    return g.statement(g.call("Max", g.x, g.x, number))


def shown(number: float | None, **more: Any) -> bytes | None:
    """None is refused."""
    if number is None:
        return None
    if number == -INF:
        return written([maximum([0], [1], [2], [3])], [4, 5, 6, 7], **more)
    return written([maximum([0, 1], [0, 2], [0, 3], [0, 4])], [5, 6, 7, 8], constants=[number], **more)


def expect_each(cases: list[tuple[Statement, bytes | None, Any]]) -> None:
    lines = lowered([statement for statement, _, _ in cases], whole=True)
    for line, (_, expected, what) in zip(lines, cases, strict=True):
        found = None if line.startswith("none: ") else bytes.fromhex(line.split()[1])
        assert found == expected, (what, line[:200])
        assert "BigInt" not in line, what  # refused, not failed


MOST = 2.0**128 - 2.0**104
COMPUTED: list[tuple[str, list[Any], float | None]] = [
    ("Add", [-INF, 3.0], -INF), ("Add", [-INF, -INF], -INF), ("Sub", [-INF, -3.0], -INF), ("Sub", [3.0, -INF], None),
    ("Sub", [-INF, -INF], None), ("Mul", [2.0, -INF], -INF), ("Mul", [-INF, 0.0], None), ("Mul", [-INF, -1.0], None),
    ("Mul", [-INF, -INF], None), ("Div", [-INF, 4.0], -INF), ("Div", [-INF, -4.0], None), ("Div", [-INF, 0.0], None),
    ("Div", [1.0, -INF], None), ("Div", [-INF, -INF], None), ("Max", [-INF, -5.0], -5), ("Max", [-INF, -INF], -INF),
    ("Min", [-INF, -5.0], -INF), ("Clip", [-INF, -7.0, 9.0], -7), ("Clip", [4.0, -INF, 3.0], 3),
    ("Clip", [4.0, -INF, -INF], -INF), ("ReduceSum", [[-INF, 1.0]], None), ("ReduceMax", [-INF], None),
    ("Neg", [-INF], None), ("Exp", [-INF], None), ("Relu", [-INF], None), ("Sum", [-INF, 1.0], None),
    ("Max", [-INF, 1.0, 2.0], None),
    ("Add", [MOST, 0.0], MOST), ("Sub", [-MOST, 1.0], None), ("Mul", [2.0**127, 2.0], None),
    ("Mul", [-(2.0**127), 2.0], None), ("Div", [1.0, 2.0**-128], None), ("ReduceSum", [[2.0**127] * 2], None),
    ("ReduceSum", [[2.0**127, 2.0**127, -(2.0**127)]], 2.0**127), ("ReduceSum", [[2.0**24, 1.0, -1.0]], 2.0**24),
]  # fmt: skip


def test_computed_constants() -> None:
    """Minus infinity and whole numbers up to 2^24 leave the float32 level, other numbers do not."""
    cases: list[tuple[Statement, bytes | None, Any]] = []
    for operator, values, expected in COMPUTED:
        g = Graph()
        given: dict[str, Any] = {"keepdims": 0} if "Reduce" in operator else {}
        number = g.call(operator, *map(g.numbers, values), **given)
        keeps = expected in (None, -INF) or abs(expected) < 2**24
        cases.append((beside(g, number), shown(expected, float32=int(keeps)), (operator, values)))
    g = Graph()
    tiny = g.call("Mul", g.numbers(-INF), g.numbers(LEAST / 2))
    cases.append((beside(g, tiny), shown(-INF, float32=0), "a tiny factor"))
    g = Graph()
    twice = g.call("Mul", g.call("Add", g.numbers(-INF), g.numbers(0.5)), g.numbers(2.0))
    cases.append((beside(g, twice), shown(-INF), "of what was computed"))
    expect_each(cases)


def test_comparisons() -> None:
    cases: list[tuple[Statement, bytes | None, Any]] = []
    for operator, left, right in [
        ("Equal", -INF, -INF), ("Less", -INF, -MOST), ("LessOrEqual", -INF, -INF), ("Greater", 0.0, -INF),
        ("GreaterOrEqual", -INF, -INF),
    ]:  # fmt: skip
        g = Graph()
        bit = g.call(operator, g.numbers(left), g.numbers(right))
        cases.append((beside(g, g.call("Where", bit, g.numbers(7.0), g.numbers(-INF))), shown(7), operator))
        g = Graph()
        bit = g.call("Not", g.call(operator, g.numbers(left), g.numbers(right)))
        cases.append((beside(g, g.call("Where", bit, g.numbers(7.0), g.numbers(-INF))), shown(-INF), operator))
    expect_each(cases)


def stored(kind: int, number: float, raw: bool) -> Statement:
    """A model of this type, with the number as the third input of a Max."""
    types: dict[int, Any] = {
        TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.FLOAT16: np.float16,
    }  # fmt: skip
    g = Builder()
    for name, value in (("table", TABLE), ("number", [number])):
        array = np.array(value, types[kind])
        data = array.tobytes() if raw else array.ravel()
        g.initializers.append(helper.make_tensor(name, kind, array.shape, data, raw=raw))
    x = g.call("Gather", "table", "tokens")
    z = g.call("Flatten", g.call("Max", x, x, "number"))
    return Statement(bytes(g.proto([tokens(1, 2)], [floats(z, 1, "n")]).SerializeToString()), INPUTS, [])


def test_stored_minus_infinity() -> None:
    """In every place where numbers are stored; plus infinity and NaN nowhere."""
    cases: list[tuple[Statement, bytes | None, Any]] = []
    for kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        for raw in (True, False):
            for number in (-INF, INF, float("nan")):
                expected = shown(-INF if number == -INF else None, float32=int(kind == TensorProto.FLOAT))
                cases.append((stored(kind, number, raw), expected, (kind, raw, number)))
    for number in (-INF, INF, float("nan")):
        given: dict[str, Any]
        for given in ({"value_float": number}, {"value_floats": [number]}):
            g = Graph()
            expected = shown(-INF if number == -INF else None)
            cases.append((beside(g, g.call("Constant", **given)), expected, given))
    tensor = helper.make_tensor("", TensorProto.FLOAT, [1], [-INF])
    for operator, more in (("Constant", []), ("ConstantOfShape", [[2, 1]])):
        g = Graph()
        made = g.call(operator, *(g.wholes(*shape) for shape in more), value=tensor)
        cases.append((beside(g, made), shown(-INF), operator))
    for ratio, expected in ((0.5, shown(7)), (-INF, None)):
        g = Graph()
        cases.append((beside(g, g.call("Dropout", g.numbers(7.0), ratio=ratio)), expected, "another attribute"))
    expect_each(cases)


def test_the_greatest_number_of_other_types() -> None:
    """DOUBLE numbers may be computed beyond what may be stored; half of a FLOAT16 model's are soon too large."""
    cases: list[tuple[Statement, bytes | None, Any]] = []
    for kind, factors, fits in [
        (np.float64, [2.0**127] * 8 + [2.0**7], True), (np.float64, [2.0**127] * 8 + [2.0**8], False),
        (np.float16, [32752.0, 2.0], True), (np.float16, [32768.0, 2.0], False), (np.float16, [32768.0, -2.0], False),
        (np.float16, [636.0, 103.0], False),
    ]:  # fmt: skip
        b = Builder()
        x = b.call("Gather", b.constant(np.array(TABLE, kind)), "tokens")
        number = b.constant(np.array(factors[0], kind))
        for factor in factors[1:]:
            number = b.call("Mul", number, b.constant(np.array(factor, kind)))
        z = b.call("Flatten", b.call("Max", x, x, number))
        model = bytes(b.proto([tokens(1, 2)], [floats(z, 1, "n")]).SerializeToString())
        expected = shown(float(np.prod(np.array(factors, np.float64))) if fits else None, float32=0)
        cases.append((Statement(model, INPUTS, []), expected, factors))
    expect_each(cases)


# ---- what refuses it -------------------------------------------------------------------------------------------------


def of_it(operator: str, *others: Any, **attributes: Any) -> tuple[str, Make]:
    """The operator on it, and on these numbers."""
    return f"{operator} {others}", lambda g, m: g.call(operator, m, *map(g.numbers, others), **attributes)


def of_x(operator: str, *others: Any, **attributes: Any) -> tuple[str, Make]:
    """The operator on x, and on these numbers."""
    return f"{operator} x {others}", lambda g, _: g.call(operator, g.x, *map(g.numbers, others), **attributes)


def recurrent(g: Graph, x: str, *more: str) -> str:
    weights = [g.numbers([[[1.0, 1.0]]]), g.numbers([[[1.0]]])]
    return g.call("RNN", g.call("Transpose", x, perm=[1, 0, 2]), *weights, *more)


REFUSING: list[tuple[str, Make]] = [
    *(of_it(operator) for operator in (
        "Neg", "Abs", "LeakyRelu", "Gelu", "Tanh", "Sigmoid", "Erf", "Sqrt", "Reciprocal", "Min",
        "HardSigmoid", "Clip", "ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare", "GlobalAveragePool",
    )),
    of_it("PRelu", 0.5), of_it("Pow", 2.0), of_it("Mul", 0.0), of_it("Mul", -1.0),
    of_it("Mul", [[0.0, 1.0]] * 2), of_it("Div", -1.0), of_it("Max", 1.0), of_it("Max", [0.0, 0.5]),
    of_it("Min", 0.0), of_it("Min", 0.0, 0.0),
    of_it("MatMul", [[1.0], [0.0]]), of_it("LayerNormalization", [1.0, 1.0]), of_it("AveragePool", kernel_shape=[1]),
    of_it("Conv", [[[1.0]], [[1.0]]], group=2), of_it("BatchNormalization", *[[1.0, 1.0]] * 4),
    of_it("MaxPool", kernel_shape=[1]), of_it("MaxPool", kernel_shape=[2], pads=[1, 0]),
    ("GlobalMaxPool", lambda g, _: g.call("GlobalMaxPool", g.masked([[0, 0], [1, 1]]))),
    of_it("ReduceSum", noop_with_empty_axes=1), of_it("ReduceMean", noop_with_empty_axes=1),
    of_x("Sub", LOW), of_x("Mul", LOW), of_x("Div", LOW), of_x("Max", LOW), of_x("Min", LOW), of_x("Clip", LOW),
    of_x("MatMul", [[1.0], [LOW]]), of_x("PRelu", LOW), of_x("Dropout", LOW), of_x("LayerNormalization", [1.0, LOW]),
    ("Mul x", lambda g, m: g.call("Mul", m, g.x)), ("Div x", lambda g, m: g.call("Div", m, g.x)),
    ("x / it", lambda g, m: g.call("Div", g.x, m)), ("number / it", lambda g, m: g.call("Div", g.numbers(1.0), m)),
    ("LOW / x", lambda g, _: g.call("Div", g.numbers(LOW), g.x)), ("x - it", lambda g, m: g.call("Sub", g.x, m)),
    ("LOW - it", lambda g, m: g.call("Sub", g.numbers(LOW), m)), ("Min x", lambda g, m: g.call("Min", m, g.x)),
    ("MatMul x", lambda g, m: g.call("MatMul", g.x, m)), ("RNN", recurrent),
    ("state", lambda g, _: recurrent(g, g.x, "", "", g.numbers([[[LOW]]]))),
    ("bias", lambda g, m: g.call("Gemm", g.call("Flatten", g.x), g.numbers(np.eye(4)), g.numbers(LOW))),
    ("table", lambda g, _: g.call("Gather", g.numbers([[1.0, 2.0]] * 3 + [[0.0, LOW]]), "tokens")),
]  # fmt: skip


def is_refused(line: str) -> bool:
    return line.startswith("none: minus infinity ")


def test_all_else_refuses_it() -> None:
    """Also where an Exp would make it 0; the same with a number in its place is a network."""
    statements = []
    for low in (-INF, 0.5):
        for _, make in REFUSING:
            g = Graph(low)
            row = g.call("Reshape", g.call("Exp", make(g, g.masked([[0, 1], [1, 1]]))), g.wholes(1, -1))
            statements.append(g.statement(g.call("Concat", row, row, axis=1)))
    lines = lowered(statements)
    masked, other = lines[: len(REFUSING)], lines[len(REFUSING) :]
    assert [what for (what, _), line in zip(REFUSING, masked, strict=True) if not is_refused(line)] == []
    assert [(what, line) for (what, _), line in zip(REFUSING, other, strict=True) if "none" in line] == []


def test_a_line_of_nothing_else_has_no_softmax() -> None:
    statements = []
    for condition, axis in [([[1], [0]], 2), ([[1, 0]], 1), ([[1, 0]], 2), ([[1], [0]], 1)]:
        g = Graph()
        statements.append(g.statement(g.call("Neg", g.call("Softmax", g.masked(condition), axis=axis))))
    assert list(map(is_refused, lowered(statements))) == [True, True, False, False]


@pytest.mark.parametrize("operator", ["Identity", "Sum", "Softmax", "Relu"])
def test_logits_refuse_it(operator: str) -> None:
    """Those of a head too."""
    statements = []
    for low in (-INF, 0.5):
        g = Graph(low)
        z = g.call(operator, g.call("Flatten", g.masked([[0, 1], [1, 1]])))
        model = g.proto([tokens(1, 2)], [floats(z, 1, 4)], opset=20)
        statements.append(Statement(bytes(model.SerializeToString()), INPUTS, []))
    assert list(map(is_refused, lowered(statements))) == [operator != "Relu", False]


def test_a_word_that_attention_does_not_see_changes_nothing(tmp_path: Path) -> None:
    """By every leaf: sentences, boxes, attention, expansion. With 0 in place of the mask the other word wins."""
    certificates = []
    for name, low in (("masked.onnx", -INF), ("seen.onnx", 0.0)):
        g = Graph(low)
        scores = g.call("Slice", g.x, g.wholes(0), g.wholes(1), g.wholes(1))
        weights = g.call("Softmax", g.call("Add", scores, g.numbers([0.0, LOW])))
        model = g.statement(g.call("MatMul", weights, g.x)).model
        (tmp_path / name).write_bytes(model)
        text = {"inputs": INPUTS, "words": [[1, [[2], [1]]]]}
        for leaf in (b"\2", b"\x18\0", b"\x19", b"\x1a\0\0"):
            lower = claim("real", 1, leaf) | {"recipe": "smooth-1"}
            certificates.append(certificate(name, model, text, 1, lower=lower))
    write_certificates(tmp_path, certificates)
    assert list(verdicts_of("check.js", tmp_path).values()) == [True] * 4 + [False] * 4
