"""When to stop drawing samples: at a number fixed beforehand, or when what is seen is enough; and what was then drawn.

Only a number fixed beforehand allows Hoeffding's and Clopper's and Pearson's intervals. Whatever stops earlier (the
interval is narrow enough, the clock) depends on what was seen, or may, and is left with the confidence sequence of
anytime.py. (Whether the clock cuts in before a number fixed beforehand is reached is taken not to depend on the
answers; if it did, either interval could be wrong with probability delta.)

Looks: with a width, the interval is looked at after 256 samples and, after a look at m, at m + floor(m / 8); the first
look at which it is no wider stops the drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..engines.protocol import Budget
from .anytime import anytime
from .binomial import clopper_pearson

Array = NDArray[Any]
FIRST_LOOK, LATER = 256, 8
Stopped = Literal["number", "width", "most", "time", "all", "some"]
"""By the number fixed beforehand; by the width; by the greatest number allowed; by the clock. `all`: there are no more
sentences than were to be drawn, so each was judged once; `some`: the clock stopped that."""


@dataclass(frozen=True)
class Sample:
    """Of `drawn` sentences `robust` keep the label; `ambiguous` ones, which rounding decides, are not among them."""

    drawn: int
    robust: int
    ambiguous: int
    stopped: Stopped

    @property
    def complete(self) -> bool:
        return self.drawn > 0

    @property
    def listed(self) -> bool:
        """Whether nothing was drawn: sentences were judged one after the other, each once."""
        return self.stopped in ("all", "some")

    @property
    def fixed(self) -> bool:
        """Whether the number of samples was fixed before the first was drawn."""
        return self.stopped == "number"

    def ends(self, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Sound for both readings of ambiguous sentences: failures at the low end, robust at the high end."""
        interval = clopper_pearson if self.fixed else anytime
        low = interval(self.robust, self.drawn, delta)[0]
        return low, interval(self.robust + self.ambiguous, self.drawn, delta)[1]


@dataclass(frozen=True)
class Stop:
    """`most` samples; with `width`, fewer when the interval at confidence 1 - delta is as narrow."""

    most: int
    delta: Fraction
    width: Fraction | None = None
    clock: int | None = None
    """Of a sample drawn again: where the clock stopped it."""

    def lists(self, total: int) -> bool:
        """Whether so many sentences are judged, each once: where no fewer would be drawn, that is less and exact."""
        return self.width is None and total <= self.most

    def every(self, total: int, judge: Callable[[Array], tuple[int, int]], budget: Budget, at_once: int) -> Sample:
        """Judge all sentences."""
        found = self.draw([np.arange(total)], judge, budget, at_once)
        return replace(found, stopped="some" if found.stopped == "time" else "all")

    def enough(self, sample: Sample) -> bool:
        if self.width is None:
            return False
        low, high = sample.ends(self.delta)
        return high - low <= self.width

    def draw(
        self, numbers: Iterable[Array], judge: Callable[[Array], tuple[int, int]], budget: Budget, at_once: int
    ) -> Sample:
        """Judge these numbered sentences, `at_once` at a time: `judge` counts the robust and the ambiguous ones."""
        drawn = robust = ambiguous = 0
        look = FIRST_LOOK
        for array in numbers:
            first = 0
            while first < len(array):
                if drawn == self.clock or (self.clock is None and budget.spent):
                    return Sample(drawn, robust, ambiguous, "time")
                ends = [first + at_once, len(array)]
                ends += [first + look - drawn] if self.width is not None else []
                ends += [first + self.clock - drawn] if self.clock is not None else []
                block = array[first : min(ends)]
                good, unsure = judge(block)
                first, drawn = first + len(block), drawn + len(block)
                robust, ambiguous = robust + good, ambiguous + unsure
                budget.evaluations += len(block)
                if drawn == look:
                    if self.enough(Sample(drawn, robust, ambiguous, "width")):
                        return Sample(drawn, robust, ambiguous, "width")
                    look += look // LATER
        return Sample(drawn, robust, ambiguous, "number" if self.width is None else "most")
