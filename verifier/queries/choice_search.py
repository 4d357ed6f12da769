"""A search over inputs with a choice: rows force sides, and what a conflict did not rest on is left out of the tree.

Sound and, where the rows say all that the atoms do, complete; elsewhere what remains is left to the other searches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from swapproof.encodings.network import Floats, Indices

from .ascent import ascended, first_multipliers
from .input_choices import Choices
from .query_bounds import InputRegions, QueryBounds, joined
from .question import Question
from .search import SearchOutcome
from .search_tree import SLOPES, TreeRecord

if TYPE_CHECKING:
    from .input_witness import Deployed

LIKELY = 5.0
"""How many times as much a row counts that is one decided input closer to a conflict."""
STEPS = 8
"""Of ascent for a leaf of the certificate."""
LEAVES = 128
"""Certified together."""


@dataclass(frozen=True)
class Broken:
    """A leaf: this row is above 0, given the sides that others forced (place, side, row), the last one first."""

    row: int
    forced: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Parted:
    """A choice, by its place, and what became of its sides."""

    place: int
    left: Broken | Parted
    right: Broken | Parted


Refutation = Broken | Parted
Reached = tuple[Refutation, frozenset[int]]
"""A tree, and the choices above it that it rests on."""


@dataclass(eq=False)
class Level:
    """A decision: `sides` [c] are -1, 1 or 0 (open), `forced` what rows forced since (place, side, row)."""

    sides: Indices
    sums: Floats
    forced: list[tuple[int, int, int]]
    place: int = -1
    side: int = 0
    first: Reached | None = None


def search_choices(
    question: Question, found: Choices, bounds: QueryBounds, deployed: Deployed, until: float, record: TreeRecord | None
) -> SearchOutcome:
    """unsat where all is refuted (and, with `record`, written down); unknown where something remains."""
    count = len(found.inputs)
    levels = [Level(np.zeros(count, dtype=np.int64), found.base.copy(), [])]
    conflict = propagated(found, levels[-1])
    visited = 1
    while True:
        if time.monotonic() > until:
            return SearchOutcome("timed-out", None, visited)
        if conflict is None:
            level = levels[-1]
            if level.sides.all():
                return remaining(question, found, level.sides, deployed, visited)
            level.place, level.side = chosen(found, level)
            levels.append(decided(found, level, level.side))
        else:
            reached = broken(found, levels, conflict)
            while True:
                levels.pop()
                if not levels:
                    return written(question, found, bounds, reached[0], record, visited)
                level = levels[-1]
                if level.place not in reached[1]:
                    continue
                if level.first is None:
                    level.first = reached
                    levels.append(decided(found, level, -level.side))
                    break
                parts = (level.first, reached) if level.side < 0 else (reached, level.first)
                both = (parts[0][1] | parts[1][1]) - {level.place}
                reached = Parted(level.place, parts[0][0], parts[1][0]), both
        conflict = propagated(found, levels[-1])
        visited += 1


def decided(found: Choices, level: Level, side: int) -> Level:
    """Below a decision."""
    sides = level.sides.copy()
    sides[level.place] = side
    return Level(sides, level.sums + (found.lefts if side < 0 else found.rights)[:, level.place], [])


def propagated(found: Choices, level: Level) -> int | None:
    """A row above 0, or None once nothing more is forced."""
    while True:
        worst = int(level.sums.argmax())
        if level.sums[worst] > 0:
            return worst
        open_places = level.sides == 0
        room = -level.sums[:, None]
        lefts, rights = (found.lefts > room) & open_places, (found.rights > room) & open_places
        to_left = np.flatnonzero(rights.any(axis=0))
        to_right = np.flatnonzero(lefts.any(axis=0) & ~rights.any(axis=0))
        if not len(to_left) and not len(to_right):
            return None
        for places, side, rows, gains in ((to_left, -1, rights, found.lefts), (to_right, 1, lefts, found.rights)):
            reasons = rows[:, places].argmax(axis=0)
            level.forced += zip(places.tolist(), [side] * len(places), reasons.tolist(), strict=True)
            level.sides[places] = side
            level.sums = level.sums + gains[:, places].sum(axis=1)


def chosen(found: Choices, level: Level) -> tuple[int, int]:
    """The choice that most rows near a conflict are about, and the side that breaks fewer."""
    room = np.maximum(-level.sums, 0.0)[:, None]
    scores = []
    for gains in (found.lefts, found.rights):
        with np.errstate(divide="ignore"):
            near = np.where(gains > 0, LIKELY ** -np.minimum(room / gains, 300.0), 0.0)
        scores.append(near.sum(axis=0))
    left, right = scores
    value = np.where(level.sides == 0, (left + 1e-9) * (right + 1e-9) * 1024 + left + right, -1.0)
    place = int(value.argmax())
    return place, -1 if left[place] < right[place] else 1


def broken(found: Choices, levels: list[Level], conflict: int) -> Reached:
    """The leaf, and the decisions it rests on."""
    sides = levels[-1].sides.copy()
    rests = resting(found, sides, conflict)
    forced = []
    for level in reversed(levels):
        for place, side, row in reversed(level.forced):
            sides[place] = 0
            if place in rests:
                forced.append((place, side, row))
                rests = (rests - {place}) | resting(found, sides, row)
    return Broken(conflict, tuple(forced)), rests


def resting(found: Choices, sides: Indices, row: int) -> frozenset[int]:
    """The decided choices that a row reads."""
    gains = np.where(sides < 0, found.lefts[row], np.where(sides > 0, found.rights[row], 0.0))
    return frozenset(np.flatnonzero(gains > 0).tolist())


def combined(found: Choices, leaf: Broken) -> tuple[dict[int, float], float]:
    """Multiples of rows whose sum does not read what was forced; how much it reads of anything."""
    shares = {leaf.row: 1.0}
    reads = found.matrix[leaf.row].copy()
    for place, _, row in leaf.forced:
        share = abs(reads[place] / found.matrix[row, place])
        shares[row] = shares.get(row, 0.0) + share
        reads += share * found.matrix[row]
    return shares, float(np.abs(reads).max())


def split_up(leaf: Broken) -> Refutation:
    """The same without sums: each forced side is a choice whose other side breaks its row."""
    tree: Refutation = Broken(leaf.row)
    for place, side, row in leaf.forced:
        tree = Parted(place, tree, Broken(row)) if side < 0 else Parted(place, Broken(row), tree)
    return tree


def remaining(question: Question, found: Choices, sides: Indices, deployed: Deployed, visited: int) -> SearchOutcome:
    """All sides are chosen and no row is broken: the point where the inputs lie at their ends may be an answer."""
    point = (question.low + question.high) / 2
    point[found.inputs] = np.where(sides < 0, question.low[found.inputs], question.high[found.inputs])
    witness = deployed.witness(question.case, point)
    return SearchOutcome("unknown" if witness is None else "sat", witness, visited)


def written(
    question: Question,
    found: Choices,
    bounds: QueryBounds,
    tree: Refutation,
    record: TreeRecord | None,
    visited: int,
) -> SearchOutcome:
    """unsat, its tree in the record; unknown where linear bounds cannot say what the rows do."""
    if record is None:
        return SearchOutcome("unsat", None, visited)
    shared = np.flatnonzero((bounds.stack.layers[0].weights[0] != 0).sum(axis=1) != 1)
    waiting: list[tuple[Refutation, InputRegions]] = [(tree, bounds.whole)]
    while waiting:
        leaves: list[tuple[Broken, InputRegions]] = []
        while waiting and len(leaves) < LEAVES:
            part, region = waiting.pop()
            if isinstance(part, Broken):
                leaves.append((part, region))
                continue
            places, at = found.inputs[[part.place]], found.at[[part.place]]
            left, right = record.halved(region.nodes, places, at)
            low, high = region.low.copy(), region.high.copy()
            low[0, places], high[0, places] = at[0], at[0]
            waiting.append((part.left, replace(region, high=high, nodes=left)))
            waiting.append((part.right, replace(region, low=low, nodes=right)))
        regions = joined([region for _, region in leaves])
        bounds.refresh(regions)
        start = first_multipliers(regions, bounds.all_lines(regions), len(question.atoms))
        start.slopes[0][:, shared] = 0.0
        for place, (leaf, _) in enumerate(leaves):
            shares, reads = combined(found, leaf)
            unit = 2.0 ** np.ceil(np.log2(max(shares.values())))
            for row, share in shares.items():
                if found.neurons[row] >= 0:
                    start.slopes[0][place, found.neurons[row]] = share / unit
            start.weights[place] = np.where(found.bounding, 1.0, max(1.0, reads / unit))
        start.weights /= start.weights.sum(axis=1, keepdims=True)
        best = ascended(bounds, question.atoms, regions, start, STEPS, SLOPES)
        holds = best.low > 0
        record.refuted(regions.take(holds), best.take(holds))
        for place in np.flatnonzero(~holds).tolist():
            leaf, region = leaves[place]
            if not leaf.forced:
                return SearchOutcome("unknown", None, visited)
            waiting.append((split_up(leaf), region))
    return SearchOutcome("unsat", None, visited, record=record)
