"""What is known so far of words that move together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from swapproof.encodings.network import Floats, Indices

from ..moving_ball import Ball
from ..moving_network import Moving
from ..seeking.nearest_words import AnsweringWords, WordsFound
from ..smooth.smooth_balls import SmoothMoving

if TYPE_CHECKING:
    from ..proved_balls import ExactCase, FormCase

GAP = 1e-3
"""An interval is called exact when its ends differ by no more than this part of the high one."""


@dataclass(eq=False)
class Words:
    """A set of words that move together: what is known of it so far."""

    words: tuple[int, ...]
    free: Indices
    moving: Moving | SmoothMoving
    balls: list[Ball]
    answering: Callable[[], AnsweringWords]
    """Every word of the vocabulary in the place of a single one."""
    low: Fraction = Fraction(0)
    trees: tuple[bytes, ...] = ()
    high: float = math.inf
    point: Floats | None = None
    point_distance: float = math.inf
    found: WordsFound | None = None
    like: WordsFound | None = None
    """The same among words of the same part of speech, where it was asked."""
    sentence: dict[int, str] | None = None
    """Words that change the class together, by the words they replace."""
    sentence_distance: float = math.inf
    exact_case: ExactCase | FormCase | None = None
    cost: float = 0.0
    """Seconds that the checker took for a proof without splits."""

    @property
    def neurons(self) -> int:
        return 0 if isinstance(self.moving, SmoothMoving) else sum(map(len, self.moving.stack.layers))

    @property
    def unnamed(self) -> bool:
        """Whether there are rectifiers of maxima, which proofs have no names for; the checker does not follow them."""
        return not isinstance(self.moving, SmoothMoving) and None in self.moving.layers

    @property
    def closed(self) -> bool:
        return math.isfinite(self.high) and float(self.low) >= (1 - GAP) * self.high
