"""What each ONNX operator means in terms of the eight layers of a Network.

Translation runs the graph for a batch of one sentence. A value met on the way is one of three things: `Known` (the
same for every text: weights, shapes, indices), `Tokens` (the input ids, perhaps rearranged), or `Wire` (the output of
a node of the network under construction). An operator whose inputs are all known is folded by the ONNX reference
implementation; an operator that only moves data is performed by that same implementation on an array of indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput, Unsupported
from .network import (
    Affine,
    Constant,
    Embedding,
    Floats,
    Indices,
    Layer,
    Maximum,
    Node,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
    Table,
)
from .windows import MOST_VALUES, OUTSIDE, paddings, windows

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Known:
    array: Array


@dataclass(frozen=True, eq=False)
class Tokens:
    positions: Indices


@dataclass(frozen=True)
class Wire:
    node: int
    shape: tuple[int, ...]
    dtype: str


Value = Known | Tokens | Wire
Run = Callable[["Call", Sequence[Array | None]], list[Array]]


@dataclass(frozen=True)
class Call:
    """One ONNX node: its operator, attributes, and the values it reads (None where an optional input is absent)."""

    operator: str
    where: str
    attributes: dict[str, Any]
    values: tuple[Value | None, ...]
    outputs: int
    """As many as the node lists, up to the last one that has a name."""
    opset: int

    def value(self, position: int) -> Value:
        value = self.values[position] if position < len(self.values) else None
        if value is None:
            raise BadInput(f"{self.where}: input {position} is missing")
        return value

    def wire(self, position: int) -> Wire:
        value = self.value(position)
        if not isinstance(value, Wire):
            raise Unsupported(f"{self.where}: input {position} must be computed from embedded words here")
        return value

    def is_empty(self, position: int) -> bool:
        value = self.value(position)
        return isinstance(value, Known) and value.array.size == 0

    def axis(self, axis: int, rank: int) -> int:
        """Counted from the front."""
        if not -rank <= axis < rank:
            raise BadInput(f"{self.where}: axis {axis} of {rank} axes")
        return axis % rank

    def known(self, position: int, name: str) -> Array | None:
        """A parameter: absent, or the same for every text."""
        value = self.values[position] if position < len(self.values) else None
        if value is None:
            return None
        if not isinstance(value, Known):
            raise Unsupported(f"{self.where}: its {name} depends on the text; only a constant {name} is supported")
        return value.array


class Builder:
    """The network under construction: an append-only list of nodes."""

    def __init__(self, run: Run) -> None:
        self.nodes: list[Node] = []
        self.run = run
        self.inexact: list[str] = []
        self.coarsest = "float64"
        self.moved = 0

    def emit(self, layer: Layer, inputs: Sequence[Wire], shape: Sequence[int], origin: str, dtype: str) -> Wire:
        size = self.room(shape, origin)
        if size == 0:
            raise Unsupported(f"{origin}: its result of shape {list(shape)} holds no values")
        if isinstance(layer, Rearrangement):
            self.moved += size
            if self.moved > MOST_MOVES:
                raise Unsupported(f"{origin}: the layers up to here move more than {MOST_MOVES} values for one text")
        self.coarsest = min(self.coarsest, dtype, key=FLOATS.index)
        self.nodes.append(Node(layer, tuple(wire.node for wire in inputs), tuple(int(n) for n in shape), origin))
        return Wire(len(self.nodes) - 1, self.nodes[-1].shape, dtype)

    def room(self, shape: Sequence[int], origin: str) -> int:
        """The number of values of this shape, refused when absurd: to be asked before an array is made."""
        size = math.prod(shape)
        if size > MOST_VALUES:
            raise Unsupported(f"{origin}: {size} values for one text; {MOST_VALUES} is the most")
        return size

    def constant(self, array: Array, origin: str) -> Wire:
        if str(array.dtype) not in FLOATS:
            raise Unsupported(f"{origin}: a constant of type {array.dtype} where numbers flow; only floats do")
        return self.emit(Constant(finite(array, origin)), (), array.shape, origin, str(array.dtype))

    def rearrange(self, wires: Sequence[Wire], index: Indices, origin: str) -> Wire:
        """Read the concatenation of these flattened wires at `index`."""
        if len(wires) == 1:
            (wire,) = wires
            if index.shape == wire.shape and index.size and bool((index.ravel() == np.arange(index.size)).all()):
                return wire
            source = self.nodes[wire.node]
            if isinstance(source.layer, Rearrangement):  # two moves in a row are one
                merged = source.layer.index.ravel()[index]
                inputs = tuple(Wire(i, self.nodes[i].shape, wire.dtype) for i in source.inputs)
                return self.emit(Rearrangement(merged), inputs, index.shape, origin, wire.dtype)
        return self.emit(Rearrangement(index), wires, index.shape, origin, coarsest(wires))

    def fill_outside(self, wire: Wire, index: Indices, fill: float, origin: str) -> Wire:
        """Rearrange one wire, the padding reading a constant."""
        if not (index == OUTSIDE).any():
            return self.rearrange([wire], index, origin)
        pad = self.constant(np.array([fill], dtype=wire.dtype), origin)
        return self.rearrange([wire, pad], np.where(index == OUTSIDE, math.prod(wire.shape), index), origin)

    def broadcast(self, wire: Wire, shape: tuple[int, ...], origin: str) -> Wire:
        self.room(shape, origin)
        return self.rearrange([wire], np.array(np.broadcast_to(numbered(wire.shape), shape)), origin)

    def scale(
        self, wire: Wire, origin: str, *, multiply: Array | float = 1.0, divide: Array | float = 1.0,
        add: Array | float = 0.0, roundings: int = 1,
    ) -> Wire:  # fmt: skip
        parts = [np.asarray(part) for part in (multiply, divide, add)]
        shape = np.broadcast_shapes(wire.shape, *(part.shape for part in parts))
        wire = self.broadcast(wire, shape, origin)
        if not parts[1].all():
            raise BadInput(f"{origin}: division by zero")
        filled = [np.broadcast_to(finite(part, origin), shape) for part in parts]
        return self.emit(Scaling(filled[0], filled[1], filled[2], roundings), [wire], shape, origin, wire.dtype)

    def total(self, wire: Wire, origin: str) -> Wire:
        """Sum over the last axis, which goes."""
        count = wire.shape[-1]
        out = self.emit(Affine(np.ones((count, 1)), np.zeros(1)), [wire], (*wire.shape[:-1], 1), origin, wire.dtype)
        return self.reshape(out, wire.shape[:-1], origin)

    def reshape(self, wire: Wire, shape: Sequence[int], origin: str) -> Wire:
        return self.rearrange([wire], numbered(wire.shape).reshape(shape), origin)


def numbered(shape: Sequence[int]) -> Indices:
    """Every element's own flat index."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


