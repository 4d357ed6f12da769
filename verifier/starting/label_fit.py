"""How well the model's answers fit the labels of the data, in the order given and in any other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.behaviour import SURE, at_least

FEW_CLASSES = 6
"""Up to so many all orders are tried; of more classes, exchanges of two for as long as one helps."""


@dataclass(frozen=True)
class Fit:
    """`confusion[label, answer]`: how many texts."""

    confusion: NDArray[np.int64]

    @property
    def texts(self) -> int:
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        return int(np.trace(self.confusion)) / max(1, self.texts)

    @property
    def chance(self) -> float:
        """The accuracy of the best answer that is always the same."""
        return int(self.confusion.sum(axis=1).max()) / max(1, self.texts)

    def rightly(self, order: Sequence[int]) -> int:
        """Right answers if output k were class order[k]."""
        return int(sum(self.confusion[gold, output] for output, gold in enumerate(order)))

    @property
    def best_order(self) -> tuple[int, ...]:
        """The class that each output would be for the most right answers; the order given wins ties."""
        classes = len(self.confusion)
        given = tuple(range(classes))
        if classes <= FEW_CLASSES:
            return max(itertools.permutations(given), key=lambda order: (self.rightly(order), order == given))
        order = list(given)
        while True:
            gains = {
                (a, b): self.rightly(exchanged(order, a, b)) - self.rightly(order)
                for a, b in itertools.combinations(range(classes), 2)
            }
            (a, b), gain = max(gains.items(), key=lambda item: item[1])
            if gain <= 0:
                return tuple(order)
            order = exchanged(order, a, b)

    def clearly_better(self, order: Sequence[int], other: Sequence[int]) -> bool:
        """Whether it fits more of the answers on which the two orders differ than chance explains."""
        moved = [output for output in range(len(order)) if order[output] != other[output]]
        gained = sum(int(self.confusion[order[output], output]) for output in moved)
        lost = sum(int(self.confusion[other[output], output]) for output in moved)
        return gained > lost and at_least(gained, gained + lost, 0.5) < SURE

    @property
    def stands_out(self) -> bool:
        """Whether the best order is clearly better than any other."""
        best = self.best_order
        others = (exchanged(best, a, b) for a, b in itertools.combinations(range(len(best)), 2))
        return all(self.clearly_better(best, other) for other in others)


def exchanged(order: Sequence[int], a: int, b: int) -> list[int]:
    found = list(order)
    found[a], found[b] = found[b], found[a]
    return found


def fit_of(answers: NDArray[Any], golds: Sequence[int], classes: int) -> Fit:
    """Of the texts that were answered."""
    confusion = np.zeros((classes, classes), dtype=np.int64)
    for gold, answer in zip(golds, answers.tolist(), strict=True):
        if answer >= 0:
            confusion[gold, answer] += 1
    return Fit(confusion)
