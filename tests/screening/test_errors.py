"""The float64 numbers of the screening against the recipe over fractions: the true value lies within the error."""

from __future__ import annotations

import json

import exact_recipe as exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_networks import swap_spaces, tiny
from screened_regions import recipe_of
from screening_cases import PROOFS, SHAPES, same_or_nothing, screen_of, wild, within

from swapproof.encodings.network import Maximum, Network, Rectifier
from swapproof.encodings.onnx_files.onnx_reading import read_network
from swapproof.encodings.pools.counted_swaps import counts_swaps
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.screening.numbers.joint_groups import Number, Tables


@st.composite
def regions(draw: st.DrawFn, network: Network, choices: tuple[tuple[int, ...], ...]) -> exact.Region:
    masks = tuple(draw(st.integers(1, (1 << len(options)) - 1)) for options in choices)
    forced = sum(not mask & 1 for mask in masks)
    k = forced + draw(st.integers(0, 3))
    relus = [(index, node) for index, node in enumerate(network.nodes) if isinstance(node.layer, Rectifier)]
    elements = [(index, i) for index, node in relus for i in range(node.size)]
    some = st.booleans()
    slopes = {key: draw(st.integers(0, 64)) for key in elements if draw(some)} if draw(some) else {}
    joint: list[tuple[int, list[tuple[int, int]]]] = []
    for index, node in relus:
        if node.inputs[0] in network.cut and draw(some):
            members = draw(st.lists(st.integers(0, node.size - 1), min_size=1, max_size=5, unique=True))
            parts = [part for part in (sorted(members[:3]), sorted(members[3:])) if part]
            joint += [(index, [(i, draw(st.integers(0, 64))) for i in part]) for part in parts]
    counting = [
        (index, i)
        for index in range(len(network.nodes))
        if counts_swaps(network, index)
        for i in range(network.nodes[index].size)
    ]

    def value(index: int) -> int:
        stairs = draw(st.integers(0, 7)) + isinstance(network.nodes[index].layer, Rectifier)
        return draw(st.sampled_from((0, 1, 20, 64))) + 128 * stairs

    heights = {key: value(key[0]) for key in counting if draw(some)} if draw(some) else {}
    return exact.Region(masks, k, slopes, joint, heights)


NUMBERS: st.SearchStrategy[Number] = st.sampled_from([np.float32, np.float64])


@given(data=st.data(), shape=st.sampled_from(SHAPES), source=st.integers(0, 2**32 - 1), is_wild=st.booleans())
def test_margins_and_bounds_lie_within_their_errors(
    data: st.DataObject, shape: str, source: int, is_wild: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any regions and multipliers; also when weights nearly cancel."""
    sample = tiny(shape, source, small=data.draw(st.booleans()), classes=data.draw(st.integers(2, 3)))
    folder = tmp_path_factory.mktemp("wild")
    path = wild(sample, source, folder) if is_wild else sample.save(folder)
    network = read_network(path, sample.length)
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    some = data.draw(st.lists(regions(network, choices), min_size=1, max_size=3))
    query = Query.of(network, SwapSpace(choices), 0)
    recipe = recipe_of(query, some, data.draw(NUMBERS))
    margins = {rival: recipe.margin(0, rival) for rival in query.rivals}
    for row, region in enumerate(some):
        truth = exact.Recipe(network, choices, region)
        for index, node in enumerate(network.nodes):
            if not isinstance(node.layer, Rectifier | Maximum):
                continue
            found = recipe.inputs(network.places[index])
            for i, (low, high) in enumerate(truth.inputs(index)):
                assert within(found.low[row, i], low, found.low_error[row, i])
                assert within(found.high[row, i], high, found.high_error[row, i])
        for rival, (number, error) in margins.items():
            if np.isfinite(error[row]):
                assert within(number[row], truth.margin(0, rival), error[row])


def test_a_leaf_that_float32_leaves_open_is_decided_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every float32 number said to be infinitely far off, the proof of the folder is accepted all the same."""
    data = (PROOFS / "accepted" / "with-joint.json").read_bytes()
    asked: list[type] = []
    weight = Tables.weight

    def noted(self: Tables, part: slice) -> NDArray[np.float64]:
        asked.append(self.number)
        return weight(self, part) * (np.inf if self.number is np.float32 else 1.0)

    monkeypatch.setattr(Tables, "weight", noted)
    assert same_or_nothing(screen_of(PROOFS / "accepted", json.loads(data)), data)
    assert set(asked) == {np.float32, np.float64}
