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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .selection import Places, suffix_sums

Array = NDArray[Any]

GRID = 64
"""Slopes are multiples of 1 / GRID, so that a certificate states them in a byte."""


@dataclass(frozen=True, eq=False)
class Shallow:
    """One rival's margin as a function of the words: at the original sentence, and what every swap changes.

    State vectors hold the N pre-activations y, then the linear part of the margin.
    """

    places: Places
    weights: Array
    """[N]: w."""
    base: Array
    """[N + 1]: the state of the original sentence."""
    rows: Array
    """[P, C, N + 1]: what each swap adds; 0 where there is none."""
    elements: tuple[tuple[int, int], ...]
    """Of every neuron: its rectifier node in the network, and its element there."""
    leaks: Array
    """[N]: the slopes of the rectifiers themselves below 0, taken into the linear part."""

    @property
    def neurons(self) -> int:
        return len(self.weights)

    def margins(self, states: Array) -> Array:
        return np.asarray(np.maximum(states[..., :-1], 0.0) @ self.weights + states[..., -1])

    def reordered(self, order: Array) -> Shallow:
        return replace(self, places=self.places.reordered(order), rows=self.rows[order])

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """[P, N] each: how far one swap can lower and raise each neuron, 0 at least."""
        swings = self.rows[:, :, :-1]
        return np.maximum(-swings.min(axis=1), 0.0), np.maximum(swings.max(axis=1), 0.0)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Slopes for every neuron, and which are grouped: what a certificate says."""

    slopes: Array
    """[N]."""
    steps: tuple[int, ...]
    """The same for the rectifiers with their leaks, leak + (1 - leak) slope, as multiples of 1 / GRID."""
    groups: tuple[tuple[int, ...], ...]


def grouped(neurons: Sequence[int], elements: Sequence[tuple[int, int]], size: int) -> tuple[tuple[int, ...], ...]:
    """At most `size` neurons together, and only of one layer."""
    layers: dict[int, list[int]] = {}
    for neuron in neurons:
        layers.setdefault(elements[neuron][0], []).append(neuron)
    return tuple(
        tuple(members[first : first + size]) for members in layers.values() for first in range(0, len(members), size)
    )


def patterns(size: int) -> Array:
    """[2**size, size] of 0 and 1."""
    return np.asarray((np.arange(2**size)[:, None] >> np.arange(size)) & 1, dtype=np.float64)


class Ascent:
    """The bound over the whole space with at most k swaps, improved step by step.

    The bound at slopes a is the least of linear functions of a; one that is active gives the direction:
    for w_j >= 0: w_j y_j(x), for w_j < 0: |w_j| (y_j(x_G) - y_j(x)), with x the sentence where the linear part is least
    and x_G the sentence where T_G is reached.
    """

    def __init__(self, shallow: Shallow, k: int, group_size: int, start: Relaxation | None = None) -> None:
        self.shallow, self.k = shallow, min(k, shallow.places.count)
        count, width, _ = shallow.rows.shape
        self.flat = shallow.rows.reshape(count * width, -1)
        lower, upper = self.low_high()
        weights = shallow.weights
        self.unstable = (lower < 0) & (upper > 0) & (weights != 0)
        self.settled = np.where(lower >= 0, 1.0, 0.0)
        concave = np.flatnonzero(self.unstable & (weights < 0))
        self.groups = grouped(concave.tolist(), shallow.elements, group_size)
        if start is None:
            chord = upper / np.where(self.unstable, upper - lower, 1.0)
            # Measured: the best slopes of concave neurons lie well below the chord's.
            first_guess = np.where(weights < 0, 0.7 * chord, (upper > -lower) * 1.0)
        else:
            first_guess = start.slopes
        self.slopes = np.where(self.unstable, first_guess, self.settled)
        size = max((len(group) for group in self.groups), default=0)
        # Groups side by side, short ones filled with a neuron of weight 0 (number N).
        self.members = np.full((len(self.groups), size), shallow.neurons)
        for number, group in enumerate(self.groups):
            self.members[number, : len(group)] = group
        self.bits = patterns(size)
        absolute = np.append(np.where(weights < 0, -weights, 0.0), 0.0)
        self.absolute = absolute[self.members]
        swings = np.concatenate([self.flat[:, :-1], np.zeros((len(self.flat), 1))], axis=1)
        self.swings = np.ascontiguousarray(np.moveaxis(swings[:, self.members], 1, 0))  # [groups, swaps, size]
        self.origin = np.append(shallow.base[:-1], 0.0)[self.members]
        self.best, self.best_slopes = -np.inf, self.slopes
        self.state = shallow.base

    def low_high(self) -> tuple[Array, Array]:
        """[N] each: exact bounds of the pre-activations."""
        down, up = self.shallow.ends
        y, k, count = self.shallow.base[:-1], self.k, len(down)
        if 0 < k < count:
            down, up = (np.partition(part, count - k, axis=0)[count - k :] for part in (down, up))
        return y - (down.sum(axis=0) if k else 0.0), y + (up.sum(axis=0) if k else 0.0)

    def step(self, reach: float) -> float:
        """The bound at the present slopes; then move them towards a bound that is better by `reach`."""
        shallow, k = self.shallow, self.k
        count, width, _ = shallow.rows.shape
        slopes = self.slopes
        tilted = np.append(slopes * shallow.weights, 1.0)
        gains = (self.flat @ tilted).reshape(count, width)
        choice = gains.argmin(axis=1)
        least = gains[np.arange(count), choice]
        taken = np.argpartition(least, k - 1)[:k] if k < count else np.arange(count)
        taken = taken[least[taken] < 0]
        state = shallow.base + shallow.rows[taken, choice[taken]].sum(axis=0)
        bound = float(state @ tilted)
        direction = shallow.weights * state[:-1]
        if self.groups:
            functions = (self.bits - np.append(slopes, 0.0)[self.members][:, None, :]) * self.absolute[:, None, :]
            rises = self.swings @ functions.transpose(0, 2, 1)  # [groups, swaps, patterns]
            best = rises.reshape(len(self.groups), count, width, -1).max(axis=2)
            np.maximum(best, 0.0, out=best)
            if k < count:
                best = np.partition(best, count - k, axis=1)[:, count - k :]
            values = (functions @ self.origin[:, :, None])[:, :, 0] + best.sum(axis=1)
            winner = values.argmax(axis=1)
            numbers = np.arange(len(self.groups))
            bound -= float(values[numbers, winner].sum())
            won = rises[numbers, :, winner].reshape(len(self.groups), count, width)
            choices = won.argmax(axis=2)
            greatest = np.take_along_axis(won, choices[:, :, None], axis=2)[:, :, 0]
            chosen = (
                np.argpartition(-greatest, k - 1, axis=1)[:, :k]
                if k < count
                else np.tile(np.arange(count), (len(numbers), 1))
            )
            worth = np.take_along_axis(greatest, chosen, axis=1) > 0
            swaps = chosen * width + np.take_along_axis(choices, chosen, axis=1)
            reached = self.origin + (self.swings[numbers[:, None], swaps] * worth[:, :, None]).sum(axis=1)
            extended = np.append(direction, 0.0)
            extended[self.members] += self.absolute * reached
            direction = extended[:-1]
        self.state = state
        self.taken = (taken, choice[taken])
        if bound > self.best:
            self.best, self.best_slopes = bound, slopes
        direction = np.where(self.unstable, direction, 0.0)
        length = float(direction @ direction)
        if length > 0:
            moved = slopes + direction * ((self.best - bound + reach) / length)
            self.slopes = np.where(self.unstable, np.clip(moved, 0.0, 1.0), slopes)
        return bound

    def relaxation(self) -> Relaxation:
        """The best slopes so far, on the grid."""
        leaks = self.shallow.leaks
        outer = np.round((leaks + (1.0 - leaks) * self.best_slopes) * GRID)
        outer = np.maximum(outer, np.ceil(leaks * GRID))
        slopes = np.where(self.unstable, (outer / GRID - leaks) / (1.0 - leaks), self.settled)
        return Relaxation(slopes, tuple(outer.astype(int).tolist()), self.groups)


class JointBound:
    """The bound with fixed slopes, for many regions at once; positions are put in order of gain.

    `inherits`: a part that keeps T_G of the whole has a bound no greater than its own.
    A region: a state after some swaps, all positions before `start` decided, at most `left` swaps among the others.
    """

    inherits = True

    def __init__(self, shallow: Shallow, relaxation: Relaxation, k: int) -> None:
        weights, slopes = shallow.weights, relaxation.slopes
        self.tilted = np.append(slopes * weights, 1.0)
        self.order = np.argsort((shallow.rows @ self.tilted).min(axis=1), kind="stable")
        self.shallow = shallow = shallow.reordered(self.order)
        self.relaxation = relaxation
        self.places = places = shallow.places
        self.base, self.rows, self.margins = shallow.base, shallow.rows, shallow.margins
        self.k = k = min(k, places.count)
        self.gains = np.where(places.there, self.rows @ self.tilted, np.inf)
        self.least = self.gains.min(axis=1)
        self.falls = suffix_sums(np.maximum(-self.least, 0.0)[:, None], k)[:, :, 0]
        down, up = shallow.ends
        lower = shallow.base[:-1] - suffix_sums(down, k)[0, k]
        upper = shallow.base[:-1] + suffix_sums(up, k)[0, k]
        convex = np.flatnonzero((weights > 0) & (lower < 0) & (upper > 0))
        self.convex, self.convex_weights, self.convex_slopes = convex, weights[convex], slopes[convex]
        self.down, self.up = suffix_sums(down[:, convex], k), suffix_sums(up[:, convex], k)
        self.forced_down = forced(self.rows[:, :, convex], places.there)
        self.forced_up = -forced(-self.rows[:, :, convex], places.there)
        size = max((len(group) for group in relaxation.groups), default=0)
        self.functions = np.zeros((len(relaxation.groups), 2**size, shallow.neurons + 1))
        for number, group in enumerate(relaxation.groups):
            members = list(group)
            block = (patterns(len(members)) - slopes[members]) * -weights[members]
            # Short groups repeat their patterns.
            self.functions[number][:, members] = np.tile(block, (2 ** (size - len(members)), 1))
        self.functions = self.functions.reshape(-1, shallow.neurons + 1)
        self.swap_rises = rises = self.rows @ self.functions.T  # [P, C, M]
        self.rises = suffix_sums(np.maximum(rises.max(axis=1), 0.0), k)
        self.forced_rises = -forced(-rises, places.there).min(axis=1)

    def low(
        self, states: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        """[n]: lower bounds of the margin. `swapped`: positions where moreover a swap is made, of those `allowed`."""
        at = (start, left)
        bound = states @ self.tilted - self.falls[at]
        heights = states @ self.functions.T + self.rises[at]
        y = states[:, self.convex]
        lower, upper = y - self.down[at], y + self.up[at]
        if swapped is not None and allowed is None:
            bound = bound + self.least[swapped]
            heights += self.forced_rises[swapped]
            lower += self.forced_down[swapped].min(axis=1)
            upper += self.forced_up[swapped].max(axis=1)
        elif swapped is not None and allowed is not None:
            there = (self.places.there[swapped] & allowed)[:, :, None]
            bound = bound + np.where(there[:, :, 0], self.gains[swapped], np.inf).min(axis=1)
            heights += np.where(there, self.swap_rises[swapped], -np.inf).max(axis=1)
            lower += np.where(there, self.forced_down[swapped], np.inf).min(axis=1)
            upper += np.where(there, self.forced_up[swapped], -np.inf).max(axis=1)
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


def forced(values: Array, there: Array) -> Array:
    """Infinite where there is no swap, so that it is never the least."""
    return np.where(there[:, :, None], values, np.inf)
