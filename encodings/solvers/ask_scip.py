"""A program put to SCIP."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..programs.integer_program import Program, Row
from .solver_answer import Clock, Found, Limits, Status, stated


def ask_scip(program: Program, limits: Limits, clock: Clock) -> Found:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParams(
        {
            "limits/time": min(limits.seconds, 1e20),
            "timing/clocktype": 2,  # wall
            "parallel/maxnthreads": limits.threads,
            "lp/threads": limits.threads,
            "randomization/randomseedshift": 0,
        }
    )
    if limits.stop.bound is not None:
        model.setParam("limits/dual", limits.stop.bound)
    if limits.stop.found is not None:
        model.setParam("limits/primal", limits.stop.found)
    columns = [
        model.addVar(one.name, vtype="B" if one.binary else "C", lb=one.low, ub=one.high, obj=one.cost)
        for one in program.variables
    ]

    def sum_of(row: Row, sign: float = 1.0) -> Any:
        terms = zip(row.coefficients.tolist(), row.columns.tolist(), strict=True)
        return pyscipopt.quicksum(sign * coefficient * columns[column] for coefficient, column in terms)

    for row in program.rows:
        if row.low == row.high:
            model.addCons(sum_of(row) == row.low)
            continue
        if np.isfinite(row.low):
            model.addCons(sum_of(row) >= row.low)
        if np.isfinite(row.high):
            model.addCons(sum_of(row) <= row.high)
    for one in program.indicators:
        sign, side = (1.0, one.row.high) if np.isfinite(one.row.high) else (-1.0, -one.row.low)
        model.addConsIndicator(sum_of(one.row, sign) <= side, columns[one.column], activeone=one.value)
    for exclusive in program.exclusives:
        model.addConsSOS1([columns[column] for column in exclusive.columns])
    model.addObjoffset(program.offset)
    if program.start is not None:
        start = model.createSol()
        for column, value in zip(columns, program.start.tolist(), strict=True):
            model.setSolVal(start, column, value)
        model.addSol(start)
    clock.run(model.optimizeNogil)
    statuses: dict[str, Status] = {
        "optimal": "optimal",
        "infeasible": "infeasible",
        "inforunbd": "infeasible",  # the objective is bounded
        "timelimit": "time",
        "memlimit": "memory",
        "primallimit": "stopped",
        "duallimit": "stopped",
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
