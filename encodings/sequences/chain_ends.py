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
from .chain_walk import Carried, Radius, Tables

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


class EndTables(Tables):
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
                sizes += ONE * self.magnitudes[id(step.recurrent)].sum(axis=0)
            offset = step.shares * self.unit + step.error
            for numbers, matrix in step.constants:
                offset += inexact(numbers, self.unit) @ np.abs(matrix)
            self.offsets.append(offset)
            self.reached.append(sizes)
        self.least = self.most = np.zeros(0)
        self.fits = not self.kernel or all(step.looked_up for step in chain.steps)

    def start(self, count: int, most: int) -> Carried:
        found = super().start(count, most)
        size, nothing = len(self.chain.memory), np.zeros(self.rivals)
        memory = inexact(self.chain.memory, self.unit)
        found.radius = Radius(np.zeros(size), memory, nothing, np.zeros(size), nothing)
        return found

    def apply(self, place: int, rows: Array, to: Carried) -> None:
        before, step = to.radius, self.chain.steps[place]
        if before is None:
            raise TypeError("ends without a radius")
        cell, unit, kernel = step.cell, self.unit, self.kernel
        memory = largest(to.c)
        super().apply(place, rows, to)
        wide, sizes = self.offsets[place] + 2 * unit, step.sizes + step.shares * unit
        if step.recurrent is not None:
            magnitudes = self.magnitudes[id(step.recurrent)]
            wide = wide + before.h @ magnitudes
            sizes = sizes + (before.reach + before.h) @ magnitudes
        wide = wide + (step.terms + MORE_TERMS) * 2 * HALF * sizes
        if kernel:
            wide = wide + SHARE * self.question.roundings[cell.rows] * (sizes * MORE + 2 * unit) + 2 * unit
        wide = wide * MORE
        if not (self.reached[place] + wide < LIMIT).all():
            raise TooWide
        rounding = FUNCTION + unit + (ABSOLUTE + 2 * unit if kernel else 0.0)
        least, most = self.least, self.most

        def gate(own: slice) -> tuple[Floats, Floats]:
            """Its greatest number, and the radius: sigmoid bends by s (1 - s), which itself bends by less than 0.1."""
            a, b, r = least[own], most[own], wide[own]
            slope = np.where((a < 1) & (b > 1), 0.25, np.maximum(a * (2 - a), b * (2 - b)) * 0.25)
            return b * 0.5, np.minimum(0.25, slope + 0.1 * r + HALF * 16) * r + rounding

        def tangent(a: Floats, b: Floats, r: Floats) -> Floats:
            """The radius where tanh lies between these: it bends by 1 - tanh^2, which itself bends by less than 0.8."""
            nearest = np.where((a < 0) & (b > 0), 0.0, np.minimum(np.abs(a), np.abs(b)))
            return np.asarray(np.minimum(1.0, 1 - nearest * nearest + 0.8 * r + FUNCTION * 4) * r + rounding)

        a, b = least[cell.fresh], most[cell.fresh]
        fresh = np.maximum(np.abs(a), np.abs(b)), tangent(a, b, wide[cell.fresh])
        kept = self.product(gate(cell.forget), (memory, before.c))
        taken = self.product(gate(cell.take), fresh)
        total = kept[0] + taken[0]
        c = kept[1] + taken[1] + unit + 8 * HALF * total
        if kernel:
            c = c + SHARE * self.question.roundings[cell.memory] * (total * MORE + 2 * unit) + 2 * unit
        c = c * MORE
        a, b = np.tanh(to.c.min(axis=0)), np.tanh(to.c.max(axis=0))
        shown = np.maximum(np.abs(a), np.abs(b)) + FUNCTION, tangent(a, b, c)
        h = self.product(gate(cell.show), shown)[1] * MORE
        fits = (total + c < LIMIT).all() and ((ONE + h) * self.question.reach_of.get(cell.state, 0.0) < LIMIT).all()
        if not (fits and (h < WIDE).all()):  # NaN, too
            raise TooWide
        margins, added = before.margins, before.sizes
        reach = largest(to.h)
        if step.shown is not None:
            given = self.question.tail.sizes[cell.state]
            margins = (
                margins + h @ np.abs(step.shown) + self.lost(len(h)) * (ONE + h.max()) * given.sum(axis=0)
            ) * MORE
            added = (added + (reach + h) @ given) * MORE
        to.radius = Radius(h, c, margins, reach, added)

    def notice(self, rows: Array) -> None:
        self.least, self.most = rows.min(axis=0), rows.max(axis=0)

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


def largest(numbers: Array) -> Floats:
    """[H]: magnitudes, of any row."""
    return np.asarray(np.maximum(numbers.max(axis=0), -numbers.min(axis=0)))
