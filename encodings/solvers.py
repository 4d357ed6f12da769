"""What the mixed-integer solvers are asked and what they answer: one function each, all on the same plain data.

    GUROBI, SCIP, HIGHS    SOLVER.solve(program, seconds, threads)     in a child process that is killed when it hangs
                           SOLVER.here(program, seconds, threads)      in this process

Everything a solver says is a claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .milp import Floats, Program

Status = Literal["optimal", "infeasible", "time", "size", "unavailable", "error"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a solver says of a program.

    `objective` is the value of the best `solution` met, `bound` below what it says none can be (None: it said nothing).
    `seconds` and `cpu_seconds` are around its own optimisation alone, `build_seconds` before that.
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Floats | None = None
    seconds: float = 0.0
    nodes: int | None = None
    cpu_seconds: float = 0.0
    build_seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True)
class Found:
    """A solver's own answer, before the clock is added."""

    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Floats | None = None
    nodes: int | None = None
    detail: str = ""


@dataclass
class Clock:
    """Times the optimisation call; `starts` hears of its start, so that who waits can count from there."""

    starts: Callable[[], None] = lambda: None
    opened: float = 0.0
    began: float = 0.0
    cpu: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def run(self, optimise: Callable[[], Any]) -> None:
        self.starts()
        self.began, self.cpu = time.perf_counter(), time.process_time()
        try:
            optimise()
        finally:
            self.seconds = time.perf_counter() - self.began
            self.cpu_seconds = time.process_time() - self.cpu


Ask = Callable[[Program, float, int, Clock], Found]


@dataclass(frozen=True)
class Solver:
    """A solver and its distribution; `most` variables and `most` rows is what its free licence admits."""

    name: str
    distribution: str
    ask: Ask
    most: int | None = None

    def fits(self, program: Program) -> bool:
        """Whether the free licence is enough, known beforehand."""
        return self.most is None or max(program.size.variables, program.size.rows) <= self.most

    def solve(self, program: Program, seconds: float, threads: int = 1) -> Outcome:
        from .solver_process import solve_apart

        return solve_apart(self.name, program, seconds, threads)

    def here(
        self, program: Program, seconds: float, threads: int = 1, starts: Callable[[], None] = lambda: None
    ) -> Outcome:
        clock = Clock(starts, time.perf_counter())
        try:
            found = self.ask(program, seconds, threads, clock) if program.variables else without_variables(program)
        except ImportError as error:
            found = Found("unavailable", detail=f"pip install {self.distribution} ({error})")
        began = clock.began or time.perf_counter()
        return Outcome(
            status=found.status,
            objective=found.objective,
            bound=found.bound,
            solution=found.solution,
            seconds=clock.seconds,
            nodes=found.nodes,
            cpu_seconds=clock.cpu_seconds,
            build_seconds=began - clock.opened,
            detail=found.detail,
        )


def without_variables(program: Program) -> Found:
    """Nothing to choose: not every solver has a word for that."""
    if all(row.low <= 0.0 <= row.high for row in program.rows):
        return Found("optimal", objective=0.0, bound=0.0, solution=np.zeros(0), nodes=0)
    return Found("infeasible", nodes=0)


def ask_gurobi(program: Program, seconds: float, threads: int, clock: Clock) -> Found:
    import gurobipy

    settings = {"OutputFlag": 0, "Threads": threads, "Seed": 0, "MIPGap": 0.0, "MIPGapAbs": 0.0, "TimeLimit": seconds}
    too_large = 10010
    try:
        with gurobipy.Env(params=settings) as environment, gurobipy.Model(env=environment) as model:
            columns = [
                model.addVar(lb=one.low, ub=one.high, obj=one.cost, vtype="B" if one.binary else "C")
                for one in program.variables
            ]
            for row in program.rows:
                terms = gurobipy.LinExpr(row.coefficients.tolist(), [columns[column] for column in row.columns])
                if row.low == row.high:
                    model.addLConstr(terms, "=", row.low)
                    continue
                if np.isfinite(row.low):
                    model.addLConstr(terms, ">", row.low)
                if np.isfinite(row.high):
                    model.addLConstr(terms, "<", row.high)
            model.update()
            clock.run(model.optimize)
            statuses: dict[int, Status] = {
                gurobipy.GRB.OPTIMAL: "optimal",
                gurobipy.GRB.INFEASIBLE: "infeasible",
                gurobipy.GRB.INF_OR_UNBD: "infeasible",  # the objective is bounded
                gurobipy.GRB.TIME_LIMIT: "time",
            }
            met = model.SolCount > 0
            return Found(
                status=statuses.get(model.Status, "error"),
                objective=float(model.ObjVal) if met else None,
                bound=stated(model.ObjBound),
                solution=np.array(model.getAttr("X", columns)) if met else None,
                nodes=int(model.NodeCount),
                detail=f"status {model.Status}" if model.Status not in statuses else "",
            )
    except gurobipy.GurobiError as error:
        if error.errno == too_large:
            return Found("size", detail=f"{program.size}: too large for the size-limited licence")
        return Found("error", detail=str(error))


