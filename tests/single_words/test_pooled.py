"""Bounds behind a maximum over time: what they settle is settled, and they settle most."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from handmade import node, save
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import loaded
from random_networks import tiny_networks

from swapproof.encodings.bounds.one_word import OneWord
from swapproof.encodings.evaluation import logits
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.verifier.single_words.exact_flips.flips import FlipSearch
from swapproof.verifier.single_words.exact_flips.pooled_bounds import Pooled, WordScreen
from swapproof.verifier.single_words.subject import Subject

HOME = "swapproof.verifier.single_words.exact_flips"


@cases(150)
@given(st.data())
def test_what_a_maximum_over_time_settles_has_a_margin_beyond_its_guard(data: st.DataObject) -> None:
    """And the margins computed from the features are those of the network."""
    sample = data.draw(tiny_networks(shapes=("cnn", "maximum")))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{HOME}.pooled_bounds.LEAST", data.draw(st.sampled_from([1, 2, 256])))
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
        text = np.array([data.draw(st.integers(0, sample.vocabulary - 1)) for _ in range(network.length)])
        position = data.draw(st.integers(0, network.length - 1))
        rivals = range(1, network.classes)
        pooled = Pooled.of(network, 0, rivals)
        assert pooled is not None
        one_word = OneWord(network)
        slope, words = one_word.slope(position), np.arange(sample.vocabulary)
        columns = np.flatnonzero((slope != 0).any(axis=0))
        origin = one_word.cuts(text[None]) - one_word.rows(text[[position]]) @ slope
        rest, here = pooled.without(origin, columns)[0], origin[0, columns]
        sentences = np.repeat(text[None], len(words), axis=0)
        sentences[:, position] = words
        found = logits(network, sentences)
        expected = found[:, [0]] - found[:, 1:]
        assume((rest >= 0).all())
        screen = WordScreen(one_word.rows(words) @ slope[:, columns], pooled.owner[columns], pooled)
        scale = 1e-4 * (1.0 + np.abs(found).max() + np.abs(origin).max(initial=0.0))
        computed = screen.margins(rest, here, words)
        np.testing.assert_allclose(computed, expected[screen.order], atol=scale)
        guards = np.array([data.draw(st.sampled_from([0.0, 0.5])) * np.abs(expected).max() for _ in rivals])
        settled = np.setdiff1d(words, screen.order[screen.open_words(rest, here, guards)])
        assert (expected[settled] > guards - scale).all()


def test_most_words_are_settled_by_the_features_of_a_convolution(tmp_path: Path) -> None:
    """Many words of little weight, many windows: few sentences are looked at one by one, and the flips are the same."""
    generator = np.random.default_rng(1)
    length, filters, vocabulary = 30, 8, 3000
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        node("Transpose", "embedded", "channels", perm=[0, 2, 1]),
        node("Conv", "channels kernel", "windows", kernel_shape=[3]),
        node("Relu", "windows", "active"),
        node("ReduceMax", "active", "features", axes=[2], keepdims=0),
        node("Gemm", "features w1", "before"),
        node("Relu", "before", "hidden"),
        node("Gemm", "hidden w2 b2", "logits"),
    ]
    weights = {
        "table": generator.laplace(size=(vocabulary, 16)) * generator.laplace(size=(vocabulary, 1)) / 2,
        "kernel": generator.normal(size=(filters, 16, 3)) / 7,
        "w1": generator.normal(size=(filters, 8)),
        "w2": generator.normal(size=(8, 2)),
        "b2": np.zeros(2),
    }
    texts = generator.integers(0, vocabulary, size=(200, length))
    for _ in range(2):  # the second time half of the texts have each class
        network = network_of(open_model(save(tmp_path, nodes, weights, length=length)))
        margins = logits(network, texts) @ np.array([1.0, -1.0])
        weights["b2"] = weights["b2"] - np.array([np.median(margins), 0.0])
    near = texts[margins > 0][np.argsort(margins[margins > 0])[10::15]]  # from rather near the border to far away
    subjects, label = [Subject(tuple(text.tolist()), tuple(range(length)), 0) for text in near], 0
    found = FlipSearch(network, np.arange(vocabulary), subjects, label).run()
    assert 0 < found.flipped.sum() < found.flipped.size
    assert found.evaluated < found.sentences / 4
    for row, subject in enumerate(subjects[:1]):
        sentences = np.tile(np.array(subject.tokens), (length, vocabulary, 1))
        for position in range(length):
            sentences[position, :, position] = np.arange(vocabulary)
        own = logits(network, sentences.reshape(-1, length))
        margins = (own[:, label] - own[:, 1 - label]).reshape(length, vocabulary).min(axis=0)
        clear = np.abs(margins) > 1e-3
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(found.flipped[row, clear], margins[clear] < 0)
