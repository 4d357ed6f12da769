"""LSTM, GRU and RNN unrolled into their steps (FORMAT.md, section 4.4), which share their layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import BadInput, Unsupported
from ..network import Affine, Curve, Floats, Indices, Layer, Product, Rearrangement, Scaling, Sum
from ..onnx_files.construction import Array, Builder, Call, Known, Value, Wire, finite

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Whether each goes backwards."""
KNOWN = {
    "activation_alpha", "activation_beta", "activations", "direction", "hidden_size", "input_forget", "layout",
    "linear_before_reset",
}  # fmt: skip
STATE, CELL = 5, 6
"""Their initial values among the inputs."""


def recurrent(builder: Builder, call: Call) -> list[Value]:
    x = call.wire(0)
    weights, recurrence, bias = (call.known(at, name) for at, name in ((1, "weights"), (2, "weights"), (3, "bias")))
    if weights is None or recurrence is None:
        raise BadInput(f"{call.where}: its weights are missing")
    reverse = checked(call)
    hidden, count = recurrence.shape[-1], len(reverse)
    gates = GATES[call.operator] * hidden
    if len(x.shape) != 3 or x.shape[1] != 1:
        raise Unsupported(f"{call.where}: an input of shape {list(x.shape)}; [steps, 1, size] is read (layout 0)")
    shapes = [weights.shape, recurrence.shape] + ([] if bias is None else [bias.shape])
    if shapes != [(count, gates, x.shape[2]), (count, gates, hidden), (count, 2 * gates)][: len(shapes)]:
        raise BadInput(f"{call.where}: weights of shapes {shapes} for inputs of {x.shape[2]} and {count} directions")
    if call.attributes.get("hidden_size", hidden) != hidden:
        raise BadInput(f"{call.where}: hidden_size {call.attributes['hidden_size']}, and weights for {hidden}")
    steps, length = x.shape[0], length_of(call, x.shape[0])
    whole, last, cells = list[Wire](), list[Wire](), list[Wire]()
    zero = builder.constant(np.zeros((1, hidden), dtype=x.dtype), call.where)
    one = None if bias is None else builder.constant(np.ones((1, 1), dtype=x.dtype), call.where)
    for d, backwards in enumerate(reverse):
        own = Weights(weights[d], recurrence[d], None if bias is None else bias[d], call.where)
        cell = CELLS[call.operator](Direction(builder, call, own, hidden, one, (d, weights, recurrence, bias)))
        state = cell_state(builder, call, STATE, d, zero)
        memory = cell_state(builder, call, CELL, d, zero) if call.operator == "LSTM" else zero
        found = [zero] * steps
        for t in reversed(range(length)) if backwards else range(length):
            here = builder.rearrange([x], (t * x.shape[2] + np.arange(x.shape[2], dtype=np.int64))[None], call.where)
            state, memory = cell.step(here, state, memory)
            found[t] = state
        whole += found
        last.append(state)
        cells.append(memory)
    builder.step()
    every = Outputs(builder, call, hidden)
    results: list[Value] = [every.sequence(whole, steps, count), every.last(last), every.last(cells)]
    return results[: 3 if call.operator == "LSTM" else 2]


def checked(call: Call) -> tuple[bool, ...]:
    """For each direction whether it goes backwards; what is not supported is refused."""
    attributes = call.attributes
    other = sorted({*attributes} - KNOWN)
    if other:
        raise Unsupported(f"{call.where}: attribute {other[0]} is not supported")
    direction = attributes.get("direction", "forward")
    if direction not in DIRECTIONS:
        raise BadInput(f"{call.where}: direction {direction!r}")
    reverse = DIRECTIONS[direction]
    named = [as_text(one).lower() for one in attributes.get("activations", [])]
    if named and named != ACTIVATIONS[call.operator] * len(reverse):
        raise Unsupported(f"{call.where}: activations {', '.join(named)}; only the usual ones are supported")
    for name in ("activation_alpha", "activation_beta"):
        if attributes.get(name):
            raise Unsupported(f"{call.where}: attribute {name} is not supported")
    for name in ("layout", "input_forget"):
        if attributes.get(name, 0):
            raise Unsupported(f"{call.where}: {name} {attributes[name]}; 0 is supported")
    if len(call.values) > 7 and call.values[7] is not None:
        raise Unsupported(f"{call.where}: peepholes are not supported")
    return reverse


