"""Packed columns are what their integers are one by one, and sums of rows those of section 15, to the last unit."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, lcm
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swapproof.proofs.smooth_intervals import Intervals
from swapproof.proofs.sums.packed_columns import fields_of
from swapproof.proofs.sums.weighted_sums import Dense, Matrix, Scales, Sparse


@st.composite
def columns(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A width, and integers that it has room for, often the extreme ones."""
    width = 8 * draw(st.integers(1, 30))
    most = 1 << width - 1
    numbers = st.one_of(st.sampled_from([-most, 1 - most, -1, 0, 1, most - 1]), st.integers(-most, most - 1))
    return width, draw(st.lists(numbers, min_size=1, max_size=9))


@settings(deadline=None)
@given(columns(), st.integers(0, 1 << 40), st.integers(-(1 << 120), 1 << 120), st.integers(0, 160), st.booleans())
@example((64, [(1 << 63) - 1, 0]), 1, 5, 0, True)  # a floor of more than 64 bits
@example((40, [7, 0, -1, 0, -1]), 1, 0, 16, True)  # no bit to spare for the number before
@example((40, [(1 << 39) - 1, -(1 << 39), -1, 5, -1]), 1, 0, 15, True)
@example((88, [(1 << 87) - 1, -(1 << 87), 1, -1]), (1 << 39) - 1, 1 << 86, 63, True)
def test_packed_columns_are_floored_as_their_integers_are(
    column: tuple[int, list[int]], factor: int, add: int, shift: int, even: bool
) -> None:
    width, numbers = column
    bits = max(map(abs, numbers)).bit_length()
    fields, below = fields_of(len(numbers), width), (1 << shift) + (0 if even else 1)
    total = fields.packed(numbers)
    assert total == sum(x << width * k for k, x in enumerate(numbers))
    assert fields.unpacked(total) == numbers
    assert fields.floors(total, bits, factor, add, below) == [(x * factor + add) // below for x in numbers]


class Store:
    """Of elements: lows, highs and, at level kernel, sizes."""

    def __init__(self, found: list[list[int]]) -> None:
        self.columns, self.stamps = found, [3, 4]


@pytest.mark.parametrize("bits", range(1, 17))
def test_the_greatest_sums_have_room(bits: int) -> None:
    """Weights, numbers and biases that are as great as their bits allow, at every rest of their sum by 8."""
    weight, most = (1 << bits) - 1, (1 << 36) - 1
    rows = [[weight], [-weight], [weight]]
    biases = [sign * (weight * most) for sign in (1, -1, -1)]
    sums = Dense(Scales(1, 1, 1), [0, 1, 2], biases, [0], Matrix(rows), [0])
    for x in (most, -most):
        low, high, reach = sums.ends(Store([[x], [x], [most]]), {})
        ends = [2 * (row[0] * x + bias) for row, bias in zip(rows, biases, strict=True)]
        assert low.numbers() == high.numbers() == ends
        assert reach.numbers() == [2 * weight * most] * 3


@pytest.mark.parametrize("dense", [True, False])
@settings(deadline=None)
@given(st.data())
def test_ends_of_rows_are_those_of_exact_sums(dense: bool, data: st.DataObject) -> None:
    """Weights and biases over different scales, powers of 2 or not, numbers up to the limit of section 15.1."""
    draw, q = data.draw, data.draw(st.sampled_from([16, 32, 64]))
    most = 1 << draw(st.sampled_from([1, q, q + 40]))
    ends = st.one_of(st.sampled_from([-most, most, 0]), st.integers(-most, most))
    pairs = [sorted(pair) for pair in draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=8))]
    count, kernel = len(pairs), draw(st.booleans())
    store = Store([[low for low, _ in pairs], [high for _, high in pairs], *[[max(-x, y) for x, y in pairs]] * kernel])
    size_scale, bias_scale = (draw(st.sampled_from([1, 3, 1 << 20, 1 << 45, 1 << 150])) for _ in range(2))
    scale = lcm(size_scale, bias_scale)
    greatest = draw(st.sampled_from([1, 5, 1 << 45]))
    weight = st.one_of(st.sampled_from([-greatest, greatest, 0]), st.integers(-greatest, greatest))
    rows = [
        draw(st.one_of(st.just([1] * count), st.lists(weight, min_size=count, max_size=count)))
        for _ in range(draw(st.integers(1, 9)))
    ]
    lists = [draw(st.permutations(range(count))) if not dense else [*range(count)] for _ in rows]
    biases = [draw(st.integers(-(1 << 50), 1 << 50)) * (scale // bias_scale) << q for _ in rows]
    scales, places = Scales(size_scale, scale // size_scale, scale), [*range(len(rows))]
    block_of = [int(at > count // 2) for at in range(count)]
    sums: Any = (
        Dense(scales, places, biases, lists[0], Matrix(rows), block_of)
        if dense
        else Sparse(scales, places, biases, lists, rows)
    )
    below = sums.times * scale
    known: dict[Any, list[int]] = {}
    for _ in range(2):  # what runs of a list add is kept
        low, high, *reach = sums.ends(store, known)
        for at, (row, elements, bias) in enumerate(zip(rows, lists, biases, strict=True)):
            terms = [(Fraction(w, size_scale), pairs[i]) for w, i in zip(row, elements, strict=True)]
            least = sum(w * pair[w < 0] for w, pair in terms) + Fraction(bias, scale)
            most_of = sum(w * pair[w > 0] for w, pair in terms) + Fraction(bias, scale)
            assert low.floors(1, 0, below)[at] == floor(least)
            assert high.floors(1, below - 1, below)[at] == ceil(most_of)
            if kernel:
                total = sum(abs(w) * max(-x, y) for w, (x, y) in terms) + abs(Fraction(bias, scale))
                assert reach[0].numbers()[at] == total * scale
                assert reach[0].floors(1, scale - 1, scale)[at] == ceil(total)
                assert reach[0].floors(257, 2 * scale - 1, scale)[at] == ceil(257 * total) + 1


def test_rows_without_elements_are_their_biases() -> None:
    """As of a product whose factors are all constants 0 (section 4.2)."""
    sums = Sparse(Scales(1, 1, 1), [0, 1], [5, -7], [[], []], [[], []])
    store = Store([[3], [4], [4]])
    found = [column.numbers() for column in sums.ends(store, {})]
    assert found == [[x * sums.times for x in (5, -7)]] * 2 + [[5, 7]]
    assert [*sums.whole.pick(store.columns[0])] == []


def test_rows_of_lists_that_take_turns_are_in_order() -> None:
    layer: Any = SimpleNamespace(
        lists=[[0], [1]],
        pairs=[(0, 0), (1, 0), (0, 1)],
        weights=[[2], [3]],
        biases=[0, 0, 0],
        size_scale=1,
        bias_scale=1,
    )
    intervals: Any = SimpleNamespace(q=16, matrices={}, blocks=None)
    (rows,) = Intervals.sums_of(intervals, layer, range(3))
    low, _ = rows.ends(Store([[5, 7], [5, 7]]), {})
    assert [rows.places, low.numbers()] == [[0, 1, 2], [rows.times * x for x in (10, 14, 15)]]
