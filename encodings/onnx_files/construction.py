"""The network under construction: the values met while an ONNX graph is read, and the list of nodes that grows.

Reading runs the graph for a batch of one sentence. A value met on the way is one of three things: `Known` (the same
for every text: weights, shapes, indices), `Tokens` (the input ids, perhaps rearranged), or `Wire` (the output of a
node of the network under construction).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, Unsupported
from ..network import (
    Account,
    Affine,
    Constant,
    Curve,
    Embedding,
    Floats,
    Function,
    Indices,
    Layer,
    Maximum,
    Node,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from .windows import MOST_VALUES, OUTSIDE, paddings, windows

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Known:
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass(frozen=True, eq=False)
class Tokens:
    positions: Indices
    dtype: str = "int64"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.positions.shape


@dataclass(frozen=True)
class Wire:
    node: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Masked:
    """Elements of a wire by their places, and minus infinity, which is no element, where `index` is OUTSIDE."""

    wire: Wire
    index: Indices

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape


Value = Known | Tokens | Wire | Masked
Run = Callable[["Call", Sequence[Array | None]], list[Array]]


@dataclass(frozen=True)
class Call:
    """One ONNX node: its operator, attributes, and the values it reads (None where an optional input is absent)."""

    operator: str
    where: str
    attributes: dict[str, Any]
    values: tuple[Value | None, ...]
    outputs: int
    """As many as the node has, named or not."""
    opset: int

    def value(self, position: int) -> Value:
        value = self.values[position] if position < len(self.values) else None
        if value is None:
            raise BadInput(f"{self.where}: input {position} is missing")
        return value

    def wire(self, position: int) -> Wire:
        value = self.value(position)
        if isinstance(value, Masked):
            raise Unsupported(f"{self.where}: {MINUS_INFINITY}")
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


Shared = dict[tuple[object, ...], tuple[tuple[Array | None, ...], Affine]]
"""By name: the arrays that a layer was made of, and it."""


class Builder:
    """The network under construction: an append-only list of nodes."""

    def __init__(
        self, run: Run, size: int, choices: Sequence[Sequence[int]] | None = None, layers: Shared | None = None
    ) -> None:
        self.nodes: list[Node] = []
        self.run = run
        self.size = size  # of the ONNX graph, in nodes
        self.choices = choices
        self.layers = {} if layers is None else layers
        self.settled: list[tuple[Call, Array]] = []  # what was made of tokens, and what came of it
        self.inexact: list[str] = []
        self.foreign: list[str] = []  # to certificates
        self.real_only: list[str] = []
        self.types: set[str] = set()  # floating ones of the file's tensors
        self.number: int | None = None  # of the ONNX node being translated
        self.head: int | None = None  # of the node whose function is left out at the end
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
        if rounds(layer):
            self.coarsest = min(self.coarsest, dtype, key=FLOATS.index)
        self.nodes.append(
            Node(layer, tuple(wire.node for wire in inputs), tuple(int(n) for n in shape), origin, self.number)
        )
        return Wire(len(self.nodes) - 1, self.nodes[-1].shape, dtype)

    def step(self) -> None:
        """What comes now is another layer of the same ONNX node: nothing of it is composed with what there is."""
        self.number = None if self.number is None else self.number + self.size

    def shared(self, name: tuple[object, ...], made_of: tuple[Array | None, ...], make: Callable[[], Affine]) -> Affine:
        """A layer that is made of these arrays alone, once for the networks of all lengths."""
        held = self.layers.get(name)
        if held is None or any(own is not one for own, one in zip(held[0], made_of, strict=True)):
            held = self.layers[name] = made_of, make()
        return held[1]

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
            if isinstance(source.layer, Rearrangement) and not self.finishes(source):  # two moves in a row are one
                merged = source.layer.index.ravel()[index]
                inputs = [Wire(i, self.nodes[i].shape, wire.dtype) for i in source.inputs]
                inputs, merged = self.only_read(inputs, merged)
                if len(inputs) == 1:
                    return self.rearrange(inputs, merged, origin)
                return self.emit(Rearrangement(merged), inputs, index.shape, origin, wire.dtype)
        return self.emit(Rearrangement(index), wires, index.shape, origin, coarsest(wires))

    def only_read(self, wires: Sequence[Wire], index: Indices) -> tuple[list[Wire], Indices]:
        """Those that are read at the index, and it among these alone: of many states of a recurrence, one."""
        if len(wires) < MANY or not index.size:
            return list(wires), index
        starts = np.cumsum([0, *(math.prod(wire.shape) for wire in wires)])
        place = np.searchsorted(starts, index, side="right") - 1
        read, which = np.unique(place, return_inverse=True)
        if len(read) == len(wires) or all(isinstance(self.nodes[wires[one].node].layer, Constant) for one in read):
            return list(wires), index
        sizes = np.diff(starts)[read]
        moved = np.cumsum(sizes) - sizes - starts[read]
        return [wires[one] for one in read.tolist()], index + moved[which.reshape(index.shape)]

    def finishes(self, node: Node) -> bool:
        """Whether it moves what another ONNX node has just computed to where that has it: the order of its elements."""
        return node.number != self.number and any(
            self.nodes[source].number == node.number and isinstance(self.nodes[source].layer, Affine | Scaling | Sum)
            for source in node.inputs
        )

    def fill_outside(self, wire: Wire, index: Indices, fill: float, origin: str) -> Wire:
        """Rearrange one wire, the padding reading a constant."""
        if not (index == OUTSIDE).any():
            return self.rearrange([wire], index, origin)
        pad = self.constant(np.array([fill], dtype=wire.dtype), origin)
        return self.rearrange([wire, pad], np.where(index == OUTSIDE, math.prod(wire.shape), index), origin)

    def broadcast(self, wire: Wire, shape: tuple[int, ...], origin: str) -> Wire:
        if wire.shape == shape:
            return wire
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

    def account(self) -> Account:
        """What was noted; a certificate speaks of models with one floating type, and at level float32 of float32."""
        types = ", ".join(sorted(self.types))
        foreign = [*self.foreign, *([f"tensors of types {types}"] if len(self.types) > 1 else [])]
        real_only = [*self.real_only, *([f"tensors of type {types}"] if types != "float32" else [])]
        return Account(self.size, tuple(dict.fromkeys(foreign)), tuple(dict.fromkeys(real_only)))

    def total(self, wire: Wire, origin: str) -> Wire:
        """Sum over the last axis, which goes."""
        count = wire.shape[-1]
        out = self.emit(Affine(np.ones((count, 1)), np.zeros(1)), [wire], (*wire.shape[:-1], 1), origin, wire.dtype)
        return self.reshape(out, wire.shape[:-1], origin)

    def product(self, left: Wire, right: Wire, origin: str) -> Wire:
        """Broadcast."""
        shape = np.broadcast_shapes(left.shape, right.shape)
        self.room(shape, origin)
        wires = [self.broadcast(wire, shape, origin) for wire in (left, right)]
        return self.emit(Product(), wires, shape, origin, coarsest(wires))

    def bend(self, wire: Wire, function: Function, origin: str) -> Wire:
        return self.emit(Curve(function), [wire], wire.shape, origin, wire.dtype)

    def reshape(self, wire: Wire, shape: Sequence[int], origin: str) -> Wire:
        return self.rearrange([wire], numbered(wire.shape).reshape(shape), origin)


def rounds(layer: Layer) -> bool:
    """Whether the layer computes; the others only choose among numbers that are there."""
    if isinstance(layer, Rectifier):
        return layer.slope not in (0.0, 1.0)
    return not isinstance(layer, Embedding | Constant | Rearrangement | Maximum)


def numbered(shape: Sequence[int]) -> Indices:
    """Every element's own flat index."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


