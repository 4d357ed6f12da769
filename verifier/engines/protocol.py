"""What every engine is: it looks at a query and an interval and finds sentences and bounds.

An engine believes nothing into the interval. It yields findings; the ladder replays a sentence or checks a bound, and
sends back the interval that came of it.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.query import Query
from swapproof.proofs.writing.certificate import Node as Tree

from ..interval import Cover, Interval, Level

NOT_IN_ONNXRUNTIME = "sentences break the network over the reals, but not in onnxruntime both alone and in a batch"


@dataclass(frozen=True)
class Sentence:
    """Token ids that should break the text."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Doubtful:
    """[n, length] token ids whose margin lies inside the rounding bound: any of them may break the deployed model."""

    sentences: NDArray[np.int64]


@dataclass(frozen=True)
class Bound:
    """No sentence with fewer than `low` swaps breaks the text, by this proof tree."""

    low: int
    tree: Tree
    level: Level


@dataclass(frozen=True)
class Covered:
    """What a search had done when it had to stop."""

    cover: Cover


class Unchecked(Exception):
    """A proof that could not be checked in the time there is: neither accepted nor refused."""


@dataclass(frozen=True)
class Stopped:
    """The engine gives up before the interval is closed, and why."""

    reason: str


@dataclass(frozen=True)
class Claimed:
    """A solver says that no sentence with fewer than `low` swaps breaks the text: recorded, never believed."""

    low: int
    by: str
    detail: str = ""


@dataclass(frozen=True)
class Disputed:
    """An answer of a solver that does not check: what it said, and what evaluation says."""

    reason: str
    sides: Mapping[str, Any]


Finding = Sentence | Doubtful | Bound | Covered | Claimed | Disputed | Stopped
Findings = Generator[Finding, Interval, None]


@dataclass
class Budget:
    """What one text may cost; engines add what they spend."""

    deadline: float = field(default_factory=lambda: float("inf"))
    """In seconds of time.monotonic()."""
    evaluations: int = 0
    """Sentences whose logits were computed, by any means."""

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    @property
    def spent(self) -> bool:
        return self.seconds_left <= 0


def shared(budget: Budget, later: Sequence[object], query: Query, interval: Interval) -> Budget:
    """The budget of an engine: half of what is left when outside solvers come after it, to leave them some; and without
    what a later one needs that is sure to settle the text, if that is no more than half."""
    if budget.deadline == float("inf"):
        return budget
    left = budget.seconds_left
    if any(getattr(engine, "outside", False) for engine in later):
        return Budget(time.monotonic() + left / 2)
    needs = [engine.needs(query, interval) for engine in later if isinstance(engine, Settling)]
    kept = min((seconds for seconds in needs if seconds <= left / 2), default=0.0)
    return Budget(budget.deadline - kept) if kept else budget


@runtime_checkable
class Settling(Protocol):
    """An engine that settles whatever text it has time for."""

    def needs(self, query: Query, interval: Interval) -> float:
        """Seconds; infinity where it is not sure to settle the text."""
        ...


class Engine(Protocol):
    """`for finding in engine.narrow(query, interval, budget)`, each answered by the interval after it."""

    @property
    def name(self) -> str: ...

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings: ...
