"""Words and options, as certificates name them, of a space of positions and tokens.

Word w is the w-th position with two options or more, and stands on that position alone; its option o is the o-th token
there, 0 the original. Certificates of others may also name words that have one option.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .errors import BadInput
from .space import SwapSpace

Inputs = tuple[tuple[str, tuple[int, ...]], ...]
Words = tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]


def inputs_of(space: SwapSpace) -> Inputs:
    """The one input of a model that reads words."""
    return (("words", space.original),)


def words_of(space: SwapSpace) -> Words:
    """Of each word its first position and its options."""
    return tuple((p, tuple((token,) for token in space.choices[p])) for p in space.swappable)


def option_counts(space: SwapSpace) -> list[int]:
    """Of each word, how many options it has."""
    return [len(space.choices[position]) for position in space.swappable]


def space_of(inputs: Sequence[Any], words: Sequence[Any]) -> SwapSpace:
    """Of one input, and of words of one position each; BadInput for others."""
    try:
        ((role, original),) = inputs
        choices = [(token,) for token in original]
        for start, options in words:
            choices[start] = tuple(token for (token,) in options)
        starts = [start for start, _ in words]
    except (ValueError, TypeError, IndexError):
        raise BadInput("inputs and words that are no space: one input, and words of one position") from None
    space = SwapSpace(tuple(choices))
    if role != "words" or starts != sorted(set(starts)) or space.original != tuple(original):
        raise BadInput("words that are no space: they ascend, and the first option of each is the original")
    return space


def options_of(space: SwapSpace, swaps: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """(position, token) swaps as (word, option)."""
    found = [(space.swappable.index(position), space.choices[position].index(token)) for position, token in swaps]
    return tuple(sorted(found))


def swaps_of(words: Sequence[Any], options: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """(word, option) of these words as (position, token) swaps."""
    return tuple((words[word][0], words[word][1][option][0]) for word, option in options)
