"""An ONNX file looked at without running it: what a report says of it, its table of tokens, its other files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BadInput, one_line, unreadable
from ...recognition.whole_files import sha256
from ..classifier import Copy

if TYPE_CHECKING:
    import onnx

QUANTISED = ("QLinear", "Quantize", "Dequantize", "DynamicQuantize", "QAttention", "QEmbed", "QGemm")
"""Beginnings of operators' names."""
SAME_IDS = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose"})
SAME_ROWS = frozenset({"DequantizeLinear", "Cast", "Identity"})


@dataclass(frozen=True)
class OnnxFile:
    path: Path
    opset: int
    parameters: int
    multiplied: int
    """Those outside tables, which every token meets."""
    quantised: bool
    half: bool
    dynamic: bool
    """Whether scales are computed from what stands in a batch, so that its sentences change each other."""
    tables: Mapping[str, int]
    """Input -> the rows of the table that it is looked up in."""
    outside: tuple[str, ...]
    """Files beside it that hold weights."""

    @property
    def copies(self) -> Iterator[Copy]:
        yield copy_of("model.onnx", self.path)
        for name in self.outside:
            yield copy_of(name, self.path.parent / name)


def look_at(path: Path) -> OnnxFile:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except OSError as error:
        raise unreadable(path, error) from error
    except DecodeError as error:
        raise BadInput(f"{path}: not a readable ONNX model ({one_line(error)})") from error
    graph = model.graph
    if not graph.node:
        raise BadInput(f"{path}: not an ONNX model, or one without a node")
    tensors = [*graph.initializer, *(attribute.t for node in graph.node for attribute in _constants(node))]
    outside = {
        entry.value
        for tensor in tensors
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    if beyond := [name for name in outside if Path(name).is_absolute() or ".." in Path(name).parts]:
        raise BadInput(f"{path}: has weights in {beyond[0]}, outside its folder")
    kinds = {node.op_type for node in graph.node}
    parameters, tables = sum(map(_size, tensors)), _tables(graph)
    return OnnxFile(
        path=path,
        opset=next((opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")), 0),
        parameters=parameters,
        multiplied=parameters - max((size for _, size in tables.values()), default=0),
        quantised=any(kind.startswith(QUANTISED) or "Integer" in kind or kind.endswith("NBits") for kind in kinds),
        half=any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in tensors),
        dynamic=any(kind.startswith("DynamicQuantize") for kind in kinds),
        tables={name: rows for name, (rows, _) in tables.items()},
        outside=tuple(sorted(outside)),
    )


def _constants(node: Any) -> list[Any]:
    return [one for one in node.attribute if node.op_type == "Constant" and one.HasField("t")]


def _size(tensor: Any) -> int:
    return prod(tensor.dims)


def _tables(graph: onnx.GraphProto) -> dict[str, tuple[int, int]]:
    """Input -> rows and numbers of the table with the fewest rows in which its ids are looked up as they are given."""
    origin = {given.name: given.name for given in graph.input}
    tables = {tensor.name: (tensor.dims[0], _size(tensor)) for tensor in graph.initializer if len(tensor.dims) == 2}
    found: dict[str, tuple[int, int]] = {}
    for node in graph.node:  # in an order in which everything is computed before it is read
        first = node.input[0] if node.input else ""
        for constant in _constants(node):
            if len(constant.t.dims) == 2:
                tables[node.output[0]] = (constant.t.dims[0], _size(constant.t))
        if node.op_type in SAME_IDS and first in origin:
            origin[node.output[0]] = origin[first]
        if node.op_type in SAME_ROWS and first in tables:
            tables[node.output[0]] = tables[first]
        if node.op_type == "Gather" and first in tables and node.input[1] in origin and not _axis(node):
            name = origin[node.input[1]]
            found[name] = min(found.get(name, tables[first]), tables[first])
    return found


def _axis(node: Any) -> int:
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == "axis"), 0)


def copy_of(name: str, path: Path) -> Copy:
    return Copy(name, path, sha256(path))