def as_text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def length_of(call: Call, steps: int) -> int:
    """The steps that are gone through; the others are padding."""
    lengths = call.known(4, "sequence lengths")
    if lengths is None:
        return steps
    length = int(lengths.reshape(-1)[0]) if lengths.size == 1 else 0
    if not 1 <= length <= steps:
        raise BadInput(f"{call.where}: sequence lengths {lengths.tolist()} of {steps} steps")
    return length


def cell_state(builder: Builder, call: Call, position: int, direction: int, zero: Wire) -> Wire:
    value = call.values[position] if position < len(call.values) else None
    if value is None:
        return zero
    size = zero.shape[1]
    match value:
        case Known(array) if not array.any():
            return zero
        case Known(array):
            return builder.constant(array[direction], call.where)
        case Wire():
            index = direction * size + np.arange(size, dtype=np.int64)[None]
            return builder.rearrange([value], index, call.where)
        case _:
            raise Unsupported(f"{call.where}: an initial state of token ids")


@dataclass(frozen=True, eq=False)
class Weights:
    """Of one direction: [gates H, size] of the input, [gates H, H] of the state, and both halves of the bias."""

    x: Array
    h: Array
    biases: Array | None
    where: str

    def bias(self, rows: slice, half: int) -> Floats:
        """WB of the input, RB of the state."""
        if self.biases is None:
            return np.zeros(len(self.x[rows]))
        return finite(self.biases[half * len(self.x) :][: len(self.x)][rows], self.where)

    def gate(self, rows: slice, *, x: bool = True, h: bool = True) -> Affine:
        """Rows of x, h and 1."""
        parts = [self.x[rows]] if x else []
        if h:
            parts += [self.h[rows]] + ([] if self.biases is None else [self.bias(rows, 1)[:, None]])
        weight = np.ascontiguousarray(finite(np.concatenate(parts, axis=1), self.where).T)
        added = self.bias(rows, 0) if x else np.zeros(weight.shape[1])
        return Affine(weight, added)


@dataclass(frozen=True, eq=False)
class Direction:
    """What the steps of one direction share."""

    builder: Builder
    call: Call
    weights: Weights
    size: int
    one: Wire | None
    """The constant that RB is the weight of; None without biases."""
    whole: tuple[int, Array, Array, Array | None]
    """Which direction it is, and the weights of all."""

    def gate(self, rows: slice, *, x: bool = True, h: bool = True) -> Affine:
        """Rows of x, h and 1."""
        number, *arrays = self.whole
        name = self.call.where, number, rows.start, rows.stop, x, h
        return self.builder.shared(name, tuple(arrays), lambda: self.weights.gate(rows, x=x, h=h))

    def emit(self, layer: Layer, inputs: Sequence[Wire], width: int) -> Wire:
        return self.builder.emit(layer, inputs, (1, width), self.call.where, inputs[0].dtype)

    def computed(self, layer: Layer, inputs: Sequence[Wire], width: int) -> Wire:
        """A layer of its own: nothing that moves its elements belongs to it."""
        self.builder.step()
        found = self.emit(layer, inputs, width)
        self.builder.step()
        return found

    def rows(self, layer: Affine, *parts: Wire) -> Wire:
        """Of these, and of 1."""
        inputs = [*parts, *([] if self.one is None else [self.one])]
        together = self.emit(self.joining(len(layer.weight)), inputs, len(layer.weight))
        return self.computed(layer, [together], len(layer.bias))

    def joining(self, width: int) -> Rearrangement:
        if width not in self.ranges:
            self.ranges[width] = taking(0, width)
        return self.ranges[width]

    @cached_property
    def ranges(self) -> dict[int, Rearrangement]:
        return {}

    @cached_property
    def parts(self) -> list[Rearrangement]:
        """Each of up to four gates."""
        return [taking(part * self.size, (part + 1) * self.size) for part in range(4)]

    @cached_property
    def halves(self) -> Scaling:
        ones = np.ones((1, self.size))
        return Scaling(-ones, ones, ones)

    def taken(self, wire: Wire, part: int) -> Wire:
        return self.emit(self.parts[part], [wire], self.size)

    def mixed(self, left: Wire, right: Wire) -> Wire:
        """The sum of the products of both halves."""
        products = self.emit(PAIRS, [left, right], 2 * self.size)
        halves = [self.taken(products, part) for part in (0, 1)]
        return self.computed(PLUS, halves, self.size)


