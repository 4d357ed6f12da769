"""Every bound is below what enumeration finds, and exact where it is said to be."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from graph_builder import Builder, floats, tokens
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import loaded, query_of
from random_networks import TINY, networks, swap_spaces, tiny, tiny_networks
from regions import SLACK, cuts_of, region_of

from swapproof.encodings.bounds import joint_bounds
from swapproof.encodings.bounds.greatest_sums import greatest, suffix_sums
from swapproof.encodings.bounds.joint_bounds import Ascent, JointBound
from swapproof.encodings.bounds.linear_bounds import NO_HEIGHT, Heights, LinearBounds
from swapproof.encodings.bounds.refined_bounds import RefinedBounds
from swapproof.encodings.bounds.relaxation import rectifier_lines, replaced_maximum
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import is_shallow, shallow_margin
from swapproof.encodings.bounds.slope_ascent import SlopeAscent
from swapproof.encodings.bounds.substitution import Coefficients, substituted
from swapproof.encodings.bounds.swap_corners import extreme
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Maximum, Network, Rectifier
from swapproof.encodings.onnx_files.onnx_reading import open_model
from swapproof.encodings.pools.counted_swaps import counts_swaps, first_greatest
from swapproof.encodings.query import Query
from swapproof.verifier.engines.beside.choice_sets import Steps

Floats = NDArray[np.float64]


@given(st.data())
def test_the_tables_hold_the_sums_of_the_greatest(data: st.DataObject) -> None:
    count, functions, k = (data.draw(st.integers(0, 6)) for _ in range(3))
    best = np.maximum(np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(count, functions)), 0)
    table = suffix_sums(best, k)
    for i, j in product(range(count + 1), range(k + 1)):
        expected = np.sort(best[i:], axis=0)[::-1][:j].sum(axis=0)
        np.testing.assert_allclose(table[i, j], expected)
        np.testing.assert_allclose(greatest(best[i:].T, j), expected)


def heights_of(network: Network, nodes: list[int]) -> st.SearchStrategy[Heights]:
    """Heights and stairs of the elements of maxima and rectifiers."""
    value = st.builds(int.__add__, st.sampled_from((0, 16, 64)), st.sampled_from((0, 128, 256, 384, 896)))
    found = {}
    for index in nodes:
        node = network.nodes[index]
        own = st.one_of(st.just(NO_HEIGHT), value.map((128).__add__)) if isinstance(node.layer, Rectifier) else value
        found[index] = st.lists(own, min_size=node.size, max_size=node.size).map(np.array)
    return st.fixed_dictionaries(found)


@given(st.data())
def test_linear_bounds_hold_in_every_region_of_any_network(data: st.DataObject) -> None:
    sample = data.draw(st.one_of(tiny_networks(), networks()))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
    rival = data.draw(st.integers(0, len(query.rivals) - 1))
    places = Places.of(Differences.of(query))
    places = places.reordered(np.array(data.draw(st.permutations(range(places.count))), dtype=np.int64))
    region = data.draw(region_of(places))
    swaps, start, left, swapped = region
    maxima = [n for n in range(len(query.network.nodes)) if counts_swaps(query.network, n)]
    heights = data.draw(heights_of(query.network, [n for n in maxima if data.draw(st.booleans())]))
    bounds = LinearBounds(places, rival, places.count, heights)
    state = bounds.base + sum((bounds.rows[swap] for swap in swaps), np.zeros(places.differences.width))
    chosen = None if swapped is None else np.array([swapped])
    low = bounds.low(state[None], np.array([start]), np.array([left]), chosen)[0]
    margins = bounds.margins(cuts_of(places, bounds.rows, bounds.base, region))
    assert low <= margins.min() + SLACK * (1 + np.abs(margins).max())
    nonlinear = any(isinstance(node.layer, Rectifier | Maximum) for node in query.network.nodes)
    if not nonlinear or len(margins) == 1:
        assert low == pytest.approx(margins.min(), rel=1e-9, abs=SLACK * (1 + np.abs(margins).max()))
    if swapped is None and left:
        after, parts = bounds.inherited(state[None], np.array([start]), np.array([left]))
        check_parts(places, bounds, region, after[0], parts[0])


@given(st.data())
def test_linear_bounds_hold_where_it_is_left_open_which_swaps_were_made(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks(shapes=("cnn", "maximum", "deep")))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
    places = Places.of(Differences.of(query))
    swaps, start, left, swapped = data.draw(region_of(places))
    taken = {swapped, *(place for place, _ in swaps)}
    sets = {
        place: sorted(data.draw(st.sets(st.sampled_from(range(int(places.there[place].sum()))), min_size=1)))
        for place in range(start)
        if place not in taken and data.draw(st.booleans())
    }
    maxima = [n for n in range(len(query.network.nodes)) if counts_swaps(query.network, n)]
    heights = data.draw(heights_of(query.network, maxima))
    bounds = LinearBounds(places, 0, places.count, heights if data.draw(st.booleans()) else {})
    steps = Steps(*places.swaps.shape)
    path = [p * steps.width + c for p, c in swaps] + [steps.number(place, some) for place, some in sets.items()]
    paths = np.array([path + [-1] * (places.count - len(path))])
    state = bounds.base + sum((bounds.rows[swap] for swap in swaps), np.zeros(places.differences.width))
    for place, some in sets.items():
        state = state + (bounds.rows[place, some[0]] if len(some) == 1 else 0.0)
    chosen = None if swapped is None else np.array([swapped])
    given = state[None], np.array([start]), np.array([left])
    low = bounds.low(*given, chosen, None, steps.forced(paths))[0]
    plain, rows = steps.spread(paths)
    assert len(plain) == len(rows) == int(steps.ways(paths)[0]) == np.prod([len(some) for some in sets.values()])
    made = [[divmod(int(step), steps.width) for step in row if step >= 0] for row in plain]
    inside: list[tuple[list[tuple[int, int]], int, int, int | None]] = [(one, start, left, swapped) for one in made]
    margins = np.concatenate([bounds.margins(cuts_of(places, bounds.rows, bounds.base, one)) for one in inside])
    assert low <= margins.min() + SLACK * (1 + np.abs(margins).max())
    if swapped is None and left:
        after, parts = bounds.inherited(*given, steps.forced(paths))
        for one in inside:
            check_parts(places, bounds, one, after[0], parts[0])


def test_a_margin_that_no_word_changes_is_its_own_bound_in_every_region(tmp_path: Path) -> None:
    graph = Builder()
    words = graph.call("Gather", graph.constant(np.array([[1], [-2], [3]], dtype=np.float32)), "tokens")
    words = graph.call("Flatten", graph.call("Relu", words))
    joined = graph.call("Concat", words, graph.constant(np.array([[1, 5, 2]], dtype=np.float32)), axis=1)
    kept = graph.call("Slice", joined, graph.wholes(2), graph.wholes(5), graph.wholes(1))
    graph.node("MatMul", [kept, graph.constant(np.eye(3, dtype=np.float32))], ["logits"])
    onnx.save(graph.proto([tokens(1, 2)], [floats("logits", 1, 3)], opset=13), tmp_path / "made.onnx")
    query = query_of(open_model(tmp_path / "made.onnx"), ((0, 1), (2, 0)), 1)
    places = Places.of(Differences.of(query))
    for bounds in (
        LinearBounds(places, 1, 2),
        RefinedBounds(places, 1, 2, SlopeAscent(LinearBounds(places, 1, 2)).multipliers()),
    ):
        states = np.stack([bounds.base, bounds.base + bounds.rows[0, 0]])
        start, left = np.array([0, 1]), np.array([2, 1])
        np.testing.assert_array_equal(bounds.low(states, start, left), [3, 3])
        np.testing.assert_array_equal(bounds.low(states, start, left, np.array([0, 0])), [3, 3])
        after, parts = bounds.inherited(states, start, left)
        assert (after == 3).all()
        assert (parts[np.isfinite(parts)] == 3).all()


def check_parts(
    places: Places,
    bounds: LinearBounds | JointBound,
    region: tuple[list[tuple[int, int]], int, int, int | None],
    after: Floats,
    parts: Floats,
) -> None:
    """What a region's parts inherit bounds them too."""
    swaps, start, left, _ = region
    for place in range(start, places.count + 1):
        margins = bounds.margins(cuts_of(places, bounds.rows, bounds.base, (swaps, place, left, None)))
        assert after[place] <= margins.min() + SLACK * (1 + np.abs(margins).max())
        for choice in range(int(places.there[place].sum()) if place < places.count else 0):
            inner = ([*swaps, (place, choice)], place + 1, left - 1, None)
            margins = bounds.margins(cuts_of(places, bounds.rows, bounds.base, inner))
            assert parts[place, choice] <= margins.min() + SLACK * (1 + np.abs(margins).max())


