"""What a model computes from tokens, a mask of the padding above all, is constant where all choices agree on it."""

from __future__ import annotations

import itertools
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from masked_models import STYLES, masked
from onnx import TensorProto, helper
from proof_cases import exact_logits as logits_of_the_checker
from random_graphs import Graph, Sample, finished

from swapproof.encodings.agreement import agree, random_sentences
from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_for, network_of, open_model, read_network
from swapproof.encodings.onnx_files.refusals import refusals_of
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs import check, lower

LENGTH, VOCABULARY = 4, 7
Choices = tuple[tuple[int, ...], ...]


@st.composite
def texts(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """Some words with their choices, then padding."""
    words = draw(st.integers(1, LENGTH))
    row = st.lists(st.integers(1, VOCABULARY - 1), min_size=1, max_size=3, unique=True).map(tuple)
    return (*(draw(row) for _ in range(words)), *[(0,)] * (LENGTH - words))


def lowered(model: lower.Model, choices: tuple[tuple[int, ...], ...]) -> lower.Lowered:
    space = SwapSpace(choices)
    return model.lower(inputs_of(space), words_of(space))


def checked(data: bytes, choices: tuple[tuple[int, ...], ...]) -> check.Network:
    found = lowered(lower.read_model(data), choices)
    return check.Network(found.data, found.numbers, found.no_float32)


def read(sample: Sample, choices: tuple[tuple[int, ...], ...]) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        return network_of(open_model(sample.save(Path(folder))), LENGTH, choices)


@cases(60)
@given(st.sampled_from(STYLES), st.integers(0, 2**32 - 1), texts())
def test_a_mask_is_a_constant_of_the_text(style: str, source: int, choices: tuple[tuple[int, ...], ...]) -> None:
    """On every sentence of the text: as onnxruntime computes, and exactly as the checker does."""
    sample = masked(style, source, LENGTH, VOCABULARY)
    with tempfile.TemporaryDirectory() as folder:
        path = sample.save(Path(folder))
        network = network_of(open_model(path), LENGTH, choices)
        found = np.array(list(itertools.product(*choices)))
        agree(network, sample.runner(path), np.concatenate([found, random_sentences(network, 8)]))
    other = checked(sample.model.SerializeToString(), choices)
    assert not other.no_float32
    for sentence in found.tolist():
        assert exact_logits(network, sentence)[0] == logits_of_the_checker(other, sentence)


@pytest.mark.parametrize("cast", [False, True])
def test_token_ids_are_compared_in_their_own_type(cast: bool, tmp_path: Path) -> None:
    """Equal(ids, an int32 0), of ids that are int32 or are cast to it: read by both, and as onnxruntime computes."""
    choices = ((1, 2), (3, 5), (0,), (0,))
    sample = masked("float", 2, LENGTH, VOCABULARY)
    graph = sample.model.graph
    equal = next(node for node in graph.node if node.op_type == "Equal")
    equal.input[1] = "zero"
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(0, dtype=np.int32), "zero"))
    if cast:
        graph.node.insert(0, helper.make_node("Cast", ["tokens"], ["narrow"], to=TensorProto.INT32))
        equal.input[0] = "narrow"
    else:
        graph.input[0].type.tensor_type.elem_type = TensorProto.INT32
    path = sample.save(tmp_path)
    assert refusals_of(path) == ()
    session, network = onnxruntime.InferenceSession(path), network_of(open_model(path), LENGTH, choices)
    found = np.array(list(itertools.product(*choices)))
    agree(network, lambda rows: session.run(None, {"tokens": rows.astype("int64" if cast else "int32")})[0], found)
    other = checked(sample.model.SerializeToString(), choices)
    assert [exact_logits(network, row)[0] == logits_of_the_checker(other, row) for row in found.tolist()] == [True] * 4


@pytest.mark.parametrize("style", STYLES)
def test_no_swap_may_reach_or_leave_the_padding(style: str) -> None:
    """Both readers refuse the choices, and a model whose choices they are not told."""
    sample, mixed = masked(style, 1, LENGTH, VOCABULARY), ((1, 2), (3, 0), (0,), (0,))
    with pytest.raises(Unsupported, match="choices of a position differ"):
        read(sample, mixed)
    with pytest.raises(check.Refused, match="from all choices"):
        checked(sample.model.SerializeToString(), mixed)
    with tempfile.TemporaryDirectory() as folder, pytest.raises(Unsupported, match="depends on the choices"):
        read_network(sample.save(Path(folder)), LENGTH)


