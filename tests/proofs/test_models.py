"""ONNX files outside the format, broken or hostile, are refused in one line; nothing crashes on them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cases import FACTOR, drawn_seed
from graph_builder import tokens
from onnx import TensorProto, helper, numpy_helper
from proof_cases import KINDS, Maker, exact_logits, network_of

from swapproof.proofs import check, lower

GOOD = (Path(__file__).parent / "accepted" / "paper.onnx").read_bytes()


def network(data: bytes, files: dict[str, bytes] | None = None) -> lower.Lowered:
    return lower.read_model(data, files).lower([["words", [0] * 4]], [])


def changed(change: Callable[[Any], object]) -> bytes:
    model = onnx.load_from_string(GOOD)
    change(model)
    return model.SerializeToString()  # type: ignore[no-any-return]


def weights(array: object) -> Callable[[Any], object]:
    """The bias of the last layer replaced."""

    def change(model: Any) -> None:
        last = model.graph.initializer[-1]
        last.CopyFrom(numpy_helper.from_array(np.array(array), last.name))

    return change


def node(operator: str, **attributes: Any) -> Callable[[Any], object]:
    """Another operator in place of Relu."""

    def change(model: Any) -> None:
        old = next(item for item in model.graph.node if item.op_type == "Relu")
        old.CopyFrom(helper.make_node(operator, list(old.input), list(old.output), **attributes))

    return change


def graph(model: Any) -> Any:
    return model.graph


HOSTILE: dict[str, tuple[Callable[[Any], object], str]] = {
    "unknown operator": (node("Softsign"), "Softsign.*outside the format"),
    "another domain": (node("Relu", domain="com.example"), "domain"),
    "unknown attribute": (node("Relu", fast=1), "attribute 'fast'"),
    "attribute of the wrong type": (node("LeakyRelu", alpha=1), "attribute 'alpha'"),
    "slope above one": (node("LeakyRelu", alpha=1.5), r"alpha in \[0, 1\]"),
    "negative slope": (node("LeakyRelu", alpha=-0.5), r"alpha in \[0, 1\]"),
    "slope that is no number": (node("LeakyRelu", alpha=float("nan")), "NaN"),
    "head in the middle": (node("LogSoftmax"), "LogSoftmax"),
    "not a number": (weights(np.array([np.nan, 0], np.float32)), "NaN or infinity"),
    "infinite": (weights(np.array([np.inf, 0], np.float32)), "NaN or infinity"),
    "mixed types": (weights(np.array([1.0, 0])), "mixes floating types"),
    "integer bias": (weights(np.array([1, 0])), "must be constant numbers"),
    "wrong bias": (weights(np.ones(5, np.float32)), "do not broadcast"),
    "quantised": (weights(np.ones(2, np.uint8)), "type 2"),
    "old opset": (lambda m: m.opset_import[0].__setattr__("version", 9), "opsets"),
    "new opset": (lambda m: m.opset_import[0].__setattr__("version", 99), "opsets"),
    "two opsets": (lambda m: m.opset_import.add(domain="ai.onnx", version=17), "opsets"),
    "functions": (lambda m: m.functions.add(name="f", domain="g"), "outside the format"),
    "training": (lambda m: m.training_info.add(), "outside the format"),
    "sparse": (lambda m: m.graph.sparse_initializer.add(), "outside the format"),
    "quantisation": (lambda m: m.graph.quantization_annotation.add(), "outside the format"),
    "second input": (lambda m: m.graph.input.add(name="more"), "must be INT64|type of"),
    "second output": (lambda m: m.graph.output.add(name="more"), "one output"),
    "batch of two": (lambda m: m.graph.input[0].type.tensor_type.shape.dim[0].__setattr__("dim_value", 2), "batch"),
    "floating tokens": (lambda m: m.graph.input[0].type.tensor_type.__setattr__("elem_type", 1), "INT64"),
    "output elsewhere": (lambda m: m.graph.output[0].__setattr__("name", "w0"), "must depend on the tokens"),
    "output nowhere": (lambda m: m.graph.output[0].__setattr__("name", "none"), "is not defined"),
    "not sorted": (lambda m: m.graph.node.insert(0, m.graph.node.pop()), "before it is defined"),
    "defined twice": (lambda m: m.graph.node.append(m.graph.node[-1]), "defined twice"),
    "initializer twice": (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "twice"),
    "reads itself": (lambda m: m.graph.node[1].input.__setitem__(0, m.graph.node[1].output[0]), "before it is defined"),
    "dims too large": (lambda m: m.graph.initializer[0].dims.__setitem__(0, 1 << 40), "outside the limits"),
    "dims beside a 0": (
        lambda m: m.graph.initializer.add(name="z", data_type=1, dims=[1 << 40, 0]),
        "outside the limits",
    ),
    "dims negative": (lambda m: m.graph.initializer[0].dims.__setitem__(0, -7), "outside the limits"),
    "dims changed": (lambda m: m.graph.initializer[0].dims.__setitem__(0, 8), "numbers for shape"),
    "data twice": (lambda m: m.graph.initializer[0].float_data.extend([1.0] * 14), "one place"),
    "half external": (lambda m: m.graph.initializer[0].__setattr__("data_location", 1), "external"),
    "subgraph": (node("Relu", body=helper.make_graph([], "inner", [], [])), "outside the format"),
    "no graph": (lambda m: m.ClearField("graph"), "graph is missing"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_models_outside_the_format_are_refused_by_name(name: str) -> None:
    """One line each, saying what was met."""
    change, reason = HOSTILE[name]
    with pytest.raises(check.Unusable, match=reason) as refusal:
        network(changed(change))
    assert "\n" not in str(refusal.value)


def test_a_missing_external_file_and_a_path_are_refused() -> None:
    """External data is read from what was given, nothing is opened."""

    def apart(location: str) -> bytes:
        def change(model: Any) -> None:
            tensor = model.graph.initializer[0]
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", location

        return changed(change)

    for location in ("absent.bin", "../secret", "/etc/hostname"):
        with pytest.raises(check.Refused, match="does not bind"):
            network(apart(location))
    with pytest.raises(check.Unusable, match="numbers for shape"):
        network(apart("short.bin"), {"short.bin": b"\0" * 8})


@pytest.mark.parametrize("value", [2.0**-1074, 2.0**-201, 2.0**128, -(2.0**1000)])
def test_numbers_with_absurd_exponents_are_refused(value: float) -> None:
    """A double of a thousand bits would make every later number as long."""
    m = Maker(random.Random(0), 4)
    table = np.ones((7, 2))
    table[0, 0] = value
    x = m.call("ReduceSum", m.call("Gather", m.constant(table), "tokens"), m.constant([1]), keepdims=0)
    data = m.proto([tokens("b", 4)], [(x, TensorProto.DOUBLE, ["b", 2])]).SerializeToString()
    with pytest.raises(check.Unusable, match="multiples of"):
        network(data)


def test_the_smallest_float32_numbers_are_exact() -> None:
    """Subnormal weights are ordinary rationals here."""
    tiny = float(np.float32(2.0**-149))
    m = Maker(random.Random(0), 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array([[tiny], [1.0]], np.float32)), "tokens"))
    data = m.model(m.call("MatMul", flat, m.constant(np.array([[tiny, 1.0]], np.float32))), 2)
    assert exact_logits(network_of(data, 1), [0]) == [Fraction(1, 2**298), Fraction(1, 2**149)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_damaged_files_never_crash_the_reader(kind: Callable[[Maker, int], bytes]) -> None:
    """Bytes changed, dropped or doubled at random: the model is read, or refused as outside the format."""
    data = kind(Maker(random.Random(1), 4), 2)
    seed = drawn_seed()
    rng = random.Random(seed)
    refused = 0
    for _ in range(400 * FACTOR):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(broken))
            match rng.randrange(4):
                case 0:
                    broken[at] = rng.randrange(256)
                case 1:
                    broken[at] ^= 1 << rng.randrange(8)
                case 2:
                    del broken[at : at + rng.randint(1, 4)]
                case _:
                    broken[at:at] = broken[at : at + 3]
        try:
            network(bytes(broken))
        except (check.Unusable, check.Refused):
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {bytes(broken)!r}") from error
    assert refused > 100


def test_the_root_of_a_batch_normalisation_is_rounded_as_the_format_says() -> None:
    """1 / sqrt(2), to 40 binary places, down; a variance of 0 is refused."""
    for variance, expected in ((2.0, math.isqrt(2**79)), (0.0, None)):
        m = Maker(random.Random(0), 1)
        flat = m.call("Flatten", m.call("Gather", m.constant(np.ones((2, 2), np.float32)), "tokens"))
        one, zero = m.constant(np.ones(2, np.float32)), m.constant(np.zeros(2, np.float32))
        spread = m.constant(np.full(2, variance, np.float32))
        x = m.call("BatchNormalization", flat, one, zero, zero, spread, epsilon=0.0)
        data = m.model(x, 2)
        if expected is None:
            with pytest.raises(check.Unusable, match="variance"):
                network_of(data, 1)
            continue
        found = network_of(data, 1)
        assert exact_logits(found, [0])[0] == Fraction(expected, 2**40)
        assert "BatchNormalization" in found.no_float32
