"""Rectifiers, and what they are enough for: limits by constants, slopes of any size, absolute values."""

from __future__ import annotations

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Rectifier, Sum
from .construction import Array, Builder, Call, Known, Value, Wire, finite


def relu(builder: Builder, call: Call) -> list[Value]:
    return [rectified(builder, call, call.wire(0))]


def leaky_relu(builder: Builder, call: Call) -> list[Value]:
    slope = float(np.float32(call.attributes.get("alpha", 0.01)))
    if not 0.0 <= slope <= 1.0:
        raise Unsupported(f"{call.where}: LeakyRelu with alpha {slope}; alpha from 0 to 1 is supported")
    return [rectified(builder, call, call.wire(0), slope)]


def rectified(builder: Builder, call: Call, wire: Wire, slope: float = 0.0) -> Wire:
    return builder.emit(Rectifier(slope), [wire], wire.shape, call.where, wire.dtype)


def prelu(builder: Builder, call: Call) -> list[Value]:
    wire, slopes = call.wire(0), call.known(1, "slopes")
    if slopes is None:
        raise BadInput(f"{call.where}: its slopes are missing")
    if np.broadcast_shapes(wire.shape, slopes.shape) != wire.shape:
        raise BadInput(f"{call.where}: slopes of shape {list(slopes.shape)} for values of shape {list(wire.shape)}")
    return [bent(builder, call, wire, slopes)]


def absolute(builder: Builder, call: Call) -> list[Value]:
    return [bent(builder, call, call.wire(0), np.array(-1.0))]


def bent(builder: Builder, call: Call, wire: Wire, slopes: Array) -> Wire:
    """s x + (1 - s) max(x, 0), as max(x, 0) + s (x - max(x, 0)): 1 - s might be no float."""
    kept = rectified(builder, call, wire)
    below = builder.emit(Sum((1, -1)), [wire, kept], wire.shape, call.where, wire.dtype)
    leaked = builder.scale(below, call.where, multiply=slopes)
    return builder.emit(Sum((1, 1)), [kept, leaked], wire.shape, call.where, wire.dtype)


def clip(builder: Builder, call: Call) -> list[Value]:
    """min(max(x, low), high), either limit absent. A second rectifier of one ONNX node is numbered after all nodes."""
    wire = call.wire(0)
    low, high = (call.known(position, "limit") for position in (1, 2))
    if any(limit is not None and limit.shape for limit in (low, high)):
        raise BadInput(f"{call.where}: limits must be single numbers, of rank 0")
    if low is not None:
        wire = limited(builder, call, wire, low, 1)
    if high is not None:
        first = builder.number
        builder.number = None if first is None else first + builder.size
        wire = limited(builder, call, wire, high, -1)
        builder.number = first
    return [wire]


def limited_by_constant(builder: Builder, call: Call) -> Wire | None:
    """Max or Min of a wire and a constant; None for anything else."""
    match call.values:
        case (Wire() as wire, Known(array)) | (Known(array), Wire() as wire):
            return limited(builder, call, wire, array, 1 if call.operator == "Max" else -1)
        case _:
            return None


def limited(builder: Builder, call: Call, wire: Wire, limit: Array, sign: int) -> Wire:
    """max(x, c) = c + max(x - c, 0) for sign 1, min(x, c) = c - max(c - x, 0) for sign -1."""
    shape = np.broadcast_shapes(wire.shape, limit.shape)
    wire = builder.broadcast(wire, shape, call.where)
    bound = finite(limit, call.where)
    if sign > 0 and not bound.any():
        return rectified(builder, call, wire)
    apart = builder.scale(wire, call.where, multiply=float(sign), add=-sign * bound)
    return builder.scale(rectified(builder, call, apart), call.where, multiply=float(sign), add=bound)
