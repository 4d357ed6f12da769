"""Every word at every position: what bounds and float32 decide is what exact arithmetic on each sentence says."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import loaded, won_by
from random_networks import Sample, networks, tiny, tiny_networks

from swapproof.encodings.bounds.one_word import OneWord, Tail
from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import network_of, open_model
from swapproof.verifier.ladder.replay import Replay
from swapproof.verifier.single_words.brute_force import cost_of, flips_by_force
from swapproof.verifier.single_words.exact_flips.flips import FlipSearch
from swapproof.verifier.single_words.exact_flips.word_boxes import Boxes
from swapproof.verifier.single_words.kappa import kappa_of, population_interval
from swapproof.verifier.single_words.subject import Subject

HOME = "swapproof.verifier.single_words.exact_flips"
MIXED = 0
"""Of the random weights of a network where some words flip the text 0, 1, 2, ... and some do not."""

LENGTH, VOCABULARY = 24, 3000
"""Of the larger networks."""


def draw_subjects(data: st.DataObject, sample: Sample, network: Network) -> tuple[int, list[Subject]]:
    """Some texts of one class that the network answers correctly, and where their words may be replaced."""
    tokens = st.tuples(*[st.integers(0, sample.vocabulary - 1)] * network.length)
    texts = data.draw(st.lists(tokens, min_size=1, max_size=3, unique=True))
    label = won_by(exact_logits(network, texts[0])[0])
    positions = tuple(data.draw(st.lists(st.integers(0, network.length - 1), unique=True).map(sorted)))
    right = [text for text in texts if won_by(exact_logits(network, text)[0]) == label]
    return label, [Subject(text, positions, label) for text in right]


def flipped_plainly(network: Network, words: NDArray[np.int64], subject: Subject) -> list[bool]:
    """By exact arithmetic on every sentence."""
    found = []
    for word in words.tolist():
        sentences = []
        for position in subject.positions:
            tokens = list(subject.tokens)
            tokens[position] = word
            sentences.append(tokens)
        found.append(any(won_by(exact_logits(network, tokens)[0]) != subject.label for tokens in sentences))
    return found


@cases(80)
@given(st.data())
def test_flips_are_those_of_exact_arithmetic(data: st.DataObject) -> None:
    """One hidden layer and others, two classes and more, ties, any few dimensions."""
    sample = data.draw(st.one_of(tiny_networks(), tiny_networks(weights="small")))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{HOME}.flips.SMALL", data.draw(st.sampled_from([1, 3, 16])))
        for name in ("FEW_DIMENSIONS", "FEWER_DIMENSIONS"):
            patch.setattr(f"{HOME}.flips.{name}", data.draw(st.sampled_from([0, 16])))
        patch.setattr(f"{HOME}.flips.STATES", data.draw(st.sampled_from([1, 1 << 22])))
        patch.setattr(f"{HOME}.tail_search.FIRST", data.draw(st.sampled_from([1, 16])))
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
        label, subjects = draw_subjects(data, sample, network)
        words = np.array(sorted(data.draw(st.sets(st.integers(0, sample.vocabulary - 1), min_size=1))))
        found = FlipSearch(network, words, subjects, label).run()
        expected = [flipped_plainly(network, words, subject) for subject in subjects]
    np.testing.assert_array_equal(found.flipped, expected)
    assert found.sentences == sum(len(subject.positions) for subject in subjects) * len(words)


@cases(25)
@given(st.data())
def test_every_operator_is_searched_alike(data: st.DataObject) -> None:
    sample = data.draw(networks(heads=False))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
        label, subjects = draw_subjects(data, sample, network)
        words = np.arange(sample.vocabulary)
        found = FlipSearch(network, words, subjects, label).run()
        expected = [flipped_plainly(network, words, subject) for subject in subjects]
    np.testing.assert_array_equal(found.flipped, expected)


@cases(60)
@given(st.data())
def test_a_word_moves_the_cut_by_its_coordinates_times_the_slope(data: st.DataObject) -> None:
    """And the tail computed from the columns that differ gives the logits of the whole network."""
    sample = data.draw(networks(heads=False, kinds=False))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        network = network_of(model, sample.length)
    one_word = OneWord(network)
    tokens = np.array([data.draw(st.integers(0, sample.vocabulary - 1)) for _ in range(network.length)])
    position = data.draw(st.integers(0, network.length - 1))
    words = np.arange(sample.vocabulary)
    slope = one_word.slope(position)
    cut = one_word.cuts(tokens[None])[0]
    columns = np.flatnonzero((slope != 0).any(axis=0))
    moved = cut[columns] + ((one_word.rows(words) - one_word.rows(tokens[[position]])) @ slope)[:, columns]
    sentences = np.repeat(tokens[None], len(words), axis=0)
    sentences[:, position] = words
    expected = logits(network, sentences)
    scale = 1.0 + np.abs(expected).max() + np.abs(cut).max(initial=0.0)
    np.testing.assert_allclose(Tail(network, cut, columns).logits(moved), expected, atol=1e-9 * scale)


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 4), st.integers(1, 9))
def test_boxes_hold_every_point_once_at_every_level(source: int, count: int, dimensions: int, small: int) -> None:
    generator = np.random.default_rng(source)
    points = generator.integers(-3, 4, size=(count, dimensions)) / 4
    boxes = Boxes.of(points, small)
    assert sorted(boxes.order.tolist()) == list(range(count))
    leaves: list[int] = []
    for box, first in enumerate(boxes.first.tolist()):
        inside = points[boxes.order[boxes.start[box] : boxes.stop[box]]]
        assert (np.abs(inside - boxes.center[box]) <= boxes.radius[box]).all()
        if first < 0:
            leaves += range(boxes.start[box], boxes.stop[box])
            assert boxes.stop[box] - boxes.start[box] <= small
        else:
            parts = [p for child in range(first, first + 4) for p in range(boxes.start[child], boxes.stop[child])]
            assert parts == list(range(boxes.start[box], boxes.stop[box]))
    assert sorted(leaves) == list(range(count))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 4), st.integers(1, 9))
def test_levels_hold_every_point_once_and_marked_boxes_give_their_points(
    source: int, count: int, dimensions: int, small: int
) -> None:
    generator = np.random.default_rng(source)
    boxes = Boxes.of(generator.normal(size=(count, dimensions)), small)
    for least in (1, 4, 16, 1000):
        level = boxes.level_of(least)
        assert len(level) >= least or (boxes.first[level] < 0).all()
        assert sorted(point for box in level.tolist() for point in boxes.points(box).tolist()) == list(range(count))
    marked = generator.random((5, len(boxes.start))) < 0.1
    expected = np.zeros((5, count), dtype=bool)
    for row, box in zip(*np.nonzero(marked), strict=True):
        expected[row, boxes.points(int(box))] = True
    np.testing.assert_array_equal(boxes.points_of(marked), expected)


@pytest.mark.parametrize(("dimensions", "layers", "share"), [(2, 1, 150), (8, 1, 10), (2, 2, 3)])
def test_bounds_settle_most_sentences_of_a_large_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dimensions: int, layers: int, share: int
) -> None:
    """And float64 evaluation of all sentences says the same where it is clear."""
    if layers > 1:
        monkeypatch.setattr(f"{HOME}.flips.SMALL", 8)  # the vocabulary is still a small one
    model = trained_looking(tmp_path / "model.onnx", dimensions, layers)
    network = network_of(open_model(model), LENGTH)
    generator = np.random.default_rng(0)
    texts = generator.integers(0, VOCABULARY, size=(12, LENGTH))
    margins = np.diff(logits(network, texts), axis=1)[:, 0]
    positions = tuple(range(LENGTH))
    subjects = [Subject(tuple(text.tolist()), positions, 0) for text in texts[margins < -1e-3]]
    words = np.arange(VOCABULARY)
    found = FlipSearch(network, words, subjects, 0).run()
    assert 0 < found.flipped.sum() < found.flipped.size
    assert found.sentences == len(subjects) * LENGTH * VOCABULARY
    assert found.bounded + found.evaluated < found.sentences / share
    for row, subject in enumerate(subjects):
        sentences = np.tile(np.array(subject.tokens), (LENGTH, VOCABULARY, 1))
        for position in positions:
            sentences[position, :, position] = words
        own = np.diff(logits(network, sentences.reshape(-1, LENGTH)), axis=1).reshape(LENGTH, VOCABULARY).max(axis=0)
        clear = np.abs(own) > 1e-4
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(found.flipped[row, clear], own[clear] > 0)


def trained_looking(path: Path, dimensions: int, layers: int) -> Path:
    """A window network of 24 neurons a layer; most words weigh little."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    generator = np.random.default_rng(4)
    sizes = [LENGTH * dimensions, *[24] * layers, 2]
    table = generator.laplace(size=(VOCABULARY, dimensions)) / dimensions
    arrays, nodes, name = {"table": table}, [], "flat"
    for layer, (before, after) in enumerate(pairwise(sizes)):
        arrays[f"w{layer}"] = generator.normal(size=(before, after)) / np.sqrt(before)
        arrays[f"b{layer}"] = generator.normal(size=after) / 10
        last = layer == layers
        nodes.append(helper.make_node("Gemm", [name, f"w{layer}", f"b{layer}"], ["logits" if last else f"y{layer}"]))
        if not last:
            name = f"x{layer}"
            nodes.append(helper.make_node("Relu", [f"y{layer}"], [name]))
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"], axis=0),
        helper.make_node("Flatten", ["embedded"], ["flat"], axis=1),
        *nodes,
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", LENGTH])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(array.astype(np.float32), key) for key, array in arrays.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_rho_is_one_minus_the_mean_of_kappa_as_rationals(texts: int, words: int, data: st.DataObject) -> None:
    rows = st.lists(st.booleans(), min_size=words, max_size=words)
    flipped = np.array(data.draw(st.lists(rows, min_size=texts, max_size=texts)))
    names = [f"w{number}" for number in range(words)]
    kappa = kappa_of(names, flipped)
    mean = sum((kappa.of(name)[0] for name in names), Fraction(0)) / words
    assert kappa.rho == (1 - mean, 1 - mean)
    assert kappa.rho[0] == Fraction(int((~flipped).sum()), texts * words)
    unknown = np.array(data.draw(st.lists(rows, min_size=texts, max_size=texts))) & ~flipped
    open_ended = kappa_of(names, flipped, unknown)
    assert open_ended.rho[1] == kappa.rho[1]
    assert open_ended.rho[0] == kappa.rho[0] - Fraction(int(unknown.sum()), texts * words)


