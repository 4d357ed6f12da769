"""What every single swap adds to the cut, and how far these float64 numbers can be from the reals.

With x the original and d_p the difference of a swap's embedding, the cut of a sentence is C x + c + sum of C d_p over
its swaps. The first part is computed in the longest float there is; of each C d_p only the local terms are rounded:

    |base - real| <= growth(n) (|C| |x| + |c|) + u |base|        |row - real| <= growth(n + 1) |C| |d_p|

with n the number of roundings a term meets (linear_part).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Affine, Embedding, Network
from swapproof.encodings.query import Query

from .balls import GRID, SLOP, TINY, UNIT, Array, Floats, growth, running_tops
from .linear_part import linear_part

Indices = NDArray[np.int64]

AT_ONCE = 1 << 21
"""Numbers of the widest layer in one block of positions: bounds memory."""
FEW_PRODUCTS = 4_000_000
"""Products of the linear part up to which the original is computed in long doubles, which no BLAS does."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Per swappable position: the cut elements it moves, and what each of its swaps adds to them."""

    query: Query
    base: Floats
    base_error: Floats
    touched: tuple[Indices, ...]
    rows: tuple[Floats, ...]
    """[swaps, touched] each."""
    row_errors: tuple[Floats, ...]
    """[touched] each, for all swaps of the position."""

    @classmethod
    def of(cls, query: Query) -> Moves:
        base, error = original(query)
        found = [part for block in blocks(query) for part in swaps_at(query, block)]
        touched, rows, errors = zip(*found, strict=True) if found else ((), (), ())
        return cls(query, base, error, touched, rows, errors)

    @property
    def width(self) -> int:
        return len(self.base)

    @cached_property
    def parts(self) -> dict[int, slice]:
        """Cut node -> its part of the width."""
        result, start = {}, 0
        for index in self.query.network.cut:
            size = self.query.network.nodes[index].size
            result[index] = slice(start, start + size)
            start += size
        return result

    @cached_property
    def dense(self) -> bool:
        """Whether every position moves every element."""
        return all(len(elements) == self.width for elements in self.touched)

    @cached_property
    def columns(self) -> Indices:
        """[T, width]: for each element the places, in the positions' touched elements laid end to end, that move it;
        past the end where fewer than T do."""
        total = sum(map(len, self.touched))
        elements = np.concatenate([*self.touched, np.zeros(0, dtype=np.int64)])
        order = np.argsort(elements, kind="stable")
        counts = np.bincount(elements, minlength=self.width)
        ranks = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        result = np.full((int(counts.max(initial=0)), self.width), total, dtype=np.int64)
        result[ranks, elements[order]] = order
        return result

    def per_element(self, parts: list[Floats]) -> Floats:
        """[T, width] from one array [touched] per position; 0 where nothing moves an element."""
        if self.dense:
            return np.array(parts).reshape(len(parts), self.width)
        laid = np.concatenate([*parts, np.zeros(1)])
        return np.asarray(laid[self.columns])

    @cached_property
    def reaches(self) -> Floats:
        """[T, width]: how far any swap of a position can take an element."""
        return self.per_element([np.abs(rows).max(axis=0) for rows in self.rows])

    @cached_property
    def spreads(self) -> Floats:
        """[T, width]: how far these numbers are from the reals."""
        return self.per_element(list(self.row_errors))

    def errors(self, k: int) -> Floats:
        """[width]: for an element of a sentence with at most k swaps, or its extreme over any set of them.

        base_error + the k greatest row errors + growth(2 k + 128) (|base| + the k greatest reaches) + 2**-63, the last
        for rounding bounds to the grid.
        """
        return (self.gross(k, growth(2 * k + 128)) + 2 * GRID) * SLOP

    def gross(self, k: int, share: Array) -> Floats:
        """[width]: the same with another share of the absolute values, and no grid: a weight per unit of coefficient
        on an element, in a function of which the extreme is taken."""
        reach, spread = (running_tops(values, k)[-1] for values in (self.reaches, self.spreads))
        return np.asarray((self.base_error + spread + share * (np.abs(self.base) + reach) + TINY) * SLOP)


def embedded(query: Query, tokens: Indices, dtype: type[np.floating] = np.float64) -> dict[int, Array]:
    """Embedding node -> [batch, *shape], exact."""
    nodes = enumerate(query.network.nodes)
    tables = {index: node.layer for index, node in nodes if isinstance(node.layer, Embedding)}
    return {index: layer.table[tokens[:, layer.positions]].astype(dtype) for index, layer in tables.items()}


def original(query: Query) -> tuple[Floats, Floats]:
    tokens = np.array([query.space.original], dtype=np.int64)
    short = products(query.network) > FEW_PRODUCTS
    dtype, unit = (np.float64, UNIT) if short else longest()
    found = linear_part(query.network, embedded(query, tokens, dtype), "values")
    sizes = {index: np.abs(array) for index, array in embedded(query, tokens).items()}
    gross = linear_part(query.network, sizes, "gross").cut[0]
    base = found.cut[0].astype(np.float64)
    error = growth(found.roundings, unit) * gross + UNIT * np.abs(base)
    return base, (error + TINY) * SLOP


def longest() -> tuple[type[np.floating], float]:
    """A float type with more digits than float64, where numpy has one that rounds as IEEE says, and its unit."""
    digits = np.finfo(np.longdouble).nmant
    return (np.longdouble, 2.0 ** -(digits + 1)) if digits in (63, 112) else (np.float64, UNIT)


def products(network: Network) -> int:
    nodes = [network.nodes[index] for index in network.linear]
    return sum(node.size * len(node.layer.weight) for node in nodes if isinstance(node.layer, Affine))


def blocks(query: Query) -> Iterator[list[int]]:
    """Swappable positions, as many together as memory allows."""
    widest = max(query.network.nodes[index].size for index in query.network.linear)
    block, rows = list[int](), 0
    for position in query.space.swappable:
        more = len(query.space.choices[position])
        if block and (rows + more) * widest > AT_ONCE:
            yield block
            block, rows = [], 0
        block.append(position)
        rows += more
    if block:
        yield block


def swaps_at(query: Query, positions: list[int]) -> Iterator[tuple[Indices, Floats, Floats]]:
    """Per position: the elements it moves, [swaps, elements] by how much, [elements] how far that is from the reals."""
    others = [query.space.choices[position][1:] for position in positions]
    counts = np.array([len(tokens) for tokens in others])
    starts = np.cumsum(counts) - counts
    sentences = np.repeat(np.array([query.space.original], dtype=np.int64), counts.sum(), axis=0)
    before = embedded(query, sentences[:1])
    sentences[np.arange(len(sentences)), np.repeat(positions, counts)] = np.concatenate(others)
    steps = {index: array - before[index] for index, array in embedded(query, sentences).items()}
    widest = {index: np.maximum.reduceat(np.abs(step), starts, axis=0) for index, step in steps.items()}
    found = linear_part(query.network, steps, "differences")
    passed = linear_part(query.network, widest, "gross differences")
    roundings = max(found.roundings, passed.roundings) + 1
    errors = (growth(roundings) * passed.cut + TINY) * SLOP
    for start, count, gross, error in zip(starts, counts, passed.cut, errors, strict=True):
        elements = np.flatnonzero(gross)
        yield elements, found.cut[start : start + count, elements], error[elements]
