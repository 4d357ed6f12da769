"""The margin of a network with one hidden layer of rectifiers, as the joint bounds need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Maximum, Network, Rectifier
from .selection import Places
from .substitution import Coefficients, substituted

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Shallow:
    """One rival's margin as a function of the words: at the original sentence, and what every swap changes.

    State vectors hold the N pre-activations y, then the linear part of the margin.
    """

    places: Places
    weights: Array
    """[N]: w."""
    base: Array
    """[N + 1]: the state of the original sentence."""
    rows: Array
    """[P, C, N + 1]: what each swap adds; 0 where there is none."""
    elements: tuple[tuple[int, int], ...]
    """Of every neuron: its rectifier node in the network, and its element there."""
    leaks: Array
    """[N]: the slopes of the rectifiers themselves below 0, taken into the linear part."""

    @property
    def neurons(self) -> int:
        return len(self.weights)

    def margins(self, states: Array) -> Array:
        return np.asarray(np.maximum(states[..., :-1], 0.0) @ self.weights + states[..., -1])

    def reordered(self, order: Array) -> Shallow:
        return replace(self, places=self.places.reordered(order), rows=self.rows[order])

    def after(self, path: Sequence[int], start: int) -> Shallow:
        """The positions from `start` on, when the swaps p * C + c of the path are made."""
        rows = self.rows.reshape(-1, self.rows.shape[2])[list(path)]
        made = self.places.swaps.reshape(-1)[list(path)].tolist()
        return replace(
            self, places=self.places.after(made, start), base=self.base + rows.sum(axis=0), rows=self.rows[start:]
        )

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """[P, N] each: how far one swap can lower and raise each neuron, 0 at least."""
        swings = self.rows[:, :, :-1]
        return np.maximum(-swings.min(axis=1), 0.0), np.maximum(swings.max(axis=1), 0.0)

    def low_high(self, k: int) -> tuple[Array, Array]:
        """[N] each: exact bounds of the pre-activations, with at most k swaps."""
        down, up = self.ends
        y, count = self.base[:-1], len(down)
        if 0 < k < count:
            down, up = (np.partition(part, count - k, axis=0)[count - k :] for part in (down, up))
        return y - (down.sum(axis=0) if k else 0.0), y + (up.sum(axis=0) if k else 0.0)

    def stability(self, k: int) -> tuple[NDArray[np.bool_], Array]:
        """[N] each: the neurons that have both signs and count, and the slopes of the others."""
        lower, upper = self.low_high(k)
        return (lower < 0) & (upper > 0) & (self.weights != 0), np.where(lower >= 0, 1.0, 0.0)


def is_shallow(network: Network) -> bool:
    """Every nonlinear layer is a rectifier of values that are affine in the words."""
    nonlinear = [node for node in network.nodes if isinstance(node.layer, Rectifier | Maximum)]
    return all(isinstance(node.layer, Rectifier) and node.inputs[0] in network.linear for node in nonlinear)


def shallow_margin(places: Places, rival: int) -> Shallow:
    """The margin against `query.rivals[rival]`; max(y, slope y) = slope y + (1 - slope) relu(y)."""
    differences = places.differences
    query, network = differences.query, differences.query.network
    last = len(network.nodes) - 1
    objective = np.zeros(network.nodes[last].size)
    objective[query.label], objective[query.rivals[rival]] = 1.0, -1.0
    met: dict[int, Array] = {}
    leak: dict[int, float] = {}

    def passed(index: int, given: Coefficients) -> tuple[Coefficients, Array]:
        coefficients = given.dense(network.nodes[index].size)
        layer = network.nodes[index].layer
        slope = layer.slope if isinstance(layer, Rectifier) else 0.0
        leak[index], met[index] = slope, coefficients * (1.0 - slope)
        return Coefficients(coefficients * slope), np.zeros(())

    kept, constant = substituted(network, last, objective, passed)
    linear = np.zeros(differences.width)
    for index, part in differences.parts.items():
        if index in kept:
            linear[part] += kept[index].dense(part.stop - part.start)
    neurons = [(index, int(element)) for index in sorted(met) for element in np.flatnonzero(met[index])]
    weights = np.array([met[index][element] for index, element in neurons])
    at = [differences.parts[network.nodes[index].inputs[0]].start + element for index, element in neurons]
    which = np.array(at, dtype=np.int64)
    # Indexing by a list may leave the last axis apart in memory, where every swap is to be added at once.
    rows = np.ascontiguousarray(np.concatenate([places.rows[:, :, which], (places.rows @ linear)[:, :, None]], axis=2))
    return Shallow(
        places,
        weights,
        np.append(places.base[which], places.base @ linear + constant),
        rows,
        tuple(neurons),
        np.array([leak[index] for index, _ in neurons]),
    )
