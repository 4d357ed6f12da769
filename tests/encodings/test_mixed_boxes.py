"""Boxes of steps whose greatest state stands beside a constant: its elements depend on other words each."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens

from swapproof.encodings.evaluation import logits
from swapproof.encodings.onnx_files.onnx_reading import network_for, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.box_runs import Remembered
from swapproof.encodings.regions.boxes import boxed, segments_of
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.space import SwapSpace

LENGTH, STATE = 4, 3


def least_state(source: int, path: Path) -> None:
    """Of a recurrence the least state over all words but the last, which a mask leaves out."""
    b, rng = Builder(), np.random.default_rng(source)

    def normal(*shape: int) -> str:
        return b.constant(rng.normal(size=shape).astype(np.float32))

    x = b.call("Transpose", b.call("Gather", normal(9, 4), "tokens"), perm=[1, 0, 2])
    (states,) = b.parts("RNN", 1, x, normal(1, STATE, 4), normal(1, STATE, STATE), hidden_size=STATE)
    mask = np.zeros((1, LENGTH, 1), np.float32)
    mask[0, -1] = -10000
    masked = b.call(
        "Add", b.call("Transpose", b.call("Squeeze", states, b.wholes(1)), perm=[1, 0, 2]), b.constant(mask)
    )
    least = b.call("Neg", b.call("ReduceMax", b.call("Neg", masked), axes=[1], keepdims=0))
    b.node("MatMul", [b.call("Tanh", least), normal(STATE, 2)], ["out"])
    onnx.save(b.proto([tokens(1, LENGTH)], [floats("out", 1, 2)], opset=17), path)


@pytest.mark.parametrize("source", range(8))
def test_words_that_must_be_swapped_are_found_by_budgets(source: int, tmp_path: Path) -> None:
    path, rng = tmp_path / "model.onnx", random.Random(source)
    least_state(source, path)
    space = SwapSpace(tuple(tuple(rng.sample(range(9), rng.choice([1, 2, 3]))) for _ in range(LENGTH)))
    network = network_for(open_model(path), space, smooth=True)
    question = question_of(Query(network, space, 0, (1,)))
    for _ in range(4):
        options = tuple(tuple(sorted(rng.sample(range(len(own)), rng.randint(1, len(own))))) for own in question.tokens)
        found = boxed(Choices(options, LENGTH), Remembered(question, segments_of(question), Ends(2.0**-32)))
        words = iter(zip(question.tokens, options, strict=True))
        chosen = []
        for own in space.choices:
            given, kept = next(words) if len(own) > 1 else (own, (0,))
            chosen.append([given[option] for option in kept])
        scores = logits(network, np.array(list(itertools.product(*chosen))))
        assert found.margins[LENGTH][0] <= (scores[:, 0] - scores[:, 1]).min() + 1e-6
