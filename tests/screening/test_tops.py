"""The sums of the greatest entries: found one by one they are those found by sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swapproof.verifier.screening.balls import FEW, WIDE, running_tops


@given(source=st.integers(0, 2**32 - 1), rows=st.integers(0, 12), k=st.integers(0, FEW + 2))
def test_sums_of_many_columns_are_those_of_each_alone(source: int, rows: int, k: int) -> None:
    """Ties and zeros among them; exactly, since the greatest are added first either way."""
    chosen = np.random.default_rng(source)
    values = chosen.choice([0.0, 0.5, *chosen.random(20)], size=(rows, WIDE))
    together = running_tops(values, k)
    narrow = [running_tops(values[:, at : at + 1], k) for at in range(WIDE)]
    assert np.array_equal(together, np.concatenate(narrow, axis=1))
