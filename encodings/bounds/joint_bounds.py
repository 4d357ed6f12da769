"""Lower bounds of a margin with one hidden layer, its concave neurons bounded together in small groups.

The margin is m(x) = constant + linear part + sum of w_j relu(y_j(x)), every y_j affine in the chosen words. For slopes
a_j in [0, 1] and a partition of the neurons with w_j < 0 into groups G,

    m(x) >= [linear part + sum of w_j a_j y_j(x)] - sum over G of T_G,
    T_G = max over x of sum over j in G of |w_j| (relu(y_j) - a_j y_j)
        = max over patterns d in {0, 1}^G of max over x of sum of |w_j| (d_j - a_j) y_j(x)

since relu(y) is the greater of 0 and y, and relu(y) >= a y for the neurons with w_j >= 0. Each maximum is that of a
linear function, hence a selection of the k best swaps, and T_G is exact: what chords lose because different neurons
reach their extremes in different sentences is lost between groups only. The bound is concave in the slopes, which are
found by ascent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chosen_slopes import GRID, Relaxation, patterns
from .greatest_sums import greatest, suffix_sums
from .neuron_groups import AMONG, grouped
from .relaxation import BELOW_CHORD, chord_slope
from .selection import BLOCK_CELLS
from .shallow_margin import Shallow

Array = NDArray[Any]


TOGETHER = 256
"""Regions bounded together: a core's cache holds the heights of one group."""
LARGEST = 2.0**100
"""Of numbers that single precision holds, with their sums."""
HIGHEST, REFRESH = 32, 15
"""Patterns of a group looked at in one step of the ascent, and steps until all are looked at again."""
BARELY = 1e-3
"""What deciding a position is taken to gain at least, so that the other side of a product counts."""


