"""Bounds of a network over a region of its sentences by the recipe of certificates, with multipliers that prove them.

Keys of multipliers name rows: ("define", n, e) is x = its affine function, ("above", n, e) y >= x, ("leak", n, e)
y >= slope x, ("upper", n, e) the upper line of a rectifier, ("joint", ...) the bound of a group; those of the words are
in `priced_words`; whole numbers are lines that were derived before.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from swapproof.encodings.programs.exact_functions import Exact, Function, Layer, Vectors
from swapproof.encodings.programs.priced_words import Key, Words, least

ZERO = Fraction(0)
Multipliers = dict[Key, Fraction]
Element = tuple[int, int]
Member = tuple[int, Fraction, Fraction]
"""Element of a joint group, the magnitude of its coefficient, its slope."""
GRID, SLOPES = 1 << 64, 1 << 16


@dataclass(frozen=True)
class Region:
    """What a node of the tree speaks of; `rivals_key` names the row that leaves out the other rivals."""

    words: Words
    rivals: tuple[int, ...]
    rivals_key: Key | None = None
    slopes: Mapping[Element, Fraction] = field(default_factory=dict)
    joint: Mapping[Element, tuple[int, Fraction]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ends:
    """low <= x <= high, and what proves x >= low and -x >= -high."""

    low: Fraction
    high: Fraction
    low_by: Reason
    high_by: Reason


Bounds = dict[Element, Ends]


@dataclass(frozen=True, eq=False)
class Reason:
    """Multipliers of rows; those that bound what is left of words are found when they are asked for."""

    rows: Multipliers
    words: Words | None = None
    function: Mapping[tuple[int, int], int] = field(default_factory=dict)
    under: int = 1

    def multipliers(self) -> Multipliers:
        found = None if self.words is None else least(self.words, self.function)
        if found is None:
            return self.rows
        return {**self.rows, **{key: Fraction(c, self.under) for key, c in found[1].items()}}


@dataclass(frozen=True)
class Proved:
    """A lower bound of a function, and what adds up to it."""

    value: Fraction
    by: Reason


@dataclass(eq=False)
class JointBound:
    """T, and for every pattern of phases its part of it, and what proves that; None: a larger region's will do."""

    rise: Fraction
    patterns: dict[tuple[int, ...], tuple[Fraction, Reason | None]]


