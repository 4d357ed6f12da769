"""Splits Omega_r into cells, by words only, until each is all robust, all broken or small enough to enumerate.

A cell is: some swaps made, the places before `start` decided, at most `left` swaps among the others. Its sentences are
counted by elementary symmetric polynomials; cells never overlap, and together they are the space. A cell is settled by
linear bounds of the margins: robust when they stay positive against every rival, broken when one rival's stays
negative. Otherwise it is split at its first place: the original stays, or one of the alternatives takes its place.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.sentence_counts import suffix_counts, up_to

from ..engines.protocol import Budget
from .judging import GUARD, Jury

Array = NDArray[Any]
Kind = Literal["open", "robust", "broken", "enumerated", "split"]

SMALL = 256
"""Cells of at most this many sentences are enumerated: bounding their parts would cost more, here and in checking."""
PARTS = 512
"""Cells bounded or enumerated between two looks at the clock, about."""
BLOCK_CELLS = 1 << 17
"""Numbers in one block of values at the cut: it stays in the second-level cache."""
SUFFIXES = 64
"""Lists of the sentences of small cells that are kept."""


@dataclass(eq=False)
class Cell:
    """`path` holds the swaps made, as (place, choice); `kind` says how it was settled, `rival` which one breaks it."""

    path: tuple[tuple[int, int], ...]
    start: int
    left: int
    count: int
    kind: Kind = "open"
    rival: int | None = None
    stay: Cell | None = None
    swapped: list[Cell] = field(default_factory=list)
    robust: int = 0
    """Of the sentences of an enumerated cell."""
    infirm: int = 0
    """Of these, sentences whose answer rounding may change: those that are not firm (judging.py)."""

    @property
    def children(self) -> Iterator[Cell]:
        if self.stay is not None:
            yield self.stay
        yield from self.swapped


@dataclass(frozen=True)
class Tally:
    """Sentences of a space, by what is known of them over the reals; `infirm`: rounding may change the answer."""

    robust: int = 0
    broken: int = 0
    open: int = 0
    infirm: int = 0

    @property
    def total(self) -> int:
        return self.robust + self.broken + self.open


@dataclass(frozen=True, eq=False)
class Suffix:
    """The choices of a cell of this start and left: swaps [n, left] by number, -1 for none, and their sums."""

    swaps: Array
    sums: NDArray[np.float32]


@dataclass(eq=False)
class Partition:
    """The cells of one query and radius, refined step by step; `root` holds what was done so far."""

    query: Query
    radius: int
    most: float = float("inf")
    """Sentences that may be enumerated."""
    evaluations: int = 0
    bounded: int = 0
    suffixes: dict[tuple[int, int], Suffix] = field(default_factory=dict)
    waiting: list[tuple[int, int, Cell]] = field(default_factory=list)
    """Open cells, the one with most sentences first."""
    made: int = 0

    @cached_property
    def differences(self) -> Differences:
        return Differences.of(self.query)

    @cached_property
    def k(self) -> int:
        return Omega(self.query.space, self.radius).most

    @cached_property
    def places(self) -> Places:
        """The place first whose word can move a margin most."""
        differences = self.differences
        places = Places.of(differences)
        if not places.count:
            return places
        original = differences.margins(differences.base[None])
        moved = np.zeros((len(differences.positions) + 1, len(self.query.rivals)))
        for first in range(0, len(differences.positions), PARTS):
            part = slice(first, min(first + PARTS, len(differences.positions)))
            moved[part] = differences.margins(differences.base + differences.rows[part]) - original
        at = moved[places.swaps]  # the 0 at the end stands for no swap
        spread = (at.max(axis=1, initial=0.0) - at.min(axis=1, initial=0.0)).max(axis=1)
        return places.reordered(np.argsort(-spread, kind="stable"))

    @cached_property
    def table(self) -> list[list[int]]:
        """Number of sentences with exactly j swaps among the places from i on."""
        return suffix_counts(self.places.there.sum(axis=1).tolist(), self.k)

    @cached_property
    def upto(self) -> list[list[int]]:
        """The same with at most j swaps."""
        return up_to(self.table)

    @cached_property
    def jury(self) -> Jury:
        return Jury(self.differences, self.k)

    @cached_property
    def thresholds(self) -> Array:
        """[rivals]: what the bound of a margin must exceed, so that every sentence of a settled cell is firm."""
        return self.jury.rounding + GUARD * self.jury.double

    @cached_property
    def below(self) -> tuple[LinearBounds, ...]:
        """Lower bounds of the margins against every rival."""
        return tuple(LinearBounds(self.places, rival, self.k) for rival in range(len(self.query.rivals)))

    @cached_property
    def above(self) -> tuple[LinearBounds, ...]:
        """Lower bounds of every rival's lead over the label."""
        return tuple(LinearBounds(self.mirrored(rival), 0, self.k) for rival in self.query.rivals)

    def mirrored(self, rival: int) -> Places:
        query = replace(self.query, label=rival, rivals=(self.query.label,))
        return Places(replace(self.differences, query=query), self.places.swaps)

    @cached_property
    def root(self) -> Cell:
        return self.cell((), 0, self.k)

    def cell(self, path: tuple[tuple[int, int], ...], start: int, left: int) -> Cell:
        return Cell(path, start, left, self.upto[start][left])

    def run(self, budget: Budget) -> None:
        """Settle cells until all are, or the time is up."""
        if not self.made:
            self.settle([self.root])
        while self.waiting and not budget.spent and self.evaluations < self.most:
            parents, parts = [], 0
            while self.waiting and parts < PARTS:
                cell = heapq.heappop(self.waiting)[2]
                parents.append(cell)
                parts += self.places.swaps.shape[1] + 1
            self.settle([child for cell in parents for child in self.split(cell)])
        budget.evaluations += self.evaluations

    def split(self, cell: Cell) -> list[Cell]:
        place = cell.start
        cell.kind = "split"
        cell.stay = self.cell(cell.path, place + 1, cell.left)
        for choice in range(int(self.places.there[place].sum())):
            cell.swapped.append(self.cell((*cell.path, (place, choice)), place + 1, cell.left - 1))
        return list(cell.children)

    def settle(self, cells: list[Cell]) -> None:
        """Settle these cells, or put them on the heap."""
        large = [cell for cell in cells if cell.count > SMALL]
        if large:
            self.bound(large)
        small = [cell for cell in cells if cell.count <= SMALL]
        for (start, left), some in grouped(small):
            self.enumerate(start, left, some)
        for cell in cells:
            self.made += 1
            if cell.kind == "open":
                heapq.heappush(self.waiting, (-cell.count, self.made, cell))

    def bound(self, cells: list[Cell]) -> None:
        states = self.states(cells)
        start = np.array([cell.start for cell in cells])
        left = np.array([cell.left for cell in cells])
        self.bounded += len(cells)
        robust = np.ones(len(cells), dtype=bool)
        for rival, bounds in enumerate(self.below):
            robust &= bounds.low(states, start, left) > self.thresholds[rival]
        for number in np.flatnonzero(robust):
            cells[number].kind = "robust"
        for rival, bounds in enumerate(self.above):
            rest = np.array([number for number, cell in enumerate(cells) if cell.kind == "open"], dtype=np.int64)
            if not len(rest):
                return
            broken = bounds.low(states[rest], start[rest], left[rest]) > self.thresholds[rival]
            for number in rest[broken]:
                cells[number].kind, cells[number].rival = "broken", self.query.rivals[rival]

    def states(self, cells: Iterable[Cell]) -> Array:
        base, rows = self.differences.base, self.places.rows
        return np.array([base + sum(rows[place, choice] for place, choice in cell.path) for cell in cells])

    def enumerate(self, start: int, left: int, cells: list[Cell]) -> None:
        """Every sentence of small cells of one kind, in blocks."""
        suffix = self.suffix(start, left)
        size = len(suffix.sums)
        states = self.states(cells).astype(np.float32)
        step = max(1, BLOCK_CELLS // max(1, self.differences.width * size))
        for first in range(0, len(cells), step):
            some = cells[first : first + step]
            cut = (states[first : first + step, None, :] + suffix.sums[None]).reshape(len(some) * size, -1)
            self.evaluations += len(cut)

            def swaps(rows: Array, some: list[Cell] = some) -> Array:
                made = np.full((len(rows), self.k), -1)
                made[:, : suffix.swaps.shape[1]] = suffix.swaps[rows % size]
                for number, row in enumerate(rows):
                    path = [int(self.places.swaps[at]) for at in some[row // size].path]
                    made[number, self.k - len(path) :] = path
                return made

            found = self.jury.decide(cut, swaps)
            robust = found.robust.reshape(len(some), size).sum(axis=1)
            infirm = (~found.firm).reshape(len(some), size).sum(axis=1)
            for cell, good, soft in zip(some, robust.tolist(), infirm.tolist(), strict=True):
                cell.kind, cell.robust, cell.infirm = "enumerated", good, soft

    def suffix(self, start: int, left: int) -> Suffix:
        if (start, left) not in self.suffixes:
            if len(self.suffixes) >= SUFFIXES:
                self.suffixes.pop(next(iter(self.suffixes)))
            made = list(self.combinations(start, left))
            swaps = np.full((len(made), left), -1)
            for row, chosen in enumerate(made):
                swaps[row, : len(chosen)] = chosen
            self.suffixes[start, left] = Suffix(swaps, self.jury.rows[swaps].sum(axis=1, dtype=np.float32))
        return self.suffixes[start, left]

    def combinations(self, start: int, left: int) -> Iterator[tuple[int, ...]]:
        """All sets of at most `left` swaps at different places from `start` on."""
        yield ()
        if left:
            for place in range(start, self.places.count):
                for number in self.places.swaps[place][self.places.there[place]].tolist():
                    for more in self.combinations(place + 1, left - 1):
                        yield (number, *more)

    def cells(self) -> Iterator[Cell]:
        """All cells, every one before those that it was split into."""
        stack = [self.root]
        while stack:
            cell = stack.pop()
            yield cell
            stack.extend(reversed(list(cell.children)))

    def tally(self) -> Tally:
        robust = broken = open = infirm = 0
        for cell in self.cells():
            match cell.kind:
                case "robust":
                    robust += cell.count
                case "broken":
                    broken += cell.count
                case "open":
                    open += cell.count
                case "enumerated":
                    robust += cell.robust
                    broken += cell.count - cell.robust
                    infirm += cell.infirm
                case "split":
                    pass
        return Tally(robust, broken, open, infirm)


def grouped(cells: Iterable[Cell]) -> list[tuple[tuple[int, int], list[Cell]]]:
    """By start and left."""
    found: dict[tuple[int, int], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.start, cell.left), []).append(cell)
    return sorted(found.items())
