"""check.js and check.py on operators, case by case: what the format takes, and what it does not."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from both_checkers import CHECKERS, SECONDS
from graph_builder import floats, model_of, tokens
from growing_networks import POSITIONS, WIDTH, Growing
from javascript_networks import canonical, certificate, claim, one_by_one, sha256, with_networks
from resident_checkers import checked_by

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def code(checker: str, file: Path) -> int:
    return checked_by(checker, str(file)).returncode


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("Equal", "tokens", 0), 0), (("Greater", "tokens", 3), 4), (("Equal", "tokens", "tokens"), 2),
        (("Equal", "tokens", 0.5), 2), (("Equal", "embedded", 0.5), 2), (("Not", "tokens"), 2), (("Not", 2), 2),
        (("Div", "tokens", 7), 0), (("Div", "tokens", 4), 4), (("Div", "tokens", 0), 4), (("Div", 1, 0), 2),
        (("Mul", "tokens", 2**62), 4), (("Mul", 2**62, 2), 2),
        (("Clip", "tokens", 9, 0), 0), (("Clip", "tokens", 1, 0), 4), (("Clip", 1, "tokens"), 2),
        (("Range", 0, 1, 1), 0), (("Range", 0, 1, 0), 2), (("ReduceSum", "tokens"), 2), (("Sin", 1), 2),
    ],
)  # fmt: skip
def test_conditions_get_the_exit_code_of_the_format(tmp_path: Path, condition: tuple[Any, ...], expected: int) -> None:
    """What Where looks at is a constant, the same for all choices of the text: else 4. What no text could mend is 2."""
    operator, *inputs = condition
    graph = Growing(random.Random(1))
    assert list(graph.inputs) == ["tokens"]
    names = [
        x if isinstance(x, str) else graph.constant(np.array(x, np.float32 if isinstance(x, float) else np.int64))
        for x in inputs
    ]
    found = graph.call(operator, *names)
    bit = graph.call("Gather", graph.call("Reshape", found, graph.wholes(-1)), graph.wholes(0))
    chosen = graph.call("Where", bit, "embedded", graph.call("Neg", "embedded"))
    weights = graph.constant(np.array([[0, 1]] * POSITIONS * WIDTH, np.float32))
    flat = graph.call("Abs", graph.call("Flatten", chosen))
    model = graph.model(graph.call("MatMul", flat, weights))
    (tmp_path / "m.onnx").write_bytes(model)
    text = one_by_one([[1, 2, 5], [3], [2, 4], [6]])
    (data,) = with_networks([certificate("m.onnx", model, text, 1, lower=claim("float32", 2, b"\2"))], tmp_path)
    (tmp_path / "case.json").write_bytes(canonical(data))
    assert {checker: code(checker, tmp_path / "case.json") for checker in CHECKERS} == dict.fromkeys(CHECKERS, expected)


# ---- what the format takes and what it does not, case by case -----------------------------------------------------

node = onnx.helper.make_node
TWO = [[1, 0], [2, 0]]  # rows of the table: class 0 wins, whichever of the two words stands there


@dataclass
class Case:
    """From `f`, a row of the table, nodes make the logits `z`. Lists of floats are FLOAT constants, others INT64."""

    nodes: list[Any]
    constants: dict[str, Any]
    code: int
    level: str = "real"
    rows: Any = None
    change: Any = lambda model: None
    tensors: dict[str, bytes] | None = None

    def model(self) -> bytes:
        constants = {"table": np.array(self.rows or TWO, np.float32)}
        for name, value in self.constants.items():
            array = np.array(value)
            constants[name] = array.astype(np.float32) if array.dtype == np.float64 else array
        first = [node("Gather", ["table", "tokens"], ["e"]), node("Flatten", ["e"], ["f"])]
        model = model_of(first + self.nodes, constants, [tokens(1, 1)], [floats("z", 1, 2)], opset=18, ir_version=9)
        data = self.change(model)
        return data if isinstance(data, bytes) else bytes(model.SerializeToString())

    def write(self, folder: Path, *, bound: bool = True) -> Path:
        """`bound` to its network, which takes as long to make as to read."""
        model = self.model()
        (folder / "m.onnx").write_bytes(model)
        data = certificate("m.onnx", model, one_by_one([[0, 1]]), 0, lower=claim(self.level, 1, b"\1"))
        for name, content in (self.tensors or {}).items():
            (folder / name).write_bytes(content)
            data["model"]["tensors"].append([name, sha256(content)])
        (data,) = with_networks([data], folder) if bound else [data | {"network": "0" * 64}]
        (folder / "case.json").write_bytes(canonical(data))
        return folder / "case.json"

    def check(self, folder: Path) -> None:
        file = self.write(folder)
        assert {checker: code(checker, file) for checker in CHECKERS} == dict.fromkeys(CHECKERS, self.code)


EYE = [[1.0, 0.0], [0.0, 1.0]]


def gemm(code: int, level: str, *, with_c: bool, **attributes: Any) -> Case:
    inputs = ["f", "w", "c"] if with_c else ["f", "w"]
    constants = {"w": EYE, "c": [0.5, 0.0]} if with_c else {"w": EYE}
    return Case([node("Gemm", inputs, ["z"], **attributes)], constants, code, level)


@pytest.mark.parametrize(
    "case",
    [
        gemm(0, "float32", with_c=True), gemm(0, "float32", with_c=False, beta=2.0),
        gemm(4, "float32", with_c=True, beta=2.0), gemm(0, "real", with_c=True, beta=2.0),
        gemm(4, "float32", with_c=True, beta=0.0), gemm(4, "float32", with_c=False, alpha=2.0),
        gemm(4, "float32", with_c=True, alpha=0.5), gemm(0, "real", with_c=True, alpha=0.5),
        # It counts, though no logit is read from it.
        Case([node("Gemm", ["f", "w"], ["g"], alpha=2.0), node("Concat", ["f", "g"], ["h"], axis=1),
              node("Slice", ["h", "from", "to", "axis"], ["z"])],
             {"w": EYE, "from": [0], "to": [2], "axis": [1]}, 4, "float32"),
        # It does not count.
        Case([node("Gemm", ["f", "w"], ["g"], alpha=2.0), node("Identity", ["f"], ["z"])], {"w": EYE}, 0, "float32"),
    ],
)  # fmt: skip
def test_a_gemm_that_is_scaled_has_no_float32_level(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def added(operator: str, *numbers: float, code: int, level: str = "float32") -> Case:
    """The operator on these numbers; what it makes is added to the logits, or selects them."""
    constants: dict[str, Any] = {f"n{place}": n for place, n in enumerate(numbers)}
    made = [node(operator, list(constants), ["made"])]
    if operator in COMPARISONS:
        made.append(node("Where", ["bit", "f", "f"], ["z"]))
        made[0].output[0] = "bit"
    else:
        made.append(node("Add", ["f", "made"], ["z"]))
    return Case(made, constants, code, level)


LEAST = 2.0**-126


@pytest.mark.parametrize(
    "case",
    [
        *(added(operator, LEAST, 0.0, code=0) for operator in COMPARISONS),
        *(added(operator, -LEAST / 2, 0.0, code=4) for operator in COMPARISONS),
        added("LessOrEqual", 0.0, 2.0**-149, code=4), added("LessOrEqual", 0.0, 2.0**-149, code=0, level="real"),
        added("Mul", LEAST, 0.0, code=0), added("Mul", LEAST / 2, 0.0, code=4),
        added("Div", LEAST, LEAST, code=0), added("Div", LEAST / 2, LEAST / 2, code=4),
        added("Div", 0.0, 3 * LEAST / 4, code=4),
        added("Max", LEAST, 1.0, code=0), added("Max", LEAST / 2, 1.0, code=4), added("Min", 1.0, -LEAST / 2, code=4),
        added("Min", 0.0, LEAST / 2, code=4), added("Sub", LEAST / 2, LEAST / 2, code=4),
        added("Add", LEAST / 2, -LEAST / 2, code=4),
        added("Clip", LEAST / 2, 1.0, code=4), added("Clip", LEAST, 1.0, 2.0, code=0),
        added("Clip", 0.0, 0.0, LEAST / 2, code=4),
        added("ReduceSum", LEAST / 2, code=4),
        # A weight is not computed from.
        Case([node("Mul", ["f", "n"], ["z"])], {"n": [1.0, LEAST / 2]}, 0, "float32"),
    ],
)  # fmt: skip
def test_constants_computed_from_numbers_that_may_be_read_as_0_have_no_float32_level(
    tmp_path: Path, case: Case
) -> None:
    case.check(tmp_path)


def large(most: float, *nodes: Any, code: int, level: str = "float32", **constants: Any) -> Case:
    return Case(list(nodes), constants, code, level, rows=[[most / 2, 0], [most, 0]])


@pytest.mark.parametrize(
    "case",
    [
        large(2.0**40, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=0),
        large(2.0**40 + 2.0**17, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=4),
        large(2.0**40 + 2.0**17, node("Mul", ["f", "n"], ["z"]), n=2.0**-4, code=0, level="real"),
        # With weight 0 it is no term.
        Case([node("MatMul", ["f", "w"], ["z"])], {"w": [[1.0, 0.0], [0.0, 0.0]]}, 0, "float32",
             [[1, 2**41], [2, 2**41]]),
        large(2.0**40, node("LeakyRelu", ["f"], ["z"], alpha=0.5), code=0),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=0.5), code=4),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=1.0), code=4),
        large(2.0**40 + 2.0**17, node("LeakyRelu", ["f"], ["z"], alpha=0.0), code=0),
        large(2.0**41, node("Relu", ["f"], ["z"]), code=0),
    ],
)  # fmt: skip
def test_float32_takes_no_term_above_2_to_the_40(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def selected(operator: str, *inputs: Any, code: int, **attributes: Any) -> Case:
    """The operator on these integers (or tokens); whether what it makes is above 0 selects the logits."""
    constants = {f"n{place}": n for place, n in enumerate(inputs) if not isinstance(n, str)}
    names = [n if isinstance(n, str) else f"n{place}" for place, n in enumerate(inputs)]
    nodes = [
        node(operator, names, ["made"], **attributes), node("Greater", ["made", "zero"], ["bit"]),
        node("Where", ["bit", "f", "f"], ["z"]),
    ]  # fmt: skip
    return Case(nodes, constants | {"zero": 0}, code)


@pytest.mark.parametrize(
    "case",
    [
        selected("Add", 2**31 - 2, 1, code=0), selected("Add", 2**31 - 1, 1, code=2),
        selected("Sub", 2 - 2**31, 2, code=0),
        selected("Sub", 1 - 2**31, 2, code=2), selected("Mul", 2**16, 2**15, code=2),
        selected("Mul", 2**16, -(2**15), code=0),
        selected("Div", 2**32, 2, code=2), selected("Div", 2**32, 4, code=0), selected("Max", 2**31, 0, code=2),
        selected("Max", -(2**31) - 1, 0, code=0), selected("Min", -(2**31) - 1, 0, code=2),
        selected("Min", 2**40, 0, code=0),
        selected("Clip", 2**31, 0, 5, code=2), selected("Clip", 2**31, "", 5, code=0), selected("Clip", 2**31, code=0),
        selected("ReduceSum", [2**30, 2**30], code=2, keepdims=0),
        selected("ReduceSum", [2**31, -1], code=0, keepdims=0),
        selected("Max", "tokens", 2**31, code=4), selected("Max", "tokens", 2**31 - 1, code=0),
        selected("Identity", 2**40, code=0), selected("Cast", 2**40, code=0, to=onnx.TensorProto.INT64),
        selected("Range", 2**40, 2**40 + 1, 1, code=0),
    ],
)  # fmt: skip
def test_computed_integers_stay_within_32_bits(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def windows(operator: str, code: int, **attributes: Any) -> Case:
    """Windows of one element, so every padding and dilation gives the same."""
    weights = ["w"] if operator == "Conv" else []
    empty = [name for name, value in attributes.items() if value == []]
    given: dict[str, Any] = {name: value for name, value in attributes.items() if value != []}
    if "kernel_shape" not in empty:
        given = {"kernel_shape": [1], **given}
    nodes = [
        node("Unsqueeze", ["f", "zero"], ["x"]),
        node(operator, ["x", *weights], ["y"], **given),
        node("Squeeze", ["y", "zero"], ["z"]),
    ]
    nodes[1].attribute.extend(onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS) for name in empty)
    return Case(nodes, {"zero": [0], "w": [[[1.0]]]}, code)


@pytest.mark.parametrize(
    "case",
    [
        windows("MaxPool", 2, auto_pad="SAME_UPPER", dilations=[2]),
        windows("MaxPool", 2, auto_pad="SAME_LOWER", dilations=[3]),
        windows("MaxPool", 0, auto_pad="SAME_UPPER", dilations=[1]),
        windows("MaxPool", 0, auto_pad="VALID", dilations=[2]),
        windows("MaxPool", 0, dilations=[2]), windows("Conv", 0, auto_pad="SAME_UPPER", dilations=[2]),
    ],
)  # fmt: skip
def test_maxpool_has_no_dilations_with_padding_that_is_found(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    "case",
    [
        *(windows(operator, 0, **{name: []})
          for operator in ("Conv", "MaxPool", "AveragePool") for name in ("strides", "dilations", "pads")),
        *(windows(operator, 0, strides=[], dilations=[], pads=[], auto_pad=automatic)
          for operator in ("Conv", "MaxPool", "AveragePool") for automatic in ("VALID", "SAME_UPPER", "SAME_LOWER")),
        windows("MaxPool", 0, pads=[], ceil_mode=1), windows("MaxPool", 2, pads=[0, 0], auto_pad="VALID"),
        windows("Conv", 2, kernel_shape=[]), windows("MaxPool", 2, kernel_shape=[]),
        windows("Conv", 2, strides=[1, 1]), windows("Conv", 2, pads=[0]),
        windows("GlobalMaxPool", 2, kernel_shape=[], strides=[]),
    ],
)  # fmt: skip
def test_an_empty_list_of_strides_dilations_or_pads_is_absent(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def spliced(tag: bytes, fields: bytes, place: Any, code: int, cleared: bool = False) -> Case:
    """These bytes among those of the table or of the attribute of a Dropout, where an ignored text would be."""

    def change(model: Any) -> bytes:
        message = place(model)
        if cleared:
            message.ClearField("raw_data")
        message.doc_string = "#" * (len(fields) - 2)
        data = bytes(model.SerializeToString())
        mark = tag + bytes([len(fields) - 2]) + b"#" * (len(fields) - 2)
        assert data.count(mark) == 1
        return data.replace(mark, fields)

    return Case([node("Dropout", ["f"], ["z"], ratio=0.5)], {}, code, change=change)


def in_tensor(code: int, fields: bytes, cleared: bool = False) -> Case:
    return spliced(b"\x62", fields, lambda model: model.graph.initializer[0], code, cleared)


def in_attribute(code: int, fields: bytes) -> Case:
    return spliced(b"\x6a", fields, lambda model: model.graph.node[-1].attribute[0], code)


FOUR = np.array(TWO, np.float32).tobytes()  # the numbers of the table


@pytest.mark.parametrize(
    "case",
    [
        # Tags: 22 float_data, 2a int32_data, 3a int64_data, 52 double_data, 0a dims. Beside raw_data:
        in_tensor(0, b"\x22\0" * 4), in_tensor(0, b"\x2a\0\x3a\0\x52\0\x22\0\x0a\0"),
        in_tensor(2, b"\x22\0\x22\x04" + FOUR[:4]), in_tensor(2, b"\x22\x10" + FOUR),
        *(in_tensor(2, tag + bytes([size]) + bytes(size))
          for tag in (b"\x22", b"\x52") for size in (1, 3, 5, 7, 9, 15)),
        in_tensor(2, b"\x3a\x01\0\x22\0\x22\0"), in_tensor(2, b"\x3a\x01\x80\x3a\x01\0\x22\0"),
        in_tensor(2, b"\x52\x04" + bytes(4) + b"\x52\x04" + bytes(4)),
        # In place of it:
        in_tensor(0, b"\x22\x10" + FOUR, True), in_tensor(2, b"\x22\x0f" + FOUR[:15], True),
        in_tensor(0, b"\x22\x08" + FOUR[:8] + b"\x22\0\x25" + FOUR[8:12] + b"\x52\0\x22\x04" + FOUR[12:], True),
        in_tensor(2, b"\x22\x06" + FOUR[:6] + b"\x22\x0a" + FOUR[6:], True), in_tensor(2, b"\x22\0" * 4, True),
        # Tags: 3a floats, 42 ints.
        in_attribute(0, b"\x3a\0" * 3), in_attribute(0, b"\x3a\x04" + FOUR[:4] + b"\x42\0"),
        *(in_attribute(2, b"\x3a" + bytes([size]) + bytes(size)) for size in (1, 2, 3, 5, 6, 7, 9)),
        in_attribute(2, b"\x3a\x02" + bytes(2) + b"\x3a\x02" + bytes(2)),
        in_attribute(0, b"\x42\x02\x80\0\x42\0"), in_attribute(2, b"\x42\x01\x80\x42\x01\0"),
        in_attribute(2, b"\x42\x03\0\0\x80"),
    ],
)  # fmt: skip
def test_packed_parts_hold_whole_numbers(tmp_path: Path, case: Case) -> None:
    """One without any is as if it were not there; none goes on in the next."""
    case.check(tmp_path)


def external(code: int, bound: bool = True, **entries: str) -> Case:
    """The table is in another file."""

    def change(model: Any) -> None:
        table = model.graph.initializer[0]
        table.ClearField("raw_data")
        table.data_location = onnx.TensorProto.EXTERNAL
        for key, value in entries.items():
            table.external_data.add(key=key, value=value)

    content = np.array(TWO, np.float32).tobytes()
    return Case([node("Identity", ["f"], ["z"])], {}, code, change=change, tensors={"x.bin": content} if bound else {})


@pytest.mark.parametrize(
    "case",
    [
        external(0, location="x.bin"), external(4, bound=False, location="x.bin"), external(4, location="y.bin"),
        *(external(4, location=name)
          for name in ("../x.bin", "./x.bin", "", "a/b", "x.bin ", "x.bin\0", "/", ".x", "x" * 200)),
        external(0, location="x.bin", offset="0" * 12, length="000000000016"),
        external(2, location="x.bin", offset="0" * 13), external(2, location="x.bin", length="0000000000016"),
        external(2, location="x.bin", length=""), external(2, location="x.bin", length="15"), external(2, offset="0"),
    ],
)  # fmt: skip
def test_a_location_that_is_not_bound_is_a_refusal(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([0], 0), ([0, 2**22], 0), ([2**22 + 1, 0], 2), ([2**11, 0, 2**11], 0), ([2**12, 0, 2**11], 2),
        ([0, 2**40, 0], 2),
        ([0, 2**63 - 1], 2),
    ],
)  # fmt: skip
def test_a_tensor_without_elements_has_a_size_all_the_same(tmp_path: Path, dims: list[int], expected: int) -> None:
    def change(model: Any) -> None:
        model.graph.initializer.add(name="empty", data_type=onnx.TensorProto.FLOAT, dims=dims)

    Case([node("Identity", ["f"], ["z"])], {}, expected, change=change).check(tmp_path)


def flattened(code: int, **fields: Any) -> Case:
    """A Flatten whose attribute `axis` has other fields too."""

    def change(model: Any) -> None:
        attribute = model.graph.node[-1].attribute[0]
        attribute.MergeFrom(onnx.AttributeProto(**fields))

    return Case([node("Flatten", ["f"], ["z"], axis=1)], {}, code, change=change)


def broken_tensor(model: Any) -> bytes:
    """The bytes of a tensor that is not looked at are no message."""
    model.graph.node[-1].attribute[0].t.name = "unread"
    data = bytes(model.SerializeToString())
    assert data.count(b"\x42\6unread") == 1
    return data.replace(b"\x42\6unread", b"\xff" * 8)


def dropout(code: int, *inputs: str, **attributes: Any) -> Case:
    constants = {
        "ratio": 0.5, "no": False, "zero": 0, "nought": 0.0, "yes": True, "noes": [0, 0], "none": np.zeros(0, bool),
    }  # fmt: skip
    return Case([node("Dropout", ["f", *inputs], ["z"], **attributes)], constants, code)


def normalised(code: int, **attributes: Any) -> Case:
    ones = {name: [1.0, 1.0] for name in ("scale", "var")} | {name: [0.0, 0.0] for name in ("shift", "mean")}
    return Case([node("BatchNormalization", ["f", "scale", "shift", "mean", "var"], ["z"], **attributes)], ones, code)


@pytest.mark.parametrize(
    "case",
    [
        flattened(0, f=2.5), flattened(0, f=float("nan")), flattened(0, s=b"no number"), flattened(2, s=b"\xff"),
        flattened(0, floats=[1.0, 2.0], ints=[7]),
        flattened(0, t=onnx.TensorProto()), flattened(0, t=onnx.TensorProto(data_type=99)),
        flattened(2, type=onnx.AttributeProto.FLOAT), flattened(0, strings=[b"x"]), flattened(2, strings=[b"\xff"]),
        flattened(2, g=onnx.GraphProto()),
        Case([node("Flatten", ["f"], ["z"], axis=1)], {}, 0, change=broken_tensor),
        dropout(0, ratio=0.5), dropout(2, ratio=1), dropout(0, seed=1), dropout(2, seed=1.0),
        dropout(2, ratio="a half"),
        dropout(0, "ratio", "no"), dropout(0, "zero", "zero"), dropout(2, "ratio", "nought"),
        dropout(2, "ratio", "yes"),
        dropout(2, "ratio", "noes"), dropout(2, "ratio", "none"),
        normalised(0, momentum=0.5), normalised(2, momentum=1), normalised(2, momentum=[0.5]),
        normalised(2, momentum=float("nan")), dropout(2, ratio=float("inf")),
    ],
)  # fmt: skip
def test_of_an_attribute_what_its_type_is_counts_and_nothing_else(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


@pytest.mark.parametrize(
    ("shape", "code"), [([-1, 1, 2], 0), ([-1, -1, 2], 2), ([-1, -1, -1], 2), ([-1, 1, -1, -1], 2)]
)
def test_one_dimension_of_a_reshape_is_inferred(tmp_path: Path, shape: list[int], code: int) -> None:
    """An even number of others, -1 each, leaves the product as it is."""
    nodes = [node("Reshape", ["f", "shape"], ["g"]), node("Reshape", ["g", "logits"], ["z"])]
    Case(nodes, {"shape": shape, "logits": [1, 2]}, code).check(tmp_path)


def of_a_sequence(info: Any) -> None:
    info.type.sequence_type.elem_type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def output_of_a_sequence(model: Any) -> None:
    of_a_sequence(model.graph.output[0])


def output_of_no_message(model: Any) -> bytes:
    shape = model.graph.output[0].type.tensor_type.shape
    shape.dim[0].dim_param = "unread"
    data = bytes(model.SerializeToString())
    assert data.count(b"\x12\6unread") == 1
    return data.replace(b"\x12\6unread", b"\xff" * 8)


def initializer_is_input(kind: str, times: int) -> Any:
    def change(model: Any) -> None:
        for _ in range(times):
            info = model.graph.input.add(name="table")
            if kind == "of a sequence":
                of_a_sequence(info)
            elif kind == "of another type":
                info.type.tensor_type.elem_type = onnx.TensorProto.STRING

    return change


def twice(model: Any) -> None:
    model.graph.input.append(model.graph.input[0])


def type_twice(model: Any) -> bytes:
    info = model.graph.output[0]
    info.doc_string = "unread"
    data = bytes(model.SerializeToString())
    kind = b"\x12" + bytes([info.type.ByteSize()]) + bytes(info.type.SerializeToString())
    # A second type message in place of the text of the same length, read over by a reader that merges.
    assert data.count(b"\x1a\6unread") == 1
    assert kind in data
    return data.replace(b"\x1a\6unread", b"\x12\6" + b"\xff" * 6)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (output_of_a_sequence, 0), (output_of_no_message, 0), (type_twice, 2), (twice, 2),
        *((initializer_is_input(kind, times), 0)
          for kind in ("", "of a sequence", "of another type") for times in (1, 2)),
    ],
)  # fmt: skip
def test_of_the_output_and_of_initializers_only_names_are_looked_at(tmp_path: Path, change: Any, expected: int) -> None:
    Case([node("Identity", ["f"], ["z"])], {}, expected, change=change).check(tmp_path)


def mixed(operator: str, *inputs: str, code: int, **attributes: Any) -> Case:
    """The operator on values of several kinds, of which the first two elements are the logits."""
    constants = {
        "number": [[1.0]], "numbers": [[0.0, 0.0]], "whole": [[0]], "wholes": [[1, 0]],
        "none": np.zeros((1, 0), np.int64),
        "nothing": np.zeros((1, 0), np.float32), "bits": [[True, False]], "from": [0], "to": [2], "axis": [1],
    }  # fmt: skip
    nodes = [
        node(operator, list(inputs), ["all"], **attributes), node("Slice", ["all", "from", "to", "axis"], ["z"]),
    ]  # fmt: skip
    return Case(nodes, constants, code)


@pytest.mark.parametrize(
    "case",
    [
        mixed("Concat", "f", "number", code=0, axis=1),
        *(mixed("Concat", "f", "number", other, code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        *(mixed("Concat", other, "f", "number", code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        *(mixed("Concat", "f", other, code=2, axis=1) for other in ("whole", "tokens", "none", "nothing")),
        mixed("Concat", "whole", "tokens", code=2, axis=1), mixed("Concat", "number", "whole", code=2, axis=1),
        mixed("Where", "bits", "f", "numbers", code=0),
        *(mixed("Where", "bits", "f", other, code=2) for other in ("wholes", "tokens", "nothing", "none")),
        *(mixed("Where", "bits", other, "f", code=2) for other in ("wholes", "tokens")),
        mixed("Where", "bits", "numbers", "wholes", code=2),
        *(mixed(operator, "f", "numbers", "numbers", code=0) for operator in ("Max", "Sum")),
        *(
            mixed(operator, *inputs, code=2)
            for operator in ("Max", "Min", "Sum") for other in ("wholes", "tokens")
            for inputs in (("f", "numbers", other), (other, "f", "numbers"), ("f", other), ("numbers", other))
        ),
        mixed("Max", "f", "numbers", "nothing", code=2), mixed("Sum", "f", "nothing", code=2),
        mixed("Sum", "nothing", "f", code=2), mixed("Where", "bits", "nothing", "f", code=2),
        mixed("Concat", "f", "nothing", "number", code=2, axis=1), mixed("Concat", "f", "nothing", code=2, axis=0),
    ],
)  # fmt: skip
def test_integers_and_tokens_are_not_among_numbers_and_a_variable_has_elements(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def gathered(operator: str, indices: Any, code: int, x: str = "f", **attributes: Any) -> Case:
    """The first two of the elements picked are the logits; picked tokens stand where the text's do, others select."""
    constants = {
        "numbers": [[2.0, 0.0]], "wholes": [[1, 0]], "hollow": np.zeros((2, 0), np.float32), "row": [1, -1],
        "from": [0], "to": [2], "axis": [1],
    }  # fmt: skip
    nodes = [node(operator, [x, "tokens" if isinstance(indices, str) else "indices"], ["got"], **attributes)]
    if x == "tokens":
        nodes.append(node("Gather", ["table", "got"], ["all"]))
    elif x == "wholes":
        nodes.append(node("Where", ["got", "f", "numbers"], ["all"]))
    elif x == "f":
        nodes.append(node("Identity", ["got"], ["all"]))
    else:
        nodes.append(node("Add", ["f", "got"], ["all"]))
    nodes += [node("Reshape", ["all", "row"], ["flat"]), node("Slice", ["flat", "from", "to", "axis"], ["z"])]
    return Case(nodes, constants if isinstance(indices, str) else constants | {"indices": indices}, code)


