"""Checks swap certificates (FORMAT.md, version 1) with exact integers and nothing but the standard library.

    python -I -S proofs/check.py RUN                a run folder, or one certificate file

This file is the trusted part: it imports nothing of ours and believes no number it can compute. It says
`accepted N of N` as its very last act and leaves with 0. Otherwise 4 (something was refused) or 2 (nothing to check).

For producers: `read_model` once, then `check_certificate` for each certificate; both raise `Refused` or `Unusable`.

Exact numbers are integers over a scale: element i of a layer is numbers[i] / scale. Bounds of single elements, and
everything about float32 rounding, are integers in units of 2**-64 (GRID), always rounded to the safe side.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import isfinite, isqrt, lcm, prod
from operator import add, mul
from pathlib import Path
from typing import Any, NamedTuple

GRID = 64
SLOPE_BITS = 16
MAX_CERTIFICATE = 1 << 26
MAX_MODEL = 1 << 31
MAX_POSITIONS = 1 << 16
MAX_CHOICES = 1_000_000
MAX_SHAPE = 1 << 22
MAX_CONSTANT = 1 << 28
MAX_ELEMENTS = 1 << 23
MAX_SCALE_BITS = 20_000
MAX_ONNX_NODES = 100_000
MAX_NONLINEAR = 64
MAX_CLASSES = 1024
MAX_TREE_NODES = 5_000_000
MAX_DEPTH = 100_000
MAX_SENTENCES = 20_000_000
MAX_JOINT = 8
MAX_COUNTING = 10**7
MAX_WORK = 3 * 10**8
MAX_MOVES = 1 << 25
MAX_SWAPS = 10**6
SECONDS = 3600.0


class Refused(ValueError):
    """The certificate does not prove what it claims."""


class Unusable(ValueError):
    """There is nothing here to check: a missing file, or a model outside the format."""


def require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Refused(otherwise)


def need(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Unusable(otherwise)


# ---------------------------------------------------------------------------------------------- protobuf and tensors


def varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        need(at < len(data), "the ONNX file is cut short")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            need(value < 1 << 64, "a number in the ONNX file is beyond 64 bits")
            return value, at
    raise Unusable("a number in the ONNX file is beyond 64 bits")


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


Wire = int | memoryview


class Message:
    """The fields of one protobuf message by number; only those in `known` may occur, negative ones are ignored."""

    def __init__(self, data: memoryview, what: str, known: Iterable[int]) -> None:
        self.what = what
        self.fields: dict[int, list[tuple[int, Wire]]] = {}
        allowed = set(known)
        at = 0
        while at < len(data):
            key, at = varint(data, at)
            number, wire = key >> 3, key & 7
            value: Wire
            if wire == 0:
                value, at = varint(data, at)
            else:
                need(wire in (1, 2, 5), f"wire type {wire} in {what}")
                size, at = varint(data, at) if wire == 2 else (8 if wire == 1 else 4, at)
                need(at + size <= len(data), "the ONNX file is cut short")
                value, at = data[at : at + size], at + size
            if -number in allowed:
                continue
            need(number in allowed, f"field {number} in {what} is outside the format")
            self.fields.setdefault(number, []).append((wire, value))

    def all(self, number: int, wire: int = 2) -> list[Any]:
        found = self.fields.get(number, [])
        need(all(kind == wire for kind, _ in found), f"field {number} in {self.what} has the wrong wire type")
        return [value for _, value in found]

    def one(self, number: int, wire: int = 2) -> Any:
        found = self.all(number, wire)
        need(len(found) <= 1, f"field {number} in {self.what} occurs twice")
        return found[0] if found else None

    def text(self, number: int) -> str:
        found = self.one(number)
        return decode(found) if found is not None else ""

    def texts(self, number: int) -> list[str]:
        return [decode(found) for found in self.all(number)]

    def number(self, number: int) -> int | None:
        found = self.one(number, 0)
        return None if found is None else signed(found)

    def numbers(self, number: int) -> list[int]:
        """Repeated integers, packed or not."""
        values: list[int] = []
        for wire, value in self.fields.get(number, []):
            if isinstance(value, int):
                values.append(signed(value))
                continue
            need(wire == 2, f"field {number} in {self.what} has the wrong wire type")
            at = 0
            while at < len(value):
                item, at = varint(value, at)
                values.append(signed(item))
        return values

    def packed(self, number: int, code: str) -> list[float]:
        """Repeated floats, packed or not."""
        data = b"".join(bytes(value) for _, value in self.fields.get(number, []) if not isinstance(value, int))
        need(all(wire != 0 for wire, _ in self.fields.get(number, [])), f"field {number} in {self.what} is not floats")
        return list(unpack(code, data))


def decode(data: memoryview) -> str:
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        raise Unusable("a name in the ONNX file is not UTF-8") from None


def unpack(code: str, data: bytes | memoryview) -> Sequence[Any]:
    """Little-endian numbers; code as in `struct`."""
    need(len(data) % struct.calcsize(code) == 0, "tensor data of a broken length")
    if code == "e":
        return [item[0] for item in struct.iter_unpack("<e", data)]
    numbers = array(code, bytes(data))
    need(numbers.itemsize == struct.calcsize("<" + code), "this machine has unusual number sizes")
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


FLOATING = {1: "f", 11: "d", 10: "e"}
INTEGERS = {7: "q", 6: "i", 9: "b"}
TYPE_NAMES = {1: "FLOAT", 11: "DOUBLE", 10: "FLOAT16", 7: "INT64", 6: "INT32", 9: "BOOL"}


@dataclass(frozen=True, eq=False)
class Constant:
    """Known numbers: ints when `kind` is 0, else the ONNX floating type and floats or Fractions."""

    shape: tuple[int, ...]
    items: Sequence[Any]
    kind: int = 0
    computed: bool = False

    def exact(self) -> tuple[list[int], int]:
        """(integers, scale): item i is integers[i] / scale."""
        ratios = [item.as_integer_ratio() for item in self.items]
        scale = lcm(*{below for _, below in ratios})
        need(scale.bit_length() <= 4096, "constants with a common denominator beyond 4096 bits")
        return [above * (scale // below) for above, below in ratios], scale

    def integers(self, what: str) -> list[int]:
        need(self.kind == 0, f"{what} must be integers")
        return list(self.items)


def read_tensor(data: memoryview, files: dict[str, bytes], used: set[str]) -> tuple[str, Constant]:
    message = Message(data, "a tensor", (1, 2, 4, 5, 7, 8, 9, 10, -12, 13, 14, -16))
    name, kind = message.text(8), message.number(2) or 0
    shape = tuple(message.numbers(1))
    need(kind in TYPE_NAMES, f"tensor {name!r} has type {kind}; FLOAT, DOUBLE, FLOAT16, INT64, INT32, BOOL are known")
    need(all(size >= 0 for size in shape) and len(shape) <= 8, f"tensor {name!r} has an impossible shape")
    size = prod(shape)
    need(size <= MAX_CONSTANT, f"tensor {name!r} is too large")
    code = FLOATING.get(kind) or INTEGERS[kind]
    sources: list[Sequence[Any]] = []
    if message.number(14) or message.all(13):
        need(message.number(14) == 1, f"tensor {name!r} is half external")
        sources.append(unpack(code, external(message, files, used)))
    if 9 in message.fields:
        sources.append(unpack(code, message.one(9)))
    for number, kinds in ((4, (1,)), (10, (11,)), (5, (6, 9, 10)), (7, (7,))):
        if number in message.fields:
            need(kind in kinds, f"tensor {name!r} keeps its data in the wrong field")
            items: Sequence[Any] = message.packed(number, code) if number in (4, 10) else message.numbers(number)
            if kind == 10:
                need(all(0 <= item < 1 << 16 for item in items), f"tensor {name!r} is not FLOAT16")
                items = unpack("e", b"".join(struct.pack("<H", item) for item in items))
            sources.append(items)
    need(len(sources) <= 1 and (bool(sources) or size == 0), f"tensor {name!r} must keep its data in exactly one place")
    values = sources[0] if sources else []
    need(len(values) == size, f"tensor {name!r} has {len(values)} numbers for shape {shape}")
    return name, checked(Constant(shape, values, kind if kind in FLOATING else 0), f"tensor {name!r}")


def external(message: Message, files: dict[str, bytes], used: set[str]) -> bytes:
    entries: dict[str, str] = {}
    for data in message.all(13):
        entry = Message(data, "external data", (1, 2))
        need(entry.text(1) not in entries, "external data says a thing twice")
        entries[entry.text(1)] = entry.text(2)
    need(set(entries) <= {"location", "offset", "length", "checksum"}, "unknown keys of external data")
    location = entries.get("location", "")
    need(location in files, f"external tensor file {location!r} was not given")
    used.add(location)
    numbers = [entries.get("offset", "0"), entries.get("length", "0")]
    need(all(re.fullmatch("[0-9]{1,12}", number) for number in numbers), "external data with a broken offset or length")
    start = int(numbers[0])
    stop = start + int(numbers[1]) if "length" in entries else len(files[location])
    need(start <= stop <= len(files[location]), f"external tensor file {location!r} is cut short")
    return files[location][start:stop]


def checked(constant: Constant, what: str) -> Constant:
    """Finite, and for DOUBLE within the limits on exponents (the smaller types cannot leave them)."""
    if constant.kind:
        need(all(map(isfinite, constant.items)), f"{what} holds NaN or infinity")
    if constant.kind == 11:
        sane = (abs(item) < 2.0**128 and item.as_integer_ratio()[1] <= 1 << 200 for item in constant.items)
        need(all(sane), f"{what} holds numbers that are not multiples of 2**-200 below 2**128")
    return constant


# --------------------------------------------------------------------------------------------------- network layers

Numbers = list[int]
Coefficients = dict[int, dict[int, int]]
Bounds = list[tuple[int, int]]
Rounding = tuple[Numbers, Numbers]


def add_to(target: dict[int, int], index: int, value: int) -> None:
    target[index] = target.get(index, 0) + value


def ceiling(above: int, below: int) -> int:
    return -(-above // below)


def affine_rounding(
    weights: Sequence[int], above: int, below: int, bias: int, inputs: Rounding
) -> tuple[int, int, int]:
    """(A, e, T) of FORMAT section 8 for sum of (weights[k] above / below) x_k + bias / below; T in units of GRID."""
    magnitudes, errors = inputs
    terms = [abs(w) * (a + e) for w, a, e in zip(weights, magnitudes, errors, strict=True)]
    n = len(terms) - terms.count(0) + 3
    total = sum(terms) * above + (abs(bias) << GRID)
    exact = sum(map(mul, map(abs, weights), magnitudes)) * above + (abs(bias) << GRID)
    carried = sum(map(mul, map(abs, weights), errors)) * above
    error = ceiling((carried << 32) + n * 257 * total, below << 32) + 1
    return ceiling(exact, below), error, ceiling(total, below) if n <= 65280 else 1 << 200


@dataclass(eq=False)
class Layer:
    """numbers of this layer from the numbers of `inputs`; linear layers also hand coefficients back to them."""

    inputs: tuple[int, ...]
    size: int
    scale: int
    limit: int = field(default=0, init=False)

    def forward(self, inputs: list[Numbers]) -> Numbers:
        raise NotImplementedError

    def backward(self, given: dict[int, int], handed: Coefficients) -> int:
        """Rewrite sum given[i] * numbers[i] in terms of the inputs: adds to `handed`, returns the constant part."""
        raise NotImplementedError

    def rounding(self, inputs: list[Rounding]) -> Rounding:
        """Bounds (A, e) from those of the inputs; `limit` remembers the greatest T."""
        raise NotImplementedError


@dataclass(eq=False)
class Embedding(Layer):
    """Rows of a table: row r is looked up with the token at positions[r]."""

    table: Constant
    positions: list[int]
    rows: dict[int, Numbers] = field(default_factory=dict)

    def row(self, token: int) -> Numbers:
        if token not in self.rows:
            width = self.table.shape[1]
            items = self.table.items[token * width : (token + 1) * width]
            ratios = (item.as_integer_ratio() for item in items)
            self.rows[token] = [above * (self.scale // below) for above, below in ratios]
        return self.rows[token]


@dataclass(eq=False)
class Fixed(Layer):
    numbers: Numbers

    def backward(self, given: dict[int, int], handed: Coefficients) -> int:
        return sum(c * self.numbers[i] for i, c in given.items())


@dataclass(eq=False)
class Move(Layer):
    """Element i is element places[i] = (which input, index) times factors[which] (scales made equal)."""

    places: list[tuple[int, int]]
    factors: list[int]

    def forward(self, inputs: list[Numbers]) -> Numbers:
        if len(inputs) == 1:
            only = inputs[0]
            return [only[i] for _, i in self.places]
        return [inputs[k][i] * self.factors[k] for k, i in self.places]

    def backward(self, given: dict[int, int], handed: Coefficients) -> int:
        for index, c in given.items():
            k, i = self.places[index]
            add_to(handed.setdefault(self.inputs[k], {}), i, c * self.factors[k])
        return 0

    def rounding(self, inputs: list[Rounding]) -> Rounding:
        return [inputs[k][0][i] for k, i in self.places], [inputs[k][1][i] for k, i in self.places]


Row = tuple[Sequence[int], Numbers, int]


@dataclass(eq=False)
class Linear(Layer):
    """Element by element: sum of weights[k] * x[places[k]] + bias; rows share their lists where they can."""

    rows: list[Row]
    source_scale: int

    def forward(self, inputs: list[Numbers]) -> Numbers:
        x = inputs[0]
        return [
            sum(map(mul, weights, x[at.start : at.stop] if isinstance(at, range) else [x[i] for i in at])) + bias
            for at, weights, bias in self.rows
        ]

    def backward(self, given: dict[int, int], handed: Coefficients) -> int:
        target, constant = handed.setdefault(self.inputs[0], {}), 0
        for index, c in given.items():
            places, weights, bias = self.rows[index]
            constant += c * bias
            for i, w in zip(places, weights, strict=True):
                if w:
                    target[i] = target.get(i, 0) + c * w
        return constant

    def rounding(self, inputs: list[Rounding]) -> Rounding:
        magnitudes, errors = inputs[0]
        found = [
            affine_rounding(
                weights, self.source_scale, self.scale, bias, ([magnitudes[i] for i in at], [errors[i] for i in at])
            )
            for at, weights, bias in self.rows
        ]
        self.limit = max(total for _, _, total in found)
        return [a for a, _, _ in found], [e for _, e, _ in found]

    def largest(self) -> int:
        """The greatest magnitude of a weight or bias, rounded up."""
        lists = {id(weights): weights for _, weights, _ in self.rows}.values()
        weight = max(max(map(abs, weights), default=0) for weights in lists) * self.source_scale
        return ceiling(max(weight, *(abs(bias) for _, _, bias in self.rows)), self.scale)


@dataclass(eq=False)
class Rectifier(Layer):
    """max(x, alpha x) with alpha = above / below; numbers are in units of 1 / (below * scale of the input)."""

    origin: int
    above: int
    below: int

    def forward(self, inputs: list[Numbers]) -> Numbers:
        if self.above == 0:
            return [x if x > 0 else 0 for x in inputs[0]]
        return [x * self.below if x > 0 else x * self.above for x in inputs[0]]

    def image(self, low: int, high: int) -> tuple[int, int]:
        """Bounds of the output, on the grid, from bounds of the input."""
        return (
            low if low > 0 else low * self.above // self.below,
            high if high > 0 else ceiling(high * self.above, self.below),
        )

    def relax(self, c: int, low: int, high: int, slope: int | None, source_scale: int) -> tuple[int, int]:
        """c * y >= (coefficient of x, constant), both times 2**SLOPE_BITS; the constant also times 2**GRID."""
        p, q = self.above, self.below
        if low >= 0 or high <= 0:
            return c * (q if low >= 0 else p) << SLOPE_BITS, 0
        if c > 0:
            chosen = (q if high > -low else p) << SLOPE_BITS
            if slope is not None:
                chosen = max(p << SLOPE_BITS, q * slope << (SLOPE_BITS - 6))
            return c * chosen, 0
        width = (high - low) * q
        s = (((high * q - p * low) << (SLOPE_BITS + 1)) + width) // (2 * width)
        at_low = ((p << SLOPE_BITS) - q * s) * low
        at_high = ((1 << SLOPE_BITS) - s) * q * high
        return c * q * s, c * source_scale * max(at_low, at_high)

    def rounded(self, source: Rounding, bounds: Bounds) -> Rounding:
        magnitudes: Numbers = []
        errors: Numbers = []
        for e, (low, high) in zip(source[1], bounds, strict=True):
            a = max(-low, high)
            if self.above:
                e = ceiling((e << 32) + 4 * 257 * (a + e), 1 << 32) + 1
            elif high + e <= 0:
                a = e = 0
            else:
                a = max(high, 0)
            magnitudes.append(a)
            errors.append(e)
        return magnitudes, errors


@dataclass(eq=False)
class Maximum(Layer):
    """The greatest input element of each window."""

    origin: int
    windows: list[list[int]]

    def forward(self, inputs: list[Numbers]) -> Numbers:
        x = inputs[0]
        return [max([x[i] for i in window]) for window in self.windows]

    def pick(self, bounds: Bounds) -> list[tuple[int, bool, int]]:
        """Per window: the first element with the greatest low bound, whether it is the greatest for sure, the top."""
        found = []
        for window in self.windows:
            lows, highs = [bounds[i][0] for i in window], [bounds[i][1] for i in window]
            at = lows.index(max(lows))
            others = highs[:at] + highs[at + 1 :]
            found.append((window[at], not others or max(others) <= lows[at], max(highs)))
        return found

    def rounded(self, source: Rounding, bounds: Bounds) -> Rounding:
        return (
            [max(max(-bounds[i][0], bounds[i][1]) for i in window) for window in self.windows],
            [max(source[1][i] for i in window) for window in self.windows],
        )


Nonlinear = Rectifier | Maximum


class Network:
    """Layers in order, the last one the logits; `cut` are the layers, affine in the words, that all the others read."""

    def __init__(self, layers: list[Layer], rows: int, no_float32: str) -> None:
        self.layers = layers
        self.vocabulary_rows = rows
        self.no_float32 = no_float32
        self.classes = layers[-1].size
        self.affine: list[bool] = []
        for layer in layers:
            plain = not isinstance(layer, Nonlinear)
            self.affine.append(plain and all(self.affine[i] for i in layer.inputs))
        last = len(layers) - 1
        read = {i for n, layer in enumerate(layers) if not self.affine[n] for i in layer.inputs}
        self.cut = sorted(i for i in read | {last} if self.affine[i])
        self.later = [n for n in range(len(layers)) if not self.affine[n]]
        self.nonlinear = [(n, layer) for n, layer in enumerate(layers) if isinstance(layer, Nonlinear)]
        need(len(self.nonlinear) <= MAX_NONLINEAR, f"more than {MAX_NONLINEAR} nonlinear layers")
        self.by_origin = {layer.origin: (n, layer) for n, layer in self.nonlinear}
        self.start = {}
        self.cut_size = 0
        for n in self.cut:
            self.start[n] = self.cut_size
            self.cut_size += layers[n].size
        self.traces = {
            n: [self.trace(layer.inputs[0], i) for i in range(layers[layer.inputs[0]].size)]
            for n, layer in self.nonlinear
        }
        self.find_kernels()

    def trace(self, n: int, index: int) -> tuple[int, int]:
        """The layer and element this element is a copy of."""
        layer = self.layers[n]
        while not self.affine[n] and isinstance(layer, Move):
            k, index = layer.places[index]
            n = layer.inputs[k]
            layer = self.layers[n]
        return n, index

    def find_kernels(self) -> None:
        """How the cut depends on words.

        readers[p]: the embedding layers that look up position p, once per row. touched[p]: the cut elements that
        position p moves. kernels[p]: for each of them the coefficients of the rows in readers[p], one after the other.
        """
        offsets: dict[int, list[tuple[int, int, int]]] = {}
        self.readers: dict[int, list[Embedding]] = {}
        widths: dict[int, int] = {}
        for n, layer in enumerate(self.layers):
            if isinstance(layer, Embedding):
                width = layer.table.shape[1]
                offsets[n] = []
                for position in layer.positions:
                    offsets[n].append((position, widths.get(position, 0), width))
                    widths[position] = widths.get(position, 0) + width
                    self.readers.setdefault(position, []).append(layer)
        self.touched: dict[int, list[int]] = {p: [] for p in widths}
        self.kernels: dict[int, list[tuple[int, ...]]] = {p: [] for p in widths}
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        work = 0
        for n in self.cut:
            for index in range(self.layers[n].size):
                handed: Coefficients = {n: {index: 1}}
                found: dict[int, Numbers] = {}
                for m in range(n, -1, -1):
                    given = handed.pop(m, None)
                    if given is None:
                        continue
                    work += len(given)
                    need(work <= MAX_WORK, "the network is too large: its words reach too many elements")
                    if m not in offsets:
                        self.layers[m].backward(given, handed)
                        continue
                    width = self.layers[m].size // len(offsets[m])
                    for i, c in given.items():
                        position, offset, _ = offsets[m][i // width]
                        found.setdefault(position, [0] * widths[position])[offset + i % width] += c
                for position, kernel in found.items():
                    if any(kernel):
                        frozen = tuple(kernel)
                        self.touched[position].append(self.start[n] + index)
                        self.kernels[position].append(same.setdefault(frozen, frozen))
        self.columns = {p: list(zip(*kernels, strict=True)) for p, kernels in self.kernels.items()}

    def evaluate_cut(self, sentence: Sequence[int]) -> Numbers:
        values: dict[int, Numbers] = {}
        for n, layer in enumerate(self.layers):
            if not self.affine[n]:
                continue
            if isinstance(layer, Embedding):
                values[n] = [x for position in layer.positions for x in layer.row(sentence[position])]
            elif isinstance(layer, Fixed):
                values[n] = layer.numbers
            else:
                values[n] = layer.forward([values[i] for i in layer.inputs])
        return [x for n in self.cut for x in values[n]]

    def evaluate(self, vector: Numbers) -> dict[int, Numbers]:
        """The values of the cut and of all later layers, from the numbers of the cut."""
        values = {n: vector[self.start[n] : self.start[n] + self.layers[n].size] for n in self.cut}
        for n in self.later:
            layer = self.layers[n]
            values[n] = layer.forward([values[i] for i in layer.inputs])
        return values

    def embedding_delta(self, position: int, old: int, new: int) -> Numbers:
        readers = self.readers.get(position, [])
        return [b - a for layer in readers for a, b in zip(layer.row(old), layer.row(new), strict=True)]


# ----------------------------------------------------------------------------------------------- reading the network


class Tokens(NamedTuple):
    """Copies of the input: element i is the token at positions[i]."""

    shape: tuple[int, ...]
    positions: list[int]


class Variable(NamedTuple):
    """The elements of a layer in some shape; `product` marks what came straight from a MatMul."""

    shape: tuple[int, ...]
    layer: int
    product: bool = False


Value = Constant | Tokens | Variable


def strides_of(shape: Sequence[int]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def walk(sizes: Sequence[int], strides: Sequence[int], start: int = 0) -> list[int]:
    """start + sum i_a strides[a] over all i_a < sizes[a], in row-major order."""
    found = [start]
    for size, stride in zip(sizes, strides, strict=True):
        steps = range(0, size * stride, stride) if stride else [0] * size
        found = [at + step for at in found for step in steps]
    return found


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    shape = []
    for x, y in pairs:
        need(x == y or x == 1 or y == 1, f"shapes {a} and {b} do not broadcast")
        shape.append(y if x == 1 else x)
    return tuple(shape)


def spread(shape: tuple[int, ...], target: tuple[int, ...]) -> list[int]:
    """Which element of `shape` each element of `target` reads."""
    padded = (1,) * (len(target) - len(shape)) + shape
    strides = [0 if size == 1 else stride for size, stride in zip(padded, strides_of(padded), strict=True)]
    return walk(target, strides)


class Node:
    """One ONNX node: attributes are taken one by one, and none may be left over."""

    def __init__(self, data: memoryview, number: int, model: Model) -> None:
        message = Message(data, f"node {number}", (1, 2, -3, 4, 5, -6, 7, -9))
        self.number = number
        self.operator = message.text(4)
        self.input_names = message.texts(1)
        self.outputs = message.texts(2)
        self.inputs: list[Value | None] = []
        self.attributes: dict[str, tuple[int, Any]] = {}
        need(message.text(7) in ("", "ai.onnx"), f"{self}: domain {message.text(7)!r} is outside the format")
        for data in message.all(5):
            attribute = Message(data, f"an attribute of {self}", (1, 2, 3, 4, 5, 7, 8, -13, 20))
            name, kind = attribute.text(1), attribute.number(20)
            value: Any
            if kind == 1:
                value = unpack("f", attribute.one(2, 5) or b"\0\0\0\0")[0]
            elif kind == 2:
                value = attribute.number(3) or 0
            elif kind == 3:
                value = attribute.text(4)
            elif kind == 4:
                need(attribute.one(5) is not None, f"{self}: attribute {name!r} holds no tensor")
                value = model.tensor(attribute.one(5))[1]
            elif kind == 6:
                value = attribute.packed(7, "f")
            else:
                need(kind == 7, f"{self}: attribute {name!r} has type {kind}, which is outside the format")
                value = attribute.numbers(8)
            finite = kind not in (1, 6) or all(map(isfinite, value if kind == 6 else [value]))
            need(finite, f"{self}: attribute {name!r} holds NaN or infinity")
            need(name not in self.attributes, f"{self}: attribute {name!r} occurs twice")
            self.attributes[name] = (kind or 0, value)

    def __str__(self) -> str:
        return f"node {self.number} ({self.operator})"

    def take(self, name: str, kind: int, default: Any = None) -> Any:
        if name not in self.attributes:
            return default
        found, value = self.attributes[name]
        need(found == kind, f"{self}: attribute {name!r} has the wrong type")
        return value

    def known(self, *names: str) -> None:
        strange = sorted(set(self.attributes) - set(names))
        need(not strange, f"{self}: attributes {strange} are outside the format")

    def count(self, low: int, high: int) -> None:
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        need(low <= len(self.inputs) <= high, f"{self} has {len(self.inputs)} inputs")

    def get(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int) -> Constant:
        value = self.get(index)
        need(isinstance(value, Constant), f"{self}: input {index} must be constant")
        return value  # type: ignore[return-value]

    def variable(self, index: int = 0) -> Variable:
        value = self.get(index)
        need(isinstance(value, Variable), f"{self}: input {index} must depend on the tokens")
        return value  # type: ignore[return-value]

    def value(self, index: int = 0) -> Value:
        value = self.get(index)
        need(value is not None, f"{self}: input {index} is missing")
        return value  # type: ignore[return-value]

    def axis(self, axis: int, rank: int) -> int:
        need(-rank <= axis < rank, f"{self}: axis {axis} for rank {rank}")
        return axis % rank

    def axes(self, index: int, rank: int) -> list[int] | None:
        """From the attribute or from input `index`; None when there are none."""
        found = self.take("axes", 7)
        if self.get(index) is not None:
            need(found is None, f"{self}: axes are given twice")
            found = self.constant(index).integers("axes")
        if found is None:
            return None
        axes = [self.axis(axis, rank) for axis in found]
        need(len(set(axes)) == len(axes), f"{self}: an axis occurs twice")
        return sorted(axes)


class Model:
    """A parsed ONNX file; `network(length)` reads it as a network over that many positions, once for each length."""

    def __init__(self, data: bytes, files: dict[str, bytes]) -> None:
        need(len(data) <= MAX_MODEL, "the ONNX file is too large")
        self.files = files
        self.used: set[str] = set()
        self.kind = 0
        self.sha256 = hashlib.sha256(data).hexdigest()
        model = Message(memoryview(data), "the model", (1, -2, -3, -4, -5, -6, 7, 8, -14))
        versions = [Message(item, "an opset", (1, 2)) for item in model.all(8)]
        ours = [item.number(2) for item in versions if item.text(1) in ("", "ai.onnx")]
        need(len(ours) == 1 and 13 <= (ours[0] or 0) <= 22, f"opsets {ours}: one from 13 to 22 is expected")
        need(model.one(7) is not None, "the ONNX file holds no graph")
        graph = Message(model.one(7), "the graph", (1, -2, 5, -10, 11, 12, -13, -16))
        self.initializers: dict[str, Constant] = {}
        for item in graph.all(5):
            name, constant = self.tensor(item)
            need(bool(name) and name not in self.initializers, f"initializer {name!r} is defined twice or nameless")
            self.initializers[name] = constant
        need(len(graph.all(1)) <= MAX_ONNX_NODES, "too many ONNX nodes")
        self.node_data = graph.all(1)
        inputs = [item for item in map(self.value_info, graph.all(11)) if item[0] not in self.initializers]
        outputs = list(map(self.value_info, graph.all(12)))
        need(len(inputs) == 1 and len(outputs) == 1, "the model must have one input and one output")
        self.input_name, kind, dims = inputs[0]
        need(kind in (6, 7) and dims is not None and len(dims) == 2, "the input must be INT64 or INT32 [batch, length]")
        need(dims is not None and dims[0] in (None, 1), "the model is fixed to a batch other than one")
        self.length = dims[1] if dims else None
        self.output_name = outputs[0][0]
        for number, item in enumerate(self.node_data):
            Node(item, number, self)
        self.tensors = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(self.used)}
        self.networks: dict[int, Network] = {}

    def tensor(self, data: memoryview) -> tuple[str, Constant]:
        name, constant = read_tensor(data, self.files, self.used)
        need(constant.kind in (0, self.kind or constant.kind), "the model mixes floating types")
        self.kind = self.kind or constant.kind
        return name, constant

    @staticmethod
    def value_info(data: memoryview) -> tuple[str, int | None, list[int | None] | None]:
        """(name, element type, sizes with None for what is not a number)."""
        message = Message(data, "a value", (1, 2, -3, -4))
        kind, dims = None, None
        if message.one(2) is not None:
            tensor = Message(message.one(2), "a type", (1, -6)).one(1)
            need(tensor is not None, "inputs and outputs must be tensors")
            described = Message(tensor, "a tensor type", (1, 2))
            kind = described.number(1)
            if described.one(2) is not None:
                shape = Message(described.one(2), "a shape", (1,))
                dims = [Message(item, "a dimension", (1, 2, -3)).number(1) for item in shape.all(1)]
        return message.text(1), kind, dims

    def network(self, length: int) -> Network:
        if length not in self.networks:
            require(
                self.length in (None, length), f"the model reads {self.length} tokens, the certificate has {length}"
            )
            self.networks[length] = Interpreter(self, length).network()
        return self.networks[length]


def read_model(data: bytes, files: dict[str, bytes] | None = None) -> Model:
    """The ONNX file with its external tensor files (name -> bytes), parsed once for many certificates."""
    return Model(data, files or {})


class Interpreter:
    """Runs through the ONNX nodes once for a batch of one sentence and lays down the layers."""

    def __init__(self, model: Model, length: int) -> None:
        self.model = model
        self.layers: list[Layer] = []
        self.rows = MAX_CONSTANT
        self.head = ""
        self.computed = False
        self.elements = 0
        self.values: dict[str, Value] = dict(model.initializers)
        need(model.input_name not in self.values, "the input is defined twice")
        self.values[model.input_name] = Tokens((1, length), list(range(length)))

    def network(self) -> Network:
        for number, data in enumerate(self.model.node_data):
            node = Node(data, number, self.model)
            need(not self.head, f"{node}: nothing may follow {self.head}")
            for name in node.input_names:
                need(not name or name in self.values, f"{node} reads {name!r} before it is defined")
                node.inputs.append(self.values[name] if name else None)
            need(node.operator in OPERATORS, f"{node}: operator {node.operator!r} is outside the format")
            need(bool(node.outputs) and bool(node.outputs[0]), f"{node} has no output")
            need(node.outputs[0] not in self.values, f"{node} defines {node.outputs[0]!r} again")
            self.values[node.outputs[0]] = OPERATORS[node.operator](self, node)
        result = self.values.get(self.model.output_name)
        if not isinstance(result, Variable) or len(result.shape) != 2 or result.shape[0] != 1:
            raise Unusable("the output must depend on the tokens and have shape [batch, classes]")
        need(2 <= result.shape[1] <= MAX_CLASSES, f"{result.shape[1]} classes are outside the format")
        need(not self.head or self.outputs_head, f"{self.head} must give the output of the model")
        reason = ""
        if self.model.kind != 1:
            reason = "the model is not FLOAT"
        elif self.head:
            reason = f"the model ends in {self.head}"
        elif self.computed:
            reason = "the model computes constants from constants"
        return Network(self.only_needed(result.layer), self.rows, reason)

    def only_needed(self, last: int) -> list[Layer]:
        needed = {last}
        for n in range(last, -1, -1):
            if n in needed:
                needed.update(self.layers[n].inputs)
        order = sorted(needed)
        place = {n: index for index, n in enumerate(order)}
        for n in order:
            self.layers[n].inputs = tuple(place[i] for i in self.layers[n].inputs)
        return [self.layers[n] for n in order]

    # ---- laying down layers

    def put(self, layer: Layer, shape: Iterable[int], product: bool = False) -> Variable:
        shape = tuple(shape)
        need(prod(shape) == layer.size, f"a layer of {layer.size} elements for shape {shape}")
        need(0 < layer.size <= MAX_SHAPE and len(shape) <= 8, f"shape {shape} is outside the limits")
        need(layer.scale.bit_length() <= MAX_SCALE_BITS, f"exact numbers of more than {MAX_SCALE_BITS} bits")
        self.elements += layer.size
        need(self.elements <= MAX_ELEMENTS, "the network has too many elements")
        self.layers.append(layer)
        return Variable(shape, len(self.layers) - 1, product)

    def scale(self, x: Variable) -> int:
        return self.layers[x.layer].scale

    def moved(self, value: Value, index: list[int], shape: Iterable[int]) -> Value:
        """Element i of the result is element index[i] of the value."""
        shape = tuple(shape)
        need(len(index) <= MAX_SHAPE and len(shape) <= 8, f"shape {shape} is outside the limits")
        if isinstance(value, Constant):
            return Constant(shape, [value.items[i] for i in index], value.kind, value.computed)
        if isinstance(value, Tokens):
            return Tokens(shape, [value.positions[i] for i in index])
        if index == list(range(self.layers[value.layer].size)):
            return Variable(shape, value.layer)
        return self.gathered([value], [(0, i) for i in index], shape)

    def gathered(self, parts: list[Variable], places: list[tuple[int, int]], shape: Iterable[int]) -> Variable:
        scales = [self.scale(part) for part in parts]
        scale = lcm(*scales)
        factors = [scale // each for each in scales]
        return self.put(Move(tuple(part.layer for part in parts), len(places), scale, places, factors), shape)

    def fixed(self, value: Value, what: Node) -> Variable:
        """A floating constant as a layer; a variable as it is."""
        if isinstance(value, Variable):
            return value
        need(isinstance(value, Constant) and value.kind != 0, f"{what}: needs floating constants or variables")
        return self.fix(value)  # type: ignore[arg-type]

    def fix(self, constant: Constant) -> Variable:
        numbers, scale = constant.exact()
        self.computed = self.computed or constant.computed
        return self.put(Fixed((), len(numbers), scale, numbers), constant.shape)

    def exact(self, constant: Constant, what: Node) -> tuple[Numbers, int]:
        need(constant.kind != 0, f"{what}: integers meet variables")
        self.computed = self.computed or constant.computed
        return constant.exact()

    def linear(
        self,
        x: Variable,
        rows: list[Row],
        weight_scale: int,
        bias_scale: int,
        shape: Iterable[int],
        product: bool = False,
    ) -> Variable:
        """Rows whose weights are over weight_scale and whose biases are over bias_scale."""
        source = self.scale(x)
        scale = lcm(source * weight_scale, bias_scale)
        factor, bias_factor = scale // (source * weight_scale), scale // bias_scale
        lists = {id(weights): weights for _, weights, _ in rows}
        exact = {key: [w * factor for w in weights] if factor != 1 else weights for key, weights in lists.items()}
        rows = [(at, exact[id(weights)], bias * bias_factor) for at, weights, bias in rows]
        return self.put(Linear((x.layer,), len(rows), scale, rows, source), shape, product)

    def scaled(self, x: Variable, multiply: Fraction, offset: Numbers, offset_scale: int) -> Variable:
        """multiply * x + offset, element by element."""
        weights = [multiply.numerator]
        rows: list[Row] = [(range(i, i + 1), weights, b) for i, b in enumerate(offset)]
        return self.linear(x, rows, multiply.denominator, offset_scale, x.shape)

    def widened(self, value: Value, target: tuple[int, ...]) -> Value:
        return value if value.shape == target else self.moved(value, spread(value.shape, target), target)

    def summed(self, x: Variable, windows: list[list[int]], shape: Iterable[int], counts: Numbers | None) -> Variable:
        """Sums over windows of input elements, then divided by the counts if there are any."""
        ones = {len(window): [1] * len(window) for window in windows}
        total = self.linear(x, [(window, ones[len(window)], 0) for window in windows], 1, 1, shape)
        if counts is None:
            return total
        common = lcm(*counts)
        rows: list[Row] = [(range(i, i + 1), [common // count], 0) for i, count in enumerate(counts)]
        return self.linear(total, rows, common, 1, total.shape)

    # ---- operators: movement

    def op_constant(self, node: Node) -> Value:
        need(len(node.attributes) == 1 and not node.inputs, f"{node} must hold exactly one value")
        name = next(iter(node.attributes))
        if name == "value":
            return node.take("value", 4)  # type: ignore[no-any-return]
        if name in ("value_int", "value_ints"):
            found = node.take(name, 2 if name == "value_int" else 7)
            return Constant((len(found),), found) if name == "value_ints" else Constant((), [found])
        need(name in ("value_float", "value_floats"), f"{node}: attribute {name!r} is outside the format")
        need(self.model.kind in (0, 1), "the model mixes floating types")
        self.model.kind = 1
        found = node.take(name, 1 if name == "value_float" else 6)
        shape, items = ((len(found),), found) if name == "value_floats" else ((), [found])
        return checked(Constant(shape, items, 1), str(node))

    def op_same(self, node: Node) -> Value:
        if node.operator == "Dropout":
            node.known("ratio", "seed")
            node.count(1, 3)
            if node.get(1) is not None:
                node.constant(1)
            if node.get(2) is not None:
                need(list(node.constant(2).items) == [0], f"{node} is in training mode")
        else:
            node.known()
            node.count(1, 1)
        value = node.value()
        return Variable(value.shape, value.layer) if isinstance(value, Variable) else value

    def op_cast(self, node: Node) -> Value:
        node.known("to")
        node.count(1, 1)
        value, to = node.value(), node.take("to", 2, 0)
        if isinstance(value, Variable) or (isinstance(value, Constant) and value.kind):
            need(to == self.model.kind, f"{node}: floating numbers can be cast to their own type only")
            return Variable(value.shape, value.layer) if isinstance(value, Variable) else value
        need(to in (6, 7), f"{node}: integers can be cast to INT32 and INT64 only")
        if isinstance(value, Constant) and to == 6:
            need(all(-(1 << 31) <= item < 1 << 31 for item in value.items), f"{node}: a constant beyond INT32")
        return value

    def op_shape(self, node: Node) -> Value:
        node.known("start", "end")
        node.count(1, 1)
        sizes = list(node.value().shape[node.take("start", 2, 0) : node.take("end", 2)])
        return Constant((len(sizes),), sizes)

    def op_reshape(self, node: Node) -> Value:
        node.count(1, 2)
        value = node.value()
        shape, rank, size = list(value.shape), len(value.shape), prod(value.shape)
        if node.operator == "Flatten":
            node.known("axis")
            axis = node.take("axis", 2, 1)
            axis = rank if axis == rank else node.axis(axis, rank)
            shape = [prod(shape[:axis]), prod(shape[axis:])]
        elif node.operator == "Squeeze":
            node.known("axes")
            axes = node.axes(1, rank)
            axes = [axis for axis in range(rank) if shape[axis] == 1] if axes is None else axes
            need(all(shape[axis] == 1 for axis in axes), f"{node}: an axis is not of size 1")
            shape = [length for axis, length in enumerate(shape) if axis not in axes]
        elif node.operator == "Unsqueeze":
            node.known("axes")
            wanted = node.take("axes", 7) or node.constant(1).integers("axes")
            for axis in node.axes(1, rank + len(wanted)) or []:
                shape.insert(axis, 1)
        else:
            node.known("allowzero")
            wanted = node.constant(1).integers("a shape")
            need(not (node.take("allowzero", 2, 0) and 0 in wanted), f"{node}: empty shapes are outside the format")
            need(all(n >= -1 for n in wanted) and wanted.count(-1) <= 1, f"{node}: impossible shape {wanted}")
            need(all(n or i < rank for i, n in enumerate(wanted)), f"{node}: impossible shape {wanted}")
            shape = [n or value.shape[i] for i, n in enumerate(wanted)]
            if -1 in shape:
                rest = -prod(shape)
                need(rest > 0 and size % rest == 0, f"{node}: impossible shape {wanted}")
                shape[shape.index(-1)] = size // rest
        need(prod(shape) == size and len(shape) <= 8, f"{node}: shape {tuple(shape)} for {size} elements")
        if isinstance(value, Variable):
            return Variable(tuple(shape), value.layer)
        if isinstance(value, Tokens):
            return Tokens(tuple(shape), value.positions)
        return Constant(tuple(shape), value.items, value.kind, value.computed)

    def op_transpose(self, node: Node) -> Value:
        node.known("perm")
        node.count(1, 1)
        value = node.value()
        rank = len(value.shape)
        order = node.take("perm", 7, list(range(rank))[::-1])
        need(sorted(order) == list(range(rank)), f"{node}: perm {order} for rank {rank}")
        strides, shape = strides_of(value.shape), [value.shape[axis] for axis in order]
        return self.moved(value, walk(shape, [strides[axis] for axis in order]), shape)

    def op_gather(self, node: Node) -> Value:
        node.known("axis")
        node.count(2, 2)
        value, where = node.value(0), node.value(1)
        axis = node.axis(node.take("axis", 2, 0), len(value.shape))
        if isinstance(where, Tokens):
            if not isinstance(value, Constant) or not value.kind or len(value.shape) != 2 or axis:
                raise Unusable(f"{node}: tokens can only pick rows of a constant floating table")
            need(not value.computed, f"{node}: the table is computed from other constants")
            rows, width = value.shape
            self.rows = min(self.rows, rows)
            below = max((item.as_integer_ratio()[1] for item in value.items), default=1)
            layer = Embedding((), len(where.positions) * width, below, value, where.positions)
            return self.put(layer, (*where.shape, width))
        indices = node.constant(1).integers("indices")
        size, inner = value.shape[axis], prod(value.shape[axis + 1 :])
        need(all(-size <= i < size for i in indices), f"{node}: an index is out of range")
        outer = prod(value.shape[:axis])
        need(outer * len(indices) * inner <= MAX_SHAPE, f"{node}: the result is too large")
        index = [(a * size + i % size) * inner + b for a in range(outer) for i in indices for b in range(inner)]
        return self.moved(value, index, value.shape[:axis] + where.shape + value.shape[axis + 1 :])

    def op_slice(self, node: Node) -> Value:
        node.known()
        node.count(3, 5)
        value = node.value()
        starts, ends = node.constant(1).integers("starts"), node.constant(2).integers("ends")
        axes = list(range(len(starts)))
        if node.get(3) is not None:
            axes = [node.axis(axis, len(value.shape)) for axis in node.constant(3).integers("axes")]
        steps = [1] * len(starts) if node.get(4) is None else node.constant(4).integers("steps")
        need(len(starts) == len(ends) == len(axes) == len(steps) == len(set(axes)), f"{node}: lists of unequal lengths")
        need(all(steps) and all(axis < len(value.shape) for axis in axes), f"{node}: a step of 0 or an axis too many")
        shape, strides, first = list(value.shape), strides_of(value.shape), 0
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            chosen = range(value.shape[axis])[slice(start, end, step)]
            need(len(chosen) > 0, f"{node}: an empty slice")
            first += chosen[0] * strides[axis]
            shape[axis], strides[axis] = len(chosen), strides[axis] * step
        return self.moved(value, walk(shape, strides, first), shape)

    def op_concat(self, node: Node) -> Value:
        node.known("axis")
        need(bool(node.inputs) and node.take("axis", 2) is not None, f"{node}: axis or inputs missing")
        parts = [node.value(i) for i in range(len(node.inputs))]
        rank = len(parts[0].shape)
        axis = node.axis(node.take("axis", 2), rank)
        outlines = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts if len(part.shape) == rank}
        need(len(outlines) == 1 and all(len(part.shape) == rank for part in parts), f"{node}: shapes do not fit")
        outer = prod(parts[0].shape[:axis])
        widths = [prod(part.shape[axis:]) for part in parts]
        places = [(k, a * w + i) for a in range(outer) for k, w in enumerate(widths) for i in range(w)]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        constants = [part for part in parts if isinstance(part, Constant)]
        if len(constants) == len(parts):
            need(len({part.kind for part in constants}) == 1, f"{node}: integers and floating numbers")
            items = [constants[k].items[i] for k, i in places]
            return Constant(tuple(shape), items, constants[0].kind, any(part.computed for part in constants))
        return self.gathered([self.fixed(part, node) for part in parts], places, shape)

    def op_pad(self, node: Node) -> Value:
        node.known("mode")
        node.count(2, 4)
        x, pads, rank = node.variable(), node.constant(1).integers("pads"), len(node.variable().shape)
        need(node.take("mode", 3, "constant") == "constant", f"{node}: only constant padding is in the format")
        axes = list(range(rank))
        if node.get(3) is not None:
            axes = [node.axis(axis, rank) for axis in node.constant(3).integers("axes")]
        need(len(pads) == 2 * len(axes) and min(pads, default=0) >= 0, f"{node}: impossible pads")
        need(len(set(axes)) == len(axes), f"{node}: an axis occurs twice")
        filler: Variable
        if node.get(2) is None:
            filler = self.put(Fixed((), 1, 1, [0]), (1,))
        else:
            need(len(node.constant(2).items) == 1, f"{node}: one value is needed")
            filler = self.fixed(node.constant(2), node)
        before, after = [0] * rank, [0] * rank
        for i, axis in enumerate(axes):
            before[axis], after[axis] = pads[i], pads[len(axes) + i]
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        need(prod(shape) <= MAX_SHAPE, f"{node}: shape {shape} is outside the limits")
        strides = strides_of(x.shape)
        places = []
        for at in product(*map(range, shape)):
            inside = [i - b for i, b in zip(at, before, strict=True)]
            held = all(0 <= i < n for i, n in zip(inside, x.shape, strict=True))
            places.append((0, sum(map(mul, inside, strides))) if held else (1, 0))
        return self.gathered([x, filler], places, shape)

    # ---- operators: arithmetic

    def op_arithmetic(self, node: Node) -> Value:
        node.known()
        node.count(2, 2)
        a, b, name = node.value(0), node.value(1), node.operator
        need(not isinstance(a, Tokens) and not isinstance(b, Tokens), f"{node}: tokens are not numbers")
        shape = broadcast(a.shape, b.shape)
        need(prod(shape) <= MAX_SHAPE, f"{node}: shape {shape} is outside the limits")
        if isinstance(a, Constant) and isinstance(b, Constant):
            return self.folded(node, a, b, shape)
        if isinstance(a, Variable) and isinstance(b, Variable):
            need(name in ("Add", "Sub"), f"{node}: two values that depend on tokens cannot be multiplied or divided")
            parts = [self.fixed(self.widened(value, shape), node) for value in (a, b)]
            size = prod(shape)
            both = self.gathered(parts, [(k, i) for k in (0, 1) for i in range(size)], (2, *shape))
            signs = [1, -1 if name == "Sub" else 1]
            return self.linear(both, [((i, size + i), signs, 0) for i in range(size)], 1, 1, shape)
        if name == "Add" and self.is_bias(a, b):
            return self.with_bias(node, *((a, b) if isinstance(a, Variable) else (b, a)))
        x, c = (a, b) if isinstance(a, Variable) else (b, a)
        x, c = self.widened(x, shape), self.widened(c, shape)
        if not isinstance(x, Variable) or not isinstance(c, Constant):
            raise Unusable(f"{node}: integers meet variables")
        numbers, scale = self.exact(c, node)
        zeros = [0] * len(numbers)
        if name == "Add":
            return self.scaled(x, Fraction(1), numbers, scale)
        if name == "Sub" and isinstance(a, Variable):
            return self.scaled(x, Fraction(1), [-n for n in numbers], scale)
        if name == "Sub":
            return self.scaled(x, Fraction(-1), numbers, scale)
        if name == "Mul":
            return self.linear(x, [(range(i, i + 1), [n], 0) for i, n in enumerate(numbers)], scale, 1, shape)
        need(isinstance(a, Variable), f"{node}: a constant divided by a variable")
        need(len(set(numbers)) == 1 and numbers[0] != 0, f"{node}: all divisors must be equal, and not 0")
        return self.scaled(x, Fraction(scale, numbers[0]), zeros, 1)

    @staticmethod
    def is_bias(a: Value, b: Value) -> bool:
        x, c = (a, b) if isinstance(a, Variable) else (b, a)
        if not isinstance(x, Variable) or not isinstance(c, Constant) or not x.product or not c.shape:
            return False
        return c.shape[-1] == x.shape[-1] == prod(c.shape) and len(c.shape) <= len(x.shape)

    def with_bias(self, node: Node, x: Value, c: Value) -> Variable:
        if not isinstance(x, Variable) or not isinstance(c, Constant):
            raise Unusable(f"{node}: not a product and a bias")
        layer = self.layers[x.layer]
        if not isinstance(layer, Linear):
            raise Unusable(f"{node}: not a product")
        numbers, bias_scale = self.exact(c, node)
        source = Variable(x.shape, layer.inputs[0])
        rows: list[Row] = [(at, weights, numbers[i % len(numbers)]) for i, (at, weights, _) in enumerate(layer.rows)]
        return self.linear(source, rows, layer.scale // layer.source_scale, bias_scale, x.shape)

    def folded(self, node: Node, a: Constant, b: Constant, shape: tuple[int, ...]) -> Constant:
        need(a.kind == b.kind, f"{node}: integers and floating numbers")
        xs = [a.items[i] for i in spread(a.shape, shape)]
        ys = [b.items[i] for i in spread(b.shape, shape)]
        if a.kind:
            xs, ys = list(map(Fraction, xs)), list(map(Fraction, ys))
        if node.operator == "Div":
            need(all(ys), f"{node}: division by 0")
            need(bool(a.kind) or min([0, *xs, *ys]) >= 0, f"{node}: integers below 0")
        run: Callable[[Any, Any], Any] = {
            "Add": lambda x, y: x + y,
            "Sub": lambda x, y: x - y,
            "Mul": lambda x, y: x * y,
            "Div": (lambda x, y: x / y) if a.kind else (lambda x, y: x // y),
        }[node.operator]
        items = list(map(run, xs, ys))
        need(bool(a.kind) or all(-(1 << 63) <= item < 1 << 63 for item in items), f"{node}: beyond 64 bits")
        return Constant(shape, items, a.kind, bool(a.kind))

    def op_neg(self, node: Node) -> Value:
        node.known()
        node.count(1, 1)
        x = node.variable()
        return self.scaled(x, Fraction(-1), [0] * prod(x.shape), 1)

    def op_batch_normalization(self, node: Node) -> Value:
        node.known("epsilon", "momentum", "training_mode")
        node.count(5, 5)
        x, parameters = node.variable(), [node.constant(i) for i in range(1, 5)]
        need(len(x.shape) >= 2 and len(node.outputs) == 1, f"{node}: impossible input or outputs")
        need(not node.take("training_mode", 2, 0), f"{node} is in training mode")
        need(all(c.kind and c.shape == x.shape[1:2] for c in parameters), f"{node}: parameters do not fit")
        epsilon = Fraction(node.take("epsilon", 1, unpack("f", struct.pack("<f", 1e-5))[0]))
        self.computed = True
        factors, offsets = [], []
        for scale, bias, mean, variance in zip(*(map(Fraction, c.items) for c in parameters), strict=True):
            need(variance + epsilon > 0, f"{node}: a variance that is not above 0")
            root = Fraction(isqrt((1 << 2 * GRID) // (variance + epsilon)), 1 << GRID)
            factors.append(scale * root)
            offsets.append(bias - mean * scale * root)
        weights, scale = Constant((), factors).exact()
        biases, bias_scale = Constant((), offsets).exact()
        area, channels = prod(x.shape[2:]), x.shape[1]
        at = [i // area % channels for i in range(prod(x.shape))]
        rows: list[Row] = [(range(i, i + 1), [weights[c]], biases[c]) for i, c in enumerate(at)]
        return self.linear(x, rows, scale, bias_scale, x.shape)

    def op_matmul(self, node: Node) -> Value:
        node.known()
        node.count(2, 2)
        x, w = node.variable(0), node.constant(1)
        need(len(x.shape) >= 2 and len(w.shape) == 2, f"{node}: needs a variable of rank >= 2 and a constant of rank 2")
        need(x.shape[-1] == w.shape[0], f"{node}: shapes {x.shape} and {w.shape}")
        numbers, scale = self.exact(w, node)
        deep, wide = w.shape
        columns = [numbers[m::wide] for m in range(wide)]
        starts = range(0, prod(x.shape), deep)
        rows: list[Row] = [(range(start, start + deep), column, 0) for start in starts for column in columns]
        return self.linear(x, rows, scale, 1, (*x.shape[:-1], wide), product=True)

    def op_gemm(self, node: Node) -> Value:
        node.known("alpha", "beta", "transA", "transB")
        node.count(2, 3)
        x, w = node.variable(0), node.constant(1)
        need(len(x.shape) == 2 and len(w.shape) == 2 and not node.take("transA", 2, 0), f"{node}: A is transposed")
        numbers, scale = self.exact(w, node)
        high, wide = w.shape
        turned = node.take("transB", 2, 0)
        need(turned in (0, 1), f"{node}: transB is {turned}, not 0 or 1")
        rows = (
            [numbers[m * wide : (m + 1) * wide] for m in range(high)]
            if turned
            else [numbers[m::wide] for m in range(wide)]
        )
        need(len(rows[0]) == x.shape[1], f"{node}: shapes {x.shape} and {w.shape}")
        alpha, beta = Fraction(node.take("alpha", 1, 1.0)), Fraction(node.take("beta", 1, 1.0))
        bias, bias_scale = [0] * len(rows), 1
        if node.get(2) is not None:
            c = node.constant(2)
            need(broadcast(c.shape, (x.shape[0], len(rows))) == (1, len(rows)), f"{node}: C of shape {c.shape}")
            bias, bias_scale = self.exact(c, node)
            bias = [bias[i] * beta.numerator for i in spread(c.shape, (1, len(rows)))]
        need(x.shape[0] == 1, f"{node}: A has more than one row")
        taken = range(len(rows[0]))
        weighted: list[Row] = [
            (taken, [n * alpha.numerator for n in row], b) for row, b in zip(rows, bias, strict=True)
        ]
        return self.linear(x, weighted, scale * alpha.denominator, bias_scale * beta.denominator, (1, len(rows)))

    # ---- operators: windows

    def spatial(
        self, node: Node, spatial: tuple[int, ...], kernel: Sequence[int]
    ) -> tuple[tuple[int, ...], list[list[int | None]]]:
        """Output sizes and, per output place, the spatial index under each kernel place (None: padding)."""
        rank = len(spatial)
        strides = node.take("strides", 7, [1] * rank)
        dilations = node.take("dilations", 7, [1] * rank)
        pads = node.take("pads", 7, [0] * 2 * rank)
        mode = node.take("auto_pad", 3, "NOTSET")
        need(mode in ("NOTSET", "VALID"), f"{node}: auto_pad {mode!r} is outside the format; write the pads out")
        pads = pads if mode == "NOTSET" else [0] * 2 * rank
        lists = (kernel, strides, dilations)
        need(
            all(len(item) == rank and min(item) > 0 for item in lists),
            f"{node}: impossible kernel, strides or dilations",
        )
        need(
            len(pads) == 2 * rank and min(pads) >= 0 and not node.take("ceil_mode", 2, 0),
            f"{node}: impossible pads or ceil_mode",
        )
        sizes = []
        along: list[list[list[int | None]]] = []
        for axis in range(rank):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            size = (spatial[axis] + pads[axis] + pads[rank + axis] - reach) // strides[axis] + 1
            need(size > 0, f"{node}: the window is larger than its input")
            need(size * kernel[axis] <= MAX_SHAPE, f"{node}: the windows are too many")
            sizes.append(size)
            rows: list[list[int | None]] = []
            for out in range(size):
                first = out * strides[axis] - pads[axis]
                places = [first + k * dilations[axis] for k in range(kernel[axis])]
                rows.append([i if 0 <= i < spatial[axis] else None for i in places])
            along.append(rows)
        need(prod(sizes) * prod(kernel) <= MAX_SHAPE, f"{node}: the windows are too many")
        steps = strides_of(spatial)
        windows: list[list[int | None]] = []
        for rows_at in product(*along):
            places_at = product(*rows_at)
            flat = [
                sum(-1 << 40 if i is None else i * step for i, step in zip(at, steps, strict=True)) for at in places_at
            ]
            windows.append([i if i >= 0 else None for i in flat])
        return tuple(sizes), windows

    def op_conv(self, node: Node) -> Value:
        node.known("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
        node.count(2, 3)
        x, w = node.variable(0), node.constant(1)
        rank = len(x.shape) - 2
        need(rank in (1, 2) and len(w.shape) == rank + 2 and x.shape[0] == 1, f"{node}: only 1-D and 2-D convolutions")
        kernel, groups = list(w.shape[2:]), node.take("group", 2, 1)
        need(node.take("kernel_shape", 7, kernel) == kernel, f"{node}: kernel_shape differs from the weights")
        need(
            groups > 0 and x.shape[1] == w.shape[1] * groups and w.shape[0] % groups == 0,
            f"{node}: channels do not fit",
        )
        sizes, windows = self.spatial(node, x.shape[2:], kernel)
        area, channels, outputs = prod(x.shape[2:]), w.shape[1], w.shape[0] // groups
        numbers, scale = self.exact(w, node)
        bias, bias_scale = [0] * w.shape[0], 1
        if node.get(2) is not None:
            need(node.constant(2).shape == (w.shape[0],), f"{node}: bias of shape {node.constant(2).shape}")
            bias, bias_scale = self.exact(node.constant(2), node)
        width = channels * prod(kernel)
        need(len(windows) * width * w.shape[0] <= MAX_SHAPE * 16, f"{node}: the windows are too many")
        rows: list[Row] = []
        for group in range(groups):
            origins = [(group * channels + c) * area for c in range(channels)]
            under = [[None if i is None else origin + i for origin in origins for i in window] for window in windows]
            held = [[(k, i) for k, i in enumerate(places) if i is not None] for places in under]
            places = [[i for _, i in pairs] for pairs in held]
            for m in range(group * outputs, (group + 1) * outputs):
                weights = numbers[m * width : (m + 1) * width]
                for at, pairs in zip(places, held, strict=True):
                    rows.append((at, weights if len(at) == width else [weights[k] for k, _ in pairs], bias[m]))
        return self.linear(x, rows, scale, bias_scale, (1, w.shape[0], *sizes))

    def reduction(self, node: Node) -> tuple[Variable, list[list[int]], list[int]]:
        """The input, the window of every output element, and the output shape of a Reduce operator."""
        node.known("axes", "keepdims", "noop_with_empty_axes")
        node.count(1, 2)
        x, rank = node.variable(), len(node.variable().shape)
        axes, keep = node.axes(1, rank), node.take("keepdims", 2, 1)
        if not axes:
            axes = [] if node.take("noop_with_empty_axes", 2, 0) else list(range(rank))
        strides, rest = strides_of(x.shape), [axis for axis in range(rank) if axis not in axes]
        starts = walk([x.shape[axis] for axis in rest], [strides[axis] for axis in rest])
        inside = walk([x.shape[axis] for axis in axes], [strides[axis] for axis in axes])
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
        return x, [[at + i for i in inside] for at in starts], shape

    def pooling(self, node: Node) -> tuple[Variable, list[list[int]], list[int], int]:
        """The input, the windows without padding, the output shape, and the size of the kernel."""
        x = node.variable()
        need(len(x.shape) in (3, 4), f"{node}: only 1-D and 2-D pooling")
        node.count(1, 1)
        area = prod(x.shape[2:])
        if node.operator.startswith("Global"):
            node.known()
            sizes, windows = (1,) * (len(x.shape) - 2), [list(range(area))]
            return (
                x,
                [[c * area + i for i in w] for c in range(x.shape[1]) for w in windows],
                [*x.shape[:2], *sizes],
                area,
            )
        kernel = node.take("kernel_shape", 7, [])
        sizes, padded = self.spatial(node, x.shape[2:], kernel)
        need(x.shape[1] * len(padded) * prod(kernel) <= MAX_SHAPE, f"{node}: the windows are too many")
        windows = [[i for i in window if i is not None] for window in padded]
        need(all(windows), f"{node}: a window lies in the padding")
        shape = [*x.shape[:2], *sizes]
        return x, [[c * area + i for i in w] for c in range(x.shape[1]) for w in windows], shape, prod(kernel)

    def op_reduce(self, node: Node) -> Value:
        x, windows, shape = self.reduction(node)
        if node.operator == "ReduceMax":
            return self.maximum(node, x, windows, shape)
        return self.summed(x, windows, shape, list(map(len, windows)) if node.operator == "ReduceMean" else None)

    def op_pool(self, node: Node) -> Value:
        common = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
        if node.operator == "MaxPool":
            node.known(*common, "storage_order")
            need(not node.take("storage_order", 2, 0), f"{node}: storage_order is outside the format")
        elif node.operator == "AveragePool":
            node.known(*common, "count_include_pad")
            need(set(node.take("dilations", 7, [1])) == {1}, f"{node}: dilations are outside the format")
        x, windows, shape, area = self.pooling(node)
        if node.operator in ("MaxPool", "GlobalMaxPool"):
            return self.maximum(node, x, windows, shape)
        padded = node.take("count_include_pad", 2, 0)
        return self.summed(x, windows, shape, [area if padded else len(window) for window in windows])

    # ---- operators: nonlinear

    def op_rectifier(self, node: Node) -> Value:
        node.known(*(["alpha"] if node.operator == "LeakyRelu" else []))
        node.count(1, 1)
        x, alpha = node.variable(), Fraction(0)
        if node.operator == "LeakyRelu":
            default = struct.unpack("<f", struct.pack("<f", 0.01))[0]
            alpha = Fraction(node.take("alpha", 1, default))
        need(0 <= alpha <= 1, f"{node}: alpha {float(alpha)} is outside [0, 1]")
        above, below = alpha.as_integer_ratio()
        layer = Rectifier((x.layer,), prod(x.shape), self.scale(x) * below, node.number, above, below)
        return self.put(layer, x.shape)

    def maximum(self, node: Node, x: Variable, windows: list[list[int]], shape: Iterable[int]) -> Variable:
        return self.put(Maximum((x.layer,), len(windows), self.scale(x), node.number, windows), shape)

    def op_max(self, node: Node) -> Value:
        node.known()
        values = [node.value(i) for i in range(len(node.inputs))]
        need(
            len(values) >= 2 and any(isinstance(v, Variable) for v in values), f"{node}: needs two inputs, one variable"
        )
        shape = values[0].shape
        for value in values[1:]:
            shape = broadcast(shape, value.shape)
        size = prod(shape)
        need(size * len(values) <= MAX_SHAPE, f"{node}: shape {shape} is outside the limits")
        parts = [self.fixed(self.widened(value, shape), node) for value in values]
        places = [(k, i) for k in range(len(parts)) for i in range(size)]
        together = self.gathered(parts, places, (len(places),))
        return self.maximum(node, together, [list(range(i, len(places), size)) for i in range(size)], shape)

    def op_head(self, node: Node) -> Value:
        node.known(*(["axis"] if "oftmax" in node.operator else []))
        node.count(1, 1)
        x = node.variable()
        need(node.axis(node.take("axis", 2, -1), len(x.shape)) == len(x.shape) - 1, f"{node}: axis is not the last")
        self.head = node.operator
        self.outputs_head = node.outputs[0] == self.model.output_name
        return Variable(x.shape, x.layer)


OPERATORS: dict[str, Callable[[Interpreter, Node], Value]] = {
    "Constant": Interpreter.op_constant,
    **dict.fromkeys(("Identity", "Dropout"), Interpreter.op_same),
    "Cast": Interpreter.op_cast,
    "Shape": Interpreter.op_shape,
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), Interpreter.op_reshape),
    "Transpose": Interpreter.op_transpose,
    "Gather": Interpreter.op_gather,
    "Slice": Interpreter.op_slice,
    "Concat": Interpreter.op_concat,
    "Pad": Interpreter.op_pad,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), Interpreter.op_arithmetic),
    "Neg": Interpreter.op_neg,
    "BatchNormalization": Interpreter.op_batch_normalization,
    "MatMul": Interpreter.op_matmul,
    "Gemm": Interpreter.op_gemm,
    "Conv": Interpreter.op_conv,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax"), Interpreter.op_reduce),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool"), Interpreter.op_pool),
    **dict.fromkeys(("Relu", "LeakyRelu"), Interpreter.op_rectifier),
    "Max": Interpreter.op_max,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Sigmoid", "Tanh"), Interpreter.op_head),
}


# ------------------------------------------------------------------------------------------------ regions and words

Group = tuple[frozenset[int], int, int]


class Box(NamedTuple):
    """Bounds of the inputs of nonlinear layers, and what `Maximum.pick` says of them."""

    inputs: dict[int, Bounds]
    picks: dict[int, list[tuple[int, bool, int]]]


class Words:
    """A set of sentences: a mask of choices for every swappable position, and groups of positions with swap ranges."""

    def __init__(self, space: Space, masks: tuple[int, ...], groups: tuple[Group, ...]) -> None:
        self.space = space
        self.masks = masks
        self.cut: dict[int, tuple[int, int]] = {}
        rows = [space.gains(i, mask) for i, mask in enumerate(masks)]
        self.ups, self.downs = [up for up, _ in rows], [down for _, down in rows]
        self.steps: list[tuple[list[int], list[int], list[int], int, int]] = []
        left = [i for i, mask in enumerate(masks) if mask != 1]
        open_steps: list[tuple[frozenset[int], int]] = []
        for members, low, high in sorted(groups, key=lambda group: len(group[0])):
            inside = [i for i in left if space.positions[i] in members]
            left = [i for i in left if space.positions[i] not in members]
            children = [step for held, step in open_steps if held <= members]
            open_steps = [(held, step) for held, step in open_steps if not held <= members]
            open_steps.append((members, len(self.steps)))
            forced = [i for i in inside if not masks[i] & 1]
            self.steps.append(([i for i in inside if masks[i] & 1], forced, children, low, high))
        self.free = [bool(mask & 1) for mask in masks]
        self.forced = self.free.count(False)
        self.spare = self.steps[-1][4] - self.forced
        self.simple = len(self.steps) == 1 and self.steps[0][3] <= self.forced
        self.empty = self.best([0] * len(masks)) is None

    def best(self, gains: Sequence[int], at: Sequence[int] | None = None) -> int | None:
        """The greatest total of gains over sets of swapped positions that the region allows; None if there is none.

        Gains belong to the swappable positions `at` (all in order when it is not given) and are 0 elsewhere.
        """
        if self.simple:
            if self.spare < 0:
                return None
            pairs = list(zip(range(len(gains)) if at is None else at, gains, strict=True))
            useful = [gain for i, gain in pairs if gain > 0 and self.free[i]]
            if len(useful) > self.spare:
                useful = sorted(useful, reverse=True)[: self.spare]
            return sum(useful) + (sum(gain for i, gain in pairs if not self.free[i]) if self.forced else 0)
        if at is not None:
            full = [0] * len(self.masks)
            for i, gain in zip(at, gains, strict=True):
                full[i] = gain
            gains = full
        done: list[tuple[int, int, list[int]]] = []
        for free, forced, children, low, high in self.steps:
            swaps, total = len(forced), sum(gains[i] for i in forced)
            increments = [gains[i] for i in free]
            for child in children:
                swaps, total = swaps + done[child][0], total + done[child][1]
                increments += done[child][2]
            increments.sort(reverse=True)
            must = max(low - swaps, 0)
            if must > len(increments) or swaps + must > high:
                return None
            total += sum(increments[:must])
            done.append((swaps + must, total, increments[must : high - swaps]))
        return done[-1][1] + sum(g for g in done[-1][2] if g > 0)

    def sentences(self, only_whole: bool = False) -> int:
        """How many sentences there are; with `only_whole` the ranges of smaller groups are left out of account."""
        able = sum(mask != 1 for mask in self.masks)
        require(able * min(able, self.steps[-1][4]) <= MAX_COUNTING, "too many positions to count sentences")
        done: list[list[int]] = []
        for step, (free, forced, children, low, high) in enumerate(self.steps):
            counts = [1]
            for i in free + forced:
                alternatives = (self.masks[i] >> 1).bit_count()
                stays = self.masks[i] & 1
                pairs = zip([*counts, 0], [0, *counts], strict=True)
                counts = [stays * same + alternatives * fewer for same, fewer in pairs][: self.steps[-1][4] + 1]
            for child in children:
                joined = [0] * (len(counts) + len(done[child]) - 1)
                for a, x in enumerate(counts):
                    for b, y in enumerate(done[child]):
                        joined[a + b] += x * y
                counts = joined
            if not only_whole or step == len(self.steps) - 1:
                counts = [n if low * (not only_whole) <= m <= high else 0 for m, n in enumerate(counts)]
            done.append(counts)
        return sum(done[-1])

    def element(self, e: int) -> tuple[int, int]:
        """Bounds of an element of the cut, on the grid."""
        if e not in self.cut:
            at, offsets = self.space.touching[e]
            up = self.best([self.ups[i][offset] for i, offset in zip(at, offsets, strict=True)], at)
            down = self.best([self.downs[i][offset] for i, offset in zip(at, offsets, strict=True)], at)
            require(up is not None and down is not None, "bounds of an empty region")
            base, scale = self.space.base[e], self.space.scales[e]
            self.cut[e] = ((base - (down or 0)) << GRID) // scale, ceiling((base + (up or 0)) << GRID, scale)
        return self.cut[e]


@dataclass(frozen=True)
class Region:
    """What a node of the tree has to prove: sentences, phases, rivals; and the multipliers set above it."""

    masks: tuple[int, ...]
    groups: tuple[Group, ...]
    rivals: tuple[int, ...]
    depth: int = 0
    phases: dict[tuple[int, int], int] = field(default_factory=dict)
    slopes: dict[tuple[int, int], int] = field(default_factory=dict)
    betas: dict[tuple[int, int], int] = field(default_factory=dict)
    joint: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    sliced: bool = False


class Space:
    """The swaps of one text seen by one network: shared by all leaves of a certificate."""

    def __init__(self, network: Network, choices: list[list[int]], label: int) -> None:
        self.network = network
        self.choices = choices
        self.label = label
        self.positions = [p for p, options in enumerate(choices) if len(options) > 1]
        self.index = {p: i for i, p in enumerate(self.positions)}
        highest = max(max(options) for options in choices)
        require(highest < network.vocabulary_rows, f"token {highest} is beyond the embedding")
        self.original = [options[0] for options in choices]
        self.base = network.evaluate_cut(self.original)
        self.scales = [network.layers[n].scale for n in network.cut for _ in range(network.layers[n].size)]
        self.touching: list[tuple[Numbers, Numbers]] = [([], []) for _ in self.base]
        self.touched: list[list[int]] = []
        self.offsets: list[dict[int, int]] = []
        self.known_rises: dict[tuple[tuple[int, int], ...], list[dict[int, int]]] = {}
        self.deltas: list[list[Numbers]] = []
        self.moves: list[list[Numbers]] = []
        moves = sum(len(network.touched.get(p, [])) * len(choices[p]) for p in self.positions)
        require(moves <= MAX_MOVES, "too many choices for a network of this size")
        for i, p in enumerate(self.positions):
            touched = network.touched.get(p, [])
            for offset, e in enumerate(touched):
                self.touching[e][0].append(i)
                self.touching[e][1].append(offset)
            deltas = [network.embedding_delta(p, choices[p][0], token) for token in choices[p]]
            kernels = network.kernels.get(p, [])
            self.touched.append(touched)
            self.offsets.append({e: offset for offset, e in enumerate(touched)})
            self.deltas.append(deltas)
            self.moves.append([[sum(map(mul, kernel, delta)) for kernel in kernels] for delta in deltas])
        self.known_gains: dict[tuple[int, int], tuple[Numbers, Numbers]] = {}
        self.known_words: dict[tuple[tuple[int, ...], tuple[Group, ...]], Words] = {}
        self.whole: Numbers = []

    def gains(self, i: int, mask: int) -> tuple[Numbers, Numbers]:
        """For each element position i touches: the most a swap within the mask adds, and the most it takes away."""
        if (i, mask) not in self.known_gains:
            moves = [move for c, move in enumerate(self.moves[i]) if c and mask >> c & 1]
            columns = list(zip(*moves, strict=True))
            still = [0] * len(self.touched[i])
            rows = ([max(column) for column in columns], [-min(column) for column in columns])
            self.known_gains[(i, mask)] = rows if moves else (still, still)
        return self.known_gains[(i, mask)]

    def words(self, masks: tuple[int, ...], groups: tuple[Group, ...]) -> Words:
        key = (masks, groups)
        if key not in self.known_words:
            if len(self.known_words) >= 32:
                del self.known_words[next(iter(self.known_words))]
            self.known_words[key] = Words(self, masks, groups)
        return self.known_words[key]

    # ---- the linear recipe

    def bounds(self, words: Words, phases: dict[tuple[int, int], int]) -> Box | None:
        """Bounds of every input element of every nonlinear layer; None if no sentence has these phases."""
        box = Box({}, {})
        found = box.inputs
        layers = self.network.layers
        for n, layer in self.network.nonlinear:
            here: Bounds = []
            for origin, i in self.network.traces[n]:
                source = layers[origin]
                if isinstance(source, Fixed):
                    value = source.numbers[i] << GRID
                    here.append((value // source.scale, ceiling(value, source.scale)))
                elif isinstance(source, Rectifier):
                    here.append(source.image(*found[origin][i]))
                elif isinstance(source, Maximum):
                    window = source.windows[i]
                    here.append((max(found[origin][j][0] for j in window), max(found[origin][j][1] for j in window)))
                elif self.network.affine[origin]:
                    here.append(words.element(self.network.start[origin] + i))
                else:
                    low, low_scale = self.minimum(words, {origin: {i: 1}}, source.scale, box)
                    high, high_scale = self.minimum(words, {origin: {i: -1}}, source.scale, box)
                    here.append((low // low_scale, -(high // high_scale)))
            for (m, i), sign in phases.items():
                if m == n:
                    low, high = here[i]
                    low, high = (max(low, 0), high) if sign > 0 else (low, min(high, 0))
                    if low > high:
                        return None
                    here[i] = low, high
            found[n] = here
            if isinstance(layer, Maximum):
                box.picks[n] = layer.pick(here)
        return box

    def minimum(
        self,
        words: Words,
        pending: Coefficients,
        scale: int,
        bounds: Box,
        region: Region | None = None,
    ) -> tuple[int, int]:
        """(number, scale): number / scale, in units of the grid, is at most sum pending * numbers / scale everywhere.

        The multipliers of the region are used if it is given: beta / 2**30 times a pre-activation of known sign added.
        """
        network, constant = self.network, 0
        slopes, joint, betas = {}, {}, []
        if region is not None:
            slopes, phases = region.slopes, region.phases
            joint = {key: found for key, found in region.joint.items() if key not in phases}
            betas = [(n, i, -phases[n, i] * b) for (n, i), b in region.betas.items() if b and (n, i) in phases]
        if betas:
            scale <<= 30
            pending = {n: {i: c << 30 for i, c in given.items()} for n, given in pending.items()}
        for n in reversed(network.later):
            layer = network.layers[n]
            given = pending.pop(n, None)
            if given and isinstance(layer, Nonlinear):
                pending = {m: {i: c << SLOPE_BITS for i, c in old.items()} for m, old in pending.items()}
                scale, constant = scale << SLOPE_BITS, constant << SLOPE_BITS
                target, here = pending.setdefault(layer.inputs[0], {}), bounds.inputs[n]
                source_scale = network.layers[layer.inputs[0]].scale
                groups: dict[int, list[tuple[int, int, int]]] = {}
                for i, c in given.items():
                    if isinstance(layer, Rectifier) and c < 0 and (n, i) in joint:
                        group, slope = joint[n, i]
                        line = layer.below * slope << (SLOPE_BITS - 6)
                        add_to(target, i, c * line)
                        off, on = (-c * ((end << SLOPE_BITS) - line) for end in (layer.above, layer.below))
                        groups.setdefault(group, []).append((network.start[layer.inputs[0]] + i, off, on))
                    elif isinstance(layer, Rectifier):
                        coefficient, rest = layer.relax(c, *here[i], slopes.get((n, i)), source_scale)
                        add_to(target, i, coefficient)
                        constant += rest
                    elif c:
                        element, certain, top = bounds.picks[n][i]
                        if c > 0 or certain:
                            add_to(target, element, c << SLOPE_BITS)
                        else:
                            constant += c * source_scale * top << SLOPE_BITS
                constant -= sum(self.joint_rise(words, members) for members in groups.values()) << GRID
            elif given:
                constant += layer.backward(given, pending) << GRID
            for m, i, beta in betas:
                if m == n:
                    source = layer.inputs[0]
                    unit, rest = divmod(scale, network.layers[source].scale << 30)
                    require(rest == 0, "a beta on a layer the logits do not depend on")
                    add_to(pending.setdefault(source, {}), i, beta * unit)
        coefficients = [0] * network.cut_size
        for n, given in pending.items():
            for i, c in given.items():
                coefficients[network.start[n] + i] += c
        gains = []
        for i, mask in enumerate(words.masks):
            if mask == 1:
                gains.append(0)
                continue
            local = [coefficients[e] for e in self.touched[i]]
            steps = self.moves[i]
            columns = self.network.columns.get(self.positions[i], [])
            if local.count(0) * 2 > len(local):
                kept = [(offset, c) for offset, c in enumerate(local) if c]
                steps = [[step[offset] for offset, _ in kept] for step in steps]
                local = [c for _, c in kept]
            elif len(columns) < mask.bit_count():
                local = [sum(map(mul, local, column)) for column in columns]
                steps = self.deltas[i]
            gains.append(-min([sum(map(mul, local, step)) for c, step in enumerate(steps) if c and mask >> c & 1]))
        best = words.best(gains)
        require(best is not None, "bounds of an empty region")
        return ((sum(map(mul, coefficients, self.base)) - (best or 0)) << GRID) + constant, scale

    def joint_rise(self, words: Words, members: list[tuple[int, int, int]]) -> int:
        """The maximum over the words of the sum, over (element of the cut, a, b), of max(a x, b x), where a <= b.

        It is the greatest of the maxima with a or b chosen for each element, which are affine in the words. Where x has
        one sign the choice is plain; the others are tried in the order of what they can reach at most.
        """
        patterns: list[tuple[int, tuple[tuple[int, int], ...]]] = [(0, ())]
        for e, off, on in members:
            low, high = words.element(e)
            ends = [on] if low >= 0 else [off] if high <= 0 else [off, on]
            reach = [(c, max(c * low, c * high) * self.scales[e]) for c in ends]
            patterns = [(most + add, (*chosen, (e, c))) for most, chosen in patterns for c, add in reach]
        highest: int | None = None
        for most, function in sorted(patterns, reverse=True):
            if highest is not None and most <= highest << GRID:
                break
            best = words.best(self.rises(words, function))
            require(best is not None, "bounds of an empty region")
            value = sum(c * self.base[e] for e, c in function) + (best or 0)
            highest = value if highest is None else max(highest, value)
        return highest or 0

    def rises(self, words: Words, function: tuple[tuple[int, int], ...]) -> list[int]:
        """What a swap within the mask adds at most to a sum of c * (element e), for every swappable position."""
        if len(self.known_rises) > 4096:
            self.known_rises.clear()
        known = self.known_rises.setdefault(function, [{1: 0} for _ in self.positions])
        for i, mask in enumerate(words.masks):
            if mask not in known[i]:
                places = [(self.offsets[i][e], c) for e, c in function if e in self.offsets[i]]
                moves = [move for choice, move in enumerate(self.moves[i]) if choice and mask >> choice & 1]
                known[i][mask] = max([sum([c * move[at] for at, c in places]) for move in moves])
        return [rise[mask] for rise, mask in zip(known, words.masks, strict=True)]

    # ---- float32

    def affine_rounding(self) -> dict[int, Rounding]:
        """(A, e) of the layers that are affine in the words, over all choices of the text."""
        found: dict[int, Rounding] = {}
        for n, layer in enumerate(self.network.layers):
            if not self.network.affine[n]:
                continue
            if isinstance(layer, Embedding):
                magnitudes = []
                for p in layer.positions:
                    rows = [layer.row(token) for token in self.choices[p]]
                    magnitudes += [ceiling(max(map(abs, c)) << GRID, layer.scale) for c in zip(*rows, strict=True)]
                found[n] = magnitudes, [0] * layer.size
            elif isinstance(layer, Fixed):
                found[n] = [ceiling(abs(x) << GRID, layer.scale) for x in layer.numbers], [0] * layer.size
            else:
                found[n] = layer.rounding([found[i] for i in layer.inputs])
        return found

    def prepare_float32(self) -> None:
        """The whole-space pass: rounding errors of the logits for every sentence, and the conditions they need."""
        if self.whole:
            return
        require(not self.network.no_float32, f"no float32 claim is possible: {self.network.no_float32}")
        self.rounding = self.affine_rounding()
        self.whole = self.errors(None)
        for layer in self.network.layers:
            fits = layer.limit <= 1 << (40 + GRID)
            if isinstance(layer, Linear):
                fits = fits and layer.largest() <= 1 << 40
            require(fits, "no float32 claim is possible: weights, sums or numbers of terms are too large")

    def errors(self, bounds: dict[int, Bounds] | None) -> Numbers:
        """Rounding errors of the logits, given bounds of the inputs of nonlinear layers."""
        found = dict(self.rounding)
        for n in self.network.later:
            layer = self.network.layers[n]
            if isinstance(layer, Nonlinear):
                source = found[layer.inputs[0]]
                here = bounds[n] if bounds is not None else [(-a, a) for a in source[0]]
                found[n] = layer.rounded(source, here)
            else:
                found[n] = layer.rounding([found[i] for i in layer.inputs])
        return found[len(self.network.layers) - 1][1]

    def sentence_errors(self, values: dict[int, Numbers]) -> Numbers:
        bounds: dict[int, Bounds] = {}
        for n, layer in self.network.nonlinear:
            source = layer.inputs[0]
            scale = self.network.layers[source].scale
            bounds[n] = [((x << GRID) // scale, ceiling(x << GRID, scale)) for x in values[source]]
        return self.errors(bounds)

    def swapped(self, vector: Numbers, i: int, choice: int) -> Numbers:
        move, touched = self.moves[i][choice], self.touched[i]
        if len(touched) == len(vector):
            return list(map(add, vector, move))
        vector = vector.copy()
        for e, step in zip(touched, move, strict=True):
            vector[e] += step
        return vector


# ---------------------------------------------------------------------------------------------------------- the tree


class Tree:
    """Reads a proof tree in preorder and proves every leaf; the children of a split are made here."""

    def __init__(self, space: Space, data: bytes, rivals: Sequence[int], swaps: int, level: str, stop: float) -> None:
        self.space = space
        self.data = data
        self.at = 0
        self.rivals = tuple(rivals)
        self.swaps = swaps
        self.float32 = level == "float32"
        self.stop = stop
        self.enumerated = 0
        self.open_sentences = 0
        masks = tuple((1 << len(space.choices[p])) - 1 for p in space.positions)
        everywhere = frozenset(range(len(space.choices)))
        self.root = Region(masks, ((everywhere, 0, swaps),), self.rivals)
        if self.float32:
            space.prepare_float32()

    def check(self, may_be_open: bool) -> None:
        stack = [self.root]
        nodes = 0
        while stack:
            region = stack.pop()
            nodes += 1
            require(nodes <= MAX_TREE_NODES and region.depth <= MAX_DEPTH, "the tree is too large or too deep")
            self.look_at_the_clock()
            kind = self.byte()
            if kind in SPLITS:
                stack += reversed(SPLITS[kind](self, region))
            elif kind == 0:
                words = self.space.words(region.masks, region.groups)
                require(words.empty, "a leaf said to be empty is not")
            elif kind == 1:
                self.linear(region)
            elif kind == 2:
                self.enumerate(region)
            else:
                require(kind == 3, f"tree byte {kind} is not in version 1")
                require(may_be_open and not region.sliced, "an open leaf where none is allowed")
                self.open_sentences += self.space.words(region.masks, region.groups).sentences()
        require(self.at == len(self.data), "bytes after the end of the tree")

    def look_at_the_clock(self) -> None:
        require(time.monotonic() < self.stop, "not checked within the time allowed")

    # ---- bytes

    def byte(self) -> int:
        require(self.at < len(self.data), "the tree ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                require(
                    (byte > 0 or shift == 0) and value < 1 << 31, "a number in the tree is not minimal or too large"
                )
                return value
        raise Refused("a number in the tree is too large")

    def mask(self, bits: int) -> int:
        value = int.from_bytes(bytes(self.byte() for _ in range((bits + 7) // 8)), "little")
        require(value < 1 << bits, "a mask with bits beyond its options")
        return value

    def ascending(self, seen: int | None) -> int:
        step = self.number()
        require(seen is None or step > 0, "indices must ascend")
        return step if seen is None else seen + step

    def table(self, plain_relu: bool, highest: int) -> Iterator[tuple[tuple[int, int], int]]:
        """((layer, element), value) for every entry of a table of multipliers."""
        layers = self.number()
        require(layers > 0, "an empty table")
        last = -1
        for _ in range(layers):
            origin, entries = self.number(), self.number()
            require(origin > last and entries > 0, "a table out of order or empty")
            last = origin
            n, size = self.rectifier(origin, plain_relu)
            index = None
            for _ in range(entries):
                index = self.ascending(index)
                value = self.number()
                require(index < size and value <= highest, "a table entry out of range")
                yield (n, index), value

    def rectifier(self, origin: int, plain: bool) -> tuple[int, int]:
        found = self.space.network.by_origin.get(origin)
        if found is None or not isinstance(found[1], Rectifier) or (plain and found[1].above):
            raise Refused(f"node {origin} is not a {'Relu' if plain else 'rectifier'} the logits depend on")
        return found[0], found[1].size

    # ---- splits

    def split_words(self, region: Region) -> list[Region]:
        position = self.number()
        require(position in self.space.index, f"position {position} has nothing to split")
        i = self.space.index[position]
        chosen = self.mask(len(self.space.choices[position]))
        left, right = region.masks[i] & chosen, region.masks[i] & ~chosen
        require(left == chosen and left != 0 and right != 0, f"a split at position {position} that splits nothing")
        masks = region.masks
        return [changed(region, masks=(*masks[:i], side, *masks[i + 1 :])) for side in (left, right)]

    def split_phase(self, region: Region) -> list[Region]:
        n, size = self.rectifier(self.number(), True)
        key = n, self.number()
        require(key[1] < size and key not in region.phases, "a phase out of range or set twice")
        return [changed(region, phases={**region.phases, key: sign}, sliced=True) for sign in (-1, 1)]

    def split_budget(self, region: Region) -> list[Region]:
        count = self.number()
        require(0 < count <= len(self.space.choices), "a group of impossible size")
        members: list[int] = []
        for _ in range(count):
            members.append(self.ascending(members[-1] if members else None))
        require(members[-1] < len(self.space.choices), "a group beyond the text")
        group, bound = frozenset(members), self.number()
        low, high, others = 0, count, []
        for other in region.groups:
            if other[0] == group:
                low, high = other[1:]
                continue
            fits = group < other[0] or other[0] < group or not group & other[0]
            require(fits, "a group that overlaps another")
            others.append(other)
        left = (*others, (group, low, min(high, bound)))
        right = (*others, (group, max(low, bound + 1), high))
        return [changed(region, groups=side) for side in (left, right)]

    def split_rivals(self, region: Region) -> list[Region]:
        chosen = self.mask(len(self.rivals))
        named = tuple(r for i, r in enumerate(self.rivals) if chosen >> i & 1)
        left = tuple(r for r in region.rivals if r in named)
        right = tuple(r for r in region.rivals if r not in named)
        require(left == named and bool(left) and bool(right), "a split of rivals that splits nothing")
        return [changed(region, rivals=side, sliced=True) for side in (left, right)]

    def set_slopes(self, region: Region) -> list[Region]:
        return [changed(region, slopes={**region.slopes, **dict(self.table(False, 64))})]

    def set_betas(self, region: Region) -> list[Region]:
        exponent = self.number()
        require(exponent <= 30, "betas finer than 2**-30")
        new = {key: value << (30 - exponent) for key, value in self.table(True, (1 << 31) - 1)}
        return [changed(region, betas={**region.betas, **new})]

    def set_joint(self, region: Region) -> list[Region]:
        groups = self.number()
        require(groups > 0, "joint without groups")
        joint: dict[tuple[int, int], tuple[int, int]] = {}
        for group in range(groups):
            n, size = self.rectifier(self.number(), False)
            source = self.space.network.layers[n].inputs[0]
            require(self.space.network.affine[source], "joint groups need pre-activations that are affine in the words")
            entries, index = self.number(), None
            require(0 < entries <= MAX_JOINT, f"a joint group of {entries} elements")
            for _ in range(entries):
                index = self.ascending(index)
                slope = self.number()
                require(
                    index < size and slope <= 64 and (n, index) not in joint, "a joint element out of range or twice"
                )
                joint[n, index] = group, slope
        return [changed(region, joint=joint)]

    # ---- leaves

    def proven(self, number: int, scale: int, rival: int, error: int) -> bool:
        """Is number / scale, the margin in units of the grid, enough against this rival?"""
        if self.float32:
            return number > error * scale
        return number > 0 or (number == 0 and self.space.label < rival)

    def linear(self, region: Region) -> None:
        space, label = self.space, self.space.label
        words = space.words(region.masks, region.groups)
        if words.empty:
            return
        bounds = space.bounds(words, region.phases)
        if bounds is None:
            return
        last = len(space.network.layers) - 1
        scale = space.network.layers[last].scale
        local: Numbers = []
        for rival in region.rivals:
            pending = {last: {label: 1, rival: -1}}
            number, below = space.minimum(words, pending, scale, bounds, region)
            error = difference(space.whole, label, rival) if self.float32 else 0
            if self.proven(number, below, rival, error):
                continue
            if self.float32:
                local = local or space.errors(bounds.inputs)
                error = difference(local, label, rival)
            enough = self.float32 and self.proven(number, below, rival, error)
            require(enough, f"a linear leaf does not hold against class {rival}: margin {number / (below << GRID):.3g}")

    def enumerate(self, region: Region) -> None:
        space = self.space
        words = space.words(region.masks, region.groups)
        self.enumerated += words.sentences(only_whole=True)
        require(self.enumerated <= MAX_SENTENCES, "too many sentences to enumerate")
        whole = frozenset(range(len(space.choices)))
        inner = [(g, low, high) for g, low, high in region.groups if g != whole]
        budget = next((low, high) for g, low, high in region.groups if g == whole)
        masks = region.masks
        forced = [i for i, mask in enumerate(masks) if not mask & 1]
        order = forced + [i for i, mask in enumerate(masks) if mask & 1 and mask != 1]
        options = [[c for c in range(1, masks[i].bit_length()) if masks[i] >> c & 1] for i in order]
        visited = 0
        stack: list[tuple[int, Numbers, int, int, int, tuple[int, ...]]] = [(0, space.base, -1, 0, budget[1], ())]
        while stack:
            start, vector, i, choice, left, swapped = stack.pop()
            if i >= 0:
                vector = space.swapped(vector, i, choice)
                swapped = (*swapped, space.positions[i]) if inner else swapped
            if start >= len(forced) and budget[1] - left >= budget[0]:
                visited += 1
                if visited % 1024 == 0:
                    self.look_at_the_clock()
                if all(low <= len(g.intersection(swapped)) <= high for g, low, high in inner):
                    self.sentence(vector, region.rivals)
            if left:
                last = start + 1 if start < len(forced) else len(order)
                for at in range(start, last):
                    stack += [(at + 1, vector, order[at], c, left - 1, swapped) for c in options[at]]

    def sentence(self, vector: Numbers, rivals: tuple[int, ...]) -> None:
        space, label = self.space, self.space.label
        values = space.network.evaluate(vector)
        last = len(space.network.layers) - 1
        logits, scale = values[last], space.network.layers[last].scale
        for rival in rivals:
            margin = (logits[label] - logits[rival]) << GRID
            error = difference(space.whole, label, rival) if self.float32 else 0
            if self.proven(margin, scale, rival, error):
                continue
            if self.float32:
                local = space.sentence_errors(values)
                error = difference(local, label, rival)
            enough = self.float32 and self.proven(margin, scale, rival, error)
            require(enough, f"an enumerated sentence is not safe from class {rival}")


def difference(errors: Numbers, label: int, rival: int) -> int:
    """How far the difference of two float32 logits can be from the real one; a unit for reading subnormals as zero."""
    return errors[label] + errors[rival] + 1


def changed(region: Region, **news: Any) -> Region:
    return Region(**{**region.__dict__, "depth": region.depth + 1, **news})


SPLITS: dict[int, Callable[[Tree, Region], list[Region]]] = {
    4: Tree.split_words,
    5: Tree.split_phase,
    6: Tree.split_budget,
    7: Tree.split_rivals,
    8: Tree.set_slopes,
    9: Tree.set_betas,
    10: Tree.set_joint,
}


# --------------------------------------------------------------------------------------------------- the certificate

HASH = re.compile("[0-9a-f]{64}")
NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
DECIMAL = re.compile("0|[1-9][0-9]{0,5000}")
TEXT = re.compile("[A-Za-z0-9 ._+/=-]*")
NUMBER_OF_FILE = re.compile("([0-9]{6})[.]json")


def parse_canonical(data: bytes) -> Any:
    """The value of canonical JSON as FORMAT section 2 has it; anything else is refused."""
    require(len(data) <= MAX_CERTIFICATE, "the certificate is too large")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise Refused("the certificate is not ASCII") from None
    depth = 0
    for character in re.findall("[][{}]", text):
        depth += 1 if character in "[{" else -1
        require(0 <= depth <= 6, "the certificate is nested too deep or not balanced")

    def integer(digits: str) -> int:
        require(len(digits.lstrip("-")) <= 19, "an integer of more than 19 digits")
        return int(digits)

    def never(what: str) -> None:
        raise Refused(f"{what} is not allowed in a certificate")

    try:
        value = json.loads(text, parse_int=integer, parse_float=never, parse_constant=never)
    except (json.JSONDecodeError, RecursionError):
        raise Refused("the certificate is not JSON") from None
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is dict:
            stack += [*item, *item.values()]
        elif type(item) is list:
            stack += item
        elif type(item) is str:
            require(TEXT.fullmatch(item) is not None, "a string with characters outside the format")
        else:
            require(item is None or type(item) is int, "only integers, strings and null are allowed")
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    require(canonical == text, "the certificate is not in canonical form")
    return value


def keys(value: Any, what: str, *names: str) -> dict[str, Any]:
    require(
        type(value) is dict and sorted(value) == sorted(names), f"{what} must have exactly the keys {sorted(names)}"
    )
    return value  # type: ignore[no-any-return]


def whole_number(value: Any, what: str, low: int, high: int) -> int:
    require(type(value) is int and low <= value <= high, f"{what} must be an integer from {low} to {high}")
    return value  # type: ignore[no-any-return]


def matches(value: Any, pattern: re.Pattern[str], what: str) -> str:
    require(type(value) is str and pattern.fullmatch(value) is not None, f"{what} is not as it should be")
    return value  # type: ignore[no-any-return]


def items_of(value: Any, what: str) -> list[Any]:
    require(type(value) is list, f"{what} must be an array")
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Bound:
    """The files a certificate speaks of, with their hashes."""

    id: int
    model: tuple[str, str]
    tensors: tuple[tuple[str, str], ...]
    vocabulary: tuple[str, str] | None


@dataclass(frozen=True)
class Verdict:
    """An accepted certificate in numbers, and what it says in one plain sentence."""

    id: int
    low: int
    high: int | None
    level: str | None
    witness_levels: tuple[str, ...]
    sentence: str


def read_bound(certificate: Any) -> Bound:
    top = keys(
        certificate, "a certificate",
        "format", "version", "id", "model", "vocabulary", "text", "synonyms", "space", "choices", "label", "rivals",
        "lower", "open", "upper",
    )  # fmt: skip
    require(top["format"] == "swapproof certificate", "not a swapproof certificate")
    require(top["version"] == 1 and type(top["version"]) is int, "only version 1 is known")
    model = keys(top["model"], "model", "file", "sha256", "tensors")
    tensors = []
    for pair in items_of(model["tensors"], "tensors"):
        require(type(pair) is list and len(pair) == 2, "a tensor file is a pair of name and hash")
        tensors.append((matches(pair[0], NAME, "a tensor file"), matches(pair[1], HASH, "a tensor hash")))
    require([name for name, _ in tensors] == sorted({name for name, _ in tensors}), "tensor files must ascend")
    vocabulary = None
    if top["vocabulary"] is not None:
        entry = keys(top["vocabulary"], "vocabulary", "file", "sha256")
        vocabulary = matches(entry["file"], NAME, "vocabulary"), matches(entry["sha256"], HASH, "vocabulary hash")
    matches(top["text"], HASH, "the hash of the text")
    if top["synonyms"] is not None:
        matches(top["synonyms"], HASH, "the hash of the synonyms")
    names = matches(model["file"], NAME, "model"), matches(model["sha256"], HASH, "model hash")
    return Bound(whole_number(top["id"], "id", 0, (1 << 63) - 1), names, tuple(tensors), vocabulary)


def read_choices(top: dict[str, Any]) -> list[list[int]]:
    choices = items_of(top["choices"], "choices")
    require(0 < len(choices) <= MAX_POSITIONS, "an impossible number of positions")
    require(all(type(options) is list and 0 < len(options) <= MAX_POSITIONS for options in choices), "empty choices")
    require(sum(map(len, choices)) <= MAX_CHOICES, "too many choices")
    for options in choices:
        for token in options:
            whole_number(token, "a token", 0, (1 << 31) - 1)
        require(len(set(options)) == len(options), "a position lists a token twice")
    digest = hashlib.sha256(json.dumps(choices, separators=(",", ":")).encode()).hexdigest()
    require(top["space"] == digest, "the hash of the choices is another")
    return choices


def check_certificate(
    data: bytes, model: Model, vocabulary_sha256: str | None = None, seconds: float = SECONDS
) -> Verdict:
    """Check one certificate against a parsed model; the caller has hashed the vocabulary file, if there is one.

    Raises Refused when the certificate does not prove its claims, Unusable when the model is outside the format.
    """
    stop = time.monotonic() + seconds
    top = parse_canonical(data)
    bound = read_bound(top)
    require(bound.model[1] == model.sha256, "made for another model: the SHA-256 differs")
    require(dict(bound.tensors) == model.tensors, "made for other external tensors")
    require(bound.vocabulary is None or bound.vocabulary[1] == vocabulary_sha256, "made for another vocabulary")
    choices = read_choices(top)
    network = model.network(len(choices))
    label = whole_number(top["label"], "label", 0, network.classes - 1)
    rivals = [whole_number(r, "a rival", 0, network.classes - 1) for r in items_of(top["rivals"], "rivals")]
    require(bool(rivals) and rivals == sorted(set(rivals)) and label not in rivals, "impossible rivals")
    space = Space(network, choices, label)
    against = "the class" if len(rivals) == network.classes - 1 else f"the class to one of {rivals}"
    parts = []
    low, high, level = 0, None, None
    levels: tuple[str, ...] = ()
    require(any(top[name] is not None for name in ("lower", "open", "upper")), "a certificate that claims nothing")
    if top["lower"] is not None:
        entry = keys(top["lower"], "lower", "level", "recipe", "swaps", "tree")
        tree = read_tree(entry, space, rivals, stop)
        tree.check(may_be_open=False)
        level, low = entry["level"], entry["swaps"] + 1
        unbreakable = entry["swaps"] >= len(space.positions)
        extent = "however many swaps" if unbreakable else f"at most {swaps(entry['swaps'])}"
        parts.append(f"no sentence with {extent} changes {against} ({level})")
    if top["open"] is not None:
        entry = keys(top["open"], "open", "level", "recipe", "swaps", "tree", "covered", "total")
        require(top["lower"] is None or entry["swaps"] > top["lower"]["swaps"], "an open part that adds nothing")
        tree = read_tree(entry, space, rivals, stop)
        tree.check(may_be_open=True)
        total = space.words(tree.root.masks, tree.root.groups).sentences()
        covered, said = total - tree.open_sentences, entry["covered"]
        require(matches(entry["total"], DECIMAL, "total") == decimal(total), "the total number of sentences is another")
        require(matches(said, DECIMAL, "covered") == decimal(covered), "the number of sentences covered is another")
        extent = f"at most {swaps(entry['swaps'])}"
        parts.append(f"{said} of the {entry['total']} sentences with {extent} do not change it ({entry['level']})")
    if top["upper"] is not None:
        entry = keys(top["upper"], "upper", "levels", "swaps")
        high, levels = check_witness(entry, space, rivals)
        require(high >= low, "upper and lower contradict each other")
        how = ", ".join("replay as recorded, not checked" if name == "replay" else name for name in levels)
        found = f"a sentence with {swaps(high)} changes it" if high else "the text itself is answered wrongly"
        parts.append(f"{found} ({how})")
    if high is not None and low == high:
        parts.append(f"min_swaps = {high}")
    sentence = f"text {bound.id}, class {label}: " + "; ".join(parts)
    return Verdict(bound.id, low, high, level, levels, sentence)


def swaps(number: int) -> str:
    return f"{number} swap" if number == 1 else f"{number} swaps"


def decimal(number: int) -> str:
    require(number.bit_length() <= 16_000, "a count of more than 4,816 digits")
    return str(number) if number < 10**4000 else str(number // 10**4000) + str(number % 10**4000).zfill(4000)


def read_tree(entry: dict[str, Any], space: Space, rivals: list[int], stop: float) -> Tree:
    require(entry["level"] in ("real", "float32"), "the level must be real or float32")
    require(entry["recipe"] == "linear-1", "only the recipe linear-1 is known")
    most = whole_number(entry["swaps"], "swaps", 0, MAX_SWAPS)
    require(type(entry["tree"]) is str, "the tree must be base64")
    try:
        data = base64.b64decode(entry["tree"], validate=True)
    except ValueError:
        raise Refused("the tree is not base64") from None
    require(base64.b64encode(data).decode() == entry["tree"], "the tree is not canonical base64")
    return Tree(space, data, rivals, most, entry["level"], stop)


def check_witness(entry: dict[str, Any], space: Space, rivals: list[int]) -> tuple[int, tuple[str, ...]]:
    levels = tuple(items_of(entry["levels"], "levels"))
    allowed = ("real", "float32", "replay")
    require(bool(levels) and levels == tuple(name for name in allowed if name in levels), "impossible levels")
    vector, last_position = space.base, -1
    pairs = items_of(entry["swaps"], "swaps")
    for pair in pairs:
        require(type(pair) is list and len(pair) == 2, "a swap is a pair of position and token")
        position = whole_number(pair[0], "a position", last_position + 1, len(space.choices) - 1)
        token = whole_number(pair[1], "a token", 0, (1 << 31) - 1)
        require(token in space.choices[position][1:], f"token {token} is no swap at position {position}")
        vector = space.swapped(vector, space.index[position], space.choices[position].index(token))
        last_position = position
    values = space.network.evaluate(vector)
    last = len(space.network.layers) - 1
    logits, scale = values[last], space.network.layers[last].scale
    label = space.label
    if "real" in levels:
        beaten = any(logits[r] > logits[label] or (logits[r] == logits[label] and r < label) for r in rivals)
        require(beaten, "the witness changes nothing over the reals")
    if "float32" in levels:
        space.prepare_float32()
        local = space.sentence_errors(values)
        errors = [min(difference(space.whole, label, r), difference(local, label, r)) for r in rivals]
        beaten = any((logits[r] - logits[label]) << GRID > e * scale for r, e in zip(rivals, errors, strict=True))
        require(beaten, "the witness is within the float32 rounding error")
    return len(pairs), levels


# -------------------------------------------------------------------------------------------------- files and folders


def read_file(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None
    need(len(data) <= limit, f"{path} is larger than {limit} bytes")
    return data


class Files:
    """The files of a run folder; models are parsed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models: dict[tuple[str, tuple[str, ...]], Model] = {}
        self.hashes: dict[str, str] = {}

    def model(self, bound: Bound) -> Model:
        names = bound.model[0], tuple(name for name, _ in bound.tensors)
        if names not in self.models:
            data = read_file(self.folder / names[0], MAX_MODEL)
            require(hashlib.sha256(data).hexdigest() == bound.model[1], "made for another model: the SHA-256 differs")
            files = {name: read_file(self.folder / name, MAX_MODEL) for name in names[1]}
            self.models[names] = read_model(data, files)
        return self.models[names]

    def sha256(self, name: str) -> str:
        if name not in self.hashes:
            self.hashes[name] = hashlib.sha256(read_file(self.folder / name, MAX_MODEL)).hexdigest()
        return self.hashes[name]

    def check(self, path: Path, seconds: float) -> tuple[Verdict, bytes]:
        data = read_file(path, MAX_CERTIFICATE)
        bound = read_bound(parse_canonical(data))
        numbered = NUMBER_OF_FILE.fullmatch(path.name)
        require(numbered is None or int(numbered[1]) == bound.id, f"the file is {path.name}, its id {bound.id}")
        vocabulary = self.sha256(bound.vocabulary[0]) if bound.vocabulary else None
        return check_certificate(data, self.model(bound), vocabulary, seconds), data


