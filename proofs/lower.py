"""Lowers an ONNX file to the canonical network of FORMAT.md, section 4: bytes that a certificate names by their hash.

    model = read_model(data, files)
    lowered = model.lower(inputs, words)

This file is trusted: check.py believes that the network proved about is the one in the file because of what is said
here. onnx_file.py beside it reads the file itself. Standard library only, exact numbers only. Order: values, layers,
the run through the nodes, operators, their table, the model. What is outside the format raises `Unusable`, what speaks
against the certificate `Refused`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain, pairwise, product
from math import inf, isqrt, prod
from operator import add, eq, ge, gt, le, lt, mul, sub
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import onnx_file
else:
    beside = importlib.util.spec_from_file_location("onnx_file", Path(__file__).with_name("onnx_file.py"))
    onnx_file = sys.modules["onnx_file"] = importlib.util.module_from_spec(beside)
    beside.loader.exec_module(onnx_file)

Refused, Unusable = onnx_file.Refused, onnx_file.Unusable
require, need, in_time, sha256 = onnx_file.require, onnx_file.need, onnx_file.in_time, onnx_file.sha256
TensorType, MAX_SHAPE = onnx_file.TensorType, onnx_file.MAX_SHAPE
limited, broadcast, axis_of = onnx_file.limited, onnx_file.broadcast, onnx_file.axis_of

# Limits (FORMAT section 9).
MAX_ELEMENTS = 1 << 23
MAX_APPLIED = 1 << 26
MAX_NONLINEAR, MAX_CLASSES = 64, 1024
MAX_BITS = 20_000
MAX_WORK = 3 * 10**8
# Lowered networks that a model keeps.
MAX_KEPT_BYTES = 1 << 28
# Square roots are multiples of 2**-ROOT_BITS.
ROOT_BITS = 40
# Defaults of attributes.
EPSILON, LEAKY_ALPHA = onnx_file.float32(1e-5), onnx_file.float32(0.01)
START = b"swapproof net 2\n"


class Kind(Enum):
    """What the elements of a value are. Only the last are not constant."""

    INTEGERS = "constant integers"
    NUMBERS = "constant numbers"
    TOKENS = "tokens"
    VARIABLE = "values that depend on tokens"


class Written(NamedTuple):
    """Numbers as they are written apart, in one of three forms."""

    form: int
    data: bytes
    digest: bytes


def apart(form: int, data: bytes) -> Written:
    return Written(form, data, hashlib.sha256(data).digest())


def written(numbers: Sequence[Any]) -> Written:
    """Form 1 if each is a float32, else 2 if each is a float64, else 3. A zero is never negative.

    Float32 numbers of a tensor in the file are bytes already, and `plain` left no negative zero among them.
    """
    if isinstance(numbers, array) and numbers.typecode == "f":
        return apart(1, numbers.tobytes())
    try:
        doubles = array("d", numbers)
        exact = all(map(eq, doubles, numbers))
    except OverflowError:
        exact = False
    if not exact:
        ratios = [number.as_integer_ratio() for number in numbers]
        return apart(3, ",".join([f"{above:x}/{below:x}" for above, below in ratios]).encode())
    doubles = array("d", [number + 0.0 for number in doubles])
    singles = array("f", doubles)
    return apart(1, singles.tobytes()) if singles == doubles else apart(2, doubles.tobytes())


def distinct(given: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """The distinct ones in the order in which they first come, and the place of each given one among them."""
    places: dict[Any, int] = {}
    found = [places.setdefault(each, len(places)) for each in given]
    return list(places), found


class Weights(NamedTuple):
    """Sequences of numbers, written each once: which of these each given one is, their lengths, their numbers."""

    places: list[int]
    lengths: list[int]
    numbers: Written


def weights_of(given: Sequence[Sequence[Any]]) -> Weights:
    """Float32 numbers from the file stay bytes."""
    if all(isinstance(each, array) and each.typecode == "f" for each in given):
        stored, places = distinct([each.tobytes() for each in given if isinstance(each, array)])
        return Weights(places, [len(each) // 4 for each in stored], apart(1, b"".join(stored)))
    sequences, places = distinct(map(tuple, given))
    return Weights(places, list(map(len, sequences)), written(list(chain.from_iterable(sequences))))


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value: its elements in row-major order. They are integers; numbers (floats or Fractions, both exact); tokens
    (input positions); or variable: elements, by their numbers in the graph.
    """

    kind: Kind
    shape: tuple[int, ...]
    items: Sequence[Any]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def numbers(self) -> Written:
        return written(self.items)

    @cached_property
    def swapped(self) -> Tensor:
        """The last two axes exchanged."""
        return picked(self, {}, (*range(self.rank - 2), self.rank - 1, self.rank - 2))

    @property
    def line_items(self) -> list[Sequence[Any]]:
        """The lines of each matrix."""
        return parts_of(self.items, prod(self.shape[:-1]))

    @cached_property
    def lines(self) -> Weights:
        return weights_of(self.line_items)


def stored(kind: int, shape: tuple[int, ...], items: Sequence[Any]) -> Tensor:
    """A tensor of the file."""
    return Tensor(Kind.NUMBERS if kind in onnx_file.FLOATING else Kind.INTEGERS, shape, items)


# A list of integers that may be absent.
Ints = Sequence[int] | None


def places(shape: Sequence[int], chosen: Sequence[Sequence[int]], order: Ints = None) -> list[int]:
    """Where the elements x[i, j, ...] of a value of this shape are, i in chosen[0], j in chosen[1] and so on; they are
    in row-major order, or in that of the transposed value.
    """
    limited([len(along) for along in chosen])
    found = [0]
    for axis in range(len(shape)) if order is None else order:
        stride = prod(shape[axis + 1 :])
        steps = [i * stride for i in chosen[axis]]
        found = [at + step for at in found for step in steps]
    return found


# A place along an axis that is outside, whatever is chosen along the others.
OUTSIDE = -(1 << 40)


def picked(value: Tensor, chosen: Mapping[int, Sequence[int]], order: Ints = None, filler: Any = None) -> Tensor:
    """What is chosen along some axes, and all along the others; the filler where a place is outside."""
    along = [chosen.get(axis, range(size)) for axis, size in enumerate(value.shape)]
    items: Sequence[Any] = [value.items[i] if i >= 0 else filler for i in places(value.shape, along, order)]
    if filler is None and isinstance(value.items, array):
        items = array(value.items.typecode, items)
    return Tensor(value.kind, tuple([len(along[axis]) for axis in order or range(value.rank)]), items)


