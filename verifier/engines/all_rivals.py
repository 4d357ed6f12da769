"""Bounds against all rivals at once: what they close is closed against each, without a split of rivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places

Array = NDArray[Any]


class AllRivals:
    """The least, over the rivals, of how far each margin exceeds its threshold."""

    inherits = False
    following = None
    joining = None

    def __init__(self, places: Places, thresholds: Sequence[float], k: int) -> None:
        self.each = [(LinearBounds(places, rival, k), least) for rival, least in enumerate(thresholds)]
        self.places, self.base, self.rows, self.k = places, places.base, places.rows, self.each[0][0].k

    def margins(self, states: Array) -> Array:
        return np.asarray(np.min([bounds.margins(states) - least for bounds, least in self.each], axis=0))

    def low(
        self, states: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        found = [bounds.low(states, start, left, swapped, allowed) - least for bounds, least in self.each]
        return np.asarray(np.min(found, axis=0))

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array]:
        found = [(bounds.inherited(states, start, left), least) for bounds, least in self.each]
        after, parts = (np.min([pair[end] - least for pair, least in found], axis=0) for end in (0, 1))
        return after, parts
