"""Lines of text as fastText reads them: words, parts of words and groups of words, hashed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..classifier import NoAnswer
from .supervised_binary import SupervisedModel

END = b"</s>"
"""The word that stands for the end of a line."""
LABEL = b"__label__"
GROUP = np.uint64(116049371)
BYTE_SPACES = re.compile(rb"[ \n\r\t\v\f\0]+")
MOST_CACHED = 1_000_000
Word = tuple[tuple[int, ...], int | None]
"""The rows that a word has, and its hash for groups of words; None of a label, which is in none."""


def hashed(data: bytes) -> int:
    """FNV-1a, except that bytes from 128 on count as negative numbers, as they did when the first models were made."""
    value = 2166136261
    for byte in data:
        value = (value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 & 0xFFFFFFFF
    return value


@dataclass(frozen=True, eq=False)
class HashedLines:
    """Sentences as ids of rows."""

    model: SupervisedModel
    _words: dict[bytes, Word] = field(default_factory=dict, init=False, repr=False)

    separators = " \r\t\v\f\0"
    longest_tokens = None
    longest_text = None

    @property
    def grouped(self) -> bool:
        return self.model.grams > 1 and self.model.kept != {}

    @property
    def interplay(self) -> str | None:
        """Why no stretch of a sentence can be read alone."""
        if self.grouped:
            return f"the model hashes {self.model.grams} neighbouring words together"
        return None

    @property
    def closing(self) -> list[int]:
        """What every line ends with."""
        return list(self.word(END)[0])

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        return [self.line(sentence) for sentence in sentences]

    def units(self, spellings: Sequence[str]) -> list[list[int]]:
        """Of stretches that stand alone between separators."""
        return [self.line(spelling, closed=False) for spelling in spellings]

    def keep(self, ids: list[int]) -> list[int]:
        return ids

    def joins(self, sentence: str) -> str | None:
        """What in a sentence changes how the rest of it is read."""
        return "</s> within a text ends it for fastText" if END.decode() in sentence else None

    def line(self, sentence: str, closed: bool = True) -> list[int]:
        if "\n" in sentence:
            raise NoAnswer("fastText's predict refuses texts with line ends; replace them by spaces in the data")
        try:
            data = sentence.encode()
        except UnicodeEncodeError as error:
            raise NoAnswer("fastText reads UTF-8, which has no halves of surrogate pairs") from error
        found: list[int] = []
        hashes: list[int] = []
        words = [word for word in BYTE_SPACES.split(data) if word]
        for word in [*words, END] if closed else words:
            rows, value = self.word(word)
            found += rows
            if value is not None:
                hashes.append(value)
            if word == END:
                break
        if self.grouped:
            found += self.groups(np.array(hashes, dtype=np.uint32))
        return found

    def word(self, word: bytes) -> Word:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= MOST_CACHED:
                self._words.clear()
            known = self._words[word] = self.read(word)
        return known

    def read(self, word: bytes) -> Word:
        model = self.model
        number = model.words.get(word)
        if number is None:
            if word.startswith(LABEL):
                return (), None
            return (() if word == END else self.parts(word)), hashed(word)
        if number >= model.number_of_words:
            return (), None
        parts = () if word == END else self.parts(word)
        return (number, *parts), hashed(word)

    def parts(self, word: bytes) -> tuple[int, ...]:
        """The rows of its stretches of `shortest` to `longest` characters, the marks < and > around it included."""
        model = self.model
        if model.longest < 1:
            return ()
        marked = b"<" + word + b">"
        starts = [place for place, byte in enumerate(marked) if byte & 0xC0 != 0x80] + [len(marked)]
        found = []
        for first in range(len(starts) - 1):
            for size in range(max(model.shortest, 1), model.longest + 1):
                if first + size >= len(starts):
                    break
                edge = first == 0 or first + size == len(starts) - 1
                if size == 1 and edge:  # a mark alone says nothing
                    continue
                stretch = marked[starts[first] : starts[first + size]]
                found.append(hashed(stretch) % model.buckets)
        return tuple(self.rows(found))

    def groups(self, hashes: NDArray[np.uint32]) -> list[int]:
        """The rows of every run of 2 to `grams` words."""
        wide = hashes.view(np.int32).astype(np.int64).view(np.uint64)  # sign and all, as fastText keeps them
        value = wide
        found: list[int] = []
        for size in range(2, self.model.grams + 1):
            if size > len(wide):
                break
            value = value[:-1] * GROUP + wide[size - 1 :]
            found += (value % np.uint64(self.model.buckets)).tolist()
        return self.rows(found)

    def rows(self, buckets: list[int]) -> list[int]:
        kept, words = self.model.kept, self.model.number_of_words
        if kept is None:
            return [words + bucket for bucket in buckets]
        return [words + kept[bucket] for bucket in buckets if bucket in kept]
