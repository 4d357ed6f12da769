"""Words and options are positions and tokens by other names; numbers of sentences are those of all sentences."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.encodings.errors import BadInput
from swapproof.encodings.sentence_counts import counts, suffix_counts, up_to
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import inputs_of, option_counts, options_of, space_of, swaps_of, words_of


@st.composite
def spaces(draw: st.DrawFn) -> SwapSpace:
    row = st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True)
    constant = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)
    before, after = (tuple(draw(st.lists(constant, max_size=2))) for _ in range(2))
    return replace(SwapSpace.of(draw(st.lists(row, min_size=1, max_size=5))), before=before, after=after)


@given(spaces(), st.data())
def test_what_is_named_by_words_is_the_same_by_positions(space: SwapSpace, data: st.DataObject) -> None:
    words = words_of(space)
    assert space_of(inputs_of(space), words) == space
    assert option_counts(space) == [len(options) for _, options in words]
    tokens = [data.draw(st.sampled_from(options)) for options in space.choices]
    swaps = space.swaps_of(tokens)
    assert swaps_of(inputs_of(space), words, options_of(space, swaps)) == swaps


@given(spaces())
def test_words_of_one_option_change_nothing(space: SwapSpace) -> None:
    every = [[space.offset + p, [[token] for token in options]] for p, options in enumerate(space.choices)]
    assert space_of([[role, list(given)] for role, given in inputs_of(space)], every) == space


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([["words", [1, 2]], ["words", [3]]], []),
        ([["constant", [1, 2]]], []),
        ([["words", [1, 2]]], [[0, [[1, 2], [3, 4]]]]),
        ([["words", [1, 2]]], [[0, [[2], [1]]]]),
        ([["words", [1, 2]]], [[1, [[2], [3]]], [0, [[1], [4]]]]),
        ([["words", [1, 2]]], [[0, [[1], [3]]], [0, [[1], [4]]]]),
        ([["words", [1, 2]]], [[2, [[1], [3]]]]),
        ([["words", [1, 2]]], 7),
        ([["constant", [1]], ["words", [1, 2]]], [[0, [[1], [3]]]]),
        ([["words", [1, 2]], ["constant", [1]]], [[2, [[1], [3]]]]),
        ([["words", [1, 2]], ["mask", [1]]], []),
    ],
)
def test_what_is_no_space_is_refused(inputs: Any, words: Any) -> None:
    """Several inputs of words, longer words, other originals, another order, a place twice or beyond the words."""
    with pytest.raises(BadInput):
        space_of(inputs, words)


@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 6))
def test_numbers_of_sentences_are_those_of_all_of_them(alternatives: list[int], most: int) -> None:
    """From every place on, with exactly and with at most so many swaps."""
    table = suffix_counts(alternatives, most)
    for start, row in enumerate(table):
        made = [sum(map(bool, each)) for each in itertools.product(*(range(n + 1) for n in alternatives[start:]))]
        assert row == [made.count(swaps) for swaps in range(most + 1)]
        assert up_to([row]) == [[sum(row[: swaps + 1]) for swaps in range(most + 1)]]
    assert counts(alternatives, most) == table[0]
