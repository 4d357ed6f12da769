"""Better lower bounds of a whole conjunction: slopes, split multipliers and atom weights by projected ascent.

For weights g >= 0 of the atoms adding up to one, lower slopes a in [0, 1] and multipliers b >= 0 of the decided
phases, backward substitution gives a lower bound of sum g_k atom_k, and any such numbers give a valid one; if it is
above 0 the atoms cannot all be <= 0. Its slope in each of them comes from one forward pass: with x* the corner where
the bound is met and z* the inputs of the neurons along the chosen lines, d/da = max(c, 0) z*, d/db = -phase z*, and
d/dg_k = atom_k at x*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swapproof.encodings.bounds.normal_form import UNIT, Functions, applied
from swapproof.encodings.network import Floats, Indices

from .query_bounds import SLOP, TINY, InputLines, InputRegions, QueryBounds, Truths

RATE, FADING = 0.25, 0.97
"""The first step, in units of each multiplier's own scale, and the factor from step to step."""
BETAS = (0.9, 0.999)
SHARPEST = 1e-12


@dataclass(eq=False)
class Multipliers:
    """Slopes and split multipliers for each layer [n, size]; weights of the atoms [n, K]."""

    slopes: list[Floats]
    splits: list[Floats]
    weights: Floats

    def take(self, index: Indices | Truths | slice) -> Multipliers:
        return Multipliers(
            [part[index] for part in self.slopes], [part[index] for part in self.splits], self.weights[index]
        )


def joined(parts: list[Multipliers]) -> Multipliers:
    layers = range(len(parts[0].slopes))
    return Multipliers(
        [np.concatenate([part.slopes[i] for part in parts]) for i in layers],
        [np.concatenate([part.splits[i] for part in parts]) for i in layers],
        np.concatenate([part.weights for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class Ascended:
    """For each region the best bound [n], where it is met [n, inputs], and the linear function behind it."""

    low: Floats
    rounding: Floats
    """What was taken off it; without any rounding it is at most twice that higher."""
    corners: Floats
    given: list[Floats]
    """Coefficients of the neurons' outputs; below 0 the upper line is in use."""
    coefficients: Floats
    multipliers: Multipliers

    def take(self, index: Indices | Truths) -> Ascended:
        return Ascended(
            self.low[index],
            self.rounding[index],
            self.corners[index],
            [part[index] for part in self.given],
            self.coefficients[index],
            self.multipliers.take(index),
        )


def first_multipliers(regions: InputRegions, lines: InputLines, atoms: int) -> Multipliers:
    return Multipliers(
        [slope.copy() for slope in lines.lower],
        [np.zeros_like(slope) for slope in lines.lower],
        np.full((len(regions), atoms), 1.0 / atoms),
    )


def ascended(
    bounds: QueryBounds, atoms: Functions, regions: InputRegions, start: Multipliers, steps: int, parts: float = 0.0
) -> Ascended:
    """The best bounds met in so many steps; regions that are settled cost as much as the others.

    With `parts` they are bounds by slopes that are multiples of 1 / parts.
    """
    lines = bounds.all_lines(regions)
    is_open = [regions.open_neurons(i) for i in range(bounds.depth)]
    slopes = [np.where(o, a, low) for o, a, low in zip(is_open, start.slopes, lines.lower, strict=True)]
    splits = [np.where(p != 0, b, 0.0) for p, b in zip(regions.phases, start.splits, strict=True)]
    weights = start.weights
    best: Ascended | None = None
    atom_error = (SLOP * atoms.roundings * UNIT + bounds.unit(len(atoms))) * bounds.size(atoms) + TINY
    moments: list[tuple[Floats, Floats]] = []
    for step in range(1, steps + 1):
        used = [np.round(slope * parts) / parts if parts else slope for slope in slopes]
        down = bounds.descend(
            {j: (weights @ w)[:, None] for j, w in atoms.weights.items()},
            (weights @ atoms.bias)[:, None],
            (weights @ atom_error)[:, None],
            InputLines(lines.parts, used, lines.upper, lines.raised),
            [
                np.asarray(phases * split, dtype=np.float64)
                for phases, split in zip(regions.phases, splits, strict=True)
            ],
        )
        coefficients, given_at = down.coefficients[:, 0], [given[:, 0] for given in down.given]
        corners = bounds.corners(coefficients, regions)
        rounding = SLOP * down.error[:, 0]
        low = down.constant[:, 0] + (coefficients * corners).sum(axis=1) - rounding
        now = Ascended(low, rounding, corners, given_at, coefficients, Multipliers(used, splits, weights))
        best = now if best is None else better(best, now)
        if step == steps or (best.low > 0).all():
            break
        known = [corners]
        gradients: list[Floats] = []
        for i in range(1, bounds.depth + 1):
            z = applied(bounds.stack.layers[i - 1], known)
            given, o = given_at[i - 1], is_open[i - 1]
            known.append(np.where(given >= 0, used[i - 1] * z, lines.upper[i - 1] * z + lines.raised[i - 1]))
            gradients.append(np.where(o, np.maximum(given, 0.0) * z, 0.0))
            gradients.append(-regions.phases[i - 1] * z)
        gradients.append(applied(atoms, known))
        rate = RATE * FADING**step
        if not moments:
            moments = [(np.zeros_like(g), np.zeros_like(g)) for g in gradients]
        moves = []
        for place, gradient in enumerate(gradients):
            first, second = moments[place]
            first = BETAS[0] * first + (1 - BETAS[0]) * gradient
            second = BETAS[1] * second + (1 - BETAS[1]) * gradient**2
            moments[place] = first, second
            moves.append(
                rate * (first / (1 - BETAS[0] ** step)) / (np.sqrt(second / (1 - BETAS[1] ** step)) + SHARPEST)
            )
        slopes = [
            np.where(o, np.clip(a + m, 0.0, 1.0), a) for o, a, m in zip(is_open, slopes, moves[0:-1:2], strict=True)
        ]
        scale = [np.abs(given).mean(axis=1, keepdims=True) + SHARPEST for given in given_at]
        splits = [
            np.where(p != 0, np.maximum(b + s * m, 0.0), 0.0)
            for p, b, m, s in zip(regions.phases, splits, moves[1:-1:2], scale, strict=True)
        ]
        if len(atoms) > 1:
            weights = np.maximum(weights + moves[-1] / 4, 0.0)
            weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), SHARPEST)
    if best is None:
        raise ValueError("no step of ascent")
    return best


def better(old: Ascended, new: Ascended) -> Ascended:
    won = new.low > old.low
    column = won[:, None]

    def chosen(a: list[Floats], b: list[Floats]) -> list[Floats]:
        return [np.where(column, y, x) for x, y in zip(a, b, strict=True)]

    one, two = old.multipliers, new.multipliers
    return Ascended(
        np.where(won, new.low, old.low),
        np.where(won, new.rounding, old.rounding),
        np.where(column, new.corners, old.corners),
        chosen(old.given, new.given),
        np.where(column, new.coefficients, old.coefficients),
        Multipliers(
            chosen(one.slopes, two.slopes), chosen(one.splits, two.splits), np.where(column, two.weights, one.weights)
        ),
    )
