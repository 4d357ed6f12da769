"""Pieces that are affine in several words, as sums over the words; and sums of products of such pieces.

    x(sentence) = base + sum over its swaps s of change_s
    sum of w x y = q + sum over its swaps s of l_s + sum over its pairs of swaps s, t of p_st

so that a sentence costs as much as it has swaps, or pairs of them, however many words there are and however wide the
pieces that are multiplied. Everything is in float64, with a bound of what rounding can have cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..network import Floats, Indices
from .program import CONSTANTS, Blend, Dense, Look, Piece, Product, Program, Stretch

Array = NDArray[Any]
LAST_BIT = 2.0**-52
"""Twice what one operation in float64 can lose, for each number that is added up."""
MOST_SUMS, MOST_SWAPS = 4, 1500
"""Of sums of products: how many stand in a piece at most, and the swaps of a text whose pairs are tabulated."""


class Asked(Protocol):
    """What is asked about a text, as far as sums go."""

    @property
    def program(self) -> Program: ...

    @property
    def original(self) -> NDArray[np.int64]: ...

    @property
    def tokens(self) -> tuple[tuple[int, ...], ...]: ...

    @property
    def word_at(self) -> Mapping[int, int]: ...

    @property
    def reached(self) -> tuple[frozenset[int], ...]: ...

    @property
    def constants(self) -> Mapping[int, Floats]: ...

    @property
    def constant_sizes(self) -> Mapping[int, Floats]: ...


@dataclass(frozen=True, eq=False)
class WordSum:
    """A piece that is affine in the words."""

    base: Floats
    """[size]: in the text itself."""
    changes: Mapping[int, Floats]
    """Word -> [options, size]: what each adds; the original 0."""
    sizes: Floats
    """[size]: at least the magnitudes of all terms in any sentence together."""
    roundings: float

    def extremes(self, options: Sequence[Sequence[int]], swaps: int, *, apart: bool = False) -> Floats:
        """[swaps + 1, 2, size]: the least and the greatest with at most 0, 1, ... swaps of its words, whose options are
        these (FORMAT.md, section 7); with fewer swaps than words are forced, the same as with those.

        `apart`: its elements depend on different words, and a word that is forced costs those nothing that lack it."""
        found = np.empty((swaps + 1, 2, len(self.base)))
        for side, sign in enumerate((-1.0, 1.0)):
            forced, free = np.zeros(len(self.base)), [np.zeros((1, len(self.base)))]
            count = 0
            for word, changes in self.changes.items():
                moved = [option for option in options[word] if option]
                if not moved:
                    continue
                most = (sign * changes[moved]).max(axis=0)
                if 0 in options[word]:
                    free.append(np.maximum(most, 0.0)[None])
                else:
                    forced, count = forced + most, count + 1
            gains = -np.sort(-np.concatenate(free[1:]), axis=0) if len(free) > 1 else free[0]
            reached = np.concatenate([free[0], np.cumsum(gains, axis=0)])
            at = np.clip(np.arange(swaps + 1) - (0 if apart else count), 0, len(reached) - 1)
            found[:, side] = self.base + sign * (forced + reached[at])
        return found

    def error(self, more: int = 0) -> Floats:
        """[size]: what float64 can have lost of a sum over the words, and so many more terms."""
        return (self.roundings + len(self.changes) + more) * LAST_BIT * self.sizes


@dataclass(frozen=True, eq=False)
class PairSum:
    """A piece that adds up products of two such pieces."""

    base: Floats
    """[size]"""
    single: Floats
    """[swaps + 1, size]: the last row, of no swap, is 0."""
    pairs: Floats
    """[swaps + 1, swaps + 1, size]"""
    error: Floats
    """[size]: what float64 can have lost."""
    units: Floats
    """[size]: so many units the ends of a checker lie further out. With factors known up to a unit u, and products and
    their sum rounded outwards to it, these are 1 + sum of |w| (|x| + |y| + 1 + u)."""


class WordSums:
    """Of one question, each made when it is asked for."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.sums: dict[int, WordSum] = {}
        self.tables: dict[tuple[int, type], tuple[Array, Array, Indices]] = {}
        self.made: dict[int, PairSum | None] = {}

    @cached_property
    def first(self) -> Indices:
        """[words + 1]: the number of each word's first swap among all of the text."""
        return np.cumsum([0, *(len(own) - 1 for own in self.asked.tokens)])

    @property
    def swaps(self) -> int:
        return int(self.first[-1])

    def numbers(self, words: Indices, options: Indices) -> Indices:
        """Of swaps among all of the text, and behind them that of none."""
        return np.append(self.first[words] + options - 1, self.swaps)

    def several(self, piece: int) -> bool:
        """Whether a piece is affine in the words, and in more than one."""
        return self.asked.program.pieces[piece].affine and len(self.asked.reached[piece]) > 1

    def of(self, number: int) -> WordSum:
        if number not in self.sums:
            operation = self.asked.program.pieces[number].operation
            self.sums[number] = self.looked_up(operation) if isinstance(operation, Look) else self.added(number)
        return self.sums[number]

    def looked_up(self, operation: Look) -> WordSum:
        word = self.asked.word_at.get(operation.position)
        tokens = [int(self.asked.original[operation.position])] if word is None else self.asked.tokens[word]
        rows = np.asarray(operation.table[np.array(tokens)], dtype=np.float64)
        changes = {} if word is None else {word: rows - rows[0]}
        return WordSum(rows[0], changes, 3 * np.abs(rows).max(axis=0), 1.0)

    def added(self, number: int) -> WordSum:
        base, sizes = self.asked.constants[number].copy(), self.asked.constant_sizes[number].copy()
        changes: dict[int, Floats] = {}
        roundings, terms = 0.0, 0
        for part, weights in linear_parts(self.asked.program.pieces[number]):
            terms += max(1, weights.shape[0] if weights.ndim == 2 else 1)
            if part.piece == CONSTANTS:
                continue
            source = self.of(part.piece)
            roundings = max(roundings, source.roundings)
            add(base, part, weights, source.base)
            add(sizes, part, np.abs(weights), source.sizes)
            for word, rows in source.changes.items():
                held = changes.setdefault(word, np.zeros((len(rows), len(base))))
                add(held, part, weights, rows)
        return WordSum(base, changes, sizes, roundings + terms + 8)

    def table(self, number: int, dtype: type) -> tuple[Array, Array, Indices]:
        """The base, a row for each swap of its words and one of zeros, and where each swap of the text stands there."""
        if (number, dtype) not in self.tables:
            found = self.of(number)
            place = np.full(self.swaps + 1, -1, dtype=np.int64)
            rows = [np.zeros((0, len(found.base)))]
            count = 0
            for word, changes in found.changes.items():
                place[self.first[word] : self.first[word + 1]] = np.arange(count, count + len(changes) - 1)
                rows.append(changes[1:])
                count += len(changes) - 1
            place[place < 0] = count
            table: Array = np.concatenate([*rows, np.zeros((1, len(found.base)))]).astype(dtype)
            self.tables[number, dtype] = found.base.astype(dtype), table, place
        return self.tables[number, dtype]

    # ---- sums of products

    def pair_sum(self, number: int) -> PairSum | None:
        """None where a piece is none, or too large."""
        if number not in self.made:
            self.made[number] = self.multiplied(number)
        return self.made[number]

    def multiplied(self, number: int) -> PairSum | None:
        program, piece = self.asked.program, self.asked.program.pieces[number]
        if piece.affine or piece.size > MOST_SUMS or self.swaps > MOST_SWAPS or not piece_adds(piece):
            return None
        parts = [(part, weights) for part, weights in linear_parts(piece) if part.piece != CONSTANTS]
        if not all(self.is_product(part.piece) for part, _ in parts):
            return None
        swaps, size = self.swaps, piece.size
        base, total = self.asked.constants[number].copy(), self.asked.constant_sizes[number].copy()
        single, pairs = np.zeros((swaps + 1, size)), np.zeros((swaps + 1, swaps + 1, size))
        spread, terms = np.zeros(size), np.zeros(size)
        roundings, elements = 0.0, 0
        for part, weights in parts:
            operation = program.pieces[part.piece].operation
            if not isinstance(operation, Product):
                raise TypeError("a product was asked for")
            matrix = weights if weights.ndim == 2 else np.zeros((len(weights), size))
            if weights.ndim == 1:
                matrix[np.arange(len(weights)), np.arange(size)[part.place]] = weights
            a, b = (self.side(side, part.index) for side in (operation.left, operation.right))
            roundings, elements = max(roundings, a.roundings + b.roundings), elements + len(matrix)
            magnitudes = np.abs(matrix)
            base += (a.base * b.base) @ matrix
            total += (a.sizes * b.sizes) @ magnitudes
            spread += (a.sizes + b.sizes) @ magnitudes
            terms += magnitudes.sum(axis=0)
            single += (a.changes * b.base + a.base * b.changes + a.changes * b.changes) @ matrix
            for column in range(size):
                crossed = (a.changes * matrix[:, column]) @ b.changes.T
                pairs[..., column] += crossed + crossed.T
        error = (roundings + elements + 2 * len(self.asked.tokens) + 32) * 2 * LAST_BIT * total
        return PairSum(base, single, pairs, error, 1 + (spread + 2 * terms) * (1 + 2.0**-30))

    def is_product(self, number: int) -> bool:
        operation = self.asked.program.pieces[number].operation
        if not isinstance(operation, Product):
            return False
        return all(part.piece >= 0 and self.several(part.piece) for part in (*operation.left, *operation.right))

    def side(self, parts: Sequence[Stretch], index: slice | Indices) -> Side:
        """One factor of the products at these places."""
        size = 1 + max(top(part.place) for part in parts)
        base, sizes, changes = np.zeros(size), np.zeros(size), np.zeros((self.swaps + 1, size))
        roundings = 0.0
        for part in parts:
            own_base, table, place = self.table(part.piece, np.float64)
            base[part.place] = own_base[part.index]
            changes[:, part.place] = table[place][:, part.index]
            sizes[part.place] = self.of(part.piece).sizes[part.index]
            roundings = max(roundings, self.of(part.piece).roundings + len(self.of(part.piece).changes))
        return Side(base[index], sizes[index], changes[:, index], roundings)


@dataclass(frozen=True, eq=False)
class Side:
    """Elements as sums over the swaps of the text: [elements], [elements], [swaps + 1, elements]."""

    base: Floats
    sizes: Floats
    changes: Floats
    roundings: float


def top(place: slice | Indices) -> int:
    return int(place.stop) - 1 if isinstance(place, slice) else int(place.max())


def piece_adds(piece: Piece) -> bool:
    return isinstance(piece.operation, Dense | Blend)


def linear_parts(piece: Piece) -> Sequence[tuple[Stretch, Floats]]:
    """What an affine piece reads, with a matrix each, or a number for each element."""
    match piece.operation:
        case Dense(read, weights) | Blend(read, weights):
            return list(zip(read, weights, strict=True))
    raise TypeError(f"{type(piece.operation).__name__} is not affine")


def add(total: Floats, part: Stretch, weights: Floats, x: Floats) -> None:
    if weights.ndim == 2:
        total += x[..., part.index] @ weights
    else:
        total[..., part.place] += x[..., part.index] * weights
