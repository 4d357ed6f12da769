"""Uniform samples of Omega_r, or of what a count left open, evaluated by differences; draws.py says how."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.incremental import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.space import SwapSpace

from ..engines.protocol import Budget
from ..replay import Replay
from .cells import BLOCK_CELLS, Partition
from .draws import drawn
from .judging import Jury

Array = NDArray[Any]
AT_ONCE = 1 << 14
"""Sentences whose swaps are worked out together."""
BATCH = 1024
"""Sentences given to onnxruntime together."""


@dataclass(frozen=True)
class Sample:
    """Of `drawn` sentences `robust` keep the label; `ambiguous` ones, which rounding decides, are not among them."""

    drawn: int
    robust: int
    ambiguous: int

    @property
    def complete(self) -> bool:
        return self.drawn > 0


def sampled(differences: Differences, radius: int, seed: bytes, count: int, budget: Budget) -> Sample:
    """The first `count` samples of Omega_r; a sample counts as robust only if the deployed model must agree."""
    omega = Omega(differences.query.space, radius)
    numbering = swap_numbers(differences, differences.query.space.swappable)

    def swaps(numbers: Array) -> Array:
        return compact(numbering, omega.choices(numbers), omega.most)

    return judged(Jury(differences, omega.most), drawn(seed, omega.total, count), swaps, budget)


def sampled_deployed(
    replay: Replay, space: SwapSpace, label: int, radius: int, seed: bytes, count: int, budget: Budget
) -> Sample:
    """The first `count` samples of Omega_r, judged by onnxruntime in batches."""
    omega = Omega(space, radius)
    seen = robust = 0
    for block in blocks(drawn(seed, omega.total, count), BATCH):
        if budget.spent:
            break
        robust += int((replay.answers(omega.sentences(block)) == label).sum())
        seen += len(block)
    budget.evaluations += seen
    return Sample(seen, robust, 0)


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


def sampled_open(jury: Jury, cells: Sequence[Remainder], seed: bytes, count: int, budget: Budget) -> Sample:
    """The first `count` samples of the sentences of these cells."""
    space = jury.differences.query.space
    omegas = [cell.omega(space) for cell in cells]
    ends = list(accumulate(omega.total for omega in omegas))

    def swaps(numbers: Array) -> Array:
        found = np.full((len(numbers), jury.swaps), -1)
        owner = np.array([bisect_right(ends, number) for number in numbers.tolist()], dtype=np.int64)
        for which in np.unique(owner):
            rows = np.flatnonzero(owner == which)
            omega, cell = omegas[which], cells[which]
            first = ends[which] - omega.total
            inner = np.array([number - first for number in numbers[rows].tolist()], dtype=omega.dtype)
            numbering = swap_numbers(jury.differences, cell.free)
            made = compact(numbering, omega.choices(inner), omega.most)
            found[rows, : made.shape[1]] = made
            found[rows, made.shape[1] : made.shape[1] + len(cell.path)] = cell.path
        return found

    return judged(jury, drawn(seed, ends[-1], count), swaps, budget)


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


def judged(jury: Jury, numbers: Iterable[Array], swaps: Callable[[Array], Array], budget: Budget) -> Sample:
    count = robust = ambiguous = 0
    for block in blocks(numbers, AT_ONCE):
        if budget.spent:
            break
        made = swaps(block)
        step = max(1, BLOCK_CELLS // max(1, jury.differences.width))
        for first in range(0, len(made), step):
            part = made[first : first + step]
            found = jury.decide(jury.cut(part), lambda rows, part=part: part[rows])  # type: ignore[misc]
            robust += int((found.robust & found.replayed).sum())
            ambiguous += int((~found.replayed).sum())
        count += len(made)
    budget.evaluations += count
    return Sample(count, robust, ambiguous)


def blocks(arrays: Iterable[Array], size: int) -> Iterator[Array]:
    for array in arrays:
        for first in range(0, len(array), size):
            yield array[first : first + size]
