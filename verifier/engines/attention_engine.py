"""The engine for networks that attend: what single swaps do, and bounds of what they do together, with words split.

The bound is that of proofs/attending/attention_leaf.py, in exact integers; where sentences are few they are evaluated.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from swapproof.encodings.network import Floats
from swapproof.encodings.onnx_files.refusals import divides
from swapproof.encodings.query import Query
from swapproof.encodings.regions.assignments import Choices
from swapproof.encodings.regions.boxes import Boxed
from swapproof.encodings.regions.questions import question_of
from swapproof.encodings.regions.region_search import Bounded, Effort, Region, Search, Split
from swapproof.encodings.regions.shared_tables import Stopped as OutOfTime
from swapproof.proofs import certificate, check
from swapproof.proofs.attending.attention_leaf import Attention

from ..interval import Interval
from ..screening.exact_leaf import checked_network, leaf_of, masks_of
from .protocol import Bound, Budget, Finding, Findings, Stopped
from .smooth_engines import BITS, Smooth, Work

FEW, FEW_OF_PART = 4000, 300
"""Sentences of a budget that are sooner evaluated than bounded, and of a part of them: check.py takes long for them."""
ROOM = 2.5
"""Times what the longest bound took must be left for another one: the checker makes it again."""
SPLITS = 12
"""Regions of one budget that are bounded."""


@dataclass(eq=False)
class Attending(Search):
    """One text, whose regions are bounded by the leaf."""

    leaf: Attention | None = None
    rivals: tuple[int, ...] = ()
    longest: float = field(default=0.0, init=False)
    tried: int = field(default=0, init=False)

    def box(self, choices: Choices) -> Boxed:
        """Only for all swaps of the region."""
        started = time.monotonic()
        self.tried += 1
        if self.effort.deadline - started < ROOM * self.longest or self.tried > SPLITS:
            raise OutOfTime
        self.effort.boxes += 1
        margins = np.full((choices.swaps + 1, len(self.rivals)), -np.inf)
        margins[choices.swaps] = self.bound(choices)
        self.longest = max(self.longest, time.monotonic() - started)
        return Boxed(margins, {})

    def bound(self, choices: Choices) -> Floats:
        if self.leaf is None:
            raise TypeError("a search without its leaf")
        try:
            view = self.leaf.view(masks_of(choices.options), choices.swaps)
            found = [self.leaf.margin(view, rival) for rival in self.rivals]
        except check.Refused:
            return np.full(len(self.rivals), -np.inf)
        return np.array([above / below for above, below in found])

    @cached_property
    def few(self) -> int:
        return FEW_OF_PART

    def prove(self, choices: Choices, *, bounded: bool) -> Region | None:
        if not self.effort.spent and 0 < choices.count() <= (self.few if self.tried else FEW):
            return self.evaluated(choices)
        return super().prove(choices, bounded=bounded)


@dataclass(eq=False)
class AttendingWork(Work):
    """One text."""

    def climb(self, interval: Interval, *, bounded: bool) -> Generator[Finding, Interval, None]:
        search = self.search
        while isinstance(search, Attending) and not interval.closed:
            budget = interval.low if interval.high == 1 else min(self.last, max(interval.low, 1))
            if budget < interval.low or (interval.high is not None and budget >= interval.high):
                return
            search.found, search.tried = None, 0
            region = search.prove(self.question.whole(budget), bounded=True)
            before = interval
            interval = (yield from self.hand(search.found)) if region is None else (yield self.bound(budget, region))
            if interval is before:
                yield Stopped("a sentence within rounding of breaking the text")
                return

    def bound(self, budget: int, region: Region) -> Bound:
        """At level real: softmax and divisions are fused by runtimes."""
        return Bound(budget + 1, certificate.Precision(self.bits(region), self.tree(region)), "real")

    def tree(self, region: Region) -> certificate.Node:
        match region:
            case Bounded():
                return certificate.Attention()
            case Split(word, options, left, right):
                return certificate.Words(word, options, self.tree(left), self.tree(right))
            case _:
                return super().tree(region)


@dataclass(frozen=True)
class AttentionEngine(Smooth):
    """`boxes` are the leaf's."""

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        if not divides(query.network.nodes):
            return
        question, network = question_of(query), checked_network(query.network)
        if network is None:
            yield Stopped("a network without a canonical form")
            return
        search = Attending(question, Effort(budget.deadline), with_boxes=False, rivals=query.rivals)
        search.leaf = leaf_of(query, network, BITS[0], budget.deadline)
        work = AttendingWork(query, question, search, self.most, self.last(question))
        try:
            interval = yield from work.attack(interval)
            yield from work.climb(interval, bounded=True)
        except OutOfTime:
            yield Stopped(f"stopped after {search.effort.evaluated} sentences and {search.effort.boxes} bounds")
        finally:
            budget.evaluations += search.effort.evaluated


ATTENTION = AttentionEngine("attention", bounded=True)
