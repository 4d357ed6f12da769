"""The layers of the canonical network (FORMAT.md, section 4.3), found in the nodes of a `Network`.

A canonical layer is what one calculating step of an ONNX node gives. Several nodes may make one (a total and its
division), which are composed here exactly; and an `Affine` may hold two (`Affine.product`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import Unsupported
from .exact_numbers import (
    Numbers,
    combined,
    distinct,
    distinct_rows,
    exact,
    exact_numbers,
    ids,
    in_order,
    is_all,
    products,
    quotients,
)
from .network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Floats,
    Function,
    Indices,
    Maximum,
    Network,
    Node,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
    Table,
)
from .walk import Meaning, gather

PADDING = -1
"""In the place of an element in a list: nothing."""
FIRST_CONSTANT = -2
"""Constant j stands as FIRST_CONSTANT - j until all are known."""


@dataclass(frozen=True, eq=False)
class Form:
    """Rows under construction: sum over k of factor * weights[k] * x_k + bias, x the elements in the row's list."""

    lists: Indices
    """[lists, K], PADDING where a place is left out."""
    weights: Floats
    """[weights, K]"""
    list_of: Indices
    weights_of: Indices
    factor: Numbers
    bias: Numbers
    layer: Affine | None = None
    """Whose weights these are, one row after the other and nothing else: the steps of a recurrence share them."""

    def taken(self, index: Indices) -> Form:
        at = index.ravel()
        rows = (self.list_of[at], self.weights_of[at], self.factor[at], self.bias[at])
        return Form(self.lists, self.weights, *rows)


