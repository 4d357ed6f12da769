"""What a share says however the number of draws came about: the confidence sequence of a binomial mixture.

Bet against a probability p with stakes spread evenly over all other q. After n draws with x successes the wealth is

    M_n(p) = integral of (q/p)^x ((1-q)/(1-p))^(n-x) dq over [0, 1] = 1 / ((n+1) C(n, x) p^x (1-p)^(n-x))

Under p it is a martingale that begins with 1, so with probability at least 1 - delta it stays below 1/delta for all n
at once (Ville 1939). Hence the true p is, at every n, among those with

    (n+1) C(n, x) p^x (1-p)^(n-x) > delta

(Robbins 1970, Statistical methods related to the law of the iterated logarithm; Lai 1976, On confidence sequences).
Whoever draws may look after every draw and stop when they like. The left side rises with p up to x/n and falls
after it: these p are an interval. Its ends are rounded outwards to multiples of 2^-20. Logarithms in decimals decide
which are excluded, less than SLACK from the truth, and integers where these are too close.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from swapproof.encodings.errors import BadInput

from .binomial import GRID

DIGITS = 60
SLACK = Decimal(1).scaleb(-40)
"""Each logarithm is correctly rounded to 60 digits; with 10^12 draws no sum here exceeds 10^14: 10 spare digits."""
CLOSE = Decimal("1e-11")
"""More than the widths of the three logarithms of factorials and twice SLACK together."""
MOST_DRAWS = 10**12
TWO_PI = Decimal("6.283185307179586476925286766559005768394338798750211641949889")
EXACT = 64
"""Factorials below this are exact; above it Stirling's series is off by less than 10^-12."""


@lru_cache(maxsize=1 << 14)
def anytime(successes: int, samples: int, delta: Fraction) -> tuple[Fraction, Fraction]:
    """An interval that holds the probability for all numbers of samples at once, at confidence 1 - delta."""
    if not 0 <= successes <= samples <= MOST_DRAWS or samples < 1:
        raise BadInput(f"{successes} successes among {samples} samples")
    return excluded_below(successes, samples, delta), 1 - excluded_below(samples - successes, samples, delta)


def excluded_below(successes: int, samples: int, delta: Fraction) -> Fraction:
    """The greatest multiple of 2^-20, at most x/n, that is excluded, and all below it; 0 if none is."""
    if successes == 0:
        return Fraction(0)
    failures, top = samples - successes, successes * GRID // samples
    with localcontext() as context:
        context.prec = DIGITS
        # Excluded are steps with x ln(step) + (n - x) ln(2^20 - step) at most this.
        limit = (Decimal(delta.numerator) / Decimal(delta.denominator)).ln() - SLACK + samples * Decimal(GRID).ln()
        limit -= Decimal(samples + 1).ln() + ln_factorial(samples)[1]
        limit += ln_factorial(successes)[0] + ln_factorial(failures)[0]

        def excluded(step: int) -> bool:
            rest = failures * Decimal(GRID - step).ln() if failures else 0
            over: Decimal = successes * Decimal(step).ln() + rest - limit
            return over <= 0 or (over < CLOSE and excluded_exactly(successes, samples, step, delta))

        step = guess(successes, failures, float(limit), top)
        while step < top and excluded(step + 1):
            step += 1
        while step > 0 and not excluded(step):
            step -= 1
    return Fraction(step, GRID)


def excluded_exactly(successes: int, samples: int, step: int, delta: Fraction) -> bool:
    ways = (samples + 1) * math.comb(samples, successes)
    chance = ways * step**successes * (GRID - step) ** (samples - successes)
    return bool(chance * delta.denominator <= delta.numerator * GRID**samples)


def guess(successes: int, failures: int, limit: float, top: int) -> int:
    """The same by bisection in floats: near it, and never believed."""
    low, high = 0, top + 1
    while high - low > 1:
        step = (low + high) // 2
        found = successes * math.log(step) + (failures * math.log(GRID - step) if failures else 0.0)
        low, high = (step, high) if found <= limit else (low, step)
    return low


def ln_factorial(n: int) -> tuple[Decimal, Decimal]:
    """Below and above ln n!: Stirling's series lies alternately on either side (Whittaker and Watson, 12.33)."""
    if n < EXACT:
        exact = Decimal(math.factorial(n)).ln()
        return exact, exact
    low = (n + Decimal("0.5")) * Decimal(n).ln() - n + TWO_PI.ln() / 2
    low += 1 / Decimal(12 * n) - 1 / Decimal(360 * n**3)
    return low, low + 1 / Decimal(1260 * n**5)
