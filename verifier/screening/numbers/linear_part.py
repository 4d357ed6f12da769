"""The part of a network that is affine in the words, on numbers, differences, or absolute values.

values        W x + b          in any float type
differences   W d              of inputs that differ by d: constants drop out
gross         |W| |x| (+ |b|)  the sum of the absolute values of all terms, which rounding errors are a share of
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from swapproof.encodings.network import Affine, Constant, Embedding, Network, Rearrangement, Scaling, Sum
from swapproof.encodings.walk import gather, needed

from .float64_rounding import SLOP, Array

Meaning = Literal["values", "differences", "gross", "gross differences"]


@dataclass(frozen=True, eq=False)
class Passed:
    """[batch, width] of the cut, and how many roundings any one term met on its way at most."""

    cut: Array
    roundings: int


def linear_part(network: Network, embedded: Mapping[int, Array], meaning: Meaning) -> Passed:
    """From the arrays [batch, *shape] of the embedding nodes."""
    known: dict[int, Array] = {}
    met: dict[int, int] = {}
    absolute, fixed = meaning.startswith("gross"), meaning in ("values", "gross")
    batch = len(next(iter(embedded.values())))
    for index in needed(network, frozenset(), network.cut):
        node = network.nodes[index]
        inputs = [known[source] for source in node.inputs]
        before = max((met[source] for source in node.inputs), default=0)
        shape = (batch, *node.shape)
        match node.layer:
            case Embedding():
                known[index], met[index] = embedded[index], 0
            case Constant(value):
                value = np.abs(value) if absolute else value
                dtype = next(iter(embedded.values())).dtype
                known[index] = np.broadcast_to((value if fixed else np.zeros_like(value)).astype(dtype), shape)
                met[index] = 0
            case Rearrangement() as layer:
                known[index], met[index] = gather(layer, inputs), before
            case Affine(weight, bias):
                product, terms = multiplied(inputs[0].reshape(-1, len(weight)), np.abs(weight) if absolute else weight)
                if fixed:
                    product = product + (np.abs(bias) if absolute else bias).astype(product.dtype)
                known[index], met[index] = product.reshape(shape), before + terms + 2
            case Scaling(multiply, divide, add, _):
                parts = [np.abs(part) if absolute else part for part in (multiply, divide, add)]
                multiply, divide, add = (part.astype(inputs[0].dtype) for part in parts)
                result = inputs[0] * multiply / divide
                known[index], met[index] = result + add if fixed else result, before + 4
            case Sum(signs):
                total = np.zeros(shape, dtype=inputs[0].dtype)
                for sign, x in zip(signs, inputs, strict=True):
                    total = total + x if sign == 1 or absolute else total - x
                known[index], met[index] = total, before + len(signs)
            case _:
                raise TypeError(f"{type(node.layer).__name__} is not affine")
        if absolute:
            known[index] = known[index] * SLOP
    cut = np.concatenate([known[index].reshape(batch, -1) for index in network.cut], axis=1)
    return Passed(cut, max(met[index] for index in network.cut))


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
