"""The engine for networks that attend: what single swaps do, and bounds of what they do together, with words split.

The bound is that of the leaf `attention` in float64; where it does not fit, the exact leaf itself. Where sentences are
few, and the bound says too little, they are evaluated.
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
from swapproof.encodings.regions.region_search import CLEAR, Bounded, Effort, Region, Search, Split
from swapproof.encodings.regions.shared_tables import Stopped as OutOfTime
from swapproof.encodings.smooth.attention_depth import attention_layers, told_of
from swapproof.proofs import check
from swapproof.proofs.writing import certificate

from ..attending.quick_bound import BITS as QUICK_BITS
from ..attending.quick_bound import TooLoose, Unfit
from ..interval import Interval
from ..screening.exact_leaf import checked_network, leaf_of, masks_of, quick_leaf_of
from .protocol import Bound, Budget, Finding, Findings, Stopped
from .smooth_engines import ROUNDED, Shown, Smooth, Work, leaves_of

FEW = 4000
"""Sentences of a region that are evaluated where the bound says too little, before words are split."""
ROOM = 2.5
"""Times what the longest bound took must be left for another one: the screening makes it again."""
SPLITS, EXACT_SPLITS = 200, 12
"""Regions of one budget that are bounded in float64, and by the exact leaf."""
FIRST = 3
"""Swaps that are bounded first."""
SURE = 2.0
"""Times what the screening takes for clear."""


@dataclass(eq=False)
class Attending(Search):
    """One text, whose regions are bounded by the leaf."""

    query: Query | None = None
    network: check.Network | None = None
    exactly: bool = field(default=False, init=False)
    longest: float = field(default=0.0, init=False)
    tried: int = field(default=0, init=False)

    def box(self, choices: Choices) -> Boxed:
        """Only for all swaps of the region."""
        started = time.monotonic()
        self.tried += 1
        if self.effort.deadline - started < ROOM * self.longest or self.tried > (
            EXACT_SPLITS if self.exactly else SPLITS
        ):
            raise OutOfTime
        self.effort.boxes += 1
        least, jumps = self.bound(choices)
        margins = np.full((choices.swaps + 1, len(least)), -np.inf)
        margins[choices.swaps] = least
        self.longest = max(self.longest, time.monotonic() - started)
        return Boxed(margins, jumps)

    def bound(self, choices: Choices) -> tuple[Floats, dict[int, float]]:
        """Of each rival; and how far swapping a word may lower the margins."""
        if self.query is None or self.network is None:
            raise TypeError("a search without its network")
        rivals = self.query.rivals
        if not self.exactly:
            try:
                quick = quick_leaf_of(self.query, self.network)
                found = [quick.bound(choices.options, choices.swaps, rival) for rival in rivals]
            except TooLoose:
                return np.full(len(rivals), -np.inf), {}
            except Unfit:
                self.exactly = True
            else:
                worst = min(found, key=lambda each: each.least)
                return np.array([each.least for each in found]) / SURE, worst.falls
        leaf = leaf_of(self.query, self.network, QUICK_BITS, self.effort.deadline)
        try:
            view = leaf.view(masks_of(choices.options), choices.swaps)
            ratios = [leaf.margin(view, rival) for rival in rivals]
        except check.Refused:
            return np.full(len(rivals), -np.inf), {}
        return np.array([above / below for above, below in ratios]), {}

    @cached_property
    def few(self) -> int:
        return FEW


@dataclass(eq=False)
class AttendingWork(Work):
    """One text."""

    def climb(self, interval: Interval, *, bounded: bool) -> Generator[Finding, Interval, None]:
        search = self.search
        while isinstance(search, Attending) and not interval.closed:
            budget = interval.low if interval.high == 1 else min(self.last, max(interval.low, 1))
            if budget < interval.low or (interval.high is not None and budget >= interval.high):
                return
            search.found, search.near, search.tried = None, [], 0
            region = search.prove(self.question.whole(budget), bounded=True)
            before = interval
            if region is not None:
                interval = yield from self.settle(interval, Shown(budget, region, tuple(search.near)))
            else:
                interval = yield from self.hand(search.found)
                if interval is before:
                    yield Stopped(ROUNDED)
            if interval is before:
                return

    def at_once(self, interval: Interval) -> Generator[Finding, Interval, Interval]:
        """The greatest budget for which the bound of the whole text holds: it is less for every swap more."""
        most = self.last if interval.high is None else min(self.last, interval.high - 1)
        proved, failed, budget = max(0, interval.low - 1), most + 1, min(max(FIRST, interval.low), most)
        try:
            while proved < budget < failed:
                found = self.search.box(self.question.whole(budget))
                if (found.margins[budget] > CLEAR).all():
                    proved = budget
                    budget = min(2 * budget, most) if failed > most else (proved + failed) // 2
                else:
                    failed = budget
                    budget = (proved + failed) // 2
        except OutOfTime:
            pass
        if proved >= max(1, interval.low):
            interval = yield from self.settle(interval, Shown(proved, Bounded(self.question.whole(proved))))
        return interval

    def bound(self, budget: int, region: Region) -> Bound | None:
        """At level real: softmax and divisions are fused by runtimes."""
        bounded = any(isinstance(leaf, Bounded) for leaf in leaves_of(region))
        bits = self.bits(region)
        if bits is None:
            return None
        bits = max(bits, QUICK_BITS if bounded else 0)
        return Bound(budget + 1, certificate.Precision(bits, self.tree(region)), "real")

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
            yield Stopped("this network does not attend: `boxes` and `sequence` are for it")
            return
        layers = attention_layers(query.network.nodes)
        if layers > 1:
            yield Stopped(f"{told_of(layers)}: `sequence`")
            return
        question, network = question_of(query), checked_network(query.network)
        if network is None:
            yield Stopped("a network without a canonical form")
            return
        search = Attending(question, Effort(budget.deadline), with_boxes=False, query=query, network=network)
        work = AttendingWork(query, question, search, self.most, self.last(question))
        try:
            interval = yield from work.at_once(interval)
            interval = yield from work.attack(interval)
            yield from work.climb(interval, bounded=True)
        except OutOfTime:
            yield Stopped(f"stopped after {search.effort.evaluated} sentences and {search.effort.boxes} bounds")
        finally:
            budget.evaluations += search.effort.evaluated


ATTENTION = AttentionEngine("attention", bounded=True)
