"""The part of a network behind its embeddings as an ONNX file of its own: numbers in, logits out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Unsupported
from ..network import (
    Affine,
    Constant,
    Embedding,
    Floats,
    Indices,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)

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


def model_behind_embedding(network: Network) -> Any:
    """X float32 [1, n] -> logits float32 [1, classes]."""
    from onnx import TensorProto, checker, helper, numpy_helper

    if network.unit != 2.0**-24 or network.head != "logits":
        raise Unsupported("only float32 networks that answer with logits are written behind their embedding")
    if network.inexact:
        raise Unsupported(f"{network.inexact[0]}: rounded constants; the network has no exact copy")
    nodes: list[Any] = []
    weights: list[Any] = []
    names: list[str] = []

    def constant(array: Floats | Indices, where: str) -> str:
        kind: Any = np.int64 if array.dtype.kind == "i" else np.float32
        stored = np.asarray(array, dtype=kind)
        if not np.array_equal(stored.astype(array.dtype), array):
            raise Unsupported(f"{where}: a constant that float32 does not hold")
        name = f"c{len(weights)}"
        weights.append(numpy_helper.from_array(np.ascontiguousarray(stored), name))
        return name

    def call(operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attributes))
        return name

    def shaped(name: str, shape: tuple[int, ...], where: str) -> str:
        return call("Reshape", name, constant(np.array(shape, dtype=np.int64), where))

    starts = dict(embedded_positions(network))
    total = sum(network.nodes[index].size for index in starts)
    for index, node in enumerate(network.nodes):
        inputs = [names[source] for source in node.inputs]
        where = node.origin
        match node.layer:
            case Embedding():
                part = "X"
                if node.size < total:
                    part = call("Gather", "X", constant(np.arange(node.size) + starts[index], where), axis=1)
                names.append(shaped(part, node.shape, where))
            case Constant(value):
                names.append(constant(value.reshape(node.shape), where))
            case Rearrangement(order):
                sizes = [network.nodes[source].size for source in node.inputs]
                if len(inputs) == 1 and order.size == sizes[0] and node.layer.is_reshape:
                    names.append(shaped(inputs[0], node.shape, where))
                    continue
                flat = [shaped(name, (1, size), where) for name, size in zip(inputs, sizes, strict=True)]
                whole = flat[0] if len(flat) == 1 else call("Concat", *flat, axis=1)
                taken = call("Gather", whole, constant(order.reshape(-1).astype(np.int64), where), axis=1)
                names.append(shaped(taken, node.shape, where))
            case Affine(weight, bias):
                name = call("MatMul", inputs[0], constant(weight, where))
                names.append(call("Add", name, constant(bias, where)) if bias.any() else name)
            case Scaling(multiply, divide, add, _):
                name = inputs[0]
                if (multiply != 1).any():
                    name = call("Mul", name, constant(multiply.reshape(node.shape), where))
                if (divide != 1).any():
                    name = call("Div", name, constant(divide.reshape(node.shape), where))
                if add.any():
                    name = call("Add", name, constant(add.reshape(node.shape), where))
                names.append(name)
            case Sum(signs):
                name = inputs[0] if signs[0] == 1 else call("Neg", inputs[0])
                for sign, other in zip(signs[1:], inputs[1:], strict=True):
                    name = call("Add" if sign == 1 else "Sub", name, other)
                names.append(name)
            case Rectifier(slope):
                leak = {} if slope == 0.0 else {"alpha": slope}
                names.append(call("LeakyRelu" if leak else "Relu", inputs[0], **leak))
            case Maximum():
                names.append(call("ReduceMax", inputs[0], axes=[-1], keepdims=0))
    nodes.append(helper.make_node("Identity", [names[-1]], ["logits"], name="logits"))
    graph = helper.make_graph(
        nodes,
        NAME,
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [1, total])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, network.classes])],
        weights,
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
