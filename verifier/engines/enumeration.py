"""Every sentence of the space, fewest swaps first: complete for any network, and the oracle of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from swapproof.encodings.incremental import Differences
from swapproof.encodings.query import Query
from swapproof.proofs.certificate import Enumerate

from ..interval import Interval
from .combinations import Tables
from .protocol import Bound, Budget, Doubtful, Findings, Sentence, Stopped
from .truth import Judge


@dataclass(frozen=True)
class Enumeration:
    """Sweeps the sentences with 0, 1, 2, ... swaps, while these are at most `most` in all."""

    most: int = 200_000
    name: str = field(default="enumerate", init=False)

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        differences = Differences.of(query)
        judge, tables = Judge(differences), Tables(differences)
        swept, provable = 0, True
        for size, count in enumerate(query.space.counts()):
            swept += count
            if interval.closed or (interval.high is not None and size >= interval.high):
                return
            if swept > self.most:
                yield Stopped(f"{swept} sentences of up to {size} swaps, and at most {self.most} are enumerated")
                return
            for block in tables.blocks(size):
                if budget.spent:
                    yield Stopped(f"out of time among the sentences of {size} swaps")
                    return
                budget.evaluations += len(block.cut)
                for found in judge.judge(size, block.cut, block.swaps):
                    if found.truth == "broken":
                        provable = False
                        interval = yield Sentence(tuple(int(token) for token in found.sentences[0]))
                    else:
                        interval = yield Doubtful(found.sentences)
                    if interval.high is not None and interval.high <= size:
                        return
            if provable:
                interval = yield Bound(size + 1, Enumerate(), judge.level)
        if not provable:
            yield Stopped("sentences that break the network over the reals are rounded back by onnxruntime")


def all_sentences(query: Query, most_swaps: int) -> Iterator[tuple[int, ...]]:
    """The sentences of at most this many swaps, by plain recursion: what tests compare everything with."""
    positions = query.space.swappable

    def extend(start: int, chosen: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, ...]]:
        yield query.space.sentence(chosen)
        if len(chosen) < most_swaps:
            for number in range(start, len(positions)):
                for token in query.space.choices[positions[number]][1:]:
                    yield from extend(number + 1, (*chosen, (positions[number], token)))

    yield from extend(0, ())
