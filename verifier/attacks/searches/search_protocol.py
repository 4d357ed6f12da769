"""What every search is, and the steps that end several of them: needless swaps undone, one swap in place of two."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked

Array = NDArray[Any]
MOST_PAIRS = 256
"""Pairs of swaps, drawn at random where there are more, that one swap is tried in place of."""


class Search(Protocol):
    """`run` asks about sentences until it has had enough; what reaches the goal is kept in `attacked.found`."""

    def run(self, attacked: Attacked) -> None: ...


def undo_needless(attacked: Attacked) -> None:
    """Take away, one at a time, the swap without which the score stays best, while the goal stays reached."""
    if not attacked.broken:
        return
    row = attacked.best
    while np.count_nonzero(row) > 1:
        fewer = attacked.removals(row)
        if not len(fewer):
            return
        judged = attacked.ask(fewer)
        if not judged.won.any():
            return
        row = fewer[np.where(judged.won, judged.scores, -np.inf).argmax()]


def shorten(attacked: Attacked) -> None:
    """Remove and exchange until neither makes it shorter."""
    while (fewest := attacked.fewest) is not None and fewest > 1:
        attacked.ask(attacked.removals(attacked.best))
        if attacked.fewest == fewest:
            exchange(attacked, attacked.best)
        if attacked.fewest == fewest:
            return


def exchange(attacked: Attacked, row: Array) -> None:
    """Any one swap in place of two."""
    pairs = list(combinations(np.flatnonzero(row).tolist(), 2))
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[place] for place in attacked.random.choice(len(pairs), MOST_PAIRS, replace=False)]
    for pair in pairs:
        fewer = row.copy()
        fewer[list(pair)] = 0
        attacked.ask(attacked.extensions(fewer))
        if (attacked.fewest or 0) < np.count_nonzero(row):
            return
