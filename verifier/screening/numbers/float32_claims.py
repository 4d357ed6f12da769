"""The rounding bound of level float32 (FORMAT section 8) from above: never less than the exact checker's, in float64.

Layer by layer A >= |x| and e >= |float32 result - x|; for z = sum w_k x_k + b with K terms that are not always zero and
n = K + 3, T = sum |w_k| (A_k + e_k) + |b|,

    A = sum |w_k| A_k + |b|        e = sum |w_k| e_k + n (257 / 2**32) T + 2**-64,

where no weight, bias, T and, of the terms that count, no A_k + e_k is above 2**40.

Each number here is enlarged by a share of 2**-20 and by 2**-63 (where it is not plainly zero), which is more than the
rounding of this arithmetic and of the checker's, upward to multiples of 2**-64. A mean or a Min of the file may be more
layers here than there: more is only greater. A product with its bias is two layers there, and so it is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from swapproof.encodings.network import (
    Affine,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
    Table,
)
from swapproof.encodings.space import SwapSpace

from .float64_rounding import SLOP, Array, Floats
from .values_beyond_cut import constants

SHARE = 257.0 / 2**32
STEP = 2.0**-63
HEAVIEST = 2.0**40
MOST_TERMS = 65_280


@dataclass(frozen=True, eq=False)
class Size:
    """[batch or 1, *shape] each."""

    magnitude: Floats
    error: Floats

    def of(self, row: int) -> Size:
        """One of the batch."""
        magnitude, error = (x[row : row + 1] if len(x) > 1 else x for x in (self.magnitude, self.error))
        return Size(magnitude, error)


def enlarged(array: Array) -> Floats:
    return np.asarray(np.where(array == 0, 0.0, array * SLOP + STEP))


def whole_space(network: Network, space: SwapSpace, merged: frozenset[int]) -> dict[int, Size]:
    """Node -> its size over all choices; infinite at the end when any number on the way is beyond the format's."""
    return whole_batch(network, [space], merged)


@np.errstate(invalid="ignore", over="ignore")
def whole_batch(network: Network, spaces: Sequence[SwapSpace], merged: frozenset[int]) -> dict[int, Size]:
    """With a row for each space."""
    found: dict[int, Size] = {}
    within = np.ones(len(spaces), dtype=np.bool_)
    for index in range(len(network.nodes)):
        size = layer_size(network, index, found, spaces, merged)
        found[index] = size
        for array in (size.magnitude, size.error):
            within &= np.isfinite(array).reshape(len(array), -1).all(axis=1)
    last = max(found)
    beyond = np.where(within.reshape(-1, *[1] * (found[last].error.ndim - 1)), found[last].error, np.inf)
    found[last] = Size(found[last].magnitude, beyond)
    return found


@np.errstate(invalid="ignore", over="ignore")
def of_sentences(
    network: Network,
    whole: Mapping[int, Size],
    values: Mapping[int, Floats],
    errors: Mapping[int, Floats],
    merged: frozenset[int],
) -> dict[int, Size]:
    """Node -> its size for each sentence alone, from `values` [batch, *shape] of nonlinear nodes' inputs, known up to
    `errors`; layers that are affine in the words keep the size of the whole space."""
    found = {index: whole[index] for index in network.linear}
    for index, node in enumerate(network.nodes):
        if index in found:
            continue
        inputs = [found[source] for source in node.inputs]
        match node.layer:
            case Rectifier(slope):
                x, far = values[node.inputs[0]], errors[node.inputs[0]] + STEP
                error = inputs[0].error
                if slope == 0:
                    magnitude = enlarged(np.maximum(x + far, 0.0))
                    found[index] = Size(magnitude, np.where(x + far + error <= 0, 0.0, error))
                else:
                    found[index] = leaked(enlarged(np.abs(x) + far), error)
            case Maximum():
                greatest = np.abs(values[node.inputs[0]].max(axis=-1)) + errors[node.inputs[0]].max(axis=-1)
                found[index] = Size(enlarged(greatest + STEP), inputs[0].error.max(axis=-1))
            case _:
                found[index] = layer_size(network, index, found, (), merged)
    return found