@given(st.data())
def test_joint_bounds_hold_in_every_region_and_parts_inherit_them(data: st.DataObject) -> None:
    sample = data.draw(tiny_networks(shapes=("mlp", "mean")))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, data.draw(st.integers(0, sample.classes - 1)))
    assert is_shallow(query.network)
    places = Places.of(Differences.of(query))
    if not places.count:
        return
    rival = data.draw(st.integers(0, len(query.rivals) - 1))
    shallow = shallow_margin(places, rival)
    k = data.draw(st.integers(1, places.count))
    everything = cuts_of(places, shallow.rows, shallow.base, ([], 0, k, None))
    np.testing.assert_allclose(
        shallow.margins(everything),
        LinearBounds(places, rival, k).margins(cuts_of(places, places.rows, places.differences.base, ([], 0, k, None))),
        rtol=1e-6,
        atol=1e-6,
    )
    ascent = Ascent(shallow, k, data.draw(st.integers(1, 4)))
    truth = shallow.margins(everything).min()
    for _ in range(data.draw(st.integers(1, 8))):
        assert ascent.step(0.3) <= truth + SLACK * (1 + abs(truth))
    bounds = JointBound(shallow, ascent.relaxation(), k)
    swaps, start, left, swapped = data.draw(region_of(bounds.places))
    region = swaps, start, min(left, k - len(swaps) - (swapped is not None)), swapped
    if region[2] < 0:
        return
    state = bounds.base + sum((bounds.rows[swap] for swap in swaps), np.zeros_like(bounds.base))
    chosen = None if swapped is None else np.array([swapped])
    low = bounds.low(state[None], np.array([start]), np.array([region[2]]), chosen)[0]
    margins = bounds.margins(cuts_of(bounds.places, bounds.rows, bounds.base, region))
    scale = SLACK * (1 + np.abs(margins).max())
    assert low <= margins.min() + scale
    if swapped is None and region[2]:
        after, parts = bounds.inherited(state[None], np.array([start]), np.array([region[2]]))
        check_parts(bounds.places, bounds, region, after[0], parts[0])
        assert after[0, start] == pytest.approx(low)
        for place in range(start, bounds.places.count):
            alone = bounds.low(state[None], np.array([place]), np.array([region[2]]))[0]
            assert after[0, place] <= alone + scale
            there = bounds.low(state[None], np.array([place + 1]), np.array([region[2] - 1]), np.array([place]))[0]
            assert parts[0, place].min() <= there + scale


