"""Every sentence of the space, fewest swaps first: complete for any network, and the oracle of all tests."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import islice

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Enumerate

from ..interval import Interval, Level
from ..ladder.truth import Judge
from .combinations import Tables
from .protocol import NOT_IN_ONNXRUNTIME, Bound, Budget, Doubtful, Finding, Findings, Sentence, Stopped

START, SENTENCES_A_SECOND = 0.25, 10_000
"""A hundredth of what small networks reach, proof included: large ones and busy machines shall have enough."""


@dataclass(frozen=True)
class Enumeration:
    """Sweeps the sentences with 0, 1, 2, ... swaps, while these are at most `most` in all."""

    most: int = 200_000
    name: str = field(default="enumerate", init=False)

    def needs(self, query: Query, interval: Interval) -> float:
        """Seconds for all sentences with fewer swaps than are known to break the text, and for their proof."""
        counts = query.space.counts()
        sentences = sum(islice(counts, interval.high))
        return math.inf if sentences > self.most else START + sentences / SENTENCES_A_SECOND

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        """One bound at the end, for all that was swept: checking a proof costs more than finding it."""
        if interval.closed:
            return
        sweep = Sweep(query, budget, self.most)
        yield from sweep.witnesses(interval)
        if sweep.harmless > interval.low or (sweep.harmless and interval.low_float32 < sweep.harmless):
            yield Bound(sweep.harmless, Enumerate(), sweep.level)
        if sweep.stopped:
            yield Stopped(sweep.stopped)


class Sweep:
    """The state of one enumeration: fewer than `harmless` swaps break nothing, at this level of truth."""

    harmless = 0
    level: Level = "float32"
    stopped: str | None = None

    def __init__(self, query: Query, budget: Budget, most: int) -> None:
        self.query, self.budget, self.most = query, budget, most

    def witnesses(self, interval: Interval) -> Generator[Finding, Interval, None]:
        """Every sentence that may break the text, until one does."""
        differences = Differences.of(self.query)
        judge, tables = Judge(differences), Tables(differences)
        swept, provable = 0, True
        for size, count in enumerate(self.query.space.counts()):
            swept += count
            if interval.high is not None and size >= interval.high:
                return
            if swept > self.most:
                self.stopped = f"{swept} sentences of up to {size} swaps, and at most {self.most} are enumerated"
                return
            for block in tables.blocks(size):
                if self.budget.spent:
                    self.stopped = f"out of time among the sentences of {size} swaps"
                    return
                self.budget.evaluations += len(block.cut)
                for found in judge.judge(size, block.cut, block.swaps):
                    if found.truth == "broken":
                        provable = False
                        interval = yield Sentence(tuple(int(token) for token in found.sentences[0]))
                    else:
                        interval = yield Doubtful(found.sentences)
                    if interval.high is not None and interval.high <= size:
                        return
            if provable:
                self.harmless, self.level = size + 1, judge.level
        if not provable:
            self.stopped = NOT_IN_ONNXRUNTIME
