"""The moves of several views at once, and the least that some of them add (FORMAT section 17.1: least, beside)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats

Array = NDArray[Any]


class CellMoves:
    """All views have the moves of the region; those of a word that is fixed there, or where no room is, add nothing.

    `rooms`: how many words that are not free may move; `fixed`: the word with one option, or -1.
    """

    def __init__(
        self, options: Sequence[Sequence[int]], free: frozenset[int], rooms: Sequence[int], fixed: Sequence[int]
    ) -> None:
        self.moves = [(w, place) for w, own in enumerate(options) for place in range(1, len(own))]
        self.word = np.array([w for w, _ in self.moves], dtype=np.int64)
        first = np.ones(len(self.moves), dtype=np.bool_)
        first[1:] = self.word[1:] != self.word[:-1]
        self.starts = np.flatnonzero(first)
        self.words = self.word[self.starts]
        self.span = np.cumsum(first) - 1
        self.rooms = np.maximum(np.array(rooms, dtype=np.int64), 0)
        freely = np.isin(self.words, sorted(free))
        alive = self.words[None, :] != np.array(fixed, dtype=np.int64)[:, None]
        alive &= freely | (self.rooms[:, None] > 0)
        self.free, self.costly = alive & freely, alive & ~freely
        self.most = self.free.sum(axis=1) + np.minimum(self.rooms, self.costly.sum(axis=1))
        """[views] words that move at once."""
        self.mask = alive[:, self.span].astype(np.float64)
        """[views, moves]"""
        self.top = int(min(max(1, self.rooms.max(initial=0)), max(1, len(self.words))))
        self.places = np.arange(self.top)

    def __len__(self) -> int:
        return len(self.moves)

    def by_views(self, array: Array, axes: int) -> Array:
        """[views, n] with axes of one between."""
        return np.asarray(array.reshape(len(self.rooms), *[1] * (axes - 2), -1))

    def falls(self, gains: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Of gains [views, ..., moves], word by word: the least, 0 at most; the sum of those of free words; those of
        others; and the least of these in order, as many as there is room for."""
        least = np.minimum(np.minimum.reduceat(gains, self.starts, axis=-1), 0.0)
        free = (least * self.by_views(self.free, gains.ndim)).sum(axis=-1)
        others = least * self.by_views(self.costly, gains.ndim)
        ordered = np.sort(others, axis=-1)[..., : self.top]
        return least, free, others, ordered

    def least(self, gains: Floats) -> Floats:
        """[views, ...]: the least that moves of a sentence add."""
        if not self.moves:
            return np.zeros(gains.shape[:-1])
        _, free, _, ordered = self.falls(gains)
        within = self.places < self.rooms[:, None]
        return np.asarray(free + (ordered * self.by_views(within, gains.ndim)).sum(axis=-1))

    def beside(self, gains: Floats) -> Floats:
        """[views, ..., moves]: the least that moves of other words add to each."""
        if not self.moves:
            return np.zeros(gains.shape)
        least, free, others, ordered = self.falls(gains)
        axes, rooms = gains.ndim, self.rooms[:, None]
        whole = (ordered * self.by_views(self.places < rooms, axes)).sum(axis=-1)[..., None]
        rest = (ordered * self.by_views(self.places < rooms - 1, axes)).sum(axis=-1)[..., None]
        at = self.by_views(np.clip(rooms - 1, 0, self.top - 1), axes)
        last = np.take_along_axis(ordered, np.broadcast_to(at, (*ordered.shape[:-1], 1)), axis=-1)
        among = (others <= last) | self.by_views(rooms > self.top, axes)
        costly = free[..., None] + np.where(among, whole - others, rest)
        freely = (free[..., None] + whole) - least
        return np.asarray(np.where(self.by_views(self.free, axes), freely, costly)[..., self.span])
