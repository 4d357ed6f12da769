"""What an ONNX graph is read into: values, layers, and the run through the nodes that lays the layers down.

    graph = Graph(model, operators, stop, choices)
    result = graph.output(inputs)                      the output of the model, a value
    graph.lowered(result.items, positions)             the canonical network of FORMAT.md, section 4.3

This file is trusted, as check.py is. It stands between onnx_file.py, which reads the file, and lower.py, which says
what each operator means, with smooth_operators.py beside it. Standard library only, exact numbers only. Order: numbers
as they are written, values, layers, the graph, layers that many operators lay down, what operators read. What is
outside the format raises `Unusable`.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import inf, isfinite, prod
from operator import eq
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import onnx_file
else:
    onnx_file = sys.modules["onnx_file"]  # that of lower.py: an error is of the same class wherever it is raised

Unusable = onnx_file.Unusable
need, in_time, sha256 = onnx_file.need, onnx_file.in_time, onnx_file.sha256
MAX_SHAPE = onnx_file.MAX_SHAPE
limited, broadcast, axis_of = onnx_file.limited, onnx_file.broadcast, onnx_file.axis_of

# Limits (FORMAT section 9).
MAX_ELEMENTS = 1 << 23
MAX_NONLINEAR, MAX_LAYERS = 64, 65_536
MAX_WORK = 3 * 10**8
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
    (input positions); or variable: elements, by their numbers in the graph. Numbers may be minus infinity; and so it
    stands among elements, of which it is none.
    """

    kind: Kind
    shape: tuple[int, ...]
    items: Sequence[Any]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def is_masked(self) -> bool:
        """Whether minus infinity is in it. The highest byte of such a float32 is 255."""
        items = self.items
        if self.kind in (Kind.INTEGERS, Kind.TOKENS) or isinstance(items, range):
            return False
        plain = isinstance(items, array) and items.typecode == "f" and 255 not in items.tobytes()[3::4]
        return not plain and -inf in items

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


def taken(value: Tensor, indices: Iterable[int], shape: Sequence[int]) -> Tensor:
    """Elements by their places, as a tensor of this shape."""
    items: Sequence[Any] = [value.items[i] for i in indices]
    if isinstance(value.items, array):
        items = array(value.items.typecode, items)
    return Tensor(value.kind, tuple(shape), items)


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


class Product(Layer):
    """Of each pair: an element of the first list, and the one of the second in the same place."""

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[5, self.size, *chain.from_iterable(zip(*lists, strict=True))]]


@dataclass(frozen=True, eq=False)
class Curve(Layer):
    """The function with this number of each element of one list."""

    function: int

    def parts(self, lists: Sequence[Sequence[int]]) -> Parts:
        return [[6, self.function], counted(lists[0])]


# An operator on tokens: its name, what it reads, and what came of it.
Fold = tuple[str, tuple[Tensor, ...], Sequence[Any]]
# By name; None for outputs that cannot be read.
Values = dict[str, Tensor | None]


