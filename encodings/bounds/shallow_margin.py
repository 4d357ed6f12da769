"""The margin of a network with one hidden layer of rectifiers, as the joint bounds need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Maximum, Network, Rectifier
from .joint_bounds import Shallow
from .selection import Places
from .substitution import Coefficients, substituted

Array = NDArray[Any]


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

    def replace(index: int, given: Coefficients) -> tuple[Coefficients, Array]:
        coefficients = given.dense(network.nodes[index].size)
        layer = network.nodes[index].layer
        slope = layer.slope if isinstance(layer, Rectifier) else 0.0
        leak[index], met[index] = slope, coefficients * (1.0 - slope)
        return Coefficients(coefficients * slope), np.zeros(())

    kept, constant = substituted(network, last, objective, replace)
    linear = np.zeros(differences.width)
    for index, part in differences.parts.items():
        if index in kept:
            linear[part] += kept[index].dense(part.stop - part.start)
    neurons = [(index, int(element)) for index in sorted(met) for element in np.flatnonzero(met[index])]
    weights = np.array([met[index][element] for index, element in neurons])
    at = [differences.parts[network.nodes[index].inputs[0]].start + element for index, element in neurons]
    which = np.array(at, dtype=np.int64)
    return Shallow(
        places,
        weights,
        np.append(places.base[which], places.base @ linear + constant),
        np.concatenate([places.rows[:, :, which], (places.rows @ linear)[:, :, None]], axis=2),
        tuple(neurons),
        np.array([leak[index] for index, _ in neurons]),
    )
