"""What a share in a sample says of the share in the whole: Hoeffding and Clopper-Pearson, in exact arithmetic.

With x successes among N independent draws of probability p, at confidence 1 - delta:

    Hoeffding         |x/N - p| < eps when N > ln(2/delta) / (2 eps^2)
    Clopper-Pearson   p >= the greatest a with P(X >= x | a) <= delta/2, and the mirror image above

The ends of Clopper-Pearson are rounded outwards to multiples of 2^-20 and verified with integers: no float is believed.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_UP, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from swapproof.encodings.errors import BadInput

GRID_BITS = 20
GRID = 1 << GRID_BITS
PRECISION = 40
"""Decimal digits of logarithms and roots, which are rounded to the safe side."""


def samples_needed(epsilon: Fraction, delta: Fraction) -> int:
    """The least N > ln(2/delta) / (2 epsilon^2): with epsilon 0.025 and delta 0.005, 4794."""
    check(epsilon, delta)
    with localcontext() as context:
        context.prec, context.rounding = PRECISION, ROUND_UP
        ratio = Decimal((2 / delta).numerator) / Decimal((2 / delta).denominator)
        square = 2 * epsilon * epsilon
        bound = ratio.ln() * square.denominator / square.numerator
        return int(bound.to_integral_value(ROUND_FLOOR)) + 1


def hoeffding(successes: int, samples: int, delta: Fraction) -> tuple[Fraction, Fraction]:
    """The interval around the share that Hoeffding's inequality allows, cut to [0, 1]."""
    share, reach = Fraction(successes, samples), hoeffding_reach(Fraction(1, samples), delta)
    return max(Fraction(0), share - reach), min(Fraction(1), share + reach)


def hoeffding_reach(squares: Fraction, delta: Fraction) -> Fraction:
    """sqrt(ln(2 / delta) / 2 * squares), rounded up.

    A sum of independent draws is as far from its mean or further with probability at most delta, if the squares of
    the draws' ranges add up to `squares`.
    """
    with localcontext() as context:
        context.prec, context.rounding = PRECISION, ROUND_UP
        ratio = Decimal((2 / delta).numerator) / Decimal((2 / delta).denominator)
        square = ratio.ln() * squares.numerator / (2 * squares.denominator)
        return Fraction(square.sqrt()) + Fraction(1, 10**30)


@lru_cache(maxsize=1 << 14)
def clopper_pearson(successes: int, samples: int, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Low and high ends, each wrong with probability at most delta / 2."""
    return one_sided(successes, samples, delta), 1 - one_sided(samples - successes, samples, delta)


@lru_cache(maxsize=1 << 14)
def one_sided(successes: int, samples: int, delta: Fraction) -> Fraction:
    """A multiple of 2^-20, as great as can be (or one step less), with P(X >= successes) <= delta / 2."""
    if not 0 <= successes <= samples or samples < 1:
        raise BadInput(f"{successes} successes among {samples} samples")
    if successes == 0:
        return Fraction(0)
    low, high = 0, GRID
    while high - low > 1:  # in floats: a guess
        middle = (low + high) // 2
        low, high = (middle, high) if float_tail(successes, samples, middle / GRID) <= delta / 2 else (low, middle)
    while low > 0 and not small_tail(successes, samples, low, delta):
        low -= 1
    return Fraction(low, GRID)


def small_tail(successes: int, samples: int, step: int, delta: Fraction) -> bool:
    """Whether P(X >= successes) <= delta / 2 at p = step / 2^20, by integers."""
    other = GRID - step
    # The terms C(N, i) a^i b^(N - i) of the tail, times 2^(20 N); the last is a^N.
    term: int = math.comb(samples, successes) * step**successes * other ** (samples - successes)
    limit: int = ((delta.numerator << (GRID_BITS * samples)) // (2 * delta.denominator)) - term
    for i in range(successes, samples):
        if limit < 0:
            return False
        term = term * (samples - i) * step // ((i + 1) * other)
        # Later terms shrink at least by this factor each: their sum is at most term / (1 - factor).
        up, down = (samples - i - 1) * step, (i + 2) * other
        if up < down and term * down <= limit * (down - up):
            return True
        limit -= term
    return limit >= 0


def float_tail(successes: int, samples: int, p: float) -> float:
    """P(X >= successes), roughly."""
    if p <= 0.0:
        return 0.0
    if p >= 1.0:
        return 1.0
    counts = np.arange(successes, samples + 1)
    logarithms = log_binomials(samples)[counts] + counts * math.log(p) + (samples - counts) * math.log1p(-p)
    return float(np.exp(logarithms).sum())


@lru_cache(maxsize=8)
def log_binomials(samples: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """ln C(samples, i) for i = 0 .. samples."""
    steps = np.log(np.arange(1, samples + 1, dtype=np.float64))
    factorials = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def check(epsilon: Fraction, delta: Fraction) -> None:
    if not 0 < epsilon < 1:
        raise BadInput(f"epsilon = {float(epsilon):g}: between 0 and 1")
    if not 0 < delta < 1:
        raise BadInput(f"delta = {float(delta):g}: between 0 and 1")


def outwards(low: Fraction, high: Fraction, digits: int = 12) -> tuple[float, float]:
    """Two decimal fractions around an interval, for people and JSON."""
    with localcontext() as context:
        context.prec = PRECISION
        unit = Decimal(1).scaleb(-digits)
        ends = [
            (Decimal(end.numerator) / Decimal(end.denominator)).quantize(unit, rounding)
            for end, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
        ]
    return float(max(ends[0], Decimal(0))), float(min(ends[1], Decimal(1)))


__all__ = ["clopper_pearson", "hoeffding", "outwards", "samples_needed"]
