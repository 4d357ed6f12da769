"""The same in plain floats, quickly: of one position, a column for each sentence, so that every step runs along them.

x[step] = f(matrix' x[earlier] + c),   [width, sentences]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..network import Embedding, Indices, Rectifier
from ..smooth.curves import CURVES

if TYPE_CHECKING:
    from .attended_layout import Joined, Matrix, Step, Taken
    from .attended_margins import Tables

Array = NDArray[Any]
BLOCK = 2048
"""Sentences computed at a time: what they hold of a position fits the cache."""


class Columns:
    """Sentences [n, most] as numbers of swaps; none: behind them."""

    def __init__(self, tables: Tables, swaps: Indices) -> None:
        self.tables, self.layout, self.count = tables, tables.layout, len(swaps)
        self.swaps = np.ascontiguousarray(swaps.T)
        """[most, n]"""
        self.dtype = tables.arithmetic.dtype
        self.wanted = [*(read for step in self.layout.joined for read in step.reads), self.layout.asked]
        self.totals = [
            np.repeat(output.constant.astype(self.dtype)[:, None], len(swaps), axis=1) for output in self.wanted
        ]
        self.turned: dict[int, Array] = {}
        self.held: dict[tuple[str, int], Array] = {}
        self.spread = {
            node: (mixing.head[None] == np.arange(mixing.add.shape[1])[:, None]).astype(self.dtype)
            for node, mixing in self.layout.mixing.items()
        }

    def margins(self, pause: Callable[[], None]) -> Array:
        """[n, rivals]"""
        with np.errstate(all="ignore"):
            for position in range(len(self.tables.question.original)):
                if self.reads(position):
                    pause()
                    self.add(Position(self, position))
            return self.joined().T

    def reads(self, position: int) -> bool:
        return any(matrix.weights[position].any() for output in self.wanted for matrix in output.rows.values())

    def by_column(self, matrix: Matrix) -> Array:
        """[outputs, inputs]; once for each."""
        found = self.turned.get(id(matrix))
        if found is None:
            found = self.turned[id(matrix)] = np.ascontiguousarray(matrix.weights.T.astype(self.dtype))
        return found

    def buffer(self, kind: str, node: int, rows: int, columns: int) -> Array:
        """Of a block: the same memory for every one of them."""
        found = self.held.get((kind, node))
        if found is None:
            found = self.held[kind, node] = np.empty((rows, BLOCK), dtype=self.dtype)
        return found[:, :columns]

    def add(self, position: Position) -> None:
        for start in range(0, self.count, BLOCK):
            block = slice(start, min(start + BLOCK, self.count))
            position.add(self.swaps[:, block], [total[:, block] for total in self.totals])

    def joined(self) -> Array:
        """The steps behind the rows, and the margins."""
        known: dict[int, Array] = {}
        waiting = iter(zip(self.wanted, self.totals, strict=True))

        def finished() -> Array:
            output, total = next(waiting)
            for step, matrix in output.joined.items():
                total = total + self.by_column(matrix) @ known[step]
            return total

        for step in self.layout.joined:
            reads = [finished() for _ in step.reads]
            known[step.node] = bent(step, reads, None)
        return finished()


class Position:
    """The tables of one position."""

    def __init__(self, columns: Columns, position: int) -> None:
        tables, layout = columns.tables, columns.layout
        self.columns, self.position, self.layout = columns, position, layout
        self.own = tables.units_of[position]
        length = len(tables.question.original)
        self.option_of = np.zeros(tables.swaps + 1, dtype=np.int64)
        self.option_of[self.own[self.own >= length] - length] = np.arange(1, len(self.own))
        self.begun, self.change = dict[int, Array](), dict[int, Array]()
        """[options * (swaps + 1), width]: what the first swap of a sentence comes to, and what another one changes."""
        for node in layout.mixing:
            found = tables.attended(node, position)
            width = found.change.shape[2]
            self.begun[node] = (found.change + found.base[:, None]).reshape(-1, width)
            self.change[node] = found.change.reshape(-1, width)
        read = {taken.of for step in layout.late for taken in step.reads if not taken.step}
        self.starts = {node: self.start(tables.target(node)[self.own], node) for node in read}
        """Target -> [outputs, options], or one: what does not depend on attention."""
        self.lifted = {
            step.node: self.starts[step.reads[0].of]
            for step in layout.late
            if isinstance(step.operation, Rectifier) and step.operation.slope == 0 and self.lifts(step.reads[0])
        }
        """Rectifiers: max(x + b, 0) = max(x, -b) + b, and the b behind goes to whoever reads it."""
        for node in read:
            for step, matrix in layout.targets[node].late.items():
                if step in self.lifted:
                    self.starts[node] = self.starts[node] + columns.by_column(matrix) @ self.lifted[step]
        ours = {step.reads[0].of for step in layout.late if step.node in self.lifted}
        self.adds = {node: node not in ours and bool(start.any()) for node, start in self.starts.items()}
        self.early = {node: tables.early[node][self.own].T for node in tables.early}
        self.outputs = [
            [(node, columns.by_column(parts[position])) for node, parts in output.by_row.items()]
            for output in columns.wanted
        ]

    def lifts(self, taken: Taken) -> bool:
        """Whether a target is of one rectifier alone, and the same for every option of the word."""
        readers = [step for step in self.layout.late for one in step.reads if one.of == taken.of]
        return not taken.step and taken.columns is None and len(readers) == 1 and self.starts[taken.of].shape[1] == 1

    def start(self, found: Array, node: int) -> Array:
        return np.ascontiguousarray((found if self.layout.targets[node].early else found[:1]).T)

    def add(self, swaps: Indices, totals: list[Array]) -> None:
        count = swaps.shape[1]
        option = self.option_of[swaps].max(axis=0, initial=0) if len(self.own) > 1 else np.zeros(count, dtype=np.int64)
        chosen = (np.arange(len(self.own))[:, None] == option).astype(self.columns.dtype)
        """[options, sentences]"""
        values: dict[int, Array] = {}
        known: dict[int, Array] = {}

        def read(taken: Taken) -> Array:
            if taken.step and taken.of not in values:
                values[taken.of] = self.early[taken.of] @ chosen
            if not taken.step and taken.of not in known:
                known[taken.of] = self.target(taken.of, chosen, values)
            found = values[taken.of] if taken.step else known[taken.of]
            if taken.columns is None:
                return found
            if (taken.columns == taken.columns[0]).all():
                return found[taken.columns[:1]]
            return found[taken.columns]

        for step in self.layout.late:
            if step.node in self.begun:
                values[step.node] = self.mixed(step.node, swaps, option)
            elif step.node in self.lifted:
                x = read(step.reads[0])
                values[step.node] = np.maximum(x, -self.lifted[step.node], out=x)
            else:
                values[step.node] = bent(
                    step, [read(one) for one in step.reads], self.columns.buffer("step", step.node, step.width, count)
                )
        for total, parts in zip(totals, self.outputs, strict=True):
            for node, matrix in parts:
                if node in self.early:
                    total += (matrix @ self.early[node]) @ chosen
                else:
                    total += matrix @ values[node]
                if node in self.lifted:
                    total += matrix @ self.lifted[node]

    def target(self, node: int, chosen: Array, values: dict[int, Array]) -> Array:
        target, start = self.layout.targets[node], self.starts[node]
        columns, count = self.columns, chosen.shape[1]
        total = columns.buffer("target", node, len(start), count)
        more = columns.buffer("more", node, len(start), count)
        begun = False
        for step, matrix in target.late.items():
            np.matmul(columns.by_column(matrix), values[step], out=more if begun else total)
            if begun:
                total += more
            begun = True
        if not begun:
            total[:] = 0
        if start.shape[1] == 1:
            if self.adds[node]:
                total += start
        else:
            total += np.matmul(start, chosen, out=more)
        return total

    def mixed(self, node: int, swaps: Indices, option: Indices) -> Array:
        """N / D"""
        place = option * (self.columns.tables.swaps + 1)
        several = len(self.own) > 1
        if not len(swaps):
            return self.divided(node, self.begun[node].take(place + self.columns.tables.swaps, axis=0))
        total = self.begun[node].take(place + swaps[0] if several else swaps[0], axis=0)
        for column in swaps[1:]:
            total += self.change[node].take(place + column if several else column, axis=0)
        return self.divided(node, total)

    def divided(self, node: int, total: Array) -> Array:
        spread = self.columns.spread[node]
        inverse = (1 / total[:, : len(spread)]) @ spread
        inverse *= total[:, len(spread) :]
        return np.asarray(inverse.T)


def bent(step: Step | Joined, reads: list[Array], out: Array | None) -> Array:
    """A bend of one factor, or the product of two."""
    match step.operation:
        case None:
            return np.asarray(np.multiply(reads[0], reads[1], out=out))
        case Rectifier(slope=0):
            return np.asarray(np.maximum(reads[0], reads[0].dtype.type(0), out=out))
        case Rectifier(slope=slope):
            return np.asarray(np.maximum(reads[0], reads[0] * reads[0].dtype.type(slope)))
        case "reciprocal":
            return np.asarray(np.divide(reads[0].dtype.type(1), reads[0], out=out))
        case "sqrt":
            return np.asarray(np.sqrt(reads[0], out=out))
        case Embedding():
            raise TypeError("an embedding behind attention")
        case function:
            return CURVES[function](reads[0])
