"""The exact engine: proves from below, swap by swap, until a witness is met or nothing is left to swap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.query import Query
from swapproof.encodings.ties import always_tied
from swapproof.proofs.certificate import Linear, Open, Rivals

from ..interval import Cover, Interval, Level
from ..ladder.truth import exactly_beaten
from .attempt import FAST, SMALL, Attempt, Broken, Effort, Unclaimable
from .greedy import hardest_swap, without_needless
from .proof_tree import rectifier_layers
from .protocol import Bound, Budget, Covered, Doubtful, Findings, Sentence, Stopped

Array = NDArray[Any]

FIRST_LOOK = 24
"""Swaps up to which the bounds of the whole space are computed at once, when no witness is known."""
DIRECT, DIRECT_CELLS = 4_000, 1 << 25
"""Regions spent on proving at once all swaps below the known witness, fewer where each is dear; then one by one."""


def descent(differences: Differences, errors: Array, rival: int, budget: Budget) -> tuple[int, ...] | None:
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


@dataclass(frozen=True)
class Exact:
    """Bounds of the whole space for all numbers of swaps at once, an attack when no witness is known, the search."""

    joint: bool = True
    """Whether joint bounds may be used."""
    effort: Effort = FAST

    @property
    def name(self) -> str:
        return "exact-small" if self.effort == SMALL else "exact"

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        if all(rival > query.label and always_tied(query.network, query.label, rival) for rival in query.rivals):
            yield Bound(len(query.space.swappable) + 1, Linear(), "real")
            return
        differences = Differences.of(query)
        places = Places.of(differences)
        errors = differences.evaluation_errors(places.count, DOUBLE)
        layers = rectifier_layers(query.network) if self.joint else None
        level: Level = "real" if np.isinf(differences.claimable).any() else "float32"
        real_from = 0 if level == "real" else places.count + 1  # swaps from which on only the reals can be spoken of
        low = self.first_look(places, errors, interval, level, budget)
        if low > interval.low:
            interval = yield Bound(low, Linear(), level)
        if interval.high is None and not interval.closed:
            for rival in range(len(query.rivals)):
                tokens = descent(differences, errors, rival, budget)
                if tokens is not None:
                    interval = yield Sentence(tokens)
        cover, direct = interval.cover, True
        if cover is not None and cover.level == "real":
            real_from = min(real_from, cover.swaps)
        while not interval.closed and not interval.contradictory:
            top = places.count if interval.high is None else interval.high - 1
            k, kept = min(top, interval.low), None
            if cover is not None and k == cover.swaps:
                kept = cover.tree
            level = "real" if k >= real_from else "float32"
            attempt = Attempt(query, places, errors, k, level, budget, layers, self.effort)
            top = min(top, real_from - 1) if k < real_from else top
            if direct and kept is None and interval.high is not None and top > k:
                cells = LinearBounds(places, 0, top).cells
                attempt = replace(attempt, k=top, allowed=min(DIRECT, DIRECT_CELLS // cells))
                kept = cover.tree if cover is not None and cover.swaps == top else None
            try:
                tree = attempt.run(kept)
            except Broken as found:
                before = interval
                interval = yield Sentence(found.tokens)
                if interval is before:
                    yield Stopped("a sentence that breaks the network over the reals is rounded back by onnxruntime")
                    return
                continue
            except Unclaimable as close:
                real_from = min(real_from, close.swaps)
                continue
            if attempt.doubtful:
                before = interval
                interval = yield Doubtful(np.concatenate(attempt.doubtful))
                if interval.high != before.high:
                    continue
            if attempt.unfinished and attempt.allowed < float("inf") and not budget.spent:
                direct = False
                continue
            if attempt.unfinished:
                if not isinstance(tree, Open):
                    together = attempt.together() if isinstance(tree, Rivals) else None
                    yield Covered(Cover(attempt.k, tree, attempt.level, together))
                short_of = "memory" if attempt.full else "time"
                yield Stopped(f"out of {short_of} at {attempt.k} swaps, after {attempt.regions} regions")
                return
            interval = yield Bound(attempt.k + 1, tree, level)

    def first_look(self, places: Places, errors: Array, interval: Interval, level: Level, budget: Budget) -> int:
        """The low end that the bounds of the whole space prove."""
        highest = min(places.count, FIRST_LOOK if interval.high is None else interval.high - 1)
        if highest < interval.low:
            return interval.low
        swaps = np.arange(interval.low, highest + 1)
        proved = np.ones(len(swaps), dtype=bool)
        attempt = Attempt(places.differences.query, places, errors, highest, level, budget)
        for rival in range(len(places.differences.query.rivals)):
            bounds = LinearBounds(places, rival, highest)
            states = np.repeat(bounds.base[None], len(swaps), axis=0)
            low = bounds.low(states, np.zeros(len(swaps), dtype=np.int64), swaps)
            budget.evaluations += 1
            proved &= low > attempt.threshold(rival)
        return interval.low + int(np.argmin(np.append(proved, False)))
