"""How great values and their errors can be beyond the cut: the weights that coefficients' errors are measured by.

Let R(C) be what the recipe makes of a function with coefficients C of the elements of some nodes: substituted backwards
with relaxations chosen by the signs of coefficients, then minimised over the region. With

    M = greatest |x| at the cut        |c| of a constant            |W| M + |b| after W x + b
    (2 + 2**-10) (M + g) after a rectifier, g = 2**-63
    the greatest M of a window, and g, after a maximum, constants that never win left out

|R(C) - R(C')| <= sum |C_i - C'_i| M_i. By induction from the cut: there R is a minimum over sentences of C x; a linear
layer hands on W (C - C') and b (C - C'); a rectifier hands on c times a line of slope at most 1 + 2**-17 that is raised
by at most M + g (its bounds l and u are values of R, rounded outwards to the grid of 2**-64), an element of a joint
group c a x and at most |c| M; when the signs of c and c' differ, |c - c'| = |c| + |c'| and both lines are so bounded.
Relaxed values themselves lie within M by the same induction.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swapproof.encodings.network import Affine, Constant, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from swapproof.encodings.rounding.magnitudes import constants
from swapproof.encodings.walk import needed

from ..form.unsure import Unsure
from .float64_rounding import GRID, LARGEST, SLOP, TINY, UNIT, Floats, growth

LINE = 2.0 + 2.0**-10


def magnitudes(network: Network, cut: Mapping[int, Floats]) -> dict[int, Floats]:
    """Node -> [..., size] for the cut (as given) and all that depends on it."""
    lead = next(iter(cut.values())).shape[:-1]
    known = dict(cut)
    for index in needed(network, frozenset(cut)):
        node = network.nodes[index]
        inputs = [known[source] for source in node.inputs]
        match node.layer:
            case Constant(value):
                size = np.broadcast_to(np.abs(value).reshape(-1), (*lead, node.size))
            case Rearrangement(order):
                size = np.concatenate(inputs, axis=-1)[..., order.reshape(-1)]
            case Affine(weight, bias):
                blocks = inputs[0].reshape(*lead, -1, len(weight))
                size = (blocks @ np.abs(weight) + np.abs(bias)).reshape(*lead, -1)
            case Scaling(multiply, divide, add, _):
                size = inputs[0] * np.abs(multiply / divide).reshape(-1) + np.abs(add).reshape(-1)
            case Sum():
                size = np.add.reduce(inputs)
            case Rectifier():
                size = (inputs[0] + 2 * GRID) * LINE
            case Maximum():
                windows = inputs[0].reshape(*lead, node.size, -1)
                fixed = constants(network, node.inputs[0]).reshape(node.size, -1)
                # A constant below what some element is at least has neither the greatest l nor the greatest u.
                least = np.where(np.isnan(fixed), -windows, -np.inf).max(axis=-1, keepdims=True)
                size = np.where(fixed < least, 0.0, windows).max(axis=-1) + 2 * GRID
            case _:
                raise Unsure(f"a {type(node.layer).__name__} beyond the cut")
        known[index] = size * SLOP
        if not (known[index] < LARGEST).all():
            raise Unsure("numbers too large for this arithmetic")
    return known


def evaluation_errors(network: Network, cut: Mapping[int, Floats], sizes: Mapping[int, Floats]) -> dict[int, Floats]:
    """Node -> [..., size]: how far float64 values can be from the real ones, with these errors of the cut.

    |W| e + growth(n + 2) M for n terms; rectifiers and maxima keep errors, but for the product of a leaky slope.
    """
    known, lead = dict(cut), next(iter(cut.values())).shape[:-1]
    for index in needed(network, frozenset(cut)):
        node = network.nodes[index]
        inputs = [known[source] for source in node.inputs]
        match node.layer:
            case Constant():
                error = np.zeros((*lead, node.size))
            case Rearrangement(order):
                error = np.concatenate(inputs, axis=-1)[..., order.reshape(-1)]
            case Affine(weight, _):
                carried = (inputs[0].reshape(*lead, -1, len(weight)) @ np.abs(weight)).reshape(*lead, -1)
                error = carried + growth(len(weight) + 2) * (sizes[index] + carried)
            case Scaling(multiply, divide, _, _):
                carried = inputs[0] * np.abs(multiply / divide).reshape(-1)
                error = carried + growth(6) * (sizes[index] + carried)
            case Sum(signs):
                carried = np.add.reduce(inputs)
                error = carried + growth(len(signs)) * (sizes[index] + carried)
            case Rectifier(slope):
                error = inputs[0] + (UNIT * (sizes[index] + inputs[0]) if slope not in (0.0, 1.0) else 0.0)
            case Maximum():
                error = inputs[0].reshape(*lead, node.size, -1).max(axis=-1)
            case _:
                raise Unsure(f"a {type(node.layer).__name__} beyond the cut")
        known[index] = error * SLOP + TINY
    return known
