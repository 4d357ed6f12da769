"""Uniform samples of Omega_r, or of what a count left open, evaluated by differences; draws.py says how."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.space import SwapSpace

from ..engines.protocol import Budget
from .cells import BLOCK_CELLS, Partition
from .draws import drawn
from .judging import Jury
from .stopping import Sample, Stop

Array = NDArray[Any]
Classify = Callable[[NDArray[np.int64]], Any]
"""Token ids [batch, length] -> classes [batch]."""
AT_ONCE = 1 << 14
"""Sentences whose swaps are worked out together."""
BATCH = 64
"""Sentences given to a classifier together: more take longer each, in an LSTM or a transformer, and hide the clock."""


def sampled(
    differences: Differences, radius: int, seed: bytes, stop: Stop, budget: Budget, *, listing: bool = True
) -> Sample:
    """Of Omega_r; a sample counts as robust only if the deployed model must agree.

    `listing`: where there are no more sentences than are to be drawn, each is judged once instead.
    """
    omega = Omega(differences.query.space, radius)
    numbering = swap_numbers(differences, differences.query.space.swappable)

    def swaps(numbers: Array) -> Array:
        return compact(numbering, omega.choices(numbers), omega.most)

    jury = Jury(differences, omega.most)

    def judge(block: Array) -> tuple[int, int]:
        return judged(jury, swaps(block))

    if listing and stop.lists(omega.total):
        return stop.every(omega.total, judge, budget, AT_ONCE)
    return stop.draw(drawn(seed, omega.total, stop.most), judge, budget, AT_ONCE)


def sampled_deployed(
    classify: Classify,
    space: SwapSpace,
    label: int,
    radius: int,
    seed: bytes,
    stop: Stop,
    budget: Budget,
    batch: int = BATCH,
    *,
    listing: bool = True,
) -> Sample:
    """Of Omega_r, judged by any classifier in batches."""
    omega = Omega(space, radius)

    def judge(block: Array) -> tuple[int, int]:
        return int((classify(omega.sentences(block)) == label).sum()), 0

    if listing and stop.lists(omega.total):
        return stop.every(omega.total, judge, budget, batch)
    return stop.draw(drawn(seed, omega.total, stop.most), judge, budget, batch)


@dataclass(frozen=True)
class Remainder:
    """The sentences of an open cell: `path` holds swaps made, by number; at most `left` more at the `free` positions.

    The free positions ascend; their swaps are those of the whole space.
    """

    path: tuple[int, ...]
    free: tuple[int, ...]
    left: int

    def omega(self, space: SwapSpace) -> Omega:
        # A space of its own, in which a free position keeps its choices and no other position has any.
        return Omega(SwapSpace(tuple(space.choices[position] for position in self.free)), self.left)


def remainders(partition: Partition) -> list[Remainder]:
    """Of the open cells, in the order of the tree's leaves."""
    places = partition.places
    return [
        Remainder(
            tuple(int(places.swaps[at]) for at in cell.path),
            tuple(sorted(places.positions[cell.start :].tolist())),
            cell.left,
        )
        for cell in partition.cells()
        if cell.kind == "open"
    ]


def sampled_open(jury: Jury, cells: Sequence[Remainder], seed: bytes, stop: Stop, budget: Budget) -> Sample:
    """Of the sentences of these cells."""
    total, swaps = numbered(jury, cells)
    return stop.draw(drawn(seed, total, stop.most), lambda block: judged(jury, swaps(block)), budget, AT_ONCE)


def numbered(jury: Jury, cells: Sequence[Remainder]) -> tuple[int, Callable[[Array], Array]]:
    """How many sentences these cells have, and the swaps [n, most] of the sentences of these numbers."""
    differences = jury.differences
    # Thousands of cells share a few sets of free positions and swaps left: their sentences are made together.
    kinds = list(dict.fromkeys((cell.free, cell.left) for cell in cells))
    numbers_of_kinds = {kind: number for number, kind in enumerate(kinds)}
    omegas = [Remainder((), *kind).omega(differences.query.space) for kind in kinds]
    numberings = [swap_numbers(differences, free) for free, _ in kinds]
    kind_of = np.array([numbers_of_kinds[cell.free, cell.left] for cell in cells])
    totals = [omega.total for omega in omegas]
    ends = list(accumulate(totals[kind] for kind in kind_of))
    starts = [0, *ends[:-1]]
    longest = max(len(cell.path) for cell in cells)
    paths = np.array([[*cell.path, *[-1] * (longest - len(cell.path))] for cell in cells], dtype=np.int64)
    widest = max(omega.most for omega in omegas)

    def swaps(numbers: Array) -> Array:
        owner = np.array([bisect_right(ends, number) for number in numbers.tolist()], dtype=np.int64)
        inner = [number - starts[cell] for number, cell in zip(numbers.tolist(), owner, strict=True)]
        found = np.full((len(numbers), widest + longest), -1)
        found[:, widest:] = paths.reshape(len(cells), longest)[owner]
        for kind in np.unique(kind_of[owner]):
            rows, omega = np.flatnonzero(kind_of[owner] == kind), omegas[kind]
            choices = omega.choices(np.array([inner[row] for row in rows], dtype=omega.dtype))
            made = compact(numberings[kind], choices, omega.most)
            found[rows, : made.shape[1]] = made
        return np.asarray(-np.sort(-found, axis=1)[:, : jury.swaps])

    return ends[-1], swaps


def swap_numbers(differences: Differences, positions: Sequence[int]) -> Array:
    """[positions, choices]: the number of the swap that makes this choice; -1 for the original."""
    width = max([1, *(len(differences.query.space.choices[p]) for p in positions)])
    table = np.full((len(positions), width), -1)
    first = np.searchsorted(differences.positions, np.array(positions, dtype=np.int64))
    for row, position in enumerate(positions):
        count = len(differences.query.space.choices[position]) - 1
        table[row, 1 : count + 1] = first[row] + np.arange(count)
    return table


def compact(numbering: Array, choices: Array, most: int) -> Array:
    """[n, most]: the swaps of sentences given by their choices [n, positions], -1 filling up."""
    swaps = numbering[np.arange(len(numbering)), choices]
    if most == 0 or not len(numbering):
        return np.full((len(choices), most), -1)
    if most >= swaps.shape[1]:
        return swaps
    return np.asarray(-np.sort(-swaps, axis=1)[:, :most])  # a swap's number is not negative: the -1 go last


def judged(jury: Jury, swaps: Array) -> tuple[int, int]:
    """Of the sentences with these swaps: how many are certainly robust when deployed, how many rounding decides."""
    robust = ambiguous = 0
    step = max(1, BLOCK_CELLS // max(1, jury.differences.width))
    for first in range(0, len(swaps), step):
        part = swaps[first : first + step]
        found = jury.decide(jury.cut(part), lambda rows, part=part: part[rows])  # type: ignore[misc]
        robust += int((found.robust & found.replayed).sum())
        ambiguous += int((~found.replayed).sum())
    return robust, ambiguous
