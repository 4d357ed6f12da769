"""Functions of the words by what each option adds, and maxima bounded by such functions (FORMAT.md, section 7).

    v - the sum of falls <= y <= beta + the sum of gains, over the words that are swapped, and not forced,

y being a maximum, or rectifier, that counts swaps. And the lines that bound a rectifier otherwise.

This file is trusted, as check.py is. Standard library only, exact integers only; nothing is refused here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from .. import exact_network as networks
else:
    networks = sys.modules["exact_network"]

GRID = 64
"""What is found of maxima are integers in units of 2**-GRID, rounded safely."""
HEIGHTS = 64
"""A height is in HEIGHTS parts of the way from the least beta to the constant bound."""
STAIRS = 128
"""A value of a table is a height and STAIRS times a number of stairs; of a rectifier one more, below it is a slope."""
HIGHEST = 8 * STAIRS + HEIGHTS

SLOPE_BITS = 16
"""Slopes of upper lines are multiples of 2**-SLOPE_BITS."""

Gains = Mapping[int, Sequence[int]]
"""What each option of a word adds, the original nothing; of words that are not there none adds anything."""

NO_HEIGHTS: Mapping[int, int] = {}


class Rises(dict[tuple[int, int], int]):
    """A function of the words: for every (word, mask) the most that one of these options adds, the original nothing.

    `base` is its number for the original sentence, `added` what each option of every word that it depends on adds to
    that, and `order` the words with a swap that adds something, the most first.
    """

    def __init__(self, base: int, added: Gains) -> None:
        self.base, self.added = base, added
        self.order = sorted([(max(each), i) for i, each in added.items() if max(each) > 0], reverse=True)

    def __missing__(self, key: tuple[int, int]) -> int:
        i, mask = key
        self[key] = greatest(self.added.get(i, ()), mask)
        return self[key]


def greatest(added: Sequence[int], mask: int) -> int:
    """The most that one of these options adds, or 0."""
    return max([each for option, each in enumerate(added) if mask >> option & 1], default=0)


def relaxed(layer: networks.Rectifier, c: int, low: int, high: int, slope: int | None) -> tuple[int, int]:
    """(a, t) with c y >= c (a x + t) for y = max(x, x p / q), x in [low, high]; both times q and 2**SLOPE_BITS."""
    p, q = layer.p, layer.q
    if low >= 0 or high <= 0:
        return (q if low >= 0 else p) << SLOPE_BITS, 0
    if c > 0:
        chosen = (q if high > -low else p) << SLOPE_BITS
        return chosen if slope is None or slope > HEIGHTS else max(p << SLOPE_BITS, q * slope << (SLOPE_BITS - 6)), 0
    width = (high - low) * q
    s = (((high * q - p * low) << (SLOPE_BITS + 1)) + width) // (2 * width)
    return q * s, max(((p << SLOPE_BITS) - q * s) * low, ((1 << SLOPE_BITS) - s) * q * high)


def up(number: int, scale: int) -> int:
    """number / scale, in units of the grid."""
    return -((-number << GRID) // scale)


class Root(NamedTuple):
    """An element of the cut: what its number is over, for the original sentence, and what options add to that, all
    exact; what options add, and take, in units of the grid, rounded up; and of these the greatest of each word, or
    0."""

    scale: int
    base: int
    added: Gains
    steps: Gains
    most: dict[int, int]
    drops: Gains
    deepest: dict[int, int]

    def highest(self, forced: dict[int, int]) -> int:
        """Where the forced words, with these masks, are swapped as they raise it most, and no others."""
        more = [greatest(self.added[i], forced[i]) for i in forced.keys() & self.added.keys()]
        return up(self.base + sum(more), self.scale)

    def lowest(self, forced: dict[int, int]) -> int:
        """The same where they lower it most, rounded down."""
        less = [greatest([-each for each in self.added[i]], forced[i]) for i in forced.keys() & self.added.keys()]
        return -up(sum(less) - self.base, self.scale)


Side = tuple[int, Gains]
"""A constant, and what swaps add to it, or take from it."""


class Line(NamedTuple):
    """What bounds a maximum: a constant from below, functions from above and below; without the last an element of
    its window does."""

    low: int
    above: Side
    below: Side | None = None


Stair = tuple[int, Gains]
"""The least value of a root, and how far the words that lower it do, by option."""


class Counted:
    """The maxima of one text that count swaps; `space` is that of check.py, `words` its sentences of a region."""

    def __init__(self, space: Any) -> None:
        self.space, self.network = space, space.network
        self.of = lru_cache(None)(self.roots)
        self.seen = lru_cache(None)(self.root)

    def roots(self, top: int) -> tuple[list[int], bool]:
        """What an element is computed from through rectifiers and maxima alone; whether a rectifier is one of them."""
        rectified = False

        def define(i: int, c: int) -> Iterable[tuple[int, int]] | None:
            nonlocal rectified
            layer = self.network.owner[i]
            if isinstance(layer, networks.Rectifier):
                rectified = True
                return [(layer.sources[i - layer.start], c)]
            if isinstance(layer, networks.Maximum):
                window = layer.windows[i - layer.start]
                return [(source, c) for source in layer.sources[window.start : window.stop]]
            return None

        return sorted(networks.substitute({top: 1}, define)), rectified

    def may(self, top: int, value: int = STAIRS) -> bool:
        """Whether a table may have this value for an element: a slope, or heights and stairs of one that counts swaps,
        whose roots are affine in the words."""
        owner, bend = self.network.owner, isinstance(self.network.owner[top], networks.Rectifier)
        if bend and value <= HEIGHTS:
            return True
        in_range = STAIRS * bend <= value <= HIGHEST - STAIRS * (not bend) and value % STAIRS <= HEIGHTS
        return in_range and all(not owner[i].depth for i in self.of(top)[0])

    def root(self, i: int) -> Root:
        slot = self.network.slot[i]
        scale, added = self.space.scales[slot], dict(self.space.movers[slot])
        steps = {word: [up(each, scale) for each in each_of] for word, each_of in added.items()}
        drops = {word: [max(0, up(-each, scale)) for each in each_of] for word, each_of in added.items()}
        most, deepest = ({word: max(0, *each) for word, each in ways.items()} for ways in (steps, drops))
        return Root(scale, self.space.base[slot], added, steps, most, drops, deepest)

    def line(self, words: Any, top: int, low: int, constant: int, value: int) -> Line | None:
        """Of an element between `low` and the constant bound, whose value in a table is this; None where that is the
        slope of a rectifier."""
        bend = isinstance(self.network.owner[top], networks.Rectifier)
        if bend and value < STAIRS:
            return None
        stairs, height = divmod(value - STAIRS * bend, STAIRS)
        above = self.above(words, top, constant, height)
        if not stairs:
            return Line(low, above)
        taken, low = self.taken(words, top, low)
        return Line(low, above, self.below(words, [each for each in taken[:stairs] if each[0] > low], low))

    def above(self, words: Any, top: int, constant: int, height: int) -> Side:
        """beta, and gains, at this height of HEIGHTS."""
        found, rectified = self.of(top)
        roots, forced = [self.seen(i) for i in found], dict(words.forced)
        bases = [root.highest(forced) for root in roots]
        least = max(*bases, 0) if rectified else max(bases)
        if constant <= least or height == HEIGHTS:
            return constant, {}
        beta, gains = least - (least - constant) * height // HEIGHTS, dict[int, list[int]]()
        for i, root, base in zip(found, roots, bases, strict=True):
            # A root whose upper bound is this far below: its base and steps are rounded by less than one unit each.
            if words.element(self.network.slot[i])[1] + 1 + len(words.masks) > beta:
                self.add(words, root, beta - base, gains)
        return beta, gains

    def add(self, words: Any, root: Root, slack: int, gains: dict[int, list[int]]) -> None:
        """The gains of a root that lacks `slack` to beta."""
        masks = words.masks
        able = [i for i in root.steps if masks[i] & 1 and masks[i] > 1]
        most = {i: max(0, greatest(root.steps[i], masks[i])) if i in words.lacking else root.most[i] for i in able}
        total = sum(sorted(most.values(), reverse=True)[: words.room])
        if total > slack:
            for i in able:
                share, known = slack * most[i] // total, gains.get(i) or [0] * len(root.steps[i])
                gains[i] = [max(before, step - share) for before, step in zip(known, root.steps[i], strict=True)]

    def taken(self, words: Any, top: int, low: int) -> tuple[list[Stair], int]:
        """Roots no two of which one word lowers, the greatest first, and what the element is at least. Those that are
        not above `low`, as any that no word lowers, would raise nothing."""
        forced, used, taken = dict(words.forced), set[int](), list[Stair]()
        roots = [self.seen(i) for i in self.of(top)[0]]
        for least, _, root in sorted([(root.lowest(forced), -at, root) for at, root in enumerate(roots)], reverse=True):
            if least <= low:
                break
            lowering = {i: root.drops[i] for i in root.drops if self.lowers(words, root, i)}
            if used.isdisjoint(lowering):
                used.update(lowering)
                taken.append((least, lowering))
                if len(taken) > words.room:
                    return taken, least
        return taken, low

    def lowers(self, words: Any, root: Root, i: int) -> bool:
        """Whether a word that may be swapped, and may not, lowers a root."""
        mask = words.masks[i]
        if not mask & 1 or mask == 1:
            return False
        return (greatest(root.drops[i], mask) if i in words.lacking else root.deepest[i]) > 0

    def below(self, words: Any, stairs: Sequence[Stair], low: int) -> Side:
        """From the first stair down to `low`: what swaps take, from one stair to the next at most."""
        falls = dict[int, list[int]]()
        for (least, lowering), (next_one, _) in zip(stairs, [*stairs[1:], (low, {})], strict=False):
            for i, drops in lowering.items():
                known = falls.get(i) or [0] * len(drops)
                falls[i] = [before + min(drop, least - next_one) for before, drop in zip(known, drops, strict=True)]
        return stairs[0][0] if stairs else low, falls

    def maximum(self, words: Any, function: Any, more: Sequence[tuple[int, Gains]]) -> int:
        """The greatest sum, over the sentences of a region, of a function and of the gains times c, which are in units
        of the grid; `more` has (c, gains) with c > 0, which count for the words that are not forced."""
        if not any(gains for _, gains in more):
            alone: int = self.space.maximum(words, function)
            return alone << GRID
        rises: Rises = self.space.rises(function)
        masks, forced = words.masks, {i for i, _ in words.forced}
        raised: dict[int, list[int]] = {}
        for c, gains in more:
            for i, each in gains.items():
                before = raised.get(i) or [0] * len(each)
                raised[i] = [x + c * y for x, y in zip(before, each, strict=True)]
        found = [rises[i, masks[i]] << GRID for i in rises.added if i not in raised and i not in forced]
        for i, each in raised.items():
            own = rises.added.get(i) or [0] * len(each)
            found.append(greatest([(x << GRID) + y for x, y in zip(own, each, strict=True)], masks[i]))
        fixed = rises.base + sum([rises[key] for key in words.forced])
        return (fixed << GRID) + sum([each for each in sorted(found, reverse=True)[: words.room] if each > 0])
