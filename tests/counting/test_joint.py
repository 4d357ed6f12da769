"""Statements about a whole data set hold together as often as they say, and say as much as can be said."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.verifier.counting.anytime import anytime
from swapproof.verifier.counting.binomial import clopper_pearson
from swapproof.verifier.counting.fraction import Estimate
from swapproof.verifier.counting.joint_statements import Measured, measured, together
from swapproof.verifier.counting.stopping import Sample, Stop, Stopped
from swapproof.verifier.engines.protocol import Budget

DELTA = Fraction(1, 5)
BOUND = Fraction(9, 10)
NOTHING, ALL = Fraction(0), Fraction(1)


def text(robust: int, drawn: int, *, stopped: Stopped = "number", seed: str = "", total: int = 10**30) -> Measured:
    sample = Sample(drawn, robust, 0, stopped)
    return Measured(NOTHING, ALL, Estimate(sample, total, 0, total, DELTA, seed or f"{robust} of {drawn}"))


def exact(share: Fraction) -> Measured:
    return Measured(share, share, None)


@given(st.lists(st.fractions(0, 1), min_size=1, max_size=20))
def test_counted_texts_are_certain(shares: list[Fraction]) -> None:
    found = together([exact(share) for share in shares], BOUND, DELTA)
    assert found is not None
    mean = sum(shares) / len(shares)
    assert found.confidence == 1
    assert found.mean[0] <= mean <= found.mean[1]
    assert found.mean[1] - found.mean[0] <= Fraction(1, 2**79)
    assert found.above == (Fraction(sum(share > BOUND for share in shares), len(shares)),) * 2


def test_no_texts_say_nothing() -> None:
    assert together([], BOUND, DELTA) is None


def test_one_sampled_text_says_of_the_mean_what_it_says_of_itself() -> None:
    found = together([text(930, 1000)], BOUND, DELTA)
    assert found is not None
    low, high = clopper_pearson(930, 1000, DELTA)
    assert found.confidence == 1 - DELTA
    assert found.above == (Fraction(low > BOUND), ALL)
    assert abs(found.mean[0] - low) < Fraction(1, 2**70)
    assert abs(found.mean[1] - high) < Fraction(1, 2**70)


def test_the_mean_of_many_texts_is_known_better_than_each() -> None:
    """Hoeffding's inequality over all draws, with half of delta: the formula, in floats."""
    texts = [text(700 + number, 1000) for number in range(200)]
    found = together(texts, BOUND, DELTA)
    assert found is not None
    middle = sum(700 + number for number in range(200)) / 200_000
    reach = sqrt(log(2 / 0.1) / 2 / (200 * 1000))
    assert float(found.mean[0]) == pytest.approx(middle - reach, abs=1e-12)
    assert float(found.mean[1]) == pytest.approx(middle + reach, abs=1e-12)
    ends = [clopper_pearson(700 + number, 1000, DELTA / 2 / 200) for number in range(200)]
    assert found.above == (
        Fraction(sum(low > BOUND for low, _ in ends), 200),
        Fraction(sum(high > BOUND for _, high in ends), 200),
    )


def test_stopped_texts_are_joined_by_their_own_intervals_only() -> None:
    found = together([text(930, 1000, stopped="width"), text(500, 900, stopped="time")], BOUND, DELTA)
    assert found is not None
    ends = [anytime(930, 1000, DELTA / 2), anytime(500, 900, DELTA / 2)]
    for end in (0, 1):
        assert abs(found.mean[end] - (ends[0][end] + ends[1][end]) / 2) < Fraction(1, 2**70)


def test_one_stopped_text_does_not_spoil_what_the_others_say_together() -> None:
    many = [text(800, 1000, seed=str(number)) for number in range(100)]
    found = together([*many, text(500, 900, stopped="time")], BOUND, DELTA)
    assert found is not None
    assert found.mean[1] - found.mean[0] < Fraction(1, 50)


