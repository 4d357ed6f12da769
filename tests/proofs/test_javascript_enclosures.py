"""check.js, section 15.1: curves are floor and ceiling of the true value, against mpmath."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from cases import drawn_seed
from javascript_networks import CHECKER, SECONDS

# Answers lines of a function, x and q with floor and ceiling, or "none".
DRIVER = r"""
const { EXACT_CURVES } = require(process.argv[1]).swapproofChecker().inside;
for (const [number, x, q] of JSON.parse(require("node:fs").readFileSync(0, "utf8"))) {
  try {
    console.log(EXACT_CURVES[number](BigInt(x), BigInt(q)).join(" "));
  } catch {
    console.log("none");
  }
}
"""
CURVES: dict[int, Callable[[Any], Any]] = {
    1: mpmath.exp,
    2: mpmath.tanh,
    3: lambda x: 1 / (1 + mpmath.exp(-x)),
    4: mpmath.erf,
    5: lambda x: 1 / x,
    6: mpmath.sqrt,
}


def enclosed(asked: list[tuple[int, int, int]]) -> list[str]:
    command = ["node", "-e", DRIVER, str(CHECKER)]
    text = json.dumps([[number, str(x), q] for number, x, q in asked])
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.splitlines()


def expected(number: int, x: int, q: int) -> str:
    """Floor and ceiling of 2^q f(x 2^-q), by 400 digits and more."""
    with mpmath.workdps(400):
        value = CURVES[number](mpmath.mpf(x) / 2**q) * 2**q
        return f"{int(mpmath.floor(value))} {int(mpmath.ceil(value))}"


def drawn(number: int, q: int, source: random.Random) -> int:
    """Near 0, of common size, where the function is flat, or just where it becomes so."""
    one = 1 << q
    sign = source.choice([-1, 1])
    flat = source.uniform(0.6, 0.8) * q
    x = source.choice([
        source.randint(-3, 3), source.randint(-4 * one, 4 * one), source.randint(-28 * one, 28 * one),
        sign * one * source.randint(0, 50), sign * int(flat * one), sign * int(flat**0.5 * one),
        sign * int(flat / 2 * one), source.randint(-300 * one, 300 * one), 28 * one - source.randint(0, 2),
    ])  # fmt: skip
    if number == 1:
        return min(x, 28 * one)
    if number == 5:
        return x or 1
    if number == 4:  # beyond it the reference does not have the digits
        return max(-28 * one, min(x, 28 * one))
    return abs(x) if number == 6 else x


@pytest.mark.parametrize("number", CURVES)
def test_curves_are_floor_and_ceiling_of_the_true_value(number: int) -> None:
    source = random.Random(drawn_seed())
    asked = []
    for _ in range(400):
        q = source.choice([16, 17, 32, 33, 63, 64, 256])
        asked.append((number, drawn(number, q, source), q))
    for case, answer in zip(asked, enclosed(asked), strict=True):
        assert answer == expected(*case), case


def test_exp_of_more_than_28_has_no_enclosure() -> None:
    """Of less than 28 it may be above 2^40, which is refused where it is an element."""
    assert enclosed([(1, (28 << 32) + 1, 32), (1, 1 << 90, 64)]) == ["none", "none"]
    assert enclosed([(1, -(1 << 4000), 64), (2, 1 << 4000, 16), (3, -(1 << 4000), 16)]) == ["0 1", "65535 65536", "0 1"]


def test_exact_values_are_points() -> None:
    zeros = [(1, 0, 32), (2, 0, 32), (3, 0, 32), (4, 0, 32), (5, 1 << 32, 32), (6, 9 << 32, 32), (6, 0, 16)]
    one = 1 << 32
    points = [one, 0, one // 2, 0, one, 3 * one, 0]
    assert enclosed(zeros) == [f"{point} {point}" for point in points]