def reshaped(value: Tensor, shape: Sequence[int]) -> Tensor:
    need(prod(shape) == len(value.items), f"shape {tuple(shape)} for {len(value.items)} elements")
    return replace(value, shape=tuple(shape))


def spread(value: Tensor, shape: Sequence[int]) -> Tensor:
    """Broadcast to this shape."""
    if value.shape == tuple(shape):
        return value
    own = (1,) * (len(shape) - value.rank) + value.shape
    need(broadcast(own, shape) == tuple(shape), f"shape {value.shape} does not broadcast to {tuple(shape)}")
    repeated = {axis: [0] * size for axis, size in enumerate(shape) if own[axis] != size}
    return picked(replace(value, shape=own), repeated)


def aligned(*values: Tensor) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """The shape of values that are broadcast together, and what they have in each place."""
    shape = broadcast(*[value.shape for value in values])
    return shape, list(zip(*[spread(value, shape).items for value in values], strict=True))


def parts_of(items: Sequence[Any], count: int) -> list[Sequence[Any]]:
    """Equal parts, one after the other."""
    width = len(items) // max(count, 1)
    return [items[i * width : (i + 1) * width] for i in range(count)]


# What is written of a layer: integers, as u32, and numbers that stand apart.
Parts = list[Sequence[int] | Written]


def counted(given: Sequence[int]) -> Sequence[int]:
    return [len(given), *given]


def listed(given: Sequence[Sequence[int]]) -> Sequence[int]:
    return [len(given), *[number for each in given for number in (len(each), *each)]]


@dataclass(frozen=True, eq=False)
class Layer:
    """So many elements; `lists` are those that it reads. Written with their final numbers in place of them.

    By itself: the inputs of a network of numbers, which read nothing.
    """

    size: int
    lists: Sequence[Sequence[int]]

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[0, self.size]]


@dataclass(frozen=True, eq=False)
class Embedding(Layer):
    """For each position the row of the table that the integer there names."""

    table: Tensor
    positions: Sequence[int]

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[1, *self.table.shape], self.table.numbers, counted(self.positions)]


@dataclass(frozen=True, eq=False)
class Affine(Layer):
    """For each row (a list, weights; by their places): the sum of weights times listed elements, plus a bias."""

    weights: Weights
    rows: Sequence[tuple[int, int]]
    biases: Sequence[Any]

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        rows = [len(self.rows), *chain.from_iterable(self.rows)]
        lengths, numbers = counted(self.weights.lengths), self.weights.numbers
        return [[2], listed(lists), lengths, numbers, rows, written(self.biases)]


@dataclass(frozen=True, eq=False)
class Rectifier(Layer):
    """max(x, 0) + alpha min(x, 0) of each element of one list."""

    alpha: float

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[3], written([self.alpha]), counted(lists[0])]


class Maximum(Layer):
    """The greatest of each list."""

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[4], listed([sorted(set(window)) for window in lists])]


# By name; None for outputs that cannot be read.
Values = dict[str, Tensor | None]


