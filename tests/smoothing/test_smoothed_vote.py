"""Votes over random texts against brute force: every random text of every swapped sentence."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swapproof.models.deployed.smoothing.word_noise import Masking, Substituting, WordNoise
from swapproof.verifier.smoothing.released_claims import ranmask_claim, safer_claim
from swapproof.verifier.smoothing.smoothed_vote import vote_line, voted, withstood

TABLE = {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b"), "d": ("e",), "e": ("d",), "f": ()}
NOISES: list[WordNoise] = [Masking(0.5, "?"), Masking(0.8, "?"), Substituting(TABLE)]
texts = st.lists(st.sampled_from("abcdef"), min_size=2, max_size=4)
DELTA = Fraction(1, 20)


def classifier(seed: int) -> Any:
    """A network that answers 0 or 1 to texts by weights of words and of their places."""
    drawn = np.random.default_rng(seed)
    weights = {word: drawn.normal() for word in "abcdef?"}
    places = drawn.normal(size=4)

    def answers(texts: list[list[str]]) -> Any:
        return np.array([int(sum(weights[w] * p for w, p in zip(text, places, strict=False)) > 0.1) for text in texts])

    return answers


def share(noise: WordNoise, words: list[str], answers: Any, label: int) -> Fraction:
    """By asking about every random text."""
    every = [noise.outcome(words, number) for number in range(noise.outcomes(words))]
    return Fraction(int((answers(every) == label).sum()), len(every))


@pytest.mark.parametrize("noise", NOISES, ids=str)
@given(words=texts)
@settings(max_examples=15)
def test_outcomes_are_all_random_texts_once(noise: WordNoise, words: list[str]) -> None:
    found = Counter(tuple(noise.outcome(words, number)) for number in range(noise.outcomes(words)))
    if isinstance(noise, Masking):
        places = itertools.combinations(range(len(words)), noise.kept(len(words)))
        expected = Counter(tuple(w if at in kept else "?" for at, w in enumerate(words)) for kept in places)
    else:
        expected = Counter(itertools.product(*(noise.around(word) for word in words)))  # type: ignore[attr-defined]
    assert found == expected


def test_masks_keep_as_many_words_as_published() -> None:
    """round() as released, and at least two."""
    assert [Masking(0.9, "?").kept(words) for words in (1, 2, 5, 20, 44)] == [1, 2, 2, 2, 4]
    assert Masking(0.3, "?").kept(10) == 7


@pytest.mark.parametrize("noise", NOISES, ids=str)
@given(words=texts)
@settings(max_examples=15)
def test_shifts_are_the_greatest_total_variation(noise: WordNoise, words: list[str]) -> None:
    """Of the two distributions of random texts, over all swaps of so many words; for RanMASK exactly."""
    options = [(word, *TABLE[word]) for word in words]
    shifts = noise.shifts(words, options)
    assert shifts == sorted(shifts)
    assert len(shifts) == sum(len(others) > 1 for others in options)

    def distribution(text: list[str]) -> Counter[tuple[str, ...]]:
        return Counter(tuple(noise.outcome(text, number)) for number in range(noise.outcomes(text)))

    here, total = distribution(words), noise.outcomes(words)
    far = [Fraction(0)] * (len(shifts) + 1)
    for row in itertools.product(*options):
        swaps = sum(a != b for a, b in zip(row, words, strict=True))
        there, others = distribution(list(row)), noise.outcomes(row)
        both = sum(min(Fraction(here[one], total), Fraction(there[one], others)) for one in here)
        far[swaps] = max(far[swaps], Fraction(1 - both))
    for swaps, shift in enumerate(shifts, 1):
        assert far[swaps] <= shift
        if isinstance(noise, Masking):
            assert far[swaps] == shift


@pytest.mark.parametrize("noise", NOISES, ids=str)
@given(words=texts, seed=st.integers(0, 400))
@settings(max_examples=40)
def test_no_swap_within_the_radius_changes_the_vote(noise: WordNoise, words: list[str], seed: int) -> None:
    """With every random text asked, this is certain."""
    answers = classifier(seed)
    options = [(word, *TABLE[word]) for word in words]
    for label in (0, 1):
        vote = voted(noise, words, label, answers, 10, 10_000, DELTA, {})
        assert vote.all_asked
        assert vote.low == share(noise, words, answers, label)
        radius = vote_line(noise, words, options, vote, label, DELTA)["smoothed_radius"]["low"]
        if radius is None:
            assert vote.low <= Fraction(1, 2)
            continue
        for row in itertools.product(*options):
            if sum(a != b for a, b in zip(row, words, strict=True)) <= radius:
                assert share(noise, list(row), answers, label) > Fraction(1, 2)


def test_sampled_ends_are_wrong_no_more_often_than_stated() -> None:
    """The lower end exceeds the true chance in at most 5 % of 120 votes of 40 draws each, but for chance."""
    noise, words = Masking(0.5, "?"), list("abcd")
    answers = classifier(1)
    label = 0 if share(noise, words, answers, 0) > Fraction(1, 2) else 1
    truth = share(noise, words, answers, label)
    assert Fraction(1, 2) < truth < 1
    wrong = sum(
        voted(noise, words, label, answers, 40, 0, DELTA, {"text": number}).low > truth for number in range(120)
    )
    assert wrong <= 6 + 3 * math.sqrt(120 * 0.05 * 0.95)


def test_draws_follow_from_the_statement_alone() -> None:
    noise, words, answers = Substituting(TABLE), list("abca"), classifier(2)
    first = voted(noise, words, 0, answers, 30, 0, DELTA, {"text": "x"})
    assert voted(noise, words, 0, answers, 30, 0, DELTA, {"text": "x"}) == first
    assert voted(noise, words, 0, answers, 30, 0, DELTA, {"text": "y"}).seed != first.seed


def test_the_released_radius_is_one_too_many_and_trusts_a_point_estimate() -> None:
    """Of ten words of which two are kept; with lambda 1 the off-by-one alone."""
    noise, words = Masking(0.9, "?"), list("abcdefabcd")
    shifts = noise.shifts(words, [(word, "z") for word in words])
    low = Fraction(95, 100)
    sound = withstood(low, shifts)
    assert shifts[0] == 1 - Fraction(math.comb(9, 2), math.comb(10, 2))
    assert ranmask_claim(10, 2, 100, 100, low) == sound + 1
    assert ranmask_claim(10, 2, 60, 100, low) > ranmask_claim(10, 2, 100, 100, low)
    assert ranmask_claim(10, 2, 0, 100, Fraction(0)) == 0


def test_the_released_safer_claim_forgets_how_few_draws_there_were() -> None:
    noise = Substituting({"a": ("b",), "b": ("a",)})
    words, options = ["a", "b"], [("a", "b"), ("b", "a")]
    assert noise.shifts(words, options) == [0, 0]
    assert safer_claim(noise, words, options, 3, 5) == 2  # 0.6 >= 0.51 of five draws
    vote = voted(noise, words, 0, lambda texts: np.zeros(len(texts), dtype=np.int64), 5, 0, DELTA, {})
    assert vote.low < 1
    assert vote_line(noise, words, options, vote, 0, DELTA)["smoothed_radius"]["low"] == 2
