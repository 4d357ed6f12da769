"""A network laid out for vectors: pieces of canonical layers, each an operation on stretches of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats, Function, Indices, Table

Array = NDArray[Any]
CONSTANTS = -1
"""In place of a piece."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Elements of one piece: which, and where they stand among all that are read."""

    piece: int
    index: slice | Indices
    place: slice | Indices


@dataclass(frozen=True, eq=False)
class Look:
    """The row of the table that the token at a position names."""

    table: Floats | Table
    position: int


@dataclass(frozen=True, eq=False)
class Dense:
    """x @ matrix + bias, x one list of elements: a matrix for each stretch of it."""

    read: tuple[Stretch, ...]
    matrices: tuple[Floats, ...]
    bias: Floats


@dataclass(frozen=True, eq=False)
class Blend:
    """out[place] += weights * x[index] for each stretch, which together hold the lists of all elements; + bias."""

    read: tuple[Stretch, ...]
    weights: tuple[Floats, ...]
    bias: Floats


@dataclass(frozen=True, eq=False)
class Bend:
    """max(x, 0) + slope min(x, 0)."""

    read: tuple[Stretch, ...]
    slope: float


@dataclass(frozen=True, eq=False)
class Most:
    """out[r] = the greatest of x_k[r] over k, x_k the k-th elements of all windows."""

    columns: tuple[tuple[Stretch, ...], ...]


@dataclass(frozen=True, eq=False)
class Product:
    left: tuple[Stretch, ...]
    right: tuple[Stretch, ...]
    square: bool
    """Whether every pair is an element with itself."""


@dataclass(frozen=True, eq=False)
class Curve:
    read: tuple[Stretch, ...]
    function: Function


Operation = Look | Dense | Blend | Bend | Most | Product | Curve


@dataclass(frozen=True, eq=False)
class Piece:
    operation: Operation
    size: int
    layer: int
    affine: bool
    """In the words: no nonlinear layer lies before it."""


@dataclass(frozen=True, eq=False)
class Program:
    """Pieces in order; `logits` are read from them."""

    constants: Floats
    pieces: tuple[Piece, ...]
    logits: tuple[Stretch, ...]
    classes: int
    layers: int
    """Canonical ones."""
    reads: tuple[frozenset[int], ...] = field(default=())
    """[pieces]: the pieces that each reads."""

    @cached_property
    def zeros(self) -> frozenset[int]:
        """The pieces that are nothing but zeros, as padding is."""

        def nothing(part: Stretch, weights: Floats) -> bool:
            if part.piece != CONSTANTS:
                return False
            numbers = self.constants[part.index]
            return not (numbers[:, None] * weights if weights.ndim == 2 else numbers * weights).any()

        found = set[int]()
        for number, piece in enumerate(self.pieces):
            match piece.operation:
                case Dense(read, weights, bias) | Blend(read, weights, bias) if not bias.any() and all(
                    map(nothing, read, weights)
                ):
                    found.add(number)
        return frozenset(found)

    @cached_property
    def readers(self) -> tuple[frozenset[int], ...]:
        """[pieces]: the pieces that read each; the logits are one more."""
        found: list[set[int]] = [set() for _ in self.pieces]
        logits = frozenset(part.piece for part in self.logits)
        for number, sources in enumerate((*self.reads, logits)):
            for source in sources - {CONSTANTS}:
                found[source].add(number)
        return tuple(map(frozenset, found))

    def operation_of(self, part: Stretch) -> Operation | None:
        """What gives the piece that a stretch is of; None of constants."""
        return None if part.piece == CONSTANTS else self.pieces[part.piece].operation

    @cached_property
    def pieces_of(self) -> tuple[tuple[int, ...], ...]:
        """[layers]"""
        found: list[list[int]] = [[] for _ in range(self.layers)]
        for number, piece in enumerate(self.pieces):
            found[piece.layer].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def roundings(self) -> Mapping[int, Floats]:
        """Of affine pieces: how often a float32 evaluation may round a term of each element (FORMAT.md, 15.3).

        Sums that go on from one another count together: those added as they are, and the longest of the others.
        """
        found: dict[int, Floats] = {}
        terms_of: dict[int, Floats] = {}
        """Matrix -> its terms, once for all steps of a recurrent layer."""
        for number, piece in enumerate(self.pieces):
            operation = piece.operation
            if not isinstance(operation, Dense | Blend):
                continue
            terms, plain, others = np.zeros(piece.size), np.zeros(piece.size), np.zeros(piece.size)
            weights = operation.matrices if isinstance(operation, Dense) else operation.weights
            for part, factors in zip(operation.read, weights, strict=True):
                inner = found.get(part.piece)
                own = None if inner is None else inner[part.index]
                if isinstance(operation, Dense):
                    if id(factors) not in terms_of:
                        terms_of[id(factors)] = (factors != 0).sum(axis=0).astype(np.float64)
                    terms += terms_of[id(factors)]
                    if own is not None:
                        used, whole = factors != 0, np.abs(factors) == 1
                        plain += (own[:, None] * whole).sum(axis=0)
                        others = np.maximum(others, (own[:, None] * (used & ~whole)).max(axis=0, initial=0))
                    continue
                terms[part.place] += factors != 0
                if own is not None:
                    used, whole = factors != 0, np.abs(factors) == 1
                    plain[part.place] += own * whole
                    others[part.place] = np.maximum(others[part.place], own * (used & ~whole))
            found[number] = terms + 3 + plain + others
        return found


def stretches_of(operation: Operation) -> Iterator[Stretch]:
    match operation:
        case Look():
            return
        case Product(left, right):
            yield from left
            yield from right
        case Most(columns):
            for column in columns:
                yield from column
        case Dense(read) | Blend(read) | Bend(read) | Curve(read):
            yield from read