MOST_MOVES = 2**26
"""Indices kept in all rearrangements together: half a gigabyte."""
MOST_WEIGHTS = 2**27
"""Elements of a matrix that is made of a smaller kernel: one gigabyte."""
FLOATS = ("float16", "float32", "float64")


def coarsest(wires: Sequence[Wire]) -> str:
    return min((wire.dtype for wire in wires), key=FLOATS.index)


def finite(array: Array, origin: str) -> Floats:
    """The same numbers as float64: exact for float16 and float32."""
    if not np.isfinite(array).all():
        raise BadInput(f"{origin}: a constant holds NaN or infinity; a network to be verified needs finite weights")
    return np.asarray(array, dtype=np.float64)


# --- moving data ---------------------------------------------------------------------------------------------------


def move(builder: Builder, call: Call) -> list[Value]:
    """Operators that only move elements of their first input: performed on an array of indices."""
    moved = call.value(0)
    parameters = [call.known(position, f"input {position}") for position in range(1, len(call.values))]
    if isinstance(moved, Known):  # reached when a parameter varies, which `known` has refused
        raise Unsupported(f"{call.where}: nothing here depends on the text")
    index = moved.positions if isinstance(moved, Tokens) else numbered(moved.shape)
    results = builder.run(call, [index, *parameters])
    if isinstance(moved, Tokens):
        return [Tokens(result) for result in results]
    return [builder.rearrange([moved], result, call.where) for result in results]


