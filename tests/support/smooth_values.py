"""Values of all elements of a smooth canonical network, in floats or in mpmath: the plain meaning of FORMAT 4.3."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from swapproof.proofs import check
from swapproof.proofs import exact_network as networks

Functions = Mapping[int, Callable[[Any], Any]]


def float_sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


FLOAT: Functions = {1: math.exp, 2: math.tanh, 3: float_sigmoid, 4: math.erf, 5: lambda x: 1 / x, 6: math.sqrt}
EXACT: Functions = {
    1: mpmath.exp,
    2: mpmath.tanh,
    3: lambda x: 1 / (1 + mpmath.exp(-x)),
    4: mpmath.erf,
    5: lambda x: 1 / x,
    6: mpmath.sqrt,
}
"""By the working precision of mpmath."""


def values_of(
    network: networks.Network, text: Sequence[int], functions: Functions = FLOAT, number: Any = float
) -> list[Any]:
    """Of every element, in this arithmetic."""

    def ratio(above: int, below: int) -> Any:
        return above / below if number is float else mpmath.mpf(above) / below

    found = [ratio(x, network.owner[0].scale) for x in network.constants]
    for layer in network.layers:
        match layer:
            case networks.Embedding():
                found += [ratio(x, layer.scale) for p in layer.positions for x in layer.row(text[p])]
            case networks.Affine():
                weights = [[ratio(w, layer.size_scale) for w in each] for each in layer.weights]
                read = [[found[i] for i in each] for each in layer.lists]
                for (at, of), bias in zip(layer.pairs, layer.biases, strict=True):
                    products = [w * x for w, x in zip(weights[of], read[at], strict=True)]
                    found.append(sum(products, ratio(bias, layer.bias_scale)))
            case networks.Rectifier():
                alpha = ratio(layer.p, layer.q)
                found += [max(found[i], 0) + alpha * min(found[i], 0) for i in layer.sources]
            case networks.Maximum():
                found += [max(found[layer.sources[place]] for place in window) for window in layer.windows]
            case networks.Product():
                found += [found[i] * found[j] for i, j in zip(layer.firsts, layer.seconds, strict=True)]
            case networks.Curve():
                found += [functions[layer.function](found[i]) for i in layer.sources]
    return found


def logits_of(network: networks.Network, text: Sequence[int]) -> list[float]:
    found = values_of(network, text)
    return [found[i] for i in network.logits]


def float32_values(network: networks.Network, text: Sequence[int], rng: random.Random) -> list[float]:
    """Of every element by some float32 runtime: sums in any order, functions as wrong as section 15.3 lets them be."""

    def single(x: float) -> float:
        return float(np.float32(x))

    def wrong(function: int, x: float) -> float:
        value = FLOAT[function](x)
        bound = abs(value) * 2.0 ** -{1: 22, 5: 23, 6: 23}[function] if function in (1, 5, 6) else 2.0**-21
        return single(value + rng.choice((-1, 0, 1)) * (bound - abs(value) * 2.0**-24))

    found = [single(x / network.owner[0].scale) for x in network.constants]
    for layer in network.layers:
        match layer:
            case networks.Embedding():
                found += [x / layer.scale for p in layer.positions for x in layer.row(text[p])]
            case networks.Affine():
                for (at, of), bias in zip(layer.pairs, layer.biases, strict=True):
                    weights = [single(w / layer.size_scale) for w in layer.weights[of]]
                    terms = [single(w * found[i]) for w, i in zip(weights, layer.lists[at], strict=True)]
                    terms.append(single(bias / layer.bias_scale))
                    rng.shuffle(terms)
                    total = 0.0
                    for term in terms:
                        total = single(total + term)
                    found.append(total)
            case networks.Rectifier():
                alpha = single(layer.p / layer.q)
                found += [found[i] if found[i] > 0 else single(alpha * found[i]) for i in layer.sources]
            case networks.Maximum():
                found += [max(found[layer.sources[place]] for place in window) for window in layer.windows]
            case networks.Product():
                found += [single(found[i] * found[j]) for i, j in zip(layer.firsts, layer.seconds, strict=True)]
            case networks.Curve():
                found += [wrong(layer.function, found[i]) for i in layer.sources]
    return found


def steps_of(space: check.Space) -> list[tuple[int, int, int]]:
    """Segments (first layer, layers, word): for every run of layers that depend on one word more than those before.

    Layers in between that depend on fewer are in it; the last layer is in none.
    """
    masks = [0] * len(space.network.layers)
    index = {layer.start: number for number, layer in enumerate(space.network.layers)}
    for block in space.blocks.found:
        if block.layer.depth:
            masks[index[block.layer.start]] |= block.words
    found: list[tuple[int, int, int]] = []
    before = 0
    for number, mask in enumerate(masks[:-1]):
        follows = next(filter(None, masks[number + 1 :]), 0)
        if not mask or (not mask & ~before and mask != before and follows == before):
            continue
        new = mask & ~before if (mask & ~before).bit_count() == 1 else mask
        if mask == before and found:
            first, _, word = found[-1]
            found[-1] = first, number + 1 - first, word
        elif new.bit_count() == 1:
            found.append((number, 1, new.bit_length() - 1))
        before = mask
    return found


def chains_of(space: check.Space) -> list[tuple[int, int, int]]:
    """Chains (first layer, layers, order): runs of layers that read the words in one order, each what was computed with
    one word less at most."""
    blocks, place = space.blocks.found, {layer.start: at for at, layer in enumerate(space.network.layers)}
    every = [w for w in range(len(space.words)) if any(block.words >> w & 1 for block in blocks)]
    prefixes = [{sum(1 << w for w in order[:n]) for n in range(len(every) + 1)} for order in (every, every[::-1])]
    found: list[tuple[int, int, int]] = []
    first, orders, inside = 0, {0, 1}, set[int]()
    for at in range(len(space.network.layers) + 1):
        here = [b for b in blocks if b.layer.depth and place[b.layer.start] == at]
        fits = {order for order in orders if all(b.words in prefixes[order] for b in here)}
        read = [(b, blocks[y]) for b in here for y in b.sources if y in inside]
        if not fits or any((b.words & ~y.words).bit_count() > 1 for b, y in read) or at == len(space.network.layers):
            found += [(first, at - first, min(orders))] if inside else []
            first, inside = at, set()
            fits = {order for order in (0, 1) if all(b.words in prefixes[order] for b in here)} or {0, 1}
        orders = fits
        inside |= {b.number for b in here}
    return found
