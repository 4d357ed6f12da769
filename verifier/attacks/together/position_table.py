"""What each token adds at each position, before the first nonlinear layer: one table for all texts of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Embedding, Floats, Network, Table

Array = NDArray[Any]
CELLS = 1 << 22
"""Numbers of the table, and of what is computed at once: bounds memory."""


@dataclass(frozen=True, eq=False)
class PositionTable:
    """cut(sentence) = base + sum over positions p of vectors[token at p] @ weights[p]."""

    network: Network
    vectors: Floats | Table
    weights: Floats
    """[positions, numbers of a word, width]."""
    base: Floats
    """[width]: of a sentence whose words are all zeros."""

    @classmethod
    def of(cls, network: Network, swaps: int) -> PositionTable | None:
        """For so many swaps. None where tokens are read otherwise, or where the table takes more evaluations than the
        swaps, or is large."""
        found = [(index, node) for index, node in enumerate(network.nodes) if isinstance(node.layer, Embedding)]
        if network.is_smooth or network.choices is not None or len(found) != 1:
            return None
        index, node = found[0]
        layer = node.layer
        if not isinstance(layer, Embedding) or node.size > swaps or node.size * network.cut_width > CELLS:
            return None
        if not np.array_equal(layer.positions.reshape(-1), np.arange(network.length)):
            return None
        units = np.concatenate([np.zeros((1, node.size)), np.eye(node.size)]).reshape(-1, *node.shape)
        cut = network.join_cut(values(network, given={index: units}, wanted=network.cut))
        weights = (cut[1:] - cut[0]).reshape(network.length, -1, network.cut_width)
        return cls(network, layer.table, weights, np.asarray(cut[0]))

    @property
    def width(self) -> int:
        return len(self.base)

    def added(self, positions: Array, tokens: Array) -> Floats:
        """[n, width]: what each of these tokens adds at its position."""
        found = np.zeros((len(tokens), self.width))
        order = np.argsort(positions, kind="stable")
        starts = np.searchsorted(positions[order], np.arange(len(self.weights) + 1))
        for position in np.unique(positions).tolist():
            here, reached = order[starts[position] : starts[position + 1]], self.reached[position]
            found[here[:, None], reached] = self.vectors[tokens[here]] @ self.weights[position][:, reached]
        return found

    @cached_property
    def reached(self) -> list[Array]:
        """[positions]: the numbers of the cut that a token there changes: of a convolution few."""
        return [np.flatnonzero(weights.any(axis=0)) for weights in self.weights]

    def added_along(self, tokens: Array) -> Floats:
        """[positions, texts, width]: what the tokens [texts, positions] of the first positions add, each at its own."""
        return np.asarray(self.vectors[tokens.T] @ self.weights[: tokens.shape[1]])

    def logits(self, cut: Array) -> Array:
        """[n, outputs]."""
        found = values(self.network, given=self.network.split_cut(cut))[len(self.network.nodes) - 1]
        return np.asarray(found.reshape(len(cut), -1))
