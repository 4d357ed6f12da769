"""The chains of a recurrent network: layers that read the words in one order (FORMAT.md, section 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..regions.region import Question

Words = frozenset[int]


@dataclass(frozen=True)
class Chain:
    """So many canonical layers from `first` on, whose words are read in ascending or descending order."""

    first: int
    layers: int
    descending: bool

    def __contains__(self, layer: int) -> bool:
        return self.first <= layer < self.first + self.layers

    def ordered(self, words: Words) -> tuple[int, ...]:
        return tuple(sorted(words, reverse=self.descending))


@lru_cache(maxsize=2)
def chains_of(question: Question) -> tuple[Chain, ...]:
    """Runs of layers that all depend on the first words in one order, and are computed from what depends on one word
    less at most: so they end before a mean over all steps, and what comes once, behind all words, is in none."""
    reached = question.reached
    later = [number for number in question.needed if not question.program.pieces[number].affine]
    every = sorted(frozenset[int]().union(*[reached[number] for number in later]))
    beginnings = [prefixes(every), prefixes(every[::-1])]
    found: list[Chain] = []
    inside: list[int] = []
    held: set[int] = set()
    orders = {0, 1}

    def finished() -> None:
        words = {reached[number] for number in inside}
        if frozenset(every) in words and len(words) > 1:
            layers = [question.program.pieces[number].layer for number in inside]
            found.append(Chain(layers[0], layers[-1] + 1 - layers[0], min(orders) == 1))

    for number in later:
        fits = {order for order in orders if reached[number] in beginnings[order]}
        read = [source for source in question.program.reads[number] if source in held]
        around = any(len(reached[number] - reached[source]) > 1 for source in read)
        if not fits or around or number in question.mixed:
            finished()
            inside, held = [], set()
            fits = {order for order in (0, 1) if reached[number] in beginnings[order]}
            if not fits or number in question.mixed:
                orders = {0, 1}
                continue
        orders = fits
        inside.append(number)
        held.add(number)
    finished()
    return tuple(found)


def prefixes(order: Sequence[int]) -> set[Words]:
    return {frozenset(order[:count]) for count in range(len(order) + 1)}
