"""The part of a network that is affine in the words, on differences of a few elements: only what moves is carried.

The same sums as `linear_part` makes of arrays that are 0 nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.walk import Meaning, forward

from .float64_rounding import SLOP, Floats

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Moved:
    """Of a node the flat elements that move, ascending, their values [batch, elements], and how many roundings any one
    term met on its way at most."""

    elements: Indices
    values: Floats
    roundings: int = 0


@dataclass(frozen=True, eq=False)
class Moving:
    """What moves in the embedding nodes; whether absolute values are added up."""

    network: Network
    embedded: Mapping[int, Moved]
    batch: int
    absolute: bool

    def sized(self, part: Floats) -> Floats:
        return np.abs(part) if self.absolute else part

    def finish(self, at: At, found: Moved) -> Moved:
        return Moved(found.elements, found.values * SLOP, found.roundings) if self.absolute else found

    def look_up(self, layer: Embedding, inputs: Sequence[Moved], at: At) -> Moved:
        return self.embedded.get(at.index, self.nothing)

    def hold(self, layer: Constant, inputs: Sequence[Moved], at: At) -> Moved:
        return self.nothing

    @property
    def nothing(self) -> Moved:
        return Moved(np.zeros(0, dtype=np.int64), np.zeros((self.batch, 0)))

    def rearrange(self, layer: Rearrangement, inputs: Sequence[Moved], at: At) -> Moved:
        parts = self.network.laid(at.node)
        elements = np.concatenate([part.start + x.elements for part, x in zip(parts, inputs, strict=True)])
        values = np.concatenate([x.values for x in inputs], axis=1)
        place = np.full(parts[-1].stop, -1, dtype=np.int64)
        place[elements] = np.arange(len(elements))
        source = place[layer.index.ravel()]
        elements = np.flatnonzero(source >= 0)
        return Moved(elements, values[:, source[elements]], max(x.roundings for x in inputs))

    def multiply(self, layer: Affine, inputs: Sequence[Moved], at: At) -> Moved:
        (x,) = inputs
        terms, outputs = layer.weight.shape
        places, rows = np.divmod(x.elements, terms)
        found, parts, most = np.unique(places), [np.zeros((self.batch, 0))], 0
        if len(found) == len(places):  # one term each, as where the words of a text are added up
            values = x.values[:, :, None] * self.sized(layer.weight[rows])
            elements = (places[:, None] * outputs + np.arange(outputs)).ravel()
            return Moved(elements, values.reshape(self.batch, -1), x.roundings + int(x.values.any()) + 2)
        for place in found.tolist():
            own = places == place
            values = x.values[:, own]
            most = max(most, int(np.count_nonzero(values, axis=1).max(initial=0)))
            parts.append(values @ self.sized(layer.weight[rows[own]]))
        elements = (found[:, None] * outputs + np.arange(outputs)).ravel()
        return Moved(elements, np.concatenate(parts, axis=1), x.roundings + most + 2)

    def scale(self, layer: Scaling, inputs: Sequence[Moved], at: At) -> Moved:
        (x,) = inputs
        times, under = (self.sized(part.reshape(-1)[x.elements]) for part in (layer.multiply, layer.divide))
        return Moved(x.elements, x.values * times / under, x.roundings + 4)

    def add_up(self, layer: Sum, inputs: Sequence[Moved], at: At) -> Moved:
        elements = np.unique(np.concatenate([x.elements for x in inputs]))
        total = np.zeros((self.batch, len(elements)))
        for sign, x in zip(layer.signs, inputs, strict=True):
            own = np.searchsorted(elements, x.elements)
            total[:, own] += x.values if sign == 1 or self.absolute else -x.values
        return Moved(elements, total, max(x.roundings for x in inputs) + len(layer.signs))


MOVED: Meaning[Moved] = Meaning(
    "moved elements",
    {
        Embedding: Moving.look_up,
        Constant: Moving.hold,
        Rearrangement: Moving.rearrange,
        Affine: Moving.multiply,
        Scaling: Moving.scale,
        Sum: Moving.add_up,
    },
    dict.fromkeys((Rectifier, Maximum, *SMOOTH), "it is not affine"),
)


def moved_at_cut(network: Network, embedded: Mapping[int, Moved], batch: int, *, absolute: bool) -> Moved:
    """Elements of the cut, numbered as in the vector in which its nodes lie end to end."""
    moving = Moving(network, embedded, batch, absolute)
    known = forward(network, MOVED, moving, wanted=network.cut, finish=moving.finish)
    found = [known[index] for index in network.cut]
    starts = [network.cut_parts[index].start for index in network.cut]
    elements = np.concatenate([start + x.elements for start, x in zip(starts, found, strict=True)])
    return Moved(elements, np.concatenate([x.values for x in found], axis=1), max(x.roundings for x in found))
