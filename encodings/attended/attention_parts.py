"""What every element of a network of one layer of attention is, found by one walk.

    D_i = sum_j exp(s_ij - m_i),  N_i = sum_j exp(s_ij - m_i) v_j,  N_i / D_i,  s_ij = sum_k w_k x_ik y_jk + constant

Every x, y, v depends on one position, and whatever comes behind N / D on the one that it is of, its row, until rows are
added up. m cancels, so it need not be known. A network that is anything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Unsupported
from ..network import (
    Affine,
    At,
    Constant,
    Curve,
    Embedding,
    Floats,
    Indices,
    Maximum,
    Network,
    Product,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..walk import Meaning, forward

Array = NDArray[Any]
HALF = 2.0**-53
NO_ROW, MANY = -1, -2
"""In place of a row: of what no word changes, and of what several rows are added up in."""
MASKED = -1
"""In place of the number of a power, of a share and of its value: what a mask makes 0."""


@dataclass(frozen=True, eq=False)
class Fixed:
    """No word changes it. `errors`: by how much float64 may have rounded."""

    values: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class Rows:
    """Elements of one position each, of none, or of several; `place` are their numbers in the node `root`."""

    row: Indices
    root: int
    place: Indices
    late: bool
    """Whether attention lies before it."""


@dataclass(frozen=True, eq=False)
class Scores:
    """[size]: sums over k of coefficient * x[left] * y[right], of rows first and second, and what is constant."""

    first: Indices
    second: Indices
    left: Indices
    right: Indices
    coefficient: Floats
    """[size, k], as the two before it."""
    add: Floats
    error: Floats
    """By how much float64 may have rounded `add`."""
    roots: tuple[int, int]
    line: Indices
    """[size]: what is taken off, the same number for all elements of a line; NO_ROW: nothing."""


@dataclass(frozen=True, eq=False)
class Tops:
    """The greatest of a line of scores: [size]."""

    line: Indices


@dataclass(frozen=True, eq=False)
class Powers:
    """Exponentials of scores: numbers in the node that they are of."""

    root: int
    place: Indices


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums of powers, or, `inverse`, one by them."""

    root: int
    place: Indices
    inverse: bool


@dataclass(frozen=True, eq=False)
class Shares:
    """Powers by totals, and such times what depends on one position."""

    power: Powers
    total: Totals
    value: Rows | None = None


@dataclass(frozen=True, eq=False)
class Mixture:
    """[size, members]: powers and values that a node adds up, by number or MASKED; [size]: what they are divided by."""

    powers: int
    power: Indices
    totals: int
    total: Indices
    values: int
    value: Indices


Part = Fixed | Rows | Scores | Tops | Powers | Totals | Shares


