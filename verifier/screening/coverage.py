"""Which ONNX models are screened: those whose operators the network of `encodings` holds one by one.

The checker bounds elements operator by operator (FORMAT sections 4 and 7), and the network read here leaves out what
changes no number: then an element might be bounded otherwise, or rounded less. So every operator that calculates with
text must have its layers in the network; a product whose bias was added to it is the one exception (`merged`), the
nonlinear layers must be check.py's, one for one, and whatever else is met is left to the exact checker.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from swapproof.encodings.network import Affine, Maximum, Network, Rearrangement, Rectifier
from swapproof.encodings.reading import Model
from swapproof.proofs.check import Network as CheckedNetwork

from .kernels import Kernels
from .tree import Named
from .unsure import Unsure

CALCULATE = {
    "Add", "AveragePool", "BatchNormalization", "Conv", "Div", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
    "LeakyRelu", "MatMul", "Max", "MaxPool", "Min", "Mul", "Neg", "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Sub",
    "Sum",
}  # fmt: skip
MOVE = {
    "Cast", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "LogSoftmax", "Pad", "Reshape", "Shape",
    "Sigmoid", "Slice", "Softmax", "Split", "Squeeze", "Tanh", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators that make no layer: what they give are elements that were there before, or the head."""
ARITHMETIC = {"Add", "Div", "Mul", "Sub"}
"""What the checker computes with constants; a model with such numbers claims nothing at level float32."""
PRODUCTS = {"Gemm", "MatMul"}
LONE = {"Max", "Min", "Sum"}
"""With a single input these are that input."""
FLOAT = 1
WHOLE = (6, 7, 9)
"""Tensor types: int32, int64, bool."""


@dataclass(frozen=True, eq=False)
class Covered:
    """What a tree may name in the network, by ONNX node number; and whether level float32 is screened."""

    named: dict[int, Named]
    merged: frozenset[int]
    """Affine nodes of the network that are two layers of the file: a product, and the sum with a bias after it."""
    float32: bool
    kernels: Kernels


def covered(model: Model, network: Network, checked: CheckedNetwork) -> Covered:
    """Raises Unsure for a network that is not the file operator by operator, as check.py reads it."""
    if network.inexact:
        raise Unsure(f"rounded constants: {network.inexact[0]}")
    nodes = list(model.proto.graph.node)
    variable, computed = varying(model)
    shown = {node.number for node in network.nodes}
    missing = {
        number
        for number in variable
        if number not in shown and not (nodes[number].op_type in LONE and len(nodes[number].input) == 1)
    }
    merged: set[int] = set()
    for index, node in enumerate(network.nodes):
        if node.number is None:
            raise Unsure("a network that does not know the numbers of its nodes")
        operator = nodes[node.number]
        if not isinstance(node.layer, Affine) or operator.op_type not in ("Add", "Sub", "Sum"):
            continue
        sources = {number for number in missing if nodes[number].output[0] in operator.input}
        if len(sources) != 1 or nodes[next(iter(sources))].op_type not in PRODUCTS:
            raise Unsure(f"a layer of node {node.number} that is no product with a bias")
        merged.add(index)
        missing -= sources
    if missing:
        raise Unsure(f"node {min(missing)} ({nodes[min(missing)].op_type}) has no layer of its own")
    named: dict[int, Named] = {}
    played = playing(network)
    for index, node in enumerate(network.nodes):
        if isinstance(node.layer, Rectifier) and index in played:
            if node.number is None or node.number in named:
                raise Unsure("two rectifiers of one number")
            reads_affine = node.inputs[0] in network.linear
            if reads_affine and node.inputs[0] not in network.cut:
                raise Unsure("a rectifier of constants")
            named[node.number] = Named(index, node.size, node.layer.slope == 0.0, reads_affine)
    if nonlinear(network, played) != [(each.kind, each.size, Fraction(each.p, each.q)) for each in checked.nonlinear]:
        raise Unsure("nonlinear layers that check.py reads otherwise")
    single = network.unit == 2.0**-24 and network.head == "logits" and not computed and not checked.no_float32
    return Covered(named, frozenset(merged), single and only_single(model), Kernels(network))


