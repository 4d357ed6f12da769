"""One function over float32 inputs in their order: the largest errors and where, excess over its range, falls.

Inputs are counted as 32-bit patterns, all of one sign from the smallest size up. So neighbours are neighbours, and
every finite float32 is met once.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernel_functions import Doubles, Function, Singles, function_named, run, session_of_operator

FINITE = 0x7F800000
"""Patterns of finite floats of one sign."""
SIGN = 0x80000000
BLOCK = 1 << 14
"""Inputs evaluated at once: arrays that stay in the cache."""
PART = 1 << 26
"""Inputs for one process at a time; a multiple of `every`."""
WIDEST = 16
"""Numbers that one instruction takes: an array of fewer is computed by other ones."""
NORMAL = 2.0**-126
"""The least normal float: below it there are fewer digits, and relative errors say nothing."""


@dataclass(frozen=True)
class Peak:
    """The largest of something, and the input where it was met."""

    value: float = 0.0
    at: float | None = None

    def with_(self, values: Doubles, inputs: Singles) -> Peak:
        place = int(values.argmax())
        return self if not values[place] > self.value else Peak(float(values[place]), float(inputs[place]))

    def or_(self, other: Peak) -> Peak:
        return other if other.value > self.value else self


@dataclass(frozen=True)
class Measured:
    """What some inputs of a function showed; `exceeded` counts those where the stated bound does not hold.

    `relative` and `ulp` are of results that are normal floats. `outside` is how far values leave the function's range,
    `falls` how far one lies on the wrong side of its neighbour's; `times_fallen` says how often.
    """

    inputs: int = 0
    absolute: Peak = Peak()
    relative: Peak = Peak()
    ulp: Peak = Peak()
    outside: Peak = Peak()
    falls: Peak = Peak()
    times_fallen: int = 0
    exceeded: int = 0
    exceeded_at: float | None = None

    def or_(self, other: Measured) -> Measured:
        """Of the inputs of both."""
        return Measured(
            inputs=self.inputs + other.inputs,
            absolute=self.absolute.or_(other.absolute),
            relative=self.relative.or_(other.relative),
            ulp=self.ulp.or_(other.ulp),
            outside=self.outside.or_(other.outside),
            falls=self.falls.or_(other.falls),
            times_fallen=self.times_fallen + other.times_fallen,
            exceeded=self.exceeded + other.exceeded,
            exceeded_at=other.exceeded_at if self.exceeded_at is None else self.exceeded_at,
        )

    def written(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, written: dict[str, Any]) -> Measured:
        peaks = {one.name: Peak(**written[one.name]) for one in fields(cls) if isinstance(one.default, Peak)}
        given: dict[str, Any] = {**written, **peaks}
        return cls(**given)


def measured(
    function: Function, found: Singles, inputs: Singles, before: float | None = None, known: Measured | None = None
) -> Measured:
    """Inputs in their order, and what the runtime made of them, beside what is `known` of others.

    `before` is the value at the input before these. What cannot exceed the known peaks is not looked at one by one:
    neighbours are alike, so the largest error over the smallest value is seldom above a peak.
    """
    known = known or Measured()
    with np.errstate(all="ignore"):
        true = function.reference(inputs.astype(np.float64))
        value = found.astype(np.float64)
        apart = np.abs(value - true)
    most = float(apart.max())
    if math.isnan(most):
        apart[np.isnan(apart)] = most = math.inf
    size = np.abs(true)
    least = float(size.min())
    new = Measured(inputs=len(inputs))
    if most > known.absolute.value:
        new = replace(new, absolute=Peak().with_(apart, inputs))
    if least < NORMAL or most > min(known.relative.value * least, known.ulp.value * unit_of(size.min())):
        normal = size >= NORMAL
        with np.errstate(all="ignore"):
            relative, ulp = (np.where(normal, apart / under, 0.0) for under in (size, unit_of(size)))
        new = replace(new, relative=Peak().with_(relative, inputs), ulp=Peak().with_(ulp, inputs))
    if value.max() > function.most or value.min() < function.least:
        outside = np.maximum(value - function.most, function.least - value)
        new = replace(new, outside=Peak().with_(outside, inputs))
    relative_part, absolute_part = float(function.stated.relative), float(function.stated.absolute)
    if not most <= relative_part * least + absolute_part:
        over = ~(apart <= relative_part * size + absolute_part)
        if over.any():
            new = replace(new, exceeded=int(over.sum()), exceeded_at=float(inputs[over.argmax()]))
    negative = math.copysign(1.0, float(inputs[0])) < 0
    rising = function.rises != negative
    falling = found[:-1] - found[1:] if rising else found[1:] - found[:-1]
    if before is not None:
        first = before - value[0] if rising else value[0] - before
        if first > 0:
            new = replace(new, falls=Peak(float(first), float(inputs[0])), times_fallen=1)
    if len(falling) and falling.max() > 0:
        fallen = Peak().with_(falling.astype(np.float64), inputs[1:])
        new = replace(new, falls=new.falls.or_(fallen), times_fallen=new.times_fallen + int((falling > 0).sum()))
    return known.or_(new)


def unit_of(size: Any) -> Any:
    """The unit in the last place of a float32 as large: the power of two below, times 2^-23."""
    power = np.asarray(size, dtype=np.float32).view(np.uint32) & np.uint32(FINITE)
    return power.view(np.float32).astype(np.float64) * 2.0**-23


def patterns(function: Function) -> list[tuple[int, int]]:
    """The bit patterns of the inputs that the stated bound is about: from, up to but without."""
    stated = function.stated
    first = pattern(stated.least)
    found = []
    if stated.high > 0:
        found.append((first, min(pattern(stated.high) + 1, FINITE)))
    if stated.low < 0:
        found.append((SIGN + first, SIGN + min(pattern(-stated.low) + 1, FINITE)))
    return found


def pattern(size: float) -> int:
    """Of a float that is not negative."""
    return int(np.array(size, dtype=np.float32).view(np.uint32))


def sweep(function: Function, start: int, stop: int, every: int, joined: bool = False) -> Measured:
    """The inputs whose patterns are start, start + every, ... below stop; all of one sign.

    `joined`: the input before them is looked at as well, so that no fall between two parts is missed.
    """
    session, total, before = session_of_operator(function.operator), Measured(), None
    if joined:
        before = float(evaluated(session, np.full(WIDEST, start - every, dtype=np.uint32))[1][0])
    for first in range(start, stop, BLOCK * every):
        inputs, found = evaluated(session, np.arange(first, min(first + BLOCK * every, stop), every, dtype=np.uint32))
        total = measured(function, found, inputs, before, total)
        before = float(found[-1])
    return total


def evaluated(session: Any, bits: NDArray[np.uint32]) -> tuple[Singles, Singles]:
    inputs = bits.view(np.float32)
    return inputs, run(session, {"x0": inputs})


def parts(function: Function, every: int) -> list[tuple[str, int, int, int, bool]]:
    """Work for one process each, as `sweep_by_name` is given it."""
    return [
        (function.name, first, min(first + PART, stop), every, first > start)
        for start, stop in patterns(function)
        for first in range(start, stop, PART)
    ]


def sweep_by_name(name: str, start: int, stop: int, every: int, joined: bool) -> Measured:
    """In another process, which is told the function by its name."""
    return sweep(function_named(name), start, stop, every, joined)
