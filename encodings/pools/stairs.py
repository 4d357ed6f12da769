"""Maxima of what is affine in the words, bounded from below by a sum over the words that are swapped.

    y = max over windows t of r(z_t) >= v_1 - sum over the stairs i and the swaps s of min(e_i(s), v_i - v_(i+1)),

v_1 >= v_2 >= ... the values of windows no two of which one word lowers, e_i(s) how far s lowers the i-th, the last v
a bound l of y itself (FORMAT.md, section 7): to take y from one stair to the next a swap is needed for each. Of more
such windows than there are swaps one keeps its value, which is what makes l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .counted_swaps import LOWEST, Roots, at_windows, first_greatest, ranks

Array = NDArray[Any]

WINDOWS_OF_A_WORD = 8
"""More of one element that a word lowers, and few have no word in common."""
PAIRS = 1 << 25
"""Pairs of windows of one element each: memory."""


class Lowering:
    """One maximum, and the swaps [P, C] of a text that lower it, which add rows [P, C, width] to the cut."""

    def __init__(self, roots: Roots, rows: Array) -> None:
        count, choices, width = rows.shape
        elements, most = roots.columns.shape
        self.columns = np.where(roots.columns < 0, width, roots.columns)
        """[E, most]; `width` for none."""
        lowers = np.concatenate([rows.min(axis=1) < 0, np.zeros((count, 1), dtype=bool)], axis=1)[:, self.columns]
        window, place = np.nonzero(lowers.reshape(count, elements * most).T)
        rank = ranks(window)
        shape = elements * most, int(rank.max(initial=0)) + 1
        self.places = np.full(shape, -1)
        """[E * most, reach]: that lower a window; -1 for none."""
        self.drops = np.zeros((*shape, choices))
        """[E * most, reach, C]: how far each swap does."""
        self.places[window, rank] = place
        self.drops[window, rank] = np.maximum(-rows[place, :, self.columns.reshape(-1)[window]], 0.0)
        self.shared = np.full((elements, most, most), -1, dtype=np.int16)
        """The last place that lowers both of two windows of an element; -1 for none."""
        place, window = np.nonzero(lowers.reshape(count, elements * most))
        element, own = np.divmod(window, most)
        rank = ranks(place * elements + element)
        by_rank = np.full((int(rank.max(initial=0)) + 1, count, elements), -1)
        by_rank[rank, place, element] = own
        for one in by_rank:
            for other in by_rank:
                place, element = np.nonzero((one >= 0) & (other >= 0))
                pairs = element, one[place, element], other[place, element]
                self.shared[pairs] = np.maximum(self.shared[pairs], place)  # places ascend: the last of equals stays
        self.swaps = count * choices
        self.slots: tuple[Array, Array] | None = None

    @staticmethod
    def able(roots: Roots, rows: Array) -> bool:
        """Whether the tables are small."""
        elements, most = roots.columns.shape
        if elements * most * most > PAIRS or len(rows) > np.iinfo(np.int16).max:
            return False
        lowers = np.concatenate([rows.min(axis=1) < 0, np.zeros((len(rows), 1), dtype=bool)], axis=1)[:, roots.columns]
        return bool(lowers.sum(axis=2).max(initial=0) <= WINDOWS_OF_A_WORD)

    def stairs(self, base: Array, low: Array, start: Array, left: Array, most: Array) -> Stairs:
        """In regions with these least values `base` [n, width] of the cut without further swaps, and lower bounds
        low [n, E] of the elements; `most` [n or 1, E]: how many stairs each has."""
        own = at_windows(self.columns, base)
        size = np.abs(np.where(own > LOWEST, own, 0.0)).max(axis=2)
        value = np.where(own > low[:, :, None], own, LOWEST)
        element = np.arange(len(self.columns))
        least, going = low, np.broadcast_to(most > 0, low.shape).copy()
        found = list[tuple[Array, Array]]()
        for taken in range(int(left.max(initial=0)) + 1):
            at = first_greatest(value, size)
            highest = np.take_along_axis(value, at[:, :, None], axis=2)[:, :, 0]
            going &= highest > low
            if not going.any():
                break
            found.append((at, np.where(going, highest, LOWEST)))
            shared = self.shared[element, at]
            ends = going & (left == taken)[:, None]
            low = np.where(ends, highest, low)
            going &= ~ends
            value[shared >= start[:, None, None]] = LOWEST
            np.put_along_axis(value, at[:, :, None], LOWEST, axis=2)
        low = np.where(most > 0, low, least)
        windows = [at + element * self.columns.shape[1] for at, _ in found]
        values = [np.where((each > low) & (number < most), each, low) for number, (_, each) in enumerate(found)]
        widths = [one - other for one, other in zip(values, [*values[1:], low], strict=True)] if values else []
        return Stairs(self, low, np.where(most > 0, values[0] if values else low, np.nan), windows, widths)

    def laid(self, swaps: Array) -> Array:
        """[E * most, reach, C]: where `drops` stand among swaps numbered p * C + c; their number for those that do
        not."""
        if self.slots is None or self.slots[0] is not swaps:
            choices = self.drops.shape[2]
            where = np.full(self.swaps + choices, len(swaps))  # the last of them are those of place -1
            where[swaps] = np.arange(len(swaps))
            self.slots = swaps, where[self.places[:, :, None] * choices + np.arange(choices)]
        return self.slots[1]


@dataclass(eq=False)
class Stairs:
    """Lower bounds in n regions."""

    lowering: Lowering
    low: Array
    """[n, E]: of the elements."""
    top: Array
    """[n, E]: without swaps; NaN where there are none."""
    windows: list[Array]
    """[n, E], of each stair: its window, among all [E * most]."""
    widths: list[Array]
    """[n, E], of each stair: how far it is to the next; 0 where there is none."""
    known: tuple[Array, Array] | None = None

    def fallen(self, weights: Array, swaps: Array) -> Array:
        """[n, R, swaps]: how far each lowers the bounds weighted by [n, R, E], of swaps numbered p * C + c."""
        return np.asarray(weights @ self.falls(swaps))

    def falls(self, swaps: Array) -> Array:
        """[n, E, swaps]"""
        if self.known is None or self.known[0] is not swaps:
            slots = self.lowering.laid(swaps)
            found = np.zeros((*self.low.shape, len(swaps) + 1))
            for windows, widths in zip(self.windows, self.widths, strict=True):
                n, element = np.nonzero(widths > 0)
                window, width = windows[n, element], widths[n, element]
                found[n[:, None, None], element[:, None, None], slots[window]] += np.minimum(
                    self.lowering.drops[window], width[:, None, None]
                )
            self.known = swaps, found[:, :, : len(swaps)]
        return self.known[1]
