"""Networks that add up a row for each word: numpy and onnxruntime agree, padding adds nothing, misfits are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from swapproof.models.errors import BadInput
from swapproof.models.word_network import CountedNorm, Layer, VectorNorm, WordNetwork


def layer(rng: np.random.Generator, outputs: int, inputs: int) -> Layer:
    return rng.normal(size=(outputs, inputs)), rng.normal(size=outputs)


def networks() -> dict[str, WordNetwork]:
    rng = np.random.default_rng(0)
    counted = np.concatenate([rng.normal(size=(7, 3)), rng.random((7, 1)), np.eye(7, 1)], axis=1)
    return {
        "logits are sums": WordNetwork(rng.normal(size=(7, 3)), rng.normal(size=3)),
        "one layer": WordNetwork(rng.normal(size=(7, 4)), np.zeros(4), (layer(rng, 2, 4),)),
        "rectified sums": WordNetwork(rng.normal(size=(7, 4)), rng.normal(size=4), (layer(rng, 2, 4),), True),
        "two layers": WordNetwork(
            rng.normal(size=(7, 4)), rng.normal(size=4), (layer(rng, 5, 4), layer(rng, 2, 5)), True
        ),
        "norm of the sums": WordNetwork(
            rng.normal(size=(7, 4)), np.zeros(4), (layer(rng, 5, 3), layer(rng, 2, 5)), norm=VectorNorm()
        ),
        "norm of counts": WordNetwork(
            counted, np.array([0, 0, 0, 0, -2.0]), norm=CountedNorm(rng.normal(size=3), rng.random((4, 1)), 0.1)
        ),
        "norm of counts, layers": WordNetwork(
            counted[:, :4],
            np.zeros(4),
            (layer(rng, 2, 3),),
            True,
            norm=CountedNorm(rng.normal(size=3), np.zeros((4, 0)), 0.1),
        ),
    }


def deployed(path: Path, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["logits"], {"words": ids})[0])


@pytest.mark.parametrize("name", networks())
def test_the_file_answers_as_the_numbers_do_in_float64(name: str, tmp_path: Path) -> None:
    network = networks()[name]
    ids = np.random.default_rng(1).integers(0, network.padding + 1, size=(50, 9))
    network.to_onnx(tmp_path / "words.onnx")
    answers = deployed(tmp_path / "words.onnx", ids)
    assert answers.dtype == np.float64
    np.testing.assert_allclose(network.scores(ids), answers, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", networks())
def test_padding_adds_nothing(name: str) -> None:
    network = networks()[name]
    ids = np.array([[3, 1, 4]])
    padded = np.array([[3, 1, 4, network.padding, network.padding]])
    np.testing.assert_array_equal(network.scores(ids), network.scores(padded))


def test_the_layers_are_those_that_are_written() -> None:
    """By hand: 1 + (2 - 3) is rectified to 0, 1 + (2 + 5) to 8."""
    identity = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.0]))
    network = WordNetwork(np.array([[2.0, 2.0], [-4.0, 5.0]]), np.ones(2), (identity,), rectified=True)
    np.testing.assert_array_equal(network.scores(np.array([[0, 1]])), [[0.5, 8.0]])


def test_a_norm_is_that_of_the_sums_and_multiplies_the_biases() -> None:
    """By hand: (3, 4) has the norm 5, and 1 more; 3 + 0.5 * 6, and 4."""
    identity = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.0]))
    network = WordNetwork(np.array([[1.0, 4.0, 1.0], [2.0, 0.0, 0.0]]), np.zeros(3), (identity,), norm=VectorNorm())
    np.testing.assert_array_equal(network.scores(np.array([[0, 1]])), [[6.0, 4.0]])


def test_a_norm_of_counts_is_the_root_of_their_squares() -> None:
    """By hand: y = 2 - 1 adds 10 to x and 2 to q = 2, whose root is 2; of nothing it is the root of `least`."""
    norm = CountedNorm(np.array([1.0, 0.0]), np.array([[10.0], [0.0], [2.0]]), least=0.25)
    network = WordNetwork(np.array([[1.0, 3.0, 1.0, 1.0]]), np.array([0.0, 0.0, 0.0, -1.0]), norm=norm)
    np.testing.assert_array_equal(network.scores(np.array([[0, 0]])), [[2 + 10 + 2, 6.0]])
    np.testing.assert_array_equal(network.scores(np.array([[1, 1]])), [[0.5, 0.0]])


def test_many_texts_are_answered_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    network = networks()["two layers"]
    ids = np.random.default_rng(2).integers(0, network.padding + 1, size=(50, 9))
    whole = network.scores(ids)
    monkeypatch.setattr("swapproof.models.word_network.BATCH", 100)
    np.testing.assert_allclose(network.scores(ids), whole, rtol=0, atol=1e-12)
    assert network.scores(ids[:0]).shape == (0, 2)


def test_the_same_weights_give_the_same_bytes() -> None:
    assert networks()["two layers"].model() == networks()["two layers"].model()


@pytest.mark.parametrize(
    ("rows", "start", "layers", "rectified", "said"),
    [
        (np.zeros((3, 2)), np.zeros(3), (), False, "do not belong together"),
        (np.zeros((3, 2)), np.zeros(2), ((np.zeros((2, 3)), np.zeros(2)),), False, "cannot read 2 numbers"),
        (np.zeros((3, 1)), np.zeros(1), (), False, "decides nothing"),
        (np.zeros((3, 2)), np.zeros(2), (), True, "need a layer"),
        (np.full((3, 2), np.nan), np.zeros(2), (), False, "not a number"),
    ],
)
def test_what_is_no_network_is_refused(
    rows: NDArray[np.float64],
    start: NDArray[np.float64],
    layers: tuple[Layer, ...],
    rectified: bool,
    said: str,
) -> None:
    with pytest.raises(BadInput, match=said):
        WordNetwork(rows, start, layers, rectified)


def test_a_number_that_is_no_spelling_is_refused() -> None:
    with pytest.raises(BadInput, match="of a network of 7 spellings"):
        networks()["logits are sums"].scores(np.array([[8]]))


def test_a_file_larger_than_onnx_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swapproof.models.word_network.LARGEST", 100)
    with pytest.raises(BadInput, match="take fewer texts"):
        networks()["two layers"].to_onnx(tmp_path / "words.onnx")
    assert not list(tmp_path.iterdir())
