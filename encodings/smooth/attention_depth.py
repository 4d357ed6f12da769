"""How many layers attend one after the other: bounds are for one, since a second reads what all words say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..network import Curve, Node

SHARES = {"Softmax", "Attention", "MultiHeadAttention", "GroupQueryAttention"}
"""Operators that give shares of the words."""


def is_exponential(node: Node) -> bool:
    return isinstance(node.layer, Curve) and node.layer.function == "exp"


def attention_layers(nodes: Sequence[Node]) -> int:
    """The most exponentials on a way from the words to the scores."""
    depth: list[int] = []
    for node in nodes:
        depth.append(max([depth[source] for source in node.inputs], default=0) + is_exponential(node))
    return depth[-1] if depth else 0


def attention_layers_of_file(graph: Any) -> int:
    """The same of the graph of an ONNX file, as far as its operators tell; what is the last of it counts not."""
    outputs = {one.name for one in graph.output}
    depth: dict[str, int] = {}
    for node in graph.node:
        own = node.op_type in SHARES and not outputs.intersection(node.output)
        found = max([depth.get(name, 0) for name in node.input], default=0) + own
        depth |= dict.fromkeys(node.output, found)
    return max([depth.get(name, 0) for name in outputs], default=0)


def told_of(layers: int) -> str:
    """What that means for what can be proved."""
    if layers == 1:
        return "one layer attends: bounds of what swaps do together, and sentences one by one"
    return (
        f"{layers} layers attend one after the other: bounds are for one, since a second reads what all words say; "
        "every sentence is evaluated instead, which settles few swaps in short texts"
    )
