"""Neurons that are bounded together, and the order in which positions are decided."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from oracles import loaded, query_of
from settling import paper_network

from swapproof.encodings.bounds.joint_bounds import Ascent, deciding_order, tops
from swapproof.encodings.bounds.neuron_groups import clusters, grouped, pair_gains
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import Shallow, shallow_margin
from swapproof.encodings.bounds.swap_differences import Differences


@pytest.fixture
def shallow(tmp_path: Path) -> Shallow:
    sample = paper_network(3, "Relu", 2, positions=7)
    model, _ = loaded(sample, tmp_path)
    choices = tuple((position % 5, (position + 1) % 5, (position + 2) % 5) for position in range(7))
    return shallow_margin(Places.of(Differences.of(query_of(model, choices, 0))), 0)


def test_clusters_put_those_together_that_gain_most() -> None:
    partner = np.array([3, 5, 4, 0, 2, 1])
    gains = np.zeros((6, 6))
    gains[np.arange(6), partner] = 1.0
    labels = clusters(gains, 2)
    assert (labels == labels[partner]).all()
    assert np.bincount(labels).tolist() == [2, 2, 2]


def test_a_pair_gains_what_its_joint_excess_is_smaller(shallow: Shallow) -> None:
    ascent = Ascent(shallow, 3, 1)
    neurons = np.flatnonzero(shallow.weights < 0).tolist()
    gains = pair_gains(shallow, 3, ascent.slopes, neurons)
    alone = dict(zip(neurons, [excess(shallow, ascent, (neuron,)) for neuron in neurons], strict=True))
    for i, j in combinations(range(len(neurons)), 2):
        one, other = neurons[i], neurons[j]
        found = alone[one] + alone[other] - excess(shallow, ascent, (one, other))
        assert gains[i, j] == gains[j, i] == pytest.approx(found, abs=1e-9)
    assert gains.min() > -1e-9


def test_every_neuron_is_in_one_group_of_no_more_than_the_size(shallow: Shallow) -> None:
    neurons = np.flatnonzero(shallow.weights < 0).tolist()
    for size in range(1, 5):
        groups = grouped(shallow, 2, np.full(shallow.neurons, 0.5), neurons, size)
        assert sorted(neuron for group in groups for neuron in group) == neurons
        assert max(map(len, groups)) <= size


def test_tops_with_and_without_a_position_are_those_of_all_choices() -> None:
    best = np.random.default_rng(1).integers(-3, 4, size=(5, 4)).astype(float)
    for k in range(1, 6):
        total, without, forced = tops(best, k)
        for p, m in np.ndindex(best.shape):
            sums = {
                chosen: best[list(chosen), m].sum() for size in range(k + 1) for chosen in combinations(range(5), size)
            }
            assert total[p, m] == max(sums.values())
            assert without[p, m] == max(value for chosen, value in sums.items() if p not in chosen)
            assert forced[p, m] == max(value for chosen, value in sums.items() if p in chosen)


def test_the_order_of_positions_is_one_of_all(shallow: Shallow) -> None:
    relaxation = Ascent(shallow, 3, 2).relaxation()
    assert sorted(deciding_order(shallow, relaxation, 3).tolist()) == list(range(shallow.places.count))
    assert deciding_order(shallow, relaxation, 0).tolist() == list(range(shallow.places.count))


def excess(shallow: Shallow, ascent: Ascent, group: tuple[int, ...]) -> float:
    """T of one group at the slopes of the ascent."""
    found = []
    for bits in np.ndindex(*[2] * len(group)):
        function = (np.array(bits) - ascent.slopes[list(group)]) * -shallow.weights[list(group)]
        gains = np.where(shallow.places.there, shallow.rows[:, :, list(group)] @ function, 0.0).max(axis=1)
        found.append(shallow.base[list(group)] @ function + np.sort(np.maximum(gains, 0.0))[-3:].sum())
    return float(max(found))
