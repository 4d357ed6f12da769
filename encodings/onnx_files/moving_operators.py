"""Operators that only move data, performed by the ONNX reference implementation on an array of indices."""

from __future__ import annotations

import math

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Embedding, Table
from .construction import FLOATS, Builder, Call, Known, Tokens, Value, Wire, numbered, variable
from .windows import OUTSIDE


def move(builder: Builder, call: Call) -> list[Value]:
    """Operators that only move elements of their first input: performed on an array of indices."""
    given = call.value(0)
    moved = given if isinstance(given, Tokens | Known) else call.wire(0)
    parameters = [call.known(position, f"input {position}") for position in range(1, len(call.values))]
    if isinstance(moved, Known):  # reached when a parameter varies, which `known` has refused
        raise Unsupported(f"{call.where}: nothing here depends on the text")
    index = moved.positions if isinstance(moved, Tokens) else numbered(moved.shape)
    results = builder.run(call, [index, *parameters])
    if isinstance(moved, Tokens):
        return [Tokens(result, moved.dtype) for result in results]
    return [builder.rearrange([moved], result, call.where) for result in results]


def pad(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    amounts, fill, axes = call.known(1, "pads"), call.known(2, "fill value"), call.known(3, "axes")
    if amounts is None:
        raise BadInput(f"{call.where}: pads are missing")
    if (amounts < 0).any():
        raise Unsupported(f"{call.where}: negative pads; Slice takes elements away")
    if call.attributes.get("mode", "constant") != "constant":
        builder.foreign.append(f"{call.where}: padding that repeats elements")
    (result,) = builder.run(call, [numbered(wire.shape), amounts, np.array(OUTSIDE, dtype=np.int64), axes])
    value = 0.0 if fill is None or fill.size == 0 else float(fill.reshape(-1)[0])
    return [builder.fill_outside(wire, result, value, call.where)]


def concat(builder: Builder, call: Call) -> list[Value]:
    wires = [variable(builder, call, position) for position in range(len(call.values)) if not call.is_empty(position)]
    total = sum(math.prod(wire.shape) for wire in wires)
    builder.room((total,), call.where)
    parts, start = [], 0
    for wire in wires:
        parts.append(numbered(wire.shape) + start)
        start += math.prod(wire.shape)
    return [builder.rearrange(wires, np.concatenate(parts, axis=call.attributes["axis"]), call.where)]


def gather(builder: Builder, call: Call) -> list[Value]:
    table, index = call.value(0), call.value(1)
    if not isinstance(index, Tokens):
        return move(builder, call)
    if not isinstance(table, Known) or table.array.ndim != 2 or call.attributes.get("axis", 0) not in (0, -2):
        raise Unsupported(f"{call.where}: tokens select from something that is not a constant [words, size] table")
    if str(table.array.dtype) not in FLOATS:
        raise Unsupported(f"{call.where}: an embedding table of type {table.array.dtype}; float16, 32 and 64 are read")
    if not len(table.array):
        raise BadInput(f"{call.where}: the embedding table is empty")
    if not np.isfinite(table.array).all():
        raise BadInput(f"{call.where}: the embedding table holds NaN or infinity")
    builder.room((index.positions.size, table.array.shape[1]), call.where)
    layer = Embedding(Table(table.array), index.positions)
    shape = (*index.positions.shape, table.array.shape[1])
    return [builder.emit(layer, (), shape, call.where, str(table.array.dtype))]


def cast(builder: Builder, call: Call) -> list[Value]:
    value = call.value(0)
    target = call.attributes["to"]
    names = {1: "float32", 10: "float16", 11: "float64", 6: "int32", 7: "int64"}
    if target not in names:
        raise Unsupported(f"{call.where}: a cast to ONNX type {target}; casts among floats, and of tokens to int32/64")
    name = names[target]
    match value:
        case Tokens() if name in ("int32", "int64"):
            return [Tokens(value.positions, name)]
        case Wire() if name in FLOATS:
            if name != value.dtype:
                builder.foreign.append(f"{call.where}: a cast from {value.dtype} to {name}")
            if FLOATS.index(name) >= FLOATS.index(value.dtype):
                return [Wire(value.node, value.shape, name)]
            coarser = Wire(value.node, value.shape, name)
            return [builder.scale(coarser, call.where, roundings=2)]  # the identity, rounded
        case _:
            raise Unsupported(f"{call.where}: a cast between whole numbers and floats of something the text decides")


def where(builder: Builder, call: Call) -> list[Value]:
    """Elements of one value or the other, as a constant condition says."""
    chosen = call.known(0, "condition")
    if chosen is None:
        raise BadInput(f"{call.where}: its condition is missing")
    wires = [variable(builder, call, position) for position in (1, 2)]
    shape = np.broadcast_shapes(chosen.shape, *(wire.shape for wire in wires))
    size = builder.room(shape, call.where)
    wires = [builder.broadcast(wire, shape, call.where) for wire in wires]
    return [builder.rearrange(wires, np.where(chosen, numbered(shape), numbered(shape) + size), call.where)]


def same(builder: Builder, call: Call) -> list[Value]:
    return [call.value(0)]


def dropout(builder: Builder, call: Call) -> list[Value]:
    training = call.known(2, "training mode")
    if training is not None and bool(training.reshape(-1)[0]):
        raise Unsupported(f"{call.where}: dropout in training mode is random; export the model with .eval()")
    value = call.value(0)
    shape = value.shape if isinstance(value, Wire) else ()
    return [value, Known(np.ones(shape, dtype=np.bool_))]
