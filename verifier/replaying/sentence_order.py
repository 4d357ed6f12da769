"""The sentences of a text in an order that finds a dangerous one early: by number of swaps, then by what singles do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.omega import Omega
from swapproof.encodings.space import SwapSpace
from swapproof.models.deployed.classifier import Rows

Array = NDArray[Any]


@dataclass(frozen=True)
class SentenceOrder:
    """`ranked` are (word, its alternatives by number), the most dangerous word first and of each the most dangerous
    alternative last; the text has `words` words in all."""

    ranked: tuple[tuple[int, tuple[int, ...]], ...]
    words: int
    spaces: dict[int, Omega] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_text(cls, options: Sequence[Sequence[str]]) -> SentenceOrder:
        """As they stand in the text."""
        ranked = [(word, tuple(range(1, len(given)))) for word, given in enumerate(options) if len(given) > 1]
        return cls(tuple(ranked), len(options))

    @cached_property
    def space(self) -> SwapSpace:
        """One position for each word that moves; its choice n is the n-th alternative."""
        return SwapSpace(tuple(tuple(range(len(alternatives) + 1)) for _, alternatives in self.ranked))

    @cached_property
    def counts(self) -> list[int]:
        """The number of sentences with exactly s swaps, for s = 0, 1, ..."""
        return self.space.counts()

    def rows(self, swaps: int, numbers: range | Array) -> Rows:
        """[n, words]: the sentences with these numbers among those with exactly so many swaps, from 0."""
        if swaps == 1:
            chosen, made = np.asarray(numbers, dtype=np.int64), np.zeros((len(numbers), self.words), dtype=np.int32)
            words, options = self.singles
            made[np.arange(len(chosen)), words[chosen]] = options[chosen]
            return made
        # Those with the most swaps come last in Omega, and of them those that swap the first words at the very end.
        last = self.omega(swaps).total - 1
        return self.up_to(swaps, [last - int(number) for number in numbers])

    @cached_property
    def singles(self) -> tuple[Array, Array]:
        """Word and option of each sentence with one swap."""
        pairs = [(word, option) for word, alternatives in self.ranked for option in reversed(alternatives)]
        words, options = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return words, options

    def up_to(self, swaps: int, numbers: Sequence[int]) -> Rows:
        """The same among those with at most so many."""
        omega = self.omega(swaps)
        chosen = omega.choices(np.array(numbers, dtype=omega.dtype))
        made = np.zeros((len(chosen), self.words), dtype=np.int32)
        for place, (word, alternatives) in enumerate(self.ranked):
            made[:, word] = np.array([0, *alternatives], dtype=np.int32)[chosen[:, place]]
        return made

    def omega(self, swaps: int) -> Omega:
        if swaps not in self.spaces:
            self.spaces[swaps] = Omega(self.space, swaps)
        return self.spaces[swaps]

    def by_danger(self, margins: Array) -> SentenceOrder:
        """The same sentences, where the one-swap sentences of this order have these margins."""
        words, options = self.singles
        least: dict[int, list[tuple[float, int]]] = {word: [] for word, _ in self.ranked}
        for word, option, margin in zip(words.tolist(), options.tolist(), margins.tolist(), strict=True):
            least[word].append((margin, option))
        ranked = sorted(least.items(), key=lambda found: (min(found[1]), found[0]))
        return SentenceOrder(
            tuple(
                (word, tuple(option for _, option in sorted(found, key=lambda one: (-one[0], one[1]))))
                for word, found in ranked
            ),
            self.words,
        )
