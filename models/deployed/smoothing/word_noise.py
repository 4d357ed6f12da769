"""The random texts of RanMASK and SAFER: how many there are, which the n-th is, and how far swaps move them.

Swaps of r words turn one distribution of texts into another. `shift(r)` bounds how much more or less often any event
happens then (total variation), whichever r words are swapped:

    RanMASK   1 - C(h - r, k) / C(h, k)      h words, k of them kept: the chance that a swapped word is kept
    SAFER     1 - (1 - t_1) ... (1 - t_r)    t_i the greatest of the words' 1 - |P_w & P_v| / max(|P_w|, |P_v|), P_w the
                                             word and its synonyms, over what v the word w may become
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

FEWEST_KEPT = 2
"""Words of a text that RanMASK keeps, whatever the rate, as released."""


class WordNoise(Protocol):
    """Texts as lists of words; all outcomes are equally likely."""

    @property
    def name(self) -> str: ...

    def outcomes(self, words: Sequence[str]) -> int: ...

    def outcome(self, words: Sequence[str], number: int) -> list[str]: ...

    def shifts(self, words: Sequence[str], options: Sequence[Sequence[str]]) -> list[Fraction]:
        """Of r = 1, 2, ... swaps, up to the number of words that have any."""


@dataclass(frozen=True)
class Masking:
    """RanMASK: of h words the rounded share `rate` becomes `mask`."""

    rate: float
    mask: str

    name = "ranmask"

    def kept(self, words: int) -> int:
        hidden = round(words * self.rate)
        return words - max(0, min(hidden, words - FEWEST_KEPT))

    def outcomes(self, words: Sequence[str]) -> int:
        return math.comb(len(words), self.kept(len(words)))

    def outcome(self, words: Sequence[str], number: int) -> list[str]:
        """The kept words are the n-th combination in the order of their places."""
        left, found = self.kept(len(words)), []
        for place, word in enumerate(words):
            keeping = math.comb(len(words) - place - 1, left - 1) if left else 0
            if number < keeping:
                found.append(word)
                left -= 1
            else:
                found.append(self.mask)
                number -= keeping
        return found

    def shifts(self, words: Sequence[str], options: Sequence[Sequence[str]]) -> list[Fraction]:
        count, kept = len(words), self.kept(len(words))
        movable = sum(len(others) > 1 for others in options)
        every = math.comb(count, kept)
        return [1 - Fraction(math.comb(count - swaps, kept), every) for swaps in range(1, movable + 1)]


@dataclass(frozen=True)
class Substituting:
    """SAFER: every word becomes one of itself and its synonyms; in lower case, so that sets say all."""

    table: Mapping[str, tuple[str, ...]]

    name = "safer"

    def around(self, word: str) -> tuple[str, ...]:
        """P_w, the word itself first."""
        return tuple(dict.fromkeys((word.lower(), *(other.lower() for other in self.table.get(word.lower(), ())))))

    def outcomes(self, words: Sequence[str]) -> int:
        return math.prod(len(self.around(word)) for word in words)

    def outcome(self, words: Sequence[str], number: int) -> list[str]:
        found = []
        for word in reversed(words):
            around = self.around(word)
            number, place = divmod(number, len(around))
            found.append(around[place])
        return found[::-1]

    def apart(self, word: str, other: str) -> Fraction:
        """t: total variation of the two uniform distributions."""
        here, there = set(self.around(word)), set(self.around(other))
        return 1 - Fraction(len(here & there), max(len(here), len(there)))

    def shifts(self, words: Sequence[str], options: Sequence[Sequence[str]]) -> list[Fraction]:
        far = [
            max(self.apart(word, other) for other in others[1:])
            for word, others in zip(words, options, strict=True)
            if len(others) > 1
        ]
        found, same = [], Fraction(1)
        for most in sorted(far, reverse=True):
            same *= 1 - most
            found.append(1 - same)
        return found
