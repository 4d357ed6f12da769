"""Every word of the vocabulary at one place of a text: the logits of all of them at once.

Up to the first rectifier or maximum an element is affine in the vector of the word, so a layer is a product of all
vectors with its matrix. A convolution has the same matrices at every place, and their products are kept. A maximum
needs its windows with the word only, and the greatest of its others:

    max over w of relu(z_w)  =  relu( max( greatest z_w without the word, z_w with it ) )
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical_layers import PADDING, Bends, Greatest, Inputs
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.network import Floats, Indices

from ..moving_network import PlainNetwork, PlainRows

Array = NDArray[Any]
MOST_KEPT = 1 << 25
"""Numbers of products that are kept."""
SINGLE = np.float32


@dataclass(frozen=True, eq=False)
class Fixed:
    """Elements that the word does not change."""

    values: Floats


@dataclass(frozen=True, eq=False)
class Given:
    """Numbers of the word's vector."""

    places: Indices


@dataclass(frozen=True, eq=False)
class Product:
    """weights @ inner + bias; `inner` None: of the whole vector of the word."""

    inner: Way | None
    weights: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class Bent:
    """max(x, slope * x)."""

    inner: Way
    slope: float


@dataclass(frozen=True, eq=False)
class Highest:
    """The greatest of these and of `floor`."""

    columns: tuple[Way, ...]
    floor: Floats


@dataclass(frozen=True, eq=False)
class Joined:
    """The elements of several, in this order."""

    parts: tuple[Way, ...]
    order: Indices


Way = Fixed | Given | Product | Bent | Highest | Joined
"""How elements follow from the vector of the word."""


@dataclass(eq=False)
class Products:
    """weights @ vectors, of all words, for the matrices that were last asked for."""

    vectors: Floats
    """[width, words]."""
    kept: OrderedDict[bytes, Array] = field(default_factory=OrderedDict)
    numbers: int = 0

    @cached_property
    def single(self) -> Array:
        return self.vectors.astype(SINGLE)

    def of(self, weights: Floats) -> Array:
        key = weights.tobytes()
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        made = np.asarray(weights.astype(SINGLE) @ self.single)
        self.kept[key] = made
        self.numbers += made.size
        while self.numbers > MOST_KEPT and len(self.kept) > 1:
            self.numbers -= self.kept.popitem(last=False)[1].size
        return made


@dataclass(frozen=True, eq=False)
class Sweep:
    """Of one place: its logits, for the words of `products`."""

    products: Products
    way: Way

    @classmethod
    def of(cls, network: PlainNetwork, values: Floats, free: Indices, products: Products) -> Sweep:
        """`values` of all elements of the text; `free`: the inputs that are the vector of the word there."""
        return cls(products, Following(network, values, free).way(network.logits))

    def singly(self, rows: slice) -> Array:
        return self.answered(Words(self.products, rows, SINGLE), rows.stop - rows.start)

    def logits(self, rows: Indices) -> Array:
        return self.answered(Words(self.products, rows, np.float64), len(rows))

    def answered(self, words: Words, count: int) -> Array:
        logits = found(self.way, words)
        return np.broadcast_to(logits, (len(logits), count)).T


@dataclass(frozen=True, eq=False)
class Words:
    products: Products
    rows: slice | Indices
    dtype: type[np.floating[Any]]

    @property
    def vectors(self) -> Array:
        """[width, n]."""
        return np.asarray((self.products.single if self.dtype is SINGLE else self.products.vectors)[:, self.rows])

    def times(self, weights: Floats) -> Array:
        return np.asarray(self.products.of(weights)[:, self.rows] if self.dtype is SINGLE else weights @ self.vectors)


def found(way: Way, words: Words) -> Array:
    """[elements, n]; [elements, 1] where they are the same for all words."""
    match way:
        case Fixed(values):
            return values.astype(words.dtype)[:, None]
        case Given(places):
            return np.asarray(words.vectors[places])
        case Product(inner, weights, bias):
            product = words.times(weights) if inner is None else weights.astype(words.dtype) @ found(inner, words)
            return np.asarray(product + bias.astype(words.dtype)[:, None])
        case Bent(inner, slope):
            x = found(inner, words)
            return np.asarray(np.maximum(x, words.dtype(slope) * x))
        case Highest(columns, floor):
            best = floor.astype(words.dtype)[:, None]
            for column in columns:
                best = np.maximum(best, found(column, words))
            return np.asarray(best)
        case Joined(parts, order):
            arrays = [found(part, words) for part in parts]
            count = max(array.shape[1] for array in arrays)
            return np.concatenate([np.broadcast_to(array, (len(array), count)) for array in arrays])[order]


