"""Leaves that enumerate: the sentences of many regions in blocks, by their swaps and as numbers of the cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.pools.next_swaps import NextSwaps

from ..form.tree_leaves import Leaf
from .float64_rounding import Floats
from .region_extremes import Sets

AT_ONCE = 1 << 20
"""Numbers in one block of sentences."""
STATES = 48
"""Sentences of which all next swaps are evaluated together."""
MOST = 1 << 26
"""Numbers that all swaps may take, laid out."""
WORTH = 2_000
"""Leaves and swaps, multiplied, from which on it pays to lay the swaps out."""
Swaps = NDArray[np.int64]
"""[n, m]: the swaps of a sentence by number, -1 for none."""


@dataclass(frozen=True, eq=False)
class Block:
    """Sentences: their cut [n, width], their swaps, and of which region each is."""

    cut: Floats | None
    swaps: Swaps
    region: NDArray[np.int64]
    pooled: Floats | None = None
    """[n, F], in place of the cut: values of the first maxima."""


def blocks(sets: Sets, leaves: Sequence[Leaf]) -> Iterator[Block]:
    """All sentences of these regions, those of small regions together."""
    held: list[tuple[int, Floats, Swaps]] = []
    rows = 0
    for number, leaf in enumerate(leaves):
        for cut, swaps in sentences(sets, leaf):
            held.append((number, cut, swaps))
            rows += len(cut)
            if rows * sets.moves.width >= AT_ONCE:
                yield joined(held)
                held, rows = [], 0
    if held:
        yield joined(held)


def joined(held: Sequence[tuple[int, Floats, Swaps]]) -> Block:
    region = np.repeat([number for number, _, _ in held], [len(cut) for _, cut, _ in held])
    swaps = np.full((len(region), max(part.shape[1] for _, _, part in held)), -1, dtype=np.int64)
    start = 0
    for _, _, part in held:
        swaps[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return Block(np.concatenate([cut for _, cut, _ in held]), swaps, region)


def sentences(sets: Sets, leaf: Leaf) -> Iterator[tuple[Floats, Swaps]]:
    """Blocks of the region's sentences: their cut [n, width], and their swaps [n, up to k].

    A sentence takes one swap of every forced cell and at most as many of the free ones as are left. What free swaps
    make is kept for the regions that share them.
    """
    if leaf.spare < 0:
        return
    most = max(1, AT_ONCE // max(1, sets.moves.width))
    free = (leaf.free, leaf.spare)
    options = [swaps_of(sets, i, int(cell)) for i, cell in enumerate(sets.cells.rows[leaf.free]) if cell >= 0]
    if free not in sets.listed:
        listed = list_up_to(combinations(options, leaf.spare, most), most)
        sets.keep(free, None if listed is None else (listed, sets.moved(listed)))
    known = sets.listed[free]
    forced = [swaps_of(sets, i, cell) for i, cell in leaf.forced]
    for first in products(forced, most):
        state = sets.moves.base + sets.moved(first)
        if known is not None:
            step = max(1, most // len(known[0]))
            for start in range(0, len(first), step):
                part, at = first[start : start + step], state[start : start + step]
                cut = (at[:, None] + known[1]).reshape(-1, sets.moves.width)
                yield cut, each_with_each(part, known[0])
            continue
        for made in combinations(options, leaf.spare, most):
            moved = sets.moved(made)
            for row, at in zip(first, state, strict=True):
                yield at + moved, each_with_each(row[None], made)


def each_with_each(first: Swaps, second: Swaps) -> Swaps:
    return np.concatenate([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))], axis=1)


def list_up_to(parts: Iterable[Swaps], most: int) -> Swaps | None:
    """All of them together; None when there are more rows than that."""
    found, rows = list[Swaps](), 0
    for part in parts:
        found.append(part)
        rows += len(part)
        if rows > most:
            return None
    return np.concatenate(found)


def products(options: Sequence[NDArray[np.int64]], most: int) -> Iterator[Swaps]:
    """One of each, in blocks of about so many rows."""
    stack: list[Swaps] = [np.zeros((1, 0), dtype=np.int64)]
    while stack:
        made = stack.pop()
        if made.shape[1] == len(options):
            yield made
            continue
        following = options[made.shape[1]]
        step = max(1, most // max(1, len(following)))
        stack += [each_with_each(made[at : at + step], following[:, None]) for at in range(0, len(made), step)]


def combinations(options: Sequence[NDArray[np.int64]], most_swaps: int, most: int) -> Iterator[Swaps]:
    """[n, most_swaps] in blocks of about `most` rows: at most so many swaps, none or one of each position's."""
    every = np.concatenate([*options, np.zeros(0, dtype=np.int64)])
    ends = np.cumsum([len(part) for part in options], dtype=np.int64)
    after = np.repeat(ends, [len(part) for part in options])  # place in `every` -> where the next position begins
    stack: list[tuple[Swaps, NDArray[np.int64]]] = [(np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64))]
    while stack:
        made, start = stack.pop()
        filled = np.full((len(made), most_swaps), -1, dtype=np.int64)
        filled[:, : made.shape[1]] = made
        yield filled
        if made.shape[1] == most_swaps:
            continue
        counts = len(every) - start
        bounds = np.flatnonzero(np.diff(np.cumsum(counts) // most)) + 1
        for rows in np.split(np.arange(len(made)), bounds):
            some, total = counts[rows], int(counts[rows].sum())
            if total:
                places = np.arange(total) - np.repeat(np.cumsum(some) - some, some) + np.repeat(start[rows], some)
                longer = np.concatenate([np.repeat(made[rows], some, axis=0), every[places][:, None]], axis=1)
                stack.append((longer, after[places]))


def swaps_of(sets: Sets, i: int, cell: int) -> NDArray[np.int64]:
    allowed = sets.allowed[cell, : sets.cells.sizes[i] - 1]
    return np.asarray(np.flatnonzero(allowed) + sets.first[i])


class PooledLeaves:
    """Leaves of one free swap, of a network that takes its first maxima over windows: by the windows that it moves.

    The same sums as those of other leaves, of the elements that a swap moves, so within the same errors.
    """

    def __init__(self, sets: Sets, following: NextSwaps) -> None:
        self.sets, self.following = sets, following
        self.allowed: dict[int, NDArray[np.bool_]] = {}
        """Set of free positions -> [swaps]: those that they may make."""

    @classmethod
    def of(cls, sets: Sets, leaves: int) -> PooledLeaves | None:
        """None where the network is another, there are few leaves, or there is much to lay out."""
        moves = sets.moves
        if leaves * int(sets.first[-1]) < WORTH or len(moves.touched) * sets.allowed.shape[1] * moves.width > MOST:
            return None
        there = np.arange(sets.allowed.shape[1]) < np.diff(sets.first)[:, None]
        rows = np.zeros((*there.shape, moves.width))
        for i, (elements, own) in enumerate(zip(moves.touched, moves.rows, strict=True)):
            rows[i, : len(own), elements] = own.T
        following = NextSwaps.of(moves.query, 0, there, moves.base, rows)
        return None if following is None else cls(sets, following)

    def blocks(self, leaves: Sequence[tuple[int, Leaf]]) -> Iterator[Block]:
        """All sentences of these leaves, each under its number."""
        held: list[tuple[int, Leaf, Swaps]] = []
        for number, leaf in leaves:
            options = [swaps_of(self.sets, i, cell) for i, cell in leaf.forced]
            for made in products(options, STATES):
                held.append((number, leaf, made))
                if sum(len(one) for _, _, one in held) >= STATES:
                    yield self.block(held)
                    held = []
        if held:
            yield self.block(held)

    def block(self, held: Sequence[tuple[int, Leaf, Swaps]]) -> Block:
        sets, following = self.sets, self.following
        counts = [len(made) for _, _, made in held]
        before = np.full((sum(counts), max(made.shape[1] for _, _, made in held)), -1, dtype=np.int64)
        region = np.repeat([number for number, _, _ in held], counts)
        free = np.repeat(np.array([self.free(leaf) for _, leaf, _ in held]), counts, axis=0)
        positions = np.zeros((len(before), len(sets.first) - 1))
        row = 0
        for (_, leaf, made), count in zip(held, counts, strict=True):
            before[row : row + count, : made.shape[1]] = made
            positions[row : row + count, [i for i, _ in leaf.forced]] = 1.0
            row += count
        states = sets.moves.base + sets.moved(before)
        pool = following.pool
        found = [pool.rectified(pool.windows_of(states).max(axis=2))]
        swaps, at = [np.full(len(before), -1, dtype=np.int64)], [np.arange(len(before))]
        if free.any():
            places = following.place[free.any(axis=0)]
            start, end = int(places.min()), int(places.max()) + 1
            part = slice(following.starts[start], following.starts[end])
            swap, row_of = np.nonzero(free[:, part].T)
            found.append(following.pooled(states, positions, np.arange(start, end))[swap, row_of])
            swaps.append(swap + part.start)
            at.append(row_of)
        rows = np.concatenate(at)
        made = np.concatenate([before[rows], np.concatenate(swaps)[:, None]], axis=1)
        return Block(None, made, region[rows], np.concatenate(found))

    def free(self, leaf: Leaf) -> NDArray[np.bool_]:
        if leaf.free not in self.allowed:
            sets, found = self.sets, np.zeros(int(self.sets.first[-1]), dtype=np.bool_)
            for i, cell in enumerate(sets.cells.rows[leaf.free]):
                if cell >= 0:
                    found[swaps_of(sets, i, int(cell))] = True
            self.allowed[leaf.free] = found
        return self.allowed[leaf.free]


def cut_of(sets: Sets, block: Block, rows: NDArray[np.int64]) -> Floats:
    """[rows, width]: the cut of these sentences of a block."""
    return block.cut[rows] if block.cut is not None else sets.moves.base + sets.moved(block.swaps[rows])