def test_a_network_is_asked_only_about_its_own_choices() -> None:
    """Others with the same padding are fine; where the padding differs they are another's, in the checker too."""
    sample, choices = masked("float", 2, LENGTH, VOCABULARY), ((1, 2), (3,), (0,), (0,))
    network = read(sample, choices)
    assert Query.of(network, SwapSpace(((2,), (3,), (0,), (0,))), 0).network is network
    assert Query.of(network, SwapSpace(((1, 4), (5,), (0,), (0,))), 0).network is network
    for other in (((1, 2), (3,), (4,), (0,)), ((1, 0), (3,), (0,), (0,)), ((1, 2), (0,), (0,), (0,))):
        with pytest.raises(BadInput, match="other choices"):
            Query.of(network, SwapSpace(other), 0)
    model = lower.read_model(sample.model.SerializeToString())
    first = lowered(model, choices)
    assert lowered(model, choices) is first
    longer = lowered(model, ((1, 2), (3,), (4,), (5,)))
    assert longer.sha256 != first.sha256


@cases(60)
@given(st.sampled_from(STYLES), st.integers(0, 2**32 - 1), texts(), texts())
def test_texts_with_one_mask_share_their_network(style: str, source: int, one: Choices, other: Choices) -> None:
    """It is the network that would be read of the other text, and no other length of text is let in."""
    sample = masked(style, source, LENGTH, VOCABULARY)
    with tempfile.TemporaryDirectory() as folder:
        model = open_model(sample.save(Path(folder)))
        first, second = network_for(model, SwapSpace(one)), network_for(model, SwapSpace(other))
        fresh = network_of(model, LENGTH, other)
    alike = one.count((0,)) == other.count((0,))
    assert first.is_for(other) is (first is second) is alike
    assert canonical_of(second).sha256 == canonical_of(fresh).sha256 is not None


def test_branches_that_do_not_reach_the_output_are_not_looked_at() -> None:
    """Whatever their operators, domains and attributes; names must be unique nevertheless, and numbers stay."""
    g = Graph(np.random.default_rng(0), 17, small=True)
    table = g.constant(np.array([[1, 2], [3, -1]], np.float32))
    flat = g.call("Flatten", g.call("Gather", table, "tokens"))
    g.call("Sin", flat)
    value = helper.make_tensor_value_info("c", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Constant", [], ["c"], value_float=1.0)], "nothing", [], [value])
    g.call("If", g.constant(np.array(True)), then_branch=branch, else_branch=branch)
    g.nodes.append(helper.make_node("Strange", [flat], ["x", "y"], domain="elsewhere", scale=2.0))
    g.go(g.call("Relu", flat), 1, 2)
    sample = finished(g, length=1, vocabulary=2, classes=2)
    sample.model.opset_import.append(helper.make_opsetid("elsewhere", 1))
    data = sample.model.SerializeToString()
    network = checked(data, ((0, 1),))
    relu = next(i for i, node in enumerate(sample.model.graph.node) if node.op_type == "Relu")
    assert [type(layer) for layer in network.layers] == [check.Embedding, check.Rectifier]
    assert logits_of_the_checker(network, [1]) == [3, 0]
    with tempfile.TemporaryDirectory() as folder:
        other = read_network(sample.save(Path(folder)), 1)
    assert exact_logits(other, [1])[0] == [Fraction(3), Fraction(0)]
    assert [node.number for node in other.nodes][-1] == relu
    again = onnx.load_from_string(data)
    next(node for node in again.graph.node if node.op_type == "Sin").output[0] = flat
    with pytest.raises(check.Unusable, match="defined twice"):
        lower.read_model(again.SerializeToString())


def test_a_choice_that_cannot_be_computed_with_is_refused() -> None:
    """12 / token by words 3 and 4 is 4 and 3; by 0 it is nothing. That is said of the certificate, not of the model."""
    g = Graph(np.random.default_rng(0), 17, small=True)
    words = g.call("Gather", g.constant(np.array([[1, 2]] * 5, np.float32)), "tokens")
    count = g.call("Cast", g.call("Div", g.wholes(12), "tokens"), to=TensorProto.FLOAT)
    g.go(g.call("Add", g.call("Flatten", words), count), 1, 2)
    data = finished(g, length=1, vocabulary=5, classes=2).model.SerializeToString()
    assert logits_of_the_checker(checked(data, ((3,),)), [3]) == [5, 6]
    for choices in ((0,), (4, 0), (4, 3)):
        with pytest.raises(check.Refused):
            checked(data, (choices,))
    constant = Graph(np.random.default_rng(0), 17, small=True)
    words = constant.call("Gather", constant.constant(np.array([[1, 2]], np.float32)), "tokens")
    places = constant.call("Div", constant.wholes(1), constant.wholes(0))
    constant.go(constant.call("Flatten", constant.call("Gather", words, places, axis=1)), 1, 2)
    data = finished(constant, length=1, vocabulary=1, classes=2).model.SerializeToString()
    with pytest.raises(check.Unusable, match="division by 0"):
        checked(data, ((0,),))