@dataclass(eq=False)
class Following:
    """What follows from the vector of the word, element by element."""

    network: PlainNetwork
    values: Floats
    free: Indices

    def __post_init__(self) -> None:
        self.moves = np.zeros(len(self.values), dtype=np.bool_)
        for step, start in zip(self.network.steps, self.network.starts.tolist(), strict=False):
            match step:
                case Inputs():
                    self.inputs = start + self.free
                    self.moves[self.inputs] = True
                case PlainRows(lists, _, list_of):
                    moved = (self.moves[lists] & (lists != PADDING)).any(axis=1)
                    self.moves[start : start + len(list_of)] = moved[list_of]
                case Bends(_, read):
                    self.moves[start : start + len(read)] = self.moves[read]
                case Greatest(windows):
                    self.moves[start : start + len(windows)] = self.moves[windows].any(axis=1)

    def way(self, elements: Sequence[int] | Indices) -> Way:
        at = np.asarray(elements, dtype=np.int64)
        kinds = np.where(self.moves[at], np.searchsorted(self.network.starts, at, side="right") - 1, -1)
        groups = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
        if len(groups) == 1:
            return self.of_step(int(kinds[0]), at)
        parts = tuple(self.of_step(int(kinds[group[0]]), at[group]) for group in groups)
        return Joined(parts, np.argsort(np.concatenate(groups)))

    def of_step(self, number: int, at: Indices) -> Way:
        if number < 0:
            return Fixed(self.values[at])
        start = int(self.network.starts[number])
        match self.network.steps[number]:
            case Inputs():
                return Given(np.searchsorted(self.inputs, at))
            case PlainRows() as step:
                return self.of_rows(step, at - start)
            case Bends(slope, read):
                return Bent(self.way(read[at - start]), slope)
            case Greatest(windows):
                return self.of_maxima(windows[at - start])
        raise Unsupported("a network that is not made of rectifiers and maxima has no sweep")

    def of_rows(self, step: PlainRows, rows: Indices) -> Way:
        """Those that read the same elements are one product."""
        lists = step.list_of[rows]
        groups = [np.flatnonzero(lists == one) for one in np.unique(lists)]
        parts = tuple(self.product(step, rows[group]) for group in groups)
        return parts[0] if len(parts) == 1 else Joined(parts, np.argsort(np.concatenate(groups)))

    def product(self, step: PlainRows, rows: Indices) -> Way:
        read = step.lists[step.list_of[rows[0]]]
        moved = self.moves[read] & (read != PADDING)
        weights = step.weights[step.weights_of[rows]]
        fixed = weights @ np.where(moved | (read == PADDING), 0.0, self.values[read]) + step.bias[rows]
        inner = self.way(read[moved])
        if not isinstance(inner, Given):
            return Product(inner, np.ascontiguousarray(weights[:, moved]), fixed)
        spread = np.zeros((len(rows), len(self.free)))
        np.add.at(spread.T, inner.places, weights[:, moved].T)
        return Product(None, spread, fixed)

    def of_maxima(self, windows: Indices) -> Way:
        """The windows that move come first, in their order; of the others only the greatest value counts."""
        moved = self.moves[windows]
        order = np.argsort(~moved, axis=1, kind="stable")
        windows, moved = np.take_along_axis(windows, order, axis=1), np.take_along_axis(moved, order, axis=1)
        floor = np.where(moved, -np.inf, self.values[windows]).max(axis=1)
        columns = tuple(self.way(column) for column in windows.T[: int(moved.sum(axis=1).max())])
        below = tuple(column.inner for column in columns if isinstance(column, Bent) and column.slope == 0)
        if len(below) == len(columns) and floor.min() >= 0:
            return Highest(below, floor)  # what is not above 0 is not above the floor
        return Highest(columns, floor)
