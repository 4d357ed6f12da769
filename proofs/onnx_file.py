"""What an ONNX file holds (FORMAT.md, section 4.1): nodes, attributes, tensors, inputs, an output.

    found = OnnxFile(data, files, make)                files: the external tensor files by name

This file is trusted, as check.py is: lower.py makes a network of what is read here. Standard library only. It knows
nothing of networks. Order: errors, protobuf messages, types, the file. What is outside the format raises `Unusable`,
what speaks against the certificate `Refused`.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from math import inf, isfinite, prod
from typing import Any, NamedTuple

# Limits (FORMAT section 9).
MAX_FILE = 1 << 31
MAX_NODES = 100_000
MAX_RANK = 8
MAX_STORED = 1 << 28
MAX_SHAPE = 1 << 22


class Refused(ValueError):
    """The certificate does not prove what it claims."""


class Unusable(ValueError):
    """There is nothing here to check: a missing file, or a model outside the format."""


def require(fact: object, otherwise: str) -> None:
    if not fact:
        raise Refused(otherwise)


def need(fact: object, otherwise: str) -> None:
    if not fact:
        raise Unusable(otherwise)


def in_time(stop: float) -> None:
    require(time.monotonic() < stop, "not checked within the time allowed")


def sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


class Holds(Enum):
    """What a field of a protobuf message holds, and the wire types that fit."""

    INTEGER = "an integer", (0,)
    INTEGERS = "integers, packed or not", (0, 2)
    FLOAT = "the bytes of a float", (5,)
    FLOATS = "the bytes of floats, packed or not", (5, 2)
    DOUBLES = "the bytes of doubles, packed or not", (1, 2)
    TEXT = "a string", (2,)
    TEXTS = "strings", (2,)
    MESSAGE = "a message, or bytes", (2,)
    MESSAGES = "messages", (2,)
    ANYTHING = "what is ignored", (0, 1, 2, 5)


INTEGER, INTEGERS, FLOAT, FLOATS, DOUBLES, TEXT, TEXTS, MESSAGE, MESSAGES, ANYTHING = Holds
SINGLE = (INTEGER, FLOAT, TEXT, MESSAGE)
Fields = dict[int, tuple[str, Holds]]


def fields(*ignored: int, **known: tuple[int, Holds]) -> Fields:
    """What a message may have in it, by number."""
    named = {number: (name, holds) for name, (number, holds) in known.items()}
    return {**dict.fromkeys(ignored, ("", ANYTHING)), **named}


MODEL = fields(*(2, 3, 4, 5, 6, 14), ir_version=(1, INTEGER), graph=(7, MESSAGE), opsets=(8, MESSAGES))
OPSET = fields(domain=(1, TEXT), version=(2, INTEGER))
GRAPH = fields(
    *(2, 10, 13, 16), nodes=(1, MESSAGES), initializers=(5, MESSAGES), inputs=(11, MESSAGES), outputs=(12, MESSAGES)
)
NODE = fields(
    *(3, 6, 9), inputs=(1, TEXTS), outputs=(2, TEXTS), operator=(4, TEXT), attributes=(5, MESSAGES), domain=(7, TEXT)
)
ATTRIBUTE = fields(
    13,
    name=(1, TEXT),
    float=(2, FLOAT),
    integer=(3, INTEGER),
    text=(4, TEXT),
    tensor=(5, MESSAGE),
    floats=(7, FLOATS),
    integers=(8, INTEGERS),
    texts=(9, TEXTS),
    type=(20, INTEGER),
)
TENSOR = fields(
    *(12, 16),
    sizes=(1, INTEGERS),
    type=(2, INTEGER),
    float_data=(4, FLOATS),
    int32_data=(5, INTEGERS),
    int64_data=(7, INTEGERS),
    name=(8, TEXT),
    raw_data=(9, MESSAGE),
    double_data=(10, DOUBLES),
    external_data=(13, MESSAGES),
    data_location=(14, INTEGER),
)
ENTRY = fields(key=(1, TEXT), value=(2, TEXT))
VALUE_INFO = fields(3, 4, name=(1, TEXT), type=(2, MESSAGE))
TYPE = fields(6, tensor=(1, MESSAGE))
TENSOR_TYPE = fields(number=(1, INTEGER), shape=(2, MESSAGE))
SHAPE = fields(dimensions=(1, MESSAGES))
DIMENSION = fields(2, 3, size=(1, INTEGER))


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """A protobuf integer, seven bits a byte, low first, taken as signed; and where the next thing begins."""
    value, shift, byte = 0, 0, 128
    while byte > 127:
        need(at < len(data) and shift < 70, "a number in the ONNX file ends too early, or is too large")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
    need(value < 1 << 64, "a number in the ONNX file is beyond 64 bits")
    return value - (value >> 63 << 64), at


def varints(data: memoryview) -> Iterator[int]:
    """All integers of a packed field."""
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def read(data: memoryview | None, what: str, known: Fields) -> dict[str, Any]:
    """The fields of a message by name: lists of those that may repeat, None or "" for others that are absent."""
    if data is None:
        raise Unusable(f"{what} is missing")
    found: dict[str, Any] = {name: [] for name, _ in known.values()}
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
        need(number in known, f"field {number} in {what} is outside the format")
        name, holds = known[number]
        fits = wire in holds.value[1] and not (holds in SINGLE and found[name])
        need(fits, f"field {number} in {what} has the wrong wire type, or occurs twice")
        if holds in (TEXT, TEXTS):
            value, stored = str(value, "utf-8", "replace"), value
            need(value.encode() == stored, "a name in the ONNX file is not UTF-8")
        if holds in (FLOATS, DOUBLES):
            need(len(value) % (4 if holds is FLOATS else 8) == 0, f"{what} has a part of a number in {name}")
        if holds is INTEGERS and wire == 2:
            found[name] += varints(value)
        elif value or holds not in (FLOATS, DOUBLES):
            found[name].append(value)
    for name, holds in known.values():
        if holds in SINGLE:
            found[name] = next(iter(found[name]), "" if holds is TEXT else None)
    return found


class TensorType(IntEnum):
    FLOAT = 1
    INT32 = 6
    INT64 = 7
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11


FLOATING = (TensorType.FLOAT, TensorType.FLOAT16, TensorType.DOUBLE)
INT32, INT64 = range(-(1 << 31), 1 << 31), range(-(1 << 63), 1 << 63)
INTEGER_RANGES: dict[int, range] = {TensorType.INT64: INT64, TensorType.INT32: INT32, TensorType.BOOL: range(2)}
# The code of their numbers in `struct` and `array`, and the field of a tensor for those that are not raw.
STORED: dict[int, tuple[str, str]] = {
    TensorType.FLOAT: ("f", "float_data"),
    TensorType.DOUBLE: ("d", "double_data"),
    TensorType.FLOAT16: ("e", "int32_data"),
    TensorType.INT64: ("q", "int64_data"),
    TensorType.INT32: ("i", "int32_data"),
    TensorType.BOOL: ("B", "int32_data"),
}


class AttributeType(IntEnum):
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    FLOATS = 6
    INTS = 7
    STRINGS = 8


# Attributes by what they hold, the same in all operators that have them; flags are 0 or 1.
FLAGS = ("allowzero", "keepdims", "noop_with_empty_axes", "ceil_mode", "count_include_pad", "transA", "transB")
WHOLE = (
    "axis",
    "batch_dims",
    "end",
    "group",
    "num_outputs",
    "seed",
    "start",
    "storage_order",
    "to",
    "training_mode",
    "value_int",
)
MAY_BE_LOW = ("value_float", "value_floats")
CELLS = ("hidden_size", "input_forget", "layout", "linear_before_reset", "stash_type")
ATTRIBUTES: dict[AttributeType, tuple[str, ...]] = {
    AttributeType.FLOAT: ("alpha", "beta", "epsilon", "momentum", "ratio", "value_float"),
    AttributeType.INT: (*FLAGS, *WHOLE, *CELLS),
    AttributeType.STRING: ("approximate", "auto_pad", "direction", "mode"),
    AttributeType.TENSOR: ("value",),
    AttributeType.FLOATS: ("value_floats",),
    AttributeType.INTS: ("axes", "dilations", "kernel_shape", "pads", "perm", "strides", "value_ints"),
    AttributeType.STRINGS: ("activations",),
}


def unpack(code: str, data: bytes | memoryview) -> array[Any]:
    """Little-endian numbers; float16 become float32."""
    need(len(data) % struct.calcsize(code) == 0, "tensor data of a broken length")
    if code == "e":
        return array("f", struct.unpack(f"<{len(data) // 2}e", data))
    found = array(code)
    found.frombytes(data)
    return found


def float32(number: float) -> float:
    return array("f", [number])[0]


def limited(shape: Sequence[int], limit: int = MAX_SHAPE) -> tuple[int, ...]:
    """The shape, if it is within the limit on elements, also with the other axes of an empty value."""
    fits = len(shape) <= MAX_RANK and prod([max(size, 1) for size in shape]) <= limit
    need(fits and min(shape, default=0) >= 0, f"shape {tuple(shape)} is outside the limits")
    return tuple(shape)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """As in numpy."""
    rank = max(map(len, shapes))
    columns = zip(*[(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes], strict=True)
    found = [{*sizes} - {1} or {1} for sizes in columns]
    need(all(len(sizes) == 1 for sizes in found), f"shapes {shapes} do not broadcast")
    return limited([max(sizes) for sizes in found])


def axis_of(axis: int | None, rank: int) -> int:
    """Negative axes count from the end."""
    if axis is None or not -rank <= axis < rank:
        raise Unusable(f"axis {axis} for rank {rank}")
    return axis % rank


class Node(NamedTuple):
    """An ONNX node as it is in the file, without nameless inputs at its end; attributes are (type, value) by name."""

    number: int
    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, tuple[AttributeType, Any]]

    def attributes_of(self, known: Sequence[str]) -> dict[str, Any]:
        """The values of the attributes, if they have these names; flags are 0 or 1."""
        for name, (kind, value) in self.attributes.items():
            need(name in known and name in ATTRIBUTES[kind], f"attribute {name!r} is outside the format")
            need(name not in FLAGS or value in (0, 1), f"{name} is {value}, not 0 or 1")
        return {name: value for name, (_, value) in self.attributes.items()}


class ModelInput(NamedTuple):
    """An input that is not an initializer: None for sizes that are not numbers."""

    name: str
    type: int
    sizes: list[int | None]


class OnnxFile:
    """A parsed ONNX file; `make` makes what is wanted of the type, the shape and the elements of a tensor."""

    opsets = range(13, 23)

    def __init__(
        self, data: bytes, files: Mapping[str, bytes], make: Callable[[int, tuple[int, ...], Sequence[Any]], Any]
    ) -> None:
        need(sys.byteorder == "little", "numbers are read by machines that store the lowest byte first")
        largest = max([len(data), *map(len, files.values())])
        need(largest <= MAX_FILE, "the ONNX file, or one of its tensor files, is too large")
        self.files = files
        self.make = make
        self.tensors: dict[str, str] = {}
        self.floating: int | None = None
        self.sha256 = sha256(data)
        model = read(memoryview(data), "the model", MODEL)
        self.opset = self.opset_of([read(item, "an opset", OPSET) for item in model["opsets"]])
        graph = read(model["graph"], "the graph", GRAPH)
        initializers = [self.tensor(item) for item in graph["initializers"]]
        self.initializers = dict(initializers)
        inputs = [read(item, "an input", VALUE_INFO) for item in graph["inputs"]]
        self.model_inputs = [model_input(item) for item in inputs if item["name"] not in self.initializers]
        need(len(graph["outputs"]) == 1, "the model must have one output")
        self.output = read(graph["outputs"][0], "the output", VALUE_INFO)["name"]
        nodes = [read(item, f"node {number}", NODE) for number, item in enumerate(graph["nodes"])]
        need(len(nodes) <= MAX_NODES, "too many ONNX nodes")
        given = [item.name for item in self.model_inputs] + [name for name, _ in initializers]
        names = given + [name for node in nodes for name in node["outputs"] if name]
        need(len(names) == len(set(names)) and "" not in given, "a name is defined twice, or empty")
        self.nodes = self.nodes_that_count(nodes)

    def opset_of(self, found: list[dict[str, Any]]) -> int:
        opsets = {item["domain"]: item["version"] or 0 for item in found}
        ours = [version for domain, version in opsets.items() if domain in ("", "ai.onnx")]
        fits = len(opsets) == len(found) and len(ours) == 1 and ours[0] in self.opsets
        known = f"{self.opsets[0]} to {self.opsets[-1]}"
        need(fits, f"opsets {opsets}: a version from {known} is expected, and no domain with two opsets")
        return ours[0]

    def nodes_that_count(self, nodes: Sequence[dict[str, Any]]) -> list[Node]:
        """Only nodes that the output depends on, through the names they read, are looked at."""
        read_later, found = {self.output}, []
        for number, node in reversed([*enumerate(nodes)]):
            if not read_later.isdisjoint(filter(None, node["outputs"])):
                read_later.update(node["inputs"])
                found.append(self.node(number, node))
        return found[::-1]

    def one_type(self, kind: int) -> None:
        """All floating tensors of a model have one type."""
        need(self.floating in (None, kind), "the model mixes floating types")
        self.floating = kind

    def node(self, number: int, found: dict[str, Any]) -> Node:
        need(found["domain"] in ("", "ai.onnx"), f"node {number}: domain {found['domain']!r} is outside the format")
        attributes: dict[str, tuple[AttributeType, Any]] = {}
        for item in found["attributes"]:
            attribute = read(item, f"an attribute of node {number}", ATTRIBUTE)
            name, kind = attribute["name"], attribute["type"]
            known = kind in list(AttributeType) and name not in attributes
            need(known, f"node {number}: attribute {name!r} occurs twice or has type {kind}")
            value = self.attribute_value(kind, attribute)
            given = {AttributeType.FLOAT: [value], AttributeType.FLOATS: value}.get(kind, [])
            sane = all(isfinite(x) or (x == -inf and name in MAY_BE_LOW) for x in given)
            need(sane, f"node {number}: attribute {name!r} holds NaN or infinity")
            attributes[name] = AttributeType(kind), value
        inputs = found["inputs"]
        while inputs and not inputs[-1]:
            inputs.pop()
        return Node(number, found["operator"], inputs, found["outputs"], attributes)

    def attribute_value(self, kind: int, attribute: dict[str, Any]) -> Any:
        if kind == AttributeType.FLOAT:
            return unpack("f", attribute["float"] or bytes(4))[0]
        if kind == AttributeType.FLOATS:
            return list(unpack("f", b"".join(attribute["floats"])))
        if kind == AttributeType.INT:
            return attribute["integer"] or 0
        if kind in (AttributeType.INTS, AttributeType.STRINGS):
            return attribute["integers" if kind == AttributeType.INTS else "texts"]
        return self.tensor(attribute["tensor"])[1] if kind == AttributeType.TENSOR else attribute["text"]

    def tensor(self, data: memoryview | None) -> tuple[str, Any]:
        found = read(data, "a tensor", TENSOR)
        name, kind, sizes = found["name"], found["type"], found["sizes"]
        known = ", ".join([each.name for each in TensorType])
        need(kind in STORED, f"tensor {name!r} has type {kind}; {known} are known")
        shape = limited(sizes, MAX_STORED if prod(sizes) else MAX_SHAPE)
        items = self.tensor_items(found)
        need(len(items) == prod(shape), f"tensor {name!r} has {len(items)} numbers for shape {shape}")
        if kind in FLOATING:
            self.one_type(kind)
            items = plain(items, name)
        fits = kind in FLOATING or all(item in INTEGER_RANGES[kind] for item in items)
        need(fits, f"tensor {name!r} holds numbers beyond its type")
        return name, self.make(kind, shape, items)

    def tensor_items(self, found: dict[str, Any]) -> Sequence[Any]:
        """The numbers, from the one place of data that the tensor may have."""
        name, (code, place) = found["name"], STORED[found["type"]]
        others = [found[field] for _, field in STORED.values() if field != place]
        need(not any(others), f"tensor {name!r} has data in the wrong field")
        sources: list[Sequence[Any]] = []
        given = found[place]
        if given and found["type"] == TensorType.FLOAT16:
            need(all(0 <= bits < 1 << 16 for bits in given), f"tensor {name!r} is not FLOAT16")
            given = [bits.to_bytes(2, "little") for bits in given]
        if given:
            sources.append(unpack(code, b"".join(given)) if found["type"] in FLOATING else given)
        if found["raw_data"] is not None:
            sources.append(unpack(code, found["raw_data"]))
        if found["data_location"] or found["external_data"]:
            need(found["data_location"] == 1, f"tensor {name!r} is half external")
            sources.append(unpack(code, self.external(found["external_data"])))
        need(len(sources) < 2, f"tensor {name!r} must have one place of data")
        return sources[0] if sources else array("f" if code == "e" else code)

    def external(self, data: list[memoryview]) -> memoryview:
        """The bytes of a tensor that are in a file of their own."""
        entries = {entry["key"]: entry["value"] for entry in (read(item, "external data", ENTRY) for item in data)}
        known = len(entries) == len(data) and entries.keys() <= {"location", "offset", "length", "checksum"}
        location, offset, length = [entries.get(key, "0") for key in ("location", "offset", "length")]
        fits = known and "location" in entries and re.fullmatch("[0-9]{1,12},[0-9]{1,12}", f"{offset},{length}")
        need(fits, "external data says a thing twice, an unknown one, or not where it is")
        require(location in self.files, f"the certificate does not bind the external tensor file {location!r}")
        held, start = memoryview(self.files[location]), int(offset)
        self.tensors[location] = self.tensors.get(location) or sha256(held)
        stop = start + int(length) if "length" in entries else len(held)
        need(start <= stop <= len(held), f"external tensor file {location!r} is cut short")
        return held[start:stop]


def model_input(found: dict[str, Any]) -> ModelInput:
    kind = read(read(found["type"], "the type of the input", TYPE)["tensor"], "the type of the input", TENSOR_TYPE)
    dimensions = read(kind["shape"], "the shape of the input", SHAPE)["dimensions"]
    return ModelInput(
        found["name"], kind["number"], [read(item, "a dimension", DIMENSION)["size"] for item in dimensions]
    )


def plain(items: Any, name: str) -> Any:
    """Numbers of a tensor, if they are within the format, minus infinity too, with zeros of no sign.

    The highest byte of a float32 tells: it is 127 or 255 for NaN and infinity, and 128 for a negative zero.
    """
    if items.typecode == "f":
        highest = items.tobytes()[3::4]
        if not any(byte in highest for byte in (127, 128, 255)):
            return items
    sane = all(x == -inf or (abs(x) < 2.0**128 and (x * 2.0**200).is_integer()) for x in items)
    need(sane, f"tensor {name!r} holds NaN or infinity, or numbers that are not multiples of 2**-200 below 2**128")
    return array(items.typecode, [x + 0.0 for x in items])
