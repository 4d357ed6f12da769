"""Backward substitution in float64, with a bound on what rounding and doubtful choices can do to the result.

Errors are taken step by step: the float coefficients of a node are given, the step is done once more over the reals
from exactly these, and the difference in the coefficients handed on, weighed by the magnitudes M of what they belong to
(values_beyond_cut.py), is what the step can have cost. With V = sum |c| M of the node,

    x W + b        growth(n) V, n terms per coefficient        copies added up    growth(copies) V
    rectifier      growth(n) V + sum |c| doubt of its line     maximum            likewise
    a sum of parts handed on by several readers                unit |sum| M each time
    the constant   unit |constant| each time something is added
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swapproof.encodings.bounds.substitution import Coefficients, Rewriting
from swapproof.encodings.network import At

from .float64_rounding import UNIT, Floats, growth


@dataclass(frozen=True, eq=False)
class Replaced:
    """A nonlinear step: what its input gets, what is added to the constant, and the doubt [B, R] beside rounding."""

    passed: Coefficients
    constant: Floats
    doubt: Floats
    terms: int
    falls: Floats | None = None
    """[B, R, swaps]: how far each swap lowers the functions besides."""


@dataclass(eq=False)
class ErrorsCarried(Rewriting):
    """The substitution of `encodings`, with the error [B, R] of all that it did so far."""

    sizes: Mapping[int, Floats]
    error: Floats

    def come_to(self, more: Floats) -> None:
        super().come_to(more)
        self.error = self.error + 2 * UNIT * np.abs(self.constant)

    def add(self, source: int, one: Coefficients, more: Coefficients) -> Coefficients:
        both = super().add(source, one, more)
        self.error = self.error + 2 * UNIT * weighed(both.values, self.sizes[source])
        return both

    def charge(self, operations: int, given: Coefficients, at: At) -> None:
        self.error = self.error + growth(operations) * weighed(given.values, given.at(self.sizes[at.index]))

    def charge_line(self, line: Replaced, given: Coefficients, at: At) -> None:
        self.error = self.error + line.doubt
        self.charge(line.terms, given, at)


def weighed(values: Floats, sizes: Floats) -> Floats:
    """[B, R]: sum |c| M of coefficients [B, R, n], with sizes [n], or [B, n]."""
    if sizes.ndim == 1:
        return np.asarray(np.abs(values) @ sizes)
    return np.asarray((np.abs(values) @ sizes[:, :, None])[..., 0])
