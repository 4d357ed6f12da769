"""How a list of words was meant to be looked up: which way of splitting and folding knows the most of real texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..encoded import PATTERNS, Pattern, Split, spans_of

KERAS = Pattern(r"""[^!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~\t\n ]+""")
"""What is left of a text by the filters that Keras has unless told otherwise."""
SCIKIT = Pattern(r"(?u)\b\w\w+\b")
"""Words of scikit-learn's vectorisers, unless told otherwise."""
CLOSE = 0.002
"""Shares of known words that differ by no more are no evidence."""


@dataclass(frozen=True)
class Reading:
    split: Split
    lowercase: bool
    known: float
    """The share of the words of the texts that the vocabulary has."""

    @property
    def name(self) -> str:
        match self.split:
            case "whitespace":
                return "at white space"
            case "words":
                return "into words and marks"
        return "as Keras does" if self.split == KERAS else "as scikit-learn does"


def readings(texts: Sequence[str], ids: Mapping[str, int]) -> list[Reading]:
    """Every way, the one that knows most first; of equal ones the plainer first."""
    found = []
    for split in ways(ids):
        words = [text[start:end] for text in texts for start, end in spans_of(text, split)]
        for lowercase in (False, True):
            known = sum((word.lower() if lowercase else word) in ids for word in words)
            found.append(Reading(split, lowercase, known / max(1, len(words))))
    return sorted(found, key=lambda reading: -reading.known)


def ways(ids: Mapping[str, int]) -> list[Split]:
    """Those that leave words out only for vocabularies that have none of these."""
    found: list[Split] = list(PATTERNS)
    if 0 not in ids.values() and not any(mark in ids for mark in ".,!?"):
        found.append(KERAS)
    if not any(len(word) == 1 for word in ids):
        found.append(SCIKIT)
    return found


def folds_case(ids: Mapping[str, int]) -> bool:
    """Whether the vocabulary has no word with a capital letter, special tokens left out."""
    return not any(word != word.lower() for word in ids if not word.startswith(("<", "[", "_")))
