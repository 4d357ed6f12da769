"""Which roots lower relaxations of maxima and rectifiers take (FORMAT section 7), in float64, for many regions at once.

The recipe takes roots in an order and leaves out those that share a lowering word with one taken before: an order that
float64 knows only up to its errors. Of one element in one region let E be no less than the error of any low_z and of
any e_z of its roots, nor than that of l', the greatest l of the window, or max(l, slope l) of a rectifier, which is not
below its l. E covers the rounding of a difference of these as well: it holds more than a hundred units of what is
subtracted. l' is not below the least value of any root over the region, so not below low_z of one that no word lowers,
nor below a constant. With near = 2 E and slack = 2 near:

* What is not more than `slack` above l' makes no difference: where the recipe goes on with such roots, low_z of all
  that it still takes is at most l' + slack + E; so l is, too, and each of them that is a stair is less than
  slack + 2 E above l.
* The root with the greatest number here, among those that share no lowering word for certain with one taken before, is
  the recipe's next if all others are `near` below it or more. If some are not, all of them may still be one number for
  certain (equal_elements.py, where no forced word moves them): then the first of them is the recipe's next. Otherwise
  the element is *unsettled*; so it is where it is in doubt whether some word lowers the root that is chosen.
* Of the j + 1-th root only low_z counts, which is l: known up to E whichever it is, if the greatest here is available.

So what is taken here above l' + slack is what the recipe takes, in its order; l and v_1 are known up to 2 slack. What a
swap takes, min(e_z, v_i - v_{i+1}) for the one root among those taken that it lowers, is known up to slack + 4 E, or
slack + 2 E where only the recipe has that root as a stair: 3 slack for each swap and 2 slack are more than that. Where
no root reaches l', l is l' itself. Of an unsettled element the line is l' here. With v the greatest number left then,
the recipe's l lies between l' - E and v + E. With v_1 the first that was taken, or v, its line lies between v_1 + E and
v_1 - E - spare (v_1 - l + E), both within spare (v_1 - l' + slack) + slack of l', as there is a swap to spare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.network import Affine, Network, Scaling

from ..form.unsure import Unsure
from ..numbers.equal_elements import names_at_cut
from ..numbers.float64_rounding import GRID, SLOP, Floats
from ..numbers.region_extremes import KEPT, Batch, Sets
from ..numbers.relaxed_lines import Below, Taken
from ..numbers.swap_moves import Indices
from .root_order import ordered_roots

Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]

WORD = 64
"""Positions in a number of `Bits`."""
SMALLEST = -1000
"""Products not below 2**SMALLEST do not become 0."""


@dataclass(eq=False)
class Lowering:
    """What is kept of one proof from batch to batch: which words lower which elements of the cut."""

    sets: Sets
    known: dict[int, tuple[Bits, Flags]] = field(default_factory=dict)
    cells: dict[int, tuple[Bits, Bits | None]] = field(default_factory=dict)

    @cached_property
    def words(self) -> int:
        return max(1, -(-len(self.sets.moves.touched) // WORD))

    @cached_property
    def names(self) -> Indices:
        """[width + 1]: elements of the cut with equal names are equal numbers in the text."""
        query = self.sets.moves.query
        return np.append(names_at_cut(query.network, query.space.original), -1)

    @cached_property
    def touching(self) -> Bits:
        """[width + 1, words]: which positions move an element."""
        bits = [np.uint64(1) << np.uint64(i % WORD) for i in range(len(self.nothing))]
        return self.laid([nothing + bit for nothing, bit in zip(self.nothing, bits, strict=True)])

    @cached_property
    def positions(self) -> Indices:
        """[places]: of the positions' touched elements laid end to end."""
        return np.repeat(np.arange(len(self.sets.moves.touched)), [len(own) for own in self.sets.moves.touched])

    @cached_property
    def drops(self) -> Floats:
        """[places, C]: how far swaps lower these elements, 0 where they do not."""
        moves = self.sets.moves
        found = np.zeros((len(self.positions), self.sets.allowed.shape[1]))
        start = 0
        for own, rows in zip(moves.touched, moves.rows, strict=True):
            found[start : start + len(own), : len(rows)] = np.maximum(-rows.T, 0.0)
            start += len(own)
        return found

    def laid(self, parts: Sequence[Bits | None]) -> Bits:
        """[width + 1, words] from the bits [touched] that each position has."""
        columns, found = self.sets.moves.columns, np.zeros((self.sets.moves.width + 1, self.words), dtype=np.uint64)
        for word in range(self.words):
            own = [None if i // WORD != word else part for i, part in enumerate(parts)]
            filled = [none if part is None else part for part, none in zip(own, self.nothing, strict=True)]
            every = np.concatenate([*filled, np.zeros(1, dtype=np.uint64)])
            for row in columns:
                found[:-1, word] |= every[row]
        return found

    def of_cell(self, cell: int) -> tuple[Bits, Bits | None]:
        """[touched]: the bit of its position where one of its swaps surely lowers an element, and where it may."""
        if cell not in self.cells:
            i, _ = self.sets.cells.listed[cell]
            falls, error = self.sets.reach(cell)[0], self.sets.moves.row_errors[i]
            bit, maybe = np.uint64(1) << np.uint64(i % WORD), np.abs(falls) <= error
            self.cells[cell] = (falls > error) * bit, maybe * bit if maybe.any() else None
        return self.cells[cell]

    def of_free(self, free: int) -> tuple[Bits, Flags]:
        """[width + 1, words] and [width + 1]: which of these positions surely lower an element, and where some may."""
        if free not in self.known:
            if len(self.known) * self.sets.moves.width > KEPT:
                self.known.clear()
            found = [(None, None) if cell < 0 else self.of_cell(int(cell)) for cell in self.sets.cells.rows[free]]
            surely, maybe = zip(*found, strict=True) if found else ((), ())
            vague: Flags = np.zeros(self.sets.moves.width + 1, dtype=np.bool_)
            if any(each is not None for each in maybe):
                vague = np.asarray(self.laid(maybe).any(axis=1))
            self.known[free] = self.laid(surely), vague
        return self.known[free]

    @cached_property
    def nothing(self) -> list[Bits]:
        return [np.zeros(len(elements), dtype=np.uint64) for elements in self.sets.moves.touched]


@dataclass(eq=False)
class Choice:
    """The roots of n elements of a batch, n = len(rows): regions `rows`, elements `elements`."""

    batch: Batch
    lowering: Lowering
    roots: Indices
    rows: Indices
    elements: Indices
    low: Floats
    """[n]: l'."""
    error: Floats
    """[n]: E."""

    def __post_init__(self) -> None:
        if not never_underflows(self.batch.network):
            raise Unsure("numbers so small that what lowers an element cannot be told")
        width = self.batch.sets.moves.width
        self.columns = np.where(self.roots < 0, width, self.roots)[self.elements]
        free, self.of = np.unique([leaf.free for leaf in self.batch.leaves], return_inverse=True)
        found = [self.lowering.of_free(int(each)) for each in free]
        self.bits = np.array([bits for bits, _ in found])
        self.vague = np.array([vague for _, vague in found])
        least = np.pad(self.batch.forced_ends[0], ((0, 0), (0, 1)), constant_values=-np.inf)
        self.left = least[self.rows[:, None], self.columns]
        """[n, roots]: low_z of those that are available."""
        self.highest = self.left.max(axis=1, initial=-np.inf)
        self.near, self.slack = 2 * self.error, 4 * self.error
        self.spare = self.batch.spare[self.rows]

    def made(self, most: Indices) -> Found:
        """With at most so many stairs [n]."""
        count, low, off = len(self.rows), self.low.copy(), 2 * self.slack
        levels = np.full((int(self.spare.max(initial=0)) + 1, count), np.nan)
        columns = np.zeros(levels.shape, dtype=np.int64)
        unsettled, active = np.zeros(count, dtype=np.bool_), np.arange(count)
        for step in range(len(levels)):
            left = self.left[active]
            best = left.argmax(axis=1) if left.shape[1] else np.zeros(len(active), dtype=np.int64)
            value = left[np.arange(len(active)), best] if left.shape[1] else np.full(len(active), -np.inf)
            above = value > self.low[active] + self.slack[active]
            active, best, value = active[above], best[above], value[above]
            if not len(active):
                break
            best, doubtful = self.settled(active, best, value, step)
            column = self.columns[active, best]
            doubtful |= self.vague[self.of[self.rows[active]], column]
            lost = active[doubtful]
            unsettled[lost] = True
            off[lost] += value[doubtful] - self.low[lost]
            active, column, value = active[~doubtful], column[~doubtful], value[~doubtful]
            ends = self.spare[active] == step
            low[active[ends]] = value[ends]
            active, column, value = active[~ends], column[~ends], value[~ends]
            levels[step, active], columns[step, active] = value, column
            self.block(active, column)
        return Found(low, off, levels, columns, unsettled).cut(self, most)

    def settled(self, active: Indices, best: Indices, value: Floats, step: int) -> tuple[Indices, Flags]:
        """The root that comes next in each, `best` having the greatest number here; and where that is not known, but of
        the last one it need not be."""
        left = self.left[active]
        left[np.arange(len(active)), best] = -np.inf
        least = value - self.near[active]
        doubtful = (left.max(axis=1, initial=-np.inf) >= least) & (self.spare[active] > step)
        at = np.flatnonzero(doubtful)
        if len(at):
            own = active[at]
            close, columns = self.left[own] >= least[at, None], self.columns[own]
            first = close.argmax(axis=1)
            names = self.lowering.names[columns]
            equal = names == names[np.arange(len(at)), first][:, None]
            moved = (self.lowering.touching[columns] & self.forced[self.rows[own], None]).any(axis=2)
            best = best.copy()
            best[at] = first
            doubtful[at] = (close & ~(equal & ~moved)).any(axis=1)
        return best, doubtful

    @cached_property
    def forced(self) -> Bits:
        """[B, words]: the positions where a swap is forced."""
        found = np.zeros((len(self.batch.leaves), self.lowering.words), dtype=np.uint64)
        for row, leaf in enumerate(self.batch.leaves):
            for i, _ in leaf.forced:
                found[row, i // WORD] |= np.uint64(1) << np.uint64(i % WORD)
        return found

    def block(self, active: Indices, column: Indices) -> None:
        """What shares a lowering word with the roots that are taken, these included."""
        of = self.of[self.rows[active]]
        own = self.bits[of, column]
        shared = (self.bits[of[:, None], self.columns[active]] & own[:, None]).any(axis=2)
        self.left[active] = np.where(shared, -np.inf, self.left[active])


@dataclass(eq=False)
class Found:
    """What was taken: l [n], how far it can be off; of each step [steps, n] low_z, NaN for none, and the column."""

    low: Floats
    off: Floats
    levels: Floats
    columns: Indices
    unsettled: Flags

    def cut(self, choice: Choice, most: Indices) -> Found:
        """Without what comes after the stairs, and without those of what is unsettled."""
        self.highest = np.where(np.isnan(self.levels[0]), choice.low + self.off, self.levels[0])
        late = np.arange(len(self.levels))[:, None] >= most
        self.levels[late | self.unsettled] = np.nan
        return self

    @property
    def stairs(self) -> tuple[Indices, Indices, Floats]:
        """Of every stair the number of its element, the column, and how far it is to the next, or to l."""
        after = np.concatenate([self.levels[1:], np.full((1, self.levels.shape[1]), np.nan)])
        gaps = self.levels - np.where(np.isnan(after), self.low, after)
        steps, own = np.nonzero(~np.isnan(self.levels))
        return own, self.columns[steps, own], np.maximum(gaps[steps, own], 0.0)

    @property
    def start(self) -> Floats:
        return np.where(np.isnan(self.levels[0]), self.low, self.levels[0])


@lru_cache(maxsize=16)
def never_underflows(network: Network) -> bool:
    """Whether products of weights before the cut, which say what a position moves there, are 0 only where one is."""
    least = 0
    for index in network.linear:
        match network.nodes[index].layer:
            case Affine(weight):
                least += smallest(weight)
            case Scaling(multiply, divide):
                least += smallest(multiply) + smallest(1 / divide)
    return least > SMALLEST


def smallest(numbers: Floats) -> int:
    """The exponent of the smallest that is not 0, if below 0."""
    sizes = np.abs(numbers[numbers != 0])
    return min(0, int(np.floor(np.log2(sizes.min())))) if sizes.size else 0


@dataclass(eq=False)
class Lowered:
    """What is bounded from below in one batch of regions."""

    batch: Batch
    lowering: Lowering

    def taken(self, index: int, stairs: Indices, low: Floats, low_error: Floats) -> Taken:
        """Of a node, where `stairs` [B, E] are above 0; `low` [B, E] are its l' everywhere."""
        batch, there = self.batch, stairs > 0
        rows, elements = np.nonzero(there)
        roots, far = ordered_roots(batch.network, index), np.append(batch.errors + batch.weight, 0.0)
        error = far[roots].max(axis=1, initial=0.0)[elements]
        error = (error + low_error[rows, elements] + 4 * GRID) * SLOP
        choice = Choice(batch, self.lowering, roots, rows, elements, low[rows, elements], error)
        found = choice.made(stairs[rows, elements])
        kept = choice.highest + error <= choice.low - low_error[rows, elements]
        news, offs = low.copy(), low_error.copy()
        news[rows, elements] = np.where(kept, choice.low, found.low)
        offs[rows, elements] = np.where(kept, low_error[rows, elements], found.off * SLOP)
        doubt = 2 * choice.slack + 3 * choice.slack * choice.spare
        unknown = choice.spare * (found.highest - choice.low + choice.slack) + choice.slack
        doubt = doubt + np.where(found.unsettled, unknown, 0.0)
        return Taken(there, news, offs, found.start, found.stairs, doubt * SLOP)

    def below(self, taken: Taken) -> Below:
        return lower_lines(self.batch, self.lowering, taken)


def lower_lines(batch: Batch, lowering: Lowering, taken: Taken) -> Below:
    """From the roots that are taken: F for every swap of a word that is free."""
    sets = batch.sets
    own, columns, gaps = taken.stairs
    rows, elements = np.nonzero(taken.there)
    start, error = np.zeros(taken.there.shape), np.zeros(taken.there.shape)
    start[rows, elements], error[rows, elements] = taken.start, taken.error
    swaps = int(sets.first[-1])
    falls = np.zeros((*taken.there.shape, swaps + 1))  # the last for swaps that are not there
    places = sets.moves.columns[:, columns]
    which, stair = np.nonzero(places < len(lowering.positions))
    place = places[which, stair]
    position, row = lowering.positions[place], rows[own[stair]]
    bits = np.array([lowering.of_free(leaf.free)[0] for leaf in batch.leaves]) if len(row) else None
    if bits is not None:
        free = bits[row, columns[stair], position // WORD] >> (position % WORD).astype(np.uint64) & np.uint64(1) > 0
        stair, place, position, row = stair[free], place[free], position[free], row[free]
        counts = np.diff(sets.first)[position]
        choices = np.arange(lowering.drops.shape[1])
        at = np.where(choices < counts[:, None], sets.first[position][:, None] + choices, swaps)
        steps = np.minimum(lowering.drops[place], gaps[stair][:, None])
        falls[row[:, None], elements[own[stair]][:, None], at] = steps
    falls = falls[..., :swaps]
    reach = batch.spare[:, None] * falls.max(axis=2, initial=0.0)
    return Below(taken.there, start, falls, error, reach)
