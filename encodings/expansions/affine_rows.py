"""Pieces that are affine in the words, in an expansion: in its sentence, with one word swapped, and over the region."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..network import Floats
from ..regions.arithmetic import Ends, KernelEnds
from ..regions.assignments import Choices
from ..regions.carried import Element, element, fits
from ..regions.region import Question
from .multipliers import Array, Unfit


class AffineRows:
    """Of one region: words that lack their original have one option."""

    def __init__(self, question: Question, choices: Choices, ends: Ends) -> None:
        self.question, self.choices, self.ends = question, choices, ends
        self.references = [0 if 0 in own else own[0] for own in choices.options]

    @cached_property
    def elements(self) -> dict[int, Element]:
        """At level kernel."""
        found: dict[int, Element] = {}
        if not fits(self.question):
            raise Unfit("numbers too large for the level kernel")
        for number, piece in enumerate(self.question.program.pieces):
            if piece.affine:
                found[number] = element(self.question, number, piece, found)
        return found

    def numbers(self, number: int) -> Floats:
        """In the sentence of references."""
        sums = self.question.word_sums.of(number)
        return np.asarray(sums.base + sum(changes[self.references[word]] for word, changes in sums.changes.items()))

    def pair(self, number: int) -> Array:
        """[2, ..., size]: in the sentence of references, and over the region."""
        numbers = self.numbers(number)
        sums, options = self.question.word_sums.of(number), self.choices.options
        elsewhere = sum(0 not in own for word, own in enumerate(options) if word not in sums.changes)
        ends = sums.extremes(options, self.choices.swaps - elsewhere)[-1]
        return self.enclosed(number, np.stack([np.stack([numbers, numbers]), ends]))

    def swapped(self, number: int, word: int, options: Sequence[int]) -> Array:
        """[options, ..., size]: the references with one word swapped."""
        changes = self.question.word_sums.of(number).changes[word]
        rows = self.numbers(number) + changes[list(options)] - changes[self.references[word]]
        return self.enclosed(number, np.stack([rows, rows], axis=1))

    def enclosed(self, number: int, rows: Floats) -> Array:
        """Ends [rows, 2, size] moved outwards."""
        unit = self.ends.unit
        found = self.ends.moved(rows, self.question.word_sums.of(number).error() + unit)
        if not isinstance(self.ends, KernelEnds):
            return self.ends.limited(found)
        own = self.elements[number]
        found = self.ends.moved(found, own.error + (own.error_units + 1) * unit)
        sizes = np.broadcast_to(own.size + own.size_units * unit, (len(rows), 1, rows.shape[2]))
        return self.ends.limited(np.concatenate([found, sizes], axis=1))
