"""What may replace a word: filters that decide on one-swap sentences, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from swapproof.encodings.errors import BadInput

from .part_of_speech import SamePartOfSpeech
from .rejected_pairs import Rejected
from .similarity import SentenceSimilarity
from .stop_words import STOP_WORDS

if TYPE_CHECKING:
    from swapproof.models.vocabulary import Vocabulary


class Filter(Protocol):
    """Decides, for the sentence `words` and each candidate in turn, whether the candidate may stand at `position`.

    `name` is the reason a removal is counted under. A filter that is not `in_context` looks at the word and the
    candidates only, so its answer is computed once per distinct word.
    """

    in_context: ClassVar[bool]

    @property
    def name(self) -> str: ...

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]: ...


@dataclass(frozen=True)
class StopWords:
    """Neither replaces a stop word nor replaces a word by one."""

    words: frozenset[str] = STOP_WORDS
    name: str = "stop word"
    in_context: ClassVar[bool] = False

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        if words[position].lower() in self.words:
            return [False] * len(candidates)
        return [candidate.lower() not in self.words for candidate in candidates]


@dataclass(frozen=True)
class Antonyms:
    """Removes the candidates that a list of unordered pairs calls opposites of the word."""

    pairs: frozenset[frozenset[str]] = field(repr=False)
    name: str = "antonym"
    in_context: ClassVar[bool] = False

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        word = words[position].lower()
        return [frozenset((word, candidate.lower())) not in self.pairs for candidate in candidates]


@dataclass(frozen=True)
class MaxPerWord:
    """Keeps the first `most` candidates, in order of preference."""

    most: int
    name: str = "beyond max_per_word"
    in_context: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.most < 1:
            raise BadInput(f"max_per_word = {self.most}: allow one candidate or more")

    def keeps(self, words: Sequence[str], position: int, candidates: Sequence[str]) -> list[bool]:
        return [place < self.most for place in range(len(candidates))]


# Every filter there is, in the order of application: cheap before dear, the cap last.
FILTERS: tuple[type[Filter], ...] = (Rejected, StopWords, Antonyms, SamePartOfSpeech, SentenceSimilarity, MaxPerWord)

# Always applied, before any filter: a candidate must be one token, and a new one.
NOT_IN_VOCABULARY = "not in vocabulary"
NOT_ONE_WORD = "not one word as texts are split"
SEVERAL_TOKENS = "several tokens"
SAME_TOKEN = "same token"


def in_order(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """The filters in the order of FILTERS; two of one kind stay as given."""
    return tuple(sorted(filters, key=lambda one: FILTERS.index(type(one))))


def one_token(
    vocabulary: Vocabulary, original: int, candidates: Iterable[str]
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """The candidates that are one new token, each with it; and the others, each with the reason.

    A token is new when it is neither the original nor that of an earlier candidate.
    """
    kept: list[tuple[str, int]] = []
    removed: list[tuple[str, str]] = []
    seen = {original}
    for candidate in candidates:
        tokens = vocabulary.tokens_of(candidate)
        if tokens is None or not tokens:
            removed.append((candidate, NOT_ONE_WORD if vocabulary.splits(candidate) else NOT_IN_VOCABULARY))
        elif len(tokens) > 1:
            removed.append((candidate, SEVERAL_TOKENS))
        elif tokens[0] in seen:
            removed.append((candidate, SAME_TOKEN))
        else:
            seen.add(tokens[0])
            kept.append((candidate, tokens[0]))
    return kept, removed
