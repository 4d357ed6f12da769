"""An ONNX model in which a word may be any vector: rows of one's own, put under the table of its token embedding.

The model is kept as it is, but for the tables that tokens select rows from, which become

    table' = the table, then the rows given as a further input

so that the token V + k, where V is the number of rows of the table, stands for the k-th row given. Whatever else reads
the tokens (a mask of the padding, say) reads what it always did, with some word in that place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model

from ...ladder.replay import session_of
from .euba_classifier import Tokens

Array = NDArray[Any]

MOVES = {
    "Cast", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
    "Unsqueeze",
}  # fmt: skip
"""Operators that hand on their first input, when it is tokens, as tokens at other places."""
NORMALISING = ("Softmax", "LogSoftmax")


@dataclass(frozen=True, eq=False)
class EmbeddedModel:
    """`tables` [rows, width] side by side are the embedding; `proto`, in `session`, has an input of further rows for
    each."""

    model: Model
    proto: Any
    session: Any
    tables: tuple[Array, ...]
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, model: Model) -> EmbeddedModel:
        """Refuses a model without such a table."""
        import onnx

        proto = onnx.ModelProto()
        proto.CopyFrom(model.proto)
        gathers = token_gathers(proto.graph, model.input)
        names = tuple(dict.fromkeys(gather.input[0] for gather in gathers))
        tables = tuple(constant(model, name) for name in names)
        refuse_no_embedding(model, names, tables)
        for name, table in zip(names, tables, strict=True):
            add_rows(proto.graph, name, table, [gather for gather in gathers if gather.input[0] == name])
        stop_before_normalising(proto.graph)
        return cls(model, proto, session_in_memory(proto, model), tables, tuple(further(name) for name in names))

    @property
    def size(self) -> int:
        """The tokens from here on are the rows given."""
        return len(self.tables[0])

    def rows(self, tokens: Tokens) -> Array:
        """[n, dimensions]: of all tables, side by side."""
        return np.concatenate([table[tokens].astype(np.float64) for table in self.tables], axis=1)

    def logits(self, sentences: Tokens, rows: Array) -> Array:
        """[n, classes], of sentences whose tokens from `size` on are these rows [k, dimensions]."""
        feeds, start = {}, 0
        for name, table in zip(self.inputs, self.tables, strict=True):
            stop = start + table.shape[1]
            feeds[name], start = rows[:, start:stop].astype(table.dtype), stop
        ids = sentences.astype(self.model.input_type)
        together = len(ids) if self.model.batch is None else 1
        parts = [ids[first : first + together] for first in range(0, len(ids), together)]
        try:
            found = [self.session.run(None, {self.model.input: part, **feeds})[0] for part in parts]
        except Exception as error:  # onnxruntime's exceptions share no base class
            reason = str(error).strip().split("\n")[0]
            raise BadInput(f"{self.model.path}: fails on embeddings of our own ({reason})") from None
        return np.concatenate(found).astype(np.float64)


def token_gathers(graph: Any, tokens: str) -> list[Any]:
    """The nodes that select rows of something constant by tokens."""
    moved, known, found = {tokens}, {tensor.name for tensor in graph.initializer}, []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in known and node.input[1] in moved:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            if axis == 0:
                found.append(node)
        elif all(name in known for name in node.input if name):
            known.update(node.output)
        elif node.op_type in MOVES and node.input[0] in moved:
            moved.update(node.output)
    return found


def constant(model: Model, name: str) -> Array:
    """The value of an initializer, or of what the graph computes from initializers."""
    import onnx
    from onnx import helper, numpy_helper

    graph = model.proto.graph
    for tensor in graph.initializer:
        if tensor.name == name:
            return np.asarray(numpy_helper.to_array(tensor))
    needed, nodes = {name}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed.update(node.input)
    part = helper.make_graph(
        nodes[::-1],
        graph.name or "constants",
        [],
        [onnx.ValueInfoProto(name=name)],
        [tensor for tensor in graph.initializer if tensor.name in needed],
    )
    proto = helper.make_model(part, opset_imports=model.proto.opset_import, ir_version=model.proto.ir_version)
    return np.asarray(session_in_memory(proto, model).run(None, {})[0])


def refuse_no_embedding(model: Model, names: tuple[str, ...], tables: tuple[Array, ...]) -> None:
    if not names:
        raise Unsupported(
            f"{model.path}: no Gather selects rows of a table by the tokens themselves, so there is no embedding to "
            "differentiate at"
        )
    for name, table in zip(names, tables, strict=True):
        if table.ndim != 2 or not np.issubdtype(table.dtype, np.floating):
            raise Unsupported(
                f"{model.path}: tokens select from {name}, {table.dtype} {list(table.shape)}: no embedding"
            )
    if len({len(table) for table in tables}) > 1:
        lengths = ", ".join(f"{name} {len(table)}" for name, table in zip(names, tables, strict=True))
        raise Unsupported(f"{model.path}: tokens select from tables of different lengths ({lengths})")


def further(name: str) -> str:
    return f"{name}.further_rows"


def add_rows(graph: Any, name: str, table: Array, gathers: list[Any]) -> None:
    """These nodes read the table with further rows, a new input."""
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    graph.input.append(helper.make_tensor_value_info(further(name), kind, [f"{name}.number", table.shape[1]]))
    longer = f"{name}.with_further_rows"
    first = next(place for place, node in enumerate(graph.node) if any(node is gather for gather in gathers))
    graph.node.insert(first, helper.make_node("Concat", [name, further(name)], [longer], axis=0))
    for gather in gathers:
        gather.input[0] = longer


def stop_before_normalising(graph: Any) -> None:
    """The output is what the last node makes probabilities of, where it does: they saturate, logits do not."""
    from onnx import ValueInfoProto

    producers = {name: node for node in graph.node for name in node.output}
    name = graph.output[0].name
    while name in producers and producers[name].op_type == "Identity":
        name = producers[name].input[0]
    last = producers.get(name)
    if last is not None and last.op_type in NORMALISING:
        axis = next((attribute.i for attribute in last.attribute if attribute.name == "axis"), -1)
        if axis in (-1, 1):
            graph.output[0].CopyFrom(ValueInfoProto(name=last.input[0]))


def session_in_memory(proto: Any, model: Model) -> Any:
    """By way of a file that is gone when onnxruntime has read it: models above 2 GB cannot be handed over otherwise."""
    import onnx

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            onnx.save(proto, path, save_as_external_data=proto.ByteSize() >= onnx.checker.MAXIMUM_PROTOBUF)
            return session_of(path)
        except (BadInput, ValueError) as error:
            raise BadInput(f"{model.path}: cannot be opened at its embedding ({error})") from None
