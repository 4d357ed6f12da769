"""Local search: from a sentence that reaches the goal to one with fewer swaps, by removing, exchanging, restarting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked, distinct
from .beam_search import Beam
from .search_protocol import shorten

Array = NDArray[Any]


@dataclass(frozen=True)
class LocalSearch:
    """Three moves, after Liu et al. (2021): insert a swap, remove one, exchange one for another.

    A greedy start inserts. Then one swap is removed, or two are removed and any one inserted, while the goal stays
    reached; where neither is possible a restart keeps half of the swaps, exchanges them by the best scores and inserts
    as before. What is found is a local optimum: no sentence that is one of these moves away has fewer swaps. How far
    that can be from the fewest is bounded for submodular scores only, which those of networks are not.
    """

    restarts: int = 4
    start: int = 1
    """Width of the beam that starts."""

    def run(self, attacked: Attacked) -> None:
        Beam(self.start).run(attacked)
        if not attacked.broken:
            return
        shorten(attacked)
        for _ in range(self.restarts):
            fewest = attacked.fewest
            if fewest is None or fewest < 2:
                return
            kept = attacked.random.choice(np.flatnonzero(attacked.best), size=fewest // 2, replace=False)
            row = attacked.original
            row[kept] = attacked.best[kept]
            climb(attacked, row, fewest - 1)
            if attacked.fewest != fewest:
                shorten(attacked)


def climb(attacked: Attacked, row: Array, most: int) -> None:
    """Exchange swaps, one after the other, for the best of all; then insert the best, up to so many swaps."""
    while np.count_nonzero(row) <= most:
        for word in np.flatnonzero(row).tolist():
            without = row.copy()
            without[word] = 0
            rows = distinct(np.concatenate([attacked.allowed(row[None]), attacked.extensions(without)]))
            if len(rows):
                row = rows[attacked.ask(rows).scores.argmax()]
        if (attacked.fewest or 0) <= most or np.count_nonzero(row) == most:
            return
        rows = attacked.extensions(row)
        if not len(rows):
            return
        row = rows[attacked.ask(rows).scores.argmax()]
