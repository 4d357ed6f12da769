"""How far any float32 evaluation can be from the reals, as certificates define it (proofs/FORMAT.md, section 8).

Layer by layer: A bounds |x| over the reals, e bounds |float32 result - x|. For z = sum w_k x_k + b with K terms that
are not identically zero, n = K + 3 and T = sum |w_k| (A_k + e_k) + |b|,

    A = sum |w_k| A_k + |b|        e = sum |w_k| e_k + n u (257/256) T + 2**-64

This file computes the same numbers in float64 and enlarges them, so that what is claimed here is accepted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import needed
from ..network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from ..space import SwapSpace

Array = NDArray[Any]

UNIT = 257.0 / 2**32
GRID = 2.0**-64
SLOP = 1.0 + 2.0**-20
"""Covers the rounding of this float64 computation."""
LARGEST = 2.0**40
"""Weights, biases and sums of terms beyond this are refused: the bound is then infinite."""
MOST_TERMS = 65_280


@dataclass(frozen=True, eq=False)
class Size:
    """Of one node, with a leading batch axis."""

    magnitude: Array
    error: Array
    known: Array | None = None
    """The numbers of constants among other elements (NaN for these), where there are any."""


@np.errstate(invalid="ignore", over="ignore")  # an infinite error may become NaN, and ends as infinite
def sizes(
    network: Network,
    space: SwapSpace,
    found: Mapping[int, Array] | None = None,
    whole: Mapping[int, Size] | None = None,
) -> dict[int, Size]:
    """Node -> its magnitude and error over the whole space; or, with the real values `found` [batch, ...] of
    the nodes and the `whole` sizes, for each of these sentences alone."""
    result: dict[int, Size] = {}
    for index in needed(network, frozenset()):
        if whole is not None and index in network.linear:
            result[index] = whole[index]  # nothing before the first nonlinear layer is refined
            continue
        node = network.nodes[index]
        inputs = [result[source] for source in node.inputs]
        match node.layer:
            case Embedding(table, positions):
                width = max(len(options) for options in space.choices)
                tokens = np.array([[*row, *(row[:1] * (width - len(row)))] for row in space.choices])
                magnitude = np.abs(table[tokens[positions]].astype(np.float64)).max(axis=-2)[None]
                result[index] = Size(magnitude, np.zeros_like(magnitude))
            case Constant(value):
                result[index] = Size(np.abs(value)[None], np.zeros_like(value)[None], value[None])
            case Rearrangement(order):
                magnitude = moved(order, [x.magnitude for x in inputs])
                error = moved(order, [x.error for x in inputs])
                known = [np.full_like(x.magnitude, np.nan) if x.known is None else x.known for x in inputs]
                constant = moved(order, known) if any(x.known is not None for x in inputs) else None
                result[index] = Size(magnitude, error, constant)
            case Affine(weight, bias):
                absolute = np.abs(weight)
                live = (inputs[0].magnitude + inputs[0].error > 0).astype(np.float64) @ (weight != 0)
                magnitude, error = inputs[0].magnitude @ absolute, inputs[0].error @ absolute
                added, largest = np.abs(bias), absolute.max(initial=0.0)
                whole_row = linear(magnitude, error, added, live, largest)
                # The file may say MatMul and then Add: two layers there, one here. The greater bound covers both.
                product = linear(magnitude, error, np.zeros(1), live, largest)
                apart = linear(product.magnitude, product.error, added, np.ones(1), 1.0)
                result[index] = Size(whole_row.magnitude, np.maximum(whole_row.error, apart.error))
            case Scaling(multiply, divide, add, _):
                factor = np.abs(multiply / divide)
                largest = max(float(factor.max(initial=0.0)), float(np.abs(multiply).max(initial=0.0)))
                result[index] = linear(
                    factor * inputs[0].magnitude, factor * inputs[0].error, np.abs(add), np.ones(1), largest
                )
            case Sum():
                magnitude = reduce(np.add, [x.magnitude for x in inputs])
                error = reduce(np.add, [x.error for x in inputs])
                result[index] = linear(magnitude, error, np.zeros(1), np.full(1, float(len(inputs))), 1.0)
            case Rectifier(slope):
                magnitude, error = inputs[0].magnitude, inputs[0].error
                if found is not None:
                    magnitude = np.abs(found[index]) if slope == 0 else np.abs(found[node.inputs[0]])
                if slope != 0:
                    error = (error + 4 * UNIT * (magnitude + error)) * SLOP + 2 * GRID
                result[index] = Size(magnitude + GRID, error)
            case Maximum():
                magnitude = greatest(inputs[0]) if found is None else np.abs(found[index])
                result[index] = Size(magnitude + GRID, inputs[0].error.max(axis=-1))
    return result


def greatest(x: Size) -> Array:
    """Bounds of the greatest of each window: a number far below the others, a mask's, plays no part in it."""
    if x.known is None:
        return np.asarray(x.magnitude.max(axis=-1))
    low, high = (np.where(np.isnan(x.known), sign * x.magnitude, x.known).max(axis=-1) for sign in (-1, 1))
    return np.asarray(np.maximum(-low, high))


def linear(magnitude: Array, error: Array, bias: Array, terms: Array, largest: float) -> Size:
    total = (magnitude + error + bias) * SLOP
    n = terms + 3
    grown = (error + n * UNIT * total) * SLOP + 2 * GRID
    fits = (n <= MOST_TERMS) & (total <= LARGEST) & (largest <= LARGEST) & (bias <= LARGEST)
    return Size((magnitude + bias) * SLOP + GRID, np.where(fits, grown, np.inf))


def moved(order: NDArray[np.int64], arrays: list[Array]) -> Array:
    batch = max(len(array) for array in arrays)
    flat = np.concatenate([np.broadcast_to(a, (batch, *a.shape[1:])).reshape(batch, -1) for a in arrays], axis=1)
    return np.take(flat, order.ravel(), axis=1).reshape(batch, *order.shape)


def margin_errors(network: Network, found: Mapping[int, Size], label: int) -> Array:
    """[batch, classes]: a real margin z_label - z_class above this keeps its sign in every float32 evaluation."""
    error = found[len(network.nodes) - 1].error[:, 0, :]
    error = np.where(np.isnan(error), np.inf, error)  # where a magnitude is beyond float64
    if network.unit != 2.0**-24 or network.head != "logits" or network.inexact:
        error = np.full_like(error, np.inf)
    return np.asarray((error + error[:, label : label + 1]) * SLOP)
