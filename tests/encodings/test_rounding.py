"""The a-priori bound covers every float evaluation: any order of summation, fused or not, numpy or onnxruntime."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from random_networks import Graph, Sample, finished, networks, tiny_networks

from swapproof.encodings.agreement import agree, random_sentences
from swapproof.encodings.errors import BadInput, Disagreement
from swapproof.encodings.evaluation import NUMBERS, Batch, logits, values
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Affine, At, Constant, Embedding, Network, Node, Scaling, Sum
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.rounding.float_errors import HEAD_SLACK, margin_errors, rounding_errors
from swapproof.encodings.walk import Meaning, forward

Array = NDArray[Any]
Dot = Callable[[Array, Array, Array, np.random.Generator], Array]
SINGLE, DOUBLE = 2.0**-24, 2.0**-53


# --- float32 dot products x @ w + b -------------------------------------------------------------------------------


def permuted(x: Array, w: Array, b: Array, random: np.random.Generator) -> Array:
    """One term after another, in any order, the bias anywhere among them."""
    terms = np.concatenate([x[:, :, None] * w[None], np.broadcast_to(b, (len(x), 1, len(b)))], axis=1)
    total = np.zeros((len(x), len(b)), dtype=np.float32)
    for place in random.permutation(terms.shape[1]):
        total = total + terms[:, place]
    return total


def pairwise(x: Array, w: Array, b: Array, random: np.random.Generator) -> Array:
    """A balanced tree over shuffled terms."""
    terms = list(np.moveaxis(x[:, :, None] * w[None], 1, 0))
    terms.append(np.broadcast_to(b, terms[0].shape))
    terms = [terms[place] for place in random.permutation(len(terms))]
    while len(terms) > 1:
        rest = [terms[-1]] if len(terms) % 2 else []
        terms = [a + c for a, c in zip(terms[::2], terms[1::2], strict=False)] + rest
    return np.asarray(terms[0])


def fused(x: Array, w: Array, b: Array, random: np.random.Generator) -> Array:
    """a * w + total rounded once (up to a double rounding), starting from the bias."""
    total = np.broadcast_to(b, (len(x), len(b))).astype(np.float32)
    for k in random.permutation(w.shape[0]):
        exact_product = x[:, k, None].astype(np.float64) * w[k].astype(np.float64)
        total = (exact_product + total).astype(np.float32)
    return total


def blocked(x: Array, w: Array, b: Array, random: np.random.Generator) -> Array:
    """Partial products of a few rows, the bias first."""
    total, size = np.broadcast_to(b, (len(x), len(b))), int(random.integers(1, 5))
    for start in range(0, len(w), size):
        total = total + x[:, start : start + size] @ w[start : start + size]
    return np.asarray(total)


DOTS: tuple[Dot, ...] = (permuted, pairwise, fused, blocked)


def in_single(network: Network, tokens: Array, dot: Dot, random: np.random.Generator) -> dict[int, Array]:
    def multiply(batch: Batch, layer: Affine, inputs: list[Array], at: At) -> Array:
        weight, bias = (part.astype(np.float32) for part in (layer.weight, layer.bias))
        return dot(inputs[0].reshape(-1, len(weight)), weight, bias, random).reshape(-1, *at.node.shape)

    own = Meaning("value in another order of sums", {**NUMBERS.rules, Affine: multiply})
    everything = range(len(network.nodes))
    found = forward(network, own, Batch(len(tokens), tokens, np.float32), wanted=everything)
    assert all(array.dtype == np.float32 for array in found.values())
    return found


def read(sample: Sample) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        return read_network(sample.save(Path(folder)), sample.length)


def bounds(network: Network, tokens: Array, unit: float) -> tuple[dict[int, Array], dict[int, Array]]:
    """Values in float64 and, for each, how far a value with this unit may be from it."""
    found = values(network, tokens)
    sizes = {index: np.abs(array) for index, array in found.items()}
    own = rounding_errors(network, sizes, DOUBLE)
    grown = {index: size + own[index] for index, size in sizes.items()}
    errors = rounding_errors(network, grown, unit)
    return found, {index: errors[index] + own[index] for index in found}


@cases(60)
@given(networks(kinds=False), st.sampled_from(DOTS), st.integers(0, 2**32 - 1))
def test_float32_in_any_order_is_within_the_bound(sample: Sample, dot: Dot, source: int) -> None:
    """Permuted, pairwise, fused and blocked sums, at every node of random networks."""
    network, tokens = read(sample), sample.sentences(3, source)
    found, allowed = bounds(network, tokens, SINGLE)
    single = in_single(network, tokens, dot, np.random.default_rng(source))
    for index in found:
        assert (np.abs(single[index].astype(np.float64) - found[index]) <= allowed[index]).all()


@cases(40)
@given(tiny_networks(weights="normal"), st.integers(0, 2**32 - 1))
def test_float64_is_within_the_bound_of_the_exact_logits(sample: Sample, source: int) -> None:
    """With the unit of double precision the bound covers the float64 evaluation, against exact rationals."""
    network = read(sample)
    tokens = sample.sentences(2, source)
    found = values(network, tokens)
    sizes = {index: np.abs(array) * (1 + 2.0**-30) for index, array in found.items()}
    last = len(network.nodes) - 1
    errors = rounding_errors(network, sizes, DOUBLE)[last][:, 0]
    for row, sentence in enumerate(tokens):
        exact, _ = exact_logits(network, [int(token) for token in sentence])
        for column, true in enumerate(exact):
            assert abs(Fraction(float(found[last][row, 0, column])) - true) <= Fraction(float(errors[row, column]))


def test_the_bound_is_attained_up_to_a_small_factor() -> None:
    """It is no wild guess: adding 64 numbers one after another in float32 loses a good part of what is allowed."""
    count = 64
    weight = np.full((count, 1), 1.0)
    network = chain(count, Affine(weight, np.zeros(1)))
    tokens = np.zeros((1, 1), dtype=np.int64)
    table = np.random.default_rng(0).uniform(1, 2, size=(1, count)).astype(np.float32).astype(np.float64)
    network = replace_table(network, table)
    found, allowed = bounds(network, tokens, SINGLE)
    total = np.float32(0)
    for term in table[0].astype(np.float32):
        total = np.float32(total + term)
    lost = abs(float(total) - float(found[1][0, 0, 0]))
    assert 0 < lost <= float(allowed[1][0, 0, 0]) < 300 * lost


def chain(width: int, *layers: Affine | Scaling) -> Network:
    """One embedded word of this width, then these layers one after another."""
    nodes = [Node(Embedding(np.ones((1, width)), np.zeros((1,), dtype=np.int64)), (), (1, width), "words")]
    for layer in layers:
        size = layer.weight.shape[1] if isinstance(layer, Affine) else layer.add.shape[-1]
        nodes.append(Node(layer, (len(nodes) - 1,), (1, size), "layer"))
    return Network(tuple(nodes), 1, 1)


def replace_table(network: Network, table: Array) -> Network:
    first = network.nodes[0]
    layer = Embedding(table, np.zeros((1,), dtype=np.int64))
    return Network((Node(layer, (), first.shape, "words"), *network.nodes[1:]), 1, len(table))


@pytest.mark.parametrize("source", range(20))
def test_an_addition_that_starts_the_accumulation_is_covered(source: int) -> None:
    """Runtimes fuse W a and the sum after it, and then round at the size of the summand K times."""
    random = np.random.default_rng(source)
    width = 400
    weight = (1e-3 * random.normal(size=(width, 2))).astype(np.float32).astype(np.float64)
    added = np.array([[1000.0, -3000.0]])
    one = np.ones((1, 2))
    row = random.normal(size=(1, width)).astype(np.float32)
    network = replace_table(chain(width, Affine(weight, np.zeros(2)), Scaling(one, one, added)), row.astype(np.float64))
    found, allowed = bounds(network, np.zeros((1, 1), dtype=np.int64), SINGLE)
    single = permuted(row, weight.astype(np.float32), np.zeros(2, np.float32), random)  # warm: any order alone
    assert (np.abs(single - found[1][0]) <= allowed[1][0]).all()
    total = added.astype(np.float32)
    for k in random.permutation(width):
        total = total + row[:, k, None] * weight[k].astype(np.float32)
    assert (np.abs(total.astype(np.float64) - found[2][0]) <= allowed[2][0]).all()
    # And the same when what is added is another value of the network.
    nodes = (*network.nodes[:2], Node(Constant(added), (), (1, 2), "other"), Node(Sum((1, 1)), (1, 2), (1, 2), "sum"))
    found, allowed = bounds(Network(nodes, 1, 1), np.zeros((1, 1), dtype=np.int64), SINGLE)
    assert (np.abs(total.astype(np.float64) - found[3][0]) <= allowed[3][0]).all()


@pytest.mark.parametrize("source", range(20))
def test_factors_folded_into_weights_are_covered(source: int) -> None:
    """A product after W a + b that cancels: rounding the scaled weights is relative to the terms, not to their sum."""
    random = np.random.default_rng(source)
    weight = np.array([[1.0], [-1.0]]) * np.float32(random.uniform(1, 2))
    factor, bias = np.float32(random.uniform(1, 2)), np.float32(random.uniform(1, 2))
    row = np.array([[1.0, 1.0]], dtype=np.float32) * np.float32(random.uniform(1, 2))
    row[0, 1] = np.nextafter(row[0, 1], np.float32(0))
    one = np.ones((1, 1))
    layers = Affine(weight.astype(np.float64), np.array([float(bias)])), Scaling(one * float(factor), one, one * 0.0)
    network = replace_table(chain(2, *layers), row.astype(np.float64))
    found, allowed = bounds(network, np.zeros((1, 1), dtype=np.int64), SINGLE)
    scaled, shift = (weight.astype(np.float32) * factor), np.float32(bias * factor)
    total = np.float32(np.float32(shift + row[0, 0] * scaled[0, 0]) + row[0, 1] * scaled[1, 0])
    assert abs(float(total) - float(found[2][0, 0, 0])) <= float(allowed[2][0, 0, 0])


def test_the_factors_of_a_gemm_are_covered(tmp_path: Path) -> None:
    """alpha * (a w) + beta * c rounds three times where a w + c rounds twice; some words need all of it."""
    numbers = np.random.default_rng(0).uniform(1, 1.1, size=(20_000, 1)).astype(np.float32)
    weight, alpha, beta, added = (np.float32(n) for n in (1.0054146, 1.0164847, 1.0164453, 1.6977932e-06))
    g = Graph(np.random.default_rng(0), 17)
    flat = g.call("Flatten", g.call("Gather", g.constant(numbers), "tokens"))
    matrix, bias = g.constant(np.full((1, 2), weight)), g.constant(np.full(2, added))
    g.go(g.call("Gemm", flat, matrix, bias, alpha=float(alpha), beta=float(beta)), 1, 2)
    network = read_network(finished(g, length=1, vocabulary=20_000, classes=2).save(tmp_path))
    last = len(network.nodes) - 1
    found, allowed = bounds(network, np.arange(20_000)[:, None], SINGLE)
    lost = np.abs((alpha * (numbers * weight) + beta * added).astype(np.float64) - found[last][:, 0])
    assert (lost <= allowed[last][:, 0]).all()
    assert (lost > 2 * SINGLE * np.abs(found[last][:, 0])).any()


def test_values_that_might_overflow_have_no_bound() -> None:
    """Beyond 2**120 (2**15 in half precision) a float evaluation may be infinite: so is the bound."""
    one = np.ones((1, 2))
    network = chain(2, Affine(np.full((2, 2), 2.0**60), np.zeros(2)), Scaling(one * 2.0**62, one, one))
    tokens = np.zeros((1, 1), dtype=np.int64)
    found = values(network, tokens)
    sizes = {index: np.abs(array) for index, array in found.items()}
    errors = rounding_errors(network, sizes)
    assert np.isfinite(errors[1]).all()
    assert np.isinf(errors[2]).all()
    small = chain(2, Affine(np.full((2, 2), 2.0**14), np.zeros(2)))
    sizes = {index: np.abs(array) for index, array in values(small, tokens).items()}
    assert np.isinf(rounding_errors(small, sizes, 2.0**-11)[1]).all()
    assert np.isfinite(rounding_errors(small, sizes)[1]).all()


def test_cancelling_terms_count_by_their_own_size() -> None:
    """2**100 - 2**100 is 0 and its float sum may be anything of the size of 2**76."""
    network = chain(2, Affine(np.array([[2.0**100], [-(2.0**100)]]), np.zeros(1)))
    sizes = {index: np.abs(array) for index, array in values(network, np.zeros((1, 1), dtype=np.int64)).items()}
    assert float(sizes[1][0, 0, 0]) == 0.0
    assert float(rounding_errors(network, sizes)[1][0, 0, 0]) >= 2.0**76


def test_a_coarser_unit_covers_the_rounding_of_constants() -> None:
    """A double network swept in single precision: its weights are rounded too."""
    random = np.random.default_rng(0)
    for _ in range(50):
        layer = Affine(random.normal(size=(1, 3)), random.normal(size=3))
        multiply, divide, add = (random.normal(size=(1, 3)) for _ in range(3))
        scaling = Scaling(multiply, divide, add)
        network = replace_table(chain(1, layer, scaling), random.normal(size=(1, 1)))
        network = Network(network.nodes, 1, 1, unit=DOUBLE)
        tokens = np.zeros((1, 1), dtype=np.int64)
        found, allowed = bounds(network, tokens, SINGLE)
        single = values(network, tokens, dtype=np.float32)
        for index in found:
            assert (np.abs(single[index].astype(np.float64) - found[index]) <= allowed[index]).all()


@cases(25)
@given(tiny_networks(weights="normal"))
def test_margins_beyond_their_bound_keep_their_sign(sample: Sample) -> None:
    """margin_errors: no float32 evaluation of onnxruntime turns a real margin that is larger."""
    with tempfile.TemporaryDirectory() as folder:
        path = sample.save(Path(folder))
        network = read_network(path, sample.length)
        tokens = sample.sentences(8)
        deployed = sample.runner(path)(tokens)
    found = values(network, tokens)
    sizes = {index: np.abs(array) * (1 + 2.0**-30) for index, array in found.items()}
    last = found[len(network.nodes) - 1][:, 0]
    for label in range(network.classes):
        allowed = margin_errors(network, sizes, label)
        real = last[:, [label]] - last
        sure = real > allowed
        assert (deployed[:, [label]] > deployed)[sure].all()


@pytest.mark.parametrize(("head", "name"), [("Softmax", "softmax"), ("LogSoftmax", "log_softmax")])
@pytest.mark.parametrize("level", [0.0, 1.0, -30.0, 500.0, 2.0**17])
def test_the_slack_of_softmax_keeps_the_order(head: str, name: Any, level: float, tmp_path: Path) -> None:
    """Float logits that differ by the slack come out of onnxruntime's softmax in the same strict order."""
    slack = HEAD_SLACK[name]
    random = np.random.default_rng(0)
    rows = (level + random.normal(size=(200, 4)) * 0.5).astype(np.float32)
    rows[:, 0] = rows.max(axis=1)
    rows[:, 1] = (rows[:, 0].astype(np.float64) - slack * random.uniform(1, 2, size=200)).astype(np.float32)
    apart = rows[:, :1].astype(np.float64) - rows
    g = Graph(random, 17)
    g.go(g.call("Gather", g.constant(rows), "tokens"), 1, 1, 4)
    g.go(g.call("Flatten", g.at), 1, 4)
    sample = finished(g, length=1, vocabulary=200, classes=4, head=head)
    path = sample.save(tmp_path)
    answers = sample.runner(path)(np.arange(200)[:, None])
    sure = apart >= slack
    assert sure[:, 1:].sum() > 200
    assert (answers[:, :1] > answers)[sure].all()
    agree(read_network(path), sample.runner(path), np.arange(200)[:, None])


