"""The bound of the leaf `attention` in float64: an engine tries it, and the screening believes it where it is clear.

    quick = QuickLeaf(space)            quick.bound(options, swaps, rival).least

It is the bound of FORMAT section 17.5 from below, but for rounding: errors are counted in units of 2**-32, so that at
the precision `BITS` the exact leaf's bound is no less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swapproof.encodings.network import Floats
from swapproof.proofs import check

from .cell_forms import Cells
from .cell_moves import CellMoves
from .cell_plan import FAR, Plan, Shape, TooLoose, Unfit

BITS = 48
"""The precision of leaves that are believed without the exact leaf: its own rounding counts for nothing there."""
LARGEST_MARGIN = 2.0**30
"""Of greater ones float64 loses what is not counted."""
MOST = 1 << 25
"""Numbers of all cells that are computed at once."""

Cell = tuple[int | None, int, tuple[int, ...]]
"""The own word, if any, the place of its option, and which terms."""


class QuickBound(NamedTuple):
    """The least margin, and by word how much of it is lost to its worst option."""

    least: float
    falls: dict[int, float]


class QuickLeaf:
    """Of one text."""

    def __init__(self, space: check.Space) -> None:
        self.space, network = space, space.network
        self.shape = Shape(network, space.words, space.ruled(BITS, False).blocks.firm)
        self.known: dict[tuple[tuple[tuple[int, ...], ...], int, int], QuickBound] = {}
        self.slots = np.full(len(network.owner), -1, dtype=np.int64)
        self.slots[list(network.cut)] = np.arange(len(network.cut))
        self.base = np.array([number / scale for number, scale in zip(space.base, space.scales, strict=True)])
        cut = np.array(network.cut, dtype=np.int64)
        self.shape.raised[cut] = self.shape.sinking[cut] & (self.base < -FAR)
        self.base[self.shape.raised[cut]] = -FAR
        self.shifts = [np.zeros((len(options), len(self.base))) for _, options in space.words]
        for own, added in zip(self.shifts, space.shifts, strict=True):
            for slot, numbers in added.items():
                own[:, slot] = [number / space.scales[slot] for number in numbers]

        self.sizes = np.abs(self.base) + sum([np.abs(own).max(axis=0) for own in self.shifts])

    def bound(self, options: tuple[tuple[int, ...], ...], swaps: int, rival: int) -> QuickBound:
        """Of the margin over a rival, in a region: the options of each word. Raises Unfit."""
        key = options, swaps, rival
        if key not in self.known:
            self.known[key] = self.bound_anew(*key)
        return self.known[key]

    def bound_anew(self, options: tuple[tuple[int, ...], ...], swaps: int, rival: int) -> QuickBound:
        (constant, lows), own, room = self.ends(options, swaps, rival)
        moves = CellMoves(own, self.free(options), [room], [-1])
        falls = -np.minimum(np.minimum.reduceat(lows, moves.starts), 0.0) if len(moves) else np.zeros(0)
        return QuickBound(
            float(constant + moves.least(lows[None])[0]),
            dict(zip(moves.words.tolist(), falls.tolist(), strict=True)),
        )

    def free(self, options: Sequence[tuple[int, ...]]) -> frozenset[int]:
        return frozenset([w for w, own in enumerate(options) if 0 not in own])

    def ends(
        self, options: Sequence[tuple[int, ...]], swaps: int, rival: int
    ) -> tuple[tuple[float, Floats], list[tuple[int, ...]], int]:
        """The low of the margin without moves and what each move adds; the options that count; the room."""
        free = self.free(options)
        room = swaps - len(free)
        own = [given if room > 0 or w in free else given[:1] for w, given in enumerate(options)]
        moving = sum([1 << w for w, given in enumerate(own) if len(given) > 1])
        margin = self.space.ruled(BITS, False).margin(self.space.label, rival)
        terms = list(margin.pick([*range(len(self.slots))])) if margin.coefficients else []
        coefficients = np.array([c / margin.scale for c in margin.coefficients])
        lows = np.zeros(sum([len(given) - 1 for given in own]))
        constant = margin.constant / margin.scale
        cells = self.cells(terms, moving, own)
        found = self.bounded(cells, terms, coefficients, own, free, room)
        whole = CellMoves(own, free, [room], [-1])
        at = {move: place for place, move in enumerate(whole.moves)}
        firsts: dict[tuple[int | None, tuple[int, ...]], tuple[float, float, Floats, Floats]] = {}
        for (word, place, which), (low, high, down, up) in zip(cells, found, strict=True):
            if not place:
                firsts[word, which] = low, high, down, up
                constant += low
                lows += down if word is None else np.where(whole.word != word, down, 0.0)
        for (word, place, which), (low, _, down, _) in zip(cells, found, strict=True):
            if word is not None and place:
                first, _, before, _ = firsts[word, which]
                others = CellMoves(own, free, [room - (word not in free)], [word])
                differs = np.where(whole.word != word, down - before, 0.0)
                lows[at[word, place]] += low - first + float(others.least(differs[None])[0])
        if not max(abs(margin.constant / margin.scale), abs(constant), np.abs(lows).max(initial=0.0)) < LARGEST_MARGIN:
            raise Unfit("margins that are too large")
        return (constant, lows), own, room

    def cells(self, terms: Sequence[int], moving: int, own: Sequence[tuple[int, ...]]) -> list[Cell]:
        by_word: dict[tuple[int | None, int], list[int]] = {}
        for place, i in enumerate(terms):
            word = self.shape.owner(i, moving)
            by_word.setdefault((word, self.shape.base_of(i, moving) if word is None else -1), []).append(place)
        return [
            (word, place, tuple(which))
            for (word, _), which in by_word.items()
            for place in range(1 if word is None else len(own[word]))
        ]

    def bounded(
        self,
        cells: Sequence[Cell],
        terms: Sequence[int],
        coefficients: Floats,
        own: Sequence[tuple[int, ...]],
        free: frozenset[int],
        room: int,
    ) -> list[tuple[float, float, Floats, Floats]]:
        """Of each cell what its terms come to."""
        freely = sum([1 << w for w in free])
        reference = self.base + sum([self.shifts[w][given[0]] for w, given in enumerate(own)])
        moves = [(w, option) for w, given in enumerate(own) for option in given[1:]]
        gains = np.zeros((len(self.base), len(moves)))
        for place, (w, option) in enumerate(moves):
            gains[:, place] = self.shifts[w][option] - self.shifts[w][own[w][0]]
        moving = sum([1 << w for w, given in enumerate(own) if len(given) > 1])
        groups: dict[int, list[tuple[int, Plan]]] = {}
        rooms = [room - (place > 0 and word not in free) for word, place, _ in cells]
        for number, (word, _, which) in enumerate(cells):
            left = moving if word is None else moving & ~(1 << word)
            left = left if rooms[number] > 0 else left & freely
            plan = self.shape.plan(tuple([terms[at] for at in which]), left, whole=word is None)
            groups.setdefault(plan.number, []).append((number, plan))
        found: dict[int, tuple[float, float, Floats, Floats]] = {}
        for pairs in groups.values():
            step = max(1, MOST // (len(pairs[0][1].rows) * (1 + len(moves))))
            for start in range(0, len(pairs), step):
                here = pairs[start : start + step]
                numbers = [number for number, _ in here]
                fixed = [-1 if cells[n][0] is None else int(cells[n][0] or 0) for n in numbers]
                base = np.array([reference] * len(here))
                for row, n in enumerate(numbers):
                    word, place, _ = cells[n]
                    if word is not None:
                        base[row] += self.shifts[word][own[word][place]] - self.shifts[word][own[word][0]]
                views = CellMoves(own, free, [rooms[n] for n in numbers], fixed)
                made = Cells(self.shape, views, [each for _, each in here], self.slots, base, gains, self.sizes)
                ends = made.ends(np.array([coefficients[list(cells[n][2])] for n in numbers]))
                for n, low, high, down, up in zip(numbers, *ends, strict=True):
                    found[n] = float(low), float(high), down, up
        return [found[number] for number in range(len(cells))]


__all__ = ["BITS", "QuickLeaf", "TooLoose", "Unfit"]
