"""Pieces boxed one after the other, and what regions have in common whose words have the same options.

A search splits words, and boxes every part. The boxes of a step of a recurrence depend on the words up to it, and so
are those of the region that was split wherever its word comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..sequences.lstm_steps import Cell, cells_of
from .arithmetic import Ends
from .assignments import Choices

if TYPE_CHECKING:
    from .region import Question

Array = NDArray[Any]
ROOM = 2**25
"""Numbers that are remembered."""


@dataclass(frozen=True)
class Segment:
    """Layers from `first` to before `end` that are kept apart by the options of a word."""

    first: int
    end: int
    word: int


@dataclass(frozen=True, eq=False)
class Run:
    """The pieces of a segment or of a step, or one alone; `words`: all that they depend on; `cells`: their steps."""

    pieces: tuple[int, ...]
    segment: Segment | None
    words: NDArray[np.int64]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run leaves to others, by piece."""

    boxes: Mapping[int, Array]
    exact: Mapping[int, Array]
    least: Mapping[int, int]
    jump: float

    @property
    def size(self) -> int:
        return sum(array.size for held in (self.boxes, self.exact) for array in held.values())


class Remembered:
    """Of one question, in one arithmetic."""

    def __init__(self, question: Question, segments: tuple[Segment, ...], arithmetic: Ends) -> None:
        self.question, self.arithmetic = question, arithmetic
        self.segment_of = {layer: part for part in segments for layer in range(part.first, part.end)}
        self.handed_on = self.read_outside()
        self.runs = self.all_runs()
        self.outcomes: dict[tuple[int, int, bytes], Outcome] = {}
        self.size = 0
        self.names: dict[tuple[int, ...], int] = {}
        """A number for the options of a word."""
        self.still: dict[int, Array] = {}
        """At level kernel: piece that is affine in the words -> [1, 3, size] in the text itself."""
        self.inputs: dict[int, Array] = {}
        """Rows of a step -> what they are without the state, [options, 2 or 3, size]."""

    def read_outside(self) -> frozenset[int]:
        """The pieces that mixed ones, or others than those of their own segment, read: only their boxes are kept."""
        question, pieces = self.question, self.question.program.pieces
        found = set(question.tail.parts)
        for number in question.needed:
            own = self.segment_of.get(pieces[number].layer)
            for source in question.program.reads[number]:
                apart = own is None or self.segment_of.get(pieces[source].layer) is not own
                if apart or number in question.mixed:  # a mixed one whose word is forced is found by budgets alone
                    found.add(source)
        return frozenset(found)

    def all_runs(self) -> tuple[Run, ...]:
        question, found = self.question, list[Run]()

        def segment(number: int) -> Segment | None:
            return self.segment_of.get(question.program.pieces[number].layer)

        def add(pieces: tuple[int, ...], own: Segment | None, cells: tuple[Cell, ...]) -> None:
            words = sorted(frozenset().union(*[question.reached[piece] for piece in pieces]))
            found.append(Run(pieces, own, np.array(words, dtype=np.int64), cells))

        for own, group in groupby(question.needed_by_boxes if self.arithmetic.adds_words else question.needed, segment):
            parts = list(self.in_steps(tuple(group)))
            if own is None:
                for pieces, cell in parts:
                    add(pieces, None, () if cell is None else (cell,))
            else:
                cells = tuple(cell for _, cell in parts if cell is not None)
                add(
                    tuple(piece for pieces, _ in parts for piece in pieces),
                    own,
                    cells if len(cells) == len(parts) else (),
                )
        return tuple(found)

    def in_steps(self, pieces: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Cell | None]]:
        """Cut into whole steps, and single pieces."""
        cells = cells_of(self.question.program)
        while pieces:
            cell = cells.get(pieces[0])
            count = 1
            if cell is not None:
                step = {cell.rows, *cell.inner, cell.memory, cell.state}
                cell, count = (cell, len(step)) if {*pieces[: len(step)]} == step else (None, 1)
            yield pieces[:count], cell
            pieces = pieces[count:]

    def named(self, choices: Choices) -> NDArray[np.int32]:
        """[words]: equal numbers for equal options."""
        return np.array([self.names.setdefault(own, len(self.names)) for own in choices.options], dtype=np.int32)

    def keep(self, key: tuple[int, int, bytes], outcome: Outcome) -> None:
        self.size += outcome.size
        if self.size > ROOM:
            self.outcomes.clear()
            self.size = outcome.size
        self.outcomes[key] = outcome
