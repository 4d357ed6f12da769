"""The least over all sets of moves of different words of what these cost (FORMAT.md, section 18.4).

What a move costs in a chain depends on how many moves of the set are not later, and on the next word of the set: in
ascending chains the one after it, in descending ones the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..network import Floats, Indices


@dataclass(frozen=True, eq=False)
class Charges:
    """Of some chains of one order, summed over levels: of pieces with at most 0, 1, ... words."""

    fixed: Floats
    """[words + 1]"""
    moved: Floats
    """[r, moves, words + 1]: moves ascend by word."""


def least_sets(rises: Floats, words: Indices, up: Charges, down: Charges) -> tuple[Floats, list[int]]:
    """[r + 1]: for sets of s moves, s = 0 .. r; and the moves of the worst set. `words` [moves]: the word of each move,
    ascending from 0; `rises` [moves]."""
    room, end = up.moved.shape[0], up.fixed.shape[0] - 1
    found = np.full(room + 1, np.inf)
    found[0] = up.fixed[end] + down.fixed[end]
    chosen: list[int] = []
    if not len(rises):
        return found, chosen
    starts = np.searchsorted(words, np.arange(end))
    earlier = np.arange(end)[None, :] < words[:, None]
    for s in range(1, room + 1):
        best = rises + up.fixed[words] + down.moved[s - 1, :, end]
        ways: list[tuple[Floats, Indices]] = []
        for i in range(2, s + 1):
            each = best[:, None] + up.moved[i - 2, :, :end]  # [moves, next word]
            least = np.minimum.reduceat(each, starts, axis=0)  # [word, next word]
            total = np.where(earlier, least.T[words] + down.moved[s - i, :, :end][:, ::-1], np.inf)
            ways.append((each, total.argmin(axis=1)))
            best = rises + total.min(axis=1)
        last = best + up.moved[s - 1, :, end] + down.fixed[end - 1 - words]
        found[s] = last.min()
        if not found[:s].min() <= found[s]:
            chosen = traced(int(last.argmin()), ways, words, starts)
    return found, chosen


def traced(move: int, ways: Sequence[tuple[Floats, Indices]], words: Indices, starts: Indices) -> list[int]:
    """The moves that led to one."""
    found = [move]
    for each, before in reversed(ways):
        word = int(before[found[-1]])
        own = slice(int(starts[word]), int(starts[word + 1]) if word + 1 < len(starts) else None)
        found.append(int(starts[word]) + int(each[own, words[found[-1]]].argmin()))
    return found[::-1]
