"""Boxes of all budgets in one pass (FORMAT.md, section 15.4).

B_j(x) holds x in every sentence in which at most j of the words that x depends on are swapped. Within a segment, a
stretch of layers that read one word w, boxes are kept for each option of w apart, as in the prover ARC:

    C_(j,o)(x) = f(B_(j-s)(what does not depend on w), C_(j,o)(what does)),    s = 1 where o is a swap, else 0
    B_j(x) = the hull of C_(j,o)(x) over o

What is affine in several words takes its extremes over the sentences themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from ..sequences.box_steps import lstm_step
from ..sequences.lstm_steps import Cell
from .assignments import Choices
from .box_runs import Outcome, Remembered, Run, Segment
from .carried import last_margins
from .operations import Part, Read, applied, constant_margins, constant_part, joined, looked_up
from .program import CONSTANTS, Dense, Look, Operation, Program, Stretch
from .region import Question

Array = NDArray[Any]


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


class Split(NamedTuple):
    """Rows of a segment: for each option whether it is a swap; of each row the budget and the place of the option, and
    the budget of what does not depend on it."""

    swapped: NDArray[np.int64]
    budgets: NDArray[np.int64]
    places: NDArray[np.int64]
    below: NDArray[np.int64]


@lru_cache(maxsize=1024)
def rows_of(options: tuple[int, ...], budgets: int) -> Split:
    swapped = np.array([int(option > 0) for option in options])
    rows = [
        (budget, place) for budget in range(budgets + 1) for place in range(len(options)) if swapped[place] <= budget
    ]
    budget, places = np.array(rows or [(0, 0)]).T
    return Split(swapped, budget, places, np.maximum(budget - swapped[places], 0))


class Boxes:
    """One region."""

    def __init__(self, remembered: Remembered, choices: Choices) -> None:
        self.question, self.arithmetic, self.remembered = remembered.question, remembered.arithmetic, remembered
        self.choices, self.budgets = choices, choices.swaps
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
        self.jump = 0.0
        """Of the segment at hand: how far swapping its word moves what it hands on."""
        self.still = remembered.still

    def found(self) -> Boxed:
        question, arithmetic, remembered = self.question, self.arithmetic, self.remembered
        names, jumps = remembered.named(self.choices), dict[int, float]()
        for place, run in enumerate(remembered.runs):
            key = place, self.budgets, names[run.words].tobytes()
            outcome = remembered.outcomes.get(key)
            if outcome is None:
                outcome = self.outcome(run)
                remembered.keep(key, outcome)
            else:
                self.boxes.update(outcome.boxes)
                self.exact.update(outcome.exact)
                self.least.update(outcome.least)
            if run.segment is not None and outcome.jump:
                jumps[run.segment.word] = max(jumps.get(run.segment.word, 0.0), outcome.jump)
        tail = question.tail
        total = constant_margins(question, arithmetic)
        for source, matrix in tail.parts.items():
            reach = question.reach_of[source]
            total = total + arithmetic.tail(self.boxes[source], matrix, tail.sizes[source], len(tail.parts) + 1, reach)
        found = last_margins(question, arithmetic, total)
        return Boxed(self.whole(found)[:, 0], jumps)

    def outcome(self, run: Run) -> Outcome:
        self.apart.clear()
        self.least_apart.clear()
        self.jump = 0.0
        if not run.cells or not all(self.step(cell, run.segment) for cell in run.cells):
            for number in run.pieces:
                self.find(number, run.segment)

        def left(held: dict[int, Any]) -> dict[int, Any]:
            return {number: held[number] for number in run.pieces if number in held}

        return Outcome(left(self.boxes), left(self.exact), left(self.least), self.jump)

    def find(self, number: int, segment: Segment | None) -> None:
        question = self.question
        piece = question.program.pieces[number]
        words = question.reached[number] & self.choices.moving
        if number in question.mixed:
            self.least[number] = 0
        elif piece.affine:
            self.least[number] = len(words & self.choices.forced)
        else:
            self.least[number] = max([self.least[source] for source in question.program.reads[number]], default=0)
        if piece.affine and not self.arithmetic.adds_words and number not in self.still:
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

    def step(self, cell: Cell, segment: Segment | None) -> bool:
        """The pieces of a step at once, if each is as they usually are."""
        question, arithmetic, swappable = self.question, self.arithmetic, self.choices.moving
        rows, reached = question.program.pieces[cell.rows], question.reached
        word = None if segment is None or segment.word not in swappable else segment.word
        moving = reached[cell.rows] & swappable
        alone = moving <= {word} if rows.affine else not question.mixed & {cell.rows, cell.memory, cell.state}
        if not isinstance(rows.operation, Dense) or not alone or (word is not None and word not in moving):
            return False
        given = [(p, m) for p, m in zip(rows.operation.read, rows.operation.matrices, strict=True) if p.piece >= 0]
        inside = [part.piece for part, _ in given if word is not None and word in reached[part.piece]]
        if any(piece not in self.apart and piece not in self.exact for piece in inside):
            return False
        split = None if word is None else rows_of(self.choices.options[word], self.budgets)
        total, closer = constant_part(question, cell.rows, arithmetic), list[Array]()
        for part, matrix in given:
            within = part.piece in inside
            held = self.apart if part.piece in self.apart else self.exact if within else self.boxes
            found = arithmetic.multiply(held[part.piece][..., part.index], matrix, len(rows.operation.read) + 1)
            if split is None or not within:
                total = total + found
            else:
                closer.append(found if part.piece in self.apart else found[split.places])
        if split is not None:
            total = total[split.below] if len(total) > 1 else total
        for found in closer:
            total = total + found

        def before(part: Stretch) -> Part:
            if part.piece in self.apart:
                return Part(self.apart[part.piece][..., part.index])
            if split is None or part.piece == CONSTANTS:
                return self.by_budget(part)
            return Part(self.boxes[part.piece][..., part.index], split.below)

        sources = [part.piece for part in (*rows.operation.read, *cell.before) if part.piece >= 0]
        closed = arithmetic.closed(total, question.roundings[cell.rows])
        made = lstm_step(arithmetic, cell, closed, joined(cell.before, before), question.roundings[cell.memory])
        for number, found in zip((cell.memory, cell.state), made, strict=True):
            if split is None or word is None:
                self.boxes[number] = self.whole(found)
                self.least[number] = max([self.least[source] for source in sources], default=0)
                continue
            self.apart[number] = found
            self.least_apart[number] = self.least_by_option(sources, word, split.swapped)
            self.hand_on(number, word, found, split)
        return True

    def split(self, number: int, word: int) -> None:
        """A piece of a segment: a row for each budget and option of its word."""
        question, split = self.question, rows_of(self.choices.options[word], self.budgets)
        swapped, budgets, places, below = split

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
        mixed = number in question.mixed
        self.least_apart[number] = self.least_by_option(() if mixed else question.program.reads[number], word, swapped)
        self.hand_on(number, word, found, split)

    def hand_on(self, number: int, word: int, found: Array, split: Split) -> None:
        """What others read of a piece of a segment: hulls."""
        options, least = self.choices.options[word], self.least_apart[number]
        _, budgets, places, _ = split
        self.least[number] = int(least.min())
        there = budgets >= least[places]
        if not there.any():
            there[:] = True
        if number in self.remembered.handed_on:
            self.boxes[number] = self.by_budgets(found[there], budgets[there])
            top = found[budgets == self.budgets, :2].mean(axis=1)
            moves = np.array(options)[places[budgets == self.budgets]] > 0
            if moves.any() and not moves.all():
                self.jump = max(self.jump, float(np.abs(top[moves] - top[~moves]).mean(axis=1).max()))

    def least_by_option(self, sources: Iterable[int], word: int, swapped: NDArray[np.int64]) -> NDArray[np.int64]:
        found = swapped.copy()
        for source in sources:
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


def boxed(choices: Choices, remembered: Remembered) -> Boxed:
    """Lower bounds of the margins over a region."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite or NaN is above nothing
        return Boxes(remembered, choices).found()
