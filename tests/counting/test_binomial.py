"""Confidence bounds hold by exact arithmetic, and agree with what the literature says."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.errors import BadInput
from swapproof.verifier.counting.binomial import (
    GRID,
    clopper_pearson,
    hoeffding,
    one_sided,
    outwards,
    samples_needed,
)

DELTA = Fraction(1, 200)


def tail(successes: int, samples: int, p: Fraction) -> Fraction:
    """P(X >= successes), every term by itself."""
    up, whole = p.numerator, p.denominator
    terms = (comb(samples, i) * up**i * (whole - up) ** (samples - i) for i in range(successes, samples + 1))
    return Fraction(sum(terms), whole**samples)


def test_the_published_sample_size() -> None:
    """epsilon 0.025 and delta 0.005 need 4,794 samples, which the paper rounds to 5,000."""
    assert samples_needed(Fraction(25, 1000), DELTA) == 4794


@given(st.integers(1, 60), st.data(), st.sampled_from([DELTA, Fraction(1, 20), Fraction(1, 2)]))
def test_both_ends_are_sound_and_one_step_from_the_best(samples: int, data: st.DataObject, delta: Fraction) -> None:
    successes = data.draw(st.integers(0, samples))
    low, high = clopper_pearson(successes, samples, delta)
    assert 0 <= low <= Fraction(successes, samples) <= high <= 1
    assert tail(successes, samples, low) <= delta / 2 or successes == 0
    assert tail(samples - successes, samples, 1 - high) <= delta / 2 or successes == samples
    if successes:
        assert tail(successes, samples, low + Fraction(2, GRID)) > delta / 2


def test_thousands_of_samples_are_exact_too() -> None:
    low, high = clopper_pearson(4700, 4794, DELTA)
    assert 0.9740 < float(low) < 4700 / 4794 < float(high) < 0.9858
    assert tail(4700, 4794, low) <= DELTA / 2 < tail(4700, 4794, low + Fraction(2, GRID))


@given(st.integers(1, 10_000), st.data())
def test_hoeffding_is_wider_than_its_formula_by_next_to_nothing(samples: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, samples))
    low, high = hoeffding(successes, samples, DELTA)
    reach = (5.991464547107982 / (2 * samples)) ** 0.5  # ln(2 / 0.005)
    assert float(low) == pytest.approx(max(0.0, successes / samples - reach), abs=1e-12)
    assert float(high) == pytest.approx(min(1.0, successes / samples + reach), abs=1e-12)


def test_all_or_nothing_is_open_at_one_end_only() -> None:
    assert clopper_pearson(0, 10, DELTA)[0] == 0
    assert clopper_pearson(10, 10, DELTA)[1] == 1
    assert one_sided(0, 10, DELTA) == 0


def test_decimals_are_rounded_outwards() -> None:
    assert outwards(Fraction(1, 3), Fraction(2, 3)) == (0.333333333333, 0.666666666667)
    assert outwards(Fraction(0), Fraction(1)) == (0.0, 1.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (1, 0.1), (0.1, 0), (0.1, 1)])
def test_impossible_shares_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        samples_needed(Fraction(epsilon), Fraction(delta))
