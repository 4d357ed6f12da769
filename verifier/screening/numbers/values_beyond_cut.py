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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.rounding.magnitudes import constants
from swapproof.encodings.walk import Meaning, forward

from ..form.unsure import Unsure
from .float64_rounding import GRID, LARGEST, SLOP, TINY, UNIT, Floats, growth

LINE = 2.0 + 2.0**-10
ACROSS = "words are known at the cut, and this one is read across it"
BENT = "only piecewise linear networks are screened so"


@dataclass(frozen=True, eq=False)
class Greatest:
    """Magnitudes [*lead, size] of nodes."""

    network: Network
    lead: tuple[int, ...]

    def hold(self, layer: Constant, inputs: Sequence[Floats], at: At) -> Floats:
        return np.broadcast_to(np.abs(layer.value).reshape(-1), (*self.lead, at.node.size))

    def rearrange(self, layer: Rearrangement, inputs: Sequence[Floats], at: At) -> Floats:
        return laid(layer, inputs)

    def multiply(self, layer: Affine, inputs: Sequence[Floats], at: At) -> Floats:
        blocks = inputs[0].reshape(*self.lead, -1, len(layer.weight))
        return np.asarray((blocks @ np.abs(layer.weight) + np.abs(layer.bias)).reshape(*self.lead, -1))

    def scale(self, layer: Scaling, inputs: Sequence[Floats], at: At) -> Floats:
        return inputs[0] * np.abs(layer.multiply / layer.divide).reshape(-1) + np.abs(layer.add).reshape(-1)

    def add_up(self, layer: Sum, inputs: Sequence[Floats], at: At) -> Floats:
        return np.asarray(np.add.reduce(inputs))

    def rectify(self, layer: Rectifier, inputs: Sequence[Floats], at: At) -> Floats:
        return (inputs[0] + 2 * GRID) * LINE

    def take_greatest(self, layer: Maximum, inputs: Sequence[Floats], at: At) -> Floats:
        windows = inputs[0].reshape(*self.lead, at.node.size, -1)
        fixed = constants(self.network, at.node.inputs[0]).reshape(at.node.size, -1)
        # A constant below what some element is at least has neither the greatest l nor the greatest u.
        least = np.where(np.isnan(fixed), -windows, -np.inf).max(axis=-1, keepdims=True)
        return np.asarray(np.where(fixed < least, 0.0, windows).max(axis=-1) + 2 * GRID)


GREATEST: Meaning[Floats] = Meaning(
    "magnitude beyond the cut",
    {
        Constant: Greatest.hold,
        Rearrangement: Greatest.rearrange,
        Affine: Greatest.multiply,
        Scaling: Greatest.scale,
        Sum: Greatest.add_up,
        Rectifier: Greatest.rectify,
        Maximum: Greatest.take_greatest,
    },
    {Embedding: ACROSS, **dict.fromkeys(SMOOTH, BENT)},
)


def magnitudes(network: Network, cut: Mapping[int, Floats]) -> dict[int, Floats]:
    """Node -> [..., size] for the cut (as given) and all that depends on it."""

    def finish(at: At, size: Floats) -> Floats:
        size = size * SLOP
        if not (size < LARGEST).all():
            raise Unsure("numbers too large for this arithmetic")
        return size

    return forward(network, GREATEST, Greatest(network, lead_of(cut)), cut, finish=finish)


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors [*lead, size] of the values of nodes with these magnitudes."""

    sizes: Mapping[int, Floats]
    lead: tuple[int, ...]

    def grown(self, carried: Floats, operations: int, at: At) -> Floats:
        return carried + growth(operations) * (self.sizes[at.index] + carried)

    def hold(self, layer: Constant, inputs: Sequence[Floats], at: At) -> Floats:
        return np.zeros((*self.lead, at.node.size))

    def rearrange(self, layer: Rearrangement, inputs: Sequence[Floats], at: At) -> Floats:
        return laid(layer, inputs)

    def multiply(self, layer: Affine, inputs: Sequence[Floats], at: At) -> Floats:
        blocks = inputs[0].reshape(*self.lead, -1, len(layer.weight))
        return self.grown((blocks @ np.abs(layer.weight)).reshape(*self.lead, -1), len(layer.weight) + 2, at)

    def scale(self, layer: Scaling, inputs: Sequence[Floats], at: At) -> Floats:
        return self.grown(inputs[0] * np.abs(layer.multiply / layer.divide).reshape(-1), 6, at)

    def add_up(self, layer: Sum, inputs: Sequence[Floats], at: At) -> Floats:
        return self.grown(np.add.reduce(inputs), len(layer.signs), at)

    def rectify(self, layer: Rectifier, inputs: Sequence[Floats], at: At) -> Floats:
        (x,) = inputs
        return x + (UNIT * (self.sizes[at.index] + x) if layer.slope not in (0.0, 1.0) else 0.0)

    def take_greatest(self, layer: Maximum, inputs: Sequence[Floats], at: At) -> Floats:
        return np.asarray(inputs[0].reshape(*self.lead, at.node.size, -1).max(axis=-1))


ERRORS: Meaning[Floats] = Meaning(
    "error in float64",
    {
        Constant: Errors.hold,
        Rearrangement: Errors.rearrange,
        Affine: Errors.multiply,
        Scaling: Errors.scale,
        Sum: Errors.add_up,
        Rectifier: Errors.rectify,
        Maximum: Errors.take_greatest,
    },
    {Embedding: ACROSS, **dict.fromkeys(SMOOTH, BENT)},
)


def evaluation_errors(network: Network, cut: Mapping[int, Floats], sizes: Mapping[int, Floats]) -> dict[int, Floats]:
    """Node -> [..., size]: how far float64 values can be from the real ones, with these errors of the cut.

    |W| e + growth(n + 2) M for n terms; rectifiers and maxima keep errors, but for the product of a leaky slope.
    """
    return forward(network, ERRORS, Errors(sizes, lead_of(cut)), cut, finish=lambda at, error: error * SLOP + TINY)


def lead_of(cut: Mapping[int, Floats]) -> tuple[int, ...]:
    return next(iter(cut.values())).shape[:-1]


def laid(layer: Rearrangement, inputs: Sequence[Floats]) -> Floats:
    """`gather`, of nodes [..., size] that are flat."""
    return np.asarray(np.concatenate(inputs, axis=-1)[..., layer.index.reshape(-1)])
