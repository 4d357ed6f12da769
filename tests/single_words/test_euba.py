"""EUBA finds flips only, all of them without early stopping, and its scores are the paper's."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from handmade import node, save
from hypothesis import given
from hypothesis import strategies as st
from oracles import loaded, won_by
from random_networks import tiny, tiny_networks

from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.verifier.single_words.euba.euba_classifier import log_probability
from swapproof.verifier.single_words.euba.euba_flips import VARIANTS, Euba
from swapproof.verifier.single_words.euba.known_network import KnownNetwork
from swapproof.verifier.single_words.exact_flips.flips import FlipSearch
from swapproof.verifier.single_words.subject import Subject


@cases(40)
@given(st.data())
def test_every_flip_is_one_and_without_early_stopping_none_is_missed(data: st.DataObject) -> None:
    """kappa of EUBA never exceeds the exact kappa; with m beyond the number of sentences they are equal."""
    sample = data.draw(tiny_networks(weights="small", shapes=("mlp", "deep", "residual")))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
    texts = data.draw(
        st.lists(st.tuples(*[st.integers(0, sample.vocabulary - 1)] * sample.length), min_size=1, max_size=3)
    )
    label = won_by(exact_logits(network, texts[0])[0])
    subjects = [
        Subject(text, tuple(range(sample.length)), label)
        for text in texts
        if won_by(exact_logits(network, text)[0]) == label
    ]
    words = np.arange(sample.vocabulary)
    exact = FlipSearch(network, words, subjects, label).run().flipped
    variant, m = data.draw(st.sampled_from(VARIANTS)), data.draw(st.integers(1, 5))
    assert not (Euba(KnownNetwork(lambda _: network, sample.length), words, 0, m, variant).run(subjects) & ~exact).any()
    unstopped = Euba(KnownNetwork(lambda _: network, sample.length), words, 0, 10**6, variant).run(subjects)
    assert not (unstopped & ~exact).any()
    if variant != "top1":
        np.testing.assert_array_equal(unstopped, exact)


def test_scores_are_first_order_at_the_mask(tmp_path: Path) -> None:
    """At the mask itself a score is log p of the masked sentence, and near it the error is of second order."""
    sample = tiny("mlp", 4)
    model, _ = loaded(sample, tmp_path)
    network = network_of(model, sample.length)
    tokens = tuple([1] * sample.length)
    subject = Subject(tokens, tuple(range(sample.length)), 0)
    euba = Euba(KnownNetwork(lambda _: network, sample.length), np.arange(sample.vocabulary), mask=2)
    scores = euba.scores(subject)
    for position in range(sample.length):
        masked = list(tokens)
        masked[position] = 2
        expected = log_probability(logits(network, np.array([masked])), 0)[0]
        assert scores[position, 2] == pytest.approx(expected, abs=1e-12)


def test_a_phase_stops_after_m_failures_in_a_row(tmp_path: Path) -> None:
    """A network that nothing flips costs the masked sentences and m failures in each phase."""
    sample = tiny("mlp", 4)
    model, _ = loaded(sample, tmp_path)
    network = network_of(model, sample.length)
    words = np.arange(sample.vocabulary)
    candidates = [(int(a), *[int(b)] * (sample.length - 1)) for a in words for b in words]
    for tokens in candidates:
        label = won_by(exact_logits(network, tokens)[0])
        subject = Subject(tokens, tuple(range(sample.length)), label)
        if not FlipSearch(network, words, [subject], label).run().flipped.any():
            break
    euba = Euba(KnownNetwork(lambda _: network, sample.length), words, 0, m=3)
    assert not euba.flips(subject).any()
    assert euba.queries == sample.length + 3 + 3


def test_texts_of_different_lengths_are_one_run(tmp_path: Path) -> None:
    """The network of each length answers its own texts, and successes count for all of them."""
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("ReduceMean", "embedded", "mean", axes=[1], keepdims=0),
        node("Gemm", "mean w", "before"),
        node("Relu", "before", "hidden"),
        node("Gemm", "hidden w2", "logits"),
    ]
    generator = np.random.default_rng(2)
    weights = {"table": generator.normal(size=(30, 3)), "w": generator.normal(size=(3, 5)) * 2}
    weights["w2"] = generator.normal(size=(5, 2))
    model = open_model(save(tmp_path, nodes, weights, length="length"))  # type: ignore[arg-type]
    words = np.arange(30)
    texts = [(1, 2, 3), (4, 5, 6, 7), (8, 9, 10)]
    subjects, expected = [], []
    for text in texts:
        network = network_of(model, len(text))
        label = won_by(exact_logits(network, text)[0])
        subjects.append(Subject(text, tuple(range(len(text))), label))
        expected.append(FlipSearch(network, words, subjects[-1:], label).run().flipped[0])
    euba = Euba(KnownNetwork(lambda length: network_of(model, length), 4), words, 0, 10**6)
    found = euba.run(subjects)
    np.testing.assert_array_equal(found, expected)
    assert found.any()
    assert sum(count.sum() for count in euba.successes.values()) == found.sum()