def nonlinear(network: Network, played: set[int]) -> list[tuple[str, int, Fraction]]:
    """Kind, size and slope (0 for a maximum) of the layers that play a part, in order."""
    found = []
    for index, node in enumerate(network.nodes):
        match node.layer:
            case Rectifier(slope) if index in played:
                found.append(("rectifier", node.size, Fraction(slope)))
            case Maximum() if index in played:
                found.append(("maximum", node.size, Fraction(0)))
            case _:
                pass
    return found


def playing(network: Network) -> set[int]:
    """The nodes that hold an element from which the logits are computed, a layer counting as a whole."""
    last = len(network.nodes) - 1
    used = {last: np.ones(network.nodes[last].size, dtype=np.bool_)}
    for index in range(last, -1, -1):
        if index not in used or not network.nodes[index].inputs:
            continue
        node, sizes = network.nodes[index], [network.nodes[source].size for source in network.nodes[index].inputs]
        if isinstance(node.layer, Rearrangement):
            read = np.zeros(sum(sizes), dtype=np.bool_)
            read[node.layer.index.reshape(-1)[used[index]]] = True
        else:
            read = np.ones(sum(sizes), dtype=np.bool_)
        for source, part in zip(node.inputs, np.split(read, np.cumsum(sizes)[:-1]), strict=True):
            if part.any():
                used[source] = used.get(source, np.zeros(len(part), dtype=np.bool_)) | part
    return set(used)


def varying(model: Model) -> tuple[set[int], bool]:
    """The numbers of the nodes that calculate with embedded words and that the output depends on; and whether any
    constants are calculated that are not known to be whole numbers."""
    graph = model.proto.graph
    whole: set[str] = {tensor.name for tensor in graph.initializer if tensor.data_type in WHOLE}
    fixed = {tensor.name for tensor in graph.initializer}
    tokens, words = {model.input}, set()
    needed = {model.output}
    for node in reversed(graph.node):
        if any(name in needed for name in node.output):
            needed.update(node.input)
    found: set[int] = set()
    computed = False
    for number, node in enumerate(graph.node):
        inputs = [name for name in node.input if name]
        outputs = set(node.output)
        if node.op_type == "Shape":
            whole |= outputs
        elif any(name in words for name in inputs):
            words |= outputs
            if node.op_type not in CALCULATE | MOVE:
                raise Unsure(f"node {number} ({node.op_type}) is not screened")
            if node.op_type in CALCULATE and outputs & needed:
                found.add(number)
        elif any(name in tokens for name in inputs):
            if node.op_type == "Gather" and node.input[0] not in tokens:
                words |= outputs
            else:
                tokens |= outputs
        else:
            fixed |= outputs
            if node.op_type in ("Cast", "Constant", "ConstantOfShape"):
                if node.attribute and all(is_whole(attribute) for attribute in node.attribute):
                    whole |= outputs
            elif inputs and inputs[0] in whole:
                whole |= outputs
            elif node.op_type in ARITHMETIC:
                computed = True
    return found, computed


def is_whole(attribute: Any) -> bool:
    match attribute.name:
        case "value_int" | "value_ints":
            return True
        case "value":
            return attribute.t.data_type in WHOLE
        case "to":
            return attribute.i in WHOLE
        case _:
            return False


def only_single(model: Model) -> bool:
    """Whether every stored floating tensor is float32."""
    tensors = list(model.proto.graph.initializer)
    tensors += [
        attribute.t for node in model.proto.graph.node for attribute in node.attribute if attribute.HasField("t")
    ]
    return all(tensor.data_type in (FLOAT, *WHOLE) for tensor in tensors)
