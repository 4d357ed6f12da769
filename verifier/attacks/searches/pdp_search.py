"""Pseudo-dynamic programming (PDP, Yang et al.): one position after the other for a set of promising texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked, distinct
from .search_protocol import shorten, undo_needless

Array = NDArray[Any]


@dataclass(frozen=True)
class Pdp:
    """At time t, with A(0) = {the text}:

        p*   = the unused position where a swap in one of `ahead` texts, drawn from A(t - 1) in proportion to their
               shares, gives the greatest share
        A(t) = TopK(A(t - 1)) x options of p*, the word itself among them

    The first A(t) with a text that reaches the goal is the last; of its texts the one with the fewest swaps counts, and
    the swaps that it does not need are undone. As in the released code every single swap is tried first. The paper
    leaves K and the number of texts drawn open; the code has 1,280 and 10. Ten texts drawn from 1,280 are rarely good
    ones where many swaps are needed, and then say little of the position: 32 are kept here. Beside the paper, texts
    drawn ahead that reach the goal count as found, and `exchange` ends with the move of local search: any one swap in
    place of two.
    """

    kept: int = 32
    ahead: int = 10
    exchange: bool = True

    def run(self, attacked: Attacked) -> None:
        texts = attacked.original[None]
        shares = attacked.ask(texts).shares
        scores = attacked.ask(attacked.extensions(texts[0])).scores if attacked.movable else np.zeros(0)
        unused = list(attacked.movable)
        while unused and not attacked.broken and len(scores):
            place = self.hardest(attacked, texts, shares, unused)
            if place is None or attacked.broken:
                break
            unused.remove(place)
            more = [attacked.swaps_of(row, [place]) for row in texts]
            texts = distinct(np.concatenate([texts, *more]))
            judged = attacked.ask(texts)
            best = np.argsort(-judged.scores, kind="stable")[: self.kept]
            texts, shares = texts[best], judged.shares[best]
        undo_needless(attacked)
        if self.exchange and attacked.broken:
            shorten(attacked)

    def hardest(self, attacked: Attacked, texts: Array, shares: Array, unused: list[int]) -> int | None:
        """The unused position that can hurt most; None where no swap is allowed any more."""
        drawn = texts
        if len(texts) > self.ahead:
            weights = shares + np.finfo(float).tiny
            drawn = texts[attacked.random.choice(len(texts), self.ahead, replace=False, p=weights / weights.sum())]
        parts = [(row, attacked.swaps_of(row, unused)) for row in drawn]
        rows = np.concatenate([made for _, made in parts])
        if not len(rows):
            return None
        moved = np.concatenate([(made != row).argmax(axis=1) for row, made in parts])
        scores = attacked.ask(rows).scores
        return int(moved[scores.argmax()])
