"""kappa of every word, rho, and what a sample of texts says of rho on the texts it was drawn from.

kappa(w) = texts of D+ that some single replacement by w flips / |D+|; D+: the texts answered correctly.
rho = pairs (text of D+, word) that no single replacement flips / (|D+| |V|) = 1 - mean of kappa over V.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFINITION = (
    "kappa(w): share of the correctly answered texts that some single replacement of a word by w flips; rho = 1 - mean "
    "of kappa over V. V: the words of the vocabulary that consist of letters and are one token; positions: every word "
    "of a text that is one token, unknown words included, padding not; a word replaced by itself is no flip. Texts "
    "already answered wrongly are left out and counted; one whose own answer rounding decides counts as flipped by no "
    "word in one end of an interval, by every word in the other"
)
DEVIATIONS = ("The paper's pseudo-code leaves out 1/|V| in rho; the released code counts already wrong texts as flips",)
CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True, eq=False)
class Kappa:
    """`low` and `high` [V]: texts flipped by each word, at least and at most."""

    words: tuple[str, ...]
    texts: int
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    """[texts of D+]: share of words that flip each, at least and at most, for the confidence interval."""

    def of(self, word: str) -> tuple[Fraction, Fraction]:
        number = self.words.index(word)
        return Fraction(int(self.low[number]), self.texts), Fraction(int(self.high[number]), self.texts)

    @property
    def rho(self) -> tuple[Fraction, Fraction]:
        pairs = self.texts * len(self.words)
        return 1 - Fraction(int(self.high.sum()), pairs), 1 - Fraction(int(self.low.sum()), pairs)

    def table(self) -> list[tuple[str, float, float]]:
        """word, low, high; the most dangerous words first."""
        order = np.lexsort((np.arange(len(self.words)), -self.low, -self.high))
        return [(self.words[i], int(self.low[i]) / self.texts, int(self.high[i]) / self.texts) for i in order.tolist()]


def kappa_of(words: Sequence[str], flipped: NDArray[np.bool_], open_pairs: NDArray[np.bool_] | None = None) -> Kappa:
    """From A [texts, words]; `open_pairs`: pairs of which nothing is known."""
    possible = flipped if open_pairs is None else flipped | open_pairs
    low, high = (a.sum(axis=0, dtype=np.int64) for a in (flipped, possible))
    return Kappa(tuple(words), len(flipped), low, high, flipped.mean(axis=1), possible.mean(axis=1))


def population_interval(
    least: NDArray[np.float64], most: NDArray[np.float64], confidence: Fraction = CONFIDENCE
) -> dict[str, Any]:
    """Bounds of the expectation of 1 - share over the distribution the texts were drawn from, independently.

    Hoeffding, and Maurer and Pontil's empirical Bernstein bound with the sample's variance v:
    |mean - expectation| <= sqrt(2 v ln(4/delta) / n) + 7 ln(4/delta) / (3 (n - 1)). Each is one bound below and one
    above, wrong with probability delta / 2 each; the lower one takes the greatest shares, the upper one the least.
    """
    n, delta = len(least), float(1 - confidence)
    if n < 2:
        return {"confidence": float(confidence), "hoeffding": [0.0, 1.0], "empirical_bernstein": [0.0, 1.0]}
    hoeffding = math.sqrt(math.log(2 / delta) / (2 * n))

    def bernstein(shares: NDArray[np.float64]) -> float:
        variance = float(shares.var(ddof=1))
        return math.sqrt(2 * variance * math.log(4 / delta) / n) + 7 * math.log(4 / delta) / (3 * (n - 1))

    low, high = 1.0 - float(most.mean()), 1.0 - float(least.mean())
    return {
        "confidence": float(confidence),
        "hoeffding": outwards(low - hoeffding, high + hoeffding),
        "empirical_bernstein": outwards(low - bernstein(most), high + bernstein(least)),
    }


def outwards(low: float, high: float) -> list[float]:
    """Rounded to six digits, within [0, 1]."""
    return [max(0.0, math.floor(low * 1e6) / 1e6), min(1.0, math.ceil(high * 1e6) / 1e6)]