@dataclass(frozen=True, eq=False)
class Lookup:
    table: Floats | Table
    positions: Indices

    @property
    def size(self) -> int:
        return self.positions.size * self.table.shape[1]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The numbers a network without tokens reads."""

    size: int


@dataclass(frozen=True, eq=False)
class Rows:
    lists: Indices
    """[lists, K], the elements first, PADDING behind them; distinct, as the rows use them first."""
    weights: tuple[Numbers, ...]
    list_of: Indices
    weights_of: Indices
    bias: Numbers

    @property
    def size(self) -> int:
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class Bends:
    slope: float
    read: Indices

    @property
    def size(self) -> int:
        return len(self.read)


@dataclass(frozen=True, eq=False)
class Greatest:
    windows: Indices
    """[windows, width], elements may be repeated."""

    @property
    def size(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, eq=False)
class Pairs:
    read: Indices
    """[pairs, 2]"""

    @property
    def size(self) -> int:
        return len(self.read)


@dataclass(frozen=True, eq=False)
class Curved:
    function: Function
    read: Indices

    @property
    def size(self) -> int:
        return len(self.read)


Step = Lookup | Inputs | Rows | Bends | Greatest | Pairs | Curved


SHARED: weakref.WeakKeyDictionary[Affine, tuple[tuple[Numbers, ...], Indices]] = weakref.WeakKeyDictionary()
"""Of a layer, as long as it is there: the distinct weights, and which each of its rows has. The networks of all
lengths have the same layers in a recurrence."""


@dataclass
class Walk:
    """Goes through the nodes once; elements are numbered layer by layer, in the order in which layers are met."""

    network: Network
    inputs: str
    steps: list[tuple[int, int, Step]] = field(default_factory=list)
    """Number of the ONNX node, first element, layer."""
    size: int = 0
    constants: dict[float, int] = field(default_factory=dict)
    elements: dict[int, Indices] = field(default_factory=dict)
    forms: dict[int, Form] = field(default_factory=dict)
    """Of nodes that are inside a layer."""
    products: dict[int, Indices] = field(default_factory=dict)
    """Number of an ONNX node -> the elements of its product."""

    def add(self, node: Node, step: Step, number: int | None = None) -> Indices:
        number = node.number if number is None else number
        found = np.arange(self.size, self.size + step.size, dtype=np.int64)
        self.steps.append((-1 if number is None else number, self.size, step))
        self.size += step.size
        return found.reshape(node.shape)

    def visit(self, at: At) -> None:
        LAYERS.rule(at.node)(self, at.node.layer, at)

    def look_up(self, layer: Embedding, at: At) -> None:
        tokens = self.inputs == "tokens"
        step = Lookup(layer.table, layer.positions.ravel()) if tokens else Inputs(at.node.size)
        self.elements[at.index] = self.add(at.node, step)

    def hold(self, layer: Constant, at: At) -> None:
        self.elements[at.index] = self.constant(layer.value)

    def rearrange(self, layer: Rearrangement, at: At) -> None:
        first = at.node.inputs[0]
        if self.is_inside(first):
            self.close(at, self.forms[first].taken(layer.index))
        else:
            read = [self.elements[source] for source in at.node.inputs]
            self.elements[at.index] = gather(layer, read, leading=0)

    def multiply(self, layer: Affine, at: At) -> None:
        node = at.node
        if layer.product is not None:
            x = self.product(node, layer, layer.product)
            self.close(at, scaled(x, np.ones(()), np.ones(()), np.broadcast_to(layer.bias, node.shape)))
            return
        self.close(at, product(self.terms(node, node.number), layer))
        if at.index in self.elements and node.number is not None:
            self.products[node.number] = self.elements[at.index]

    def scale(self, layer: Scaling, at: At) -> None:
        (source,) = at.node.inputs
        read = self.forms[source] if self.is_inside(source) else self.elements[source]
        self.close(at, scaled(read, layer.multiply, layer.divide, layer.add))

    def add_up(self, layer: Sum, at: At) -> None:
        if any(self.is_inside(source) for source in at.node.inputs):
            kept, leaked = at.node.inputs
            self.close(at, bent(self.elements[kept], self.forms[leaked]))
        else:
            lists = np.stack([self.elements[source].ravel() for source in at.node.inputs], axis=1)
            self.close(at, plain(lists, np.array([layer.signs], dtype=np.float64), np.zeros(at.node.size)))

    def rectify(self, layer: Rectifier, at: At) -> None:
        self.elements[at.index] = self.add(at.node, Bends(layer.slope, self.elements[at.node.inputs[0]].ravel()))

    def take_greatest(self, layer: Maximum, at: At) -> None:
        windows = self.elements[at.node.inputs[0]]
        self.elements[at.index] = self.add(at.node, Greatest(windows.reshape(-1, windows.shape[-1])))

    def multiply_pairs(self, layer: Product, at: At) -> None:
        read = [self.elements[source].ravel() for source in at.node.inputs]
        self.elements[at.index] = self.add(at.node, Pairs(np.stack(read, axis=1)))

    def bend(self, layer: Curve, at: At) -> None:
        self.elements[at.index] = self.add(at.node, Curved(layer.function, self.elements[at.node.inputs[0]].ravel()))

    def constant(self, value: Floats) -> Indices:
        distinct, which = np.unique(value + 0.0, return_inverse=True)  # 0.0 for -0.0
        names = [self.constants.setdefault(number, len(self.constants)) for number in distinct.tolist()]
        return (FIRST_CONSTANT - np.array(names, dtype=np.int64))[which].reshape(value.shape)

    def is_inside(self, index: int) -> bool:
        return index in self.forms

    def close(self, at: At, form: Form) -> None:
        """A layer ends here, or goes on."""
        if at.index in self.network.inner:
            self.forms[at.index] = form
        else:
            self.elements[at.index] = self.add(at.node, rows(form))

    def product(self, node: Node, layer: Affine, number: int) -> Indices:
        if number not in self.products:
            form = product(self.terms(node, number), replace(layer, bias=np.zeros_like(layer.bias)))
            self.products[number] = self.add(node, rows(form), number)
        return self.products[number]

    def terms(self, node: Node, number: int | None) -> Indices:
        """What an Affine reads; constants that its own ONNX node made are padding."""
        (source,) = node.inputs
        found = self.elements[source]
        read = self.network.nodes[source]
        if not isinstance(read.layer, Rearrangement) or read.number != number:
            return found
        own = [self.network.nodes[i] for i in read.inputs]
        if not any(isinstance(one.layer, Constant) and one.number == number for one in own):
            return found
        ends = np.cumsum([one.size for one in own])
        made = np.array([isinstance(one.layer, Constant) and one.number == number for one in own])
        return np.where(made[np.searchsorted(ends, read.layer.index, side="right")], PADDING, found)


LAYERS: Meaning[None] = Meaning(
    "canonical layer",
    {
        Embedding: Walk.look_up,
        Constant: Walk.hold,
        Rearrangement: Walk.rearrange,
        Affine: Walk.multiply,
        Scaling: Walk.scale,
        Sum: Walk.add_up,
        Rectifier: Walk.rectify,
        Maximum: Walk.take_greatest,
        Product: Walk.multiply_pairs,
        Curve: Walk.bend,
    },
)


def plain(lists: Indices, weights: Floats, bias: Numbers) -> Form:
    """A list for every row, and one sequence of weights."""
    count = len(lists)
    return Form(lists, weights, np.arange(count), np.zeros(count, dtype=np.int64), np.ones(count), bias)


def product(x: Indices, layer: Affine) -> Form:
    """[..., k] times [k, m] plus [m]."""
    terms, outputs = layer.weight.shape
    groups, width = layer.groups, terms // layer.groups
    lists = x.reshape(-1, width)  # all groups of the first place, all of the second, ...
    places = len(lists) // groups
    group = np.arange(outputs) // (outputs // groups)
    weights = layer.weight.T.reshape(outputs, groups, width)[np.arange(outputs), group]
    list_of = (np.arange(places)[:, None] * groups + group).ravel()
    weights_of = np.tile(np.arange(outputs), places)
    own = layer if places == groups == 1 else None
    return Form(lists, weights, list_of, weights_of, np.ones(len(list_of)), np.tile(layer.bias, places), own)


def scaled(x: Indices | Form, multiply: Floats, divide: Floats, added: Floats) -> Form:
    form = x if isinstance(x, Form) else plain(x.reshape(-1, 1), np.ones((1, 1)), np.zeros(x.size))
    count = len(form.bias)
    times, by = (np.broadcast_to(part, count) if part.ndim == 0 else part.ravel() for part in (multiply, divide))
    ratio = quotients(times, by)
    factor, bias = products(form.factor, ratio), products(form.bias, ratio)
    if not is_all(added, 0.0):
        more = added.ravel()
        bias = more + 0.0 if is_all(bias, 0.0) else combined(lambda a, b: a + b, bias, more)
    return replace(form, factor=factor, bias=bias, layer=None)


def bent(kept: Indices, leaked: Form) -> Form:
    """kept + s (x - kept), which is (1 - s) kept + s x."""
    fits = leaked.weights.tolist() == [[1.0, -1.0]] and np.array_equal(leaked.lists[leaked.list_of, 1], kept.ravel())
    if not fits or not is_all(leaked.bias, 0.0):
        raise Unsupported("a sum inside a layer that is no PRelu")
    slopes, which = distinct(leaked.factor)
    pairs = [(1 - slope, slope) for slope in slopes]
    lists = np.stack([kept.ravel(), leaked.lists[leaked.list_of, 0]], axis=1)
    form = plain(lists, np.ones((1, 2)), leaked.bias)
    return replace(form, weights=exact_numbers([n for pair in pairs for n in pair]).reshape(-1, 2), weights_of=which)


def rows(form: Form) -> Rows:
    """Lists and weights without padding, each once, in the order in which the rows use them first."""
    inside = form.lists != PADDING
    if form.layer is not None and inside.all():
        if form.layer not in SHARED:
            SHARED[form.layer] = sequences(form, [slice(None)], np.zeros(len(form.list_of), dtype=np.int64))
        return Rows(form.lists, SHARED[form.layer][0], form.list_of, SHARED[form.layer][1], form.bias)
    lists, list_of = form.lists, form.list_of
    if inside.all():
        masks, mask_of = [slice(None)], np.zeros(len(lists), dtype=np.int64)
    else:
        patterns, mask_of = distinct_rows(inside)
        masks = list(patterns)
        lists = np.take_along_axis(lists, np.argsort(~inside, axis=1, kind="stable"), axis=1)
    lists, which = distinct_rows(lists)
    weights, weights_of = sequences(form, masks, mask_of[list_of])
    used, list_of = in_order(which[list_of])
    return Rows(lists[used], weights, list_of, weights_of, form.bias)


def sequences(form: Form, masks: Sequence[Any], mask_of: Indices) -> tuple[tuple[Numbers, ...], Indices]:
    """The distinct weights of the rows, and which each has."""
    if form.weights.shape == (1, 1) and form.weights[0, 0] == 1.0 and len(masks) == 1:
        used, which = in_order(ids(form.factor))
        first = np.unique(which, return_index=True)[1]
        return tuple(form.factor[first, None]), which
    factors, factor_of = distinct(form.factor)
    keys = (form.weights_of * len(masks) + mask_of) * len(factors) + factor_of
    used, which = in_order(keys)
    known: dict[Any, int] = {}
    found: list[Numbers] = []
    renamed = np.empty(len(used), dtype=np.int64)
    for place, key in enumerate(used.tolist()):
        rest, factor = divmod(key, len(factors))
        line, mask = divmod(rest, len(masks))
        numbers = form.weights[line][masks[mask]]
        if factors[factor] != 1:
            numbers = exact_numbers([exact(number) * factors[factor] for number in numbers.tolist()])
        elif numbers.dtype != object:
            numbers = numbers + 0.0
        name = tuple(numbers.tolist()) if numbers.dtype == object else numbers.tobytes()
        if name not in known:
            known[name] = len(found)
            found.append(numbers)
        renamed[place] = known[name]
    return tuple(found), renamed[which]
