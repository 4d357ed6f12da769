"""What a model computes from tokens (a mask of the padding, mostly), and the texts for which that comes to the same.

A network depends on the choices of a text only through that (FORMAT section 4.2, constants that are computed). Where
all that is done with tokens is to compare them with constants, the results say which network it is; integers are
compared alike by whoever does it. With any other operator every text has a network of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.onnx_files.construction import Call, Known, Tokens, Value

from ..numbers.float64_rounding import Array

COMPARE = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


@dataclass(frozen=True, eq=False)
class Masks:
    """The comparisons of a model for texts of one length."""

    calls: list[Call]

    @classmethod
    def of(cls, settled: Sequence[tuple[Call, Array]], choices: Sequence[Sequence[int]]) -> Masks | None:
        """From what was settled when the model was read for these choices; None where that was more than to compare."""
        found = cls([call for call, _ in settled])
        if any(call.operator not in COMPARE for call in found.calls):
            return None
        return found if found.results(choices) == tuple(result.tobytes() for _, result in settled) else None

    def results(self, choices: Sequence[Sequence[int]]) -> tuple[bytes, ...] | None:
        """Of each comparison; None where the choices of a position differ in one."""
        turns = max(map(len, choices)) if self.calls else 0
        rows = [np.array([options[turn % len(options)] for options in choices]) for turn in range(turns)]
        found: list[bytes] = []
        for call in self.calls:
            compared = {COMPARE[call.operator](*laid(call, row)).tobytes() for row in rows}
            if len(compared) > 1:
                return None
            found += compared
        return tuple(found)

    def same(self, other: Masks) -> bool:
        """Whether the same is compared with the same."""
        pairs = list(zip(self.calls, other.calls, strict=False))
        alike = all(a.operator == b.operator and all(map(equal, a.values, b.values)) for a, b in pairs)
        return alike and len(self.calls) == len(other.calls)


def laid(call: Call, tokens: Array) -> list[Array]:
    """The inputs, with tokens [length] in their places."""
    return [
        tokens[value.positions] if isinstance(value, Tokens) else value.array
        for value in call.values
        if isinstance(value, Tokens | Known)
    ]


def equal(a: Value | None, b: Value | None) -> bool:
    match a, b:
        case Known(one), Known(other):
            return one.dtype == other.dtype and np.array_equal(one, other)
        case Tokens(one), Tokens(other):
            return np.array_equal(one, other)
        case _:
            return False
