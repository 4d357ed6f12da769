"""Scores are told by their values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from swapproof.models.recognition.score_meanings import meaning_of

LOGITS = np.random.default_rng(0).normal(size=(50, 3)) * 2
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
SIGMOIDS = 1 / (1 + np.exp(-LOGITS))


@pytest.mark.parametrize(
    ("scores", "meaning", "several"),
    [
        (LOGITS, "logits", False),
        (SHARES, "probabilities", False),
        (SHARES.astype(np.float16).astype(np.float64), "probabilities", False),
        (np.log(SHARES), "log_probabilities", False),
        (SIGMOIDS, "sigmoid", True),
        (SIGMOIDS[:, :1], "sigmoid", False),
        (LOGITS[:, :1], "logits", False),
    ],
)
def test_values_tell(scores: NDArray[np.float64], meaning: str, several: bool) -> None:
    found = meaning_of(scores)
    assert (found.meaning, found.several, found.sure) == (meaning, several, meaning != "sigmoid" or not several)


def test_texts_without_an_answer_tell_nothing() -> None:
    scores = SHARES.copy()
    scores[7] = np.nan
    assert meaning_of(scores).meaning == "probabilities"


def test_scores_that_are_always_the_same_are_no_questions() -> None:
    """Of a model that knows no word of the texts; a sigmoid that is known still tells."""
    assert meaning_of(np.zeros((20, 2))).several is False
    assert meaning_of(np.full((20, 2), 0.4), "sigmoid").several


def test_few_values_between_0_and_1_leave_a_doubt_that_a_sigmoid_removes() -> None:
    assert not meaning_of(SIGMOIDS[:5, :1]).sure
    assert meaning_of(SIGMOIDS[:5, :1], "sigmoid").sure