def ask_scip(program: Program, seconds: float, threads: int, clock: Clock) -> Found:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParams(
        {
            "limits/time": min(seconds, 1e20),
            "timing/clocktype": 2,  # wall
            "parallel/maxnthreads": threads,
            "lp/threads": threads,
            "randomization/randomseedshift": 0,
        }
    )
    columns = [
        model.addVar(one.name, vtype="B" if one.binary else "C", lb=one.low, ub=one.high, obj=one.cost)
        for one in program.variables
    ]
    for row in program.rows:
        terms = zip(row.coefficients.tolist(), row.columns.tolist(), strict=True)
        expression = pyscipopt.quicksum(coefficient * columns[column] for coefficient, column in terms)
        if row.low == row.high:
            model.addCons(expression == row.low)
            continue
        if np.isfinite(row.low):
            model.addCons(expression >= row.low)
        if np.isfinite(row.high):
            model.addCons(expression <= row.high)
    clock.run(model.optimizeNogil)
    statuses: dict[str, Status] = {
        "optimal": "optimal",
        "infeasible": "infeasible",
        "inforunbd": "infeasible",  # the objective is bounded
        "timelimit": "time",
    }
    status = model.getStatus()
    best = model.getBestSol() if model.getNSols() > 0 else None
    return Found(
        status=statuses.get(status, "error"),
        objective=None if best is None else float(model.getSolObjVal(best)),
        bound=stated(model.getDualbound()),
        solution=None if best is None else np.array([model.getSolVal(best, column) for column in columns]),
        nodes=int(model.getNTotalNodes()),
        detail=f"status {status}" if status not in statuses else "",
    )


def ask_highs(program: Program, seconds: float, threads: int, clock: Clock) -> Found:
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in {
        "output_flag": False,
        "threads": threads,
        "parallel": "off" if threads == 1 else "on",
        "random_seed": 0,
        "time_limit": seconds,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
    }.items():
        solver.setOptionValue(option, value)
    lengths = [len(row.columns) for row in program.rows]
    linear = highspy.HighsLp()
    linear.num_col_, linear.num_row_ = len(program.variables), len(program.rows)
    linear.col_cost_, linear.col_lower_, linear.col_upper_ = program.cost, program.low, program.high
    linear.row_lower_ = np.array([row.low for row in program.rows])
    linear.row_upper_ = np.array([row.high for row in program.rows])
    linear.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    linear.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    linear.a_matrix_.index_ = np.concatenate([row.columns for row in program.rows]).astype(np.int32)
    linear.a_matrix_.value_ = np.concatenate([row.coefficients for row in program.rows])
    kinds = highspy.HighsVarType
    linear.integrality_ = [kinds.kInteger if one.binary else kinds.kContinuous for one in program.variables]
    if solver.passModel(linear) == highspy.HighsStatus.kError:
        return Found("error", detail="the program is refused")
    clock.run(solver.run)
    states = highspy.HighsModelStatus
    statuses: dict[Any, Status] = {
        states.kOptimal: "optimal",
        states.kInfeasible: "infeasible",
        states.kUnboundedOrInfeasible: "infeasible",  # the objective is bounded
        states.kTimeLimit: "time",
    }
    status, info = solver.getModelStatus(), solver.getInfo()
    met = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return Found(
        status=statuses.get(status, "error"),
        objective=float(info.objective_function_value) if met else None,
        bound=stated(info.mip_dual_bound),
        solution=np.array(solver.getSolution().col_value) if met else None,
        nodes=max(0, int(info.mip_node_count)),
        detail=solver.modelStatusToString(status) if status not in statuses else "",
    )


def stated(bound: float) -> float | None:
    """Solvers write infinity, or a very large number, where they have no bound."""
    huge = 1e19
    return float(bound) if abs(bound) < huge else None


GUROBI = Solver("gurobi", "gurobipy", ask_gurobi, most=2000)
SCIP = Solver("scip", "pyscipopt", ask_scip)
HIGHS = Solver("highs", "highspy", ask_highs)
SOLVERS: tuple[Solver, ...] = (GUROBI, SCIP, HIGHS)
