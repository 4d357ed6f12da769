"""Numbers of hundreds of bits in a file that holds floats."""

from __future__ import annotations

from fractions import Fraction


def products(number: Fraction, bits: int) -> tuple[list[Fraction], list[Fraction]]:
    """Numbers of so many bits times powers of two, each about as large as the other, whose sum is this number."""
    digits, factors = [Fraction(0)], [Fraction(0)]
    denominator = number.denominator
    assert denominator & (denominator - 1) == 0
    rest, exponent = abs(number.numerator), 1 - denominator.bit_length()
    while rest:
        digits.append(Fraction(rest % 2**bits * (1 if number > 0 else -1)) * Fraction(2) ** (exponent // 2))
        factors.append(Fraction(2) ** (exponent - exponent // 2))
        rest, exponent = rest >> bits, exponent + bits
    return digits, factors
