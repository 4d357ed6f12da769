"""Leaves of smooth proofs: what the screening finds of them is never above what check.py does."""

from __future__ import annotations

import tempfile
import time
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_builder import Builder, floats, tokens
from hypothesis import given, settings
from hypothesis import strategies as st
from leaf_bounds import Asked, Parts, asked

from swapproof.encodings.errors import Unsupported
from swapproof.proofs.writing import certificate
from swapproof.verifier.engines.engine_table import engines_named
from swapproof.verifier.engines.protocol import Bound, Budget
from swapproof.verifier.engines.smooth_engines import SEQUENCE
from swapproof.verifier.interval import Interval
from swapproof.verifier.ladder.truth import margin_of
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.smooth_proofs import Screened

ROWS, WIDTH, SIZE, LENGTH, CLASSES = 6, 2, 3, 3, 2
KINDS = (
    "bag",
    "bag beside its sum",
    "beside constants",
    "each word",
    "RNN",
    "GRU",
    "LSTM",
    "LSTM",
    "two linear layers",
)
Words = tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]
TEXT = (0, 1, 2)
WORDS = tuple((at, tuple((token,) for token in (at, *range(3, 3 + at % 2 + 2)))) for at in range(LENGTH))
SIZES = [len(options) for _, options in WORDS]


def model(kind: str, seed: int, spread: int = 0) -> bytes:
    """`spread`: weights differ by up to so many powers of two, and some nearly cancel each other."""
    b, random = Builder(), np.random.default_rng(seed)

    def weights(*shape: int) -> str:
        found = random.normal(size=shape) * 2.0 ** random.integers(-spread, spread + 1, size=shape)
        if spread:
            flat = found.reshape(-1)
            half = len(flat) // 2
            flat[half : 2 * half] = -flat[:half] * (1 + random.integers(-1, 2, size=half) * 2.0**-20)
        return b.constant(found.astype(np.float32))

    x = b.call("Gather", b.constant(random.normal(size=(ROWS, WIDTH)).astype(np.float32)), "tokens")
    width = SIZE
    match kind:
        case "bag" | "bag beside its sum":
            total = b.call("Mul", b.call("ReduceSum", x, b.wholes(1), keepdims=0), b.constant(np.float32(0.25)))
            h = b.call("Tanh", b.call("Gemm", total, weights(WIDTH, SIZE), weights(SIZE)))
            if kind != "bag":
                h, width = b.call("Concat", h, total, axis=1), SIZE + WIDTH
        case "beside constants":
            h = b.call("Tanh", b.call("Reshape", x, b.wholes(1, LENGTH * WIDTH)))
            h = b.call("Concat", h, weights(1, 64), axis=1)
            h = b.call("Tanh", b.call("Gemm", h, weights(LENGTH * WIDTH + 64, SIZE), weights(SIZE)))
            h, width = b.call("Concat", h, weights(1, 64), axis=1), SIZE + 64
        case "each word":
            h = b.call("Tanh", b.call("Add", b.call("MatMul", x, weights(WIDTH, SIZE)), weights(SIZE)))
            h, width = b.call("Reshape", h, b.wholes(1, LENGTH * SIZE)), LENGTH * SIZE
        case "RNN" | "GRU" | "LSTM":
            steps, gates = b.call("Transpose", x, perm=[1, 0, 2]), SIZE * {"LSTM": 4, "GRU": 3}.get(kind, 1)
            parts = [weights(1, gates, WIDTH), weights(1, gates, SIZE), weights(1, 2 * gates)]
            if kind == "LSTM" and seed % 2:
                parts += ["", weights(1, 1, SIZE), weights(1, 1, SIZE)]
            more = {"linear_before_reset": seed // 2 % 2} if kind == "GRU" else {}
            if kind == "GRU" and seed % 2:
                parts += ["", weights(1, 1, SIZE)]
            states = b.call(kind, steps, *parts, hidden_size=SIZE, **more)
            h, width = b.call("Reshape", states, b.wholes(1, LENGTH * SIZE)), LENGTH * SIZE
        case _:
            h = b.call("Tanh", b.call("MatMul", b.call("Reshape", x, b.wholes(1, -1)), weights(LENGTH * WIDTH, SIZE)))
            h, width = b.call("Gemm", h, weights(SIZE, 4), weights(4)), 4
    b.node("Gemm", [h, weights(width, CLASSES), weights(CLASSES)], ["out"])
    return bytes(b.proto([tokens(1, LENGTH)], [floats("out", 1, CLASSES)], opset=17).SerializeToString())


def about(kind: str, seed: int, spread: int = 0, label: int = 0) -> Asked:
    with tempfile.TemporaryDirectory() as folder:
        words = [[start, [list(option) for option in options]] for start, options in WORDS]
        return asked(model(kind, seed, spread), Path(folder), TEXT, words, label, CLASSES)


def above(screened: Any, checked: list[Fraction]) -> bool:
    return any(np.isfinite(own) and Fraction(float(own)) > truth for own, truth in zip(screened, checked, strict=True))


regions = st.tuples(*[st.sets(st.integers(0, size - 1), min_size=1).map(sorted) for size in SIZES])
precisions, spreads = st.sampled_from((16, 20, 32, 48, 64)), st.sampled_from((0, 0, 4, 12, 30))


@st.composite
def segments(draw: st.DrawFn, question: Asked) -> Parts:
    """Those of the engine, or any, senseless ones too."""
    if draw(st.booleans()):
        return question.own_segments()
    found: list[tuple[int, int, int]] = []
    at = draw(st.integers(0, 3))
    while at < question.question.program.layers and len(found) < 4:
        layers = draw(st.integers(1, question.question.program.layers - at))
        found.append((at, layers, draw(st.integers(0, LENGTH - 1))))
        at += layers + draw(st.integers(0, 1))
    return found


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 99), spreads, regions, st.integers(0, 3), precisions, st.data())
def test_boxes_are_screened_no_laxer(
    kind: str, seed: int, spread: int, region: Any, swaps: int, bits: int, data: st.DataObject
) -> None:
    question = about(kind, seed, spread, data.draw(st.integers(0, 1)))
    kernel = data.draw(st.booleans()) and not question.space.network.no_float32
    choices = question.choices(region, swaps)
    if not choices.count():
        return
    parts = data.draw(segments(question))
    accepted = question.screened_boxes(choices, bits, kernel, parts)
    checked = question.checked_boxes(choices, bits, kernel, parts)
    if accepted:
        assert checked is not None
        assert all(margin > 0 for margin in checked)
    single = all(
        len(question.question.program.pieces_of[layer]) == 1
        for first, layers, _ in parts
        for layer in range(first, first + layers)
    )
    if checked is not None and single:
        assert not above(question.bounded(choices, bits, kernel, parts), checked)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 99), spreads, regions, st.integers(0, 3), precisions, st.data())
