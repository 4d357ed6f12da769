"""Rows of ids padded, cut, exchanged and put into batches are what plain lists would be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swapproof.models.deployed.tokenising.sentence_batches import Batching
from swapproof.models.deployed.tokenising.token_rows import Padding, TokenRows

LISTS = st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=8)


def rows_of(lists: list[list[int]]) -> TokenRows:
    return TokenRows.of(lists, [[number % 2 for number in row] for row in lists])


@given(LISTS, st.booleans(), st.integers(0, 2))
def test_rows_are_padded_on_the_asked_side(lists: list[list[int]], left: bool, more: int) -> None:
    width = max(map(len, lists)) + more
    ids, types, real = rows_of(lists).padded(np.arange(len(lists)), width, Padding(id=77, type=5, left=left))
    for row, shown, kinds, mask in zip(lists, ids.tolist(), types.tolist(), real.tolist(), strict=True):
        missing = width - len(row)
        place = slice(missing, width) if left else slice(0, len(row))
        assert shown[place] == row
        assert kinds[place] == [number % 2 for number in row]
        assert mask == [index in range(width)[place] for index in range(width)]
        assert sorted(set(shown) - set(row)) in ([], [77])
        assert shown.count(77) == kinds.count(5) == missing


@given(LISTS, st.integers(1, 4), st.sampled_from(["left", "right"]), st.data())
def test_rows_are_cut_and_exchanged(lists: list[list[int]], length: int, side: str, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(lists) - 1), unique=True))
    others = data.draw(st.lists(st.lists(st.integers(10, 19)), min_size=len(places), max_size=len(places)))
    changed = dict(zip(places, others, strict=True))
    found = rows_of(lists).cut(length, side).replaced(np.array(places, dtype=np.int64), rows_of(others))
    for index, row in enumerate(lists):
        cut = row[-length:] if side == "left" else row[:length]
        assert found.row(index)[0].tolist() == changed.get(index, cut)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), max_size=300),
    st.booleans(),
    st.none() | st.integers(1, 4),
)
def test_every_sentence_is_in_one_slab_with_others_of_its_width(
    widths: list[tuple[int, int]], alone: bool, fixed: int | None
) -> None:
    batching = Batching(alone=alone, fixed=fixed)
    given_widths = np.array(widths, dtype=np.int64).reshape(-1, 2)
    slabs = list(batching.slabs(given_widths))
    assert sorted(place for slab in slabs for place in slab.tolist()) == list(range(len(widths)))
    for slab in slabs:
        found = given_widths[slab]
        assert (found == found[-1]).all()


def test_batches_are_of_a_number_of_tokens() -> None:
    assert [Batching().most(width) for width in (1, 32, 512, 2048)] == [512, 16, 1, 1]
    assert Batching(small=True, cores=2).most(32) == 128
    assert Batching(fixed=3).most(32) == 3
    assert Batching(fixed=3, alone=True).most(32) == 1
