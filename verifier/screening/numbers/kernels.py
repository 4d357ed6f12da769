"""What a change of the embedding at one position does to the cut: computed once for a network, for all its texts.

With d the difference of what is looked up at the position and K the linear part of the network from there to the cut,
a swap adds d K. K is known up to growth(n) G, where G holds the sums of the absolute values of all terms and n is how
many roundings a term meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Embedding, Network

from .float64_rounding import Floats, growth
from .moved_elements import Moved, moved_at_cut

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
        units: dict[int, list[tuple[int, int]]] = {}
        for start, (index, row) in zip(np.cumsum([0, *widths]).tolist(), places, strict=False):
            units.setdefault(index, []).append((start, row))
        given = {index: self.unit(index, sum(widths), own) for index, own in units.items()}
        found = moved_at_cut(self.network, given, sum(widths), absolute=False)
        gross = moved_at_cut(self.network, given, sum(widths), absolute=True)
        some = gross.values.any(axis=0)
        share = float(growth(max(found.roundings, gross.roundings) + sum(widths) + 3))
        return Kernel(gross.elements[some], found.values[:, some], gross.values[:, some], share)

    def unit(self, index: int, batch: int, places: Sequence[tuple[int, int]]) -> Moved:
        """Of an embedding node: a 1 at each number of these rows, each in a line of its own from a first one on."""
        width = self.tables[index].table.shape[1]
        rows = np.array(sorted(row for _, row in places), dtype=np.int64)
        elements = (rows[:, None] * width + np.arange(width)).ravel()
        values = np.zeros((batch, len(elements)))
        for start, row in places:
            at = int(np.searchsorted(rows, row)) * width
            values[np.arange(start, start + width), np.arange(at, at + width)] = 1.0
        return Moved(elements, values)
