"""A synonym table as pairs of words of a vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, unreadable

Pairs = NDArray[np.int64]
"""Indices of words [pairs, 2]."""


def read_synonyms(path: Path) -> dict[str, list[str]]:
    """{"word": ["synonym", ...]} from a JSON file."""
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise BadInput(f'{path}: not JSON; a synonym table is {{"word": ["synonym", ...]}}') from error
    if not isinstance(table, dict) or not all(
        isinstance(others, list) and all(isinstance(other, str) for other in others) for others in table.values()
    ):
        raise BadInput(f'{path}: no synonym table, which is {{"word": ["synonym", ...]}}')
    return table


def synonym_pairs(words: Sequence[str], table: Mapping[str, Sequence[str]], *, at_most: int | None = None) -> Pairs:
    """(word, synonym) for the first `at_most` synonyms of each word, where both are in the vocabulary and differ."""
    index = {word: number for number, word in enumerate(words)}
    pairs = {
        (index[word], index[other])
        for word, others in table.items()
        if word in index
        for other in others[:at_most]
        if other in index and other != word
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def neighbour_table(words: Sequence[str], table: Mapping[str, Sequence[str]], at_most: int) -> NDArray[np.int64]:
    """[words, 1 + most]: each word, then the first `at_most` synonyms of it that are in the vocabulary, as listed;
    the word again where there are fewer."""
    index = {word: number for number, word in enumerate(words)}
    listed = [
        [index[other] for other in dict.fromkeys(table.get(word, ())) if other in index and other != word][:at_most]
        for word in words
    ]
    width = max([1, *map(len, listed)])
    found = np.repeat(np.arange(len(words))[:, None], 1 + width, axis=1)
    for number, others in enumerate(listed):
        found[number, 1 : 1 + len(others)] = others
    return found


def neighbours_of(words: Sequence[str], file: Path, at_most: int) -> NDArray[np.int64]:
    """The same of a file; refused where no word of the vocabulary has a synonym in it."""
    found = neighbour_table(words, read_synonyms(file), at_most)
    if (found == found[:, :1]).all():
        raise BadInput(f"{file}: no two words of the vocabulary are synonyms there; nothing would be defended")
    return found
