"""Checks swap certificates (FORMAT.md, version 1) with exact integers and nothing but the standard library.

    python -I -S proofs/check.py RUN                a run folder, or one certificate file

This file is the trusted part: it imports nothing of ours and believes no number it can compute. It says
`accepted N of N` as its very last act and leaves with 0. Otherwise 4 (something was refused) or 2 (nothing to check).
For producers: `read_model` once, then `check_certificate` for each certificate; both raise `Refused` or `Unusable`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise, product, zip_longest
from math import inf, isfinite, isqrt, lcm, prod
from operator import add, eq, ge, gt, le, lt, mul, sub
from pathlib import Path
from typing import Any, NamedTuple, TextIO

# An exact number is an integer over the scale of its layer. Bounds of single elements, and all that is said about
# float32, are integers in units of 2**-GRID, rounded to the safe side. Slopes of upper lines have SLOPE_BITS bits.
GRID = 64
SLOPE_BITS = 16
BETA_BITS = 30
# Of what enters float32, on the grid.
HEAVY = 1 << 40 + GRID
# Limits (FORMAT section 9).
MAX_CERTIFICATE = 1 << 26
MAX_MODEL = 1 << 31
MAX_POSITIONS = 1 << 16
MAX_CHOICES = 1_000_000
MAX_SHAPE = 1 << 22
MAX_ELEMENTS = 1 << 23
MAX_BITS = 20_000
MAX_COUNT_BITS = 16_000
MAX_WORK = 3 * 10**8
MAX_LEARNED = 1 << 22
MAX_PENDING = 1 << 23
SECONDS = 3600.0
NO_FLOAT32 = "no float32 claim is possible"


# The certificate does not prove what it claims.
class Refused(ValueError):
    pass


# There is nothing here to check: a missing file, or a model outside the format.
class Unusable(ValueError):
    pass


def require(fact: object, otherwise: str) -> None:
    if not fact:
        raise Refused(otherwise)


def need(fact: object, otherwise: str) -> None:
    if not fact:
        raise Unusable(otherwise)


def in_time(stop: float) -> None:
    require(time.monotonic() < stop, "not checked within the time allowed")


# ----------------------------------------------------------------------------------------------------- the ONNX file

# What may be in the fields of a message: an integer, a string, a message (or bytes) or a float; capital letters may
# repeat (integers I, floats F and doubles D packed or not); "-" is ignored. WIRES: the wire types that fit.
WIRES = {"i": (0,), "f": (5,), "I": (0, 2), "F": (5, 2), "D": (1, 2), "-": (0, 1, 2, 5), **dict.fromkeys("smSM", (2,))}
MODEL = {**dict.fromkeys((2, 3, 4, 5, 6, 14), "-"), 1: "i", 7: "m", 8: "M"}
OPSET = {1: "s", 2: "i"}
GRAPH = {**dict.fromkeys((2, 10, 13, 16), "-"), 1: "M", 5: "M", 11: "M", 12: "M"}
NODE = {**dict.fromkeys((3, 6, 9), "-"), 1: "S", 2: "S", 4: "s", 5: "M", 7: "s"}
ATTRIBUTE = {1: "s", 2: "f", 3: "i", 4: "s", 5: "m", 7: "F", 8: "I", 13: "-", 20: "i"}
TENSOR = {1: "I", 2: "i", 4: "F", 5: "I", 7: "I", 8: "s", 9: "m", 10: "D", 12: "-", 13: "M", 14: "i", 16: "-"}
ENTRY = {1: "s", 2: "s"}
VALUE_INFO = {1: "s", 2: "m", 3: "-", 4: "-"}
TYPE = {1: "m", 6: "-"}
TENSOR_TYPE = {1: "i", 2: "m"}
SHAPE = {1: "M"}
DIMENSION = {1: "i", 2: "-", 3: "-"}
# Tensor types: the code of their numbers in `struct`, and the field for numbers that are not raw.
TYPES = {1: ("f", 4), 11: ("d", 10), 10: ("e", 5), 7: ("q", 7), 6: ("i", 5), 9: ("B", 5)}
INT64, INT32 = range(-(1 << 63), 1 << 63), range(-(1 << 31), 1 << 31)
INTEGER_RANGES = {7: INT64, 6: INT32, 9: range(2)}
FLOAT, INT, STRING, FLOAT_TENSOR, FLOATS, INTS = 1, 2, 3, 4, 6, 7
# Kinds of values; only the last are not constant.
INTEGERS, NUMBERS, TOKENS, VARIABLE = "constant integers", "constant numbers", "tokens", "values that depend on tokens"


# A number, seven bits a byte, low first, and where the next thing begins; `must` is `need` or `require`.
def leb128(data: bytes | memoryview, at: int, must: Callable[[object, str], None]) -> tuple[int, int]:
    value, shift, byte = 0, 0, 128
    while byte > 127:
        must(at < len(data) and shift < 70, "a number that ends too early, or is too large")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
    return value, at


# A protobuf integer, taken as signed.
def varint(data: memoryview, at: int) -> tuple[int, int]:
    value, at = leb128(data, at, need)
    need(value < 1 << 64, "a number in the ONNX file is beyond 64 bits")
    return value - (value >> 63 << 64), at


# All integers of a packed field.
def varints(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


# The fields of a message by number: lists of those that may repeat, None or "" for others that are absent.
def read(data: memoryview | None, what: str, known: dict[int, str]) -> dict[int, Any]:
    if data is None:
        raise Unusable(f"{what} is missing")
    found: dict[int, list[Any]] = {number: [] for number in known}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = divmod(key, 8)
        value: Any
        if wire == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if wire == 2 else ({1: 8, 5: 4}.get(wire, -1), at)
            need(0 <= size <= len(data) - at, f"{what} is cut short, or has wire type {wire}")
            value, at = data[at : at + size], at + size
        code = known.get(number, "")
        fits = wire in WIRES.get(code, ()) and not (code.islower() and found[number])
        need(fits, f"field {number} in {what} is outside the format, has the wrong wire type, or occurs twice")
        if code in ("s", "S"):
            value, stored = str(value, "utf-8", "replace"), value
            need(value.encode() == stored, "a name in the ONNX file is not UTF-8")
        found[number] += varints(value) if code == "I" and wire == 2 else [value]
    first = {number: next(iter(items), "" if known[number] == "s" else None) for number, items in found.items()}
    return {number: items if known[number].isupper() else first[number] for number, items in found.items()}


def float32(number: float) -> float:
    return struct.unpack("<f", struct.pack("<f", number))[0]  # type: ignore[no-any-return]


# Little-endian numbers; code as in `struct`.
def unpack(code: str, data: bytes | memoryview) -> tuple[Any, ...]:
    size = struct.calcsize("<" + code)
    need(len(data) % size == 0, "tensor data of a broken length")
    return struct.unpack(f"<{len(data) // size}{code}", data)


# A value: a shape and its elements in row-major order. They are integers; numbers (floats or Fractions, both exact);
# tokens (input positions); or variable: elements of layers, by their numbers.
class Tensor(NamedTuple):
    kind: str
    shape: tuple[int, ...]
    items: Sequence[Any]


# An ONNX node as it is in the file; attributes are (type, value) by name.
class Node(NamedTuple):
    number: int
    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, tuple[int, Any]]


# A parsed ONNX file; `network(length)` reads it as a network over that many positions, once for each length, or
# for the choices of each certificate if the model computes with tokens.
class Model:
    opsets = range(13, 23)

    def __init__(self, data: bytes, files: dict[str, bytes]) -> None:
        need(len(data) <= MAX_MODEL, "the ONNX file is too large")
        self.files = files
        self.tensors: dict[str, str] = {}
        self.floating: int | None = None
        self.networks: dict[int, Network] = {}
        self.stop = inf
        self.sha256 = sha256(data)
        model = read(memoryview(data), "the model", MODEL)
        opsets = {item[1]: item[2] or 0 for item in (read(item, "an opset", OPSET) for item in model[8])}
        ours = [version for domain, version in opsets.items() if domain in ("", "ai.onnx")]
        fits = len(opsets) == len(model[8]) and len(ours) == 1 and ours[0] in self.opsets
        known = f"{self.opsets[0]} to {self.opsets[-1]}"
        need(fits, f"opsets {opsets}: a version from {known} is expected, and no domain with two opsets")
        self.opset = ours[0]
        graph = read(model[7], "the graph", GRAPH)
        self.initializers = dict([self.tensor(item) for item in graph[5]])
        unique = len(self.initializers) == len(graph[5])
        need(unique and "" not in self.initializers, "an initializer is defined twice or nameless")
        inputs = [read(item, "an input", VALUE_INFO) for item in graph[11]]
        inputs = [item for item in inputs if item[1] not in self.initializers]
        need(len(inputs) == len(graph[12]) == 1, "the model must have one input and one output")
        self.input, self.output = inputs[0][1], read(graph[12][0], "the output", VALUE_INFO)[1]
        kind = read(read(inputs[0][2], "the type of the input", TYPE)[1], "the type of the input", TENSOR_TYPE)
        dims = read(kind[2], "the shape of the input", SHAPE)[1]
        sizes = [read(item, "a dimension", DIMENSION)[1] for item in dims]
        self.take_input(kind[1], sizes)
        nodes = [read(item, f"node {number}", NODE) for number, item in enumerate(graph[1])]
        names = [name for node in nodes for name in node[2] if name] + [self.input, *self.initializers]
        need(len(names) == len(set(names)), "a name is defined twice")
        need(len(nodes) <= 100_000, "too many ONNX nodes")
        self.size = len(nodes)
        # Only nodes that the output depends on, through the names they read, are looked at.
        read_later, found = {self.output}, []
        for number, node in reversed([*enumerate(nodes)]):
            if not read_later.isdisjoint(filter(None, node[2])):
                read_later.update(node[1])
                found.append(self.node(number, node))
        self.nodes = found[::-1]

    # An input of this type and shape, None for what is not a number.
    def take_input(self, kind: int, sizes: list[int | None]) -> None:
        fits = kind in (6, 7) and len(sizes) == 2 and sizes[0] in (None, 1)
        need(fits, "the input must be INT64 or INT32 [batch, length], the batch not fixed to more than one")
        self.length = sizes[1]

    def network(self, length: int, choices: Sequence[Sequence[int]] = (), stop: float = inf) -> Network:
        self.stop = stop
        known = self.networks.get(length)
        if known is None or (known.compares and known.choices != choices):
            fits = self.length in (None, length)
            require(fits, f"the model reads {self.length} tokens, the certificate has {length}")
            known = self.networks[length] = Network(self, length, choices)
        return known

    # All floating tensors of a model have one type.
    def one_type(self, kind: int) -> None:
        need(self.floating in (None, kind), "the model mixes floating types")
        self.floating = kind

    def node(self, number: int, message: dict[int, Any]) -> Node:
        need(message[7] in ("", "ai.onnx"), f"node {number}: domain {message[7]!r} is outside the format")
        attributes: dict[str, tuple[int, Any]] = {}
        for item in message[5]:
            attribute = read(item, f"an attribute of node {number}", ATTRIBUTE)
            name, kind = attribute[1], attribute[20]
            stored = {FLOATS: attribute[7], FLOAT: [attribute[2] or bytes(4)]}.get(kind, [])
            floats = unpack("f", b"".join(stored))
            given = {FLOATS: floats, STRING: attribute[4], INTS: attribute[8], INT: attribute[3] or 0}
            given |= {FLOAT: next(iter(floats), 0.0), FLOAT_TENSOR: attribute[5]}
            known = kind in given and name not in attributes and all(map(isfinite, floats))
            need(known, f"node {number}: attribute {name!r} occurs twice, has type {kind}, or holds NaN or infinity")
            attributes[name] = kind, self.tensor(given[kind])[1] if kind == FLOAT_TENSOR else given[kind]
        return Node(number, message[4], message[1], message[2], attributes)

    def tensor(self, data: memoryview | None) -> tuple[str, Tensor]:
        message = read(data, "a tensor", TENSOR)
        name, kind, sizes = message[8], message[2], message[1]
        need(kind in TYPES, f"tensor {name!r} has type {kind}; FLOAT, DOUBLE, FLOAT16, INT64, INT32, BOOL are known")
        shape = limited(sizes, 1 << 28 if prod(sizes) else MAX_SHAPE)
        code, place = TYPES[kind]
        need(not any(message[n] for n in (4, 5, 7, 10) if n != place), f"tensor {name!r} has data in the wrong field")
        given = message[place]
        if kind == 10:
            need(all(0 <= bits < 1 << 16 for bits in given), f"tensor {name!r} is not FLOAT16")
            given = [bits.to_bytes(2, "little") for bits in given]
        sources = [given if kind in INTEGER_RANGES else unpack(code, b"".join(given))] if given else []
        sources += [unpack(code, message[9])] if message[9] is not None else []
        if message[14] or message[13]:
            need(message[14] == 1, f"tensor {name!r} is half external")
            sources.append(unpack(code, self.external(message[13])))
        need(len(sources) < 2, f"tensor {name!r} must have one place of data")
        items = sources[0] if sources else []
        need(len(items) == prod(shape), f"tensor {name!r} has {len(items)} numbers for shape {shape}")
        if kind in INTEGER_RANGES:
            need(all(item in INTEGER_RANGES[kind] for item in items), f"tensor {name!r} holds numbers beyond its type")
            return name, Tensor(INTEGERS, shape, items)
        self.one_type(kind)
        sane = all(abs(x) < 2.0**128 and (x * 2.0**200).is_integer() for x in items)
        need(sane, f"tensor {name!r} holds NaN or infinity, or numbers that are not multiples of 2**-200 below 2**128")
        return name, Tensor(NUMBERS, shape, items)

    # The bytes of a tensor that are in a file of their own.
    def external(self, data: list[memoryview]) -> bytes:
        entries = {entry[1]: entry[2] for entry in (read(item, "external data", ENTRY) for item in data)}
        known = len(entries) == len(data) and entries.keys() <= {"location", "offset", "length", "checksum"}
        location, offset, length = [entries.get(key, "0") for key in ("location", "offset", "length")]
        fits = known and "location" in entries and re.fullmatch("[0-9]{1,12},[0-9]{1,12}", f"{offset},{length}")
        need(fits, "external data says a thing twice, an unknown one, or not where it is")
        require(location in self.files, f"the certificate does not bind the external tensor file {location!r}")
        held, start = self.files[location], int(offset)
        self.tensors[location] = self.tensors.get(location) or sha256(held)
        stop = start + int(length) if "length" in entries else len(held)
        need(start <= stop <= len(held), f"external tensor file {location!r} is cut short")
        return held[start:stop]


# The ONNX file with its external tensor files (name -> bytes), parsed once for many certificates.
def read_model(data: bytes, files: dict[str, bytes] | None = None) -> Model:
    return Model(data, files or {})


# ---------------------------------------------------------------------------------------------- values and operators

Ints = Sequence[int] | None
NOTHING = Tensor("", (), ())


# Elements start, start + 1, ...; element i is the rational number numbers[i] / scale. By kind:
# embedding   rows[k] is the position whose token is looked up in `table` for the k-th part;
# affine      rows of elements, weights (as multiples of numbers), their magnitudes over weight_scale, and a bias;
# constants   the same, without elements;
# rectifier   max(x, x p / q) of `sources`, the elements it reads;
# maximum     the greatest of each window: rows are ranges of places in `sources`.
# Numbers of the sources of the last two are multiplied by `factors` to make their scales one.
# `depth` counts the nonlinear layers on the way: layers of depth 0 are affine in the words. Numbers have < `bits` bits.
@dataclass(eq=False)
class Layer:
    kind: str
    size: int
    scale: int
    rows: Sequence[Any] = ()
    sources: Sequence[int] = ()
    factors: Sequence[int] = ()
    weight_scale: int = 1
    p: int = 0
    q: int = 1
    node: int = 0
    fits_float32: bool = True
    table: Tensor = NOTHING
    known: dict[int, list[int]] = field(default_factory=dict)
    start: int = 0
    depth: int = 0
    bits: int = 0

    # What is looked up for a token.
    def row(self, token: int) -> list[int]:
        if token not in self.known:
            width = self.table.shape[1]
            self.known[token] = over(self.table.items[token * width : (token + 1) * width], self.scale)
        return self.known[token]


# Runs through the ONNX nodes once for a batch of one sentence and lays down the layers.
class Graph:
    def __init__(self, model: Model, length: int, choices: Sequence[Sequence[int]]) -> None:
        self.model = model
        self.choices = choices
        self.compares = False
        self.layers: list[Layer] = []
        self.owner: list[Layer] = []
        self.vocabulary = 1 << 31
        self.computed = False
        self.head = ""
        self.work = 0
        tokens = Tensor(TOKENS, (1, length), range(length))
        values: dict[str, Tensor | None] = {**model.initializers, model.input: tokens}
        for self.node in model.nodes:
            try:
                values.update(self.run(values))
            except Unusable as error:
                raise Unusable(f"node {self.node.number} ({self.node.operator}): {error}") from None
        result = values.get(model.output)
        if result is None or result.kind != VARIABLE or len(result.shape) != 2 or result.shape[0] != 1:
            raise Unusable("the output must depend on the tokens and have shape [batch, classes]")
        need(2 <= result.shape[1] <= 1024, f"{result.shape[1]} classes are outside the format")
        need(not self.head or self.node.outputs[0] == model.output, f"{self.head} must give the output of the model")
        self.logits = list(result.items)

    # The outputs of the node by name; None for those that cannot be read.
    def run(self, values: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
        known, names, outputs = self.node.operator in OPERATORS, self.node.inputs, self.node.outputs
        need(known and not self.head, f"outside the format, or after {self.head or 'nothing'}")
        function, wanted, defaults = OPERATORS[self.node.operator]
        while names and not names[-1]:
            names = names[:-1]
        kinds = [wanted[0]] * max(len(names), 1) if wanted.endswith("*") else wanted.split()
        need(len(names) <= len(kinds), f"{len(names)} inputs are too many")
        inputs = [argument(values, *each) for each in zip_longest(names, kinds, fillvalue="")]
        for name, (kind, given) in self.node.attributes.items():
            need(name in defaults and defaults[name][0] == kind, f"attribute {name!r} is outside the format")
            need(type(defaults[name][1]) is not bool or given in (0, 1), f"{name} is {given}, not 0 or 1")
        attributes = {**defaults, **self.node.attributes}
        found = function(self, *inputs, **{name: value for name, (_, value) in attributes.items()})
        results = [found] if isinstance(found, Tensor) else found
        need(len(outputs) >= len(results) and all(outputs[: len(results)]), "an output is missing")
        for value in results:
            limited(value.shape, MAX_SHAPE if value.kind == VARIABLE else 1 << 28)
            need(value.items or value.kind != VARIABLE, "a variable without elements")
            self.spend(len(value.items))
        return {**dict.fromkeys(outputs), **dict(zip(outputs, results, strict=False))}

    # A new layer, as a value of this shape. Its numbers have at most so many bits more than those it reads.
    def lay(self, layer: Layer, shape: Sequence[int], bits: int) -> Tensor:
        read = {self.owner[i] for i in layer.sources}
        layer.depth = max([each.depth for each in read], default=0) + (layer.kind in ("rectifier", "maximum"))
        layer.bits = max([each.bits for each in read], default=0) + bits
        need(0 < layer.size == prod(shape) <= MAX_SHAPE, f"shape {tuple(shape)} is outside the limits")
        need(len(self.owner) + layer.size <= 2 * MAX_ELEMENTS, "the network has too many elements")
        narrow(layer.scale.bit_length(), layer.bits)
        layer.start = len(self.owner)
        self.layers.append(layer)
        self.owner += [layer] * layer.size
        return Tensor(VARIABLE, tuple(shape), range(layer.start, layer.start + layer.size))

    # Numbers as elements of a layer; variables as they are.
    def variable(self, value: Tensor) -> Tensor:
        need(value.kind in (NUMBERS, VARIABLE), f"{value.kind} among numbers")
        if value.kind == VARIABLE:
            return value
        return self.affine([((), (), n) for n in value.items], value.shape, "constants")

    # Of several kinds: all as variables.
    def alike(self, *values: Tensor) -> tuple[Tensor, ...]:
        return values if len({value.kind for value in values}) == 1 else tuple(map(self.variable, values))

    # Rows of elements, weights and a bias, in exact numbers. Rows that share their lists go on sharing them.
    def affine(self, rows: Sequence[Any], shape: Sequence[int], kind: str = "affine") -> Tensor:
        self.spend(sum([len(elements) for elements, _, _ in rows]))
        read, weighed = {id(row[0]): row[0] for row in rows}, {id(row[1]): row[1] for row in rows}
        sources = list({i for elements in read.values() for i in elements})
        numbers, biases = [n for weights in weighed.values() for n in weights], [bias for *_, bias in rows]
        weight_scale = scale_of(numbers)
        scale = lcm(scale_of(biases), weight_scale * self.common(sources)[0])
        narrow(scale.bit_length())
        units = {owner: scale // (weight_scale * owner.scale) for owner in {self.owner[i] for i in sources}}
        steps = {key: tuple([units[self.owner[i]] for i in elements]) for key, elements in read.items()}
        lists: dict[Any, tuple[list[int], list[int]]] = {}
        laid: list[tuple[Sequence[int], list[int], list[int], int]] = []
        for (elements, weights, _), bias in zip(rows, over(biases, scale), strict=True):
            key = id(weights), steps[id(elements)]
            if key not in lists:
                above = over(weights, weight_scale)
                lists[key] = list(map(mul, above, key[1])), list(map(abs, above))
            laid.append((elements, *lists[key], bias))
        layer = Layer(kind, len(laid), scale, laid, sources, weight_scale=weight_scale)
        layer.fits_float32 = kind == "constants" or max(map(abs, numbers + biases), default=0) <= 1 << 40
        laid_numbers = [n for weights, _ in lists.values() for n in weights] + [bias for *_, bias in laid]
        return self.lay(layer, shape, max(map(abs, laid_numbers), default=0).bit_length() + 32)

    def spend(self, steps: int) -> None:
        self.work += steps
        need(self.work <= MAX_WORK, "the network is too large: too many weights are applied, or elements moved")
        in_time(self.model.stop)

    # The exact numbers a constant, or a token, can be.
    def options(self, kind: str, item: Any) -> list[Fraction]:
        self.spend(1)
        if kind != TOKENS:
            return [Fraction(item)]
        self.compares = True
        need(self.choices, "what the model computes from tokens depends on the choices")
        self.spend(len(self.choices[item]))
        return list(map(Fraction, self.choices[item]))

    # One scale for elements of several layers, and what their numbers are to be multiplied by.
    def common(self, elements: Sequence[int]) -> tuple[int, list[int]]:
        scales = [self.owner[i].scale for i in elements]
        scale = lcm(*set(scales))
        return scale, [scale // each for each in scales]


# What a node reads: a letter of `INPUTS`, then "?" if it may be absent. Lists are handed over as such.
def argument(values: dict[str, Tensor | None], name: str, kind: str) -> Tensor | Sequence[int] | None:
    if not name:
        need(kind.endswith("?"), "an input is missing")
        return None
    value, allowed = values.get(name), INPUTS[kind[0]]
    if value is None:
        raise Unusable(f"{name!r} is read before it is defined")
    need(value.kind in allowed, f"an input must be {' or '.join(allowed)}, not {value.kind}")
    need(kind[0] != "l" or len(value.shape) == 1, "a list must have rank 1")
    return value.items if kind[0] == "l" else value


# The smallest common denominator.
def scale_of(numbers: Iterable[Any]) -> int:
    scale = 1
    for below in {number.as_integer_ratio()[1] for number in numbers}:
        scale = lcm(scale, below)
        narrow(scale.bit_length())
    return scale


# Exact numbers as integers over a scale.
def over(numbers: Iterable[Any], scale: int) -> list[int]:
    return [above * (scale // below) for above, below in [number.as_integer_ratio() for number in numbers]]


def narrow(*bits: int) -> None:
    need(max(bits) <= MAX_BITS, f"exact numbers of more than {MAX_BITS} bits")


# The shape, if it is within the limit on elements, also with the other axes of an empty value.
def limited(shape: Sequence[int], limit: int = MAX_SHAPE) -> tuple[int, ...]:
    fits = len(shape) <= 8 and prod([max(size, 1) for size in shape]) <= limit
    need(fits and min(shape, default=0) >= 0, f"shape {tuple(shape)} is outside the limits")
    return tuple(shape)


# Where the elements x[i, j, ...] of a value of this shape are, i in chosen[0], j in chosen[1] and so on; they are in
# row-major order, or in that of the transposed value.
def places(shape: Sequence[int], chosen: Sequence[Sequence[int]], order: Ints = None) -> list[int]:
    limited([len(along) for along in chosen])
    found = [0]
    for axis in range(len(shape)) if order is None else order:
        stride = prod(shape[axis + 1 :])
        steps = [i * stride for i in chosen[axis]]
        found = [at + step for at in found for step in steps]
    return found


# What is chosen along some axes, and all along the others; the filler where a place is outside.
def picked(value: Tensor, chosen: Mapping[int, Sequence[int]], order: Ints = None, filler: Any = None) -> Tensor:
    along = [chosen.get(axis, range(size)) for axis, size in enumerate(value.shape)]
    items = [value.items[i] if i >= 0 else filler for i in places(value.shape, along, order)]
    return Tensor(value.kind, tuple([len(along[axis]) for axis in order or range(len(along))]), items)


def reshaped(value: Tensor, shape: Sequence[int]) -> Tensor:
    need(prod(shape) == len(value.items), f"shape {tuple(shape)} for {len(value.items)} elements")
    return value._replace(shape=tuple(shape))


# As in numpy.
def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    columns = zip(*[(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes], strict=True)
    found = [{*sizes} - {1} or {1} for sizes in columns]
    need(all(len(sizes) == 1 for sizes in found), f"shapes {shapes} do not broadcast")
    return limited([max(sizes) for sizes in found])


# Broadcast to this shape.
def spread(value: Tensor, shape: Sequence[int]) -> Tensor:
    own = (1,) * (len(shape) - len(value.shape)) + value.shape
    need(broadcast(own, shape) == tuple(shape), f"shape {value.shape} does not broadcast to {tuple(shape)}")
    repeated = {axis: [0] * size for axis, size in enumerate(shape) if own[axis] != size}
    return picked(value._replace(shape=own), repeated)


# The shape of values that are broadcast together, and what they have in each place.
def aligned(*values: Tensor) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    shape = broadcast(*[value.shape for value in values])
    return shape, list(zip(*[spread(value, shape).items for value in values], strict=True))


# Equal parts, one after the other.
def parts_of(items: Sequence[Any], count: int) -> list[Sequence[Any]]:
    width = len(items) // max(count, 1)
    return [items[i * width : (i + 1) * width] for i in range(count)]


def axis_of(axis: int | None, rank: int) -> int:
    if axis is None or not -rank <= axis < rank:
        raise Unusable(f"axis {axis} for rank {rank}")
    return axis % rank


# From the input or the attribute; the default when there are none.
def axes_of(listed: Ints, attribute: Ints, rank: int, default: Iterable[int] = ()) -> list[int]:
    need(listed is None or attribute is None, "axes are given twice")
    given = listed if listed is not None else attribute
    axes = [axis_of(axis, rank) for axis in (default if given is None else given)]
    need(len(set(axes)) == len(axes), "an axis occurs twice")
    return axes


# Operators that move elements.


def constant(graph: Graph, **values: Any) -> Tensor:
    given = [(name, value) for name, value in values.items() if value is not None]
    need(len(given) == 1, "a constant must hold exactly one value")
    name, value = given[0]
    if name == "value":
        return value  # type: ignore[no-any-return]
    if "float" in name:
        graph.model.one_type(FLOAT)
    items, shape = (value, (len(value),)) if name.endswith("s") else ([value], ())
    return Tensor(NUMBERS if "float" in name else INTEGERS, shape, items)


def constant_of_shape(graph: Graph, sizes: Sequence[int], value: Tensor | None) -> Tensor:
    if value is None:
        graph.model.one_type(FLOAT)
    kind, _, items = value or ZERO
    need(len(items) == 1, "one value is needed")
    return Tensor(kind, limited(sizes), [*items] * prod(sizes))


# Identity, and Dropout as it is when nothing is trained.
def identity(graph: Graph, x: Tensor, rate: Tensor | None = None, training: Tensor | None = None, **_: Any) -> Tensor:
    need(training is None or list(training.items) == [0], "training mode is outside the format")
    return x


def cast(graph: Graph, x: Tensor, to: int | None) -> Tensor:
    if x.kind in (NUMBERS, VARIABLE):
        need(to == graph.model.floating, "floating numbers can be cast to their own type only")
    elif to in (1, 11):
        need(x.kind == INTEGERS and all(map(is_small, x.items)), "only integers up to 2**24 can be cast to numbers")
        graph.model.one_type(to)
        return x._replace(kind=NUMBERS)
    else:
        fits = (to in (6, 7) or (to == 9 and x.kind == INTEGERS)) and all(i in INTEGER_RANGES[to] for i in x.items)
        need(fits, "integers can be cast to INT64, and if they fit INT32 and BOOL")
    return x


# Every float evaluation of sums and products of few of these is exact.
def is_small(number: Any) -> bool:
    return bool(abs(number) <= 1 << 24 and number == int(number))


# The integers from a start to an end, by steps.
def sequence(graph: Graph, *given: Tensor) -> Tensor:
    need(all(len(each.items) == 1 for each in given), "a Range of lists")
    start, end, step = [each.items[0] for each in given]
    need(step, "steps of 0")
    count = max(0, -((start - end) // step))
    return Tensor(INTEGERS, limited((count,)), range(start, end, step))


def where(graph: Graph, chosen: Tensor, *options: Tensor) -> Tensor:
    need(set(chosen.items) <= {0, 1}, "a condition that is neither 0 nor 1")
    options = graph.alike(*options)
    shape, triples = aligned(chosen, *options)
    return Tensor(options[0].kind, shape, [yes if is_chosen else no for is_chosen, yes, no in triples])


def shape_of(graph: Graph, x: Tensor, start: int, end: int | None) -> Tensor:
    sizes = x.shape[start:end]
    return Tensor(INTEGERS, (len(sizes),), sizes)


def flatten(graph: Graph, x: Tensor, axis: int) -> Tensor:
    at = axis if axis == len(x.shape) else axis_of(axis, len(x.shape))
    return reshaped(x, (prod(x.shape[:at]), prod(x.shape[at:])))


def reshape(graph: Graph, x: Tensor, wanted: Sequence[int], allowzero: int) -> Tensor:
    possible = all(size >= -1 and (size or i < len(x.shape)) for i, size in enumerate(wanted))
    possible = possible and wanted.count(-1) <= 1 and not (allowzero and 0 in wanted)
    need(possible, f"impossible shape {wanted}")
    shape = [size or x.shape[i] for i, size in enumerate(wanted)]
    if -1 in shape:
        need(0 not in shape, f"impossible shape {wanted}")
        shape[shape.index(-1)] = len(x.items) // -prod(shape)
    return reshaped(x, shape)


def squeeze(graph: Graph, x: Tensor, listed: Ints, axes: Ints) -> Tensor:
    found = axes_of(listed, axes, len(x.shape), [axis for axis, size in enumerate(x.shape) if size == 1])
    need(found or (listed is None and axes is None), "an empty list of axes")
    need(all(x.shape[axis] == 1 for axis in found), "an axis is not of size 1")
    return reshaped(x, [size for axis, size in enumerate(x.shape) if axis not in found])


def unsqueeze(graph: Graph, x: Tensor, listed: Ints, axes: Ints) -> Tensor:
    need(listed is not None or axes is not None, "axes are missing")
    found = axes_of(listed, axes, len(x.shape) + len(listed or axes or ()))
    sizes = iter(x.shape)
    return reshaped(x, [1 if axis in found else next(sizes) for axis in range(len(x.shape) + len(found))])


def transpose(graph: Graph, x: Tensor, perm: Ints = None) -> Tensor:
    order = range(len(x.shape))[::-1] if perm is None else perm
    need(sorted(order) == [*range(len(x.shape))], f"perm {order} for shape {x.shape}")
    return picked(x, {}, order)


def expand(graph: Graph, x: Tensor, sizes: Sequence[int]) -> Tensor:
    return spread(x, broadcast(x.shape, sizes))


def tile(graph: Graph, x: Tensor, repeats: Sequence[int]) -> Tensor:
    need(len(repeats) == len(x.shape), "impossible repeats")
    limited([size * count for size, count in zip(x.shape, repeats, strict=True)])
    return picked(x, {axis: [*range(size)] * repeats[axis] for axis, size in enumerate(x.shape)})


def split(graph: Graph, x: Tensor, sizes: Ints, axis: int, num_outputs: int | None) -> list[Tensor]:
    axis, count = axis_of(axis, len(x.shape)), len(graph.node.outputs)
    size = x.shape[axis]
    need(sizes is None or num_outputs is None, "sizes are given twice")
    if sizes is None:
        need(num_outputs == count or (num_outputs is None and size % count == 0), "parts are not equal")
        each = -(-size // count)
        sizes = [each] * (count - 1) + [size - each * (count - 1)]
    need(len(sizes) == count and min(sizes) > 0 and sum(sizes) == size, f"parts {sizes} of {size}")
    return [picked(x, {axis: range(start, end)}) for start, end in pairwise([0, *accumulate(sizes)])]


def gather(graph: Graph, x: Tensor, where: Tensor, axis: int) -> Tensor:
    axis = axis_of(axis, len(x.shape))
    if where.kind == TOKENS:
        need(x.kind == NUMBERS and len(x.shape) == 2 and axis == 0, "tokens can only pick rows of a table of numbers")
        rows, width = x.shape
        graph.vocabulary = min(graph.vocabulary, rows)
        scale = scale_of(x.items)
        layer = Layer("embedding", len(where.items) * width, scale, where.items, table=x)
        return graph.lay(layer, (*where.shape, width), scale.bit_length() + 128)
    size = x.shape[axis]
    need(where.kind == INTEGERS and all(-size <= i < size for i in where.items), "impossible indices")
    found = picked(x, {axis: [i % size for i in where.items]})
    return found._replace(shape=x.shape[:axis] + where.shape + x.shape[axis + 1 :])


def slices(graph: Graph, x: Tensor, starts: Sequence[int], ends: Sequence[int], listed: Ints, by: Ints) -> Tensor:
    axes, steps = axes_of(listed, None, len(x.shape), range(len(starts))), [1] * len(starts) if by is None else by
    need(len(starts) == len(ends) == len(axes) == len(steps) and all(steps), "impossible lists")
    ranges = map(slice, starts, ends, steps)
    found = picked(x, {axis: range(x.shape[axis])[each] for axis, each in zip(axes, ranges, strict=True)})
    need(found.items, "an empty slice")
    return found


def concat(graph: Graph, *parts: Tensor, axis: int | None) -> Tensor:
    at = axis_of(axis, len(parts[0].shape))
    outlines = {(len(part.shape), part.shape[:at], part.shape[at + 1 :]) for part in parts}
    need(len(outlines) == 1, "shapes do not fit")
    parts, shape = graph.alike(*parts), list(parts[0].shape)
    shape[at] = sum(part.shape[at] for part in parts)
    limited(shape)
    blocks = zip(*[parts_of(part.items, prod(shape[:at])) for part in parts], strict=True)
    return Tensor(parts[0].kind, tuple(shape), [item for block in blocks for part in block for item in part])


def pad(graph: Graph, x: Tensor, pads: Sequence[int], value: Tensor | None, listed: Ints, mode: str) -> Tensor:
    filler, axes = value or ZERO, axes_of(listed, None, len(x.shape), range(len(x.shape)))
    need(mode == "constant" and len(filler.items) == 1, "only padding with one number is in the format")
    need(len(pads) == 2 * len(axes) and all(0 <= size <= MAX_SHAPE for size in pads), "impossible pads")
    margins = zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
    chosen = {axis: [OUTSIDE] * low + [*range(x.shape[axis])] + [OUTSIDE] * high for axis, low, high in margins}
    return picked(x, chosen, filler=graph.alike(x, filler)[1].items[0])


# Operators that calculate.


# Add, Sub, Mul, Div, and comparisons.
def arithmetic(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    name, kinds = graph.node.operator, {a.kind, b.kind}
    if VARIABLE not in kinds:
        return folded(graph, name, a, b)
    if name in ("Add", "Sub"):
        return combined(graph, (1, a), (1 if name == "Add" else -1, b))
    x, factors = (a, b) if a.kind == VARIABLE else (b, a)
    possible = factors.kind == NUMBERS and (name == "Mul" or (name == "Div" and factors is b and all(b.items)))
    need(possible, f"{name} of {a.kind} and {b.kind}, or a division by 0, is outside the format")
    shape, pairs = aligned(x, factors)
    return graph.affine([((i,), (1 / Fraction(n) if name == "Div" else n,), 0) for i, n in pairs], shape)


# The sum of values, each times a sign: variables, and at most one of numbers.
def combined(graph: Graph, *terms: tuple[int, Tensor]) -> Tensor:
    shape = broadcast(*[value.shape for _, value in terms])
    variables, numbers = [[(s, spread(x, shape)) for s, x in terms if x.kind == kind] for kind in (VARIABLE, NUMBERS)]
    need(len(variables) + len(numbers) == len(terms), "tokens or integers among numbers")
    signs, biases = tuple([sign for sign, _ in variables]), [sign * n for sign, x in numbers for n in x.items]
    pairs = zip(zip(*[x.items for _, x in variables], strict=True), biases or [0] * prod(shape), strict=True)
    return graph.affine([(elements, signs, bias) for elements, bias in pairs], shape)


# Of constants, and of tokens as far as all choices of their positions give the same.
def folded(graph: Graph, name: str, *values: Tensor) -> Tensor:
    kinds = [value.kind for value in values]
    known = {*kinds} == {NUMBERS} or ({*kinds} <= {INTEGERS, TOKENS} and kinds.count(TOKENS) < 2)
    need(known and name in FOLDED, f"{name} of {' and '.join(kinds)}")
    kind = NUMBERS if NUMBERS in kinds and name not in COMPARISONS else INTEGERS
    rule = floored if name == "Div" and kind == INTEGERS else FOLDED[name]
    shape, rows = aligned(*values)
    given = [[graph.options(kind, item) for kind, item in zip(kinds, items, strict=True)] for items in rows]
    try:
        tiny = any(0 < abs(x) < TINY for options in given for each in options for x in each)
        graph.computed = graph.computed or (NUMBERS in kinds and tiny)
        found = [{rule(*each) for each in product(*options)} for options in given]
        alike = all(len(each) == 1 for each in found)
        require(alike, "the model does not compute the same from all choices of a position")
        return calculated(graph, kind, shape, list(map(list, found)))
    except Unusable as error:
        require(TOKENS not in kinds, f"{name} of tokens: {error}")
        raise


def divided(x: Fraction, y: Fraction) -> Fraction:
    need(y, "a division by 0")
    return x / y


def floored(x: Fraction, y: Fraction) -> int:
    need(x >= 0 and y > 0, "a division by 0, or of integers below 0")
    return x // y


def opposite(graph: Graph, x: Tensor) -> Tensor:
    need(set(x.items) <= {0, 1}, "Not of what is neither 0 nor 1")
    return x._replace(items=[1 - item for item in x.items])


# Constants that are sums; small ones are exact in float32 too.
def calculated(graph: Graph, kind: str, shape: Sequence[int], terms: Sequence[Sequence[Any]]) -> Tensor:
    items: list[Any] = [sum(map(Fraction, each)) for each in terms]
    if kind == INTEGERS:
        need(all(int(item) in INT32 for item in items), "integers beyond 32 bits")
        return Tensor(kind, tuple(shape), list(map(int, items)))
    for each, item in zip(terms, items, strict=True):
        narrow(item.numerator.bit_length(), item.denominator.bit_length())
        graph.computed = graph.computed or not all(map(is_small, [*each, sum(map(abs, each))]))
    return Tensor(kind, tuple(shape), items)


def negated(graph: Graph, x: Tensor) -> Tensor:
    return combined(graph, (-1, x))


# max(x, c) = c + max(x - c, 0), and min(x, c) = c - max(c - x, 0).
def limited_by(graph: Graph, name: str, x: Tensor, c: Tensor, node: int) -> Tensor:
    if x.kind != VARIABLE:
        return folded(graph, name, x, c)
    need(c.kind == NUMBERS, f"{c.kind} as a limit")
    if name == "Max" and not any(c.items):
        return rectified(graph, spread(x, broadcast(x.shape, c.shape)), node=node)
    sign = 1 if name == "Max" else -1
    kept = rectified(graph, combined(graph, (sign, x), (-sign, c)), node=node)
    return combined(graph, (sign, kept), (1, c))


# The second rectifier has a number of its own, beyond those of the nodes.
def clip(graph: Graph, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    need(all(limit is None or limit.shape == () for limit in (low, high)), "limits must have rank 0")
    x = limited_by(graph, "Max", x, low, graph.node.number) if low else x
    return limited_by(graph, "Min", x, high, graph.node.number + graph.model.size) if high else x


# Sum, Max and Min; the least is what is greatest of opposites.
def several(graph: Graph, *values: Tensor) -> Tensor:
    name, shape = graph.node.operator, broadcast(*[value.shape for value in values])
    variables = [value for value in values if value.kind == VARIABLE]
    if name != "Sum" and len(values) == 2 > len(variables):
        x, c = values if values[0].kind == VARIABLE else values[::-1]
        return limited_by(graph, name, x, c, graph.node.number)
    small = prod(shape) * len(values) <= MAX_SHAPE
    need(variables and small, f"no input depends on the tokens, or shape {shape} is outside the limits")
    if len(values) == 1:
        return values[0]
    parts = [spread(graph.variable(value), shape) for value in values]
    if name == "Sum":
        return combined(graph, *[(1, part) for part in parts])
    if name == "Max":
        return greatest(graph, aligned(*parts)[1], shape)
    return negated(graph, greatest(graph, aligned(*[negated(graph, part) for part in parts])[1], shape))


def gemm(
    graph: Graph, a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float, transA: int, transB: int
) -> Tensor:
    need(len(a.shape) == len(b.shape) == 2, "A and B must have rank 2")
    graph.computed = graph.computed or alpha != 1 or (c is not None and beta != 1)
    a, b = transpose(graph, a) if transA else a, transpose(graph, b) if transB else b
    return matmul(graph, a, times(b, alpha), c and times(c, beta))


def times(value: Tensor, factor: float) -> Tensor:
    return value if factor == 1 else value._replace(items=[Fraction(factor) * Fraction(n) for n in value.items])


# The lines of a with the columns of b, and c; each of a, b holds one matrix or many.
def matmul(graph: Graph, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    need({a.kind, b.kind} == {VARIABLE, NUMBERS}, "one matrix must depend on the tokens, the other must not")
    need(min(len(a.shape), len(b.shape)) >= 2 and a.shape[-1] == b.shape[-2], f"shapes {a.shape} and {b.shape}")
    need(a.items and b.items, "a product without elements")
    deep, wide = b.shape[-2:]
    lines = parts_of(a.items, len(a.items) // deep)
    columns = [matrix[j::wide] for matrix in parts_of(b.items, len(b.items) // (deep * wide)) for j in range(wide)]
    shape, pairs = aligned(Tensor("", (*a.shape[:-1], 1), lines), Tensor("", (*b.shape[:-2], 1, wide), columns))
    biases = spread(c, shape).items if c else [0] * prod(shape)
    if b.kind == VARIABLE:
        pairs = [(x, w) for w, x in pairs]
    return graph.affine([(x, w, bias) for (x, w), bias in zip(pairs, biases, strict=True)], shape)


# Output sizes; and for each output place what lies under its kernel, padding left out: the input places, and the kernel
# places under which they lie.
def windows_of(
    sizes: Sequence[int], kernel: Ints, auto_pad: str, dilations: Ints, pads: Ints, strides: Ints, ceil_mode: int = 0
) -> tuple[list[int], list[list[int]], list[tuple[int, ...]]]:
    rank = len(sizes)
    kernel, steps, gaps, margins = kernel or [], strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    fits = all(len(each) == rank and min(each) > 0 for each in (kernel, steps, gaps))
    need(fits and len(margins) == 2 * rank and min(margins) >= 0, "impossible kernel, strides, dilations or pads")
    need(auto_pad in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"auto_pad {auto_pad!r} is outside the format")
    need(auto_pad == "NOTSET" or (pads is None and not ceil_mode), "pads or ceil_mode together with auto_pad")
    axes: list[list[list[int]]] = []
    each_axis = zip(sizes, kernel, steps, gaps, margins[:rank], margins[rank:], strict=True)
    for size, width, step, gap, before, after in each_axis:
        reach = (width - 1) * gap + 1
        if auto_pad.startswith("SAME"):
            missing = max(0, (-(-size // step) - 1) * step + reach - size)
            before = (missing + (auto_pad == "SAME_LOWER")) // 2
            after = missing - before
        free = size + before + after - reach
        count = (-(-free // step) if ceil_mode else free // step) + 1
        count -= bool(ceil_mode) and (count - 1) * step >= size + before
        need(free >= 0 and count * width <= MAX_SHAPE, "windows larger than their input, or too many")
        starts = range(-before, count * step - before, step)
        axes.append([[i if 0 <= i < size else OUTSIDE for i in range(at, at + reach, gap)] for at in starts])
    shape = list(map(len, axes))
    need(prod(shape) * prod(kernel) <= MAX_SHAPE, "the windows are too many")
    under = [places(sizes, window) for window in product(*axes)]
    inside = [[i for i in window if i >= 0] for window in under]
    return shape, inside, [tuple([k for k, i in enumerate(window) if i >= 0]) for window in under]


def convolution(
    graph: Graph, x: Tensor, w: Tensor, b: Tensor | None, group: int, kernel_shape: Ints, **window: Any
) -> Tensor:
    need(len(x.shape) == len(w.shape) in (3, 4) and x.shape[0] == 1, "only 1-D and 2-D convolutions are in the format")
    outputs, channels, *kernel = w.shape
    fits = group > 0 and x.shape[1] == channels * group and outputs % group == 0
    fits = fits and kernel_shape in (None, kernel) and (b is None or b.shape == (outputs,))
    need(fits, "kernel_shape, group, weights and bias do not fit")
    shape, inside, kept = windows_of(x.shape[2:], kernel, **window)
    need(len(inside) * len(w.items) <= 1 << 26, "the windows are too many")
    groups = [parts_of(part, channels) for part in parts_of(x.items, group)]
    taken = [[[channel[i] for channel in part for i in window] for window in inside] for part in groups]
    rows: list[Any] = []
    for m, kernels in enumerate(parts_of(w.items, outputs)):
        filters, bias = parts_of(kernels, channels), b.items[m] if b else 0
        weights = {held: [each[k] for each in filters for k in held] for held in set(kept)}
        pairs = zip(taken[m * group // outputs], kept, strict=True)
        rows += [(elements, weights[held], bias) for elements, held in pairs]
    return graph.affine(rows, (1, outputs, *shape))


def normalization(graph: Graph, x: Tensor, *parameters: Tensor, epsilon: float, **more: Any) -> Tensor:
    fits = len(x.shape) >= 2 and all(each.shape == x.shape[1:2] for each in parameters)
    need(fits and not more["training_mode"], "parameters do not fit, or training mode")
    graph.computed = True
    affine = []
    for scale, offset, mean, variance in zip(*[map(Fraction, each.items) for each in parameters], strict=True):
        need(variance + Fraction(epsilon) > 0, "a variance that is not above 0")
        root = Fraction(isqrt((1 << 2 * GRID) // (variance + Fraction(epsilon))), 1 << GRID)
        affine.append(((scale * root,), offset - mean * scale * root))
    area = prod(x.shape[2:])
    return graph.affine([((i,), *affine[at // area % x.shape[1]]) for at, i in enumerate(x.items)], x.shape)


# Also global pooling: axes are reduced to one element.
def reduction(graph: Graph, x: Tensor, listed: Ints, axes: Ints, keepdims: int, noop_with_empty_axes: int) -> Tensor:
    name, rank = graph.node.operator, len(x.shape)
    found = axes_of(listed, axes, rank) or ([] if noop_with_empty_axes else [*range(rank)])
    kept = [axis for axis in range(rank) if axis not in found]
    shape = [1 if axis in found else size for axis, size in enumerate(x.shape) if keepdims or axis in kept]
    windows = parts_of(transpose(graph, x, kept + sorted(found)).items, prod([x.shape[axis] for axis in kept]))
    if x.kind != VARIABLE:
        need(name == "ReduceSum" and x.kind != TOKENS, f"of {x.kind}")
        return calculated(graph, x.kind, shape, windows)
    return pooled(graph, windows, [1 if name == "ReduceSum" else len(window) for window in windows], shape)


def global_pooling(graph: Graph, x: Tensor) -> Tensor:
    need(len(x.shape) in (3, 4), f"rank {len(x.shape)} is outside the format")
    return reduction(graph, x, None, range(2, len(x.shape)), 1, 0)


def pooling(graph: Graph, x: Tensor, kernel_shape: Ints, count_include_pad: int = 0, **more: Any) -> Tensor:
    plain = not more.pop("storage_order", 0) and not (count_include_pad and more["ceil_mode"])
    spread_out = graph.node.operator == "MaxPool" and not more["auto_pad"].startswith("SAME")
    fits = plain and len(x.shape) in (3, 4) and (spread_out or set(more["dilations"] or [1]) == {1})
    need(fits, "rank, storage_order, dilations, or count_include_pad with ceil_mode")
    sizes, inside, _ = windows_of(x.shape[2:], kernel_shape, **more)
    shape, channels = (*x.shape[:2], *sizes), parts_of(x.items, x.shape[0] * x.shape[1])
    need(all(inside), "a window lies in the padding")
    need(len(channels) * len(inside) * prod(kernel_shape or ()) <= MAX_SHAPE, "the windows are too many")
    windows = [[channel[i] for i in window] for channel in channels for window in inside]
    counts = [prod(kernel_shape or ()) if count_include_pad else len(window) for window in windows]
    return pooled(graph, windows, counts, shape)


# The greatest of each window.
def greatest(graph: Graph, windows: Sequence[Sequence[int]], shape: Sequence[int]) -> Tensor:
    sources = [i for window in windows for i in window]
    scale, factors = graph.common(sources)
    ranges = [range(start, end) for start, end in pairwise([0, *accumulate(map(len, windows))])]
    layer = Layer("maximum", len(windows), scale, ranges, sources, factors)
    return graph.lay(layer, shape, max(factors, default=1).bit_length())


# The sum of each window over its count, or, in operators of that name, the greatest.
def pooled(graph: Graph, windows: Sequence[Sequence[int]], counts: list[int], shape: Sequence[int]) -> Tensor:
    if "Max" in graph.node.operator:
        return greatest(graph, windows, shape)
    pairs = list(zip(map(len, windows), counts, strict=True))
    weights = {pair: [Fraction(1, pair[1])] * pair[0] for pair in set(pairs)}
    return graph.affine([(window, weights[pair], 0) for window, pair in zip(windows, pairs, strict=True)], shape)


def rectified(graph: Graph, x: Tensor, alpha: float = 0.0, node: int | None = None) -> Tensor:
    need(0 <= alpha <= 1, "needs an alpha in [0, 1]")
    scale, factors = graph.common(x.items)
    p, q = Fraction(alpha).as_integer_ratio()
    layer = Layer("rectifier", len(x.items), scale * q, (), x.items, factors, p=p, q=q)
    layer.node = graph.node.number if node is None else node
    return graph.lay(layer, x.shape, max(factors, default=1).bit_length() + q.bit_length())


# s x + (1 - s) max(x, 0).
def bent(graph: Graph, x: Tensor, slopes: Tensor | None = None) -> Tensor:
    kept, given = rectified(graph, x), spread(slopes or MINUS_ONE, x.shape)
    pairs = zip(x.items, kept.items, map(Fraction, given.items), strict=True)
    return graph.affine([(two, (s, 1 - s), 0) for *two, s in pairs], x.shape)


def head(graph: Graph, x: Tensor, axis: int = -1) -> Tensor:
    need(axis_of(axis, len(x.shape)) == len(x.shape) - 1, "the axis is not the last")
    graph.head = graph.node.operator
    return x


OUTSIDE = -(1 << 40)
# Numbers below may be read as 0 in float32.
TINY = Fraction(1, 1 << 126)
ZERO, MINUS_ONE = Tensor(NUMBERS, (1,), [0.0]), Tensor(NUMBERS, (), [-1])
COMPARISONS = {"Equal": eq, "Greater": gt, "GreaterOrEqual": ge, "Less": lt, "LessOrEqual": le}
FOLDED: dict[str, Any] = {**COMPARISONS, "Add": add, "Sub": sub, "Mul": mul, "Div": divided, "Max": max, "Min": min}
# Inputs: any value, constants, integers, lists, numbers, variables, numbers or variables; "?": may be absent; "*": one
# or more.
ANY = (INTEGERS, NUMBERS, TOKENS, VARIABLE)
INPUTS = {"a": ANY, "c": ANY[:2], "i": ANY[:1], "l": ANY[:1], "n": ANY[1:2], "v": ANY[3:], "x": (NUMBERS, VARIABLE)}
CONSTANTS = {"value": FLOAT_TENSOR, "value_int": INT, "value_ints": INTS, "value_float": FLOAT, "value_floats": FLOATS}
AXES = {"axes": (INTS, None)}
REDUCE = {**AXES, "keepdims": (INT, True), "noop_with_empty_axes": (INT, False)}
PLACES = dict.fromkeys(("dilations", "kernel_shape", "pads", "strides"), (INTS, None))
WINDOW = {"auto_pad": (STRING, "NOTSET"), **PLACES}
POOL = {**WINDOW, "ceil_mode": (INT, False)}
GEMM = {"alpha": (FLOAT, 1.0), "beta": (FLOAT, 1.0), "transA": (INT, False), "transB": (INT, False)}
NORMALIZATION = {"epsilon": (FLOAT, float32(1e-5)), "momentum": (FLOAT, None), "training_mode": (INT, 0)}
# Name: function, inputs, attributes with their types and defaults (True and False: 0 or 1 only).
OPERATORS: dict[str, tuple[Callable[..., Tensor | list[Tensor]], str, dict[str, tuple[int, Any]]]] = {
    "Constant": (constant, "", {name: (kind, None) for name, kind in CONSTANTS.items()}),
    "ConstantOfShape": (constant_of_shape, "l", {"value": (FLOAT_TENSOR, None)}),
    "Identity": (identity, "a", {}),
    "Dropout": (identity, "a c? i?", {"ratio": (FLOAT, None), "seed": (INT, None)}),
    "Cast": (cast, "a", {"to": (INT, None)}),
    "Shape": (shape_of, "a", {"start": (INT, 0), "end": (INT, None)}),
    "Flatten": (flatten, "a", {"axis": (INT, 1)}),
    "Reshape": (reshape, "a l", {"allowzero": (INT, False)}),
    "Squeeze": (squeeze, "a l?", AXES),
    "Unsqueeze": (unsqueeze, "a l?", AXES),
    "Transpose": (transpose, "a", {"perm": (INTS, None)}),
    "Expand": (expand, "a l", {}),
    "Tile": (tile, "a l", {}),
    "Split": (split, "a l?", {"axis": (INT, 0), "num_outputs": (INT, None)}),
    "Gather": (gather, "a a", {"axis": (INT, 0)}),
    "Slice": (slices, "a l l l? l?", {}),
    "Concat": (concat, "a*", {"axis": (INT, None)}),
    "Pad": (pad, "x l n? l?", {"mode": (STRING, "constant")}),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", *COMPARISONS), (arithmetic, "a a", {})),
    "Not": (opposite, "i", {}),
    "Range": (sequence, "i i i", {}),
    "Where": (where, "i a a", {}),
    **dict.fromkeys(("Sum", "Max", "Min"), (several, "a*", {})),
    "Clip": (clip, "a c? c?", {}),
    "Neg": (negated, "v", {}),
    "MatMul": (matmul, "x x", {}),
    "Gemm": (gemm, "v n n?", GEMM),
    "Conv": (convolution, "v n n?", {**WINDOW, "group": (INT, 1)}),
    "BatchNormalization": (normalization, "v n n n n", NORMALIZATION),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax"), (reduction, "a l?", REDUCE)),
    "AveragePool": (pooling, "v", {**POOL, "count_include_pad": (INT, False)}),
    "MaxPool": (pooling, "v", {**POOL, "storage_order": (INT, 0)}),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), (global_pooling, "v", {})),
    "Relu": (rectified, "v", {}),
    "PRelu": (bent, "v n", {}),
    "Abs": (bent, "v", {}),
    "LeakyRelu": (rectified, "v", {"alpha": (FLOAT, float32(0.01))}),
    **dict.fromkeys(("Softmax", "LogSoftmax"), (head, "v", {"axis": (INT, -1)})),
    **dict.fromkeys(("Sigmoid", "Tanh"), (head, "v", {})),
}


# -------------------------------------------------------------------------------------------------------- the network

Bounds = Sequence[tuple[int, int]]
# Elements and their coefficients.
Terms = Iterable[tuple[int, int]]


# Only the layers that the logits depend on: the `earlier` are affine in the words, the `later` not. The `cut` are the
# elements of earlier layers that later ones, and the logits, read.
class Network(Graph):
    def __init__(self, model: Model, length: int, choices: Sequence[Sequence[int]] = ()) -> None:
        super().__init__(model, length, choices)
        self.classes = len(self.logits)
        self.scale, self.factors = self.common(self.logits)
        needed = {self.owner[i] for i in self.logits}
        for layer in reversed(self.layers):
            if layer in needed:
                needed.update([self.owner[i] for i in layer.sources])
        self.layers = [layer for layer in self.layers if layer in needed]
        need(sum(layer.size for layer in self.layers) <= MAX_ELEMENTS, "the network has too many elements")
        self.earlier = [layer for layer in self.layers if not layer.depth]
        self.later = [layer for layer in self.layers if layer.depth]
        self.nonlinear = [layer for layer in self.later if layer.kind != "affine"]
        need(len(self.nonlinear) <= 64, "more than 64 nonlinear layers")
        self.rectifiers = {layer.node: layer for layer in self.nonlinear if layer.kind == "rectifier"}
        read = {i for layer in self.later for i in layer.sources}.union(self.logits)
        self.cut = sorted(i for i in read if not self.owner[i].depth)
        self.slot = {i: slot for slot, i in enumerate(self.cut)}
        reasons = {
            "the model is not FLOAT": model.floating != FLOAT,
            f"the model ends in {self.head}": self.head,
            "the model rounds, or computes or scales constants": self.computed,
            "weights are too large": not all(layer.fits_float32 for layer in self.layers),
        }
        self.no_float32 = next((reason for reason, holds in reasons.items() if holds), "")
        self.find_kernels()

    # readers[p]: the tables that the word at position p is looked up in, and elements[p] what it finds there, one table
    # after the other; kernels[p]: for the slots of the cut that depend on these, their coefficients.
    def find_kernels(self) -> None:
        self.readers: dict[int, list[Layer]] = {}
        self.elements: dict[int, list[int]] = {}
        self.kernels: dict[int, dict[int, Sequence[int]]] = {}
        for layer in self.earlier:
            if layer.kind == "embedding":
                width = layer.table.shape[1]
                for p, start in zip(layer.rows, range(layer.start, layer.start + layer.size, width), strict=True):
                    self.readers.setdefault(p, []).append(layer)
                    self.elements.setdefault(p, []).extend(range(start, start + width))
        position = {i: p for p, elements in self.elements.items() for i in elements}
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        # What may be spent on layers may be spent here once more.
        self.work = 0

        def define(at: int, given: int) -> Terms | None:
            if at in position:
                return None
            elements, weights = self.owner[at].rows[at - self.owner[at].start][:2]
            self.spend(len(elements))
            return zip(elements, [given * weight for weight in weights], strict=True)

        for slot, top in enumerate(self.cut):
            found = substitute({top: 1}, define)
            for p in {position[i]: None for i, c in found.items() if c}:
                kernel = tuple([found.get(i, 0) for i in self.elements[p]])
                self.kernels.setdefault(p, {})[slot] = same.setdefault(kernel, kernel)

    def looked_up(self, position: int, token: int) -> list[int]:
        return [x for layer in self.readers.get(position, []) for x in layer.row(token)]

    # Writes the numbers of these layers to `values`, where those they read are; tables need the sentence.
    def evaluate(self, layers: Iterable[Layer], values: list[int], sentence: Sequence[int] = ()) -> None:
        for layer in layers:
            if layer.kind == "embedding":
                found = [x for p in layer.rows for x in layer.row(sentence[p])]
            elif layer.kind in ("affine", "constants"):
                found = [
                    sum(map(mul, weights, [values[i] for i in elements])) + bias
                    for elements, weights, _, bias in layer.rows
                ]
            else:
                found = [values[i] * factor for i, factor in zip(layer.sources, layer.factors, strict=True)]
                if layer.kind == "maximum":
                    found = [max(found[window.start : window.stop]) for window in layer.rows]
                else:
                    found = [x * (layer.q if x > 0 else layer.p) for x in found]
            values[layer.start : layer.start + layer.size] = found


# Replaces elements, later ones first, by what `define` says c times an element is. Returns those that it leaves, by
# saying None.
def substitute(function: dict[int, int], define: Callable[[int, int], Terms | None]) -> dict[int, int]:
    order, left = [-i for i in function], {}
    heapify(order)
    while order:
        top = -heappop(order)
        given = function.pop(top)
        terms = define(top, given)
        if terms is None:
            left[top] = given
        for i, c in terms or ():
            if i not in function:
                heappush(order, -i)
            function[i] = function.get(i, 0) + c
    return left


# number / scale, rounded down and up to the grid.
def grid(number: int, scale: int) -> tuple[int, int]:
    return (number << GRID) // scale, ceiling(number << GRID, scale)


def ceiling(above: int, below: int) -> int:
    return -(-above // below)


# ------------------------------------------------------------------------------------------------------ words

Group = tuple[frozenset[int], int, int]
# Of the words: the sum of c times the number of a slot.
Function = tuple[tuple[int, int], ...]


# A set of sentences: a mask of choices for every swappable position, and groups of positions with swap ranges.
class Words:
    def __init__(self, space: Space, masks: tuple[int, ...], groups: tuple[Group, ...]) -> None:
        self.space = space
        self.masks = masks
        self.known: dict[int, tuple[int, int]] = {}
        # Groups, smallest first: positions of their own that may be swapped and that must be, groups inside, the least
        # number of swaps by these two, range.
        self.steps: list[tuple[list[int], list[int], list[int], int, int, int]] = []
        left = [i for i, mask in enumerate(masks) if mask != 1]
        outer: list[tuple[frozenset[int], int]] = []
        reached: list[tuple[int, int]] = []
        for members, low, high in sorted(groups, key=lambda group: len(group[0])):
            inside = [i for i in left if space.positions[i] in members]
            left = [i for i in left if space.positions[i] not in members]
            children = [step for held, step in outer if held <= members]
            outer = [(held, step) for held, step in outer if not held <= members] + [(members, len(self.steps))]
            free, forced = [i for i in inside if masks[i] & 1], [i for i in inside if not masks[i] & 1]
            least = len(forced) + sum([reached[child][0] for child in children])
            most = len(inside) + sum([reached[child][1] for child in children])
            reached.append((max(low, least), min(high, most)))
            self.steps.append((free, forced, children, least, max(low, least), high))
        self.empty = any(low > high for low, high in reached)
        # The positions that lack choices; the swaps left for others if only these must be made and there is one group.
        lacking = [(i, mask) for i, mask in enumerate(masks) if mask != space.whole_masks[i]]
        self.lack = frozenset([i for i, _ in lacking])
        self.lacking, self.forced = [[key for key in lacking if key[1] & 1 == own] for own in (1, 0)]
        *_, low, high = self.steps[-1]
        self.room = high - len(self.forced) if len(self.steps) == 1 and low <= len(self.forced) <= high else None

    # The greatest total of gains over sets of swapped positions that the region allows, if there is one.
    def best(self, gains: Sequence[int]) -> int:
        done: list[tuple[int, list[int]]] = []
        for free, forced, children, least, low, high in self.steps:
            total = sum([gains[i] for i in forced]) + sum([done[child][0] for child in children])
            increments = [gains[i] for i in free] + [gain for child in children for gain in done[child][1]]
            increments.sort(reverse=True)
            done.append((total + sum(increments[: low - least]), increments[low - least : high - least]))
        return done[-1][0] + sum([gain for gain in done[-1][1] if gain > 0])

    # How many sentences there are; or with at most as many swaps as the group of all positions allows.
    def sentences(self, whole_only: bool = False) -> int:
        *_, most = self.steps[-1]
        done: list[list[int]] = []
        for free, forced, children, _, low, high in self.steps:
            counts = [1]
            for i in free + forced:
                counts = multiply(counts, [self.masks[i] & 1, (self.masks[i] >> 1).bit_count()])[: most + 1]
            for child in children:
                counts = multiply(counts, done[child])[: most + 1]
            done.append(counts if whole_only else [n if low <= m <= high else 0 for m, n in enumerate(counts)])
        total = sum(done[-1])
        require(total.bit_length() <= MAX_COUNT_BITS, f"2**{MAX_COUNT_BITS} sentences or more")
        return total

    # Bounds of an element of the cut, on the grid.
    def element(self, slot: int) -> tuple[int, int]:
        if slot not in self.known:
            low, high = -self.space.maximum(self, ((slot, -1),)), self.space.maximum(self, ((slot, 1),))
            scale = self.space.scales[slot]
            self.known[slot] = grid(low, scale)[0], grid(high, scale)[1]
        return self.known[slot]


# A function of the words: its number for the original sentence, what the choices of every position that it depends on
# add to that, and the most that such positions add, greatest first. As a dictionary: what the best choice of a mask
# adds (nothing, if that is the original), for every (position, mask).
class Rises(dict[tuple[int, int], int]):
    def __init__(self, base: int, added: dict[int, list[int]]) -> None:
        self.base = base
        self.added = added
        self.order = sorted([(max(each), i) for i, each in added.items() if max(each) > 0], reverse=True)

    def __missing__(self, key: tuple[int, int]) -> int:
        i, mask = key
        added = [added for choice, added in enumerate(self.added.get(i, ())) if mask >> choice & 1]
        self[key] = max(added, default=0)
        return self[key]


# Of polynomials.
def multiply(xs: list[int], ys: list[int]) -> list[int]:
    joined = [0] * (len(xs) + len(ys) - 1)
    for a, x in enumerate(xs):
        for b, y in enumerate(ys, a):
            joined[b] += x * y
    return joined


# What a node of the tree has to prove: sentences, phases, rivals; and the multipliers set above it.
#
# Phases, slopes, betas and joint groups are by node number and element; `whole` if no split by phases or rivals
# lies above.
@dataclass(frozen=True)
class Region:
    masks: tuple[int, ...]
    groups: tuple[Group, ...]
    rivals: tuple[int, ...]
    depth: int = 0
    whole: bool = True
    phases: dict[tuple[int, int], int] = field(default_factory=dict)
    slopes: dict[tuple[int, int], int] = field(default_factory=dict)
    betas: dict[tuple[int, int], int] = field(default_factory=dict)
    joint: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


# The swaps of one text seen by one network: shared by all leaves of a certificate.
class Space:
    def __init__(self, network: Network, choices: list[list[int]], label: int) -> None:
        self.network = network
        self.choices = choices
        self.label = label
        self.positions = [p for p, options in enumerate(choices) if len(options) > 1]
        self.index = {p: i for i, p in enumerate(self.positions)}
        require(max(map(max, choices)) < network.vocabulary, "a token is beyond the embedding")
        self.values = [0] * len(network.owner)
        network.evaluate(network.earlier, self.values, [options[0] for options in choices])
        self.base = [self.values[i] for i in network.cut]
        self.scales = [network.owner[i].scale for i in network.cut]
        self.whole_masks = tuple([(1 << len(choices[p])) - 1 for p in self.positions])
        kernels = [network.kernels.get(p, {}) for p in self.positions]
        steps = sum([len(each) * len(choices[p]) for each, p in zip(kernels, self.positions, strict=True)])
        require(steps <= 1 << 25, "too many choices for a network of this size")
        # What the choices of swappable position i add to a slot of the cut: shifts[i][slot], and in movers[slot].
        self.shifts: list[dict[int, list[int]]] = []
        self.movers: list[list[tuple[int, list[int]]]] = [[] for _ in network.cut]
        for i, (p, each) in enumerate(zip(self.positions, kernels, strict=True)):
            rows = [network.looked_up(p, token) for token in choices[p]]
            deltas = [list(map(sub, row, rows[0])) for row in rows]
            added = {slot: [sum(map(mul, kernel, delta)) for delta in deltas] for slot, kernel in each.items()}
            self.shifts.append(added)
            for slot, column in added.items():
                self.movers[slot].append((i, column))
        # Rules ask for the words of one region several times, and leaves for the same functions of the words.
        self.words = lru_cache(1)(partial(Words, self))
        self.rises = lru_cache(1 + MAX_LEARNED // sum(map(len, choices)))(self.learn)
        self.magnitudes, self.errors = [0] * len(self.values), [0] * len(self.values)
        self.whole: list[int] = []

    # The numbers of the cut when position i is swapped.
    def swapped(self, vector: list[int], i: int, choice: int) -> list[int]:
        vector = vector.copy()
        for slot, column in self.shifts[i].items():
            vector[slot] += column[choice]
        return vector

    # Of the sentence with these numbers of the cut: 1, no rival beats the label; -1, one does; 0, not certain.
    def judged(self, vector: list[int], rivals: Sequence[int], float32: bool) -> int:
        network, values = self.network, self.values
        for i, number in zip(network.cut, vector, strict=True):
            values[i] = number
        network.evaluate(network.later, values)
        logits = [values[i] * factor for i, factor in zip(network.logits, network.factors, strict=True)]
        margins = [(logits[self.label] - logits[r]) << GRID for r in rivals]
        if not float32:
            won = all(margin > 0 or (margin == 0 and self.label < r) for margin, r in zip(margins, rivals, strict=True))
            return 1 if won else -1
        errors = [self.error(self.whole, r) * network.scale for r in rivals]
        for again in (False, True):
            if again:
                local = self.rounded(lambda layer: [grid(values[i], network.owner[i].scale) for i in layer.sources])
                errors = [min(e, self.error(local, r) * network.scale) for e, r in zip(errors, rivals, strict=True)]
            if all(margin > e for margin, e in zip(margins, errors, strict=True)):
                return 1
            if any(-margin > e for margin, e in zip(margins, errors, strict=True)):
                return -1
        return 0

    # ---- the linear recipe (FORMAT section 7)

    # Bounds of what every nonlinear layer reads; None if no sentence has these phases.
    def bounds(self, words: Words, phases: dict[tuple[int, int], int]) -> Box | None:
        box = Box({}, {}, {})
        for layer in self.network.nonlinear:
            here = [self.bounds_of(i, words, box) for i in layer.sources]
            found: list[tuple[int, int]] = []
            if layer.kind == "rectifier":
                for (node, i), sign in phases.items():
                    if node == layer.node:
                        low, high = here[i]
                        here[i] = (max(low, 0), high) if sign > 0 else (low, min(high, 0))
                        if here[i][0] > here[i][1]:
                            return None
                for low, high in here:
                    above = high if high > 0 else ceiling(high * layer.p, layer.q)
                    found.append((low if low > 0 else low * layer.p // layer.q, above))
            else:
                box.picks[layer] = []
                for window in layer.rows:
                    lows, highs = zip(*here[window.start : window.stop], strict=True)
                    at = lows.index(max(lows))
                    certain = max([*highs[:at], *highs[at + 1 :]], default=lows[at]) <= lows[at]
                    box.picks[layer].append((window.start + at, certain, max(highs)))
                    found.append((lows[at], max(highs)))
            box.known.update(enumerate(found, layer.start))
            box.inputs[layer] = here
        return box

    def bounds_of(self, i: int, words: Words, box: Box) -> tuple[int, int]:
        layer = self.network.owner[i]
        if not layer.depth:
            return words.element(self.network.slot[i])
        if i not in box.known:
            low, low_scale = self.minimum({i: 1}, layer.scale, words, box)
            high, high_scale = self.minimum({i: -1}, layer.scale, words, box)
            box.known[i] = low // low_scale, -(high // high_scale)
        return box.known[i]

    # A bound from below of z_winner - z_loser, as (number, scale) in units of the grid.
    def margin(self, winner: int, loser: int, words: Words, box: Box, region: Region) -> tuple[int, int]:
        network, function = self.network, dict.fromkeys(self.network.logits, 0)
        function[network.logits[winner]] += network.factors[winner]
        function[network.logits[loser]] -= network.factors[loser]
        return self.minimum(function, network.scale, words, box, region)

    # (number, below): number / below, in units of the grid, is at most sum function[i] numbers[i] / scale.
    #
    # Backward substitution. Coefficients are over `below`, which has SLOPE_BITS for each nonlinear layer on the way,
    # so that no slope leaves a remainder. The region gives its multipliers.
    def minimum(
        self, function: dict[int, int], scale: int, words: Words, box: Box, region: Region | None = None
    ) -> tuple[int, int]:
        network, constant = self.network, 0
        in_time(network.model.stop)
        region = region or Region((), (), ())
        betas = {key: value for key, value in region.betas.items() if value and key in region.phases}
        shift = SLOPE_BITS * max([network.owner[i].depth for i in function]) + (BETA_BITS if betas else 0)
        below = scale << shift
        pending = {i: c << shift for i, c in function.items() if c}
        for (node, at), value in betas.items():
            i = network.rectifiers[node].sources[at]
            unit, rest = divmod(below, network.owner[i].scale << BETA_BITS)
            require(rest == 0, "a beta on a layer the logits do not depend on")
            pending[i] = pending.get(i, 0) - region.phases[node, at] * value * unit
        groups: dict[int, list[tuple[int, int, int]]] = {}

        def define(top: int, c: int) -> Terms | None:
            nonlocal constant
            layer = network.owner[top]
            at = top - layer.start
            if not layer.depth:
                return None
            if layer.kind == "affine":
                elements, weights, _, bias = layer.rows[at]
                constant += c * bias << GRID
                return zip(elements, [c * weight for weight in weights], strict=True)
            if layer.kind == "maximum":
                chosen, certain, highest = box.picks[layer][at]
                if c > 0 or certain:
                    return [(layer.sources[chosen], c * layer.factors[chosen])]
                constant += c * layer.scale * highest
                return ()
            i, key, own = layer.sources[at], (layer.node, at), c * layer.factors[at]
            if key in region.joint and c < 0 and key not in region.phases:
                group, slope = region.joint[key]
                line = layer.q * slope << (SLOPE_BITS - 6)
                off, on = [-own * ((end << SLOPE_BITS) - line) >> SLOPE_BITS for end in (layer.p, layer.q)]
                groups.setdefault(group, []).append((network.slot[i], off, on))
            else:
                line, rest = relaxed(layer.p, layer.q, c, *box.inputs[layer][at], region.slopes.get(key))
                constant += c * layer.scale * rest // (layer.q << SLOPE_BITS)
            return [(i, own * line >> SLOPE_BITS)]

        falls = tuple([(network.slot[i], -c) for i, c in sorted(substitute(pending, define).items())])
        rises = sum([self.joint_rise(words, members) for members in groups.values()])
        return constant - (rises + self.maximum(words, falls) << GRID), below

    # The maximum over the words of the sum, over (slot, a, b) with a <= b, of max(a x, b x).
    #
    # It is the greatest of the maxima of all functions with a or b chosen for each, which are affine in the words. One
    # function reaches at most what its two halves reach apart, so they are tried in the order of that.
    def joint_rise(self, words: Words, members: list[tuple[int, int, int]]) -> int:
        half = len(members) // 2
        firsts, seconds = self.maxima(words, members[:half]), self.maxima(words, members[half:])
        highest = self.maximum(words, *firsts[0][1], *seconds[0][1])
        for most, parts in sorted([(x + y, f + g) for x, f in firsts for y, g in seconds if x + y > highest])[::-1]:
            if most <= highest:
                break
            highest = max(highest, self.maximum(words, *parts))
        return highest

    # All functions with a or b chosen for each (slot, a, b), and the maximum of each, greatest first; where x has one
    # sign the choice is plain. Each is the sum of all a x, and of some (b - a) x, which no slope changes.
    def maxima(self, words: Words, members: list[tuple[int, int, int]]) -> list[tuple[int, tuple[Function, Function]]]:
        low_ends = tuple([(slot, off) for slot, off, _ in members])
        chosen: list[Function] = [()]
        for slot, off, on in members:
            low, high = words.element(slot)
            more = [(*function, (slot, on - off)) for function in chosen]
            chosen = more if low >= 0 else chosen if high <= 0 else chosen + more
        return sorted([(self.maximum(words, low_ends, steps), (low_ends, steps)) for steps in chosen], reverse=True)

    # What is to be known of the sum of these functions; the halves of a sum are used again.
    def learn(self, *functions: Function) -> Rises:
        half = len(functions) // 2
        if half:
            one, other = self.rises(*functions[:half]), self.rises(*functions[half:])
            both = {i: list(map(add, xs, other.added[i])) for i, xs in one.added.items() if i in other.added}
            return Rises(one.base + other.base, {**one.added, **other.added, **both})
        terms: dict[int, list[tuple[int, list[int]]]] = {}
        for slot, c in functions[0]:
            for i, column in self.movers[slot]:
                terms.setdefault(i, []).append((c, column))
        added = {}
        for i, pairs in terms.items():
            factors, columns = zip(*pairs, strict=True)
            added[i] = [sum(map(mul, factors, row)) for row in zip(*columns, strict=True)]
        return Rises(sum([c * self.base[slot] for slot, c in functions[0]]), added)

    # The maximum over the words of the sum of c * (number of slot), over these functions.
    def maximum(self, words: Words, *functions: Function) -> int:
        rises = self.rises(*functions)
        if words.room is None:
            return rises.base + words.best([rises[i, mask & ~1] for i, mask in enumerate(words.masks)])
        # Of the positions with all choices only the first in the order can be among the best.
        gains = [gain for gain, i in rises.order[: words.room + len(words.lack)] if i not in words.lack]
        gains += map(rises.__getitem__, words.lacking)
        gains.sort(reverse=True)
        return rises.base + sum(gains[: words.room]) + sum(map(rises.__getitem__, words.forced))

    # ---- float32 (FORMAT section 8)

    # The whole-space pass: rounding errors of the logits for every sentence, and the conditions they need.
    def prepare_float32(self) -> None:
        if not self.whole:
            require(not self.network.no_float32, f"{NO_FLOAT32}: {self.network.no_float32}")
            self.whole = self.rounded(lambda layer: list(map(self.whole_ends, layer.sources)), True)

    # Of an element, over all choices.
    def whole_ends(self, i: int) -> tuple[int, int]:
        layer, size = self.network.owner[i], self.magnitudes[i]
        return grid(layer.rows[i - layer.start][3], layer.scale) if layer.kind == "constants" else (-size, size)

    # Rounding errors of the logits, given bounds of what nonlinear layers read.
    def rounded(self, bounds: Callable[[Layer], Bounds], first: bool = False) -> list[int]:
        sizes, errors = self.magnitudes, self.errors
        for layer in self.network.layers if first else self.network.later:
            if layer.kind in ("affine", "constants"):
                self.round_rows(layer, first)
                continue
            if layer.kind == "embedding":
                held = [zip(*[layer.row(token) for token in self.choices[p]], strict=True) for p in layer.rows]
                found = [ceiling(max(map(abs, column)) << GRID, layer.scale) for columns in held for column in columns]
                sizes[layer.start : layer.start + layer.size] = found
                continue
            here, given = bounds(layer), [errors[i] for i in layer.sources]
            if layer.kind == "maximum":
                windows = [zip(*here[window.start : window.stop], strict=True) for window in layer.rows]
                here = [(max(lows), max(highs)) for lows, highs in windows]
                given = [max(given[window.start : window.stop]) for window in layer.rows]
            found = [max(-low, high) for low, high in here]
            if layer.p:
                reach = max(map(add, found, given))
                require(not first or reach <= HEAVY, f"{NO_FLOAT32}: the input of a LeakyRelu is too large")
                given = [ceiling((e << 32) + 4 * 257 * (a + e), 1 << 32) + 1 for a, e in zip(found, given, strict=True)]
            elif layer.kind == "rectifier":
                given = [0 if high + e <= 0 else e for (_, high), e in zip(here, given, strict=True)]
                found = [max(high, 0) for _, high in here]
            sizes[layer.start : layer.start + layer.size] = found
            errors[layer.start : layer.start + layer.size] = given
        return [errors[i] for i in self.network.logits]

    # Bounds (A, e) of an affine layer or constants; in the first pass the limits are checked.
    def round_rows(self, layer: Layer, first: bool) -> None:
        magnitudes, errors, scale = self.magnitudes, self.errors, layer.scale
        unit = scale // layer.weight_scale
        for at, (elements, _, weights, bias) in enumerate(layer.rows, layer.start):
            exact = [magnitudes[i] for i in elements]
            carried = [errors[i] for i in elements]
            added = abs(bias) << GRID
            magnitudes[at] = ceiling(sum(map(mul, weights, exact)) * unit + added, scale)
            if layer.kind == "affine":
                reach = list(map(add, exact, carried))
                terms = list(map(mul, weights, reach))
                n, total = len(terms) - terms.count(0) + 3, sum(terms) * unit + added
                if first:
                    large = max(reach, default=0) > HEAVY and any(
                        w for w, x in zip(weights, reach, strict=True) if x > HEAVY
                    )
                    fits = n <= 65280 and total <= scale * HEAVY and not large
                    require(fits, f"{NO_FLOAT32}: terms, their sums or their number are too large")
                grown = (sum(map(mul, weights, carried)) * unit << 32) + n * 257 * total
                errors[at] = ceiling(grown, scale << 32) + 1

    # How far the difference of two float32 logits can be from the real one.
    def error(self, errors: Sequence[int], rival: int) -> int:
        return errors[self.label] + errors[rival] + 1


# Bounds: of what nonlinear layers read, of elements, and of the windows of a maximum the first place with the
# greatest low bound, whether it is the greatest for certain, and the highest bound.
class Box(NamedTuple):
    inputs: dict[Layer, Bounds]
    known: dict[int, tuple[int, int]]
    picks: dict[Layer, list[tuple[int, bool, int]]]


# (a, t): c y >= c (a x + t) for y = max(x, x p / q), x in [low, high]; both times q and 2**SLOPE_BITS.
def relaxed(p: int, q: int, c: int, low: int, high: int, slope: int | None) -> tuple[int, int]:
    if low >= 0 or high <= 0:
        return (q if low >= 0 else p) << SLOPE_BITS, 0
    if c > 0:
        chosen = (q if high > -low else p) << SLOPE_BITS
        return chosen if slope is None else max(p << SLOPE_BITS, q * slope << (SLOPE_BITS - 6)), 0
    width = (high - low) * q
    s = (((high * q - p * low) << (SLOPE_BITS + 1)) + width) // (2 * width)
    return q * s, max(((p << SLOPE_BITS) - q * s) * low, ((1 << SLOPE_BITS) - s) * q * high)


# ---------------------------------------------------------------------------------------------------------- the tree


# Reads a proof tree in preorder and proves every leaf; the children of a split are made here.
#
# With `counting` leaves may be open or broken: `open` and `broken` count the sentences in them.
class Tree:
    def __init__(
        self, space: Space, data: bytes, rivals: Sequence[int], swaps: int, level: str, counting: bool = False
    ) -> None:
        self.space = space
        self.data = data
        self.at = 0
        self.rivals = tuple(rivals)
        self.swaps = swaps
        self.float32 = level == "float32"
        self.counting = counting
        self.enumerated = self.open = self.broken = 0
        self.everywhere = frozenset(range(len(space.choices)))
        self.root = Region(space.whole_masks, ((self.everywhere, 0, swaps),), self.rivals)
        if self.float32:
            space.prepare_float32()

    def check(self) -> None:
        stack, nodes = [self.root], 0
        while stack:
            region = stack.pop()
            nodes += 1
            require(nodes <= 5_000_000 and region.depth <= 100_000, "the tree is too large or too deep")
            held = len(region.masks) + sum(map(len, (region.phases, region.slopes, region.betas, region.groups)))
            require(len(stack) * held <= MAX_PENDING, "too many regions wait while they hold so much")
            self.look_at_the_clock()
            kind = self.byte()
            require(kind in RULES, f"tree byte {kind} is not in version 1")
            stack += reversed(RULES[kind](self, region) or [])
        require(self.at == len(self.data), "bytes after the end of the tree")

    def look_at_the_clock(self) -> None:
        in_time(self.space.network.model.stop)

    # ---- bytes

    def byte(self) -> int:
        require(self.at < len(self.data), "the tree ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        start = self.at
        value, self.at = leb128(self.data, start, require)
        minimal = self.data[self.at - 1] > 0 or self.at == start + 1
        require(minimal and value < 1 << 31, "a number in the tree is not minimal or too large")
        return value

    def mask(self, bits: int) -> int:
        value = int.from_bytes(bytes([self.byte() for _ in range((bits + 7) // 8)]), "little")
        require(value < 1 << bits, "a mask with bits beyond its options")
        return value

    # So many numbers below `end`, the first as it is, then each as a step from the last.
    def ascending(self, count: int, end: int, what: str) -> Iterator[int]:
        value = -1
        for _ in range(count):
            step = self.number()
            require(value < 0 or step > 0, "indices must ascend")
            value = max(value, 0) + step
            require(value < end, f"{what} out of range")
            yield value

    def rectifier(self, plain: bool = False) -> Layer:
        node = self.number()
        layer = self.space.network.rectifiers.get(node)
        if layer is None or (plain and layer.p):
            raise Refused(f"node {node} is not a {'Relu' if plain else 'rectifier'} the logits depend on")
        return layer

    # Elements of a rectifier, with a value for each.
    def entries(self, layer: Layer, most: int, highest: int) -> Iterator[tuple[tuple[int, int], int]]:
        count = self.number()
        require(0 < count <= most, f"{count} elements of a layer")
        for i in self.ascending(count, layer.size, "an element"):
            value = self.number()
            require(value <= highest, "a value out of range")
            yield (layer.node, i), value

    # (node, element) -> value.
    def table(self, plain: bool, highest: int, least: int = 1) -> dict[tuple[int, int], int]:
        count, last = self.number(), -1
        found: dict[tuple[int, int], int] = {}
        require(count >= least, "an empty table")
        for _ in range(count):
            layer = self.rectifier(plain)
            require(layer.node > last, "a table out of order")
            last = layer.node
            found.update(self.entries(layer, layer.size, highest))
        return found

    # ---- splits and settings

    def split_words(self, region: Region) -> list[Region]:
        position = self.number()
        require(position in self.space.index, f"position {position} has nothing to split")
        i, masks = self.space.index[position], region.masks
        chosen = self.mask(len(self.space.choices[position]))
        sides = chosen, masks[i] & ~chosen
        require(chosen & ~masks[i] == 0 and all(sides), f"a split at position {position} that splits nothing")
        return [child(region, masks=(*masks[:i], side, *masks[i + 1 :])) for side in sides]

    def split_phase(self, region: Region) -> list[Region]:
        layer = self.rectifier(plain=True)
        key = layer.node, self.number()
        require(key[1] < layer.size and key not in region.phases, "a phase out of range or set twice")
        return [child(region, phases={**region.phases, key: sign}, whole=False) for sign in (-1, 1)]

    def split_budget(self, region: Region) -> list[Region]:
        count = self.number()
        require(0 < count <= len(self.everywhere), "a group of impossible size")
        group = frozenset(self.ascending(count, len(self.everywhere), "a group"))
        bound = self.number()
        nested = all(group <= other or other < group or not group & other for other, *_ in region.groups)
        require(nested, "a group that overlaps another")
        others = tuple([other for other in region.groups if other[0] != group])
        low, high = next((ends for other, *ends in region.groups if other == group), (0, count))
        ranges = (low, min(high, bound)), (max(low, bound + 1), high)
        return [child(region, groups=(*others, (group, *ends))) for ends in ranges]

    def split_rivals(self, region: Region) -> list[Region]:
        chosen = self.mask(len(self.rivals))
        named = tuple([r for i, r in enumerate(self.rivals) if chosen >> i & 1])
        others = tuple([r for r in region.rivals if r not in named])
        require(set(named) <= set(region.rivals) and named and others, "a split of rivals that splits nothing")
        return [child(region, rivals=side, whole=False) for side in (named, others)]

    def set_slopes(self, region: Region) -> list[Region]:
        return [child(region, slopes={**region.slopes, **self.table(False, 64)})]

    def set_betas(self, region: Region) -> list[Region]:
        exponent = self.number()
        require(exponent <= BETA_BITS, f"betas finer than 2**-{BETA_BITS}")
        new = {key: value << (BETA_BITS - exponent) for key, value in self.table(True, 1 << 31).items()}
        return [child(region, betas={**region.betas, **new})]

    def set_joint(self, region: Region) -> list[Region]:
        joint: dict[tuple[int, int], tuple[int, int]] = {}
        for group in range(self.number()):
            layer = self.rectifier()
            require(layer.depth == 1, "joint groups need pre-activations that are affine in the words")
            for key, slope in self.entries(layer, 8, 64):
                require(key not in joint, "an element in two joint groups")
                joint[key] = group, slope
        return [child(region, joint=joint)]

    # ---- leaves

    def empty(self, region: Region) -> None:
        require(self.space.words(region.masks, region.groups).empty, "a leaf said to be empty is not")

    def linear(self, region: Region) -> None:
        self.prove(region, [(self.space.label, rival) for rival in region.rivals])

    def leave_open(self, region: Region) -> None:
        require(self.counting and region.whole, "an open leaf where none is allowed")
        self.open += self.count(region)

    def break_all(self, region: Region) -> None:
        rival = self.number()
        require(self.counting and region.whole, "a broken leaf where none is allowed")
        require(rival in region.rivals, f"class {rival} is no rival")
        self.prove(region, [(rival, self.space.label)])
        self.broken += self.count(region)

    # How many sentences a region holds, phases left out of account.
    def count(self, region: Region, whole_only: bool = False) -> int:
        able = len(region.masks) - region.masks.count(1)
        require(able * min(able, self.swaps) <= 10**7, "too many positions to count sentences")
        return self.space.words(region.masks, region.groups).sentences(whole_only)

    # In every sentence of the region the first class of each pair beats the second.
    def prove(self, region: Region, pairs: list[tuple[int, int]]) -> None:
        space, local = self.space, None
        words = space.words(region.masks, region.groups)
        box = None if words.empty else space.bounds(words, region.phases)
        if box is None:
            return
        for winner, loser in pairs:
            number, below = space.margin(winner, loser, words, box, region)
            proved = number > 0 or (number == 0 and winner < loser)
            if self.float32:
                rival = loser if winner == space.label else winner
                proved = number > space.error(space.whole, rival) * below
                if not proved:
                    local = local or space.rounded(box.inputs.__getitem__)
                    proved = number > space.error(local, rival) * below
            shown = f"class {winner} against {loser}, margin {number * 1000 // (below << GRID)}/1000 at least"
            require(proved, f"a linear leaf does not hold: {shown}")

    def enumerate(self, region: Region) -> None:
        space, masks = self.space, region.masks
        self.enumerated += self.count(region, whole_only=True)
        require(self.enumerated <= 20_000_000, "too many sentences to enumerate")
        high = next(high for group, _, high in region.groups if group == self.everywhere)
        forced = [i for i, mask in enumerate(masks) if not mask & 1]
        order = forced + [i for i, mask in enumerate(masks) if mask & 1 and mask != 1]
        # Where in the order to go on, the numbers of the cut, which positions are swapped.
        stack: list[tuple[int, list[int], tuple[int, ...]]] = [(0, space.base, ())]
        while stack:
            start, vector, swapped = stack.pop()
            self.look_at_the_clock()
            inside = all(low <= len(group.intersection(swapped)) <= most for group, low, most in region.groups)
            if start >= len(forced) and inside:
                found = space.judged(vector, region.rivals, self.float32)
                require(found > 0 or (self.counting and region.whole), "an enumerated sentence is not safe")
                self.broken += found < 0
                self.open += found == 0
            if len(swapped) < high:
                for at in range(start, start + 1 if start < len(forced) else len(order)):
                    i = order[at]
                    more = (*swapped, space.positions[i])
                    options = [choice for choice in range(1, masks[i].bit_length()) if masks[i] >> choice & 1]
                    stack += [(at + 1, space.swapped(vector, i, choice), more) for choice in options]


def child(region: Region, **news: Any) -> Region:
    return replace(region, depth=region.depth + 1, **news)


LEAVES = {0: Tree.empty, 1: Tree.linear, 2: Tree.enumerate, 3: Tree.leave_open, 16: Tree.break_all}
SPLITS = {4: Tree.split_words, 5: Tree.split_phase, 6: Tree.split_budget, 7: Tree.split_rivals}
SETTINGS = {8: Tree.set_slopes, 9: Tree.set_betas, 10: Tree.set_joint}
RULES: dict[int, Callable[[Tree, Region], list[Region] | None]] = {**LEAVES, **SPLITS, **SETTINGS}


# --------------------------------------------------------------------------------------------------- the certificate

HASH = re.compile("[0-9a-f]{64}")
NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
DECIMAL = re.compile("0|[1-9][0-9]{0,4816}")
NUMBER_OF_FILE = re.compile("([0-9]{6})[.]json")


# Patterns: an expression for strings; a range of integers; a value itself; a list of one pattern for an array of any
# length; a tuple for an array of as many; a dictionary for an object with these keys.
LEVEL, BASE64 = re.compile("real|float32"), re.compile("[A-Za-z0-9+/=]*")
TREE = {"level": LEVEL, "recipe": "linear-1", "swaps": range(10**6 + 1), "tree": BASE64}
FILE = {"file": NAME, "sha256": HASH}
LEVELS = re.compile("real|float32|replay")
CERTIFICATE = {
    "format": "swapproof certificate",
    "version": 1,
    "id": range(1 << 63),
    "model": {**FILE, "tensors": [(NAME, HASH)]},
    "vocabulary": FILE,
    "text": HASH,
    "synonyms": HASH,
    "space": HASH,
    "choices": [[range(1 << 31)]],
    "label": range(1024),
    "rivals": [range(1024)],
    "lower": TREE,
    "count": {**TREE, "robust": DECIMAL, "broken": DECIMAL, "total": DECIMAL},
    "upper": {"levels": [LEVELS], "swaps": [(range(MAX_POSITIONS), range(1 << 31))]},
}
MAY_BE_NULL = ("vocabulary", "synonyms", "lower", "count", "upper")


def expect(value: Any, pattern: Any, what: str) -> None:
    if isinstance(pattern, dict):
        fits = type(value) is dict and value.keys() == pattern.keys()
        require(fits, f"{what} must have exactly the keys {sorted(pattern)}")
        for name, inner in pattern.items():
            if value[name] is not None or name not in MAY_BE_NULL:
                expect(value[name], inner, name)
    elif isinstance(pattern, list | tuple):
        require(type(value) is list, f"{what} must be an array")
        inners = pattern if isinstance(pattern, tuple) else pattern * len(value)
        require(len(value) == len(inners), f"{what} must be an array of {len(inners)}")
        for item, inner in zip(value, inners, strict=True):
            expect(item, inner, what)
    elif isinstance(pattern, re.Pattern):
        require(type(value) is str and pattern.fullmatch(value), f"{what} is {value!r:.40}, not as it should be")
    elif isinstance(pattern, range):
        fits = type(value) is int and value in pattern
        require(fits, f"{what} is {value!r:.40}, not an integer from {pattern[0]} to {pattern[-1]}")
    else:
        require(type(value) is type(pattern) and value == pattern, f"{what} is {value!r:.40}, not {pattern}")


# The value of canonical JSON (FORMAT section 2). What may stand in strings, that numbers are integers, that true and
# false are not there, and the depth of nesting are left to `expect`.
def parse_canonical(data: bytes) -> Any:
    require(len(data) <= MAX_CERTIFICATE, "the certificate is too large")
    require(sum(map(data.count, (b"[", b"{", b","))) <= 4 * MAX_CHOICES, "the certificate has too many parts")
    try:
        value = json.loads(data.decode("ascii"))
        canonical = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except UnicodeDecodeError:
        raise Refused("the certificate is not ASCII") from None
    except (ValueError, RecursionError):
        raise Refused("the certificate is not JSON, is nested deeply, or has a number of thousands of digits") from None
    require(data == canonical, "the certificate is not in canonical form")
    return value


# Of `total` sentences with at most `swaps` swaps, at least these many are robust, and at least these broken.
class Count(NamedTuple):
    swaps: int
    level: str
    robust: int
    broken: int
    total: int


# An accepted certificate in numbers, and what it says in one plain sentence.
@dataclass(frozen=True)
class Verdict:
    id: int
    low: int
    high: int | None
    level: str | None
    witness_levels: tuple[str, ...]
    sentence: str
    count: Count | None = None


# The object of a certificate, its keys and values of the right kinds, its choices as they were hashed.
def read_certificate(data: bytes) -> dict[str, Any]:
    top: dict[str, Any] = parse_canonical(data)
    expect(top, CERTIFICATE, "a certificate")
    names = [name for name, _ in top["model"]["tensors"]]
    require(names == sorted(set(names)), "tensor files must ascend")
    require(top["lower"] or top["count"] or top["upper"], "a certificate that claims nothing")
    sizes = list(map(len, top["choices"]))
    require(0 < len(sizes) <= MAX_POSITIONS and sum(sizes) <= MAX_CHOICES, "too many choices, or none")
    require(min(sizes) > 0 and max(sizes) <= MAX_POSITIONS, "empty choices, or too many at one position")
    require(all(len(set(options)) == len(options) for options in top["choices"]), "a position lists a token twice")
    digest = sha256(json.dumps(top["choices"], separators=(",", ":")).encode())
    require(top["space"] == digest, "the hash of the choices is another")
    return top


# Check one certificate against a parsed model; the caller has hashed the vocabulary file, if there is one.
# Raises Refused when the certificate does not prove its claims, Unusable when the model is outside the format.
def check_certificate(
    data: bytes, model: Model, vocabulary_sha256: str | None = None, seconds: float = SECONDS
) -> Verdict:
    return check_claims(read_certificate(data), model, vocabulary_sha256, time.monotonic() + seconds)


def check_claims(top: dict[str, Any], model: Model, vocabulary_sha256: str | None, stop: float) -> Verdict:
    choices, label, rivals, vocabulary = top["choices"], top["label"], top["rivals"], top["vocabulary"]
    require(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    require(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    require(vocabulary is None or vocabulary["sha256"] == vocabulary_sha256, "made for another vocabulary")
    network = model.network(len(choices), choices, stop)
    require(max(label, *rivals, 0) < network.classes, f"label and rivals must be below {network.classes}")
    require(rivals and rivals == sorted(set(rivals)) and label not in rivals, "impossible rivals")
    lower, count, upper = top["lower"], top["count"], top["upper"]
    require(not lower or not count or count["swaps"] > lower["swaps"], "a count that adds nothing to lower")
    space = Space(network, choices, label)
    if lower:
        read_tree(lower, space, rivals).check()
    counted = check_count(count, read_tree(count, space, rivals, counting=True)) if count else None
    if upper:
        check_witness(upper, space, rivals)
    require(not lower or not upper or len(upper["swaps"]) > lower["swaps"], "upper and lower contradict each other")
    return verdict_of(top, network.classes, counted)


# What was found to hold.
def verdict_of(top: Mapping[str, Any], classes: int, count: Count | None) -> Verdict:
    lower, upper, rivals = top["lower"], top["upper"], top["rivals"]
    against = "the class" if len(rivals) == classes - 1 else f"the class to one of {rivals}"
    parts: list[str] = []
    low, high = lower["swaps"] + 1 if lower else 0, len(upper["swaps"]) if upper else None
    if lower:
        able = sum([len(options) > 1 for options in top["choices"]])
        extent = "however many swaps" if low > able else f"at most {swaps(lower['swaps'])}"
        parts.append(f"no sentence with {extent} changes {against} ({lower['level']})")
    if count:
        extent = f"of the {top['count']['total']} sentences with at most {swaps(count.swaps)}"
        found = f"{top['count']['robust']} do not change {against}, {top['count']['broken']} do"
        rest = "; the others are open" if count.robust + count.broken < count.total else ""
        parts.append(f"{extent}, {found} ({count.level}{rest})")
    if upper:
        how = ", ".join(["replay as recorded, not checked" if name == "replay" else name for name in upper["levels"]])
        found = f"a sentence with {swaps(high)} changes it" if high else "the text itself is answered wrongly"
        parts.append(f"{found} ({how})")
    if low == high and upper["levels"] != ["replay"]:
        parts.append(f"min_swaps = {high}")
    sentence = f"text {top['id']}, class {top['label']}: " + "; ".join(parts)
    level, levels = lower and lower["level"], tuple(upper["levels"]) if upper else ()
    return Verdict(top["id"], low, high, level, levels, sentence, count)


def swaps(number: int) -> str:
    return f"{number} swap" if number == 1 else f"{number} swaps"


# Python itself refuses to write more than 4,300 digits.
def decimal(number: int) -> str:
    return str(number) if number < 10**4000 else str(number // 10**4000) + str(number % 10**4000).zfill(4000)


def read_tree(entry: dict[str, Any], space: Space, rivals: list[int], counting: bool = False) -> Tree:
    try:
        data = base64.b64decode(entry["tree"], validate=True)
    except ValueError:
        raise Refused("the tree is not base64") from None
    require(base64.b64encode(data).decode() == entry["tree"], "the tree is not canonical base64")
    return Tree(space, data, rivals, entry["swaps"], entry["level"], counting)


def check_count(entry: dict[str, Any], tree: Tree) -> Count:
    tree.check()
    total = tree.count(tree.root)
    count = Count(entry["swaps"], entry["level"], total - tree.broken - tree.open, tree.broken, total)
    for name, number in (("total", total), ("broken", count.broken), ("robust", count.robust)):
        require(entry[name] == decimal(number), f"the number of sentences {name} is another")
    return count


def check_witness(entry: dict[str, Any], space: Space, rivals: list[int]) -> None:
    levels = entry["levels"]
    ordered = [name for name in ("real", "float32", "replay") if name in levels]
    require(levels and levels == ordered, "impossible levels")
    vector, last = space.base, -1
    for position, token in entry["swaps"]:
        require(last < position < len(space.choices), "positions of a witness must ascend, within the text")
        require(token in space.choices[position][1:], f"token {token} is no swap at position {position}")
        vector = space.swapped(vector, space.index[position], space.choices[position].index(token))
        last = position
    if "real" in levels:
        require(space.judged(vector, rivals, False) < 0, "the witness changes nothing over the reals")
    if "float32" in levels:
        space.prepare_float32()
        require(space.judged(vector, rivals, True) < 0, "the witness is within the float32 rounding error")


# -------------------------------------------------------------------------------------------------- files and folders


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# At most so many bytes and one more, by which its reader sees that there are too many.
def read_file(path: Path, limit: int) -> bytes:
    try:
        need(path.is_file(), f"{path} cannot be read: there is no such regular file")
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None


# The files of a run folder; models are parsed once.
class Files:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models: dict[tuple[str, ...], Model] = {}

    def model(self, bound: dict[str, Any]) -> Model:
        names = bound["file"], *[name for name, _ in bound["tensors"]]
        if names not in self.models:
            data, *tensors = [read_file(self.folder / name, MAX_MODEL) for name in names]
            require(sha256(data) == bound["sha256"], "made for another model: the SHA-256 differs")
            self.models[names] = read_model(data, dict(zip(names[1:], tensors, strict=True)))
        return self.models[names]

    def check(self, path: Path, seconds: float) -> tuple[Verdict, bytes]:
        data = read_file(path, MAX_CERTIFICATE)
        top = read_certificate(data)
        numbered = NUMBER_OF_FILE.fullmatch(path.name)
        require(numbered is None or int(numbered[1]) == top["id"], f"the file is {path.name}, its id {top['id']}")
        bound = top["vocabulary"]
        vocabulary = sha256(read_file(self.folder / bound["file"], MAX_MODEL)) if bound else None
        return check_claims(top, self.model(top["model"]), vocabulary, time.monotonic() + seconds), data


# The run folder of a certificate.
def folder_of(path: Path) -> Path:
    parent = path.absolute().parent
    return parent.parent if parent.name == "certificates" else parent


# Check one certificate file with the files beside it (or beside its folder `certificates`).
def check_file(path: Path | str, seconds: float = SECONDS) -> Verdict:
    return Files(folder_of(Path(path))).check(Path(path), seconds)[0]


# Over (file name, bytes), in the order given; FORMAT section 2.
def merkle_root(leaves: Sequence[tuple[str, bytes]]) -> str:
    level = [hashlib.sha256(b"\0" + name.encode() + b"\n" + data).digest() for name, data in leaves]
    while len(level) > 1:
        paired = [hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()


# (accepted, all) certificates of a run folder or of one file.
def check_run(path: Path, seconds: float, say: Callable[[str], None]) -> tuple[int, int]:
    folder, found, held = folder_of(path), [path], path / "certificates"
    if path.is_dir():
        need(held.is_dir(), f"{path} holds no folder `certificates`")
        folder, found = path, sorted([item for item in held.iterdir() if item.name.endswith(".json")])
        named = found and all(NUMBER_OF_FILE.fullmatch(item.name) for item in found)
        need(named, f"{held} holds no certificates, or files that are none")
    files, leaves = Files(folder), []
    for item in found:
        try:
            verdict, data = files.check(item, seconds)
        except Unusable:
            raise
        except Exception as error:
            met = "" if isinstance(error, Refused) else f"the checker met {type(error).__name__}: "
            say(f"refused {item.name}: {met}{error}")
        else:
            say(f"{item.name}: {verdict.sentence}")
            leaves.append((item.name, data))
    if path.is_dir() and len(leaves) == len(found):
        root = merkle_root(leaves)
        say(f"Merkle root {root}")
        stated = held / "root"
        if (stated.exists() or stated.is_symlink()) and read_file(stated, 65) != root.encode() + b"\n":
            say(f"refused: {stated} says another Merkle root")
            return 0, len(found)
    return len(leaves), len(found)


# Exit code 0 after `accepted N of N`; 4 when something was refused; 2 when there is nothing to check.
def main(arguments: list[str]) -> int:
    def say(line: str, stream: TextIO = sys.stdout) -> None:
        print(line.encode("ascii", "backslashreplace").decode(), flush=True, file=stream)

    seconds = SECONDS
    if len(arguments) == 3 and arguments[0] == "--seconds" and re.fullmatch("[0-9]{1,9}", arguments[1]):
        seconds, arguments = float(arguments[1]), arguments[2:]
    try:
        usable = len(arguments) == 1 and not arguments[0].startswith("--")
        need(usable, "usage: check.py [--seconds S] RUN_OR_FILE")
        accepted, total = check_run(Path(arguments[0]), seconds, say)
    except Unusable as error:
        say(f"check.py: {error}", sys.stderr)
        return 2
    if accepted != total:
        say(f"refused {total - accepted} of {total}")
        return 4
    say(f"accepted {accepted} of {total}")
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except OSError:  # what was to be said could not be written; nor could what is left of it at the usual end
        os._exit(2)
    sys.exit(code)
