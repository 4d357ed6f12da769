"""A cached classifier answers what the classifier answers, and asks it about no sentence twice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from swapproof.models.deployed.cached import Cached, content
from swapproof.models.deployed.classifier import Identity, NoAnswer, Scores, SpeltOut, Variants
from swapproof.models.deployed.swapped_text import Fields, SwapText

FILM = SwapText(("a fine film", "seen"), 0, ((2, 6), (7, 11)), (("fine", "good", "fine"), ("film", "movie")))


@dataclass
class Counting:
    """Answers the numbers of letters and of vowels."""

    asked: list[Fields] = field(default_factory=list)
    identity: Identity = field(default_factory=lambda: Identity("callable", "counting"))

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        if ("",) in sentences:
            raise NoAnswer("nothing to count")
        self.asked += sentences
        rows = [[len(sentence[0]), sum(sentence[0].count(vowel) for vowel in "aeiou")] for sentence in sentences]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def variants(self, text: SwapText) -> Variants:
        return SpeltOut(self, text)


def test_answers_are_those_of_the_classifier_in_any_order_and_number() -> None:
    random.seed(1)
    classifier = Counting()
    cached = Cached(classifier, most=20)
    sentences = [("a" * random.randrange(6), "x" * random.randrange(6)) for _ in range(300)]
    for _ in range(10):
        chosen = random.sample(sentences, 50)
        np.testing.assert_array_equal(cached.scores(chosen), Counting().scores(chosen))
    assert cached.requests == 500
    assert cached.evaluations == len(classifier.asked) < 500


def test_no_sentence_is_evaluated_twice() -> None:
    classifier = Counting()
    cached = Cached(classifier)
    cached.scores([("b",), ("a",), ("b",)])
    cached.scores([("a",), ("c",)])
    assert classifier.asked == [("b",), ("a",), ("c",)]
    assert (cached.requests, cached.evaluations) == (5, 3)


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    cached = Cached(Counting(), most=2)
    cached.scores([("a",), ("b",)])
    cached.scores([("a",)])
    cached.scores([("c",)])
    assert cached.evaluations == 3
    cached.scores([("a",)])
    assert cached.evaluations == 3
    cached.scores([("b",)])
    assert cached.evaluations == 4
    assert len(cached._known) == 2


def test_more_sentences_than_are_kept_are_all_answered() -> None:
    cached = Cached(Counting(), most=2)
    assert cached.scores([("a" * size,) for size in (3, 1, 4, 1, 5)])[:, 0].tolist() == [3, 1, 4, 1, 5]


def test_variants_share_what_is_known_with_whole_sentences() -> None:
    cached = Cached(Counting())
    cached.scores([("a good film", "seen")])
    rows = np.array([[0, 0], [1, 0], [2, 0], [1, 1]], dtype=np.int32)
    assert cached.variants(FILM).scores(rows)[:, 0].tolist() == [11, 11, 11, 12]
    assert (cached.requests, cached.evaluations) == (5, 3)  # options 0 and 2 spell the same sentence


def test_sentences_without_an_answer_are_asked_again() -> None:
    cached = Cached(Counting())
    for _ in range(2):
        with pytest.raises(NoAnswer):
            cached.scores([("",)])
    assert cached.evaluations == 2


def test_answers_that_are_changed_by_whoever_asked_stay_as_they_were() -> None:
    cached = Cached(Counting())
    cached.scores([("a",)])[:] = 9
    assert cached.scores([("a",)]).tolist() == [[1, 1]]


def test_no_two_sentences_have_the_same_content() -> None:
    different = [("a", "b"), ("ab",), ("a\0b",), ("", "ab"), ("ab", ""), ("a", "", "b"), ("1,1\0a", "b"), ("\ud800",)]
    assert len({content(sentence) for sentence in different}) == len(different)
