"""What every single swap adds to the cut, and how far these float64 numbers can be from the reals.

With x the original and d_p the difference of a swap's embedding, the cut of a sentence is C x + c + sum of C d_p over
its swaps. The first part is computed in the longest float there is, the others by the kernel of their position:

    |base - real| <= growth(n) (|C| |x| + |c|) + u |base|        |row - real| <= growth(n + m + 3) |C| |d_p|

with n the number of roundings a term meets (linear_part, kernels) and m that of the numbers looked up at the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.greatest_sums import sums_of_greatest
from swapproof.encodings.network import Affine, Embedding, Network
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

from .float64_rounding import GRID, SLOP, TINY, UNIT, Array, Floats, growth
from .kernels import Kernels
from .linear_part import linear_part

Indices = NDArray[np.int64]

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
    tops: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query, kernels: Kernels | None = None, started: tuple[Floats, Floats] | None = None) -> Moves:
        """`kernels` are those of the query's network, where they are kept, `started` is what `originals` gives."""
        base, error = started or originals(query.network, [query.space])[0]
        kernels = kernels or Kernels(query.network)
        found = [swaps_at(kernels, query.space, position) for position in query.space.swappable]
        touched, rows, errors = zip(*found, strict=True) if found else ((), (), ())
        return cls(query, base, error, touched, rows, errors)

    @property
    def width(self) -> int:
        return len(self.base)

    @cached_property
    def parts(self) -> dict[int, slice]:
        return parts_of(self.query.network)

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
        if k not in self.tops:
            self.tops[k] = sums_of_greatest(self.reaches, k)[-1], sums_of_greatest(self.spreads, k)[-1]
        reach, spread = self.tops[k]
        return np.asarray((self.base_error + spread + share * (np.abs(self.base) + reach) + TINY) * SLOP)


def parts_of(network: Network) -> dict[int, slice]:
    """Cut node -> its part of the width."""
    result, start = {}, 0
    for index in network.cut:
        size = network.nodes[index].size
        result[index] = slice(start, start + size)
        start += size
    return result


def embedded(network: Network, tokens: Indices, dtype: type[np.floating] = np.float64) -> dict[int, Array]:
    """Embedding node -> [batch, *shape], exact."""
    nodes = enumerate(network.nodes)
    tables = {index: node.layer for index, node in nodes if isinstance(node.layer, Embedding)}
    return {index: layer.table[tokens[:, layer.positions]].astype(dtype) for index, layer in tables.items()}


def originals(network: Network, spaces: Sequence[SwapSpace]) -> list[tuple[Floats, Floats]]:
    """The cut of each text itself, and how far that is from the reals."""
    tokens = np.array([space.original for space in spaces], dtype=np.int64)
    short = products(network) > FEW_PRODUCTS
    dtype, unit = (np.float64, UNIT) if short else longest()
    found = linear_part(network, embedded(network, tokens, dtype), "values")
    sizes = {index: np.abs(array) for index, array in embedded(network, tokens).items()}
    gross = linear_part(network, sizes, "gross").cut
    base = found.cut.astype(np.float64)
    error = (growth(found.roundings, unit) * gross + UNIT * np.abs(base) + TINY) * SLOP
    return list(zip(base, error, strict=True))


def longest() -> tuple[type[np.floating], float]:
    """A float type with more digits than float64, where numpy has one that rounds as IEEE says, and its unit."""
    digits = np.finfo(np.longdouble).nmant
    return (np.longdouble, 2.0 ** -(digits + 1)) if digits in (63, 112) else (np.float64, UNIT)


def products(network: Network) -> int:
    nodes = [network.nodes[index] for index in network.linear]
    return sum(node.size * len(node.layer.weight) for node in nodes if isinstance(node.layer, Affine))


def swaps_at(kernels: Kernels, space: SwapSpace, position: int) -> tuple[Indices, Floats, Floats]:
    """The elements that a position moves, [swaps, elements] by how much, [elements] how far that is from the reals."""
    kernel = kernels.at(position)
    rows = kernels.looked_up(position, np.array(space.choices[position], dtype=np.int64))
    steps = rows[1:] - rows[0]
    error = (kernel.share * (np.abs(steps).max(axis=0) @ kernel.gross) + TINY) * SLOP
    return kernel.touched, steps @ kernel.matrix, error
