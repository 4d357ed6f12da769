"""Smooth operators read from ONNX files compute what onnxruntime computes, and are what the checkers read."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from canonical_bytes import Bytes
from cases import cases
from graph_builder import Builder, floats, tokens
from hypothesis import given
from random_networks import Sample, assembled
from smooth_models import exported, torch_module
from smooth_steps import SMOOTH_STEPS, smooth, smooth_networks

from swapproof.encodings.agreement import agree
from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.evaluation import logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.adaptation import adapted, write_model
from swapproof.encodings.onnx_files.constant_folding import perform
from swapproof.encodings.onnx_files.model_ports import Scores
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model, read_network
from swapproof.encodings.smooth.plain_constants import with_plain_constants
from swapproof.proofs import lower


def agreed(sample: Sample) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        path = sample.save(Path(folder))
        network = read_network(path, sample.length)
        for optimised in (True, False):
            found = agree(network, sample.runner(path, optimised=optimised), sample.sentences(3))
            assert found.difference <= found.bound < 1e-2 * (1 + np.abs(logits(network, sample.sentences(3))).max())
    return network


def lowered(data: bytes, length: int) -> str | None:
    try:
        return str(lower.read_model(data, {}).lower([["words", [0] * length]], []).sha256)
    except (lower.Refused, lower.Unusable):
        return None


@pytest.mark.parametrize("step", sorted(SMOOTH_STEPS))
def test_every_smooth_step_reads_as_onnxruntime_computes_and_as_the_checkers_do(step: str) -> None:
    """Each in turn, over the range of opsets."""
    met = 0
    for source, opset in enumerate(range(13, 23)):
        sample = smooth((step,), source, opset=opset)
        network = agreed(sample)
        ours, theirs = canonical_network(network), lowered(sample.model.SerializeToString(), sample.length)
        assert ours.sha256 == theirs or ours.sha256 is None, sample
        met += ours.sha256 is not None
    assert met > 3


@cases(80)
@given(smooth_networks())
def test_mixtures_read_as_onnxruntime_computes(sample: Sample) -> None:
    agreed(sample)


@cases(120)
@given(smooth_networks())
def test_the_checkers_reader_writes_the_same(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(sample.save(Path(folder)), sample.length)
    theirs = lowered(sample.model.SerializeToString(), sample.length)
    ours = canonical_network(network).sha256
    assert ours is None or theirs is None or ours == theirs


@cases(30)
@given(smooth_networks(heads=False))
def test_its_bytes_compute_what_the_network_does(sample: Sample) -> None:
    with tempfile.TemporaryDirectory() as folder:
        network = read_network(sample.save(Path(folder)), sample.length)
    numbers: dict[str, bytes] = {}
    found = canonical_network(network, keep=numbers)
    if found.data is None:
        return
    layers, sentences = Bytes(found.data, numbers), sample.sentences(2)
    for sentence, row in zip(sentences.tolist(), logits(network, sentences), strict=True):
        np.testing.assert_allclose(layers.floats_of(sentence), row, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("dynamo", [False, True], ids=["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", ["lstm", "gru", "lstm-2", "gru-2", "transformer", "transformer-2"])
@pytest.mark.parametrize("length", [1, 7])
def test_torch_exports_are_read(kind: str, length: int, dynamo: bool, tmp_path: Path) -> None:
    """Recurrences in one and two layers and both directions, and encoders, by both exporters."""
    pytest.importorskip("torch")
    path = exported(torch_module(kind, 9, length), tmp_path / "model.onnx", length, dynamo=dynamo)
    network = network_of(open_model(path), length, [(1, 2, 3)] * length)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    tokens = np.random.default_rng(length).integers(1, 4, size=(8, length))
    found = agree(network, lambda part: session.run(None, {"tokens": part})[0], tokens)
    assert found.difference < 1e-4


@pytest.mark.parametrize("dynamo", [False, True], ids=["torchscript", "dynamo"])
@pytest.mark.parametrize("kind", ["transformer", "masked"])
def test_encoders_are_certifiable_once_their_constants_are_plain(kind: str, dynamo: bool, tmp_path: Path) -> None:
    """The model that is made answers as the one given, padding included, also several sentences together, and the
    checkers read it as we do."""
    pytest.importorskip("torch")
    import onnxruntime

    length, sentences = 5, np.array([[1, 2, 3, 4, 5], [3, 1, 0, 0, 0], [8, 0, 0, 0, 0]])
    given = exported(torch_module(kind, 9, length), tmp_path / "given.onnx", length, dynamo=dynamo)
    made, path = adapted(given, Scores(2)), given
    assert (made is None) == dynamo
    if made is not None:
        path = tmp_path / "model.onnx"
        write_model(made[0], path)
        assert any("numbers" in note for note in made[1].notes)
    sessions = [onnxruntime.InferenceSession(str(one), providers=["CPUExecutionProvider"]) for one in (given, path)]
    expected, together = (session.run(None, {"tokens": sentences})[0] for session in sessions)
    np.testing.assert_allclose(together, expected, atol=1e-5)
    for sentence in sentences:
        answers = [session.run(None, {"tokens": sentence[None]})[0] for session in sessions]
        np.testing.assert_allclose(answers[0], answers[1], atol=1e-5)
        network = network_of(open_model(path), length, [(int(token),) for token in sentence])
        np.testing.assert_allclose(logits(network, sentence[None]), answers[0], atol=1e-5)
        model = lower.read_model(path.read_bytes(), {})
        assert canonical_network(network).sha256 == model.lower([["words", sentence.tolist()]], []).sha256


def test_weights_divided_by_their_length_are_put_in_as_numbers(tmp_path: Path) -> None:
    """Each runtime may round that length otherwise, so the network says which numbers it is about."""
    b, rng = Builder(), np.random.default_rng(0)
    x = b.call("Gather", b.constant(rng.normal(size=(9, 4)).astype(np.float32)), "tokens")
    weight = b.constant(rng.normal(size=(4, 2)).astype(np.float32))
    plain = b.call("Div", weight, b.call("ReduceL2", weight, axes=[0]))
    b.node("MatMul", [b.call("ReduceMean", x, axes=[1], keepdims=0), plain], ["logits"])
    given, path = tmp_path / "given.onnx", tmp_path / "model.onnx"
    onnx.save(b.proto([tokens("batch", 3)], [floats("logits", "batch", 2)], opset=17), given)
    with pytest.raises(Unsupported, match="ReduceL2 on constants rounds"):
        read_network(given, 3)
    made = adapted(given, Scores(2))
    assert made is not None
    assert made[1].notes == ("2 constants that it computes are put in as numbers",)
    write_model(made[0], path)
    sentences = rng.integers(0, 9, size=(8, 3))
    session = onnxruntime.InferenceSession(str(given), providers=["CPUExecutionProvider"])
    answers = session.run(None, {"tokens": sentences})[0]
    np.testing.assert_allclose(logits(read_network(path, 3), sentences), answers, atol=1e-6)
    assert lowered(path.read_bytes(), 3) is not None


def test_models_without_smooth_operators_are_left_alone(tmp_path: Path) -> None:
    sample = assembled(("convolution", "relu", "max_pool"), 1)
    proto, notes = with_plain_constants(sample.model, sample.save(tmp_path), "logits")
    assert proto is sample.model
    assert notes == []


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_small_transformers_of_the_usual_library_are_read(kind: str, tmp_path: Path) -> None:
    """Exported for any length; masks of several forms, positions from a buffer, answers for NaN."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    import onnxruntime

    torch.manual_seed(0)
    sizes = {
        "Bert": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12},
        "DistilBert": {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 12},
    }
    config = getattr(transformers, f"{kind}Config")(vocab_size=20, max_position_embeddings=9, **sizes[kind])
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()

    class Logits(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.inner(input_ids=input_ids, attention_mask=attention_mask).logits

    given, path = tmp_path / "given.onnx", tmp_path / "model.onnx"
    names, ones = ["input_ids", "attention_mask"], torch.ones((2, 4), dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = {name: {0: "batch", 1: "length"} for name in names}
        torch.onnx.export(Logits(), (ones, ones), given, dynamo=False, input_names=names, dynamic_axes=axes)
    made = adapted(given, Scores(2))
    assert made is not None
    write_model(made[0], path)
    session = onnxruntime.InferenceSession(str(given), providers=["CPUExecutionProvider"])
    for mask in ([1] * 5, [1, 1, 1, 0, 0]):
        tokens = np.array([[3, 1, 4, 1, 5]])
        network = network_of(open_model(path), 5, [(int(token),) for token in tokens[0]], [mask])
        answers = session.run(None, {"input_ids": tokens, "attention_mask": np.array([mask])})[0]
        np.testing.assert_allclose(logits(network, tokens), answers, atol=1e-5)


@pytest.mark.parametrize(("shape", "picked", "axis"), [((1, 9), (1, 4), 1), ((5, 4), (2, 4), 0), ((4, 4), (2, 3), 1)])
def test_elements_of_a_table_that_is_longer_than_its_indices(
    shape: tuple[int, ...], picked: tuple[int, ...], axis: int
) -> None:
    """The reference implementation of ONNX fails on these; encoders pick their positions so."""
    rng = np.random.default_rng(0)
    table, indices = rng.normal(size=shape), rng.integers(-shape[axis], shape[axis], picked)
    (found,), rounded = perform("GatherElements", "here", {"axis": axis}, [table, indices], 1, 18)
    node = onnx.helper.make_node("GatherElements", ["table", "indices"], ["out"], axis=axis)
    value, whole = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64
    inputs = [
        onnx.helper.make_tensor_value_info("table", value, shape),
        onnx.helper.make_tensor_value_info("indices", whole, picked),
    ]
    graph = onnx.helper.make_graph([node], "one", inputs, [onnx.helper.make_tensor_value_info("out", value, None)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"table": table, "indices": indices})
    assert not rounded
    np.testing.assert_array_equal(found, expected)


def test_double_models_agree_though_onnxruntime_scales_a_fused_product_by_a_float32(tmp_path: Path) -> None:
    table = np.random.default_rng(5).normal(size=(9, 4))
    graph = """
        <ir_version: 8, opset_import: ["" : 17]> scaled (int64[1, 3] ids) => (double[1, 4] out) <double[9, 4] table> {
            x = Gather (table, ids)
            s = Constant <value = double {0.70710678118654752}> ()
            q = Mul (x, s)
            t = Transpose <perm = [0, 2, 1]> (x)
            k = Mul (t, s)
            scores = MatMul (q, k)
            weights = Softmax <axis = -1> (scores)
            y = MatMul (weights, x)
            axes = Constant <value = int64[1] {1}> ()
            out = ReduceSum <keepdims = 0> (y, axes)
        }"""
    model = onnx.parser.parse_model(graph)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    onnx.save(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    rows = np.random.default_rng(6).integers(9, size=(8, 3))

    def run(part: Any) -> Any:
        return np.concatenate([session.run(None, {"ids": row[None]})[0] for row in part])

    found = agree(read_network(tmp_path / "model.onnx", 3), run, rows)
    assert 1e-11 < found.difference < found.bound < 1e-3
