"""Z3 on exact rationals: decides one number of swaps after the other, upwards; or minimises them, in small cases."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

from swapproof.encodings.formulas.formula import Formula
from swapproof.encodings.formulas.query_formula import formula, parts
from swapproof.encodings.query import Query
from swapproof.encodings.solvers.solver_answer import Limits, Outcome
from swapproof.encodings.solvers.solver_table import Z3, Solver

from ...interval import Interval
from ..protocol import Budget, Engine, Findings
from .outside_solver import Decision, narrowed
from .solver_asking import LONGEST, Asked, Asking, Effort


@dataclass(frozen=True)
class Smt(Asking):
    """Satisfiable: a sentence, over the reals. Unsatisfiable: a claim, whose numbers at least were exact."""

    solver: Solver = Z3
    fewest: bool = False
    prover: Engine | None = None
    """Who tries to prove what the solver only claims."""
    apart: bool = True
    outside: bool = field(default=True, init=False)

    def measured(self, query: Query, interval: Interval, budget: Budget, effort: Effort) -> Findings:
        with self.asking() as child:
            decide = partial(self.decide, query, budget, effort, child)
            yield from narrowed(query, interval, budget, decide, upwards=not self.fewest, prover=self.prover)

    def decide(
        self, query: Query, budget: Budget, effort: Effort, child: Asked, k: int, interval: Interval
    ) -> Decision:
        """One formula after the other, each for another first swap; what exact bounds settle is not asked."""
        problems = [formula(query, k, fewest=True)] if self.fewest else parts(query, k)
        for problem in problems:
            if problem.settled:
                continue
            if budget.spent:
                return Decision("unsettled", self.name, detail=f"{self.name}: out of time")
            began = time.perf_counter()
            outcome = child.solve(problem, Limits(min(LONGEST, max(0.1, budget.seconds_left))))
            effort.waiting_seconds += time.perf_counter() - began
            effort.add(outcome, problem)
            decision = self.read(query, problem, outcome)
            if decision.outcome != "harmless":
                return decision
        return Decision("harmless", self.name, detail="over exact rationals")

    def read(self, query: Query, problem: Formula, outcome: Outcome) -> Decision:
        match outcome.status:
            case "infeasible":
                return Decision("harmless", self.name, detail="over exact rationals")
            case "optimal" if outcome.solution is not None:
                swaps = (swap for swap, value in zip(problem.swaps, outcome.solution, strict=True) if value > 0.5)
                return Decision(
                    "broken", self.name, query.space.sentence((*problem.made, *swaps)), "over exact rationals"
                )
            case _:
                return Decision("unsettled", self.name, detail=f"{self.name}: {outcome.detail or outcome.status}")