@dataclass(eq=False)
class Found:
    """What the walk meets on the way."""

    network: Network
    scores: dict[int, Scores] = field(default_factory=dict)
    """Node of powers -> what they are exponentials of."""
    totals: dict[int, tuple[int, Indices]] = field(default_factory=dict)
    """Node of totals -> (node of powers, [size, members])."""
    mixtures: dict[int, Mixture] = field(default_factory=dict)
    rows: dict[int, Rows] = field(default_factory=dict)
    """Node -> its rows, of all that have some."""
    bent: list[int] = field(default_factory=list)
    """Nodes of rows that are not affine in what they read, embeddings and mixtures among them, in order."""

    def refuse(self, at: At, why: str) -> Unsupported:
        return Unsupported(f"{at.node.origin}: {why}: not one layer of attention")

    def source(self, at: At, row: Indices, *, late: bool) -> Rows:
        """Of a node that is not affine."""
        if (row == NO_ROW).any():
            raise self.refuse(at, "constants among what depends on words")
        self.bent.append(at.index)
        return Rows(row, at.index, np.arange(at.node.size), late)

    # ---- rules

    def look_up(self, layer: Embedding, parts: list[Part], at: At) -> Part:
        row = np.repeat(layer.positions.reshape(-1), layer.table.shape[1])
        return self.source(at, row, late=False)

    def hold(self, layer: Constant, parts: list[Part], at: At) -> Part:
        values = np.broadcast_to(layer.value, at.node.shape).reshape(-1).astype(np.float64)
        return Fixed(values, np.zeros(len(values)))

    def rearrange(self, layer: Rearrangement, parts: list[Part], at: At) -> Part:
        index = layer.index.reshape(-1)
        if len(parts) == 1:
            return taken(parts[0], index)
        sizes = [self.network.nodes[source].size for source in at.node.inputs]
        read = np.unique(np.searchsorted(np.cumsum(sizes), index, side="right")).tolist()
        if len(read) == 1:
            return taken(parts[read[0]], index - sum(sizes[: read[0]]))
        if any(isinstance(part, Scores) for part in parts):
            return taken(joined_scores(parts, sizes, at, self), index)
        if len(parts) == 2 and isinstance(parts[0], Powers | Shares) and isinstance(parts[1], Fixed):
            zeros = index >= sizes[0]
            if parts[1].values[index[zeros] - sizes[0]].any() or parts[1].errors.any():
                raise self.refuse(at, "shares beside other constants than 0")
            return left_out(taken(parts[0], np.where(zeros, 0, index)), zeros)
        return self.affine(at, np.concatenate([self.row_of(part, at) for part in parts])[index], parts)

    def row_of(self, part: Part, at: At) -> Indices:
        match part:
            case Fixed(values):
                return np.full(len(values), NO_ROW)
            case Rows(row):
                return row
        raise self.refuse(at, f"{type(part).__name__.lower()} where rows are expected")

    def affine(self, at: At, row: Indices, parts: Sequence[Part]) -> Part:
        late = any(isinstance(part, Rows) and part.late for part in parts)
        return Rows(row, at.index, np.arange(at.node.size), late)

    def multiply(self, layer: Affine, parts: list[Part], at: At) -> Part:
        (part,) = parts
        inputs, outputs = layer.weight.shape
        if isinstance(part, Fixed):
            found, errors = weighed(part.values, part.errors, layer)
            return Fixed(found.reshape(-1), errors.reshape(-1))
        if isinstance(part, Rows):
            lines = part.row.reshape(-1, inputs)
            known = np.where(lines == NO_ROW, lines.max(axis=1, keepdims=True), lines)
            one = (known == known[:, :1]).all(axis=1)
            return self.affine(at, np.repeat(np.where(one, known[:, 0], MANY), outputs), parts)
        if isinstance(part, Scores):
            return weighed_scores(part, layer, at, self)
        if outputs != 1 or not (layer.weight == 1).all() or layer.bias.any():
            raise self.refuse(at, "a sum with weights")
        if isinstance(part, Powers):
            self.totals[at.index] = part.root, part.place.reshape(-1, inputs)
            return Totals(at.index, np.arange(at.node.size), inverse=False)
        if isinstance(part, Shares) and part.value is not None:
            return self.mix(part, part.value, inputs, at)
        raise self.refuse(at, f"a sum of {type(part).__name__.lower()}")

    def mix(self, part: Shares, value: Rows, members: int, at: At) -> Part:
        power, totals = part.power.place.reshape(-1, members), part.total.place.reshape(-1, members)
        shown, total = power != MASKED, totals.max(axis=1)
        if (shown & (totals != total[:, None])).any() or not shown.any(axis=1).all():
            raise self.refuse(at, "a sum of shares of several totals")
        scores = self.scores[part.power.root]
        first = np.where(shown, scores.first[power], NO_ROW)
        row = first.max(axis=1)
        if ((first != NO_ROW) & (first != row[:, None])).any():
            raise self.refuse(at, "shares of several rows")
        self.mixtures[at.index] = Mixture(
            part.power.root, power, part.total.root, total, value.root, value.place.reshape(-1, members)
        )
        return self.source(at, row, late=True)

    def scale(self, layer: Scaling, parts: list[Part], at: At) -> Part:
        (part,) = parts
        factor, add = (layer.multiply / layer.divide).reshape(-1), layer.add.reshape(-1)
        match part:
            case Fixed(values, errors):
                return Fixed(*scaled(values, errors, factor, add))
            case Rows(row):
                return self.affine(at, row, parts)
            case Scores():
                more, error = scaled(part.add, part.error, factor, add)
                coefficient, line = part.coefficient * factor[:, None], unshifted(part, at, self)
                return replace(part, coefficient=coefficient, add=more, error=error, line=line)
        if (factor == 1).all() and not add.any():
            return part
        raise self.refuse(at, f"{type(part).__name__.lower()} scaled")

    def add_up(self, layer: Sum, parts: list[Part], at: At) -> Part:
        if all(isinstance(part, Fixed) for part in parts):
            fixed = [part for part in parts if isinstance(part, Fixed)]
            total = Fixed(np.zeros(at.node.size), np.zeros(at.node.size))
            for sign, part in zip(layer.signs, fixed, strict=True):
                total = Fixed(*added(total.values, total.errors, sign * part.values, part.errors))
            return total
        if any(isinstance(part, Scores) for part in parts):
            return added_scores(layer, parts, at, self)
        rows = np.stack([self.row_of(part, at) for part in parts])
        known = np.where(rows == NO_ROW, rows.max(axis=0), rows)
        return self.affine(at, np.where((known == known[0]).all(axis=0), known[0], MANY), parts)

    def bend(self, layer: Rectifier | Curve, parts: list[Part], at: At) -> Part:
        (part,) = parts
        if isinstance(part, Rows):
            return self.source(at, part.row, late=part.late)
        if isinstance(layer, Curve) and layer.function == "exp" and isinstance(part, Scores):
            self.scores[at.index] = part
            return Powers(at.index, np.arange(at.node.size))
        if isinstance(layer, Curve) and layer.function == "reciprocal" and isinstance(part, Totals):
            return replace(part, inverse=True)
        raise self.refuse(at, f"a curve of {type(part).__name__.lower()}")

    def take_greatest(self, layer: Maximum, parts: list[Part], at: At) -> Part:
        if isinstance(parts[0], Scores):
            return Tops(np.arange(at.node.size))
        raise self.refuse(at, f"the greatest of {type(parts[0]).__name__.lower()}")

    def multiply_pairs(self, layer: Product, parts: list[Part], at: At) -> Part:
        left, right = parts
        match left, right:
            case Rows(), Rows():
                if (left.row == right.row).all():
                    return self.source(at, left.row, late=left.late or right.late)
                if left.late or right.late:
                    raise self.refuse(at, "a second layer of products of words")
                pairs = left.place[:, None], right.place[:, None]
                size = at.node.size
                nothing = np.zeros(size)
                return Scores(
                    left.row, right.row, *pairs, np.ones((size, 1)), nothing, nothing, (left.root, right.root),
                    np.full(size, NO_ROW),
                )  # fmt: skip
            case (Powers() as power, Totals(inverse=True) as total) | (
                Totals(inverse=True) as total,
                Powers() as power,
            ):
                return self.share(power, total, at)
            case (Shares(value=None) as share, Rows() as value) | (Rows() as value, Shares(value=None) as share):
                if value.late or (value.row < 0).any():
                    raise self.refuse(at, "values that are not of one word")
                return replace(share, value=value)
        names = " and ".join(type(part).__name__.lower() for part in parts)
        raise self.refuse(at, f"a product of {names}")

    def share(self, power: Powers, total: Totals, at: At) -> Part:
        """What is taken off the scores must be the same for a power and for all of its total."""
        root, members = self.totals[total.root]
        line = self.scores[power.root].line
        own, place = members[total.place], power.place[:, None]
        shown = (own != MASKED) & (place != MASKED)
        if root != power.root or (shown & (line[own] != line[place])).any():
            raise self.refuse(at, "a share of another total")
        return Shares(power, total)


