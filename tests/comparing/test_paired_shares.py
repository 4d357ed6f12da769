"""Paired shares and means: exact tests beside plain sums, intervals that hold for drawn populations, open texts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from swapproof.verifier.comparing.paired_means import mean_difference
from swapproof.verifier.comparing.paired_shares import Pairs, mcnemar, pairs_of
from swapproof.verifier.comparing.standings import UNKNOWN, WRONG, Standing, moved

Known = bool | None


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (3, 9), (9, 3), (7, 7), (23, 49)])
def test_mcnemar_is_the_two_sided_binomial_test(gained: int, lost: int) -> None:
    total = gained + lost
    chances = [math.comb(total, number) / 2**total for number in range(total + 1)]
    as_rare = sum(chance for chance in chances if chance <= chances[gained] * (1 + 1e-12))
    assert mcnemar(gained, lost) == pytest.approx(as_rare)


@pytest.mark.parametrize("both", [[(True, None), (None, False), (False, True), (None, None), (True, True)]])
def test_open_texts_widen_whatever_they_may_turn_out_to_be(both: list[tuple[Known, Known]]) -> None:
    found = pairs_of(both)
    low, high = found.difference
    least, most = found.interval
    ways = [[(value,) if value is not None else (True, False) for value in pair] for pair in both]
    for chosen in itertools.product(*(itertools.product(*pair) for pair in ways)):
        settled = pairs_of((first, other) for first, other in chosen)
        assert low <= settled.difference[0] == settled.difference[1] <= high
        assert least <= settled.interval[0]
        assert settled.interval[1] <= most
        assert settled.p <= found.p


@pytest.mark.parametrize(("gain", "loss"), [(0.05, 0.02), (0.01, 0.0), (0.2, 0.2)])
def test_the_interval_holds_for_the_population(gain: float, loss: float) -> None:
    draw = np.random.default_rng(3)
    texts, missed, tries = 100, 0, 100
    for gained, lost, _ in draw.multinomial(texts, [gain, loss, 1 - gain - loss], size=tries).tolist():
        low, high = Pairs(texts, gained, lost, gained, lost, gained + lost).interval
        missed += not low <= Fraction(gain) - Fraction(loss) <= high
    assert missed <= 0.05 * tries


def test_nothing_that_differs_leaves_both_ways_open() -> None:
    low, high = pairs_of([(True, True)] * 40).interval
    assert low == -high < 0


def test_means_are_of_the_same_texts_and_intervals_add_up() -> None:
    found = mean_difference([(1, 1), (2, 3), (4, 4)], [(2, 2), (3, 3), (4, 6)])
    assert found["texts"] == 3
    assert found["difference"] == {"low": round((1 + 0 + 0) / 3, 6), "high": round((1 + 1 + 2) / 3, 6)}
    assert found["interval"]["low"] <= found["difference"]["low"] <= found["interval"]["high"]
    assert mean_difference([], [])["difference"] is None
    assert mean_difference([(1, 1)], [(2, 2)])["interval"] is None


def test_a_text_moves_only_where_the_intervals_say_so() -> None:
    assert moved(Standing(2, 2), Standing(3, 5)) == "better"
    assert moved(Standing(2, 4), Standing(1, 1)) == "worse"
    assert moved(Standing(2, 2), Standing(2, 3)) == "not settled"
    assert moved(Standing(2, 2), Standing(2, 2)) == "same"
    assert moved(Standing(math.inf, math.inf), Standing(math.inf, math.inf)) == "same"
    assert moved(WRONG, Standing(1, 1)) == "better"
    assert moved(Standing(1, 1), WRONG) == "worse"
    assert moved(WRONG, WRONG) == "same"
    assert moved(WRONG, UNKNOWN) == "not settled"
