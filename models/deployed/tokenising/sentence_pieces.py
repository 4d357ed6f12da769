"""The sentences of one text put together from pieces, one for every option, where a tokenizer reads them one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, product
from math import prod

import numpy as np

from ..classifier import Rows
from ..swapped_text import SwapText
from .token_rows import Ids, TokenRows

MOST_TOGETHER = 64
"""Ways to fill a stretch of text without white space in which several words can be swapped."""


@dataclass(frozen=True)
class Stretch:
    """Words, by number, that no white space separates: their options are read together."""

    words: tuple[int, ...]
    options: tuple[int, ...]
    """How many each of them has."""

    @property
    def ways(self) -> int:
        return prod(self.options)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Of the number of a way, as the options of the words give it: the last word counts fastest."""
        return tuple(prod(self.options[place + 1 :]) for place in range(len(self.options)))


@dataclass(frozen=True)
class Layout:
    """The stretches of a text in order, where a tokenizer that splits at `separators` reads them one by one."""

    text: SwapText
    stretches: tuple[Stretch, ...]

    @cached_property
    def rows(self) -> list[list[int]]:
        """The text itself, then every other way of every stretch, the others as they stand in the text."""
        rows = [[0] * len(self.text.spans)]
        for stretch in self.stretches:
            for way in list(product(*map(range, stretch.options)))[1:]:
                row = list(rows[0])
                for word, option in zip(stretch.words, way, strict=True):
                    row[word] = option
                rows.append(row)
        return rows


def layout_of(text: SwapText, separators: str) -> Layout | None:
    """None where the stretches may be read in dependence on each other.

    An option with white space in it, or without a character, may change where the text falls apart.
    """
    words = text.swappable
    spelt = [option for word in words for option in (text.text[slice(*text.spans[word])], *text.options[word][1:])]
    if not separators or not all(option and not any(map(str.isspace, option)) for option in spelt):
        return None
    groups: list[list[int]] = [[word] for word in words[:1]]
    for before, word in pairwise(words):
        gap = text.text[text.spans[before][1] : text.spans[word][0]]
        if any(blank in gap for blank in separators):
            groups.append([word])
        else:
            groups[-1].append(word)
    stretches = tuple(Stretch(tuple(group), tuple(len(text.options[word]) for word in group)) for group in groups)
    return None if any(stretch.ways > MOST_TOGETHER for stretch in stretches) else Layout(text, stretches)


@dataclass(frozen=True, eq=False)
class Pieces:
    """`tokens` are what does not move, then the piece of every way of every stretch, `first` its first way's."""

    stretches: tuple[Stretch, ...]
    tokens: TokenRows
    first: tuple[int, ...]

    def sentences(self, rows: Rows) -> TokenRows:
        chosen = np.empty((len(rows), 2 * len(self.stretches) + 1), dtype=np.int64)
        chosen[:, ::2] = np.arange(len(self.stretches) + 1)
        for place, (stretch, first) in enumerate(zip(self.stretches, self.first, strict=True)):
            chosen[:, 2 * place + 1] = first + rows[:, stretch.words] @ np.array(stretch.strides, dtype=np.int64)
        sizes = self.tokens.sizes[chosen]
        lengths = sizes.sum(axis=1)
        flat = sizes.ravel()
        ends = np.cumsum(flat)
        index = np.arange(int(lengths.sum())) + np.repeat(self.tokens.starts[chosen].ravel() - (ends - flat), flat)
        return TokenRows(self.tokens.ids[index], self.tokens.types[index], np.cumsum(lengths) - lengths, lengths)


def pieces_apart(layout: Layout, separators: str, read: Callable[[Sequence[str]], TokenRows]) -> Pieces:
    """Where whatever stands between separators is read by itself, wherever it stands, as plain words are.

    `read` reads texts uncut.
    """
    text, spans = layout.text.text, layout.text.spans
    still: list[str] = []
    moving: list[str] = []
    first: list[int] = []
    done = 0
    for stretch in layout.stretches:
        start, end = spans[stretch.words[0]][0], spans[stretch.words[-1]][1]
        while start > done and text[start - 1] not in separators:
            start -= 1
        while end < len(text) and text[end] not in separators:
            end += 1
        still.append(text[done:start])
        first.append(len(layout.stretches) + 1 + len(moving))
        places = [start, *(place for word in stretch.words for place in spans[word]), end]
        between = [text[left:right] for left, right in list(pairwise(places))[::2]]
        spelt = [(text[slice(*spans[word])], *layout.text.options[word][1:]) for word in stretch.words]
        ways = (chain(*zip(between, chosen, strict=False)) for chosen in product(*spelt))
        moving += ["".join(way) + between[-1] for way in ways]
        done = end
    still.append(text[done:])
    return Pieces(layout.stretches, read([*still, *moving]), tuple(first))


def pieces_of(layout: Layout, read: TokenRows) -> Pieces | None:
    """`read` are the sentences `layout.rows`, uncut. None where pieces would overlap.

    Every way of a stretch is read in the whole text: what changes must lie between what comes before and after it in
    all of them, in the order of the stretches. As they are read one by one, together they are then read as the pieces.
    """
    base = read.row(0)
    number, end = 1, 0
    still: list[Ids] = []
    moving: list[Ids] = []
    first: list[int] = []
    for stretch in layout.stretches:
        others = [read.row(number + way) for way in range(stretch.ways - 1)]
        number += len(others)
        before, after = _common(base, others)
        stop = base.shape[1] - after
        if before < end:
            return None
        still.append(base[:, end:before])
        first.append(len(layout.stretches) + 1 + len(moving))
        moving += [ids[:, before : ids.shape[1] - after] for ids in (base, *others)]
        end = stop
    still.append(base[:, end:])
    every = [*still, *moving]
    sizes = np.array([piece.shape[1] for piece in every], dtype=np.int64)
    ids, types = np.concatenate(every, axis=1)
    return Pieces(layout.stretches, TokenRows(ids, types, np.cumsum(sizes) - sizes, sizes), tuple(first))


def _common(base: Ids, others: Sequence[Ids]) -> tuple[int, int]:
    """How many tokens all begin with, and how many of the rest they end with."""
    shortest = min(ids.shape[1] for ids in (base, *others))
    before = min((_alike(base[:, :shortest], ids[:, :shortest]) for ids in others), default=shortest)
    rest = shortest - before
    ends = [ids[:, ids.shape[1] - rest :][:, ::-1] for ids in (base, *others)]
    after = min((_alike(ends[0], ids) for ids in ends[1:]), default=rest)
    return before, after


def _alike(one: Ids, other: Ids) -> int:
    differ = np.flatnonzero((one != other).any(axis=0))
    return int(differ[0]) if differ.size else one.shape[1]
