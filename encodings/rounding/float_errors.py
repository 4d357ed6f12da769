"""How far any floating-point evaluation of a network can be from its value over the reals.

With u the unit roundoff, a an input (|a| bounded by `magnitude`), e its error and K inputs per output, every order of
summation, with or without fused multiply-add, gives for z = W a + b

    |z^ - z| <= |W| e + (K + 1) u (|W| (|a| + e) + |b|) + 2 (K + 1) 2**-126

(the dot-product bound of Jeannerod and Rump, and the underflow unit for flushed products and sums). Rectifiers and
maxima do not enlarge errors, beyond the one product of a leaky slope.

Runtimes fuse: a product, sum or batch normalisation after W a + b goes into its weights, or starts its accumulation.
A chain of such layers is therefore bounded as the one long sum that it is: D roundings at most met by any term give

    |z^ - z| <= (errors from before the chain, propagated) + D u / (1 - D u) * (sum of the terms' absolute values)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import (
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Head,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Meaning, forward, gather

Array = NDArray[Any]

SINGLE = 2.0**-24
SLOP = 1.0 + 2.0**-20
"""Covers the float64 arithmetic of this very computation, whose own relative error is below 2**-40 for any network
that fits in memory (a sum of K terms loses K * 2**-53)."""
UNDERFLOW = 2.0**-126
LARGEST = 2.0**120
"""Beyond this a float32 evaluation might overflow: the bound is then infinite."""
HALF_UNDERFLOW, HALF_LARGEST = 2.0**-14, 2.0**15
"""The same for float16."""
DIVISORS = (2.0**-100, 2.0**100)
"""A division may be done by the reciprocal, which must not overflow or vanish."""
HEAD_SLACK: dict[Head, float] = {
    # exp and the division keep the order of the two largest logits when these differ by far more than their rounding:
    # 64 units of float32, and as many of another type.
    "logits": 0.0,
    "softmax": 2.0**-18,
    "log_softmax": 2.0**-18,
    # These saturate: logits far apart can become equal floats.
    "sigmoid": np.inf,
    "tanh": np.inf,
}


@dataclass(frozen=True, eq=False)
class Bound:
    """What is known of one node: its error, and its value as a sum of terms that a runtime may add in any order."""

    error: Array
    size: Array
    """Of the float value: magnitude and error together."""
    outside: Array
    """What the errors of the terms' own inputs can amount to."""
    gross: Array
    """Sum of the terms' absolute values."""
    roundings: int = 0
    """Met by any one term on its way to the total; 0 for a value that is one term."""