class Graph:
    """Runs through ONNX nodes for a batch of one sentence and lays down the layers.

    Elements are numbered as they come, constants among them; `owner` names the layer of each, None for a constant.
    """

    def __init__(self, model: onnx_file.OnnxFile, stop: float, choices: Sequence[Sequence[int]] = ()) -> None:
        self.model = model
        self.stop = stop
        self.choices = choices
        self.work = 0
        self.compares = False
        self.layers: list[Layer] = []
        self.owner: list[Layer | None] = []
        self.constants: dict[Any, int] = {}
        self.no_float32 = ""

    def output(self, inputs: Values) -> Tensor:
        """The output of the model for these inputs."""
        values: Values = {**self.model.initializers, **inputs}
        for node in self.model.nodes:
            self.node = node
            try:
                values.update(self.outputs_of(node, values))
            except Unusable as error:
                raise Unusable(f"node {node.number} ({node.operator}): {error}") from None
        result = values.get(self.model.output)
        if result is None:
            raise Unusable("the output is not defined")
        return result

    def outputs_of(self, node: onnx_file.Node, values: Values) -> Values:
        need(node.operator in OPERATORS, "outside the format")
        operator, names = OPERATORS[node.operator], node.inputs
        wanted = operator.inputs * max(len(names), 1) if operator.many else operator.inputs
        need(len(names) <= len(wanted), f"{len(names)} inputs are too many")
        names = names + [""] * (len(wanted) - len(names))
        inputs = [each.argument(values, name) for each, name in zip(wanted, names, strict=True)]
        attributes = node.attributes_of(operator.attributes)
        if "axes" in attributes:
            need(inputs[1] is None, "axes are given twice")
            inputs[1] = attributes.pop("axes")
        found = operator.function(self, *inputs, **attributes)
        results = [found] if isinstance(found, Tensor) else found
        need(len(node.outputs) >= len(results) and all(node.outputs[: len(results)]), "an output is missing")
        for value in results:
            limited(value.shape, MAX_SHAPE if value.kind is Kind.VARIABLE else onnx_file.MAX_STORED)
            need(value.items or value.kind is not Kind.VARIABLE, "a variable without elements")
            self.spend(len(value.items))
        return {**dict.fromkeys(node.outputs), **dict(zip(node.outputs, results, strict=False))}

    def spend(self, steps: int) -> None:
        self.work += steps
        need(self.work <= MAX_WORK, "the network is too large: too many weights are applied, or elements moved")
        in_time(self.stop)

    def no_claim(self, reason: str) -> None:
        self.no_float32 = self.no_float32 or reason

    def lay(self, layer: Layer, shape: Sequence[int]) -> Tensor:
        """A new layer, as a value of this shape."""
        need(0 < layer.size == prod(shape) <= MAX_SHAPE, f"shape {tuple(shape)} is outside the limits")
        start = len(self.owner)
        need(start + layer.size <= 2 * MAX_ELEMENTS, "the network has too many elements")
        self.layers.append(layer)
        self.owner += [layer] * layer.size
        return Tensor(Kind.VARIABLE, tuple(shape), range(start, start + layer.size))

    def affine(
        self, lists: Iterable[Sequence[int]], weights: Weights, shape: Sequence[int], biases: Any = None, rows: Any = ()
    ) -> Tensor:
        """A row for each list and weights; or these rows (list, weights), in which all first come in their order."""
        members, at = distinct(map(tuple, lists))
        laid = [(at[i], weights.places[k]) for i, k in rows or [(i, i) for i in range(len(at))]]
        lengths = list(map(len, members))
        self.spend(sum([lengths[i] for i, _ in laid]))
        return self.lay(Affine(len(laid), members, weights, laid, biases or [0] * len(laid)), shape)

    def variable(self, value: Tensor) -> Tensor:
        """Numbers as constant elements; variables as they are."""
        need(value.kind in (Kind.NUMBERS, Kind.VARIABLE), f"{value.kind.value} among numbers")
        if value.kind is Kind.VARIABLE:
            return value
        need(value.items, "numbers without elements among variables")
        for number in value.items:
            if number not in self.constants:
                self.constants[number] = len(self.owner)
                self.owner.append(None)
        need(len(self.owner) <= 2 * MAX_ELEMENTS, "the network has too many elements")
        return Tensor(Kind.VARIABLE, value.shape, [self.constants[number] for number in value.items])

    def alike(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Of several kinds: all as variables."""
        return values if len({value.kind for value in values}) == 1 else tuple(map(self.variable, values))

    def options(self, kind: Kind, item: Any) -> Sequence[Any]:
        """The exact numbers that a constant, or a token, can be."""
        self.spend(1)
        if kind is not Kind.TOKENS:
            return [item if kind is Kind.INTEGERS else Fraction(item)]
        self.compares = True
        self.spend(len(self.choices[item]))
        return self.choices[item]

    def lowered(self, logits: Sequence[int], positions: int) -> Lowered:
        """The canonical bytes: what the logits depend on, numbered anew; always the inputs of a network of numbers."""
        needed = {self.owner[i] for i in logits}.union([layer for layer in self.layers if type(layer) is Layer])
        for layer in reversed(self.layers):
            if layer in needed:
                needed.update([self.owner[i] for each in layer.lists for i in each])
        kept = [layer for layer in self.layers if layer in needed]
        need(sum(layer.size for layer in kept) <= MAX_ELEMENTS, "the network has too many elements")
        nonlinear = [layer for layer in kept if isinstance(layer, Rectifier | Maximum)]
        need(len(nonlinear) <= MAX_NONLINEAR, f"more than {MAX_NONLINEAR} nonlinear layers")
        read = set(logits).union(*[each for layer in kept for each in layer.lists])
        constants = sorted([number for number, i in self.constants.items() if i in read])
        placed = [self.constants[number] for number in constants]
        placed += [i for i, owner in enumerate(self.owner) if owner is not None and owner in needed]
        final = array("I", bytes(4 * len(self.owner)))
        for place, i in enumerate(placed):
            final[i] = place
        parts: Parts = [[not self.no_float32, positions, len(constants)], written(constants), [len(kept)]]
        for layer in kept:
            in_time(self.stop)
            parts += layer.parts([[final[i] for i in each] for each in layer.lists])
        parts.append([len(logits), *[final[i] for i in logits]])
        numbers = {part.digest: part.data for part in parts if isinstance(part, Written)}
        data = START + b"".join(map(stored_part, parts))
        lookups = [layer for layer in self.layers if isinstance(layer, Embedding)]
        return Lowered(data, sha256(data), numbers, self.no_float32, lookups, self.choices if self.compares else None)


def stored_part(part: Sequence[int] | Written) -> bytes:
    if isinstance(part, Written):
        return array("I", [part.form]).tobytes() + part.digest
    return array("I", part).tobytes()


class Lowered(NamedTuple):
    """A canonical network: its bytes, and by their digests the numbers written apart.

    `no_float32` says why there can be no claims about float32, and is empty if there can. `lookups` are all that are in
    the model, `choices` what its tokens may be, if it computes with them.
    """

    data: bytes
    sha256: str
    numbers: Mapping[bytes, bytes]
    no_float32: str
    lookups: list[Embedding]
    choices: Sequence[Sequence[int]] | None


ZERO = Tensor(Kind.NUMBERS, (1,), [0.0])


def axes_of(listed: Ints, rank: int, default: Iterable[int] = ()) -> list[int]:
    axes = [axis_of(axis, rank) for axis in (default if listed is None else listed)]
    need(len(set(axes)) == len(axes), "an axis occurs twice")
    return axes


def constant(graph: Graph, **values: Any) -> Tensor:
    need(len(values) == 1, "a constant must hold exactly one value")
    ((name, value),) = values.items()
    if name == "value":
        return value  # type: ignore[no-any-return]
    if name in ("value_float", "value_floats"):
        graph.model.one_type(TensorType.FLOAT)
    kind = Kind.INTEGERS if name in ("value_int", "value_ints") else Kind.NUMBERS
    return Tensor(kind, (len(value),), value) if isinstance(value, list) else Tensor(kind, (), [value])


def constant_of_shape(graph: Graph, sizes: Sequence[int], value: Tensor | None = None) -> Tensor:
    if value is None:
        graph.model.one_type(TensorType.FLOAT)
    filler = value or ZERO
    need(len(filler.items) == 1, "one value is needed")
    return Tensor(filler.kind, limited(sizes), [*filler.items] * prod(sizes))


def identity(graph: Graph, x: Tensor, rate: Tensor | None = None, training: Tensor | None = None, **_: Any) -> Tensor:
    """Identity, and Dropout as it is when nothing is trained."""
    need(training is None or list(training.items) == [0], "training mode is outside the format")
    return x


def cast(graph: Graph, x: Tensor, to: int = 0) -> Tensor:
    if x.kind in (Kind.NUMBERS, Kind.VARIABLE):
        fits = to == graph.model.floating
    elif x.kind is Kind.TOKENS:
        fits = to in (TensorType.INT32, TensorType.INT64)
    elif to in (TensorType.FLOAT, TensorType.DOUBLE):
        need(all(map(is_small, x.items)), "only integers up to 2**24 can be cast to numbers")
        graph.model.one_type(to)
        return replace(x, kind=Kind.NUMBERS)
    else:
        fits = to in onnx_file.INTEGER_RANGES and all(i in onnx_file.INTEGER_RANGES[to] for i in x.items)
    need(fits, f"{x.kind.value} cannot be cast to type {to}, or do not fit")
    return x


def is_small(number: Any) -> bool:
    """Every float evaluation of sums and products of few of these is exact."""
    return bool(abs(number) <= 1 << 24 and number == int(number))


def sequence(graph: Graph, *given: Tensor) -> Tensor:
    """The integers from a start to an end, by steps."""
    need(all(len(each.items) == 1 for each in given), "a Range of lists")
    start, end, step = [each.items[0] for each in given]
    need(step, "steps of 0")
    count = max(0, -((start - end) // step))
    return Tensor(Kind.INTEGERS, limited((count,)), range(start, end, step))


def where(graph: Graph, chosen: Tensor, *options: Tensor) -> Tensor:
    need(set(chosen.items) <= {0, 1}, "a condition that is neither 0 nor 1")
    options = graph.alike(*options)
    shape, triples = aligned(chosen, *options)
    return Tensor(options[0].kind, shape, [yes if is_chosen else no for is_chosen, yes, no in triples])


def shape_of(graph: Graph, x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    sizes = x.shape[start:end]
    return Tensor(Kind.INTEGERS, (len(sizes),), sizes)


def flatten(graph: Graph, x: Tensor, axis: int = 1) -> Tensor:
    at = axis if axis == x.rank else axis_of(axis, x.rank)
    return reshaped(x, (prod(x.shape[:at]), prod(x.shape[at:])))


def reshape(graph: Graph, x: Tensor, wanted: Sequence[int], allowzero: int = 0) -> Tensor:
    need(all(size >= -1 and (size or i < x.rank) for i, size in enumerate(wanted)), f"impossible shape {wanted}")
    need(wanted.count(-1) <= 1 and not (allowzero and 0 in wanted), f"impossible shape {wanted}")
    shape = [size or x.shape[i] for i, size in enumerate(wanted)]
    if -1 in shape:
        need(0 not in shape, f"impossible shape {wanted}")
        shape[shape.index(-1)] = len(x.items) // -prod(shape)
    return reshaped(x, shape)


def squeeze(graph: Graph, x: Tensor, axes: Ints) -> Tensor:
    found = axes_of(axes, x.rank, [axis for axis, size in enumerate(x.shape) if size == 1])
    need(axes is None or axes, "an empty list of axes")
    need(all(x.shape[axis] == 1 for axis in found), "an axis is not of size 1")
    return reshaped(x, [size for axis, size in enumerate(x.shape) if axis not in found])


def unsqueeze(graph: Graph, x: Tensor, axes: Ints) -> Tensor:
    need(axes is not None, "axes are missing")
    found = axes_of(axes, x.rank + len(axes or ()))
    sizes = iter(x.shape)
    return reshaped(x, [1 if axis in found else next(sizes) for axis in range(x.rank + len(found))])


def transpose(graph: Graph, x: Tensor, perm: Ints = None) -> Tensor:
    order = range(x.rank)[::-1] if perm is None else perm
    need(sorted(order) == [*range(x.rank)], f"perm {order} for shape {x.shape}")
    return x.swapped if [*order] == [*range(x.rank - 2), x.rank - 1, x.rank - 2] else picked(x, {}, order)


def expand(graph: Graph, x: Tensor, sizes: Sequence[int]) -> Tensor:
    return spread(x, broadcast(x.shape, sizes))


def tile(graph: Graph, x: Tensor, repeats: Sequence[int]) -> Tensor:
    need(len(repeats) == x.rank, "impossible repeats")
    limited([size * count for size, count in zip(x.shape, repeats, strict=True)])
    return picked(x, {axis: [*range(size)] * repeats[axis] for axis, size in enumerate(x.shape)})


def split(graph: Graph, x: Tensor, sizes: Ints, axis: int = 0, num_outputs: int | None = None) -> list[Tensor]:
    axis, count = axis_of(axis, x.rank), len(graph.node.outputs)
    size = x.shape[axis]
    need(sizes is None or num_outputs is None, "sizes are given twice")
    if sizes is None:
        need(num_outputs == count or (num_outputs is None and size % count == 0), "parts are not equal")
        each = -(-size // count)
        sizes = [each] * (count - 1) + [size - each * (count - 1)]
    need(len(sizes) == count and min(sizes) > 0 and sum(sizes) == size, f"parts {sizes} of {size}")
    return [picked(x, {axis: range(start, end)}) for start, end in pairwise([0, *accumulate(sizes)])]


def gather(graph: Graph, x: Tensor, where: Tensor, axis: int = 0) -> Tensor:
    axis = axis_of(axis, x.rank)
    if where.kind is Kind.TOKENS:
        need(x.kind is Kind.NUMBERS and x.rank == 2 and axis == 0, "tokens can only pick rows of a table of numbers")
        layer = Embedding(len(where.items) * x.shape[1], (), x, where.items)
        return graph.lay(layer, (*where.shape, x.shape[1]))
    size = x.shape[axis]
    need(where.kind is Kind.INTEGERS and all(-size <= i < size for i in where.items), "impossible indices")
    found = picked(x, {axis: [i % size for i in where.items]})
    return replace(found, shape=x.shape[:axis] + where.shape + x.shape[axis + 1 :])


def slices(graph: Graph, x: Tensor, starts: Sequence[int], ends: Sequence[int], listed: Ints, by: Ints) -> Tensor:
    axes, steps = axes_of(listed, x.rank, range(len(starts))), [1] * len(starts) if by is None else by
    need(len(starts) == len(ends) == len(axes) == len(steps) and all(steps), "impossible lists")
    ranges = map(slice, starts, ends, steps)
    found = picked(x, {axis: range(x.shape[axis])[each] for axis, each in zip(axes, ranges, strict=True)})
    need(found.items, "an empty slice")
    return found


def concat(graph: Graph, *parts: Tensor, axis: int | None = None) -> Tensor:
    at = axis_of(axis, parts[0].rank)
    outlines = {(part.rank, part.shape[:at], part.shape[at + 1 :]) for part in parts}
    need(len(outlines) == 1, "shapes do not fit")
    parts, shape = graph.alike(*parts), list(parts[0].shape)
    shape[at] = sum(part.shape[at] for part in parts)
    limited(shape)
    blocks = zip(*[parts_of(part.items, prod(shape[:at])) for part in parts], strict=True)
    return Tensor(parts[0].kind, tuple(shape), [item for block in blocks for part in block for item in part])


def pad(
    graph: Graph, x: Tensor, pads: Sequence[int], value: Tensor | None, listed: Ints, mode: str = "constant"
) -> Tensor:
    filler, axes = value or ZERO, axes_of(listed, x.rank, range(x.rank))
    need(mode == "constant" and len(filler.items) == 1, "only padding with one number is in the format")
    need(len(pads) == 2 * len(axes) and all(0 <= size <= MAX_SHAPE for size in pads), "impossible pads")
    margins = zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
    chosen = {axis: [OUTSIDE] * low + [*range(x.shape[axis])] + [OUTSIDE] * high for axis, low, high in margins}
    return picked(x, chosen, filler=graph.alike(x, filler)[1].items[0])


def arithmetic(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    """Add, Sub, Mul, Div, and comparisons."""
    name, kinds = graph.node.operator, {a.kind, b.kind}
    if Kind.VARIABLE not in kinds:
        return folded(graph, name, a, b)
    if name in ("Add", "Sub"):
        return combined(graph, (1, a), (1 if name == "Add" else -1, b))
    x, factors = (a, b) if a.kind is Kind.VARIABLE else (b, a)
    possible = factors.kind is Kind.NUMBERS and (name == "Mul" or (name == "Div" and factors is b and all(b.items)))
    need(possible, f"{name} of {a.kind.value} and {b.kind.value}, or a division by 0, is outside the format")
    shape, pairs = aligned(x, factors)
    numbers = [1 / Fraction(n) if name == "Div" else n for _, n in pairs]
    return weighted(graph, shape, [(numbers, [i for i, _ in pairs])])


def weighted(
    graph: Graph, shape: Sequence[int], terms: Sequence[tuple[Sequence[Any], Sequence[int]]], biases: Any = None
) -> Tensor:
    """Element by element: the sum of factors times elements, plus a bias."""
    factors, elements = zip(*terms, strict=True)
    weights = weights_of(list(zip(*factors, strict=True)))
    return graph.affine(zip(*elements, strict=True), weights, shape, biases)


def combined(graph: Graph, *terms: tuple[int, Tensor]) -> Tensor:
    """The sum of values, each times a sign: variables, and at most one of numbers."""
    shape = broadcast(*[value.shape for _, value in terms])
    need(all(value.kind in (Kind.NUMBERS, Kind.VARIABLE) for _, value in terms), "tokens or integers among numbers")
    given = [(sign, value.kind, spread(value, shape).items) for sign, value in terms]
    variables = [([sign] * len(items), items) for sign, kind, items in given if kind is Kind.VARIABLE]
    biases = [sign * n for sign, kind, items in given if kind is Kind.NUMBERS for n in items]
    return weighted(graph, shape, variables, biases)


# Numbers below may be read as 0 in float32.
TINY = Fraction(1, 1 << 126)


def divided(x: Any, y: Any) -> Any:
    """Integers are rounded down."""
    need(y, "a division by 0")
    if isinstance(x, Fraction):
        return x / y
    need(x >= 0 and y > 0, "a division of integers below 0")
    return x // y


COMPARISONS = {"Equal": eq, "Greater": gt, "GreaterOrEqual": ge, "Less": lt, "LessOrEqual": le}
FOLDED: dict[str, Any] = {**COMPARISONS, "Add": add, "Sub": sub, "Mul": mul, "Div": divided, "Max": max, "Min": min}


def folded(graph: Graph, name: str, *values: Tensor) -> Tensor:
    """Of constants, and of tokens as far as all choices of their positions give the same."""
    kinds = [value.kind for value in values]
    whole = {*kinds} <= {Kind.INTEGERS, Kind.TOKENS} and kinds.count(Kind.TOKENS) < 2
    known = (whole or {*kinds} == {Kind.NUMBERS}) and name in FOLDED
    need(known, f"{name} of {' and '.join([kind.value for kind in kinds])}")
    kind = Kind.INTEGERS if whole or name in COMPARISONS else Kind.NUMBERS
    shape, rows = aligned(*values)
    given = [[graph.options(own, item) for own, item in zip(kinds, items, strict=True)] for items in rows]
    if not whole and any(0 < abs(x) < TINY for options in given for each in options for x in each):
        graph.no_claim("the model computes constants from numbers below 2**-126")
    try:
        found = [{FOLDED[name](*each) for each in product(*options)} for options in given]
        alike = all(len(each) == 1 for each in found)
        require(alike, "the model does not compute the same from all choices of a position")
        return calculated(graph, kind, shape, list(map(list, found)))
    except Unusable as error:
        require(Kind.TOKENS not in kinds, f"{name} of tokens: {error}")
        raise


def calculated(graph: Graph, kind: Kind, shape: Sequence[int], terms: Sequence[Sequence[Any]]) -> Tensor:
    """Constants that are sums; small ones are exact in float32 too."""
    if kind is Kind.INTEGERS:
        integers = [int(sum(each)) for each in terms]
        need(all(item in onnx_file.INT32 for item in integers), "integers beyond 32 bits")
        return Tensor(kind, tuple(shape), integers)
    numbers = [sum(map(Fraction, each), Fraction(0)) for each in terms]
    bits = max([max(abs(n.numerator), n.denominator).bit_length() for n in numbers], default=0)
    need(bits <= MAX_BITS, f"exact numbers of more than {MAX_BITS} bits")
    if not all(is_small(n) for each in terms for n in [*each, sum(map(abs, map(Fraction, each)))]):
        graph.no_claim("the model computes constants that float32 may round")
    return Tensor(kind, tuple(shape), numbers)


def opposite(graph: Graph, x: Tensor) -> Tensor:
    need(set(x.items) <= {0, 1}, "Not of what is neither 0 nor 1")
    return replace(x, items=[1 - item for item in x.items])


def negated(graph: Graph, x: Tensor) -> Tensor:
    return combined(graph, (-1, x))


def rectified(graph: Graph, x: Tensor, alpha: float = 0.0) -> Tensor:
    need(0 <= alpha <= 1, "needs an alpha in [0, 1]")
    return graph.lay(Rectifier(len(x.items), [x.items], alpha), x.shape)


def leaky(graph: Graph, x: Tensor, alpha: float = LEAKY_ALPHA) -> Tensor:
    return rectified(graph, x, alpha)


def bent(graph: Graph, x: Tensor, slopes: Tensor | None = None) -> Tensor:
    """(1 - s) max(x, 0) + s x."""
    given = spread(slopes, x.shape).items if slopes else [-1] * len(x.items)
    kept = rectified(graph, x)
    return weighted(graph, x.shape, [([1 - Fraction(s) for s in given], kept.items), (given, x.items)])


def limited_by(graph: Graph, name: str, x: Tensor, c: Tensor) -> Tensor:
    """max(x, c) = c + max(x - c, 0), and min(x, c) = c - max(c - x, 0)."""
    if x.kind is not Kind.VARIABLE:
        return folded(graph, name, x, c)
    need(c.kind is Kind.NUMBERS, f"{c.kind.value} as a limit")
    if name == "Max" and not any(c.items):
        return rectified(graph, spread(x, broadcast(x.shape, c.shape)))
    sign = 1 if name == "Max" else -1
    kept = rectified(graph, combined(graph, (sign, x), (-sign, c)))
    return combined(graph, (sign, kept), (1, c))


def clip(graph: Graph, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    need(all(limit is None or limit.shape == () for limit in (low, high)), "limits must have rank 0")
    x = limited_by(graph, "Max", x, low) if low else x
    return limited_by(graph, "Min", x, high) if high else x


def several(graph: Graph, *values: Tensor) -> Tensor:
    """Sum, Max and Min; the least is what is greatest of opposites."""
    name, shape = graph.node.operator, broadcast(*[value.shape for value in values])
    variables = [value for value in values if value.kind is Kind.VARIABLE]
    if name != "Sum" and len(values) == 2 > len(variables):
        return limited_by(graph, name, *sorted(values, key=lambda value: value.kind is not Kind.VARIABLE))
    small = prod(shape) * len(values) <= MAX_SHAPE
    need(variables and small, f"no input depends on the tokens, or shape {shape} is outside the limits")
    if len(values) == 1:
        return values[0]
    parts = [spread(graph.variable(value), shape) for value in values]
    if name == "Sum":
        return combined(graph, *[(1, part) for part in parts])
    lists = [part.items for part in parts]
    if name == "Min":
        joined = Tensor(Kind.VARIABLE, (prod(shape) * len(parts),), [*chain.from_iterable(lists)])
        lists = parts_of(negated(graph, joined).items, len(parts))
    found = greatest(graph, list(zip(*lists, strict=True)), shape)
    return negated(graph, found) if name == "Min" else found


def gemm(
    graph: Graph, a: Tensor, b: Tensor, c: Tensor | None, transA: int = 0, transB: int = 0, **scales: float
) -> Tensor:
    need(a.rank == b.rank == 2, "A and B must have rank 2")
    alpha, beta = scales.get("alpha", 1.0), scales.get("beta", 1.0) if c else 1.0
    if alpha != 1 or beta != 1:
        graph.no_claim("the model scales constants in a Gemm")
    a, b = a.swapped if transA else a, b if transB else b.swapped
    return lines_with_lines(graph, a, times(b, alpha), c and times(c, beta))


def times(value: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return value
    return replace(value, items=[Fraction(factor) * Fraction(n) for n in value.items])


def matmul(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    need(min(a.rank, b.rank) >= 2, f"shapes {a.shape} and {b.shape}")
    return lines_with_lines(graph, a, b.swapped)


def lines_with_lines(graph: Graph, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    """The lines of a with the lines of b, and c; each of a, b holds one matrix or many."""
    need({a.kind, b.kind} == {Kind.VARIABLE, Kind.NUMBERS}, "one matrix must depend on the tokens, the other must not")
    need(a.shape[-1] == b.shape[-1] and a.items and b.items, f"{a.shape[-1]} numbers with {b.shape[-1]}, or none")
    left = Tensor(Kind.INTEGERS, (*a.shape[:-1], 1), range(prod(a.shape[:-1])))
    right = Tensor(Kind.INTEGERS, (*b.shape[:-2], 1, b.shape[-2]), range(prod(b.shape[:-1])))
    x, weights, pair = (a, b, (left, right)) if a.kind is Kind.VARIABLE else (b, a, (right, left))
    shape, rows = aligned(*pair)
    return graph.affine(x.line_items, weights.lines, shape, c and spread(c, shape).items, rows)


# What lies under the kernel at an output place, padding left out: kernel places, and the input place of each.
Window = dict[int, int]


def windows_of(
    sizes: Sequence[int], kernel: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0, **lists: Sequence[int]
) -> tuple[list[int], list[Window]]:
    """Output sizes, and the window of each output place; the lists are pads, strides and dilations."""
    rank = len(sizes)
    steps, gaps = [lists.get(name) or [1] * rank for name in ("strides", "dilations")]
    kernel, margins = kernel or [], lists.get("pads") or [0] * 2 * rank
    fits = all(len(each) == rank and min(each) > 0 for each in (kernel, steps, gaps))
    need(fits and len(margins) == 2 * rank and min(margins) >= 0, "impossible kernel, strides, dilations or pads")
    need(auto_pad in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"auto_pad {auto_pad!r} is outside the format")
    need(auto_pad == "NOTSET" or not (ceil_mode or lists.get("pads")), "pads or ceil_mode together with auto_pad")
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
    under = (enumerate(places(sizes, along)) for along in product(*axes))
    return shape, [{k: i for k, i in window if i >= 0} for window in under]


def convolution(
    graph: Graph, x: Tensor, w: Tensor, b: Tensor | None, group: int = 1, kernel_shape: Ints = None, **options: Any
) -> Tensor:
    need(x.rank == w.rank in (3, 4) and x.shape[0] == 1, "only 1-D and 2-D convolutions are in the format")
    outputs, channels, *kernel = w.shape
    fits = group > 0 and x.shape[1] == channels * group and outputs % group == 0
    fits = fits and kernel_shape in (None, kernel) and (b is None or b.shape == (outputs,))
    need(fits, "kernel_shape, group, weights and bias do not fit")
    shape, windows = windows_of(x.shape[2:], kernel, **options)
    limited((outputs, len(windows)))
    need(len(windows) * len(w.items) <= MAX_APPLIED, "the windows are too many")
    groups = [parts_of(part, channels) for part in parts_of(x.items, group)]
    lists = [[channel[i] for channel in part for i in window.values()] for part in groups for window in windows]
    overlaps, overlap_places = distinct(map(tuple, windows))
    filters = [parts_of(items, channels) for items in parts_of(w.items, outputs)]
    weights = [[part[k] for part in parts for k in held] for parts in filters for held in overlaps]
    rows = []
    for m in range(outputs):
        first_list, first_weights = m * group // outputs * len(windows), m * len(overlaps)
        rows += [(first_list + i, first_weights + at) for i, at in enumerate(overlap_places)]
    biases = b and [bias for bias in b.items for _ in windows]
    return graph.affine(lists, weights_of(weights), (1, outputs, *shape), biases, rows)


def normalization(graph: Graph, x: Tensor, *parameters: Tensor, epsilon: float = EPSILON, **more: Any) -> Tensor:
    fits = x.rank >= 2 and all(each.shape == x.shape[1:2] for each in parameters)
    need(fits and not more.get("training_mode"), "parameters do not fit, or training mode")
    graph.no_claim("the model has a BatchNormalization")
    factors, biases = [], []
    for scale, offset, mean, variance in zip(*[map(Fraction, each.items) for each in parameters], strict=True):
        spread_out = variance + Fraction(epsilon)
        need(spread_out > 0, "a variance that is not above 0")
        root = Fraction(isqrt((1 << 2 * ROOT_BITS) // spread_out), 1 << ROOT_BITS)
        need(root < 1 << 13, "a variance that is too small")
        factors.append(scale * root)
        biases.append(offset - mean * scale * root)
    by_channel = (x.shape[1], *[1] * (x.rank - 2))
    scales, offsets = [spread(Tensor(Kind.NUMBERS, by_channel, each), x.shape).items for each in (factors, biases)]
    return weighted(graph, x.shape, [(scales, x.items)], offsets)


def greatest(graph: Graph, windows: Sequence[Sequence[int]], shape: Sequence[int]) -> Tensor:
    graph.spend(sum(map(len, windows)))
    return graph.lay(Maximum(len(windows), windows), shape)


def averaged(graph: Graph, windows: Sequence[Sequence[int]], shape: Sequence[int], count: int | None = None) -> Tensor:
    """The sum of each window over this count, or else over its own."""
    weights = {size: (Fraction(1, count or size),) * size for size in set(map(len, windows))}
    return graph.affine(windows, weights_of([weights[len(window)] for window in windows]), shape)


def reduction(graph: Graph, x: Tensor, axes: Ints, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    name = graph.node.operator
    constants = name == "ReduceSum" and x.kind in (Kind.INTEGERS, Kind.NUMBERS)
    need(constants or x.kind is Kind.VARIABLE, f"of {x.kind.value}")
    found = axes_of(axes, x.rank)
    if noop_with_empty_axes and not found:
        return x
    found = sorted(found) or [*range(x.rank)]
    kept = [axis for axis in range(x.rank) if axis not in found]
    shape = [1 if axis in found else size for axis, size in enumerate(x.shape) if keepdims or axis in kept]
    windows = parts_of(transpose(graph, x, kept + found).items, prod([x.shape[axis] for axis in kept]))
    if constants:
        return calculated(graph, x.kind, shape, windows)
    if name in ("ReduceMax", "GlobalMaxPool"):
        return greatest(graph, windows, shape)
    return averaged(graph, windows, shape, 1 if name == "ReduceSum" else None)


def global_pooling(graph: Graph, x: Tensor) -> Tensor:
    need(x.rank in (3, 4), f"rank {x.rank} is outside the format")
    return reduction(graph, x, range(2, x.rank))


def pooling(graph: Graph, x: Tensor, kernel_shape: Ints = None, storage_order: int = 0, **options: Any) -> Tensor:
    average, all_count = graph.node.operator == "AveragePool", options.pop("count_include_pad", 0)
    need(x.rank in (3, 4) and not storage_order, f"rank {x.rank} is outside the format, or storage_order")
    need(not (all_count and options.get("ceil_mode")), "count_include_pad with ceil_mode")
    same = options.get("auto_pad", "NOTSET").startswith("SAME")
    fits = set(options.get("dilations") or [1]) == {1} or not (average or same)
    need(fits, "dilations of an average, or with auto_pad")
    sizes, windows = windows_of(x.shape[2:], kernel_shape, **options)
    channels, most = parts_of(x.items, x.shape[0] * x.shape[1]), prod(kernel_shape or ())
    need(all(windows), "a window lies in the padding")
    need(len(channels) * len(windows) * most <= MAX_SHAPE, "the windows are too many")
    shape = (*x.shape[:2], *sizes)
    pooled = [[channel[i] for i in window.values()] for channel in channels for window in windows]
    return averaged(graph, pooled, shape, most if all_count else None) if average else greatest(graph, pooled, shape)


def head(graph: Graph, x: Tensor, axis: int = -1) -> Tensor:
    need(axis_of(axis, x.rank) == x.rank - 1, "the axis is not the last")
    at_end = graph.node is graph.model.nodes[-1] and graph.node.outputs[0] == graph.model.output
    need(at_end, f"nothing may come after {graph.node.operator}")
    graph.no_claim(f"the model ends in {graph.node.operator}")
    return x


class Input(NamedTuple):
    """What may stand at an input of an operator. Lists are handed over as such."""

    kinds: tuple[Kind, ...]
    may_be_absent: bool = False
    is_list: bool = False

    def argument(self, values: Values, name: str) -> Tensor | Sequence[int] | None:
        if not name:
            need(self.may_be_absent, "an input is missing")
            return None
        value = values.get(name)
        if value is None:
            raise Unusable(f"{name!r} is read before it is defined, or cannot be read")
        allowed = " or ".join([kind.value for kind in self.kinds])
        need(value.kind in self.kinds, f"an input must be {allowed}, not {value.kind.value}")
        need(not self.is_list or value.rank == 1, "a list must have rank 1")
        return list(value.items) if self.is_list else value


class Operator(NamedTuple):
    """The function, what it reads (many: one or more of this), and its attributes, if they are there."""

    function: Callable[..., Tensor | list[Tensor]]
    inputs: tuple[Input, ...]
    attributes: tuple[str, ...] = ()
    many: bool = False


VALUE = Input(tuple(Kind))
VARIABLE = Input((Kind.VARIABLE,))
NUMBERS = Input((Kind.NUMBERS,))
CONSTANT_INTEGERS = Input((Kind.INTEGERS,))
NUMBERS_OR_VARIABLE = Input((Kind.NUMBERS, Kind.VARIABLE))
LIST = Input((Kind.INTEGERS,), is_list=True)
MAYBE_LIST = LIST._replace(may_be_absent=True)
MAYBE_INTEGERS = CONSTANT_INTEGERS._replace(may_be_absent=True)
MAYBE_NUMBERS = NUMBERS._replace(may_be_absent=True)
MAYBE_CONSTANT = Input((Kind.INTEGERS, Kind.NUMBERS), may_be_absent=True)

REDUCTION = ("axes", "keepdims", "noop_with_empty_axes")
WINDOW = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")
POOL = (*WINDOW, "ceil_mode")
HEADS = ("Softmax", "LogSoftmax", "Sigmoid", "Tanh")
NORMALIZATION = ("epsilon", "momentum", "training_mode")
OPERATORS: dict[str, Operator] = {
    "Constant": Operator(constant, (), ("value", "value_int", "value_ints", "value_float", "value_floats")),
    "ConstantOfShape": Operator(constant_of_shape, (LIST,), ("value",)),
    "Identity": Operator(identity, (VALUE,)),
    "Dropout": Operator(identity, (VALUE, MAYBE_CONSTANT, MAYBE_INTEGERS), ("ratio", "seed")),
    "Cast": Operator(cast, (VALUE,), ("to",)),
    "Range": Operator(sequence, (CONSTANT_INTEGERS, CONSTANT_INTEGERS, CONSTANT_INTEGERS)),
    "Where": Operator(where, (CONSTANT_INTEGERS, VALUE, VALUE)),
    "Shape": Operator(shape_of, (VALUE,), ("start", "end")),
    "Flatten": Operator(flatten, (VALUE,), ("axis",)),
    "Reshape": Operator(reshape, (VALUE, LIST), ("allowzero",)),
    "Squeeze": Operator(squeeze, (VALUE, MAYBE_LIST), ("axes",)),
    "Unsqueeze": Operator(unsqueeze, (VALUE, MAYBE_LIST), ("axes",)),
    "Transpose": Operator(transpose, (VALUE,), ("perm",)),
    "Expand": Operator(expand, (VALUE, LIST)),
    "Tile": Operator(tile, (VALUE, LIST)),
    "Split": Operator(split, (VALUE, MAYBE_LIST), ("axis", "num_outputs")),
    "Gather": Operator(gather, (VALUE, VALUE), ("axis",)),
    "Slice": Operator(slices, (VALUE, LIST, LIST, MAYBE_LIST, MAYBE_LIST)),
    "Concat": Operator(concat, (VALUE,), ("axis",), many=True),
    "Pad": Operator(pad, (NUMBERS_OR_VARIABLE, LIST, MAYBE_NUMBERS, MAYBE_LIST), ("mode",)),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", *COMPARISONS), Operator(arithmetic, (VALUE, VALUE))),
    "Not": Operator(opposite, (CONSTANT_INTEGERS,)),
    **dict.fromkeys(("Sum", "Max", "Min"), Operator(several, (VALUE,), many=True)),
    "Clip": Operator(clip, (VALUE, MAYBE_CONSTANT, MAYBE_CONSTANT)),
    "Neg": Operator(negated, (VARIABLE,)),
    "MatMul": Operator(matmul, (NUMBERS_OR_VARIABLE, NUMBERS_OR_VARIABLE)),
    "Gemm": Operator(gemm, (VARIABLE, NUMBERS, MAYBE_NUMBERS), ("alpha", "beta", "transA", "transB")),
    "Conv": Operator(convolution, (VARIABLE, NUMBERS, MAYBE_NUMBERS), (*WINDOW, "group")),
    "BatchNormalization": Operator(normalization, (VARIABLE, NUMBERS, NUMBERS, NUMBERS, NUMBERS), NORMALIZATION),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax"), Operator(reduction, (VALUE, MAYBE_LIST), REDUCTION)),
    "AveragePool": Operator(pooling, (VARIABLE,), (*POOL, "count_include_pad")),
    "MaxPool": Operator(pooling, (VARIABLE,), (*POOL, "storage_order")),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), Operator(global_pooling, (VARIABLE,))),
    "Relu": Operator(rectified, (VARIABLE,)),
    "LeakyRelu": Operator(leaky, (VARIABLE,), ("alpha",)),
    "PRelu": Operator(bent, (VARIABLE, NUMBERS)),
    "Abs": Operator(bent, (VARIABLE,)),
    **dict.fromkeys(HEADS[:2], Operator(head, (VARIABLE,), ("axis",))),
    **dict.fromkeys(HEADS[2:], Operator(head, (VARIABLE,))),
}


class Model(onnx_file.OnnxFile):
    """A text classifier; it is lowered once for what its network depends on."""

    def __init__(self, data: bytes, files: Mapping[str, bytes]) -> None:
        super().__init__(data, files, stored)
        self.known: dict[Any, Lowered] = {}
        for item in self.model_inputs:
            fits = item.type in (TensorType.INT32, TensorType.INT64) and len(item.sizes) == 2
            fits = fits and item.sizes[0] in (None, 1)
            need(fits, "inputs must be INT64 or INT32 [batch, length], the batch not fixed to more than one")

    def lower(self, inputs: Sequence[Any], words: Sequence[Any], stop: float = inf) -> Lowered:
        """The network for inputs [role, integers] and words [start, options], as they are in a certificate."""
        require(len(inputs) == len(self.model_inputs), f"the model has {len(self.model_inputs)} inputs")
        for item, (_, given) in zip(self.model_inputs, inputs, strict=True):
            fits = item.sizes[1] in (None, len(given))
            require(fits, f"the model reads {item.sizes[1]} tokens, the certificate has {len(given)}")
        choices = [(number,) for _, given in inputs for number in given]
        for start, options in words:
            found = [tuple(dict.fromkeys(place)) for place in zip(*options, strict=True)]
            choices[start : start + len(found)] = found
        key = tuple([(role, tuple(given) if role == "constant" else len(given)) for role, given in inputs])
        known = self.known.get(key)
        if known is None or known.choices not in (None, choices):
            if sum(len(each.data) for each in self.known.values()) > MAX_KEPT_BYTES:
                self.known.clear()
            known = self.known[key] = self.lowered(inputs, choices, stop)
        for embedding in known.lookups:
            inside = all(max(choices[position]) < embedding.table.shape[0] for position in embedding.positions)
            require(inside, "a token is beyond the embedding")
        return known

    def lowered(self, inputs: Sequence[Any], choices: Sequence[Sequence[int]], stop: float) -> Lowered:
        graph, values, count = Graph(self, stop, choices), Values(), 0
        for item, (role, given) in zip(self.model_inputs, inputs, strict=True):
            tokens = Tensor(Kind.TOKENS, (1, len(given)), range(count, count + len(given)))
            values[item.name] = Tensor(Kind.INTEGERS, tokens.shape, given) if role == "constant" else tokens
            count += len(given)
        result = graph.output(values)
        fits = result.kind is Kind.VARIABLE and result.rank == 2 and result.shape[0] == 1
        need(fits, "the output must depend on the tokens and have shape [batch, classes]")
        need(2 <= result.shape[1] <= MAX_CLASSES, f"{result.shape[1]} classes are outside the format")
        if self.floating != TensorType.FLOAT:
            graph.no_claim("the model is not FLOAT")
        return graph.lowered(result.items, count)


def read_model(data: bytes, files: Mapping[str, bytes] | None = None) -> Model:
    """The ONNX file with its external tensor files (name -> bytes), parsed once for many certificates."""
    return Model(data, files or {})
