"""Regions of a search, drawn at random and listed sentence by sentence, for tests of bounds on them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from swapproof.encodings.bounds.selection import Places

SLACK = 1e-7
"""Of float64 bounds of margins of a few units."""

Floats = NDArray[np.float64]


@st.composite
def region_of(draw: st.DrawFn, places: Places) -> tuple[list[tuple[int, int]], int, int, int | None]:
    """Swaps (place, choice) before `start`, at most `left` more from there on, perhaps some swap at a place before."""
    start = draw(st.integers(0, places.count))
    earlier = st.sets(st.integers(0, start - 1), max_size=start) if start else st.just(set[int]())
    before: set[int] = draw(earlier)
    one_swapped: bool = draw(st.booleans())
    swapped = draw(st.sampled_from(sorted(before))) if before and one_swapped else None
    fixed = [place for place in sorted(before) if place != swapped]
    swaps = [(place, draw(st.integers(0, int(places.there[place].sum()) - 1))) for place in fixed]
    return swaps, start, draw(st.integers(0, places.count)), swapped


def cuts_of(
    places: Places, rows: Floats, base: Floats, region: tuple[list[tuple[int, int]], int, int, int | None]
) -> Floats:
    """The states of all sentences of a region."""
    swaps, start, left, swapped = region
    fixed = base + sum((rows[swap] for swap in swaps), np.zeros_like(base))
    choices = [range(int(places.there[place].sum())) for place in range(places.count)]
    forced = [rows[swapped, choice] for choice in choices[swapped]] if swapped is not None else [np.zeros_like(base)]
    free = range(start, places.count)
    found: list[Floats] = []
    for count in range(min(left, len(free)) + 1):
        for chosen in combinations(free, count):
            for picks in product(*(choices[place] for place in chosen)):
                total = sum((rows[p, c] for p, c in zip(chosen, picks, strict=True)), np.zeros_like(base))
                found.extend(fixed + total + first for first in forced)
    return np.array(found)
