"""Constants of a smooth model that certificates do not speak of, put in as numbers: roots of sizes.

Exporters of attention compute 1 / sqrt(d) from shapes. What is the same for texts of every length becomes an
initializer. Whoever adapts a model compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from ..onnx_files.computed import MOVED, is_floating, is_foreign
from ..onnx_files.constant_folding import Rounding
from ..onnx_files.construction import Array, Builder, Known, Tokens, Value, Wire
from ..onnx_files.model_ports import LENGTH, TOKENS, roles_of, type_named
from ..onnx_files.onnx_reading import Model, call_of, moved, needed_nodes, sizes_of, translate

SMOOTH = {
    "Erf", "Exp", "GRU", "Gelu", "HardSigmoid", "LSTM", "LayerNormalization", "Pow", "RNN", "Reciprocal", "ReduceL2",
    "Softmax", "Sqrt",
}  # fmt: skip
"""Where none of these is met, nothing is looked for."""
LENGTHS = (2, 3, 33)
"""Of the texts that constants are compared of."""
SMALL = 2**18
"""Elements of a constant that is put in: sizes, scales, orders of axes, weights divided by their length."""


def with_plain_constants(
    proto: Any, path: Path, output: str, roles: Mapping[str, str] | None = None
) -> tuple[Any, list[str]]:
    """The model, and what was changed in it."""
    if not SMOOTH.intersection(node.op_type for node in proto.graph.node):
        return proto, []
    notes = []
    found = settled(proto, path, output, roles)
    if found:
        replace(proto, found)
        notes.append(f"{len(found)} constants that it computes are put in as numbers")
    whole = without_nan(proto)
    if whole:
        notes.append(f"{whole} replacements of NaN, which no text gives that is read, are left out")
    return proto, notes


def settled(proto: Any, path: Path, output: str, roles: Mapping[str, str] | None) -> dict[str, Array]:
    """Name -> a constant that it computes, the same at every length; none where certificates speak of all of them."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    inputs = [one for one in proto.graph.input if one.name not in stored]
    try:
        known = roles_of([one.name for one in inputs], roles, str(path))
        fixed = [sizes_of(one, role, str(path))[1] for one, role in zip(inputs, known, strict=True)]
    except (BadInput, Unsupported):
        return {}  # reading it says why
    given = next((length for length, role in zip(fixed, known, strict=True) if length and role != LENGTH), None)
    found: list[dict[str, Array]] = []
    for length in LENGTHS if given is None else (given,):
        values: dict[str, Value] = {}
        for one, role in zip(inputs, known, strict=True):
            places = np.arange(length, dtype=np.int64).reshape(1, -1)
            plain = {"mask": np.ones_like(places), "types": np.zeros_like(places), "positions": places}
            whole = plain.get(role, np.array([[length]], dtype=np.int64))
            kind = type_named(one.type.tensor_type.elem_type)
            values[one.name] = Tokens(places, kind) if role == TOKENS else Known(whole.astype(kind))
        found.append(computed(proto, path, output, values, set(values), length))
    first = found[0]
    return {
        name: array
        for name, array in first.items()
        if all(name in other and np.array_equal(array, other[name]) for other in found[1:])
    }


def computed(
    proto: Any, path: Path, output: str, values: dict[str, Value], inputs: set[str], length: int
) -> dict[str, Array]:
    """What small constants it computes of constants alone for texts of this length; nothing where all can be read.

    Numbers that are only moved, and sizes, stay computed where certificates speak of that: in a batch of several
    sentences they may be others.
    """
    model = Model(path, proto, opset(proto), (), output, None)
    builder = Builder(moved, len(proto.graph.node), ((1,),) * length)
    values |= {name: Known(array) for name, array in model.constants.items()}
    of_text, opaque, found, unspoken = set(inputs), set[str](), dict[str, Array](), False
    for position, node in needed_nodes(proto.graph, output):
        if opaque.intersection(node.input):
            opaque.update(node.output)
            continue
        builder.number = position
        rounds = False
        try:
            call = call_of(model, node, position, values)
            results = translate(builder, call)
        except Rounding as rounding:
            results, rounds = [Known(array) for array in rounding.results], True
        except (BadInput, Unsupported):
            opaque.update(node.output)
            continue
        values.update((name, value) for name, value in zip(node.output, results, strict=False) if name)
        if node.op_type != "Shape" and of_text.intersection(node.input):
            of_text.update(node.output)
            continue
        arrays = [value.array if isinstance(value, Known) else None for value in call.values]
        if node.op_type == "Constant" or any(isinstance(value, Tokens | Wire) for value in call.values):
            continue
        own = {
            name: one.array
            for name, one in zip(node.output, results, strict=False)
            if isinstance(one, Known) and one.array.size <= SMALL
        }
        empty = any(not array.size for array in own.values())
        new = rounds or empty or is_foreign(node.op_type, call.attributes, arrays)
        found |= {name: array for name, array in own.items() if new or is_computed(node.op_type, array)}
        unspoken = unspoken or new
    return found if unspoken else {}


def is_computed(operator: str, array: Array) -> bool:
    return operator not in MOVED and is_floating(array)


def opset(proto: Any) -> int:
    return next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 0)


def replace(proto: Any, found: Mapping[str, Array]) -> None:
    """The nodes that give these by initializers; whatever only they read is left where it is, and counts no more."""
    import onnx.numpy_helper

    kept = [node for node in proto.graph.node if not found.keys() & set(node.output)]
    nodes = [type(node).FromString(node.SerializeToString()) for node in kept]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in found.items()
    )


def without_nan(proto: Any) -> int:
    """Where(IsNaN(x), number, x) becomes x: a line of nothing but minus infinity gives NaN, and is not read."""
    asked = {node.output[0]: node.input[0] for node in proto.graph.node if node.op_type == "IsNaN"}
    found = [node for node in proto.graph.node if node.op_type == "Where" and asked.get(node.input[0]) == node.input[2]]
    for node in found:
        kept = node.input[2]
        del node.input[:]
        node.input.append(kept)
        node.op_type = "Identity"
    return len(found)
