"""A text with the words that may stand in it: its sentences, as people and deployed models read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Fields = tuple[str, ...]
"""One sentence: its texts in the order in which the model reads them, one, or two of a pair."""


@dataclass(frozen=True)
class SwapText:
    """`spans` are the words of fields[moving], in order; `options` what may stand there, the word itself first."""

    fields: Fields
    moving: int
    spans: tuple[tuple[int, int], ...]
    options: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The field that moves, as it stands in the data."""
        return self.fields[self.moving]

    @cached_property
    def between(self) -> tuple[str, ...]:
        """What stands before each word since the one before, and after the last."""
        ends = [0, *(end for span in self.spans for end in span), len(self.text)]
        return tuple(self.text[start:end] for start, end in list(pairwise(ends))[::2])

    @cached_property
    def swappable(self) -> tuple[int, ...]:
        """The words that have an alternative."""
        return tuple(word for word, options in enumerate(self.options) if len(options) > 1)

    def moved(self, row: Iterable[int]) -> str:
        """The field that moves, with these options, by number; option 0 leaves what stands there."""
        return "".join(self.pieces(row))

    def pieces(self, row: Iterable[int]) -> Iterator[str]:
        for before, span, options, number in zip(self.between, self.spans, self.options, row, strict=False):
            yield before
            yield options[number] if number else self.text[slice(*span)]
        yield self.between[-1]

    def sentence(self, row: Iterable[int]) -> Fields:
        return (*self.fields[: self.moving], self.moved(row), *self.fields[self.moving + 1 :])
