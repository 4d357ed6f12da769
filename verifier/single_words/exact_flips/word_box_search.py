"""One hidden layer: which words flip which texts, by bounds of whole boxes of words at all positions together.

All positions of a text go down the tree of boxes side by side. A box of words that flips the text at one position is
settled for all of them, so that only what is near the border of the union of all flips is looked at closely. In the
smallest boxes the linear bound decides most words one by one, and the margins of the few others are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Decide, parts
from .word_box_bounds import BoxBounds
from .word_boxes import PARTS, Boxes

Array = NDArray[Any]

ROWS = 1 << 9
"""Pairs of text and box bounded together, and sentences evaluated together."""
CELLS = 1 << 16
"""Words screened together."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """Texts with any word at one position, against one rival."""

    position: int
    rival: int
    texts: NDArray[np.int64]
    states: Array
    """[n, N + 1]: of the texts, with a word of coordinates 0."""
    guards: Array
    """[n]: bounds beyond these decide,"""
    reach: Array
    """[n]: and margins beyond these."""
    bounds: BoxBounds


@dataclass(frozen=True, eq=False)
class Rows:
    """Boxes that are not settled: of the sheet's texts `at`, the boxes, and a linear bound of sign * margin on each."""

    at: Array
    boxes: Array
    sign: int
    value: Array
    gradient: Array

    def part(self, which: Array) -> Rows:
        return Rows(self.at[which], self.boxes[which], self.sign, self.value[which], self.gradient[which])


