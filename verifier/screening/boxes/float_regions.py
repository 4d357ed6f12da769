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
SHORT = 64
"""So many numbers are added up sooner by a product."""
CHUNK = 1 << 16
"""Numbers worked on at a time: they should stay in the cache."""


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
        """[n, R] twice: what rows [R, inputs] are in the middle, and how far they go from there, but for rounding."""
        return self.middle @ rows.T, self.radius @ np.abs(rows).T

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

    def beyond(self, regions: Indices, rows: Floats, center: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        """[P] twice: of pairs of a region and a row [P, inputs] bounds of the row where the plane holds, by the value
        in the middle and the greatest sum of absolute terms.

        For every u >= 0 a row c x is at most the greatest (c + u s) x less u t. That is convex in u and turns where
        some c_i + u s_i is 0: it is taken at the first turn beyond which it does not fall, or the last, as the checker
        does. The turns for the least c x are those of -c: sorted, -c_i / s_i has both, one side below 0 and one above.
        """
        step, low, high = max(1, CHUNK // max(1, rows.shape[1])), center.copy(), center.copy()
        middle, radius, size = self.middle, self.radius, np.abs(self.slopes)
        inner, falling = (self.slopes * middle).sum(axis=1) - self.least, 2 * size * radius
        outer = (size * self.reach).sum(axis=1) + np.abs(self.least)
        unit = growth(4.0 * rows.shape[1] + 32) * 2 * SLOP
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            at, c = regions[part], rows[part]
            s, r, p = self.slopes[at], radius[at], inner[at]
            for end, sign, u in zip((low, high), (-1.0, 1.0), turns(c, s, falling[at], p), strict=True):
                turned = u[:, None] * s
                (np.subtract if sign < 0 else np.add)(turned, c, out=turned)
                np.abs(turned, out=turned)
                error = unit * (sizes[part] + u * outer[at]) + TINY
                end[part] += sign * (u * p + np.einsum("pi,pi->p", turned, r) + error)
        return low, high


def turns(rows: Floats, slopes: Floats, falling: Floats, inner: Floats) -> tuple[Floats, Floats]:
    """[P] twice: u for the least and for the greatest of rows c, or 0 where there is no turn.

    With p = (s x in the middle) - t the bound first falls by half the sum of `falling`, less p, and by so much less
    beyond each turn.
    """
    found = -rows / slopes
    found[~np.isfinite(found)] = 0.0
    pairs, count = np.arange(len(rows)), rows.shape[1]
    order = np.argsort(found, axis=1) + count * pairs[:, None]
    found, passed = found.take(order), added(falling.take(order))
    half, below, others = passed[:, -1] / 2, counted(found < 0), counted(found <= 0)
    least = np.minimum(counted(passed <= (half + inner)[:, None]), below - 1)
    most = np.minimum(np.maximum(counted(passed < (half - inner)[:, None]), others), count - 1)
    least, most = -found[pairs, np.maximum(least, 0)], found[pairs, most]
    return np.where(below > 0, least, 0.0), np.where(others < count, most, 0.0)


def counted(flags: Flags) -> Indices:
    """[P], by a product: several times as fast as a sum of rows."""
    return np.asarray((flags @ np.ones(flags.shape[1])).astype(np.int64))


def added(values: Floats) -> Floats:
    """What the entries of each row add up to, as far as each, by a product where rows are short."""
    count = values.shape[1]
    return values @ np.triu(np.ones((count, count))) if count <= SHORT else np.cumsum(values, axis=1)


def joined(parts: Sequence[Regions]) -> Regions:
    if len(parts) == 1:
        return parts[0]
    return Regions(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Regions)))


def crossed(low: Floats, high: Floats) -> Flags:
    """[n]: whether some low end lies above the high one, by more than rounding may make of it."""
    far = low - high > APART * (np.abs(low) + np.abs(high))
    return np.asarray(far.any(axis=1))