def test_brute_force_finds_the_same_where_rounding_does_not_matter(tmp_path: Path) -> None:
    sample = tiny("mlp", MIXED, classes=3)
    model, replay = loaded(sample, tmp_path)
    network = network_of(model, sample.length)
    words = np.arange(sample.vocabulary)
    tokens = tuple(position % sample.vocabulary for position in range(sample.length))
    label = won_by(exact_logits(network, tokens)[0])
    subject = Subject(tokens, tuple(range(sample.length)), label)
    flipped, unknown = flips_by_force(replay.answers, words, subject)
    assert not unknown.any()
    assert flipped.tolist() == flipped_plainly(network, words, subject)
    assert 0 < flipped.sum() < len(words)
    cost = cost_of(replay.answers, words, [subject], tried=10)
    assert (cost.tried, cost.sentences) == (10, sample.length * sample.vocabulary)
    assert "sentences through the model" in cost.sentence


def test_brute_force_out_of_time_knows_nothing(tmp_path: Path) -> None:
    sample = tiny("mlp", 8)
    model, _ = loaded(sample, tmp_path)
    subject = Subject(tuple([0] * sample.length), (0,), 0)
    flipped, unknown = flips_by_force(Replay.open(model).answers, np.arange(sample.vocabulary), subject, deadline=0.0)
    assert not flipped.any()
    assert unknown.all()


def test_intervals_of_the_distribution_hold_the_mean_and_shrink() -> None:
    shares = np.array([0.2, 0.4] * 50)
    few, many = (
        population_interval(shares[:10], shares[:10]),
        population_interval(np.tile(shares, 20), np.tile(shares, 20)),
    )
    for name in ("hoeffding", "empirical_bernstein"):
        assert few[name][0] <= many[name][0] <= 0.7 <= many[name][1] <= few[name][1]
    assert population_interval(np.array([0.5]), np.array([0.5]))["hoeffding"] == [0.0, 1.0]
