"""What is said beforehand beside the time that a model then takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from asked_functions import Function, Refusing, spaced

from swapproof.models.deployed.classifier import Scores
from swapproof.models.deployed.swapped_text import Fields
from swapproof.verifier.replaying.estimate import Cost, estimated


@dataclass(eq=False)
class Slow(Function):
    """Takes so many seconds for a request, and for each sentence of it."""

    request: float = 0.0
    each: float = 0.0
    clock: float = 0.0

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        self.clock += self.request + self.each * len(sentences)
        return np.tile([0.0, 1.0], (len(sentences), 1))


@pytest.mark.parametrize(("request_seconds", "each"), [(0.0, 0.002), (0.05, 0.0), (0.02, 0.001)])
def test_requests_and_sentences_cost_what_they_cost(
    request_seconds: float, each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Slow(lambda sentence: [0.0, 1.0], request=request_seconds, each=each)
    monkeypatch.setattr(time, "monotonic", lambda: model.clock)
    texts = [spaced([["a", "b", "c"]] * size) for size in (2, 5, 9, 12)]
    found, twice = estimated(model, texts), estimated(model, texts, jobs=2, limit=1.0)
    assert found is not None
    assert twice is not None
    assert found.sentences == (56, 4 + 40 + 144 + 264, 80 + 672 + 1760, 80 + 2016 + 7920)
    # One request for the preparation of each text, and one for its sentences with one swap.
    assert found.seconds[0] == pytest.approx(8 * request_seconds + (56 + 4) * each)
    assert twice.seconds == pytest.approx(tuple(seconds / 2 for seconds in found.seconds))
    assert twice.most <= 4 * 1.0 / 2


def test_blocks_grow() -> None:
    cost = Cost(first=0.0, request=1.0, each=0.0)
    assert [cost.of(number) for number in (0, 1, 64, 65, 320, 321)] == [0, 1, 1, 2, 2, 3]


def test_a_text_of_many_words_is_no_overflow() -> None:
    found = estimated(Function(lambda sentence: [0.0, 1.0]), [spaced([["a", "b", "c"]] * 1200)])
    assert found is not None
    assert found.most > 0


def test_nothing_is_said_of_what_cannot_move_or_answer() -> None:
    assert estimated(Function(lambda sentence: [0.0, 1.0]), [spaced([["a"]])]) is None
    assert estimated(Refusing(lambda sentence: [0.0, 1.0], word="b"), [spaced([["a", "b"]])]) is None


def test_texts_that_are_answered_wrongly_are_not_counted() -> None:
    texts = [spaced([["a", "b", "c"]] * 3)] * 6
    model = Function(lambda sentence: [0.0, 1.0])
    all_of_them, known = estimated(model, texts), estimated(model, texts, [True, False])
    assert all_of_them is not None
    assert known is not None
    assert all_of_them.sentences == (36, 72, 48)
    assert known.sentences == (18, 36, 24)  # the first, not the second, and half of the other four
    assert estimated(model, texts, [False] * 6) is None
