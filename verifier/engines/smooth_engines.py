"""Engines for smooth networks: boxes of all budgets with words split, and sentences that share their beginnings.

Both look for sentences first, by adding up single swaps. What they find is replayed, and what they prove is checked.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.query import Query
from swapproof.encodings.regions.arithmetic import Ends, KernelEnds
from swapproof.encodings.regions.assignments import AssignmentTables
from swapproof.encodings.regions.beams import beamed
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region import Question
from swapproof.encodings.regions.region_search import (
    CLEAR,
    UNIT,
    Bounded,
    Broken,
    Effort,
    Evaluated,
    Region,
    Search,
    Split,
    segments_used,
)
from swapproof.encodings.regions.shared_tables import Stopped as OutOfTime
from swapproof.encodings.sequences.sentence_margins import margins_of
from swapproof.proofs.writing import certificate

from ..interval import Interval
from .protocol import Bound, Budget, Doubtful, Finding, Findings, Sentence, Stopped

BITS = (32, 48, 64)
"""Precisions that are tried, in this order, at level `real`."""
KERNEL_BITS = 28
"""That at level `kernel`, whose functions err by 2**7 of its units. Sums over 30 bits are checked fastest."""
TRIED, TRIED_LEAVES = 48, 4
"""Sentences, and leaves, on which a precision is tried."""
HARDER = 2.0**9
"""Errors of float32 kernels are 2**11 times the unit at which this is looked at first: they are so many times wider."""
LEEWAY = 2.0
"""Times the width of the intervals of those sentences."""
ROUNDED = "a sentence within rounding of breaking the text, where the model keeps its answer"
IMPRECISE = f"numbers that are too large, or margins too small, for a proof at a precision of {BITS[-1]} bits"
LONGEST_WITNESS = 12
HOPELESS = 8.0
"""Where boxes are so many times too wide, splitting words does not help in time."""
FIRST = 12
"""Swaps that are looked at together: of a long text boxes for all of its words take long, and mostly prove fewer."""
TOGETHER = 4096
"""Sentences of several budgets that are sooner evaluated at once: one with the fewest swaps is found all the same."""
AHEAD, CHECKED = 20_000, 20.0
"""Sentences of the next budget that a proof waits for at most, and how many times longer than a search all that comes
after it may take."""
KEPT = 0.5
"""Of the text's own margin, boxes must keep so much at level `kernel`; else they are of real numbers."""


@dataclass(frozen=True)
class Smooth:
    """Narrows the interval from both ends; `most`: sentences of one budget that are looked at in all; `reach`: swaps
    that are asked about, as many as there are words if it is None."""

    name: str
    bounded: bool
    most: int = 3_000_000
    reach: int | None = None
    smooth: bool = field(default=True, init=False)

    def last(self, question: Question) -> int:
        words = len(question.positions)
        return words if self.reach is None else min(self.reach, words)

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        question = question_of(query)
        work = Work(
            query,
            question,
            Search(question, Effort(budget.deadline), with_boxes=self.bounded),
            self.most,
            self.last(question),
        )
        try:
            if self.bounded:
                interval = yield from work.at_once(interval)
            interval = yield from work.attack(interval)
            yield from work.climb(interval, bounded=self.bounded)
        except OutOfTime:
            yield Stopped(
                f"out of time after {work.search.effort.evaluated} sentences and {work.search.effort.boxes} boxes"
            )
        finally:
            budget.evaluations += work.search.effort.evaluated


SEQUENCE = Smooth("sequence", bounded=False)


@dataclass(frozen=True, eq=False)
class Shown:
    """So many swaps change nothing, as this region shows; `near`: sentences that the model is asked about first."""

    budget: int
    region: Region
    near: tuple[tuple[int, ...], ...] = ()
    seconds: float = 0.0


