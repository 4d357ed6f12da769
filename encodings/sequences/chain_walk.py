"""All sentences of a region through an LSTM or a GRU, depth first.

Sentences that begin alike share their beginnings. Once a sentence has all of its swaps nothing branches off it any
more, so that as many of these as fit the cache are carried to the end by themselves: of the words that are left all
read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..network import Floats, Indices
from ..regions.assignments import NONE, Choices
from .lstm_steps import Cell

if TYPE_CHECKING:
    from .chains import Chain, Step

Array = NDArray[Any]
Swaps = NDArray[np.int32]
ROWS = 256
"""Sentences carried together: with the weights of 150 units they fit the cache."""


class Radius(NamedTuple):
    """Of numbers that are known up to an error, for all sentences that are carried together: h, c and the margins, and
    the magnitudes of h; what adds up to the magnitudes of all that was added to the margins."""

    h: Floats
    c: Floats
    margins: Floats
    reach: Floats
    sizes: Floats


def widest(radii: Iterable[Radius | None]) -> Radius | None:
    found = [radius for radius in radii if radius is not None]
    return Radius(*(np.max(column, axis=0) for column in zip(*found, strict=True))) if found else None


@dataclass(eq=False)
class Carried:
    """Sentences at some step: [rows, H] of h and c, [rows, rivals] so far, and [rows, most] their swaps."""

    h: Array
    c: Array
    margins: Array
    swaps: Swaps
    radius: Radius | None = None

    def __len__(self) -> int:
        return len(self.h)

    def blocks(self) -> Iterator[Carried]:
        for start in range(0, len(self), ROWS):
            yield self.at(slice(start, start + ROWS))

    def at(self, rows: slice) -> Carried:
        return Carried(self.h[rows], self.c[rows], self.margins[rows], self.swaps[rows], self.radius)


def joined(parts: Sequence[Carried]) -> Carried:
    if len(parts) == 1:
        return parts[0]
    return Carried(
        np.concatenate([part.h for part in parts]),
        np.concatenate([part.c for part in parts]),
        np.concatenate([part.margins for part in parts]),
        np.concatenate([part.swaps for part in parts]),
        widest(part.radius for part in parts),
    )


class Tables:
    """What the steps of a chain are in one float type; weights that steps share stand there once."""

    def __init__(self, chain: Chain, dtype: type[np.floating[Any]], rivals: int) -> None:
        self.chain, self.dtype, self.rivals = chain, dtype, rivals
        kept: dict[int, Array] = {}
        for step in chain.steps:
            if step.recurrent is not None and id(step.recurrent) not in kept:
                kept[id(step.recurrent)] = self.halved(step, step.recurrent)
        self.recurrent = [None if step.recurrent is None else kept[id(step.recurrent)] for step in chain.steps]
        self.inputs = [self.halved(step, step.inputs) for step in chain.steps]
        self.shown = [None if step.shown is None else step.shown.astype(dtype) for step in chain.steps]

    def halved(self, step: Step, matrix: Floats) -> Array:
        """Half of the columns of gates, since sigmoid(x) = (1 + tanh(x / 2)) / 2."""
        found = matrix.astype(self.dtype)
        found[:, step.cell.gates] *= 0.5
        return found

    def start(self, count: int, most: int) -> Carried:
        """Before the first step, so many times."""
        size = len(self.chain.memory)
        return Carried(
            np.zeros((count, size), dtype=self.dtype),
            np.repeat(self.chain.memory.astype(self.dtype)[None], count, axis=0),
            np.zeros((count, self.rivals), dtype=self.dtype),
            np.full((count, most), NONE, dtype=np.int32),
        )

    def rows(self, place: int, h: Array, out: Array) -> Array:
        """What the gates of a step read of the state before it."""
        matrix, out = self.recurrent[place], out[: len(h)]
        if matrix is None:
            out[:] = 0
        else:
            np.matmul(h, matrix, out=out)
        return out

    def apply(self, place: int, rows: Array, to: Carried) -> None:
        """One step, from all that its gates read; h and c are overwritten, and so are the rows."""
        cell, shown = self.chain.steps[place].cell, self.shown[place]
        if not isinstance(cell, Cell):
            raise TypeError("a step of an LSTM was asked for")
        np.tanh(rows, out=rows)
        rows[:, cell.gates] += 1
        self.notice(rows)
        to.c *= rows[:, cell.forget]
        fresh = rows[:, cell.fresh]
        fresh *= rows[:, cell.take]
        to.c += fresh
        to.c *= 0.5
        np.tanh(to.c, out=to.h)
        to.h *= rows[:, cell.show]
        to.h *= 0.5
        if shown is not None:
            to.margins += to.h @ shown

    def notice(self, rows: Array) -> None:
        """Twice each gate, and what is fresh, before they are multiplied."""

    def born(self, parents: Carried, which: Indices, swaps: Swaps) -> Carried:
        """Sentences that begin as these do; their step is still to be applied, and then h is written."""
        return Carried(
            np.empty((len(which), parents.h.shape[1]), dtype=self.dtype),
            parents.c[which],
            parents.margins[which],
            swaps,
            parents.radius,
        )


class GatedTables(Tables):
    """Of a GRU: h is mixed in anew, there is no c, and x is added to what was reset."""

    def start(self, count: int, most: int) -> Carried:
        found = super().start(count, most)
        found.h, found.c = found.c, found.h[:, :0]
        return found

    def rows(self, place: int, h: Array, out: Array) -> Array:
        matrix, out = self.recurrent[place], out[: len(h)]
        if matrix is None:
            out[:] = 0
        else:
            np.matmul(h, matrix, out=out[:, : matrix.shape[1]])
            out[:, matrix.shape[1] :] = 0
        return out

    def apply(self, place: int, rows: Array, to: Carried) -> None:
        shown, size = self.shown[place], to.h.shape[1]
        gates, reset, fresh = rows[:, : 2 * size], rows[:, 2 * size : 3 * size], rows[:, 3 * size :]
        np.tanh(gates, out=gates)
        gates += 1
        self.notice(rows)
        reset *= gates[:, size:]
        reset *= 0.5
        fresh += reset
        self.notice_sum(fresh)
        np.tanh(fresh, out=fresh)
        to.h -= fresh
        to.h *= gates[:, :size]
        to.h *= 0.5
        to.h += fresh
        if shown is not None:
            to.margins += to.h @ shown

    def notice_sum(self, rows: Array) -> None:
        """What is fresh, before its tanh."""

    def born(self, parents: Carried, which: Indices, swaps: Swaps) -> Carried:
        return Carried(parents.h[which], parents.c[which], parents.margins[which], swaps, parents.radius)


class Walk:
    """One region through one chain."""

    def __init__(self, tables: Tables, choices: Choices, pause: Callable[[], None]) -> None:
        self.tables, self.choices, self.pause = tables, choices, pause
        self.steps = tables.chain.steps
        shape = ROWS, tables.inputs[0].shape[1]
        self.room, self.second = np.empty(shape, dtype=tables.dtype), np.empty(shape, dtype=tables.dtype)
        forced = [step.word in choices.forced for step in self.steps]
        self.forced_after = [sum(forced[place + 1 :]) for place in range(len(forced))]
        """Words behind each step that must be swapped."""

    def every(self) -> list[Carried]:
        """All sentences at the end."""
        most, done = self.choices.most, list[Carried]()
        branching = [self.tables.start(1, most)] if most else []
        """May get more swaps."""
        waiting = [] if most else [self.tables.start(1, most)]
        """Have all of theirs, and are too few to be carried on by themselves."""
        for place, step in enumerate(self.steps):
            self.pause()
            born = [found for part in branching for found in self.branched(place, part)]
            for part in waiting:
                self.carry(place, part)
            if step.word in self.choices.forced:
                branching, waiting = [], []
            for part in born:
                (waiting if (part.swaps[0] >= 0).all() else branching).append(part)
            branching = [joined(branching)] if branching else []
            if waiting:
                whole = joined(waiting)
                ready = len(whole) // ROWS * ROWS
                done += [self.carried_on(place + 1, block) for block in whole.at(slice(0, ready)).blocks()]
                waiting = [whole.at(slice(ready, None))] if ready < len(whole) else []
        return [*done, *branching, *waiting]

    def these(self, rows: Swaps) -> list[Carried]:
        """Sentences with these swaps, which share nothing."""
        done = []
        for start in range(0, len(rows), ROWS):
            part = self.tables.start(len(rows[start : start + ROWS]), 0)
            part.swaps = rows[start : start + ROWS]
            options = np.zeros((len(part), len(self.choices.options)), dtype=np.int64)
            for column in part.swaps.T:
                (there,) = np.nonzero(column >= 0)
                options[there, self.choices.word_of[column[there]]] = self.choices.option_of[column[there]]
            for place, step in enumerate(self.steps):
                self.pause()
                found, inputs = self.tables.rows(place, part.h, self.room), self.tables.inputs[place]
                found += inputs[0] if step.word is None else inputs[options[:, step.word]]
                self.tables.apply(place, found, part)
            done.append(part)
        return done

    def carried_on(self, place: int, block: Carried) -> Carried:
        self.pause()
        for later in range(place, len(self.steps)):
            self.carry(later, block)
        return block

    def carry(self, place: int, block: Carried) -> None:
        """Nothing is swapped here."""
        rows = self.tables.rows(place, block.h, self.room)
        rows += self.tables.inputs[place][0]
        self.tables.apply(place, rows, block)

    def branched(self, place: int, part: Carried) -> list[Carried]:
        """What a step makes of sentences that swap its word; those that do not are carried on."""
        born, radii = list[Carried](), list[Radius | None]()
        for block in part.blocks():
            rows = self.tables.rows(place, block.h, self.room)
            born += self.births(place, block, rows)
            rows += self.tables.inputs[place][0]
            self.tables.apply(place, rows, block)
            radii.append(block.radius)
        part.radius = widest(radii)
        return born

    def births(self, place: int, block: Carried, rows: Array) -> Iterator[Carried]:
        """All ways to swap the word of a step; those that have all of their swaps then apart from the others."""
        word, most, inputs = self.steps[place].word, self.choices.most, self.tables.inputs[place]
        if word is None or word not in self.choices.moving:
            return
        numbers = np.array(self.choices.number(word), dtype=np.int32)
        used = (block.swaps >= 0).sum(axis=1)
        for mask in (used == most - 1, used < most - 1):
            free = np.flatnonzero(mask & (used + 1 + self.forced_after[place] <= most))
            parents, swaps = np.repeat(free, len(numbers)), np.tile(numbers, len(free))
            for start in range(0, len(parents), ROWS):
                parent, swap = parents[start : start + ROWS], swaps[start : start + ROWS]
                own = self.second[: len(parent)]
                np.take(rows, parent, axis=0, out=own, mode="clip")
                own += inputs[self.choices.option_of[swap]]
                found = self.tables.born(block, parent, block.swaps[parent])
                found.swaps[np.arange(len(parent)), used[parent]] = swap
                self.tables.apply(place, own, found)
                yield found
