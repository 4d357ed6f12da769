"""Which words of a set are swapped, and for what: a row for every way with at most so many swaps.

Swaps of a region are numbered by word, then by option. A row lists its swaps in ascending order, filled up with NONE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..network import Indices

NONE = -1


@dataclass(frozen=True, eq=False)
class Choices:
    """The words of a region: `options[w]` are those of word w that may stand there, 0 the original."""

    options: tuple[tuple[int, ...], ...]
    swaps: int
    """At most so many in a sentence."""

    @cached_property
    def word_of(self) -> Indices:
        """[swaps]"""
        return np.array([w for w, own in enumerate(self.options) for option in own if option], dtype=np.int64)

    @cached_property
    def option_of(self) -> Indices:
        return np.array([option for own in self.options for option in own if option], dtype=np.int64)

    @cached_property
    def moving(self) -> frozenset[int]:
        """Words that have two options, or lack the original."""
        return frozenset(w for w, own in enumerate(self.options) if own != (0,))

    @property
    def most(self) -> int:
        """Swaps of any sentence."""
        return min(self.swaps, len(self.moving))

    @cached_property
    def forced(self) -> frozenset[int]:
        return frozenset(w for w, own in enumerate(self.options) if 0 not in own)

    def count(self, words: frozenset[int] | None = None) -> int:
        """Sentences, as far as these words (all, unless said) go."""
        found = [1] + [0] * self.swaps
        for w in self.moving if words is None else words & self.moving:
            own, others = int(0 in self.options[w]), sum(option > 0 for option in self.options[w])
            found = [own * n + others * m for n, m in zip(found, [0, *found[:-1]], strict=True)]
        return sum(found)

    def number(self, word: int) -> list[int]:
        """Of the swaps of a word."""
        return np.flatnonzero(self.word_of == word).tolist()


@dataclass(frozen=True, eq=False)
class Assignments:
    """All rows for a set of words, in no particular order."""

    choices: Choices
    words: frozenset[int]
    rows: NDArray[np.int32]
    """[n, swaps]"""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def keys(self) -> Indices | None:
        """A number for each row, whatever set of words it is of; None where these are too large."""
        base = len(self.choices.word_of) + 1
        if base ** self.rows.shape[1] >= 2**63:
            return None
        keys = np.zeros(len(self.rows), dtype=np.int64)
        for column in self.rows.T:
            keys = keys * base + (column.astype(np.int64) + 1)
        return keys

    @cached_property
    def sorted_keys(self) -> tuple[Indices, Indices] | None:
        """And where each stands."""
        if self.keys is None:
            return None
        order = np.argsort(self.keys, kind="stable")
        return self.keys[order], order

    @cached_property
    def places(self) -> dict[bytes, int]:
        return {row.tobytes(): place for place, row in enumerate(self.rows)}

    def rows_of(self, wider: Assignments) -> NDArray[np.int32]:
        """For each row of a wider set of words, the row of what it is here."""
        if wider is self:
            return np.arange(len(self), dtype=np.int32)
        some = restricted(wider, self.words)
        if self.sorted_keys is None or some.keys is None:
            return np.array([self.places[row.tobytes()] for row in some.rows], dtype=np.int32)
        keys, order = self.sorted_keys
        return order[np.searchsorted(keys, some.keys)].astype(np.int32)


def restricted(wider: Assignments, words: frozenset[int]) -> Assignments:
    """Of each row only what it says of these words."""
    held = np.zeros(len(wider.choices.word_of) + 1, dtype=np.bool_)
    held[:-1] = np.isin(wider.choices.word_of, list(words))
    kept = held[wider.rows]
    moved = np.argsort(~kept, axis=1, kind="stable")  # to the front, in order
    rows = np.take_along_axis(np.where(kept, wider.rows, NONE), moved, axis=1)
    return Assignments(wider.choices, words, rows)


class AssignmentTables:
    """Those of one region, or of some sentences of it, made once for each set of words."""

    def __init__(self, choices: Choices, sentences: NDArray[np.int32] | None = None) -> None:
        self.choices = choices
        self.known: dict[frozenset[int], Assignments] = {}
        self.chosen = None if sentences is None else Assignments(choices, choices.moving, sentences)
        if self.chosen is not None:
            self.known[choices.moving] = self.chosen

    def of(self, words: frozenset[int]) -> Assignments:
        words = words & self.choices.moving
        if words not in self.known:
            if self.chosen is None:
                rows = self.made(sorted(words))
            else:
                rows = np.unique(restricted(self.chosen, words).rows, axis=0)
            self.known[words] = Assignments(self.choices, words, rows)
        return self.known[words]

    def made(self, words: Sequence[int]) -> NDArray[np.int32]:
        most = self.choices.most
        rows = np.full((1, most), NONE, dtype=np.int32)
        used = np.zeros(1, dtype=np.int64)
        for word in words:
            numbers = np.array(self.choices.number(word), dtype=np.int32)
            free = np.flatnonzero(used < most)
            more = np.repeat(rows[free], len(numbers), axis=0)
            places = np.repeat(used[free], len(numbers))
            if len(more):
                more[np.arange(len(more)), places] = np.tile(numbers, len(free))
            stay = 0 in self.choices.options[word]
            rows = np.concatenate([rows, more]) if stay else more
            used = np.concatenate([used, places + 1]) if stay else places + 1
        return rows
