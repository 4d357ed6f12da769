"""A program put to Gurobi."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..programs.integer_program import Program, Row
from .solver_answer import Clock, Found, Limits, Status, stated

TOO_LARGE, NO_MEMORY = 10010, 10001
"""Numbers of Gurobi's errors."""


def ask_gurobi(program: Program, limits: Limits, clock: Clock) -> Found:
    import gurobipy

    settings: dict[str, Any] = {
        "OutputFlag": 0,
        "Threads": limits.threads,
        "Seed": 0,
        "MIPGap": 0.0,
        "MIPGapAbs": 0.0,
        "TimeLimit": limits.seconds,
    }
    if limits.stop.bound is not None:
        settings["BestBdStop"] = limits.stop.bound
    if limits.stop.found is not None:
        settings["BestObjStop"] = limits.stop.found
    try:
        with gurobipy.Env(params=settings) as environment, gurobipy.Model(env=environment) as model:
            columns = [
                model.addVar(lb=one.low, ub=one.high, obj=one.cost, vtype="B" if one.binary else "C")
                for one in program.variables
            ]

            def terms(row: Row) -> Any:
                return gurobipy.LinExpr(row.coefficients.tolist(), [columns[column] for column in row.columns])

            for row in program.rows:
                if row.low == row.high:
                    model.addLConstr(terms(row), "=", row.low)
                    continue
                if np.isfinite(row.low):
                    model.addLConstr(terms(row), ">", row.low)
                if np.isfinite(row.high):
                    model.addLConstr(terms(row), "<", row.high)
            for one in program.indicators:
                sense, side = ("<", one.row.high) if np.isfinite(one.row.high) else (">", one.row.low)
                model.addGenConstrIndicator(columns[one.column], one.value, terms(one.row), sense, side)
            for exclusive in program.exclusives:
                model.addSOS(gurobipy.GRB.SOS_TYPE1, [columns[column] for column in exclusive.columns])
            model.ObjCon = program.offset
            if program.start is not None:
                model.update()
                for variable, value in zip(columns, program.start.tolist(), strict=True):
                    variable.Start = value
            model.update()
            clock.run(model.optimize)
            grb = gurobipy.GRB
            statuses: dict[int, Status] = {
                grb.OPTIMAL: "optimal",
                grb.INFEASIBLE: "infeasible",
                grb.INF_OR_UNBD: "infeasible",  # the objective is bounded
                grb.TIME_LIMIT: "time",
                grb.MEM_LIMIT: "memory",
                grb.USER_OBJ_LIMIT: "stopped",
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
        if error.errno == TOO_LARGE:
            return Found("size", detail=f"{program.size}: too large for the size-limited licence")
        return Found("memory" if error.errno == NO_MEMORY else "error", detail=str(error))
