"""The leaf `expansion` in float64 (FORMAT.md, section 18): a bound from below of the margins over a region.

    expanded(question, choices, chains, reach, ends)

Intervals are rigorous ends, which hold those of a checker. Its multipliers are others: `multipliers` says by how much,
and what that costs. What float64 rounds is counted in SLACK, for checkers of a precision of BITS bits or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..network import Floats, Indices
from ..regions.arithmetic import Ends, KernelEnds, Plain
from ..regions.assignments import Choices
from ..regions.boxes import hulls
from ..regions.carried import last_margins
from ..regions.operations import Part, applied, constant_margins, constant_part, joined
from ..regions.program import CONSTANTS, Bend, Blend, Curve, Dense, Most, Product, Stretch
from ..regions.region import Question
from .affine_rows import AffineRows
from .least_sets import Charges, least_sets
from .move_rows import MoveRows
from .multipliers import Array, Multipliers, Unfit
from .ordered_chains import Chain

BITS = 48
SLACK = 2.0**-32
"""Times the sum of all multipliers: each element may be off by so much, in units of a checker and in float64."""


@dataclass(frozen=True, eq=False)
class Expanded:
    """[budgets + 1, rivals]: bounds of the margins; and the moves (word, option) of the worst set, with what each alone
    costs to first order."""

    margins: Floats
    worst: dict[tuple[int, int], float]


def expanded(question: Question, choices: Choices, chains: Sequence[Chain], reach: int, ends: Ends) -> Expanded:
    """Raises Unfit where nothing is said."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return Expansion(question, choices, chains, reach, ends).found()