def test_sentences_are_screened_no_laxer(
    kind: str, seed: int, spread: int, region: Any, swaps: int, bits: int, data: st.DataObject
) -> None:
    question = about(kind, seed, spread, data.draw(st.integers(0, 1)))
    kernel = data.draw(st.booleans()) and not question.space.network.no_float32
    choices = question.choices(region, swaps)
    for options, margins in question.screened_sentences(choices, bits, kernel).items():
        checked = question.checked_sentence(options, bits, kernel)
        assert checked is not None or not (margins > 0).all()
        assert checked is None or not above(margins, checked)


@pytest.mark.parametrize("kernel", [False, True])
def test_constants_are_rounded_one_by_one(kernel: bool) -> None:
    """As check.py does, which multiplies the interval of each: by less the screening would accept what it refuses."""
    for seed in range(4):
        question = about("beside constants", seed)
        choices = question.choices([[0]] * LENGTH, 0)
        for bits in (16, 20):
            checked, sentence = question.checked_boxes(choices, bits, kernel, []), (0,) * LENGTH
            assert checked is not None
            assert not above(question.bounded(choices, bits, kernel, []), checked)
            assert not above(question.screened_sentences(choices, bits, kernel)[sentence], checked)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [False, True])
def test_segments_of_the_engine_are_taken_by_the_checker(kind: str, kernel: bool) -> None:
    for seed in range(5):
        question = about(kind, seed)
        choices = question.choices([range(size) for size in SIZES], 2)
        assert question.checked_boxes(choices, 32, kernel, question.own_segments()) is not None
        assert np.isfinite(question.bounded(choices, 32, kernel, question.own_segments())).all()


def test_boxes_without_segments_are_screened() -> None:
    found = [about("bag", seed, label=label) for seed in range(8) for label in (0, 1)]
    alone = [question.choices([[0]] * LENGTH, 0) for question in found]
    assert any(question.screened_boxes(choices, 32, False, []) for question, choices in zip(found, alone, strict=True))


