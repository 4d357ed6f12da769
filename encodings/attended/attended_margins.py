"""The sentences of a region of a network of one layer of attention, by differences.

What a row attends to is a sum over the words, so of a sentence with the swaps s

    N_i = N_i(text, own option) + sum over s of (e_is v_s - e_i0 v_0),   D_i likewise

and only what comes behind N_i / D_i is computed for every row and sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..network import Embedding, Floats, Indices, Rectifier
from ..regions.arithmetic import COMPUTED, HALF, LIMIT, Arithmetic, Ends, Plain
from ..regions.assignments import Assignments, AssignmentTables, Choices
from .attended_columns import Columns

if TYPE_CHECKING:
    from ..regions.region import Question
    from .attended_layout import Layout, Matrix, Mixing, Output, Step, Taken

Array = NDArray[Any]
Rows = NDArray[np.int32]
PLAIN_ROWS, ENDS_ROWS = 1024, 256
"""Sentences computed at a time: what they hold of a row fits the cache."""
MOST_SCORES = 1 << 23
"""Of a text, of all heads: tables of them are made."""


def attended(
    question: Question,
    layout: Layout,
    choices: Choices,
    arithmetic: Plain | Ends,
    pause: Callable[[], None],
    sentences: Rows | None = None,
) -> tuple[Assignments, Array]:
    """The sentences of a region, or these rows of it, and their margins [rows, ..., rivals]."""
    whole = AssignmentTables(choices, sentences).of(choices.moving)
    tables = tables_of(question, layout, arithmetic)
    return whole, tables.margins(whole, pause)


def tables_of(question: Question, layout: Layout, arithmetic: Plain | Ends) -> Tables:
    """Made once for a text and an arithmetic."""
    key = (type(arithmetic), arithmetic.dtype, getattr(arithmetic, "unit", 0.0))
    if key not in question.attended_tables:
        question.attended_tables[key] = Tables(question, layout, arithmetic)
    return question.attended_tables[key]


def fits(question: Question, layout: Layout) -> bool:
    """Whether the tables of a text are not too large."""
    units = len(question.original) + sum(len(own) - 1 for own in question.tokens)
    heads = max((one.add.shape[1] for one in layout.mixing.values()), default=0)
    return units * units * heads <= MOST_SCORES


@dataclass(frozen=True, eq=False)
class Attended:
    """What a row attends to: by own option, [options, ...] in the text, [options, swaps + 1, ...] changes, errors."""

    base: Array
    change: Array
    error: Floats


class Tables:
    """Of one text. A unit is a word with one of its options: first the text's own tokens, then its swaps by number."""

    def __init__(self, question: Question, layout: Layout, arithmetic: Plain | Ends) -> None:
        self.question, self.layout, self.arithmetic = question, layout, arithmetic
        length = len(question.original)
        moved = [np.repeat(p, len(own) - 1) for p, own in zip(question.positions, question.tokens, strict=True)]
        positions = np.concatenate([np.arange(length), *moved]).astype(np.int64)
        self.position: Indices = positions
        self.token: Indices = np.concatenate(
            [question.original, *(np.array(own[1:], dtype=np.int64) for own in question.tokens)]
        )
        self.swaps = len(positions) - length
        self.units_of = [np.flatnonzero(positions == p) for p in range(length)]
        self.early: dict[int, Array] = {}
        self.known: dict[int, Array] = {}
        for step in layout.early:
            self.early[step.node] = self.computed(step, self.taken)

    @property
    def plain(self) -> bool:
        return isinstance(self.arithmetic, Plain)

    @cached_property
    def block(self) -> int:
        return PLAIN_ROWS if self.plain else ENDS_ROWS

    # ---- values

    def times(self, x: Array, matrix: Matrix, parts: int) -> Array:
        """x @ matrix, whose numbers were computed with rounding."""
        if isinstance(self.arithmetic, Plain):
            return self.arithmetic.multiply(x, matrix.weights, parts)
        return self.arithmetic.tail(x, matrix.weights, matrix.sizes, parts, 1.0)

    def given(self, numbers: Floats, sizes: Floats, parts: int) -> Array:
        found = self.arithmetic.given(numbers, parts)
        if isinstance(self.arithmetic, Ends):
            found = self.arithmetic.moved(found, (COMPUTED * HALF * sizes)[:, None])
        return found

    def computed(self, step: Step, read: Callable[[Taken], Array]) -> Array:
        if isinstance(step.operation, Embedding):
            numbers = step.operation.table[self.token]
            return self.arithmetic.given(np.asarray(numbers, dtype=np.float64))
        return applied(self.arithmetic, step.operation, [read(taken) for taken in step.reads])

    def taken(self, what: Taken) -> Array:
        """Of every unit."""
        found = self.early[what.of] if what.step else self.target(what.of)
        return found if what.columns is None else found[..., what.columns]

    def target(self, node: int) -> Array:
        """[units, ...]: what early steps and constants come to."""
        if node not in self.known:
            target = self.layout.targets[node]
            parts = len(target.early) + len(target.late) + 1
            total = self.given(target.constant, target.size, parts)[self.position]
            for step, matrix in target.early.items():
                total = total + self.times(self.early[step], matrix, parts)
            self.known[node] = self.closed(total) if not target.late else total
        return self.known[node]

    def closed(self, total: Array) -> Array:
        return self.arithmetic.rounded(total) if isinstance(self.arithmetic, Ends) else total

    # ---- attention

    @cached_property
    def powers(self) -> Mapping[int, Array]:
        """Mixture -> [heads, units, units, ...]: exponentials of the scores, of each unit less their greatest."""
        return {node: self.exponentials(mixing) for node, mixing in self.layout.mixing.items()}

    def exponentials(self, mixing: Mixing) -> Array:
        left, right = self.taken(mixing.left), self.taken(mixing.right)
        heads, units = mixing.add.shape[1], len(self.position)
        found = []
        for head in range(heads):
            rows, columns = mixing.left_columns[head], mixing.right_columns[head]
            x, y, weights = left[..., rows], right[..., columns], mixing.coefficient[head]
            at = np.ix_(self.position, self.position)
            add, error = [part[:, head][at] for part in (mixing.add, mixing.error)]
            live, shown = [part[:, head][at] for part in (mixing.live, mixing.shown)]
            if isinstance(self.arithmetic, Plain):
                score = (x * weights.astype(x.dtype)) @ y.T * live + add.astype(x.dtype)
                score = np.where(shown, score, score.dtype.type(-np.inf))
                score -= score.max(axis=1, keepdims=True)
                found.append(self.arithmetic.curve("exp", score))
                continue
            pairs = self.arithmetic.product(np.repeat(x, units, axis=0), np.tile(y, (units, 1, 1)), square=False)
            score = self.arithmetic.multiply(pairs, weights[:, None], 2)[..., 0].reshape(units, units, 2)
            score = score * live[..., None]
            top = np.where(shown, score.mean(axis=2) + add, -np.inf).max(axis=1)
            top[top <= -LIMIT] = np.nan
            both = (score + (add - top[:, None])[..., None]).reshape(-1, 2, 1)
            more = (8 * HALF * (np.abs(add) + np.abs(top)[:, None]) + 2 * error).reshape(-1, 1, 1)
            power = self.arithmetic.curve("exp", self.arithmetic.moved(self.arithmetic.closed(both, np.zeros(1)), more))
            found.append(np.where(shown[..., None], power[..., 0].reshape(units, units, 2), 0.0))
        return np.stack(found)

    def attended(self, node: int, position: int) -> Attended:
        mixing, own = self.layout.mixing[node], self.units_of[position]
        value = self.taken(mixing.values)[..., mixing.value]
        power = self.powers[node][:, own]
        """[heads, own, units, ...]"""
        power = np.moveaxis(power, 0, -1)
        if isinstance(self.arithmetic, Plain):
            terms = np.concatenate([power, power[..., mixing.head] * value], axis=-1)
        else:
            spread = power[..., mixing.head]
            flat = spread.reshape(-1, 2, spread.shape[-1])
            products = self.arithmetic.product(flat, np.tile(value, (len(own), 1, 1)), square=False)
            terms = np.concatenate([power, products.reshape(spread.shape)], axis=-1)
        length = len(self.question.original)
        text, swapped = terms[:, :length], terms[:, length:]
        change = np.zeros((len(own), self.swaps + 1, *terms.shape[2:]), dtype=terms.dtype)
        change[:, :-1] = swapped - text[:, self.position[length:]]
        change[:, own[own >= length] - length] = 0.0
        others = np.delete(text, position, axis=1)
        base = others.sum(axis=1) + terms[np.arange(len(own)), own]
        sizes = np.zeros(0)
        if not self.plain:
            sizes = np.abs(text).sum(axis=1) + 3 * np.abs(terms).sum(axis=1)
            sizes = (length + 3 * len(self.question.tokens) + 8) * 4 * HALF * sizes.max(axis=1)
        return Attended(base, change, sizes)

    # ---- sentences

    def margins(self, rows: Assignments, pause: Callable[[], None]) -> Array:
        question = self.question
        numbers = question.word_sums.numbers(rows.choices.word_of, rows.choices.option_of)
        swaps = numbers[rows.rows]
        """[rows, most]: among all swaps of the text; none: behind them."""
        if isinstance(self.arithmetic, Plain):
            return Columns(self, swaps).margins(pause)
        outputs = self.outputs(len(swaps))
        for position in range(len(question.original)):
            if not outputs.reads(position):
                continue
            pause()
            pool = Row(self, position)
            for start in range(0, len(swaps), self.block):
                block = slice(start, start + self.block)
                pool.add(swaps[block], outputs, block)
        return outputs.margins()

    def outputs(self, count: int) -> Outputs:
        return Outputs(self, count)


