"""The network behind an embedding: what a classifier computes from the vectors of its words, as an ONNX file.

Of a model that reads tokens it is cut out where one Gather looks the tokens up; that it computes the same is what the
graph says: nothing else of it is changed, but that a softmax at its end is left out. A model that reads vectors is this
network already, and the vectors of its words stand in a file of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical import Canonical, canonical_network
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.numeric_input import NumericModel, numeric_network, open_numeric
from swapproof.encodings.onnx_files.onnx_reading import Model

from ..ladder.replay import session_of
from ..runs.run_folder import sha256, write_atomically

Array = NDArray[Any]
MOVES = ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten")
"""Operators on the way from the tokens to the Gather that hand all of them on in their order."""
HEADS = ("Softmax", "LogSoftmax")
MOST_SENTENCES = 256
"""Asked of onnxruntime at a time."""


@dataclass(frozen=True, eq=False)
class Behind:
    """The network behind the embedding, for texts of so many positions with a vector each, in onnxruntime too."""

    model: NumericModel
    network: Network
    session: Any
    positions: int
    width: int

    @classmethod
    def open(cls, path: Path, width: int) -> Behind:
        """`width`: of the vectors of words."""
        model = open_numeric(path)
        size = int(np.prod(model.shape))
        if size % width:
            raise BadInput(f"{path}: reads {size} numbers, which are no vectors of {width}")
        if model.kind == "float16":
            raise Unsupported(f"{path}: reads float16 numbers; radii are of models that read float32 or float64")
        network = numeric_network(model)
        return cls(model, network, session_of(path), size // width, width)

    @cached_property
    def canonical(self) -> Canonical:
        found = canonical_network(self.network, inputs="numbers")
        if found.data is None:
            raise Unsupported(f"{self.model.path}: {found.reason}; no certificate can speak of it")
        return found

    @cached_property
    def sha256(self) -> str:
        return sha256(self.model.path)

    @property
    def classes(self) -> int:
        return self.network.nodes[-1].size

    def answers(self, vectors: Array) -> Array:
        """[n, classes]: what onnxruntime gives for texts [n, positions * width], each alone."""
        rows = vectors.astype(self.model.kind).reshape(len(vectors), *self.model.shape)
        found = []
        for row in rows:
            try:
                (result,) = self.session.run([self.model.output], {self.model.input: row})
            except Exception as error:  # onnxruntime's exceptions share no base class
                reason = str(error).strip().split("\n")[0]
                raise BadInput(f"{self.model.path}: onnxruntime fails on a text ({reason})") from None
            found.append(np.asarray(result).reshape(-1))
        return np.array(found)


def classes_of(outputs: Array, labels: int) -> Array:
    """[n]: the argmax over the first so many outputs, the lowest index among equals; -1 where one is no number."""
    own = outputs[:, :labels]
    return np.where(np.isnan(own).any(axis=1), -1, own.argmax(axis=1))


def cut_behind(model: Model, length: int, target: Path) -> Array:
    """Writes the network behind the embedding of a model of tokens for texts of this length; gives its table."""
    import onnx
    from onnx import helper, numpy_helper

    graph = model.proto.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    moved, gathers = {model.input}, []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] in moved and node.input[0] in constants:
            gathers.append(node)
        elif node.op_type in MOVES and node.input and node.input[0] in moved:
            moved.update(node.output)
    if len(gathers) != 1 or len(model.inputs) != 1:
        met = f"{len(model.inputs)} inputs, and {len(gathers)} tables that tokens select from"
        raise Unsupported(f"{model.named}: {met}; a radius needs one input and one embedding (a Gather of a constant)")
    gather = gathers[0]
    table = np.asarray(numpy_helper.to_array(constants[gather.input[0]], str(model.path.parent)))
    if table.ndim != 2 or table.dtype.kind != "f":
        raise Unsupported(f"{model.named}: tokens select from {table.dtype} {list(table.shape)}, which is no embedding")
    name = gather.output[0]
    ends = {graph.output[0].name} if model.output is None else {model.output}
    made, needed = [], {plain_end(graph, next(iter(ends)))}
    output = next(iter(needed))
    for node in reversed(graph.node):
        if node is not gather and needed & set(node.output):
            made.append(node)
            needed.update(node.input)
    if needed & (moved - {name}):
        raise Unsupported(
            f"{model.named}: computes with the tokens beside their embedding (a mask of the padding?): no network "
            "stands behind it alone"
        )
    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    new = helper.make_graph(
        made[::-1],
        "behind the embedding",
        [helper.make_tensor_value_info(name, kind, [1, length, table.shape[1]])],
        [onnx.ValueInfoProto(name=output)],
        [tensor for tensor in graph.initializer if tensor.name in needed],
    )
    proto = helper.make_model(new, opset_imports=model.proto.opset_import, ir_version=model.proto.ir_version)
    onnx.load_external_data_for_model(proto, str(model.path.parent))
    inferred = onnx.shape_inference.infer_shapes(proto)
    types = {value.name: value for value in (*inferred.graph.output, *inferred.graph.value_info)}
    proto.graph.output[0].CopyFrom(types.get(output, proto.graph.output[0]))
    write_atomically(target, proto.SerializeToString(deterministic=True))
    return table


def plain_end(graph: Any, name: str) -> str:
    """The logits: what a softmax at the end is made of, which changes no comparison."""
    producers = {output: node for node in graph.node for output in node.output}
    while name in producers and producers[name].op_type in (*HEADS, "Identity"):
        name = producers[name].input[0]
    return name


def without_head(path: Path, target: Path) -> bool:
    """Whether the model of vectors ends in a softmax; then it is written there without it."""
    import onnx

    proto = onnx.load(path)
    (output,) = [value.name for value in proto.graph.output][:1]
    end = plain_end(proto.graph, output)
    if end == output:
        return False
    kept, needed = [], {end}
    for node in reversed(proto.graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed.update(node.input)
    del proto.graph.node[:]
    proto.graph.node.extend(kept[::-1])
    proto.graph.output[0].name = end
    write_atomically(target, proto.SerializeToString(deterministic=True))
    return True
