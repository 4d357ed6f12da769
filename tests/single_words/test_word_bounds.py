"""Bounds over boxes of words hold at every word of the box, and rounding errors of a block of texts cover each text."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import loaded
from random_networks import networks, tiny_networks

from swapproof.encodings.bounds.one_word import OneWord, Tail
from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.onnx_files.onnx_reading import network_of
from swapproof.verifier.single_words.exact_flips.margin_errors import MarginErrors
from swapproof.verifier.single_words.exact_flips.tail_search import TailSearch
from swapproof.verifier.single_words.exact_flips.word_box_bounds import BoxBounds, Form
from swapproof.verifier.single_words.exact_flips.word_boxes import Boxes


@cases(150)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 7), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_linear_bound_is_below_the_margin_at_every_word_of_the_box(
    source: int, dimensions: int, neurons: int, scale: float
) -> None:
    generator = np.random.default_rng(source)
    points = generator.integers(-4, 5, size=(30, dimensions)) / 4 * scale
    boxes = Boxes.of(points, 4)
    weights = np.sort(generator.normal(size=neurons))
    steps, state = generator.normal(size=(dimensions, neurons + 1)), generator.normal(size=(1, neurons + 1)) * scale
    bounds = BoxBounds(boxes, steps, Form(weights, np.zeros((0, neurons + 1)), 0.0))
    sizes = 1.0 + np.abs(weights).sum() * (np.abs(state).max() + np.abs(points).max() * np.abs(steps).sum())
    for box in np.flatnonzero(boxes.start < boxes.stop):
        one, inside = np.array([box]), points[boxes.points(int(box))]
        values = state + inside @ steps
        margins = np.maximum(values[:, :-1], 0) @ weights + values[:, -1]
        center, middle = bounds.at_centers(state.astype(np.float32), one)
        for sign in (1, -1):
            value, gradient = bounds.linear(sign, center, middle, one)
            linear = value + (inside - boxes.center[box]) @ gradient[0]
            assert (sign * margins >= linear - 1e-5 * sizes).all()
            assert (linear >= bounds.least(value, gradient, one) - 1e-5 * sizes).all()
            exact = boxes.stop[box] - boxes.start[box] == 1 or neurons == 0
            assert not exact or np.allclose(linear, sign * margins, atol=1e-5 * sizes)


@cases(60)
@given(st.data())
def test_margins_computed_in_float32_are_within_the_error_of_their_block(data: st.DataObject) -> None:
    """Of exact arithmetic, and the bound of many texts together covers that of each alone."""
    sample = data.draw(st.one_of(tiny_networks(), networks(heads=False)))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
        one_word = OneWord(network)
        token = st.integers(0, sample.vocabulary - 1)
        texts = np.array(data.draw(st.lists(st.tuples(*[token] * network.length), min_size=1, max_size=3)))
        words = np.arange(sample.vocabulary)
        position = data.draw(st.integers(0, network.length - 1))
        slope, cuts = one_word.slope(position), one_word.cuts(texts)
        coordinates = one_word.rows(words)
        reach = np.abs(coordinates).max(axis=0)
        places, numbers = [(position,)] * len(texts), np.arange(len(texts))
        rivals = range(1, logits(network, texts).shape[1])
        found = MarginErrors(one_word, texts, places, cuts, reach, 0, rivals).at(position, numbers, slope)
        patch.setattr("swapproof.verifier.single_words.exact_flips.margin_errors.ALIKE", 1)
        alone = MarginErrors(one_word, texts, places, cuts, reach, 0, rivals).at(position, numbers, slope)
    assert (found.own >= alone.own).all()
    assert (found.deployed >= alone.deployed).all()
    columns = np.flatnonzero((slope != 0).any(axis=0))
    table = (coordinates @ slope[:, columns]).astype(np.float32)
    for row, text in enumerate(texts):
        origin = (cuts[row] - coordinates[text[position]] @ slope)[columns].astype(np.float32)
        computed = Tail(network, cuts[row].astype(np.float32), columns).logits(origin + table)
        for word in words.tolist():
            sentence = text.tolist()
            sentence[position] = word
            exact = exact_logits(network, sentence)[0]
            for rival in rivals:
                margin = float(computed[word, 0] - computed[word, rival])
                assert abs(margin - float(exact[0] - exact[rival])) <= alone.own[row, rival - 1]


@cases(60)
@given(st.data())
def test_no_word_of_a_box_is_farther_from_its_center_than_the_span(data: st.DataObject) -> None:
    sample = data.draw(st.one_of(tiny_networks(), networks(heads=False)))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
    one_word = OneWord(network)
    coordinates = one_word.rows(np.arange(sample.vocabulary))
    boxes = Boxes.of(coordinates, 2)
    text = [data.draw(st.integers(0, sample.vocabulary - 1)) for _ in range(network.length)]
    position = data.draw(st.integers(0, network.length - 1))
    slope, cut = one_word.slope(position), one_word.cuts(np.array([text]))[0]
    rivals = range(1, logits(network, np.array([text])).shape[1])
    flipped = np.zeros((1, sample.vocabulary), dtype=bool)
    search = TailSearch(network, coordinates, boxes, None, 0, rivals, flipped, lambda *found: None)
    spans = search.spans(slope)
    tail = Tail(network, cut, np.arange(len(cut)))
    origin = cut - coordinates[text[position]] @ slope
    at_words, at_centers = (search.margins(tail, origin + some @ slope) for some in (coordinates, boxes.center))
    scale = 1e-9 * (1.0 + np.abs(at_words).max() + np.abs(cut).max(initial=0.0))
    for box in np.flatnonzero(boxes.start < boxes.stop):
        away = np.abs(at_words[boxes.points(int(box))] - at_centers[box])
        assert (away <= spans[box] * (1 + 1e-6) + scale).all()
