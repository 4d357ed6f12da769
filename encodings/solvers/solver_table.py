"""The outside solvers: one row each, all on the same plain data.

    GUROBI, SCIP, HIGHS, Z3, LIRPA...    SOLVER.solve(problem, seconds)    in a child that is killed when it overruns
                                         SOLVER.here(problem, seconds)     in this process

Everything a solver says is a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formulas.formula import Formula
from ..programs.integer_program import Program, Variable
from .ask_gurobi import ask_gurobi
from .ask_highs import ask_highs
from .ask_scip import ask_scip
from .ask_z3 import ask_z3
from .solver_answer import Clock, Found, Limits, Outcome, Stop

if TYPE_CHECKING:
    from .margin_problem import MarginProblem

    Problem = Program | Formula | MarginProblem
else:
    Problem = object  # margin problems hold our network, which the process of another solver does not load
NEVER = Stop()


@dataclass(frozen=True)
class Solver:
    """A solver and its distribution; `most` variables, rows and special constraints is what its free licence admits."""

    name: str
    distribution: str
    ask: Callable[[Any, Limits, Clock], Found]
    most: int | None = None
    module: str | None = None
    """What it is imported as, where that is not the name of the distribution."""
    options: str = ""
    """Of pip, when it is installed."""

    @property
    def installed(self) -> bool:
        return find_spec(self.module or self.distribution) is not None

    @property
    def install(self) -> str:
        return " ".join(part for part in ("pip install", self.options, self.distribution) if part)

    def fits(self, problem: Problem) -> bool:
        """Whether the free licence is enough, known beforehand."""
        if self.most is None or not isinstance(problem, Program):
            return True
        size = problem.size
        return max(size.variables, size.rows, size.special) <= self.most

    def solve(
        self, problem: Problem, seconds: float, threads: int = 1, *, stop: Stop = NEVER, megabytes: float = 4096.0
    ) -> Outcome:
        from .solver_process import solve_apart

        return solve_apart(self.name, problem, Limits(seconds, threads, stop, megabytes))

    def here(
        self,
        problem: Problem,
        seconds: float,
        threads: int = 1,
        *,
        stop: Stop = NEVER,
        starts: Callable[[], None] = lambda: None,
    ) -> Outcome:
        return self.answer(problem, Limits(seconds, threads, stop), starts)

    def answer(self, problem: Problem, limits: Limits, starts: Callable[[], None]) -> Outcome:
        clock = Clock(starts)
        try:
            empty = isinstance(problem, Program) and not problem.variables
            found = without_variables(problem) if empty else self.ask(problem, limits, clock)
        except ImportError as error:
            found = Found("unavailable", detail=f"{self.install} ({error})")
        except MemoryError:
            found = Found("memory", detail="out of memory")
        return clock.outcome(found)


def without_variables(program: Any) -> Found:
    """Nothing to choose: not every solver has a word for that."""
    if all(row.low <= 0.0 <= row.high for row in program.rows):
        return Found("optimal", objective=program.offset, bound=program.offset, solution=np.zeros(0), nodes=0)
    return Found("infeasible", nodes=0)


def ask_lirpa(problem: MarginProblem, limits: Limits, clock: Clock, *, method: str) -> Found:
    """The only one that needs our network, which no other shall load."""
    from .ask_lirpa import ask_lirpa

    return ask_lirpa(problem, limits, clock, method=method)


LIRPA_METHODS = {"lirpa-ibp": "IBP", "lirpa-crown": "CROWN", "lirpa-alpha": "CROWN-Optimized"}
GUROBI = Solver("gurobi", "gurobipy", ask_gurobi, most=2000)
SCIP = Solver("scip", "pyscipopt", ask_scip)
HIGHS = Solver("highs", "highspy", ask_highs)
Z3 = Solver("z3", "z3-solver", ask_z3, module="z3")
MILP_SOLVERS: tuple[Solver, ...] = (GUROBI, SCIP, HIGHS)
LIRPA_SOLVERS: tuple[Solver, ...] = tuple(
    Solver(name, "auto-LiRPA", partial(ask_lirpa, method=method), module="auto_LiRPA", options="--no-deps")
    for name, method in LIRPA_METHODS.items()
)
SOLVERS: tuple[Solver, ...] = (*MILP_SOLVERS, Z3, *LIRPA_SOLVERS)
"""Z3 is asked formulas, auto_LiRPA margins, the others programs."""


@lru_cache
def licensed(solver: Solver) -> bool:
    """Whether its licence admits more than the free one: a program of one variable more is tried once, apart."""
    if solver.most is None:
        return True
    many = tuple(Variable("item", (number,), 0.0, 1.0) for number in range(solver.most + 1))
    return solver.solve(Program(many, ()), 10.0).status == "optimal"