class Row:
    """One position: its tables, and what it adds to the outputs of some sentences."""

    def __init__(self, tables: Tables, position: int) -> None:
        self.tables, self.position = tables, position
        self.arithmetic = tables.arithmetic
        layout, own = tables.layout, tables.units_of[position]
        self.own = own
        length = len(tables.question.original)
        self.option_of = np.zeros(tables.swaps + 1, dtype=np.int64)
        self.option_of[own[own >= length] - length] = np.arange(1, len(own))
        self.attended = {node: tables.attended(node, position) for node in layout.mixing}
        self.starts: dict[int, Array] = {}
        """Target -> [options, ...], or one: what does not depend on attention."""
        for step in layout.late:
            for taken in step.reads:
                if not taken.step and taken.of not in self.starts:
                    found = tables.target(taken.of)[own]
                    self.starts[taken.of] = found if layout.targets[taken.of].early else found[:1]

    def add(self, swaps: Indices, outputs: Outputs, block: slice) -> None:
        option = self.option_of[swaps].max(axis=1, initial=0)
        values: dict[int, Array] = {}
        known: dict[int, Array] = {}

        def read(taken: Taken) -> Array:
            if taken.step and taken.of not in values:
                values[taken.of] = self.tables.early[taken.of][self.own][option]
            if not taken.step and taken.of not in known:
                known[taken.of] = self.target(taken.of, option, values)
            found = values[taken.of] if taken.step else known[taken.of]
            if taken.columns is None:
                return found
            if (taken.columns == taken.columns[0]).all():
                return found[..., taken.columns[:1]]
            return found[..., taken.columns]

        for step in self.tables.layout.late:
            if step.node in self.attended:
                values[step.node] = self.mixed(step.node, swaps, option)
            else:
                values[step.node] = applied(self.arithmetic, step.operation, [read(taken) for taken in step.reads])
        outputs.add(self, option, values, block)

    def target(self, node: int, option: Indices, values: Mapping[int, Array]) -> Array:
        target, start = self.tables.layout.targets[node], self.starts[node]
        parts = len(target.early) + len(target.late) + 1
        total: Array | None = None
        for step, matrix in target.late.items():
            more = self.tables.times(values[step], matrix, parts)
            if total is None:
                total = more
            else:
                total += more
        own = start if len(start) == 1 else start.take(option, axis=0)
        if total is None:
            return own if len(own) == len(option) else np.repeat(own, len(option), axis=0)
        total += own
        return self.tables.closed(total)

    def mixed(self, node: int, swaps: Indices, option: Indices) -> Array:
        """N / D"""
        found, mixing = self.attended[node], self.tables.layout.mixing[node]
        total = found.base.take(option, axis=0)
        options, count = found.change.shape[:2]
        flat = found.change.reshape(options * count, *found.change.shape[2:])
        place = option * count
        for column in swaps.T:
            total += flat.take(place + column, axis=0)
        if isinstance(self.arithmetic, Ends):
            total = self.arithmetic.rounded(self.arithmetic.moved(total, found.error.take(option, axis=0)[:, None]))
        heads = mixing.add.shape[1]
        inverse = self.arithmetic.curve("reciprocal", total[..., :heads])
        return self.arithmetic.product(total[..., heads:], inverse[..., mixing.head], square=False)


