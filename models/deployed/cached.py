"""A classifier that is asked about no sentence twice, for those that are slow."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .classifier import Classifier, Identity, Rows, Scores, Variants
from .swapped_text import Fields, SwapText

MOST = 1_000_000
"""Sentences whose scores are kept; about 300 MB."""


@dataclass(eq=False)
class Cached:
    """Scores are found again by what the sentence says; those not asked for longest are forgotten first."""

    classifier: Classifier
    most: int = MOST
    requests: int = field(default=0, init=False)
    """Sentences that it was asked about."""
    evaluations: int = field(default=0, init=False)
    """Those that it asked the classifier about."""
    _known: dict[bytes, Scores] = field(default_factory=dict, init=False, repr=False)

    @property
    def identity(self) -> Identity:
        return self.classifier.identity

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        return self.answered(sentences, lambda new: self.classifier.scores([sentences[index] for index in new]))

    def variants(self, text: SwapText) -> Variants:
        return CachedVariants(self, text, self.classifier.variants(text))

    def answered(self, sentences: Sequence[Fields], ask: Callable[[list[int]], Scores]) -> Scores:
        """`ask` gives the scores of those that are new, by their places among the sentences."""
        keys = [content(sentence) for sentence in sentences]
        first = {key: index for index, key in reversed(list(enumerate(keys)))}
        found = {key: self._known.pop(key) for key in first if key in self._known}
        new = sorted(index for key, index in first.items() if key not in found)
        self._known |= found  # at the end, where the youngest are
        self.requests += len(keys)
        self.evaluations += len(new)
        if new or not keys:
            fresh = ask(new)
            if not keys:
                return fresh
            found |= {keys[index]: row for index, row in zip(new, fresh, strict=True)}
            self._known |= {keys[index]: row.copy() for index, row in zip(new, fresh, strict=True)}
        while len(self._known) > self.most:
            del self._known[next(iter(self._known))]
        return np.stack([found[key] for key in keys])


@dataclass(frozen=True, eq=False)
class CachedVariants:
    """The sentences of one text; new ones are evaluated as the classifier does it fastest."""

    cache: Cached
    text: SwapText
    variants: Variants

    def scores(self, rows: Rows) -> Scores:
        return self.cache.answered(
            [self.text.sentence(row) for row in rows], lambda new: self.variants.scores(rows[new])
        )


def content(sentence: Fields) -> bytes:
    """What tells it from every other: the lengths say where one field ends."""
    lengths = ",".join(str(len(text)) for text in sentence)
    return hashlib.blake2b("\0".join((lengths, *sentence)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
