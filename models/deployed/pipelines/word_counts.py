"""Vectorisers that count the words of a text one by one, so that a sentence counts what its words count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..swapped_text import SwapText
from .text_pipeline import quiet

COUNTERS = ("CountVectorizer", "TfidfVectorizer")
CLASS = r"\\[wSd]|\[(?:\\.|[^\]\\])+\]"
LOCAL = re.compile(rf"(?:\(\?u\))?(?:\\b)?((?:(?:{CLASS})(?:\+|\{{[1-9]\d*(?:,\d*)?\}})?)+)(?:\\b)?")
r"""Patterns of tokens such as (?u)\b\w\w+\b: sets of characters, repeated, between borders of words. What they match
lies within one run of these characters, and depends on no others than the two beside it."""
FINAL_SIGMA = "Σ"
"""The only letter whose lower case depends on its neighbours."""


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Of a vectoriser of single words, `kin` being the characters that may join two words into one token."""

    vectoriser: Any
    kin: re.Pattern[str]
    _columns: dict[str, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)
    _edges: dict[str, tuple[str, str]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def analyze(self) -> Any:
        with quiet():
            return self.vectoriser.build_analyzer()

    @cached_property
    def preprocess(self) -> Any:
        return self.vectoriser.build_preprocessor()

    @cached_property
    def width(self) -> int:
        return len(self.vectoriser.vocabulary_)

    @cached_property
    def kind(self) -> Any:
        """Of sparse matrices, that which the vectoriser gives."""
        with quiet():
            return type(self.vectoriser.transform(["a text"]))

    def columns(self, text: str) -> tuple[int, ...]:
        """What is counted in it, as often as it is counted."""
        vocabulary = self.vectoriser.vocabulary_
        return tuple(vocabulary[token] for token in self.analyze(text) if token in vocabulary)

    def columns_of(self, word: str) -> tuple[int, ...]:
        found = self._columns.get(word)
        if found is None:
            found = self._columns[word] = self.columns(word)
        return found

    def matrix(self, groups: Sequence[Sequence[int]]) -> Any:
        """[groups, features]: how often each column stands in each group, unlimited."""
        from scipy.sparse import csr_array

        counts = [sorted(Counter(group).items()) for group in groups]
        ends = np.cumsum([0, *map(len, counts)])
        columns = np.array([column for count in counts for column, _ in count], dtype=np.int32)
        times = np.array([times for count in counts for _, times in count], dtype=np.int64)
        return csr_array((times, columns, ends), shape=(len(groups), self.width))

    def counted(self, counts: Any) -> Any:
        """The same as the vectoriser gives it, from the true numbers."""
        counts = self.kind(counts)
        counts.sort_indices()
        if self.vectoriser.binary:
            counts.data.fill(1)
        counts = counts.astype(self.vectoriser.dtype)
        weighting = getattr(self.vectoriser, "_tfidf", None)
        return counts if weighting is None else weighting.transform(counts, copy=False)

    def joined(self, text: SwapText) -> str | None:
        """Why a sentence of this text may not count what its words and what stands between them count one by one."""
        pieces = [piece for piece in pieces_of(text) if piece != ("",)]
        for word in chain.from_iterable(pieces):
            if self.vectoriser.lowercase and FINAL_SIGMA in word:
                return f"{word!r}: the lower case of {FINAL_SIGMA} depends on what stands beside it"
            if not self.edges(word)[0]:
                return f"nothing is left of {word!r} when accents are stripped, so that its neighbours may join"
        for left, right in pairwise(pieces):
            ends = [word for word in left if self.kin.fullmatch(self.edges(word)[1])]
            starts = [word for word in right if ends and self.kin.fullmatch(self.edges(word)[0])]
            if starts:
                return f"{ends[0]!r} and {starts[0]!r} touch, and may be read as one token"
        return None

    def edges(self, word: str) -> tuple[str, str]:
        """The first and the last character that the tokens are sought in."""
        found = self._edges.get(word)
        if found is None:
            seen = self.preprocess(word)
            found = self._edges[word] = (seen[:1], seen[-1:])
        return found

    def differs(self, text: SwapText, rows: Iterable[Sequence[int]]) -> str | None:
        """Whether the sentence of one of these rows counts what its words count, looked at."""
        words = spelt(text)
        base = Counter(column for between in text.between for column in self.columns_of(between))
        for row in rows:
            counted = Counter(base)
            for options, number in zip(words, row, strict=True):
                counted.update(self.columns_of(options[number]))
            sentence = text.moved(row)
            if counted != Counter(self.columns(sentence)):
                return f"{sentence[:60]!r} counts other tokens than its words do"
        return None

    def features(self, text: SwapText) -> tuple[Any, NDArray[np.int64]]:
        """[1 + options of words that move, features], what stays in all sentences first; the row of each word's first
        option, 0 of the words that do not move."""
        words = spelt(text)
        moving = set(text.swappable)
        fixed = [options[0] for word, options in enumerate(words) if word not in moving] + list(text.between)
        groups: list[Sequence[int]] = [[column for word in fixed for column in self.columns_of(word)]]
        first = np.zeros(len(words), dtype=np.int64)
        for word in text.swappable:
            first[word] = len(groups)
            groups += [self.columns_of(option) for option in words[word]]
        return self.matrix(groups), first


def word_counts(step: Any) -> WordCounts | str:
    """Of the first step of a pipeline; or why it does not count words one by one."""
    name = type(step).__name__
    if name not in COUNTERS or not type(step).__module__.startswith("sklearn."):
        return f"{name} is neither of {' and '.join(COUNTERS)}"
    if step.analyzer != "word":
        return f"{name} reads {'characters' if isinstance(step.analyzer, str) else 'by a function of its own'}"
    if tuple(step.ngram_range) != (1, 1):
        return f"{name} counts up to {step.ngram_range[1]} words together (ngram_range)"
    for key in ("tokenizer", "preprocessor"):
        if getattr(step, key) is not None:
            return f"{name} has a {key} of its own"
    if callable(step.strip_accents):
        return f"{name} strips accents by a function of its own"
    if step.input != "content":
        return f"{name} reads files (input = {step.input!r})"
    columns = getattr(step, "vocabulary_", {}).values()
    if any(not 0 <= column < len(columns) for column in columns):
        return f"{name} has a vocabulary of {len(columns)} words, and one of them counts in another column"
    match = LOCAL.fullmatch(step.token_pattern)
    if match is None:
        return f"{name} finds tokens by {step.token_pattern!r}, which may look beyond a word"
    return WordCounts(step, re.compile("|".join([r"\w", *re.findall(CLASS, match[1])])))


def pieces_of(text: SwapText) -> list[tuple[str, ...]]:
    """What stands between, and the options of each word, in turn."""
    pieces: list[tuple[str, ...]] = []
    for before, options in zip(text.between, spelt(text), strict=False):
        pieces += [(before,), options]
    return [*pieces, (text.between[-1],)]


def spelt(text: SwapText) -> list[tuple[str, ...]]:
    """The options, the first as it stands in the text."""
    pairs = zip(text.spans, text.options, strict=True)
    return [(text.text[slice(*span)], *options[1:]) for span, options in pairs]


def every_option(text: SwapText) -> list[list[int]]:
    """Sentences in which each option stands at least once; the first is the text."""
    most = max(map(len, text.options), default=1)
    return [[min(number, len(options) - 1) for options in text.options] for number in range(most)]
