"""The recipe of the screening, in float64, on regions that are given as masks."""

from __future__ import annotations

import exact_recipe as exact
import numpy as np

from swapproof.encodings.query import Query
from swapproof.verifier.screening.form.tree_leaves import LINEAR, NONE, Cells, Leaf, Settings
from swapproof.verifier.screening.maxima.counted_lines import Counting
from swapproof.verifier.screening.maxima.taken_roots import Lowered, Lowering
from swapproof.verifier.screening.numbers.joint_groups import Groups, Number, Tables
from swapproof.verifier.screening.numbers.margins import Recipe
from swapproof.verifier.screening.numbers.region_extremes import Batch, Sets
from swapproof.verifier.screening.numbers.swap_moves import Moves
from swapproof.verifier.screening.numbers.values_beyond_cut import magnitudes


def recipe_of(query: Query, regions: list[exact.Region], number: Number) -> Recipe:
    """Of all regions together, each with its own number of swaps and multipliers; joint groups by such numbers."""
    most = max(region.k for region in regions)
    heights = any(region.heights for region in regions)
    moves = Moves.of(query)
    sizes = [len(query.space.choices[position]) for position in query.space.swappable]
    cells = Cells(sizes)
    for i, size in enumerate(sizes):
        cells.number(i, (1 << size) - 1)
    leaves = []
    for region in regions:
        row, forced = np.full(len(sizes), NONE, dtype=np.int32), []
        for i, position in enumerate(query.space.swappable):
            mask = region.masks[position]
            if not mask & 1:
                forced.append((i, cells.number(i, mask)))
            elif mask != 1:
                row[i] = cells.number(i, mask)
        free, rivals = cells.free_number(row), query.rivals
        joint = tuple((n, tuple(pairs)) for n, pairs in region.joint)
        leaves.append(
            Leaf(LINEAR, free, tuple(forced), rivals, Settings({**region.slopes, **region.heights}, joint), region.k)
        )
    sets = Sets(moves, cells, most)
    everything = Leaf(
        LINEAR, cells.free_number(np.arange(len(sizes), dtype=np.int32)), (), query.rivals, Settings(), most
    )
    low, high = Batch(sets, [everything]).ends
    reach = np.maximum(np.abs(low[0]), np.abs(high[0])) + moves.errors(most)
    reach = reach * (2 * most + 1) if heights else reach
    found = magnitudes(query.network, {index: reach[part] for index, part in moves.parts.items()})
    batch = Batch(sets, leaves)
    return Recipe(batch, found, Groups(Tables(sets, number), batch), Counting(batch), Lowered(batch, Lowering(sets)))
