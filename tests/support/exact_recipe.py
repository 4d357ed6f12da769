"""The recipe `linear-2` and section 8 of FORMAT.md over fractions, on the network of `encodings`: slow and plain.

An oracle for screening: it knows no floats, no batches, and no other code of the screening.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.canonical import canonical_of, windows_read
from swapproof.encodings.canonical_layers import Bends
from swapproof.encodings.network import (
    Affine,
    Constant,
    Embedding,
    Maximum,
    Network,
    Rearrangement,
    Rectifier,
    Scaling,
    Sum,
)

Objects = NDArray[Any]
GRID = 2**64
fractions = np.vectorize(lambda x: Fraction(float(x)), otypes=[object])


def fractional(array: Any) -> Objects:
    array = np.asarray(array, dtype=np.float64)
    return np.asarray(fractions(array) if array.size else array, dtype=object)


def values(network: Network, tokens: Sequence[int], stop_at: Sequence[int] | None = None) -> dict[int, Objects]:
    """Every node's flat value for one sentence; only the nodes before the first nonlinear ones with `stop_at`."""
    known: dict[int, Objects] = {}
    for index, node in enumerate(network.nodes):
        if stop_at is not None and index not in network.linear:
            continue
        inputs = [known[source] for source in node.inputs]
        match node.layer:
            case Embedding(table, positions):
                found = fractional(table[np.asarray(tokens)[positions]])
            case Constant(value):
                found = fractional(value)
            case Rearrangement(order):
                found = np.concatenate(inputs)[order.reshape(-1)]
            case Affine(weight, bias):
                found = inputs[0].reshape(-1, len(weight)) @ fractional(weight) + fractional(bias)
            case Scaling(multiply, divide, add, _):
                factor = fractional(multiply).reshape(-1) / fractional(divide).reshape(-1)
                found = inputs[0] * factor + fractional(add).reshape(-1)
            case Sum(signs):
                found = np.asarray(sum(sign * x for sign, x in zip(signs, inputs, strict=True)))
            case Rectifier(slope):
                found = np.maximum(inputs[0], inputs[0] * Fraction(slope))
            case Maximum():
                found = inputs[0].reshape(node.size, -1).max(axis=1)
        known[index] = np.asarray(found, dtype=object).reshape(-1)
    return known


