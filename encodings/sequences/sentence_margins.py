"""The margins of the sentences of a region, in any arithmetic; plain numbers are computed where they shall stand.

Of a step of a recurrent layer as much time is lost by laying numbers end to end in new arrays as its functions need.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..attended.attended_margins import attended, fits
from ..network import Floats
from ..regions.arithmetic import Arithmetic, Ends, KernelEnds, Plain
from ..regions.assignments import Assignments, Choices
from ..regions.carried import last_margins
from ..regions.operations import Part, Read, constant_margins
from ..regions.program import Bend, Blend, Curve, Dense, Look, Most, Piece, Product
from ..regions.shared_tables import RESULT, Block, Evaluation, Group, Held, Rows, Stopped
from ..smooth.curves import CURVES, logistic_to
from .chain_ends import EndTables, GatedEnds, InEnds, TooWide
from .chain_walk import Carried, GatedTables, Tables, Walk
from .chains import chains_of
from .gru_steps import Gated
from .lstm_steps import Cell, cells_of

if TYPE_CHECKING:
    from ..regions.region import Question

Array = NDArray[Any]
MOST_ALONE = 1024
"""Sentences that are looked at without sharing what they begin with."""
SOME, FARTHER = 128, 4.0
"""Sentences that are tried, and times that ends of others may be farther apart."""
ENDS = {kind.__name__: kind for kind in (Ends, KernelEnds)}


def margins_of(
    question: Question,
    choices: Choices,
    arithmetic: Arithmetic,
    stop: Callable[[], bool] = lambda: False,
    sentences: Rows | None = None,
    *,
    closely: bool = False,
) -> tuple[Assignments, Array]:
    """The sentences of a region, or these rows of it, and their margins [rows, rivals].

    Raises Stopped when `stop` says so. `closely`: ends are as close as they can be, also where sentences are clear.
    """
    layout = question.layout

    def pause() -> None:
        if stop():
            raise Stopped

    if (
        layout is not None
        and not isinstance(arithmetic, KernelEnds)
        and isinstance(arithmetic, Plain | Ends)
        and fits(question, layout)
    ):
        rows, found = attended(question, layout, choices, arithmetic, pause, sentences)
        lost = np.flatnonzero(~np.isfinite(found).reshape(len(found), -1).all(axis=1))
        if len(lost):  # all that a word attends to underflows beside what it attended to in the text
            found[lost] = Evaluation(question, choices, arithmetic, stop, rows.rows[lost]).margins()[1]
        return rows, found
    given = None
    if not closely and (sentences is not None or not hopeless(question, choices, arithmetic, pause)):
        given = in_chains(question, choices, arithmetic, pause, sentences)
    if given is not None:
        rows, found = given
        if not isinstance(arithmetic, Plain):  # one bound for many sentences may be too coarse for some
            lost = np.flatnonzero(~(found[:, 0] > 0).all(axis=1))
            if len(lost):
                found[lost] = Evaluation(question, choices, arithmetic, stop, rows.rows[lost]).margins()[1]
        return given
    if isinstance(arithmetic, Plain):
        return PlainEvaluation(question, choices, arithmetic, stop, sentences).margins()
    return Evaluation(question, choices, arithmetic, stop, sentences).margins()


@lru_cache(maxsize=4)
def tables_of(question: Question, arithmetic: str, unit: float) -> tuple[Tables, ...] | None:
    """Of the chains, if the margins are sums of their steps; made once for all regions of a text."""
    chains, rivals = chains_of(question), len(question.tail.constant)
    if chains is None:
        return None
    if arithmetic in ENDS:
        made: list[InEnds] = []
        for chain in chains:
            kind = GatedEnds if isinstance(chain.steps[0].cell, Gated) else EndTables
            made.append(kind(chain, question, ENDS[arithmetic](unit)))
        ends = tuple(made)
        return ends if all(each.fits for each in ends) else None
    dtype = np.float32 if arithmetic == "float32" else np.float64
    return tuple(
        (GatedTables if isinstance(chain.steps[0].cell, Gated) else Tables)(chain, dtype, rivals) for chain in chains
    )


def in_chains(
    question: Question, choices: Choices, arithmetic: Arithmetic, pause: Callable[[], None], sentences: Rows | None
) -> tuple[Assignments, Array] | None:
    try:
        return chained(question, choices, arithmetic, pause, sentences)
    except TooWide:
        return None


def hopeless(question: Question, choices: Choices, arithmetic: Arithmetic, pause: Callable[[], None]) -> bool:
    """Whether ends of some sentences with many swaps, as chains find them, are hardly closer than their margins."""
    if isinstance(arithmetic, Plain) or choices.forced or not choices.most or choices.count() < MOST_ALONE:
        return False
    drawn, words = np.random.default_rng(0), sorted(choices.moving)
    some = [np.sort(drawn.choice(words, choices.most, replace=False)) for _ in range(SOME)]
    rows = np.array([[drawn.choice(choices.number(word)) for word in own] for own in some], dtype=np.int32)
    found = in_chains(question, choices, arithmetic, pause, rows)
    if found is None:
        return True
    low, high = found[1][:, 0], found[1][:, 1]
    return bool(FARTHER * (high - low).max() > np.median(low.min(axis=1)))


def chained(
    question: Question, choices: Choices, arithmetic: Arithmetic, pause: Callable[[], None], sentences: Rows | None
) -> tuple[Assignments, Array] | None:
    """All sentences of a region and their margins [rows, ..., rivals]; None where chains are no way to them."""
    if (len(choices.word_of) + 1) ** choices.most >= 2**63 or (sentences is not None and len(sentences) > MOST_ALONE):
        return None
    if isinstance(arithmetic, Ends):
        tables = tables_of(question, type(arithmetic).__name__, arithmetic.unit)
    else:
        tables = tables_of(question, np.dtype(arithmetic.dtype).name, 0.0)
    if tables is None or not all(choices.moving <= each.chain.words for each in tables):
        return None
    whole: Assignments | None = None
    total = constant_margins(question, arithmetic)
    kept = total.shape[1]
    if isinstance(arithmetic, Ends) and not isinstance(arithmetic, KernelEnds):
        total = np.concatenate([total, np.zeros_like(total[:, :1])], axis=1)
    for each in tables:
        walk = Walk(each, choices, pause)
        parts = walk.every() if sentences is None else walk.these(sentences)
        if not parts:
            return None
        swaps = np.sort(np.concatenate([part.swaps for part in parts]).view(np.uint32), axis=1).view(np.int32)
        rows, found = Assignments(choices, choices.moving, swaps), np.concatenate([ends_of(part) for part in parts])
        if whole is None:
            whole, total = rows, total + found
        else:
            total += found if sentences is not None else found[rows.rows_of(whole)]
    return None if whole is None else (whole, last_margins(question, arithmetic, total[:, :kept]))


def ends_of(part: Carried) -> Array:
    """[rows, rivals], or [rows, 3, rivals]: low and high ends, and sizes."""
    radius = part.radius
    if radius is None:
        return part.margins
    sizes = np.repeat(radius.sizes[None], len(part), axis=0)
    return np.stack([part.margins - radius.margins, part.margins + radius.margins, sizes], axis=1)


class PlainEvaluation(Evaluation):
    """One region in plain numbers."""

    arithmetic: Plain

    def __init__(
        self,
        question: Question,
        choices: Choices,
        arithmetic: Plain,
        stop: Callable[[], bool],
        sentences: Rows | None,
    ) -> None:
        super().__init__(question, choices, arithmetic, stop, sentences)
        self.rooms: dict[tuple[int, int], Array] = {}
        """Where the pieces of a block stand, by their place in it and their size."""
        self.free: list[Array] = []
        """Memory that nobody reads any more."""
        needed = set(self.needed)
        self.cells = {
            rows: cell
            for rows, cell in cells_of(question.program).items()
            if cell.state in needed and not question.in_sums(rows)
        }
        self.within = {piece for cell in self.cells.values() for piece in (*cell.inner, cell.memory, cell.state)}
        self.halves: dict[int, tuple[Floats, Array]] = {}
        self.alone: dict[int, Array] = {}
        """Affine piece -> what it adds of no other."""

    def new(self, rows: int, size: int) -> Array:
        """As `np.empty`, of memory that was used before: new pages cost as much as what is written there."""
        fitting = [place for place, array in enumerate(self.free) if array.size >= rows * size]
        if fitting:
            found = self.free.pop(min(fitting, key=lambda place: self.free[place].size))
        else:
            found = np.empty(rows * size * 5 // 4, dtype=self.arithmetic.dtype)
        return found[: rows * size].reshape(rows, size)

    def release(self, array: Array) -> None:
        if isinstance(array.base, np.ndarray):
            self.free.append(array.base)

    def room(self, place: int, rows: int, size: int) -> Array:
        """What a piece of another block left there is overwritten."""
        held = self.rooms.get((place, size))
        if held is None:
            held = self.rooms[place, size] = np.empty((self.block, size), dtype=self.arithmetic.dtype)
        return held[:rows]

    def constant(self, piece: int) -> Array:
        if piece not in self.alone:
            found = super().constant(piece)
            if piece in self.cells:
                found[:, self.cells[piece].gates] *= 0.5
            self.alone[piece] = found
        return self.alone[piece]

    def cast(self, reader: int, matrix: Floats) -> Array:
        """Weights of a piece; half of those of gates, of which tanh is taken in place of the sigmoid."""
        if reader not in self.cells:
            return self.arithmetic.cast(matrix)
        held = self.halves.get(id(matrix))
        if held is None:
            found = matrix.astype(self.arithmetic.dtype)
            found[:, self.cells[reader].gates] *= 0.5
            held = self.halves[id(matrix)] = matrix, found
        return held[1]

    def compute(self, group: Group, pieces: list[int], held: Held) -> Array | None:
        rows = self.assignments.of(group)
        maps: dict[Group, Rows] = {}
        totals: dict[int, Array] = {}
        """Reader -> what the pieces of this group add to it."""
        program = self.question.program
        for piece in pieces:
            if piece in self.kept:
                held.raw[piece] = self.new(len(rows), program.pieces[piece].size)
            for reader in self.asked[piece]:
                if reader not in totals:
                    totals[reader] = self.new(len(rows), self.width(reader))
        for start in range(0, len(rows), self.block):
            if self.stop():
                raise Stopped
            block = PlainBlock(self, rows, slice(start, min(start + self.block, len(rows))), held, maps)
            written = set[int]()
            for piece in pieces:
                if piece in self.within:
                    continue
                cell = self.cells.get(piece)
                if cell is None:
                    block.add(piece)
                else:
                    block.step(cell)
                for made in (piece,) if cell is None else (cell.memory, cell.state):
                    for reader in self.asked[made]:
                        out = totals[reader][block.rows]
                        self.add_part(reader, made, block.values[made], out, fresh=reader not in written)
                        written.add(reader)
        added = totals.pop(RESULT, None)
        for reader, total in totals.items():
            held.partial.setdefault(reader, {})[group] = total
        return added

    def width(self, reader: int) -> int:
        return len(self.question.tail.constant) if reader == RESULT else self.question.program.pieces[reader].size

    def add_part(self, reader: int, source: int, x: Array, out: Array, *, fresh: bool) -> None:
        """What a source adds to an affine piece, or to the margins; `fresh`: nothing stands there yet."""
        question = self.question
        tail = question.tail if reader == RESULT else self.rewritten(reader)
        if tail is not None:
            add_product(x, self.cast(reader, tail.parts[source]), out, fresh=fresh)
            return
        match question.program.pieces[reader].operation:
            case Dense(read, matrices):
                for part, matrix in zip(read, matrices, strict=True):
                    if part.piece == source:
                        add_product(x[:, part.index], self.cast(reader, matrix), out, fresh=fresh)
                        fresh = False
            case Blend(read, weights):
                if fresh:
                    out[:] = 0
                for part, factors in zip(read, weights, strict=True):
                    if part.piece == source:
                        own = x[:, part.index]
                        out[:, part.place] += own if (factors == 1).all() else own * self.arithmetic.cast(factors)


def add_product(x: Array, matrix: Array, out: Array, *, fresh: bool) -> None:
    if fresh:
        np.matmul(x, matrix, out=out)
    else:
        out += x @ matrix


class PlainBlock(Block):
    """Some rows of a group; each piece is computed where it stands, for other groups where they read it."""

    whole: PlainEvaluation

    def place(self, number: int, size: int) -> Array:
        """Where a piece is to stand."""
        if number in self.whole.kept:
            return self.held.raw[number][self.rows]
        return self.whole.room(len(self.values), self.count, size)

    def step(self, cell: Cell) -> None:
        """With t = tanh(rows / 2) a gate is (1 + t) / 2; halves are taken at the end, of c and of h."""
        size = cell.fresh.stop - cell.fresh.start
        rows = self.whole.room(-2, self.count, self.question.program.pieces[cell.rows].size)
        self.sum_to(cell.rows, rows)
        np.tanh(rows, out=rows)
        rows[:, cell.gates] += 1
        memory = self.values[cell.memory] = self.place(cell.memory, size)
        for part in cell.before:
            memory[:, part.place] = taken(self.stretch(part))
        memory *= rows[:, cell.forget]
        fresh = rows[:, cell.fresh]
        fresh *= rows[:, cell.take]
        memory += fresh
        memory *= 0.5
        state = self.values[cell.state] = self.place(cell.state, size)
        np.tanh(memory, out=state)
        state *= rows[:, cell.show]
        state *= 0.5

    def value(self, number: int, piece: Piece) -> Array:
        if isinstance(piece.operation, Look) or self.question.in_sums(number):
            found = super().value(number, piece)
            if number in self.whole.kept:
                self.held.raw[number][self.rows] = found
            return found
        out = self.place(number, piece.size)
        if isinstance(piece.operation, Dense | Blend):
            self.sum_to(number, out)
        else:
            fill(piece, self.stretch, out)
        return out

    def sum_to(self, number: int, out: Array) -> None:
        """An affine piece: products are made where they stand, and what all rows share is added to the few."""
        whole = self.whole
        own, fresh = whole.sources(number) & self.values.keys(), True
        alike: Array | None = whole.constant(number)
        tables: list[tuple[Array, Group]] = []
        for group, array in self.held.partial.get(number, {}).items():
            if len(array) == 1:
                alike = array if alike is None else alike + array
            else:
                tables.append((array, group))
        tables.sort(key=lambda table: len(table[0]))
        for source in own:
            whole.add_part(number, source, self.values[source], out, fresh=fresh)
            fresh = False
        if tables and alike is not None and len(tables[0][0]) < self.count:
            tables[0] = tables[0][0] + alike, tables[0][1]
            alike = None
        for array, group in tables:
            rows = self.rows_in(group)
            if fresh:
                np.take(array, rows, axis=0, out=out, mode="clip")
                fresh = False
            else:
                more = whole.room(-1, self.count, array.shape[1])
                np.take(array, rows, axis=0, out=more, mode="clip")
                out += more
        if fresh:
            out[:] = alike
        elif alike is not None:
            out += alike


def fill(piece: Piece, read: Read, out: Array) -> None:
    """A piece that is not affine: [rows, size]."""
    match piece.operation:
        case Product(left, right):
            for part in left:
                out[:, part.place] = taken(read(part))
            for part in right:
                out[:, part.place] *= taken(read(part))
        case Curve(stretches, function):
            for part in stretches:
                x = taken(read(part))
                if not isinstance(part.place, slice) or function not in ("tanh", "sigmoid"):
                    out[:, part.place] = CURVES[function](x)
                elif function == "tanh":
                    np.tanh(x, out=out[:, part.place])
                else:
                    logistic_to(x, out[:, part.place])
        case Bend(stretches, slope):
            for part in stretches:
                x = taken(read(part))
                out[:, part.place] = np.maximum(x, x * x.dtype.type(slope))
        case Most(columns):
            for number, column in enumerate(columns):
                for part in column:
                    x, place = taken(read(part)), part.place
                    out[:, place] = np.maximum(out[:, place], x) if number else x


def taken(part: Part) -> Array:
    return part.spread(part.found)