def upper_line(slope: Fraction, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """(s, t) with max(x, slope x) <= s x + t for low <= x <= high: section 7 of the format."""
    if low >= 0:
        return Fraction(1), ZERO
    if high <= 0:
        return slope, ZERO
    s = Fraction(floor(SLOPES * (high - slope * low) / (high - low) + Fraction(1, 2)), SLOPES)
    return s, max((slope - s) * low, (1 - s) * high)


@dataclass(eq=False)
class Bounding:
    """One region; `bounds` are computed, or those of a larger region."""

    exact: Exact
    vectors: Vectors
    region: Region
    bounds: Bounds = field(default_factory=dict)
    joint: dict[Key, JointBound] = field(default_factory=dict)
    wider: Bounding | None = None
    """Of a region that holds this one."""
    joint_as_wider: bool = False
    """Joint groups are bounded over the wider region."""

    def compute(self) -> None:
        for layer in self.exact.layers:
            for e, function in enumerate(layer.inputs):
                key = ("define", layer.node, e)
                low = self.lower([(function, Fraction(1))], {key: Fraction(1)})
                high = self.lower([(function, Fraction(-1))], {key: Fraction(-1)})
                self.bounds[layer.node, e] = Ends(
                    Fraction(floor(low.value * GRID), GRID), Fraction(ceil(-high.value * GRID), GRID), low.by, high.by
                )

    def lower(self, functions: list[tuple[Function, Fraction]], by: Multipliers, *, margin: bool = False) -> Proved:
        """Backward substitution of a sum of functions down to the words. Multipliers of the region are for margins."""
        by, constant, units = dict(by), ZERO, dict[Element, Fraction]()
        functions = list(functions)
        for function, c in functions:
            constant += c * function.constant
            spread(units, function.units, c)
        for layer in reversed(self.exact.layers):
            given = {e: units.pop((layer.node, e), ZERO) for e in range(len(layer.inputs))}
            inputs: dict[int, Fraction] = {}
            if margin:
                constant += self.join(layer, given, inputs, by)
            for e, c in given.items():
                if c:
                    s, t = self.relaxed(layer, e, c, by, margin=margin)
                    inputs[e] = inputs.get(e, ZERO) + c * s
                    constant += c * t
            for e, c in inputs.items():
                if c:
                    add(by, ("define", layer.node, e), c)
                    constant += c * layer.inputs[e].constant
                    functions.append((layer.inputs[e], c))
                    spread(units, layer.inputs[e].units, c)
        value, reason = self.over_words(functions, by)
        return Proved(constant + value, reason)

    def over_words(self, functions: list[tuple[Function, Fraction]], by: Multipliers) -> tuple[Fraction, Reason]:
        """The least value of what words do to a sum of functions."""
        total, under = self.vectors.total(functions)
        found = least(self.region.words, total)
        if found is None:
            raise ArithmeticError("bounds of an empty region")
        return Fraction(found[0], under), Reason(by, self.region.words, total, under)

    def relaxed(self, layer: Layer, e: int, c: Fraction, by: Multipliers, *, margin: bool) -> tuple[Fraction, Fraction]:
        """(s, t) with c y >= c (s x + t); adds what proves it."""
        slope, ends, element = layer.slope, self.bounds[layer.node, e], (layer.node, e)
        if c < 0:
            add(by, ("upper", *element), -c)
            return upper_line(slope, ends.low, ends.high)
        if ends.low >= 0:
            line = Fraction(1)
        elif ends.high <= 0:
            line = slope
        else:
            line = Fraction(1) if ends.high > -ends.low else slope
            if margin and element in self.region.slopes:
                line = max(slope, self.region.slopes[element])
        share = (line - slope) / (1 - slope) if slope < 1 else Fraction(1)
        add(by, ("above", *element), c * share)
        add(by, ("leak", *element), c * (1 - share))
        return line, ZERO

    def join(self, layer: Layer, given: dict[int, Fraction], inputs: dict[int, Fraction], by: Multipliers) -> Fraction:
        """Takes the members of joint groups out of `given`; returns what they cost."""
        groups: dict[int, list[Member]] = {}
        for e, c in given.items():
            element = (layer.node, e)
            if c < 0 and element in self.region.joint:
                group, slope = self.region.joint[element]
                groups.setdefault(group, []).append((e, -c, slope))
        cost = ZERO
        for members in groups.values():
            key = ("joint", layer.node, tuple(members))
            add(by, key, Fraction(1))
            cost -= self.joint_bound(layer, key, members).rise
            for e, c, slope in members:
                inputs[e] = inputs.get(e, ZERO) - c * slope
                given[e] = ZERO
        return cost

    def joint_bound(self, layer: Layer, key: Key, members: list[Member]) -> JointBound:
        holder = self.wider if self.wider is not None and self.joint_as_wider else self
        if key not in holder.joint:
            holder.joint[key] = holder.joined(layer, key, members)
        return holder.joint[key]

    def joined(self, layer: Layer, key: Key, members: list[Member]) -> JointBound:
        """T = the greatest, over patterns d, of the maximum of sum c (d - slope) x over the words.

        A pattern's part is no greater than in a larger region, so only those that may exceed T are computed.
        """
        patterns: dict[tuple[int, ...], tuple[Fraction, Reason | None]] = {}
        if self.wider is not None and key in self.wider.joint:
            known = {pattern: rise for pattern, (rise, _) in self.wider.joint[key].patterns.items()}
            order = sorted(known, key=lambda pattern: -known[pattern])
        else:
            known, order = {}, list(itertools.product((0, 1), repeat=len(members)))
        greatest: Fraction | None = None
        for pattern in order:
            if greatest is not None and pattern in known and known[pattern] <= greatest:
                patterns[pattern] = known[pattern], None
                continue
            functions: list[tuple[Function, Fraction]] = []
            constant, by = ZERO, Multipliers()
            for active, (e, c, slope) in zip(pattern, members, strict=True):
                factor = c * (slope - (Fraction(1) if active else layer.slope))
                constant += factor * layer.inputs[e].constant
                functions.append((layer.inputs[e], factor))
                add(by, ("define", layer.node, e), factor)
            value, reason = self.over_words(functions, by)
            rise = -(constant + value)
            patterns[pattern] = rise, reason
            greatest = rise if greatest is None else max(rise, greatest)
        return JointBound(greatest or ZERO, patterns)


def negative(function: Function) -> Function:
    return Function(
        -function.constant,
        {key: -c for key, c in function.words.items()},
        {key: -c for key, c in function.units.items()},
    )


def difference(one: Function, other: Function) -> Function:
    words, units = dict(one.words), dict(one.units)
    spread(words, other.words, Fraction(-1))
    spread(units, other.units, Fraction(-1))
    return Function(one.constant - other.constant, words, units)


def add(to: Multipliers, key: Key, c: Fraction) -> None:
    if c:
        to[key] = to.get(key, ZERO) + c


def spread(to: dict[tuple[int, int], Fraction], terms: Mapping[tuple[int, int], Fraction], factor: Fraction) -> None:
    for key, c in terms.items():
        to[key] = to.get(key, ZERO) + factor * c
