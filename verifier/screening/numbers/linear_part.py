"""The part of a network that is affine in the words, on numbers, differences, or absolute values.

values        W x + b          in any float type
differences   W d              of inputs that differ by d: constants drop out
gross         |W| |x| (+ |b|)  the sum of the absolute values of all terms, which rounding errors are a share of
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from swapproof.encodings.walk import Meaning, forward, gather

from .float64_rounding import SLOP, Array

Found = tuple[Array, int]
"""[batch, *shape] of a node, and how many roundings any one term met on its way at most."""


@dataclass(frozen=True, eq=False)
class Passed:
    """[batch, width] of the cut, and how many roundings any one term met on its way at most."""

    cut: Array
    roundings: int


@dataclass(frozen=True, eq=False)
class Carried:
    """Arrays [batch, *shape] of the embedding nodes; whether absolute values are added up, and constants as well."""

    embedded: Mapping[int, Array]
    absolute: bool
    fixed: bool

    def sized(self, part: Array) -> Array:
        return np.abs(part) if self.absolute else part

    def finish(self, at: At, found: Found) -> Found:
        return (found[0] * SLOP, found[1]) if self.absolute else found

    def look_up(self, layer: Embedding, inputs: Sequence[Found], at: At) -> Found:
        return self.embedded[at.index], 0

    def hold(self, layer: Constant, inputs: Sequence[Found], at: At) -> Found:
        like = next(iter(self.embedded.values()))
        value = self.sized(layer.value) if self.fixed else np.zeros_like(layer.value)
        return np.broadcast_to(value.astype(like.dtype), (len(like), *at.node.shape)), 0

    def rearrange(self, layer: Rearrangement, inputs: Sequence[Found], at: At) -> Found:
        return gather(layer, [x for x, _ in inputs]), max(met for _, met in inputs)

    def multiply(self, layer: Affine, inputs: Sequence[Found], at: At) -> Found:
        ((x, met),) = inputs
        product, terms = multiplied(x.reshape(-1, len(layer.weight)), self.sized(layer.weight))
        if self.fixed:
            product = product + self.sized(layer.bias).astype(product.dtype)
        return product.reshape(len(x), *at.node.shape), met + terms + 2

    def scale(self, layer: Scaling, inputs: Sequence[Found], at: At) -> Found:
        ((x, met),) = inputs
        times, under, more = (self.sized(part).astype(x.dtype) for part in (layer.multiply, layer.divide, layer.add))
        found = x * times / under
        return found + more if self.fixed else found, met + 4

    def add_up(self, layer: Sum, inputs: Sequence[Found], at: At) -> Found:
        total: Array = np.zeros(inputs[0][0].shape, dtype=inputs[0][0].dtype)
        for sign, (x, _) in zip(layer.signs, inputs, strict=True):
            total = total + x if sign == 1 or self.absolute else total - x
        return total, max(met for _, met in inputs) + len(layer.signs)


LINEAR_PART: Meaning[Found] = Meaning(
    "linear part",
    {
        Embedding: Carried.look_up,
        Constant: Carried.hold,
        Rearrangement: Carried.rearrange,
        Affine: Carried.multiply,
        Scaling: Carried.scale,
        Sum: Carried.add_up,
    },
    dict.fromkeys((Rectifier, Maximum, *SMOOTH), "it is not affine"),
)


def linear_part(
    network: Network,
    embedded: Mapping[int, Array],
    what: Literal["values", "differences", "gross", "gross differences"],
) -> Passed:
    """From the arrays [batch, *shape] of the embedding nodes."""
    carried = Carried(embedded, what.startswith("gross"), what in ("values", "gross"))
    known = forward(network, LINEAR_PART, carried, wanted=network.cut, finish=carried.finish)
    found = {index: known[index] for index in network.cut}
    return Passed(network.join_cut({i: x for i, (x, _) in found.items()}), max(met for _, met in found.values()))


def multiplied(rows: Array, weight: Array) -> tuple[Array, int]:
    """rows @ weight, and the greatest number of terms that are not 0: adding a zero is exact.

    Rows and columns that hold only zeros are left out: of a single swap most do.
    """
    there = rows != 0
    columns = np.flatnonzero(there.any(axis=0))
    used = np.flatnonzero(there.any(axis=1))
    terms = int(there.sum(axis=1).max(initial=0))
    result: Any = np.zeros((len(rows), weight.shape[1]), dtype=rows.dtype)
    if len(used) and len(columns):
        small = rows if len(used) == len(rows) else rows[used]
        if len(columns) < rows.shape[1]:
            small, weight = small[:, columns], weight[columns]
        result[used] = small @ weight.astype(rows.dtype, copy=False)
    return result, terms
