"""How an engine asks an outside solver: in a process of its own, with what it costs written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Limits, Outcome, Status
from swapproof.encodings.solvers.solver_process import Apart
from swapproof.encodings.solvers.solver_table import Problem, Solver

from ...interval import Interval
from ..protocol import Budget, Findings

LONGEST = 86_400.0
"""Seconds, where there is no limit."""


class Asked(Protocol):
    """Whoever solves: a child process, or a test in this one."""

    def solve(self, problem: Problem, limits: Limits) -> Outcome: ...


@dataclass
class Effort:
    """What a text cost: in solvers, and in our writing of programs."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    build_seconds: float = 0.0
    waiting_seconds: float = 0.0
    """From question to answer: the solver's own time, its start, and its reading of the problem."""
    nodes: int = 0
    programs: int = 0
    largest: str = ""
    remarks: tuple[str, ...] = ()
    failed: Status | None = None
    """Why the last solver could not be asked at all."""

    def add(self, outcome: Outcome, problem: Problem) -> None:
        self.seconds += outcome.seconds
        self.cpu_seconds += outcome.cpu_seconds
        self.build_seconds += outcome.build_seconds
        self.nodes += outcome.nodes or 0
        self.programs += 1
        self.largest = max(self.largest, str(problem.size), key=lambda size: (len(size), size))


@dataclass(frozen=True)
class Here:
    """The solver in this process: no deadline but its own, for tests."""

    solver: Solver

    def solve(self, problem: Problem, limits: Limits) -> Outcome:
        return self.solver.answer(problem, limits, lambda: None)


class Asking(ABC):
    """What engines of outside solvers share; `apart`: whether the solver runs in a process of its own."""

    solver: Solver
    apart: bool

    @property
    def name(self) -> str:
        return self.solver.name

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield from self.measured(query, interval, budget, Effort())

    @abstractmethod
    def measured(self, query: Query, interval: Interval, budget: Budget, effort: Effort) -> Findings:
        """`narrow`, with what it costs added up in `effort`."""

    def asking(self) -> AbstractContextManager[Asked]:
        return Apart(self.solver.name) if self.apart else nullcontext(Here(self.solver))