PARTS: Meaning[Part] = Meaning(
    "part in attention",
    {
        Embedding: Found.look_up,
        Constant: Found.hold,
        Rearrangement: Found.rearrange,
        Affine: Found.multiply,
        Scaling: Found.scale,
        Sum: Found.add_up,
        Rectifier: Found.bend,
        Maximum: Found.take_greatest,
        Product: Found.multiply_pairs,
        Curve: Found.bend,
    },
)


def parts_of(network: Network) -> tuple[Found, Part]:
    """What was found, and what the logits are. Raises Unsupported for a network that is not one layer of attention."""
    found = Found(network)

    def keep(at: At, part: Part) -> Part:
        if isinstance(part, Rows):
            found.rows[at.index] = part
        return part

    known: Mapping[int, Part] = forward(network, PARTS, found, finish=keep)
    if not found.mixtures:
        raise Unsupported("no attention")
    return found, known[len(network.nodes) - 1]


def taken(part: Part, index: Indices) -> Part:
    """The same elements in another order."""
    match part:
        case Fixed(values, errors):
            return Fixed(values[index], errors[index])
        case Rows(row, _, place):
            return replace(part, row=row[index], place=place[index])
        case Scores(first, second, left, right, coefficient, add, error, _, line):
            return replace(
                part, first=first[index], second=second[index], left=left[index], right=right[index],
                coefficient=coefficient[index], add=add[index], error=error[index], line=line[index],
            )  # fmt: skip
        case Tops(line):
            return Tops(line[index])
        case Powers(_, place) | Totals(_, place):
            return replace(part, place=place[index])
        case Shares(power, total, value):
            more = None if value is None else replace(value, row=value.row[index], place=value.place[index])
            return Shares(replace(power, place=power.place[index]), replace(total, place=total.place[index]), more)


def left_out(part: Part, zeros: Array) -> Part:
    """Powers or shares that are 0 in these places."""

    def without(place: Indices) -> Indices:
        return np.where(zeros, MASKED, place)

    if isinstance(part, Shares):
        value = None if part.value is None else replace(part.value, place=without(part.value.place))
        power, total = part.power, part.total
        return Shares(replace(power, place=without(power.place)), replace(total, place=without(total.place)), value)
    return replace(part, place=without(part.place)) if isinstance(part, Powers) else part


