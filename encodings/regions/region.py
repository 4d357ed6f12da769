"""A question about a smooth network, and the regions of its space that are looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from .arithmetic import LIMIT
from .assignments import Choices
from .program import CONSTANTS, Blend, Dense, Look, Most, Product, Program, Stretch, stretches_of
from .tails import Affine, Tail, written
from .word_sums import WordSums

if TYPE_CHECKING:
    from ..attended.attended_layout import Layout
    from ..attended.attended_margins import Tables

GROUPS = 3
"""An affine piece that reads at least so many groups of pieces is passed over by the products that read it."""


@dataclass(frozen=True, eq=False)
class Question:
    """Which sentences of a space beat the label? Words are its swappable positions, in order."""

    program: Program
    tail: Tail
    original: NDArray[np.int64]
    positions: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    """[words]: of each option, the original first."""
    layout: Layout | None = None
    """Of one layer of attention, whose sentences are evaluated by differences."""

    @cached_property
    def attended_tables(self) -> dict[object, Tables]:
        """By arithmetic."""
        return {}

    @cached_property
    def word_at(self) -> Mapping[int, int]:
        return {position: word for word, position in enumerate(self.positions)}

    def whole(self, swaps: int) -> Choices:
        """All sentences with at most so many swaps."""
        return Choices(tuple(tuple(range(len(own))) for own in self.tokens), min(swaps, len(self.tokens)))

    def sentence(self, choices: Choices, row: NDArray[np.int32]) -> tuple[int, ...]:
        """Token ids of a row of assignments."""
        found = self.original.copy()
        for swap in row[row >= 0].tolist():
            word = int(choices.word_of[swap])
            found[self.positions[word]] = self.tokens[word][int(choices.option_of[swap])]
        return tuple(found.tolist())

    @cached_property
    def reached(self) -> tuple[frozenset[int], ...]:
        """[pieces]: the words that each depends on."""
        found: list[frozenset[int]] = []
        for piece, reads in zip(self.program.pieces, self.program.reads, strict=True):
            if isinstance(piece.operation, Look):
                word = self.word_at.get(piece.operation.position)
                found.append(frozenset() if word is None else frozenset([word]))
            else:
                found.append(frozenset().union(*[found[source] for source in reads]))
        return tuple(found)

    @cached_property
    def mixed(self) -> frozenset[int]:
        """The pieces whose elements may depend on other words than the piece does, each by itself."""
        found = set[int]()

        def alike(parts: tuple[Stretch, ...]) -> frozenset[int] | None:
            """The words that each element depends on; None where they may differ."""
            words = {frozenset[int]() if part.piece == CONSTANTS else self.reached[part.piece] for part in parts}
            return words.pop() if len(words) == 1 and not any(part.piece in found for part in parts) else None

        for number, piece in enumerate(self.program.pieces):
            match piece.operation:
                case Look() | Dense():
                    continue
                case (Blend() | Most()) as operation if all(
                    isinstance(part.place, slice) and part.place == slice(0, piece.size) and part.piece not in found
                    for part in stretches_of(operation)
                ):
                    continue  # every element reads one of each
                case Product(left, right):
                    sides = alike(left), alike(right)
                case operation:
                    sides = (alike(tuple(stretches_of(operation))), None)
            if self.reached[number] not in sides:
                found.add(number)
        return frozenset(found)

    def own_word(self, piece: int) -> frozenset[int]:
        """The one word that a piece is an affine function of, if there is one."""
        words = self.reached[piece]
        return words if self.program.pieces[piece].affine and len(words) == 1 else frozenset()

    @cached_property
    def word_sums(self) -> WordSums:
        return WordSums(self)

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The pieces that the margins depend on, those left out that the tail was written through."""
        return self.behind(lambda piece: self.program.reads[piece])

    @cached_property
    def needed_by_boxes(self) -> tuple[int, ...]:
        """The same where what is affine in several words is a sum over the words."""
        several = self.word_sums.several
        return self.behind(lambda piece: frozenset() if several(piece) else self.program.reads[piece])

    @cached_property
    def needed_in_sums(self) -> tuple[int, ...]:
        """The same where sums of products of these are sums over pairs of words."""
        return self.behind(self.reads_in_sums)

    @cached_property
    def needed_shortly(self) -> tuple[int, ...]:
        """The same where products pass over sums of many groups."""
        return self.behind(self.short_reads)

    def behind(self, reads: Callable[[int], frozenset[int]]) -> tuple[int, ...]:
        waiting, found = list(self.tail.parts), set[int]()
        while waiting:
            piece = waiting.pop()
            if piece not in found:
                found.add(piece)
                waiting.extend(reads(piece))
        return tuple(sorted(found))

    @cached_property
    def rewritten(self) -> Mapping[int, Affine]:
        """Products that read an affine piece which adds up many groups, written as what that reads."""
        found: dict[int, Affine] = {}
        for number, piece in enumerate(self.program.pieces):
            operation = piece.operation
            if not isinstance(operation, Dense) or piece.affine:
                continue
            wide = {source for source in self.program.reads[number] if self.adds_up(source)}
            if wide:
                found[number] = written(
                    self.program, operation.read, operation.matrices, operation.bias, wide.__contains__
                )
        return found

    def adds_up(self, piece: int) -> bool:
        own = self.program.pieces[piece]
        if own.affine or not isinstance(own.operation, Dense | Blend):
            return False
        return len({self.reached[source] for source in self.program.reads[piece]}) >= GROUPS

    @cached_property
    def constants(self) -> Mapping[int, Floats]:
        """Of affine pieces, what depends on no other piece: bias, and constants times their weights."""
        return self.held(lambda numbers: numbers)

    @cached_property
    def constant_sizes(self) -> Mapping[int, Floats]:
        """The magnitudes of all that."""
        return self.held(np.abs)

    def held(self, seen: Callable[[Floats], Floats]) -> dict[int, Floats]:
        found: dict[int, Floats] = {}
        for number, piece in enumerate(self.program.pieces):
            operation = piece.operation
            if not isinstance(operation, Dense | Blend):
                continue
            found[number] = seen(operation.bias) + 0.0
            weights = operation.matrices if isinstance(operation, Dense) else operation.weights
            for part, factors in zip(operation.read, weights, strict=True):
                if part.piece == CONSTANTS:
                    numbers = seen(self.program.constants[part.index])
                    added = numbers @ seen(factors) if isinstance(operation, Dense) else numbers * seen(factors)
                    found[number][part.place if isinstance(operation, Blend) else slice(None)] += added
        return found

    @property
    def roundings(self) -> Mapping[int, Floats]:
        return self.program.roundings

    @cached_property
    def reach_of(self) -> Mapping[int, float]:
        """Piece that the margins are written of -> no element of a piece on the way is larger than LIMIT where every
        one of these pieces is LIMIT / reach at most."""
        reach: dict[int, dict[int, float]] = {}
        for number in sorted(self.tail.through):
            operation = self.program.pieces[number].operation
            if not isinstance(operation, Dense | Blend):
                continue
            own = reach[number] = {CONSTANTS: float(self.constant_sizes[number].max(initial=0))}
            factors = operation.matrices if isinstance(operation, Dense) else operation.weights
            for part, weights in zip(operation.read, factors, strict=True):
                if part.piece == CONSTANTS:
                    continue
                sizes = np.abs(weights)
                norm = float((sizes.sum(axis=0) if isinstance(operation, Dense) else sizes).max(initial=0))
                for source, more in reach.get(part.piece, {part.piece: 1.0}).items():
                    own[source] = own.get(source, 0.0) + norm * more
        parts = len(self.tail.parts) + 1
        fits = all(own[CONSTANTS] * parts < LIMIT for own in reach.values())
        return {
            source: parts * max([1.0, *[own.get(source, 0.0) for own in reach.values()]]) if fits else np.inf
            for source in self.tail.parts
        }

    @cached_property
    def last_roundings(self) -> float:
        """On the way to a logit, of all affine pieces there together."""
        return float(sum(self.roundings[piece].max() for piece in self.tail.through))

    @cached_property
    def paths(self) -> Floats:
        """[rivals]: what a unit in every affine element on the way comes to."""
        return np.asarray(sum((size.sum(axis=0) for size in self.tail.through.values()), np.zeros(len(self.tail.size))))

    def in_sums(self, piece: int) -> bool:
        """Whether a piece is a sum over the words, or over pairs of them."""
        return self.word_sums.several(piece) or self.word_sums.pair_sum(piece) is not None

    def reads_in_sums(self, piece: int) -> frozenset[int]:
        return frozenset() if self.in_sums(piece) else self.program.reads[piece]

    def short_reads(self, piece: int) -> frozenset[int]:
        """What a piece is computed from where products pass over sums of many groups."""
        tail = self.rewritten.get(piece)
        return self.reads_in_sums(piece) if tail is None or self.in_sums(piece) else frozenset(tail.parts)