@dataclass(frozen=True, eq=False)
class Rounding:
    """Floats of unit roundoff u, and bounds of what each node is over the reals."""

    unit: float
    magnitudes: Mapping[int, Array]
    cast: int
    """1 when constants are rounded to these floats as well."""

    @property
    def underflow(self) -> float:
        return HALF_UNDERFLOW if self.unit > SINGLE else UNDERFLOW

    @property
    def largest(self) -> float:
        return HALF_LARGEST if self.unit > SINGLE else LARGEST

    def hold(self, layer: Embedding | Constant, inputs: list[Bound], at: At) -> Bound:
        magnitude = self.magnitudes[at.index]
        return single_term(magnitude, self.cast * (self.unit * magnitude + self.underflow))

    def rearrange(self, layer: Rearrangement, inputs: list[Bound], at: At) -> Bound:
        magnitude = self.magnitudes[at.index]
        leading = magnitude.ndim - len(at.node.shape)
        error = gather(layer, [x.error for x in inputs], leading)
        roundings = max(x.roundings for x in inputs)
        if not roundings:
            return single_term(magnitude, error)
        outside, gross = (gather(layer, [getattr(x, part) for x in inputs], leading) for part in ("outside", "gross"))
        return Bound(error, magnitude + error, outside, gross, roundings)

    def multiply(self, layer: Affine, inputs: list[Bound], at: At) -> Bound:
        (x,) = inputs
        absolute, extra = np.abs(layer.weight), layer.roundings - 1 + 2 * self.cast
        terms = layer.terms + extra
        gross = x.size @ absolute + np.abs(layer.bias)
        outside = x.error @ absolute + 2 * terms * self.underflow
        error = (outside + (growth(terms, self.unit) if extra else terms * self.unit) * gross) * SLOP
        return Bound(error, self.magnitudes[at.index] + error, outside, gross, int(terms.max()))

    def scale(self, layer: Scaling, inputs: list[Bound], at: At) -> Bound:
        (x,) = inputs
        multiply, divide, mine = layer.multiply, layer.divide, layer.roundings + 1 + 3 * self.cast
        factor, divisor = np.abs(multiply / divide), np.abs(divide)
        gross = factor * x.gross + np.abs(layer.add)
        spread = np.maximum(np.maximum(np.abs(multiply), 1.0 / divisor), 1.0)
        outside = factor * x.outside + mine * spread * self.underflow
        outside = np.where((divisor > DIVISORS[0]) & (divisor < DIVISORS[1]), outside, np.inf)
        # More roundings than usual mark what is not the identity it looks like: a cast, a normalisation.
        changes = (multiply != 1) | (divide != 1) | (layer.add != 0) | (layer.roundings > 1)
        error = np.where(changes, (outside + growth(x.roundings + mine, self.unit) * gross) * SLOP, x.error)
        return Bound(error, self.magnitudes[at.index] + error, outside, gross, x.roundings + mine)

    def add_up(self, layer: Sum, inputs: list[Bound], at: At) -> Bound:
        more = len(inputs) - 1
        outside = np.add.reduce([x.outside for x in inputs]) + more * self.underflow
        gross = np.add.reduce([x.gross for x in inputs])
        roundings = sum(x.roundings for x in inputs) + more
        error = (outside + growth(roundings, self.unit) * gross) * SLOP
        return Bound(error, self.magnitudes[at.index] + error, outside, gross, roundings)

    def rectify(self, layer: Rectifier, inputs: list[Bound], at: At) -> Bound:
        (x,) = inputs
        rounds = layer.slope not in (0.0, 1.0)
        leak = growth(1 + self.cast, self.unit) * x.size + self.underflow if rounds else 0.0
        return single_term(self.magnitudes[at.index], (x.error + leak) * SLOP)

    def take_greatest(self, layer: Maximum, inputs: list[Bound], at: At) -> Bound:
        return single_term(self.magnitudes[at.index], inputs[0].error.max(axis=-1))

    def finish(self, at: At, found: Bound) -> Bound:
        return replace(found, error=np.where(found.gross + found.error < self.largest, found.error, np.inf))


def single_term(magnitude: Array, error: Array) -> Bound:
    return Bound(error, magnitude + error, error, magnitude + error)


ERRORS: Meaning[Bound] = Meaning(
    "bound of its rounding",
    {
        Embedding: Rounding.hold,
        Constant: Rounding.hold,
        Rearrangement: Rounding.rearrange,
        Affine: Rounding.multiply,
        Scaling: Rounding.scale,
        Sum: Rounding.add_up,
        Rectifier: Rounding.rectify,
        Maximum: Rounding.take_greatest,
    },
    dict.fromkeys(SMOOTH, "how it passes errors on depends on what it reads: smooth networks are bounded by intervals"),
)


def rounding_errors(
    network: Network,
    magnitudes: Mapping[int, Array],
    unit: float | None = None,
    given: Mapping[int, Array] | None = None,
) -> dict[int, Array]:
    """Node -> bound on |float value - real value|, given a bound on |real value| for every node.

    The arrays may have a leading batch axis; the result then has it too. `given` holds the errors of nodes that are
    computed in some other way (what only they read needs no magnitude). A `unit` coarser than the network's also
    covers rounding its constants to that unit.
    """
    u = network.unit if unit is None else unit
    rounding = Rounding(u, magnitudes, 1 if u > network.unit else 0)
    known = {index: single_term(magnitudes[index], error) for index, error in (given or {}).items()}
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite error may become NaN, and ends as infinite
        found = forward(network, ERRORS, rounding, known, finish=rounding.finish)
    return {index: bound.error for index, bound in found.items()}


def growth(roundings: Array | int, u: float) -> Array:
    """(1 + u)**D - 1 <= D u / (1 - D u), while D u < 1."""
    product = np.asarray(roundings * u)
    return np.where(product < 1.0, product / np.where(product < 1.0, 1.0 - product, 1.0), np.inf)


def margin_errors(network: Network, magnitudes: Mapping[int, Array], label: int, unit: float | None = None) -> Array:
    """[..., classes]: a real margin z_label - z_class above this keeps its sign in every float evaluation.

    With a final softmax: of the two classes when the label has the greatest logit.
    """
    last = len(network.nodes) - 1
    errors = rounding_errors(network, magnitudes, unit)[last][..., 0, :]
    slack = HEAD_SLACK[network.head] * network.unit / SINGLE if unit is None else 0.0
    return np.asarray(errors + errors[..., label : label + 1] + slack)
