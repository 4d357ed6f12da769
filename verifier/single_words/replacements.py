"""Which words may replace a word, where, and the texts in which they are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.models.plain_words import PlainWords
from swapproof.models.subwords import TokenizerVocabulary, tokenizer_of
from swapproof.models.vocabulary import Vocabulary

from ..tasks.inputs import Text


@dataclass(frozen=True)
class Candidates:
    """The words of V and their tokens; `several`: words of letters that the model reads as more than one token."""

    words: tuple[str, ...]
    tokens: NDArray[np.int64]
    several: tuple[str, ...]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Candidates:
        """Whole words of letters that the model reads as one token of their own, by token."""
        found: dict[int, str] = {}
        several = []
        ids = ids_of(vocabulary)
        for word in sorted(ids):
            if not word.isalpha():
                continue
            tokens = vocabulary.tokens_of(word)
            if tokens is None:
                continue
            if len(tokens) > 1:
                several.append(word)
            elif tokens[0] == ids[word]:
                found[tokens[0]] = word
        order = sorted(found)
        return cls(tuple(found[token] for token in order), np.array(order, dtype=np.int64), tuple(several))


def ids_of(vocabulary: Vocabulary) -> Mapping[str, int]:
    if isinstance(vocabulary, TokenizerVocabulary):
        found: dict[str, int] = tokenizer_of(vocabulary.content, vocabulary.source).get_vocab()
        return found
    return {} if isinstance(vocabulary, PlainWords) else vocabulary.ids


def positions_of(text: Text) -> list[int]:
    """Where one word of the text stands as one token, unknown words included, padding not."""
    return [first for first, count in text.encoded.places if count == 1]


def words_of_several_tokens(texts: Iterable[Text]) -> int:
    """Words that cannot be replaced token by token, over all texts."""
    return sum(count != 1 for text in texts for _, count in text.encoded.places)
