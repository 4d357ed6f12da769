"""Outside MILP solvers on our integer program: they decide k by the least margin, and stop as soon as it has a sign."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.programs.integer_program import Program
from swapproof.encodings.programs.textbook_program import TOLERANCE
from swapproof.encodings.programs.tight_program import BEST, Tight, tight
from swapproof.encodings.programs.tight_rows import Options
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Limits, Outcome, Stop
from swapproof.encodings.solvers.solver_table import Solver, licensed

from ...interval import Interval
from ..protocol import Budget, Engine, Findings
from .outside_solver import BOUNDS, Decision, narrowed
from .solver_asking import LONGEST, Asked, Asking, Effort

STOP = Stop(bound=2 * TOLERANCE, found=-TOLERANCE)
WHOLE = 1e-4
"""Solvers state bounds on a whole number of swaps with errors up to about this."""


@dataclass(frozen=True)
class Milp(Asking):
    """A solver, and those that take over where its licence is too small or it is not installed."""

    solver: Solver
    others: tuple[Solver, ...] = ()
    options: Options = BEST
    prover: Engine | None = None
    """Who tries to prove what the solver only claims."""
    apart: bool = True
    outside: bool = field(default=True, init=False)

    def measured(self, query: Query, interval: Interval, budget: Budget, effort: Effort) -> Findings:
        with self.asking() as child:
            decide = partial(self.decide, query, budget, effort, child)
            look = partial(seen_by_bounds, query)
            yield from narrowed(query, interval, budget, decide, upwards=False, prover=self.prover, look=look)

    def decide(
        self, query: Query, budget: Budget, effort: Effort, child: Asked, k: int, interval: Interval
    ) -> Decision:
        """Against every rival class, one program after the other, or all in one."""
        rivals = range(len(query.rivals))
        groups = [tuple(rivals)] if self.options.together else [(rival,) for rival in rivals]
        details: list[str] = []
        by = BOUNDS
        for group in groups:
            decision = self.against(query, budget, effort, child, k, interval, group)
            if decision.outcome != "harmless":
                return decision
            details.append(decision.detail)
            by = by if decision.by == BOUNDS else decision.by
        return Decision("harmless", by, detail="; ".join(dict.fromkeys(part for part in details if part)))

    def against(
        self,
        query: Query,
        budget: Budget,
        effort: Effort,
        child: Asked,
        k: int,
        interval: Interval,
        rivals: Sequence[int],
    ) -> Decision:
        differences = Differences.of(query)
        known = [query.space.original, *near_sentences(differences, interval, k)]
        written = tight(differences, rivals, k, self.options, known, max(1, interval.low))
        if written.settled:
            return Decision("harmless", BOUNDS, detail="with the swaps left by probing")
        if written.remark:
            effort.remarks = (*effort.remarks, written.remark)
        outcome, by, why = self.asked(written.program, budget, effort, child)
        match outcome.status:
            case "size" | "unavailable" | "error" | "memory":
                return Decision("unsettled", by, detail=f"{by}: {outcome.detail or outcome.status}")
            case _:
                return read(written, outcome, by, why)

    def asked(self, program: Program, budget: Budget, effort: Effort, child: Asked) -> tuple[Outcome, str, str]:
        """The outcome, who gave it, and why not another."""
        why: list[str] = []
        for solver in (self.solver, *self.others):
            limits = Limits(min(LONGEST, max(0.1, budget.seconds_left)), stop=self.stop)
            began = time.perf_counter()
            if not solver.fits(program) and not licensed(solver):
                outcome = Outcome("size", detail=f"{program.size}: too large for the size-limited licence")
            elif solver is self.solver:
                outcome = child.solve(program, limits)
            else:
                outcome = solver.solve(program, limits.seconds, stop=self.stop)
            effort.waiting_seconds += time.perf_counter() - began
            effort.add(outcome, program)
            if outcome.status not in ("size", "unavailable"):
                return outcome, solver.name, "; ".join(why)
            why.append(f"{solver.name}: {outcome.detail}")
        effort.failed = outcome.status
        return Outcome(outcome.status, detail="; ".join(why)), self.name, ""

    @property
    def stop(self) -> Stop:
        return STOP if self.options.objective == "margin" else Stop()


def seen_by_bounds(query: Query, top: int) -> int:
    """The most swaps, at most `top`, of which linear bounds of the whole space say that they are harmless."""
    places = Places.of(Differences.of(query))
    for k in range(1, top + 1):
        bounds = (LinearBounds(places, rival, k) for rival in range(len(query.rivals)))
        if any(one.margin(one.whole())[0][0] <= TOLERANCE for one in bounds):
            return k - 1
    return top


def near_sentences(differences: Differences, interval: Interval, k: int) -> list[tuple[int, ...]]:
    """Where a solver may start: the witness, and every sentence with one of its swaps undone."""
    if interval.high_evidence is None:
        return []
    swaps, space = interval.high_evidence.swaps, differences.query.space
    fewer = [tuple(swap for swap in swaps if swap != undone) for undone in swaps]
    return [space.sentence(chosen) for chosen in (swaps, *fewer) if len(chosen) <= k]


def read(written: Tight, outcome: Outcome, by: str, why: str) -> Decision:
    """What the outcome says about k swaps."""
    if written.options.objective == "swaps":
        return read_fewest(written, outcome, by, why)
    if outcome.status == "infeasible":
        return Decision("unsettled", by, detail=f"{by} calls a program infeasible of which the text is a solution")
    if outcome.solution is not None and outcome.objective is not None and outcome.objective <= TOLERANCE:
        tokens = written.sentence(outcome.solution)
        certain = outcome.objective <= -TOLERANCE / 2
        if certain or outcome.status == "optimal":
            return Decision("broken", by, tokens, f"{why} margin {outcome.objective:.6g}".strip(), certain)
    if outcome.above(TOLERANCE):
        bound = "" if outcome.bound is None else f"margin at least {outcome.bound:.6g}"
        return Decision("harmless", by, detail="; ".join(part for part in (why, bound) if part))
    return Decision("unsettled", by, detail=f"{by} {outcome.detail or 'out of time'}")


def read_fewest(written: Tight, outcome: Outcome, by: str, why: str) -> Decision:
    if outcome.solution is not None and outcome.objective is not None:
        return Decision(
            "broken", by, written.sentence(outcome.solution), f"{why} {outcome.objective:.0f} swaps".strip()
        )
    enough = outcome.bound is not None and math.ceil(outcome.bound - WHOLE) > written.k
    if outcome.status == "infeasible" or enough:
        return Decision("harmless", by, detail=why)
    return Decision("unsettled", by, detail=f"{by} {outcome.detail or 'out of time'}")
