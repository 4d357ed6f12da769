"""A text as a model reads it, and the two ways of splitting a text into words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .errors import BadInput, EmptyText

LONGEST = 1_000_000
"""Tokens of a text."""
Split = Literal["whitespace", "words"]
Span = tuple[int, int]

PATTERNS: dict[Split, re.Pattern[str]] = {
    "whitespace": re.compile(r"\S+"),  # the words of str.split
    "words": re.compile(r"(?:[^\W_]|['’])+|\S"),  # letters, digits and apostrophes together, every other mark alone
}


@dataclass(frozen=True)
class Encoded:
    """One text as the model reads it.

    `words` are spelt as in the text and cut to what fits wholly; `spans` are their characters in `text`; `tokens` is
    the whole input, special tokens and padding included; `places` gives each word's first index in `tokens` and its
    number of tokens; `cut` counts the words that did not fit. `unknown` are the indices of the words that the
    vocabulary does not know, or that are spelt like its padding, unknown or special tokens. `whole` are the characters
    of all words, those that did not fit among them.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    tokens: tuple[int, ...]
    places: tuple[Span, ...]
    cut: int
    unknown: tuple[int, ...]
    whole: tuple[Span, ...] = ()


def spans_of(text: str, split: Split) -> tuple[Span, ...]:
    """The characters of every word."""
    return tuple(match.span() for match in PATTERNS[split].finditer(text))


def empty(text: str) -> EmptyText:
    return EmptyText("the text is empty" if not text else "the text has no words")


def check_length(length: int | None) -> None:
    if length is not None and length < 1:
        raise BadInput(f"a length of {length}: it must be at least 1")
    if length is not None and length > LONGEST:
        raise BadInput(f"a length of more than {LONGEST:,} tokens: a text would be padded to it; give a smaller one")
