"""What a certificate says of the rectifiers of a margin: slopes, and which of them are bounded together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Network, Rectifier

Array = NDArray[Any]

GRID = 64
"""Slopes are multiples of 1 / GRID, so that a certificate states them in a byte."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Slopes for every neuron, and which are grouped: what a certificate says."""

    slopes: Array
    """[N]."""
    steps: tuple[int, ...]
    """The same for the rectifiers with their leaks, leak + (1 - leak) slope, as multiples of 1 / GRID."""
    groups: tuple[tuple[int, ...], ...]


def grouped(neurons: Sequence[int], elements: Sequence[tuple[int, int]], size: int) -> tuple[tuple[int, ...], ...]:
    """At most `size` neurons together, and only of one layer."""
    layers: dict[int, list[int]] = {}
    for neuron in neurons:
        layers.setdefault(elements[neuron][0], []).append(neuron)
    return tuple(
        tuple(members[first : first + size]) for members in layers.values() for first in range(0, len(members), size)
    )


def patterns(size: int) -> Array:
    """[2**size, size] of 0 and 1."""
    return np.asarray((np.arange(2**size)[:, None] >> np.arange(size)) & 1, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What a certificate says of a margin: slopes of rectifiers, and which of their elements are bounded jointly."""

    slopes: dict[int, Array]
    """Rectifier node -> [size], multiples of 1 / GRID, not below the rectifier's own slope; -1 where none is set."""
    groups: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(rectifier node, elements), of rectifiers that read values affine in the words."""

    @cached_property
    def steps(self) -> dict[int, dict[int, int]]:
        """Rectifier node -> element -> slope in units of 1 / GRID."""
        found = {index: np.rint(slopes * GRID).astype(int).tolist() for index, slopes in self.slopes.items()}
        return {index: {e: step for e, step in enumerate(steps) if step >= 0} for index, steps in found.items()}

    @cached_property
    def grouped(self) -> dict[int, Array]:
        """Rectifier node -> [size] of the number of the element's group, or -1."""
        found = {index: np.full(len(slopes), -1) for index, slopes in self.slopes.items()}
        for number, (index, members) in enumerate(self.groups):
            found[index][list(members)] = number
        return found


def on_grid(slopes: Array, own: float) -> Array:
    """The nearest multiples of 1 / GRID that are not below the rectifier's own slope."""
    return np.asarray(np.maximum(np.round(slopes * GRID), np.ceil(own * GRID)) / GRID)


def joinable(network: Network) -> tuple[int, ...]:
    """The rectifiers whose inputs are affine in the words."""
    return tuple(
        index
        for index, node in enumerate(network.nodes)
        if isinstance(node.layer, Rectifier) and node.inputs[0] in network.linear
    )
