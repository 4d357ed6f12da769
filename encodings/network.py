"""A classifier as a small graph of layers over real arithmetic: tokens in, one logit per class out.

A network is what the ONNX model computes for a batch of one sentence; every array keeps its ONNX shape (with the
leading 1). Reading an ONNX file reduces its many operators to the ten layers below, so that whoever gives layers
another meaning (numbers, intervals, linear bounds, MILP rows, SMT terms) has a table of ten rules to write: `walk`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Choices = Sequence[Sequence[int]]
"""Token ids per position."""


@dataclass(frozen=True, eq=False)
class Table:
    """Float numbers kept in the type of their file and read as float64, exactly: half the memory of a big vocabulary.

    Differences of rows must not be taken in float32, so nothing here hands out float32.
    """

    stored: NDArray[np.floating[Any]]

    def __getitem__(self, rows: Any) -> Floats:
        return np.asarray(self.stored[rows], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.stored)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.stored, dtype=dtype or np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape


@dataclass(frozen=True, eq=False)
class Embedding:
    """out[..., :] = table[tokens[positions[...]], :]; the only layer that reads tokens."""

    table: Floats | Table
    positions: Indices


@dataclass(frozen=True, eq=False)
class Constant:
    """A value that no token changes."""

    value: Floats


@dataclass(frozen=True, eq=False)
class Rearrangement:
    """out = concatenation of the flattened inputs, read at `index`: reshape, transpose, slice, pad, concat, windows."""

    index: Indices

    @cached_property
    def is_reshape(self) -> bool:
        """Every element once and in order (of a single input: the caller knows how many there are)."""
        return self.first == 0

    @cached_property
    def first(self) -> int | None:
        """Where it starts to read, if it reads on from there without a gap."""
        index = self.index.reshape(-1)
        start = int(index[0]) if index.size else 0
        return start if np.array_equal(index, np.arange(start, start + index.size)) else None


@dataclass(frozen=True, eq=False)
class Affine:
    """out[..., m] = sum_k in[..., k] * weight[k, m] + bias[m].

    A runtime rounds each term at most once per other term, and `roundings` times more.
    """

    weight: Floats
    bias: Floats
    roundings: int = 1
    product: int | None = None
    """The number of the ONNX node that gives the product, when the bias is added by another one: two layers in one."""
    groups: int = 1
    """Inputs and outputs fall into as many equal parts, in order, and each output reads its own part only."""

    @cached_property
    def terms(self) -> Floats:
        """[outputs]: non-zero weights and the bias. A zero weight costs nothing: product and addition are exact."""
        return np.asarray(np.count_nonzero(self.weight, axis=0) + 1.0)


@dataclass(frozen=True, eq=False)
class Scaling:
    """out = in * multiply / divide + add, element by element; the three have the shape of the output.

    A runtime spends at most `roundings` + 1 float operations on each output; the identity with more than one is a
    cast to a coarser type.
    """

    multiply: Floats
    divide: Floats
    add: Floats
    roundings: int = 1


@dataclass(frozen=True, eq=False)
class Sum:
    """out = sum of signs[i] * input[i], all of one shape."""

    signs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Rectifier:
    """out = max(in, 0) + slope * min(in, 0), with 0 <= slope <= 1 (slope 0: ReLU)."""

    slope: float


@dataclass(frozen=True, eq=False)
class Maximum:
    """out[...] = max over w of in[..., w]."""


@dataclass(frozen=True, eq=False)
class Product:
    """out = in0 * in1, element by element, both of the shape of the output; they may be the same node."""


Function = Literal["exp", "tanh", "sigmoid", "erf", "reciprocal", "sqrt"]


@dataclass(frozen=True, eq=False)
class Curve:
    """out = function(in), element by element; the sigmoid is 1 / (1 + exp(-in)), the reciprocal 1 / in."""

    function: Function


Layer = Embedding | Constant | Rearrangement | Affine | Scaling | Sum | Rectifier | Maximum | Product | Curve
AFFINE = (Embedding, Constant, Rearrangement, Affine, Scaling, Sum)
"""Affine in what they read; whatever else there is counts as nonlinear, which is always right."""
SMOOTH = (Product, Curve)
"""Neither affine nor piecewise linear: a network that holds one is called smooth."""
Head = Literal["logits", "softmax", "log_softmax", "sigmoid", "tanh"]


@dataclass(frozen=True, eq=False)
class Node:
    """One layer in its place: the nodes it reads, the shape it gives, the ONNX node it comes from."""

    layer: Layer
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    origin: str
    number: int | None = None
    """Place of that ONNX node in its file, plus the number of all nodes for what a Clip holds below its upper limit;
    certificates name rectifiers by it."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False, slots=True)
class At:
    """A node by its index: where a walk is."""

    index: int
    node: Node


