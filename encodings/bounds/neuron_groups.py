"""Which concave neurons are bounded together: those that reach their extremes in different sentences.

T of a group is at most the sum of the T of its neurons. The gain of a pair is T_i + T_j - T_ij; neurons are put into
groups so that the pairs inside have great gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .greatest_sums import greatest
from .shallow_margin import Shallow

Array = NDArray[Any]
Groups = tuple[tuple[int, ...], ...]

AMONG = 64
"""Neurons among which groups are sought: pairs of more take longer."""
STARTS = 4
"""Random groupings that are improved; the best of them is taken."""
EPSILON = 1e-9
"""Of a gain: less is none."""


def grouped(shallow: Shallow, k: int, slopes: Array, neurons: list[int], size: int, among: int = AMONG) -> Groups:
    """At most `size` neurons together, and only of one layer and of `among` that follow one another."""
    layers: dict[int, list[int]] = {}
    for neuron in neurons:
        layers.setdefault(shallow.elements[neuron][0], []).append(neuron)
    groups: list[tuple[int, ...]] = []
    for members in layers.values():
        block = max(size, among // size * size)
        for first in range(0, len(members), block):
            some = members[first : first + block]
            labels = np.arange(len(some))
            if 1 < size < len(some):
                labels = clusters(pair_gains(shallow, k, slopes, some), size)
            elif size > 1:
                labels[:] = 0
            groups += [tuple(some[n] for n in np.flatnonzero(labels == label)) for label in range(labels.max() + 1)]
    return tuple(groups)


def pair_gains(shallow: Shallow, k: int, slopes: Array, neurons: list[int]) -> Array:
    """[n, n]: T_i + T_j - T_ij at these slopes."""
    corners = shallow.places.corners
    swings = shallow.rows.reshape(-1, shallow.rows.shape[2])[corners.flat][:, neurons].T
    functions = (np.array([[0.0], [1.0]]) - slopes[neurons]) * -shallow.weights[neurons]
    heights, gains = functions * shallow.base[neurons], functions[:, :, None] * swings
    alone = (heights + greatest(corners.most(gains), k)).max(axis=0)
    found = np.zeros((len(neurons), len(neurons)))
    for i in range(1, len(neurons)):
        both = greatest(corners.most(gains[:, None, i : i + 1] + gains[None, :, :i]), k)
        both += heights[:, None, i : i + 1] + heights[None, :, :i]
        found[i, :i] = found[:i, i] = alone[i] + alone[:i] - both.max(axis=(0, 1))
    return found


def clusters(gains: Array, size: int) -> NDArray[np.int64]:
    """[n]: the number of the group of each; exchanges of two as long as one helps, from several starts."""
    count = len(gains)
    numbers, groups, generator = np.arange(count), -(-count // size), np.random.default_rng(0)
    best, chosen = -np.inf, numbers % groups
    for _ in range(STARTS):
        labels = generator.permutation(count) % groups
        while True:
            to_group = gains @ np.eye(groups)[labels]
            moved = to_group[:, labels] - to_group[numbers, labels][:, None]
            helps = np.where(labels[:, None] == labels, 0.0, moved + moved.T - 2 * gains)
            partners = helps.argmax(axis=1)
            if not exchanged(labels, partners, helps[numbers, partners]):
                break
        inside = float(gains[labels[:, None] == labels].sum())
        if inside > best:
            best, chosen = inside, labels
    return np.asarray(chosen)


def exchanged(labels: NDArray[np.int64], partners: Array, helps: Array) -> bool:
    """Exchange labels with partners where that helps, the most helpful first, every label once; whether any did."""
    done = set[int]()
    for one in np.argsort(-helps, kind="stable").tolist():
        if helps[one] < EPSILON:
            break
        pair = [one, int(partners[one])]
        if done.isdisjoint(labels[pair].tolist()):
            done.update(labels[pair].tolist())
            labels[pair] = labels[pair[::-1]]
    return bool(done)