MANY = 8
"""Inputs of a rearrangement: from here on it pays to leave out those that are not read."""
MOST_MOVES = 2**26
"""Indices kept in all rearrangements together: half a gigabyte."""
FLOATS = ("float16", "float32", "float64")
MINUS_INFINITY = "minus infinity meets what is not read of it; sums, maxima, Exp, Relu and Softmax of it are"


def coarsest(wires: Sequence[Wire]) -> str:
    return min((wire.dtype for wire in wires), key=FLOATS.index)


def finite(array: Array, origin: str) -> Floats:
    """The same numbers as float64: exact for float16 and float32."""
    if not np.isfinite(array).all():
        raise BadInput(f"{origin}: a constant holds NaN or infinity; a network to be verified needs finite weights")
    return np.asarray(array, dtype=np.float64)


def variable(builder: Builder, call: Call, position: int) -> Wire:
    value = call.value(position)
    match value:
        case Wire():
            return value
        case Known():
            return builder.constant(value.array, call.where)
        case Masked():
            raise Unsupported(f"{call.where}: {MINUS_INFINITY}")
        case Tokens():
            raise Unsupported(f"{call.where}: computes with token ids; they may only select embeddings")


def placed(shape: tuple[int, ...], places: Indices) -> Indices:
    """Of this shape: the numbers of the places, one after the other, and OUTSIDE elsewhere."""
    index = np.full(math.prod(shape), OUTSIDE, dtype=np.int64)
    index[places] = np.arange(len(places))
    return index.reshape(shape)


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


@dataclass(frozen=True)
class Axes:
    """What a reduction goes over."""

    chosen: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the result."""

    @classmethod
    def of(cls, call: Call, wire: Wire) -> Axes | None:
        """None where nothing is reduced."""
        rank = len(wire.shape)
        axes = call.known(1, "axes")
        if call.operator.startswith("Global"):
            chosen, keep = list(range(2, rank)), True
        else:
            listed = call.attributes.get("axes") if axes is None else axes.tolist()
            if not listed and call.attributes.get("noop_with_empty_axes", 0):
                return None
            chosen = sorted({call.axis(int(axis), rank) for axis in listed}) if listed else list(range(rank))
            keep = bool(call.attributes.get("keepdims", 1))
        shape = [1 if axis in chosen else wire.shape[axis] for axis in range(rank) if keep or axis not in chosen]
        return cls(tuple(chosen), tuple(shape))

    def gathered(self, shape: tuple[int, ...]) -> Indices:
        """[*kept, reduced]"""
        kept = [axis for axis in range(len(shape)) if axis not in self.chosen]
        index = numbered(shape).transpose([*kept, *self.chosen])
        return index.reshape(*(shape[axis] for axis in kept), -1)
