"""The sums of the greatest entries, and the most of each cell: found side by side they are those found one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.bounds.greatest_sums import FEW, WIDE, sums_of_greatest
from swapproof.verifier.screening.numbers.float64_rounding import top
from swapproof.verifier.screening.numbers.ranked_swaps import Ranked

SOURCES = st.integers(0, 2**32 - 1)


@given(source=SOURCES, rows=st.integers(0, 12), k=st.integers(0, FEW + 2))
def test_sums_of_many_columns_are_those_of_each_alone(source: int, rows: int, k: int) -> None:
    """Ties and zeros among them; exactly, since the greatest are added first either way."""
    chosen = np.random.default_rng(source)
    values = chosen.choice([0.0, 0.5, *chosen.random(20)], size=(rows, WIDE))
    together = sums_of_greatest(values, k)
    narrow = [sums_of_greatest(values[:, at : at + 1], k) for at in range(WIDE)]
    assert np.array_equal(together, np.concatenate(narrow, axis=1))


@given(source=SOURCES, rows=st.integers(0, 12), k=st.integers(0, 14))
def test_one_sum_of_the_greatest_is_the_last_of_all(source: int, rows: int, k: int) -> None:
    """Whole numbers, so that no order of adding them makes a difference."""
    values = np.random.default_rng(source).integers(0, 5, size=(rows, 7)).astype(np.float64)
    assert np.array_equal(top(values, k), sums_of_greatest(values, k)[-1])


@given(source=SOURCES, cells=st.integers(0, 6), width=st.integers(0, 5))
def test_the_most_of_a_cell_is_that_of_its_own_swaps(source: int, cells: int, width: int) -> None:
    """Some have no swap at all, and then nothing is added."""
    chosen = np.random.default_rng(source)
    counts, swaps = chosen.integers(0, width + 1, size=cells), chosen.integers(0, 30, size=(cells, width))
    gains = chosen.normal(size=(30, 3))
    ranked = Ranked.of(counts, swaps)
    alone = [gains[own[:count]].max(axis=0) if count else np.zeros(3) for count, own in zip(counts, swaps, strict=True)]
    assert np.array_equal(ranked.most(gains[ranked.swaps], cells), np.array(alone).reshape(cells, 3))
