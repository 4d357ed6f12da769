"""The best sentences with one swap, with two, ...: a beam, and with a width of 1 the greedy search by exact gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..attacked_text import Attacked, distinct


@dataclass(frozen=True)
class Beam:
    """After s rounds the beam holds the `width` sentences of s swaps with the best scores among those looked at.

    The first round in which a sentence reaches the goal is the last. With no limit on the width (None) every sentence
    is looked at, and what is found has the fewest swaps that there are.
    """

    width: int | None

    def run(self, attacked: Attacked) -> None:
        attacked.ask(attacked.original[None])
        self.shorter(attacked)

    def shorter(self, attacked: Attacked) -> None:
        """From the text on, as long as no sentence with fewer swaps than the one that is known was found and one more
        swap can give one."""
        beam, known, swaps = attacked.original[None], attacked.fewest, 0
        while attacked.fewest == known and (known is None or swaps + 1 < known):
            parts = [attacked.extensions(row) for row in beam]
            rows = distinct(np.concatenate(parts))
            if not len(rows):
                return
            scores = attacked.ask(rows).scores
            swaps += 1
            beam = rows[np.argsort(-scores, kind="stable")[: self.width]]
