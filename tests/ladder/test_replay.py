"""The deployed model has the last word, alone and inside a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from handmade import node, save
from random_networks import tiny

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.verifier.ladder.replay import NO_CLASS, Replay, batch_dependence

LENGTH, VOCABULARY = 3, 5


def summing(folder: Path, *middle: Any, batch: int | str = "batch", table: Any = None) -> Replay:
    """logits = (0.5, sum of the tokens' numbers), with other nodes on the way from `embedded` to `changed`."""
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        *(middle or [node("Identity", "embedded", "changed")]),
        node("Flatten", "changed", "flat", axis=1),
        node("Gemm", "flat w b", "logits"),
    ]
    weights = {
        "table": np.arange(VOCABULARY)[:, None] if table is None else table,
        "w": [[0, 1]] * LENGTH,
        "b": [0.5, 0],
    }
    return Replay.open(open_model(save(folder, nodes, weights, length=LENGTH, batch=batch)))


def sentences(*rows: list[int]) -> Any:
    return np.array(rows, dtype=np.int64)


def test_ties_go_to_the_lowest_class(tmp_path: Path) -> None:
    replay = summing(tmp_path, table=[[0.5], [0], [1], [-1], [2]])
    assert replay.answers(sentences([0, 1, 1], [2, 1, 1])).tolist() == [0, 1]


def test_nan_is_no_class_and_breaks_nothing(tmp_path: Path) -> None:
    """Infinity minus infinity appears only for some words."""
    replay = summing(tmp_path, table=[[0], [3e38], [3e38], [-3e38], [1]])
    overflow = [1, 2, 3]
    assert replay.breaks(np.array([4, 0, 0]), 0)
    doubled = node("Mul", "embedded ten", "changed")
    nodes = [
        node("Gather", "table tokens", "embedded", axis=0),
        doubled,
        node("Flatten", "changed", "flat", axis=1),
        node("Gemm", "flat w b", "logits"),
    ]
    weights = {"table": [[0], [3e38], [3e38], [-3e38], [1]], "w": [[1, 1]] * LENGTH, "b": [0.5, 0], "ten": [10]}
    replay = Replay.open(open_model(save(tmp_path, nodes, weights, length=LENGTH)))
    assert replay.answer(np.array(overflow)) == NO_CLASS
    assert not replay.breaks(np.array(overflow), 0)


def test_a_model_whose_answer_depends_on_its_neighbours_is_named(tmp_path: Path) -> None:
    """A maximum over the batch, exported by mistake: alone every text is right, together they are not."""
    largest = node("ReduceMax", "embedded", "top", axes=[0], keepdims=1)
    back = node("Sub", "embedded top", "changed")
    replay = summing(tmp_path, largest, back)
    rows = sentences([4, 4, 4], [0, 1, 0])
    reason = batch_dependence(replay, rows, np.full((2, 2), 1e-3))
    assert reason is not None
    assert "depends on its batch neighbours" in reason
    assert replay.answer(np.array([0, 1, 0])) in (0, NO_CLASS)


def test_a_sound_model_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    rows = sentences([4, 4, 4], [0, 1, 0], [2, 3, 1])
    assert batch_dependence(summing(tmp_path), rows, np.zeros((3, 2))) is None


def test_the_same_infinity_alone_and_in_a_batch_is_no_difference(tmp_path: Path) -> None:
    replay = summing(tmp_path, table=[[0], [3e38], [3e38], [-3e38], [1]])
    rows = sentences([1, 2, 0], [3, 3, 0], [0, 0, 4])
    assert np.isinf(replay.outputs(rows)).any()
    assert batch_dependence(replay, rows, np.zeros((3, 2))) is None


def test_a_witness_must_break_the_model_inside_a_batch_too(tmp_path: Path) -> None:
    largest = node("ReduceMax", "embedded", "top", axes=[0], keepdims=1)
    added = node("Sub", "embedded top", "changed")
    replay = summing(tmp_path, largest, added, table=[[0], [-1], [-2], [-3], [1]])
    sentence = np.array([0, 0, 4])
    alone = int(replay.answers(sentence[None])[0])
    assert alone == 0
    assert not replay.breaks(sentence, 0)


def test_one_answer_for_several_sentences_is_bad_input(tmp_path: Path) -> None:
    replay = summing(tmp_path, node("ReduceMax", "embedded", "changed", axes=[0], keepdims=1))
    rows = sentences([0, 0, 0], [4, 4, 4])
    with pytest.raises(BadInput, match="answers 1 rows of scores for 2 sentences: export it"):
        batch_dependence(replay, rows, np.zeros((2, 2)))


def test_a_fixed_batch_of_one_is_asked_one_at_a_time(tmp_path: Path) -> None:
    replay = summing(tmp_path, batch=1)
    assert replay.answers(sentences([0, 0, 0], [4, 4, 4])).tolist() == [0, 1]
    assert (replay.requests, replay.evaluations) == (2, 2)


def test_requests_and_evaluations_are_counted_apart(tmp_path: Path) -> None:
    replay = summing(tmp_path)
    replay.answers(sentences([0, 0, 0], [4, 4, 4]))
    assert (replay.requests, replay.evaluations) == (1, 2)


def test_a_model_that_onnxruntime_refuses_is_bad_input(tmp_path: Path) -> None:
    model = open_model(tiny("mlp", 0).save(tmp_path))
    model.path.write_bytes(b"")
    with pytest.raises(BadInput, match="onnxruntime does not load"):
        Replay.open(model)