def layer_size(
    network: Network, index: int, found: Mapping[int, Size], spaces: Sequence[SwapSpace], merged: frozenset[int]
) -> Size:
    """`spaces` are for embeddings."""
    node = network.nodes[index]
    inputs = [found[source] for source in node.inputs]
    match node.layer:
        case Embedding(table, positions):
            magnitude = np.array([greatest(table, space) for space in spaces])[:, positions]
            return Size(enlarged(magnitude), np.zeros_like(magnitude))
        case Constant(value):
            return Size(enlarged(np.abs(value)[None]), np.zeros((1, *value.shape)))
        case Rearrangement(order):
            batch = max(len(x.magnitude) for x in inputs)
            parts = []
            for name in ("magnitude", "error"):
                arrays = [getattr(x, name) for x in inputs]
                flat = [np.broadcast_to(a, (batch, *a.shape[1:])).reshape(batch, -1) for a in arrays]
                parts.append(np.concatenate(flat, axis=1)[:, order.reshape(-1)].reshape(batch, *node.shape))
            return Size(parts[0], parts[1])
        case Affine(_, bias):
            (x,) = inputs
            absolute, there, largest = absolutes(node.layer)
            live = ((x.magnitude + x.error) > 0).astype(np.float64) @ there
            added = np.zeros_like(bias) if index in merged else np.abs(bias)
            reach = (x.magnitude + x.error).max(axis=-1, keepdims=True, initial=0.0)
            product = affine(x.magnitude @ absolute, x.error @ absolute, added, live, largest, reach)
            if index not in merged:
                return product
            return affine(product.magnitude, product.error, np.abs(bias), np.ones(1), largest)
        case Scaling(multiply, divide, add, _):
            factor = np.abs(multiply / divide) * SLOP
            largest = max(float(array.max(initial=0.0)) for array in (factor, np.abs(multiply), np.abs(add)))
            (x,) = inputs
            reach = x.magnitude + x.error
            return affine(factor * x.magnitude, factor * x.error, np.abs(add), np.ones(1), largest, reach)
        case Sum() if (slopes := bent_slopes(network, index)) is not None:
            kept = inputs[0]
            x = found[network.nodes[node.inputs[0]].inputs[0]]
            own, rest = np.abs(slopes) * SLOP, np.abs(1.0 - slopes) * SLOP
            largest = max(float(array.max(initial=0.0)) for array in (own, rest))
            magnitude, error = (own * a + rest * b for a, b in ((x.magnitude, kept.magnitude), (x.error, kept.error)))
            return affine(magnitude, error, np.zeros(1), np.full(1, 2.0), largest, x.magnitude + x.error)
        case Sum():
            magnitude = sum((x.magnitude for x in inputs), start=np.zeros((1, *node.shape)))
            error = sum((x.error for x in inputs), start=np.zeros((1, *node.shape)))
            return affine(magnitude, error, np.zeros(1), np.full(1, float(len(inputs))), 1.0)
        case Rectifier(slope):
            return inputs[0] if slope == 0 else leaked(inputs[0].magnitude, inputs[0].error)
        case Maximum():
            fixed, magnitude = constants(network, node.inputs[0]).reshape(*node.shape, -1), inputs[0].magnitude
            rise, fall = (np.where(np.isnan(fixed), magnitude, side) for side in (fixed, -fixed))
            highest = np.maximum(rise.max(axis=-1), fall.min(axis=-1))
            return Size(enlarged(highest), inputs[0].error.max(axis=-1))


def bent_slopes(network: Network, index: int) -> Floats | None:
    """s, where the node is the last of those for a PRelu or Abs, y + s (x - y) with y the rectified x: check.py's one
    layer s x + (1 - s) y."""
    node = network.nodes[index]
    kept, leaked = (network.nodes[source] for source in (node.inputs[0], node.inputs[-1]))
    alike = node.number is not None and node.number == kept.number == leaked.number
    if alike and isinstance(kept.layer, Rectifier) and isinstance(leaked.layer, Scaling):
        return leaked.layer.multiply
    return None


def greatest(table: Floats | Table, space: SwapSpace) -> Floats:
    """[positions, width]: the greatest |value| over the choices of each position."""
    magnitude: Floats = np.abs(table[list(space.original)])
    others = [token for options in space.choices for token in options[1:]]
    if others:
        counts = [len(space.choices[position]) - 1 for position in space.swappable]
        highest = np.maximum.reduceat(np.abs(table[others]), np.cumsum(counts, dtype=np.int64) - counts, axis=0)
        at = list(space.swappable)
        magnitude[at] = np.maximum(magnitude[at], highest)
    return magnitude


@lru_cache(maxsize=64)
def absolutes(layer: Affine) -> tuple[Floats, Floats, float]:
    """|W|, where W is not 0, and the greatest of |W| and |b|."""
    absolute, there = np.abs(layer.weight), (layer.weight != 0).astype(np.float64)
    return absolute, there, max(float(absolute.max(initial=0.0)), float(np.abs(layer.bias).max(initial=0.0)))


def affine(
    magnitude: Floats, error: Floats, bias: Floats, terms: Floats, largest: float, reach: Floats | float = 0.0
) -> Size:
    """`reach`: the greatest A_k + e_k, where T may be smaller."""
    total = (magnitude + error + bias) * SLOP
    n = terms + 3
    grown = (error + n * SHARE * total) * SLOP + STEP
    fits = (n <= MOST_TERMS) & (total < HEAVIEST) & (largest < HEAVIEST) & (reach < HEAVIEST)
    return Size(enlarged(magnitude + bias), np.where(fits, grown, np.inf))


def leaked(magnitude: Floats, error: Floats) -> Size:
    """alpha x is rounded once, in four operations at most."""
    grown = (error + 4 * SHARE * (magnitude + error)) * SLOP + STEP
    return Size(magnitude, np.where(magnitude + error < HEAVIEST, grown, np.inf))


def margin_errors(sizes: Mapping[int, Size], label: int) -> Floats:
    """[batch, classes]: E against every class, from above."""
    error = sizes[max(sizes)].error[:, 0, :]
    found = (error + error[:, label : label + 1]) * SLOP + STEP
    return np.asarray(np.where(np.isnan(found), np.inf, found))
