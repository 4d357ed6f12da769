"""Linear bounds whose margin uses chosen slopes, and joint groups of neurons of the first nonlinear layer.

The bounds of the elements of a layer are those of `linear_bounds`; what is chosen counts for the margin alone:

    y = max(x, alpha x) >= a x for every a in [alpha, 1], where its coefficient is positive and it is not stable;
    sum over j in G of c_j y_j >= sum of c_j a_j x_j - T_G for first-layer neurons with negative coefficients,
    T_G = max over patterns d in {alpha, 1}^G of max over the region of the sum of |c_j| (d_j - a_j) x_j.

Any slopes and groups are sound, in every region; how to choose them is `slope_ascent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Rectifier
from .chosen_slopes import Multipliers, patterns
from .greatest_sums import leaving
from .linear_bounds import NO_HEIGHTS, ElementBounds, Heights, LinearBounds, Lines, Raised, Regions
from .relaxation import rectifier_lines
from .selection import Places
from .substitution import Coefficients

Array = NDArray[Any]


class RefinedBounds(LinearBounds):
    """The same regions and the same element bounds, the margin with these multipliers."""

    joining = None

    def __init__(
        self, places: Places, rival: int, k: int, multipliers: Multipliers, heights: Heights = NO_HEIGHTS
    ) -> None:
        self.multipliers = multipliers
        super().__init__(places, rival, k, heights)
        largest = max((2 ** len(members) for _, members in multipliers.groups), default=0)
        self.cells = max(self.cells, largest * places.swaps.size)

    def margin(self, regions: Regions) -> tuple[Array, Lines]:
        """Lower bounds [n], and the functions [n, 1] that give them but for the groups' excess."""
        bounds = ElementBounds(self, regions)
        margin = Margin(bounds, self.multipliers)
        bound, lines = bounds.at_cut(self.last, self.coefficients[None, None], margin.replace)
        return bounds.lowered(bound, lines)[:, 0] - margin.excess(), lines


class Margin:
    """One substitution of the margin: what its rectifiers are replaced by, and what the joint groups cost."""

    def __init__(self, bounds: ElementBounds, multipliers: Multipliers) -> None:
        self.bounds, self.multipliers = bounds, multipliers
        self.joined: dict[int, Array] = {}
        """Rectifier node -> [n, size]: |c| of the elements that were replaced together with their group, else 0."""

    def replace(self, index: int, given: Coefficients, beyond: list[Raised]) -> tuple[Coefficients, Array]:
        layer, chosen = self.bounds.network.nodes[index].layer, self.multipliers.slopes.get(index)
        if chosen is None or not isinstance(layer, Rectifier):
            return self.bounds.replace(index, given, beyond)
        low, high = self.bounds.of(self.bounds.network.nodes[index].inputs[0])
        low, high, chosen = given.at(low), given.at(high), given.at(chosen)
        grouped, coefficients = given.at(self.multipliers.grouped[index]) >= 0, given.values[:, 0]
        lower, upper, raised = rectifier_lines(layer.slope, low, high, chosen=np.where(grouped, -1.0, chosen))
        together = grouped & (coefficients < 0)
        if together.any():
            joined = Coefficients(np.where(together, -coefficients, 0.0), given.columns)
            self.joined[index] = joined.dense(self.bounds.network.nodes[index].size)
        line = np.where(together, chosen, np.where(coefficients >= 0, lower, upper))
        constant = np.where(together | (coefficients >= 0), 0.0, coefficients * raised).sum(axis=-1)
        return Coefficients((coefficients * line)[:, None], given.columns), constant[:, None]

    def excess(self) -> Array:
        """[n]: the sum of all T_G."""
        total = np.zeros(len(self.bounds.regions))
        for index, members in self.multipliers.groups:
            weights = self.joined.get(index)
            if weights is not None:
                total += self.of_group(index, weights[:, list(members)], members)
        return total

    def of_group(self, index: int, weights: Array, members: Sequence[int]) -> Array:
        """[n]: T_G; a neuron of one sign in a region has only one pattern there, so the neurons of one sign
        everywhere are left out of the patterns."""
        bounds, regions = self.bounds, self.bounds.regions
        network, linear = bounds.network, bounds.linear
        layer, source = network.nodes[index].layer, network.nodes[index].inputs[0]
        own = layer.slope if isinstance(layer, Rectifier) else 0.0
        low, high = (end[:, list(members)] for end in bounds.of(source))
        live = (weights > 0).any(axis=0)
        free = np.flatnonzero(live & ((low < 0) & (high > 0) & (weights > 0)).any(axis=0))
        fixed = np.flatnonzero(live & ~((low < 0) & (high > 0) & (weights > 0)).any(axis=0))
        slopes = self.multipliers.slopes[index][list(members)]
        bits = own + (1.0 - own) * patterns(len(free))
        functions = np.zeros((len(regions), len(bits), len(members)))
        functions[:, :, free] = bits - slopes[free]
        functions[:, :, fixed] = (np.where(low[:, fixed] >= 0, 1.0, own) - slopes[fixed])[:, None, :]
        functions *= weights[:, None, :]
        first = linear.differences.parts[source].start
        columns = first + np.array(members)
        base = (functions @ regions.states[:, columns, None])[:, :, 0]
        rows = linear.rows[:, :, columns]
        return np.asarray((base + greatest_rise(functions, rows, regions, linear.places)).max(axis=1))


def greatest_rise(functions: Array, rows: Array, regions: Regions, places: Places) -> Array:
    """[n, M]: the most that the swaps of each region add to functions [n, M, s] of values that swaps move by rows."""
    count, width, _ = rows.shape
    flat = rows.reshape(count * width, rows.shape[2])
    gains = (functions @ flat.T).reshape(*functions.shape[:2], count, width)
    total = np.zeros(functions.shape[:2])
    if regions.swapped is not None:
        own = np.take_along_axis(gains, regions.swapped[:, None, None, None], axis=2)[:, :, 0]
        total += np.where(regions.there(places)[:, None], own, -np.inf).max(axis=2)
    return total + leaving(np.maximum(gains.max(axis=3), 0.0), regions.start, regions.left)
