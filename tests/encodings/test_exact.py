"""Exact rational logits equal brute force over Fractions, and "no rounding" means bit-for-bit equality everywhere."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from numpy.typing import NDArray
from onnx import TensorProto
from random_networks import Graph, Sample, finished, networks, tiny_networks

from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import (
    Affine,
    Constant,
    Embedding,
    Maximum,
    Network,
    Node,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.onnx_files.onnx_reading import read_network

Array = NDArray[Any]


def brute_force(network: Network, tokens: Sequence[int]) -> list[Fraction]:
    """The definition of every layer, one Fraction at a time."""
    known: list[list[Fraction]] = []  # flat
    for node in network.nodes:
        inputs = [known[source] for source in node.inputs]
        known.append(layer(node, inputs, tokens))
    return known[-1]


def fractions(array: Array) -> list[Fraction]:
    return [Fraction(float(number)) for number in np.asarray(array).ravel()]


def layer(node: Node, inputs: list[list[Fraction]], tokens: Sequence[int]) -> list[Fraction]:
    match node.layer:
        case Embedding(table, positions):
            return [number for place in positions.ravel() for number in fractions(table[tokens[int(place)]])]
        case Constant(value):
            return fractions(value)
        case Rearrangement(index):
            flat = [number for part in inputs for number in part]
            return [flat[int(place)] for place in index.ravel()]
        case Affine(weight, bias):
            rows, columns = weight.shape
            matrix, shift = fractions(weight), fractions(bias)
            return [
                sum((inputs[0][start + k] * matrix[k * columns + m] for k in range(rows)), shift[m])
                for start in range(0, len(inputs[0]), rows)
                for m in range(columns)
            ]
        case Scaling(multiply, divide, add, _):
            parts = zip(inputs[0], fractions(multiply), fractions(divide), fractions(add), strict=True)
            return [x * m / d + a for x, m, d, a in parts]
        case Sum(signs):
            return [
                sum((sign * number for sign, number in zip(signs, column, strict=True)), Fraction(0))
                for column in zip(*inputs, strict=True)
            ]
        case Rectifier(slope):
            return [max(x, Fraction(0)) + Fraction(slope) * min(x, Fraction(0)) for x in inputs[0]]
        case Maximum():
            width = len(inputs[0]) // node.size
            return [max(inputs[0][start : start + width]) for start in range(0, len(inputs[0]), width)]
        case Product():
            return [x * y for x, y in zip(*inputs, strict=True)]
        case other:
            raise AssertionError(f"{other} has no exact value")


def read(sample: Sample) -> Network:
    with tempfile.TemporaryDirectory() as folder:
        return read_network(sample.save(Path(folder)), sample.length)


@cases(80)
@given(networks(half=True))
def test_exact_logits_equal_brute_force(sample: Sample) -> None:
    """Over all operators, three precisions, normal and small weights."""
    network = read(sample)
    for sentence in sample.sentences(2).tolist():
        assert exact_logits(network, sentence)[0] == brute_force(network, sentence)


def deployed(sample: Sample, tokens: Array) -> tuple[Network, list[Array]]:
    """The network, and onnxruntime's answers with and without graph optimisations, together and one by one."""
    with tempfile.TemporaryDirectory() as folder:
        path = sample.save(Path(folder))
        runs = [sample.runner(path, optimised=optimised) for optimised in (True, False)]
        answers = [run(tokens) for run in runs]
        answers += [np.concatenate([run(tokens[row : row + 1]) for row in range(len(tokens))]) for run in runs]
        return read_network(path, sample.length), answers


@cases(60)
@given(networks(weights="small", half=True))
def test_unrounded_means_the_same_bits_in_onnxruntime(sample: Sample) -> None:
    """Small integer weights over all operators: wherever no rounding is said to be possible, there is none."""
    tokens = sample.sentences(3)
    network, answers = deployed(sample, tokens)
    for row, sentence in enumerate(tokens.tolist()):
        exact, unrounded = exact_logits(network, sentence)
        if unrounded:
            for answer in answers:
                assert [Fraction(float(number)) for number in answer[row]] == exact


