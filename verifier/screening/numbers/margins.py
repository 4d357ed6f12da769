"""Linear leaves: the recipe `linear-2` in float64 for many regions at once, every number with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.substitution import Coefficients, Relaxed
from swapproof.encodings.canonical import windows_read
from swapproof.encodings.network import (
    AFFINE,
    SMOOTH,
    Affine,
    At,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)
from swapproof.encodings.walk import Meaning

from ..form.tree_leaves import STAIRS, Element, Leaf, Settings
from .float64_rounding import GRID, SLOP, TINY, UNIT, Floats
from .relaxed_lines import (
    Above,
    Below,
    Bounds,
    CountingLines,
    Lines,
    Taken,
    counting_lines,
    maximum_picks,
    rectified,
    rectifier_lines,
)
from .substituted_lines import ErrorsCarried, Replaced, weighed
from .values_beyond_cut import ACROSS, BENT, laid

Classes = NDArray[np.int64]


class Regions(Protocol):
    """What is bounded together: regions of one text (sets), or of several (together)."""

    @property
    def leaves(self) -> Sequence[Leaf]: ...
    @property
    def settings(self) -> Mapping[Settings, list[int]]: ...
    @property
    def network(self) -> Network: ...
    @property
    def parts(self) -> dict[int, slice]: ...
    @property
    def errors(self) -> Floats: ...
    @property
    def weight(self) -> Floats: ...
    @property
    def ends(self) -> tuple[Floats, Floats]: ...
    def least(self, coefficients: Floats) -> Floats: ...


class Joined(Protocol):
    """Elements of rectifiers that are bounded together (joint_groups)."""

    def at(self, index: int) -> tuple[NDArray[np.bool_], Floats] | None:
        """[B, size] each: which elements of a rectifier are in a group, and with which slopes; None where none is."""

    def rise(self, index: int, slope: float, weights: Floats) -> tuple[Floats, Floats]:
        """[B] each: the sum of T over the groups of a rectifier, and its error; `weights` [B, size] are |c| or 0."""


class Counting(Protocol):
    """Maxima and rectifiers that count swaps (counted_lines)."""

    def above(self, index: int, heights: Floats, highest: Floats, highest_error: Floats) -> Above:
        """Of a node with these heights [B, size], NaN where none is set, and these constant bounds."""

    @property
    def roundings(self) -> int: ...

    def least(self, coefficients: Floats, more: Floats) -> Floats:
        """As of the regions, of functions that each swap lowers by `more` [B, R, swaps] besides."""


class Lowered(Protocol):
    """Those bounded from below by what they count (taken_roots)."""

    def taken(self, index: int, stairs: Classes, low: Floats, low_error: Floats) -> Taken:
        """Of a node with these stairs [B, size] and, but for them, these l."""

    def below(self, taken: Taken) -> Below:
        """What bounds it from below."""


@dataclass(eq=False)
class Recipe:
    """The recipe on one batch of regions."""

    batch: Regions
    sizes: Mapping[int, Floats]
    groups: Joined | None = None
    counting: Counting | None = None
    lowered: Lowered | None = None
    """Both where heights may be set."""
    known: dict[int, Bounds] = field(default_factory=dict)
    slopes: dict[int, Floats] = field(default_factory=dict)
    """Rectifier -> [B, size]: the slopes set, NaN where none is."""
    heights: dict[int, Floats] = field(default_factory=dict)
    """Rectifier or maximum -> [B, size], likewise."""
    stairs: dict[int, Classes] = field(default_factory=dict)
    """Rectifier or maximum -> [B, size], where some are set."""
    taken: dict[int, Taken] = field(default_factory=dict)
    lines: dict[int, tuple[Above, Below | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.network = self.batch.network
        for settings, rows in self.batch.settings.items():
            self.lay(settings.slopes, rows)
        low, high = self.batch.ends
        error = np.broadcast_to(self.batch.errors, low.shape)
        for index, part in self.batch.parts.items():
            least, most, far = low[:, part], high[:, part], error[:, part]
            self.known[index] = Bounds(least, most, far, far, least - far, most + far)

    def lay(self, slopes: Mapping[Element, int], rows: list[int]) -> None:
        """Slopes and heights of some rows."""
        by_node: dict[int, tuple[list[int], list[int]]] = {}
        for (index, element), value in slopes.items():
            elements, values = by_node.setdefault(index, ([], []))
            elements.append(element)
            values.append(value)
        for index, (elements, values) in by_node.items():
            bends = isinstance(self.network.nodes[index].layer, Rectifier)
            numbers, at = np.array(values), np.ix_(rows, elements)
            stairs, parts = numbers // STAIRS - bends, numbers % STAIRS / 64
            shape = len(self.batch.leaves), self.network.nodes[index].size
            for table, own in ((self.slopes, stairs < 0), (self.heights, stairs >= 0)):
                if own.any():
                    table.setdefault(index, np.full(shape, np.nan))[at] = np.where(own, parts, np.nan)
            if (stairs > 0).any():
                self.stairs.setdefault(index, np.zeros(shape, dtype=np.int64))[at] = np.maximum(stairs, 0)

    # ---- bounds of elements

    def inputs(self, at: At) -> Bounds:
        """Bounds of the inputs of a nonlinear node."""
        return self.bounds(at.node.inputs[0])

    def bounds(self, index: int) -> Bounds:
        if index not in self.known:
            at = self.network.places[index]
            self.known[index] = BOUNDS.rule(at.node)(self, at.node.layer, at)
        return self.known[index]

    def hold(self, layer: Constant, at: At) -> Bounds:
        flat = np.broadcast_to(layer.value.reshape(-1), (len(self.batch.leaves), at.node.size))
        whole = np.ldexp(flat, 64)
        error = np.where(whole == np.floor(whole), 0.0, GRID)
        return Bounds(flat, flat, error, error, flat, flat)

    def rearrange(self, layer: Rearrangement, at: At) -> Bounds:
        inputs = [self.bounds(source).parts for source in at.node.inputs]
        return Bounds(*(laid(layer, parts) for parts in zip(*inputs, strict=True)))

    def rectify(self, layer: Rectifier, at: At) -> Bounds:
        return self.counted(rectified(layer.slope, self.inputs(at)), at)

    def take_greatest(self, layer: Maximum, at: At) -> Bounds:
        return self.counted(greatest(self.inputs(at), at.node.size), at)

    def counted(self, found: Bounds, at: At) -> Bounds:
        """Bounds of maxima and rectifiers, where heights and stairs are set."""
        if at.index in self.heights:  # what counts swaps can be above all bounds
            size = np.broadcast_to(self.sizes[at.index], found.low.shape)
            found = replace(found, least=-size, most=size)
        if at.index in self.stairs and self.lowered is not None:
            self.taken[at.index] = self.lowered.taken(at.index, self.stairs[at.index], found.low, found.low_error)
            found = replace(found, low=self.taken[at.index].low, low_error=self.taken[at.index].low_error)
        return found

    def substitute(self, layer: Affine | Scaling | Sum, at: At) -> Bounds:
        count, half = len(self.batch.leaves), at.node.size
        both = np.concatenate([np.eye(half), -np.eye(half)])
        number, error = self.least(at.index, np.broadcast_to(both, (count, *both.shape)), margin=False)
        size, error = np.broadcast_to(self.sizes[at.index], (count, half)), error + 2 * GRID
        return Bounds(number[:, :half], -number[:, half:], error[:, :half], error[:, half:], -size, size)

    # ---- functions

    def margin(self, winner: int | Classes, loser: int | Classes) -> tuple[Floats, Floats]:
        """[B]: the recipe's m of one class against another, and how far it can be from the recipe's.

        Each class may be one for every region.
        """
        last, regions = len(self.network.nodes) - 1, np.arange(len(self.batch.leaves))
        function = np.zeros((len(regions), 1, self.network.nodes[last].size))
        function[regions, 0, winner], function[regions, 0, loser] = 1.0, -1.0
        number, error = self.least(last, function, margin=True)
        return number[:, 0], error[:, 0]

    def least(self, index: int, function: Floats, *, margin: bool) -> tuple[Floats, Floats]:
        """[B, R]: the recipe's lower bound of functions [B, R, size] of a node, and its error."""

        falls: list[Floats] = []

        def passed(number: int, given: Coefficients) -> Relaxed:
            at = self.network.places[number]
            line = LINES.rule(at.node)(self, at.node.layer, given, at, margin)
            state.charge_line(line, given, at)
            falls.extend([] if line.falls is None else [line.falls])
            return line.passed, line.constant

        nothing: Floats = np.zeros(function.shape[:2])
        state = ErrorsCarried(self.network, passed, nothing, self.sizes, nothing)
        return self.concluded(state.down(index, function), state, falls)

    def concluded(
        self, handed: Mapping[int, Coefficients], state: ErrorsCarried, falls: Sequence[Floats]
    ) -> tuple[Floats, Floats]:
        parts = self.batch.parts
        coefficients = np.zeros((*state.constant.shape, max(part.stop for part in parts.values())))
        for index, part in parts.items():
            if index in handed:
                coefficients[..., part] = handed[index].dense(part.stop - part.start)
        if self.counting is None or not falls:
            least = self.batch.least(coefficients)
        else:
            least = self.counting.least(coefficients, reduce(np.add, falls))
        number = state.constant + least
        error = state.error + weighed(coefficients, self.batch.weight) + 4 * UNIT * np.abs(number)
        error = error + 4 * UNIT * np.abs(state.constant)
        return number, (error + TINY) * SLOP

    def follow_lines(self, layer: Rectifier, given: Coefficients, at: At, margin: bool) -> Replaced:
        own = self.slopes.get(at.index) if margin else None
        if margin or at.index in self.heights:
            given = Coefficients(given.dense(at.node.size))
        lines = rectifier_lines(layer.slope, self.inputs(at).at(given.columns), own)
        counting = self.counting_lines(at, lines)
        lines = lines if counting is None else counting.lines
        values = given.values
        positive, alone = values >= 0, values
        passed = values * np.where(positive, lines.lower[:, None], lines.upper[:, None])
        terms = np.minimum(values, 0.0) * lines.raised[:, None]
        doubts = np.abs(values) * np.where(positive, lines.low_doubt[:, None], lines.high_doubt[:, None])
        constant, doubt = terms.sum(axis=2), doubts.sum(axis=2)
        if margin and self.groups is not None and (found := self.groups.at(at.index)) is not None:
            members, slopes = found
            together = (values[:, 0] < 0) & members
            passed[:, 0] = np.where(together, values[:, 0] * slopes, passed[:, 0])
            weights = np.where(together, -values[:, 0], 0.0)
            rise, vague = self.groups.rise(at.index, layer.slope, weights)
            alone = np.where(together[:, None], 0.0, values)
            constant = np.where(together, 0.0, terms[:, 0]).sum(axis=1)[:, None] - rise[:, None]
            doubt = np.where(together, 0.0, doubts[:, 0]).sum(axis=1)[:, None] + vague[:, None]
        passing, falls, terms_met = Coefficients(passed, given.columns), None, values.shape[2] + 4
        if counting is not None and self.counting is not None:
            more, falls = counting.beyond(alone)
            constant, terms_met = constant + more, terms_met + self.counting.roundings
        return Replaced(passing, constant, doubt, terms_met, falls)

    def counting_lines(self, at: At, lines: Lines) -> CountingLines | None:
        """Of a rectifier, where heights are set."""
        heights = self.heights.get(at.index)
        if heights is None or self.counting is None:
            return None
        bounds = self.bounds(at.index)
        above, below = self.lines_of(at, heights, bounds.high, bounds.high_error)
        return counting_lines(self.inputs(at), lines, ~np.isnan(heights), above, below)

    def follow_greatest(self, layer: Maximum, given: Coefficients, at: At, margin: bool) -> Replaced:
        node, windows = at.node, windows_of(self.network, at.index)
        picks = maximum_picks(self.inputs(at).at(windows.order.reshape(-1)), windows.repeated)
        values = given.dense(node.size)
        follows = (values >= 0) | picks.certain[:, None]
        heights, falls, terms = self.heights.get(at.index), None, values.shape[2] + 4
        low_doubt, under = picks.low_doubt, np.zeros(picks.height.shape)
        if heights is None or self.counting is None:
            above, doubt = picks.height, picks.high_doubt(picks.height, picks.height_error)
        else:
            line, below = self.lines_of(at, heights, picks.height, picks.height_error)
            above = line.beta
            doubt = picks.high_doubt(above, line.error, line.reach + line.gains_error) + line.gains_error
            if below is not None:
                follows = np.where((values >= 0) & below.there[:, None], picks.certain[:, None], follows)
                low_doubt, under = picks.doubt_below(below), below.start
            falls, terms = (
                np.where(follows, 0.0, -np.minimum(values, 0.0)) @ line.gains,
                terms + self.counting.roundings,
            )
            if below is not None:
                falls += np.where(follows, 0.0, np.maximum(values, 0.0)) @ below.falls
        start = np.where(values >= 0, under[:, None], above[:, None])
        constant = np.where(follows, 0.0, values * start).sum(axis=2)
        doubts = np.abs(values) * np.where(values >= 0, low_doubt[:, None], doubt[:, None])
        elements = windows.order[np.arange(node.size), picks.chosen]
        columns = np.unique(elements)
        passed = np.zeros((*values.shape[:2], len(columns)))
        places = np.broadcast_to(np.searchsorted(columns, elements)[:, None], values.shape)
        np.put_along_axis(passed, places, np.where(follows, values, 0.0), axis=2)
        return Replaced(Coefficients(passed, columns), constant, doubts.sum(axis=2), terms, falls)

    def lines_of(self, at: At, heights: Floats, highest: Floats, highest_error: Floats) -> tuple[Above, Below | None]:
        """Of a node that counts swaps."""
        if at.index not in self.lines and self.counting is not None:
            self.bounds(at.index)
            taken, above = self.taken.get(at.index), self.counting.above(at.index, heights, highest, highest_error)
            below = None if taken is None or self.lowered is None else self.lowered.below(taken)
            self.lines[at.index] = above, below
        return self.lines[at.index]


