"""A text as a model reads it, and the ways of splitting a text into words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from .errors import BadInput, EmptyText, one_line

LONGEST = 1_000_000
"""Tokens of a text."""
NamedSplit = Literal["whitespace", "words"]
Span = tuple[int, int]

PATTERNS: dict[NamedSplit, re.Pattern[str]] = {
    "whitespace": re.compile(r"\S+"),  # the words of str.split
    "words": re.compile(r"(?:[^\W_]|['’])+|\S"),  # letters, digits and apostrophes together, every other mark alone
}


@dataclass(frozen=True)
class Pattern:
    """A regular expression whose matches are the words; where it has a group, what the group holds, as in findall."""

    pattern: str

    def __post_init__(self) -> None:
        try:
            compiled = re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise BadInput(f"{self.pattern!r} is no regular expression ({one_line(error)})") from error
        if compiled.groups > 1:
            raise BadInput(f"{self.pattern!r} has {compiled.groups} groups; make all but one (?:...)")
        if compiled.match(""):
            raise BadInput(f"{self.pattern!r} matches the empty text, which is no word")

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


Split = NamedSplit | Pattern


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
    constants: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False)
    """What models read beside the tokens, by role: mask, types, positions, length. It follows from the text."""


@lru_cache(maxsize=1 << 12)
def constants_of(mask: tuple[int, ...], types: tuple[int, ...] | None = None) -> Mapping[str, tuple[int, ...]]:
    """By role, one object for all texts that are padded alike: the mask is 1 for tokens that are no padding, positions
    are counted from 0, the length is the number of tokens that are no padding."""
    places = tuple(range(len(mask)))
    return {"mask": mask, "types": types or (0,) * len(mask), "positions": places, "length": (sum(mask),)}


def spans_of(text: str, split: Split) -> tuple[Span, ...]:
    """The characters of every word."""
    pattern = pattern_of(split)
    spans = [match.span(pattern.groups) for match in pattern.finditer(text)]
    return tuple([(start, end) for start, end in spans if start < end])


def pattern_of(split: Split) -> re.Pattern[str]:
    return split.compiled if isinstance(split, Pattern) else PATTERNS[split]


def empty(text: str) -> EmptyText:
    return EmptyText("the text is empty" if not text else "the text has no words")


def check_length(length: int | None) -> None:
    if length is not None and length < 1:
        raise BadInput(f"a length of {length}: it must be at least 1")
    if length is not None and length > LONGEST:
        raise BadInput(f"a length of more than {LONGEST:,} tokens: a text would be padded to it; give a smaller one")
