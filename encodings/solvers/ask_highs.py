"""A program put to HiGHS, which knows neither indicators nor special ordered sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..programs.integer_program import Program
from .solver_answer import Clock, Found, Limits, Status, stated


def ask_highs(program: Program, limits: Limits, clock: Clock) -> Found:
    import highspy

    if program.indicators or program.exclusives:
        return Found("unavailable", detail="HiGHS reads no indicators and no special ordered sets: use big-M rows")
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": limits.threads,
        "parallel": "off" if limits.threads == 1 else "on",
        "random_seed": 0,
        "time_limit": limits.seconds,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
    }
    if limits.stop.found is not None:
        options["objective_target"] = limits.stop.found
    for option, value in options.items():
        solver.setOptionValue(option, value)
    lengths = [len(row.columns) for row in program.rows]
    linear = highspy.HighsLp()
    linear.num_col_, linear.num_row_ = len(program.variables), len(program.rows)
    linear.col_cost_, linear.col_lower_, linear.col_upper_ = program.cost, program.low, program.high
    linear.offset_ = program.offset
    linear.row_lower_ = np.array([row.low for row in program.rows])
    linear.row_upper_ = np.array([row.high for row in program.rows])
    linear.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    linear.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    none = np.zeros(0, dtype=np.int64)
    linear.a_matrix_.index_ = np.concatenate([none, *(row.columns for row in program.rows)]).astype(np.int32)
    linear.a_matrix_.value_ = np.concatenate([np.zeros(0), *(row.coefficients for row in program.rows)])
    kinds = highspy.HighsVarType
    linear.integrality_ = [kinds.kInteger if one.binary else kinds.kContinuous for one in program.variables]
    if solver.passModel(linear) == highspy.HighsStatus.kError:
        return Found("error", detail="the program is refused")
    if program.start is not None:
        start = highspy.HighsSolution()
        start.col_value = program.start.tolist()
        solver.setSolution(start)
    if limits.stop.bound is not None:
        enough = limits.stop.bound

        def interrupt(event: Any) -> None:
            if event.data_out.mip_dual_bound > enough:
                event.data_in.user_interrupt = True

        solver.cbMipInterrupt.subscribe(interrupt)
    clock.run(solver.run)
    states = highspy.HighsModelStatus
    statuses: dict[Any, Status] = {
        states.kOptimal: "optimal",
        states.kInfeasible: "infeasible",
        states.kUnboundedOrInfeasible: "infeasible",  # the objective is bounded
        states.kTimeLimit: "time",
        states.kMemoryLimit: "memory",
        states.kInterrupt: "stopped",
        states.kObjectiveTarget: "stopped",
        states.kObjectiveBound: "stopped",
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