class Graph:
    """Runs through ONNX nodes for a batch of one sentence and lays down the layers.

    Elements are numbered as they come, constants among them; `owner` names the layer of each, None for a constant.
    """

    def __init__(
        self,
        model: onnx_file.OnnxFile,
        operators: Mapping[str, Operator],
        stop: float,
        choices: Sequence[Sequence[int]] = (),
    ) -> None:
        self.model = model
        self.operators = operators
        self.stop = stop
        self.choices = choices
        self.work = 0
        self.folds: list[Fold] = []
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
        need(not result.is_masked, "minus infinity in the output")
        return result

    def outputs_of(self, node: onnx_file.Node, values: Values) -> Values:
        need(node.operator in self.operators, "outside the format")
        operator, names = self.operators[node.operator], node.inputs
        wanted = operator.inputs * max(len(names), 1) if operator.many else operator.inputs
        need(len(names) <= len(wanted), f"{len(names)} inputs are too many")
        names = names + [""] * (len(wanted) - len(names))
        inputs = [each.argument(values, name) for each, name in zip(wanted, names, strict=True)]
        if not operator.may_be_masked:
            masked = any(isinstance(each, Tensor) and each.is_masked for each in inputs)
            need(not masked, "minus infinity in an input is outside the format here")
        attributes = node.attributes_of(operator.attributes)
        if "axes" in attributes:
            need(inputs[1] is None, "axes are given twice")
            inputs[1] = attributes.pop("axes")
        found = operator.function(self, *inputs, **attributes)
        results = [found] if isinstance(found, Tensor) else found
        named = len(node.outputs) >= len(results) and all(node.outputs[: len(results)])
        need(named or operator.may_lack_outputs, "an output is missing")
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
            if number not in self.constants and number != -inf:
                self.constants[number] = len(self.owner)
                self.owner.append(None)
        need(len(self.owner) <= 2 * MAX_ELEMENTS, "the network has too many elements")
        return Tensor(Kind.VARIABLE, value.shape, [self.constants.get(number, -inf) for number in value.items])

    def alike(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Of several kinds: all as variables."""
        return values if len({value.kind for value in values}) == 1 else tuple(map(self.variable, values))

    def options(self, kind: Kind, item: Any) -> Sequence[Any]:
        """The exact numbers that a constant, or a token, can be."""
        self.spend(1)
        if kind is not Kind.TOKENS:
            return [item if kind is Kind.INTEGERS else exact(item)]
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
        if any(isinstance(layer, Product | Curve) for layer in kept):
            need(len(kept) <= MAX_LAYERS, f"more than {MAX_LAYERS} layers")
        else:
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
        return Lowered(data, sha256(data), numbers, self.no_float32, lookups, self.folds)


def stored_part(part: Sequence[int] | Written) -> bytes:
    if isinstance(part, Written):
        return array("I", [part.form]).tobytes() + part.digest
    return array("I", part).tobytes()


class Lowered(NamedTuple):
    """A canonical network: its bytes, and by their digests the numbers written apart.

    `no_float32` says why there can be no claims about float32, and is empty if there can. `lookups` are all that are in
    the model, `folds` all that it computes of tokens: where they come to the same, so does the network.
    """

    data: bytes
    sha256: str
    numbers: Mapping[bytes, bytes]
    no_float32: str
    lookups: list[Embedding]
    folds: Sequence[Fold]


ZERO = Tensor(Kind.NUMBERS, (1,), [0.0])


def exact(number: Any) -> Any:
    """What is not finite stays a float."""
    return number if isinstance(number, float) and not isfinite(number) else Fraction(number)


def axes_of(listed: Ints, rank: int, default: Iterable[int] = ()) -> list[int]:
    axes = [axis_of(axis, rank) for axis in (default if listed is None else listed)]
    need(len(set(axes)) == len(axes), "an axis occurs twice")
    return axes


def weighted(
    graph: Graph, shape: Sequence[int], terms: Sequence[tuple[Sequence[Any], Sequence[int]]], biases: Any = None
) -> Tensor:
    """Element by element: the sum of factors times elements, plus a bias."""
    factors, elements = zip(*terms, strict=True)
    weights = weights_of(list(zip(*factors, strict=True)))
    return graph.affine(zip(*elements, strict=True), weights, shape, biases)


def around(x: Tensor, make: Callable[[Sequence[Any], tuple[int, ...]], Tensor], filler: Any = -inf) -> Tensor:
    """What is made of the items that are not minus infinity, in the shape they have; the filler for the others."""
    if not x.is_masked:
        return make(x.items, x.shape)
    kept = [i for i in x.items if i != -inf]
    found = iter(make(kept, (len(kept),)).items if kept else ())
    return Tensor(Kind.VARIABLE, x.shape, [filler if i == -inf else next(found) for i in x.items])


def shown(shape: Sequence[int], hidden: Iterable[bool]) -> Tensor:
    """The places of a value of this shape, but for those that are hidden."""
    return Tensor(Kind.VARIABLE, tuple(shape), [-inf if each else i for i, each in enumerate(hidden)])


def combined(graph: Graph, *terms: tuple[int, Tensor]) -> Tensor:
    """The sum of values, each times a sign: variables, and at most one of numbers."""
    shape = broadcast(*[value.shape for _, value in terms])
    need(all(value.kind in (Kind.NUMBERS, Kind.VARIABLE) for _, value in terms), "tokens or integers among numbers")
    masked = [value for _, value in terms if value.is_masked]
    need(all(sign == 1 or not value.is_masked for sign, value in terms), "minus infinity is taken off")
    given = [(sign, value.kind, spread(value, shape).items) for sign, value in terms]

    def laid(chosen: Sequence[int], shape: tuple[int, ...]) -> Tensor:
        taken = [(sign, kind, [items[i] for i in chosen]) for sign, kind, items in given]
        variables = [([sign] * len(items), items) for sign, kind, items in taken if kind is Kind.VARIABLE]
        biases = [sign * n for sign, kind, items in taken if kind is Kind.NUMBERS for n in items]
        return weighted(graph, shape, variables, biases)

    if not masked:
        return laid(range(prod(shape)), shape)
    graph.no_claim("the model adds minus infinity")
    places = zip(*[spread(value, shape).items for value in masked], strict=True)
    return around(shown(shape, [-inf in each for each in places]), laid)


def rectified(graph: Graph, x: Tensor, alpha: float = 0.0) -> Tensor:
    need(0 <= alpha <= 1 and not (alpha and x.is_masked), "needs an alpha in [0, 1]")
    return around(x, lambda items, shape: graph.lay(Rectifier(len(items), [items], alpha), shape), zero_of(graph, x))


def zero_of(graph: Graph, x: Tensor) -> Any:
    """The constant element 0, where it takes the place of minus infinity."""
    return graph.variable(ZERO).items[0] if x.is_masked else None


def lines_of(x: Tensor, axes: Iterable[int], keepdims: int = 1) -> tuple[list[int], list[Sequence[int]]]:
    """The elements along these axes, line by line, in row-major order of the other axes; and the shape of a value with
    one element a line.
    """
    found = sorted(axes)
    kept = [axis for axis in range(x.rank) if axis not in found]
    shape = [1 if axis in found else size for axis, size in enumerate(x.shape) if keepdims or axis in kept]
    return shape, parts_of(picked(x, {}, kept + found).items, prod([x.shape[axis] for axis in kept]))


def greatest(graph: Graph, windows: Sequence[Sequence[int]], shape: Sequence[int]) -> Tensor:
    """Of windows without minus infinity, if something is left."""
    graph.spend(sum(map(len, windows)))
    lists = [[i for i in window if i != -inf] for window in windows]
    need(all(lists) or graph.node.operator in ("ReduceMax", "Max"), "a window, or line, of nothing but minus infinity")

    def laid(chosen: Sequence[int], shape: tuple[int, ...]) -> Tensor:
        return graph.lay(Maximum(len(chosen), [lists[i] for i in chosen]), shape)

    return around(shown(shape, [not each for each in lists]), laid)


def averaged(
    graph: Graph, windows: Sequence[Sequence[int]], shape: Sequence[int], count: int | None = None, biases: Any = None
) -> Tensor:
    """The sum of each window over this count, or else over its own, plus a bias."""
    sizes, places = distinct(map(len, windows))
    weights = weights_of([(Fraction(1, count or size),) * size for size in sizes])
    return graph.affine(windows, weights._replace(places=places), shape, biases)


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
    """The function, what it reads (many: one or more of this), its attributes, if they are there; whether names of its
    outputs may be missing, and minus infinity in what it reads.
    """

    function: Callable[..., Tensor | list[Tensor]]
    inputs: tuple[Input, ...]
    attributes: tuple[str, ...] = ()
    many: bool = False
    may_lack_outputs: bool = False
    may_be_masked: bool = False
