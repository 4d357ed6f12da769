"""Which sentences are certainly robust, which break the network, and which only rounding decides.

Three passes, each only for what the one before left: float32 by differences, where one threshold covers the rounding
of the sweep and of the deployed model; float64; exact rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.evaluation import logits
from swapproof.encodings.exact_evaluation import exact_logits, exactly_beaten
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_margins import Certified

from ..interval import Level

SINGLE = 2.0**-24
AT_ONCE = 1024
"""Sentences of the second pass evaluated together."""
MOST_KNOWN = 1 << 14
GUARD = 64.0
"""A bound must exceed this many times the error of an evaluation in float64: it adds up a few times more terms."""

Array = NDArray[Any]
Rows = Callable[[Array], Array]
"""Indices of sentences -> their swaps [n, most], numbered as in `Differences`, filled up with -1."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """Sentences that may be witnesses: one that breaks over the reals, or several that rounding may break."""

    truth: Literal["broken", "doubtful"]
    sentences: NDArray[np.int64]


APART = 1e-4
"""Margins of smooth networks beyond this are turned round by no runtime: LSTMs of up to 150 units were seen to be 2e-6
off. No bound but that of level `kernel` covers what a deployed model's own functions do."""
SOLVER_TOLERANCE = 2e-5
"""Margins that a solver may call positive: twice the margin that programs ask for."""


def refutes(query: Query, tokens: tuple[int, ...]) -> float | None:
    """The least real margin of a sentence, when it breaks the text by more than solvers allow themselves."""
    if query.network.is_smooth:
        margin = margin_of(query, tokens)
        return margin if margin < -SOLVER_TOLERANCE else None
    exact, _ = exact_logits(query.network, tokens)
    margin = float(min(exact[query.label] - exact[rival] for rival in query.rivals))
    return margin if margin < -SOLVER_TOLERANCE else None


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
    plainly: bool = True
    """Whether exact arithmetic is also asked if rounding can change what is certain over the reals."""
    known: dict[tuple[int, ...], tuple[bool, bool]] = field(default_factory=dict)
    """Verdicts of exact arithmetic: samples repeat sentences."""

    @cached_property
    def certified(self) -> Certified:
        return Certified.of(self.differences.query)

    @cached_property
    def far(self) -> Array:
        """[rivals]: real margins beyond this are firm, if anything is, and replayed alike."""
        claimable = self.certified.claimable
        return np.maximum(self.differences.doubt, np.where(np.isinf(claimable), 0.0, claimable))

    @cached_property
    def certifiable(self) -> bool:
        """Whether the model can carry claims at level float32 at all."""
        return not np.isinf(self.certified.claimable).any()

    @property
    def rounding(self) -> Array:
        """[rivals]: what `firm` asks of a real margin."""
        return self.certified.claimable if self.certifiable else self.differences.doubt

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
        return np.append(self.differences.rows, self.nothing, axis=0).astype(np.float32)

    @property
    def nothing(self) -> Array:
        return np.zeros((1, self.differences.width))

    def cut(self, swaps: Array) -> NDArray[np.float32]:
        """[n, width] of the sentences with these swaps [n, most]."""
        total = np.repeat(self.base[None], len(swaps), axis=0)
        for column in range(swaps.shape[1]):
            total += self.rows[swaps[:, column]]
        return total

    def decide(self, cut: NDArray[np.float32], swaps: Rows) -> Decided:
        """Of the sentences with these values at the cut, in float32."""
        robust, broken = outside(self.differences.margins(cut), self.single + self.far)
        firm, replayed = robust | broken, robust | broken
        rest = np.flatnonzero(~replayed)
        if len(rest):
            made = swaps(rest)
            closely = self.decide_closely(made, self.margins(made))
            robust[rest], firm[rest], replayed[rest] = closely.robust, closely.firm, closely.replayed
        return Decided(robust, firm, replayed)

    def margins(self, swaps: Array) -> Array:
        """[n, rivals] in float64."""
        differences = self.differences
        rows = differences.rows if (swaps >= 0).all() else np.append(differences.rows, self.nothing, axis=0)
        return differences.margins(differences.base + rows[swaps].sum(axis=1))

    def decide_closely(self, swaps: Array, margins: Array) -> Decided:
        """Of the sentences with these swaps [n, most] and margins in float64."""
        robust, broken = outside(margins, self.double)
        firm = np.logical_or(*outside(margins, self.double + self.far))
        replayed = firm.copy()
        unclear = np.flatnonzero(~replayed)
        for start in range(0, len(unclear), AT_ONCE):
            close = unclear[start : start + AT_ONCE]
            sentences = self.sentences(swaps[close])
            doubt, claimable = self.certified.own_errors(sentences)
            firm[close] = np.logical_or(*outside(margins[close], self.double + claimable))
            replayed[close] = np.logical_or(*outside(margins[close], self.double + doubt))
            for row, tokens in zip(close.tolist(), sentences.tolist(), strict=True):
                if not (robust[row] or broken[row]) or (self.plainly and not replayed[row]):
                    won, plain = self.exactly(tuple(tokens))
                    robust[row] = not won
                    replayed[row] |= plain
        return Decided(robust, firm if self.certifiable else replayed, replayed)

    def sentences(self, swaps: Array) -> NDArray[np.int64]:
        """[n, length]: the token ids after these swaps [n, most]."""
        differences = self.differences
        tokens = np.repeat(np.array(differences.query.space.original, dtype=np.int64)[None], len(swaps), axis=0)
        rows, columns = np.nonzero(swaps >= 0)
        made = swaps[rows, columns]
        tokens[rows, differences.positions[made]] = differences.tokens[made]
        return tokens

    def exactly(self, tokens: tuple[int, ...]) -> tuple[bool, bool]:
        if tokens not in self.known:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[tokens] = exactly_beaten(self.differences.query, tokens)
        return self.known[tokens]


