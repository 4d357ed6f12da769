"""The network behind an embedding: what a classifier computes from the vectors of its words, as an ONNX file.

Of a model that reads tokens it is cut out where one Gather looks the tokens up; that it computes the same is what the
graph says: nothing else of it is changed, but that a softmax at its end is left out and that what is computed from the
tokens beside their embedding stands as numbers. A model that reads vectors is this
network already, and the vectors of its words stand in a file of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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
FLOATING, INT32 = (1, 10, 11, 16), 6
"""Of ONNX: types of numbers, and of one of integers."""


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
        network = numeric_network(model, smooth=True)
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


@dataclass(frozen=True, eq=False)
class Cutter:
    """Where a model of tokens is cut: behind one Gather that looks its only input up.

    What else the model computes from the tokens (a mask of the padding, the number of words) is taken as it is for a
    text, and stands as `fixed` numbers in the network behind the embedding.
    """

    model: Model
    gather: Any
    table: Array
    kept: tuple[Any, ...]
    """The nodes behind the embedding."""
    output: str
    fixed: tuple[str, ...]

    @classmethod
    def of(cls, model: Model) -> Cutter:
        from onnx import numpy_helper

        graph = model.proto.graph
        constants = {tensor.name: tensor for tensor in graph.initializer}
        moved, gathers = {model.input}, []
        for node in graph.node:
            if node.op_type == "Gather" and node.input[1] in moved and node.input[0] in constants:
                gathers.append(node)
            elif node.op_type in MOVES and node.input and node.input[0] in moved:
                moved.update(node.output)
        tables = [node for node in gathers if constants[node.input[0]].data_type in FLOATING]
        if len(tables) != 1 or len(model.inputs) != 1:
            met = f"{len(model.inputs)} inputs, and {len(tables)} tables that tokens select from"
            raise Unsupported(
                f"{model.named}: {met}; a radius needs one input and one embedding (a Gather of a constant)"
            )
        (gather,) = tables
        table = np.asarray(numpy_helper.to_array(constants[gather.input[0]], str(model.path.parent)))
        if table.ndim != 2:
            raise Unsupported(f"{model.named}: tokens select from {table.dtype} {list(table.shape)}, no embedding")
        end = graph.output[0].name if model.output is None else model.output
        behind, reached = {gather.output[0]}, {model.input}
        for node in graph.node:
            if node is not gather and behind & set(node.input):
                behind.update(node.output)
            elif node is not gather and reached & set(node.input):
                reached.update(node.output)
        output = plain_end(graph, end)
        made, needed, fixed = [], {output}, []
        for node in reversed(graph.node):
            if node is gather or not needed & set(node.output):
                continue
            if behind & set(node.output):
                made.append(node)
                needed.update(node.input)
            elif reached & set(node.output):
                fixed += [name for name in node.output if name in needed]
            else:
                made.append(node)
                needed.update(node.input)
        if model.input in needed:
            fixed.append(model.input)
        return cls(model, gather, table, tuple(made[::-1]), output, tuple(sorted(set(fixed))))

    @cached_property
    def asking(self) -> Any:
        """onnxruntime, with what is fixed as its outputs."""
        import onnx
        import onnxruntime

        proto = onnx.ModelProto()
        proto.CopyFrom(self.model.proto)
        onnx.load_external_data_for_model(proto, str(self.model.path.parent))
        del proto.graph.output[:]
        known = {value.name: value for value in onnx.shape_inference.infer_shapes(proto).graph.value_info}
        asked = [name for name in self.fixed if name != self.model.input]
        proto.graph.output.extend([known.get(name, onnx.ValueInfoProto(name=name)) for name in asked])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def constants(self, tokens: Sequence[int]) -> dict[str, Array]:
        """What the model computes from the tokens of a text, beside their embedding."""
        if not self.fixed:
            return {}
        asked = [name for name in self.fixed if name != self.model.input]
        given = self.given(tokens)
        found = dict(zip(asked, self.asking.run(asked, given), strict=True)) if asked else {}
        return found | {name: row for name, row in given.items() if name in self.fixed}

    def given(self, tokens: Sequence[int]) -> dict[str, Array]:
        (kind,) = [
            value.type.tensor_type.elem_type for value in self.model.proto.graph.input if value.name == self.model.input
        ]
        return {self.model.input: np.array([list(tokens)], dtype=np.int32 if kind == INT32 else np.int64)}

    def named(self, tokens: Sequence[int]) -> str:
        """Of the file for texts of this length for which the model computes the same."""
        constants = self.constants(tokens)
        if not constants:
            return behind_name(len(tokens))
        digest = hashlib.sha256()
        for name in sorted(constants):
            value = np.ascontiguousarray(constants[name])
            digest.update(f"{name} {value.dtype} {list(value.shape)} ".encode() + value.tobytes())
        return behind_name(f"{len(tokens)}-{digest.hexdigest()[:12]}")

    def write(self, tokens: Sequence[int], target: Path) -> None:
        """The network behind the embedding for this text, and for all that have the same name."""
        import onnx
        from onnx import helper, numpy_helper

        model, name = self.model, self.gather.output[0]
        needed = {self.output, *[name for node in self.kept for name in node.input]}
        numbers = [numpy_helper.from_array(value, name) for name, value in sorted(self.constants(tokens).items())]
        kind = helper.np_dtype_to_tensor_dtype(self.table.dtype)
        new = helper.make_graph(
            list(self.kept),
            "behind the embedding",
            [helper.make_tensor_value_info(name, kind, [1, len(tokens), self.table.shape[1]])],
            [onnx.ValueInfoProto(name=self.output)],
            [*[tensor for tensor in model.proto.graph.initializer if tensor.name in needed], *numbers],
        )
        proto = helper.make_model(new, opset_imports=model.proto.opset_import, ir_version=model.proto.ir_version)
        onnx.load_external_data_for_model(proto, str(model.path.parent))
        inferred = onnx.shape_inference.infer_shapes(proto)
        types = {value.name: value for value in (*inferred.graph.output, *inferred.graph.value_info)}
        proto.graph.output[0].CopyFrom(types.get(self.output, proto.graph.output[0]))
        write_atomically(target, proto.SerializeToString(deterministic=True))


def behind_name(what: int | str) -> str:
    return f"behind-{what}.onnx"


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
