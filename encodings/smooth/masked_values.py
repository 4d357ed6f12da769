"""Minus infinity in what words say: masks of attention and before a maximum, exactly (FORMAT.md, section 4.2).

A place of a value that is minus infinity has no element in the network: every operator here works on the other places.
What else meets it is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported
from ..network import Indices, Maximum
from ..onnx_files import affine_operators
from ..onnx_files.construction import (
    Array,
    Axes,
    Builder,
    Call,
    Known,
    Masked,
    Value,
    Wire,
    coarsest,
    numbered,
    placed,
    window_index,
)
from ..onnx_files.rectifying_operators import relu
from ..onnx_files.windows import OUTSIDE
from .bent_operators import curve
from .line_operators import softmax_of

Places = NDArray[np.bool_]
Rule = Callable[[Builder, Call], list[Value]]
ELEMENTWISE: dict[str, Rule] = {
    "Add": affine_operators.add,
    "Div": affine_operators.divide,
    "Exp": curve,
    "Mul": affine_operators.multiply,
    "Relu": relu,
    "Sub": affine_operators.subtract,
    "Sum": affine_operators.sum_all,
}
"""As they are where nothing is minus infinity."""


def is_masked(call: Call) -> bool:
    """Whether it reads minus infinity."""
    return any(hidden_in(value) is not None for value in call.values)


def hidden_in(value: Value | None) -> Places | None:
    """Where it is minus infinity; None where it is nowhere."""
    match value:
        case Masked(_, index):
            return np.asarray(index < 0)
        case Known(array) if np.issubdtype(array.dtype, np.floating):
            hidden = np.isneginf(array)
            return hidden if hidden.any() else None
        case _:
            return None


def masked(builder: Builder, call: Call) -> list[Value]:
    """The outputs of an operator that reads minus infinity."""
    rule = RULES.get(call.operator)
    if rule is None:
        raise refused(call, f"{call.operator} of it")
    return rule(builder, call)


def refused(call: Call, what: str) -> Unsupported:
    return Unsupported(f"{call.where}: minus infinity is in what it reads, and {what} is not read")


def given(builder: Builder, wire: Wire, index: Indices, origin: str) -> Value:
    """The elements of a wire in these places, and minus infinity where the index is negative."""
    if (index < 0).any():
        return Masked(wire, np.where(index < 0, OUTSIDE, index))
    return builder.rearrange([wire], index, origin)


def filled(builder: Builder, value: Value, origin: str) -> Value:
    """With 0 in the place of minus infinity."""
    return builder.fill_outside(value.wire, value.index, 0.0, origin) if isinstance(value, Masked) else value


# --- element by element ---------------------------------------------------------------------------------------------


def around(builder: Builder, call: Call) -> list[Value]:
    """The operator in the places that are finite, and minus infinity in the others."""
    values = [value for value in call.values if value is not None]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    builder.room(shape, call.where)
    hidden = np.zeros(shape, dtype=np.bool_)
    for value in values:
        own = hidden_in(value)
        hidden |= False if own is None else np.broadcast_to(own, shape)
    places = np.flatnonzero(~hidden)
    index, wire = placed(shape, places), next(each for each in map(source, values) if each is not None)
    if len(places):
        chosen = replace(call, values=tuple(at(builder, value, shape, places, call.where) for value in values))
        (found,) = ELEMENTWISE[call.operator](builder, chosen)
        if not isinstance(found, Wire):
            raise refused(call, "what comes of it")
        wire = found
    return [Masked(wire, index)]


def source(value: Value) -> Wire | None:
    return value if isinstance(value, Wire) else value.wire if isinstance(value, Masked) else None


def at(builder: Builder, value: Value, shape: tuple[int, ...], places: Indices, origin: str) -> Value:
    """The elements of a value, spread to this shape, in some places."""

    def spread(array: Array) -> Array:
        return np.asarray(np.broadcast_to(array, shape).reshape(-1)[places])

    match value:
        case Known(array):
            return Known(spread(array))
        case Masked(wire, index):
            return builder.rearrange([wire], spread(index), origin)
        case Wire():
            return builder.rearrange([value], spread(numbered(value.shape)), origin)
        case _:
            raise Unsupported(f"{origin}: computes with token ids; they may only select embeddings")


def added(builder: Builder, call: Call) -> list[Value]:
    """Minus infinity where a term is."""
    if call.operator == "Sub" and hidden_in(call.value(1)) is not None:
        raise refused(call, "what takes it off")
    if len(call.values) == 1:
        return [call.value(0)]
    builder.real_only.append(f"{call.where}: a sum with minus infinity, which bounds what it leaves out no more")
    return around(builder, call)


def scaled(builder: Builder, call: Call) -> list[Value]:
    """By numbers above 0, where it is minus infinity."""
    value, factor = call.value(0), call.value(1)
    if call.operator == "Mul" and isinstance(value, Known):
        value, factor = factor, value
    hidden = hidden_in(value)
    if not isinstance(factor, Known) or hidden is None or not isinstance(value, Masked):
        raise refused(call, "such a product, or quotient,")
    shape = np.broadcast_shapes(hidden.shape, factor.array.shape)
    numbers = np.broadcast_to(factor.array, shape)
    if np.isneginf(numbers).any() or not (numbers[np.broadcast_to(hidden, shape)] > 0).all():
        raise refused(call, "its product with what is not above 0")
    builder.real_only.append(f"{call.where}: minus infinity, scaled")
    return around(builder, call)


def zeroed(builder: Builder, call: Call) -> list[Value]:
    """Relu and Exp are 0 of minus infinity."""
    if call.operator == "Exp":
        builder.real_only.append(f"{call.where}: exp of minus infinity")
    (found,) = around(builder, call)
    return [filled(builder, found, call.where)]


# --- moves ----------------------------------------------------------------------------------------------------------


def moved(builder: Builder, call: Call) -> list[Value]:
    value = call.value(0)
    if not isinstance(value, Masked):
        raise refused(call, "a choice of such constants by words")
    parameters = [call.known(position, f"input {position}") for position in range(1, len(call.values))]
    results = builder.run(call, [value.index, *parameters])
    return [given(builder, value.wire, result, call.where) for result in results]


def same(builder: Builder, call: Call) -> list[Value]:
    if any(hidden_in(value) is not None for value in call.values[1:]):
        raise refused(call, "a ratio of it")
    return [call.value(0)]


def cast(builder: Builder, call: Call) -> list[Value]:
    value = call.value(0)
    own = {"float32": 1, "float16": 10, "float64": 11}
    if not isinstance(value, Masked) or own[value.wire.dtype] != call.attributes["to"]:
        raise refused(call, "a cast to another type")
    return [value]


def pieces(builder: Builder, values: Sequence[Value], origin: str) -> tuple[list[Wire], list[Indices]]:
    """The wires that values are made of, and what each is of these laid end to end."""
    wires: list[Wire] = []
    found: list[Indices] = []
    start = 0
    for value in values:
        match value:
            case Masked(wire, index):
                own = index
            case Known(array):
                wire = builder.constant(np.where(np.isneginf(array), 0, array).astype(array.dtype), origin)
                own = np.where(np.isneginf(array), OUTSIDE, numbered(array.shape))
            case Wire():
                wire, own = value, numbered(value.shape)
            case _:
                raise Unsupported(f"{origin}: computes with token ids; they may only select embeddings")
        wires.append(wire)
        found.append(np.where(own < 0, OUTSIDE, own + start))
        start += int(np.prod(wire.shape))
    return wires, found


def joined(builder: Builder, wires: Sequence[Wire], index: Indices, origin: str) -> Value:
    """Of wires laid end to end."""
    places = np.flatnonzero(index >= 0)
    if not len(places):
        return Masked(wires[0], index)
    flat = builder.rearrange(wires, index.reshape(-1)[places], origin)
    return given(builder, flat, placed(index.shape, places), origin)


def where(builder: Builder, call: Call) -> list[Value]:
    chosen = call.known(0, "condition")
    if chosen is None:
        raise BadInput(f"{call.where}: its condition is missing")
    wires, (yes, no) = pieces(builder, [call.value(1), call.value(2)], call.where)
    shape = np.broadcast_shapes(*(part.shape for part in (chosen, yes, no)))
    builder.room(shape, call.where)
    return [joined(builder, wires, np.broadcast_to(np.where(chosen, yes, no), shape), call.where)]


def concat(builder: Builder, call: Call) -> list[Value]:
    values = [call.value(position) for position in range(len(call.values)) if not call.is_empty(position)]
    wires, parts = pieces(builder, values, call.where)
    return [joined(builder, wires, np.concatenate(parts, axis=call.attributes["axis"]), call.where)]


def pad(builder: Builder, call: Call) -> list[Value]:
    amounts, filler, axes = call.known(1, "pads"), call.known(2, "fill value"), call.known(3, "axes")
    if amounts is None or (amounts < 0).any() or call.attributes.get("mode", "constant") != "constant":
        raise refused(call, "such padding")
    fill = np.zeros(1, dtype=np.float32) if filler is None or filler.size == 0 else filler.reshape(-1)[:1]
    wires, (own, more) = pieces(builder, [call.value(0), Known(fill)], call.where)
    (index,) = builder.run(call, [own, amounts, np.array(more[0], dtype=np.int64), axes])
    return [joined(builder, wires, index, call.where)]


# --- lines ----------------------------------------------------------------------------------------------------------


def greatest(builder: Builder, call: Call) -> list[Value]:
    """ReduceMax, GlobalMaxPool and MaxPool."""
    value = call.value(0)
    if not isinstance(value, Masked):
        raise refused(call, "a constant")
    if call.operator == "MaxPool":
        if call.outputs > 1:
            raise Unsupported(f"{call.where}: the index output of MaxPool is not supported")
        windows = window_index(call, value.shape, call.attributes["kernel_shape"])
        shape = windows.shape[: len(value.shape)]
        windows = windows.reshape(*shape, -1)
        if (windows == OUTSIDE).all(axis=-1).any():
            raise refused(call, "a window that lies in the padding")
    else:
        axes = Axes.of(call, Wire(value.wire.node, value.shape, value.wire.dtype))
        if axes is None:
            return [value]
        windows, shape = axes.gathered(value.shape), axes.shape
    index = np.where(windows == OUTSIDE, OUTSIDE, value.index.reshape(-1)[windows])
    return [largest(builder, call, [value.wire], index.reshape(-1, index.shape[-1]), shape)]


def largest(builder: Builder, call: Call, wires: Sequence[Wire], windows: Indices, shape: tuple[int, ...]) -> Value:
    """Of [windows, width], without what is OUTSIDE, in whose place an element of the window is repeated."""
    first = windows.max(axis=1, keepdims=True)
    places = np.flatnonzero(first >= 0)
    if len(places) < len(windows) and "Pool" in call.operator:
        raise refused(call, "a window of nothing else, of which runtimes make their lowest number,")
    if not len(places):
        return Masked(wires[0], np.full(shape, OUTSIDE, dtype=np.int64))
    shown = np.where(windows < 0, first, windows)[places]
    gathered = builder.rearrange(wires, shown, call.where)
    found = builder.emit(Maximum(), [gathered], (len(places),), call.where, coarsest(wires))
    return given(builder, found, placed(shape, places), call.where)


def maximum(builder: Builder, call: Call) -> list[Value]:
    values = [call.value(position) for position in range(len(call.values))]
    limits = [value for value in values if isinstance(value, Known)]
    if len(values) == 2 and limits:
        (limit,) = limits
        (value,) = [each for each in values if each is not limit]
        shape = np.broadcast_shapes(value.shape, limit.shape)
        if limit.array.any() or not isinstance(value, Masked):
            raise refused(call, "a limit of it")
        spread = Masked(value.wire, np.array(np.broadcast_to(value.index, shape)))
        return zeroed(builder, replace(call, operator="Relu", values=(spread,)))
    if len(values) == 1:
        return values
    shape = np.broadcast_shapes(*(value.shape for value in values))
    builder.room((len(values), *shape), call.where)
    wires, parts = pieces(builder, values, call.where)
    windows = np.stack([np.broadcast_to(part, shape).reshape(-1) for part in parts], axis=1)
    return [largest(builder, call, wires, windows, shape)]


def softmax(builder: Builder, call: Call) -> list[Value]:
    """Lines without it, and 0 in its place. It is no head."""
    value = call.value(0)
    if not isinstance(value, Masked) or builder.number == builder.head:
        raise refused(call, "a Softmax at the end")
    places = np.flatnonzero(value.index >= 0)
    index = placed(value.shape, places)
    flat = builder.rearrange([value.wire], value.index.reshape(-1)[places], call.where) if len(places) else value.wire
    found = softmax_of(builder, call, flat, index)
    return [builder.fill_outside(found, index, 0.0, call.where)]


MOVES = (
    "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **dict.fromkeys(MOVES, moved),
    **dict.fromkeys(("Identity", "Dropout"), same),
    **dict.fromkeys(("Add", "Sub", "Sum"), added),
    **dict.fromkeys(("Mul", "Div"), scaled),
    **dict.fromkeys(("Exp", "Relu"), zeroed),
    **dict.fromkeys(("ReduceMax", "GlobalMaxPool", "MaxPool"), greatest),
    "Cast": cast,
    "Concat": concat,
    "Max": maximum,
    "Pad": pad,
    "Softmax": softmax,
    "Where": where,
}