@cases(40)
@given(tiny_networks(weights="small", shapes=("mlp", "deep", "cnn", "residual", "maximum")))
def test_small_integer_networks_are_never_rounded(sample: Sample) -> None:
    """Integers of a few bits: every evaluation is exact and known to be."""
    tokens = sample.sentences(3)
    network, answers = deployed(sample, tokens)
    for row, sentence in enumerate(tokens.tolist()):
        exact, unrounded = exact_logits(network, sentence)
        assert unrounded
        for answer in answers:
            assert [Fraction(float(number)) for number in answer[row]] == exact


def one_word(*row: float, kind: str = "float32") -> Graph:
    """A vocabulary of one word with this embedding."""
    g = Graph(np.random.default_rng(0), 17, kind=kind)
    g.go(g.call("Gather", g.constant(np.array([row], dtype=kind)), "tokens"), 1, 1, len(row))
    g.go(g.call("Flatten", g.at), 1, len(row))
    return g


def product_with(g: Graph, *rows: Sequence[float]) -> None:
    matrix = np.array(rows, dtype=g.kind)
    g.go(g.call("MatMul", g.at, g.constant(matrix)), 1, matrix.shape[1])


def judged(g: Graph, head: str = "") -> tuple[list[Fraction], bool]:
    network = read(finished(g, length=1, vocabulary=1, classes=g.shape[1], head=head))
    return exact_logits(network, [0])


@pytest.mark.parametrize(("largest", "unrounded"), [(2.0**23, True), (2.0**24, False)])
def test_sums_up_to_the_grid(largest: float, unrounded: bool) -> None:
    """2**23 + 2**23 - 1 fits 24 bits; 2**24 + 1 does not, nor does a partial sum on the way to less."""
    g = one_word(largest, 1.0)
    product_with(g, [1.0, 0.0], [1.0, 1.0])
    exact, plain = judged(g)
    assert exact == [Fraction(largest) + 1, 1]
    assert plain is unrounded


def test_small_sums_of_large_terms_may_round() -> None:
    """2**24 + 1 - 2**24 is 1, and 0 or 1 in floats by their order."""
    g = one_word(2.0**24, 1.0)
    product_with(g, [1.0, 0.0], [1.0, 1.0])
    product_with(g, [1.0, 0.0], [0.0, 1.0])
    g.go(g.call("Sub", g.at, g.constant(np.array([2.0**24, 0.0], dtype=np.float32))), 1, 2)
    exact, plain = judged(g)
    assert exact == [1, 1]
    assert not plain


def test_fused_sums_are_judged_as_one() -> None:
    """Each sum alone fits its grid; added up as one, as a runtime may, they do not."""
    g = one_word(2.0**23, -(2.0**23), 1.0)
    product_with(g, [1.0, 0.0], [1.0, 0.0], [0.0, 1.0])
    before = g.at
    g.go(g.call("Add", g.call("Relu", before), g.constant(np.array([[1.0, 0.0]], dtype=np.float32))), 1, 2)
    assert judged(g)[1]  # the rectifier between keeps them apart
    g = one_word(2.0**23, -(2.0**23), 1.0)
    product_with(g, [1.0, 0.0], [1.0, 0.0], [0.0, 1.0])
    g.go(g.call("Add", g.at, g.call("Neg", g.at)), 1, 2)
    assert not judged(g)[1]


def test_fused_sums_are_judged_as_one_across_moves() -> None:
    """The same where the product is moved about before it is added."""
    for added, unrounded in ((False, True), (True, False)):
        g = one_word(2.0**23, -(2.0**23), 1.0)
        product_with(g, [1.0, 0.0], [1.0, 0.0], [0.0, 1.0])
        backwards = [g.wholes(-1), g.wholes(-3), g.wholes(1), g.wholes(-1)]
        g.go(g.call("Slice", g.at, *backwards), 1, 2)
        if added:
            g.go(g.call("Add", g.at, g.call("Neg", g.at)), 1, 2)
        exact, plain = judged(g)
        assert exact == ([0, 0] if added else [1, 0])
        assert plain is unrounded


