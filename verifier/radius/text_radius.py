"""The safe radius of one text, from its vectors to an interval with evidence at both ends.

    radius(I) = inf { ||(x_I - c_I) / w|| : some class beats the label at x, x equal to c outside the words I }

Cheap things come first, for every set of words: points at which the class changes, the nearest word that changes it,
and a ball that linear bounds prove. What time is left is spent on larger balls, by search, set after set.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swapproof.encodings.errors import Unsupported
from swapproof.proofs import check

from .ends.high_ends import HighEnds
from .ends.low_ends import LowEnds
from .ends.text_place import TextPlace
from .ends.told_radius import told
from .proved_balls import Claims, FormClaims
from .smooth.smooth_forms import SmoothNetwork

MANY_NEURONS = 400
"""That move; from there on forms prove balls faster than bounds by substitution, and nearly as large."""
FORMS_SHARE = 0.8
"""Of the time of a text, for proofs by forms; the rest is for points and words."""


@dataclass(frozen=True)
class Measured:
    """Of a text what a line says, beside what opens it; and its certificate."""

    part: dict[str, Any]
    certificate: bytes | None
    evaluations: int


@dataclass(frozen=True, eq=False)
class TextRadius:
    """One text, asked about set after set."""

    at: TextPlace
    high: HighEnds
    low: LowEnds

    @classmethod
    def of(cls, at: TextPlace) -> TextRadius:
        high = HighEnds(at)
        return cls(at, high, LowEnds(at, high))

    def measure(self) -> Measured:
        label = self.at.text.label
        if self.at.predicted != label:
            return Measured({"status": "already_wrong", "safe_radius": {"low": 0.0, "high": 0.0}, "words": []}, None, 1)
        rivals = [rival for rival in range(self.at.setting.labels) if rival != label]
        smooth = isinstance(self.at.room.plain, SmoothNetwork)
        sets = [self.high.begun(words, rivals, look=False) for words in self.sets(rivals)]
        by_forms = self.low.by_forms = smooth or any(each.neurons > MANY_NEURONS or each.unnamed for each in sets)
        for each in [] if by_forms else sets:
            self.high.look(each)
        try:
            kind = FormClaims if self.low.by_forms else Claims
            claims = kind(self.at.room.behind, self.at.center, self.at.widths, label, rivals, self.at.question.norm)
            for each in sets:
                each.exact_case = claims.place(each.free)
        except (check.Refused, check.Unusable) as error:
            raise Unsupported(f"{self.at.setting.path}: outside the format of certificates: {error}") from None
        began, own = time.monotonic(), self.at.until - time.monotonic()
        # In a network that reads one word after the other the last words are proved fastest.
        for each in reversed(sets):
            self.low.prove_plainly(each, began + (FORMS_SHARE if by_forms else 1.0) * own)
        for each in sets if by_forms else []:
            # What is cheap for few rectifiers costs more than a proof here, and comes after it.
            if time.monotonic() < self.at.until:
                self.high.look(each)
        left = sorted(sets, key=lambda each: min(each.high, 1e300))
        for number, each in enumerate(left):
            rest = self.at.until - time.monotonic()
            if rest > 0 and not each.closed and not self.low.by_forms:
                self.low.improve(each, rest / (len(left) - number))
        for each in sorted(sets, key=lambda each: each.words):
            if each.low and each.exact_case is not None:
                each.exact_case.keep(each.low, each.trees)
        certificate = claims.certificate() if claims.balls else None
        return Measured(told(self.at, sets), certificate, self.at.evaluations)

    def sets(self, rivals: Sequence[int]) -> list[tuple[int, ...]]:
        """Which words move together; of K the K whose own plain balls are smallest."""
        every = range(len(self.at.places))
        match self.at.question.words:
            case "one":
                return [(word,) for word in every]
            case "all":
                return [tuple(every)]
            case number:
                if int(number) >= len(every):
                    return [tuple(every)]
                alone = [(self.low.plain_radius(self.high.begun((word,), rivals, look=False)), word) for word in every]
                return [tuple(sorted(word for _, word in sorted(alone)[: int(number)]))]


def refuse_words(words: str) -> None:
    if words not in ("one", "all") and not (words.isdecimal() and int(words) > 1):
        raise Unsupported(f"--words {words!r}: can be one, all, or a number of words that move together, from 2 on")
