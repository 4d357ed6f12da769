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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chosen_slopes import GRID, Relaxation, patterns
from .greatest_sums import greatest, suffix_sums
from .neuron_groups import grouped
from .relaxation import BELOW_CHORD, chord_slope
from .selection import BLOCK_CELLS
from .shallow_margin import Shallow

Array = NDArray[Any]


CACHED = 1 << 16
"""Numbers of one block of heights: what a core's cache holds. Blocks that it does not hold take twice the time."""
BARELY = 1e-3
"""What deciding a position is taken to gain at least, so that the other side of a product counts."""


class Ascent:
    """The bound over the whole space with at most k swaps, improved step by step.

    The bound at slopes a is the least of linear functions of a; one that is active gives the direction:
    for w_j >= 0: w_j y_j(x), for w_j < 0: |w_j| (y_j(x_G) - y_j(x)), with x the sentence where the linear part is least
    and x_G the sentence where T_G is reached.

    While the bound is not above `aim`, only the patterns next to those that gave T_G last are looked at: what comes of
    it may be above the bound, but not what is above `aim`.
    """

    def __init__(
        self,
        shallow: Shallow,
        k: int,
        group_size: int,
        start: Relaxation | None = None,
        aim: float = -np.inf,
        regroup: bool = True,
    ) -> None:
        """`regroup` False: the groups of `start`, as far as they count here."""
        self.shallow, self.k, self.aim = shallow, min(k, shallow.places.count), aim
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
        if start is None or regroup:
            self.groups = grouped(shallow, self.k, self.slopes, np.flatnonzero(concave).tolist(), group_size)
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
        self.winners: Array | None = None
        """[groups]: the patterns that gave T_G last."""

    @property
    def corners(self) -> int:
        return len(self.shallow.places.corners.flat)

    def step(self, reach: float) -> float:
        """The bound at the present slopes; then move them towards a bound that is better by `reach`."""
        slopes = self.slopes
        bound, direction = self.linear_part(slopes)
        if self.groups:
            near = self.winners is not None
            excess = self.excess(slopes, near)
            if near and bound - excess > self.aim:
                excess = self.excess(slopes, False)
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
        return self.linear_part(slopes)[0] - (self.excess(slopes, False) if self.groups else 0.0)

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

    def excess(self, slopes: Array, near: bool) -> float:
        """The sum of all T_G, which become the winners; or what the patterns near the winners before give."""
        if near and self.winners is not None:
            numbers = self.winners[:, None] ^ np.append(0, 1 << np.arange(self.bits.shape[1]))
            values = self.maxima(self.functions(slopes, self.bits[numbers]))
            best = values.argmax(axis=1)
            self.winners = numbers[np.arange(len(numbers)), best]
        else:
            values = self.maxima(self.functions(slopes, self.bits))
            best = self.winners = values.argmax(axis=1)
        return float(values[np.arange(len(values)), best].sum())

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


class JointBound:
    """The bound with fixed slopes, for many regions at once; positions are put in the order of `deciding_order`.

    `inherits`: a part that keeps T_G of the whole has a bound no greater than its own.
    A region: a state after some swaps, all positions before `start` decided, at most `left` swaps among the others.
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
        convex = np.flatnonzero((weights > 0) & (lower < 0) & (upper > 0))
        self.convex, self.convex_weights, self.convex_slopes = convex, weights[convex], slopes[convex]
        self.down, self.up = suffix_sums(down[:, convex], k), suffix_sums(up[:, convex], k)
        self.forced_down = forced(self.rows[:, :, convex], places.there)
        self.forced_up = -forced(-self.rows[:, :, convex], places.there)
        self.members = [list(group) for group in relaxation.groups]
        size = max((len(group) for group in self.members), default=0)
        blocks = [(patterns(len(group)) - slopes[group]) * -weights[group] for group in self.members]
        # Short groups repeat their patterns.
        self.functions = [np.tile(block, (2**size // len(block), 1)).T for block in blocks]
        self.swap_rises = rises = self.heights(self.rows)  # [P, C, M]
        self.forced_rises = among(np.maximum, rises, np.arange(places.count), places.there)
        self.rises = suffix_sums(np.maximum(self.forced_rises, 0.0), k)

    def heights(self, states: Array) -> Array:
        """[..., M]: the functions of all patterns of all groups at these states [..., N + 1]."""
        found = [np.zeros((*states.shape[:-1], 0))]
        return np.concatenate(
            found + [states[..., group] @ block for group, block in zip(self.members, self.functions, strict=True)],
            axis=-1,
        )

    def low(
        self, states: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        """[n]: lower bounds of the margin. `swapped`: positions where moreover a swap is made, of those `allowed`."""
        rows = max(1, CACHED // max(1, self.rises.shape[2]))
        found = [np.zeros(0)]
        for first in range(0, len(states), rows):
            block = slice(first, first + rows)
            places, choices = (None if one is None else one[block] for one in (swapped, allowed))
            found.append(self.low_of_block(states[block], start[block], left[block], places, choices))
        return np.concatenate(found)

    def low_of_block(
        self, states: Array, start: Array, left: Array, swapped: Array | None, allowed: Array | None
    ) -> Array:
        at = (start, left)
        bound = states @ self.tilted - self.falls[at]
        heights = self.heights(states) + self.rises[at]
        y = states[:, self.convex]
        lower, upper = y - self.down[at], y + self.up[at]
        if swapped is not None and allowed is None:
            bound = bound + self.least[swapped]
            heights += self.forced_rises[swapped]
            lower += self.forced_down[swapped].min(axis=1)
            upper += self.forced_up[swapped].max(axis=1)
        elif swapped is not None and allowed is not None:
            there = self.places.there[swapped] & allowed
            bound = bound + np.where(there, self.gains[swapped], np.inf).min(axis=1)
            heights += among(np.maximum, self.swap_rises, swapped, there)
            lower += among(np.minimum, self.forced_down, swapped, there)
            upper += among(np.maximum, self.forced_up, swapped, there)
        if self.relaxation.groups:
            bound = bound - heights.reshape(len(states), len(self.relaxation.groups), -1).max(axis=2).sum(axis=1)
        slack = np.maximum((1.0 - self.convex_slopes) * lower, -self.convex_slopes * upper)
        return np.asarray(bound + np.maximum(slack, 0.0) @ self.convex_weights)

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array]:
        """[n, P + 1]: lower bounds of the region from position t on; [n, P, C]: of it with its first swap there.

        T_G is kept, that of the whole region.
        """
        low = self.low(states, start, left)
        loose = (low + self.falls[start, left])[:, None]
        after = loose - self.falls[:, left].T
        of_child = loose[:, :, None] + self.gains - self.falls[1:, left - 1].T[:, :, None]
        return after, of_child


def among(extreme: np.ufunc, table: Array, places: Array, there: Array) -> Array:
    """[n, M]: the extreme of `table` [P, C, M] at one place each, of the choices that are `there` [n, C], one at least.

    Row by row: of wide networks all choices of all rows would be far more than a cache holds.
    """
    found = np.empty((len(places), table.shape[2]))
    for row, place in enumerate(places.tolist()):
        extreme.reduce(table[place, there[row]], axis=0, out=found[row])
    return found


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
