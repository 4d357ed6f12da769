"""Maxima of what is affine in the words, bounded from above by a sum over the words that are swapped (from below:
`stairs`).

    y = max over windows t of r(z_t) <= beta + sum of G(s) over the swaps s,      r rectifiers, or none,

for any beta not below the text's own maximum (FORMAT.md, section 7). What a window lacks to beta, its slack, is shared
among the words that can raise it, in proportion to how much they can; only what a swap adds beyond its share counts.
The constant bound of y is reached in one sentence, this one in many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Constant, Maximum, Network, Rearrangement, Rectifier

Array = NDArray[Any]


LOWEST = -1e300
"""Where an element has fewer windows than others."""
TIE = 2.0**-48
"""Numbers this near, as a share of what they are computed from, are taken to be the same: so few last digits are mostly
rounding, which tells what is equal apart. Larger shares are met where weights are of very different size."""
HEIGHTS, STAIRS = 64, 128
"""A value that a tree's table has for an element is a height, in HEIGHTS parts of the way from the least beta to the
constant bound, and STAIRS times a number of stairs; of a rectifier one more."""


@dataclass(frozen=True, eq=False)
class Roots:
    """Of the elements of a node: what each is the greatest of, but for rectifiers."""

    columns: NDArray[np.int64]
    """[size, most]: places in the cut, -1 where an element has fewer."""
    floor: Array
    """[size]: the greatest constant among them, 0 for a rectifier; -inf where there is neither."""


@lru_cache(maxsize=16)
def roots_of(network: Network, index: int) -> Roots | None:
    """None where something else lies between the words and the node."""
    node = network.nodes[index]
    layer = node.layer
    if index in network.cut_parts:
        columns = np.arange(node.size) + network.cut_parts[index].start
        return Roots(columns[:, None], np.full(node.size, -np.inf))
    if isinstance(layer, Constant):
        return Roots(np.empty((node.size, 0), dtype=np.int64), layer.value.reshape(-1).astype(np.float64))
    if not isinstance(layer, Rearrangement | Rectifier | Maximum):
        return None
    inputs = [roots_of(network, source) for source in node.inputs]
    if any(one is None for one in inputs):
        return None
    below = joined([one for one in inputs if one is not None])
    if isinstance(layer, Rearrangement):
        order = layer.index.reshape(-1)
        return Roots(below.columns[order], below.floor[order])
    if isinstance(layer, Rectifier):
        return Roots(below.columns, np.maximum(below.floor, 0.0))
    return Roots(below.columns.reshape(node.size, -1), below.floor.reshape(node.size, -1).max(axis=1))


def joined(parts: Sequence[Roots]) -> Roots:
    """Those of several nodes, end to end."""
    most = max(part.columns.shape[1] for part in parts)
    wide = [np.pad(part.columns, ((0, 0), (0, most - part.columns.shape[1])), constant_values=-1) for part in parts]
    return Roots(np.concatenate(wide), np.concatenate([part.floor for part in parts]))


def at_windows(columns: Array, cut: Array) -> Array:
    """[n, E, most], of values [n, width] of the cut; LOWEST where a column is `width`."""
    if columns.max(initial=-1) == cut.shape[1]:
        cut = np.concatenate([cut, np.full((len(cut), 1), LOWEST)], axis=1)
    return cut.take(columns.reshape(-1), axis=1).reshape(len(cut), *columns.shape)


def first_greatest(numbers: Array, size: Array) -> Array:
    """[...]: where the first of those stands that are the greatest of [..., w], which are computed from such of this
    size [...]."""
    return np.asarray((numbers >= numbers.max(axis=-1, keepdims=True) - TIE * size[..., None]).argmax(axis=-1))


def ranks(sorted_numbers: Array) -> Array:
    """Of each its place among those equal to it."""
    numbers = np.arange(len(sorted_numbers))
    first = np.append(True, np.diff(sorted_numbers) != 0)[: len(numbers)]
    return np.asarray(numbers - np.maximum.accumulate(np.where(first, numbers, 0)))


class Counted:
    """One maximum over the swaps [P, C] of a text, which add rows [P, C, width] to the cut, 0 where there is no swap.

    `rise` [P, width]: how far those of a place can raise an element; not below 0.
    """

    def __init__(self, roots: Roots, rows: Array, rise: Array) -> None:
        self.floor = roots.floor
        count, width = rise.shape
        self.columns = np.where(roots.columns < 0, width, roots.columns)
        """[E, most]; `width` for none."""
        raises = np.concatenate([rise > 0, np.zeros((count, 1), dtype=bool)], axis=1)[:, self.columns]
        place, element, window = np.nonzero(raises)
        rank = ranks(place * len(self.floor) + element)
        shape = int(rank.max(initial=-1)) + 1, count, len(self.floor)
        self.windows = np.zeros(shape, dtype=np.int64)
        """[wide, P, E]: those that each place can raise, among all columns [E * most]."""
        self.raising = np.zeros(shape)
        """[wide, P, E]: how far at most; 0 for none."""
        self.rows = np.zeros((*shape[:2], rows.shape[1], shape[2]))
        """[wide, P, C, E]: how far each swap does."""
        column = self.columns[element, window]
        self.windows[rank, place, element] = element * self.columns.shape[1] + window
        self.raising[rank, place, element] = rise[place, column]
        self.rows[rank, place, :, element] = rows[place, :, column]
        self.last: tuple[Array, tuple[Array, Array, Array]] | None = None

    def lines(self, base: Array, high: Array, highest: Array, values: Array, needed: Array) -> Line:
        """In regions with these values `base` [n, width] of the cut without further swaps, and with these greatest
        values `high`; `highest` [n, E] are the constant bounds. `values` [n or 1, E]: those of tables; `needed`
        [n, E]: where the line is."""
        own, most = at_windows(self.columns, base), at_windows(self.columns, high)
        least = np.maximum(own.max(axis=2, initial=LOWEST), self.floor)
        height = np.maximum(values, 0) % STAIRS / HEIGHTS
        beta = np.minimum(least + np.maximum(highest - least, 0.0) * height, highest)
        slack, rise = beta[:, :, None] - own, most - own
        parts = np.ones_like(slack)
        np.divide(slack, rise, out=parts, where=slack < rise)
        return Line(self, beta, parts.reshape(len(base), -1), np.flatnonzero(needed.any(axis=0)))

    def laid(self, swaps: Array) -> tuple[Array, Array, Array]:
        """[wide, E, swaps] each, of swaps numbered p * C + c: `windows` and `raising` of their places, and `rows`."""
        if self.last is None or self.last[0] is not swaps:
            place, choice = np.divmod(swaps, self.rows.shape[2])
            found = self.windows[:, place], self.raising[:, place], self.rows[:, place, choice]
            windows, raising, rows = (np.ascontiguousarray(part.transpose(0, 2, 1)) for part in found)
            self.last = swaps, (windows, raising, rows)
        return self.last[1]


class Line:
    """Upper bounds beta + sum of G(s), in n regions."""

    def __init__(self, counted: Counted, beta: Array, parts: Array, needed: Array) -> None:
        """beta [n, E]; `parts` [n, E * most]: what part of how far a swap can raise each window its share is;
        `needed`: the elements whose bounds are asked for."""
        self.counted, self.beta, self.parts, self.needed = counted, beta, parts, needed
        self.known: tuple[Array, Array] | None = None

    def fallen(self, weights: Array, swaps: Array) -> Array:
        """[n, R, swaps]: G weighted by [n, R, E], of swaps numbered p * C + c."""
        if self.known is None or self.known[0] is not swaps:
            self.known = swaps, self.gains(swaps)
        return np.asarray(weights[:, :, self.needed] @ self.known[1])

    def gains(self, swaps: Array) -> Array:
        """[n, needed, swaps]: G."""
        found = np.zeros((len(self.parts), len(self.needed), len(swaps)))
        alone = self.counted.columns.shape[1] == 1
        for windows, raising, rows in zip(*self.counted.laid(swaps), strict=True):
            if alone:
                gain = self.parts[:, self.needed, None] * raising[self.needed]
            else:
                gain = self.parts.take(windows[self.needed], axis=1)
                gain *= raising[self.needed]
            np.subtract(rows[self.needed], gain, out=gain)
            np.maximum(found, gain, out=found)
        return found


def counts_swaps(network: Network, index: int) -> bool:
    """Whether a node is a maximum or a rectifier, all of whose elements are computed from what is affine in the words
    by rectifiers and maxima alone."""
    return isinstance(network.nodes[index].layer, Maximum | Rectifier) and roots_of(network, index) is not None


def worth_counting(network: Network) -> list[int]:
    """Nodes that count swaps, but for rectifiers that only other such nodes read."""
    counting = [index for index in range(len(network.nodes)) if counts_swaps(network, index)]
    readers = dict[int, list[int]]()
    for index, node in enumerate(network.nodes):
        for source in node.inputs:
            readers.setdefault(source, []).append(index)

    def read_alike(index: int) -> bool:
        """Whether nothing else reads it."""
        through = [each in counting or self_made(each) for each in readers.get(index, [])]
        return bool(through) and all(through)

    def self_made(index: int) -> bool:
        return isinstance(network.nodes[index].layer, Rearrangement) and read_alike(index)

    return [i for i in counting if isinstance(network.nodes[i].layer, Maximum) or not read_alike(i)]
