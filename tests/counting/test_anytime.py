"""The confidence sequence holds at every number of samples at once; stopping by it keeps what it promises."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import comb, factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oracles import all_sentences, loaded, query_of, won_by
from random_networks import tiny

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.errors import BadInput
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.verifier.counting.anytime import EXACT, anytime, ln_factorial
from swapproof.verifier.counting.binomial import GRID, clopper_pearson
from swapproof.verifier.counting.draws import seed_of
from swapproof.verifier.counting.sampling import sampled
from swapproof.verifier.counting.stopping import FIRST_LOOK, LATER, Stop
from swapproof.verifier.engines.protocol import Budget

Interval = Callable[[int, int, Fraction], tuple[Fraction, Fraction]]
DELTAS = st.sampled_from([Fraction(1, 200), Fraction(1, 20), Fraction(1, 2), Fraction(99, 100)])


def wealth_below(successes: int, samples: int, p: Fraction, delta: Fraction) -> bool:
    """Whether p is in the sequence, by exact arithmetic."""
    ways = (samples + 1) * comb(samples, successes)
    return ways * p**successes * (1 - p) ** (samples - successes) > delta


@cases(150)
@given(st.integers(1, 300), st.data(), DELTAS)
def test_ends_are_excluded_and_the_next_steps_are_not(samples: int, data: st.DataObject, delta: Fraction) -> None:
    """The greatest excluded multiple of 2^-20 on either side, whatever the logarithms said."""
    successes = data.draw(st.integers(0, samples))
    low, high = anytime(successes, samples, delta)
    assert 0 <= low <= Fraction(successes, samples) <= high <= 1
    step = Fraction(1, GRID)
    for end, inwards in ((low, step), (high, -step)):
        assert end in (0, 1) or not wealth_below(successes, samples, end, delta)
        assert wealth_below(successes, samples, end + inwards, delta) or not 0 < end + inwards < 1


@given(st.integers(1, 10**6), st.data(), DELTAS)
def test_it_is_wider_than_the_interval_of_a_number_fixed_beforehand(
    samples: int, data: st.DataObject, delta: Fraction
) -> None:
    successes = data.draw(st.integers(0, min(samples, 50)))
    low, high = anytime(successes, samples, delta)
    assert (1 - high, 1 - low) == anytime(samples - successes, samples, delta)
    if samples <= 5000 and delta < Fraction(1, 2):
        fixed = clopper_pearson(successes, samples, delta)
        assert low <= fixed[0] + Fraction(2, GRID)
        assert high >= fixed[1] - Fraction(2, GRID)


@pytest.mark.parametrize("n", [0, 1, EXACT - 1, EXACT, EXACT + 1, 100, 999])
def test_logarithms_of_factorials_are_enclosed(n: int) -> None:
    """Against exact factorials, by decimals of many digits."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 80
        low, high = ln_factorial(n)
        exact = Decimal(factorial(n)).ln()
        assert low - Decimal("1e-50") <= exact <= high + Decimal("1e-50")
        assert high - low < Decimal("1e-12")


def ever_missed(interval: Interval, p: Fraction, horizon: int, delta: Fraction) -> Fraction:
    """The probability that p is outside at some n up to the horizon, over all 2^horizon paths, exactly."""
    alive, missed = {0: Fraction(1)}, Fraction(0)
    for n in range(1, horizon + 1):
        after: dict[int, Fraction] = {}
        for x, chance in alive.items():
            after[x] = after.get(x, Fraction(0)) + chance * (1 - p)
            after[x + 1] = after.get(x + 1, Fraction(0)) + chance * p
        alive = {}
        for x, chance in after.items():
            low, high = interval(x, n, delta)
            if low <= p <= high:
                alive[x] = chance
            else:
                missed += chance
    return missed


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(9, 10)])
def test_the_chance_of_ever_missing_is_at_most_delta(p: Fraction) -> None:
    """Over every path of 60 draws; intervals made for one number of draws miss much more often than they may."""
    delta = Fraction(1, 4)
    assert 0 < ever_missed(anytime, p, 60, delta) <= delta
    assert ever_missed(clopper_pearson, p, 60, delta) > delta


PATHS, HORIZON, ALLOWED = 4000, 4000, Fraction(1, 20)


def looks(most: int) -> list[int]:
    found, look = [], FIRST_LOOK
    while look <= most:
        found.append(look)
        look += look // LATER
    return found


def accepted(interval: Interval, n: int, p: Fraction) -> tuple[int, int]:
    """The least and the greatest number of successes among n whose interval holds p: its ends rise with them."""

    @cache
    def ends(x: int) -> tuple[Fraction, Fraction]:
        return interval(x, n, ALLOWED)

    least, most = 0, n
    low, high = 0, int(p * n)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if ends(middle)[1] >= p else (middle + 1, high)
    least = low
    low, high = int(p * n), n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if ends(middle)[0] <= p else (low, middle - 1)
    most = low
    return least, most


def misses(interval: Interval, p: Fraction) -> int:
    """Of many simulated paths, those on which p is outside at some look."""
    draws = np.random.default_rng(20).random((PATHS, HORIZON)) < float(p)
    counts = draws.cumsum(axis=1)
    outside = np.zeros(PATHS, dtype=bool)
    for n in looks(HORIZON):
        least, most = accepted(interval, n, p)
        outside |= (counts[:, n - 1] < least) | (counts[:, n - 1] > most)
    return int(outside.sum())


