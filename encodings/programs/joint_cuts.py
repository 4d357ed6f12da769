"""Rows that no neuron by itself implies: what a group of neurons of one hidden layer can reach together.

For slopes a_j and a group G of neurons that can only lower the margin, with T_G of `joint_bounds` exact,

    sum over G of |w_j| (relu(x_j) - a_j x_j) <= T_G
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bounds.joint_bounds import Ascent
from ..bounds.shallow_margin import Shallow
from .affine_functions import Expressions, added
from .integer_program import Row

Array = NDArray[Any]
Neurons = Mapping[tuple[int, int], tuple[Expressions, int]]
"""(rectifier node, element) -> what it reads, and the column of what it gives."""

GROUP = 6
"""Neurons in a group: its maximum is over 2**GROUP patterns."""
STEPS = 24
"""Of ascent, for the slopes."""
REACH, SHRINK = 0.3, 0.97


def joint_cuts(shallow: Shallow, k: int, neurons: Neurons, group: int = GROUP, steps: int = STEPS) -> list[Row]:
    if k < 1 or not shallow.places.count:
        return []
    ascent = Ascent(shallow, k, group)
    if not ascent.groups:
        return []
    for step in range(steps):
        ascent.step(REACH * SHRINK**step)
    slopes = ascent.best_slopes
    rows = []
    for number, (members, most) in enumerate(
        zip(ascent.groups, ascent.maxima(ascent.functions(slopes, ascent.bits)).max(axis=1).tolist(), strict=True)
    ):
        if any(shallow.elements[neuron] not in neurons for neuron in members):
            continue
        parts = []
        for neuron in members:
            x, y = neurons[shallow.elements[neuron]]
            # y = leak x + (1 - leak) relu(x) is what the network gives; `shallow_margin` speaks of relu(x).
            leak, weight = float(shallow.leaks[neuron]), -float(shallow.weights[neuron])
            of_y, of_x = weight / (1.0 - leak), -weight * (float(slopes[neuron]) + leak / (1.0 - leak))
            parts.append(Expressions.of_terms(np.array([0]), np.array([y]), np.array([of_y]), np.zeros(1)))
            parts.append(x.scaled(np.array([of_x]), np.zeros(1)))
        total = added(parts, [1] * len(parts))
        columns, coefficients = total.terms(0)
        rows.append(Row(f"joint[{number}]", columns, coefficients, -np.inf, most - float(total.constant[0])))
    return rows