class Expansion:
    """One region."""

    def __init__(self, question: Question, choices: Choices, chains: Sequence[Chain], reach: int, ends: Ends) -> None:
        self.question, self.chains, self.reach = question, chains, reach
        self.affine = AffineRows(question, choices, ends)
        self.ends, self.references = ends, self.affine.references
        forced = [own for own in choices.options if 0 not in own]
        if any(len(own) > 1 for own in forced):
            raise Unfit("a word that lacks its original, with several options")
        self.forced = len(forced)
        if self.forced > choices.swaps:
            raise Unfit("a region without sentences")
        read = frozenset[int]().union(*[question.reached[number] for number in question.needed])
        self.moves = {
            word: [option for option in own if option]
            for word, own in enumerate(choices.options)
            if len(own) > 1 and word in read
        }
        self.room = min(len(self.moves), choices.swaps - self.forced)
        self.words = [reached & self.moves.keys() for reached in question.reached]
        self.pairs: dict[int, Array] = {}
        """Piece -> [2, ..., size]: N and A."""
        self.center, doubt, values = self.at_references()
        self.multipliers = Multipliers(question, self.center, doubt, values, ends)
        self.outside = np.zeros(len(question.tail.size))

    def at_references(self) -> tuple[dict[int, Floats], dict[int, Floats], dict[int, Floats]]:
        """The low ends of N, about which margins are expanded, and its widths, since those of a checker lie within; and
        the rules of pieces applied to these numbers."""
        question, ends, plain = self.question, self.ends, Plain(np.float64)
        held: dict[int, Array] = {}
        center: dict[int, Floats] = {}
        values: dict[int, Floats] = {}

        def enclosed(part: Stretch) -> Part:
            if part.piece == CONSTANTS:
                return Part(ends.given(question.program.constants[part.index][None]))
            return Part(held[part.piece][..., part.index])

        def read(part: Stretch) -> Part:
            numbers = question.program.constants if part.piece == CONSTANTS else center[part.piece]
            return Part(numbers[part.index][None])

        for number in question.needed:
            piece = question.program.pieces[number]
            if piece.affine:
                held[number] = self.pair(number)[:1]
                values[number] = self.affine.numbers(number)
            else:
                sums = isinstance(piece.operation, Dense | Blend)
                constants = [constant_part(question, number, each) if sums else None for each in (ends, plain)]
                held[number] = applied(piece, ends, enclosed, constants[0], question.roundings.get(number))
                values[number] = applied(piece, plain, read, constants[1], question.roundings.get(number))[0]
            center[number] = held[number][0, 0]
        return center, {number: rows[0, 1] - rows[0, 0] for number, rows in held.items()}, values

    # ---- the bound

    def found(self) -> Expanded:
        question = self.question
        traces: list[Traces] = []
        current: Traces | None = None
        for number in question.needed:
            piece = question.program.pieces[number]
            if piece.affine:
                continue
            chain = next((chain for chain in self.chains if piece.layer in chain), None)
            if chain is None:
                self.compute(number)
                continue
            if current is None or current.chain is not chain:
                current = Traces(self, chain)
                traces.append(current)
            current.compute(number)
        return self.bound(traces)

    def bound(self, traces: Sequence[Traces]) -> Expanded:
        """For each number of swaps: words that are forced count."""
        question = self.question
        fixed = question.tail.constant + sum(self.center[n] @ matrix for n, matrix in question.tail.parts.items())
        for number, given in self.multipliers.of.items():
            if question.program.pieces[number].affine:
                rest = self.multipliers.values[number] - self.center[number]
                fixed = fixed + rest @ given - np.abs(rest) @ self.multipliers.loose[number]
        fixed = fixed + self.outside - SLACK * self.multipliers.size - self.kernel_errors()
        moves = [(word, option) for word, own in self.moves.items() for option in own]
        places = np.repeat(np.arange(len(self.moves)), [len(own) for own in self.moves.values()])
        rises = self.rises(moves)
        margins = np.full((self.forced + self.room + 1, len(fixed)), -np.inf)
        worst: dict[tuple[int, int], float] = {}
        for rival in range(len(fixed)):
            both = [summed([each for each in traces if each.chain.descending is way], rival) for way in (False, True)]
            up, down = [each or nothing(self.room, len(moves), len(self.moves)) for each in both]
            found, chosen = least_sets(rises[:, rival], places, up, down)
            margins[self.forced :, rival] = fixed[rival] + np.minimum.accumulate(found)
            if rival == 0 or margins[-1, rival] <= margins[-1, :rival].min():
                worst = {moves[at]: float(-rises[at, rival]) for at in chosen}
        return Expanded(margins, worst)

    def rises(self, moves: Sequence[tuple[int, int]]) -> Floats:
        """[moves, rivals]: by what each changes what is affine in the words."""
        found = np.zeros((len(moves), len(self.question.tail.size)))
        for number, given in self.multipliers.of.items():
            if self.question.program.pieces[number].affine:
                for word, changes in self.question.word_sums.of(number).changes.items():
                    here = [at for at, (each, _) in enumerate(moves) if each == word]
                    if here:
                        own = changes[[moves[at][1] for at in here]]
                        found[here] += own @ given - np.abs(own) @ self.multipliers.loose[number]
        return found

    def kernel_errors(self) -> Floats:
        """At level kernel what float32 values may be off by in layers affine in the words, and in the last sums."""
        question, ends = self.question, self.ends
        if not isinstance(ends, KernelEnds):
            return np.zeros(len(question.tail.size))
        total = constant_margins(question, ends)
        lost = np.zeros(len(question.tail.size))
        for number, sizes in self.multipliers.sizes.items():
            if question.program.pieces[number].affine:
                own = self.affine.elements[number]
                charged = sizes + self.multipliers.loose[number] + ends.unit
                lost += (own.error + (own.error_units + 1) * ends.unit) @ charged
        for source, matrix in question.tail.parts.items():
            tail = question.tail
            part = self.pair(source)[1:]
            total = total + ends.tail(part, matrix, tail.sizes[source], len(tail.parts) + 1, question.reach_of[source])
        return np.asarray(lost + (total[:, 0] - last_margins(question, ends, total)[:, 0])[0])

    # ---- pieces outside chains

    def pair(self, number: int) -> Array:
        if number not in self.pairs:
            self.pairs[number] = self.affine.pair(number)
        return self.pairs[number]

    def outer(self, part: Stretch) -> Part:
        if part.piece == CONSTANTS:
            return Part(self.ends.given(self.question.program.constants[part.index][None]))
        return Part(self.pair(part.piece)[..., part.index])

    def compute(self, number: int) -> None:
        """N and A of a piece."""
        found, read = self.evaluated(number, self.outer, 2)
        self.pairs[number] = found
        self.outside = self.outside + self.multipliers.costs(number, found, read, self.ends)[-1]

    def evaluated(self, number: int, read: Callable[[Stretch], Part], rows: int) -> tuple[Array, list[Array]]:
        """So many rows of a piece, and of what it reads."""
        piece, ends = self.question.program.pieces[number], self.ends
        given: list[Array] = []
        match piece.operation:
            case Dense() | Blend():
                constant = constant_part(self.question, number, ends)
                found = applied(piece, ends, read, constant, self.question.roundings[number])
            case Product(left, right, square):
                given = [joined(left, read)] if square else [joined(left, read), joined(right, read)]
                found = ends.product(given[0], given[-1], square=square)
            case Curve(parts, function):
                given = [joined(parts, read)]
                found = ends.curve(function, given[0])
            case Bend(parts, slope):
                given = [joined(parts, read)]
                found = ends.bend(given[0], slope)
            case Most(columns):
                given = [joined(parts, read) for parts in columns]
                most = given[0]
                for each in given[1:]:
                    most = np.maximum(most, each)
                found = ends.most(most)
            case _:
                raise TypeError("tokens are looked up")
        given = [np.repeat(each, rows, axis=0) if len(each) < rows else each for each in given]
        return (np.repeat(found, rows, axis=0) if len(found) < rows else found), given


