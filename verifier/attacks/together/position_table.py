"""What each token adds at each position, before the first nonlinear layer: one table for all texts of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats, Network, Table

from ..sentence_answers import Without
from .laid_texts import answers
from .position_rows import CELLS, PositionRows

Array = NDArray[Any]


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
    def of(cls, rows: PositionRows) -> PositionTable | None:
        """None where the table is large."""
        length, width = rows.reached.shape
        if length * rows.numbers * width > CELLS:
            return None
        weights = rows.weights(np.broadcast_to(np.arange(width), (length, width)))
        return cls(rows.network, rows.vectors, weights, rows.base)

    @property
    def of_text(self) -> int:
        return len(self.base)

    @property
    def of_swap(self) -> int:
        return len(self.base)

    def texts(self, tokens: Array) -> PositionTexts:
        return PositionTexts(self, tokens)

    def added(self, positions: Array, tokens: Array) -> Floats:
        """[n, width]: what each of these tokens adds at its position."""
        return added_at(self.vectors, self.weights, positions, tokens)

    def added_along(self, tokens: Array) -> Floats:
        """[positions, texts, width]: what the tokens [texts, positions] of the first positions add, each at its own."""
        return np.asarray(self.vectors[tokens.T] @ self.weights[: tokens.shape[1]])


def added_at(vectors: Floats | Table, weights: Floats, positions: Array, tokens: Array) -> Floats:
    """[n, width]: vectors[token] @ weights[position]."""
    found = np.zeros((len(tokens), weights.shape[2]))
    order = np.argsort(positions, kind="stable")
    starts = np.searchsorted(positions[order], np.arange(len(weights) + 1))
    for position in np.unique(positions).tolist():
        here = order[starts[position] : starts[position + 1]]
        found[here] = vectors[tokens[here]] @ weights[position]
    return found


@dataclass(frozen=True, eq=False)
class PositionTexts:
    """States are cuts, and moves are what swaps add to them. `tokens` as NetworkTable.texts has them."""

    table: PositionTable
    tokens: Array

    @cached_property
    def along(self) -> Array:
        """[words, texts, width]: what the texts' own tokens add."""
        return self.table.added_along(self.tokens[:, :-1])

    @cached_property
    def rest(self) -> Array:
        """[width]: the base, and what the padding behind all words adds."""
        behind = np.arange(self.tokens.shape[1] - 1, self.table.network.length)
        # where there is padding behind every word, the last column is padding
        added = self.table.added(behind, self.tokens[:1, -1].repeat(len(behind)))
        return np.asarray(self.table.base + added.sum(axis=0))

    @cached_property
    def states(self) -> Array:
        return np.asarray(self.rest + self.along.sum(axis=0))

    def moves(self, places: Array, texts: Array, tokens: Array) -> Array:
        return self.table.added(places, tokens) - self.along[places, texts]

    def swapped(self, states: Array, places: Array, moves: Array) -> Array:
        return np.asarray(states + moves)

    def logits(self, states: Array) -> Array:
        network = self.table.network
        return answers(network, network.split_cut(states))

    def logits_swapped(self, states: Array, members: Array, places: Array, moves: Array) -> Array:
        most = max(1, CELLS // max(1, self.table.of_text))
        parts = [slice(start, start + most) for start in range(0, max(1, len(members)), most)]
        return np.concatenate([self.logits(states[members[part]] + moves[part]) for part in parts])

    def logits_without(self, way: Without, places: Array, texts: Array, unknown: int | None) -> Array:
        if way == "unknown":
            moves = self.moves(places, texts, np.full(len(places), unknown))
            return self.logits_swapped(self.states, texts, places, moves)
        before, after = self.along.copy(), self.table.added_along(self.tokens[:, 1:])
        for place in range(1, len(before)):
            before[place] += before[place - 1]
            after[-1 - place] += after[-place]
        own = self.along[places, texts]
        return self.logits(self.rest + before[places, texts] - own + after[places, texts])
