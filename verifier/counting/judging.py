"""Decides sentences in bulk: robust or broken over the reals, always, and whether rounding could change that.

Three passes, each for what the one before left: float32 with one threshold for all rounding, float64, exact rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences

from ..ladder.truth import SINGLE, exactly_beaten

Array = NDArray[Any]
Rows = Callable[[Array], Array]
"""Indices of sentences -> their swaps [n, most], numbered as in `Differences`, filled up with -1."""
MOST_KNOWN = 1 << 14
GUARD = 64.0
"""A bound must exceed this many times the error of an evaluation in float64: it adds up a few times more terms."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Of a block of sentences, [n] each."""

    robust: NDArray[np.bool_]
    """Over the reals no rival wins; of the others, some rival does."""
    firm: NDArray[np.bool_]
    """Certified for every float32 evaluation, by the bound of certificates; where a model allows none, `replayed`."""
    replayed: NDArray[np.bool_]
    """Every evaluation of the deployed model must agree."""


@dataclass(frozen=True, eq=False)
class Jury:
    """Decides sentences of one query with at most `swaps` swaps each."""

    differences: Differences
    swaps: int
    known: dict[tuple[int, ...], tuple[bool, bool]] = field(default_factory=dict)
    """Verdicts of exact arithmetic: samples repeat sentences."""

    @cached_property
    def far(self) -> Array:
        """[rivals]: real margins beyond this are firm, if anything is, and replayed alike."""
        claimable = self.differences.claimable
        return np.maximum(self.differences.doubt, np.where(np.isinf(claimable), 0.0, claimable))

    @cached_property
    def certifiable(self) -> bool:
        """Whether the model can carry claims at level float32 at all."""
        return not np.isinf(self.differences.claimable).any()

    @property
    def rounding(self) -> Array:
        """[rivals]: what `firm` asks of a real margin."""
        return self.differences.claimable if self.certifiable else self.differences.doubt

    @cached_property
    def single(self) -> Array:
        return self.differences.evaluation_errors(self.swaps, SINGLE)

    @cached_property
    def double(self) -> Array:
        return self.differences.evaluation_errors(self.swaps, DOUBLE)

    @cached_property
    def base(self) -> NDArray[np.float32]:
        return self.differences.base.astype(np.float32)

    @cached_property
    def rows(self) -> NDArray[np.float32]:
        """What each swap adds to the cut, in float32; a last row of 0 stands for no swap (-1)."""
        nothing = np.zeros((1, self.differences.width))
        return np.concatenate([self.differences.rows, nothing]).astype(np.float32)

    def cut(self, swaps: Array) -> NDArray[np.float32]:
        """[n, width] of the sentences with these swaps [n, most]."""
        total = np.repeat(self.base[None], len(swaps), axis=0)
        for column in range(swaps.shape[1]):
            total += self.rows[swaps[:, column]]
        return total

    def decide(self, cut: NDArray[np.float32], swaps: Rows) -> Decided:
        """Of the sentences with these values at the cut, in float32."""
        # Comparisons are written so that NaN, from values beyond float32, stays undecided.
        robust, broken = outside(self.differences.margins(cut), self.single + self.far)
        firm, replayed = robust | broken, robust | broken
        rest = np.flatnonzero(~replayed)
        if len(rest):
            robust[rest], firm[rest], replayed[rest] = self.second_pass(swaps(rest))
        return Decided(robust, firm if self.certifiable else replayed, replayed)

    def second_pass(self, swaps: Array) -> tuple[Array, Array, Array]:
        differences, double = self.differences, self.double
        padded = np.concatenate([differences.rows, np.zeros((1, differences.width))])
        margins = differences.margins(differences.base + padded[swaps].sum(axis=1))
        robust, broken = outside(margins, double)
        sides = outside(margins, double + self.far)
        firm, replayed = sides[0] | sides[1], sides[0] | sides[1]
        for row in np.flatnonzero(~replayed):
            tokens = differences.sentence(swaps[row][swaps[row] >= 0].tolist())
            doubt, claimable = differences.own_errors(np.array([tokens], dtype=np.int64))
            one = margins[row : row + 1]
            firm[row] = any(side[0] for side in outside(one, double + claimable[0]))
            replayed[row] = any(side[0] for side in outside(one, double + doubt[0]))
            if not (robust[row] or broken[row]) or not replayed[row]:
                won, plain = self.exactly(tokens)
                robust[row] = not won
                replayed[row] |= plain
        return robust, firm, replayed

    def exactly(self, tokens: tuple[int, ...]) -> tuple[bool, bool]:
        if tokens not in self.known:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[tokens] = exactly_beaten(self.differences.query, tokens)
        return self.known[tokens]


def outside(margins: Array, reach: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which sentences are certainly robust, which certainly broken, if margins [n, rivals] may be off by this much."""
    return np.asarray((margins > reach).all(axis=1)), np.asarray((margins < -reach).any(axis=1))