class Outputs:
    """What rows add up to: for the margins, or for the steps behind them and the margins."""

    def __init__(self, tables: Tables, count: int) -> None:
        self.tables, layout = tables, tables.layout
        self.arithmetic = tables.arithmetic
        self.wanted: list[Output] = [read for step in layout.joined for read in step.reads]
        self.wanted.append(layout.asked)
        self.parts = 2 + sum(len(output.rows) + len(output.joined) for output in self.wanted)
        self.parts *= len(tables.question.original)
        self.totals = [
            np.repeat(tables.given(output.constant[None], output.size[None], self.parts), count, axis=0)
            for output in self.wanted
        ]

    def reads(self, position: int) -> bool:
        return any(matrix.weights[position].any() for output in self.wanted for matrix in output.rows.values())

    def add(self, row: Row, option: Indices, values: Mapping[int, Array], block: slice) -> None:
        for output, total in zip(self.wanted, self.totals, strict=True):
            for step, matrix in output.rows.items():
                at = output.by_row[step][row.position]
                if step in row.tables.early:
                    own = row.tables.early[step][row.own]
                    total[block] += row.tables.times(own, at, self.parts).take(option, axis=0)
                elif matrix.weights[row.position].any():
                    total[block] += row.tables.times(values[step], at, self.parts)

    def margins(self) -> Array:
        tables, known = self.tables, dict[int, Array]()
        waiting = iter(zip(self.wanted, self.totals, strict=True))

        def finished() -> Array:
            output, total = next(waiting)
            for step, matrix in output.joined.items():
                total = total + tables.times(known[step], matrix, self.parts)
            return tables.closed(total)

        for step in tables.layout.joined:
            known[step.node] = applied(self.arithmetic, step.operation, [finished() for _ in step.reads])
        return finished()


def applied(arithmetic: Arithmetic, operation: Any, reads: list[Array]) -> Array:
    """A bend of one factor, or the product of two."""
    if isinstance(operation, Rectifier):
        return arithmetic.bend(reads[0], operation.slope)
    if operation is not None:
        return arithmetic.curve(operation, reads[0])
    left, right = reads
    square = left is right
    if not square and isinstance(arithmetic, Ends):
        width = max(left.shape[-1], right.shape[-1])
        left, right = (np.broadcast_to(x, (*x.shape[:-1], width)) for x in (left, right))
    return arithmetic.product(left, right, square=square)
