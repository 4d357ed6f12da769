"""The exact engine: proves from below, swap by swap, until a witness is met or nothing is left to swap."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.incremental import DOUBLE, Differences
from swapproof.encodings.joint_bounds import Ascent, JointBound, Relaxation
from swapproof.encodings.linear_bounds import LinearBounds
from swapproof.encodings.query import Query
from swapproof.encodings.selection import Places
from swapproof.encodings.shallow import is_shallow, shallow_margin
from swapproof.proofs.certificate import Linear, Node

from ..interval import Interval, Level
from .greedy import hardest_swap, without_needless
from .proof_tree import against_all, joint_tree, onnx_numbers, tree_of
from .protocol import Bound, Budget, Doubtful, Findings, Sentence, Stopped
from .truth import exactly_beaten
from .word_search import Bounds, Search

Array = NDArray[Any]

FIRST_LOOK = 24
"""Swaps up to which the bounds of the whole space are computed at once, when no witness is known."""
BEFORE_JOINT = 2_000
"""Regions spent on linear bounds before the dearer joint bounds."""
JOINT_STAGES = ((16, 24), (256, 48))
"""Patterns a group may have, and steps of ascent, one after the other until the bound of the whole space closes."""
MOST_PATTERNS = 2_048
"""Of all groups together: every region costs a number for each."""
REACH, SHRINK = 0.3, 0.97
"""How much better a bound each step of the ascent aims at, at first, and the factor from step to step."""
DIRECT, DIRECT_SHARE = 4_000, 0.1
"""Regions, and share of the time left, spent on proving at once all swaps below the known witness; then one by one."""
GUARD = 64.0
"""Bounds must exceed this many times the error of a margin in float64: they add up a few times more terms."""


@dataclass(eq=False)
class Broken(Exception):
    """A sentence that breaks the text over the reals."""

    tokens: tuple[int, ...]


class Unclaimable(Exception):
    """Some margin is inside the rounding bound: nothing can be claimed at level float32."""


class Unfinished(Exception):
    """Out of time, or of the regions allowed."""


@dataclass(eq=False)
class Attempt:
    """Proves that no sentence with at most k swaps breaks the text, at one level of truth."""

    query: Query
    places: Places
    errors: Array
    """[rivals]: how far the margin of any sentence, evaluated in float64, can be from the real one."""
    k: int
    level: Level
    budget: Budget
    numbers: Mapping[int, int] | None = None
    """ONNX numbers of the rectifiers when joint bounds may be used."""
    most_regions: float = float("inf")
    until: float = float("inf")
    """In seconds of time.monotonic()."""
    regions: int = 0
    doubtful: list[Array] = field(default_factory=list)

    def run(self) -> Node:
        """The tree. Raises Broken, Unclaimable or Unfinished."""
        return against_all({rival: self.against(number) for number, rival in enumerate(self.query.rivals)})

    def against(self, rival: int) -> Node:
        if self.numbers is not None and self.k > 1:
            try:
                return self.searched(ordered_bounds(self.places, rival, self.k), rival, BEFORE_JOINT)
            except Unfinished:
                if self.out_of_time:
                    raise
                return self.jointly(rival, self.numbers)
        return self.searched(ordered_bounds(self.places, rival, self.k), rival)

    def jointly(self, rival: int, numbers: Mapping[int, int]) -> Node:
        shallow = shallow_margin(self.places, rival)
        relaxation: Relaxation | None = None
        concave = int((shallow.weights < 0).sum())
        for most, steps in JOINT_STAGES:
            size = group_size(concave, most)
            ascent = Ascent(shallow, self.k, size, relaxation)
            for step in range(steps):
                if ascent.step(REACH * SHRINK**step) > self.threshold(rival):
                    break
            relaxation = ascent.relaxation()
            if ascent.best > self.threshold(rival):
                break
        bounds = JointBound(shallow, ascent.relaxation(), self.k)
        return joint_tree(bounds.relaxation, shallow, numbers, self.searched(bounds, rival))

    def searched(self, bounds: Bounds, rival: int, most: float = float("inf")) -> Node:
        search = Search(bounds, self.threshold(rival), self.judge(bounds, rival), self.pause)
        search.most = min(most, self.most_regions - self.regions)
        try:
            return tree_of(search.run(), bounds.places)
        finally:
            self.regions += search.regions
            self.budget.evaluations += search.evaluations

    def pause(self, search: Search) -> None:
        if search.regions > search.most or self.out_of_time:
            raise Unfinished

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > min(self.until, self.budget.deadline)

    def threshold(self, rival: int) -> float:
        """What a bound must exceed to be believed."""
        claimable = self.places.differences.claimable[rival] if self.level == "float32" else 0.0
        return float(claimable) + GUARD * float(self.errors[rival])

    def judge(self, bounds: Bounds, rival: int) -> Any:
        differences, error = self.places.differences, float(self.errors[rival])
        label, other = self.query.label, self.query.rivals[rival]
        alone = Query(self.query.network, self.query.space, label, (other,))

        def judged(margins: Array, paths: Array) -> None:
            sentences = np.array([self.sentence(bounds, path) for path in paths], dtype=np.int64)
            if margins[0] < -error:
                raise Broken(tuple(sentences[0].tolist()))
            own = [differences.own_errors(sentence[None]) for sentence in sentences]
            doubt, claimable = (np.array([part[end][0, rival] for part in own]) for end in (0, 1))
            unsure = margins <= error
            for row in np.flatnonzero(unsure):
                tokens = tuple(sentences[row].tolist())
                won, plain = exactly_beaten(alone, tokens)
                if won:
                    raise Broken(tokens)
                unsure[row] = not plain
            doubtful = np.where(margins > error, margins <= error + doubt, unsure)
            if doubtful.any():
                self.doubtful.append(sentences[doubtful])
            if self.level == "float32" and (margins <= error + claimable).any():
                raise Unclaimable

        return judged

    def sentence(self, bounds: Bounds, path: Array) -> tuple[int, ...]:
        return self.places.differences.sentence(bounds.places.swaps.reshape(-1)[path[path >= 0]].tolist())


def group_size(neurons: int, most: int) -> int:
    """The largest size of groups whose patterns are at most `most` each and, if they can, MOST_PATTERNS in all."""
    sizes = range(most.bit_length() - 1, 4, -1)
    return next((size for size in sizes if -(-neurons // size) * 2**size <= MOST_PATTERNS), 4)


def ordered_bounds(places: Places, rival: int, k: int) -> LinearBounds:
    """Positions in the order of how much they can lower the bound of the whole space."""
    return LinearBounds(places.reordered(LinearBounds(places, rival, k).order()), rival, k)


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
    """Whether networks with one hidden layer may be proved by joint bounds."""
    name: str = field(default="exact", init=False)

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        differences = Differences.of(query)
        places = Places.of(differences)
        errors = differences.evaluation_errors(places.count, DOUBLE)
        numbers = onnx_numbers(query.network) if self.joint and is_shallow(query.network) else None
        level: Level = "real" if np.isinf(differences.claimable).any() else "float32"
        low = self.first_look(places, errors, interval, level, budget)
        if low > interval.low:
            interval = yield Bound(low, Linear(), level)
        if interval.high is None and not interval.closed:
            for rival in range(len(query.rivals)):
                tokens = descent(differences, errors, rival, budget)
                if tokens is not None:
                    interval = yield Sentence(tokens)
        direct = True
        while not interval.closed and not interval.contradictory:
            top = places.count if interval.high is None else interval.high - 1
            k = min(top, interval.low)
            attempt = Attempt(query, places, errors, k, level, budget, numbers)
            if direct and interval.high is not None and top > k:
                until = time.monotonic() + DIRECT_SHARE * budget.seconds_left
                attempt = replace(attempt, k=top, most_regions=DIRECT, until=until)
            try:
                tree = attempt.run()
            except Broken as found:
                before = interval
                interval = yield Sentence(found.tokens)
                if interval is before:
                    yield Stopped("a sentence that breaks the network over the reals is rounded back by onnxruntime")
                    return
                continue
            except Unclaimable:
                level = "real"
                continue
            except Unfinished:
                if budget.spent:
                    yield Stopped(f"out of time at {attempt.k} swaps, after {attempt.regions} regions")
                    return
                direct = False
                continue
            if attempt.doubtful:
                before = interval
                interval = yield Doubtful(np.concatenate(attempt.doubtful))
                if interval is not before:
                    continue
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
