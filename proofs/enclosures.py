"""Floors of exp, tanh, sigmoid and erf, certain to the last unit, in integers (FORMAT.md, section 15.1).

    floor_of(function, x, q)               floor(2**q f(x 2**-q)), for one number
    Curves(q).floors(function, numbers)    the same for many

This file is trusted, as check.py is. Standard library only, exact integers only. Every function says by how much it can
be wrong, and why; what they give together does not depend on that: a floor is given when it is certain, and refused if
more bits never make it so. Where a number is not exact its ceiling is its floor and one more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from math import isqrt
from operator import rshift
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from . import onnx_file
else:
    onnx_file = sys.modules["onnx_file"]

Refused = onnx_file.Refused

EXP, TANH, SIGMOID, ERF, RECIPROCAL, SQRT = range(1, 7)
"""The functions of curves (FORMAT section 4.3)."""
LIMIT_BITS = 40
"""Numbers of 2**LIMIT_BITS or more are refused by those who ask."""
GUARD, MOST_GUARD = 20, 1 << 12
"""Bits beyond the precision with which functions are computed at first, and at most."""
FAR = 16
"""What `approximate` gives is less than this from the true number, in its units."""


def decay(x: int, q: int, bits: int) -> int:
    """Less than 2 from 2**bits exp(-x 2**-q), for x >= 0 and bits >= q.

    y = x 2**-q 2**-k < 2**-8 has exp(-y) = 1 - y + y**2 / 2 - ..., where terms fall and signs alternate: a sum is less
    than the first term left out from the truth. In units of 2**-w, w = bits + k + 16, a term is rounded by less than 1
    and has less than 2**-8 of the error of the one before it. There are at most w / 8 + 2 < 2**13 terms, so the sum is
    less than 2**14 from the truth. Where z, at most 1, has an error d, the square of z, rounded, has at most 2 d + 2.
    After k squares that is at most 2**k (2**14 + 2), in units of 2**-bits less than 1/2; rounding adds less than 1.
    Where x 2**-q > bits the truth is below 2**-bits.
    """
    if x >> q > bits:
        return 0
    k = max(0, x.bit_length() - q + 8)
    w, n = bits + k + 16, 0
    term = total = 1 << w
    while term:
        n += 1
        term = term * x // (n << q + k)
        total += -term if n & 1 else term
    for _ in range(k):
        total = total * total >> w
    return total >> k + 16


@lru_cache(64)
def pi(bits: int) -> int:
    """Less than 2 from 2**bits pi: 16 arctan(1/5) - 4 arctan(1/239), by series whose terms fall and alternate.

    Each of the fewer than 2**12 terms is less than 2 from the truth in units of 2**-(bits + 20); and 20 2**13 < 2**20.
    """
    total = 0
    for factor, n in ((16, 5), (-4, 239)):
        power, k = (1 << bits + 20) // n, 0
        while power:
            term = power // (2 * k + 1)
            total += factor * (-term if k & 1 else term)
            power, k = power // (n * n), k + 1
    return total >> 20


def error_function(x: int, q: int, bits: int) -> int:
    """Less than 4 from 2**bits erf(x 2**-q), for x > 0.

    With z = x 2**-q, erf(z) is 2 / sqrt(pi) exp(-z**2) times the sum of t_n, t_0 = z, t_n = t_(n-1) 2 z**2 / (2 n + 1).
    In units of 2**-w each t_n is rounded once, and what is lost then comes back at most exp(z**2) times in the terms
    after it, since 2 z**2 / (2 n + 1) < z**2 / n. The sum stops where a term is 0 and the next would be less than half
    of it if it were not; so it has less than (N + 2) exp(z**2) lost, of N < 2**12 terms. It is itself less than
    exp(z**2). Times exp(-z**2), which has an error below 2, that is below N + 2 + 2 exp(z**2), and below 2**-18 in
    units of 2**-bits, for w = bits + extra + 32, 2**extra >= exp(z**2). The factor and the last rounding add below 3.
    """
    square = x * x
    w, n = bits + (3 * square >> 2 * q + 1) + 33, 0
    term, total = x << w - q, 0
    while term or 4 * square > 2 * n + 3 << 2 * q:
        total += term
        n += 1
        term = 2 * term * square // (2 * n + 1 << 2 * q)
    factor = isqrt((4 << 3 * w) // pi(w))
    return (decay(square, 2 * q, max(w, 2 * q)) * total >> max(w, 2 * q)) * factor >> 2 * w - bits


def approximate(function: int, x: int, q: int, bits: int) -> int:
    """Less than FAR from 2**bits f(x 2**-q), for x > 0, and for exp also x < 0.

    With e less than 2 from exp(-x): 1 / (1 + e) is less than 2 from the truth before it is rounded, tanh(x) is
    2 / (1 + exp(-2 x)) - 1, and 1 / e is where exp(x) < 2**k, and e has 2 k bits more, less than 3 from it.
    """
    if function == ERF:
        return error_function(x, q, bits)
    if function == EXP:
        if x < 0:
            return decay(-x, q, bits)
        more = 2 * ((3 * x >> q + 1) + 1)
        return (1 << 2 * bits + more) // decay(x, q, bits + more)
    opened = (1 << 2 * bits) // ((1 << bits) + decay(x << (function == TANH), q, bits))
    return 2 * opened - (1 << bits) if function == TANH else opened


def floor_of(function: int, x: int, q: int) -> int:
    """floor(2**q f(x 2**-q)) for exp, tanh, sigmoid, erf.

    At x = 0 the number is exact. Elsewhere it is irrational, so that more and more bits (Ziv) tell the floor at last,
    and the ceiling is one more. It lies between 0 and, but for exp, 2**q, where x > 0; tanh and erf are odd, and
    sigmoid(-x) = 1 - sigmoid(x). Where |x| >= q the distance to 0 or 1 is below 2**-q.
    """
    if x == 0:
        return {EXP: 2, SIGMOID: 1}.get(function, 0) << q - 1
    if x < 0 and function != EXP:
        return ((function == SIGMOID) << q) - 1 - floor_of(function, -x, q)
    most = 1 << 2 * LIMIT_BITS + q if function == EXP else (1 << q) - 1
    if abs(x) >> q >= q and (x < 0 or function != EXP):
        return 0 if x < 0 else most
    guard = GUARD
    while guard <= MOST_GUARD:
        found = approximate(function, x, q, q + guard)
        low, high = max(found - FAR >> guard, 0), min(found + FAR >> guard, most)
        if low == high:
            return low
        guard *= 2
    raise Refused("a function too near to a multiple of the precision")


class Powers(dict[int, int]):
    """Less than 2 from 2**bits exp(-x 2**-shift), as they are asked for."""

    def __init__(self, shift: int, bits: int) -> None:
        self.shift, self.bits = shift, bits

    def __missing__(self, x: int) -> int:
        if x >> self.shift > self.bits:
            return 0
        self[x] = decay(x, self.shift, self.bits)
        return self[x]


CELL_BITS = 8
"""Cells of sigmoid are 2**-CELL_BITS wide, and those of tanh half of that."""
MOST_CELLED = 34
"""The greatest precision at which they tell nearly all floors."""


class Cells(dict[int, tuple[int, int, int, int]]):
    """tanh or sigmoid as polynomials, in cells of the x with one n = x >> w, as they are asked for.

    With d = x - (n << w), 2**(q + shift) f(x 2**-q) is not below a + d (b + d (c + d e)), and above by `slack` at most.

    With z the middle of the cell, t = x 2**-q - z, of magnitude at most h = 2**-9 (tanh: 2**-10), and y, y1, y2, y3
    what f and its derivatives are at z, f is y + y1 t + y2 t**2 / 2 + y3 t**3 / 6, but for h**4 / 24 times the fourth.
    Of sigmoid y1 = y (1 - y) <= 1/4, y2 = y1 (1 - 2 y), y3 = y1 (1 - 6 y1), and the fourth, y2 (1 - 12 y1), is at most
    1/2; tanh(x) is 2 sigmoid(2 x) - 1, so that it is 16 there, and y1 = 1 - y**2, y2 = -2 y y1, y3 = y1 (4 - 6 y1).
    So what the sum lacks is below 2**-41 (2**-40). In units of 2**-(q + shift) y is less than 16 away, y1 less than 34,
    y2 / 2 and y3 / 6 less than 52, hence the sum less than 17. Rounding its coefficients loses less than 2,
    2**(w + 1), 2**(2 w + 1) and 2**(3 w), which is little, shift being 3 w + 12.

    Where x 2**-q >= 3/4 (q + 1) > (q + 1) log 2, half of that for tanh, 1 - f is below 2**-q: floors are 2**q - 1, or,
    where x is as far below 0, the least.
    """

    def __init__(self, function: int, q: int) -> None:
        self.tanh, self.function, self.q = int(function == TANH), function, q
        self.width = q - CELL_BITS - self.tanh
        self.shift = 3 * self.width + 12
        error = (1 << 3 * self.width) + (4 << 2 * self.width) + (1 << q + self.shift >> 41 - self.tanh)
        self.slack = 2 * error

    def __missing__(self, n: int) -> tuple[int, int, int, int]:
        q, bits, w = self.q, self.q + self.shift, self.width
        one, middle, half = 1 << bits, abs(2 * n + 1) << w - 1, 1 << w - 1
        if middle - half << 2 + self.tanh >= 3 * (q + 1) << q:
            floor = (1 << q) - 1 if n >= 0 else -self.tanh << q
            self[n] = (2 * floor + 1) << self.shift - 1, 0, 0, 0
            return self[n]
        y = approximate(self.function, middle, q, bits)
        if self.tanh:
            y = y if n >= 0 else -y
            first = one - (y * y >> bits)
            second, third = -y * first >> bits, first * (2 * one - 3 * first) // (3 << bits)
        else:
            y = y if n >= 0 else one - y
            first = y * (one - y) >> bits
            second, third = first * (one - 2 * y) >> bits + 1, first * (one - 6 * first) // (6 << bits)
        a = y - (first * half >> q) + (second * half**2 >> 2 * q) - (third * half**3 >> 3 * q)
        b = first - (2 * second * half >> q) + (3 * third * half**2 >> 2 * q) >> q
        c = second - (3 * third * half >> q) >> 2 * q
        self[n] = a - self.slack // 2, b, c, third >> 3 * q
        return self[n]


class Curves:
    """The functions at one precision, of many numbers at once."""

    def __init__(self, q: int) -> None:
        self.q, self.bits = q, q + GUARD
        self.cells = {function: Cells(function, q) for function in (TANH, SIGMOID)} if q <= MOST_CELLED else {}
        self.parts = -(-self.bits // 24)
        self.first = Powers(8, self.bits)
        others = range(2, self.parts + 1)
        self.others = [([decay(x, 8 * n, self.bits) for x in range(256)], q - 8 * n) for n in others]

    def decays(self, numbers: Sequence[int]) -> list[int]:
        """Less than 13 from 2**bits exp(-x 2**-q) for each x >= 0.

        x is cut into the bits down to 2**-8, the next eight, and so on, and a rest r below 2**-(8 parts); the powers of
        the at most four parts are less than 2 away each, and so is their product less than 8 and what three roundings
        lose. exp(-r) is 1 - r + r**2 / 2 less at most r**3 / 6 < 2**-bits / 4, and rounding loses less than 1.
        """
        q, bits, first, others = self.q, self.bits, self.first, self.others
        head, rest = q - 8, (1 << q - 8 * self.parts) - 1
        found = [first[x >> head] for x in numbers]
        for table, shift in others:
            found = [e * table[x >> shift & 255] >> bits for e, x in zip(found, numbers, strict=True)]
        parts = zip(found, [x & rest for x in numbers], strict=True)
        return [e - (e * ((r << q + 1) - r * r) >> 2 * q + 1) if r else e for e, r in parts]

    def floors(self, function: int, numbers: Sequence[int]) -> list[int]:
        """floor_of, for each: as the cells tell if they do, else one by one."""
        cells = self.cells.get(function)
        if cells is None:
            return self.by_decays(function, numbers)
        shift, inside = cells.shift, (1 << cells.width) - 1
        parts = zip(numbers, map(cells.__getitem__, map(rshift, numbers, repeat(cells.width))), strict=True)
        least = [a + (d := x & inside) * (b + d * (c + d * e)) for x, (a, b, c, e) in parts]
        found, below = list(map(rshift, least, repeat(shift))), (1 << shift) - 1
        sure = below - cells.slack
        for at in [at for at, y in enumerate(least) if y & below > sure]:
            found[at] = floor_of(function, numbers[at], self.q)
        return found

    def by_decays(self, function: int, numbers: Sequence[int]) -> list[int]:
        """floor_of, for each: as the decays tell if they do, else one by one."""
        q, one, last = self.q, 1 << self.bits, (1 << self.q) - 1
        if function == ERF or (function == EXP and max(numbers) > 0):
            return [floor_of(function, x, q) for x in numbers]
        double, far = (1, 2 * FAR) if function == TANH else (0, FAR)
        sure, top, twice = (1 << GUARD) - 1, (last << GUARD) + far, 2 * far
        sizes = list(map(abs, numbers))
        opened = self.decays([x << 1 for x in sizes] if double else sizes)
        if function != EXP:
            square, less = one << self.bits << double, one if double else 0
            opened = [square // (one + e) - less for e in opened]

        def least(x: int, y: int) -> int:
            """Where the bits that are known do not tell."""
            if x and y >= top:
                return last
            return floor_of(function, abs(x) if function != EXP else x, q)

        found = [
            y + far >> GUARD if y + far & sure >= twice else least(x, y) for x, y in zip(numbers, opened, strict=True)
        ]
        if function == EXP:
            return found
        other = -1 if double else last
        return [y if x >= 0 else other - y for x, y in zip(numbers, found, strict=True)]
