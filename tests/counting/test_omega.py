"""Omega_r is counted and numbered as plain enumeration finds it, and what is drawn from it is uniform."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import sqrt

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.errors import BadInput
from swapproof.encodings.omega import FITS, Omega
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.counting.draws import drawn, seed_of, stream

spaces = st.lists(st.integers(1, 4), min_size=1, max_size=6).map(
    lambda sizes: SwapSpace(tuple(tuple(range(10 * at, 10 * at + size)) for at, size in enumerate(sizes)))
)


@given(spaces, st.integers(0, 8))
def test_every_sentence_has_one_number(space: SwapSpace, radius: int) -> None:
    """Also for radius 0, radii beyond the number of positions, and spaces without any alternative."""
    omega = Omega(space, radius)
    within = {tokens for tokens in product(*space.choices) if len(space.swaps_of(tokens)) <= radius}
    found = [tuple(row) for row in omega.sentences(np.arange(omega.total)).tolist()]
    assert omega.total == len(within) == sum(space.counts()[: radius + 1])
    assert set(found) == within
    assert [omega.number(tokens) for tokens in found] == list(range(omega.total))
    assert found[0] == space.original


@given(spaces, st.integers(0, 8))
def test_big_numbers_name_the_same_sentences(space: SwapSpace, radius: int) -> None:
    omega = Omega(space, radius)
    small = np.arange(omega.total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swapproof.encodings.omega.FITS", 0)
        assert omega.dtype is object
        np.testing.assert_array_equal(omega.choices(small.astype(object)), Omega(space, radius).choices(small))


def test_a_space_beyond_64_bits_is_numbered_too() -> None:
    space = SwapSpace(tuple(tuple(range(9 * at, 9 * at + 9)) for at in range(200)))
    omega = Omega(space, 30)
    assert omega.total > FITS
    numbers = np.array([0, 1, omega.total // 3, omega.total - 1], dtype=object)
    found = omega.sentences(numbers)
    assert [omega.number(tuple(row)) for row in found.tolist()] == numbers.tolist()


def test_numbers_outside_are_refused() -> None:
    omega = Omega(SwapSpace(((1, 2), (3, 4))), 1)
    for number in (-1, omega.total):
        with pytest.raises(BadInput, match=f"from 0 to {omega.total - 1}"):
            omega.choices(np.array([number]))
    with pytest.raises(BadInput, match="not among those of at most 1"):
        omega.number((2, 4))


@cases(30)
@given(st.integers(1, 2**80), st.integers(0, 2**32))
def test_draws_lie_below_and_are_the_same_again(below: int, source: int) -> None:
    seed = seed_of({"source": source})
    first = np.concatenate(list(drawn(seed, below, 100)))
    again = next(iter(stream(seed, below)))[:100]
    assert len(first) == 100
    assert 0 <= min(first) <= max(first) < below
    assert first.tolist() == again.tolist()


def test_draws_run_on_from_chunk_to_chunk() -> None:
    seed = seed_of("chunks")
    numbers = np.concatenate(list(drawn(seed, 1000, 3_000_000)))
    assert len(numbers) == 3_000_000
    assert numbers.min() == 0
    assert numbers.max() == 999


def test_the_stream_is_what_its_specification_says() -> None:
    """Numbers below 1000 from the first blocks of SHAKE-256, by hand."""
    import hashlib

    seed = hashlib.sha256(b'{"a":1}').digest()
    assert seed_of({"a": 1}) == seed
    data = hashlib.shake_256(seed + bytes(8)).digest(60)
    by_hand = [int.from_bytes(data[at : at + 2], "big") % 1024 for at in range(0, 60, 2)]
    expected = [number for number in by_hand if number < 1000]
    assert next(iter(drawn(seed, 1000, 20))).tolist() == expected[:20]


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_samples_are_uniform_by_a_chi_square_test(radius: int) -> None:
    """Against plain enumeration; the seed is fixed, so this fails for a biased sampler and not by chance."""
    space = SwapSpace(((1, 2, 3), (4,), (5, 6), (7, 8, 9, 10), (11, 12)))
    omega = Omega(space, radius)
    count = 200 * omega.total
    seen: Counter[tuple[int, ...]] = Counter()
    for numbers in drawn(seed_of(f"uniform {radius}"), omega.total, count):
        seen.update(tuple(row) for row in omega.sentences(numbers).tolist())
    within = [tokens for tokens in product(*space.choices) if len(space.swaps_of(tokens)) <= radius]
    assert set(seen) <= set(within)
    statistic = sum((seen[tokens] - 200) ** 2 / 200 for tokens in within)
    freedom = len(within) - 1
    # Five standard deviations of the chi-square distribution.
    assert statistic < freedom + 5 * sqrt(2 * freedom)
