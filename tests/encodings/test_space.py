"""A swap space counts, names and checks its sentences."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import product

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from random_networks import swap_spaces, tiny

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

spaces = st.integers(1, 6).flatmap(lambda length: swap_spaces(length, 9)).map(SwapSpace)


@cases(100)
@given(spaces)
def test_counts_equal_brute_force(space: SwapSpace) -> None:
    """counts()[s] is the number of sentences with exactly s swaps; together they are the whole space."""
    found = Counter(len(space.swaps_of(sentence)) for sentence in product(*space.choices))
    counts = space.counts()
    assert counts == [found[swaps] for swaps in range(len(space.swappable) + 1)]
    assert counts[0] == 1
    assert sum(counts[1:2]) == (space.candidates if space.swappable else 0)


def test_counts_of_large_spaces_are_exact_integers() -> None:
    """Beyond 2**64 and beyond float: 200 positions of 9 choices."""
    space = SwapSpace.of([range(9)] * 200)
    counts = space.counts()
    assert sum(counts) == 9**200
    assert counts[200] == 8**200
    assert counts[1] == 1600


@given(spaces)
def test_swaps_and_sentences_are_inverse(space: SwapSpace) -> None:
    for sentence in list(product(*space.choices))[:50]:
        swaps = space.swaps_of(sentence)
        assert space.sentence(swaps) == sentence
        assert all(token != space.original[position] for position, token in swaps)


@given(spaces)
def test_single_swaps_are_the_sentences_with_one_swap(space: SwapSpace) -> None:
    positions, tokens = space.single_swaps()
    pairs = [(int(p), int(t)) for p, t in zip(positions, tokens, strict=True)]
    assert len(set(pairs)) == len(pairs) == space.candidates
    assert pairs == sorted(pairs, key=lambda pair: (pair[0], space.choices[pair[0]].index(pair[1])))
    one_swap = {s for s in product(*space.choices) if len(space.swaps_of(s)) == 1}
    assert {space.sentence([pair]) for pair in pairs} == one_swap


def test_the_digest_is_that_of_the_canonical_json() -> None:
    """Stable between versions and machines: this very value is in files."""
    space = SwapSpace(((3, 1), (0,), (7, 8, 9)))
    assert space.digest == hashlib.sha256(b"[[3,1],[0],[7,8,9]]").hexdigest()
    assert space.digest == SwapSpace.of([[3, 1, 3], [0], (7, 8, 9)]).digest
    assert space.digest != SwapSpace(((1, 3), (0,), (7, 8, 9))).digest


def test_of_drops_repeats_and_keeps_the_original_first() -> None:
    space = SwapSpace.of([[5, 2, 5, 2, 1], [4, 4]])
    assert space.choices == ((5, 2, 1), (4,))
    assert space.original == (5, 4)
    assert space.swappable == (0,)
    assert space.length == 2


def test_bad_spaces_are_refused() -> None:
    with pytest.raises(BadInput, match="position 1 has no choices"):
        SwapSpace(((1,), ()))
    with pytest.raises(BadInput, match="position 0 lists a token twice"):
        SwapSpace(((1, 2, 1),))
    space = SwapSpace(((1, 2), (3,)))
    with pytest.raises(BadInput, match="token 9 is not a choice at position 0"):
        space.sentence([(0, 9)])
    with pytest.raises(BadInput, match="token 4 is not a choice at position 1"):
        space.swaps_of((1, 4))
    with pytest.raises(BadInput, match="3 tokens in a space of 2"):
        space.swaps_of((1, 3, 3))


def test_queries_that_do_not_fit_are_refused(tmp_path: object) -> None:
    """Another length, tokens beyond the vocabulary, labels and rivals that are no classes."""
    sample = tiny("mlp", 0, classes=3)
    from pathlib import Path

    network = read_network(sample.save(Path(str(tmp_path))))
    space = SwapSpace.of([[0, 1]] * sample.length)
    assert Query.of(network, space, 1).rivals == (0, 2)
    with pytest.raises(BadInput, match="positions"):
        Query.of(network, SwapSpace.of([[0]] * (sample.length + 1)), 0)
    for tokens in ([0, sample.vocabulary], [-1, 0]):
        with pytest.raises(BadInput, match=r"token ids|embedding"):
            Query.of(network, SwapSpace.of([tokens] * sample.length), 0)
    for label, rivals in ((3, (0,)), (-1, (0,)), (0, ()), (0, (0,)), (0, (3,)), (0, (1, 1))):
        with pytest.raises(BadInput, match="do not fit 3 classes"):
            Query(network, space, label, rivals)
