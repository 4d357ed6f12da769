"""What the margins of a network that attends are computed from, cell by cell, and which cells have one structure.

    shape = Shape(network, words)            shape.owner(i, moving)          shape.plan(terms, moving)

A *cell* holds what some terms of the margin need in one view of FORMAT section 17: those of a word with one of its
options, or of one position that has no word of its own. Cells of one structure differ in their elements only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from swapproof.encodings.network import Floats, Indices
from swapproof.proofs import exact_network as exact
from swapproof.proofs import smooth_blocks

EXP = 1
"""The function of curves that is exp."""
CUT, SINGLE, POWER, SEVERAL = "cut", "single", "power", "several"
"""An element affine in the words; of one word at most; a power; and all others."""


FAR = 1 << 11
"""Scores under a mask are lowered by so much instead of more, which float64 would lose: the share of what is 700 below
the greatest is nothing in either case."""


class Unfit(ValueError):
    """A network, or a region, that only the exact leaf is for."""


class TooLoose(Unfit):
    """A region of which the bound says nothing, and the exact leaf, of the same intervals, hardly more."""


class Row(NamedTuple):
    """An element of a plan: its layer, its kind, the rows it reads, and of an affine one its weights."""

    layer: int
    kind: str
    reads: tuple[int, ...]
    weights: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """`rows` and where the terms are among them, which cells with one number share; `elements` are a cell's own."""

    number: int
    rows: tuple[Row, ...]
    terms: tuple[int, ...]
    elements: Indices


@dataclass(eq=False)
class Weights:
    """Of an affine layer: biases, and lists of weights."""

    biases: Floats
    lists: list[Floats]


