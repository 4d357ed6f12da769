"""What models answer to sentences of one text, given as the option of every word; and networks that are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.errors import Unsupported
from swapproof.encodings.evaluation import values
from swapproof.encodings.query import Query
from swapproof.models.deployed.classifier import Rows
from swapproof.models.deployed.decision import Decision
from swapproof.models.encoded import spans_of
from swapproof.models.plain_words import PlainWords
from swapproof.models.subwords import TokenizerVocabulary
from swapproof.models.vocabulary import Vocabulary

Array = NDArray[Any]
Without = Literal["unknown", "delete"]
"""How a word is taken away to see what it does: an unknown word in its place, or nothing."""
UNKNOWN_WORD = "[UNK]"
"""Stands for a word taken away where the task names no unknown word, as in TextAttack."""
CELLS = 1 << 22
"""Numbers in one block of sentences: bounds memory."""
STEP = 2.0**-20
"""Of a swap, to both sides: its slope is a central difference in float64."""


def unknown_word(named: str | int | None) -> str:
    """As it is written into a text; `named`: by the task."""
    return named if isinstance(named, str) else UNKNOWN_WORD


def unknown_spelt(vocabulary: Vocabulary) -> str:
    """What this vocabulary reads as the one token of the unknown word.

    Where marks stand apart `<unk>` would be three words; a word of letters that it does not know is one.
    """
    if isinstance(vocabulary, PlainWords):
        return unknown_word(None)
    word = unknown_word(vocabulary.unknown)
    if isinstance(vocabulary, TokenizerVocabulary) or spans_of(word, vocabulary.split) == ((0, len(word)),):
        return word
    word = "unk"
    while word in vocabulary.ids:
        word += "k"
    return word


class Answers(Protocol):
    """`answered` are scores as `decision` reads them."""

    @property
    def decision(self) -> Decision: ...

    def answered(self, rows: Rows) -> Array:
        """[n, outputs]."""

    def without(self, words: Array, way: Without) -> Array:
        """[n, outputs]: of the text itself without each of these words."""

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        """[n, outputs]: to first order, what each of these swaps adds to the answer to `row`, as a gradient says."""


@dataclass(frozen=True, eq=False)
class OfNetwork:
    """Of a network that is read: the differences that swaps make before its first nonlinear layer, added up."""

    query: Query
    numbers: NDArray[np.int64]
    """[words, options]: of the swap among those of the query; that of no swap is the last row."""
    deployed: Answers | None = None
    """For what is no sentence of the space."""
    decision: Decision = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decision", Decision(self.query.network.classes))

    @classmethod
    def of(cls, query: Query, places: tuple[tuple[int, int], ...], deployed: Answers | None = None) -> OfNetwork:
        """`places`: of every word, its first token."""
        positions, tokens = query.space.single_swaps()
        known = {swap: number for number, swap in enumerate(zip(positions.tolist(), tokens.tolist(), strict=True))}
        widest = max((len(query.space.choices[first]) for first, _ in places), default=1)
        numbers = np.full((len(places), widest), len(positions), dtype=np.int64)
        for word, (first, _) in enumerate(places):
            for option, token in enumerate(query.space.choices[first][1:], start=1):
                numbers[word, option] = known[first, token]
        return cls(query, numbers, deployed)

    @cached_property
    def differences(self) -> Differences:
        return Differences.of(self.query)

    @cached_property
    def moves(self) -> Array:
        """[swaps + 1, width]: what each adds at the cut, and nothing."""
        return np.append(self.differences.rows, np.zeros((1, self.differences.width)), axis=0)

    def answered(self, rows: Rows) -> Array:
        most = max(1, CELLS // max(1, self.differences.width))
        blocks = [rows[start : start + most] for start in range(0, len(rows), most)]
        return np.concatenate([self.logits(self.cut(block)) for block in blocks])

    def cut(self, rows: Rows) -> Array:
        total = np.repeat(self.differences.base[None], len(rows), axis=0)
        for word in np.flatnonzero(rows.any(axis=0)).tolist():
            swapped = np.flatnonzero(rows[:, word])
            total[swapped] += self.moves[self.numbers[word, rows[swapped, word]]]
        return total

    def logits(self, cut: Array) -> Array:
        network = self.query.network
        found = values(network, given=network.split_cut(cut))[len(network.nodes) - 1]
        return np.asarray(found.reshape(len(cut), -1))

    def without(self, words: Array, way: Without) -> Array:
        if self.deployed is None:
            raise Unsupported(
                "a text without a word is no sentence of the space, and there is no model to ask about it"
            )
        return self.deployed.decision.values(self.deployed.without(words, way))

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        here = self.cut(np.asarray(row, dtype=np.int32)[None])
        moves = self.moves[self.numbers[words, options]] - self.moves[self.numbers[words, row[words]]]
        return np.asarray((self.logits(here + STEP * moves) - self.logits(here - STEP * moves)) / (2 * STEP))
