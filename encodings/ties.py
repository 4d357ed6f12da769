"""Logits that are the same function of the text: a last layer that was never trained, a class that stands in twice."""

from __future__ import annotations

import numpy as np

from .network import (
    Affine,
    Constant,
    Curve,
    Embedding,
    Layer,
    Maximum,
    Network,
    Node,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from .walk import Meaning

Pair = tuple[int, int]
"""Of elements of one node, read row by row."""


def always_tied(network: Network, first: int, second: int) -> bool:
    """Whether two classes have equal logits for every text, over the reals, as their weights show."""
    return same(network, len(network.nodes) - 1, (first, second))


def same(network: Network, index: int, pair: Pair) -> bool:
    """Whether two elements of a node's output are equal whatever the text."""
    node = network.nodes[index]
    return pair[0] == pair[1] or TIES.rule(node)(network, node.layer, pair, node)


def differ(network: Network, layer: Layer, pair: Pair, node: Node) -> bool:
    return False


def compare(network: Network, layer: Constant, pair: Pair, node: Node) -> bool:
    a, b = pair
    return bool(layer.value.flat[a] == layer.value.flat[b])


def compare_sources(network: Network, layer: Rearrangement, pair: Pair, node: Node) -> bool:
    a, b = (int(layer.index.flat[at]) for at in pair)
    for source, part in zip(node.inputs, network.laid(node), strict=True):
        if part.start <= a < part.stop:
            return part.start <= b < part.stop and same(network, source, (a - part.start, b - part.start))
    return False


def compare_columns(network: Network, layer: Affine, pair: Pair, node: Node) -> bool:
    weight, bias = layer.weight, layer.bias
    (row, i), (other, j) = (divmod(at, len(bias)) for at in pair)
    return row == other and bool(bias[i] == bias[j] and np.array_equal(weight[:, i], weight[:, j]))


def compare_factors(network: Network, layer: Scaling, pair: Pair, node: Node) -> bool:
    a, b = pair
    alike = all(part.flat[a] == part.flat[b] for part in (layer.multiply, layer.divide, layer.add))
    return alike and same(network, node.inputs[0], pair)


def compare_inputs(network: Network, layer: Sum | Rectifier | Product | Curve, pair: Pair, node: Node) -> bool:
    return all(same(network, source, pair) for source in node.inputs)


TIES: Meaning[bool] = Meaning(
    "comparison of two of its elements",
    {
        Embedding: differ,
        Constant: compare,
        Rearrangement: compare_sources,
        Affine: compare_columns,
        Scaling: compare_factors,
        Sum: compare_inputs,
        Rectifier: compare_inputs,
        Maximum: differ,
        Product: compare_inputs,
        Curve: compare_inputs,
    },
)