@dataclass(eq=False)
class Work:
    """One text."""

    query: Query
    question: Question
    search: Search
    most: int
    last: int
    """Swaps that are asked about."""
    lost: float = 0.0
    """How many times too wide boxes are."""
    widths: dict[tuple[Evaluated, type[Ends], float, bool, int], float] = field(default_factory=dict)

    def attack(self, interval: Interval) -> Generator[Finding, Interval, Interval]:
        """Once: a beam of sentences with few swaps."""
        if interval.low > self.last or (interval.high is not None and interval.high <= interval.low + 1):
            return interval
        most = min(LONGEST_WITNESS, self.last)
        if interval.high is not None:
            most = min(most, interval.high - 1)
        for found in beamed(self.search, most) if most else ():
            interval = yield Sentence(found.tokens)
            if interval.high is not None and interval.high <= found.swaps:
                break
        return interval

    def climb(self, interval: Interval, *, bounded: bool) -> Generator[Finding, Interval, None]:
        """Budget by budget, from the proved end to the witness. A proof that the next one will soon replace is not
        handed in, for each is made precise, and checked, anew."""
        if bounded and interval.low <= self.last and self.lost > HOPELESS:
            yield Stopped(f"boxes of one swap are {self.lost:.0f} times too wide")
            return
        held: Shown | None = None
        while not interval.closed:
            budget = self.next_budget(interval, held, together=0 if bounded else TOGETHER)
            if held is not None and (budget is None or not self.soon(held, budget)):
                interval, before = (yield from self.settle(interval, held)), interval
                if interval is before:
                    return
                held = None
                continue
            if budget is None:
                return
            choices = self.question.whole(budget)
            if not bounded and choices.count() > self.most:
                yield Stopped(
                    f"{choices.count()} sentences with up to {budget} swaps, and at most {self.most} are evaluated"
                )
                return
            self.search.found, self.search.near = None, []
            started = time.monotonic()
            try:
                region = self.search.prove(choices, bounded=bounded)
            except OutOfTime:
                if held is not None:
                    yield from self.settle(interval, held)
                raise
            if region is not None:
                held = Shown(budget, region, tuple(self.search.near), time.monotonic() - started)
                continue
            interval, before = (yield from self.hand(self.search.found)), interval
            if interval is before:
                if held is not None:
                    yield from self.settle(interval, held)
                yield Stopped(ROUNDED)
                return

    def next_budget(self, interval: Interval, held: Shown | None, *, together: int) -> int | None:
        """The swaps that are asked about next, if any; several budgets `together`, where they have so few sentences."""
        low = interval.low if held is None else held.budget + 1
        budget = low if interval.high == 1 else min(self.last, max(low, 1))
        if budget < low or (interval.high is not None and budget >= interval.high):
            return None
        most = self.last if interval.high is None else min(self.last, interval.high - 1)
        while budget < most and self.question.whole(budget + 1).count() <= together:
            budget += 1
        return budget

    def soon(self, held: Shown, budget: int) -> bool:
        """Whether so many swaps are looked at, and the proof is checked, in little of the time that is left."""
        before, count = self.question.whole(held.budget).count(), self.question.whole(budget).count()
        left = self.search.effort.deadline - time.monotonic()
        return count <= AHEAD and held.seconds * CHECKED * count / before < left

    def at_once(self, interval: Interval) -> Generator[Finding, Interval, Interval]:
        """One pass of boxes for all budgets, or for the first ones if these are many: the greatest that they prove."""
        most = self.last if interval.high is None else min(self.last, interval.high - 1)
        if most <= interval.low or not most:
            return interval
        top = min(most, max(FIRST, interval.low))
        whole, search = self.question.whole(top), self.search
        if canonical_of(self.query.network).float32:
            search.ends = KernelEnds(2.0**-KERNEL_BITS)
        margins = search.box(whole).margins.min(axis=1)
        proved = np.flatnonzero(margins > CLEAR)
        if len(proved) <= top:
            rows, own = search.singles
            text = float(own[(rows < 0).all(axis=1)][0])
            worst = max(text - float(own.min()), CLEAR)
            if search.in_float32 and not margins[0] > KEPT * text:
                search.ends = Ends(UNIT)
                margins = search.box(whole).margins.min(axis=1)
                proved = np.flatnonzero(margins > CLEAR)
            self.lost = float(margins[0] - margins[1]) / worst
        elif top < most:
            proved = np.flatnonzero(search.box(self.question.whole(most)).margins.min(axis=1) > CLEAR)
        if len(proved) and proved[-1] >= max(1, interval.low):
            budget = int(proved[-1])
            interval = yield from self.settle(interval, Shown(budget, Bounded(self.question.whole(budget))))
        return interval

    def settle(self, interval: Interval, shown: Shown) -> Generator[Finding, Interval, Interval]:
        """First the model is asked about sentences that rounding may decide: if none breaks the text, all of the region
        is proved."""
        if shown.near:
            interval, before = (yield Doubtful(np.array(shown.near, dtype=np.int64))), interval
            if interval is not before:
                return interval
        bound = self.bound(shown.budget, shown.region)
        if bound is None:
            yield Stopped(IMPRECISE)
            return interval
        return (yield bound)

    def hand(self, found: Broken | None) -> Generator[Finding, Interval, Interval]:
        if found is None:
            raise RuntimeError("a search that ended without an answer")
        if found.margin < 0:
            return (yield Sentence(found.tokens))
        return (yield Doubtful(np.array([found.tokens], dtype=np.int64)))

    # ---- what is proved

    def bound(self, budget: int, region: Region) -> Bound | None:
        """None where no precision does."""
        if self.holds_in_float32(region):
            return Bound(budget + 1, certificate.Precision(KERNEL_BITS, self.tree(region)), "kernel")
        bits = self.bits(region)
        return None if bits is None else Bound(budget + 1, certificate.Precision(bits, self.tree(region)), "real")

    def holds_in_float32(self, region: Region) -> bool:
        """Whether the level `kernel` is worth asking for: boxes were of that level, and what is tried is clear."""
        if not canonical_of(self.query.network).float32:
            return False
        if not self.search.in_float32 and any(isinstance(leaf, Bounded) for leaf in leaves_of(region)):
            return False
        leaves = nearest(region)
        if any(self.width(leaf, Ends(UNIT), tried=TRIED // 8) * HARDER > leaf.least for leaf in leaves):
            return False
        return self.clear(region, KernelEnds(2.0**-KERNEL_BITS))

    def clear(self, region: Region, ends: Ends) -> bool:
        """Whether evaluated leaves stay clear, as far as some sentences of some leaves tell."""
        return all(
            any(self.width(leaf, ends, closely=closely) * LEEWAY < leaf.least for closely in (False, True))
            for leaf in nearest(region)
        )

    def tree(self, region: Region) -> certificate.Node:
        match region:
            case Evaluated():
                return certificate.Enumerate()
            case Bounded(choices):
                parts = segments_used(self.question, choices, self.search.segments)
                return certificate.Boxes(tuple(certificate.Segment(s.first, s.end - s.first, s.word) for s in parts))
            case Split(word, options, left, right):
                return certificate.Words(word, options, self.tree(left), self.tree(right))

    def bits(self, region: Region) -> int | None:
        """The least precision at which evaluated leaves stay clear."""
        return next((bits for bits in BITS if self.clear(region, Ends(2.0**-bits))), None)

    def width(self, leaf: Evaluated, ends: Ends, *, closely: bool = False, tried: int = TRIED) -> float:
        """The greatest width of the margins of some sentences, those with many swaps among them."""
        key = leaf, type(ends), ends.unit, closely, tried
        if key not in self.widths:
            rows = AssignmentTables(leaf.choices).of(leaf.choices.moving).rows
            chosen = np.unique(rows[np.linspace(0, len(rows) - 1, min(tried, len(rows))).astype(int)], axis=0)
            _, found = margins_of(self.question, leaf.choices, ends, sentences=chosen, closely=closely)
            self.widths[key] = float((found[:, 1] - found[:, 0]).max())
        return self.widths[key]


def nearest(region: Region) -> list[Evaluated]:
    """The evaluated leaves with the least margins."""
    leaves = [leaf for leaf in leaves_of(region) if isinstance(leaf, Evaluated)]
    return sorted(leaves, key=lambda leaf: leaf.least)[:TRIED_LEAVES]


def leaves_of(region: Region) -> list[Evaluated | Bounded]:
    found, waiting = list[Evaluated | Bounded](), [region]
    while waiting:
        match waiting.pop():
            case Split(_, _, left, right):
                waiting += [right, left]
            case leaf:
                found.append(leaf)
    return found
