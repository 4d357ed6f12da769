"""The canonical network of FORMAT.md, section 4.3: read from its bytes, validated, evaluated exactly.

    network = Network(data, numbers)                   numbers: those that stand apart, by their SHA-256

This file is trusted, as check.py is, which loads it after lower.py. Standard library only, exact numbers only; nothing
is known here of ONNX, of proofs or of bounds. Order: exact numbers, layers, the network, how its elements depend on the
integers of the text. A network that is not as it should be raises `Unusable`.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from math import isfinite, lcm
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING or __package__:
    from . import onnx_file
else:
    onnx_file = sys.modules["onnx_file"]  # that of lower.py: an error is of the same class wherever it is raised

Refused = onnx_file.Refused
require, need, in_time = onnx_file.require, onnx_file.need, onnx_file.in_time

# Limits (FORMAT section 9).
MAX_ELEMENTS = 1 << 23
MAX_BITS = 20_000
MAX_WORK = 3 * 10**8
# The functions of curves: exp, tanh, sigmoid, erf, 1/x, sqrt.
FUNCTIONS = range(1, 7)

Terms = Iterable[tuple[int, Any]]
"""Elements and their coefficients, integers or fractions."""

# ------------------------------------------------------------------------------------------------------ exact numbers


def narrow(scale: int) -> None:
    """Unusable if integers over this scale would be too long to compute with."""
    need(scale.bit_length() <= MAX_BITS, f"exact numbers of more than {MAX_BITS} bits")


def scale_of(numbers: Iterable[float | Fraction]) -> int:
    """The smallest common denominator."""
    scale = lcm(*{number.as_integer_ratio()[1] for number in numbers})
    narrow(scale)
    return scale


def over(numbers: Iterable[float | Fraction], scale: int) -> list[int]:
    """Exact numbers as integers over a scale."""
    return [above * (scale // below) for above, below in [number.as_integer_ratio() for number in numbers]]


class Numbers:
    """Numbers that stand apart from the canonical network, in one of the three forms of FORMAT section 4.3.

    `items` are floats, or rationals, and all of them are exact integers over `scale`; `known` are parts asked for.
    """

    def __init__(self, form: int, data: bytes) -> None:
        need(form in (1, 2, 3), f"numbers of form {form}")
        self.items = rationals(data) if form == 3 else memoryview(data).cast("f" if form == 1 else "d")
        need(all(map(isfinite, self.items)), "numbers that are none")
        self.scale = scale_of(self.items)
        self.known: dict[tuple[int, int], list[int]] = {}

    def part(self, start: int, stop: int) -> list[int]:
        """Some of them, over their scale."""
        if (start, stop) not in self.known:
            self.known[start, stop] = over(self.items[start:stop], self.scale)
        return self.known[start, stop]


def rationals(data: bytes) -> list[Fraction]:
    """Each is p/q in hexadecimal."""
    pairs = [text.split("/") for text in data.decode("ascii").split(",")]
    return [Fraction(int(above, 16), int(below, 16)) for above, below in pairs]


@lru_cache(256)
def numbers_of(form: int, name: bytes, data: bytes) -> Numbers:
    """Those with this SHA-256; networks of one model share them."""
    need(hashlib.sha256(data).digest() == name, "numbers of a network are missing, or others")
    return Numbers(form, data)


# ---------------------------------------------------------------------------------------------------------- the bytes


class Reader:
    """Goes through the bytes of a canonical network once."""

    def __init__(self, data: bytes, numbers: Mapping[bytes, bytes]) -> None:
        self.data, self.numbers, self.at = data, numbers, 0

    def take(self, count: int) -> bytes:
        """The next so many bytes."""
        self.at += count
        need(self.at <= len(self.data), "the network ends too early")
        return self.data[self.at - count : self.at]

    def integers(self, count: int) -> tuple[int, ...]:
        """So many: 32 bits each, the lowest byte first."""
        return struct.unpack(f"<{count}I", self.take(4 * count))

    def integer(self) -> int:
        return self.integers(1)[0]

    def several(self) -> tuple[int, ...]:
        """Their number stands before them."""
        return self.integers(self.integer())

    def exact(self, count: int) -> Numbers:
        """So many numbers that stand apart and have the hash that stands here."""
        form, name = self.integer(), self.take(32)
        found = numbers_of(form, name, self.numbers.get(name, b""))
        need(len(found.items) == count, f"{len(found.items)} numbers in place of {count}")
        return found


# ------------------------------------------------------------------------------------------------------------- layers


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """Elements start, start + 1, ..., each an integer over `scale`. Constants are nothing more.

    `depth` counts the nonlinear layers on the way: layers of depth 0 are affine in the words.
    """

    start: int
    size: int
    scale: int
    depth: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding(Layer):
    """For each position in order the row of the table that the integer there names."""

    table: Numbers
    rows: int
    width: int
    positions: tuple[int, ...]

    def row(self, token: int) -> list[int]:
        """Of the table, over the scale."""
        require(token < self.rows, "a token is beyond the embedding")
        return self.table.part(token * self.width, (token + 1) * self.width)


class Row(NamedTuple):
    """An element: the sum of weights times the elements of the list that is `read`, plus bias, all as integers.

    `sizes` are the magnitudes of the weights, over a scale of their own.
    """

    read: int
    weights: list[int]
    sizes: list[int]
    bias: int


Multiplied = dict[tuple[int, tuple[int, ...]], tuple[list[int], list[int]]]
"""Weights and sizes of rows, by the list of weights that layers share, and the units."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Affine(Layer):
    """An element for each of the `pairs` (list, weights): the sum of weights times the elements of the list, plus bias.

    Weights are over `size_scale`, biases over `bias_scale`. Weight times unit times the integer of an element is over
    the scale of the layer: `units` has that of each element of every list. Layers with the same weights share them.
    """

    lists: list[tuple[int, ...]]
    weights: list[list[int]]
    pairs: list[tuple[int, int]]
    biases: list[int]
    size_scale: int
    bias_scale: int
    units: list[tuple[int, ...]]
    shared: Multiplied

    @cached_property
    def rows(self) -> list[Row]:
        """By element; of a layer that no exact integers can be given to they are never asked for."""
        found, finer = [], self.scale // self.bias_scale
        for (at, of), bias in zip(self.pairs, self.biases, strict=True):
            weights, units = self.weights[of], self.units[at]
            key = id(weights), units
            if key not in self.shared:
                self.shared[key] = list(map(mul, weights, units)), list(map(abs, weights))
            found.append(Row(at, *self.shared[key], bias * finer))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Rectifier(Layer):
    """max(x, 0) + alpha min(x, 0) = max(x, x p / q) of every source x, alpha being p / q.

    The integer of a source times its factor is over one scale for all of them; that of the layer is q times finer.
    """

    sources: Sequence[int]
    factors: list[int]
    p: int
    q: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Maximum(Layer):
    """The greatest of every window, a range of places in `sources`.

    The integer of a source times its factor is over the scale of the layer.
    """

    sources: Sequence[int]
    factors: list[int]
    windows: list[range]


