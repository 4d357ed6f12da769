"""A network of one layer of attention laid out by rows: what each step computes of a row, whatever its position is.

Between two steps that bend or multiply, everything is affine, so a matrix says it all:

    x_step[p] = f(c[p] + sum over earlier steps s of x_s[p] matrix_s)
    out = c + sum over p and s of x_s[p] weights_s[p]

The matrices are found by putting in unit vectors, and so are the magnitudes of all that they were computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bounds.substitution import COEFFICIENTS, Coefficients, Parts, Rewriting
from ..errors import Unsupported
from ..evaluation import values
from ..network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Floats,
    Function,
    Indices,
    Network,
    Rectifier,
    Scaling,
    Sum,
)
from ..rounding.magnitudes import MAGNITUDES, Embedded
from ..walk import Meaning, backward, forward
from .attention_parts import MANY, MASKED, Found, Mixture, Part, Rows, parts_of

Array = NDArray[Any]
Pair = tuple[Array, Array]
ALIKE = 2.0**-40
"""Of its magnitude, a number of one row may differ by so much from that of another: by rounding, in another order."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """[inputs, outputs] or [rows, inputs, outputs], and the magnitudes of what each number was computed from."""

    weights: Floats
    sizes: Floats


@dataclass(frozen=True, eq=False)
class Target:
    """An affine function of earlier steps, the same for every row but for what is constant: [rows, outputs]."""

    constant: Floats
    size: Floats
    early: Mapping[int, Matrix]
    late: Mapping[int, Matrix]


@dataclass(frozen=True, eq=False)
class Taken:
    """Some columns of a target, or of a step: all if None; where all are one, that one, for it is spread anyway."""

    of: int
    columns: Indices | None
    step: bool


Operation = Embedding | Rectifier | Function | None
"""None: a product, or a mixture."""


@dataclass(frozen=True, eq=False)
class Step:
    """Of a row; `reads`: one or two factors."""

    node: int
    operation: Operation
    reads: tuple[Taken, ...]
    late: bool
    width: int


@dataclass(frozen=True, eq=False)
class Mixing:
    """Attention: [heads, terms] columns of x and y and their coefficients, [rows, heads, rows] constants and the
    by how much float64 may have rounded these.

    `live`: where scores depend on words; `shown`: where no mask makes the share 0; `value`: [outputs] columns of v;
    `head`: [outputs]."""

    left: Taken
    right: Taken
    values: Taken
    left_columns: Indices
    right_columns: Indices
    coefficient: Floats
    add: Floats
    error: Floats
    live: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    value: Indices
    head: Indices


@dataclass(frozen=True, eq=False)
class Output:
    """An affine function of all rows, and of steps behind rows: step -> weights by row, or plain."""

    rows: Mapping[int, Matrix]
    joined: Mapping[int, Matrix]
    constant: Floats
    size: Floats

    @cached_property
    def by_row(self) -> Mapping[int, tuple[Matrix, ...]]:
        """Step -> its weights, row by row: made once, for arithmetics remember matrices by what they are."""
        return {
            step: tuple(Matrix(*pair) for pair in zip(matrix.weights, matrix.sizes, strict=True))
            for step, matrix in self.rows.items()
        }


@dataclass(frozen=True, eq=False)
class Joined:
    """A step behind the rows, of whole sentences."""

    node: int
    operation: Operation
    reads: tuple[Output, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """`early` steps are of a word, `late` ones of a row behind attention, `joined` ones of a sentence."""

    positions: Indices
    """Of the rows."""
    early: tuple[Step, ...]
    late: tuple[Step, ...]
    joined: tuple[Joined, ...]
    targets: Mapping[int, Target]
    mixing: Mapping[int, Mixing]
    asked: Output
    """The logits, or margins."""

    def compared(self, label: int, rivals: Sequence[int]) -> Layout:
        """With the margins of the label against each rival in place of the logits."""

        def less(one: Matrix) -> Matrix:
            own, sizes = one.weights[..., label, None], one.sizes[..., label, None]
            return Matrix(own - one.weights[..., list(rivals)], sizes + one.sizes[..., list(rivals)])

        logits = self.asked
        margins = Output(
            {step: less(one) for step, one in logits.rows.items()},
            {step: less(one) for step, one in logits.joined.items()},
            logits.constant[label] - logits.constant[list(rivals)],
            logits.size[label] + logits.size[list(rivals)],
        )
        return replace(self, asked=margins)


@lru_cache(maxsize=8)
def layout_of(network: Network) -> Layout | None:
    """None for a network that is not one layer of attention."""
    try:
        found, last = parts_of(network)
        return Laying(network, found).layout(last)
    except Unsupported:
        return None


class Laying:
    """One network."""

    def __init__(self, network: Network, found: Found) -> None:
        self.network, self.found = network, found
        self.joined = [node for node in found.bent if (found.rows[node].row == MANY).any()]
        self.steps = [node for node in found.bent if node not in set(self.joined)]
        self.positions = np.arange(network.length)
        self.tables: dict[int, Indices] = {}
        self.columns: dict[int, Indices] = {}
        self.targets: dict[int, Target] = {}

    def refuse(self, node: int, why: str) -> Unsupported:
        return Unsupported(f"{self.network.nodes[node].origin}: {why}: not one layer of attention")

    def table(self, node: int) -> Indices:
        """[rows, width]: the elements of each row, in order."""
        if node not in self.tables:
            row = self.found.rows[node].row
            order = np.argsort(row, kind="stable")
            counts = np.bincount(row, minlength=len(self.positions)) if (row >= 0).all() else np.zeros(1)
            if len(counts) != len(self.positions) or (counts != counts[0]).any() or not counts[0]:
                raise self.refuse(node, "rows that differ")
            self.tables[node] = order.reshape(len(self.positions), -1)
            found = np.empty(len(row), dtype=np.int64)
            found[self.tables[node]] = np.arange(self.tables[node].shape[1])
            self.columns[node] = found
        return self.tables[node]

    def column(self, node: int, places: Indices) -> Indices:
        self.table(node)
        return self.columns[node][places]

    def read(self, part: Rows, at: int) -> Taken:
        """What a step reads, row by row."""
        places = part.place[self.table(at)]
        columns = self.column(part.root, places)
        if (columns != columns[0]).any():
            raise self.refuse(at, "rows that differ")
        own: Indices | None = columns[0]
        width = self.table(part.root).shape[1]
        if np.array_equal(columns[0], np.arange(width)) or (width == 1 and not columns.any()):
            own = None
        return Taken(part.root, own, part.root in self.found.bent)

    def layout(self, last: Part) -> Layout:
        network, found = self.network, self.found
        known: dict[int, tuple[Taken, ...]] = {}
        for node in self.steps:
            sources = () if node in found.mixtures else network.nodes[node].inputs
            known[node] = tuple(self.read(found.rows[source], node) for source in sources)
        mixing = {node: self.mixed(node, mixture) for node, mixture in found.mixtures.items()}
        wanted = {taken.of for reads in known.values() for taken in reads if not taken.step}
        for one in mixing.values():
            wanted |= {taken.of for taken in (one.left, one.right, one.values) if not taken.step}
        self.probe(sorted(wanted))
        steps = [
            Step(node, self.operation(node), known[node], found.rows[node].late, self.table(node).shape[1])
            for node in self.steps
        ]
        end = len(network.nodes) - 1
        if not isinstance(last, Rows):
            raise self.refuse(end, "logits that are no rows")
        joined = []
        for node in self.joined:
            if isinstance(network.nodes[node].layer, Embedding) or node in found.mixtures:
                raise self.refuse(node, "attention behind rows that were added up")
            reads = [found.rows[source] for source in network.nodes[node].inputs]
            joined.append(Joined(node, self.operation(node), tuple(self.output(part) for part in reads)))
        return Layout(
            self.positions,
            tuple(step for step in steps if not step.late),
            tuple(step for step in steps if step.late),
            tuple(joined),
            self.targets,
            mixing,
            self.output(last),
        )

    def operation(self, node: int) -> Operation:
        layer = self.network.nodes[node].layer
        if isinstance(layer, Curve):
            return layer.function
        return layer if isinstance(layer, Embedding | Rectifier) else None

    # ---- affine functions of a row

    def probe(self, wanted: Sequence[int]) -> None:
        """Every wanted node as an affine function of steps."""
        constants = self.evaluated({}, 1, wanted)
        matrices: dict[int, dict[int, Matrix]] = {node: {} for node in wanted}
        for step in self.steps:
            table = self.table(step)
            width = table.shape[1]
            unit = np.zeros((width, self.network.nodes[step].size))
            unit[np.arange(width)[:, None], table.T] = 1.0
            after = [node for node in wanted if step in self.behind(node)]
            found = self.evaluated({step: unit}, width, after)
            for node in after:
                places = self.table(node)
                weights = (found[node][0] - constants[node][0])[:, places]
                sizes = found[node][1][:, places]
                weights, sizes = weights.transpose(1, 0, 2), sizes.transpose(1, 0, 2)
                if not weights.any():
                    continue
                if (np.abs(weights - weights[0]) > ALIKE * sizes).any():
                    raise self.refuse(node, "rows that differ")
                matrices[node][step] = Matrix(weights[0].copy(), sizes.max(axis=0))
        for node in wanted:
            places = self.table(node)
            late = {step: one for step, one in matrices[node].items() if self.found.rows[step].late}
            early = {step: one for step, one in matrices[node].items() if step not in late}
            constant, size = (part[0][places] for part in constants[node])
            self.targets[node] = Target(constant, size, early, late)

    def behind(self, node: int) -> frozenset[int]:
        """The steps that an affine node is a function of."""
        waiting, found, bent = [node], set[int](), set(self.found.bent)
        while waiting:
            for source in self.network.nodes[waiting.pop()].inputs:
                if source not in found:
                    found.add(source)
                    waiting += [] if source in bent else [source]
        return frozenset(found & bent)

    def evaluated(
        self, given: Mapping[int, Floats], batch: int, wanted: Sequence[int]
    ) -> dict[int, tuple[Array, Array]]:
        """Node -> [batch, size]: what it comes to where all other steps are 0, and the magnitudes added up for it."""
        nodes, shaped = self.network.nodes, {}
        for step in self.found.bent:
            own = given.get(step)
            shape = (batch, *nodes[step].shape)
            shaped[step] = np.zeros(shape) if own is None else own.reshape(shape)
        if not wanted:
            return {}
        numbers = values(self.network, None, shaped, wanted=wanted)
        sizes = forward(self.network, MAGNITUDES, Embedded(self.network, shaped), shaped, wanted)
        return {node: (numbers[node].reshape(batch, -1), sizes[node].reshape(batch, -1)) for node in wanted}

    # ---- affine functions of a sentence

    def output(self, part: Rows) -> Output:
        """The elements of a part, rewritten in terms of the steps."""
        start = np.zeros((len(part.place), self.network.nodes[part.root].size))
        start[np.arange(len(part.place)), part.place] = 1.0
        stop = frozenset(self.found.bent)
        found = []
        for meaning in (COEFFICIENTS, SIZES):
            rewriting = Rewriting(self.network, no_lines, np.zeros(len(part.place)))
            reached = backward(self.network, meaning, rewriting, part.root, Coefficients(start), rewriting.add, stop)
            found.append(({node: given for node, given in reached if node in stop}, rewriting))
        (numbers, exact), (sizes, sized) = found
        rows, joined = {}, {}
        for node, given in numbers.items():
            size = self.network.nodes[node].size
            weights, magnitudes = given.dense(size).T, sizes[node].dense(size).T
            if node in self.joined:
                joined[node] = Matrix(weights, magnitudes)
            elif weights.any():
                table = self.table(node)
                rows[node] = Matrix(weights[table], magnitudes[table])
        return Output(rows, joined, exact.constant, sized.constant)

    # ---- attention

    def mixed(self, node: int, mixture: Mixture) -> Mixing:
        scores, (powers, members) = self.found.scores[mixture.powers], self.found.totals[mixture.totals]
        elements = self.table(node)
        totals = mixture.total[elements]
        head_of, heads = np.unique(totals[0], return_inverse=True)
        order = totals[:, [int(np.flatnonzero(heads == head)[0]) for head in range(len(head_of))]]
        if (totals != order[:, heads]).any() or powers != mixture.powers:
            raise self.refuse(node, "heads that differ")
        power = members[order]
        """[rows, heads, members]"""
        if not np.array_equal(mixture.power[elements], power[:, heads]):
            raise self.refuse(node, "values of other words than its shares")
        values_at, here = mixture.value[elements], mixture.power[elements] != MASKED
        row = self.found.rows[mixture.values].row[values_at]
        if here.shape[-1] != len(self.positions) or (here & (row != self.positions)).any():
            raise self.refuse(node, "values that differ")
        value = np.where(here, self.column(mixture.values, values_at), -1)
        column = value.max(axis=(0, 2))
        if (here & (value != column[None, :, None])).any():
            raise self.refuse(node, "values that differ")
        first, second, shown = scores.first[power], scores.second[power], power != MASKED
        live = shown & (scores.coefficient[power] != 0).any(axis=-1)
        if (live & ((first != self.positions[:, None, None]) | (second != self.positions))).any():
            raise self.refuse(node, "scores of other words")
        left, right = (
            self.column(root, part[power]) for root, part in zip(scores.roots, (scores.left, scores.right), strict=True)
        )
        tables = [left, right, scores.coefficient[power]]
        places = [np.argwhere(live[:, head]) for head in range(len(head_of))]
        if not all(len(own) for own in places):
            raise self.refuse(node, "a head without words")
        ones = [np.stack([part[own[0][0], head, own[0][1]] for head, own in enumerate(places)]) for part in tables]
        if any((live[..., None] & (part != one[None, :, None])).any() for part, one in zip(tables, ones, strict=True)):
            raise self.refuse(node, "scores that differ")
        x, y = (Taken(root, None, root in self.found.bent) for root in scores.roots)
        v = Taken(mixture.values, None, mixture.values in self.found.bent)
        add, error = (np.where(shown, part[power], 0.0) for part in (scores.add, scores.error))
        return Mixing(x, y, v, ones[0], ones[1], ones[2], add, error, live, shown, column, heads)


def no_lines(node: int, given: Coefficients) -> tuple[Coefficients, Array]:
    raise Unsupported("a bent node between steps")


def hold_sizes(rewriting: Rewriting, layer: Constant, given: Coefficients, at: At) -> Parts:
    return Rewriting.hold(rewriting, Constant(np.abs(layer.value)), given, at)


def multiply_sizes(rewriting: Rewriting, layer: Affine, given: Coefficients, at: At) -> Parts:
    sized = Affine(np.abs(layer.weight), np.abs(layer.bias))
    return Rewriting.multiply(rewriting, sized, given, at)


def scale_sizes(rewriting: Rewriting, layer: Scaling, given: Coefficients, at: At) -> Parts:
    sized = Scaling(np.abs(layer.multiply), np.abs(layer.divide), np.abs(layer.add))
    return Rewriting.scale(rewriting, sized, given, at)


def add_sizes(rewriting: Rewriting, layer: Sum, given: Coefficients, at: At) -> Parts:
    return [given for _ in layer.signs]


SIZES: Meaning[Parts] = Meaning(
    "magnitudes of its coefficients",
    {**COEFFICIENTS.rules, Constant: hold_sizes, Affine: multiply_sizes, Scaling: scale_sizes, Sum: add_sizes},
    COEFFICIENTS.refused,
)
