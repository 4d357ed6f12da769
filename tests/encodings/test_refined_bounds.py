"""Margins with chosen slopes and joint groups stay below what enumeration finds, in every region of any network."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import loaded, query_of
from random_networks import networks, swap_spaces, tiny, tiny_networks
from regions import SLACK, cuts_of, region_of

from swapproof.encodings.bounds.chosen_slopes import GRID, Multipliers, joinable, on_grid
from swapproof.encodings.bounds.greatest_sums import greatest_without_each
from swapproof.encodings.bounds.joint_bounds import Ascent, JointBound
from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.refined_bounds import RefinedBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import shallow_margin
from swapproof.encodings.bounds.slope_ascent import SlopeAscent
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.network import Rectifier


def places_of(data: st.DataObject, shapes: tuple[str, ...] | None = None) -> tuple[Places, int]:
    """The places of a random query, in any order, and one of its rivals."""
    sample = data.draw(st.one_of(tiny_networks(), networks()) if shapes is None else tiny_networks(shapes=shapes))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
    places = Places.of(Differences.of(query))
    order = np.array(data.draw(st.permutations(range(places.count))), dtype=np.int64)
    return places.reordered(order), data.draw(st.integers(0, len(query.rivals) - 1))


def any_multipliers(data: st.DataObject, places: Places) -> Multipliers:
    """Any slopes, some not set, and any groups of up to three elements of the first rectifiers."""
    network = places.differences.query.network
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    slopes, groups = {}, []
    for index, node in enumerate(network.nodes):
        if isinstance(node.layer, Rectifier):
            chosen = on_grid(random.uniform(size=node.size), node.layer.slope)
            slopes[index] = np.where(random.uniform(size=node.size) < 0.3, -1.0, chosen)
            if index in joinable(network):
                members = np.flatnonzero(slopes[index] >= 0)[:9]
                groups += [(index, tuple(part.tolist())) for part in np.split(members, [3, 6]) if len(part)]
    return Multipliers(slopes, tuple(groups))


@cases(40)
@given(st.data())
def test_any_slopes_and_groups_are_sound_in_every_region(data: st.DataObject) -> None:
    places, rival = places_of(data)
    region = data.draw(region_of(places))
    swaps, start, left, swapped = region
    bounds = RefinedBounds(places, rival, places.count, any_multipliers(data, places))
    state = bounds.base + sum((bounds.rows[swap] for swap in swaps), np.zeros(len(bounds.base)))
    chosen = None if swapped is None else np.array([swapped])
    low = bounds.low(state[None], np.array([start]), np.array([left]), chosen)[0]
    margins = bounds.margins(cuts_of(places, bounds.rows, bounds.base, region))
    assert low <= margins.min() + SLACK * (1 + np.abs(margins).max())


@cases(40)
@given(st.data())
def test_ascent_stays_below_the_truth_and_what_it_finds_can_be_stated_on_the_grid(data: st.DataObject) -> None:
    places, rival = places_of(data)
    k = data.draw(st.integers(0, places.count))
    linear = LinearBounds(places, rival, k)
    truth = linear.margins(cuts_of(places, linear.rows, linear.base, ([], 0, k, None)))
    scale = SLACK * (1 + np.abs(truth).max())
    ascent = SlopeAscent(linear)
    for size in (1, data.draw(st.integers(2, 4))):
        if size > 1:
            ascent.group(size)
        for _ in range(4):
            assert ascent.step(0.3) <= truth.min() + scale
    multipliers = ascent.multipliers()
    stated = RefinedBounds(places, rival, k, multipliers)
    whole = stated.whole()
    assert stated.low(whole.states, whole.start, whole.left)[0] <= truth.min() + scale
    for index, steps in multipliers.steps.items():
        layer = places.differences.query.network.nodes[index].layer
        assert isinstance(layer, Rectifier)
        assert all(layer.slope * GRID <= step <= GRID for step in steps.values())


@pytest.mark.parametrize("source", range(6))
def test_groups_and_slopes_improve_the_bound_of_a_deep_network(source: int, tmp_path: Path) -> None:
    sample = tiny("deep", source)
    model, _ = loaded(sample, tmp_path)
    query = query_of(model, tuple(tuple(range(sample.vocabulary)) for _ in range(sample.length)), 0)
    places = Places.of(Differences.of(query))
    linear = LinearBounds(places, 0, 2)
    whole = linear.whole()
    plain = linear.low(whole.states, whole.start, whole.left)[0]
    ascent = SlopeAscent(linear)
    for step in range(30):
        ascent.step(0.3 * 0.9**step)
    alone = ascent.best
    ascent.group(3)
    for step in range(30):
        ascent.step(0.3 * 0.9**step)
    assert ascent.best >= alone >= plain - 0.05 * (1 + abs(plain))


@cases(40)
@given(st.data())
def test_a_region_of_some_choices_of_a_position_is_bounded(data: st.DataObject) -> None:
    """For linear and for joint bounds; and with all choices the bound is the one of the position as a whole."""
    places, rival = places_of(data, shapes=("mlp", "mean"))
    if not places.count:
        return
    k = places.count
    place = data.draw(st.integers(0, places.count - 1))
    there = np.flatnonzero(places.there[place]).tolist()
    some = data.draw(st.sets(st.sampled_from(there), min_size=1))
    left = data.draw(st.integers(0, k - 1))
    shallow = shallow_margin(places, rival)
    ascent = Ascent(shallow, k, 2)
    ascent.step(0.3)
    for bounds in (LinearBounds(places, rival, k), JointBound(shallow, ascent.relaxation(), k)):
        at = int(np.flatnonzero(bounds.places.positions == places.positions[place])[0])
        found = []
        for among in (sorted(some), there):
            allowed = np.isin(np.arange(places.swaps.shape[1]), among)[None]
            ask = bounds.base[None], np.array([at + 1]), np.array([left]), np.array([at])
            found.append(bounds.low(*ask, allowed)[0])
            regions = [([(at, choice)], at + 1, left, None) for choice in among]
            margins = np.concatenate(
                [bounds.margins(cuts_of(bounds.places, bounds.rows, bounds.base, r)) for r in regions]
            )
            assert found[-1] <= margins.min() + SLACK * (1 + np.abs(margins).max())
        assert found[1] == pytest.approx(bounds.low(*ask)[0])


@cases(40)
@given(st.data())
def test_what_is_left_after_some_swaps_is_a_space_of_its_own(data: st.DataObject) -> None:
    places, rival = places_of(data)
    start = data.draw(st.integers(0, places.count))
    made = [int(places.swaps[place, 0]) for place in range(start) if data.draw(st.booleans())]
    rest = places.after(made, start)
    bounds = LinearBounds(rest, rival, rest.count)
    state = places.base + places.differences.rows[made].sum(axis=0)
    np.testing.assert_allclose(bounds.base, state)
    assert rest.count == places.count - start
    margins = bounds.margins(cuts_of(rest, bounds.rows, bounds.base, ([], 0, rest.count, None)))
    whole = bounds.whole()
    assert bounds.low(whole.states, whole.start, whole.left)[0] <= margins.min() + SLACK * (1 + np.abs(margins).max())


@cases(40)
@given(st.data())
def test_bounds_without_positions_hold_for_the_sentences_that_leave_them_alone(data: st.DataObject) -> None:
    places, rival = places_of(data)
    k = data.draw(st.integers(0, places.count))
    bounds = LinearBounds(places, rival, k)
    gone = np.flatnonzero(data.draw(arrays(np.bool_, places.count)))
    left = np.setdiff1d(np.arange(places.count), gone)
    found = bounds.without_each(gone, left)
    for row, place in enumerate(left):
        others = [p for p in left if p != place]
        rest = places.reordered(np.array(others, dtype=np.int64))
        margins = bounds.margins(cuts_of(rest, rest.rows, rest.base, ([], 0, k, None)))
        assert found[row] <= margins.min() + SLACK * (1 + np.abs(margins).max())
    steps = data.draw(st.integers(1, 4))
    assert sorted(bounds.careful_order(0.0, steps).tolist()) == list(range(places.count))


@given(st.integers(1, 6), st.integers(0, 7), st.integers(0, 99))
def test_sums_of_the_greatest_without_each(count: int, k: int, source: int) -> None:
    best = np.random.default_rng(source).integers(0, 4, size=(count, 3)).astype(np.float64)
    found = greatest_without_each(best, k)
    for p, column in product(range(count), range(3)):
        rest = np.sort(np.delete(best[:, column], p))[::-1]
        assert found[p, column] == rest[:k].sum()