class Traces:
    """The pieces of a chain."""

    def __init__(self, region: Expansion, chain: Chain) -> None:
        self.region, self.chain = region, chain
        self.order = chain.ordered(frozenset(region.moves))
        self.rows = MoveRows([len(region.moves[word]) for word in self.order], region.room, region.reach)
        self.place = {word: place for place, word in enumerate(self.order)}
        self.values: dict[int, Array] = {}
        self.boxes: dict[int, Array] = {}
        """Piece -> [r + 1, ..., size]"""
        self.costs: dict[int, Floats] = {}
        """Level -> [rows, rivals]"""

    def level(self, number: int) -> int:
        words = self.region.words[number]
        if words != frozenset(self.order[: len(words)]) or number in self.region.question.mixed:
            raise Unfit("a chain that does not read in order")
        return len(words)

    def compute(self, number: int) -> None:
        region, level = self.region, self.level(number)
        count = self.rows.count(level)
        found, read = region.evaluated(number, lambda part: self.read(part, level), count)
        self.values[number] = found
        costs = region.multipliers.costs(number, found, read, region.ends)
        self.costs[level] = self.costs.get(level, 0.0) + np.broadcast_to(costs, (count, costs.shape[1]))
        self.boxes[number] = self.hulls(found, self.rows.swaps(level))
        region.pairs[number] = np.stack([found[0], self.boxes[number][-1]])

    def hulls(self, found: Array, swaps: Indices) -> Array:
        """B_0 .. B_r."""
        order = np.argsort(swaps, kind="stable")
        starts = np.searchsorted(swaps[order], np.arange(self.region.room + 1))
        if len(found) == 1:
            return np.repeat(found, self.region.room + 1, axis=0)
        hull = hulls(found[order], starts)
        hull[1:, 0] = np.minimum(hull[1:, 0], found[0, 0])
        hull[1:, 1:] = np.maximum(hull[1:, 1:], found[0, 1:])
        return hull

    def read(self, part: Stretch, level: int) -> Part:
        region, number = self.region, part.piece
        if number == CONSTANTS or not region.words[number]:
            held = (
                region.outer(part)
                if number == CONSTANTS or number not in self.values
                else Part(self.values[number][..., part.index])
            )
            return Part(held.found[:1])
        if number in self.values:
            return self.within(part, level)
        if region.question.program.pieces[number].affine:
            return self.affine(part, level)
        return Part(region.pair(number)[..., part.index], np.minimum(np.arange(self.rows.count(level)), 1))

    def within(self, part: Stretch, level: int) -> Part:
        """Of a piece of this chain."""
        source, values = len(self.region.words[part.piece]), self.values[part.piece]
        if source == level:
            return Part(values[..., part.index])
        rows, inner = self.rows.taken(level, source)
        parts = [values, self.boxes[part.piece]]
        if inner.size:
            own = values[inner]  # [r, any, ..., size]
            hull = own.max(axis=1)
            hull[:, 0] = own[:, :, 0].min(axis=1)
            parts.append(hull)
        return Part(np.concatenate(parts)[..., part.index], rows)

    def affine(self, part: Stretch, level: int) -> Part:
        """Of a piece that is affine in some words: where one of these alone is swapped its numbers."""
        region, rows = self.region, np.zeros(self.rows.count(level), dtype=np.int64)
        places = sorted(self.place[word] for word in region.words[part.piece])
        pair = region.pair(part.piece)
        old = self.rows.old(level)
        if old and places[0] < old:
            rows[1 : self.rows.fresh(level)] = 1
        for a in range(old, level):
            if places[0] <= a:
                rows[self.rows.rows_of(level, a)] = 1
        found = pair
        if len(places) == 1 and old <= places[0] < level:
            word = self.order[places[0]]
            found = np.concatenate([pair, region.affine.swapped(part.piece, word, region.moves[word])])
            rows[self.rows.rows_of(level, places[0])] = 2 + np.repeat(np.arange(len(region.moves[word])), region.room)
        return Part(found[..., part.index], rows)

    def charges(self, rival: int) -> Charges:
        """Of one rival; moves ascend by word."""
        rows, end, room = self.rows, len(self.order), self.region.room
        starts = np.cumsum([0, *rows.moves])
        fixed, moved = np.zeros(end + 1), np.zeros((room, int(starts[-1]), end + 1))
        for level, costs in self.costs.items():
            fixed[level] = costs[0, rival]
            old = rows.old(level)
            moved[:, : starts[old], level] = costs[1 : 1 + room, rival, None] if old else 0.0
            own = costs[rows.fresh(level) :, rival].reshape(int(starts[level] - starts[old]), room)
            moved[:, starts[old] : starts[level], level] = own.T
        if self.chain.descending:
            order = (
                np.concatenate([np.arange(starts[a], starts[a + 1]) for a in range(end)][::-1]) if end else starts[:0]
            )
            moved = moved[:, order]
        return Charges(np.cumsum(fixed), np.cumsum(moved, axis=2))


def summed(traces: Sequence[Traces], rival: int) -> Charges | None:
    every = [each.charges(rival) for each in traces]
    if not every:
        return None
    return Charges(np.sum([each.fixed for each in every], axis=0), np.sum([each.moved for each in every], axis=0))


def nothing(room: int, moves: int, words: int) -> Charges:
    return Charges(np.zeros(words + 1), np.zeros((room, moves, words + 1)))
