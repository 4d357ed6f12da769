"""The safe radius as the textbook's integer program, solved by Gurobi: an oracle that has nothing of our search."""

from __future__ import annotations

from typing import Any

import numpy as np

from swapproof.encodings.bounds.normal_form import Stack
from swapproof.verifier.radius.moving_ball import Ball

FAR = 8.0
"""In units of the widths: how far points are looked for. Big M follow from it, and with large ones the solver called
0.937 the least distance where a point at 0.8906 changes the class: hence the focus on numbers too."""
EXACTLY = {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": 1e-9, "NumericFocus": 2}


def radius_by_program(stack: Stack, ball: Ball) -> float | None:
    """min ||(x - c) / w|| with h = relu(z) by big M and margin <= 0, for one layer; None where there is none."""
    import gurobipy as gp

    (layer,) = stack.layers
    weight, bias = layer.weights[0], layer.bias
    with gp.Env(params={"OutputFlag": 0, "Threads": 1, **EXACTLY}) as env:
        model = gp.Model(env=env)
        x: Any = model.addMVar(stack.inputs, lb=ball.center - FAR * ball.widths, ub=ball.center + FAR * ball.widths)
        big = np.abs(weight) @ (np.abs(ball.center) + FAR * ball.widths) + np.abs(bias)
        h: Any = model.addMVar(len(bias), ub=big)
        on: Any = model.addMVar(len(bias), vtype="B")
        z = weight @ x + bias
        model.addConstr(h >= z)
        model.addConstr(h <= z + big * (1 - on))
        model.addConstr(h <= big * on)
        rows = stack.output.weights
        margin: Any = stack.output.bias[ball.label] - stack.output.bias[ball.rival]
        for j, value in ((0, x), (1, h)):
            if j in rows:
                margin = margin + (rows[j][ball.label] - rows[j][ball.rival]) @ value
        model.addConstr(margin <= 0)
        away = (x - ball.center) / ball.widths
        if ball.norm == "linf":
            far: Any = model.addVar()
            model.addConstr(away <= far)
            model.addConstr(-away <= far)
            model.setObjective(far)
        else:
            model.setObjective((away * away).sum())
        model.optimize()
        if model.Status != gp.GRB.OPTIMAL:
            return None
        value = float(model.ObjVal)
        return value if ball.norm == "linf" else float(np.sqrt(max(0.0, value)))
