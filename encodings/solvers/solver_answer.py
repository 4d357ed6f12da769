"""What a solver is told beside the problem, and what it answers; everything it says is a claim."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..programs.integer_program import Floats

Status = Literal["optimal", "infeasible", "stopped", "time", "memory", "size", "unavailable", "error"]
"""stopped: the solver ended where it was told it may. size: beyond what its licence allows."""


@dataclass(frozen=True)
class Stop:
    """When the solver may end: no solution can be below `bound`, or one at most `found` is met."""

    bound: float | None = None
    found: float | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """A solver's own answer, before the clock is added.

    `objective` is the value of the best `solution` met, `bound` below what it says none can be (None: it said nothing).
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Floats | None = None
    nodes: int | None = None
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """`Found`, with `seconds` and `cpu_seconds` of the solver's own optimisation, `build_seconds` before that."""

    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Floats | None = None
    seconds: float = 0.0
    nodes: int | None = None
    cpu_seconds: float = 0.0
    build_seconds: float = 0.0
    detail: str = ""

    def above(self, value: float) -> bool:
        """Whether the solver says that no solution is at most `value`."""
        return self.status == "infeasible" or (self.bound is not None and self.bound > value)


@dataclass
class Clock:
    """Times the optimisation call; `starts` hears of its start, so that who waits can count from there."""

    starts: Callable[[], None] = lambda: None
    opened: float = field(default_factory=time.perf_counter)
    began: float = 0.0
    cpu: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def run(self, optimise: Callable[[], Any]) -> Any:
        self.starts()
        self.began, self.cpu = time.perf_counter(), time.process_time()
        try:
            return optimise()
        finally:
            self.seconds = time.perf_counter() - self.began
            self.cpu_seconds = time.process_time() - self.cpu

    def outcome(self, found: Found) -> Outcome:
        began = self.began or time.perf_counter()
        return Outcome(
            status=found.status,
            objective=found.objective,
            bound=found.bound,
            solution=found.solution,
            seconds=self.seconds,
            nodes=found.nodes,
            cpu_seconds=self.cpu_seconds,
            build_seconds=began - self.opened,
            detail=found.detail,
        )


@dataclass(frozen=True)
class Limits:
    """`seconds` for the optimisation, `megabytes` for the process of the solver."""

    seconds: float
    threads: int = 1
    stop: Stop = Stop()
    megabytes: float = 4096.0


def stated(bound: float) -> float | None:
    """Solvers write infinity, or a very large number, where they have no bound."""
    huge = 1e19
    return float(bound) if abs(bound) < huge else None