def added(x: Floats, error: Floats, y: Floats, more: Floats) -> tuple[Floats, Floats]:
    """A sum of constants, and by how much it may be off."""
    found = x + y
    return found, error + more + HALF * np.abs(found)


def scaled(x: Floats, error: Floats, factor: Floats, add: Floats) -> tuple[Floats, Floats]:
    """The factor was itself rounded once."""
    product = x * factor
    found = product + add
    return found, error * np.abs(factor) + 4 * HALF * np.abs(product) + HALF * np.abs(found)


def weighed(x: Floats, error: Floats, layer: Affine) -> tuple[Array, Array]:
    """[lines, outputs]"""
    inputs = len(layer.weight)
    x, error, sizes = x.reshape(-1, inputs), error.reshape(-1, inputs), np.abs(layer.weight)
    rounded = (inputs + 2) * 2 * HALF * (np.abs(x) @ sizes)
    found = x @ layer.weight + layer.bias
    return found, error @ sizes + rounded + HALF * np.abs(found)


def constant_scores(fixed: Fixed, like: Scores) -> Scores:
    size, terms = len(fixed.values), like.left.shape[1]
    none, nothing = np.full(size, NO_ROW), np.zeros((size, terms), dtype=np.int64)
    return Scores(none, none, nothing, nothing, np.zeros((size, terms)), fixed.values, fixed.errors, like.roots, none)


def joined_scores(parts: Sequence[Part], sizes: Sequence[int], at: At, found: Found) -> Scores:
    """Scores and constants laid end to end."""
    (like, *others) = [part for part in parts if isinstance(part, Scores)]
    if others:
        raise found.refuse(at, "scores of several kinds")
    whole = []
    for part in parts:
        if not isinstance(part, Scores | Fixed):
            raise found.refuse(at, f"scores beside {type(part).__name__.lower()}")
        whole.append(constant_scores(part, like) if isinstance(part, Fixed) else part)
    names = ("first", "second", "left", "right", "coefficient", "add", "error")
    arrays = {name: np.concatenate([getattr(part, name) for part in whole]) for name in names}
    return Scores(**arrays, roots=like.roots, line=unshifted(like, at, found, sum(sizes)))


def unshifted(part: Scores, at: At, found: Found, size: int | None = None) -> Indices:
    if (part.line != NO_ROW).any():
        raise found.refuse(at, "scores that are shifted twice")
    return part.line if size is None else np.full(size, NO_ROW)


def weighed_scores(part: Scores, layer: Affine, at: At, found: Found) -> Scores:
    """Sums of scores of the same two rows."""
    inputs, outputs = layer.weight.shape
    unshifted(part, at, found)
    first, second = part.first.reshape(-1, inputs), part.second.reshape(-1, inputs)
    if (first != first[:, :1]).any() or (second != second[:, :1]).any():
        raise found.refuse(at, "a sum of scores of several rows")
    lines = len(first)

    def spread(terms: Array) -> Array:
        """[lines * outputs, inputs * terms]"""
        flat = terms.reshape(lines, 1, -1)
        return np.broadcast_to(flat, (lines, outputs, flat.shape[2])).reshape(lines * outputs, -1)

    weights = layer.weight.T[None, :, :, None] * part.coefficient.reshape(lines, 1, inputs, -1)
    add, error = weighed(part.add, part.error, layer)
    return Scores(
        np.repeat(first[:, 0], outputs),
        np.repeat(second[:, 0], outputs),
        spread(part.left),
        spread(part.right),
        weights.reshape(lines * outputs, -1),
        add.reshape(-1),
        error.reshape(-1),
        part.roots,
        np.full(lines * outputs, NO_ROW),
    )


def added_scores(layer: Sum, parts: Sequence[Part], at: At, found: Found) -> Scores:
    """Scores, less the greatest of their line, and constants."""
    signed = list(zip(layer.signs, parts, strict=True))
    (scores, *others) = [(sign, part) for sign, part in signed if isinstance(part, Scores)]
    sign, total = scores
    if others or sign != 1:
        raise found.refuse(at, "scores of several kinds")
    for sign, part in signed:
        match part:
            case Fixed(values, errors):
                add, error = added(total.add, total.error, sign * values, errors)
                total = replace(total, add=add, error=error)
            case Tops(line) if sign == -1:
                unshifted(total, at, found)
                total = replace(total, line=line)
            case Scores():
                continue
            case _:
                raise found.refuse(at, f"scores beside {type(part).__name__.lower()}")
    return total