@dataclass(frozen=True)
class Account:
    """What reading an ONNX file for tokens showed beside the layers.

    `nodes` are those of the ONNX graph. `foreign` says what no certificate speaks of (FORMAT.md, section 4), and
    `real_only` what bars claims at level float32 (section 4.3); both are empty for most models.
    """

    nodes: int
    foreign: tuple[str, ...] = ()
    real_only: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes in topological order, the last one the logits, shape (1, classes).

    `head` is the strictly increasing function the model applies to its logits before it answers; it changes no argmax
    over the reals. `unit` is the unit roundoff of the coarsest float type the model computes in (2**-24 for float32).
    `inexact` names the constants that are rounded real numbers (a quotient of constants), else it is empty.
    `choices` are those per position that the network is for, when the model computes with tokens, else None; `same`
    says whether others come to the same there.
    `before` and `after` are what the model's other inputs are given: the network is for these alone.
    """

    nodes: tuple[Node, ...]
    length: int
    vocabulary_size: int
    head: Head = "logits"
    unit: float = 2.0**-24
    inexact: tuple[str, ...] = field(default=())
    choices: tuple[tuple[int, ...], ...] | None = None
    same: Callable[[Choices], bool] | None = None
    account: Account | None = None
    before: tuple[tuple[int, ...], ...] = ()
    after: tuple[tuple[int, ...], ...] = ()

    @property
    def frame(self) -> tuple[int, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Of the spaces that it is for."""
        return self.length, self.before, self.after

    def is_for(self, choices: Choices) -> bool:
        """Whether it is the network of these choices per position too."""
        known = self.choices
        if known is None or all({*given} <= {*own} for given, own in zip(choices, known, strict=True)):
            return True
        return self.same is not None and self.same(choices)

    @property
    def classes(self) -> int:
        return self.nodes[-1].shape[-1]

    @cached_property
    def places(self) -> tuple[At, ...]:
        return tuple(At(index, node) for index, node in enumerate(self.nodes))

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Of every node those that read it, ascending."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for source in dict.fromkeys(node.inputs):
                found[source].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def inner(self) -> frozenset[int]:
        """Linear nodes inside a canonical layer (FORMAT.md, 4.3): another one of the same ONNX node goes on from them.

        A Rearrangement that puts elements in order belongs to the layer, but where it lays out windows for a Maximum.
        """
        found: set[int] = set()
        for index in reversed(range(len(self.nodes))):
            node = self.nodes[index]
            here = [reader for reader in self.readers[index] if self.nodes[reader].number == node.number]
            moved = isinstance(node.layer, Rearrangement) and self.computes_here(index)
            computes = moved or isinstance(node.layer, Affine | Scaling | Sum)
            if computes and node.number is not None and any(map(self.goes_on, here)):
                found.add(index)
        return frozenset(found)

    def goes_on(self, reader: int) -> bool:
        node = self.nodes[reader]
        if isinstance(node.layer, Rearrangement):
            after = [self.nodes[further] for further in self.readers[reader]]
            return not any(isinstance(one.layer, Maximum) and one.number == node.number for one in after)
        return isinstance(node.layer, Affine | Scaling | Sum)

    def computes_here(self, index: int) -> bool:
        """Whether a Rearrangement moves what its own ONNX node has computed."""
        node = self.nodes[index]
        sources = [self.nodes[source] for source in node.inputs]
        return any(one.number == node.number and isinstance(one.layer, Affine | Scaling | Sum) for one in sources)

    @cached_property
    def linear(self) -> frozenset[int]:
        """The nodes that are affine in the embedded words: only AFFINE layers on any path to them."""
        found: set[int] = set()
        for index, node in enumerate(self.nodes):
            if isinstance(node.layer, AFFINE) and all(source in found for source in node.inputs):
                found.add(index)
        return frozenset(found)

    @cached_property
    def cut(self) -> tuple[int, ...]:
        """The linear nodes that the rest of the network reads: everything after them depends on tokens through them.

        For a network without any nonlinear layer this is the last node itself.
        """
        last = len(self.nodes) - 1
        needed = (index for index in sorted(self.linear) if not isinstance(self.nodes[index].layer, Constant))
        return tuple(
            index
            for index in needed
            if index == last or any(reader not in self.linear for reader in self.readers[index])
        )

    @cached_property
    def cut_parts(self) -> dict[int, slice]:
        """Cut node -> its part of the vector in which the values of all of them lie end to end."""
        return dict(zip(self.cut, end_to_end([self.nodes[index].size for index in self.cut]), strict=True))

    @property
    def cut_width(self) -> int:
        return sum(self.nodes[index].size for index in self.cut)

    def split_cut(self, values: NDArray[Any]) -> dict[int, NDArray[Any]]:
        """Cut node -> [*batch, *shape], of vectors [*batch, width]."""
        parts, batch = self.cut_parts.items(), values.shape[:-1]
        return {index: values[..., part].reshape(*batch, *self.nodes[index].shape) for index, part in parts}

    def join_cut(self, found: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
        """[batch, width], of cut node -> [batch, *shape]."""
        return np.concatenate([found[index].reshape(len(found[index]), -1) for index in self.cut], axis=1)

    def laid(self, node: Node) -> list[slice]:
        """Where each input of a node lies when they are flattened and laid end to end."""
        return end_to_end([self.nodes[source].size for source in node.inputs])

    @cached_property
    def is_smooth(self) -> bool:
        return any(isinstance(node.layer, SMOOTH) for node in self.nodes)

    @property
    def hidden(self) -> int:
        """Number of Rectifier and Maximum outputs: what a solver would need a binary variable for."""
        return sum(node.size for node in self.nodes if isinstance(node.layer, Rectifier | Maximum))


def end_to_end(sizes: Sequence[int]) -> list[slice]:
    """Where vectors of these sizes lie in the one that they make together."""
    return [slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0))]
