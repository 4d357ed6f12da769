"""One layer of attention evaluated by differences: the same margins as without, and ends that hold them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attending_networks import Shape, transformer
from graph_builder import Builder
from smooth_cases import cell, model, session

from swapproof.encodings.attended import attended_columns
from swapproof.encodings.attended.attended_layout import layout_of
from swapproof.encodings.attended.attention_parts import parts_of
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends, Plain
from swapproof.encodings.regions.assignments import AssignmentTables, Choices
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.regions.shared_tables import Stopped
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.encodings.space import SwapSpace

CHOICES = ((1, 3, 5), (2,), (4, 0), (6, 8, 2), (3, 7))
SHAPES = (
    Shape(),
    Shape(first=True, heads=3),
    Shape(curve="Sigmoid", pooling="first", masked=1),
    Shape(shifted=False, pooled="Tanh", heads=1, masked=2),
    Shape(first=True, pooled="Relu", shifted=False),
    Shape(masked=2, low=-np.inf),
    Shape(first=True, causal=True, masked=1, low=-np.inf),
    Shape(shifted=False, masked=1, low=-np.inf),
)


def query_of(data: bytes, folder: Path, choices: tuple[tuple[int, ...], ...] = CHOICES) -> Query:
    path = folder / "model.onnx"
    path.write_bytes(data)
    space = SwapSpace(choices)
    return Query(network_for(open_model(path), space, smooth=True), space, 0, (1,))


def regions(question: Question) -> list[Choices]:
    whole = [question.whole(swaps) for swaps in range(len(question.tokens) + 1)]
    forced = Choices(((0, 2), (1,), (0, 1, 2), (0,)), 3)
    return [*whole, forced]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_margins_are_those_of_every_sentence_by_itself(
    shape: Shape, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attended_columns, "BLOCK", 7)
    data = transformer(shape, seed)
    query = query_of(data, tmp_path)
    question = question_of(query)
    plainly = replace(question, layout=None)
    assert question.layout is not None
    run = session(data)
    for choices in regions(question):
        rows, found = margins_of(question, choices, Plain(np.float64))
        others, expected = margins_of(plainly, choices, Plain(np.float64))
        np.testing.assert_array_equal(rows.rows, others.rows)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        _, short = margins_of(question, choices, Plain(np.float32))
        np.testing.assert_allclose(short, expected, rtol=1e-4, atol=1e-4)
        tokens = [question.sentence(choices, row) for row in rows.rows]
        logits = [run.run(None, {"tokens": [own]})[0][0] for own in tokens]
        np.testing.assert_allclose(found[:, 0], [own[0] - own[1] for own in logits], rtol=1e-4, atol=1e-4)
        _, ends = margins_of(question, choices, Ends(2.0**-40))
        assert (ends[:, 0] <= expected).all()
        assert (expected <= ends[:, 1]).all()
        assert (ends[:, 1] - ends[:, 0] < 1e-4).all()


def test_some_sentences_are_evaluated_alone(tmp_path: Path) -> None:
    question = question_of(query_of(transformer(Shape(), 3), tmp_path))
    whole = question.whole(3)
    rows = AssignmentTables(whole).of(whole.moving).rows
    _, every = margins_of(question, whole, Plain(np.float64))
    made, some = margins_of(question, whole, Plain(np.float64), sentences=rows[5:9])
    np.testing.assert_array_equal(made.rows, rows[5:9])
    np.testing.assert_allclose(some, every[5:9], rtol=1e-12, atol=1e-12)


def test_it_stops_when_time_is_up(tmp_path: Path) -> None:
    question = question_of(query_of(transformer(Shape(), 3), tmp_path))
    with pytest.raises(Stopped):
        margins_of(question, question.whole(2), Plain(np.float32), lambda: True)


def test_a_softmax_with_scores_far_apart_stays_a_number(tmp_path: Path) -> None:
    """Every row is taken relative to its greatest score, whatever the options."""
    question = question_of(query_of(transformer(Shape(size=30.0), 5), tmp_path))
    _, found = margins_of(question, question.whole(2), Plain(np.float64))
    _, expected = margins_of(replace(question, layout=None), question.whole(2), Plain(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pooling", ["max"])
def test_what_is_something_else_is_left_to_the_other_way(pooling: str, tmp_path: Path) -> None:
    network = query_of(transformer(Shape(pooling=pooling), 0), tmp_path).network
    assert layout_of(network) is None
    with pytest.raises(Unsupported, match="not one layer of attention"):
        parts_of(network)


def test_a_recurrent_network_has_no_attention(tmp_path: Path) -> None:
    assert layout_of(query_of(model(cell("LSTM", "forward", 0, "B"), 1, classes=2), tmp_path).network) is None


def test_a_text_of_one_word(tmp_path: Path) -> None:
    """Only one position has options: all others are as they are."""
    question = question_of(query_of(transformer(Shape(), 2), tmp_path, ((1,), (2,), (4, 0, 7), (6,), (3,))))
    _, found = margins_of(question, question.whole(1), Plain(np.float64))
    _, expected = margins_of(replace(question, layout=None), question.whole(1), Plain(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def shifted(constant: float, seed: int) -> bytes:
    """A constant is added to the scores, and taken off again."""

    def made(b: Builder, x: str, rng: Any) -> str:
        q, k, v = [b.call("MatMul", x, b.constant(rng.normal(size=(4, 4)).astype(np.float32))) for _ in range(3)]
        scores = b.call("MatMul", q, b.call("Transpose", k, perm=[0, 2, 1]))
        scores = b.call("Add", scores, b.constant(rng.normal(size=(5, 5)).astype(np.float32)))
        if constant:
            added = b.constant(np.full((5, 5), constant, np.float32))
            scores = b.call("Sub", b.call("Add", scores, added), added)
        return b.call("ReduceMean", b.call("MatMul", b.call("Softmax", scores, axis=-1), v), b.wholes(1), keepdims=1)

    return model(made, seed, classes=2, size=0.3)


@pytest.mark.parametrize("constant", [2.0**30, 2.0**38, 2.0**80])
def test_ends_hold_what_rounding_constants_of_scores_lost(constant: float, tmp_path: Path) -> None:
    """With 2**80 the numbers that were added before it are gone: there are no ends then."""
    question = question_of(query_of(shifted(0, 1), tmp_path))
    choices = question.whole(2)
    _, truth = margins_of(question, choices, Plain(np.float64))
    question = question_of(query_of(shifted(constant, 1), tmp_path))
    assert question.layout is not None
    _, ends = margins_of(question, choices, Ends(2.0**-40))
    assert not (ends[:, 0] > truth).any()
    assert not (ends[:, 1] < truth).any()
    assert np.isnan(ends).all() == (constant > 2.0**40)
