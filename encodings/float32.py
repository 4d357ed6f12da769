"""How far any float32 evaluation can be from the reals, as certificates define it (proofs/FORMAT.md, section 8).

Canonical layer by canonical layer: A bounds |x| over the reals, e bounds |float32 result - x|. For z = sum w_k x_k + b
with K terms that are not identically zero, N the greatest n of those of them that affine layers give, n = K + 3 + N
and T = sum |w_k| (A_k + e_k) + |b|,

    A = sum |w_k| A_k + |b|        e = sum |w_k| e_k + n u (257/256) T + 2**-64

so a chain of affine layers is bounded as the one long sum that runtimes make of it. This file computes the same numbers
in float64 and enlarges them, so that what is claimed here is accepted there. It knows the canonical layers by
`Network.inner` (several nodes that make one) and `Affine.product` (a node that makes two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluation import needed
from .network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum
from .space import SwapSpace

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
    roundings: Array
    """n of elements that affine layers give, 0 of others."""
    known: Array | None = None
    """The numbers of constants among other elements (NaN for these), where there are any."""

    @property
    def live(self) -> Array:
        return np.asarray(self.magnitude + self.error > 0)

    @property
    def met(self) -> Array:
        """The roundings that a term may bring along."""
        return np.where(self.live, self.roundings, 0.0)


@dataclass(frozen=True, eq=False)
class Terms:
    """Of an affine layer that is not complete: sums of |w_k| A_k and |w_k| e_k, |b|, K, N, and the greatest |w_k|."""

    magnitude: Array
    error: Array
    bias: Array
    count: Array
    deepest: Array
    largest: Array

    @classmethod
    def of(cls, x: Size) -> Terms:
        zeros = np.zeros_like(x.magnitude)
        return cls(x.magnitude, x.error, zeros, x.live.astype(np.float64), x.met, np.ones_like(zeros))

    def scaled(self, factor: Array, added: Array) -> Terms:
        factor = np.abs(factor)
        bias = factor * self.bias + np.abs(added)
        return Terms(
            factor * self.magnitude, factor * self.error, bias, self.count, self.deepest, factor * self.largest
        )

    def moved(self, order: NDArray[np.int64]) -> Terms:
        parts = self.magnitude, self.error, self.bias, self.count, self.deepest, self.largest
        return Terms(*(moved(order, [part]) for part in parts))

    def size(self) -> Size:
        """Of the complete layer."""
        total = (self.magnitude + self.error + self.bias) * SLOP
        n = self.count + 3 + self.deepest
        grown = (self.error + n * UNIT * total) * SLOP + 2 * GRID
        fits = (n <= MOST_TERMS) & (total <= LARGEST) & (self.largest <= LARGEST) & (self.bias <= LARGEST)
        return Size((self.magnitude + self.bias) * SLOP + GRID, np.where(fits, grown, np.inf), n)


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
    open_terms: dict[int, Terms] = {}
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
                result[index] = Size(magnitude, np.zeros_like(magnitude), np.zeros_like(magnitude))
            case Constant(value):
                zeros = np.zeros_like(value)[None]
                result[index] = Size(np.abs(value)[None], zeros, zeros, value[None])
            case Rearrangement(order):
                if node.inputs[0] in network.inner:
                    open_terms[index] = open_terms[node.inputs[0]].moved(order)
                magnitude, error, roundings = (
                    moved(order, [getattr(x, name) for x in inputs]) for name in ("magnitude", "error", "roundings")
                )
                known = [np.full_like(x.magnitude, np.nan) if x.known is None else x.known for x in inputs]
                constant = moved(order, known) if any(x.known is not None for x in inputs) else None
                result[index] = Size(magnitude, error, roundings, constant)
            case Affine(weight, bias) as layer:
                if layer.product is None:
                    open_terms[index] = multiplied(inputs[0], weight, bias)
                else:
                    between = multiplied(inputs[0], weight, np.zeros_like(bias)).size()
                    open_terms[index] = Terms.of(between).scaled(np.ones(()), bias)
            case Scaling(multiply, divide, add, _):
                (source,) = node.inputs
                terms = open_terms[source] if source in network.inner else Terms.of(inputs[0])
                open_terms[index] = terms.scaled(multiply / divide, add)
            case Sum():
                open_terms[index] = summed(
                    [open_terms.get(i) if i in network.inner else None for i in node.inputs], inputs
                )
            case Rectifier(slope):
                result[index] = bent(slope, inputs[0], None if found is None else found[node.inputs[0]])
            case Maximum():
                magnitude = greatest(inputs[0]) if found is None else np.abs(found[index])
                result[index] = Size(magnitude + GRID, inputs[0].error.max(axis=-1), np.zeros_like(magnitude))
        if index not in result:
            result[index] = open_terms[index].size()
    return result


def multiplied(x: Size, weight: Array, bias: Array) -> Terms:
    absolute = np.abs(weight)
    magnitude, error = x.magnitude @ absolute, x.error @ absolute
    count = x.live.astype(np.float64) @ (weight != 0)
    deepest = np.broadcast_to(x.met.max(axis=-1, keepdims=True), magnitude.shape)
    largest = np.broadcast_to(absolute.max(axis=0, initial=0.0), magnitude.shape)
    return Terms(magnitude, error, np.broadcast_to(np.abs(bias), magnitude.shape), count, deepest, largest)


def summed(open_terms: list[Terms | None], inputs: list[Size]) -> Terms:
    parts = [Terms.of(x) if terms is None else terms for terms, x in zip(open_terms, inputs, strict=True)]
    sums = (reduce(np.add, [getattr(part, name) for part in parts]) for name in ("magnitude", "error", "bias", "count"))
    greatest_ones = (reduce(np.maximum, [getattr(part, name) for part in parts]) for name in ("deepest", "largest"))
    return Terms(*sums, *greatest_ones)


def bent(slope: float, x: Size, found: Array | None) -> Size:
    """Of a rectifier on x, which is `found` [batch, ...] if that is known."""
    magnitude, error = x.magnitude, x.error
    if found is not None:
        magnitude = np.abs(found)
        if slope == 0:  # no float32 evaluation of what is far enough below 0 is above it
            dead = found + (1.0 + 2.0**-10) * error + 2 * GRID <= 0
            magnitude, error = np.where(dead, 0.0, np.maximum(found, 0.0)) + GRID * ~dead, np.where(dead, 0.0, error)
            return Size(magnitude, error, np.zeros_like(magnitude))
    if slope != 0:
        grown = (error + 4 * UNIT * (magnitude + error)) * SLOP + 2 * GRID
        error = np.where((magnitude + error) * SLOP <= LARGEST, grown, np.inf)
    return Size(magnitude + GRID, error, np.zeros_like(magnitude))


def greatest(x: Size) -> Array:
    """Bounds of the greatest of each window: a number far below the others, a mask's, plays no part in it."""
    if x.known is None:
        return np.asarray(x.magnitude.max(axis=-1))
    low, high = (np.where(np.isnan(x.known), sign * x.magnitude, x.known).max(axis=-1) for sign in (-1, 1))
    return np.asarray(np.maximum(-low, high))


def moved(order: NDArray[np.int64], arrays: list[Array]) -> Array:
    batch = max(len(array) for array in arrays)
    flat = np.concatenate([np.broadcast_to(a, (batch, *a.shape[1:])).reshape(batch, -1) for a in arrays], axis=1)
    return np.take(flat, order.ravel(), axis=1).reshape(batch, *order.shape)


def margin_errors(network: Network, found: Mapping[int, Size], label: int) -> Array:
    """[batch, classes]: a real margin z_label - z_class above this keeps its sign in every float32 evaluation."""
    error = found[len(network.nodes) - 1].error[:, 0, :]
    error = np.where(np.isnan(error), np.inf, error)  # where a magnitude is beyond float64
    barred = network.account is not None and (network.account.real_only or network.account.foreign)
    if barred or network.unit != 2.0**-24 or network.head != "logits" or network.inexact:
        error = np.full_like(error, np.inf)
    return np.asarray((error + error[:, label : label + 1]) * SLOP)