def test_what_makes_rounding_possible() -> None:
    """Weights of many bits, a third, a leaky slope of 0.01, underflow, and a head: each is said."""
    for row, matrix in (
        ((1.1, 1.0), ([1.3, 0.0], [0.0, 1.0])),
        ((2.0**-70, 1.0), ([2.0**-70, 0.0], [0.0, 1.0])),
        ((2.0**100, 1.0), ([2.0**100, 0.0], [0.0, 1.0])),
        ((2.0**120, 1.0), ([1.0, 0.0], [1.0, 1.0])),
    ):
        g = one_word(*row)
        product_with(g, *matrix)
        assert not judged(g)[1]
    g = one_word(6.0, 1.0)
    g.go(g.call("Div", g.at, g.constant(np.array([3.0], dtype=np.float32))), 1, 2)
    exact, plain = judged(g)
    assert exact == [2, Fraction(1, 3)]
    assert not plain
    g = one_word(-1.0, 1.0)
    g.go(g.call("LeakyRelu", g.at, alpha=0.01), 1, 2)
    assert judged(g)[1]  # one times any slope is that slope
    g = one_word(-5.0, 1.0)
    g.go(g.call("LeakyRelu", g.at, alpha=0.01), 1, 2)
    assert not judged(g)[1]
    for head in ("Softmax", "LogSoftmax", "Sigmoid", "Tanh"):
        assert not judged(one_word(1.0, 2.0), head)[1]


def test_division_by_powers_of_two_is_exact() -> None:
    g = one_word(6.0, 1.0)
    g.go(g.call("Div", g.at, g.constant(np.array([4.0, 0.5], dtype=np.float32))), 1, 2)
    assert judged(g) == ([Fraction(3, 2), 2], True)


@pytest.mark.parametrize(("number", "unrounded"), [(2048.0, True), (2049.0, False), (2050.0, True), (2.0**-25, False)])
def test_a_cast_to_half_precision(number: float, unrounded: bool) -> None:
    """Eleven bits are kept."""
    g = one_word(number, 0.0)
    half = g.call("Cast", g.at, to=TensorProto.FLOAT16)
    g.go(g.call("Cast", half, to=TensorProto.FLOAT), 1, 2)
    sample = finished(g, length=1, vocabulary=1, classes=2)
    network, answers = deployed(sample, np.zeros((1, 1), dtype=np.int64))
    exact, plain = exact_logits(network, [0])
    assert exact == [Fraction(number), 0]
    assert not (plain and not unrounded)
    if plain:
        assert all(float(answer[0, 0]) == number for answer in answers)


def test_double_networks_have_their_own_grid() -> None:
    """2**24 + 1 is no rounding in double precision; 2**53 + 1 is."""
    for exponent, unrounded in ((24, True), (53, False)):
        g = one_word(2.0**exponent, 1.0, kind="float64")
        product_with(g, [1.0, 0.0], [1.0, 1.0])
        exact, plain = judged(g)
        assert exact[0] == 2**exponent + 1
        assert plain is unrounded


def test_ties_are_exact() -> None:
    """Two classes of one logit tie over the reals and in every float evaluation."""
    g = one_word(3.0, -1.0)
    product_with(g, [1.0, 1.0], [2.0, 2.0])
    exact, plain = judged(g)
    assert exact[0] == exact[1] == 1
    assert plain


@cases(25)
@given(networks(weights="small", heads=False, kinds=False))
def test_every_sentence_of_a_small_vocabulary(sample: Sample) -> None:
    """All sentences of the first two positions: exact and brute force agree on each."""
    network = read(sample)
    base = sample.sentences(1)[0].tolist()
    for first, second in product(range(2), repeat=2):
        sentence = [first, second, *base[2:]]
        assert exact_logits(network, sentence)[0] == brute_force(network, sentence)
