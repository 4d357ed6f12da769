"""Texts as lists of words, for models that turn whole texts into whatever they read: a number for every spelling."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import ClassVar

from .encoded import Encoded, Split, check_length, empty, spans_of


@dataclass(frozen=True, eq=False)
class PlainWords:
    """Every word is known; numbers are given in the order in which spellings are met."""

    split: Split = "words"
    source: str = "the words of the texts"
    _ids: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    lowercase: ClassVar[bool] = False
    follows_case: ClassVar[bool] = True
    """Candidates are spelt as the word they replace: Good, Fine; GOOD, FINE."""

    @property
    def size(self) -> int:
        return len(self._ids)

    @property
    def sha256(self) -> str:
        """Of how words are told apart."""
        return hashlib.sha256(f"words split by {self.split}".encode()).hexdigest()

    @property
    def spellings(self) -> list[str]:
        """By number."""
        return list(self._ids)

    def encode(self, text: str, length: int | None = None) -> Encoded:
        check_length(length)
        spans = spans_of(text, self.split)
        if not spans:
            raise empty(text)
        words = tuple(text[start:end] for start, end in spans[:length])
        return Encoded(
            text=text,
            words=words,
            spans=spans[:length],
            tokens=tuple(map(self._id, words)),
            places=tuple((index, 1) for index in range(len(words))),
            cut=len(spans) - len(words),
            unknown=(),
            whole=spans,
        )

    def tokens_of(self, word: str) -> tuple[int, ...] | None:
        """None of what would not be read as one word."""
        return (self._id(word),) if spans_of(word, self.split) == ((0, len(word)),) else None

    def splits(self, word: str) -> bool:
        """Whether no text holds this as a word: `split` makes others of it, or none."""
        return spans_of(word, self.split) != ((0, len(word)),)

    def _id(self, word: str) -> int:
        return self._ids.setdefault(word, len(self._ids))
