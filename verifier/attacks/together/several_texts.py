"""Texts of one network laid out end to end: their words, their swaps, and what each swap adds before the cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.decision import Decision
from swapproof.models.encoded import spans_of
from swapproof.models.vocabulary import Vocabulary, WordVocabulary

from ...tasks.inputs import Text
from ..attack_goals import Goal, Judged
from ..attack_limits import Limits
from ..sentence_answers import Without, unknown_spelt
from .found_together import Found
from .laid_texts import LaidTexts, NetworkTable

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Several:
    """Words that may move, numbered by text and place; swaps, numbered by word and option.

    `tokens` [texts, words + 1]: what stands at the positions of the words and, in the last column, behind them when a
    word is taken away. `unknown`: the token of the unknown word.
    """

    table: NetworkTable
    goal: Goal
    labels: Array
    tokens: Array
    unknown: int | None
    most_swaps: Array
    word_text: Array
    word_place: Array
    swap_word: Array
    swap_option: Array
    swap_token: Array

    @cached_property
    def decision(self) -> Decision:
        return Decision(self.table.network.classes)

    @property
    def texts(self) -> int:
        return len(self.labels)

    @cached_property
    def swap_text(self) -> Array:
        return np.asarray(self.word_text[self.swap_word])

    @cached_property
    def first_swap(self) -> Array:
        """[words + 1]."""
        return np.searchsorted(self.swap_word, np.arange(len(self.word_text) + 1))

    @cached_property
    def first_swap_of_text(self) -> Array:
        """[texts + 1]."""
        return np.searchsorted(self.swap_text, np.arange(self.texts + 1))

    @cached_property
    def laid(self) -> LaidTexts:
        return self.table.texts(self.tokens)

    @property
    def states(self) -> Array:
        """[texts, ...]: of the texts themselves."""
        return self.laid.states

    @cached_property
    def swap_place(self) -> Array:
        return np.asarray(self.word_place[self.swap_word])

    @cached_property
    def moves(self) -> Array:
        """[swaps, ...]."""
        return self.laid.moves(self.swap_place, self.swap_text, self.swap_token)

    def swapped(self, states: Array, swaps: Array) -> Array:
        """Of sentences with one swap more."""
        return self.laid.swapped(states, self.swap_place[swaps], self.moves[swaps])

    def without(self, way: Without) -> Judged:
        """[words]: of its text without each word that may move."""
        texts = self.word_text
        return self.judge(self.laid.logits_without(way, self.word_place, texts, self.unknown), texts)

    def judge(self, logits: Array, texts: Array) -> Judged:
        """Of these answers, to a sentence of each of these texts."""
        return self.goal.judge(logits, self.decision, self.labels[texts])

    def judge_swapped(self, states: Array, members: Array, swaps: Array) -> Judged:
        """Of `states` [members, ...] with one swap more: pairs of a member and a swap."""
        logits = self.laid.logits_swapped(states, members, self.swap_place[swaps], self.moves[swaps])
        return self.judge(logits, self.swap_text[swaps])

    def begun(self) -> tuple[Found, Judged]:
        """The texts themselves, asked about first."""
        found, every = Found(self.texts), np.arange(self.texts)
        judged = self.judge(self.laid.logits(self.states), every)
        found.count(every, judged)
        found.odd = judged.won | judged.silent
        return found, judged


def several_texts(
    table: NetworkTable,
    given: Sequence[tuple[Text, int]],
    goal: Goal,
    limits: Limits,
    unknown: int | None,
) -> Several:
    """`given`: texts, and the token that follows the last word of each."""
    texts = [text for text, _ in given]
    longest = max(len(text.encoded.places) for text in texts)
    tokens = np.empty((len(texts), longest + 1), dtype=np.int64)
    for row, (text, after) in zip(tokens, given, strict=True):
        row[:] = after  # padding, but behind a text that is cut, which has no padding
        row[: len(text.encoded.places)] = text.encoded.tokens[: len(text.encoded.places)]
    choices = [text.frozen.space.choices for text in texts]
    words = [
        (number, place)
        for number, text in enumerate(texts)
        for place, one in enumerate(text.frozen.words)
        if len(one) > 1
    ]
    word_text, word_place = np.array(words, dtype=np.int64).reshape(-1, 2).T
    options = [choices[number][place] for number, place in words]
    sizes = np.array([len(one) - 1 for one in options], dtype=np.int64)
    total = int(sizes.sum())
    swap_token = np.fromiter(chain.from_iterable(one[1:] for one in options), np.int64, total)
    swap_word = np.repeat(np.arange(len(words)), sizes)
    swap_option = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    return Several(
        table,
        goal,
        np.array([text.label for text in texts]),
        tokens,
        unknown,
        np.array([limits.most_swaps(len(text.frozen.words)) for text in texts]),
        word_text,
        word_place,
        swap_word,
        swap_option,
        swap_token,
    )


def nothing_behind(text: Text) -> int | None:
    """Where no word is deleted; None where words are not at the first positions, one token each."""
    return 0 if text.encoded.places == places_of(len(text.encoded.words)) else None


def token_behind(text: Text, vocabulary: Vocabulary, *, fixed: bool) -> int | None:
    """The token behind the last word, which moves up where a word is deleted; None where the text without a word is not
    read as its other words.

    A word of letters stands between white space and marks, which do not grow together when it is gone. `fixed`: texts
    are cut and padded to a length.
    """
    encoded = text.encoded
    if not isinstance(vocabulary, WordVocabulary) or nothing_behind(text) is None:
        return None
    if not fixed or vocabulary.split not in ("whitespace", "words") or (encoded.cut and vocabulary.cut_side == "left"):
        return None
    if vocabulary.split == "words":
        moving = (word for word, options in zip(encoded.words, text.frozen.words, strict=True) if len(options) > 1)
        if not all(word[0].isalnum() or word[0] in "'’" for word in moving):
            return None
    if len(encoded.words) < len(encoded.tokens):
        return encoded.tokens[-1]
    if not encoded.cut:
        return special_of(vocabulary, vocabulary.pad)
    start, end = encoded.whole[len(encoded.words)]
    return token_of(vocabulary, encoded.text[start:end])


def token_of(vocabulary: WordVocabulary, word: str) -> int | None:
    known = vocabulary.ids.get(word.lower() if vocabulary.lowercase else word)
    return special_of(vocabulary, vocabulary.unknown) if known is None else known


@lru_cache(maxsize=1 << 10)
def places_of(words: int) -> tuple[tuple[int, int], ...]:
    """Of so many words from the first position on, a token each."""
    return tuple((place, 1) for place in range(words))


def unknown_of(vocabulary: Vocabulary) -> int | None:
    """The token of the unknown word, as it stands in a text; None where it is not read as one word."""
    if not isinstance(vocabulary, WordVocabulary):
        return None
    word = unknown_spelt(vocabulary)
    return token_of(vocabulary, word) if spans_of(word, vocabulary.split) == ((0, len(word)),) else None


def special_of(vocabulary: WordVocabulary, token: str | int) -> int | None:
    return token if isinstance(token, int) else vocabulary.ids.get(token)
