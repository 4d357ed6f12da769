"""What a word adds at each position, before the first nonlinear layer, a row for each number of its vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Embedding, Floats, Indices, Network, Table

CELLS = 1 << 22
"""Numbers of a table, and of what is computed at once: bounds memory."""


@dataclass(frozen=True, eq=False)
class PositionRows:
    """cut(sentence) = base + sum over positions p of vectors[token at p] @ row[p].

    Words that are `apart` positions from each other reach no number of the cut together, so one evaluation shows the
    rows of all of them.
    """

    network: Network
    vectors: Floats | Table
    base: Floats
    """[width]: of a sentence whose words are all zeros."""
    reached: NDArray[np.bool_]
    """[positions, width]: the numbers of the cut that a word there may change: of a convolution few."""
    shown: Floats
    """[apart, numbers of a word, width]."""

    @classmethod
    def of(cls, network: Network, swaps: int) -> PositionRows | None:
        """For so many swaps. None where tokens are read otherwise, or where this takes more evaluations than the
        swaps, or more memory than there is for it."""
        found = [(index, node) for index, node in enumerate(network.nodes) if isinstance(node.layer, Embedding)]
        if network.is_smooth or network.choices is not None or len(found) != 1:
            return None
        index, node = found[0]
        layer, length = node.layer, network.length
        if not isinstance(layer, Embedding) or not np.array_equal(layer.positions.reshape(-1), np.arange(length)):
            return None
        numbers = node.size // length
        if length * max(node.size, network.cut_width) > CELLS:
            return None

        def at_cut(words: Floats) -> Floats:
            given = {index: words.reshape(-1, *node.shape)}
            return network.join_cut(values(network, given=given, wanted=network.cut))

        reached = np.isnan(at_cut(np.where(np.eye(length)[:, :, None] == 1, np.nan, np.zeros(numbers))))
        apart = next((gap for gap in range(1, length) if all_apart(reached, gap)), length)
        if apart * numbers > swaps or apart * numbers * network.cut_width > CELLS:
            return None
        words = np.zeros((1 + apart * numbers, length, numbers))
        for start in range(apart):
            for number in range(numbers):
                words[1 + start * numbers + number, start::apart, number] = 1
        cut = at_cut(words)
        return cls(network, layer.table, cut[0], reached, (cut[1:] - cut[0]).reshape(apart, numbers, -1))

    @property
    def numbers(self) -> int:
        """Of a word's vector."""
        return int(self.shown.shape[1])

    def weights(self, cells: Indices) -> Floats:
        """[positions, numbers of a word, n], of these numbers of the cut [positions, n]."""
        own = np.arange(len(cells)) % len(self.shown)
        found = np.stack([self.shown[part][:, some] for part, some in zip(own.tolist(), cells, strict=True)])
        return found * np.take_along_axis(self.reached, cells, axis=1)[:, None]


def all_apart(reached: NDArray[np.bool_], gap: int) -> bool:
    """Whether no two positions that are a multiple of `gap` from each other reach the same number."""
    return all(int(reached[start::gap].sum(axis=0).max(initial=0)) <= 1 for start in range(gap))