@dataclass
class Region:
    """One region: masks of choices per position (all positions), at most k swaps, and the multipliers set."""

    masks: Sequence[int]
    k: int
    slopes: Mapping[tuple[int, int], int] = field(default_factory=dict)
    joint: Sequence[tuple[int, Sequence[tuple[int, int]]]] = ()
    heights: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(maximum or rectifier, element) -> its value in a table: the height in 64ths, and 128 times the stairs, of a
    rectifier one more; a slope set for it beside is set no more."""


Root = tuple[int, int] | Fraction
"""Node of the cut and element, or a constant."""
Gains = list[list[Fraction]]
"""What swaps add, by position, and there as they stand in `Recipe.moves`."""


class Recipe:
    def __init__(self, network: Network, choices: Sequence[Sequence[int]], region: Region) -> None:
        self.network, self.region = network, region
        original = [options[0] for options in choices]
        start = values(network, original, network.cut)
        self.base = {n: start[n] for n in network.cut}
        self.moves: list[list[dict[int, Objects]]] = []
        self.must: list[bool] = []
        for position, (mask, options) in enumerate(zip(region.masks, choices, strict=True)):
            swaps = []
            for choice, token in enumerate(options):
                if choice and mask >> choice & 1:
                    found = values(network, [*original[:position], token, *original[position + 1 :]], network.cut)
                    swaps.append({n: found[n] - self.base[n] for n in network.cut})
            self.moves.append(swaps)
            self.must.append(not mask & 1)
        self.known: dict[int, list[tuple[Fraction, Fraction]]] = {}

    @property
    def empty(self) -> bool:
        return sum(self.must) > self.region.k

    def minimum(
        self, function: Mapping[int, Mapping[int, Fraction]], beyond: Sequence[tuple[Fraction, Gains]] = ()
    ) -> Fraction:
        """Of an affine function of the cut over the region, and of gains, each times a factor."""

        def at(numbers: Mapping[int, Objects]) -> Fraction:
            return sum((c * numbers[n][i] for n, given in function.items() for i, c in given.items()), Fraction(0))

        total, free = at(self.base), []
        for place, (swaps, must) in enumerate(zip(self.moves, self.must, strict=True)):
            gains = [at(swap) + sum(c * each[place][s] for c, each in beyond) for s, swap in enumerate(swaps)]
            if must:
                total += min(gains)
            elif gains:
                free.append(min(min(gains), Fraction(0)))
        return total + sum(sorted(free)[: self.region.k - sum(self.must)], Fraction(0))

    def bounds(self, n: int) -> list[tuple[Fraction, Fraction]]:
        if n not in self.known:
            self.known[n] = [
                (Fraction(floor(low * GRID), GRID), Fraction(ceil(high * GRID), GRID)) for low, high in self.found(n)
            ]
        return self.known[n]

    def found(self, n: int) -> list[tuple[Fraction, Fraction]]:
        node, one = self.network.nodes[n], Fraction(1)
        if n in self.network.cut:
            return [(self.minimum({n: {i: one}}), -self.minimum({n: {i: -one}})) for i in range(node.size)]
        match node.layer:
            case Constant(value):
                return [(x, x) for x in fractional(value).reshape(-1)]
            case Rearrangement(order):
                laid = [pair for source in node.inputs for pair in self.bounds(source)]
                return [laid[i] for i in order.reshape(-1)]
            case Rectifier(slope):
                bent = [tuple(max(x, x * Fraction(slope)) for x in pair) for pair in self.inputs(n)]
                return [(self.taken(n, i, low)[1], high) for i, (low, high) in enumerate(bent)]
            case Maximum():
                width = len(self.inputs(n)) // node.size
                windows = [self.inputs(n)[i * width : (i + 1) * width] for i in range(node.size)]
                return [
                    (self.taken(n, i, max(low for low, _ in window))[1], max(high for _, high in window))
                    for i, window in enumerate(windows)
                ]
            case _:
                return [(self.least(n, {i: one}), -self.least(n, {i: -one})) for i in range(node.size)]

    def inputs(self, n: int) -> list[tuple[Fraction, Fraction]]:
        return self.bounds(self.network.nodes[n].inputs[0])

    def margin(self, label: int, rival: int) -> Fraction:
        return self.least(len(self.network.nodes) - 1, {label: Fraction(1), rival: Fraction(-1)}, margin=True)

    def least(self, n: int, function: Mapping[int, Fraction], margin: bool = False) -> Fraction:
        pending: dict[int, dict[int, Fraction]] = {n: dict(function)}
        constant = Fraction(0)
        beyond: list[tuple[Fraction, Gains]] = []

        def hand(source: int, i: int, c: Fraction) -> None:
            given = pending.setdefault(source, {})
            given[i] = given.get(i, Fraction(0)) + c

        cut: dict[int, dict[int, Fraction]] = {}
        for m in range(n, -1, -1):
            given, node = pending.pop(m, {}), self.network.nodes[m]
            if m in self.network.cut:
                cut[m] = given
                continue
            sizes = [self.network.nodes[source].size for source in node.inputs]
            match node.layer:
                case Rectifier(slope):
                    constant += self.rectified(m, slope, given, hand, margin, beyond)
                case Maximum():
                    constant += self.picked(m, given, hand, beyond)
                case Constant(value):
                    constant += sum(c * Fraction(float(value.reshape(-1)[i])) for i, c in given.items())
                case Rearrangement(order):
                    for i, c in given.items():
                        at, which = int(order.reshape(-1)[i]), 0
                        while at >= sizes[which]:
                            at, which = at - sizes[which], which + 1
                        hand(node.inputs[which], at, c)
                case Affine(weight, bias):
                    for i, c in given.items():
                        block, column = divmod(i, len(bias))
                        constant += c * Fraction(float(bias[column]))
                        for row in range(len(weight)):
                            if weight[row, column]:
                                hand(
                                    node.inputs[0], block * len(weight) + row, c * Fraction(float(weight[row, column]))
                                )
                case Scaling(multiply, divide, add, _):
                    for i, c in given.items():
                        numbers = (Fraction(float(part.reshape(-1)[i])) for part in (multiply, divide, add))
                        factor, divisor, more = numbers
                        constant += c * more
                        hand(node.inputs[0], i, c * factor / divisor)
                case Sum(signs):
                    for i, c in given.items():
                        for sign, source in zip(signs, node.inputs, strict=True):
                            hand(source, i, c * sign)
        return self.minimum(cut, beyond) + constant

    def rectified(
        self,
        m: int,
        slope: float,
        given: Mapping[int, Fraction],
        hand: Any,
        margin: bool,
        beyond: list[tuple[Fraction, Gains]],
    ) -> Fraction:
        region, source, alpha = self.region, self.network.nodes[m].inputs[0], Fraction(slope)
        constant = Fraction(0)
        grouped: dict[int, Fraction] = {}
        if margin:
            for n, pairs in region.joint:
                members = [(i, Fraction(v, 64), given[i]) for i, v in pairs if n == m and given.get(i, 0) < 0]
                grouped.update((i, a) for i, a, _ in members)
                if members:
                    constant -= max(
                        -self.minimum({source: {i: c * (d - a) for (i, a, c), d in zip(members, ends, strict=True)}})
                        for ends in itertools.product((alpha, Fraction(1)), repeat=len(members))
                    )
        for i, c in given.items():
            low, high = self.inputs(m)[i]
            if i in grouped:
                hand(source, i, c * grouped[i])
            elif low >= 0:
                hand(source, i, c)
            elif high <= 0:
                hand(source, i, c * alpha)
            elif c >= 0 and self.stairs(m, i):
                below, falls = self.lowered(m, i, max(low, alpha * low))
                beyond.append((-c, falls))
                constant += c * below
            elif c < 0 and (m, i) in region.heights:
                above, gains = self.counted(m, i, max(high, alpha * high))
                beyond.append((c, gains))
                constant += c * above
            elif c >= 0:
                lower = Fraction(1) if high > -low else alpha
                if margin and (m, i) in region.slopes and (m, i) not in region.heights:
                    lower = max(alpha, Fraction(region.slopes[m, i], 64))
                hand(source, i, c * lower)
            else:
                s = Fraction(floor(2**16 * (high - alpha * low) / (high - low) + Fraction(1, 2)), 2**16)
                hand(source, i, c * s)
                constant += c * max((alpha - s) * low, (1 - s) * high)
        return constant

    def picked(
        self, m: int, given: Mapping[int, Fraction], hand: Any, beyond: list[tuple[Fraction, Gains]]
    ) -> Fraction:
        constant, source = Fraction(0), self.network.nodes[m].inputs[0]
        width = len(self.inputs(m)) // self.network.nodes[m].size
        elements = windows_read(self.network, m)
        for i, c in given.items():
            window, own = self.inputs(m)[i * width : (i + 1) * width], elements[i].tolist()
            best = max(range(width), key=lambda w: (window[w][0], -own[w]))
            others = [u for w, (_, u) in enumerate(window) if own[w] != own[best]]
            certain = all(u <= window[best][0] for u in others)
            if certain or (c >= 0 and not self.stairs(m, i)):
                hand(source, i * width + best, c)
            elif c >= 0:
                below, falls = self.lowered(m, i, window[best][0])
                beyond.append((-c, falls))
                constant += c * below
            else:
                above = max(u for _, u in window)
                if (m, i) in self.region.heights:
                    above, gains = self.counted(m, i, above)
                    beyond.append((c, gains))
                constant += c * above
        return constant

    # ---- maxima and rectifiers that count swaps

    def stairs(self, n: int, i: int) -> int:
        bends = isinstance(self.network.nodes[n].layer, Rectifier)
        return max(self.region.heights.get((n, i), 0) // 128 - bends, 0)

    def roots(self, n: int, i: int, number: int = -1) -> tuple[dict[Root, int], bool]:
        """Through rectifiers and maxima, with the number of each among all elements; whether a rectifier is met.

        `number` is that of the element itself, which a maximum and a rectifier need not know.
        """
        node = self.network.nodes[n]
        if n in self.network.cut:
            return {(n, i): number}, False
        match node.layer:
            case Constant(value):
                return {Fraction(float(value.reshape(-1)[i])): number}, False
            case Rearrangement(order):
                at, which = int(order.reshape(-1)[i]), 0
                while at >= self.network.nodes[node.inputs[which]].size:
                    at, which = at - self.network.nodes[node.inputs[which]].size, which + 1
                return self.roots(node.inputs[which], at, number)
            case Rectifier():
                form = canonical_of(self.network)
                step = None if form.form is None else form.form.steps[form.layer_of[n]]
                assert isinstance(step, Bends)
                return self.roots(node.inputs[0], i, int(step.read[i]))[0], True
            case Maximum():
                width = self.network.nodes[node.inputs[0]].size // node.size
                numbers = windows_read(self.network, n)[i].tolist()
                found = [self.roots(node.inputs[0], i * width + w, numbers[w]) for w in range(width)]
                return {root: at for roots, _ in found for root, at in roots.items()}, any(bent for _, bent in found)
            case _:
                raise ValueError("another layer")

    def counts_swaps(self, n: int, i: int) -> bool:
        try:
            self.roots(n, i)
        except ValueError:
            return False
        return True

    def taken(self, m: int, i: int, least: Fraction) -> tuple[list[tuple[Fraction, Gains]], Fraction]:
        """low_z and e_z of the roots that are taken, and l; `least` is l'."""
        if not self.stairs(m, i):
            return [], least
        waiting: list[tuple[Fraction, int, Gains]] = []
        for root, number in self.roots(m, i)[0].items():
            nothing = [[Fraction(0)] * len(swaps) for swaps in self.moves]
            if isinstance(root, Fraction):
                waiting.append((down(root), number, nothing))
                continue
            n, at = root
            low = self.base[n][at]
            for place, (swaps, must) in enumerate(zip(self.moves, self.must, strict=True)):
                if must:
                    low += min(swap[n][at] for swap in swaps)
                else:
                    nothing[place] = [max(up(-swap[n][at]), Fraction(0)) for swap in swaps]
            waiting.append((down(low), number, nothing))
        room, found, used = self.region.k - sum(self.must), list[tuple[Fraction, Gains]](), set[int]()
        for low, _, falls in sorted(waiting, key=lambda each: (-each[0], each[1])):
            lowers = {place for place, each in enumerate(falls) if any(fall > 0 for fall in each)}
            if lowers & used:
                continue
            used |= lowers
            found.append((low, falls))
            if len(found) == room + 1:
                return found, max(least, low)
        return found, least

    def lowered(self, m: int, i: int, least: Fraction) -> tuple[Fraction, Gains]:
        """v_1, or l, and F."""
        taken, low = self.taken(m, i, least)
        stairs = [each for each in taken[: self.stairs(m, i)] if each[0] > low]
        falls = [[Fraction(0)] * len(swaps) for swaps in self.moves]
        levels = [*(v for v, _ in stairs), low]
        for v, after, (_, own) in zip(levels, levels[1:], stairs, strict=False):
            for place, each in enumerate(own):
                for s, fall in enumerate(each):
                    falls[place][s] += min(fall, v - after)
        return levels[0], falls

    def counted(self, m: int, i: int, constant: Fraction) -> tuple[Fraction, Gains]:
        roots, bent = self.roots(m, i)
        room, nothing = self.region.k - sum(self.must), [[Fraction(0)] * len(swaps) for swaps in self.moves]
        tables: list[tuple[Fraction, Gains]] = []
        for root in roots:
            if isinstance(root, Fraction):
                tables.append((up(root), nothing))
                continue
            n, at = root
            base = self.base[n][at]
            for swaps, must in zip(self.moves, self.must, strict=True):
                base += max(swap[n][at] for swap in swaps) if must else 0
            tables.append((up(base), [[up(swap[n][at]) for swap in swaps] for swaps in self.moves]))
        least = max([base for base, _ in tables] + [Fraction(0)] * bent)
        height = Fraction(self.region.heights[m, i] % 128, 64)
        if constant <= least or height == 1:
            return constant, nothing
        beta, found = least + up((constant - least) * height), [list(each) for each in nothing]
        for base, steps in tables:
            most = [
                Fraction(0) if must else max([*gains, Fraction(0)])
                for gains, must in zip(steps, self.must, strict=True)
            ]
            total, slack = sum(sorted(most, reverse=True)[:room]), beta - base
            if total > slack:
                for place, gains in enumerate(steps):
                    share = Fraction(floor(slack * most[place] / total * GRID), GRID)
                    for s, gain in enumerate(gains if not self.must[place] else ()):
                        found[place][s] = max(found[place][s], gain - share)
        return beta, found


def up(number: Fraction) -> Fraction:
    return Fraction(ceil(number * GRID), GRID)


def down(number: Fraction) -> Fraction:
    return Fraction(floor(number * GRID), GRID)
