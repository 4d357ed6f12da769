"""Canonical networks compiled: every layer an operation on stretches of earlier ones.

Layers are cut where their elements depend on different words: an embedding into its positions, rows with several lists
into the rows of each list. What is left is a *piece*; `Piece.layer` is the canonical layer that it is of.
"""

from __future__ import annotations

import hashlib
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..canonical import Form
from ..canonical_layers import PADDING, Bends, Curved, Greatest, Lookup, Pairs, Rows, Step
from ..errors import Unsupported
from ..network import Floats, Indices
from .program import (
    CONSTANTS,
    Bend,
    Blend,
    Curve,
    Dense,
    Look,
    Most,
    Operation,
    Piece,
    Product,
    Program,
    Stretch,
    stretches_of,
)

Array = NDArray[Any]
FEW_RUNS = 4
MATRICES: weakref.WeakValueDictionary[bytes, Floats] = weakref.WeakValueDictionary()
"""By what is in them: those of recurrent layers are the same at every length."""


def compiled(form: Form) -> Program:
    """The program of a canonical network that reads tokens."""
    return Compiler(form).program()


class Compiler:
    """Goes through the canonical layers once."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.pieces: list[Piece] = []
        total = len(form.constants) + sum(step.size for step in form.steps)
        self.piece_of = np.full(total, CONSTANTS, dtype=np.int64)
        self.place_of = np.arange(total, dtype=np.int64)
        self.parts: dict[tuple[object, ...], Floats] = {}
        """Rows of weights, by their tuple (which the form keeps) and by number, and where they stand -> the matrix."""

    def program(self) -> Program:
        start = len(self.form.constants)
        for number, step in enumerate(self.form.steps):
            self.add(number, step, start)
            start += step.size
        pieces = tuple(self.pieces)
        reads = tuple(frozenset(part.piece for part in stretches_of(piece.operation)) - {CONSTANTS} for piece in pieces)
        constants = np.array([float(number) for number in self.form.constants])
        logits = self.stretches(self.form.logits)
        return Program(constants, pieces, logits, len(self.form.logits), len(self.form.steps), reads)

    def lay(self, number: int, operation: Operation, elements: Indices) -> None:
        sources = {part.piece for part in stretches_of(operation)} - {CONSTANTS}
        linear = isinstance(operation, Look | Dense | Blend) and all(self.pieces[source].affine for source in sources)
        self.piece_of[elements] = len(self.pieces)
        self.place_of[elements] = np.arange(len(elements))
        self.pieces.append(Piece(operation, len(elements), number, linear))

    def add(self, number: int, step: Step, start: int) -> None:
        own = np.arange(start, start + step.size)
        match step:
            case Lookup(table, positions):
                width = table.shape[1]
                for at, position in enumerate(positions.tolist()):
                    self.lay(number, Look(table, position), own[at * width : (at + 1) * width])
            case Rows():
                self.rows(number, step, own)
            case Bends(slope, read):
                self.lay(number, Bend(self.stretches(read), float(slope)), own)
            case Greatest(windows):
                self.lay(number, Most(tuple(self.stretches(column) for column in windows.T)), own)
            case Pairs(pairs):
                square = bool((pairs[:, 0] == pairs[:, 1]).all())
                sides = self.runs(pairs[:, 0]), self.runs(pairs[:, 1])
                self.lay(number, Product(*sides, square), own)
            case Curved(function, read):
                self.lay(number, Curve(self.stretches(read), function), own)
            case _:
                raise Unsupported(f"a network of numbers is not run on vectors: {type(step).__name__}")

    def rows(self, number: int, step: Rows, own: Indices) -> None:
        """Rows of one list are a product with a matrix; those with lists of their own are added column by column."""
        bias = floats(step.bias)
        readers = np.bincount(step.list_of, minlength=len(step.lists))
        alone = np.flatnonzero(readers[step.list_of] == 1)
        if len(alone) > 1:
            lists, weights = step.lists[step.list_of[alone]], padded(step)[step.weights_of[alone]]
            columns, factors = list[Stretch](), list[Floats]()
            for column in range(lists.shape[1]):
                present = np.flatnonzero(lists[:, column] != PADDING)
                for part in self.stretches(lists[present, column]):
                    at = present[part.place]
                    columns.append(Stretch(part.piece, part.index, tight(at)))
                    factors.append(weights[at, column].copy())
            self.lay(number, Blend(tuple(columns), tuple(factors), bias[alone]), own[alone])
        for place in np.flatnonzero(readers > (len(alone) > 1)).tolist():
            chosen = np.flatnonzero(step.list_of == place)
            members = step.lists[place]
            members = members[members != PADDING]
            read = self.stretches(members)
            matrices = tuple(self.matrix(step, step.weights_of[chosen], len(members), part.place) for part in read)
            self.lay(number, Dense(read, matrices, bias[chosen]), own[chosen])

    def matrix(self, step: Rows, chosen: Indices, width: int, place: slice | Indices) -> Floats:
        """[places, rows] of these rows of weights; one array for equal ones: all steps of a recurrent layer have the
        same, and mostly from the same arrays."""
        at = (place.start, place.stop) if isinstance(place, slice) else (place.tobytes(),)
        key = (id(step.weights), chosen.tobytes(), width, *at)
        found = self.parts.get(key)
        if found is None:
            found = np.ascontiguousarray(padded(step)[chosen, :width].T[place])
            digest = hashlib.sha256(found.tobytes()).digest() + str(found.shape).encode()
            found = self.parts[key] = MATRICES.setdefault(digest, found)
        return found

    def runs(self, elements: Indices) -> tuple[Stretch, ...]:
        """The same as slices, where a few of them do."""
        owners, within = self.piece_of[elements], self.place_of[elements]
        cuts = np.flatnonzero((np.diff(owners) != 0) | (np.diff(within) != 1)) + 1
        if len(cuts) > FEW_RUNS:
            return self.stretches(elements)
        ends = [0, *cuts.tolist(), len(elements)]
        return tuple(Stretch(int(owners[a]), tight(within[a:b]), slice(a, b)) for a, b in pairwise(ends) if b > a)

    def stretches(self, elements: Indices) -> tuple[Stretch, ...]:
        """Where elements are, piece by piece, as slices where they stand together."""
        owners, within = self.piece_of[elements], self.place_of[elements]
        cuts = np.flatnonzero(np.diff(owners) != 0) + 1
        if len(cuts) > 64:  # much mixed: one stretch a piece
            found = [np.flatnonzero(owners == owner) for owner in np.unique(owners)]
        else:
            ends = [0, *cuts.tolist(), len(elements)]
            parts = [(a, b) for a, b in pairwise(ends) if b > a]
            return tuple(Stretch(int(owners[a]), tight(within[a:b]), slice(a, b)) for a, b in parts)
        return tuple(Stretch(int(owners[at[0]]), tight(within[at]), tight(at)) for at in found)


def tight(index: Indices) -> slice | Indices:
    """A slice, where the numbers follow one another."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and (index[1:] - index[:-1] == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def floats(numbers: Array) -> Floats:
    return np.asarray(numbers, dtype=np.float64) if numbers.dtype != object else np.array([float(n) for n in numbers])


def padded(step: Rows) -> Floats:
    """[weights, K]: 0 where a row is shorter."""
    width = step.lists.shape[1]
    if all(len(numbers) == width and numbers.dtype != object for numbers in step.weights):
        return np.array(step.weights, dtype=np.float64)
    stored = np.zeros((len(step.weights), width))
    for row, numbers in zip(stored, step.weights, strict=True):
        row[: len(numbers)] = floats(numbers)
    return stored
