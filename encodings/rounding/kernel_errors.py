"""How far a runtime's elementary functions may be from the real ones: the bounds that claims of level `kernel` state.

For every float32 x of its domain, a kernel k of the function f is taken to satisfy

    |k(x) - f(x)| <= relative |f(x)| + absolute

and nothing else: not monotone, not within the range of f (onnxruntime's tanh exceeds 1), not odd.
`swapproof doctor --kernels` measures whether the installed onnxruntime does.

A softmax is no function of its own. It is exp of rounded differences from the greatest score, their sum in any order,
and a division.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class KernelError:
    """Both parts of the bound, for float32 inputs from `low` to `high` and of at least `least` in size."""

    absolute: Fraction
    relative: Fraction
    reason: str
    low: float = float("-inf")
    high: float = float("inf")
    least: float = 0.0


FLUSHED = Fraction(1, 2**126)
"""A result smaller than this may be flushed to zero."""
ROUNDED = Fraction(1, 2**24)
"""Half a unit in the last place of float32, relative to the result: what IEEE 754 asks of a correctly rounded one."""
SATURATING = "a rational or polynomial approximation, clamped: its error does not shrink with the result"

KERNEL_ERRORS: Mapping[str, KernelError] = {
    "tanh": KernelError(Fraction(1, 2**21), Fraction(0), f"{SATURATING}; 2^-21.55 was met, so there is room of 1.4"),
    "sigmoid": KernelError(Fraction(1, 2**21), Fraction(0), f"{SATURATING}, and is exactly 0 far below; 2^-22.4 met"),
    "erf": KernelError(Fraction(1, 2**21), Fraction(0), f"{SATURATING}; 2^-24 was met"),
    "exp": KernelError(
        FLUSHED,
        Fraction(1, 2**22),
        "a polynomial scaled by a power of two: below one unit in the last place, which is 2^-23 of the result; "
        "results below the normal floats lose digits or are zero; above 88.72 they are infinite",
        high=88.72283172607422,
    ),
    "sqrt": KernelError(
        Fraction(1, 2**63), ROUNDED, "correctly rounded; an input below 2^-126 may be taken for 0", 0.0
    ),
    "reciprocal": KernelError(
        FLUSHED, ROUNDED, "correctly rounded; an input below 2^-126 may be taken for 0", least=2.0**-126
    ),
    "division": KernelError(FLUSHED, ROUNDED, "correctly rounded where the quotient is finite", least=2.0**-126),
}
"""Function -> its bound; `least` of a division is about the divisor."""


def softmax_error(width: int, spread: Fraction) -> Fraction:
    """|k - p| <= t / (1 - t) p, for each share p of at least 2^-126, with t = (2 (r / u + spread) + width) u < 1,

    r the relative error of exp and u that of one rounding. Of numerator and denominator alike, a difference of at most
    `spread` is rounded once, and exp is taken of it; the denominator adds up `width` of them, and one division follows.
    """
    t = 2 * (KERNEL_ERRORS["exp"].relative + spread * ROUNDED) + width * ROUNDED
    if t >= 1:
        raise ValueError(f"scores that differ by {float(spread):g}, {width} of them: their shares have no bound")
    return t / (1 - t)
