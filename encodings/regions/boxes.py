"""Boxes of all budgets in one pass (FORMAT.md, section 15.4).

B_j(x) holds x in every sentence in which at most j of the words that x depends on are swapped. Within a segment, a
stretch of layers that read one word w, boxes are kept for each option of w apart, as in the prover ARC:

    C_(j,o)(x) = f(B_(j-s)(what does not depend on w), C_(j,o)(what does)),    s = 1 where o is a swap, else 0
    B_j(x) = the hull of C_(j,o)(x) over o

What is affine in several words takes its extremes over the sentences themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from .arithmetic import Ends
from .assignments import Choices
from .carried import last_margins
from .operations import Part, Read, applied, constant_margins, constant_part, looked_up
from .program import CONSTANTS, Look, Operation, Program, Stretch
from .region import Question

Array = NDArray[Any]


@dataclass(frozen=True)
class Segment:
    """Layers from `first` to before `end` that are kept apart by the options of a word."""

    first: int
    end: int
    word: int


def segments_of(question: Question) -> tuple[Segment, ...]:
    """The layers that follow one another and read one word, with what was computed before without it."""
    program = question.program
    single = [layer_pieces(program, layer) for layer in range(program.layers)]
    found: list[Segment] = []
    layer = 0
    while layer < program.layers:
        word = next(iter(sorted(begins(question, single[layer]))), None)
        end = layer
        while word is not None and end < program.layers and goes_on(question, single, layer, end, word):
            end += 1
        if word is not None and end > layer + 1:
            found.append(Segment(layer, end, word))
        layer = max(end, layer + 1)
    return tuple(found)


def layer_pieces(program: Program, layer: int) -> tuple[int, ...]:
    return program.pieces_of[layer]


def begins(question: Question, pieces: tuple[int, ...]) -> frozenset[int]:
    """The words that a layer could begin a segment with: it reads them, and nothing else that depends on them."""
    if len(pieces) != 1 or (len(question.reached[pieces[0]]) != 1 and question.program.pieces[pieces[0]].affine):
        return frozenset()
    if isinstance(question.program.pieces[pieces[0]].operation, Look):
        return frozenset()
    if question.word_sums.several(pieces[0]):
        return frozenset()
    reads = question.program.reads[pieces[0]]
    words = {word for source in reads for word in question.own_word(source)}
    return frozenset(
        word for word in words if all(word not in question.reached[s] or question.own_word(s) == {word} for s in reads)
    )


def goes_on(question: Question, single: list[tuple[int, ...]], first: int, layer: int, word: int) -> bool:
    """Whether a layer can belong to a segment that began before."""
    if len(single[layer]) != 1:
        return False
    (piece,) = single[layer]
    program = question.program
    if isinstance(program.pieces[piece].operation, Look) or word not in question.reached[piece]:
        return False
    if question.word_sums.several(piece):  # its extremes are nobody's who asks for one option
        return False
    for source in program.reads[piece]:
        inside = first <= program.pieces[source].layer < layer
        free = word not in question.reached[source]
        own = question.own_word(source)
        if not (inside or free or own == {word}):
            return False
        if layer > first and own and own != {word}:  # another word comes in: its own segment begins here
            return False
    return layer == first or any(first <= program.pieces[source].layer < layer for source in program.reads[piece])


@dataclass(frozen=True, eq=False)
class Boxed:
    """What boxes say of a region."""

    margins: Floats
    """[budgets + 1, rivals], from below; of fewer budgets than words are forced they say nothing."""
    jumps: Mapping[int, float]
    """Word -> how far swapping it moves what its segments hand on."""


class Boxes:
    """One region."""

    def __init__(self, question: Question, choices: Choices, segments: tuple[Segment, ...], arithmetic: Ends) -> None:
        self.question, self.choices, self.arithmetic = question, choices, arithmetic
        self.budgets = choices.swaps
        self.segment_of = {layer: part for part in segments for layer in range(part.first, part.end)}
        self.handed_on = self.read_outside()
        self.boxes: dict[int, Array] = {}
        """Piece -> [budgets + 1, 2 or 3, size]; below the number of forced words it says nothing."""
        self.exact: dict[int, Array] = {}
        """Piece that is affine in one word alone -> [options, 2, size]."""
        self.apart: dict[int, Array] = {}
        """Piece of the segment at hand -> [(budget, option), 2, size]."""
        self.least: dict[int, int] = {}
        """Piece -> budgets below this have no box in a certificate; a lower number says less."""
        self.least_apart: dict[int, NDArray[np.int64]] = {}
        """Piece of the segment at hand -> the same for each option."""
        self.jumps: dict[int, float] = {}
        self.still: dict[int, Array] = {}
        """At level kernel: piece that is affine in the words -> [1, 3, size] in the text itself."""

    def found(self) -> Boxed:
        question, arithmetic = self.question, self.arithmetic
        current: Segment | None = None
        for number in question.needed_by_boxes if self.arithmetic.adds_words else question.needed:
            piece = question.program.pieces[number]
            words = question.reached[number] & self.choices.moving
            segment = self.segment_of.get(piece.layer)
            if segment is not current:
                self.apart.clear()
                self.least_apart.clear()
                current = segment
            if number in question.mixed:
                self.least[number] = 0
            elif piece.affine:
                self.least[number] = len(words & self.choices.forced)
            else:
                self.least[number] = max([self.least[source] for source in question.program.reads[number]], default=0)
            if piece.affine and not self.arithmetic.adds_words:
                self.stay(number, piece.operation)
            if isinstance(piece.operation, Look):
                self.look_up(number, piece.operation)
            elif question.word_sums.several(number):
                self.boxes[number] = self.extremes(number)
            elif piece.affine and len(words) == 1:
                self.exact[number] = self.applied(number, self.by_option)
                self.boxes[number] = self.of_one_word(self.exact[number], *words)
            elif segment is not None and segment.word in words:
                self.split(number, segment.word)
            else:
                self.boxes[number] = self.whole(self.applied(number, self.by_budget))
        tail = question.tail
        total = constant_margins(question, arithmetic)
        for source, matrix in tail.parts.items():
            reach = question.reach_of[source]
            total = total + arithmetic.tail(self.boxes[source], matrix, tail.sizes[source], len(tail.parts) + 1, reach)
        found = last_margins(question, arithmetic, total)
        return Boxed(self.whole(found)[:, 0], self.jumps)

    def read_outside(self) -> frozenset[int]:
        """The pieces that others than those of their own segment read: only their boxes are asked for."""
        question, pieces = self.question, self.question.program.pieces
        found = set(question.tail.parts)
        for number in question.needed:
            own = self.segment_of.get(pieces[number].layer)
            for source in question.program.reads[number]:
                if own is None or self.segment_of.get(pieces[source].layer) is not own:
                    found.add(source)
        return frozenset(found)

    def applied(self, number: int, read: Read) -> Array:
        question = self.question
        roundings = question.roundings.get(number)
        constant = None if roundings is None else constant_part(question, number, self.arithmetic)
        return applied(question.program.pieces[number], self.arithmetic, read, constant, roundings)

    def whole(self, boxes: Array) -> Array:
        """The same for every budget, where nothing that moves was read."""
        return np.repeat(boxes, self.budgets + 1, axis=0) if len(boxes) == 1 < self.budgets + 1 else boxes

    # ---- what is read

    def constants(self, part: Stretch) -> Part:
        return Part(self.arithmetic.given(self.question.program.constants[part.index][None]))

    def by_budget(self, part: Stretch) -> Part:
        if part.piece == CONSTANTS:
            return self.constants(part)
        return Part(self.boxes[part.piece][..., part.index])

    def by_option(self, part: Stretch) -> Part:
        """Of a piece that depends on one word at most."""
        if part.piece == CONSTANTS:
            return self.constants(part)
        held = self.exact.get(part.piece)
        return Part((self.boxes[part.piece][:1] if held is None else held)[..., part.index])

    # ---- pieces

    def look_up(self, number: int, operation: Look) -> None:
        question, word = self.question, self.question.word_at.get(operation.position)
        if word is None:
            tokens = np.array([question.original[operation.position]])
        else:
            tokens = np.array(question.tokens[word])[list(self.choices.options[word])]
        found = looked_up(question, operation, tokens, self.arithmetic)
        if word is None or word not in self.choices.moving:
            self.boxes[number] = self.whole(found)
            return
        self.exact[number] = found
        self.boxes[number] = self.of_one_word(found, word)

    def extremes(self, number: int) -> Array:
        """Of a piece that is affine in several words: exact, but for what float64 loses and a checker's unit. At level
        kernel wider by its error, which is that of the whole space, whatever the sentence."""
        found = self.question.word_sums.of(number)
        apart = number in self.question.mixed
        ends = found.extremes(self.choices.options, self.budgets, apart=apart)
        error = found.error()
        ends = self.arithmetic.moved(ends, error + self.arithmetic.unit)
        held = self.still.get(number)
        if held is None:
            return ends
        reach = np.maximum(held[0, 1] - found.base, found.base - held[0, 0]) + error + self.arithmetic.unit
        sizes = np.repeat(held[:, 2:], len(ends), axis=0)
        return np.concatenate([self.arithmetic.moved(ends, reach), sizes], axis=1)

    def stay(self, number: int, operation: Operation) -> None:
        if isinstance(operation, Look):
            token = np.array([self.question.original[operation.position]])
            self.still[number] = looked_up(self.question, operation, token, self.arithmetic)
            return

        def read(part: Stretch) -> Part:
            if part.piece == CONSTANTS:
                return self.constants(part)
            return Part(self.still[part.piece][..., part.index])

        self.still[number] = self.applied(number, read)

    def of_one_word(self, rows: Array, word: int) -> Array:
        """[budgets + 1, 2, size]: of rows, one for each option of the word, the hulls of those that a budget allows."""
        stays = [place for place, option in enumerate(self.choices.options[word]) if option == 0]
        every = hulls(rows, [0])
        found = np.repeat(every, self.budgets + 1, axis=0)
        if stays:
            found[0] = rows[stays[0]]
        return found

    def by_budgets(self, rows: Array, budgets: NDArray[np.int64]) -> Array:
        """[budgets + 1, 2, size]: the hulls of rows of one budget each, in their order; where there is none, any."""
        present, first = np.unique(budgets, return_index=True)
        found = hulls(rows, first)
        place = np.searchsorted(present, np.arange(self.budgets + 1))
        return found[np.minimum(place, len(present) - 1)]

    def split(self, number: int, word: int) -> None:
        """A piece of a segment: a row for each budget and option of its word."""
        question = self.question
        options = self.choices.options[word]
        swapped = np.array([int(option > 0) for option in options])
        rows = [
            (budget, place)
            for budget in range(self.budgets + 1)
            for place in range(len(options))
            if swapped[place] <= budget
        ]
        budgets, places = np.array(rows or [(0, 0)]).T
        below = np.maximum(budgets - swapped[places], 0)

        def read(part: Stretch) -> Part:
            if part.piece == CONSTANTS:
                return self.constants(part)
            if part.piece in self.apart:
                return Part(self.apart[part.piece][..., part.index])
            if word in question.reached[part.piece]:
                return Part(self.exact[part.piece][..., part.index], places)
            return Part(self.boxes[part.piece][..., part.index], below)

        if number in question.mixed and word in self.choices.forced:
            # Elements without the word have no less than their whole budget in a certificate.
            self.boxes[number] = self.whole(self.applied(number, self.by_budget))
            self.apart[number] = self.boxes[number][budgets]
            self.least_apart[number] = np.zeros_like(swapped)
            return
        found = self.applied(number, read)
        if len(found) == 1 < len(budgets):
            found = np.repeat(found, len(budgets), axis=0)
        self.apart[number] = found
        least = self.least_apart[number] = self.least_by_option(number, word, swapped)
        self.least[number] = int(least.min())
        there = budgets >= least[places]
        if not there.any():
            there[:] = True
        if number in self.handed_on:
            self.boxes[number] = self.by_budgets(found[there], budgets[there])
            top = found[budgets == self.budgets, :2].mean(axis=1)
            moves = np.array(options)[places[budgets == self.budgets]] > 0
            if moves.any() and not moves.all():
                far = float(np.abs(top[moves] - top[~moves]).mean(axis=1).max())
                self.jumps[word] = max(self.jumps.get(word, 0.0), far)

    def least_by_option(self, number: int, word: int, swapped: NDArray[np.int64]) -> NDArray[np.int64]:
        found = swapped.copy()
        if number not in self.question.mixed:
            for source in self.question.program.reads[number]:
                if source in self.least_apart:
                    found = np.maximum(found, self.least_apart[source])
                elif word not in self.question.reached[source]:
                    found = np.maximum(found, swapped + self.least[source])
        return found


def hulls(rows: Array, first: Sequence[int] | NDArray[np.int64]) -> Array:
    """Of rows that follow one another, from each first one to before the next."""
    found = np.maximum.reduceat(rows, first, axis=0)  # high ends, and sizes
    found[:, 0] = np.minimum.reduceat(rows[:, 0], first, axis=0)
    return found


def boxed(question: Question, choices: Choices, segments: tuple[Segment, ...], arithmetic: Ends) -> Boxed:
    """Lower bounds of the margins over a region."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite or NaN is above nothing
        return Boxes(question, choices, segments, arithmetic).found()
