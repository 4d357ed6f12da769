"""Networks that take maxima over windows of words: a swap needs the windows that its word is in, and of all others the
maximum alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Floats, Indices, Maximum, Network, Rearrangement, Rectifier, Table

from ..sentence_answers import Without
from .laid_texts import answers
from .position_rows import CELLS, PositionRows
from .position_table import added_at

Array = NDArray[Any]
FEW = 0.5
"""Of all windows; where a word is in more of them, the maximum over the others spares little."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A maximum that reads the cut through rectifiers alone; a maximum of rectified values is the rectified maximum."""

    node: int
    cells: Indices
    """[windows, outputs]: numbers of the cut."""
    slopes: tuple[float, ...]
    """Of the rectifiers."""

    @classmethod
    def behind(cls, network: Network, cut: int) -> Pool | None:
        """The one that is all that reads this node of the cut."""
        part, at, slopes = network.cut_parts[cut], cut, list[float]()
        index = np.arange(part.start, part.stop)
        while len(network.readers[at]) == 1:
            (at,) = network.readers[at]
            node = network.nodes[at]
            match node.layer:
                case Rearrangement(order) if len(node.inputs) == 1:
                    index = index.reshape(-1)[order]
                case Rectifier(slope):
                    slopes.append(slope)
                case Maximum():
                    return cls(at, index.reshape(node.size, -1).T, tuple(slopes))
                case _:
                    return None
        return None


@dataclass(frozen=True, eq=False)
class Windows:
    """value(window) = base[window] + what the words at its positions add.

    The word at position p is in no windows but first[p], first[p] + 1, ..., first[p] + reach - 1.
    """

    pool: Pool
    base: Floats
    """[windows, outputs]."""
    first: Indices
    """[positions], ascending."""
    reach: int
    weights: Floats
    """[positions, numbers of a word, reach * outputs]."""

    @classmethod
    def of(cls, pool: Pool, rows: PositionRows) -> Windows | None:
        """None where a word is in many of the windows."""
        touched = np.any(rows.reached[:, pool.cells], axis=2)
        windows, used = touched.shape[1], touched.any(axis=1)
        starts = np.where(used, touched.argmax(axis=1), windows - 1)
        stops = np.where(used, windows - touched[:, ::-1].argmax(axis=1), 0)
        first = np.minimum.accumulate(starts[::-1])[::-1]
        reach = max(1, int((stops - first).max()))
        if reach > FEW * windows:
            return None
        first = np.minimum(first, windows - reach)
        within = pool.cells[first[:, None] + np.arange(reach)].reshape(len(first), -1)
        if within.size * rows.numbers > CELLS:
            return None
        return cls(pool, rows.base[pool.cells], first, reach, rows.weights(within))

    @property
    def outputs(self) -> int:
        return int(self.base.shape[1])

    @property
    def of_swap(self) -> int:
        return self.reach * self.outputs


@dataclass(frozen=True, eq=False)
class WindowTable:
    """Of every maximum its windows; the rest of the network reads the maxima."""

    network: Network
    vectors: Floats | Table
    windows: tuple[Windows, ...]

    @classmethod
    def of(cls, rows: PositionRows) -> WindowTable | None:
        """None where maxima over windows are not all that reads the cut."""
        pools = [Pool.behind(rows.network, node) for node in rows.network.cut]
        found = [None if pool is None else Windows.of(pool, rows) for pool in pools]
        windows = tuple(one for one in found if one is not None)
        return cls(rows.network, rows.vectors, windows) if len(windows) == len(found) else None

    @property
    def of_text(self) -> int:
        """Its windows, and the maxima before and behind each."""
        return 3 * sum(one.base.size for one in self.windows)

    @property
    def of_swap(self) -> int:
        return sum([one.of_swap for one in self.windows])

    def texts(self, tokens: Array) -> WindowTexts:
        return WindowTexts(self, tokens)


@dataclass(frozen=True, eq=False)
class WindowTexts:
    """States are the values of all windows that words of these texts are in, laid end to end."""

    table: WindowTable
    tokens: Array
    pools: tuple[PooledTexts, ...] = field(init=False)

    def __post_init__(self) -> None:
        pools = tuple(PooledTexts(one, self.table.vectors, self.tokens) for one in self.table.windows)
        object.__setattr__(self, "pools", pools)

    @cached_property
    def states(self) -> Array:
        return joined([pool.values(pool.along).reshape(len(self.tokens), -1) for pool in self.pools])

    def moves(self, places: Array, texts: Array, tokens: Array) -> Array:
        return joined([pool.added(places, tokens) - pool.along[places, texts] for pool in self.pools])

    def swapped(self, states: Array, places: Array, moves: Array) -> Array:
        found = states.copy()
        for pool, own, move in self.split(found, moves):
            pool.move(own, places, move)
        return found

    def logits(self, states: Array) -> Array:
        return self.answered([own.max(axis=1) for _, own, _ in self.split(states, states)])

    def logits_swapped(self, states: Array, members: Array, places: Array, moves: Array) -> Array:
        parts = self.split(states, moves)
        return self.answered([pool.swapped(own, members, places, move) for pool, own, move in parts])

    def logits_without(self, way: Without, places: Array, texts: Array, unknown: int | None) -> Array:
        if way == "unknown":
            moves = self.moves(places, texts, np.full(len(places), unknown))
            return self.logits_swapped(self.states, texts, places, moves)
        states = self.states
        return self.answered([pool.deleted(own, places, texts) for pool, own, _ in self.split(states, states)])

    def split(self, states: Array, moves: Array) -> list[tuple[PooledTexts, Array, Array]]:
        """Of each pool its part of the states [n, windows, outputs], and of moves or whatever is given for them."""
        found, at, start = list[tuple[PooledTexts, Array, Array]](), 0, 0
        for pool in self.pools:
            size, moved = pool.end * pool.windows.outputs, pool.windows.of_swap
            own = states[:, at : at + size].reshape(len(states), pool.end, pool.windows.outputs)
            found.append((pool, own, moves[:, start : start + moved]))
            at, start = at + size, start + moved
        return found

    def answered(self, maxima: list[Array]) -> Array:
        known = dict[int, Array]()
        network = self.table.network
        for pool, found in zip(self.pools, maxima, strict=True):
            best = np.maximum(found, pool.floor)
            for slope in pool.windows.pool.slopes:
                best = np.maximum(best, slope * best)
            node = pool.windows.pool.node
            known[node] = best.reshape(len(best), *network.nodes[node].shape)
        return answers(network, known)


