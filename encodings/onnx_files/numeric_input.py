"""From an ONNX file with one tensor of floats as its input to a Network whose first node is that input.

The first node is an embedding of nothing: whoever evaluates the network gives its value. Everything after it is read
as in a classifier of tokens; older operator sets are read too, where the operators met mean the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import SMOOTH, Embedding, Network, Node
from .computed import is_floating
from .construction import Builder, Call, Known, Value, Wire
from .model_ports import TOKENS, ModelInput, type_named
from .onnx_reading import CURVES, HINTS, UNITS, Model, call_of, moved, needed_nodes, translate
from .operators import OPERATORS

OPSETS = range(7, 23)
CHANGED = {"Pad": 11, "Slice": 10, "Dropout": 12, "BatchNormalization": 9, "MaxPool": 8}
"""Operators whose attributes or inputs were others before this opset."""
CURVED = {
    "Erf", "Exp", "GRU", "Gelu", "LSTM", "LayerNormalization", "Pow", "RNN", "Reciprocal", "ReduceL2",
    "ReduceSumSquare", "Sigmoid", "Softmax", "Sqrt", "Tanh",
}  # fmt: skip
"""Operators that are read, of numbers that depend on the input, as curves or products of them."""


@dataclass(frozen=True, eq=False)
class NumericModel:
    """An ONNX file from one float tensor to one float tensor; shapes with 1 for the batch."""

    path: Path
    proto: Any
    opset: int
    input: str
    output: str
    kind: str
    output_kind: str
    shape: tuple[int, ...]


def open_numeric(path: Path) -> NumericModel:
    import onnx
    from google.protobuf.message import DecodeError

    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    try:
        proto = onnx.load(path)
        onnx.checker.check_model(proto)
    except (DecodeError, onnx.checker.ValidationError, OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadInput(f"{path}: not a readable ONNX model ({reason})") from None
    opset = next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset not in OPSETS:
        raise Unsupported(
            f"{path}: opset {opset}; opsets {OPSETS[0]} to {OPSETS[-1]} are read (onnx.version_converter)"
        )
    graph = proto.graph
    if proto.functions or graph.sparse_initializer:
        raise Unsupported(
            f"{path}: model-local functions and sparse weights are not read; inline them, store them dense"
        )
    for node in graph.node:
        if opset < CHANGED.get(node.op_type, 0):
            raise Unsupported(
                f"{path}: {node.op_type} of opset {opset}; it is read from opset {CHANGED[node.op_type]} on "
                "(onnx.version_converter)"
            )
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise Unsupported(f"{path}: {len(inputs)} inputs and {len(graph.output)} outputs; one of each is supported")
    tensor = inputs[0].type.tensor_type
    kinds = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.FLOAT16: "float16"}
    for side, value in (("input", inputs[0]), ("output", graph.output[0])):
        if value.type.tensor_type.elem_type not in kinds:
            name = type_named(value.type.tensor_type.elem_type)
            raise Unsupported(f"{path}: {side} {value.name} is {name}; a tensor of floats is needed here")
    if not tensor.HasField("shape"):
        raise BadInput(f"{path}: input {inputs[0].name} has no shape")
    sizes = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None for dim in tensor.shape.dim]
    if len(sizes) > 1 and sizes[0] is None:
        sizes[0] = 1
    if not sizes or None in sizes:
        raise Unsupported(f"{path}: input {inputs[0].name} has an open size after the batch: {sizes}; fix it on export")
    shape = tuple(int(size) for size in sizes if size is not None)
    kind, output_kind = kinds[tensor.elem_type], kinds[graph.output[0].type.tensor_type.elem_type]
    return NumericModel(path, proto, opset, inputs[0].name, graph.output[0].name, kind, output_kind, shape)


def numeric_network(model: NumericModel, *, smooth: bool = False) -> Network:
    """Node 0 is the input, the last node the output; `smooth`: there may be products and curves."""
    import onnx.numpy_helper

    builder = Builder(moved, len(model.proto.graph.node))
    empty = Embedding(np.zeros((1, model.shape[-1])), np.zeros(model.shape[:-1], dtype=np.int64))
    values: dict[str, Value] = {model.input: builder.emit(empty, (), model.shape, "input", model.kind)}
    for tensor in model.proto.graph.initializer:
        array = np.asarray(onnx.numpy_helper.to_array(tensor, str(model.path.parent)))
        values[tensor.name] = Known(array)
        builder.types.update([str(array.dtype)] if is_floating(array) else [])
    read = (ModelInput(model.input, model.kind, TOKENS, None),)
    reader = Model(model.path, model.proto, model.opset, read, model.output, 1)
    for position, node in needed_nodes(model.proto.graph, model.output):
        call = call_of(reader, node, position, values)
        if not smooth and any(isinstance(value, Wire) for value in call.values):
            refuse_curved(call)
        builder.number, before = position, len(builder.nodes)
        results = translate(builder, call)
        if not smooth and any(isinstance(made.layer, SMOOTH) for made in builder.nodes[before:]):
            raise Unsupported(f"{call.where}: not piecewise linear; export the network without it")
        values.update((name, value) for name, value in zip(node.output, results, strict=False) if name)
    value = values.get(model.output)
    if not isinstance(value, Wire):
        raise BadInput(f"{model.path}: the output {model.output} does not depend on the input")
    nodes = reached(builder.nodes, value.node)
    return Network(
        nodes=nodes,
        length=math.prod(model.shape),
        vocabulary_size=1,
        unit=max(UNITS[builder.coarsest], UNITS[value.dtype]),
        inexact=tuple(dict.fromkeys(builder.inexact)),
        account=builder.account(),
    )


def refuse_curved(call: Call) -> None:
    """What is always a curve, or not read at all and without a hint of its own, with what is read here instead."""
    curved = call.operator in CURVED or HINTS.get(call.operator) == CURVES
    if curved or call.operator not in {*OPERATORS, *HINTS}:
        what = "not piecewise linear" if curved else f"operator {call.operator} is not supported"
        raise Unsupported(
            f"{call.where}: {what}; export the network without it, of these: "
            f"{', '.join(name for name in OPERATORS if name not in CURVED)}"
        )


def reached(nodes: list[Node], last: int) -> tuple[Node, ...]:
    """The input and the nodes that the last one needs, renumbered."""
    needed, waiting = {0}, [last]
    while waiting:
        index = waiting.pop()
        if index not in needed or index == last:
            needed.add(index)
            waiting.extend(nodes[index].inputs)
    order = sorted(needed)
    renamed = {old: new for new, old in enumerate(order)}
    return tuple(replace(nodes[old], inputs=tuple(renamed[i] for i in nodes[old].inputs)) for old in order)