class Ascent:
    """The bound over the whole space with at most k swaps, improved step by step.

    The bound at slopes a is the least of linear functions of a; one that is active gives the direction:
    for w_j >= 0: w_j y_j(x), for w_j < 0: |w_j| (y_j(x_G) - y_j(x)), with x the sentence where the linear part is least
    and x_G the sentence where T_G is reached.

    In most steps only those patterns of each group are looked at that were the highest when all were, at most REFRESH
    steps before: what comes of it may be above the bound.
    """

    def __init__(
        self, shallow: Shallow, k: int, group_size: int, start: Relaxation | None = None, among: int = AMONG
    ) -> None:
        """`among`: neurons among which groups are sought; 0: those of `start`, as far as they count here."""
        self.shallow, self.k = shallow, min(k, shallow.places.count)
        self.flat = shallow.rows.reshape(-1, shallow.rows.shape[2])
        lower, upper = shallow.low_high(self.k)
        weights = shallow.weights
        self.unstable, self.settled = shallow.stability(self.k)
        if start is None:
            below = BELOW_CHORD * chord_slope(0.0, lower, upper)
            first_guess = np.where(weights < 0, below, (upper > -lower) * 1.0)
        else:
            first_guess = start.slopes
        self.slopes = np.where(self.unstable, first_guess, self.settled)
        concave = self.unstable & (weights < 0)
        if start is None or among:
            self.groups = grouped(shallow, self.k, self.slopes, np.flatnonzero(concave).tolist(), group_size, among)
        else:
            left = (tuple(neuron for neuron in group if concave[neuron]) for group in start.groups)
            self.groups = tuple(group for group in left if group)
        size = max((len(group) for group in self.groups), default=0)
        # Groups side by side, short ones filled with a neuron of weight 0 (number N).
        self.members = np.full((len(self.groups), size), shallow.neurons)
        for number, group in enumerate(self.groups):
            self.members[number, : len(group)] = group
        self.bits = patterns(size)
        absolute = np.append(np.where(weights < 0, -weights, 0.0), 0.0)
        self.absolute = absolute[self.members]
        swings = np.concatenate([self.flat[shallow.places.corners.flat, :-1].T, np.zeros((1, self.corners))])
        self.swings = swings[self.members]
        """[groups, size, corners]."""
        self.origin = np.append(shallow.base[:-1], 0.0)[self.members]
        self.best, self.best_slopes = -np.inf, self.slopes
        self.state = shallow.base
        self.winners = np.zeros(len(self.groups), dtype=np.int64)
        """[groups]: the patterns that gave T_G last."""
        self.highest: Array | None = None
        """[groups, HIGHEST]: those that gave most when all were looked at."""
        self.until = 0
        """Steps until all are looked at again."""

    @property
    def corners(self) -> int:
        return len(self.shallow.places.corners.flat)

    def step(self, reach: float, enough: float = np.inf) -> float:
        """The bound at the present slopes; then move them towards a bound that is better by `reach`.

        What is above `enough` is the bound, not more.
        """
        slopes = self.slopes
        bound, direction = self.linear_part(slopes)
        if self.groups:
            excess = self.excess(slopes)
            if bound - excess > enough:
                self.until = 0
                excess = self.excess(slopes)
            bound -= excess
            extended = np.append(direction, 0.0)
            extended[self.members] += self.absolute * self.reached(slopes)
            direction = extended[:-1]
        if bound > self.best:
            self.best, self.best_slopes = bound, slopes
        direction = np.where(self.unstable, direction, 0.0)
        length = float(direction @ direction)
        if length > 0:
            moved = slopes + direction * ((self.best - bound + reach) / length)
            self.slopes = np.where(self.unstable, np.clip(moved, 0.0, 1.0), slopes)
        return bound

    def bound(self, slopes: Array) -> float:
        self.until = 0
        return self.linear_part(slopes)[0] - (self.excess(slopes) if self.groups else 0.0)

    def linear_part(self, slopes: Array) -> tuple[float, Array]:
        """The bound without the excess of the groups, and its direction."""
        shallow, k = self.shallow, self.k
        count, width, _ = shallow.rows.shape
        tilted = np.append(slopes * shallow.weights, 1.0)
        gains = (self.flat @ tilted).reshape(count, width)
        choice = gains.argmin(axis=1)
        least = gains[np.arange(count), choice]
        taken = np.argpartition(least, k - 1)[:k] if 0 < k < count else np.arange(min(k, count))
        taken = taken[least[taken] < 0]
        self.state = shallow.base + shallow.rows[taken, choice[taken]].sum(axis=0)
        self.taken = (taken, choice[taken])
        return float(self.state @ tilted), shallow.weights * self.state[:-1]

    def functions(self, slopes: Array, bits: Array) -> Array:
        """[groups, m, size]: |w_j| (d_j - a_j) for patterns d [groups, m, size], or [m, size] for all groups."""
        return np.asarray((bits - np.append(slopes, 0.0)[self.members][:, None, :]) * self.absolute[:, None, :])

    def excess(self, slopes: Array) -> float:
        """The sum of all T_G, whose patterns become the winners; or what the highest patterns give."""
        numbers = np.arange(len(self.groups))
        if self.highest is None or not self.until:
            values = self.maxima(self.functions(slopes, self.bits))
            best = self.winners = values.argmax(axis=1)
            if values.shape[1] > HIGHEST:
                self.highest = np.argpartition(values, -HIGHEST, axis=1)[:, -HIGHEST:]
                self.until = REFRESH
        else:
            values = self.maxima(self.functions(slopes, self.bits[self.highest]))
            best = values.argmax(axis=1)
            self.winners, self.until = self.highest[numbers, best], self.until - 1
        return float(values[numbers, best].sum())

    def maxima(self, functions: Array) -> Array:
        """[groups, m]: the greatest value that functions [groups, m, size] of the groups' neurons reach."""
        rows = max(1, BLOCK_CELLS // max(1, functions.shape[1] * self.corners))
        found = [np.zeros((0, functions.shape[1]))]
        for first in range(0, len(functions), rows):
            block = slice(first, first + rows)
            best = self.shallow.places.corners.most(functions[block] @ self.swings[block])
            found.append(greatest(best, self.k))
        return np.asarray((functions @ self.origin[:, :, None])[:, :, 0] + np.concatenate(found))

    def reached(self, slopes: Array) -> Array:
        """[groups, size]: the neurons of each group where its winner reaches T_G."""
        functions = self.functions(slopes, self.bits[self.winners][:, None])
        gains = (functions @ self.swings)[:, 0]
        best: Array = np.zeros((len(self.groups), self.shallow.places.count))
        which: Array = np.zeros(best.shape, dtype=np.int64)
        for part in self.shallow.places.corners.parts:
            mine = gains[:, part]
            better = mine > best[:, : mine.shape[1]]
            np.copyto(best[:, : mine.shape[1]], mine, where=better)
            np.copyto(which[:, : mine.shape[1]], np.arange(part.start, part.stop), where=better)
        if self.k < best.shape[1]:
            chosen = np.argpartition(best, best.shape[1] - self.k, axis=1)[:, best.shape[1] - self.k :]
            best, which = (np.take_along_axis(array, chosen, axis=1) for array in (best, which))
        moved = np.take_along_axis(self.swings, which[:, None], axis=2) * (best > 0)[:, None]
        return np.asarray(self.origin + moved.sum(axis=2))

    def relaxation(self) -> Relaxation:
        """The best slopes so far, on the grid."""
        leaks = self.shallow.leaks
        outer = np.round((leaks + (1.0 - leaks) * self.best_slopes) * GRID)
        outer = np.maximum(outer, np.ceil(leaks * GRID))
        slopes = np.where(self.unstable, (outer / GRID - leaks) / (1.0 - leaks), self.settled)
        return Relaxation(slopes, tuple(outer.astype(int).tolist()), self.groups)


@dataclass(frozen=True, eq=False)
class Group:
    """What the patterns of one group come to."""

    members: slice
    """Of the neurons of all groups, side by side."""
    functions: Array
    """[size, patterns]: |w_j| (d_j - a_j)."""
    rises: Array
    """[(P + 1) (k + 1), patterns]: the most that so many swaps from a place on add."""
    forced: Array
    """[P, patterns]: the most that some swap of this place adds."""

    def peaks(self, neurons: Array, at: Array, swapped: Array | None) -> Array:
        """[n]: T_G of regions whose state has these neurons [n, size of all groups]."""
        heights = neurons[:, self.members] @ self.functions
        heights += self.rises.take(at, axis=0)
        if swapped is not None:
            heights += self.forced.take(swapped, axis=0)
        return np.asarray(heights.max(axis=1))


class JointBound:
    """The bound with fixed slopes, for many regions at once; positions are put in the order of `deciding_order`.

    `inherits`: a part that keeps T_G of the whole has a bound no greater than its own.
    A region: a state after some swaps, all positions before `start` decided, at most `left` swaps among the others.

    Patterns and slacks are added up in single precision, which takes half of the memory. What that can lose is taken
    off the bound, in units of 2^-24 Y, Y = the sum of |w_j| max(a_j, 1 - a_j) max |y_j|: 10 for the function at the
    state (factors, products, sums of 8), 2 (k + 10) for what swaps add, which is at most 2 Y, 20 for the one that is
    made, and 10 for putting together what is at most 5 Y.
    """

    inherits = True
    following = None
    joining = None

    def __init__(self, shallow: Shallow, relaxation: Relaxation, k: int) -> None:
        weights, slopes = shallow.weights, relaxation.slopes
        self.tilted = np.append(slopes * weights, 1.0)
        self.order = deciding_order(shallow, relaxation, k)
        self.shallow = shallow = shallow.reordered(self.order)
        self.relaxation = relaxation
        self.places = places = shallow.places
        self.base, self.rows, self.margins = shallow.base, shallow.rows, shallow.margins
        self.k = k = min(k, places.count)
        self.gains = np.where(places.there, self.rows @ self.tilted, np.inf)
        self.least = self.gains.min(axis=1)
        self.falls = suffix_sums(np.maximum(-self.least, 0.0)[:, None], k)[:, :, 0]
        down, up = shallow.ends
        lower, upper = shallow.base[:-1] - greatest(down.T, k), shallow.base[:-1] + greatest(up.T, k)
        reach, tilts = np.maximum(-lower, upper), np.abs(weights) * np.maximum(slopes, 1.0 - slopes)
        self.error = (2 * k + 60) * 2.0**-24 * float(reach @ tilts)
        largest = max(self.error, reach.max(initial=0.0), tilts.max(initial=0.0))
        self.kind: Any = np.float32 if largest < LARGEST else np.float64
        self.convex = convex = np.flatnonzero((weights > 0) & (lower < 0) & (upper > 0))
        above, below = (1.0 - slopes[convex]) * weights[convex], slopes[convex] * weights[convex]
        self.above: Array = above.astype(self.kind)
        self.below: Array = below.astype(self.kind)
        self.down = self.table(down[:, convex] * above)
        self.up = self.table(up[:, convex] * below)
        swings = self.rows[:, :, convex]
        self.forced_down = (forced(swings, places.there).min(axis=1) * above).astype(self.kind)
        self.forced_up = (-forced(-swings, places.there).min(axis=1) * below).astype(self.kind)
        self.members = np.array([neuron for group in relaxation.groups for neuron in group], dtype=np.int64)
        self.groups, first = list[Group](), 0
        for group in relaxation.groups:
            self.groups.append(self.tables(slice(first, first + len(group))))
            first += len(group)

    def table(self, best: Array) -> Array:
        """[(P + 1) (k + 1), M]: at (start, left) the most that so many swaps from there on give, of `best` [P, M]."""
        sums = suffix_sums(best.astype(self.kind), self.k)
        return sums.reshape((len(best) + 1) * (self.k + 1), best.shape[1])

    def tables(self, members: slice) -> Group:
        neurons = self.members[members]
        tilts = patterns(len(neurons)) - self.relaxation.slopes[neurons]
        functions = np.ascontiguousarray((tilts * -self.shallow.weights[neurons]).T, dtype=self.kind)
        rises = self.rows[:, :, neurons].astype(self.kind) @ functions
        rises[~self.places.there] = -np.inf
        best = rises.max(axis=1)
        return Group(members, functions, self.table(np.maximum(best, 0.0)), best)

    def low(
        self, states: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        """[n]: lower bounds of the margin. `swapped`: positions where moreover a swap is made, of those `allowed`."""
        found = [np.zeros(0)]
        for first in range(0, len(states), TOGETHER):
            block = slice(first, first + TOGETHER)
            places, choices = (None if one is None else one[block] for one in (swapped, allowed))
            found.append(self.low_of_block(states[block], start[block], left[block], places, choices))
        return np.concatenate(found)

    def low_of_block(
        self, states: Array, start: Array, left: Array, swapped: Array | None, allowed: Array | None
    ) -> Array:
        at = start * (self.k + 1) + left
        bound = states @ self.tilted - self.falls.reshape(-1)[at]
        if swapped is not None and allowed is not None:
            # Of some choices of a position: what is the worst of each, one by one, is the worst of all of them.
            there = self.places.there[swapped] & allowed
            bound += np.where(there, self.gains[swapped], np.inf).min(axis=1)
            row, choice = np.nonzero(there)
            firsts = np.flatnonzero(np.diff(row, prepend=-1))
            states, at = states[row] + self.rows[swapped[row], choice], at[row]
            peaks = np.maximum.reduceat(self.peaks(states, at, None), firsts, axis=1)
            lower, upper = (np.asarray(np.minimum.reduceat(one, firsts, axis=0)) for one in self.slacks(states, at))
        else:
            if swapped is not None:
                bound += self.least[swapped]
            peaks = self.peaks(states, at, swapped)
            lower, upper = self.slacks(states, at, swapped)
        np.maximum(lower, upper, out=lower)
        np.maximum(lower, 0.0, out=lower)
        bound += lower.sum(axis=1, dtype=np.float64)
        bound -= peaks.sum(axis=0, dtype=np.float64)
        return np.asarray(bound - self.error)

    def peaks(self, states: Array, at: Array, swapped: Array | None) -> Array:
        """[groups, n]: T_G; `at`: start (k + 1) + left."""
        neurons = states[:, self.members].astype(self.kind)
        found = np.zeros((len(self.groups), len(states)), dtype=self.kind)
        for group, peaks in zip(self.groups, found, strict=True):
            peaks[:] = group.peaks(neurons, at, swapped)
        return found

    def slacks(self, states: Array, at: Array, swapped: Array | None = None) -> tuple[Array, Array]:
        """[n, convex] each: by how much the neurons with w > 0 exceed the line of their slope, if all are above 0, and
        if all are below: w (1 - a) lower, and -w a upper."""
        y = states[:, self.convex].astype(self.kind)
        lower, upper = y * self.above, -y * self.below
        lower -= self.down.take(at, axis=0)
        upper -= self.up.take(at, axis=0)
        if swapped is not None:
            lower += self.forced_down.take(swapped, axis=0)
            upper -= self.forced_up.take(swapped, axis=0)
        return lower, upper

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array]:
        """[n, P + 1]: lower bounds of the region from position t on; [n, P, C]: of it with its first swap there.

        T_G is kept, that of the whole region.
        """
        low = self.low(states, start, left)
        loose = (low + self.falls[start, left])[:, None]
        after = loose - self.falls[:, left].T
        of_child = loose[:, :, None] + self.gains - self.falls[1:, left - 1].T[:, :, None]
        return after, of_child


def forced(values: Array, there: Array) -> Array:
    """Infinite where there is no swap, so that it is never the least."""
    return np.where(there[:, :, None], values, np.inf)


def deciding_order(shallow: Shallow, relaxation: Relaxation, k: int) -> NDArray[np.intp]:
    """The positions, that one first whose decision raises the bound of the whole most, swapped and not swapped.

    Both bounds are those at the slopes of the relaxation; the product of what they gain is the measure.
    """
    if not (k and shallow.places.count):
        return np.arange(shallow.places.count)
    tilted = np.append(relaxation.slopes * shallow.weights, 1.0)
    functions = [(-shallow.base @ tilted[:, None], -shallow.rows @ tilted[:, None])]
    for group in map(list, relaxation.groups):
        block = ((patterns(len(group)) - relaxation.slopes[group]) * -shallow.weights[group]).T
        functions.append((shallow.base[group] @ block, shallow.rows[:, :, group] @ block))
    there, total = shallow.places.there[:, :, None], np.zeros(3)[:, None]
    for height, gains in functions:
        best = np.where(there, gains, -np.inf).max(axis=1)
        total = total + (height + tops(best, k)).max(axis=2)
    gained = np.maximum(total[0] - total[1:], 0.0) + BARELY
    return np.argsort(-gained.prod(axis=0), kind="stable")


def tops(best: Array, k: int) -> Array:
    """[3, P, m]: for `best` [P, m], the greatest sum of at most k; that without position p; that with it."""
    count = len(best)
    k = min(k, count)
    positive = np.maximum(best, 0.0)
    ordered = -np.sort(-positive, axis=0)
    total = ordered[:k].sum(axis=0)
    last, next_one = ordered[k - 1], ordered[k] if k < count else 0.0
    inside = positive >= last
    without = total - np.where(inside, positive - next_one, 0.0)
    forced = total + best - np.where(inside, positive, last)
    return np.stack([np.broadcast_to(total, best.shape), without, forced])
