"""Three solvers on the textbook model, one thread each: what they claim, and how long they took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .textbook import Milp

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Claim:
    """What a solver says of the least number of swaps: at least `low`, and `values` reach `high`; None: nothing does."""

    low: float
    high: float | None
    values: Array | None
    seconds: float
    finished: bool
    note: str = ""


def solve_gurobi(milp: Milp, seconds: float) -> Claim:
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
        model.Params.Threads = 1
        model.Params.TimeLimit = seconds
        kinds = [gurobipy.GRB.BINARY if whole else gurobipy.GRB.CONTINUOUS for whole in milp.whole]
        cost = [milp.costs.get(v, 0.0) for v in range(len(milp.low))]
        variables = [
            model.addVar(lb=low, ub=high, obj=c, vtype=kind)
            for low, high, c, kind in zip(milp.low, milp.high, cost, kinds, strict=True)
        ]
        for row in milp.rows:
            total = gurobipy.LinExpr(list(row.terms.values()), [variables[v] for v in row.terms])
            if row.low == row.high:
                model.addConstr(total == row.low)
            elif np.isfinite(row.low):
                model.addConstr(total >= row.low)
            else:
                model.addConstr(total <= row.high)
        model.update()
        started = time.perf_counter()
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            return Claim(0, None, None, time.perf_counter() - started, False, str(error))
        spent = time.perf_counter() - started
        if model.Status == gurobipy.GRB.INFEASIBLE:
            return Claim(np.inf, None, None, spent, True)
        finished = model.Status == gurobipy.GRB.OPTIMAL
        values = np.array([variable.X for variable in variables]) if model.SolCount else None
        low = float(np.ceil(max(0.0, model.ObjBound) - 1e-6))
        return Claim(low, None if values is None else round(model.ObjVal), values, spent, finished)


def solve_scip(milp: Milp, seconds: float) -> Claim:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    model.setParam("lp/threads", 1)
    variables = [
        model.addVar(lb=low, ub=high, obj=milp.costs.get(v, 0.0), vtype="B" if whole else "C")
        for v, (low, high, whole) in enumerate(zip(milp.low, milp.high, milp.whole, strict=True))
    ]
    for row in milp.rows:
        total = pyscipopt.quicksum(c * variables[v] for v, c in row.terms.items())
        if row.low == row.high:
            model.addCons(total == row.low)
        elif np.isfinite(row.low):
            model.addCons(total >= row.low)
        else:
            model.addCons(total <= row.high)
    started = time.perf_counter()
    model.optimize()
    spent = time.perf_counter() - started
    if model.getStatus() == "infeasible":
        return Claim(np.inf, None, None, spent, True)
    finished = model.getStatus() == "optimal"
    values = None
    if model.getNSols():
        best = model.getBestSol()
        values = np.array([model.getSolVal(best, variable) for variable in variables])
    low = float(np.ceil(max(0.0, model.getDualbound()) - 1e-6))
    return Claim(low, None if values is None else round(model.getObjVal()), values, spent, finished)


def solve_highs(milp: Milp, seconds: float) -> Claim:
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("time_limit", seconds)
    problem = highspy.HighsLp()
    problem.num_col_, problem.num_row_ = len(milp.low), len(milp.rows)
    problem.col_cost_ = np.array([milp.costs.get(v, 0.0) for v in range(len(milp.low))])
    problem.col_lower_, problem.col_upper_ = np.array(milp.low), np.array(milp.high)
    problem.row_lower_ = np.array([row.low for row in milp.rows])
    problem.row_upper_ = np.array([row.high for row in milp.rows])
    problem.integrality_ = [
        highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous for whole in milp.whole
    ]
    problem.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    problem.a_matrix_.start_ = np.cumsum([0, *(len(row.terms) for row in milp.rows)])
    problem.a_matrix_.index_ = np.array([v for row in milp.rows for v in row.terms], dtype=np.int32)
    problem.a_matrix_.value_ = np.array([c for row in milp.rows for c in row.terms.values()], dtype=np.float64)
    model.passModel(problem)
    started = time.perf_counter()
    model.run()
    spent = time.perf_counter() - started
    status, info = model.getModelStatus(), model.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return Claim(np.inf, None, None, spent, True)
    finished = status == highspy.HighsModelStatus.kOptimal
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(model.getSolution().col_value) if found else None
    low = float(np.ceil(max(0.0, info.mip_dual_bound) - 1e-6))
    return Claim(low, None if values is None else round(info.objective_function_value), values, spent, finished)


SOLVERS: dict[str, Callable[[Milp, float], Claim]] = {
    "gurobi": solve_gurobi,
    "scip": solve_scip,
    "highs": solve_highs,
}
