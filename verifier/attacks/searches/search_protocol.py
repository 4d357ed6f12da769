"""What every search is, and the step that ends several of them: swaps that were not needed are undone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked

Array = NDArray[Any]


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
