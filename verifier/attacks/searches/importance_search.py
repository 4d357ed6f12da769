"""Words in the order of their importance, each swapped once for what hurts most: the search of most papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked
from .search_protocol import undo_needless

Array = NDArray[Any]
Order = Literal["unknown", "delete", "saliency", "gradient", "random"]
DIGITS = 10
"""Of importance that count: in which order floats were added up must not decide between equal words."""


@dataclass(frozen=True)
class ByImportance:
    """TextAttack's GreedyWordSwapWIR.

    The words that may move are ranked once, on the text itself; equal ones keep the order of the text. Each in turn
    takes the option with the greatest score, if that is greater than the score without it; the first sentence that
    reaches the goal ends the search. `undo`: then swaps that were not needed are taken back, which no paper does.
    """

    order: Order
    undo: bool = False

    def run(self, attacked: Attacked) -> None:
        row = attacked.original
        score = float(attacked.ask(row[None]).scores[0])
        for word in ranked(attacked, self.order):
            rows = attacked.swaps_of(row, [word])
            if not len(rows):
                continue
            judged = attacked.ask(rows)
            best = int(judged.scores.argmax())
            if judged.scores[best] > score:
                row, score = rows[best], float(judged.scores[best])
            if attacked.broken:
                break
        if self.undo:
            undo_needless(attacked)


def ranked(attacked: Attacked, order: Order) -> list[int]:
    """The words that may move, the most important first."""
    words = attacked.movable
    if order == "random":
        return list(attacked.random.permutation(words).tolist())
    importance = importance_of(attacked, words, order)
    return [words[place] for place in np.argsort(-np.round(importance, DIGITS), kind="stable").tolist()]


def importance_of(attacked: Attacked, words: Sequence[int], order: Order) -> Array:
    """[words], by `order`:

    unknown   share of the text with an unknown word in its place
    delete    share of the text without it
    saliency  softmax over all words of `unknown`, times how much its best option adds to the share (PWWS)
    gradient  how much its best option adds to the score, to first order (a stand-in for the gradient's norm)
    """
    if not words:
        return np.zeros(0)
    match order:
        case "unknown" | "delete":
            return attacked.without(words, order).scores
        case "saliency":
            shares = attacked.without(words, "unknown").shares
            weights = np.exp(shares - shares.max())
            return np.asarray(weights / weights.sum() * gains(attacked, words))
        case "gradient":
            pairs = attacked.alternatives
            rises = attacked.slopes(attacked.original, pairs[:, 0], pairs[:, 1])
            return np.array([rises[pairs[:, 0] == word].max() for word in words])
        case "random":
            return np.zeros(len(words))


def gains(attacked: Attacked, words: Sequence[int]) -> Array:
    """[words]: by how much the best option of each, alone, raises the share; 0 where none is allowed."""
    found = np.zeros(len(words))
    here = float(attacked.ask(attacked.original[None]).shares[0])
    rows = attacked.swaps_of(attacked.original, words)
    if len(rows):
        shares, moved = attacked.ask(rows).shares, rows.argmax(axis=1)
        for place, word in enumerate(words):
            if (moved == word).any():
                found[place] = shares[moved == word].max() - here
    return found