@pytest.mark.parametrize("head", ["Sigmoid", "Tanh"])
def test_saturating_heads_prove_nothing_about_floats(head: str, tmp_path: Path) -> None:
    """Sigmoid and tanh make far apart logits equal floats, so the margin bound is infinite."""
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(np.array([[30.0, 90.0]], dtype=np.float32)), "tokens"), 1, 1, 2)
    g.go(g.call("Flatten", g.at), 1, 2)
    sample = finished(g, length=1, vocabulary=1, classes=2, head=head)
    path = sample.save(tmp_path)
    network, tokens = read_network(path), np.zeros((1, 1), dtype=np.int64)
    answers = sample.runner(path)(tokens)
    assert answers[0, 0] == answers[0, 1]
    sizes = {index: np.abs(array) for index, array in values(network, tokens).items()}
    assert np.isinf(margin_errors(network, sizes, 1)).all()
    assert agree(network, sample.runner(path), tokens).difference < 1e-5


# --- agreement with the deployed model ----------------------------------------------------------------------------


def simple(tmp_path: Path, scale: float = 1.0) -> tuple[Sample, Network, Path]:
    g = Graph(np.random.default_rng(0), 17)
    g.go(g.call("Gather", g.constant(scale * g.numbers(50, 3)), "tokens"), 1, 4, 3)
    g.go(g.call("Flatten", g.at), 1, 12)
    g.go(g.call("MatMul", g.at, g.constant(scale * g.numbers(12, 3))), 1, 3)
    sample = finished(g, length=4, vocabulary=50, classes=3)
    path = sample.save(tmp_path)
    return sample, read_network(path), path


