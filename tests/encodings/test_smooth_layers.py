"""Products and curves: their numbers are those of the mathematics, of onnxruntime, and of the canonical bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from canonical_bytes import Bytes
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.canonical import canonical_network
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import (
    Account,
    Affine,
    Constant,
    Curve,
    Embedding,
    Function,
    Network,
    Node,
    Product,
    Rearrangement,
    Sum,
)
from swapproof.encodings.onnx_files.onnx_writing import embedded, model_behind_embedding
from swapproof.encodings.rounding.certified_float32 import claims_of
from swapproof.encodings.smooth.curves import CURVES
from swapproof.encodings.ties import always_tied

TRUE: dict[Function, Callable[[float], float]] = {
    "exp": math.exp,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)) if x > -700 else 0.0,
    "erf": math.erf,
    "reciprocal": lambda x: 1.0 / x,
    "sqrt": math.sqrt,
}


@pytest.mark.parametrize("function", TRUE)
@given(st.lists(st.floats(-60, 60), min_size=1))
def test_curves_are_the_functions_that_they_are_called(function: Function, numbers: list[float]) -> None:
    """In both float types, within a few units in the last place of the greatest number met."""
    given = np.array(numbers)
    if function in ("reciprocal", "sqrt"):
        given = np.abs(given) + 2.0**-10
    for kind in (np.float64, np.float32):
        x = given.astype(kind)
        found = CURVES[function](x)
        assert found.dtype == kind
        expected = np.array([TRUE[function](float(number)) for number in x])
        unit = float(np.finfo(kind).eps)
        np.testing.assert_allclose(found, expected, rtol=8 * unit, atol=4 * unit)


def test_curves_of_huge_numbers_are_their_limits() -> None:
    x = np.array([-1e300, 1e300])
    for function, limits in (("exp", [0, np.inf]), ("tanh", [-1, 1]), ("sigmoid", [0, 1]), ("erf", [-1, 1])):
        np.testing.assert_array_equal(CURVES[function](x), limits)  # type: ignore[index]
    assert np.isnan(CURVES["erf"](np.array([np.nan]))).all()


def layered(function: Function, positive: bool = False) -> Network:
    """Two words of two numbers each; the function of a difference times a number, and of a square."""
    table = np.array([[0.5, -1.0], [0.25, 2.0], [-0.75, 1.5], [1.0, 0.125]])
    nodes = (
        Node(Embedding(np.abs(table) + 0.5 if positive else table, np.array([[0, 1]])), (), (1, 2, 2), "words", 0),
        Node(Rearrangement(np.array([[0, 1]])), (0,), (1, 2), "first", 1),
        Node(Rearrangement(np.array([[3, 2]])), (0,), (1, 2), "second", 2),
        Node(Product(), (1, 2), (1, 2), "product", 3),
        Node(Product(), (2, 2), (1, 2), "square", 4),
        Node(Constant(np.array([[1.0, 0.5]])), (), (1, 2), "constant", 5),
        Node(Rearrangement(np.array([[0, 1, 2, 3, 4]])), (3, 4, 5), (1, 5), "together", 6),
        Node(Curve(function), (6,), (1, 5), "bent", 7),
        Node(Affine(np.arange(10.0).reshape(5, 2) % 3 - 1, np.array([0.0, 0.25])), (7,), (1, 2), "out", 8),
        Node(Sum((1, -1)), (8, 3), (1, 2), "total", 9),
    )
    return Network(nodes, length=2, vocabulary_size=4, account=Account(10))


def by_hand(network: Network, function: Function, tokens: tuple[int, int]) -> list[float]:
    (embedding, *_) = network.nodes
    assert isinstance(embedding.layer, Embedding)
    a, b = (embedding.layer.table[token] for token in tokens)
    products = [float(a[0] * b[1]), float(a[1] * b[0])]
    read = [*products, float(b[1] ** 2), float(b[0] ** 2), 1.0]
    bent = [TRUE[function](x) for x in read]
    weights = [[-1.0, 0.0], [1.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, -1.0]]
    return [
        sum(x * row[m] for x, row in zip(bent, weights, strict=True)) + (0.0, 0.25)[m] - products[m] for m in (0, 1)
    ]


EVERY = [(first, second) for first in range(4) for second in range(4)]


@pytest.mark.parametrize("function", TRUE)
def test_a_network_of_products_and_curves_is_what_is_written_down(function: Function) -> None:
    """In float64, in float32, as its canonical bytes say, and as onnxruntime computes what is written."""
    network = layered(function, positive=function in ("reciprocal", "sqrt"))
    expected = np.array([by_hand(network, function, tokens) for tokens in EVERY])
    np.testing.assert_allclose(logits(network, np.array(EVERY)), expected, rtol=1e-12)
    np.testing.assert_allclose(logits(network, np.array(EVERY), np.float32), expected, rtol=1e-5, atol=1e-5)
    numbers: dict[str, bytes] = {}
    found = canonical_network(network, keep=numbers)
    assert found.data is not None
    layers = Bytes(found.data, numbers)
    assert [kind for kind, *_ in layers.layers] == [1, 5, 5, 6, 2, 2]
    assert set(found.layer_of) == {3, 4, 7}
    model = model_behind_embedding(network)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for tokens, row in zip(EVERY, expected, strict=True):
        np.testing.assert_allclose(layers.floats_of(tokens), row, rtol=1e-12)
        fed: Any = embedded(network, tokens).astype(np.float32)[None]
        np.testing.assert_allclose(session.run(None, {"X": fed})[0][0], row, rtol=1e-5, atol=1e-5)


def test_products_are_exact_and_curves_are_refused_over_the_reals() -> None:
    network = layered("tanh")
    with pytest.raises(Unsupported, match=r"bent: a layer of kind Curve has no value over the reals; its values are"):
        exact_logits(network, (0, 1))
    square = Network((*network.nodes[:3], Node(Product(), (1, 2), (1, 2), "out")), length=2, vocabulary_size=4)
    found, rounded = exact_logits(square, (0, 1))
    assert [float(number) for number in found] == [0.5 * 2.0, -1.0 * 0.25]
    assert rounded


def test_a_smooth_network_makes_no_claim_of_piecewise_linear_ones() -> None:
    network = layered("tanh")
    assert network.is_smooth
    assert network.linear == {0, 1, 2, 5}
    assert claims_of(network) is None
    assert not always_tied(network, 0, 1)


def test_equal_factors_make_equal_products() -> None:
    nodes = layered("exp").nodes[:3]
    pair = Node(Rearrangement(np.array([[0, 0]])), (1,), (1, 2), "twice")
    other = Node(Rearrangement(np.array([[1, 1]])), (2,), (1, 2), "twice")
    end = (Node(Product(), (3, 4), (1, 2), "product"), Node(Curve("exp"), (5,), (1, 2), "out"))
    assert always_tied(Network((*nodes, pair, other, *end), length=2, vocabulary_size=4), 0, 1)
