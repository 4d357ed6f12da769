"""The same with a bound of how far the ends of a checker's intervals can be from the numbers in float64.

One bound holds for all sentences that are carried together. Where x is known up to r, and a function bends no more than
s, it is known up to s r and what rounding adds: a unit of the checker, outwards, what float64 can lose, and at level
`kernel` what FORMAT.md, section 15.3, adds. So a sentence costs hardly more than its numbers do; sentences for which
that is too coarse are looked at one by one, by `Ends`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from ..regions.arithmetic import ABSOLUTE, COMPUTED, FUNCTION, HALF, LIMIT, MORE, SHARE, Ends, KernelEnds
from ..regions.operations import inexact
from .chain_walk import Carried, GatedTables, Radius, Tables
from .gru_steps import Gated
from .lstm_steps import Cell

if TYPE_CHECKING:
    from ..regions.region import Question
    from .chains import Chain

Array = NDArray[Any]
ONE = 1 + 2.0**-40
"""No tanh of numpy, nor what is made of it, is beyond this: it is good to FUNCTION, far less."""
MORE_TERMS = 16
WIDE = 0.5
"""No sentence is clear where a state is known no better."""


class TooWide(Exception):
    """One bound for all is too coarse."""


class InEnds(Tables):
    """Of one chain, for the ends of one precision and level."""

    def __init__(self, chain: Chain, question: Question, ends: Ends) -> None:
        super().__init__(chain, np.float64, len(question.tail.constant))
        self.question, self.unit, self.kernel = question, ends.unit, isinstance(ends, KernelEnds)
        self.magnitudes: dict[int, Floats] = {}
        self.offsets, self.reached = list[Floats](), list[Floats]()
        for step in chain.steps:
            sizes = step.sizes.copy()
            if step.recurrent is not None:
                if id(step.recurrent) not in self.magnitudes:
                    self.magnitudes[id(step.recurrent)] = np.abs(step.recurrent)
                most = self.magnitudes[id(step.recurrent)].sum(axis=0)
                sizes[: len(most)] += ONE * most
            offset = step.shares * self.unit + step.error
            for numbers, matrix in step.constants:
                offset += inexact(numbers, self.unit) @ np.abs(matrix)
            self.offsets.append(offset)
            self.reached.append(sizes)
        self.least = self.most = np.zeros(0)
        self.fits = not self.kernel or all(step.looked_up for step in chain.steps)

    def notice(self, rows: Array) -> None:
        self.least, self.most = rows.min(axis=0), rows.max(axis=0)

    def columns(self, place: int, before: Radius, roundings: Floats) -> tuple[Floats, Floats]:
        """Of what the gates read: the radius, and all that is added up."""
        step, unit = self.chain.steps[place], self.unit
        wide, sizes = self.offsets[place] + 2 * unit, step.sizes + step.shares * unit
        if step.recurrent is not None:
            magnitudes = self.magnitudes[id(step.recurrent)]
            count = magnitudes.shape[1]
            wide[:count] += before.h @ magnitudes
            sizes[:count] += (before.reach + before.h) @ magnitudes
        wide += (step.terms + MORE_TERMS) * 2 * HALF * sizes
        if self.kernel:
            wide += SHARE * roundings * (sizes * MORE + 2 * unit) + 2 * unit
        return wide * MORE, sizes

    @property
    def rounding(self) -> float:
        """Of a function."""
        return FUNCTION + self.unit + (ABSOLUTE + 2 * self.unit if self.kernel else 0.0)

    def gate(self, own: slice, wide: Floats) -> tuple[Floats, Floats]:
        """Its greatest number, and the radius: sigmoid bends by s (1 - s), which itself bends by less than 0.1."""
        a, b, r = self.least[own], self.most[own], wide[own]
        slope = np.where((a < 1) & (b > 1), 0.25, np.maximum(a * (2 - a), b * (2 - b)) * 0.25)
        return b * 0.5, np.minimum(0.25, slope + 0.1 * r + HALF * 16) * r + self.rounding

    def tangent(self, a: Floats, b: Floats, r: Floats) -> Floats:
        """The radius where tanh lies between these: it bends by 1 - tanh^2, which itself bends by less than 0.8."""
        nearest = np.where((a < 0) & (b > 0), 0.0, np.minimum(np.abs(a), np.abs(b)))
        return np.asarray(np.minimum(1.0, 1 - nearest * nearest + 0.8 * r + FUNCTION * 4) * r + self.rounding)

    def sum(self, x: tuple[Any, Any], y: tuple[Any, Any], piece: int, sizes: Floats | None = None) -> tuple[Any, Any]:
        """Of an affine piece that adds two: magnitudes, and the radius; `sizes`: theirs, where they are affine."""
        total = x[0] + y[0]
        radius = x[1] + y[1] + self.unit + 8 * HALF * total
        if self.kernel:
            share = SHARE * self.question.roundings[piece]
            radius = radius + share * ((total if sizes is None else sizes) * MORE + 2 * self.unit) + 2 * self.unit
        return total, radius * MORE

    def given(
        self, piece: int, h: Floats, sizes: Floats, before: Radius, shown: Floats | None
    ) -> tuple[Floats, Floats]:
        """The margins' radius, and the sizes that add up to theirs, after a step."""
        margins, added = before.margins, before.sizes
        if shown is not None:
            given = self.question.tail.sizes[piece][: len(h)]
            most = max(ONE, float(sizes.max())) + h.max()
            margins = (margins + h @ np.abs(shown) + self.lost(len(h)) * most * given.sum(axis=0)) * MORE
            added = (added + sizes @ given) * MORE
        return margins, added

    def lost(self, terms: int) -> float:
        """Of a sum of products whose weights were themselves computed, and which is added to others."""
        return (terms + 8 + 2 * len(self.chain.steps) + COMPUTED) * 4 * HALF

    def product(self, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
        """Magnitudes that ends may have, and the radius, of those of both."""
        (a, r), (b, s) = x, y
        reach = (a + r) * (b + s)
        radius = a * s + b * r + r * s + self.unit + 8 * HALF * reach
        if self.kernel:
            radius = radius + 2 * SHARE * reach + 2 * self.unit
        return reach + radius, radius


class EndTables(InEnds):
    """Of an LSTM."""

    def start(self, count: int, most: int) -> Carried:
        found = super().start(count, most)
        size, nothing = len(self.chain.memory), np.zeros(self.rivals)
        memory = inexact(self.chain.memory, self.unit)
        found.radius = Radius(np.zeros(size), memory, nothing, np.zeros(size), nothing)
        return found

    def apply(self, place: int, rows: Array, to: Carried) -> None:
        before, step = to.radius, self.chain.steps[place]
        if before is None or not isinstance(step.cell, Cell):
            raise TypeError("ends without a radius")
        cell = step.cell
        memory = largest(to.c)
        super().apply(place, rows, to)
        wide, _ = self.columns(place, before, self.question.roundings[cell.rows])
        if not (self.reached[place] + wide < LIMIT).all():
            raise TooWide
        least, most = self.least, self.most
        a, b = least[cell.fresh], most[cell.fresh]
        fresh = np.maximum(np.abs(a), np.abs(b)), self.tangent(a, b, wide[cell.fresh])
        kept = self.product(self.gate(cell.forget, wide), (memory, before.c))
        taken = self.product(self.gate(cell.take, wide), fresh)
        total, c = self.sum(kept, taken, cell.memory)
        a, b = np.tanh(to.c.min(axis=0)), np.tanh(to.c.max(axis=0))
        shown = np.maximum(np.abs(a), np.abs(b)) + FUNCTION, self.tangent(a, b, c)
        h = self.product(self.gate(cell.show, wide), shown)[1] * MORE
        fits = (total + c < LIMIT).all() and ((ONE + h) * self.question.reach_of.get(cell.state, 0.0) < LIMIT).all()
        if not (fits and (h < WIDE).all()):  # NaN, too
            raise TooWide
        reach = largest(to.h)
        margins, added = self.given(cell.state, h, reach + h, before, step.shown)
        to.radius = Radius(h, c, margins, reach, added)


class GatedEnds(InEnds, GatedTables):
    """Of a GRU."""

    def start(self, count: int, most: int) -> Carried:
        found = super().start(count, most)
        memory, nothing = self.chain.memory, np.zeros(self.rivals)
        found.radius = Radius(inexact(memory, self.unit), np.zeros(0), nothing, np.abs(memory), nothing)
        return found

    def notice_sum(self, rows: Array) -> None:
        self.fresh = rows.min(axis=0), rows.max(axis=0)

    def apply(self, place: int, rows: Array, to: Carried) -> None:
        before, step = to.radius, self.chain.steps[place]
        if before is None or not isinstance(step.cell, Gated):
            raise TypeError("ends without a radius")
        cell, pieces = step.cell, (step.cell.rows, step.cell.inner, step.cell.taken)
        state = largest(to.h), before.h
        super().apply(place, rows, to)
        size = len(before.h)
        roundings = self.question.roundings
        wide, sizes = self.columns(place, before, np.concatenate([roundings[piece] for piece in pieces]))
        keep, reset, inner, taken = (slice(at * size, (at + 1) * size) for at in range(4))
        sized = np.maximum(np.abs(self.least), np.abs(self.most))
        z = self.gate(keep, wide)
        less = self.product(self.gate(reset, wide), (sized[inner], wide[inner]))
        total, bent = self.sum((sized[taken], wide[taken]), less, cell.sum, sizes[taken] + less[0])
        a, b = (np.tanh(end) for end in self.fresh)
        n = np.maximum(np.abs(a), np.abs(b)) + FUNCTION, self.tangent(a, b, bent)
        rest = self.sum((1 - self.least[keep] * 0.5, z[1]), (0.0, 0.0), cell.rest, 1 + z[0] + z[1])
        kept, new = self.product(z, state), self.product(rest, n)
        reach, h = self.sum(kept, new, cell.state)
        h = h + 32 * HALF * (ONE + state[0])
        fits = (sizes + wide < LIMIT).all() and (total + bent < LIMIT).all()
        fits = fits and ((reach + h) * self.question.reach_of.get(cell.mixed, 0.0) < LIMIT).all()
        if not (fits and (h < WIDE).all()):  # NaN, too
            raise TooWide
        margins, added = self.given(cell.mixed, h, reach, before, step.shown)
        to.radius = Radius(h, before.c, margins, largest(to.h), added)


def largest(numbers: Array) -> Floats:
    """[H]: magnitudes, of any row."""
    return np.asarray(np.maximum(numbers.max(axis=0), -numbers.min(axis=0)))