def test_agreement_reports_the_largest_difference_and_its_bound(tmp_path: Path) -> None:
    sample, network, path = simple(tmp_path)
    found = agree(network, sample.runner(path), random_sentences(network, 100))
    assert 0.0 <= found.difference <= found.bound < 1e-4
    assert found.sentences == 100


def test_random_sentences_are_reproducible_and_cover_the_vocabulary(tmp_path: Path) -> None:
    _, network, _ = simple(tmp_path)
    tokens = random_sentences(network, 1000, seed=5)
    assert np.array_equal(tokens, random_sentences(network, 1000, seed=5))
    assert set(tokens.ravel().tolist()) == set(range(50))
    assert tokens.shape == (1000, 4)


def test_a_difference_beyond_rounding_is_a_disagreement(tmp_path: Path) -> None:
    """One output of one sentence off by ten times the bound is found, whatever its block, and named."""
    sample, network, path = simple(tmp_path)
    run = sample.runner(path)
    tokens = random_sentences(network, 70)
    bound = agree(network, run, tokens).bound
    target = tokens[57].copy()

    def spoiled(rows: Array) -> Array:
        answers = run(rows).astype(np.float64)
        answers[(rows == target).all(axis=1), 2] += 10 * bound + 1e-4
        return answers

    with pytest.raises(Disagreement, match=r"class 2 of sentence 57 .* rounding explains") as caught:
        agree(network, spoiled, tokens)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ArithmeticError)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_answers_that_are_no_numbers_are_a_disagreement(bad: float, tmp_path: Path) -> None:
    sample, network, path = simple(tmp_path)
    run = sample.runner(path)

    def spoiled(rows: Array) -> Array:
        answers = run(rows)
        answers[3, 1] = bad
        return answers

    with pytest.raises(Disagreement, match=f"answers {bad} for class 1 of sentence 3"):
        agree(network, spoiled, random_sentences(network, 8))


