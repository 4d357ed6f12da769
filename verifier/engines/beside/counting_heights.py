"""With which heights and stairs the exact engine bounds what counts swaps (FORMAT.md, section 7)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swapproof.encodings.bounds.linear_bounds import NO_HEIGHTS, Heights
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import is_shallow
from swapproof.encodings.network import Rectifier
from swapproof.encodings.pools.counted_swaps import STAIRS, roots_of, worth_counting
from swapproof.encodings.pools.stairs import Lowering

CELLS = 1 << 20
"""Elements times swaps: every region is worth some operations for each."""
USUAL_STAIRS = 3
"""Of maxima: more gain little."""


def usual_heights(places: Places, layers: Mapping[int, int] | None, *, slopes: bool) -> Heights:
    """Heights of 0: no other was better where few swaps are left, and there most regions are. `slopes`: those of
    rectifiers are sought, which have no heights then."""
    network = places.differences.query.network
    if layers is None or is_shallow(network):
        return NO_HEIGHTS
    counting = [index for index in worth_counting(network) if not slopes or index not in layers]
    if sum(network.nodes[index].size for index in counting) * places.swaps.size > CELLS:
        return NO_HEIGHTS
    return {index: np.full(network.nodes[index].size, usual_value(places, index)) for index in counting}


def usual_value(places: Places, index: int) -> int:
    network = places.differences.query.network
    roots = roots_of(network, index)
    stairs = roots is not None and roots.columns.shape[1] > 1 and Lowering.able(roots, places.rows)
    return STAIRS * (USUAL_STAIRS * stairs + isinstance(network.nodes[index].layer, Rectifier))
