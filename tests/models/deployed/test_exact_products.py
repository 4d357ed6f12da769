"""Products of matrices that lose nothing, compared with fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from swapproof.models.deployed.static_models.exact_products import multiplied, sliced


@pytest.mark.parametrize("width", [1, 2, 3, 64, 257])
def test_high_low_and_what_is_lost_are_the_exact_product(width: int) -> None:
    rng = np.random.default_rng(width)
    left = rng.normal(size=(4, width)) * 10.0 ** rng.integers(-30, 4, size=(4, width))
    right = (rng.normal(size=(3, width)) * 10.0 ** rng.integers(-20, 4, size=(3, width))).astype(np.float32)
    left[0] = 0
    high, low, lost = multiplied(left, right.astype(np.float64))
    for i, j in np.ndindex(*high.shape):
        exact = sum(
            (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(left[i], right[j], strict=True)), Fraction()
        )
        missing = abs(exact - Fraction(float(high[i, j])) - Fraction(float(low[i, j])))
        assert missing <= Fraction(float(lost[i, j])) <= abs(exact) * Fraction(2) ** -90 + Fraction(2) ** -300


def test_vectors_of_single_precision_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(5, 64)).astype(np.float32).astype(np.float64) for _ in range(2))
    high, low, lost = multiplied(left, right)
    assert low.any()  # float64 alone would have lost something
    assert not lost.any()
    assert np.abs(low).max() < np.abs(high).max() * 2.0**-40


def test_slices_are_whole_multiples_that_sum_to_the_matrix() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5)) * np.array([[1e-300], [1.0], [1e200]])
    total = np.zeros_like(values)
    for part in sliced(values, 20):
        for row in part:
            unit = 2.0 ** (np.frexp(np.abs(row).max())[1] - 20) if row.any() else 1.0
            assert (np.abs(row / unit) <= 2.0**20).all()
        total += part
    np.testing.assert_array_equal(total, values)


def test_nothing_times_nothing_is_nothing() -> None:
    high, low, lost = multiplied(np.zeros((0, 4)), np.ones((2, 4)))
    assert high.shape == low.shape == lost.shape == (0, 2)
    assert not multiplied(np.zeros((2, 4)), np.ones((2, 4)))[0].any()
