"""Searches of a few lines: single words, random sentences, and the best swaps by a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..attacked_text import Attacked


@dataclass(frozen=True)
class SingleWords:
    """Every sentence with one swap, in the order of the text and of its options, until `most` reach the goal.

    SP-Attack (Xu et al.) takes 50 words of the greatest kappa for every position, and stops after 50 successes. Which
    of these is kept is the text's affair: the most natural, or that with the best score.
    """

    most: int = 50

    def run(self, attacked: Attacked) -> None:
        attacked.ask(attacked.original[None])
        reached = 0
        for word in attacked.movable:
            rows = attacked.swaps_of(attacked.original, [word])
            if len(rows):
                reached += int(attacked.ask(rows).won.sum())
            if reached >= self.most:
                return


@dataclass(frozen=True)
class Random:
    """Sentences at random: `tries` with one swap, then as many with two, ... until one reaches the goal."""

    tries: int = 50

    def run(self, attacked: Attacked) -> None:
        attacked.ask(attacked.original[None])
        words = np.array(attacked.movable, dtype=np.int64)
        sizes = np.array([attacked.options[word] - 1 for word in words])
        for swaps in range(1, min(len(words), attacked.most_swaps) + 1):
            rows = np.zeros((self.tries, attacked.words), dtype=np.int32)
            for row in rows:
                places = attacked.random.choice(len(words), size=swaps, replace=False)
                row[words[places]] = 1 + (attacked.random.random(swaps) * sizes[places]).astype(np.int32)
            attacked.ask(attacked.allowed(rows))
            if attacked.broken:
                return


@dataclass(frozen=True)
class ByGradient:
    """HotFlip (Ebrahimi et al.) on words: one gradient a step, and only the `width` swaps that it praises are asked.

    The gradient of the score at the sentence says to first order what each swap adds; the paper keeps a beam over
    the estimates alone, here the best of those asked goes on.
    """

    width: int = 5

    def run(self, attacked: Attacked) -> None:
        row = attacked.original
        attacked.ask(row[None])
        while not attacked.broken:
            rows = attacked.extensions(row)
            if not len(rows):
                return
            words = (rows != row).argmax(axis=1)
            rises = attacked.slopes(row, words, rows[np.arange(len(rows)), words])
            rows = rows[np.argsort(-rises, kind="stable")[: self.width]]
            row = rows[attacked.ask(rows).scores.argmax()]
