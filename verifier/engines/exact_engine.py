"""The exact engine: proves from below, swap by swap, until a witness is met or nothing is left to swap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import NO_HEIGHTS, Heights, LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.network import Maximum
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_margins import Certified
from swapproof.encodings.ties import always_tied
from swapproof.proofs.writing.certificate import Linear, Node, Open, Rivals

from ..interval import Cover, Interval, Level
from .attempt import FAST, SMALL, Attempt, Broken, Effort, Unclaimable
from .beside.counting_heights import usual_heights
from .greedy import beamed, descent, exchanged
from .proof_tree import rectifier_layers, with_heights
from .protocol import NOT_IN_ONNXRUNTIME, Bound, Budget, Covered, Doubtful, Findings, Sentence, Stopped

Array = NDArray[Any]

FIRST_LOOK = 24
"""Swaps up to which the bounds of the whole space are computed at once, when no witness is known."""
EASY = 2
"""Swaps of witnesses that the search itself is quick to find one shorter than, where there is one."""
DIRECT, DIRECT_CELLS = 4_000, 1 << 25
"""Regions spent on proving at once all swaps below the known witness, fewer where each is dear; then one by one."""


@dataclass(frozen=True)
class Target:
    """Of how many swaps to prove next that they are harmless, and how."""

    swaps: int
    level: Level
    kept: Node | None
    """A tree of an earlier try, to go on from."""
    at_once: bool
    """Whether this skips swaps that are not proved yet."""
    allowed: float
    """Regions that may be bounded."""


@dataclass(frozen=True)
class Aim:
    """What decides about the next target, apart from the interval."""

    places: Places
    cover: Cover | None
    """What an earlier try left open."""
    real_from: int
    """Swaps from which on only the reals can be spoken of."""
    at_once: bool = True
    """Whether to try all swaps below the known witness at once: not any more when that took too many regions."""
    begun: tuple[int, Level, Node] | None = None
    """What it came to: of how many swaps, at which level, and the tree."""

    @classmethod
    def at(cls, places: Places, cover: Cover | None, level: Level) -> Aim:
        aim = cls(places, cover, 0 if level == "real" else places.count + 1)
        return aim if cover is None or cover.level != "real" else aim.real_at(cover.swaps)

    def real_at(self, swaps: int) -> Aim:
        return replace(self, real_from=min(self.real_from, swaps))

    def kept(self, swaps: int, level: Level) -> Node | None:
        if self.begun is not None and self.begun[:2] == (swaps, level):
            return self.begun[2]
        return self.cover.tree if self.cover is not None and self.cover.swaps == swaps else None

    def next_target(self, interval: Interval) -> Target:
        """All swaps below the witness at once, if a few regions do; else one more than is proved."""
        top = self.places.count if interval.high is None else interval.high - 1
        next_one = min(top, interval.low)
        level: Level = "real" if next_one >= self.real_from else "float32"
        if level == "float32":
            top = min(top, self.real_from - 1)
        kept = self.kept(next_one, level)
        if not self.at_once or kept is not None or interval.high is None or top <= next_one:
            return Target(next_one, level, kept, at_once=False, allowed=float("inf"))
        cells = LinearBounds(self.places, 0, top).cells
        return Target(top, level, self.kept(top, level), at_once=True, allowed=min(DIRECT, DIRECT_CELLS // cells))


def given_up(attempt: Attempt, tree: Node) -> Findings:
    """What was covered when time or memory ran out."""
    if not isinstance(tree, Open):
        together = attempt.together() if isinstance(tree, Rivals) else None
        yield Covered(Cover(attempt.k, tree, attempt.level, together))
    yield Stopped(f"out of {attempt.short_of or 'time'} at {attempt.k} swaps, after {attempt.regions} regions")


def with_fewer(differences: Differences, interval: Interval, budget: Budget) -> tuple[int, ...] | None:
    """A sentence that breaks the text with one swap less than the witness, if exchanging swaps finds one."""
    if interval.closed or interval.high_evidence is None or len(interval.high_evidence.swaps) < 2:
        return None
    swaps = differences.numbers(differences.query.space.sentence(interval.high_evidence.swaps)).tolist()
    rival = int(differences.margins(differences.base + differences.rows[swaps].sum(axis=0)[None])[0].argmin())
    found = exchanged(differences, swaps, rival, budget)
    return None if found is None else differences.sentence(found)


@dataclass(frozen=True)
class Exact:
    """Bounds of the whole space for all numbers of swaps at once, an attack when no witness is known, the search."""

    joint: bool = True
    """Whether joint bounds may be used."""
    effort: Effort = FAST
    goes_on: ClassVar[bool] = True
    """Asked again, it goes on from what it covered."""

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
        if layers is not None and any(isinstance(node.layer, Maximum) for node in query.network.nodes):
            places = places.with_all  # for stairs: once, and not for every bound
        level: Level = "real" if np.isinf(Certified.of(query).claimable).any() else "float32"
        for counting in (False, True):
            if interval.closed:
                break
            heights = usual_heights(places, layers, slopes=self.effort.refine) if counting else NO_HEIGHTS
            if counting and not heights:
                break
            low = self.first_look(places, errors, interval, level, budget, heights)
            if low > interval.low:
                interval = yield Bound(low, with_heights(heights, query.network, Linear()), level)
        if interval.high is None and not interval.closed:
            for rival in range(len(query.rivals)):
                tokens = descent(differences, errors, rival, budget)
                if tokens is not None:
                    interval = yield Sentence(tokens)
        for rival in range(len(query.rivals)):
            if interval.high is not None and interval.high > max(interval.low, EASY):
                tokens = beamed(places, errors, rival, interval.high - 1, budget)
                if tokens is not None:
                    interval = yield Sentence(tokens)
        aim = Aim.at(places, interval.cover, level)
        while not interval.closed and not interval.contradictory:
            target = aim.next_target(interval)
            attempt = Attempt(
                query, places, errors, target.swaps, target.level, budget, layers, self.effort, target.allowed
            )
            before = interval
            try:
                tree = attempt.run(target.kept)
            except Broken as found:
                interval = yield Sentence(found.tokens)
                if interval is before:
                    yield Stopped(NOT_IN_ONNXRUNTIME)
                    return
                continue
            except Unclaimable as close:
                aim = aim.real_at(close.swaps)
                continue
            if attempt.doubtful:
                interval = yield Doubtful(np.concatenate(attempt.doubtful))
            if interval.high != before.high:
                continue  # one of them breaks the text: another target
            if not attempt.unfinished:
                interval = yield Bound(target.swaps + 1, tree, target.level)
            elif target.at_once and not budget.spent:
                aim = replace(aim, at_once=False, begun=(target.swaps, target.level, tree))
                while (shorter := with_fewer(differences, interval, budget)) is not None:
                    before = interval
                    interval = yield Sentence(shorter)
                    if interval is before:
                        break
            else:
                yield from given_up(attempt, tree)
                return

    def first_look(
        self, places: Places, errors: Array, interval: Interval, level: Level, budget: Budget, heights: Heights
    ) -> int:
        """The low end that the bounds of the whole space prove."""
        highest = min(places.count, FIRST_LOOK if interval.high is None else interval.high - 1)
        if highest < interval.low:
            return interval.low
        swaps = np.arange(interval.low, highest + 1)
        proved = np.ones(len(swaps), dtype=bool)
        attempt = Attempt(places.differences.query, places, errors, highest, level, budget)
        for rival in range(len(places.differences.query.rivals)):
            bounds = LinearBounds(places, rival, highest, heights)
            states = np.repeat(bounds.base[None], len(swaps), axis=0)
            low = bounds.low(states, np.zeros(len(swaps), dtype=np.int64), swaps)
            budget.evaluations += 1
            proved &= low > attempt.threshold(rival)
        return interval.low + int(np.argmin(np.append(proved, False)))
