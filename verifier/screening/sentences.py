"""Leaves that enumerate: every sentence of a region evaluated in float64, those within the error told."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .balls import Floats
from .budgets import fitting
from .sets import Sets, is_planned
from .tree import Leaf

AT_ONCE = 1 << 20
"""Numbers in one block of sentences."""


def sentences(sets: Sets, leaf: Leaf) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Blocks of the region's sentences: their cut [n, width], and their swaps [n, up to k] by number, -1 for none.

    A sentence takes one swap of every forced cell and at most as many of the free ones as are left, and keeps the
    ranges of all groups.
    """
    if leaf.spare < 0:
        return
    for cut, swaps in within_number(sets, leaf):
        if is_planned(leaf):
            positions = np.searchsorted(sets.first, swaps, side="right") - 1
            count = len(sets.cells.sizes)
            kept = fitting(leaf.groups, np.where(swaps >= 0, positions, count), count)
            cut, swaps = cut[kept], swaps[kept]
        if len(cut):
            yield cut, swaps


def within_number(sets: Sets, leaf: Leaf) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Leaving smaller groups out of account."""
    spare = leaf.spare
    options = {i: swaps_of(sets, i, cell) for i, cell in leaf.forced}
    free = [(i, swaps_of(sets, i, int(cell))) for i, cell in enumerate(sets.cells.rows[leaf.free]) if cell >= 0]
    later = np.concatenate([*(swaps for _, swaps in free), np.zeros(0, dtype=np.int64)])
    starts = np.cumsum([0, *(len(swaps) for _, swaps in free)])
    stack: list[tuple[tuple[int, ...], int, int]] = [((), 0, 0)]
    forced = list(options.values())
    block: list[tuple[int, ...]] = []
    most = max(1, AT_ONCE // max(1, sets.moves.width))
    while stack:
        made, done, place = stack.pop()
        if done < len(forced):
            stack += [((*made, int(swap)), done + 1, 0) for swap in forced[done]]
            continue
        left = spare - (len(made) - len(forced))
        if left <= 1:
            # One more swap or none: all at once.
            tail = later[starts[place] :] if left else later[:0]
            for first in range(0, len(tail) + 1, most):
                if first == 0:
                    block_swaps = np.concatenate([[-1], tail[: most - 1]])
                else:
                    block_swaps = tail[first - 1 : first - 1 + most]
                yield cut_of(sets, made, block_swaps)
            continue
        block.append(made)
        if len(block) >= most:
            yield together(sets, block)
            block = []
        for at in range(place, len(free)):
            stack += [((*made, int(swap)), done, at + 1) for swap in free[at][1]]
    if block:
        yield together(sets, block)


def swaps_of(sets: Sets, i: int, cell: int) -> NDArray[np.int64]:
    allowed = sets.allowed[cell, : sets.cells.sizes[i] - 1]
    return np.asarray(np.flatnonzero(allowed) + sets.first[i])


def cut_of(sets: Sets, made: tuple[int, ...], last: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Sentences that share all swaps but the last."""
    swaps = np.concatenate([np.tile(np.array(made, dtype=np.int64), (len(last), 1)), last[:, None]], axis=1)
    state = sets.moves.base.copy()
    for swap in made:
        add(sets, state[None], np.array([swap]))
    cut = np.repeat(state[None], len(last), axis=0)
    add(sets, cut, last)
    return cut, swaps


def together(sets: Sets, block: list[tuple[int, ...]]) -> tuple[Floats, NDArray[np.int64]]:
    """Sentences by the lists of their swaps."""
    width = max(map(len, block))
    swaps = np.array([(*made, *[-1] * (width - len(made))) for made in block], dtype=np.int64).reshape(len(block), -1)
    cut = np.repeat(sets.moves.base[None], len(block), axis=0)
    for column in swaps.T:
        add(sets, cut, column)
    return cut, swaps


def add(sets: Sets, cut: Floats, swaps: NDArray[np.int64]) -> None:
    """One swap, or none (-1), to each row."""
    moves = sets.moves
    there = np.flatnonzero(swaps >= 0)
    if moves.dense:
        cut[there] += sets.rows[swaps[there]]
        return
    positions = np.searchsorted(sets.first, swaps[there], side="right") - 1
    for i in np.unique(positions):
        rows = there[positions == i]
        cut[np.ix_(rows, moves.touched[i])] += moves.rows[i][swaps[rows] - sets.first[i]]