@pytest.mark.parametrize("kernel", [False, True])
def test_sums_of_words_are_bounded_by_the_greatest_changes(kernel: bool) -> None:
    """As closely as check.py does: their boxes are extremes over the words, not sums of boxes."""
    for seed in range(5):
        question = about("bag", seed)
        for swaps in range(4):
            choices = question.choices([range(size) for size in SIZES], swaps)
            checked = question.checked_boxes(choices, 48, kernel, [])
            assert checked is not None
            for own, truth in zip(question.bounded(choices, 48, kernel, []), checked, strict=True):
                assert 0 <= truth - Fraction(float(own)) < 1e-4


def test_a_number_beyond_the_limit_is_left_to_the_checker() -> None:
    """Where it adds nothing to the margins too."""
    b = Builder()
    x = b.call("Reshape", b.call("Gather", b.constant(np.ones((ROWS, 1), np.float32)), "tokens"), b.wholes(1, -1))
    h = b.call("Exp", x)
    huge = b.call("Gemm", h, b.constant(np.full((LENGTH, 2), 2.0**41, np.float32)), b.constant(np.zeros(2, np.float32)))
    out = np.array([[1, 0], [0, 1]], np.float32) * 2.0**-40
    b.node("Gemm", [huge, b.constant(out), b.constant(np.array([1, 0], np.float32))], ["out"])
    data = b.proto([tokens(1, LENGTH)], [floats("out", 1, CLASSES)], opset=17).SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        words = [[start, [list(option) for option in options]] for start, options in WORDS]
        question = asked(bytes(data), Path(folder), TEXT, words, 0, CLASSES)
    choices = question.choices([[0]] * LENGTH, 0)
    assert question.checked_boxes(choices, 32, False, []) is None
    assert not question.screened_boxes(choices, 32, False, [])
    (margins,) = question.screened_sentences(choices, 32, False).values()
    assert not (margins > 0).any()


def test_words_that_a_region_keeps_do_not_vary() -> None:
    """In boxes of check.py: where one word alone may vary, a sum of words is as wide as that word makes it."""
    question = about("bag", 3)
    alone = question.choices([[0], range(SIZES[1]), [0]], 1)
    every = question.choices([range(SIZES[0]), range(SIZES[1]), range(SIZES[2])], 1)
    near = question.checked_boxes(alone, 48, False, [])
    least = [question.checked_sentence((0, option, 0), 48, False) for option in range(SIZES[1])]
    assert near is not None
    wide = question.checked_boxes(every, 48, False, [])
    assert wide is not None
    assert near[0] > wide[0]
    assert all(found is not None and near[0] <= found[0] for found in least)


@pytest.mark.parametrize("name", ["greedy", "exact", "boxes,enumerate", "gurobi"])
def test_engines_of_linear_networks_refuse_smooth_ones(name: str) -> None:
    try:
        engines_named(name)
    except Unsupported:
        pytest.skip("a solver that is not installed")
    with pytest.raises(Unsupported, match="piecewise linear networks; for smooth ones there are attention, boxes"):
        engines_named(name, smooth=True)


@pytest.mark.parametrize("outer", [8, 288])
def test_a_precision_that_is_refused_is_so_where_another_is_set_below(outer: int) -> None:
    question = about("bag", 3)
    screened = Screened(question.query, question.question, "real", time.monotonic() + 60)
    inner = certificate.Precision(32, certificate.Enumerate())
    with pytest.raises(Unsure, match="precision"):
        screened.check(certificate.Precision(outer, inner), question.choices([[0]] * LENGTH, 0))


def test_a_text_with_nothing_to_swap_is_proved() -> None:
    """However few words move: as in piecewise linear networks, the proof is about the text alone."""
    with tempfile.TemporaryDirectory() as folder:
        words = [[start, [list(options[0])]] for start, options in WORDS]
        for label in (0, 1):
            found = asked(model("bag", 3), Path(folder), TEXT, words, label, CLASSES)
            if margin_of(found.query, TEXT) > 0:
                (step,) = islice(SEQUENCE.narrow(found.query, Interval(ceiling=1), Budget()), 1)
                assert isinstance(step, Bound)
                assert step.low == 1
                return
    raise AssertionError("one of two labels is right")
