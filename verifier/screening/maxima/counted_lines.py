"""Maxima and rectifiers that count swaps (FORMAT section 7) in float64, for many regions of one text, with errors.

    y <= beta + sum of G(s) over the free swaps s,   G(s) = max over roots of max(0, d(s) - D min(1, slack / S))

which is the recipe's, beta between the greatest number of the text itself, 0 if a rectifier is met, and the constant
bound: the greatest u of the window, or max(u, slope u) of a rectifier with these bounds. Where S <= slack no gain is
above 0. The share D min(1, slack / S), with 0 <= D <= S, moves by no more than slack, D and S do; where the S of this
arithmetic is off by eta, by no more than 2 eta. With e the error of an extreme of a root over a region, which is not
below that of a single d or D, nor of S, and with e' that of beta, a gain is known up to e (of d) + e (of D) + 2 e (of
S) + (e + e') (of slack): 8 e + 2 e' is more, and k + 8 units of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from swapproof.encodings.pools.counted_swaps import Roots, roots_of

from ..numbers.float64_rounding import GRID, SLOP, Floats
from ..numbers.region_extremes import Batch
from ..numbers.relaxed_lines import Above
from ..numbers.swap_moves import Indices


@dataclass(frozen=True, eq=False)
class Pairs:
    """Columns of the cut that a position moves, `local` among those it moves, where elements have them as roots."""

    local: Indices
    flat: Indices
    """Among all roots [E * most]."""
    starts: Indices
    """Where each element's begin."""
    elements: Indices


@dataclass(eq=False)
class Counting:
    """What is counted in one batch of regions."""

    batch: Batch
    known: dict[tuple[int, int], Pairs] = field(default_factory=dict)

    def roots(self, index: int) -> Roots:
        """Of a node that counts swaps."""
        found = roots_of(self.batch.network, index)
        if found is None:
            raise ValueError(f"node {index} does not count swaps")
        return found

    @cached_property
    def far(self) -> Floats:
        """[width]: the error of an extreme of an element of the cut, and of sums of what swaps add to it."""
        return self.batch.errors + self.batch.weight

    def least(self, coefficients: Floats, more: Floats) -> Floats:
        """[B, R]: the minimum over each region of functions that each swap lowers by `more` [B, R, swaps] besides."""
        return self.batch.least(coefficients, more)

    @property
    def roundings(self) -> int:
        """That what swaps add beside the cut meets where it is added up."""
        return 2 * self.batch.sets.k + 16

    def above(self, index: int, heights: Floats, highest: Floats, highest_error: Floats) -> Above:
        """Of a node with these heights [B, E], NaN where none is set: there its constant bound, `highest`."""
        batch, roots = self.batch, self.roots(index)
        width = len(self.far)
        columns = np.where(roots.columns < 0, width, roots.columns)
        nothing = np.full((len(heights), 1), -np.inf)
        own, most = (
            np.concatenate([end, nothing], axis=1)[:, columns] for end in (batch.forced_ends[1], batch.ends[1])
        )
        least = np.maximum(own.max(axis=2, initial=-np.inf), roots.floor)
        there = ~np.isnan(heights)
        raised = least + np.maximum(highest - least, 0.0) * np.where(there, heights, 1.0)
        beta = np.where(there, np.minimum(raised, highest), highest)
        exceeds = there[:, :, None] & (most > beta[:, :, None])
        # Where one of them is -inf there is no root.
        slack, rise = np.ones(own.shape), np.ones(own.shape)
        np.subtract(beta[:, :, None], own, out=slack, where=exceeds)
        np.subtract(most, own, out=rise, where=exceeds)
        part = np.minimum(np.maximum(slack, 0.0) / rise, 1.0).reshape(len(heights), -1)
        gains = self.gains(index, columns, part)
        far = np.append(self.far, 0.0)[columns].max(axis=1, initial=0.0)
        error = highest_error + np.where(there, far + 4 * GRID, 0.0)
        spare = batch.spare[:, None]
        gains_error = np.where(there, spare * (8 * far + 2 * error + (batch.sets.k + 8) * GRID), 0.0)
        return Above(beta, gains, error * SLOP, gains_error * SLOP, spare * gains.max(axis=2, initial=0.0))

    def gains(self, index: int, columns: Indices, part: Floats) -> Floats:
        """G [B, E, swaps], with shares `part` [B, E * most] of how far swaps can raise a root; 0 for forced swaps."""
        batch, sets = self.batch, self.batch.sets
        if columns.shape[1] == 1 and sets.moves.dense and columns.max(initial=0) < len(self.far):
            return self.gains_alone(columns[:, 0], part)
        cells, forced = batch.placed
        found = np.zeros((len(part), len(columns), int(sets.first[-1])))
        for i in range(cells.shape[1]):
            free = np.flatnonzero((cells[:, i] >= 0) & ~forced[:, i])
            pairs = self.pairs(index, columns, i)
            if not len(free) or not len(pairs.flat):
                continue
            distinct, which = np.unique(cells[free, i], return_inverse=True)
            raising = np.array([np.maximum(sets.reach(int(cell))[1], 0.0) for cell in distinct])[:, pairs.local]
            shares = part[np.ix_(free, pairs.flat)] * raising[which]
            steps = sets.moves.rows[i][:, pairs.local] - shares[:, None]
            best = np.maximum(np.maximum.reduceat(steps, pairs.starts, axis=2), 0.0)
            swaps = slice(sets.first[i], sets.first[i + 1])
            found[free[:, None], pairs.elements, swaps] = best.transpose(0, 2, 1)
        return found

    def gains_alone(self, columns: Indices, part: Floats) -> Floats:
        """The same, of elements with one root each, which every position moves: all positions at once."""
        sets = self.batch.sets
        cells, forced = self.batch.placed
        free = (cells >= 0) & ~forced
        distinct, which = np.unique(np.where(free, cells, -1), return_inverse=True)
        width = len(self.far)
        most = [np.zeros(width) if cell < 0 else np.maximum(sets.reach(int(cell))[1], 0.0) for cell in distinct]
        raising = np.array(most).reshape(-1, width)[:, columns]
        shares = part[:, None] * raising[which.reshape(cells.shape)]
        shares[~free] = np.inf
        found = np.repeat(shares, np.diff(sets.first), axis=1)
        np.subtract(sets.rows[:, columns], found, out=found)
        np.maximum(found, 0.0, out=found)
        return found.transpose(0, 2, 1)

    def pairs(self, index: int, columns: Indices, i: int) -> Pairs:
        if (index, i) not in self.known:
            touched = self.batch.sets.moves.touched[i]
            local = np.full(len(self.far) + 1, -1)
            local[touched] = np.arange(len(touched))
            found = local[columns].reshape(-1)
            flat = np.flatnonzero(found >= 0)
            elements, starts = np.unique(flat // max(1, columns.shape[1]), return_index=True)
            self.known[index, i] = Pairs(found[flat], flat, starts, elements)
        return self.known[index, i]