def test_the_same_draws_twice_are_no_more_than_once() -> None:
    """Copies of a text have one seed: their mean is no better known than one of them."""
    copies = together([text(700, 1000, seed="same")] * 50, BOUND, DELTA)
    others = together([text(700, 1000, seed=str(number)) for number in range(50)], BOUND, DELTA)
    assert copies is not None
    assert others is not None
    reach = sqrt(log(2 / 0.1) / 2 / 1000)
    assert float(copies.mean[1]) == pytest.approx(0.7 + reach, abs=1e-9)
    assert copies.mean[1] - copies.mean[0] > 5 * (others.mean[1] - others.mean[0])


def test_what_is_counted_of_a_text_bounds_what_its_sample_says() -> None:
    """500 of 1000 sentences known robust, 400 known broken; all 50 samples of the rest are robust."""
    line = {
        "total": "1000",
        "robust": "500",
        "broken": "400",
        "sample": {
            "samples": 50,
            "robust_samples": 50,
            "ambiguous_samples": 0,
            "sampled_from": "100",
            "stopped": "number",
            "seed": "",
        },
    }
    certain = together([measured(line, DELTA, samples=False)], BOUND, DELTA)
    estimated = together([measured(line, DELTA)], BOUND, DELTA)
    assert certain is not None
    assert estimated is not None
    assert (certain.confidence, estimated.confidence) == (ALL, 1 - DELTA)
    assert [round(float(end), 6) for end in certain.mean] == [0.5, 0.6]
    low = 0.5 + 0.1 * float(clopper_pearson(50, 50, DELTA)[0])
    assert [round(float(end), 6) for end in estimated.mean] == [round(low, 6), 0.6]


def too_many(number: int, delta: Fraction) -> int:
    """More of `number` trials of probability delta than this happen with probability below 10^-9."""
    tail = Fraction(1)
    for count in range(number + 1):
        tail -= comb(number, count) * delta**count * (1 - delta) ** (number - count)
        if tail < Fraction(1, 10**9):
            return count
    return number


@pytest.mark.parametrize("width", [None, Fraction(1, 5)])
def test_simulated_data_sets_are_missed_no_more_often_than_allowed(width: Fraction | None) -> None:
    """Shares near the bound, numbers fixed or not; mean and share of texts are missed when either is."""
    generator, rounds = np.random.default_rng(5), 150
    shares = [Fraction(number, 100) for number in (97, 92, 91, 90, 89, 85, 60, 50, 99, 100)]
    truth = sum(shares) / len(shares), Fraction(sum(share > BOUND for share in shares), len(shares))
    stop = Stop(600 if width is None else 10_000, DELTA, width)
    missed = 0
    for number in range(rounds):
        texts = []
        for place, share in enumerate(shares):
            draws = generator.random(stop.most) < float(share)
            sample = stop.draw([draws], lambda block: (int(block.sum()), 0), Budget(), 1000)
            texts.append(Measured(NOTHING, ALL, Estimate(sample, 1, 0, 1, DELTA, f"{number} {place}")))
        found = together(texts, BOUND, DELTA)
        assert found is not None
        assert found.confidence == 1 - DELTA
        inside = found.mean[0] <= truth[0] <= found.mean[1] and found.above[0] <= truth[1] <= found.above[1]
        missed += not inside
    assert missed <= too_many(rounds, DELTA)


def test_intervals_of_single_texts_would_be_missed_too_often_together() -> None:
    """The reason for all this: of 40 texts some interval at confidence 0.8 is wrong almost always."""
    generator, wrong = np.random.default_rng(6), 0
    for _ in range(50):
        ends = [clopper_pearson(int(found), 500, DELTA) for found in generator.binomial(500, 0.7, size=40)]
        wrong += any(not low <= Fraction(7, 10) <= high for low, high in ends)
    assert wrong > too_many(50, DELTA)


def test_confidence_is_carried_by_the_estimate() -> None:
    """A text's own interval widens with the confidence asked of it."""
    one = text(930, 1000)
    assert one.estimate is not None
    narrow, wide = one.ends(DELTA), one.ends(DELTA / 100)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert replace(one.estimate, delta=DELTA / 100).ends == wide