BOUNDS: Meaning[Bounds] = Meaning(
    "bounds in float64",
    {
        Constant: Recipe.hold,
        Rearrangement: Recipe.rearrange,
        Affine: Recipe.substitute,
        Scaling: Recipe.substitute,
        Sum: Recipe.substitute,
        Rectifier: Recipe.rectify,
        Maximum: Recipe.take_greatest,
    },
    {Embedding: ACROSS, **dict.fromkeys(SMOOTH, BENT)},
)
LINES: Meaning[Replaced] = Meaning(
    "line in float64",
    {Rectifier: Recipe.follow_lines, Maximum: Recipe.follow_greatest},
    {**dict.fromkeys(AFFINE, "it is linear, and substituted as it is"), **dict.fromkeys(SMOOTH, BENT)},
)


@dataclass(frozen=True, eq=False)
class Windows:
    """[outputs, width] each: the places of a window in ascending order of canonical elements; which repeat one."""

    order: Classes
    repeated: NDArray[np.bool_]


@lru_cache(maxsize=64)
def windows_of(network: Network, index: int) -> Windows:
    """Of a maximum."""
    numbers = windows_read(network, index)
    order = np.argsort(numbers, axis=1, kind="stable")
    ordered = np.take_along_axis(numbers, order, axis=1)
    repeated = np.zeros(ordered.shape, dtype=np.bool_)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return Windows(order + np.arange(len(numbers))[:, None] * numbers.shape[1], repeated)


def greatest(x: Bounds, outputs: int) -> Bounds:
    """Bounds of maxima over windows: the greatest l and u, with the errors of those that may be the greatest."""
    low, high, low_error, high_error, least, most = (part.reshape(len(x.low), outputs, -1) for part in x.parts)
    found = []
    for bound, error in ((low, low_error), (high, high_error)):
        best = bound.max(axis=2)
        sure = (bound - error).max(axis=2, keepdims=True)
        found += [best, np.where(bound + error >= sure, error, 0.0).max(axis=2)]
    # From above, the greatest high end may stand for it, within its own error.
    highest = np.maximum(most.max(axis=2), found[2] + found[3])
    return Bounds(found[0], found[2], found[1], found[3], np.minimum(least.min(axis=2), found[2] - found[3]), highest)