@pytest.mark.parametrize("scale", [1e20, 1e30])
def test_a_model_that_overflows_is_bad_input(scale: float, tmp_path: Path) -> None:
    """Finite weights whose sums are infinite in float32: the model's own answer is no number."""
    sample, network, path = simple(tmp_path, scale=scale)
    with pytest.raises(BadInput, match="grow beyond") as caught:
        agree(network, sample.runner(path), random_sentences(network, 50))
    assert "\n" not in str(caught.value)


def test_answers_of_another_shape_are_a_disagreement(tmp_path: Path) -> None:
    sample, network, path = simple(tmp_path)
    run = sample.runner(path)
    with pytest.raises(Disagreement, match=r"shape \[5, 2\] for 5 sentences; \[5, 3\]"):
        agree(network, lambda rows: run(rows)[:, :2], random_sentences(network, 5))


def test_a_network_of_other_weights_disagrees(tmp_path: Path) -> None:
    """The smallest change of one weight that rounding cannot hide."""
    sample, network, path = simple(tmp_path)
    nodes = list(network.nodes)
    last = nodes[-1].layer
    assert isinstance(last, Affine)
    weight = last.weight.copy()
    weight[0, 0] += 1e-4
    nodes[-1] = Node(Affine(weight, last.bias), nodes[-1].inputs, nodes[-1].shape, nodes[-1].origin)
    with pytest.raises(Disagreement):
        agree(Network(tuple(nodes), network.length, 50), sample.runner(path), random_sentences(network, 50))


def test_large_tables_are_read_at_once_and_not_copied(tmp_path: Path) -> None:
    """A vocabulary of 20,000 words of 300 numbers keeps its float32 memory."""
    table = np.random.default_rng(0).normal(size=(20_000, 300)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "tokens"], ["words"]),
            helper.make_node("ReduceMean", ["words"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("Gemm", ["mean", "matrix"], ["logits"]),
        ],
        "large",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["n", 200])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(table[:300, :2].copy(), "matrix")],
    )
    path = tmp_path / "large.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    network = read_network(path)
    (words,) = (node.layer for node in network.nodes if isinstance(node.layer, Embedding))
    assert not isinstance(words.table, np.ndarray)
    assert words.table.stored.nbytes == table.nbytes
    tokens = random_sentences(network, 2)
    expected = table.astype(np.float64)[tokens].mean(axis=1) @ table[:300, :2].astype(np.float64)
    assert np.allclose(logits(network, tokens), expected)
