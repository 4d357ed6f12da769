"""The genetic search of Alzantot et al.: a population of sentences, crossed and mutated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attacked_text import Attacked

Array = NDArray[Any]
TEMPERATURE = 0.3
"""Of the released code."""


@dataclass(frozen=True)
class Genetic:
    """Every member mutates the text once; each generation keeps its best and fills up with mutated children of pairs.

    Parents are drawn in proportion to exp(share / 0.3), as in the released code (the paper: to the share). A child
    takes each word from one of its parents. A mutation draws a word in proportion to the number of its options and
    takes the option with the best score. Paper: 60 members, 20 generations. The code weighs neighbours by embedding
    distance and a language model; the frozen space has made that choice.
    """

    members: int = 60
    generations: int = 20

    def run(self, attacked: Attacked) -> None:
        if not attacked.movable:
            attacked.ask(attacked.original[None])
            return
        population = np.stack([mutated(attacked, attacked.original) for _ in range(self.members)])
        for _ in range(self.generations):
            judged = attacked.ask(population)
            if attacked.broken:
                return
            best = population[judged.scores.argmax()]
            weights = np.exp((judged.shares - judged.shares.max()) / TEMPERATURE)
            pairs = attacked.random.choice(len(population), size=(self.members - 1, 2), p=weights / weights.sum())
            children = []
            for first, second in pairs.tolist():
                child = crossed(attacked, population[first], population[second])
                children.append(mutated(attacked, child))
                if attacked.broken:
                    return
            population = np.stack([best, *children])


def crossed(attacked: Attacked, first: Array, second: Array) -> Array:
    """Each word from one of the two; the first itself where that is not allowed."""
    child = np.where(attacked.random.random(len(first)) < 0.5, first, second).astype(np.int32)
    return child if attacked.permits(child[None])[0] else first


def mutated(attacked: Attacked, row: Array) -> Array:
    """With another option of one word, the one with the best score; the same where none is allowed."""
    sizes = np.array([attacked.options[word] - 1 for word in attacked.movable], dtype=np.float64)
    word = int(attacked.random.choice(attacked.movable, p=sizes / sizes.sum()))
    rows = attacked.swaps_of(row, [word])
    if not len(rows):
        return row
    return np.asarray(rows[attacked.ask(rows).scores.argmax()])
