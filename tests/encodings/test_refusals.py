"""What cannot be read is refused at load, in one line that says what was met, where, and what would work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import read_network

DATA = Path(__file__).parents[3] / "shared" / "data"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Array = NDArray[Any]
node = helper.make_node
value = helper.make_tensor_value_info

EMBED = node("Gather", ["table", "tokens"], ["words"], name="embed")
FLAT = node("Flatten", ["words"], ["flat"], name="flat")
LOGITS = node("MatMul", ["flat", "matrix"], ["logits"], name="product")
TOKENS = value("tokens", INT64, ["batch", 3])
ANSWER = value("logits", FLOAT, ["batch", 2])


def floats(*shape: int) -> Array:
    return np.ones(shape, dtype=np.float32)


def wholes(*numbers: int) -> Array:
    return np.array(numbers, dtype=np.int64)


def model(
    nodes: Sequence[Any],
    weights: dict[str, Array] | None = None,
    *,
    inputs: Sequence[Any] = (TOKENS,),
    outputs: Sequence[Any] = (ANSWER,),
    opset: int = 17,
    domains: Sequence[str] = (),
    functions: Sequence[Any] = (),
) -> Any:
    """table [5, 2] and matrix [6, 2] are there unless given."""
    every = {"table": floats(5, 2), "matrix": floats(6, 2)} | (weights or {})
    graph = helper.make_graph(
        nodes, "bad", inputs, outputs, [numpy_helper.from_array(np.asarray(a), name) for name, a in every.items()]
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


def culprit(operator: str, inputs: list[str], **attributes: Any) -> Any:
    return node(operator, inputs, ["changed"], name="culprit", **attributes)


def between(*nodes: Any) -> list[Any]:
    """These between the embedding ("words") and the logits; they write "changed"."""
    return [EMBED, *nodes, node("Flatten", ["changed"], ["flat"], name="flat"), LOGITS]


def refused(tmp_path: Path, proto: Any, kind: type[Exception], *words: str, length: int | None = 3) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(proto.SerializeToString())
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        read_network(path, length)
    message = str(caught.value)
    assert "\n" not in message
    assert "bad.onnx" in message
    for word in words:
        assert word in message, message
    assert len(message) < 700
    assert time.monotonic() - began < 20


def test_the_model_these_tests_spoil_is_good(tmp_path: Path) -> None:
    """So every refusal below has the one cause that its test names."""
    path = tmp_path / "good.onnx"
    path.write_bytes(model([EMBED, FLAT, LOGITS]).SerializeToString())
    assert read_network(path).classes == 2
    path.write_bytes(model(between(node("Relu", ["words"], ["changed"]))).SerializeToString())
    assert read_network(path).classes == 2


@pytest.mark.parametrize(
    ("operator", "attributes", "hint"),
    [
        ("Elu", {}, "of smooth functions Exp, Tanh"),
        ("Mish", {}, "of smooth functions Exp, Tanh"),
        ("LogSoftmax", {}, "last operator only"),
        ("HardSwish", {}, "of smooth functions Exp, Tanh"),
        ("CumSum", {}, "triangular"),
        ("LSTM", {"hidden_size": 2, "clip": 1.0}, "attribute clip"),
        ("LSTM", {"activations": ["Relu", "Tanh", "Tanh"]}, "activations relu"),
        ("LSTM", {"input_forget": 1}, "input_forget 1"),
        ("GRU", {"layout": 1}, "layout 1"),
        ("RNN", {}, "[steps, 1, size]"),
        ("Hardmax", {}, "supported: Abs"),
        ("RandomNormalLike", {}, "random"),
        ("Bernoulli", {}, "random"),
        ("TopK", {}, "logits"),
        ("ArgMax", {}, "export the model with its logits; where it looks for the last word"),
        ("Trilu", {}, "with a triangular constant"),
    ],
)
def test_unsupported_operators(operator: str, attributes: dict[str, Any], hint: str, tmp_path: Path) -> None:
    """The operator, the name of the node and what would work are in the line."""
    inputs = {
        "LSTM": ["words", "w", "r"],
        "GRU": ["words", "w", "r"],
        "RNN": ["words", "w", "r"],
        "CumSum": ["words", "k"],
        "TopK": ["words", "k"],
    }
    outputs = ["changed", "other"] if operator == "TopK" else ["changed"]
    bad = node(operator, inputs.get(operator, ["words"]), outputs, name="culprit", **attributes)
    weights = {"w": floats(1, 8, 2), "r": floats(1, 8, 2), "k": wholes(1)}
    refused(tmp_path, model(between(bad), weights, opset=20), Unsupported, operator, "culprit", hint)


@pytest.mark.parametrize(
    ("constants", "met"),
    [
        ({"one": np.ones(3, np.float32)}, "Trilu of shape [3], which has no triangles; it takes matrices"),
        ({"one": np.float32(1)}, "Trilu of shape []"),
        ({"one": floats(3, 3), "k": wholes(1, 2)}, "a diagonal of 2 int64; it takes one number, of int64"),
        ({"one": floats(3, 3), "k": np.float32(1)}, "a diagonal of 1 float32"),
    ],
)
def test_triangles_of_constants_that_have_none(constants: dict[str, Array], met: str, tmp_path: Path) -> None:
    constants = {name: np.asarray(array) for name, array in constants.items()}
    three = node("Trilu", list(constants), ["three"], name="culprit")
    added = node("Add", ["words", "three"], ["changed"])
    refused(tmp_path, model(between(three, added), constants), BadInput, "culprit", met)


def test_a_node_without_a_name_is_given_by_number(tmp_path: Path) -> None:
    refused(tmp_path, model(between(node("Elu", ["words"], ["changed"]))), Unsupported, "node number 1 (Elu)")


@pytest.mark.parametrize("operator", ["DynamicQuantizeLinear", "QuantizeLinear", "MatMulInteger", "QLinearMatMul"])
def test_quantised_operators(operator: str, tmp_path: Path) -> None:
    counts = {
        "DynamicQuantizeLinear": (1, 3),
        "QuantizeLinear": (2, 1),
        "MatMulInteger": (2, 1),
        "QLinearMatMul": (8, 1),
    }
    reads, gives = counts[operator]
    bad = node(operator, ["words"] * reads, ["changed", "b", "c"][:gives], name="culprit")
    refused(tmp_path, model(between(bad)), Unsupported, "culprit", operator, "quantised", "float model")


def test_other_domains_and_functions(tmp_path: Path) -> None:
    bad = culprit("FusedMatMul", ["words", "words"], domain="com.microsoft")
    refused(tmp_path, model(between(bad), domains=["com.microsoft"]), Unsupported, "culprit", "com.microsoft")
    function = helper.make_function(
        "mine", "Mine", ["x"], ["y"], [node("Relu", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    bad = node("Mine", ["words"], ["changed"], domain="mine")
    refused(tmp_path, model(between(bad), domains=["mine"], functions=[function]), Unsupported, "Mine", "inliner")


def test_control_flow(tmp_path: Path) -> None:
    branches = [
        helper.make_graph([node("Relu", ["words"], [name])], name, [], [value(name, FLOAT, None)])
        for name in ("yes", "no")
    ]
    bad = culprit("If", ["true"], then_branch=branches[0], else_branch=branches[1])
    refused(tmp_path, model(between(bad), {"true": np.array(True)}), Unsupported, "culprit", "If", "fixed branches")


def test_tokens_may_only_select_embeddings(tmp_path: Path) -> None:
    """Masks without choices, arithmetic on ids and choices by the text are refused by name."""
    chosen = node("Where", ["mask", "words", "zero"], ["changed"])
    zero: dict[str, Array] = {"zero": floats(1) * 0, "pad": wholes(0)}
    mask = node("Equal", ["column", "pad"], ["mask"], name="culprit")
    column = node("Unsqueeze", ["tokens", "last"], ["column"])
    refused(
        tmp_path, model(between(column, mask, chosen), zero | {"last": wholes(2)}), Unsupported, "culprit", "choices"
    )
    shifted = node("Add", ["tokens", "pad"], ["ids"], name="culprit")
    other = node("Gather", ["table", "ids"], ["changed"])
    refused(tmp_path, model(between(shifted, other), zero), Unsupported, "culprit", "choices")
    moduli = node("Mod", ["tokens", "pad"], ["ids"], name="culprit")
    refused(tmp_path, model(between(moduli, other), zero), Unsupported, "culprit", "compared with constants")
    number = node("Cast", ["tokens"], ["number"], name="culprit", to=FLOAT)
    sum_of_both = node("Add", ["words", "number"], ["changed"])
    refused(tmp_path, model(between(number, sum_of_both)), Unsupported, "culprit", "whole numbers")
    mask = node("Greater", ["words", "zero"], ["mask"], name="culprit")
    refused(tmp_path, model(between(mask, chosen), zero), Unsupported, "culprit", "Clip")


def test_products_and_powers_that_do_not_fit(tmp_path: Path) -> None:
    refused(
        tmp_path, model(between(culprit("MatMul", ["words", "words"]))), Unsupported, "culprit", "matrices that fit"
    )
    power = culprit("Pow", ["words", "exponent"])
    for number, word in ((np.float32(1.5), "1.5"), (floats(2), "single constant")):
        refused(tmp_path, model(between(power), {"exponent": np.asarray(number)}), Unsupported, "culprit", word)


def test_a_softmax_at_the_end_over_another_axis(tmp_path: Path) -> None:
    product = node("MatMul", ["flat", "matrix"], ["scores"])
    over_batch = node("Softmax", ["scores"], ["logits"], name="culprit", axis=0)
    refused(tmp_path, model([EMBED, FLAT, product, over_batch]), Unsupported, "culprit", "axis 0")
    nowhere = node("Softmax", ["scores"], ["logits"], name="culprit", axis=5)
    refused(tmp_path, model([EMBED, FLAT, product, nowhere]), BadInput, "culprit", "axis 5")


@pytest.mark.parametrize("opset", [12, 23])
def test_opsets_out_of_range(opset: int, tmp_path: Path) -> None:
    refused(tmp_path, model([EMBED, FLAT, LOGITS], opset=opset), Unsupported, f"opset {opset}", "13 to 22")


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ([TOKENS, value("mask", INT64, ["batch", 3])], BadInput, ["mask", "[model] inputs", "tokens, mask"]),
        ([value("tokens", FLOAT, ["batch", 3])], BadInput, ["float", "int64 or int32"]),
        ([value("tokens", INT64, [3])], BadInput, ["rank 1", "[batch, length]"]),
        ([value("tokens", INT64, ["batch", 3, 1])], BadInput, ["rank 3", "[batch, length]"]),
        ([value("tokens", INT64, [4, 3])], Unsupported, ["fixed batch of 4", "batch of 1"]),
        ([value("tokens", INT64, ["batch", 4])], BadInput, ["reads 4 tokens, not 3"]),
        ([], BadInput, ["tokens"]),
    ],
)
def test_inputs_that_are_not_token_ids(
    inputs: list[Any], kind: type[Exception], words: list[str], tmp_path: Path
) -> None:
    refused(tmp_path, model([EMBED, FLAT, LOGITS], inputs=inputs), kind, *words)


def test_lengths(tmp_path: Path) -> None:
    """A free length must be said; a fixed one must be met."""
    free = model([EMBED, FLAT, LOGITS], inputs=[value("tokens", INT64, ["batch", "length"])])
    refused(tmp_path, free, BadInput, "say how many", length=None)
    refused(tmp_path, free, BadInput, "0 tokens", length=0)
    refused(tmp_path, free, BadInput, "product", "8 values meet a weight of 6 rows", length=4)


@pytest.mark.parametrize(
    ("nodes", "output", "words"),
    [
        ([EMBED], value("words", FLOAT, ["batch", 3, 2]), ["shape [1, 3, 2]", "[batch, classes]"]),
        ([EMBED, FLAT, node("MatMul", ["flat", "column"], ["logits"])], ANSWER, ["one class", "two"]),
        ([EMBED, FLAT, node("Identity", ["matrix"], ["logits"])], ANSWER, ["does not depend"]),
        ([node("Identity", ["tokens"], ["logits"])], value("logits", INT64, ["batch", 3]), ["does not depend"]),
    ],
)
def test_outputs_that_are_not_logits(nodes: list[Any], output: Any, words: list[str], tmp_path: Path) -> None:
    refused(tmp_path, model(nodes, {"column": floats(6, 1)}, outputs=[output]), BadInput, *words)


def test_two_outputs(tmp_path: Path) -> None:
    outputs = [ANSWER, value("flat", FLOAT, ["batch", 6])]
    refused(tmp_path, model([EMBED, FLAT, LOGITS], outputs=outputs), BadInput, "2 outputs", "logits, flat")


def test_files_that_are_not_models(tmp_path: Path) -> None:
    """A directory, nothing, an empty file, a text, a cut file."""
    good = model([EMBED, FLAT, LOGITS]).SerializeToString()
    cases = {"empty": b"", "text": b"This is not a network.\n", "cut": good[: len(good) // 2]}
    for name, content in cases.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        with pytest.raises(BadInput, match="not a readable ONNX model") as caught:
            read_network(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="is a directory"):
        read_network(tmp_path)
    with pytest.raises(BadInput, match="no such file"):
        read_network(tmp_path / "nothing.onnx")


@pytest.mark.parametrize("part", range(1, 8))
def test_every_cut_of_a_file_is_refused(part: int, tmp_path: Path) -> None:
    """Wherever a download stops, a BadInput or Unsupported comes out, never a network of half the weights."""
    good = model([EMBED, FLAT, LOGITS]).SerializeToString()
    path = tmp_path / "cut.onnx"
    for end in range(part, len(good), 7):
        path.write_bytes(good[:end])
        with pytest.raises((BadInput, Unsupported)):
            read_network(path)


def test_external_data_that_is_missing_or_short(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model([EMBED, FLAT, LOGITS]), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert read_network(path).classes == 2
    weights = tmp_path / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(BadInput, match="not a readable ONNX model"):
        read_network(path)
    weights.unlink()
    with pytest.raises(BadInput, match=r"weights\.bin"):
        read_network(path)


def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    told = ((np.nan, BadInput, "NaN or infinity"), (np.inf, BadInput, "NaN"), (-np.inf, Unsupported, "minus infinity"))
    for bad, kind, why in told:
        table, matrix = floats(5, 2), floats(6, 2)
        table[4, 1] = matrix[0, 0] = bad
        refused(tmp_path, model([EMBED, FLAT, LOGITS], {"table": table}), kind, "embed", why)
        refused(tmp_path, model([EMBED, FLAT, LOGITS], {"matrix": matrix}), kind, "product", why)


def test_tables_that_are_none(tmp_path: Path) -> None:
    for table, kind, word in (
        (np.ones((5, 2), dtype=np.int64), Unsupported, "int64"),
        (floats(5, 2, 2), Unsupported, "table"),
        (floats(0, 2), BadInput, "empty"),
    ):
        refused(tmp_path, model([EMBED, FLAT, LOGITS], {"table": table}), kind, "embed", word)


@pytest.mark.parametrize(
    ("bad", "weights", "kind", "word"),
    [
        (culprit("Add", ["words", "w"]), {"w": floats(5)}, BadInput, "broadcast"),
        (culprit("MatMul", ["words", "w"]), {"w": floats(5, 5)}, BadInput, "5 rows"),
        (culprit("Reshape", ["words", "w"]), {"w": wholes(1, 7)}, BadInput, "reshape"),
        (culprit("ReduceMax", ["words"], axes=[9]), {}, BadInput, "axis 9"),
        (culprit("Concat", ["words", "words"], axis=7), {}, BadInput, "axis"),
        (culprit("Gather", ["words", "w"], axis=1), {"w": wholes(8)}, BadInput, "bounds"),
        (culprit("Div", ["words", "w"]), {"w": 0 * floats(1)}, BadInput, "zero"),
        (culprit("LeakyRelu", ["words"], alpha=2.0), {}, Unsupported, "alpha"),
        (culprit("Conv", ["words", "w"], strides=[0]), {"w": floats(1, 3, 1)}, BadInput, "[0]"),
        (culprit("Conv", ["words", "w"], pads=[1]), {"w": floats(1, 3, 1)}, BadInput, "pads"),
        (culprit("Conv", ["words", "w"], group=0), {"w": floats(1, 3, 1)}, BadInput, "groups"),
        (culprit("Conv", ["words", "w"]), {"w": floats(1, 4, 1)}, BadInput, "channels"),
        (culprit("Conv", ["words", "w"]), {"w": floats(1, 3, 5)}, BadInput, "does not fit"),
        (culprit("Slice", ["words", "w", "w"]), {"w": wholes(0)}, Unsupported, "no values"),
        (culprit("Pad", ["words", "w"]), {"w": wholes(0, -1, 0, 0, 0, 0)}, Unsupported, "Slice"),
    ],
)  # fmt: skip
def test_nodes_that_do_not_fit(
    bad: Any, weights: dict[str, Array], kind: type[Exception], word: str, tmp_path: Path
) -> None:
    refused(tmp_path, model(between(bad), weights), kind, "culprit", bad.op_type, word)


def test_normalisation_that_is_none(tmp_path: Path) -> None:
    names = ["words", *("w",) * 3]
    weights = {"w": floats(3), "negative": -floats(3)}
    bad = culprit("BatchNormalization", [*names, "negative"])
    refused(tmp_path, model(between(bad), weights), BadInput, "culprit", "variance of -1")
    bad = node("BatchNormalization", [*names, "w"], ["changed", "a", "b"], name="culprit", training_mode=1)
    refused(tmp_path, model(between(bad), weights), Unsupported, "culprit", "training mode")


def test_training_dropout(tmp_path: Path) -> None:
    bad = culprit("Dropout", ["words", "half", "true"])
    weights: dict[str, Array] = {"half": np.array(0.5, dtype=np.float32), "true": np.array(True)}
    refused(tmp_path, model(between(bad), weights), Unsupported, "culprit", "training mode")


def test_graphs_that_are_no_graphs(tmp_path: Path) -> None:
    """A cycle, a name that nothing writes, a name written twice."""
    cycle = [node("Add", ["words", "later"], ["changed"]), node("Relu", ["changed"], ["later"])]
    refused(tmp_path, model(between(*cycle)), BadInput, "later")
    refused(tmp_path, model(between(node("Relu", ["nothing"], ["changed"]))), BadInput, "nothing")
    twice = [node("Relu", ["words"], ["changed"]), node("Neg", ["words"], ["changed"])]
    refused(tmp_path, model(between(*twice)), BadInput, "changed")


HUGE = 10**9


@pytest.mark.parametrize(
    ("bad", "weights"),
    [
        (culprit("Expand", ["words", "w"]), {"w": wholes(HUGE, 3, 2)}),
        (culprit("Tile", ["words", "w"]), {"w": wholes(1, HUGE, HUGE)}),
        (culprit("Pad", ["words", "w"]), {"w": wholes(0, HUGE, 0, 0, 0, 0)}),
        (culprit("Conv", ["words", "w"], pads=[HUGE] * 2), {"w": floats(1, 3, 1)}),
        (culprit("MaxPool", ["words"], kernel_shape=[HUGE], pads=[HUGE] * 2), {}),
        (culprit("AveragePool", ["words"], kernel_shape=[HUGE], auto_pad="SAME_UPPER"), {}),
        (node("ConstantOfShape", ["w"], ["made"], name="culprit"), {"w": wholes(HUGE)}),
        (node("Range", ["zero", "w", "one"], ["made"], name="culprit"),
         {"zero": np.int64(0), "w": np.int64(HUGE), "one": np.int64(1)}),
        (node("Add", ["w", "v"], ["made"], name="culprit"), {"w": floats(100_000, 1), "v": floats(1, 100_000)}),
        (node("MatMul", ["w", "v"], ["made"], name="culprit"), {"w": floats(100_000, 1), "v": floats(1, 100_000)}),
        (culprit("Add", ["words", "v"]), {"v": floats(8_000_000, 1, 1)}),
    ],
)  # fmt: skip
def test_small_files_that_ask_for_huge_arrays(bad: Any, weights: dict[str, Array], tmp_path: Path) -> None:
    """The size is worked out before the array is made."""
    reader = node("Max", ["words", "made"], ["changed"])
    nodes = between(bad, reader) if "made" in bad.output else between(bad)
    refused(tmp_path, model(nodes, weights), Unsupported, "culprit")


def test_doubling_forty_times(tmp_path: Path) -> None:
    """Each step is small and their chain is not."""
    names = ["words", *(f"twice{i}" for i in range(39)), "changed"]
    chain = [node("Concat", [a, a], [b], axis=1) for a, b in pairwise(names)]
    refused(tmp_path, model(between(*chain)), Unsupported, "Concat", "values")
    names[0], names[-1] = "matrix", "large"
    chain = [node("Concat", [a, a], [b], axis=1) for a, b in pairwise(names)]
    product = node("MatMul", ["flat", "large"], ["logits"], name="product")
    refused(tmp_path, model([EMBED, FLAT, *chain, product]), Unsupported, "Concat", "elements")


def test_a_grouped_kernel_that_is_huge_as_a_matrix(tmp_path: Path) -> None:
    wide = node("Tile", ["words", "w"], ["wide"])
    bad = culprit("Conv", ["wide", "kernel"], group=30_000)
    weights = {"w": wholes(1, 10_000, 1), "kernel": floats(30_000, 1, 1)}
    refused(tmp_path, model(between(wide, bad), weights), Unsupported, "culprit", "too large")


@pytest.mark.parametrize("operator", ["Relu", "Add", "Reshape", "Transpose"])
def test_five_thousand_nodes_are_read_in_seconds(operator: str, tmp_path: Path) -> None:
    """Deep chains neither overflow a stack nor take minutes."""
    names = ["words", *(f"step{i}" for i in range(4_999)), "changed"]
    more = {"Add": ["one"], "Reshape": ["shape"]}.get(operator, [])
    chain = [node(operator, [a, *more], [b]) for a, b in pairwise(names)]
    if operator == "Transpose":
        for each in chain:
            each.attribute.append(helper.make_attribute("perm", [0, 2, 1]))
    path = tmp_path / "deep.onnx"
    path.write_bytes(model(between(*chain), {"one": floats(2), "shape": wholes(0, -1, 2)}).SerializeToString())
    began = time.monotonic()
    network = read_network(path)
    assert time.monotonic() - began < 10
    assert network.classes == 2


def test_constants_whose_arithmetic_rounds_differently_in_every_runtime(tmp_path: Path) -> None:
    """exp(1) is no certain number; 1 + 2 is, and 1 / 3 is the same float everywhere."""
    weights = {"third": 3 * floats(1)}
    bad = node("Exp", ["matrix"], ["other"], name="culprit")
    product = node("MatMul", ["flat", "other"], ["logits"])
    refused(tmp_path, model([EMBED, FLAT, bad, product], weights), Unsupported, "culprit", "fold")
    path = tmp_path / "good.onnx"
    exact = node("Mul", ["matrix", "third"], ["other"])
    path.write_bytes(model([EMBED, FLAT, exact, product], weights).SerializeToString())
    assert read_network(path).inexact == ()
    rounded = node("Div", ["matrix", "third"], ["other"], name="quotient")
    path.write_bytes(model([EMBED, FLAT, rounded, product], weights).SerializeToString())
    assert "quotient" in read_network(path).inexact[0]


def test_sparse_weights(tmp_path: Path) -> None:
    proto = model([EMBED, FLAT, LOGITS])
    values = numpy_helper.from_array(floats(1), "sparse")
    places = numpy_helper.from_array(wholes(0), "places")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    refused(tmp_path, proto, Unsupported, "sparse", "dense")


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the repository")
def test_a_model_from_the_wild_that_answers_at_every_step_is_no_classifier() -> None:
    with pytest.raises(BadInput, match=r"shape \[1, 100, 1\] for one text; a classifier answers"):
        read_network(DATA / "models" / "third_party_lstm" / "sentiment_analysis.onnx")


@pytest.mark.skipif(not DATA.exists(), reason="the data folder is not beside the repository")
def test_a_model_of_embeddings_is_refused_by_its_input() -> None:
    with pytest.raises(BadInput, match="embeddings is float"):
        read_network(DATA / "models" / "lamalfa_sst_cnn" / "sst_glove50d_cnn_2layer_3_3.onnx")
