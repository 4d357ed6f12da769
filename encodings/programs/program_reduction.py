"""What a program of at most k swaps need not contain: swaps that no witness needs, neurons whose side is settled.

    copies      of swaps of one position that change the network's cut alike, the first stays
    dominated   a swap goes when another choice of its position (or none) never leaves a greater margin: with one hidden
                layer, margin after t - margin after t' <= linear part + sum of w_j d_j over active neurons
                + sum of max(0, w_j d_j) over undecided ones, with d = rows[t] - rows[t'] (signs turned where t' is t)
    probing     a swap goes when even with it made, and k - 1 others, a linear bound of the margin exceeds the tolerance

What remains has the same answer to "does a sentence of at most k swaps leave a margin of at most -tolerance against
one of the rivals?", and if so a witness. Bounds are computed in float64 and hold up to its rounding, like solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bounds.linear_bounds import ElementBounds, LinearBounds, Regions
from ..bounds.selection import Places
from ..bounds.shallow_margin import is_shallow, shallow_margin
from ..bounds.swap_differences import Differences
from ..network import Maximum, Rectifier

Array = NDArray[Any]

ROUNDS = 4
"""Probing again with what is left tightens bounds; more rounds found nothing."""
MOST_PROBED = 1 << 30
"""Numbers that one round of probing may take: deep networks cost more than the swaps removed save."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """The swaps left, lower bounds of the margins against the rivals, bounds of what every nonlinear layer reads."""

    differences: Differences
    rivals: tuple[int, ...]
    """Numbers in `query.rivals`."""
    k: int
    margins: Array
    """[rivals]: no sentence of at most k swaps has a smaller margin; above the tolerance, nothing is left to ask."""
    elements: dict[int, tuple[Array, Array]]
    """Node that a nonlinear node reads -> low [size] and high [size] of its values."""
    removed: dict[str, int]
    """How many swaps went, by reason."""


def reduced(
    differences: Differences,
    rivals: tuple[int, ...],
    k: int,
    tolerance: float,
    *,
    probing: bool = True,
    domination: bool = True,
) -> Reduction:
    removed = {"copies": 0, "dominated": 0, "probing": 0}
    k = min(k, len(np.unique(differences.positions)))
    if domination:
        kept = without_copies(differences)
        removed["copies"] += int((~kept).sum())
        differences = restricted(differences, kept)
    for round in range(ROUNDS):
        places = Places.of(differences)
        linear = [LinearBounds(places, rival, k) for rival in rivals]
        whole = Regions(differences.base[None], np.zeros(1, dtype=np.int64), np.array([linear[0].k]), None)
        margins = np.array([float(one.margin(whole)[0][0]) for one in linear])
        if (margins > tolerance).all() or not len(differences.positions):
            break
        kept = np.ones(len(differences.positions), dtype=np.bool_)
        if domination and is_shallow(differences.query.network):
            kept = undominated(places, rivals, linear[0].k)
            removed["dominated"] += int((~kept).sum())
        if probing and kept.sum() * linear[0].cells <= MOST_PROBED:
            needed = np.zeros_like(kept)
            for one in linear:
                if margins[linear.index(one)] <= tolerance:
                    needed |= probed(one, kept) <= tolerance
            removed["probing"] += int((kept & ~needed).sum())
            kept &= needed
        if kept.all() or round == ROUNDS - 1:
            if not kept.all():
                differences = restricted(differences, kept)
            break
        differences = restricted(differences, kept)
    places = Places.of(differences)
    linear_bounds = LinearBounds(places, rivals[0], k)
    whole = Regions(differences.base[None], np.zeros(1, dtype=np.int64), np.array([linear_bounds.k]), None)
    bounds = ElementBounds(linear_bounds, whole)
    nodes = differences.query.network.nodes
    sources = {node.inputs[0] for node in nodes if isinstance(node.layer, Rectifier | Maximum)}
    elements = {source: (bounds.of(source)[0][0], bounds.of(source)[1][0]) for source in sorted(sources)}
    margins = np.array([float(LinearBounds(places, rival, k).margin(whole)[0][0]) for rival in rivals])
    return Reduction(differences, rivals, k, margins, elements, removed)


def restricted(differences: Differences, kept: Array) -> Differences:
    """Without some swaps; the query stays as it was asked."""
    return Differences(
        differences.query,
        differences.positions[kept],
        differences.tokens[kept],
        differences.base,
        differences.rows[kept],
    )


def without_copies(differences: Differences) -> Array:
    """[swaps]: whether a swap changes the cut, and in another way than the swaps of its position before it."""
    seen: set[tuple[int, bytes]] = set()
    kept = np.zeros(len(differences.positions), dtype=np.bool_)
    for swap, (position, row) in enumerate(zip(differences.positions.tolist(), differences.rows, strict=True)):
        key = position, (row + 0.0).tobytes()  # 0.0 for -0.0
        kept[swap] = bool(row.any()) and key not in seen
        seen.add(key)
    return kept


def undominated(places: Places, rivals: tuple[int, ...], k: int) -> Array:
    """[swaps]: whether no other choice of the position does at least as much harm, against every rival, always."""
    count, width = places.swaps.shape
    options = width + 1  # the last: no swap
    worse = np.ones((count, options, options), dtype=np.bool_)
    for rival in rivals:
        shallow = shallow_margin(places, rival)
        down, up = shallow.ends
        if 0 < k < count:
            down, up = (np.partition(part, count - k, axis=0)[count - k :] for part in (down, up))
        # Between two swaps of one position the rest makes at most k - 1 or k: bounds with k hold for both.
        low = shallow.base[:-1] - down.sum(axis=0) * (k > 0)
        high = shallow.base[:-1] + up.sum(axis=0) * (k > 0)
        active, undecided = shallow.weights * (low >= 0), shallow.weights * ((low < 0) & (high > 0))
        rows = np.concatenate([shallow.rows, np.zeros((count, 1, shallow.rows.shape[2]))], axis=1)
        fixed = rows[:, :, :-1] @ active + rows[:, :, -1]
        for first in range(options):
            apart = rows[:, first, None, :-1] - rows[:, :, :-1]  # of the first beyond the others
            most = fixed[:, first, None] - fixed + np.maximum(apart * undecided, 0.0).sum(axis=2)
            # the first is at least as harmful as the others where its margin is never the greater one
            worse[:, first] &= most <= 0
    there = np.concatenate([places.there, np.ones((count, 1), dtype=np.bool_)], axis=1)
    worse &= there[:, :, None] & there[:, None, :]
    order = np.arange(options)
    before = np.asarray(np.less.outer(order, order))
    # Of two that are equal, the first stays; no swap stays before any.
    mutual = worse & worse.transpose(0, 2, 1)
    before[width], before[:, width] = True, False
    removed = ((worse & ~mutual) | (mutual & before & ~np.eye(options, dtype=np.bool_))).any(axis=1)[:, :width]
    kept = np.ones(len(places.differences.positions), dtype=np.bool_)
    kept[places.swaps[removed & places.there]] = False
    return kept


def probed(linear: LinearBounds, kept: Array) -> Array:
    """[swaps]: lower bounds of the margin of sentences that contain a swap (infinite for those not kept)."""
    found = np.full(len(kept), np.inf)
    if linear.k:
        which = np.flatnonzero(kept)
        states = linear.base + linear.differences.rows[which]
        none = np.zeros(len(which), dtype=np.int64)
        found[which] = linear.low(states, none, np.full(len(which), linear.k - 1))
    return found
