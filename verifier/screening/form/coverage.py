"""Which models are screened, and at which level.

Over the reals: all whose network, as `encodings` reads it, is check.py's (likeness.py). The rounding bound of level
float32 goes layer by layer (FORMAT section 8), and the network read here leaves out what changes no number: so every
operator that calculates with words must have layers of its own in the network, in which it rounds no less. A product
that has swallowed the bias added to it is the one exception (`merged`). Where that is not plain to see, level float32
is not screened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from swapproof.encodings.network import Affine, Network, Scaling
from swapproof.encodings.onnx_files.onnx_reading import Model, needed_nodes
from swapproof.proofs.check import Network as CheckedNetwork

from ..numbers.kernels import Kernels
from .likeness import paired
from .statement import Sizes
from .tree_leaves import Named
from .unsure import Unsure

CALCULATE = {
    "Abs", "Add", "AveragePool", "Clip", "Conv", "Div", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "LeakyRelu",
    "MatMul", "Max", "MaxPool", "Min", "Mul", "Neg", "PRelu", "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Sub",
    "Sum",
}  # fmt: skip
MOVE = {
    "Cast", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split",
    "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip
"""Operators that make no layer: what they give are elements that were there before."""
PRODUCTS = {"Conv", "Gemm", "MatMul"}
LONE = {"Clip", "Max", "Min", "Sum"}
"""With a single input these are that input."""


@dataclass(frozen=True, eq=False)
class Covered:
    """What a tree may name in the network, by number; and whether level float32 is screened."""

    sizes: Sizes
    named: dict[int, Named]
    merged: frozenset[int]
    """Affine nodes of the network that are two layers of the file: a product, and the sum with a bias after it."""
    float32: bool
    kernels: Kernels


def covered(model: Model, network: Network, checked: CheckedNetwork) -> Covered:
    """Raises Unsure for a network that is not the file's as check.py reads it.

    What it computes from tokens must be the same for the texts that it is used for (token_masks.py).
    """
    if (network.choices is not None) != checked.compares:
        raise Unsure("a network that check.py takes for one of other choices")
    network = replace(network, choices=None)
    if network.inexact:
        raise Unsure(f"rounded constants: {network.inexact[0]}")
    named = {
        pair.layer.node: Named(
            pair.index,
            pair.layer.size,
            plain=not pair.layer.p,
            reads_affine=pair.layer.depth == 1 and network.nodes[pair.index].inputs[0] in network.cut,
        )
        for pair in paired(network, checked)
        if pair.layer.kind == "rectifier"
    }
    merged = None if checked.no_float32 else merged_products(model, network)
    return Covered(Sizes.of(checked), named, merged or frozenset(), merged is not None, Kernels(network))


def merged_products(model: Model, network: Network) -> frozenset[int] | None:
    """Affine nodes that stand for a product and a sum; None where an operator may round more often than its layers."""
    words = words_of(model)
    if any(operator.op_type not in CALCULATE | MOVE for operator in words.values()):
        return None
    size = len(model.proto.graph.node)
    shown = {None if node.number is None else node.number % size for node in network.nodes}
    missing = {
        number
        for number, operator in words.items()
        if operator.op_type in CALCULATE and number not in shown and not is_lone(operator)
    }
    merged: set[int] = set()
    for index, node in enumerate(network.nodes):
        operator = None if node.number is None else words.get(node.number)
        if operator is None:
            continue
        if operator.op_type == "Sum" and len(node.inputs) == 1 and isinstance(node.layer, Affine | Scaling):
            return None  # check.py counts the constant as a term
        if isinstance(node.layer, Affine) and operator.op_type in ("Add", "Sub"):
            products = {number for number, other in words.items() if other.output[0] in operator.input}
            if len(products) != 1 or words[min(products)].op_type not in PRODUCTS:
                return None
            merged.add(index)
            missing -= products
    return None if missing else frozenset(merged)


def is_lone(operator: Any) -> bool:
    return operator.op_type in LONE and sum(map(bool, operator.input)) == 1


def words_of(model: Model) -> dict[int, Any]:
    """The ONNX nodes, by number, that do something with embedded words and that the output depends on."""
    tokens, words = {model.input}, set[str]()
    found = {}
    for number, node in needed_nodes(model.proto.graph, model.output):
        inputs, outputs = {name for name in node.input if name}, set(node.output)
        if node.op_type == "Shape":
            continue
        if inputs & words:
            found[number] = node
            words |= outputs
        elif inputs & tokens:
            looked_up = node.op_type == "Gather" and node.input[0] not in tokens
            (words if looked_up else tokens).update(outputs)
    return found