class Shape:
    """The layers of one network, and the words of its elements."""

    def __init__(self, network: exact.Network, words: Sequence[tuple[int, Sequence[Any]]], firm: bytearray) -> None:
        self.network = network
        self.sinking = np.frombuffer(firm, dtype=np.uint8) == 0
        """[elements]: what only maxima, exp and other such elements read."""
        self.raised = np.zeros(len(network.owner), dtype=np.bool_)
        """[elements]: whether a bias, or a number, that hides them is raised to -FAR."""
        for layer in network.later:
            if isinstance(layer, exact.Affine):
                low = np.array([b < -FAR * layer.bias_scale for b in layer.biases])
                here = slice(layer.start, layer.start + layer.size)
                self.raised[here] = low & self.sinking[here]
        self.words = smooth_blocks.words_of_elements(network, words)
        self.number = {id(layer): at for at, layer in enumerate(network.layers)}
        self.weights: dict[int, Weights] = {}
        self.commons: dict[int, dict[int, int]] = {}
        self.found: dict[int, dict[int, tuple[str, tuple[int, ...]]]] = {}
        self.plans: dict[tuple[int, tuple[int, ...], bool], Plan] = {}
        self.structures: dict[tuple[Any, ...], Plan] = {}

    def weights_of(self, layer: exact.Affine) -> Weights:
        key = id(layer)
        if key not in self.weights:
            lists = [np.array([w / layer.size_scale for w in row]) for row in layer.weights]
            biases = np.array([b / layer.bias_scale for b in layer.biases])
            biases[self.raised[layer.start : layer.start + layer.size]] = -FAR
            self.weights[key] = Weights(biases, lists)
        return self.weights[key]

    def count(self, i: int, moving: int) -> int:
        return (self.words[i] & moving).bit_count()

    def owner(self, i: int, moving: int) -> int | None:
        """The own word of an element, by 17.1."""
        known, network = self.commons.setdefault(moving, {}), self.network
        waiting = [i]
        while waiting:
            at = waiting[-1]
            own, layer = self.words[at] & moving, network.owner[at]
            if at in known:
                waiting.pop()
            elif own.bit_count() <= 2 or not layer.depth:
                known[at] = own if own.bit_count() <= 2 else 0
            else:
                every = smooth_blocks.read_by(layer, [at - layer.start])
                read = [y for y in every if self.count(y, moving) > 1] or [y for y in every if self.count(y, moving)]
                missing = [y for y in read if y not in known]
                if missing:
                    waiting += missing
                else:
                    known[at] = reduce(and_, [known[y] for y in read])
        common = known[i]
        return (common & -common).bit_length() - 1 if common and self.count(i, moving) > 1 else None

    def power_of(self, i: int, layer: exact.Curve, moving: int) -> tuple[int, ...]:
        """Of exp(x - greatest): x, greatest, and what the maximum reads."""
        source = layer.sources[i - layer.start]
        inner = self.network.owner[source]
        if not isinstance(inner, exact.Affine) or not inner.depth or inner.biases[source - inner.start]:
            return ()
        at, of = inner.pairs[source - inner.start]
        elements, one = inner.lists[at], inner.size_scale
        if len(elements) != 2 or inner.weights[of] != [one, -one]:
            return ()
        greatest = self.network.owner[elements[1]]
        if not isinstance(greatest, exact.Maximum) or self.count(elements[0], moving) > 1:
            return ()
        window = greatest.windows[elements[1] - greatest.start]
        return elements[0], elements[1], *greatest.sources[window.start : window.stop]

    def read(self, i: int, moving: int) -> tuple[str, tuple[int, ...]]:
        """The kind of an element, and what it is computed from."""
        known = self.found.setdefault(moving, {})
        if i in known:
            return known[i]
        layer = self.network.owner[i]
        kind, place = SINGLE if self.count(i, moving) <= 1 else SEVERAL, i - layer.start
        sources: tuple[int, ...] = ()
        if not layer.depth:
            kind = CUT
        elif isinstance(layer, exact.Affine):
            sources = layer.lists[layer.pairs[place][0]]
        elif isinstance(layer, exact.Product):
            sources = layer.firsts[place], layer.seconds[place]
        elif isinstance(layer, exact.Maximum):
            window = layer.windows[place]
            sources = tuple(layer.sources[window.start : window.stop])
        elif isinstance(layer, exact.Curve | exact.Rectifier):
            sources = (layer.sources[place],)
            if kind == SEVERAL and isinstance(layer, exact.Curve) and layer.function == EXP:
                power = self.power_of(i, layer, moving)
                kind, sources = (POWER, power) if power else (kind, sources)
        known[i] = kind, sources
        return known[i]

    def base_of(self, i: int, moving: int) -> int:
        """One element far below that all of a position share, most likely: positions without own words are told
        apart by it. (Cells too large are slow, never wrong.)"""
        kind, sources = self.read(i, moving)
        while kind == SEVERAL:
            below = [y for y in sources if self.read(y, moving)[0] == SEVERAL]
            if not below:
                break
            i = min(below)
            kind, sources = self.read(i, moving)
        return i

    def plan(self, terms: tuple[int, ...], moving: int, *, whole: bool) -> Plan:
        """Of some terms; `whole`: in the view of the leaf, in which nothing may have a word of its own."""
        key = moving, terms, whole
        if key not in self.plans:
            self.plans[key] = self.planned(terms, moving, whole=whole)
        return self.plans[key]

    def planned(self, terms: tuple[int, ...], moving: int, *, whole: bool) -> Plan:
        found, waiting = dict[int, tuple[str, tuple[int, ...]]](), [*terms]
        while waiting:
            i = waiting.pop()
            if i in found:
                continue
            kind, sources = found[i] = self.read(i, moving)
            if whole and kind in (SEVERAL, POWER) and self.owner(i, moving) is not None:
                raise Unfit("what has no word of its own reads what has one")
            waiting += sources if kind != POWER else (sources[0], *sources[2:])
        elements = sorted(found)
        at = {i: row for row, i in enumerate(elements)}
        rows = []
        for i in elements:
            kind, sources = found[i]
            layer, weights = self.network.owner[i], 0
            if kind == POWER:
                sources = sources[0], *sources[2:]
            elif isinstance(layer, exact.Affine) and kind != CUT:
                weights = layer.pairs[i - layer.start][1]
            number = self.number.get(id(layer), -1)
            rows.append(Row(number, kind, tuple([at[y] for y in sources]), weights))
        given = tuple(rows), tuple([at[i] for i in terms])
        plan = Plan(len(self.structures), *given, np.array(elements, dtype=np.int64))
        same = self.structures.setdefault(given, plan)
        return replace(same, elements=plan.elements)
