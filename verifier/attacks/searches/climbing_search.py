"""Local search as Liu et al. released it: climb by single words until the goal is reached or nothing is gained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..attacked_text import Attacked

GAIN = 1e-10
"""The least gain of the share that counts, of the released code."""


@dataclass(frozen=True)
class Climbing:
    """From the text on, the best of all sentences that differ from the current one in one word: a word swapped, set
    back, or exchanged for another of its options. Its first sentence that reaches the goal ends the search; a best
    sentence that gains nothing ends it too, and then the other side is tried: where words have one option left, the
    sentence with every option that the current one does not have.

    The paper (IEEE TEVC, arXiv 2109.02229) proves an approximation guarantee in general cases for the objective of
    such a pair of a local optimum and its other side; the objective is the share and not the number of swaps, so it
    says nothing of how many swaps are needed. The released code takes the other side of the text itself, not of the
    local optimum; here it is that of the local optimum, as the name supplementary set says.
    """

    def run(self, attacked: Attacked) -> None:
        row = attacked.original
        best = float(attacked.ask(row[None]).shares[0])
        while not attacked.broken:
            rows = np.concatenate([attacked.swaps_of(row, attacked.movable), attacked.removals(row)])
            if not len(rows):
                return
            judged = attacked.ask(rows)
            top = int(judged.shares.argmax())
            if attacked.broken or judged.shares[top] - best <= GAIN:
                break
            row, best = rows[top], float(judged.shares[top])
        if not attacked.broken and attacked.movable and max(attacked.options) == 2:
            other = np.where(np.array(attacked.options) == 2, 1 - row, 0).astype(np.int32)
            attacked.ask(attacked.allowed(other[None]))
