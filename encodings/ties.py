"""Logits that are the same function of the text: a last layer that was never trained, a class that stands in twice."""

from __future__ import annotations

import numpy as np

from .network import Affine, Constant, Embedding, Maximum, Network, Rearrangement, Rectifier, Scaling, Sum


def always_tied(network: Network, first: int, second: int) -> bool:
    """Whether two classes have equal logits for every text, over the reals, as their weights show."""
    last = len(network.nodes) - 1
    return same(network, last, first, second)


def same(network: Network, index: int, a: int, b: int) -> bool:
    """Whether elements a and b of a node's output, as it is read row by row, are equal whatever the text."""
    if a == b:
        return True
    node = network.nodes[index]
    match node.layer:
        case Rearrangement(order):
            ends = np.cumsum([network.nodes[source].size for source in node.inputs])
            a, b = int(order.flat[a]), int(order.flat[b])
            place, other = (int(np.searchsorted(ends, at, side="right")) for at in (a, b))
            start = int(ends[place]) - network.nodes[node.inputs[place]].size
            return place == other and same(network, node.inputs[place], a - start, b - start)
        case Affine(weight, bias):
            (row, i), (other, j) = divmod(a, len(bias)), divmod(b, len(bias))
            return row == other and bool(bias[i] == bias[j] and np.array_equal(weight[:, i], weight[:, j]))
        case Scaling(multiply, divide, add, _):
            alike = all(part.flat[a] == part.flat[b] for part in (multiply, divide, add))
            return alike and same(network, node.inputs[0], a, b)
        case Sum() | Rectifier():
            return all(same(network, source, a, b) for source in node.inputs)
        case Constant(value):
            return bool(value.flat[a] == value.flat[b])
        case Embedding() | Maximum():
            return False
