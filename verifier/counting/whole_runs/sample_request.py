"""How many samples a user asks for: a number, one that follows from epsilon and delta, or as many as a width needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from swapproof.encodings.errors import BadInput
from swapproof.models.errors import visible

from ..binomial import check, samples_needed

EPSILON, DELTA = "0.025", "0.005"
LEAST = Fraction(1, 10**100)
"""Of epsilon, delta and a width: intervals of smaller ones take minutes, and nobody's samples need them."""
LONGEST, DIGITS = 100, 3
"""Characters of such a number, and digits of its exponent."""
MOST_SAMPLES = 10_000_000
"""Of one text, when a width says when to stop: enough for 0.002 whatever the robust fraction."""


@dataclass(frozen=True)
class Sampling:
    """So many samples of each text, fixed beforehand; with `width`, until its interval is no wider, at most so many."""

    samples: int
    delta: Fraction
    width: Fraction | None = None

    @classmethod
    def of(cls, samples: int | None, epsilon: str, delta: str, width: str | None = None) -> Sampling:
        wanted, risk = share("epsilon", epsilon), share("delta", delta)
        check(wanted, risk)
        if samples is not None and samples < 1:
            raise BadInput(f"samples = {samples}: at least 1")
        if width is None:
            return cls(samples_needed(wanted, risk) if samples is None else samples, risk)
        narrow = share("width", width)
        if not 0 < narrow < 1:
            raise BadInput(f"width = {width}: between 0 and 1")
        if epsilon != EPSILON:
            raise BadInput(f"epsilon = {epsilon} fixes how many samples, a width does not: choose one")
        return cls(MOST_SAMPLES if samples is None else samples, risk, narrow)


def share(name: str, value: str) -> Fraction:
    """A number that is written in full, or in digits with an exponent that does not need thousands of them."""
    exponent = re.search(r"[eE][+-]?0*([0-9]*)$", value.strip())
    if len(value) > LONGEST or (exponent and len(exponent[1]) > DIGITS):
        raise BadInput(f"{name} = {visible(value[:20])}...: a number such as 0.005 or 1/200, at least {float(LEAST):g}")
    try:
        found = Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise BadInput(f"{name} = {value!r}: a number such as 0.005 or 1/200") from None
    if 0 < found < LEAST:
        raise BadInput(f"{name} = {visible(value)}: at least {float(LEAST):g} is needed")
    return found
