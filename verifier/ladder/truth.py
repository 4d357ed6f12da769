"""Which sentences are certainly robust, which break the network, and which only rounding decides.

Three passes, each only for what the one before left: float32 by differences, where one threshold covers the rounding
of the sweep and of the deployed model; float64; exact rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.exact_evaluation import exact_logits
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

from ..interval import Level

SINGLE = 2.0**-24
AT_ONCE = 1024
"""Sentences of the second pass evaluated together."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """Sentences that may be witnesses: one that breaks over the reals, or several that rounding may break."""

    truth: Literal["broken", "doubtful"]
    sentences: NDArray[np.int64]


def exactly_beaten(query: Query, tokens: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether a rival wins over the reals, and whether every float evaluation gives exactly these logits."""
    logits, plain = exact_logits(query.network, tokens)
    own = logits[query.label]
    won = any(logits[rival] > own or (logits[rival] == own and rival < query.label) for rival in query.rivals)
    return won, plain


def beaten(query: Query, tokens: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether a rival wins over the reals, and whether the deployed model must agree on that.

    Error bounds over the whole space, which the engines need anyway, settle most sentences; then those of this one.
    """
    whole = Differences.of(query)
    swaps = whole.numbers(tokens)
    margins = whole.margins((whole.base + whole.rows[swaps].sum(axis=0))[None])[0]
    far = whole.evaluation_errors(len(swaps), DOUBLE) + whole.doubt
    if (margins < -far).any() or (margins > far).all():
        return bool((margins < -far).any()), True
    alone = Query(query.network, SwapSpace(tuple((token,) for token in tokens)), query.label, query.rivals)
    differences = Differences.uncached(alone)
    margins, errors = differences.margins(differences.base[None])[0], differences.evaluation_errors(0, DOUBLE)
    if (margins < -errors).any():
        won, agreed = True, bool((margins < -errors - differences.doubt).any())
    elif (margins > errors).all():
        won, agreed = False, bool((margins > errors + differences.doubt).all())
    else:
        return exactly_beaten(query, tokens)
    return won, agreed or exactly_beaten(query, tokens)[1]


SOLVER_TOLERANCE = 2e-5
"""Margins that a solver may call positive: twice the margin that programs ask for."""


def refutes(query: Query, tokens: tuple[int, ...]) -> float | None:
    """The least real margin of a sentence, when it breaks the text by more than solvers allow themselves."""
    logits, _ = exact_logits(query.network, tokens)
    margin = float(min(logits[query.label] - logits[rival] for rival in query.rivals))
    return margin if margin < -SOLVER_TOLERANCE else None


class Judge:
    """Judges blocks of sentences of one query, and remembers at which level the robust ones can be claimed."""

    level: Level

    def __init__(self, differences: Differences) -> None:
        self.differences = differences
        self.level = "real" if np.isinf(differences.claimable).any() else "float32"
        self.thresholds: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def threshold(self, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margins above the first, in float32, or the second, in float64, are certainly positive over the reals."""
        if size not in self.thresholds:
            differences = self.differences
            far = differences.doubt
            if self.level == "float32":
                far = np.maximum(far, differences.claimable)
            single = differences.evaluation_errors(size, SINGLE) + far
            self.thresholds[size] = (single, differences.evaluation_errors(size, DOUBLE))
        return self.thresholds[size]

    def judge(
        self, size: int, cut: NDArray[np.float32], swaps: Callable[[NDArray[np.int64]], NDArray[np.int32]]
    ) -> Iterator[Judgement]:
        """The possible witnesses among the sentences of `size` swaps with these values at the cut.

        The most negative margin goes first. `swaps` gives the swaps [rows, size] of some rows, when asked.
        """
        differences = self.differences
        single, double = self.threshold(size)
        margins = differences.margins(cut)
        # Written so that NaN, from values beyond float32, counts as uncertain.
        uncertain = np.flatnonzero(~(margins > single).all(axis=1))
        if not len(uncertain):
            return
        hardest_first = uncertain[np.argsort(margins[uncertain].min(axis=1), kind="stable")]
        yield from self.second_pass(swaps(hardest_first[:1]), double)
        for start in range(1, len(hardest_first), AT_ONCE):
            yield from self.second_pass(swaps(hardest_first[start : start + AT_ONCE]), double)

    def second_pass(self, swaps: NDArray[np.int32], double: NDArray[np.float64]) -> Iterator[Judgement]:
        differences, query = self.differences, self.differences.query
        margins = differences.margins(differences.base + differences.rows[swaps].sum(axis=1))
        sentences = np.repeat(np.array(query.space.original, dtype=np.int64)[None], len(swaps), axis=0)
        sentences[np.arange(len(swaps))[:, None], differences.positions[swaps]] = differences.tokens[swaps]
        broken = (margins < -double).any(axis=1)
        for row in np.flatnonzero(broken):
            yield Judgement("broken", sentences[row : row + 1])
        far = double + np.maximum(differences.doubt, differences.claimable)
        close = np.flatnonzero(~broken & ~(margins > far).all(axis=1))
        if not len(close):
            return
        doubt, claimable = differences.own_errors(sentences[close])
        if not (margins[close] > double + claimable).all():
            self.level = "real"
        doubtful = []
        for row in close[~(margins[close] > double + doubt).all(axis=1)]:
            won, plain = False, False
            if not (margins[row] > double).all():
                won, plain = exactly_beaten(query, tuple(int(token) for token in sentences[row]))
            if won:
                yield Judgement("broken", sentences[row : row + 1])
            elif not plain:
                doubtful.append(row)
        if doubtful:
            yield Judgement("doubtful", sentences[doubtful])
