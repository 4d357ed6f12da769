"""The part of a network behind its embeddings as an ONNX file of its own: numbers in, logits out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import Unsupported
from ..network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Floats,
    Function,
    Indices,
    Maximum,
    Network,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Meaning, forward

OPSET = 17
NAME = "behind_embedding"
"""Of the graph of a written model."""


def embedded_positions(network: Network) -> list[tuple[int, int]]:
    """(node, first column) of the embeddings, whose values lie side by side in the input of the written model."""
    found, start = [], 0
    for index, node in enumerate(network.nodes):
        if isinstance(node.layer, Embedding):
            found.append((index, start))
            start += node.size
    return found


def embedded(network: Network, tokens: tuple[int, ...]) -> Floats:
    """The input of the written model for a sentence."""
    parts = []
    for index, _ in embedded_positions(network):
        layer = network.nodes[index].layer
        if isinstance(layer, Embedding):
            parts.append(layer.table[np.asarray(tokens)[layer.positions]].reshape(-1))
    return np.concatenate(parts)


@dataclass(eq=False)
class Graph:
    """An ONNX graph as it is written; what a layer comes to is the name of a value."""

    network: Network
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    @cached_property
    def starts(self) -> dict[int, int]:
        return dict(embedded_positions(self.network))

    @property
    def inputs(self) -> int:
        return sum(self.network.nodes[index].size for index in self.starts)

    def constant(self, array: Floats | Indices, where: str) -> str:
        from onnx import numpy_helper

        kind: Any = np.int64 if array.dtype.kind == "i" else np.float32
        stored = np.asarray(array, dtype=kind)
        if not np.array_equal(stored.astype(array.dtype), array):
            raise Unsupported(f"{where}: a constant that float32 does not hold")
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(stored), name))
        return name

    def call(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attributes))
        return name

    def shaped(self, name: str, shape: tuple[int, ...], where: str) -> str:
        return self.call("Reshape", name, self.constant(np.array(shape, dtype=np.int64), where))

    def take(self, layer: Embedding, inputs: list[str], at: At) -> str:
        part, where = "X", at.node.origin
        if at.node.size < self.inputs:
            columns = np.arange(at.node.size) + self.starts[at.index]
            part = self.call("Gather", "X", self.constant(columns, where), axis=1)
        return self.shaped(part, at.node.shape, where)

    def hold(self, layer: Constant, inputs: list[str], at: At) -> str:
        return self.constant(layer.value.reshape(at.node.shape), at.node.origin)

    def rearrange(self, layer: Rearrangement, inputs: list[str], at: At) -> str:
        sizes, where = [self.network.nodes[source].size for source in at.node.inputs], at.node.origin
        if len(inputs) == 1 and layer.index.size == sizes[0] and layer.is_reshape:
            return self.shaped(inputs[0], at.node.shape, where)
        flat = [self.shaped(name, (1, size), where) for name, size in zip(inputs, sizes, strict=True)]
        whole = flat[0] if len(flat) == 1 else self.call("Concat", *flat, axis=1)
        taken = self.call("Gather", whole, self.constant(layer.index.reshape(-1).astype(np.int64), where), axis=1)
        return self.shaped(taken, at.node.shape, where)

    def multiply(self, layer: Affine, inputs: list[str], at: At) -> str:
        name = self.call("MatMul", inputs[0], self.constant(layer.weight, at.node.origin))
        return self.call("Add", name, self.constant(layer.bias, at.node.origin)) if layer.bias.any() else name

    def scale(self, layer: Scaling, inputs: list[str], at: At) -> str:
        (name,) = inputs
        steps = (("Mul", layer.multiply, 1), ("Div", layer.divide, 1), ("Add", layer.add, 0))
        for operator, array, neutral in steps:
            if (array != neutral).any():
                name = self.call(operator, name, self.constant(array.reshape(at.node.shape), at.node.origin))
        return name

    def add_up(self, layer: Sum, inputs: list[str], at: At) -> str:
        name = inputs[0] if layer.signs[0] == 1 else self.call("Neg", inputs[0])
        for sign, other in zip(layer.signs[1:], inputs[1:], strict=True):
            name = self.call("Add" if sign == 1 else "Sub", name, other)
        return name

    def rectify(self, layer: Rectifier, inputs: list[str], at: At) -> str:
        leak = {} if layer.slope == 0.0 else {"alpha": layer.slope}
        return self.call("LeakyRelu" if leak else "Relu", inputs[0], **leak)

    def take_greatest(self, layer: Maximum, inputs: list[str], at: At) -> str:
        return self.call("ReduceMax", inputs[0], axes=[-1], keepdims=0)

    def multiply_pairs(self, layer: Product, inputs: list[str], at: At) -> str:
        return self.call("Mul", *inputs)

    def bend(self, layer: Curve, inputs: list[str], at: At) -> str:
        return self.call(NAMES[layer.function], inputs[0])


NAMES: dict[Function, str] = {
    "exp": "Exp",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "reciprocal": "Reciprocal",
    "sqrt": "Sqrt",
}
OPERATORS: Meaning[str] = Meaning(
    "ONNX operators to write",
    {
        Embedding: Graph.take,
        Constant: Graph.hold,
        Rearrangement: Graph.rearrange,
        Affine: Graph.multiply,
        Scaling: Graph.scale,
        Sum: Graph.add_up,
        Rectifier: Graph.rectify,
        Maximum: Graph.take_greatest,
        Product: Graph.multiply_pairs,
        Curve: Graph.bend,
    },
)


def model_behind_embedding(network: Network) -> Any:
    """X float32 [1, n] -> logits float32 [1, classes]."""
    from onnx import TensorProto, checker, helper

    if network.unit != 2.0**-24 or network.head != "logits":
        raise Unsupported("only float32 networks that answer with logits are written behind their embedding")
    if network.inexact:
        raise Unsupported(f"{network.inexact[0]}: rounded constants; the network has no exact copy")
    written = Graph(network)
    logits = forward(network, OPERATORS, written, wanted=range(len(network.nodes)))[len(network.nodes) - 1]
    written.nodes.append(helper.make_node("Identity", [logits], ["logits"], name="logits"))
    graph = helper.make_graph(
        written.nodes,
        NAME,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, written.inputs])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, network.classes])],
        written.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    checker.check_model(model)
    return model


def is_behind_embedding(data: bytes) -> bool:
    """Whether these are the bytes of such a file."""
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        return str(ModelProto.FromString(data).graph.name) == NAME
    except DecodeError:
        return False
