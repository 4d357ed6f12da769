"""The stretches of a text that are read apart from one another, each in every spelling that the options give it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..swapped_text import SwapText

MOST_SPELLINGS = 4096
"""Of one stretch: that of words with nothing between them has the product of their options."""


@dataclass(frozen=True)
class Unit:
    """A stretch between two separators. `words` are those in it that have alternatives; `spellings` go through their
    options with the last word fastest, and begin with what stands there."""

    words: tuple[int, ...]
    strides: tuple[int, ...]
    spellings: tuple[str, ...]


def numbers_of(units: Sequence[Unit], rows: NDArray[np.int32]) -> NDArray[np.int64]:
    """[sentences, units]: which spelling of each unit every sentence has. All units have words that move."""
    words = [word for unit in units for word in unit.words]
    strides = np.array([stride for unit in units for stride in unit.strides], dtype=np.int64)
    starts = np.cumsum([0, *(len(unit.words) for unit in units[:-1])])
    return np.add.reduceat(rows[:, words] * strides, starts, axis=1)


def units_of(text: SwapText, separators: str) -> list[Unit] | str:
    """The stretches between separators outside options; or why there are too many spellings of one."""
    units: list[Unit] = []
    parts: list[str | int] = []
    for piece in [*pieces_of(text, re.compile(f"[{re.escape(separators)}]")), None]:
        if piece is not None:
            parts.append(piece)
            continue
        words = tuple(part for part in parts if isinstance(part, int))
        sizes = [len(text.options[word]) for word in words]
        if prod(sizes) > MOST_SPELLINGS:
            together = "".join(part if isinstance(part, str) else text.options[part][0] for part in parts)
            return f"{together!r} stands together and has {prod(sizes):,} spellings, more than {MOST_SPELLINGS:,}"
        strides = tuple(prod(sizes[place + 1 :]) for place in range(len(words)))
        choices = [[part] if isinstance(part, str) else spellings_of(text, part) for part in parts]
        units.append(Unit(words, strides, tuple("".join(chosen) for chosen in product(*choices))))
        parts = []
    return units


def spellings_of(text: SwapText, word: int) -> list[str]:
    """What stands there and the alternatives."""
    return [text.text[slice(*text.spans[word])], *text.options[word][1:]]


def pieces_of(text: SwapText, separator: re.Pattern[str]) -> Iterator[str | int | None]:
    """What stands there, in order: words that have alternatives, by number, the rest as strings; None between units."""
    for word, (before, span) in enumerate(zip(text.between, text.spans, strict=False)):
        yield from cut(before, separator)
        if len(text.options[word]) > 1:
            yield word
        else:
            yield from cut(text.text[slice(*span)], separator)
    yield from cut(text.between[-1], separator)


def cut(text: str, separator: re.Pattern[str]) -> Iterator[str | None]:
    for place, part in enumerate(separator.split(text)):
        if place:
            yield None
        if part:
            yield part
