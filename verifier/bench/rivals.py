"""Whom we are compared with: outside solvers on the textbook's program, and on our own programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.programs.integer_program import Floats, Program
from swapproof.encodings.programs.textbook_program import Textbook
from swapproof.encodings.programs.tight_program import BEST
from swapproof.encodings.programs.tight_rows import Options
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_margins import Certified
from swapproof.encodings.solvers.solver_answer import Outcome
from swapproof.encodings.solvers.solver_table import GUROBI, HIGHS, MILP_SOLVERS, SCIP, Solver

from ..engines.outside.milp_solvers import Milp
from ..engines.outside.smt_solver import Smt
from ..engines.outside.solver_asking import Effort
from ..engines.protocol import Budget, Findings
from ..interval import Interval
from ..ladder.climbing import climb
from ..ladder.replay import Replay
from .answers import Answer, Status

WHOLE = 1e-4
"""Solvers state bounds on a whole number of swaps with errors up to about this."""


class Encoding(Protocol):
    """A query as programs, one for each rival class, and the sentence that a solution stands for."""

    @property
    def remark(self) -> str: ...
    def against(self, rival: int) -> Program: ...
    def sentence(self, solution: Floats) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Rival:
    """A solver and the model it is given."""

    name: str
    encode: Callable[[Query], Encoding]
    solver: Solver

    def answer(self, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
        """The minimum over rival classes, each a program of its own, all within the one time limit."""
        started = time.perf_counter()
        encoding = self.encode(query)
        writing = time.perf_counter() - started
        ceiling = len(query.space.swappable) + 1
        total = Answer(id, self.name, "open", ceiling, None, 0.0, 0.0, writing, nodes=0)
        for rival in query.rivals:
            left = seconds - total.seconds
            if left <= 0:
                return replace(total, low=1, status="open", detail="out of time")
            program = encoding.against(rival)
            outcome = self.solver.solve(program, left)
            total = replace(
                total,
                seconds=total.seconds + outcome.seconds,
                cpu_seconds=total.cpu_seconds + outcome.cpu_seconds,
                build_seconds=total.build_seconds + outcome.build_seconds,
                nodes=(total.nodes or 0) + (outcome.nodes or 0),
                low=min(total.low, claimed_low(outcome, ceiling)),
                program=f"{program.size}; {encoding.remark}" if encoding.remark else str(program.size),
                detail="; ".join(part for part in (total.detail, outcome.detail) if part),
            )
            match outcome.status:
                case "size" | "unavailable" | "error":
                    return replace(total, low=1, status=outcome.status)
                case "memory":
                    return replace(total, low=1, status="error")
                case "optimal" | "infeasible" | "time" | "stopped":
                    total = with_witness(total, outcome, encoding, query, replay)
        if total.low == ceiling and total.high is None:
            return replace(total, status="unbreakable")
        return replace(total, status="exact" if total.low == total.high else "open")


def textbook_within_licence(query: Query) -> Textbook:
    """The textbook program, without its input variables where Gurobi's free licence is too small for them.

    Gurobi and HiGHS were as fast either way (12 IMDb and 22 SST-2 texts), SCIP half as fast without input variables.
    """
    full = Textbook.of(query)
    if GUROBI.fits(full.against(query.rivals[0])):
        return full
    small = Textbook.of(query, inputs=False)
    return small if GUROBI.fits(small.against(query.rivals[0])) else full


RIVALS: tuple[Rival, ...] = (
    Rival("gurobi", textbook_within_licence, GUROBI),
    Rival("scip", Textbook.of, SCIP),
    Rival("highs", Textbook.of, HIGHS),
)
"""Whom we are compared with. Another model, or another solver, is another row."""


@dataclass(frozen=True)
class Outside:
    """A solver on our own program: its engine on the ladder, alone, its claims not proved."""

    name: str
    engine: Milp | Smt

    @property
    def solver(self) -> Solver:
        return self.engine.solver

    def answer(self, id: int, query: Query, replay: Replay, seconds: float) -> Answer:
        """Of the wall clock all is counted but the start of the child and its reading of programs."""
        Differences.of.cache_clear()
        Certified.of.cache_clear()
        measured = MeasuredEngine(self.name, self.engine, Effort())
        wall, cpu = time.perf_counter(), time.process_time()
        verdict = climb(query, replay, [measured], Budget(deadline=time.monotonic() + seconds), lambda bound: None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        effort, interval = measured.effort, verdict.interval
        low = max([interval.low, 1, *(claim.low for claim in verdict.claims)])
        return Answer(
            id=id,
            engine=self.name,
            status=settled_as(low, interval, effort),
            low=low,
            high=interval.high,
            seconds=wall - effort.waiting_seconds + effort.seconds,
            cpu_seconds=cpu + effort.cpu_seconds,
            build_seconds=max(0.0, effort.waiting_seconds - effort.seconds),
            nodes=effort.nodes,
            evaluations=verdict.evaluations,
            program=f"{effort.largest}, {effort.programs} programs" if effort.programs else "no program",
            detail=verdict.reason or "",
            refused=verdict.contradiction,
        )


@dataclass(frozen=True)
class MeasuredEngine:
    """An engine that writes down what it costs."""

    name: str
    engine: Milp | Smt
    effort: Effort

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        yield from self.engine.measured(query, interval, budget, self.effort)


def settled_as(low: int, interval: Interval, effort: Effort) -> Status:
    if low == interval.high:
        return "exact"
    if low == interval.ceiling and interval.high is None:
        return "unbreakable"
    match effort.failed:
        case "size" | "unavailable" | "error":
            return effort.failed
        case "memory":
            return "error"
        case _:
            return "open"


VARIANTS: dict[str, Options] = {
    "": BEST,
    "/swaps": replace(BEST, objective="swaps"),
    "/indicator": replace(BEST, relu="indicator"),
    "/exclusive": replace(BEST, relu="exclusive"),
    "/pairwise": replace(BEST, maximum="pairwise"),
    "/inputs": replace(BEST, inputs=True),
    "/two-sided": replace(BEST, one_sided=False),
    "/no-probing": replace(BEST, probing=False),
    "/no-domination": replace(BEST, domination=False),
    "/no-cuts": replace(BEST, cuts=False),
    "/no-start": replace(BEST, start=False),
    "/together": replace(BEST, together=True),
}
"""Our program with one thing changed, to measure what it is worth: highs-tight/no-cuts."""
TIGHT: tuple[Outside, ...] = tuple(
    Outside(f"{solver.name}-tight{suffix}", Milp(solver, options=options))
    for solver in MILP_SOLVERS
    for suffix, options in VARIANTS.items()
)
SMT: tuple[Outside, ...] = (
    Outside("z3", Smt()),
    Outside("z3/swaps", Smt(fewest=True)),
)


def claimed_low(outcome: Outcome, ceiling: int) -> int:
    """At least 1, as the text itself was replayed and is right."""
    if outcome.status == "infeasible":
        return ceiling
    return 1 if outcome.bound is None else min(ceiling, max(1, math.ceil(outcome.bound - WHOLE)))


def with_witness(total: Answer, outcome: Outcome, encoding: Encoding, query: Query, replay: Replay) -> Answer:
    """The answer narrowed by a solver's sentence, if that breaks the deployed model."""
    if outcome.solution is None:
        return total
    tokens = encoding.sentence(outcome.solution)
    swaps = len(query.space.swaps_of(tokens))
    if not replay.breaks(np.array(tokens, dtype=np.int64), query.label):
        return replace(total, refused=f"its sentence of {swaps} swaps does not break the model")
    return replace(total, high=swaps if total.high is None else min(total.high, swaps))