@given(st.integers(0, 500), st.integers(1, 3))
def test_both_extremes_of_a_joint_bound_are_exact(source: int, k: int) -> None:
    """bound = min of the linear part - sum over groups of max of |w| (relu(y) - a y), each as enumeration finds it."""
    with TemporaryDirectory() as folder:
        sample = tiny("mlp", source)
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, tuple(tuple(range(sample.vocabulary))[:3] for _ in range(sample.length)), 0)
    places = Places.of(Differences.of(query))
    shallow = shallow_margin(places, 0)
    ascent = Ascent(shallow, k, 2)
    slopes = ascent.slopes
    states = cuts_of(places, shallow.rows, shallow.base, ([], 0, k, None))
    expected = (states @ np.append(slopes * shallow.weights, 1.0)).min()
    for group in ascent.groups:
        members = list(group)
        y = states[:, members]
        expected -= ((np.maximum(y, 0) - slopes[members] * y) @ -shallow.weights[members]).max()
    assert ascent.step(0.3) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 500), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_an_ascent_that_looks_at_some_patterns_says_enough_of_none_but_the_bound(
    source: int, k: int, size: int, highest: int
) -> None:
    """Whatever a step returns above `enough` is the bound at its slopes, which all sentences keep to."""
    with TemporaryDirectory() as folder:
        sample = tiny("mlp", source)
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, tuple(tuple(range(sample.vocabulary))[:3] for _ in range(sample.length)), 0)
    places = Places.of(Differences.of(query))
    shallow = shallow_margin(places, 0)
    margins = shallow.margins(cuts_of(places, shallow.rows, shallow.base, ([], 0, k, None)))
    enough = float(margins.min()) - abs(float(margins.min())) / 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_bounds, "HIGHEST", highest)
        ascent = Ascent(shallow, k, size)
        for _ in range(8):
            slopes = ascent.slopes
            found, bound = ascent.step(0.3, enough), Ascent(shallow, k, size).bound(slopes)
            assert bound <= margins.min() + SLACK * (1 + np.abs(margins).max())
            assert bound <= found + 1e-9
            assert found <= enough or found == pytest.approx(bound, rel=1e-9, abs=1e-9)