def pad(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    amounts, fill, axes = call.known(1, "pads"), call.known(2, "fill value"), call.known(3, "axes")
    if amounts is None:
        raise BadInput(f"{call.where}: pads are missing")
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
            return [value]
        case Wire() if name in FLOATS:
            if FLOATS.index(name) >= FLOATS.index(value.dtype):
                return [Wire(value.node, value.shape, name)]
            coarser = Wire(value.node, value.shape, name)
            return [builder.scale(coarser, call.where, roundings=2)]  # the identity, rounded
        case _:
            raise Unsupported(f"{call.where}: a cast between whole numbers and floats of something the text decides")


def same(builder: Builder, call: Call) -> list[Value]:
    return [call.value(0)]


def dropout(builder: Builder, call: Call) -> list[Value]:
    training = call.known(2, "training mode")
    if training is not None and bool(training.reshape(-1)[0]):
        raise Unsupported(f"{call.where}: dropout in training mode is random; export the model with .eval()")
    value = call.value(0)
    shape = value.shape if isinstance(value, Wire) else ()
    return [value, Known(np.ones(shape, dtype=np.bool_))]


# --- affine ---------------------------------------------------------------------------------------------------------


def variable(builder: Builder, call: Call, position: int) -> Wire:
    value = call.value(position)
    match value:
        case Wire():
            return value
        case Known():
            return builder.constant(value.array, call.where)
        case Tokens():
            raise Unsupported(
                f"{call.where}: computes with token ids themselves (a mask, say); tokens may only select embeddings"
            )


def matmul(builder: Builder, call: Call) -> list[Value]:
    left, right = call.value(0), call.value(1)
    match left, right:
        case Wire(), Known():
            weight = right.array
            while weight.ndim > 2 and weight.shape[0] == 1 and weight.ndim <= len(left.shape):
                weight = weight[0]
            if weight.ndim != 2:
                raise Unsupported(f"{call.where}: a weight of shape {weight.shape}; only matrices are supported")
            return [affine(builder, call, left, weight, None)]
        case Known(), Wire():
            weight = left.array
            while weight.ndim > 2 and weight.shape[0] == 1 and weight.ndim <= len(right.shape):
                weight = weight[0]
            if weight.ndim != 2 or len(right.shape) < 2:
                raise Unsupported(f"{call.where}: a weight of shape {left.array.shape} on the left; a matrix works")
            swapped = swap_last(builder, right, call.where)
            return [swap_last(builder, affine(builder, call, swapped, weight.T, None), call.where)]
        case _:
            raise Unsupported(
                f"{call.where}: a product of two values that both depend on the text (attention) is not supported; "
                "one of the two must be constant"
            )


def swap_last(builder: Builder, wire: Wire, origin: str) -> Wire:
    return builder.rearrange([wire], np.swapaxes(numbered(wire.shape), -1, -2), origin)


def affine(builder: Builder, call: Call, wire: Wire, weight: Array, bias: Array | None, roundings: int = 1) -> Wire:
    if wire.shape[-1] != weight.shape[0]:
        raise BadInput(f"{call.where}: {wire.shape[-1]} values meet a weight of {weight.shape[0]} rows")
    outputs = weight.shape[1]
    builder.room((*wire.shape[:-1], outputs), call.where)
    added = np.zeros(outputs) if bias is None else np.array(np.broadcast_to(finite(bias, call.where), (outputs,)))
    layer = Affine(np.ascontiguousarray(finite(weight, call.where)), added, roundings)
    return builder.emit(layer, [wire], (*wire.shape[:-1], outputs), call.where, wire.dtype)


def gemm(builder: Builder, call: Call) -> list[Value]:
    """alpha * A' B' + beta * C; A must be the one that depends on the text."""
    left, weight = call.value(0), call.known(1, "second matrix")
    if not isinstance(left, Wire) or weight is None or len(left.shape) != 2 or weight.ndim != 2:
        raise Unsupported(
            f"{call.where}: the first matrix [batch, values] must depend on the text and the second be constant"
        )
    bias = call.known(2, "added term")
    alpha, beta = np.float32(call.attributes.get("alpha", 1.0)), np.float32(call.attributes.get("beta", 1.0))
    if left.dtype == "float64" and not (alpha == 1 and beta == 1):
        builder.inexact.append(f"{call.where}: alpha and beta times double weights")
    if call.attributes.get("transA", 0):
        left = swap_last(builder, left, call.where)
    if bias is not None and bias.ndim == 2 and bias.shape[0] != 1:
        raise Unsupported(f"{call.where}: adds a matrix of shape {bias.shape}; only a row is supported, use Add")
    # Products of two float32 numbers fit a float64 exactly.
    matrix = finite(weight.T if call.attributes.get("transB", 0) else weight, call.where) * float(alpha)
    added = None if bias is None else finite(bias, call.where).reshape(-1) * float(beta)
    plain = alpha == 1 and (beta == 1 or bias is None)
    return [affine(builder, call, left, matrix, added, 1 if plain else 3)]


def convolution(builder: Builder, call: Call) -> list[Value]:
    """Windows laid out side by side, times the kernel as a matrix (block diagonal over groups), channels put back."""
    wire, kernel, bias = call.wire(0), call.known(1, "kernel"), call.known(2, "bias")
    if kernel is None:
        raise BadInput(f"{call.where}: the kernel is missing")
    rank, groups = kernel.ndim - 2, max(1, call.attributes.get("group", 1))
    if rank not in (1, 2) or len(wire.shape) != rank + 2:
        raise Unsupported(f"{call.where}: a convolution over {rank} axes; 1 and 2 are supported")
    filters, channels = kernel.shape[0], kernel.shape[1] * groups
    if wire.shape[1] != channels or filters % groups:
        raise BadInput(f"{call.where}: {wire.shape[1]} channels meet a kernel of {channels}")
    index = window_index(call, wire.shape, kernel.shape[2:])
    out = index.shape[2 : 2 + rank]
    index = np.moveaxis(index, 1, 1 + rank).reshape(wire.shape[0], *out, -1)  # [1, *out, channels * window]
    columns = builder.fill_outside(wire, index, 0.0, call.where)
    window = math.prod(kernel.shape[2:])
    if channels * window * filters > MOST_WEIGHTS:
        raise Unsupported(f"{call.where}: a kernel of {channels * window} by {filters} numbers as a matrix; too large")
    weight = np.zeros((channels * window, filters))
    rows, cols = kernel.shape[1] * window, filters // groups
    flat = finite(kernel, call.where).reshape(filters, rows)
    for group in range(groups):
        block = slice(group * cols, (group + 1) * cols)
        weight[group * rows : (group + 1) * rows, block] = flat[block].T
    result = affine(builder, call, columns, weight, bias)
    return [builder.rearrange([result], np.moveaxis(numbered(result.shape), -1, 1), call.where)]


def window_index(call: Call, shape: tuple[int, ...], kernel: Sequence[int]) -> Indices:
    rank = len(kernel)
    given = call.attributes.get("kernel_shape")
    if given is not None and list(given) != list(kernel):
        raise BadInput(f"{call.where}: kernel_shape {list(given)} against a kernel of {list(kernel)}")
    strides = call.attributes.get("strides") or [1] * rank
    dilations = call.attributes.get("dilations") or [1] * rank
    pads = paddings(
        shape[2:], kernel, strides, dilations, call.attributes.get("pads") or [0] * 2 * rank,
        call.attributes.get("auto_pad", "NOTSET"),
    )  # fmt: skip
    return windows(shape, kernel, strides, dilations, pads, ceil_mode=bool(call.attributes.get("ceil_mode", 0)))


def batch_normalisation(builder: Builder, call: Call) -> list[Value]:
    """(x - mean) * scale / sqrt(variance + epsilon) + bias, per channel. The root is rounded: noted as inexact."""
    wire = call.wire(0)
    if call.attributes.get("training_mode", 0):
        raise Unsupported(f"{call.where}: batch normalisation in training mode mixes texts; export with .eval()")
    parts = [call.known(position, "parameters") for position in range(1, 5)]
    if any(part is None for part in parts):
        raise BadInput(f"{call.where}: parameters are missing")
    channel = (1, -1) + (1,) * (len(wire.shape) - 2)
    scale, bias, mean, variance = (finite(part, call.where).reshape(channel) for part in parts if part is not None)
    root = np.sqrt(variance + float(np.float32(call.attributes.get("epsilon", 1e-5))))
    builder.inexact.append(f"{call.where}: the square root of a variance")
    # Runtimes fold the four constants before use: a few roundings more than one product and one sum.
    centred = builder.scale(wire, call.where, add=-mean, roundings=8)
    return [builder.scale(centred, call.where, multiply=scale, divide=root, add=bias, roundings=8)]


def add(builder: Builder, call: Call) -> list[Value]:
    return [summed(builder, call, (1, 1))]


def subtract(builder: Builder, call: Call) -> list[Value]:
    return [summed(builder, call, (1, -1))]


def summed(builder: Builder, call: Call, signs: Sequence[int]) -> Wire:
    """A signed sum; constants are added by a Scaling."""
    if len(call.values) == 1:
        return call.wire(0)
    if len(call.values) == 2:
        match call.value(0), call.value(1):
            case Wire() as wire, Known(array):
                return shifted(builder, call, wire, signs[1] * finite(array, call.where))
            case Known(array), Wire() as wire if signs[1] == 1:
                return shifted(builder, call, wire, finite(array, call.where))
            case Known(array), Wire() as wire:
                return builder.scale(wire, call.where, multiply=-1.0, add=finite(array, call.where))
            case _:
                pass
    wires = [variable(builder, call, position) for position in range(len(call.values))]
    shape = np.broadcast_shapes(*(wire.shape for wire in wires))
    wires = [builder.broadcast(wire, shape, call.where) for wire in wires]
    return builder.emit(Sum(tuple(signs)), wires, shape, call.where, coarsest(wires))


def shifted(builder: Builder, call: Call, wire: Wire, added: Floats) -> Wire:
    """The wire plus a constant: the bias of the product just before, when it is one per column and that has none."""
    node = builder.nodes[wire.node]
    row = added.shape[-1] if added.ndim and math.prod(added.shape[:-1]) == 1 else 1 if added.size == 1 else 0
    if isinstance(node.layer, Affine) and not node.layer.bias.any() and added.ndim <= len(wire.shape):
        outputs = len(node.layer.bias)
        if row in (1, outputs) and wire.shape == node.shape:
            bias = np.array(np.broadcast_to(added.reshape(-1), (outputs,)))
            layer = Affine(node.layer.weight, bias, node.layer.roundings)
            inputs = [Wire(source, builder.nodes[source].shape, wire.dtype) for source in node.inputs]
            return builder.emit(layer, inputs, node.shape, node.origin, wire.dtype)
    return builder.scale(wire, call.where, add=added)


def sum_all(builder: Builder, call: Call) -> list[Value]:
    return [summed(builder, call, (1,) * len(call.values))]


def multiply(builder: Builder, call: Call) -> list[Value]:
    match call.value(0), call.value(1):
        case (Wire() as wire, Known(array)) | (Known(array), Wire() as wire):
            return [builder.scale(wire, call.where, multiply=array)]
        case _:
            raise Unsupported(f"{call.where}: a product of two values that depend on the text; one must be constant")


def divide(builder: Builder, call: Call) -> list[Value]:
    match call.value(0), call.value(1):
        case Wire() as wire, Known(array):
            return [builder.scale(wire, call.where, divide=array)]
        case _:
            raise Unsupported(f"{call.where}: division by a value that depends on the text; a constant works")


def negate(builder: Builder, call: Call) -> list[Value]:
    return [builder.scale(call.wire(0), call.where, multiply=-1.0)]


# --- nonlinear ------------------------------------------------------------------------------------------------------


def relu(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    return [builder.emit(Rectifier(0.0), [wire], wire.shape, call.where, wire.dtype)]


def leaky_relu(builder: Builder, call: Call) -> list[Value]:
    wire = call.wire(0)
    slope = float(np.float32(call.attributes.get("alpha", 0.01)))
    if not 0.0 <= slope <= 1.0:
        raise Unsupported(f"{call.where}: LeakyRelu with alpha {slope}; alpha from 0 to 1 is supported")
    return [builder.emit(Rectifier(slope), [wire], wire.shape, call.where, wire.dtype)]


def maximum(builder: Builder, call: Call) -> list[Value]:
    return [largest(builder, call, [variable(builder, call, position) for position in range(len(call.values))])]


def minimum(builder: Builder, call: Call) -> list[Value]:
    """min = -max of the negated."""
    wires = [variable(builder, call, position) for position in range(len(call.values))]
    negated = [builder.scale(wire, call.where, multiply=-1.0) for wire in wires]
    return [builder.scale(largest(builder, call, negated), call.where, multiply=-1.0)]


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
    rank = len(wire.shape)
    axes = call.known(1, "axes")
    if call.operator.startswith("Global"):
        chosen, keep = list(range(2, rank)), True
    else:
        listed = call.attributes.get("axes") if axes is None else axes.tolist()
        if not listed and call.attributes.get("noop_with_empty_axes", 0):
            return [wire]
        chosen = sorted({call.axis(int(axis), rank) for axis in listed}) if listed else list(range(rank))
        keep = bool(call.attributes.get("keepdims", 1))
    kept = [axis for axis in range(rank) if axis not in chosen]
    index = numbered(wire.shape).transpose([*kept, *chosen])
    gathered = builder.rearrange([wire], index.reshape(*(wire.shape[axis] for axis in kept), -1), call.where)
    if "Max" in call.operator:
        result = builder.emit(Maximum(), [gathered], gathered.shape[:-1], call.where, wire.dtype)
    else:
        result = builder.total(gathered, call.where)
        if call.operator in ("ReduceMean", "GlobalAveragePool"):
            result = builder.scale(result, call.where, divide=float(gathered.shape[-1]))
    shape = [1 if axis in chosen else wire.shape[axis] for axis in range(rank) if keep or axis not in chosen]
    return [builder.reshape(result, shape, call.where)]


OPERATORS: dict[str, Callable[[Builder, Call], list[Value]]] = {
    "Add": add,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalisation,
    "Cast": cast,
    "Concat": concat,
    "Conv": convolution,
    "Div": divide,
    "Dropout": dropout,
    "Expand": move,
    "Flatten": move,
    "Gather": gather,
    "Gemm": gemm,
    "GlobalAveragePool": reduce,
    "GlobalMaxPool": reduce,
    "Identity": same,
    "LeakyRelu": leaky_relu,
    "MatMul": matmul,
    "Max": maximum,
    "MaxPool": max_pool,
    "Min": minimum,
    "Mul": multiply,
    "Neg": negate,
    "Pad": pad,
    "ReduceMax": reduce,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
    "Relu": relu,
    "Reshape": move,
    "Slice": move,
    "Split": move,
    "Squeeze": move,
    "Sub": subtract,
    "Sum": sum_all,
    "Tile": move,
    "Transpose": move,
    "Unsqueeze": move,
}
