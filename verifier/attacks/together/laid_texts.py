"""What a search over several texts asks of a network: how it answers their sentences, kept so that one swap more is
cheap."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Network

from ..sentence_answers import Without

Array = NDArray[Any]


class LaidTexts(Protocol):
    """Texts of one network; a sentence of each is known by its `state`, and a swap by its move at a place."""

    @property
    def states(self) -> Array:
        """[texts, ...]: of the texts themselves."""

    def moves(self, places: Array, texts: Array, tokens: Array) -> Array:
        """[swaps, ...]: of these tokens instead of those of the texts."""

    def swapped(self, states: Array, places: Array, moves: Array) -> Array:
        """[n, ...]: of each sentence with one swap more."""

    def logits(self, states: Array) -> Array:
        """[n, outputs]."""

    def logits_swapped(self, states: Array, members: Array, places: Array, moves: Array) -> Array:
        """[pairs, outputs]: of one of `states` with one swap more."""

    def logits_without(self, way: Without, places: Array, texts: Array, unknown: int | None) -> Array:
        """[n, outputs]: of a text without the word at a place; `unknown`: the token of the unknown word."""


class NetworkTable(Protocol):
    """The part of that which all texts have in common."""

    @property
    def network(self) -> Network: ...

    @property
    def of_text(self) -> int:
        """Numbers that a text takes."""

    @property
    def of_swap(self) -> int:
        """Numbers that a word or a swap takes."""

    def texts(self, tokens: Array) -> LaidTexts:
        """`tokens` [texts, words + 1]: of the words and, in the last column, of what is behind them."""


def answers(network: Network, known: dict[int, Array]) -> Array:
    """[n, outputs], from these nodes [n, *shape] on."""
    found = values(network, given=known)[len(network.nodes) - 1]
    return np.asarray(found.reshape(len(found), -1))