def outside(margins: Array, reach: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which sentences are certainly robust, which certainly broken, if margins [n, rivals] may be off by this much.

    NaN, from values beyond the floats, is neither.
    """
    return np.asarray((margins > reach).all(axis=1)), np.asarray((margins < -reach).any(axis=1))


def margin_of(query: Query, tokens: tuple[int, ...]) -> float:
    """The least margin of a sentence, in float64."""
    found = logits(query.network, np.array([tokens], dtype=np.int64))[0]
    return float((found[query.label] - found[list(query.rivals)]).min())


def beaten(query: Query, tokens: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether a rival wins over the reals, and whether the deployed model must agree on that.

    Error bounds over the whole space, which the engines need anyway, settle most sentences; then those of this one.
    """
    if query.network.is_smooth:
        margin = margin_of(query, tokens)
        return margin < 0, abs(margin) > APART
    whole = Differences.of(query)
    swaps = whole.numbers(tokens)
    jury = Jury(whole, len(swaps))
    margins = jury.margins(swaps[None])
    robust, broken = outside(margins, jury.double + whole.doubt)
    if robust[0] or broken[0]:
        return bool(broken[0]), True
    decided = jury.decide_closely(swaps[None], margins)
    return not decided.robust[0], bool(decided.replayed[0])


def firm_within(query: Query, swaps: int) -> bool:
    """Whether bounds alone show that every evaluation of the deployed model keeps the label in all sentences with at
    most so many swaps."""
    differences = Differences.of(query)
    places = Places.of(differences)
    if not places.count:
        return False
    reach = GUARD * differences.evaluation_errors(places.count, DOUBLE) + differences.doubt
    for rival, needed in enumerate(reach.tolist()):
        bounds = LinearBounds(places, rival, swaps)
        low = bounds.low(bounds.base[None], np.zeros(1, dtype=np.int64), np.array([swaps]))
        if not low[0] > needed:
            return False
    return True


class Judge:
    """Judges blocks of sentences of one query, and remembers at which level the robust ones can be claimed."""

    level: Level

    def __init__(self, differences: Differences) -> None:
        self.differences = differences
        self.level = "real" if np.isinf(Certified.of(differences.query).claimable).any() else "float32"
        self.juries: dict[int, tuple[Jury, Array]] = {}

    def jury(self, size: int) -> tuple[Jury, Array]:
        """For sentences of so many swaps; margins in float32 above these [rivals] are certainly positive everywhere."""
        if size not in self.juries:
            jury = Jury(self.differences, size, plainly=False)
            self.juries[size] = jury, jury.single + (jury.far if self.level == "float32" else self.differences.doubt)
        return self.juries[size]

    def judge(
        self, size: int, cut: NDArray[np.float32], swaps: Callable[[NDArray[np.int64]], NDArray[np.int32]]
    ) -> Iterator[Judgement]:
        """The possible witnesses among the sentences of `size` swaps with these values at the cut.

        The most negative margin goes first. `swaps` gives the swaps [rows, size] of some rows, when asked.
        """
        jury, threshold = self.jury(size)
        margins = self.differences.margins(cut)
        # Written so that NaN, from values beyond float32, counts as uncertain.
        uncertain = np.flatnonzero(~(margins > threshold).all(axis=1))
        if not len(uncertain):
            return
        hardest_first = uncertain[np.argsort(margins[uncertain].min(axis=1), kind="stable")]
        yield from self.judge_closely(jury, swaps(hardest_first[:1]))
        for start in range(1, len(hardest_first), AT_ONCE):
            yield from self.judge_closely(jury, swaps(hardest_first[start : start + AT_ONCE]))

    def judge_closely(self, jury: Jury, swaps: NDArray[np.int32]) -> Iterator[Judgement]:
        margins, sentences = jury.margins(swaps), jury.sentences(swaps)
        _, certain = outside(margins, jury.double)
        for row in np.flatnonzero(certain):
            yield Judgement("broken", sentences[row : row + 1])
        sentences = sentences[~certain]
        decided = jury.decide_closely(swaps[~certain], margins[~certain])
        for row in np.flatnonzero(~decided.robust):
            yield Judgement("broken", sentences[row : row + 1])
        if not decided.firm[decided.robust].all():
            self.level = "real"
        doubtful = decided.robust & ~decided.replayed
        if doubtful.any():
            yield Judgement("doubtful", sentences[doubtful])
