"""The rows of the pieces of a chain: the sentence itself, and every move with every number of swaps up to it.

A piece of level p depends on the first p words of the order. Its rows: the sentence; for j = 1 .. r the words that are
old there, together; then, for every other of these words, its moves, and for each j = 1 .. r.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..network import Indices
from .multipliers import Unfit


class MoveRows:
    """Of one chain: `moves[a]` are those of the a-th word of the order."""

    def __init__(self, moves: Sequence[int], room: int, reach: int) -> None:
        self.moves, self.room, self.reach = moves, room, reach
        self.known: dict[tuple[int, int], tuple[Indices, Indices]] = {}

    @cached_property
    def before(self) -> Indices:
        """[words + 1]: rows of the first words, by the number of these."""
        return np.cumsum([0, *(count * self.room for count in self.moves)])

    def old(self, level: int) -> int:
        """So many words are old."""
        return max(0, level - 1 - self.reach) if self.room else 0

    def fresh(self, level: int) -> int:
        """The first row of a word that is not old."""
        return 1 + (self.room if self.old(level) else 0)

    def count(self, level: int) -> int:
        return self.fresh(level) + int(self.before[level] - self.before[self.old(level)])

    def rows_of(self, level: int, a: int) -> slice:
        """Those of a word that is not old there."""
        start = self.fresh(level) + int(self.before[a] - self.before[self.old(level)])
        return slice(start, start + self.moves[a] * self.room)

    def swaps(self, level: int) -> Indices:
        """[rows]: the j of each, 0 of the sentence."""
        return np.concatenate([[0], np.tile(np.arange(1, self.room + 1), (self.count(level) - 1) // max(1, self.room))])

    def taken(self, level: int, source: int) -> tuple[Indices, Indices]:
        """What stands for a piece of level `source` in one of this level, by row: from 0 its own rows, behind these
        B_0 .. B_r, behind these the hulls over its words that are old here, for j = 1 .. r. And the rows of these
        words, [r, any], of which the hulls are."""
        if (level, source) not in self.known:
            self.known[level, source] = self.place(level, source)
        return self.known[level, source]

    def place(self, level: int, source: int) -> tuple[Indices, Indices]:
        room, old, count = self.room, self.old(level), self.count(source)
        found, inner = [np.zeros(1, dtype=np.int64)], np.zeros((room, 0), dtype=np.int64)
        if old:
            if source < old:
                raise Unfit("a chain that reads around old words")
            parts = [np.arange(*self.rows_of(source, a).indices(count)) for a in range(self.old(source), old)]
            inner = np.concatenate(parts).reshape(-1, room).T if parts else inner
            if self.old(source):
                inner = np.concatenate([np.arange(1, room + 1)[:, None], inner], axis=1)
            found.append(count + room + 1 + np.arange(room))
        for a in range(old, level):
            if a < source:
                found.append(np.arange(*self.rows_of(source, a).indices(count)))
            else:
                found.append(np.tile(count + np.arange(room), self.moves[a]))
        return np.concatenate(found), inner
