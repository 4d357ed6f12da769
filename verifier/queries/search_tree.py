"""A search as a proof tree: what was split where and what refuted the rest, as the bytes of a box certificate.

A region's bytes are its cuts and then its leaf or its split, whose halves are regions of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats, Indices
from swapproof.proofs.writing import box_certificate as tree

from .ascent import Ascended, Multipliers
from .query_bounds import InputRegions

SLOPES, UPPER_SLOPES = 64.0, 65536.0
"""Lower and upper slopes are multiples of one part of so many."""
WEIGHTS = 1 << 20
"""What the weights of several atoms add up to."""
LARGEST = 1 << 31
NARROWEST = 2.0**-58
"""Narrower intervals are not halved: splits are multiples of 2**-64."""


@dataclass(frozen=True)
class TreeLayer:
    """What the certificate calls a layer of neurons: a rectifier's node, and its slope below 0."""

    node: int
    slope: float


@dataclass(eq=False)
class TreeRecord:
    """`layers` None: of maxima, which have no names; `atoms`: how many."""

    layers: Sequence[TreeLayer | None]
    widths: Sequence[int]
    atoms: int
    parts: list[bytearray] = field(default_factory=lambda: [bytearray()])
    halves: dict[int, tuple[int, int]] = field(default_factory=dict)
    near: bool = False
    """Whether leaves are so near to 0 that only exact arithmetic says that they hold."""

    def __post_init__(self) -> None:
        named = [np.full(width, layer is not None) for layer, width in zip(self.layers, self.widths, strict=True)]
        self.named = np.concatenate([np.zeros(0, dtype=bool), *named])

    def encoded(self) -> bytes:
        """In preorder."""
        out, stack = bytearray(), [0]
        while stack:
            node = stack.pop()
            out += self.parts[node]
            stack += reversed(self.halves.get(node, ()))
        return bytes(out)

    def alone(self, regions: InputRegions, atoms: Indices) -> None:
        """Refuted each by one atom."""
        for row, node in enumerate(regions.nodes):
            self.parts[node] += tree.linear(self.of_one(regions, row, int(atoms[row])))

    def crossed(self, regions: InputRegions, multipliers: Multipliers) -> None:
        """Refuted by bounds that cross; should the checker's not cross, by these multipliers."""
        for row, node in enumerate(regions.nodes):
            self.parts[node] += tree.linear(self.multipliers(regions, multipliers, None, row))

    def refuted(self, regions: InputRegions, best: Ascended) -> None:
        for row, node in enumerate(regions.nodes):
            self.parts[node] += tree.linear(self.multipliers(regions, best.multipliers, best.given, row))

    def cut(self, regions: InputRegions, best: Ascended) -> None:
        for row, node in enumerate(regions.nodes):
            self.parts[node] += tree.cut(self.multipliers(regions, best.multipliers, best.given, row))

    def cut_alone(self, regions: InputRegions) -> None:
        """By each atom."""
        for row, node in enumerate(regions.nodes):
            for atom in range(self.atoms):
                self.parts[node] += tree.cut(self.of_one(regions, row, atom))

    def renew(self, regions: InputRegions) -> None:
        for node in regions.nodes:
            self.parts[node] += tree.renew()

    def halved(self, nodes: Indices, inputs: Indices, points: Floats) -> tuple[Indices, Indices]:
        for node, place, point in zip(nodes, inputs, points, strict=True):
            above, below = float(point).as_integer_ratio()
            self.parts[node] += tree.split_input(int(place), below.bit_length() - 1, above)
        return self.children(nodes)

    def decided(self, nodes: Indices, layer: int, neurons: Indices) -> tuple[Indices, Indices]:
        """First the halves with inputs of at most 0."""
        found = self.layers[layer]
        if found is None:
            raise ValueError(f"layer {layer} has no name")
        for node, neuron in zip(nodes, neurons, strict=True):
            self.parts[node] += tree.split_phase(found.node, int(neuron))
        return self.children(nodes)

    def children(self, nodes: Indices) -> tuple[Indices, Indices]:
        first = len(self.parts)
        made = np.arange(first, first + 2 * len(nodes))
        self.parts += [bytearray() for _ in made]
        left, right = made[: len(nodes)], made[len(nodes) :]
        self.halves.update(zip(nodes.tolist(), zip(left.tolist(), right.tolist(), strict=True), strict=True))
        return left, right

    def of_one(self, regions: InputRegions, row: int, atom: int) -> tree.Multipliers:
        """One atom, and the slopes that are taken for these bounds: the checker's own may be a little closer."""
        slopes: dict[int, dict[int, int]] = {}
        for place, layer in enumerate(self.layers):
            low, high = regions.least[place][row], regions.greatest[place][row]
            places = np.flatnonzero((low < 0) & (high > 0))
            if layer is not None and len(places):
                found = np.where((high > -low)[places], 1.0, layer.slope)
                slopes[layer.node] = in_parts(places, found)
        return tree.Multipliers([int(each == atom) for each in range(self.atoms)], slopes)

    def multipliers(
        self, regions: InputRegions, chosen: Multipliers, given: list[Floats] | None, row: int
    ) -> tree.Multipliers:
        """Slopes where a coefficient is `given` that is above 0: the others are not in use."""
        weights, unit = [1], 1
        if self.atoms != 1:
            weights, unit = [round(float(w) * WEIGHTS) for w in chosen.weights[row]], WEIGHTS
        slopes: dict[int, dict[int, int]] = {}
        betas: dict[int, dict[int, float]] = {}
        for place, layer in enumerate(self.layers):
            if layer is None:
                continue
            is_open = (regions.least[place][row] < 0) & (regions.greatest[place][row] > 0)
            places = np.flatnonzero(is_open if given is None else is_open & (given[place][row] > 0))
            lines = layer.slope + (1 - layer.slope) * chosen.slopes[place][row][places]
            if len(places):
                slopes[layer.node] = in_parts(places, lines)
            splits: NDArray[np.float64] = chosen.splits[place][row] * (regions.phases[place][row] != 0) * unit
            places = np.flatnonzero(splits > 0)
            if len(places):
                betas[layer.node] = dict(zip(places.tolist(), splits[places].tolist(), strict=True))
        return tree.Multipliers(weights, slopes, *rounded(betas))


def in_parts(places: Indices, slopes: Floats) -> dict[int, int]:
    return dict(zip(places.tolist(), np.round(slopes * SLOPES).astype(np.int64).tolist(), strict=True))


def rounded(betas: Mapping[int, Mapping[int, float]]) -> tuple[int, dict[int, dict[int, int]]]:
    """As whole numbers over a power of two, and its exponent."""
    largest = max((value for layer in betas.values() for value in layer.values()), default=0.0)
    room = LARGEST / largest if largest else 1.0
    exponent = int(np.clip(math.floor(math.log2(room)) - 1, 0, 30))
    found = {
        node: {place: min(round(value * 2.0**exponent), LARGEST - 1) for place, value in layer.items()}
        for node, layer in betas.items()
    }
    kept = {node: {place: value for place, value in layer.items() if value} for node, layer in found.items()}
    return exponent, {node: layer for node, layer in kept.items() if layer}


def short(low: Floats, high: Floats) -> Floats:
    """Points near the middle of intervals no narrower than NARROWEST, multiples of a power of two that is no finer
    than a sixteenth of the width."""
    unit = 2.0 ** (np.floor(np.log2(high - low)) - 3)
    return np.asarray(np.round((low + (high - low) / 2) / unit) * unit)
