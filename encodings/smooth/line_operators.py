"""Operators that sum products, or divide by a sum, along lines: Softmax, LayerNormalization, norms, MatMul.

Each step is a layer of its own in certificates (FORMAT.md, section 4.2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported
from ..network import Constant, Indices, Maximum, Product, Rearrangement, Sum
from ..onnx_files import affine_operators
from ..onnx_files.construction import Axes, Builder, Call, Value, Wire, coarsest, numbered, placed
from ..onnx_files.windows import OUTSIDE

FUSED = "which runtimes fuse with their neighbours"


def softmax(builder: Builder, call: Call) -> list[Value]:
    """exp(x - m) / sum exp(x - m), m the greatest of a line."""
    wire = call.wire(0)
    return [softmax_of(builder, call, wire, numbered(wire.shape))]


def softmax_of(builder: Builder, call: Call, wire: Wire, index: Indices) -> Wire:
    """Of all elements of a wire, which are those of a value at `index`; where that is OUTSIDE it is minus infinity."""
    builder.real_only.append(f"{call.where}: a Softmax, {FUSED}")
    lines = Lines.of(index.shape, [call.axis(call.attributes.get("axis", -1), index.ndim)])
    read = index.reshape(-1)[lines.elements]
    first = read.max(axis=1, keepdims=True)
    if (first == OUTSIDE).any():
        raise Unsupported(f"{call.where}: a line of nothing but minus infinity, of which the model makes NaN")
    gathered = builder.rearrange([wire], np.where(read == OUTSIDE, first, read), call.where)
    greatest = builder.emit(Maximum(), [gathered], (lines.count,), call.where, wire.dtype)
    builder.step()
    shown, line_of = index != OUTSIDE, np.zeros(math.prod(wire.shape), dtype=np.int64)
    line_of[index[shown]] = lines.line_of[shown]
    line_of = line_of.reshape(wire.shape)
    wires = [wire, builder.rearrange([greatest], line_of, call.where)]
    moved = builder.emit(Sum((1, -1)), wires, wire.shape, call.where, wire.dtype)
    exponential = builder.bend(moved, "exp", call.where)
    builder.step()
    total = builder.total(builder.fill_outside(exponential, read, 0.0, call.where), call.where)
    inverse = builder.bend(total, "reciprocal", call.where)
    builder.step()
    return builder.product(exponential, builder.rearrange([inverse], line_of, call.where), call.where)


def layer_normalisation(builder: Builder, call: Call) -> list[Value]:
    """scale (x - m) / sqrt(mean of (x - m)^2 + epsilon) + B, m the mean of a line."""
    wire, scale, bias = call.wire(0), call.known(1, "scale"), call.known(2, "bias")
    if call.attributes.get("stash_type", 1) != 1:
        raise Unsupported(f"{call.where}: stash_type {call.attributes['stash_type']}; 1 is supported")
    if scale is None:
        raise BadInput(f"{call.where}: its scale is missing")
    if call.outputs > 1:
        raise Unsupported(f"{call.where}: its mean and its deviation are not read; the first output only")
    builder.real_only.append(f"{call.where}: a normalisation, {FUSED}")
    axis = call.axis(call.attributes.get("axis", -1), len(wire.shape))
    normal = wire.shape[axis:]
    for name, part in (("scale", scale), ("bias", bias)):
        if part is not None and np.broadcast_shapes(part.shape, normal) != normal:
            raise BadInput(f"{call.where}: a {name} of shape {list(part.shape)} for {list(normal)}")
    lines = Lines.of(wire.shape, list(range(axis, len(wire.shape))))
    size = float(math.prod(normal))
    total = builder.total(builder.rearrange([wire], lines.elements, call.where), call.where)
    mean = builder.scale(total, call.where, divide=size)
    builder.step()
    apart = lines.less(builder, call, wire, mean)
    builder.step()
    square = builder.product(apart, apart, call.where)
    total = builder.total(builder.rearrange([square], lines.elements, call.where), call.where)
    epsilon = float(np.float32(call.attributes.get("epsilon", 1e-5)))
    spread = builder.scale(total, call.where, divide=size, add=epsilon)
    inverse = builder.bend(builder.bend(spread, "sqrt", call.where), "reciprocal", call.where)
    builder.step()
    normed = builder.product(apart, lines.spread(builder, call, inverse), call.where)
    return [builder.scale(normed, call.where, multiply=scale, add=0.0 if bias is None else bias)]


def norm(builder: Builder, call: Call) -> list[Value]:
    """ReduceSumSquare, and ReduceL2, its root."""
    wire = call.wire(0)
    axes = Axes.of(call, wire)
    if axes is None:
        raise Unsupported(f"{call.where}: no axes, with noop_with_empty_axes: runtimes disagree about it")
    square = builder.product(wire, wire, call.where)
    total = builder.total(builder.rearrange([square], axes.gathered(wire.shape), call.where), call.where)
    if call.operator == "ReduceL2":
        builder.real_only.append(f"{call.where}: a root, {FUSED}")
        total = builder.bend(total, "sqrt", call.where)
        builder.step()
    return [builder.reshape(total, axes.shape, call.where)]


def matmul(builder: Builder, call: Call) -> list[Value]:
    left, right = call.value(0), call.value(1)
    if not (isinstance(left, Wire) and isinstance(right, Wire)):
        return affine_operators.matmul(builder, call)
    if min(len(left.shape), len(right.shape)) < 2 or left.shape[-1] != right.shape[-2]:
        raise Unsupported(f"{call.where}: shapes {list(left.shape)} and {list(right.shape)}; matrices that fit work")
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, left.shape[-2], right.shape[-1], left.shape[-1])
    builder.room(shape, call.where)
    rows = numbered(left.shape)[..., :, None, :]
    columns = np.swapaxes(numbered(right.shape), -1, -2)[..., None, :, :]
    read = [(wire, np.array(np.broadcast_to(index, shape))) for wire, index in ((left, rows), (right, columns))]
    hidden = np.zeros(shape, dtype=np.bool_)
    for wire, index in read:
        hidden |= zeros_in(builder, wire).reshape(-1)[index]
    if not hidden.any():
        factors = [builder.rearrange([wire], index, call.where) for wire, index in read]
        return [builder.total(builder.emit(Product(), factors, shape, call.where, coarsest(factors)), call.where)]
    builder.real_only.append(f"{call.where}: products with the constant 0, which are left out")
    places, pairs = np.flatnonzero(~hidden), left
    if len(places):
        factors = [builder.rearrange([wire], index.reshape(-1)[places], call.where) for wire, index in read]
        pairs = builder.emit(Product(), factors, places.shape, call.where, coarsest(factors))
    return [builder.total(builder.fill_outside(pairs, placed(shape, places), 0.0, call.where), call.where)]


def zeros_in(builder: Builder, wire: Wire) -> NDArray[np.bool_]:
    """Where it is the constant 0."""
    node = builder.nodes[wire.node]
    if isinstance(node.layer, Constant):
        return np.broadcast_to(node.layer.value == 0, node.shape)
    if isinstance(node.layer, Rearrangement):
        wires = [Wire(source, builder.nodes[source].shape, wire.dtype) for source in node.inputs]
        return np.asarray(np.concatenate([zeros_in(builder, one).reshape(-1) for one in wires])[node.layer.index])
    return np.zeros(node.shape, dtype=np.bool_)


class Lines:
    """The lines of a value along some of its axes, in the order of the others; a value with one element a line."""

    def __init__(self, elements: Indices, line_of: Indices) -> None:
        self.elements = elements
        """[lines, length]"""
        self.line_of = line_of
        """Of the shape of the value."""

    @classmethod
    def of(cls, shape: tuple[int, ...], axes: list[int]) -> Lines:
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        sizes = [shape[axis] for axis in kept]
        elements = numbered(shape).transpose([*kept, *axes]).reshape(math.prod(sizes), -1)
        ones = [1 if axis in axes else shape[axis] for axis in range(len(shape))]
        return cls(elements, np.array(np.broadcast_to(numbered(sizes).reshape(ones), shape)))

    @property
    def count(self) -> int:
        return len(self.elements)

    def spread(self, builder: Builder, call: Call, wire: Wire) -> Wire:
        """To every element that of its line."""
        return builder.rearrange([wire], self.line_of, call.where)

    def less(self, builder: Builder, call: Call, wire: Wire, other: Wire) -> Wire:
        """Every element less that of its line."""
        wires = [wire, self.spread(builder, call, other)]
        return builder.emit(Sum((1, -1)), wires, wire.shape, call.where, wire.dtype)