@given(st.integers(0, 500), st.integers(1, 4), st.integers(1, 4))
def test_single_precision_takes_less_off_a_joint_bound_than_it_says(source: int, k: int, size: int) -> None:
    with TemporaryDirectory() as folder:
        sample = tiny("mlp", source)
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, tuple(tuple(range(sample.vocabulary))[:3] for _ in range(sample.length)), 0)
    places = Places.of(Differences.of(query))
    shallow = shallow_margin(places, 0)
    ascent = Ascent(shallow, k, size)
    ascent.step(0.3)
    relaxation = ascent.relaxation()
    bounds, exact = JointBound(shallow, relaxation, k), ascent.bound(relaxation.slopes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_bounds, "LARGEST", 0.0)
        double = JointBound(shallow, relaxation, k)
    assert (bounds.kind, double.kind) == (np.float32, np.float64)
    first, most = np.zeros(1, dtype=np.int64), np.array([bounds.k])
    assert exact - 2 * bounds.error - 1e-9 <= bounds.low(bounds.base[None], first, most)[0] <= exact + 1e-9
    # A position, some of its choices, and every choice by itself.
    count, width = bounds.places.swaps.shape
    place, choice = np.nonzero(bounds.places.there)
    children = bounds.base + bounds.rows[place, choice]
    for one in (bounds, double):
        left = np.full(len(place), one.k - 1)
        alone = one.low(children, place + 1, left)
        states = np.repeat(one.base[None], len(place), axis=0)
        itself = one.low(states, place + 1, left, place, np.arange(width) == choice[:, None])
        some = one.low(states, place + 1, left, place, np.arange(width) >= choice[:, None])
        whole = one.low(states, place + 1, left, place)
        np.testing.assert_allclose(itself, alone, atol=2 * one.error + 1e-9)
        assert (some <= alone + 2 * one.error + 1e-9).all()
        np.testing.assert_allclose(some[choice == 0], whole[choice == 0], atol=2 * one.error + 1e-9)
        assert count == len(np.unique(place))


@given(st.data())
def test_corners_are_enough_for_every_least_value(data: st.DataObject) -> None:
    """min over all points and 0 of c x = min over the corners and 0, in any direction c, whatever points coincide."""
    grid = st.tuples(st.integers(-2, 2), st.integers(-2, 2))
    points = np.array([data.draw(st.lists(grid, min_size=count, max_size=count)) for count in (5, 5)], dtype=float)
    points *= data.draw(st.sampled_from([1.0, 1e-30, 0.1]))
    chosen = extreme(points)
    angles = np.linspace(0, 2 * np.pi, 97)
    gains = points @ np.stack([np.cos(angles), np.sin(angles)])
    expected = np.minimum(gains.min(axis=1), 0.0)
    found = np.minimum(np.where(chosen[:, :, None], gains, np.inf).min(axis=1), 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12 * np.abs(points).max())


def test_points_between_others_and_the_origin_are_no_corners() -> None:
    points = np.array([[[2.0, 0.0], [0.0, 2.0], [0.5, 0.5], [-1.0, -1.0], [1.0, 0.2]]])
    assert extreme(points).tolist() == [[True, True, False, True, False]]


