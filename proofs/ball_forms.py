"""Forms of the elements of a smooth network over a ball (FORMAT.md, section 16.6): a number, slopes, and an error.

    forms = BallForms(network, q, center, stop)              those of all elements at the center
    forms.beaten(label, rival, free, halves, norm)           whether the rival beats the label nowhere in the ball

This file is trusted, as check_ball.py is, which loads it. Standard library only, exact integers only.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isqrt, lcm
from operator import add, mul, sub
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING or __package__:
    from . import enclosures, onnx_file
    from . import exact_network as networks
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]

require, need, in_time = onnx_file.require, onnx_file.need, onnx_file.in_time
EXP, TANH, SIGMOID, ERF, RECIPROCAL, SQRT = range(1, 7)
LIMIT_BITS = 40
NEAR = 8
"""The slopes that curves are given are less than this from their derivatives, in units."""
ERF_SLOPE = 130657381209852114387528029350014196574164286124850014242073919076264802271585
"""floor(2**256 2 / sqrt(pi)): as many bits as the greatest precision has."""
MOST_EXP = 28
PACKED = 4
"""Rows that share a list are added up together if they are so many."""
FIELD = 4
"""Bytes of a field are a multiple of this, and 8 at least."""


class Network(networks.Network):
    """A canonical network whose first layer are its inputs."""

    def numbers(self, reader: networks.Reader) -> networks.Layer:
        need(len(self.owner) == len(self.constants), "inputs that are not the first layer")
        return self.add(networks.Layer, (), reader.integer(), 1)

    kinds: ClassVar[dict[int, Any]] = {k: v for k, v in networks.Network.kinds.items() if k != 1} | {0: numbers}

    @property
    def inputs(self) -> range:
        first = self.layers[0]
        need(type(first) is networks.Layer, "a network that does not begin with its inputs")
        return range(first.start, first.start + first.size)


class Form(NamedTuple):
    """2**q x is at most `e` from f + sum of g d. No g at all: 0 each. `reach` is that of g."""

    f: int
    g: Sequence[int]
    e: int
    reach: int

    @property
    def spread(self) -> int:
        return self.reach + self.e


def root(number: int) -> int:
    """The least integer whose square is no less."""
    return isqrt(number - 1) + 1 if number > 0 else 0


def ceiling(above: int, below: int) -> int:
    return -(-above // below)


def rounded(above: int, below: int) -> int:
    return (2 * above + below) // (2 * below)


class Matrix:
    """Rows of integers. A packed column is one integer with a field for every row, so that a product is one product."""

    def __init__(self, rows: Sequence[list[int]]) -> None:
        self.rows, self.norm = rows, max([sum(map(abs, row)) for row in rows])
        self.packed: dict[int, list[int]] = {}

    def columns(self, size: int) -> list[int]:
        """With fields of so many bytes. A number below 0 borrows from the next row, and pays it back."""
        if size not in self.packed:
            half = 1 << 8 * size - 1
            every = self.every(half, size)
            lines = zip(*self.rows, strict=True)
            self.packed[size] = [
                int.from_bytes(b"".join([(x + half).to_bytes(size, "little") for x in line]), "little") - every
                for line in lines
            ]
        return self.packed[size]

    def every(self, number: int, size: int) -> int:
        return int.from_bytes(number.to_bytes(size, "little") * len(self.rows), "little")

    def times(self, numbers: Sequence[int], places: Sequence[int] | None = None, shift: int = 0) -> list[int]:
        """Of each row the sum of its products with the numbers, where there are places, of these columns alone; and
        where there is a shift, round(2**-shift of it)."""
        more = 1 << shift >> 1
        if len(self.rows) < PACKED:
            rows = self.rows if places is None else [[row[k] for k in places] for row in self.rows]
            return [sum(map(mul, row, numbers)) + more >> shift for row in rows]
        most = self.norm * max(map(abs, numbers), default=0) + more
        size = max(ceiling(most.bit_length() + 1, 8 * FIELD) * FIELD, 8)
        columns, top = self.columns(size), 1 << 8 * size - 1
        total = sum(map(mul, columns if places is None else [columns[k] for k in places], numbers))
        data = (total + self.every(top + more, size)).to_bytes(len(self.rows) * size, "little")
        fields: Iterable[int] = (
            struct.unpack(f"<{len(self.rows)}Q", data)
            if size == 8
            else [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
        )
        top >>= shift
        return [(x >> shift) - top for x in fields] if shift else [x - top for x in fields]


class BallForms:
    """Rules of the layers, for one network and precision; `fixed` are the forms at the center."""

    def __init__(self, network: Network, q: int, center: Sequence[Fraction], stop: float) -> None:
        self.network, self.q, self.stop = network, q, stop
        self.curves, self.limit = enclosures.Curves(q), 1 << LIMIT_BITS + q
        self.center = center
        self.known: dict[tuple[int, ...], tuple[Matrix, Matrix, Matrix]] = {}
        self.fixed: list[Form] = []
        self.round, self.slopes, self.s = False, 0, 1
        held = self.held = self.fixed
        for x in network.constants:
            scale = network.owner[0].scale
            held.append(Form(rounded(x << q, scale), (), int((x << q) % scale != 0), 0))
        numbers = [number * (1 << q) for number in center]
        for number in numbers:
            held.append(self.form(rounded(*number.as_integer_ratio()), (), int(number.denominator != 1)))
        for layer in network.layers[1:]:
            held.extend(self.rule(layer, range(layer.size)))

    # ---- a case

    def beaten(
        self, label: int, rivals: Sequence[int], free: Sequence[int], halves: Sequence[Fraction], norm: str
    ) -> list[bool]:
        """For each rival whether it beats the label at no point of the ball."""
        network, m = self.network, len(free)
        self.round, self.slopes = norm == "l2", m
        self.s = self.reach([1] * m)
        self.held = list(self.fixed)
        moves = bytearray(len(network.owner))
        for j, (i, half) in enumerate(zip(free, halves, strict=True)):
            element, number = network.inputs.start + i, half * (1 << self.q)
            moves[element] = 1
            g = [0] * m
            g[j] = rounded(*number.as_integer_ratio())
            known = self.fixed[element]
            self.held[element] = self.form(known.f, g, known.e + (number.denominator != 1))
        for layer in network.layers[1:]:
            in_time(self.stop)
            here = self.moving(layer, moves)
            for place, form in zip(here, self.rule(layer, here), strict=True):
                moves[layer.start + place] = 1
                self.held[layer.start + place] = form
        return [self.certain(label, rival) for rival in rivals]

    def moving(self, layer: networks.Layer, moves: bytearray) -> list[int]:
        """The places of a layer whose elements are computed from what moves."""
        if isinstance(layer, networks.Affine):
            lists = [any(moves[i] for i in elements) for elements in layer.lists]
            return [place for place, (at, _) in enumerate(layer.pairs) if lists[at]]
        if isinstance(layer, networks.Maximum):
            windows = [layer.sources[window.start : window.stop] for window in layer.windows]
            return [place for place, window in enumerate(windows) if any(moves[i] for i in window)]
        if isinstance(layer, networks.Product):
            pairs = zip(layer.firsts, layer.seconds, strict=True)
            return [place for place, (i, j) in enumerate(pairs) if moves[i] or moves[j]]
        return [place for place, i in enumerate(networks.sources_of(layer)) if moves[i]]

    def reach(self, g: Sequence[int]) -> int:
        return root(sum(map(mul, g, g))) if self.round else sum(map(abs, g))

    def form(self, f: int, g: Sequence[int], e: int) -> Form:
        found = Form(f, g, e, self.reach(g))
        require(abs(f) + found.spread < self.limit, f"a number of 2**{LIMIT_BITS} or more at precision {self.q}")
        return found

    def rule(self, layer: networks.Layer, here: Sequence[int]) -> list[Form]:
        """Of the elements of a layer in these places."""
        if isinstance(layer, networks.Affine):
            return self.affine(layer, here)
        if isinstance(layer, networks.Rectifier):
            return [self.rectified(layer, self.held[layer.sources[place]]) for place in here]
        if isinstance(layer, networks.Maximum):
            windows = [layer.windows[place] for place in here]
            return [self.greatest([self.held[layer.sources[at]] for at in window]) for window in windows]
        if isinstance(layer, networks.Product):
            return [self.product(layer.firsts[place], layer.seconds[place]) for place in here]
        if isinstance(layer, networks.Curve):
            return self.curved(layer, [self.held[layer.sources[place]] for place in here])
        raise onnx_file.Refused("a layer of which nothing is known")

    # ---- affine layers

    def matrices(self, rows: list[list[int]], scale: int) -> tuple[Matrix, Matrix, Matrix]:
        """Of these weights, of their magnitudes, and of the multiples of 2**-q next to them."""
        key = tuple(map(id, rows))
        if key not in self.known:
            coarse = [[((w << self.q + 1) + scale) // (2 * scale) for w in row] for row in rows]
            self.known[key] = Matrix(rows), Matrix([list(map(abs, row)) for row in rows]), Matrix(coarse)
        return self.known[key]

    def affine(self, layer: networks.Affine, here: Sequence[int]) -> list[Form]:
        q, scale = self.q, lcm(layer.size_scale, layer.bias_scale)
        factor, finer = scale // layer.size_scale, scale // layer.bias_scale
        by_list: dict[int, list[int]] = {}
        for place in here:
            by_list.setdefault(layer.pairs[place][0], []).append(place)
        found: dict[int, Form] = {}
        for at, places in by_list.items():
            read = [self.held[i] for i in layer.lists[at]]
            weights = [layer.weights[layer.pairs[place][1]] for place in places]
            exact, sizes, coarse = self.matrices(weights, layer.size_scale)
            lost = ceiling(sum([each.reach for each in read]), 2 << q) + self.s
            numbers = exact.times([each.f for each in read])
            errors = sizes.times([each.e for each in read])
            slopes = self.sums(coarse, [k for k, each in enumerate(read) if each.g], read)
            for place, number, error, g in zip(places, numbers, errors, slopes, strict=True):
                f = rounded(number * factor + (layer.biases[place] * finer << q), scale)
                found[place] = self.form(f, g, ceiling(error, layer.size_scale) + lost)
        return [found[place] for place in here]

    def sums(self, coarse: Matrix, moving: list[int], read: list[Form]) -> Iterable[Sequence[int]]:
        """Of each row round(2**-q sum of v_k g_k)."""
        q, half = self.q, 1 << self.q - 1
        columns = zip(*[read[k].g for k in moving], strict=True)
        if not moving:
            return [()] * len(coarse.rows)
        if len(coarse.rows) >= PACKED:
            return zip(*[coarse.times(column, moving, q) for column in columns], strict=True)
        rows = [[row[k] for k in moving] for row in coarse.rows]
        if rows == [[1 << q] * len(moving)]:
            return [list(map(sum, columns))]
        every = list(columns)
        return [[sum(map(mul, row, column)) + half >> q for column in every] for row in rows]

    # ---- other layers

    def along(self, x: Form, a: int, below: int) -> Sequence[int]:
        """round(a g_j / below)."""
        if below == 1 << self.q:
            q, half = self.q, below >> 1
            return [a * each + half >> q for each in x.g]
        twice, double = 2 * a, 2 * below
        return [(twice * each + below) // double for each in x.g]

    def rectified(self, layer: networks.Rectifier, x: Form) -> Form:
        low, high, p, q = x.f - x.spread, x.f + x.spread, layer.p, layer.q
        if low >= 0:
            return x
        above, below, over = p, q, 0
        if high > 0:
            line = Fraction(((high * q - p * low) << self.q) // (q * (high - low)), 1 << self.q)
            above, below = max(Fraction(p, q), line).as_integer_ratio()
            a = Fraction(above, below)
            off = max((Fraction(p, q) - a) * low, (1 - a) * high)
            over = ceiling(*off.as_integer_ratio())
        e = ceiling(above * x.e, below) + over - over // 2 + self.s
        return self.form(rounded(above * x.f, below) + over // 2, self.along(x, above, below), e)

    def greatest(self, window: list[Form]) -> Form:
        best = max(range(len(window)), key=lambda at: (window[at].f, -at))
        top, over = window[best], 0
        for at, x in enumerate(window):
            if at != best:
                over = max(over, x.f - top.f + self.reach(self.apart(x.g, top.g)) + x.e + top.e)
        return self.form(top.f + over // 2, top.g, top.e + over - over // 2)

    def apart(self, one: Sequence[int], other: Sequence[int]) -> Sequence[int]:
        return list(map(sub, one, other)) if one and other else one or other

    def product(self, first: int, second: int) -> Form:
        q, x, y = self.q, self.held[first], self.held[second]
        (f, g, e, r), (h, k, d, t) = x, y
        middle, both = 2 * f * h, 2 * r * t
        if first == second:
            both //= 2
            middle += both
        left = 2 * ((abs(f) + r + e) * d + (abs(h) + t) * e) + both
        half = 1 << q - 1
        if g and k:
            slopes = [(f * b + h * a + half) >> q for a, b in zip(g, k, strict=True)]
        else:
            slopes = [(f * b + half) >> q for b in k] if k else [(h * a + half) >> q for a in g]
        return self.form(rounded(middle, 2 << q), slopes, ceiling(left, 2 << q) + self.s)

    def floors(self, function: int, numbers: list[int]) -> list[int]:
        if function == RECIPROCAL:
            return [(1 << 2 * self.q) // x for x in numbers]
        if function == SQRT:
            return [isqrt(x << self.q) for x in numbers]
        return self.curves.floors(function, numbers)

    def slope(self, function: int, x: int, z: int) -> int:
        """D(x), z being F(x)."""
        q = self.q
        if function == EXP:
            return z
        if function == TANH:
            return (1 << q) - (z * z >> q)
        if function == SIGMOID:
            return z * ((1 << q) - z) >> q
        if function == ERF:
            return ERF_SLOPE * self.curves.floors(EXP, [-(x * x >> q)])[0] >> 256
        if function == RECIPROCAL:
            return -((1 << 3 * q) // (x * x))
        return isqrt((1 << 3 * q - 2) // x)

    def curved(self, layer: networks.Curve, read: list[Form]) -> list[Form]:
        q, function = self.q, layer.function
        ends = [x.f for x in read], [x.f - x.spread for x in read], [x.f + x.spread for x in read]
        if not read:
            return []
        if function in (RECIPROCAL, SQRT):
            require(min(ends[1]) > 0, f"1/x or a root where x may be 0, at precision {q}")
        require(function != EXP or max(ends[2]) <= MOST_EXP << q, f"exp of more than {MOST_EXP} at precision {q}")
        values = [self.floors(function, each) for each in ends]
        found = []
        for x, low, high, y, at_low, at_high in zip(read, *ends[1:], *values, strict=True):
            v = x.spread
            if function in (TANH, SIGMOID, ERF) and low < 0 < high:
                most = {TANH: 1 << q, SIGMOID: 1 << q - 2, ERF: self.slope(ERF, 0, 0) + NEAR}[function]
                least = min(self.slope(function, low, at_low), self.slope(function, high, at_high)) - NEAR
                a, middle = (least + most) // 2, y
                reach = ceiling((most - a) * v, 1 << q) + 1
            else:
                a = self.slope(function, x.f, y)
                away, far = NEAR * v, a * v  # over 2**q, as what follows
                off = ((at_low - y) << q) + far, ((at_high - y) << q) - far
                if function in (EXP, RECIPROCAL) or (function != SQRT and high <= 0):
                    b, t = -away >> q, ceiling(max(*off, 0), 1 << q) + 1
                else:
                    b, t = (min(*off, 0) >> q) - 1, ceiling(away, 1 << q)
                n = t + 1 - b
                middle, reach = y + b + n // 2, n - n // 2
            least, most = (at_high, at_low) if function == RECIPROCAL else (at_low, at_high)
            n = most + 1 - least
            if n - n // 2 <= reach:
                found.append(self.form(least + n // 2, (), n - n // 2))
            else:
                e = ceiling(abs(a) * x.e, 1 << q) + reach + self.s
                found.append(self.form(middle, self.along(x, a, 1 << q), e))
        return found

    # ---- the margin

    def certain(self, label: int, rival: int) -> bool:
        """Whether the rival beats the label nowhere, by the forms that are held."""
        network, constant = self.network, Fraction(0)
        function = {network.logits[label]: Fraction(1)}
        function[network.logits[rival]] = function.get(network.logits[rival], Fraction(0)) - 1

        def define(i: int, c: Fraction) -> Iterable[tuple[int, Fraction]] | None:
            nonlocal constant
            layer = network.owner[i]
            if not isinstance(layer, networks.Affine):
                return None
            at, of = layer.pairs[i - layer.start]
            constant += c * Fraction(layer.biases[i - layer.start], layer.bias_scale)
            factor = c / layer.size_scale
            return [(j, factor * w) for j, w in zip(layer.lists[at], layer.weights[of], strict=True)]

        found = networks.substitute(function, define)
        constant *= 1 << self.q
        scale = lcm(constant.denominator, *[c.denominator for c in found.values()])
        middle, error, slopes = int(constant * scale), 0, [0] * self.slopes
        for i, c in found.items():
            x, k = self.held[i], int(c * scale)
            middle, error = middle + k * x.f, error + abs(k) * x.e
            if x.g:
                slopes = list(map(add, slopes, [k * each for each in x.g]))
        least = middle - self.reach(slopes) - error
        return least > 0 or (least == 0 and label < rival)
