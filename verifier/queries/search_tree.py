"""A search as a proof tree: what was split where and what refuted the rest, as the bytes of a box certificate.

A region's bytes are its cuts and then its leaf or its split, whose halves are regions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.network import Floats, Indices
from swapproof.proofs.writing import box_certificate as tree
from swapproof.proofs.writing.certificate import number

from ..screening.boxes.packed_numbers import tables
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
        self.one(tree.LINEAR, regions, atoms)

    def crossed(self, regions: InputRegions, multipliers: Multipliers) -> None:
        """Refuted by bounds that cross; should the checker's not cross, by these multipliers."""
        self.several(tree.LINEAR, regions, multipliers, None)

    def refuted(self, regions: InputRegions, best: Ascended) -> None:
        self.several(tree.LINEAR, regions, best.multipliers, best.given)

    def cut(self, regions: InputRegions, best: Ascended, *, forget: bool = False) -> None:
        """With `forget` its plane is given up for another, 0 >= 0; its ends stay."""
        self.several(tree.CUT, regions, best.multipliers, best.given)
        self.forget(regions, forget)

    def cut_alone(self, regions: InputRegions, *, forget: bool = False) -> None:
        """By each atom."""
        for atom in range(self.atoms):
            self.one(tree.CUT, regions, np.full(len(regions), atom))
        self.forget(regions, forget)

    def forget(self, regions: InputRegions, asked: bool) -> None:
        nothing = tree.cut(tree.Multipliers([0] * self.atoms)) if asked else b""
        for node in regions.nodes:
            self.parts[node] += nothing

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

    def one(self, kind: int, regions: InputRegions, atoms: Indices) -> None:
        """One atom, and the slopes that are taken for these bounds: the checker's own may be a little closer."""
        slopes = []
        for place, layer in enumerate(self.layers):
            if layer is not None:
                low, high = regions.least[place], regions.greatest[place]
                steep = np.where(high > -low, SLOPES, np.round(layer.slope * SLOPES)).astype(np.int64)
                slopes.append((layer.node, np.where((low < 0) & (high > 0), steep, -1)))
        units = [b"".join([number(int(each == atom)) for each in range(self.atoms)]) for atom in range(self.atoms)]
        for node, atom, lines in zip(regions.nodes, atoms.tolist(), tables(slopes, len(regions)), strict=True):
            self.parts[node] += bytes([kind]) + units[atom] + lines + bytes(2)

    def several(self, kind: int, regions: InputRegions, chosen: Multipliers, given: list[Floats] | None) -> None:
        """Slopes where a coefficient is `given` that is above 0: the others are not in use."""
        weights, unit = np.ones((len(regions), 1), dtype=np.int64), 1
        if self.atoms != 1:
            weights, unit = np.round(chosen.weights * WEIGHTS).astype(np.int64), WEIGHTS
        slopes: list[tuple[int, Indices]] = []
        splits: list[tuple[int, Floats]] = []
        for place, layer in enumerate(self.layers):
            if layer is None:
                continue
            used = (regions.least[place] < 0) & (regions.greatest[place] > 0)
            if given is not None:
                used &= given[place] > 0
            lines = np.round((layer.slope + (1 - layer.slope) * chosen.slopes[place]) * SLOPES).astype(np.int64)
            slopes.append((layer.node, np.where(used, lines, -1)))
            splits.append((layer.node, chosen.splits[place] * (regions.phases[place] != 0) * unit))
        exponents, betas = rounded(splits, len(regions))
        lists = tables(slopes, len(regions)), exponents, tables(betas, len(regions))
        columns = zip(weights.tolist(), *lists, strict=True)
        for node, (shares, slopes_there, exponent, betas_there) in zip(regions.nodes, columns, strict=True):
            before = bytes([kind]) + b"".join(map(number, shares))
            self.parts[node] += before + slopes_there + number(exponent) + betas_there


def rounded(splits: Sequence[tuple[int, Floats]], rows: int) -> tuple[list[int], list[tuple[int, Indices]]]:
    """As whole numbers over a power of two, -1 where there is none, and the exponents."""
    largest = np.array([values.max(axis=1, initial=0.0) for _, values in splits]).max(axis=0, initial=0.0)
    room = LARGEST / np.where(largest > 0, largest, np.broadcast_to(LARGEST, rows))
    exponents = np.clip(np.floor(np.log2(room)) - 1, 0, 30).astype(np.int64)
    found = []
    for name, values in splits:
        whole = np.minimum(np.round(values * 2.0 ** exponents[:, None]), LARGEST - 1).astype(np.int64)
        found.append((name, np.where(whole > 0, whole, -1)))
    return exponents.tolist(), found


def short(low: Floats, high: Floats) -> Floats:
    """Points near the middle of intervals no narrower than NARROWEST, multiples of a power of two that is no finer
    than a sixteenth of the width."""
    unit = 2.0 ** (np.floor(np.log2(high - low)) - 3)
    return np.asarray(np.round((low + (high - low) / 2) / unit) * unit)