@given(st.data())
def test_falls_are_the_least_gains_of_all_swaps(data: st.DataObject) -> None:
    """Of several functions a region, of all of the cut or of a few columns that differ from region to region."""
    sample = data.draw(st.one_of(tiny_networks(), networks()))
    choices = data.draw(swap_spaces(sample.length, sample.vocabulary))
    with TemporaryDirectory() as folder:
        model, _ = loaded(sample, Path(folder))
        query = query_of(model, choices, 0)
    places = Places.of(Differences.of(query))
    width = places.differences.width
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = random.normal(size=(3, 2, width)) * (
        random.random(size=(3, 1, width)) < data.draw(st.sampled_from([0.1, 1]))
    )
    columns = data.draw(st.sampled_from([None, np.arange(width)]))
    expected = np.maximum(-places.gains(values, slice(0, width)).min(axis=3, initial=0.0), 0.0)
    found = places.falls([(values, slice(0, width), columns)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(expected).max(initial=0.0)))


@given(st.data())
def test_rectifier_lines_enclose_the_rectifier(data: st.DataObject) -> None:
    slope = data.draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
    ends = sorted(data.draw(st.tuples(*[st.floats(-3, 3)] * 2)))
    low, high = np.array([ends[0]]), np.array([ends[1]])
    lower, upper, raised = rectifier_lines(slope, low, high)
    for x in np.linspace(ends[0], ends[1], 9):
        y = max(x, slope * x)
        assert lower[0] * x <= y + 1e-9
        assert y <= upper[0] * x + raised[0] + 1e-9


@given(st.integers(0, 10_000))
def test_a_maximum_is_enclosed_by_what_replaces_it(source: int) -> None:
    random = np.random.default_rng(source)
    low = random.integers(-3, 3, size=(1, 2, 3)).astype(np.float64)
    high = low + random.integers(0, 3, size=low.shape)
    coefficients = random.normal(size=(1, 1, 2))
    passed, constant = replaced_maximum(low, high, coefficients)
    for _ in range(20):
        x = random.uniform(low, high)
        function = (coefficients[0, 0] * x[0].max(axis=1)).sum()
        assert (passed.dense(6)[0, 0] * x.reshape(-1)).sum() + constant[0, 0] <= function + 1e-9


@pytest.mark.parametrize("shape", TINY)
def test_substitution_is_exact_up_to_the_first_nonlinear_layer_it_meets(shape: str, tmp_path: Path) -> None:
    sample = tiny(shape, 11)
    model, _ = loaded(sample, tmp_path)
    query = query_of(model, tuple((0,) for _ in range(sample.length)), 0)
    check_substitution(query, sample.sentences(3))


def check_substitution(query: Query, sentences: NDArray[np.int64]) -> None:
    network = query.network
    last = len(network.nodes) - 1
    found = values(network, sentences, wanted=tuple(range(len(network.nodes))))
    met: dict[int, Floats] = {}

    def replace(index: int, given: Coefficients) -> tuple[Coefficients, Floats]:
        met[index] = given.dense(network.nodes[index].size)
        return Coefficients(np.zeros(network.nodes[network.nodes[index].inputs[0]].size)), np.zeros(())

    objective = np.random.default_rng(0).normal(size=network.nodes[last].size)
    kept, constant = substituted(network, last, objective, replace)
    parts = met | {index: given.dense(network.nodes[index].size) for index, given in kept.items()}
    total = constant + sum(
        (found[index].reshape(len(sentences), -1) @ coefficients for index, coefficients in parts.items()),
        np.zeros(len(sentences)),
    )
    np.testing.assert_allclose(total, found[last].reshape(len(sentences), -1) @ objective, rtol=1e-6, atol=1e-6)


def test_ties_within_rounding_are_decided_as_the_page_decides_ties() -> None:
    """The slope of a neuron with u = -l is alpha, and the first of equal windows counts: exactly, so here nearly."""
    end = 24 / 13
    lower, _, _ = rectifier_lines(0.0, np.array([-end, -end]), np.array([np.nextafter(end, 2), end * (1 + 1e-12)]))
    assert lower.tolist() == [0.0, 1.0]
    numbers = np.array([[1.0, 1.0 + 2.0**-52, 0.5], [1.0, 1.0 + 2.0**-40, 0.5]])
    assert first_greatest(numbers, np.ones(2)).tolist() == [0, 1]
