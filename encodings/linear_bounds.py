"""Linear lower bounds of a margin for any network, every layer's bounds recomputed in every region.

For each nonlinear layer in order its inputs are bounded: those at the cut exactly (a selection of swaps), the others
by backward substitution down to the cut and then a selection; then the margin in the same way. Regions are those of
`selection`: a state at the cut after some swaps, positions before `start` decided, at most `left` swaps among the
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .incremental import Differences
from .network import Affine, Constant, Maximum, Node, Rearrangement, Rectifier, Scaling, Sum
from .relaxation import replaced_maximum, replaced_rectifier
from .selection import Places, suffix_sums
from .substitution import Coefficients, substituted

Array = NDArray[Any]

CELLS = 1 << 22
"""Numbers in one block of gains: bounds memory."""


@dataclass(frozen=True, eq=False)
class Regions:
    states: Array
    start: Array
    left: Array
    swapped: Array | None

    def __len__(self) -> int:
        return len(self.states)

    def part(self, which: slice) -> Regions:
        swapped = None if self.swapped is None else self.swapped[which]
        return Regions(self.states[which], self.start[which], self.left[which], swapped)


class LinearBounds:
    """Bounds of the margin against `query.rivals[rival]` with at most k swaps.

    `inherits` is False: other bounds of the layers change the slopes, which can make the bound of a part worse.
    """

    inherits = False

    def __init__(self, places: Places, rival: int, k: int) -> None:
        self.places, self.rival = places, rival
        self.differences: Differences = places.differences
        self.network = self.differences.query.network
        self.base, self.rows = self.differences.base, places.rows
        self.k = k = min(k, places.count)
        down, up = np.maximum(-self.rows.min(axis=1), 0.0), np.maximum(self.rows.max(axis=1), 0.0)
        # An element that few positions move needs no table for more swaps than these.
        self.depth = min(k, int(np.count_nonzero(down + up, axis=0).max(initial=0)))
        self.down, self.up = suffix_sums(down, self.depth), suffix_sums(up, self.depth)
        last = len(self.network.nodes) - 1
        self.last = last
        self.coefficients = np.zeros(self.network.nodes[last].size)
        self.coefficients[self.differences.query.label] = 1.0
        self.coefficients[self.differences.query.rivals[rival]] = -1.0
        # Numbers per region: bounds of elements, and the gains of the functions that bound a layer.
        elements = [
            self.network.nodes[n.inputs[0]] for n in self.network.nodes if isinstance(n.layer, Rectifier | Maximum)
        ]
        functions = max([1, *(2 * node.size for node in elements if self.substitutes(node))])
        self.cells = max(
            functions * places.swaps.size, *(8 * node.size for node in elements), self.differences.width, 1
        )

    def substitutes(self, node: Node) -> bool:
        return (
            isinstance(node.layer, Affine | Scaling | Sum) and self.network.nodes.index(node) not in self.network.linear
        )

    def order(self) -> Array:
        """The places, the one first whose swaps lower the bound of the whole space most."""
        whole = Regions(self.base[None], np.zeros(1, dtype=np.int64), np.array([self.k]), None)
        return np.argsort(self.margin(whole)[1][0, 0].min(axis=1, initial=0.0), kind="stable")

    def margins(self, states: Array) -> Array:
        return np.asarray(self.differences.margins(states)[:, self.rival])

    def low(self, states: Array, start: Array, left: Array, swapped: Array | None = None) -> Array:
        regions = Regions(states, start, left, swapped)
        rows = max(1, CELLS // self.cells)
        blocks = [regions.part(slice(first, first + rows)) for first in range(0, len(regions), rows)]
        return np.concatenate([np.zeros(0), *(self.margin(block)[0] for block in blocks)])

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array]:
        """[n, P + 1]: lower bounds of the region from position t on; [n, P, C]: of it with its first swap there.

        The linear function of the whole region is kept.
        """
        low, gains = self.margin(Regions(states, start, left, None))
        gains = np.where(self.places.there, gains[:, 0], np.inf)
        most = int(left.max(initial=0))
        falls = suffix_sums(np.maximum(-gains.min(axis=2), 0.0).T, most).transpose(2, 0, 1)  # [n, P + 1, k + 1]
        numbers = np.arange(len(states))
        after = falls[numbers, :, left]
        loose = (low + after[numbers, start])[:, None]
        return loose - after, loose[:, :, None] + gains - falls[numbers, 1:, left - 1][:, :, None]

    def margin(self, regions: Regions) -> tuple[Array, Array]:
        """Lower bounds [n] and the gains [n, 1, P, C] of the linear functions that give them."""
        bounds = ElementBounds(self, regions)
        spread = np.broadcast_to(self.coefficients, (len(regions), 1, len(self.coefficients)))
        low, gains = bounds.least(self.last, spread)
        return low[:, 0], gains


class ElementBounds:
    """Bounds of the elements of nodes in these regions, each computed once."""

    def __init__(self, linear: LinearBounds, regions: Regions) -> None:
        self.linear, self.regions, self.network = linear, regions, linear.network
        at = (regions.start, np.minimum(regions.left, linear.depth))
        low, high = regions.states - linear.down[at], regions.states + linear.up[at]
        if regions.swapped is not None:
            there = linear.places.there[regions.swapped][:, :, None]
            rows = linear.rows[regions.swapped]
            low += np.where(there, rows, np.inf).min(axis=1)
            high += np.where(there, rows, -np.inf).max(axis=1)
        self.known: dict[int, tuple[Array, Array]] = {
            index: (low[:, part], high[:, part]) for index, part in linear.differences.parts.items()
        }

    def of(self, index: int) -> tuple[Array, Array]:
        """[n, size] each."""
        if index not in self.known:
            self.known[index] = self.computed(index)
        return self.known[index]

    def computed(self, index: int) -> tuple[Array, Array]:
        node, count = self.network.nodes[index], len(self.regions)
        match node.layer:
            case Constant(value):
                flat = np.broadcast_to(value.reshape(-1), (count, node.size))
                return flat, flat
            case Rearrangement(order):
                inputs = [self.of(source) for source in node.inputs]
                low, high = (np.concatenate([pair[end] for pair in inputs], axis=1) for end in (0, 1))
                return low[:, order.reshape(-1)], high[:, order.reshape(-1)]
            case Rectifier(slope):
                low, high = self.of(node.inputs[0])
                return np.maximum(low, slope * low), np.maximum(high, slope * high)
            case Maximum():
                low, high = (end.reshape(count, node.size, -1).max(axis=2) for end in self.of(node.inputs[0]))
                return low, high
            case _:
                both = np.concatenate([np.eye(node.size), -np.eye(node.size)])
                least, _ = self.least(index, np.broadcast_to(both, (count, *both.shape)))
                return least[:, : node.size], -least[:, node.size :]

    def least(self, index: int, coefficients: Array) -> tuple[Array, Array]:
        """[n, R]: lower bounds of functions [n, R, size] of a node, and the gains [n, R, P, C] that give them."""
        regions, linear, count = self.regions, self.linear, self.linear.places.count
        kept, bound = substituted(self.network, index, coefficients, self.replace)
        gains = np.zeros((*coefficients.shape[:2], *linear.places.swaps.shape))
        for node, given in kept.items():
            part = linear.differences.parts[node]
            states = given.at(regions.states[:, part])
            bound = bound + (given.values @ states[:, :, None])[:, :, 0]
            gains += linear.places.gains(given.values, part, given.columns)
        if regions.swapped is not None:
            own = np.take_along_axis(gains, regions.swapped[:, None, None, None], axis=2)[:, :, 0]
            bound += np.where(linear.places.there[regions.swapped][:, None], own, np.inf).min(axis=2)
        most = int(regions.left.max(initial=0))
        if most and count:
            best = np.maximum(-gains.min(axis=3), 0.0)
            best *= (np.arange(count) >= regions.start[:, None])[:, None, :]
            if most < count:
                best = np.partition(best, count - most, axis=2)[:, :, count - most :]
            if (regions.left < most).any():
                best = np.sort(best, axis=2)[:, :, ::-1]
                best *= (np.arange(best.shape[2]) < regions.left[:, None])[:, None, :]
            bound = bound - best.sum(axis=2)
        return bound, gains

    def replace(self, index: int, given: Coefficients) -> tuple[Coefficients, Array]:
        node = self.network.nodes[index]
        low, high = self.of(node.inputs[0])
        match node.layer:
            case Rectifier(slope):
                passed, constant = replaced_rectifier(slope, given.at(low), given.at(high), given.values)
                return Coefficients(passed, given.columns), constant
            case _:
                shape = (len(low), node.size, -1)
                return replaced_maximum(low.reshape(shape), high.reshape(shape), given.dense(node.size))
