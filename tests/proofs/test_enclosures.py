"""Floors of exp, tanh, sigmoid and erf are those of mpmath, to the last unit; and what the docstrings say of errors."""

from __future__ import annotations

import random

import mpmath
import pytest
from smooth_values import EXACT

from swapproof.proofs import enclosures
from swapproof.proofs.check import Refused

NAMES = {enclosures.EXP: "exp", enclosures.TANH: "tanh", enclosures.SIGMOID: "sigmoid", enclosures.ERF: "erf"}
POINTS = 10_000
PRECISIONS = [16, 24, 32, 48, 64]


def true_floor(function: int, x: int, q: int) -> int:
    """By mpmath with as many bits as saturation needs, and by hand where it is beyond any: erf(x) is nearer to 1 than
    2^-q where x^2 > q, for 1 - erf(x) < exp(-x^2)."""
    far = (abs(x) >> q) ** 2 > q if function == enclosures.ERF else abs(x) >> q > 3 * q
    if far and (x < 0 or function != enclosures.EXP):
        whole = 1 << q
        if x > 0:
            return whole - 1
        return -whole if function in (enclosures.TANH, enclosures.ERF) else 0
    with mpmath.workprec(200 + 8 * q + (2 * (abs(x) >> q) ** 2 if function == enclosures.ERF else 0)):
        return int(mpmath.floor(mpmath.ldexp(EXACT[function](mpmath.ldexp(x, -q)), q)))


def points(function: int, q: int, count: int) -> list[int]:
    """Of every size, dense around 0 and where functions bend, and huge; and borders."""
    rng = random.Random(q)
    found = [rng.choice((1, -1)) * int(2 ** rng.uniform(0, q + 5.5)) for _ in range(count // 2)]
    found += [rng.randrange(-4 << q, 4 << q) for _ in range(count - len(found))]
    borders = [n << q for n in range(-3, 4)] + [1 << q - 8, 1 << q - 16, int(q * 0.6931471805599453 * 2**q), q << q]
    found += [sign * border + d for border in borders for sign in (1, -1) for d in (-1, 0, 1)]
    found += [sign << q + n for n in (7, 12, 40, 100) for sign in (1, -1)]
    return [x for x in found if function != enclosures.EXP or x <= 28 << q]


@pytest.mark.parametrize("q", PRECISIONS)
@pytest.mark.parametrize("function", list(NAMES), ids=list(NAMES.values()))
def test_floors_are_those_of_mpmath(function: int, q: int) -> None:
    """Erf, computed one by one in both, at fewer points."""
    given = points(function, q, POINTS // 60 if function == enclosures.ERF else POINTS)
    negative = [x for x in given if x <= 0]
    curves = enclosures.Curves(q)
    expected = {x: true_floor(function, x, q) for x in given}
    assert curves.floors(function, given) == [expected[x] for x in given]
    assert curves.floors(function, negative) == [expected[x] for x in negative]
    some = random.Random(0).sample(given, 200)
    assert [enclosures.floor_of(function, x, q) for x in some] == [expected[x] for x in some]


@pytest.mark.parametrize("q", PRECISIONS)
def test_errors_are_what_the_docstrings_say(q: int) -> None:
    rng = random.Random(q)
    curves = enclosures.Curves(q)
    numbers = [int(2 ** rng.uniform(0, q + 4)) for _ in range(2000)]
    with mpmath.workprec(600):
        for x, found in zip(numbers, curves.decays(numbers), strict=True):
            truth = mpmath.exp(-mpmath.ldexp(x, -q))
            assert abs(found - mpmath.ldexp(truth, curves.bits)) < 13
            assert abs(enclosures.decay(x, q, curves.bits) - mpmath.ldexp(truth, curves.bits)) < 2
        for bits in (10, 64, 300):
            assert abs(enclosures.pi(bits) - mpmath.ldexp(mpmath.pi(), bits)) < 2
        for x in numbers[:300]:
            for function in NAMES:
                if function == enclosures.EXP or x >> q < q:
                    for sign in (1, -1) if function == enclosures.EXP else (1,):
                        truth = mpmath.ldexp(EXACT[function](mpmath.ldexp(sign * x, -q)), q + 20)
                        found = enclosures.approximate(function, sign * x, q, q + 20)
                        assert abs(found - truth) < enclosures.FAR


@pytest.mark.parametrize("q", [16, 24, 32, enclosures.MOST_CELLED])
@pytest.mark.parametrize("function", [enclosures.TANH, enclosures.SIGMOID])
def test_cells_err_by_no_more_than_they_say(function: int, q: int) -> None:
    """At the ends and the middle of cells, around 0, where functions bend most, and where they are all but constant."""
    curves, rng = enclosures.Curves(q), random.Random(q)
    cells = curves.cells[function]
    unit, given = 1 << cells.width, list[int]()
    for n in [*range(-600, 600, 7), -1, 0, 1, *[rng.randrange(-40 << 9, 40 << 9) for _ in range(100)]]:
        for d in (0, 1, unit // 2, rng.randrange(unit), unit - 1):
            x, (a, b, c, e) = n * unit + d, cells[n]
            given.append(x)
            with mpmath.workprec(600):
                truth = mpmath.ldexp(EXACT[function](mpmath.ldexp(x, -q)), q + cells.shift)
                if (b, c, e) != (0, 0, 0):
                    assert 0 <= truth - (a + d * (b + d * (c + d * e))) <= cells.slack
    floors = curves.floors(function, given)
    assert floors == [enclosures.floor_of(function, x, q) for x in given]
    assert floors == curves.by_decays(function, given)
    assert (0, 0, 0) in [cells[x >> cells.width][1:] for x in given]


def test_no_certainty_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """More and more bits are tried, and then no floor is given."""
    monkeypatch.setattr(enclosures, "approximate", lambda function, x, q, bits: 5 << bits - q)
    with pytest.raises(Refused, match="too near"):
        enclosures.floor_of(enclosures.TANH, 100, 24)
