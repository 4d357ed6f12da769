"""Operators that are affine in what depends on the text: products with constants, convolutions, sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Affine, Floats, Sum
from .construction import (
    Array,
    Builder,
    Call,
    Known,
    Value,
    Wire,
    coarsest,
    finite,
    numbered,
    variable,
    window_index,
)

MOST_WEIGHTS = 2**27
"""Elements of a matrix that is made of a smaller kernel: one gigabyte."""


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


def affine(
    builder: Builder, call: Call, wire: Wire, weight: Array, bias: Array | None, roundings: int = 1, groups: int = 1
) -> Wire:
    if wire.shape[-1] != weight.shape[0]:
        raise BadInput(f"{call.where}: {wire.shape[-1]} values meet a weight of {weight.shape[0]} rows")
    outputs = weight.shape[1]
    builder.room((*wire.shape[:-1], outputs), call.where)
    added = np.zeros(outputs) if bias is None else np.array(np.broadcast_to(finite(bias, call.where), (outputs,)))
    layer = Affine(np.ascontiguousarray(finite(weight, call.where)), added, roundings, groups=groups)
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
    if alpha != 1 or (bias is not None and beta != 1):
        builder.real_only.append(f"{call.where}: its alpha and beta: before or after the sum")
    if call.attributes.get("transA", 0):
        left = swap_last(builder, left, call.where)
    if bias is not None and bias.ndim == 2 and bias.shape[0] != 1:
        raise Unsupported(f"{call.where}: adds a matrix of shape {bias.shape}; only a row is supported, use Add")
    matrix = finite(weight.T if call.attributes.get("transB", 0) else weight, call.where)
    added = None if bias is None or beta == 0 else finite(bias, call.where).reshape(-1)
    if alpha == 1 and (beta == 1 or added is None):
        return [affine(builder, call, left, matrix, added)]
    if left.dtype != "float64":  # products of two float32 numbers fit a float64 exactly
        return [affine(builder, call, left, matrix * float(alpha), None if added is None else added * float(beta), 3)]
    product = affine(builder, call, left, matrix, None)
    if added is None:
        return [builder.scale(product, call.where, multiply=float(alpha), roundings=3)]
    total = builder.scale(product, call.where, multiply=float(alpha), divide=float(beta), add=added, roundings=3)
    return [builder.scale(total, call.where, multiply=float(beta), roundings=3)]


def convolution(builder: Builder, call: Call) -> list[Value]:
    """Windows laid out side by side, times the kernel as a matrix (block diagonal over groups), channels put back."""
    wire, kernel, bias = call.wire(0), call.known(1, "kernel"), call.known(2, "bias")
    if kernel is None:
        raise BadInput(f"{call.where}: the kernel is missing")
    rank, groups = kernel.ndim - 2, call.attributes.get("group", 1)
    if rank not in (1, 2) or len(wire.shape) != rank + 2:
        raise Unsupported(f"{call.where}: a convolution over {rank} axes; 1 and 2 are supported")
    filters, channels = kernel.shape[0], kernel.shape[1] * groups
    if wire.shape[1] != channels or groups < 1 or filters % groups:
        raise BadInput(
            f"{call.where}: {wire.shape[1]} channels meet a kernel of {channels} ({filters} filters, {groups} groups)"
        )
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
    result = affine(builder, call, columns, weight, bias, groups=groups)
    return [builder.rearrange([result], np.moveaxis(numbered(result.shape), -1, 1), call.where)]


def batch_normalisation(builder: Builder, call: Call) -> list[Value]:
    """(x - mean) * r * scale + bias, per channel, with r = floor(2**40 / sqrt(variance + epsilon)) / 2**40.

    Certificates define the network over the reals so (FORMAT.md, section 4.2); r is a float64 number.
    """
    wire = call.wire(0)
    if call.attributes.get("training_mode", 0):
        raise Unsupported(f"{call.where}: batch normalisation in training mode mixes texts; export with .eval()")
    parts = [call.known(position, "parameters") for position in range(1, 5)]
    if any(part is None for part in parts):
        raise BadInput(f"{call.where}: parameters are missing")
    channel = (1, -1) + (1,) * (len(wire.shape) - 2)
    scale, bias, mean, variance = (finite(part, call.where).reshape(channel) for part in parts if part is not None)
    epsilon = Fraction(float(np.float32(call.attributes.get("epsilon", 1e-5))))
    roots = [inverse_root(float(number), epsilon, call.where) for number in variance.ravel()]
    builder.real_only.append(f"{call.where}: its constants, which runtimes fold")
    # Runtimes fold the four constants before use: a few roundings more than one product and one sum. Their roots are
    # those of their float type, up to 2**-40 from ours, which counts in float64.
    coarse = int(2.0 ** (np.finfo(wire.dtype).nmant + 1 - 40) / min(roots))
    centred = builder.scale(wire, call.where, add=-mean, roundings=8)
    normal = builder.scale(centred, call.where, multiply=np.array(roots).reshape(channel), roundings=8 + coarse)
    return [builder.scale(normal, call.where, multiply=scale, add=bias, roundings=8)]


def inverse_root(variance: float, epsilon: Fraction, origin: str) -> float:
    """1 / sqrt(variance + epsilon), rounded down to a multiple of 2**-40."""
    spread = Fraction(variance) + epsilon
    if spread <= 0:
        raise BadInput(f"{origin}: a variance of {variance:g}; with epsilon it must be above 0")
    found = math.isqrt((spread.denominator << 80) // spread.numerator)
    if found >= 2**53:
        raise Unsupported(f"{origin}: a variance of {variance:g}; with epsilon 1 / its root must be below 2**13")
    return found / 2**40


def add(builder: Builder, call: Call) -> list[Value]:
    return [summed(builder, call, (1, 1))]


def subtract(builder: Builder, call: Call) -> list[Value]:
    return [summed(builder, call, (1, -1))]


def summed(builder: Builder, call: Call, signs: Sequence[int]) -> Wire:
    """A sum or difference; constants are added by a Scaling."""
    match call.value(0), call.value(1):
        case Wire() as wire, Known(array):
            return shifted(builder, call, wire, signs[1] * finite(array, call.where))
        case Known(array), Wire() as wire if signs[1] == 1:
            return shifted(builder, call, wire, finite(array, call.where))
        case Known(array), Wire() as wire:
            return builder.scale(wire, call.where, multiply=-1.0, add=finite(array, call.where))
        case _:
            return joined(builder, call, signs)


def joined(builder: Builder, call: Call, signs: Sequence[int]) -> Wire:
    """A signed sum."""
    if len(call.values) == 1:
        return call.wire(0)
    wires = [variable(builder, call, position) for position in range(len(call.values))]
    shape = np.broadcast_shapes(*(wire.shape for wire in wires))
    wires = [builder.broadcast(wire, shape, call.where) for wire in wires]
    return builder.emit(Sum(tuple(signs)), wires, shape, call.where, coarsest(wires))


def shifted(builder: Builder, call: Call, wire: Wire, added: Floats) -> Wire:
    """The wire plus a constant: the bias of the product just before, when it is one per column and that has none.

    Two ONNX nodes are then one layer, which says so (`Affine.product`).
    """
    node = builder.nodes[wire.node]
    row = added.shape[-1] if added.ndim and math.prod(added.shape[:-1]) == 1 else 1 if added.size == 1 else 0
    plain = isinstance(node.layer, Affine) and node.layer.product is None and not node.layer.bias.any()
    if plain and isinstance(node.layer, Affine) and node.number is not None and added.ndim <= len(wire.shape):
        outputs = len(node.layer.bias)
        if row in (1, outputs) and wire.shape == node.shape:
            bias = np.array(np.broadcast_to(added.reshape(-1), (outputs,)))
            layer = Affine(node.layer.weight, bias, node.layer.roundings, node.number, node.layer.groups)
            inputs = [Wire(source, builder.nodes[source].shape, wire.dtype) for source in node.inputs]
            return builder.emit(layer, inputs, node.shape, node.origin, wire.dtype)
    return builder.scale(wire, call.where, add=added)


def sum_all(builder: Builder, call: Call) -> list[Value]:
    """Constants are terms like the others (FORMAT.md, section 4.2)."""
    return [joined(builder, call, (1,) * len(call.values))]


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
