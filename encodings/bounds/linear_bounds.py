"""Linear lower bounds of a margin for any network, every layer's bounds recomputed in every region.

For each nonlinear layer in order its inputs are bounded: those at the cut exactly (a selection of swaps), the others
by backward substitution down to the cut and then a selection; then the margin in the same way. Regions are those of
`selection`: a state at the cut after some swaps, positions before `start` decided, at most `left` swaps among the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import (
    AFFINE,
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Node,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from ..pools.counted_swaps import STAIRS, Counted, Line, Roots, roots_of
from ..pools.next_swaps import NextSwaps
from ..pools.stairs import Lowering, Stairs
from ..walk import Meaning, gather
from .greatest_sums import greatest_without_each, leaving, suffix_sums, sums_of_greatest
from .relaxation import Picked, picked, rectifier_lines, replaced_by, replaced_maximum, replaced_rectifier
from .selection import Part, Places
from .substitution import Coefficients, Relaxed, substituted
from .swap_differences import Differences

Array = NDArray[Any]

Heights = Mapping[int, NDArray[np.int64]]
"""Maximum or rectifier that counts swaps -> of each of its elements the height and the stairs, as a table of a tree has
them; NO_HEIGHT of elements of rectifiers without."""
NO_HEIGHT = -1
NO_HEIGHTS: Heights = MappingProxyType({})
CELLS = 1 << 19
"""Numbers in one block of gains: bounds memory."""


@dataclass(frozen=True, eq=False)
class Forced:
    """Positions where some swap is made, one of several."""

    places: Array
    """[n, m]: of each region; -1 for none."""
    allowed: Array
    """[n, m, C]: the choices among which that swap is."""

    def part(self, which: slice) -> Forced:
        return Forced(self.places[which], self.allowed[which])


@dataclass(frozen=True, eq=False)
class Regions:
    states: Array
    start: Array
    left: Array
    swapped: Array | None = None
    """[n]: positions before `start` where moreover some swap, whichever, is made."""
    allowed: Array | None = None
    """[n, C]: the choices among which that swap is."""
    forced: Forced | None = None
    """More positions before `start` like that."""

    def __len__(self) -> int:
        return len(self.states)

    def part(self, which: slice) -> Regions:
        swapped, allowed = (None if one is None else one[which] for one in (self.swapped, self.allowed))
        forced = None if self.forced is None else self.forced.part(which)
        return Regions(self.states[which], self.start[which], self.left[which], swapped, allowed, forced)

    def index(self, some: Array) -> slice | Array:
        return slice(None) if len(some) == len(self) else some

    def there(self, places: Places) -> Array:
        """[n, C]: the swaps of which one is made."""
        there = places.there[self.swapped]
        return there if self.allowed is None else there & self.allowed

    def made(self, places: Places) -> Iterator[tuple[Array, Array, Array]]:
        """Of the positions where some swap is made, one for each of these regions [m]: (regions, positions, the swaps
        [m, C] of which one is made)."""
        if self.swapped is not None:
            yield np.arange(len(self)), self.swapped, self.there(places)
        if self.forced is not None:
            for place, allowed in zip(self.forced.places.T, self.forced.allowed.transpose(1, 0, 2), strict=True):
                some = np.flatnonzero(place >= 0)
                if len(some):
                    yield some, place[some], allowed[some]


@dataclass(frozen=True, eq=False)
class Raised:
    """Of functions [n, R]: by what swaps lower them besides what they do to the cut, where maxima count swaps."""

    line: Line | Stairs
    weights: Array
    """[n, R, E], not below 0."""

    def falls(self, swaps: Array) -> Array:
        """[n, R, swaps], of swaps numbered p * C + c."""
        return self.line.fallen(self.weights, swaps)


@dataclass(frozen=True, eq=False)
class Lines:
    """Functions [n, R] of the words."""

    parts: list[Part]
    raised: list[Raised]

    def falls(self, places: Places) -> Array:
        """[n, R, P]: how far one swap can lower them. Corners are enough: gains are convex in what a swap adds."""
        return places.falls(self.parts, self.more(places.corners.flat))

    def more(self, swaps: Array) -> Array | None:
        """[n, R, swaps]: what maxima that count swaps add to the falls; None where none is met."""
        found = [one.falls(swaps) for one in self.raised]
        return np.sum(found, axis=0) if found else None


Replace = Callable[[int, Coefficients, list[Raised]], Relaxed]
"""(nonlinear node, its coefficients, what is to be told of maxima that count swaps) -> what it is replaced by."""


class LinearBounds:
    """Bounds of the margin against `query.rivals[rival]` with at most k swaps.

    `inherits` is False: other bounds of the layers change the slopes, which can make the bound of a part worse.
    `heights`: maxima and rectifiers that count swaps (`counted_swaps`, `stairs`). All other maxima are bounded by
    constants, and from below by elements of their windows.
    """

    inherits = False

    @property
    def joining(self) -> LinearBounds | None:
        """These, where regions may leave open which of several swaps was made at some positions: all sentences that
        this makes of one are soon evaluated together."""
        return None if self.following is None else self

    def __init__(self, places: Places, rival: int, k: int, heights: Heights = NO_HEIGHTS) -> None:
        self.heights = heights
        network = places.differences.query.network
        stairs = [index for index, values in heights.items() if stairs_of(network, index, values).any()]
        if stairs:
            places = places.with_all  # how far a swap lowers a maximum is not convex in what it adds
        self.places, self.rival = places, rival
        self.differences: Differences = places.differences
        self.network = network
        self.base, self.rows = places.base, places.rows
        self.k = k = min(k, places.count)
        down, up = np.maximum(-self.rows.min(axis=1), 0.0), np.maximum(self.rows.max(axis=1), 0.0)
        # An element that few positions move needs no table for more swaps than these.
        self.depth = min(k, int(np.count_nonzero(down + up, axis=0).max(initial=0)))
        self.fall, self.rise = down, up
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
        self.cells = max(functions * places.count, *(2 * node.size for node in elements), self.differences.width, 1)
        self.counted = counted_maxima(places, heights, up)
        self.lowering = {index: Lowering(known_roots(network, index), places.rows) for index in stairs}
        self.cells = max(self.cells, *(counted.rows.size for counted in self.counted.values()), 1)

    def reached(self, start: Array, left: Array) -> tuple[Array, Array]:
        """[n, width] each: how far so many swaps from these places on lower the cut, and how far they raise it."""
        at = np.minimum(left, self.depth)
        if not start.any():  # most bounds of a whole space are asked for once: no table of all places for them
            return self.from_first[0][at], self.from_first[1][at]
        return self.down[start, at], self.up[start, at]

    @cached_property
    def from_first(self) -> tuple[Array, Array]:
        """[depth + 1, width] each: how far so many swaps of all places lower and raise the cut."""
        down, up = sums_of_greatest(self.fall, self.depth), sums_of_greatest(self.rise, self.depth)
        return down, up

    @cached_property
    def down(self) -> Array:
        """[P + 1, depth + 1, width]: how far so many swaps from a place on lower the cut."""
        return suffix_sums(self.fall, self.depth)

    @cached_property
    def up(self) -> Array:
        """The same upwards."""
        return suffix_sums(self.rise, self.depth)

    def substitutes(self, node: Node) -> bool:
        return (
            isinstance(node.layer, Affine | Scaling | Sum) and self.network.nodes.index(node) not in self.network.linear
        )

    def whole(self) -> Regions:
        """All sentences with at most k swaps."""
        return Regions(self.base[None], np.zeros(1, dtype=np.int64), np.array([self.k]))

    @cached_property
    def of_whole(self) -> tuple[Array, Lines]:
        return self.margin(self.whole())

    def order(self) -> Array:
        """The places, the one first whose swaps lower the bound of the whole space most."""
        _, lines = self.of_whole
        return np.argsort(-lines.falls(self.places)[0, 0], kind="stable")

    def careful_order(self, enough: float, steps: int) -> Array:
        """The places, each time the one first without which, and those before it, the bound of the whole space is
        greatest: after so many steps, or when it exceeds `enough`, the others as they are then. P bounds a step.

        Where maxima are bounded by constants, the linear function that is left does not know what swaps do to them,
        and of two places that raise the same maximum none gains anything alone.
        """
        first = np.empty(0, dtype=np.int64)
        while True:
            left = np.setdiff1d(np.arange(self.places.count), first)
            bounds = self.without_each(first, left)
            order = left[np.argsort(-bounds, kind="stable")]
            if len(first) + 1 >= min(steps, self.places.count) or bounds.max() > enough:
                return np.concatenate([first, order])
            first = np.append(first, order[0])

    def without_each(self, gone: Array, left: Array) -> Array:
        """[left]: lower bounds of the margin when the places that are gone must not move, nor each of those left."""
        best = [
            np.where(np.isin(np.arange(self.places.count), gone)[:, None], 0.0, way) for way in (self.fall, self.rise)
        ]
        fall, rise = (greatest_without_each(way, self.depth)[left] for way in best)
        low, high = self.base - fall, self.base + rise
        moving = np.ones((len(left), self.places.count))
        moving[:, gone] = 0.0
        moving[np.arange(len(left)), left] = 0.0
        none = np.zeros(len(left), dtype=np.int64)
        regions = Regions(np.repeat(self.base[None], len(left), axis=0), none, np.full(len(left), self.k))
        found = [np.zeros(0)]
        rows = max(1, CELLS // self.cells)
        for first in range(0, len(left), rows):
            part = slice(first, first + rows)
            bounds = ElementBounds(self, regions.part(part), moving[part])
            for index, where in self.differences.parts.items():
                bounds.known[index] = low[part, where], high[part, where]
            found.append(bounds.least(self.last, self.coefficients[None, None])[:, 0])
        return np.concatenate(found)

    @cached_property
    def following(self) -> NextSwaps | None:
        """All sentences one swap further, where the network lets them be evaluated together."""
        return NextSwaps.of(self.differences.query, self.rival, self.places.there, self.base, self.rows)

    def moving(self, swapped: Array) -> tuple[Array, Array | None]:
        """[n, C, moved]: what swaps of these places [n] add to columns of the cut, [n, moved]: which; None for all."""
        if self.following is None:
            return self.rows[swapped], None
        rows, moved = self.following.rows[swapped], self.following.moved[swapped]
        return rows.reshape(*rows.shape[:2], -1), moved.reshape(len(moved), -1)

    def margins(self, states: Array) -> Array:
        return np.asarray(self.differences.margins(states)[:, self.rival])

    def low(
        self,
        states: Array,
        start: Array,
        left: Array,
        swapped: Array | None = None,
        allowed: Array | None = None,
        forced: Forced | None = None,
    ) -> Array:
        regions = Regions(states, start, left, swapped, allowed, forced)
        rows = max(1, CELLS // self.cells)
        blocks = [regions.part(slice(first, first + rows)) for first in range(0, len(regions), rows)]
        return np.concatenate([np.zeros(0), *(self.margin(block)[0] for block in blocks)])

    def inherited(self, states: Array, start: Array, left: Array, forced: Forced | None = None) -> tuple[Array, Array]:
        """[n, P + 1]: lower bounds of the region from position t on; [n, P, C]: of it with its first swap there.

        The linear function of the whole region is kept.
        """
        low, lines = self.margin(Regions(states, start, left, forced=forced))
        gains = np.zeros((len(states), 1, *self.places.swaps.shape))
        for values, part, columns in lines.parts:
            gains += self.places.gains(values, part, columns)
        more = lines.more(np.arange(self.places.swaps.size))
        if more is not None:
            gains -= more.reshape(gains.shape)
        gains = np.where(self.places.there, gains[:, 0], np.inf)
        most = int(left.max(initial=0))
        falls = suffix_sums(np.maximum(-gains.min(axis=2), 0.0).T, most).transpose(2, 0, 1)  # [n, P + 1, k + 1]
        numbers = np.arange(len(states))
        after = falls[numbers, :, left]
        loose = (low + after[numbers, start])[:, None]
        return loose - after, loose[:, :, None] + gains - falls[numbers, 1:, left - 1][:, :, None]

    def margin(self, regions: Regions) -> tuple[Array, Lines]:
        """Lower bounds [n], and the functions [n, 1] that give them."""
        bounds = ElementBounds(self, regions)
        bound, lines = bounds.at_cut(self.last, self.coefficients[None, None])
        return bounds.lowered(bound, lines)[:, 0], lines


def counted_maxima(places: Places, heights: Heights, rise: Array) -> dict[int, Counted]:
    """Maximum -> how it counts swaps."""
    network = places.differences.query.network
    return {index: Counted(known_roots(network, index), places.rows, rise) for index in heights}


def stairs_of(network: Network, index: int, values: Array) -> Array:
    """Of values that a table has."""
    return np.asarray(np.maximum(values // STAIRS - isinstance(network.nodes[index].layer, Rectifier), 0))


def known_roots(network: Network, index: int) -> Roots:
    roots = roots_of(network, index)
    if roots is None:
        raise ValueError(f"node {index} is no maximum that counts swaps")
    return roots


class ElementBounds:
    """Bounds of the elements of nodes in these regions, each computed once."""

    def __init__(
        self, linear: LinearBounds, regions: Regions, moving: Array | None = None, heights: Heights | None = None
    ) -> None:
        """`moving` [n, P]: 0 for the positions of each region that do not move; bounds at the cut do not know of it.
        `heights`: others than those of `linear`, [n, E] of each region."""
        self.linear, self.regions, self.network, self.moving = linear, regions, linear.network, moving
        self.heights = linear.heights if heights is None else heights
        down, up = linear.reached(regions.start, regions.left)
        low, high = regions.states - down, regions.states + up
        self.base = self.least_base = regions.states
        """[n, width]: the greatest, and least, values of the cut without further swaps."""
        if linear.counted and (regions.swapped is not None or regions.forced is not None):
            self.base, self.least_base = regions.states.copy(), regions.states.copy()
        for some, swapped, there in regions.made(linear.places):
            rows, columns = linear.moving(swapped)
            moved: Any = regions.index(some) if columns is None else (some[:, None], columns)
            least = np.where(there[:, :, None], rows, np.inf).min(axis=1)
            low[moved] += least
            greatest = np.where(there[:, :, None], rows, -np.inf).max(axis=1)
            high[moved] += greatest
            if linear.counted:
                self.base[moved] += greatest
                self.least_base[moved] += least
        self.lines: dict[int, tuple[Picked, int]] = {}
        """Maximum that counts swaps -> what it is replaced by, and how wide its windows are."""
        self.counted: dict[int, Line] = {}
        """What counts swaps -> its bound from above."""
        self.stairs: dict[int, Stairs] = {}
        self.known: dict[int, tuple[Array, Array]] = {
            index: (low[:, part], high[:, part]) for index, part in linear.differences.parts.items()
        }

    def of(self, index: int) -> tuple[Array, Array]:
        """[n, size] each."""
        if index not in self.known:
            at = self.network.places[index]
            self.known[index] = ENDS.rule(at.node)(self, at.node.layer, at)
        return self.known[index]

    def hold(self, layer: Constant, at: At) -> tuple[Array, Array]:
        flat = np.broadcast_to(layer.value.reshape(-1), (len(self.regions), at.node.size))
        return flat, flat

    def rearrange(self, layer: Rearrangement, at: At) -> tuple[Array, Array]:
        inputs = [self.of(source) for source in at.node.inputs]
        low, high = (gather(layer, list(ends)).reshape(-1, at.node.size) for ends in zip(*inputs, strict=True))
        return low, high

    def rectify(self, layer: Rectifier, at: At) -> tuple[Array, Array]:
        low, high = (np.maximum(end, layer.slope * end if layer.slope else 0.0) for end in self.of(at.node.inputs[0]))
        return self.with_stairs(at, low), high

    def take_greatest(self, layer: Maximum, at: At) -> tuple[Array, Array]:
        shape = (len(self.regions), at.node.size, -1)
        low, high = (end.reshape(shape).max(axis=2) for end in self.of(at.node.inputs[0]))
        return self.with_stairs(at, low), high

    def with_stairs(self, at: At, low: Array) -> Array:
        """Lower bounds of elements [n, E], by their stairs where they have some."""
        lowering = self.linear.lowering.get(at.index)
        if lowering is None:
            return low
        most = stairs_of(self.network, at.index, np.atleast_2d(self.heights[at.index]))
        start, left = self.regions.start, self.regions.left
        self.stairs[at.index] = lowering.stairs(self.least_base, low, start, left, most)
        return self.stairs[at.index].low

    def substitute(self, layer: Affine | Scaling | Sum, at: At) -> tuple[Array, Array]:
        size = at.node.size
        least = self.least(at.index, np.concatenate([np.eye(size), -np.eye(size)])[None])
        return least[:, :size], -least[:, size:]

    def least(self, index: int, coefficients: Array, replace: Replace | None = None) -> Array:
        """[n, R]: lower bounds of functions [n, R, size] of a node, or [1, R, size] for all regions."""
        return self.lowered(*self.at_cut(index, coefficients, replace))

    def at_cut(self, index: int, coefficients: Array, replace: Replace | None = None) -> tuple[Array, Lines]:
        """The same functions as affine functions of the words: at the regions' states [n, R], and beyond."""
        raised: list[Raised] = []
        rule = replace or self.replace
        kept, bound = substituted(self.network, index, coefficients, lambda node, given: rule(node, given, raised))
        parts: list[Part] = []
        if not kept:  # a function that no word changes: all its coefficients are 0
            whole = slice(0, self.linear.places.differences.width)
            bound = np.repeat(bound, len(self.regions) // len(bound), axis=0)
            return bound, Lines([(np.zeros((*bound.shape, whole.stop)), whole, None)], raised)
        for node, given in kept.items():
            part = self.linear.differences.parts[node]
            states = given.at(self.regions.states[:, part])
            bound = bound + (given.values @ states[:, :, None])[:, :, 0]
            values = np.broadcast_to(given.values, (len(states), *given.values.shape[1:]))
            parts.append((values, part, given.columns))
        return bound, Lines(parts, raised)

    def lowered(self, bound: Array, lines: Lines) -> Array:
        """`bound` less what the swaps of the regions can take away."""
        regions, linear = self.regions, self.linear
        bound = bound + self.forced_falls(lines, bound.shape)
        if not regions.left.any():
            return np.asarray(bound)
        falls = lines.falls(linear.places)
        if self.moving is not None:
            falls = falls * self.moving[:, None]
        return np.asarray(bound - leaving(falls, regions.start, regions.left))

    def forced_falls(self, lines: Lines, shape: tuple[int, ...]) -> Array:
        """[n, R]: the least that the swaps add of which one is made at each of some positions."""
        regions, linear = self.regions, self.linear
        total = np.zeros(shape)
        if regions.swapped is None and regions.forced is None:
            return total
        rows = [
            linear.rows[:, :, part] if columns is None else linear.rows[:, :, columns + part.start]
            for _, part, columns in lines.parts
        ]
        for some, swapped, there in regions.made(linear.places):
            added = np.zeros((len(some), shape[1], linear.rows.shape[1]))
            for (values, _, _), mine in zip(lines.parts, rows, strict=True):
                added += values[regions.index(some)] @ mine[swapped].transpose(0, 2, 1)
            total[some] += np.where(there[:, None], added, np.inf).min(axis=2)
        return total

    def replace(self, index: int, given: Coefficients, raised: list[Raised]) -> Relaxed:
        at = self.network.places[index]
        counted = self.linear.counted.get(index)
        if counted is None:
            return LINES.rule(at.node)(at.node.layer, given, *self.of(at.node.inputs[0]), at)
        if isinstance(at.node.layer, Rectifier):
            return self.bent(at, at.node.layer, counted, given, raised)
        if index not in self.lines:
            ends = [end.reshape(len(end), at.node.size, -1) for end in self.of(at.node.inputs[0])]
            self.lines[index] = picked(*ends), ends[0].shape[2]
        (found, width), values = self.lines[index], given.dense(at.node.size)
        line = self.line(at, counted, ~found.certain)  # asks for the bounds of its elements, and with them the stairs
        below = self.stairs.get(index)
        raised.append(Raised(line, np.where(found.certain[:, None], 0.0, np.maximum(-values, 0.0))))
        if below is not None:
            raised.append(Raised(below, np.where(found.certain[:, None], 0.0, np.maximum(values, 0.0))))
        return replaced_by(found, line.beta, width, values, None if below is None else below.top)

    def line(self, at: At, counted: Counted, needed: Array) -> Line:
        """From above, where it is needed [n, E]."""
        if at.index not in self.counted:
            most = np.concatenate([self.known[node][1] for node in self.linear.differences.parts], axis=1)
            values = np.atleast_2d(self.heights[at.index])
            self.counted[at.index] = counted.lines(self.base, most, self.of(at.index)[1], values, needed)
        return self.counted[at.index]

    def bent(self, at: At, layer: Rectifier, counted: Counted, given: Coefficients, raised: list[Raised]) -> Relaxed:
        """A rectifier some of whose elements count swaps, where they are not stable."""
        low, high = self.of(at.node.inputs[0])
        unstable = (low < 0) & (high > 0)
        counts = unstable & (np.atleast_2d(self.heights[at.index]) >= STAIRS)
        line = self.line(at, counted, counts)
        values, below = given.dense(at.node.size), self.stairs.get(at.index)
        values = np.broadcast_to(values, (len(low), *values.shape[1:]))
        up, down = np.maximum(values, 0.0), np.minimum(values, 0.0)
        lower, upper, constant = rectifier_lines(layer.slope, low, high)
        bound = (down @ np.where(counts, line.beta, constant)[:, :, None])[:, :, 0]
        raised.append(Raised(line, np.where(counts[:, None], -down, 0.0)))
        if below is not None:
            falling = counts & ~np.isnan(below.top)
            bound += (up @ np.where(falling, below.top, 0.0)[:, :, None])[:, :, 0]
            raised.append(Raised(below, np.where(falling[:, None], up, 0.0)))
            lower = np.where(falling, 0.0, lower)
        return Coefficients(up * lower[:, None] + down * np.where(counts, 0.0, upper)[:, None]), bound


UNBOUNDED = "smooth networks are bounded by intervals"
ENDS: Meaning[tuple[Array, Array]] = Meaning(
    "bounds of its elements",
    {
        Constant: ElementBounds.hold,
        Rearrangement: ElementBounds.rearrange,
        Affine: ElementBounds.substitute,
        Scaling: ElementBounds.substitute,
        Sum: ElementBounds.substitute,
        Rectifier: ElementBounds.rectify,
        Maximum: ElementBounds.take_greatest,
    },
    {
        Embedding: "words are bounded at the cut, and this one is read across it",
        **dict.fromkeys(SMOOTH, UNBOUNDED),
    },
)


def follow_lines(layer: Rectifier, given: Coefficients, low: Array, high: Array, at: At) -> Relaxed:
    passed, constant = replaced_rectifier(layer.slope, given.at(low), given.at(high), given.values)
    return Coefficients(passed, given.columns), constant


def follow_greatest(layer: Maximum, given: Coefficients, low: Array, high: Array, at: At) -> Relaxed:
    shape = (len(low), at.node.size, -1)
    return replaced_maximum(low.reshape(shape), high.reshape(shape), given.dense(at.node.size))


LINES: Meaning[Relaxed] = Meaning(
    "linear bound",
    {Rectifier: follow_lines, Maximum: follow_greatest},
    {**dict.fromkeys(AFFINE, "it is linear, and substituted as it is"), **dict.fromkeys(SMOOTH, UNBOUNDED)},
)
