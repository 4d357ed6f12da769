"""What a change of the embedding at one position does to the cut: computed once for a network, for all its texts.

With d the difference of what is looked up at the position and K the linear part of the network from there to the cut,
a swap adds d K. K is known up to growth(n) G, where G holds the sums of the absolute values of all terms and n is how
many roundings a term meets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Embedding, Network

from .float64_rounding import Floats, growth
from .linear_part import linear_part

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Kernel:
    """Of one position: the elements of the cut that it moves; [looked up, elements] each of K and G."""

    touched: Indices
    matrix: Floats
    gross: Floats
    share: float
    """Of G, what a sum of such products can be off by: growth(n + m + 3), with m the numbers looked up."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """Of one network, by position, computed when first asked for."""

    network: Network
    known: dict[int, Kernel] = field(default_factory=dict)

    @cached_property
    def tables(self) -> dict[int, Embedding]:
        """Embedding nodes."""
        nodes = enumerate(self.network.nodes)
        return {index: node.layer for index, node in nodes if isinstance(node.layer, Embedding)}

    @cached_property
    def places(self) -> dict[int, list[tuple[int, int]]]:
        """Position -> where it is looked up: the node, and which of its rows."""
        found: dict[int, list[tuple[int, int]]] = {}
        for index, layer in self.tables.items():
            for row, position in enumerate(layer.positions.reshape(-1).tolist()):
                found.setdefault(position, []).append((index, row))
        return found

    def looked_up(self, position: int, tokens: Indices) -> Floats:
        """[tokens, looked up]: the embedding at all places of the position, one after the other."""
        rows = [self.tables[index].table[tokens] for index, _ in self.places.get(position, ())]
        return np.concatenate(rows, axis=1) if rows else np.zeros((len(tokens), 0))

    def at(self, position: int) -> Kernel:
        if position not in self.known:
            self.known[position] = self.computed(position)
        return self.known[position]

    def computed(self, position: int) -> Kernel:
        """From a 1 at one number that is looked up, and 0 at all others, for each of them."""
        places = self.places.get(position, [])
        widths = [self.tables[index].table.shape[1] for index, _ in places]
        units: dict[int, Floats] = {}
        for index, layer in self.tables.items():
            units[index] = np.zeros((sum(widths), layer.positions.size, layer.table.shape[1]))
        for start, (index, row), width in zip(np.cumsum([0, *widths]), places, widths, strict=False):
            units[index][np.arange(start, start + width), row, np.arange(width)] = 1.0
        given = {index: array.reshape(-1, *self.network.nodes[index].shape) for index, array in units.items()}
        found = linear_part(self.network, given, "differences")
        gross = linear_part(self.network, given, "gross differences")
        touched = np.flatnonzero(gross.cut.any(axis=0))
        share = float(growth(max(found.roundings, gross.roundings) + sum(widths) + 3))
        return Kernel(touched, found.cut[:, touched], gross.cut[:, touched], share)