def check_file(path: Path | str, seconds: float = SECONDS) -> Verdict:
    """Check one certificate file with the files beside it (or beside its folder `certificates`)."""
    path = Path(path)
    folder = path.absolute().parent
    return Files(folder.parent if folder.name == "certificates" else folder).check(path, seconds)[0]


def merkle_root(leaves: Sequence[tuple[str, bytes]]) -> str:
    """Over (file name, bytes), in the order given; FORMAT section 2."""
    level = [hashlib.sha256(b"\0" + name.encode() + b"\n" + data).digest() for name, data in leaves]
    while len(level) > 1:
        paired = [hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()


def check_run(path: Path, seconds: float, say: Callable[[str], None]) -> tuple[int, int]:
    """(accepted, all) certificates of a run folder or of one file."""
    if path.is_dir():
        folder, held = path, path / "certificates"
        need(held.is_dir(), f"{path} holds no folder `certificates`")
        found = sorted(item for item in held.iterdir() if item.name.endswith(".json"))
        strange = [item.name for item in found if not NUMBER_OF_FILE.fullmatch(item.name)]
        need(not strange, f"{held} holds files that are no certificates: {strange[:3]}")
        need(bool(found), f"{held} holds no certificates")
    else:
        need(path.is_file(), f"{path} does not exist")
        parent = path.absolute().parent
        folder, found = (parent.parent if parent.name == "certificates" else parent), [path]
    files, accepted, leaves = Files(folder), 0, []
    for item in found:
        try:
            verdict, data = files.check(item, seconds)
        except Refused as error:
            say(f"refused {item.name}: {error}")
        except Unusable:
            raise
        except Exception as error:
            say(f"refused {item.name}: the checker met {type(error).__name__}: {error}")
        else:
            say(f"{item.name}: {verdict.sentence}")
            leaves.append((item.name, data))
            accepted += 1
    if path.is_dir() and accepted == len(found):
        root = merkle_root(leaves)
        say(f"Merkle root {root}")
        stated = path / "certificates" / "root"
        if stated.exists() and read_file(stated, 65) != root.encode() + b"\n":
            say(f"refused: {stated} says another Merkle root")
            return 0, len(found)
    return accepted, len(found)


def main(arguments: list[str]) -> int:
    """Exit code 0 after `accepted N of N`; 4 when something was refused; 2 when there is nothing to check."""

    def say(line: str) -> None:
        print(line.encode("ascii", "backslashreplace").decode(), flush=True)

    seconds = SECONDS
    if len(arguments) == 3 and arguments[0] == "--seconds" and re.fullmatch("[0-9]{1,9}", arguments[1]):
        seconds, arguments = float(arguments[1]), arguments[2:]
    if len(arguments) != 1 or arguments[0].startswith("--"):
        print("usage: check.py [--seconds S] RUN_OR_FILE", file=sys.stderr)
        return 2
    try:
        accepted, total = check_run(Path(arguments[0]), seconds, say)
    except Unusable as error:
        print(f"check.py: {error}".encode("ascii", "backslashreplace").decode(), file=sys.stderr)
        return 2
    if accepted != total:
        say(f"refused {total - accepted} of {total}")
        return 4
    say(f"accepted {accepted} of {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