def too_many(number: int) -> int:
    """More of `number` trials of probability 1/20 than this happen with probability below 10^-9."""
    tail = Fraction(1)
    for count in range(number + 1):
        tail -= comb(number, count) * ALLOWED**count * (1 - ALLOWED) ** (number - count)
        if tail < Fraction(1, 10**9):
            return count
    return number


@pytest.mark.parametrize("p", [Fraction(3, 5), Fraction(19, 20), Fraction(999, 1000)])
def test_simulated_paths_miss_at_some_look_no_more_often_than_allowed(p: Fraction) -> None:
    assert misses(anytime, p) <= too_many(PATHS)


def test_the_simulation_finds_out_intervals_that_do_not_allow_looking() -> None:
    """Clopper's and Pearson's, looked at again and again, miss too often: the test above can fail."""
    assert misses(clopper_pearson, Fraction(3, 5)) > too_many(PATHS)


def test_samples_stopped_by_their_width_enclose_the_enumerated_share(tmp_path: Path) -> None:
    """Each of 150 seeds draws until its interval is narrow; the truth is what enumeration over the reals counts."""
    sample = tiny("mlp", 8)
    model, replay = loaded(sample, tmp_path)
    choices = tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length))
    query = query_of(model, choices, int(replay.answers(np.array([[row[0] for row in choices]]))[0]))
    radius, delta, width = 3, ALLOWED, Fraction(1, 8)
    won = [
        won_by(exact_logits(query.network, tokens)[0]) == query.label for tokens in all_sentences(query.space, radius)
    ]
    truth = Fraction(sum(won), len(won))
    assert 0 < truth < 1
    missed = 0
    for number in range(150):
        stop = Stop(100_000, delta, width)
        found = sampled(Differences.of(query), radius, seed_of({"number": number}), stop, Budget())
        low, high = found.ends(delta)
        assert found.stopped == "width"
        assert found.drawn in looks(100_000)
        assert high - low <= width
        missed += not low <= truth <= high
    assert missed <= too_many(150)


def judge_half(block: Any) -> tuple[int, int]:
    return int((block % 2).sum()), 0


class TestStop:
    def test_a_number_fixed_beforehand_is_drawn_whatever_is_seen(self) -> None:
        found = Stop(1000, ALLOWED).draw([np.arange(700), np.arange(700, 1000)], judge_half, Budget(), 64)
        assert (found.drawn, found.robust, found.stopped, found.fixed) == (1000, 500, "number", True)
        assert found.ends(ALLOWED) == clopper_pearson(500, 1000, ALLOWED)

    def test_with_a_width_the_first_narrow_look_stops(self) -> None:
        width = Fraction(1, 10)
        found = Stop(10**6, ALLOWED, width).draw([np.arange(10**6)], judge_half, Budget(), 1000)
        low, high = anytime(found.robust, found.drawn, ALLOWED)
        assert (found.stopped, found.fixed) == ("width", False)
        assert found.ends(ALLOWED) == (low, high)
        assert high - low <= width
        for look in looks(found.drawn - 1):
            low, high = anytime(look // 2, look, ALLOWED)
            assert high - low > width

    def test_the_greatest_number_allowed_is_no_number_fixed_beforehand(self) -> None:
        found = Stop(1000, ALLOWED, Fraction(1, 1000)).draw([np.arange(1000)], judge_half, Budget(), 64)
        assert (found.drawn, found.stopped, found.fixed) == (1000, "most", False)
        assert found.ends(ALLOWED) == anytime(500, 1000, ALLOWED)

    @pytest.mark.parametrize("width", [None, Fraction(1, 1000)])
    def test_what_the_clock_stopped_is_drawn_again_to_the_same_end(self, width: Fraction | None) -> None:
        """And its interval is the one that allows for stopping."""
        budget = Budget()

        def judge(block: Any) -> tuple[int, int]:
            if block[-1] > 300:
                budget.deadline = 0.0
            return judge_half(block)

        found = Stop(1000, ALLOWED, width).draw([np.arange(1000)], judge, budget, 64)
        assert found.stopped == "time"
        assert 300 < found.drawn < 1000
        assert found.ends(ALLOWED) == anytime(found.robust, found.drawn, ALLOWED)
        again = Stop(1000, ALLOWED, width, found.drawn).draw([np.arange(1000)], judge_half, Budget(), 999)
        assert again == found

    def test_a_clock_cannot_be_made_up_beyond_the_number(self) -> None:
        found = Stop(100, ALLOWED, None, 100).draw([np.arange(100)], judge_half, Budget(), 64)
        assert found.stopped == "number"

    def test_ambiguous_samples_are_failures_at_the_low_end_and_robust_at_the_high_end(self) -> None:
        found = Stop(2000, ALLOWED, Fraction(1, 2)).draw([np.arange(2000)], lambda b: (len(b) // 2, 9), Budget(), 2000)
        assert (found.drawn, found.ambiguous) == (256, 9)
        assert found.ends(ALLOWED) == (anytime(128, 256, ALLOWED)[0], anytime(137, 256, ALLOWED)[1])


@pytest.mark.parametrize(("successes", "samples"), [(-1, 3), (4, 3), (0, 0), (1, 10**13)])
def test_impossible_counts_are_refused(successes: int, samples: int) -> None:
    with pytest.raises(BadInput, match="successes among"):
        anytime(successes, samples, ALLOWED)
