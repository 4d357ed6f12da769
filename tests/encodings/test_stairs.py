"""Which word lowers two windows of a maximum, and lower bounds of maxima, against plain loops."""

from __future__ import annotations

import numpy as np
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.pools.counted_swaps import Roots
from swapproof.encodings.pools.stairs import Lowering


@cases(600)
@given(st.integers(0, 10**9))
def test_stairs_hold_for_all_sentences_and_are_those_of_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places, choices, elements, most = rng.integers(1, 6), rng.integers(1, 3), rng.integers(1, 3), rng.integers(1, 6)
    width = int(elements * most)
    rows = np.round(rng.normal(size=(places, choices, width)) * (rng.random((places, 1, width)) < rng.random()), 1)
    base = np.round(3 * rng.normal(size=width), 1)
    roots = Roots(np.arange(width).reshape(elements, most), np.full(elements, -np.inf))
    lowering = Lowering(roots, rows)
    start, left, stairs = int(rng.integers(0, places + 1)), int(rng.integers(0, 4)), int(rng.integers(1, 4))
    falls = np.maximum(-rows.min(axis=1), 0.0)
    low = base - np.sort(falls[start:], axis=0)[::-1][:left].sum(axis=0)
    low = low.reshape(elements, most).max(axis=1)
    found = lowering.stairs(base[None], low[None], np.array([start]), np.array([left]), np.full((1, elements), stairs))
    swaps = np.arange(places * choices)
    added = found.falls(swaps)[0].reshape(elements, places, choices)
    for element in range(elements):
        columns = roots.columns[element]
        taken = list[int]()
        for column in sorted(columns, key=lambda c: (-base[c], c)):
            own = falls[start:, column] > 0
            if base[column] > low[element] and not any((own & (falls[start:, c] > 0)).any() for c in taken):
                taken.append(column)
            if len(taken) > left:
                break
        least = base[taken[-1]] if len(taken) > left else low[element]
        steps = [base[c] for c in taken[:stairs] if base[c] > least]
        expected = np.zeros((places, choices))
        for column, value, after in zip(taken, steps, [*steps[1:], least], strict=False):
            expected += np.minimum(np.maximum(-rows[:, :, column], 0.0), value - after)
        np.testing.assert_allclose(found.low[0, element], least, atol=1e-9)
        np.testing.assert_allclose(found.top[0, element], steps[0] if steps else least, atol=1e-9)
        np.testing.assert_allclose(added[element, start:], expected[start:], atol=1e-9)
