"""All sentences of a given number of swaps, in blocks of values at the cut: one vector addition a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import Differences

BLOCK_CELLS = 1 << 17
"""Numbers in one float32 block: half a megabyte, so that a block stays in the second-level cache."""
TABLE_CELLS = 1 << 23
"""Numbers in one table of combinations: 32 megabytes."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """All sets of a few swaps at different positions, as sums of differences.

    Ordered by their last swap ("ending") or their first ("starting"), so that those wholly before, or wholly after, a
    given swap's position are the rows up to, or from, `edge[swap]`.
    """

    swaps: NDArray[np.int32]
    """[rows, size]."""
    sums: NDArray[np.float32]
    """[rows, width]."""
    edge: NDArray[np.int64]
    """[swaps]."""


@dataclass(frozen=True, eq=False)
class Block:
    """Every outer combination with every inner one around the same middle swaps."""

    outer: NDArray[np.int32]
    middle: tuple[int, ...]
    inner: NDArray[np.int32]
    cut: NDArray[np.float32]
    """[rows, width]: the values at the cut."""

    def swaps(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """[rows, size]: the swaps of these rows."""
        middle = np.broadcast_to(np.array(self.middle, dtype=np.int32), (len(rows), len(self.middle)))
        return np.column_stack([self.outer[rows // len(self.inner)], middle, self.inner[rows % len(self.inner)]])


class Tables:
    """Combinations of the swaps of one query, by size, grown while they fit."""

    def __init__(self, differences: Differences) -> None:
        positions, count = differences.positions, len(differences.positions)
        self.base = differences.base.astype(np.float32)
        self.rows = differences.rows.astype(np.float32)
        self.width = max(1, differences.width)
        self.before = np.searchsorted(positions, positions, side="left").astype(np.int64)
        self.after = np.searchsorted(positions, positions, side="right").astype(np.int64)
        none = (np.zeros((1, 0), dtype=np.int32), np.zeros((1, differences.width), dtype=np.float32))
        # The one empty combination lies both before and after every swap.
        self.ending = [Combinations(*none, np.ones(count, dtype=np.int64))]
        self.starting = [Combinations(*none, np.zeros(count, dtype=np.int64))]

    def blocks(self, size: int) -> Iterator[Block]:
        """All sentences of `size` swaps: an outer combination, middle swaps after it, an inner one after these."""
        if size <= 1:
            yield from self.grid(self.base, (), self.ending[0], 1, self.grown(self.starting, size), 0)
            return
        starting = self.grown(self.starting, size // 2)
        ending = self.grown(self.ending, size - 1 - starting.swaps.shape[1])
        for swaps in self.middles(size - starting.swaps.shape[1] - ending.swaps.shape[1]):
            now = self.base + self.rows[list(swaps)].sum(axis=0, dtype=np.float32)
            outer, inner = int(ending.edge[swaps[0]]), int(starting.edge[swaps[-1]])
            yield from self.grid(now, swaps, ending, outer, starting, inner)

    def grid(
        self,
        now: NDArray[np.float32],
        middle: tuple[int, ...],
        ending: Combinations,
        upto: int,
        starting: Combinations,
        since: int,
    ) -> Iterator[Block]:
        room = max(1, BLOCK_CELLS // self.width)
        for first in range(since, len(starting.swaps), room):
            inner = slice(first, min(first + room, len(starting.swaps)))
            moved = starting.sums[inner] + now
            step = max(1, room // len(moved))
            for start in range(0, upto, step):
                outer = slice(start, min(start + step, upto))
                cut = (ending.sums[outer, None, :] + moved[None]).reshape(-1, moved.shape[1])
                yield Block(ending.swaps[outer], middle, starting.swaps[inner], cut)

    def middles(self, size: int) -> Iterator[tuple[int, ...]]:
        """Sets of `size` swaps at increasing positions."""
        stack: list[tuple[int, ...]] = [()]
        while stack:
            chosen = stack.pop()
            if len(chosen) == size:
                yield chosen
                continue
            start = int(self.after[chosen[-1]]) if chosen else 0
            stack.extend((*chosen, swap) for swap in range(len(self.rows) - 1, start - 1, -1))

    def grown(self, tables: list[Combinations], size: int) -> Combinations:
        """The table of this size, or the largest that fits."""
        first = tables is self.starting
        while len(tables) <= size:
            last = tables[-1]
            joined = int((len(last.swaps) - last.edge).sum() if first else last.edge.sum())
            if joined == 0 or (len(tables) > 1 and joined * self.width > TABLE_CELLS):
                break
            tables.append(self.larger(last, first=first))
        return tables[min(size, len(tables) - 1)]

    def larger(self, table: Combinations, *, first: bool) -> Combinations:
        """Every swap joined with every combination after it (`first`), or before it."""
        counts = len(table.swaps) - table.edge if first else table.edge
        ends = np.concatenate([[0], np.cumsum(counts)])
        joined = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        others = np.arange(ends[-1]) - np.repeat(ends[:-1] - (table.edge if first else 0), counts)
        pair = (joined[:, None], table.swaps[others])
        swaps = np.concatenate(pair if first else pair[::-1], axis=1)
        return Combinations(swaps, self.rows[joined] + table.sums[others], ends[self.after if first else self.before])
