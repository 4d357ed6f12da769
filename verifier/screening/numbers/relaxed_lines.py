"""Relaxations of nonlinear layers from bounds that are known up to an error, and how far the exact ones can be.

The exact recipe chooses: stable or not, the lower slope, a slope rounded to 2**-16, the greatest of a window. Where
the numbers here are closer to such a choice than their errors, either may be the recipe's; one is taken, and the
difference the other could make to c y, for |c| = 1, is stated as `low_doubt` (lower line) and `high_doubt` (upper).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .float64_rounding import SLOP, UNIT, Floats

Flags = NDArray[np.bool_]

STEPS = 2.0**16


@dataclass(frozen=True, eq=False)
class Bounds:
    """l and u of elements [batch, size], each with its error; and the range `least` to `most` of their relaxed values.

    The error 0 means that the number is the recipe's, exactly.
    """

    low: Floats
    high: Floats
    low_error: Floats
    high_error: Floats
    least: Floats
    most: Floats

    def at(self, columns: NDArray[np.int64] | None) -> Bounds:
        if columns is None:
            return self
        return Bounds(*(part[:, columns] for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, ...]:
        return self.low, self.high, self.low_error, self.high_error, self.least, self.most


@dataclass(frozen=True, eq=False)
class Lines:
    """Lower line a x, upper line s x + t, and the doubts."""

    lower: Floats
    upper: Floats
    raised: Floats
    low_doubt: Floats
    high_doubt: Floats


def stability(x: Bounds) -> tuple[Flags, Flags]:
    """Of rectifiers: which are stable for certain, and which may be stable, and may be not."""
    surely_on = x.low - x.low_error >= 0
    surely_off = (x.high + x.high_error <= 0) & (x.low + x.low_error < 0)
    settled = surely_on | surely_off
    edge = (x.low - x.low_error < 0) & (x.low + x.low_error >= 0)
    edge |= (x.high - x.high_error <= 0) & (x.high + x.high_error > 0)
    return settled, edge & ~settled


def rectifier_lines(slope: float, x: Bounds, own: Floats | None = None) -> Lines:
    """Of y = max(x, slope x); `own` [size] are slopes set by the proof, NaN where none is.

    With e the error of l and u, X >= |relaxed x|, w = max(u, 0) - min(l, 0), m = max(|l|, |u|) + e:
    * the lower slope is 1 or `slope`, by the sign of u + l: in doubt within their errors, then (1 - slope) X;
    * kappa = (u - slope l)/w moves by at most 4 e / w while w >= 8 e, also across l = 0 and u = 0 where the stable
      slopes continue it; 2**16 kappa + 1/2 is then known up to z = 2**16 (4 e / w + 8 u'), u' the unit; if that may
      cross a whole number, or stable is in doubt, the slope may differ by 2**-16 (1 + z), the line by that times X + m;
    * t = max((slope - s) l, (1 - s) u) moves by at most e + 8 u' m;
    * where w < 8 e both lines are within 3 X + 3 m.
    """
    low, high, low_error, high_error = x.low, x.high, x.low_error, x.high_error
    reach = np.maximum(np.abs(x.least), np.abs(x.most))
    error = np.maximum(low_error, high_error)
    settled, edge = stability(x)
    on, unstable = low >= 0, (low < 0) & (high > 0)
    lower = np.where(on | (high > -low), 1.0, slope)
    tilted = np.abs(low + high) <= low_error + high_error + 2 * UNIT * (np.abs(low) + np.abs(high))
    low_doubt = np.where(tilted & ~settled, (1.0 - slope) * reach, 0.0)
    if own is not None:
        there = np.broadcast_to(~np.isnan(own), low.shape)
        chosen = np.broadcast_to(np.maximum(np.nan_to_num(own), slope), low.shape)
        lower = np.where(there & unstable, chosen, lower)
        # Set slopes leave no choice by sign; only whether they are used can be in doubt.
        low_doubt = np.where(there, np.where(edge, reach, 0.0), low_doubt)
    width = np.maximum(high, 0.0) - np.minimum(low, 0.0)
    safe = np.where(width > 0, width, 1.0)
    position = STEPS * ((np.maximum(high, 0.0) - slope * np.minimum(low, 0.0)) / safe) + 0.5
    upper = np.where(unstable, np.floor(position) / STEPS, np.where(on, 1.0, slope))
    raised = np.where(unstable, np.maximum((slope - upper) * low, (1.0 - upper) * high), 0.0)
    doubt_of_position = STEPS * (4.0 * error / safe + 8.0 * UNIT) * SLOP
    part = position - np.floor(position)
    rounded = unstable & (np.minimum(part, 1.0 - part) <= doubt_of_position)
    far = np.maximum(np.abs(low), np.abs(high)) + error
    high_doubt = np.where(settled, 0.0, error + 8.0 * UNIT * far)
    crossing = rounded & ~settled | edge
    high_doubt = high_doubt + np.where(crossing, (1.0 + doubt_of_position) / STEPS * (reach + far), 0.0)
    vague = (width < 8.0 * error) & ~settled
    low_doubt = np.where(vague, 3.0 * (reach + far), low_doubt)
    high_doubt = np.where(vague, 3.0 * (reach + far), high_doubt)
    return Lines(lower, upper, raised, low_doubt * SLOP, high_doubt * SLOP)


def rectified(slope: float, x: Bounds) -> Bounds:
    """Bounds of y = max(x, slope x): its values at l and u; the range holds both lines over the range of x, and what a
    joint group makes of y.

    Exactly 0 where a Relu's bound is surely not above 0.
    """
    low, high = np.maximum(x.low, slope * x.low), np.maximum(x.high, slope * x.high)
    errors = []
    for bound, error in ((x.low, x.low_error), (x.high, x.high_error)):
        if slope == 0:
            errors.append(np.where(bound + error <= 0, 0.0, error))
        else:
            errors.append(np.where((bound - error >= 0), error, error + 2 * UNIT * np.abs(bound) + 2.0**-63))
    surely_on = x.low - x.low_error >= 0
    far = np.maximum(np.abs(x.low), np.abs(x.high)) + x.high_error + x.low_error
    slack = np.maximum(np.abs(x.least), np.abs(x.most)) * 2.0**-10  # slopes of up to 1 + 2**-17, and rounding
    least = np.where(surely_on, x.least, np.minimum(x.least, 0.0) - slack)
    most = np.where(surely_on, x.most, np.maximum(x.most, 0.0) + slack + far)
    if slope != 0:
        least, most = least - slack * 2.0**-30, most + slack * 2.0**-30
    return Bounds(low, high, errors[0], errors[1], least, most)


@dataclass(frozen=True, eq=False)
class Picks:
    """Of y = max over w of x_w: lower x_chosen; upper x_chosen where `certain`, else the constant `height`."""

    chosen: NDArray[np.int64]
    certain: Flags
    height: Floats
    height_error: Floats
    low_doubt: Floats
    bottom: Floats
    ceiling: Floats
    """Of the relaxed values of what may be chosen, the least and the greatest."""
    open: Flags
    """Where it may be the recipe's choice that is taken here as certain, or as uncertain, or another."""

    def high_doubt(self, above: Floats, error: Floats, reach: Floats | float = 0.0) -> Floats:
        """From above, where a constant known up to `error` bounds y, and what may be added to it: at most `reach`."""
        spread = np.maximum(self.ceiling, above + error + reach) - np.minimum(self.bottom, above - error)
        return np.asarray((np.where(self.open, spread, 0.0) + error) * SLOP)

    def doubt_below(self, line: Below) -> Floats:
        """From below: `low_doubt`, but where a line takes the place of x_chosen unless that is certain."""
        above, under = line.start + line.error, line.start - line.reach - line.error
        spread = np.maximum(self.ceiling, above) - np.minimum(self.bottom, under)
        own = np.where(self.open, spread, np.where(self.certain, 0.0, line.error))
        return np.where(line.there, own * SLOP, self.low_doubt)


@dataclass(frozen=True, eq=False)
class Above:
    """Of what counts swaps (counted_lines): beta [B, E], and what each swap adds [B, E, swaps]; errors [B, E] of
    beta, and of what the swaps of a region add together."""

    beta: Floats
    gains: Floats
    error: Floats
    gains_error: Floats
    reach: Floats
    """[B, E]: the most that the swaps of a region can add."""


@dataclass(frozen=True, eq=False)
class Taken:
    """Roots that are taken (taken_roots), for n of the elements of a batch of regions; their first roots are stairs."""

    there: Flags
    """[B, E]: of which elements."""
    low: Floats
    low_error: Floats
    """[B, E]: l of all elements, and how far it can be off."""
    start: Floats
    """[n]: v_1, or l."""
    stairs: tuple[NDArray[np.int64], NDArray[np.int64], Floats]
    """Of every stair the number of its element among the n; the column of the cut; how far it is to the next."""
    error: Floats
    """[n]: of v_1 and what the swaps of a region take, together."""


@dataclass(frozen=True, eq=False)
class Below:
    """Lower lines: start [B, E], and what each swap takes [B, E, swaps], where they are `there`; the error [B, E] of
    both together, and the most that the swaps of a region can take."""

    there: Flags
    start: Floats
    falls: Floats
    error: Floats
    reach: Floats


@dataclass(frozen=True, eq=False)
class CountingLines:
    """Of rectifiers: `lines` but for the elements that count swaps from above or from below, where they are 0."""

    lines: Lines
    upward: Flags
    above: Above
    downward: Flags
    below: Below | None

    def beyond(self, values: Floats) -> tuple[Floats, Floats]:
        """[B, R]: what the lower ones add to the constants of functions with coefficients [B, R, E]; [B, R, swaps]:
        how far each swap lowers these functions."""
        falls = np.where(self.upward[:, None], -np.minimum(values, 0.0), 0.0) @ self.above.gains
        if self.below is None:
            return np.zeros(values.shape[:2]), falls
        rising = np.where(self.downward[:, None], np.maximum(values, 0.0), 0.0)
        return np.asarray((rising @ self.below.start[:, :, None])[..., 0]), falls + rising @ self.below.falls


def counting_lines(x: Bounds, lines: Lines, there: Flags, above: Above, below: Below | None) -> CountingLines:
    """Of rectifiers of which those that are `there` have a height: where they are not stable these lines take the place
    of the others. Where they may be stable, the recipe's may be x, slope x or the one that counts: X >= |relaxed x|, or
    what that one reaches, is no less than any of them, and twice the greater no less than a difference.
    """
    settled, edge = stability(x)
    unstable = (x.low < 0) & (x.high > 0)
    far = np.maximum(np.abs(x.least), np.abs(x.most))

    def doubt(own: Flags, start: Floats, error: Floats, reach: Floats, otherwise: Floats) -> Floats:
        apart = 2 * np.maximum(far, np.abs(start) + error + reach)
        found = np.where(settled, 0.0, np.where(edge, apart, error))
        return np.where(own, found * SLOP, otherwise)

    error = above.error + above.gains_error
    high = doubt(there, above.beta, error, above.reach, lines.high_doubt)
    upward, downward, low = there & unstable, np.zeros_like(there), lines.low_doubt
    if below is not None:
        low = doubt(below.there, below.start, below.error, below.reach, low)
        downward = below.there & unstable
    lower, upper = np.where(downward, 0.0, lines.lower), np.where(upward, 0.0, lines.upper)
    found = Lines(lower, upper, np.where(upward, above.beta, lines.raised), low, high)
    return CountingLines(found, upward, above, downward, below)


def maximum_picks(x: Bounds, repeated: Flags) -> Picks:
    """Windows in the order of the recipe; `repeated` [outputs, width] are those that are the element before once more.

    Other elements whose low bound may be the greatest are candidates: between the relaxed values of two candidates lies
    no more than the range that holds both.
    """
    low, high, low_error, high_error, least, most = (part.reshape(len(x.low), *repeated.shape) for part in x.parts)
    low, high = (np.where(repeated, -np.inf, bound) for bound in (low, high))
    width = low.shape[2]
    chosen = low.argmax(axis=2)

    def of_chosen(array: Floats) -> Floats:
        return np.take_along_axis(array, chosen[:, :, None], axis=2)

    best, best_error = of_chosen(low), of_chosen(low_error)
    later = np.arange(width) > chosen[:, :, None]
    candidates = low + low_error >= best - best_error
    tied = (low == best) & (low_error == 0) & (best_error == 0) & later
    np.put_along_axis(tied, chosen[:, :, None], True, axis=2)  # itself
    candidates &= ~tied
    several = np.asarray(candidates.any(axis=2))
    others, other_errors = high.copy(), high_error.copy()
    np.put_along_axis(others, chosen[:, :, None], -np.inf, axis=2)
    certain = others.max(axis=2) <= best[:, :, 0]
    unsettled = ((others + other_errors).max(axis=2) > (best - best_error)[:, :, 0]) & (
        (others - other_errors).max(axis=2) <= (best + best_error)[:, :, 0]
    )
    height, height_error = high.max(axis=2), high_error.max(axis=2)
    chosen_or_candidate = candidates.copy()
    np.put_along_axis(chosen_or_candidate, chosen[:, :, None], True, axis=2)
    bottom = np.where(chosen_or_candidate, least, np.inf).min(axis=2)
    ceiling = np.where(chosen_or_candidate, most, -np.inf).max(axis=2)
    low_doubt = np.where(several, ceiling - bottom, 0.0)
    several &= ~surely_apart(others, other_errors, high, high_error, low + low_error, chosen, several)
    return Picks(chosen, certain, height, height_error, low_doubt * SLOP, bottom, ceiling, several | unsettled)


def surely_apart(
    others: Floats,
    other_errors: Floats,
    high: Floats,
    high_error: Floats,
    low: Floats,
    chosen: NDArray[np.int64],
    asked: Flags,
) -> Flags:
    """[B, outputs], where asked: whichever of a window is chosen, the u of another is above its l [B, outputs, width],
    errors included: the two greatest u are above all l."""
    rows = np.nonzero(asked)
    result = np.zeros(asked.shape, dtype=np.bool_)
    if not len(rows[0]):
        return result
    surely = others[rows] - other_errors[rows]
    at = np.arange(len(surely))
    surely[at, chosen[rows]] = high[(*rows, chosen[rows])] - high_error[(*rows, chosen[rows])]
    if surely.shape[1] > 1:
        second = np.partition(surely, -2, axis=1)[:, -2]
        result[rows] = second > low[rows].max(axis=1)
    return result
