"""All sentences one swap further, of a network that takes its first maxima over many windows.

A swap at place p moves the windows of T_p alone, which have no gap. With z what the swaps made so far make of the
windows (first_maxima.py), one more swap s at p gives

    y_f(s) = r(max(max over t outside T_p of z_tf, max over t in T_p of z_tf + g_tf(s)))

The first maximum comes from running maxima from both sides. The second was computed before, with z of the text itself,
where the swaps made move none of T_p.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import values
from ..query import Query
from .first_maxima import Pool, pool_of

Array = NDArray[Any]

FEW = 4
"""How many times more windows there must be than a swap moves."""


class NextSwaps:
    """Of sentences as values of the cut, their margins against one rival."""

    def __init__(
        self, query: Query, rival: int, there: Array, base: Array, rows: Array, first: Array, wide: int, pool: Pool
    ) -> None:
        """T_p lies within the `wide` windows from first[p] on; the rest as in `of`."""
        self.network, self.label, self.against = query.network, query.label, query.rivals[rival]
        self.there, self.pool, self.first, self.wide = there, pool, first, wide
        self.moved = pool.windows.T[first[:, None] + np.arange(wide)]
        """[P, wide, F]: the elements of the cut that the swaps of a place move."""
        flat = self.moved.reshape(len(first), 1, -1)
        self.rows = np.take_along_axis(rows, flat, axis=2).reshape(*there.shape, *self.moved.shape[1:])
        """[P, C, wide, F]: how."""
        self.place, self.choice = np.nonzero(there)
        """[swaps], place by place."""
        self.starts = np.searchsorted(self.place, np.arange(len(there) + 1))
        """[P + 1]: where the swaps of each place begin."""
        inside = (base[self.moved][:, None] + self.rows).max(axis=2)
        self.alone = inside[self.place, self.choice]
        """[swaps, F]: the second maximum for the text itself."""
        self.meet = (np.abs(first[:, None] - first) < wide).astype(np.float64)

    @classmethod
    def of(cls, query: Query, rival: int, there: Array, base: Array, rows: Array) -> NextSwaps | None:
        """Of swaps [P, C], those that are `there`, that add rows [P, C, width] to the cut of the text, base [width].

        None where the network is another, or swaps move too many windows for this to pay.
        """
        pool = pool_of(query.network)
        if pool is None or not len(there):
            return None
        touched = (rows != 0).any(axis=1)[:, pool.windows].any(axis=1)
        count, some = touched.shape[1], touched.any(axis=1)
        first = np.where(some, touched.argmax(axis=1), 0)
        last = np.where(some, count - 1 - touched[:, ::-1].argmax(axis=1), 0)
        wide = int((last - first).max()) + 1
        if FEW * wide > count:
            return None
        return cls(query, rival, there, base, rows, np.minimum(first, count - wide), wide, pool)

    def move(self, states: Array, row: Array, place: Array, choice: Array) -> None:
        """These rows of `states` [n, width], in place, after one swap more each: as far as windows read them."""
        states[row[:, None, None], self.moved[place]] += self.rows[place, choice]

    def swaps_at(self, places: Array) -> Array:
        """The swaps at these places, place by place."""
        return np.flatnonzero(np.isin(self.place, places))

    def pooled(self, states: Array, made: Array, places: Array) -> Array:
        """[swaps at these places, n, F]: y. `made` [n, P]: 1 where a swap was made, else 0; `places` ascend."""
        z = states.take(self.pool.windows.T.reshape(-1), axis=1).reshape(len(states), -1, len(self.pool.windows))
        count = z.shape[1]
        before, behind = (np.full((count + 1, len(z), z.shape[2]), -np.inf) for _ in range(2))
        for t in range(count):
            np.maximum(before[t], z[:, t], out=before[t + 1])
            np.maximum(behind[count - t], z[:, count - t - 1], out=behind[count - t - 1])
        first = self.first[places]
        outside = np.maximum(before[first], behind[first + self.wide])
        swaps = self.swaps_at(places)
        number = np.searchsorted(places, self.place[swaps])
        y = outside[number]
        np.maximum(y, self.alone[swaps, None], out=y)
        row, place = np.nonzero(made @ self.meet[:, places])
        if len(row):
            at = places[place]
            inside = (states[row[:, None, None], self.moved[at]][:, None] + self.rows[at]).max(axis=2)
            pair, choice = np.nonzero(self.there[at])
            greatest = np.maximum(outside[place[pair], row[pair]], inside[pair, choice])
            y[np.searchsorted(number, place)[pair] + choice, row[pair]] = greatest
        return self.pool.rectified(y)

    def margins(self, states: Array, made: Array, places: Array) -> Array:
        """[n, swaps at these places]."""
        y, node = self.pooled(states, made, places), self.network.nodes[self.pool.node]
        given = {self.pool.node: y.reshape(-1, *node.shape)}
        logits = values(self.network, given=given)[len(self.network.nodes) - 1][:, 0]
        return np.asarray(logits[:, self.label] - logits[:, self.against]).reshape(y.shape[:2]).T
