"""Networks that are formulas in disguise: gadgets that leave an input two values, and rows of integers about them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from graph_builder import Builder, floats
from hypothesis import strategies as st
from numeric_models import Numeric

from swapproof.encodings.network import Floats


@dataclass(frozen=True)
class Formula:
    """Rows a x <= b over x in `ends`[0] or `ends`[1] of each variable: Y_0 is the sum of what they are broken by,
    Y_1 is above 0 between the ends."""

    rows: Floats
    limits: Floats
    ends: Floats

    def has_answer(self) -> bool:
        points = np.array(list(product(*self.ends.T.tolist())))
        return bool((points @ self.rows.T <= self.limits).all(axis=1).any())

    def network(self) -> Numeric:
        """With p and q the ends, relu(x - p) - 2 relu(x - (p + q) / 2) is 0 at both and above 0 between them."""
        count, (low, high) = len(self.rows), self.ends
        size = len(low)
        eye = np.eye(size)
        weight = np.concatenate([self.rows, eye, eye]).T
        bias = np.concatenate([-self.limits, -low, -(low + high) / 2])
        last = np.zeros((len(bias), 2))
        last[:count, 0] = 1
        last[count : count + size, 1], last[count + size :, 1] = 1, -2
        g = Builder()
        first = [g.constant(part.astype(np.float32)) for part in (weight, bias)]
        hidden = g.call("Relu", g.call("Gemm", "X", *first))
        g.node("MatMul", [hidden, g.constant(last.astype(np.float32))], ["Y"])
        model = g.proto([floats("X", 1, size)], [floats("Y", 1, 2)], name="formula", opset=13)
        return Numeric(model, (1, size), 2, "formula", 0)

    def query(self) -> str:
        size = len(self.ends[0])
        lines = [f"(declare-const X_{i} Real)" for i in range(size)]
        lines += ["(declare-const Y_0 Real)", "(declare-const Y_1 Real)"]
        for i, (low, high) in enumerate(self.ends.T.tolist()):
            lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
        return "\n".join([*lines, "(assert (<= Y_0 0.0))", "(assert (<= Y_1 0.0))"])


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    """Clauses, and rows of other integers; some have answers and some have not."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    size, count = draw(st.integers(2, 6)), draw(st.integers(2, 24))
    low = random.integers(-2, 1, size).astype(float)
    ends = np.array([low, low + random.integers(1, 3, size)])
    rows = random.integers(-1, 2, (count, size)).astype(float)
    if draw(st.booleans()):
        rows *= random.integers(1, 4, (count, size))
    least = np.minimum(rows * ends[0], rows * ends[1]).sum(axis=1)
    most = np.maximum(rows * ends[0], rows * ends[1]).sum(axis=1)
    slack = random.random(count) if draw(st.booleans()) else np.full(count, 0.99)
    return Formula(rows, np.floor(least + slack * np.maximum(most - least - 0.5, 0)), ends)