@dataclass(frozen=True, eq=False)
class PooledTexts:
    """The windows of one maximum, of texts with these tokens."""

    windows: Windows
    vectors: Floats | Table
    tokens: Array

    @property
    def words(self) -> int:
        return int(self.tokens.shape[1]) - 1

    @cached_property
    def end(self) -> int:
        """Windows behind hold padding alone."""
        return int(self.windows.first[self.words - 1]) + self.windows.reach

    @cached_property
    def padded(self) -> Array:
        """[windows, outputs]: with the padding behind all words, and zeros in their place."""
        found = self.windows.base.copy()
        behind = np.arange(self.words, len(self.windows.first))
        # where there is padding behind every word, the last column is padding
        added = self.added(behind, self.tokens[:1, -1].repeat(len(behind)))
        for position, move in zip(behind.tolist(), self.by_window(added).swapaxes(0, 1), strict=True):
            start = self.windows.first[position]
            found[start : start + self.windows.reach] += move
        return found

    @cached_property
    def floor(self) -> Array:
        """[outputs]: the maximum over the windows of padding."""
        return np.asarray(self.padded[self.end :].max(axis=0, initial=-np.inf))

    @cached_property
    def along(self) -> Array:
        """[words, texts, reach * outputs]: what the texts' own tokens add."""
        return self.along_of(self.tokens[:, :-1])

    def along_of(self, tokens: Array) -> Array:
        return np.asarray(self.vectors[tokens.T] @ self.windows.weights[: tokens.shape[1]])

    def added(self, positions: Array, tokens: Array) -> Array:
        return added_at(self.vectors, self.windows.weights, positions, tokens)

    def values(self, along: Array) -> Array:
        """[texts, windows, outputs]."""
        found = np.repeat(self.padded[None, : self.end], along.shape[1], axis=0)
        for place, added in enumerate(along.reshape(*along.shape[:2], self.windows.reach, self.windows.outputs)):
            start = self.windows.first[place]
            found[:, start : start + self.windows.reach] += added
        return np.asarray(found)

    def move(self, states: Array, places: Array, moves: Array) -> None:
        every, starts = np.arange(len(states)), self.windows.first[places]
        for number, move in enumerate(self.by_window(moves)):
            states[every, starts + number] += move

    def by_window(self, moves: Array) -> Array:
        """[reach, n, outputs]."""
        return np.asarray(moves.reshape(len(moves), self.windows.reach, self.windows.outputs).swapaxes(0, 1))

    def swapped(self, states: Array, members: Array, places: Array, moves: Array) -> Array:
        """[pairs, outputs]: the maximum, after one swap more."""
        starts = self.windows.first[places]
        best = before(states)[members, starts]
        np.maximum(best, behind(states)[members, starts + self.windows.reach], out=best)
        for number, move in enumerate(self.by_window(moves)):
            np.maximum(best, states[members, starts + number] + move, out=best)
        return np.asarray(best)

    def deleted(self, states: Array, places: Array, texts: Array) -> Array:
        """[n, outputs]: the maximum over the windows of a text without the word at a place: as they were before it, as
        they are behind it where every word is one position further ahead, and between them some of both."""
        first, reach, along = self.windows.first, self.windows.reach, self.along
        ahead = self.along_of(self.tokens[:, 1:])
        shifted, starts = self.values(ahead), first[places]
        best = before(states)[texts, starts]
        np.maximum(best, behind(shifted)[texts, starts + reach], out=best)
        between = shifted[texts[:, None], starts[:, None] + np.arange(reach)]
        for back in range(1, self.words):
            earlier = places - back
            apart = starts - first[np.maximum(earlier, 0)]
            here = np.flatnonzero((earlier >= 0) & (apart < reach))
            if not len(here):
                break
            at = earlier[here], texts[here]
            own = (along[at] - ahead[at]).reshape(len(here), reach, -1)
            for gap in np.unique(apart[here]).tolist():
                some = apart[here] == gap
                between[here[some], : reach - gap] += own[some, gap:]
        return np.asarray(np.maximum(best, between.max(axis=1)))


def before(states: Array) -> Array:
    """[n, windows + 1, outputs]: the maximum over all windows before each."""
    found = np.empty((len(states), states.shape[1] + 1, states.shape[2]))
    found[:, 0] = -np.inf
    for window in range(states.shape[1]):
        np.maximum(found[:, window], states[:, window], out=found[:, window + 1])
    return found


def behind(states: Array) -> Array:
    """[n, windows + 1, outputs]: the maximum over each window and all behind it."""
    return np.asarray(before(states[:, ::-1])[:, ::-1])


def joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
