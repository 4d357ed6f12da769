"""Maxima, and reductions and poolings, which are a rearrangement and a maximum or a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Maximum
from .construction import Axes, Builder, Call, Value, Wire, numbered, variable, window_index
from .rectifying_operators import limited_by_constant
from .windows import OUTSIDE


def maximum(builder: Builder, call: Call) -> list[Value]:
    limited = limited_by_constant(builder, call)
    if limited is not None:
        return [limited]
    return [largest(builder, call, [variable(builder, call, position) for position in range(len(call.values))])]


def minimum(builder: Builder, call: Call) -> list[Value]:
    """min = -max of the negated."""
    limited = limited_by_constant(builder, call)
    if limited is not None:
        return [limited]
    wires = [variable(builder, call, position) for position in range(len(call.values))]
    if len(wires) == 1:
        return [wires[0]]
    shape = np.broadcast_shapes(*(wire.shape for wire in wires))
    builder.room((len(wires), *shape), call.where)
    starts = np.cumsum([0, *(math.prod(wire.shape) for wire in wires)]).tolist()
    parts = [
        np.broadcast_to(numbered(wire.shape) + start, shape) for wire, start in zip(wires, starts[:-1], strict=True)
    ]
    negated = builder.scale(builder.rearrange(wires, np.stack(parts), call.where), call.where, multiply=-1.0)
    found = builder.rearrange([negated], np.moveaxis(numbered(negated.shape), 0, -1), call.where)
    greatest = builder.emit(Maximum(), [found], shape, call.where, found.dtype)
    return [builder.scale(greatest, call.where, multiply=-1.0)]


def largest(builder: Builder, call: Call, wires: Sequence[Wire]) -> Wire:
    if len(wires) == 1:
        return wires[0]
    shape = np.broadcast_shapes(*(wire.shape for wire in wires))
    builder.room((len(wires), *shape), call.where)
    wires = [builder.broadcast(wire, shape, call.where) for wire in wires]
    stacked = builder.rearrange(wires, np.moveaxis(numbered((len(wires), *shape)), 0, -1), call.where)
    return builder.emit(Maximum(), [stacked], shape, call.where, stacked.dtype)


def max_pool(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    if call.outputs > 1:
        raise Unsupported(f"{call.where}: the index output of MaxPool is not supported")
    kernel = call.attributes["kernel_shape"]
    index = window_index(call, wire.shape, kernel)
    index = index.reshape(*index.shape[: 2 + len(kernel)], -1)
    # Padding never wins; repeating an element of the window in its place changes no maximum.
    first = np.where(index == OUTSIDE, index.max(axis=-1, keepdims=True), index)
    if (first == OUTSIDE).any():
        raise BadInput(f"{call.where}: a window lies wholly in the padding")
    gathered = builder.rearrange([wire], first, call.where)
    return [builder.emit(Maximum(), [gathered], gathered.shape[:-1], call.where, wire.dtype)]


def average_pool(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    kernel = call.attributes["kernel_shape"]
    index = window_index(call, wire.shape, kernel)
    index = index.reshape(*index.shape[: 2 + len(kernel)], -1)
    count = (index != OUTSIDE).sum(axis=-1).astype(np.float64)
    if call.attributes.get("count_include_pad", 0):
        if call.attributes.get("ceil_mode", 0):
            raise Unsupported(f"{call.where}: AveragePool with both ceil_mode and count_include_pad")
        count = np.full(count.shape, float(index.shape[-1]))
    elif not count.all():
        raise BadInput(f"{call.where}: a window lies wholly in the padding")
    total = builder.total(builder.fill_outside(wire, index, 0.0, call.where), call.where)
    return [builder.scale(total, call.where, divide=count)]


def reduce(builder: Builder, call: Call) -> list[Value]:
    """ReduceMax, ReduceSum, ReduceMean and the global poolings: reduced axes laid out last, then one layer."""
    wire = call.wire(0)
    axes = Axes.of(call, wire)
    if axes is None:
        return [wire]
    gathered = builder.rearrange([wire], axes.gathered(wire.shape), call.where)
    if "Max" in call.operator:
        result = builder.emit(Maximum(), [gathered], gathered.shape[:-1], call.where, wire.dtype)
    else:
        result = builder.total(gathered, call.where)
        if call.operator in ("ReduceMean", "GlobalAveragePool"):
            result = builder.scale(result, call.where, divide=float(gathered.shape[-1]))
    return [builder.reshape(result, axes.shape, call.where)]
