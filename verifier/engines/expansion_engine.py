"""The engine `boxes`: boxes of all budgets with words split; for recurrent networks margins expanded at a sentence too.

An expansion is about one sentence, so that a swapped word is split off with one option at a time, and what is left is
expanded about that sentence, with a swap less. Where sentences are few, they are evaluated.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.expansions.expanded import BITS as EXPANDED_BITS
from swapproof.encodings.expansions.expanded import Expanded, expanded
from swapproof.encodings.expansions.multipliers import Unfit
from swapproof.encodings.expansions.ordered_chains import Chain, chains_of
from swapproof.encodings.query import Query
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region_search import CLEAR, FEW, Bounded, Effort, Region, Search, Split
from swapproof.encodings.regions.shared_tables import Stopped as OutOfTime
from swapproof.proofs.writing import certificate

from ..interval import Interval
from .protocol import Bound, Budget, Finding, Findings, Stopped
from .smooth_engines import HOPELESS, Shown, Smooth, Work

REACH = 12
"""Words behind a swap in which it is told apart from others: of contracting networks more tell little more."""
FIRST = 4
"""Swaps that are expanded first: what it costs grows with them."""
FEWEST = 2
"""The same where boxes are much too wide, which tells of networks that do not contract."""


@dataclass(frozen=True)
class ExpandedLeaf(Bounded):
    """Leaf: by an expansion."""


@dataclass(eq=False)
class Expanding(Search):
    """One text."""

    chains: tuple[Chain, ...] = ()
    known: dict[tuple[tuple[int, ...], ...], Expanded] = field(default_factory=dict)

    def expanded(self, choices: Choices) -> Expanded | None:
        """Of at least so many swaps; None where nothing is said."""
        found = self.known.get(choices.options)
        if found is None or len(found.margins) <= min(choices.swaps, len(choices.moving)):
            if self.effort.spent:
                raise OutOfTime
            self.effort.boxes += 1
            try:
                found = expanded(self.question, choices, self.chains, REACH, self.ends)
            except Unfit:
                return None
            self.known = {choices.options: found}
        return found

    def least(self, found: Expanded, swaps: int) -> float:
        return float(found.margins[min(swaps, len(found.margins) - 1)].min())

    def prove(self, choices: Choices, *, bounded: bool) -> Region | None:
        if self.effort.spent:
            raise OutOfTime
        count = choices.count()
        if count == 0:
            return Bounded(choices)
        if count <= FEW:
            return self.evaluated(choices)
        boxes = self.box(choices)
        if (boxes.margins[choices.swaps] > CLEAR).all():
            return Bounded(choices)
        if count <= self.few:
            return self.evaluated(choices)
        several = [word for word in choices.forced if len(choices.options[word]) > 1]
        if several:
            word = several[0]
            return self.split(choices, word, frozenset(choices.options[word][:1]), bounded=bounded)
        found = self.expanded(choices)
        if found is not None and self.least(found, choices.swaps) > CLEAR:
            return ExpandedLeaf(choices)
        free = [w for w in choices.moving if 0 in choices.options[w]]
        falls = {} if found is None else {word: fall for (word, _), fall in found.worst.items()}
        word = max(free, key=lambda w: (falls.get(w, 0.0), boxes.jumps.get(w, 0.0), self.drops[w]))
        return self.split(choices, word, frozenset([0]), bounded=bounded)


@dataclass(eq=False)
class ExpandingWork(Work):
    """One text."""

    def expand(self, interval: Interval) -> Generator[Finding, Interval, Interval]:
        """The greatest number of swaps that one expansion of the whole text proves."""
        search, most = self.search, self.last if interval.high is None else min(self.last, interval.high - 1)
        top = min(most, max(FIRST if self.lost <= HOPELESS else FEWEST, interval.low))
        if self.question.whole(top).count() <= FEW:  # they are sooner evaluated, and checked
            return interval
        while isinstance(search, Expanding) and max(1, interval.low) <= top:
            found = search.expanded(self.question.whole(top))
            if found is None:
                return interval
            least = found.margins.min(axis=1)
            worst = max(float(least[0] - least[1]), CLEAR)  # of one swap an expansion says what is true
            self.lost = min(self.lost, float(least[0] - least[min(2, len(least) - 1)]) / (2 * worst))
            proved = int(np.flatnonzero(least > CLEAR).max(initial=0))
            if proved >= max(1, interval.low):
                leaf = ExpandedLeaf(self.question.whole(proved))
                before = interval
                interval = yield from self.settle(interval, Shown(proved, leaf))
                if interval is before:
                    return interval
            if proved < top or top == most:
                return interval
            top = min(most, 2 * top)
        return interval

    def bound(self, budget: int, region: Region) -> Bound | None:
        """At a precision at which an expansion in float64 is believed."""
        found = super().bound(budget, region)
        if found is None or not any(isinstance(leaf, ExpandedLeaf) for leaf in parts_of(region)):
            return found
        bits = found.tree.bits if isinstance(found.tree, certificate.Precision) else 0
        return Bound(found.low, certificate.Precision(max(bits, EXPANDED_BITS), self.tree(region)), found.level)

    def tree(self, region: Region) -> certificate.Node:
        search = self.search
        match region:
            case ExpandedLeaf() if isinstance(search, Expanding):
                chains = [certificate.Chain(each.first, each.layers, each.descending) for each in search.chains]
                return certificate.Expansion(REACH, tuple(chains))
            case Split(word, options, left, right):
                return certificate.Words(word, options, self.tree(left), self.tree(right))
            case _:
                return super().tree(region)


def parts_of(region: Region) -> list[Region]:
    found, waiting = list[Region](), [region]
    while waiting:
        part = waiting.pop()
        found.append(part)
        if isinstance(part, Split):
            waiting += [part.left, part.right]
    return found


@dataclass(frozen=True)
class Bounding(Smooth):
    """Boxes first, and expansions where these say too little and layers read word after word."""

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        question = question_of(query)
        chains = chains_of(question)
        if not chains:
            yield from super().narrow(query, interval, budget)
            return
        search = Expanding(question, Effort(budget.deadline), chains=chains)
        work = ExpandingWork(query, question, search, self.most, self.last(question))
        try:
            interval = yield from work.at_once(interval)
            interval = yield from work.attack(interval)
            interval = yield from work.expand(interval)
            yield from work.climb(interval, bounded=True)
        except OutOfTime:
            yield Stopped(f"out of time after {search.effort.evaluated} sentences and {search.effort.boxes} bounds")
        finally:
            budget.evaluations += search.effort.evaluated


BOXES = Bounding("boxes", bounded=True)
