"""What a region is: its sentences, its extremes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_networks import swap_spaces, tiny

from swapproof.encodings.evaluation import values
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.pools import next_swaps
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.screening.form.tree_leaves import ENUMERATE, NONE, Cells, Leaf, Settings
from swapproof.verifier.screening.numbers import enumerated_leaves
from swapproof.verifier.screening.numbers.enumerated_leaves import PooledLeaves, cut_of, sentences
from swapproof.verifier.screening.numbers.joint_groups import Elements, Patterns
from swapproof.verifier.screening.numbers.linear_part import linear_part
from swapproof.verifier.screening.numbers.region_extremes import Batch, Sets
from swapproof.verifier.screening.numbers.swap_moves import Moves, embedded


def region(query: Query, masks: Sequence[int], most: int) -> tuple[Sets, Leaf]:
    sizes = [len(query.space.choices[position]) for position in query.space.swappable]
    cells = Cells(sizes)
    row, forced = np.full(len(sizes), NONE, dtype=np.int32), []
    for i, position in enumerate(query.space.swappable):
        number = cells.number(i, masks[position])
        if not masks[position] & 1:
            forced.append((i, number))
        elif masks[position] != 1:
            row[i] = number
    leaf = Leaf(ENUMERATE, cells.free_number(row), tuple(forced), query.rivals, Settings(), most)
    return Sets(Moves.of(query), cells, most), leaf


def fits(query: Query, tokens: Sequence[int], masks: Sequence[int], most: int) -> bool:
    pairs = list(zip(tokens, query.space.choices, masks, strict=True))
    if not all(mask >> options.index(token) & 1 for token, options, mask in pairs):
        return False
    return sum(token != options[0] for token, options, _ in pairs) <= most


@given(data=st.data(), source=st.integers(0, 2**32 - 1), shape=st.sampled_from(("mlp", "cnn", "mean")))
def test_a_region_has_these_sentences_and_these_extremes(
    data: st.DataObject, source: int, shape: str, tmp_path_factory: object
) -> None:
    """Against trying all sentences of the text.

    The extremes are those of elements, of functions, and of the greatest of several functions.
    """
    sample = tiny(shape, source)
    network = read_network(sample.save(tmp_path_factory.mktemp("region")), sample.length)  # type: ignore[attr-defined]
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    query = Query.of(network, SwapSpace(choices), 0)
    masks = [data.draw(st.integers(1, (1 << len(options)) - 1)) for options in choices]
    most = data.draw(st.integers(0, sample.length))
    sets, leaf = region(query, masks, most)
    wanted = sorted(tokens for tokens in itertools.product(*choices) if fits(query, tokens, masks, most))
    assert (leaf.spare < 0) == (not wanted)
    if not wanted:
        return
    found: list[tuple[int, ...]] = []
    cuts = []
    for cut, swaps in sentences(sets, leaf):
        cuts.append(cut)
        for row in swaps:
            tokens = list(query.space.original)
            for swap in row[row >= 0]:
                i = int(np.searchsorted(sets.first, swap, side="right")) - 1
                position = query.space.swappable[i]
                tokens[position] = choices[position][int(swap - sets.first[i]) + 1]
            found.append(tuple(tokens))
    assert sorted(found) == wanted
    every = linear_part(network, embedded(network, np.array(found)), "values").cut
    np.testing.assert_allclose(np.concatenate(cuts), every, atol=1e-9)
    low, high_ends = Batch(sets, [leaf]).ends
    np.testing.assert_allclose(low[0], every.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(high_ends[0], every.max(axis=0), atol=1e-9)
    function = np.random.default_rng(source).normal(size=(1, 2, sets.moves.width))
    least = Batch(sets, [leaf, leaf]).least(np.concatenate([function, function]))
    np.testing.assert_allclose(least, np.repeat((every @ function[0].T).min(axis=0)[None], 2, axis=0), atol=1e-9)
    elements = np.random.default_rng(source).permutation(sets.moves.width)  # no element is in two groups
    columns = elements[: sets.moves.width // 2 * 2].reshape(2, -1) if sets.moves.width > 1 else elements[None]
    functions = np.random.default_rng(source).normal(size=(len(columns), 5, columns.shape[1]))
    tops = np.array([(every[:, own] @ each.T).max() for own, each in zip(columns, functions, strict=True)])
    for number, close in ((np.float32, 1e-3), (np.float64, 1e-9)):
        patterns = Patterns(Elements(sets, columns, number), functions)
        batch = Batch(sets, [leaf, leaf])
        np.testing.assert_allclose(patterns.heights(batch), [tops, tops], atol=close)
        np.testing.assert_allclose(patterns.heights_alone(batch, 1), tops, atol=close)
    parts = {index: every[:, part].reshape(-1, *network.nodes[index].shape) for index, part in sets.moves.parts.items()}
    assert np.isfinite(values(network, given=parts)[len(network.nodes) - 1]).all()


@given(data=st.data(), source=st.integers(0, 2**32 - 1), shape=st.sampled_from(("cnn", "maximum")))
def test_one_swap_more_is_listed_the_same_by_the_windows_it_moves(
    data: st.DataObject, source: int, shape: str, tmp_path_factory: object
) -> None:
    sample = tiny(shape, source)
    network = read_network(sample.save(tmp_path_factory.mktemp("pooled")), sample.length)  # type: ignore[attr-defined]
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    query = Query.of(network, SwapSpace(choices), 0)
    masks = [data.draw(st.integers(1, (1 << len(options)) - 1)) for options in choices]
    forced = sum(len(options) > 1 and not mask & 1 for options, mask in zip(choices, masks, strict=True))
    sets, leaf = region(query, masks, forced + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_swaps, "FEW", 0)
        patch.setattr(enumerated_leaves, "WORTH", 0)
        pooled = PooledLeaves.of(sets, 1)
    if pooled is None:
        return
    found: dict[tuple[int, ...], int] = {}
    node = pooled.following.pool.node
    for block in pooled.blocks([(7, leaf), (7, leaf)]):
        assert block.pooled is not None
        assert set(block.region.tolist()) == {7}
        cut = cut_of(sets, block, np.arange(len(block.swaps)))
        expected = values(network, given=network.split_cut(cut), wanted=[node])[node].reshape(block.pooled.shape)
        np.testing.assert_allclose(block.pooled, expected, atol=1e-9)
        for swaps in block.swaps:
            key = tuple(sorted(swaps[swaps >= 0].tolist()))
            found[key] = found.get(key, 0) + 1
    plain = [tuple(sorted(row[row >= 0].tolist())) for _, swaps in sentences(sets, leaf) for row in swaps]
    assert found == dict.fromkeys(plain, 2)
