"""Regions of a box certificate (FORMAT.md, section 14.3), many at once: ends, planes, kept bounds, phases.

Every number errs to the safe side: what it says of the answers of a region is true over the reals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..numbers.float64_rounding import SLOP, TINY, UNIT, Floats, growth

Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

APART = 2.0**-30
"""Bounds that cross by less than this part of their size do not count as crossed: the checker's may not."""


@dataclass(eq=False)
class Regions:
    """[n, inputs], [n, neurons] or [n] each. The plane of those that are `planed`: the sum of slopes x is at least
    `least`. Of those that are `fresh` the kept bounds are the bounds."""

    nodes: Indices
    low: Floats
    high: Floats
    planed: Flags
    slopes: Floats
    least: Floats
    kept_low: Floats
    kept_high: Floats
    phases: NDArray[np.int8]
    fresh: Flags

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, index: Indices | Flags | slice) -> Regions:
        return Regions(*(getattr(self, each.name)[index] for each in fields(self)))

    @property
    def reach(self) -> Floats:
        """[n, inputs]: the greatest |x|."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def middle(self) -> Floats:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Floats:
        return np.maximum(self.high - self.low, 0.0) / 2

    def extremes(self, rows: Floats) -> tuple[Floats, Floats]:
        """[n, R] twice: the least and the greatest of rows [R, inputs], but for rounding."""
        center, spread = self.middle @ rows.T, self.radius @ np.abs(rows).T
        return center - spread, center + spread

    def split(self, rows: Indices, inputs: Indices, below: Floats, above: Floats) -> tuple[Regions, Regions]:
        """Both halves of these regions, at a number between `below` and `above` of an input each."""
        first, second, at = self.take(rows), self.take(rows), (np.arange(len(rows)), inputs)
        first.high[at] = np.minimum(first.high[at], above)
        second.low[at] = np.maximum(second.low[at], below)
        return first, second

    def move_ends(self) -> None:
        """By the planes: where s_i > 0, x_i >= high_i - (M - t) / s_i, M being the greatest of s x between the ends."""
        size = np.abs(self.slopes)
        rounding = 4.0 * growth(4.0 * self.low.shape[1] + 32)
        room = (self.slopes * self.middle + size * self.radius).sum(axis=1) - self.least
        room = room + rounding * ((size * self.reach).sum(axis=1) + np.abs(self.least))
        reach = room[:, None] / np.where(size > 0, size, 1.0)
        spare = 8 * UNIT * (self.reach + np.abs(reach)) + TINY
        self.low, self.high = (
            np.where(self.slopes > 0, np.maximum(self.low, self.high - reach - spare), self.low),
            np.where(self.slopes < 0, np.minimum(self.high, self.low + reach + spare), self.high),
        )

    def beyond(self, rows: Floats) -> Floats:
        """[n, R]: for some u >= 0 an upper bound of (c + u s) x, less u t, hence of c x where the plane holds.

        It is convex in u and turns where some c_i + u s_i is 0: the least of all turns is taken, as the checker does.
        """
        middle, radius, bound = self.middle, self.radius, self.reach
        s, size = self.slopes[:, None, :], np.abs(self.slopes)
        against = rows[None] * s < 0
        turns = np.where(against, -rows[None] / np.where(against, s, 1.0), np.inf)
        turns[~np.isfinite(turns)] = np.inf
        order = np.argsort(turns, axis=2)
        turns = np.take_along_axis(turns, order, 2)
        gains = np.take_along_axis(2 * (size * radius)[:, None, :] * against, order, 2)
        room = (self.slopes * middle).sum(axis=1) - self.least
        steep = room[:, None] + (np.where(against, -1.0, 1.0) * (size * radius)[:, None, :]).sum(axis=2)
        slopes = np.concatenate([steep[:, :, None], steep[:, :, None] + np.cumsum(gains, axis=2)], axis=2)
        # The first turn beyond which the bound does not fall, or the last; 0 where there is none.
        count = np.isfinite(turns).sum(axis=2)
        first = np.argmax(slopes >= 0, axis=2)
        first = np.where((slopes >= 0).any(axis=2), first, slopes.shape[2])
        chosen = np.maximum(np.minimum(first, count) - 1, 0)
        u = np.take_along_axis(turns, chosen[:, :, None], 2)[:, :, 0]
        u = np.where((count > 0) & np.isfinite(u), u, 0.0)
        turned = rows[None] + u[:, :, None] * s
        value = (turned @ middle[:, :, None])[:, :, 0] + (np.abs(turned) @ radius[:, :, None])[:, :, 0]
        sizes = bound @ np.abs(rows).T + u * ((size * bound).sum(axis=1) + np.abs(self.least))[:, None]
        value = value - u * self.least[:, None]
        return np.asarray(value + growth(4.0 * rows.shape[1] + 32) * 2 * sizes * SLOP + TINY)


def joined(parts: Sequence[Regions]) -> Regions:
    if len(parts) == 1:
        return parts[0]
    return Regions(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Regions)))


def crossed(low: Floats, high: Floats) -> Flags:
    """[n]: whether some low end lies above the high one, by more than rounding may make of it."""
    far = low - high > APART * (np.abs(low) + np.abs(high))
    return np.asarray(far.any(axis=1))
