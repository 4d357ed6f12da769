"""What an ONNX file holds, told without running it: inputs, outputs, operators, tables, how scores are made last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import BadInput, one_line

MOVES = {
    "Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Dropout",
    "Clip", "Gather", "GatherElements",
}  # fmt: skip
"""Operators through which ids stay ids, and scores stay scores."""
HEADS = {"Softmax": "probabilities", "LogSoftmax": "log_probabilities", "Sigmoid": "sigmoid"}
TABLES = "sequence_type"
"""Of outputs: what exports of scikit-learn answer."""
RECURRENT = ("LSTM", "GRU", "RNN")


@dataclass(frozen=True)
class Port:
    """An input or output: element type as onnx names it in lower case, dimensions as numbers, names, or None."""

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        if self.type == TABLES:
            return "a list of tables, class -> share"
        shape = (
            "any shape" if self.shape is None else f"[{', '.join('?' if d is None else str(d) for d in self.shape)}]"
        )
        return f"{self.type} {shape}"


@dataclass(frozen=True, eq=False)
class OnnxContents:
    path: Path
    proto: Any = field(repr=False)

    @property
    def opset(self) -> int:
        return next((entry.version for entry in self.proto.opset_import if entry.domain in ("", "ai.onnx")), 0)

    @property
    def domains(self) -> list[str]:
        """Of operators that are not ONNX's own."""
        return sorted({node.domain for node in self.nodes} - {"", "ai.onnx"})

    @property
    def producer(self) -> str:
        return f"{self.proto.producer_name} {self.proto.producer_version}".strip()

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        stored = {tensor.name for tensor in self.proto.graph.initializer}
        return tuple(port_of(value) for value in self.proto.graph.input if value.name not in stored)

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(port_of(value) for value in self.proto.graph.output)

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """Those of the graph, of the graphs inside them, and of functions."""
        return (*nodes_of(self.proto.graph), *(node for made in self.proto.functions for node in made.node))

    @cached_property
    def operators(self) -> dict[str, int]:
        """By count, then by name."""
        counted = Counter(node.op_type for node in self.nodes)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    @property
    def recurrent(self) -> list[str]:
        return [name for name in RECURRENT if name in self.operators]

    @property
    def class_names(self) -> list[str] | None:
        """In the order of the scores, where an operator of scikit-learn's exports holds them."""
        for node in self.nodes:
            for part in node.attribute:
                if part.name in ("classlabels_strings", "classlabels_ints", "classlabels_int64s"):
                    names = [name.decode("utf-8", "replace") for name in part.strings] or list(map(str, part.ints))
                    if len(names) > 1:
                        return names
        return None

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of stored tensors: initializers and the values of Constant nodes."""
        found = {tensor.name: tuple(tensor.dims) for tensor in self.proto.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant":
                found.update((node.output[0], tuple(part.t.dims)) for part in node.attribute if part.name == "value")
        return found

    @property
    def parameters(self) -> int:
        """Numbers that are stored as floats or quantised."""
        return sum(product(tensor.dims) for tensor in self.proto.graph.initializer if weighs(tensor))

    @cached_property
    def weight_types(self) -> dict[str, int]:
        """Of the parameters: type -> how many."""
        counted: Counter[str] = Counter()
        for tensor in self.proto.graph.initializer:
            if weighs(tensor):
                counted[type_name(tensor.data_type)] += product(tensor.dims)
        return dict(counted.most_common())

    @property
    def external(self) -> tuple[Path, ...]:
        """Files beside the model that hold its weights."""
        places = {
            entry.value
            for tensor in self.proto.graph.initializer
            for entry in tensor.external_data
            if entry.key == "location"
        }
        return tuple(self.path.parent / place for place in sorted(places))

    @cached_property
    def tables(self) -> dict[str, tuple[int, ...]]:
        """Stored tables from which an input picks rows: name -> shape, in the order of the graph."""
        return {name: shape for _, name, shape in self.lookups}

    @cached_property
    def lookups(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """An input, the table from which it picks rows, and the table's shape."""
        origin = {port.name: port.name for port in self.inputs}
        stored = {name: name for name in self.shapes}
        found = []
        for node in self.proto.graph.node:
            reads = [name for name in node.input if name]
            if not reads or not node.output:
                continue
            if node.op_type == "Gather" and reads[0] in stored and reads[-1] in origin:
                axis = next((part.i for part in node.attribute if part.name == "axis"), 0)
                table = stored[reads[0]]
                if axis == 0 and len(self.shapes[table]) == 2:
                    found.append((origin[reads[-1]], table, self.shapes[table]))
            elif node.op_type in (*MOVES, "DequantizeLinear"):
                for known in (origin, stored):
                    if reads[0] in known:
                        known[node.output[0]] = known[reads[0]]
        return tuple(found)

    def head(self, output: str) -> str | None:
        """What makes the scores of an output last, where that tells what they mean."""
        makers = {name: node for node in self.proto.graph.node for name in node.output}
        name: str | None = output
        for _ in range(len(makers)):
            node = makers.get(name or "")
            if node is None:
                return None
            if node.op_type in HEADS:
                return HEADS[node.op_type]
            if node.op_type not in MOVES:
                return None
            name = next(iter(node.input), None)
        return None


def read_contents(path: Path) -> OnnxContents:
    """The graph of a file, its weights left where they are."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(path, load_external_data=False)
    except (DecodeError, OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path}: not a readable ONNX model ({one_line(error)[:200] or type(error).__name__})") from None
    if not proto.graph.output:
        raise BadInput(f"{path}: not a readable ONNX model (a graph without outputs)")
    contents = OnnxContents(path, proto)
    names = [
        name for node in contents.nodes for name in (node.op_type, node.name, node.domain, *node.input, *node.output)
    ]
    names += [value.name for value in (*proto.graph.input, *proto.graph.output, *proto.graph.initializer)]
    for value in (*proto.graph.input, *proto.graph.output):
        names += [dimension.dim_param for dimension in value.type.tensor_type.shape.dim]
    names += [proto.producer_name, proto.producer_version]
    if not all(isinstance(name, str) for name in names):  # protobuf hands over what is not UTF-8 as bytes
        raise BadInput(f"{path}: not a readable ONNX model (a name that is not UTF-8)")
    return contents


def port_of(value: Any) -> Port:
    tensor = value.type.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param or None
            for d in tensor.shape.dim
        )
    kind = value.type.WhichOneof("value")
    return Port(value.name, type_name(tensor.elem_type) if kind == "tensor_type" else str(kind), shape)


def nodes_of(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for part in node.attribute:
            if part.HasField("g"):
                yield from nodes_of(part.g)


def type_name(number: int) -> str:
    """As numpy says it, where it does."""
    import onnx

    if number not in onnx.TensorProto.DataType.values():
        return f"unknown type {number}"
    name: str = onnx.TensorProto.DataType.Name(number).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def weighs(tensor: Any) -> bool:
    name = type_name(tensor.data_type)
    return name.startswith(("float", "bfloat")) or name in ("int8", "uint8", "int4", "uint4")


def product(dims: Any) -> int:
    found = 1
    for dim in dims:
        found *= dim
    return found
