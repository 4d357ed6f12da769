"""All sentences of a region evaluated, every piece once for each way to swap the words that it depends on.

A step of a recurrent layer depends on the words up to it, so sentences that begin alike share their beginnings, and in
the other direction their ends. Pieces are put into groups by the words that they depend on; a group has a row for each
assignment of these words, and finds in the groups that it reads the row of what that assignment is there:

    x[row] = f(sum over groups p of (x_p matrix_p)[row of p])

so that the products with matrices are made where rows are few. Pieces that are affine in several words are sums over
the swaps of a row, and sums of products of these are sums over its pairs of swaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arithmetic import Arithmetic
from .assignments import Assignments, AssignmentTables, Choices
from .carried import last_margins
from .operations import Part, applied, constant_margins, constant_part, looked_up
from .program import CONSTANTS, Blend, Dense, Look, Piece, Stretch
from .tails import Affine
from .word_sums import PairSum

if TYPE_CHECKING:
    from .region import Question

Array = NDArray[Any]
Rows = NDArray[np.int32]
Group = frozenset[int]
RESULT = -2
"""In place of a piece: the margins."""
MOST_ROWS, BLOCK = 8192, 1 << 17
"""Rows computed at a time where they are narrow, and numbers of the widest piece."""


class Stopped(Exception):
    """Time is up."""


@dataclass(eq=False)
class Held:
    """What groups keep for those that come after them."""

    raw: dict[int, Array] = field(default_factory=dict)
    """Piece -> its values for the rows of its group."""
    partial: dict[int, dict[Group, Array]] = field(default_factory=dict)
    """Affine piece -> group -> what the pieces of that group add to it, for the rows of that group."""


class Evaluation:
    """One region in one arithmetic."""

    def __init__(
        self,
        question: Question,
        choices: Choices,
        arithmetic: Arithmetic,
        stop: Callable[[], bool],
        sentences: Rows | None,
    ) -> None:
        self.question, self.choices, self.arithmetic, self.stop = question, choices, arithmetic, stop
        self.assignments = AssignmentTables(choices, sentences)
        if arithmetic.composes:
            self.needed = question.needed_shortly
        else:
            self.needed = question.needed_in_sums if arithmetic.adds_words else question.needed
        widest = max(question.program.pieces[piece].size for piece in self.needed) if self.needed else 1
        self.block = max(arithmetic.block, min(MOST_ROWS, BLOCK // widest))
        self.swap_numbers = question.word_sums.numbers(choices.word_of, choices.option_of)
        """Of the swaps of the region, among those of the text."""
        self.group_of = {piece: question.reached[piece] & choices.moving for piece in self.needed}
        self.asked: dict[int, list[int]] = defaultdict(list)
        """Piece -> the affine pieces of other groups that add it up, and the margins."""
        self.kept: set[int] = set()
        """Pieces that other groups read as they are."""
        for piece in self.needed:
            for source in self.sources(piece):
                if self.group_of[source] != self.group_of[piece]:
                    if isinstance(question.program.pieces[piece].operation, Dense | Blend):
                        self.asked[source].append(piece)
                    else:
                        self.kept.add(source)
        for source in question.tail.parts:
            self.asked[source].append(RESULT)

    def sources(self, piece: int) -> frozenset[int]:
        if self.arithmetic.composes:
            return self.question.short_reads(piece)
        return self.question.reads_in_sums(piece) if self.arithmetic.adds_words else self.question.program.reads[piece]

    def rewritten(self, piece: int) -> Affine | None:
        return self.question.rewritten.get(piece) if self.arithmetic.composes else None

    def margins(self) -> tuple[Assignments, Array]:
        whole = self.assignments.of(self.choices.moving)
        total = np.repeat(constant_margins(self.question, self.arithmetic), len(whole), axis=0)
        for group, added in self.contributions():
            total += spread(added, self.assignments.of(group), whole)
        return whole, last_margins(self.question, self.arithmetic, total)

    def contributions(self) -> Iterator[tuple[Group, Array]]:
        """Group by group, what its pieces add to the margins."""
        members: dict[Group, list[int]] = defaultdict(list)
        for piece in self.needed:
            members[self.group_of[piece]].append(piece)
        order = sorted(members, key=lambda group: (len(group), members[group][0]))
        last_reader = {source: place for place, group in enumerate(order) for source in self.read_by(members[group])}
        held = Held()
        for place, group in enumerate(order):
            found = self.compute(group, members[group], held)
            for piece in members[group]:
                for array in held.partial.pop(piece, {}).values():
                    self.release(array)
            for piece in [piece for piece in held.raw if last_reader[piece] <= place]:
                self.release(held.raw.pop(piece))
            if found is not None:
                yield group, found

    def release(self, array: Array) -> None:
        """What nobody reads any more."""

    def read_by(self, pieces: list[int]) -> set[int]:
        return {source for piece in pieces for source in self.sources(piece)} & self.kept

    def compute(self, group: Group, pieces: list[int], held: Held) -> Array | None:
        """All pieces of a group, block by block; what they add to the margins."""
        rows = self.assignments.of(group)
        maps: dict[Group, Rows] = {}
        added: Array | None = None
        for start in range(0, len(rows), self.block):
            if self.stop():
                raise Stopped
            block = Block(self, rows, slice(start, min(start + self.block, len(rows))), held, maps)
            for piece in pieces:
                x = block.add(piece)
                if piece in self.kept:
                    stored(held.raw, piece, x, rows, block.rows)
                for reader in self.asked[piece]:
                    part = self.part(reader, piece, x)
                    if reader == RESULT:
                        added = grown(added, part, rows, block.rows)
                    else:
                        own = held.partial.setdefault(reader, {})
                        own[group] = grown(own.get(group), part, rows, block.rows)
        return added

    def constant(self, piece: int) -> Array:
        tail = self.rewritten(piece)
        if tail is None:
            return constant_part(self.question, piece, self.arithmetic)
        return self.arithmetic.given(tail.constant[None], len(tail.parts) + 1)

    def part(self, reader: int, source: int, x: Array) -> Array:
        """[rows, size of the reader]: what a source adds to an affine piece, or to the margins."""
        question, arithmetic = self.question, self.arithmetic
        if reader == RESULT:
            parts = len(question.tail.parts) + 1
            matrix, sizes = question.tail.parts[source], question.tail.sizes[source]
            return arithmetic.tail(x, matrix, sizes, parts, question.reach_of[source])
        tail = self.rewritten(reader)
        if tail is not None:
            return arithmetic.multiply(x, tail.parts[source], len(tail.parts) + 1)
        piece = question.program.pieces[reader]
        match piece.operation:
            case Dense(read, matrices):
                products = [
                    arithmetic.multiply(x[..., part.index], matrix, len(read) + 1)
                    for part, matrix in zip(read, matrices, strict=True)
                    if part.piece == source
                ]
                return sum(products[1:], products[0])
            case Blend(read, weights):
                total = np.zeros((*x.shape[:-1], piece.size), dtype=x.dtype)
                for part, factors in zip(read, weights, strict=True):
                    if part.piece == source:
                        total[..., part.place] += arithmetic.scale(x[..., part.index], factors, len(read) + 1)
                return total
        raise TypeError(f"{type(piece.operation).__name__} is not affine")


class Block:
    """Some rows of a group: the values of its pieces, one after the other."""

    def __init__(self, whole: Evaluation, group: Assignments, rows: slice, held: Held, maps: dict[Group, Rows]) -> None:
        self.whole, self.group, self.rows, self.held, self.maps = whole, group, rows, held, maps
        self.question, self.arithmetic = whole.question, whole.arithmetic
        self.values: dict[int, Array] = {}

    @property
    def count(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def add(self, number: int) -> Array:
        found = self.values[number] = self.value(number, self.question.program.pieces[number])
        return found

    def value(self, number: int, piece: Piece) -> Array:
        sums = self.question.word_sums
        if self.arithmetic.adds_words and sums.several(number):
            return self.word_sum(number)
        if self.arithmetic.adds_words and (found := sums.pair_sum(number)) is not None:
            return self.pair_sum(found)
        match piece.operation:
            case Look():
                return self.looked_up(piece.operation)
            case Dense() | Blend():
                return self.summed(number)
        return applied(piece, self.arithmetic, self.stretch, None, None)

    @cached_property
    def swaps(self) -> NDArray[np.int64]:
        """[rows, most]: numbers among all swaps of the text."""
        return self.whole.swap_numbers[self.group.rows[self.rows]]

    def word_sum(self, number: int) -> Array:
        sums, dtype = self.question.word_sums, self.arithmetic.dtype
        base, table, place = sums.table(number, dtype)
        total = np.repeat(base[None], self.count, axis=0)
        for column in self.swaps.T:
            total += table[place[column]]
        error = sums.of(number).error(self.swaps.shape[1])
        return self.arithmetic.enclosed(total, error, np.ones(1))

    def pair_sum(self, found: PairSum) -> Array:
        total = np.repeat(found.base[None], self.count, axis=0)
        columns = self.swaps.T
        for place, column in enumerate(columns):
            total += found.single[column]
            for other in columns[:place]:
                total += found.pairs[column, other]
        return self.arithmetic.enclosed(total, found.error, found.units)

    def summed(self, number: int) -> Array:
        """An affine piece: what other groups add to it, and what its own group does."""
        total = self.whole.constant(number)
        for group, array in self.held.partial.get(number, {}).items():
            total = total + (array if len(array) == 1 else array[self.rows_in(group)])
        for source in self.whole.sources(number):
            if source in self.values:
                total = total + self.whole.part(number, source, self.values[source])
        found = self.arithmetic.closed(total, self.question.roundings[number])
        return found if len(found) == self.count else np.repeat(found, self.count, axis=0)

    def rows_in(self, group: Group) -> Rows:
        """Where the rows of this block are in the table of another group."""
        if group not in self.maps:
            self.maps[group] = self.whole.assignments.of(group).rows_of(self.group)
        return self.maps[group][self.rows]

    def stretch(self, part: Stretch) -> Part:
        if part.piece == CONSTANTS:
            return Part(self.arithmetic.given(self.question.program.constants[part.index][None]))
        if part.piece in self.values:
            return Part(self.values[part.piece][..., part.index])
        return Part(self.held.raw[part.piece][..., part.index], self.rows_in(self.whole.group_of[part.piece]))

    def looked_up(self, operation: Look) -> Array:
        """The row of the table for what each row says of the word."""
        question, choices = self.question, self.whole.choices
        word = question.word_at.get(operation.position)
        if word is None:
            tokens = np.array([question.original[operation.position]])
        else:
            tokens = np.array(question.tokens[word])[list(choices.options[word])]
        found = looked_up(question, operation, tokens, self.arithmetic)
        if len(found) == 1:
            return np.repeat(found, self.count, axis=0)
        if word is None:
            raise ValueError("a position without a word has one token")
        place = np.zeros(self.count, dtype=np.int64)
        for number in choices.number(word):
            chosen = (self.group.rows[self.rows] == number).any(axis=1)
            place[chosen] = choices.options[word].index(int(choices.option_of[number]))
        return found[place]


def spread(array: Array, group: Assignments, wider: Assignments) -> Array:
    """For each row of a wider set of words."""
    return array if len(array) == 1 else array[group.rows_of(wider)]


def stored(kept: dict[int, Array], piece: int, x: Array, rows: Assignments, block: slice) -> None:
    if piece not in kept:
        kept[piece] = np.empty((len(rows), *x.shape[1:]), dtype=x.dtype)
    kept[piece][block] = x


def grown(total: Array | None, part: Array, rows: Assignments, block: slice) -> Array:
    if total is None:
        total = np.zeros((len(rows), *part.shape[1:]), dtype=part.dtype)
    total[block] += part
    return total
