"""auto_LiRPA as an engine: of how many swaps does its bound of all margins say that they are harmless?"""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache

from swapproof.encodings.query import Query
from swapproof.encodings.solvers.margin_problem import MarginProblem
from swapproof.encodings.solvers.solver_answer import Limits, Outcome
from swapproof.encodings.solvers.solver_process import Apart
from swapproof.encodings.solvers.solver_table import Solver

from ...interval import Interval
from ..protocol import Budget, Claimed, Engine, Findings, Stopped
from .solver_asking import LONGEST, Asked, Asking, Effort, Here


@dataclass(frozen=True)
class MarginBounds(Asking):
    """It finds no sentences: it claims as many swaps as its bounds clear, and gives up there."""

    solver: Solver
    prover: Engine | None = None
    """Who tries to prove what the solver only claims."""
    apart: bool = True
    outside: bool = field(default=True, init=False)

    def measured(self, query: Query, interval: Interval, budget: Budget, effort: Effort) -> Findings:
        most = (len(query.space.swappable) + 1 if interval.high is None else interval.high) - 1
        if interval.closed or interval.low > most:
            return
        outcome = self.asked(MarginProblem.of(query, max(interval.low, 1), most), budget, effort)
        clear = [] if outcome.solution is None else [margin for margin in outcome.solution if margin > 0]
        if not clear:
            yield Stopped(f"{self.name}: {outcome.detail or outcome.status}: of {max(interval.low, 1)} swaps no bound")
            return
        claimed = max(interval.low, 1) + len(clear)
        interval = yield Claimed(claimed, self.name, f"{outcome.detail}: margin at least {clear[-1]:.6g}")
        if self.prover is None:
            yield Stopped(f"{self.name}: of {claimed} swaps no bound")
        elif not interval.closed:
            yield from self.prover.narrow(query, interval, budget)

    def asked(self, problem: MarginProblem, budget: Budget, effort: Effort) -> Outcome:
        began = time.perf_counter()
        with self.asking() as child:
            outcome = child.solve(problem, Limits(min(LONGEST, max(0.1, budget.seconds_left))))
        effort.waiting_seconds += time.perf_counter() - began
        effort.add(outcome, problem)
        if outcome.solution is None:
            effort.failed = outcome.status
        return outcome

    def asking(self) -> AbstractContextManager[Asked]:
        return kept_child(self.solver.name) if self.apart else nullcontext(Here(self.solver))


@contextmanager
def kept_child(name: str) -> Iterator[Asked]:
    """The same child for one text after the other: it takes seconds to load torch. Ended when it may owe an answer."""
    child = children(name)
    try:
        yield child
    except BaseException:
        child.end()
        raise


@lru_cache
def children(name: str) -> Apart:
    child = Apart(name)
    atexit.register(child.end)
    return child
