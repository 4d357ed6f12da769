"""Operators element by element that are curves and products (FORMAT.md, section 4.2): Exp to Gelu, Mul, Div, Pow."""

from __future__ import annotations

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Affine, Function
from ..onnx_files import affine_operators
from ..onnx_files.construction import Builder, Call, Known, Value, Wire, numbered
from ..onnx_files.rectifying_operators import rectified

CALLED: dict[str, Function] = {
    "Exp": "exp",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "Erf": "erf",
    "Reciprocal": "reciprocal",
    "Sqrt": "sqrt",
}
ROOT_OF_HALF = float(np.uint32(0x3F3504F3).view(np.float32))
ROOT_OF_TWO_OVER_PI = float(np.uint32(0x3F4C422A).view(np.float32))
CUBE = float(np.uint32(0x3D372713).view(np.float32))
FUSED = "which runtimes fuse with their neighbours"


def curve(builder: Builder, call: Call) -> list[Value]:
    if call.operator == "Sqrt":
        builder.real_only.append(f"{call.where}: a root, {FUSED}")
    return [builder.bend(call.wire(0), CALLED[call.operator], call.where)]


def multiply(builder: Builder, call: Call) -> list[Value]:
    match call.value(0), call.value(1):
        case Wire() as left, Wire() as right:
            return [builder.product(left, right, call.where)]
        case _:
            return affine_operators.multiply(builder, call)


def divide(builder: Builder, call: Call) -> list[Value]:
    """By a variable: times its reciprocal."""
    divisor = call.value(1)
    if not isinstance(divisor, Wire):
        return affine_operators.divide(builder, call)
    inverse = builder.bend(divisor, "reciprocal", call.where)
    match call.value(0):
        case Wire() as wire:
            return [builder.product(wire, inverse, call.where)]
        case Known(array):
            return [builder.scale(inverse, call.where, multiply=array)]
        case _:
            raise Unsupported(f"{call.where}: computes with token ids; they may only select embeddings")


def power(builder: Builder, call: Call) -> list[Value]:
    wire, exponent = call.wire(0), call.known(1, "exponent")
    if exponent is None or exponent.size != 1:
        raise Unsupported(f"{call.where}: its exponent must be a single constant number")
    builder.real_only.append(f"{call.where}: a power, {FUSED}")
    shape = np.broadcast_shapes(wire.shape, exponent.shape)
    wire = builder.broadcast(wire, shape, call.where)
    match float(exponent.reshape(-1)[0]):
        case 1.0:
            return [wire]
        case 2.0:
            return [builder.product(wire, wire, call.where)]
        case 3.0:
            return [builder.product(builder.product(wire, wire, call.where), wire, call.where)]
        case 0.5:
            return [builder.bend(wire, "sqrt", call.where)]
        case -0.5:
            return [builder.bend(builder.bend(wire, "sqrt", call.where), "reciprocal", call.where)]
        case -1.0:
            return [builder.bend(wire, "reciprocal", call.where)]
        case other:
            raise Unsupported(f"{call.where}: the power {other:g}; 2, 3, 0.5, -0.5, -1 and 1 are supported")


def hard_sigmoid(builder: Builder, call: Call) -> list[Value]:
    """alpha x + beta, limited to [0, 1]."""
    alpha = float(np.float32(call.attributes.get("alpha", 0.2)))
    beta = float(np.float32(call.attributes.get("beta", 0.5)))
    wire = rectified(builder, call, builder.scale(call.wire(0), call.where, multiply=alpha, add=beta))
    builder.step()
    wire = rectified(builder, call, builder.scale(wire, call.where, multiply=-1.0, add=1.0))
    return [builder.scale(wire, call.where, multiply=-1.0, add=1.0)]


def gelu(builder: Builder, call: Call) -> list[Value]:
    """x times (1 + erf(x / sqrt(2))) / 2, or (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""
    wire = call.wire(0)
    match call.attributes.get("approximate", "none"):
        case "none":
            inner = builder.scale(wire, call.where, multiply=ROOT_OF_HALF)
            turned = builder.bend(inner, "erf", call.where)
        case "tanh":
            cube = builder.product(builder.product(wire, wire, call.where), wire, call.where)
            size = len(numbered(wire.shape).reshape(-1))
            pairs = numbered((2, size)).T.reshape(*wire.shape, 2)
            both = builder.rearrange([wire, cube], pairs, call.where)
            layer = Affine(np.array([[ROOT_OF_TWO_OVER_PI], [ROOT_OF_TWO_OVER_PI * CUBE]]), np.zeros(1), 3)
            builder.step()
            total = builder.emit(layer, [both], (*wire.shape, 1), call.where, wire.dtype)
            turned = builder.bend(builder.reshape(total, wire.shape, call.where), "tanh", call.where)
        case other:
            raise BadInput(f"{call.where}: approximate {other!r}")
    builder.step()
    return [builder.product(wire, builder.scale(turned, call.where, multiply=0.5, add=0.5), call.where)]