def taking(start: int, stop: int) -> Rearrangement:
    return Rearrangement(np.arange(start, stop, dtype=np.int64)[None])


SIGMOID, TANH, PAIRS, PLUS = Curve("sigmoid"), Curve("tanh"), Product(), Sum((1, 1))


class LongShortTerm:
    """c' = f c + i tanh(.), h' = o tanh(c'), the gates i, o, f, c in this order."""

    def __init__(self, own: Direction) -> None:
        size = own.size
        self.own, self.gate = own, own.gate(slice(None))
        self.gates, self.inner = taking(0, 3 * size), taking(3 * size, 4 * size)
        forget, take = np.arange(2 * size, 3 * size), np.arange(size)
        self.kept = Rearrangement(np.concatenate([forget, take])[None])

    def step(self, x: Wire, state: Wire, memory: Wire) -> tuple[Wire, Wire]:
        own, size = self.own, self.own.size
        rows = own.rows(self.gate, x, state)
        gates = own.emit(SIGMOID, [own.emit(self.gates, [rows], 3 * size)], 3 * size)
        fresh = own.emit(TANH, [own.emit(self.inner, [rows], size)], size)
        kept = own.emit(self.kept, [gates], 2 * size)
        memory = own.mixed(kept, own.emit(own.joining(2 * size), [memory, fresh], 2 * size))
        shown = own.emit(TANH, [memory], size)
        return own.emit(PAIRS, [own.taken(gates, 1), shown], size), memory


class GatedUnit:
    """h' = (1 - z) h~ + z h, with h~ = tanh(W x + r (R h)) or tanh(W x + R (r h)), the gates z, r, h in this order."""

    def __init__(self, own: Direction) -> None:
        size = own.size
        rest = slice(2 * size, None)
        self.own, self.gate = own, own.gate(slice(2 * size))
        self.after = bool(own.call.attributes.get("linear_before_reset", 0))
        self.inner = own.gate(rest, x=not self.after)
        self.input = own.gate(rest, h=False) if self.after else None
        self.parts = own.parts

    def step(self, x: Wire, state: Wire, memory: Wire) -> tuple[Wire, Wire]:
        own, size = self.own, self.own.size
        gates = own.emit(SIGMOID, [own.rows(self.gate, x, state)], 2 * size)
        update, reset = own.taken(gates, 0), own.taken(gates, 1)
        if self.input is not None:
            inner = own.rows(self.inner, state)
            reduced = own.emit(PAIRS, [reset, inner], size)
            fresh = own.computed(PLUS, [own.computed(self.input, [x], size), reduced], size)
        else:
            fresh = own.rows(self.inner, x, own.emit(PAIRS, [reset, state], size))
        fresh = own.emit(TANH, [fresh], size)
        rest = own.computed(own.halves, [update], size)
        shares = own.emit(own.joining(2 * size), [rest, update], 2 * size)
        return own.mixed(shares, own.emit(own.joining(2 * size), [fresh, state], 2 * size)), memory


class Simple:
    """h' = tanh(W x + R h)."""

    def __init__(self, own: Direction) -> None:
        self.own, self.gate = own, own.gate(slice(None))

    def step(self, x: Wire, state: Wire, memory: Wire) -> tuple[Wire, Wire]:
        return self.own.emit(TANH, [self.own.rows(self.gate, x, state)], self.own.size), memory


CELLS: dict[str, Any] = {"LSTM": LongShortTerm, "GRU": GatedUnit, "RNN": Simple}


@dataclass(frozen=True, eq=False)
class Outputs:
    builder: Builder
    call: Call
    size: int

    def sequence(self, states: Sequence[Wire], steps: int, directions: int) -> Wire:
        """[steps, directions, 1, H] of the states of each direction."""
        index = np.arange(len(states) * self.size, dtype=np.int64).reshape(directions, steps, 1, self.size)
        return self.builder.rearrange(states, np.ascontiguousarray(index.swapaxes(0, 1)), self.call.where)

    def last(self, states: Sequence[Wire]) -> Wire:
        """[directions, 1, H]"""
        index: Indices = np.arange(len(states) * self.size, dtype=np.int64).reshape(-1, 1, self.size)
        return self.builder.rearrange(states, index, self.call.where)
