"""The float64 numbers of the screening against the recipe over fractions: the true value lies within the error."""

from __future__ import annotations

import exact_recipe as exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_networks import swap_spaces, tiny
from screening_cases import SHAPES, wild, within

from swapproof.encodings.network import Network, Rectifier
from swapproof.encodings.query import Query
from swapproof.encodings.reading import read_network
from swapproof.encodings.space import SwapSpace
from swapproof.verifier.screening.joint import Groups
from swapproof.verifier.screening.magnitudes import magnitudes
from swapproof.verifier.screening.margins import Recipe
from swapproof.verifier.screening.moves import Moves
from swapproof.verifier.screening.sets import Batch, Sets
from swapproof.verifier.screening.tree import LINEAR, NONE, Cells, Leaf, Settings


@st.composite
def regions(draw: st.DrawFn, network: Network, choices: tuple[tuple[int, ...], ...]) -> exact.Region:
    masks = tuple(draw(st.integers(1, (1 << len(options)) - 1)) for options in choices)
    forced = sum(not mask & 1 for mask in masks)
    k = forced + draw(st.integers(0, 3))
    relus = [(index, node) for index, node in enumerate(network.nodes) if isinstance(node.layer, Rectifier)]
    elements = [(index, i) for index, node in relus for i in range(node.size)]
    plain = [(index, i) for index, i in elements if network.nodes[index].layer.slope == 0]  # type: ignore[union-attr]
    some = st.booleans()
    phases = {key: draw(st.sampled_from((-1, 1))) for key in plain if draw(st.integers(0, 7)) == 0}
    slopes = {key: draw(st.integers(0, 64)) for key in elements if draw(some)} if draw(some) else {}
    betas = {key: draw(st.integers(0, 100)) / 16 for key in phases} if draw(some) else {}
    joint: list[tuple[int, list[tuple[int, int]]]] = []
    for index, node in relus:
        if node.inputs[0] in network.cut and draw(some):
            members = draw(st.lists(st.integers(0, node.size - 1), min_size=1, max_size=5, unique=True))
            parts = [part for part in (sorted(members[:3]), sorted(members[3:])) if part]
            joint += [(index, [(i, draw(st.integers(0, 64))) for i in part]) for part in parts]
    return exact.Region(masks, k, phases, slopes, betas, joint)


def recipe_of(query: Query, regions: list[exact.Region]) -> Recipe:
    """All regions must share k and settings."""
    first = regions[0]
    moves = Moves.of(query)
    sizes = [len(query.space.choices[position]) for position in query.space.swappable]
    cells = Cells(sizes)
    for i, size in enumerate(sizes):
        cells.number(i, (1 << size) - 1)
    leaves = []
    groups = ((frozenset(range(len(sizes))), 0, first.k),)
    settings = Settings(dict(first.slopes), dict(first.betas), tuple((n, tuple(pairs)) for n, pairs in first.joint))
    for region in regions:
        row, forced = np.full(len(sizes), NONE, dtype=np.int32), []
        for i, position in enumerate(query.space.swappable):
            mask = region.masks[position]
            if not mask & 1:
                forced.append((i, cells.number(i, mask)))
            elif mask != 1:
                row[i] = cells.number(i, mask)
        leaves.append(
            Leaf(
                LINEAR,
                cells.free_number(row),
                tuple(forced),
                query.rivals,
                dict(region.phases),
                settings,
                groups,
                first.k,
            )
        )
    sets = Sets(moves, cells, first.k)
    everything = Leaf(
        LINEAR, cells.free_number(np.arange(len(sizes), dtype=np.int32)), (), (), {}, settings, groups, first.k
    )
    low, high = Batch(sets, [everything]).ends
    reach = np.maximum(np.abs(low[0]), np.abs(high[0])) + moves.errors(first.k)
    found = magnitudes(query.network, {index: reach[part] for index, part in moves.parts.items()})
    return Recipe(Batch(sets, leaves), found, settings, Groups(sets, settings))


@given(data=st.data(), shape=st.sampled_from(SHAPES), source=st.integers(0, 2**32 - 1), is_wild=st.booleans())
def test_margins_and_bounds_lie_within_their_errors(
    data: st.DataObject, shape: str, source: int, is_wild: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any region, phases and multipliers; also when weights nearly cancel."""
    sample = tiny(shape, source, small=data.draw(st.booleans()), classes=data.draw(st.integers(2, 3)))
    folder = tmp_path_factory.mktemp("wild")
    path = wild(sample, source, folder) if is_wild else sample.save(folder)
    network = read_network(path, sample.length)
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    region = data.draw(regions(network, choices))
    query = Query.of(network, SwapSpace(choices), 0)
    truth = region_truth(network, choices, region)
    recipe = recipe_of(query, [region])
    if truth is None:
        return
    assert not recipe.void[0]
    for index, inside in truth.inside.items():
        found = recipe.clamped[index]
        for i, (low, high) in enumerate(inside):
            assert within(found.low[0, i], low, found.low_error[0, i])
            assert within(found.high[0, i], high, found.high_error[0, i])
    for rival in query.rivals:
        number, error = recipe.margin(0, rival)
        assert within(number[0], truth.margin(0, rival), error[0])


def region_truth(network: Network, choices: tuple[tuple[int, ...], ...], region: exact.Region) -> exact.Recipe | None:
    """None where no sentence has the phases."""
    try:
        return exact.Recipe(network, choices, region)
    except exact.Void:
        return None
