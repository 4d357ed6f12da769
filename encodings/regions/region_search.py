"""Is a region of sentences safe? Boxes first, then words split, and few sentences evaluated one by one.

What is found is a tree of regions, for a certificate, or a sentence that breaks it. All is looked at in float64 or
float32, and nothing here is believed: a certificate is checked, and a sentence replayed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..network import Floats
from ..sequences.sentence_margins import margins_of
from .arithmetic import Ends, KernelEnds, Plain
from .assignments import Choices
from .box_runs import Remembered, Segment
from .boxes import Boxed, boxed, segments_of
from .region import Question
from .shared_tables import Stopped

Array = NDArray[Any]
UNIT = 2.0**-32
CLOSE = 1e-3
"""Margins in float32 below this are looked at in float64."""
CLEAR = 1e-4
"""Least margin of what is called safe: well above what the deployed model's float32 can turn round, and what rounding
costs a checker."""
NEAR, MOST_NEAR = 1e-6, 4096
"""Sentences with margins above the first, which float64 and a checker still tell from 0, are safe too where the model
keeps its answer: so many are remembered, for whoever asks it."""
ROWS = 60_000
"""Sentences of a region that is evaluated at once: bounds memory."""
FEW, FEW_IN_SUMS = 150, 5000
"""Sentences that are sooner evaluated than bounded; and of sums over the words, sooner than split."""


@dataclass(frozen=True)
class Evaluated:
    """Leaf: all sentences of the region, whose least margin this is."""

    choices: Choices
    least: float


@dataclass(frozen=True)
class Bounded:
    """Leaf: by boxes."""

    choices: Choices


@dataclass(frozen=True)
class Split:
    """By one word: these of its options, and the others."""

    word: int
    options: frozenset[int]
    left: Region
    right: Region


Region = Evaluated | Bounded | Split


@dataclass(frozen=True)
class Broken:
    """A sentence that some rival wins, or nearly, as token ids and its number of swaps."""

    tokens: tuple[int, ...]
    swaps: int
    margin: float


@dataclass
class Effort:
    """What a search has spent."""

    deadline: float = float("inf")
    evaluated: int = 0
    boxes: int = 0

    @property
    def spent(self) -> bool:
        return time.monotonic() > self.deadline


@dataclass(eq=False)
class Search:
    """One text."""

    question: Question
    effort: Effort
    with_boxes: bool = True
    single: Plain = field(default_factory=lambda: Plain(np.float32))
    double: Plain = field(default_factory=lambda: Plain(np.float64))
    ends: Ends = field(default_factory=lambda: Ends(UNIT))
    found: Broken | None = None
    near: list[tuple[int, ...]] = field(default_factory=list)
    """Sentences that were called safe though a deployed model may turn them round."""

    remembered: Remembered | None = None
    last: tuple[tuple[tuple[int, ...], ...], int, Boxed] | None = None
    """The region that was boxed last: options, swaps, and what was found."""

    def __post_init__(self) -> None:
        self.segments: tuple[Segment, ...] = segments_of(self.question) if self.with_boxes else ()

    @property
    def in_float32(self) -> bool:
        """Whether boxes hold every float32 evaluation."""
        return isinstance(self.ends, KernelEnds)

    # ---- evaluation

    def margins(self, choices: Choices, rows: NDArray[np.int32] | None = None) -> tuple[NDArray[np.int32], Array]:
        """Rows of sentences, and their least margins [rows]: in float32, and in float64 where these are close."""
        made, found = margins_of(self.question, choices, self.single, lambda: self.effort.spent, rows)
        least = found.min(axis=1).astype(np.float64)
        self.effort.evaluated += len(least)
        close = np.flatnonzero(~(least > CLOSE))
        if len(close):
            _, again = margins_of(self.question, choices, self.double, lambda: self.effort.spent, made.rows[close])
            least[close] = again.min(axis=1)
        return made.rows, least

    @cached_property
    def few(self) -> int:
        question = self.question
        return FEW_IN_SUMS if any(map(question.in_sums, question.needed_shortly)) else FEW

    @cached_property
    def drops(self) -> Floats:
        """[words]: what the worst swap of each costs alone."""
        choices = self.question.whole(1)
        rows, own = self.singles
        found, single = np.zeros(len(choices.options)), rows[:, 0] >= 0
        np.maximum.at(found, choices.word_of[rows[single, 0]], float(own[~single].min()) - own[single])
        return found

    def evaluated(self, choices: Choices) -> Evaluated | None:
        """All sentences, if they are safe, those that are nearly not among `near`; else one with the fewest swaps is
        kept."""
        rows, least = self.margins(choices)
        wrong = np.flatnonzero(~(least > CLEAR))
        if (least[wrong] > NEAR).all() and len(self.near) + len(wrong) <= MOST_NEAR:
            self.near += [self.question.sentence(choices, rows[row]) for row in wrong]
            return Evaluated(choices, float(least.min()))
        swaps = (rows[wrong] >= 0).sum(axis=1)
        fewest = wrong[np.lexsort((least[wrong], swaps))[0]]
        self.found = self.broken(choices, rows[fewest], float(least[fewest]))
        return None

    def broken(self, choices: Choices, row: NDArray[np.int32], margin: float) -> Broken:
        return Broken(self.question.sentence(choices, row), int((row >= 0).sum()), margin)

    def box(self, choices: Choices) -> Boxed:
        if self.remembered is None or self.remembered.arithmetic is not self.ends:
            self.remembered, self.last = Remembered(self.question, self.segments, self.ends), None
        if self.last is None or self.last[:2] != (choices.options, choices.swaps):
            self.effort.boxes += 1
            self.last = choices.options, choices.swaps, boxed(choices, self.remembered)
        return self.last[2]

    @cached_property
    def singles(self) -> tuple[NDArray[np.int32], Floats]:
        """The text itself and every single swap, as rows, and their least margins."""
        return self.margins(self.question.whole(1))

    # ---- regions

    def prove(self, choices: Choices, *, bounded: bool) -> Region | None:
        """A tree that shows the region safe; None where a sentence was found. Raises Stopped."""
        if self.effort.spent:
            raise Stopped
        count = choices.count()
        if count == 0:
            return Bounded(choices)
        if count <= (FEW if bounded else ROWS):
            return self.evaluated(choices)
        word = None
        if bounded:
            found = self.box(choices)
            if (found.margins[choices.swaps] > CLEAR).all():
                return Bounded(choices)
            if count <= self.few:
                return self.evaluated(choices)
            open_words = [w for w in choices.moving if 0 in choices.options[w] and len(choices.options[w]) > 1]
            word = max(open_words, key=lambda w: (found.jumps.get(w, 0.0), self.drops[w]), default=None)
        else:
            open_words = [w for w in choices.moving if 0 in choices.options[w] and len(choices.options[w]) > 1]
            word = max(open_words, key=lambda w: len(choices.options[w]), default=None)
        if word is None:
            return self.halve(choices, bounded=bounded)
        return self.split(choices, word, frozenset([0]), bounded=bounded)

    def halve(self, choices: Choices, *, bounded: bool) -> Region | None:
        """All words that move are forced to: the one with the most options loses half of them."""
        word = max(choices.moving, key=lambda w: len(choices.options[w]))
        own = choices.options[word]
        if len(own) < 2:
            return self.evaluated(choices)
        return self.split(choices, word, frozenset(own[: len(own) // 2]), bounded=bounded)

    def split(self, choices: Choices, word: int, kept: frozenset[int], *, bounded: bool) -> Region | None:
        parts = []
        for inside in (True, False):
            options = tuple(option for option in choices.options[word] if (option in kept) is inside)
            whole = (*choices.options[:word], options, *choices.options[word + 1 :])
            found = self.prove(replace(choices, options=whole), bounded=bounded)
            if found is None:
                return None
            parts.append(found)
        return Split(word, kept, *parts)


def segments_used(question: Question, choices: Choices, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Those of words that move; the others say nothing."""
    return tuple(part for part in segments if part.word in choices.moving)
