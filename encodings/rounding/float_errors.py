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

from ..evaluation import needed
from ..network import Affine, Constant, Embedding, Head, Maximum, Network, Node, Rearrangement, Rectifier, Scaling, Sum

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
    largest = HALF_LARGEST if u > SINGLE else LARGEST
    bounds = {index: single_term(magnitudes[index], error) for index, error in (given or {}).items()}
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite error may become NaN, and ends as infinite
        for index in needed(network, frozenset(bounds)):
            node, magnitude = network.nodes[index], magnitudes[index]
            cast = 1 if u > network.unit else 0
            found = layer_bound(node, [bounds[source] for source in node.inputs], magnitude, u, cast)
            bounds[index] = replace(found, error=np.where(found.gross + found.error < largest, found.error, np.inf))
    return {index: bound.error for index, bound in bounds.items()}


def single_term(magnitude: Array, error: Array) -> Bound:
    return Bound(error, magnitude + error, error, magnitude + error)


def layer_bound(node: Node, inputs: list[Bound], magnitude: Array, u: float, cast: int) -> Bound:
    """The bound of one node; `cast` is 1 when its constants are rounded as well."""
    underflow = HALF_UNDERFLOW if u > SINGLE else UNDERFLOW
    match node.layer:
        case Embedding() | Constant():
            return single_term(magnitude, cast * (u * magnitude + underflow))
        case Rearrangement(order):
            shape = (*magnitude.shape[: magnitude.ndim - len(node.shape)], -1)

            def picked(arrays: list[Array]) -> Array:
                flat = np.concatenate([array.reshape(shape) for array in arrays], axis=-1)
                return np.take(flat, order.ravel(), axis=-1).reshape(magnitude.shape)

            error = picked([x.error for x in inputs])
            roundings = max(x.roundings for x in inputs)
            if not roundings:
                return single_term(magnitude, error)
            outside, gross = picked([x.outside for x in inputs]), picked([x.gross for x in inputs])
            return Bound(error, magnitude + error, outside, gross, roundings)
        case Affine(weight, bias) as layer:
            (x,) = inputs
            absolute, extra = np.abs(weight), layer.roundings - 1 + 2 * cast
            terms = layer.terms + extra
            gross = x.size @ absolute + np.abs(bias)
            outside = x.error @ absolute + 2 * terms * underflow
            error = (outside + (growth(terms, u) if extra else terms * u) * gross) * SLOP
            return Bound(error, magnitude + error, outside, gross, int(terms.max()))
        case Scaling(multiply, divide, add, roundings):
            (x,) = inputs
            factor, divisor, mine = np.abs(multiply / divide), np.abs(divide), roundings + 1 + 3 * cast
            gross = factor * x.gross + np.abs(add)
            spread = np.maximum(np.maximum(np.abs(multiply), 1.0 / divisor), 1.0)
            outside = factor * x.outside + mine * spread * underflow
            outside = np.where((divisor > DIVISORS[0]) & (divisor < DIVISORS[1]), outside, np.inf)
            # More roundings than usual mark what is not the identity it looks like: a cast, a normalisation.
            changes = (multiply != 1) | (divide != 1) | (add != 0) | (roundings > 1)
            error = np.where(changes, (outside + growth(x.roundings + mine, u) * gross) * SLOP, x.error)
            return Bound(error, magnitude + error, outside, gross, x.roundings + mine)
        case Sum():
            more = len(inputs) - 1
            outside = np.add.reduce([x.outside for x in inputs]) + more * underflow
            gross = np.add.reduce([x.gross for x in inputs])
            roundings = sum(x.roundings for x in inputs) + more
            error = (outside + growth(roundings, u) * gross) * SLOP
            return Bound(error, magnitude + error, outside, gross, roundings)
        case Rectifier(slope):
            (x,) = inputs
            leak = 0.0 if slope in (0.0, 1.0) else growth(1 + cast, u) * x.size + underflow
            return single_term(magnitude, (x.error + leak) * SLOP)
        case Maximum():
            return single_term(magnitude, inputs[0].error.max(axis=-1))


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