def empty(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


@pytest.mark.parametrize(
    "case",
    [
        gathered("GatherElements", [[0, 1]], 0, axis=1), gathered("GatherElements", [[1, 0]], 4, axis=1),
        gathered("GatherElements", [[-2, -1]], 0, axis=-1), gathered("GatherElements", [[0, 0]], 0),
        *(gathered("GatherElements", [[index, 1]], 2, axis=1) for index in (2, -3, 2**40)),
        # No longer than x, but along the axis.
        gathered("GatherElements", [[0, 1, 0]], 0, axis=1), gathered("GatherElements", [[0, 1], [0, 1]], 2, axis=1),
        gathered("GatherElements", [[0, 0], [0, 0]], 0, axis=0), gathered("GatherElements", [[0, 0, 0]], 2),
        gathered("GatherElements", [0, 1], 2, axis=1), gathered("GatherElements", [[[0, 1]]], 2, axis=1),
        gathered("GatherElements", [[0, 1]], 2, axis=2),
        gathered("GatherElements", empty(1, 0), 2, axis=1), gathered("GatherElements", empty(0, 2), 2, axis=1),
        gathered("GatherElements", [[0, 1]], 2, axis=1, batch_dims=0),
        gathered("GatherElements", [[0.0, 1.0]], 2, axis=1), gathered("GatherElements", "tokens", 2),
        gathered("GatherElements", [[0, -1]], 0, "tokens", axis=1),
        gathered("GatherElements", [[1, 0]], 0, "wholes", axis=1),
        gathered("GatherElements", [[1, 0]], 4, "numbers", axis=1),
        gathered("GatherND", [[0, 0], [0, 1]], 0), gathered("GatherND", [[0, 1], [0, 0]], 4),
        gathered("GatherND", [[-1, -2], [0, -1]], 0), gathered("GatherND", [[0]], 0), gathered("GatherND", [0], 0),
        *(gathered("GatherND", [[0, index]], 2) for index in (2, -3, 2**40)), gathered("GatherND", [[1]], 2),
        gathered("GatherND", [[0, 0, 0]], 2), gathered("GatherND", empty(2, 0), 2), gathered("GatherND", 0, 2),
        gathered("GatherND", empty(0, 1), 2), gathered("GatherND", [[0]], 2, "hollow"),
        gathered("GatherND", [[[0], [1]]], 0, batch_dims=1), gathered("GatherND", [[[1], [0]]], 4, batch_dims=1),
        gathered("GatherND", [[[0], [1]], [[0], [1]]], 2, batch_dims=1), gathered("GatherND", [0], 2, batch_dims=1),
        gathered("GatherND", [[[0, 0]]], 2, batch_dims=1),
        *(gathered("GatherND", [[[0], [1]]], 2, batch_dims=b) for b in (2, -1)),
        gathered("GatherND", [[0, 0]], 2, axis=0), gathered("GatherND", [[0.0, 0.0]], 2),
        gathered("GatherND", "tokens", 2), gathered("GatherND", [[0, 0]], 0, "tokens"),
        gathered("GatherND", [[[0], [1]]], 0, "numbers", batch_dims=1),
    ],
)  # fmt: skip
def test_elements_are_gathered_by_their_places(tmp_path: Path, case: Case) -> None:
    case.check(tmp_path)


def test_time_is_looked_at_while_the_network_is_read(tmp_path: Path) -> None:
    """Moving millions of elements again and again takes no multiplication, but a check ends all the same."""
    turns = [node("Transpose", [f"t{i}"], [f"t{i + 1}"], perm=[1, 0]) for i in range(60)]
    nodes = [
        node("Tile", ["f", "times"], ["t0"]), *turns, node("Reshape", ["t60", "shape"], ["row"]),
        node("Slice", ["row", "from", "to", "axis"], ["z"]),
    ]  # fmt: skip
    constants = {"times": [1, 2**21], "shape": [1, -1], "from": [0], "to": [2], "axis": [1]}
    file = Case(nodes, constants, 4).write(tmp_path, bound=False)
    began = time.monotonic()
    command = [*CHECKERS["check.js"], "--seconds", "1", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 4
    assert "ran out of time" in result.stdout
    assert time.monotonic() - began < 10
