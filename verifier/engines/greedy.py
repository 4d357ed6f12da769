"""A cheap attack: take the single swap that hurts most, again and again, then undo what was not needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.pools.next_swaps import NextSwaps
from swapproof.encodings.query import Query

from ..interval import Interval
from .protocol import Budget, Findings, Sentence

CELLS = 1 << 22
"""Numbers in one block of sentences: bounds memory."""
BEAM = 32
"""Sentences from which a search for a witness goes on; ten times as many found no shorter one on four long texts."""


@dataclass(frozen=True)
class Greedy:
    """Scores every single swap in one batch, extends by the best, once against every rival class."""

    name: str = "greedy"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        differences = Differences.of(query)
        if not len(differences.positions):
            return
        for rival in range(len(query.rivals)):
            swaps: list[int] = []
            longest = len(query.space.swappable) if interval.high is None else interval.high - 1
            while len(swaps) < longest and not interval.closed and not budget.spent:
                best = hardest_swap(differences, swaps, rival, budget)
                if best is None:
                    break
                swaps.append(best[0])
                if best[1] <= 0:
                    needed = without_needless(differences, swaps, rival, budget)
                    before = interval
                    interval = yield Sentence(differences.sentence(needed))
                    if interval is not before:
                        break
                    # A tie or a margin within rounding may not replay: then go on from all of them.


def hardest_swap(differences: Differences, swaps: list[int], rival: int, budget: Budget) -> tuple[int, float] | None:
    """The swap at an unused position that leaves the smallest margin, and that margin; None when none lowers it."""
    used = differences.positions[swaps]
    free = np.flatnonzero(~np.isin(differences.positions, used))
    if not len(free):
        return None
    now = differences.base + differences.rows[swaps].sum(axis=0)
    margins = margins_of(differences, now, free, rival)
    budget.evaluations += len(free) + 1
    best = int(margins[1:].argmin())
    if margins[1:][best] >= margins[0]:
        return None
    return int(free[best]), float(margins[1:][best])


def margins_of(
    differences: Differences, now: NDArray[np.float64], swaps: NDArray[np.int64], rival: int
) -> NDArray[np.float64]:
    """The margin against one rival of the cut `now`, then of it with each of these swaps added."""
    rows = max(1, CELLS // max(1, differences.width))
    blocks = [swaps[start : start + rows] for start in range(0, len(swaps), rows)]
    cuts = [now[None], *(now + differences.rows[block] for block in blocks)]
    return np.concatenate([differences.margins(cut)[:, rival] for cut in cuts])


def without_needless(differences: Differences, swaps: list[int], rival: int, budget: Budget) -> list[int]:
    """Drop, one at a time, the swap whose removal keeps the smallest margin, while the text stays broken."""
    while len(swaps) > 1:
        total = differences.base + differences.rows[swaps].sum(axis=0)
        margins = differences.margins(total - differences.rows[swaps])[:, rival]
        budget.evaluations += len(swaps)
        best = int(margins.argmin())
        if margins[best] > 0:
            break
        swaps = swaps[:best] + swaps[best + 1 :]
    return swaps


def exchanged(differences: Differences, swaps: list[int], rival: int, budget: Budget) -> list[int] | None:
    """One swap less than these, which break the text; they are exchanged one by one while the margin falls."""
    total = differences.base + differences.rows[swaps].sum(axis=0)
    margins = differences.margins(total - differences.rows[swaps])[:, rival]
    least = int(margins.argmin())
    margin, swaps = float(margins[least]), swaps[:least] + swaps[least + 1 :]
    while margin > 0:
        before = swaps
        for number in range(len(before)):
            if budget.spent:
                return None
            others = before[:number] + before[number + 1 :]
            best = hardest_swap(differences, others, rival, budget)
            if best is not None and best[1] < margin:
                swaps, margin = [*others, best[0]], best[1]
        if swaps is before:
            return None
    return swaps


def beamed(places: Places, errors: NDArray[Any], rival: int, most: int, budget: Budget) -> tuple[int, ...] | None:
    """A sentence with at most so many swaps that breaks the text over the reals, by going on from the BEAM hardest
    sentences each time; None also where the network does not let all swaps be tried together."""
    differences = places.differences
    following = NextSwaps.of(differences.query, rival, places.there, places.base, places.rows)
    if following is None:
        return None
    numbers, places_of = places.swaps[following.place, following.choice], following.place
    paths = np.empty((1, 0), dtype=np.int64)
    for _ in range(most):
        if budget.spent:
            return None
        states = np.repeat(places.base[None], len(paths), axis=0)
        made = np.zeros((len(paths), places.count))
        for step in paths.T:
            following.move(states, np.arange(len(paths)), places_of[step], following.choice[step])
            made[np.arange(len(paths)), places_of[step]] = 1.0
        margins = following.margins(states, made, np.arange(places.count))
        budget.evaluations += margins.size
        margins[made[:, places_of] > 0] = np.inf
        hardest = np.argsort(margins, axis=None, kind="stable")[: BEAM * len(paths[0]) + BEAM]
        row, swap = np.unravel_index(hardest, margins.shape)
        paths = np.concatenate([paths[row], swap[:, None]], axis=1)
        if margins[row[0], swap[0]] <= 0:
            kept = numbers[paths[0]].tolist()
            tokens = differences.sentence(kept)
            return (
                tokens
                if margins[row[0], swap[0]] < -errors[rival] or exactly_beaten(differences.query, tokens)[0]
                else None
            )
        _, first = np.unique(np.sort(paths, axis=1), axis=0, return_index=True)
        paths = paths[np.sort(first)[:BEAM]]
    return None


def descent(differences: Differences, errors: NDArray[Any], rival: int, budget: Budget) -> tuple[int, ...] | None:
    """A sentence that breaks the text over the reals, by the hardest single swaps one after the other."""
    swaps: list[int] = []
    while not budget.spent:
        best = hardest_swap(differences, swaps, rival, budget)
        if best is None:
            return None
        swaps.append(best[0])
        if best[1] <= 0:
            kept = without_needless(differences, swaps, rival, budget)
            tokens = differences.sentence(kept)
            margin = differences.margins((differences.base + differences.rows[kept].sum(axis=0))[None])[0, rival]
            if margin < -errors[rival] or exactly_beaten(differences.query, tokens)[0]:
                return tokens
    return None