@dataclass(frozen=True, eq=False, kw_only=True)
class Product(Layer):
    """An element of the first list times the one in the same place of the second."""

    firsts: Sequence[int]
    seconds: Sequence[int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve(Layer):
    """The function with this number of every source."""

    function: int
    sources: Sequence[int]


NONLINEAR = (Rectifier, Maximum, Product, Curve)

# -------------------------------------------------------------------------------------------------------- the network


class Network:
    """A canonical network: `layers` in order, the `owner` of every element, and which elements are the `logits`.

    The `earlier` layers are affine in the words, the `later` ones not. The `cut` are the elements of earlier layers
    (and constants) that later ones, and the logits, read; each has a `slot`, its place in the cut. Layers that depend
    on a product or a curve cannot be given exact integers: theirs, and those of a `smooth` network's logits, are void.
    """

    def __init__(self, data: bytes, numbers: Mapping[bytes, bytes], no_float32: str = "") -> None:
        reader = Reader(data, numbers)
        need(reader.take(16) == b"swapproof net 2\n", "no canonical network of version 2")
        float32, self.positions, count = reader.integers(3)
        self.no_float32 = no_float32 or ("" if float32 == 1 else "the network says so")
        self.owner: list[Layer] = []
        self.units: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.shared: Multiplied = {}
        self.reached: Reach | None = None
        constants = reader.exact(count)
        self.constants = constants.part(0, count)
        self.add(Layer, (), count, constants.scale)
        self.layers: list[Layer] = []
        for _ in range(reader.integer()):
            kind = reader.integer()
            need(kind in self.kinds, f"a layer of the reserved kind {kind}")
            self.layers.append(self.kinds[kind](self, reader))
        self.logits = self.elements(reader)
        need(self.logits and reader.at == len(data), "no logits, or bytes after the end of the network")
        self.scale, self.factors = self.common(self.logits)
        self.earlier = [layer for layer in self.layers if not layer.depth]
        self.later = [layer for layer in self.layers if layer.depth]
        self.smooth = any(isinstance(layer, Product | Curve) for layer in self.layers)
        self.nonlinear = [layer for layer in self.later if isinstance(layer, Rectifier | Maximum)]
        read = {i for layer in self.later for i in sources_of(layer)}.union(self.logits)
        self.cut = sorted(i for i in read if not self.owner[i].depth)
        self.slot = {i: slot for slot, i in enumerate(self.cut)}

    # ---- reading

    def elements(self, reader: Reader, each: int = 1) -> tuple[int, ...]:
        """Those that a layer reads, so many at a time; they must be of layers before it."""
        found = reader.integers(each * reader.integer())
        need(max(found, default=-1) < len(self.owner), "an element is read before it is defined")
        return found

    def common(self, elements: Iterable[int]) -> tuple[int, list[int]]:
        """One scale for elements of several layers, and what their numbers are to be multiplied by."""
        scales = [self.owner[i].scale for i in elements]
        scale = lcm(*set(scales))
        return scale, [scale // each for each in scales]

    def add(self, kind: Any, elements: Iterable[int], size: int, scale: int, **parts: Any) -> Layer:
        """A layer of this kind, after all others, that reads these elements."""
        depth = max([self.owner[i].depth for i in elements], default=0) + (kind in NONLINEAR)
        need(len(self.owner) + size <= 2 * MAX_ELEMENTS, "the network has too many elements")
        narrow(scale)
        layer: Layer = kind(start=len(self.owner), size=size, scale=scale, depth=depth, **parts)
        self.owner += [layer] * size
        return layer

    def embedding(self, reader: Reader) -> Layer:
        """Kind 1: a table, and the positions looked up in it."""
        rows, width = reader.integers(2)
        table, positions = reader.exact(rows * width), reader.several()
        need(width and max(positions, default=self.positions) < self.positions, "an embedding of nothing")
        parts = {"table": table, "rows": rows, "width": width, "positions": positions}
        return self.add(Embedding, (), width * len(positions), table.scale, **parts)

    def affine(self, reader: Reader) -> Layer:
        """Kind 2: lists of elements; lists of weights; and for every row which of either it has, and a bias."""
        lists = [self.elements(reader) for _ in range(reader.integer())]
        lengths = reader.several()
        numbers = reader.exact(sum(lengths))
        weights = [numbers.part(*ends) for ends in pairwise(accumulate(lengths, initial=0))]
        flat = reader.integers(2 * reader.integer())
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        need(all(len(lists[at]) == lengths[of] for at, of in pairs), "a row whose weights do not fit its list")
        biases = reader.exact(len(pairs))
        read = {i for elements in lists for i in elements}
        scale = lcm(biases.scale, numbers.scale * self.common(read)[0])
        units_of = {owner: scale // (numbers.scale * owner.scale) for owner in {self.owner[i] for i in read}}
        found = [tuple([units_of[self.owner[i]] for i in elements]) for elements in lists]
        return self.add(
            Affine,
            read,
            len(pairs),
            scale,
            lists=lists,
            weights=weights,
            pairs=pairs,
            biases=biases.part(0, len(pairs)),
            size_scale=numbers.scale,
            bias_scale=biases.scale,
            units=[self.units.setdefault(units, units) for units in found],
            shared=self.shared,
        )

    def rectifier(self, reader: Reader) -> Layer:
        """Kind 3: alpha, and the sources."""
        p, q = Fraction(reader.exact(1).items[0]).as_integer_ratio()
        need(0 <= p <= q, "the alpha of a rectifier is not in [0, 1]")
        sources = self.elements(reader)
        scale, factors = self.common(sources)
        return self.add(Rectifier, sources, len(sources), scale * q, sources=sources, factors=factors, p=p, q=q)

    def maximum(self, reader: Reader) -> Layer:
        """Kind 4: the elements of every window."""
        windows = [self.elements(reader) for _ in range(reader.integer())]
        need(all(each and list(each) == sorted(set(each)) for each in windows), "elements of a window do not ascend")
        sources = [i for window in windows for i in window]
        scale, factors = self.common(sources)
        ranges = [range(*ends) for ends in pairwise(accumulate(map(len, windows), initial=0))]
        return self.add(Maximum, sources, len(windows), scale, sources=sources, factors=factors, windows=ranges)

    def product(self, reader: Reader) -> Layer:
        """Kind 5: pairs of elements."""
        pairs = self.elements(reader, 2)
        firsts, seconds = pairs[::2], pairs[1::2]
        return self.add(Product, pairs, len(firsts), 1, firsts=firsts, seconds=seconds)

    def curve(self, reader: Reader) -> Layer:
        """Kind 6: a function, and the sources."""
        function = reader.integer()
        need(function in FUNCTIONS, f"a curve of the reserved function {function}")
        sources = self.elements(reader)
        return self.add(Curve, sources, len(sources), 1, function=function, sources=sources)

    kinds: ClassVar[dict[int, Callable[..., Layer]]] = dict(
        enumerate((embedding, affine, rectifier, maximum, product, curve), 1)
    )

    # ---- what it computes

    def evaluate(self, layers: Iterable[Layer], values: list[int], text: Sequence[int] = ()) -> None:
        """Writes the numbers of these layers to `values`, where those they read are; embeddings need the text."""
        for layer in layers:
            if isinstance(layer, Embedding):
                found = [x for p in layer.positions for x in layer.row(text[p])]
            elif isinstance(layer, Affine):
                read = [[values[i] for i in elements] for elements in layer.lists]
                found = [sum(map(mul, row.weights, read[row.read])) + row.bias for row in layer.rows]
            else:
                if not isinstance(layer, Rectifier | Maximum):
                    raise Refused("a layer that has no exact numbers")
                found = [values[i] * factor for i, factor in zip(layer.sources, layer.factors, strict=True)]
                if isinstance(layer, Maximum):
                    found = [max(found[window.start : window.stop]) for window in layer.windows]
                else:
                    found = [x * (layer.q if x > 0 else layer.p) for x in found]
            values[layer.start : layer.start + layer.size] = found

    def start(self) -> list[int]:
        """Values of all elements, of which the constants are known."""
        return self.constants + [0] * (len(self.owner) - len(self.constants))


# --------------------------------------------------------------------------------- how elements depend on the integers


def sources_of(layer: Layer) -> Iterable[int]:
    """The elements that a layer reads."""
    if isinstance(layer, Affine):
        return {i for elements in layer.lists for i in elements}
    if isinstance(layer, Product):
        return (*layer.firsts, *layer.seconds)
    return layer.sources if isinstance(layer, Rectifier | Maximum | Curve) else ()


def substitute(function: dict[int, Any], define: Callable[[int, Any], Terms | None]) -> dict[int, Any]:
    """Replaces elements, later ones first, by the terms that `define` says c times an element is.

    Coefficients of the same element are added up before it is its turn. Returns those that `define` leaves, by None.
    """
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


class Reach:
    """How the numbers of the cut depend on the integers at every position.

    `tables[p]` are the embeddings that look the integer at position p up, each as often as it does; `kernels[p]` has
    for every slot that depends on what they find the coefficients of that, one table after the other.
    """

    def __init__(self, network: Network, stop: float) -> None:
        self.tables: dict[int, list[Embedding]] = {}
        self.kernels: dict[int, dict[int, tuple[int, ...]]] = {}
        elements: dict[int, list[int]] = {}
        for layer in network.earlier:
            if isinstance(layer, Embedding):
                for at, p in enumerate(layer.positions):
                    start = layer.start + at * layer.width
                    self.tables.setdefault(p, []).append(layer)
                    elements.setdefault(p, []).extend(range(start, start + layer.width))
        position = {i: p for p, found in elements.items() for i in found}
        steps = 0

        def define(i: int, c: int) -> Terms | None:
            """Affine elements are replaced, those of embeddings left, and constants dropped."""
            nonlocal steps
            layer = network.owner[i]
            if isinstance(layer, Affine):
                row = layer.rows[i - layer.start]
                steps += len(row.weights)
                return zip(layer.lists[row.read], [c * weight for weight in row.weights], strict=True)
            return None if i in position else ()

        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        for slot, top in enumerate(network.cut):
            need(steps <= MAX_WORK, "the network is too large: too many elements depend on the words")
            in_time(stop)
            found = substitute({top: 1}, define)
            for p in {position[i]: None for i, c in found.items() if c}:
                kernel = tuple([found.get(i, 0) for i in elements[p]])
                self.kernels.setdefault(p, {})[slot] = same.setdefault(kernel, kernel)

    def looked_up(self, position: int, token: int) -> list[int]:
        """What its embeddings find for an integer at this position."""
        return [x for layer in self.tables.get(position, []) for x in layer.row(token)]