@dataclass(eq=False)
class BoxSearch:
    """Fills `flipped` [texts, words] as far as bounds go; hands what has to be evaluated to `decide`."""

    boxes: Boxes
    coordinates: Array
    """[words, dimensions]."""
    sheets: Sequence[Sheet]
    flipped: NDArray[np.bool_]
    decide: Decide
    bounded: int = 0
    evaluated: int = 0
    marked: NDArray[np.bool_] = field(init=False)
    """[texts, boxes]: every word of the box flips the text at one same position."""

    def __post_init__(self) -> None:
        self.marked = np.zeros((len(self.flipped), len(self.boxes.start)), dtype=bool)
        self.sorted = self.coordinates[self.boxes.order].astype(np.float32)

    def run(self) -> None:
        open_rows = [(np.arange(len(sheet.texts)), np.zeros(len(sheet.texts), np.int64)) for sheet in self.sheets]
        last: list[tuple[Sheet, Rows]] = []
        while any(len(at) for at, _ in open_rows):
            found = [self.try_to_flip(sheet, *rows) for sheet, rows in zip(self.sheets, open_rows, strict=True)]
            open_rows = []
            for sheet, (flipping, rest) in zip(self.sheets, found, strict=True):
                inner = []
                for some in (self.unmarked(sheet, flipping), self.try_to_hold(sheet, *rest)):
                    first = self.boxes.first[some.boxes]
                    last.append((sheet, some.part(first < 0)))
                    inner.append((some.at[first >= 0], first[first >= 0]))
                at, first = (np.concatenate(column) for column in zip(*inner, strict=True))
                open_rows.append(self.children(at, first))
        self.flipped |= self.boxes.points_of(self.marked)
        for sheet, left in last:
            self.screen(sheet, left)

    def children(self, at: Array, first: Array) -> tuple[Array, Array]:
        texts, boxes = np.repeat(at, PARTS), (first[:, None] + np.arange(PARTS)).reshape(-1)
        filled = self.boxes.start[boxes] < self.boxes.stop[boxes]
        return texts[filled], boxes[filled]

    def unmarked(self, sheet: Sheet, rows: Rows) -> Rows:
        return rows.part(~self.marked[sheet.texts[rows.at], rows.boxes])

    def try_to_flip(self, sheet: Sheet, at: Array, boxes: Array) -> tuple[Rows, tuple[Array, Array]]:
        """Marks boxes all of whose words flip; returns where this failed, and where the center does not flip."""
        failed, rest = [], []
        self.bounded += len(at)
        for part in parts(len(at), ROWS):
            center, margins = sheet.bounds.at_centers(sheet.states[at[part]], boxes[part])
            tried = margins < 0
            rest.append(~tried)
            which = np.flatnonzero(tried)
            some, inside = at[part][which], boxes[part][which]
            linear = sheet.bounds.linear(-1, center[which], margins[which], inside)
            rows = Rows(some, inside, -1, *linear)
            proved = sheet.bounds.least(*linear, inside) > sheet.guards[some]
            self.marked[sheet.texts[some[proved]], inside[proved]] = True
            failed.append(rows.part(~proved))
        others = np.concatenate([np.zeros(0, dtype=bool), *rest])
        return joined(sheet, failed, -1), (at[others], boxes[others])

    def try_to_hold(self, sheet: Sheet, at: Array, boxes: Array) -> Rows:
        """Where the margin at the center is not negative: the boxes not known to flip, or to hold."""
        free = ~self.marked[sheet.texts[at], boxes]
        at, boxes = at[free], boxes[free]
        failed = []
        for part in parts(len(at), ROWS):
            some, inside = at[part], boxes[part]
            linear = sheet.bounds.linear(1, *sheet.bounds.at_centers(sheet.states[some], inside), inside)
            proved = sheet.bounds.least(*linear, inside) > sheet.guards[some]
            failed.append(Rows(some, inside, 1, *linear).part(~proved))
        return joined(sheet, failed, 1)

    # ---- word by word

    def screen(self, sheet: Sheet, rows: Rows) -> None:
        """The linear bound at every word of these boxes; what it leaves open is evaluated."""
        for part, words, there, bounds in self.at_words(rows):
            texts = sheet.texts[rows.at[part]][:, None]
            guards = sheet.guards[rows.at[part]][:, None]
            if rows.sign < 0:
                row, column = np.nonzero(there & (bounds > guards))
                self.flipped[texts[row, 0], words[row, column]] = True
            row, column = np.nonzero(there & ~(bounds > guards) & ~self.flipped[texts, words])
            self.evaluate(sheet, rows.at[part][row], words[row, column])

    def at_words(self, rows: Rows) -> Iterator[tuple[slice, Array, Array | bool, Array]]:
        """Blocks of rows, with the words of their boxes, which of these there are, and the bounds at them."""
        center = self.boxes.center.astype(np.float32)
        if len(self.boxes.start) == 1:
            away = np.ascontiguousarray((self.sorted - center).T)
            for part in parts(len(rows.at), max(1, CELLS // len(self.sorted))):
                bounds = rows.gradient[part] @ away
                bounds += rows.value[part, None]
                yield part, np.broadcast_to(self.boxes.order, bounds.shape), True, bounds
            return
        widest = int((self.boxes.stop - self.boxes.start)[self.boxes.first < 0].max())
        for part in parts(len(rows.at), max(1, CELLS // widest)):
            boxes = rows.boxes[part]
            numbers = self.boxes.start[boxes][:, None] + np.arange(widest)
            there = numbers < self.boxes.stop[boxes][:, None]
            numbers = np.minimum(numbers, len(self.sorted) - 1)
            bounds = np.repeat(rows.value[part, None], widest, axis=1)
            for dimension, steps in enumerate(rows.gradient[part].T):
                bounds += (self.sorted[numbers, dimension] - center[boxes, dimension, None]) * steps[:, None]
            yield part, self.boxes.order[numbers], there, bounds

    def evaluate(self, sheet: Sheet, at: Array, words: Array) -> None:
        self.evaluated += len(at)
        for part in parts(len(at), ROWS):
            states = self.coordinates[words[part]].astype(np.float32) @ sheet.bounds.steps
            states += sheet.states[at[part]]
            margins = sheet.bounds.margins(states)
            self.decide(sheet.position, sheet.rival, sheet.texts[at[part]], words[part], margins, sheet.reach[at[part]])


def joined(sheet: Sheet, some: list[Rows], sign: int) -> Rows:
    none = np.zeros(0, dtype=np.int64)
    empty = Rows(none, none, sign, np.zeros(0, np.float32), np.zeros((0, len(sheet.bounds.steps)), np.float32))
    columns = zip(*((r.at, r.boxes, r.value, r.gradient) for r in [empty, *some]), strict=True)
    at, boxes, value, gradient = (np.concatenate(column) for column in columns)
    return Rows(at, boxes, sign, value, gradient)
