"""Words and options, as certificates name them, of a space of positions and tokens.

Word w is the w-th position with two options or more, and stands on that position alone; its option o is the o-th token
there, 0 the original. Certificates of others may also name words that have one option.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from .errors import BadInput
from .space import SwapSpace

Inputs = tuple[tuple[Literal["words", "constant"], tuple[int, ...]], ...]
Words = tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]


def inputs_of(space: SwapSpace) -> Inputs:
    """The inputs of the model, in the order of its file."""
    return (*map(constant, space.before), ("words", space.original), *map(constant, space.after))


def constant(integers: tuple[int, ...]) -> tuple[Literal["constant"], tuple[int, ...]]:
    """An input that is given these."""
    return "constant", integers


def words_of(space: SwapSpace) -> Words:
    """Of each word its first position, numbered through all inputs, and its options."""
    return tuple((space.offset + p, tuple((token,) for token in space.choices[p])) for p in space.swappable)


def option_counts(space: SwapSpace) -> list[int]:
    """Of each word, how many options it has."""
    return [len(space.choices[position]) for position in space.swappable]


def space_of(inputs: Sequence[Any], words: Sequence[Any]) -> SwapSpace:
    """Of one input of words, constants beside it, and of words of one position each; BadInput for others."""
    try:
        roles = [role for role, _ in inputs]
        given = [tuple(integers) for _, integers in inputs]
        (place,) = (number for number, role in enumerate(roles) if role == "words")
        choices = [(token,) for token in given[place]]
        starts = [start - sum(map(len, given[:place])) for start, _ in words]
        for start, (_, options) in zip(starts, words, strict=True):
            choices[start] = tuple(token for (token,) in options)
    except (ValueError, TypeError, IndexError):
        raise BadInput("inputs and words that are no space: one input of words, each of one position") from None
    if min(starts, default=0) < 0 or not {*roles} <= {"words", "constant"}:
        raise BadInput("words that are no space: one stands in another input, or an input has another role")
    space = SwapSpace(tuple(choices), tuple(given[:place]), tuple(given[place + 1 :]))
    if starts != sorted(set(starts)) or space.original != given[place]:
        raise BadInput("words that are no space: they ascend, and the first option of each is the original")
    return space


def options_of(space: SwapSpace, swaps: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """(position, token) swaps as (word, option)."""
    found = [(space.swappable.index(position), space.choices[position].index(token)) for position, token in swaps]
    return tuple(sorted(found))


def swaps_of(
    inputs: Sequence[Any], words: Sequence[Any], options: Iterable[Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """(word, option) of these words as (position, token) swaps; positions are those of the input of words."""
    roles = [role for role, _ in inputs]
    offset = sum(len(given) for _, given in inputs[: roles.index("words")])
    return tuple((words[word][0] - offset, words[word][1][option][0]) for word, option in options)
