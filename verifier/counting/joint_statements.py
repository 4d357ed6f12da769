"""What the samples of many texts say together: the mean robust fraction, and how many texts have one above a bound.

An interval for each text at confidence 1 - delta says nothing of all of them at once. Here every statement holds
together at confidence 1 - delta. With m sampled texts:

* each gets its own interval at confidence 1 - delta' / m, and with 1 - delta' all of these hold (union bound). Means
  and numbers of texts follow from their ends; a text that was counted keeps its certain ends, or narrows them.
* if the numbers of samples were fixed beforehand, the mean of the shares found is a sum of independent draws, and
  Hoeffding's inequality for sums of different ranges allows it to be off by more than

      sqrt(ln(2 / delta'') / 2 * sum over texts of (part / total)^2 / samples) / number of texts

  with probability delta'' at most (draws of different seeds are taken as independent, as SHAKE-256 is taken as
  random everywhere here). Texts whose drawing was stopped take part with their own intervals.

Where the second applies and m > 1, delta' = delta'' = delta / 2 and both intervals of the mean hold: what they share
is stated. Else delta' = delta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .binomial import hoeffding_reach
from .fraction import Estimate
from .stopping import Sample

FINE = 1 << 80
"""Ends are rounded outwards to multiples of 2^-80 before they are added up: their denominators have no end."""
Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Measured:
    """What is known of a text: certain ends, and what a sample says."""

    low: Fraction
    high: Fraction
    estimate: Estimate | None

    def ends(self, delta: Fraction) -> Ends:
        if self.estimate is None:
            return self.low, self.high
        low, high = replace(self.estimate, delta=delta).ends
        return max(self.low, low), min(self.high, high)


@dataclass(frozen=True)
class Together:
    """Of some texts: ends of the mean, and of the share with a robust fraction above the bound."""

    mean: Ends
    above: Ends
    confidence: Fraction


def measured(fraction: Mapping[str, Any], delta: Fraction, *, samples: bool = True) -> Measured:
    """From `robust_fraction` of a line of results.jsonl; without `samples`, a counted text's certain ends only."""
    total = int(fraction["total"])
    counted = "robust" in fraction
    robust, broken = (int(fraction[name]) if counted else 0 for name in ("robust", "broken"))
    estimate = None
    if "sample" in fraction and (samples or not counted):
        stated = fraction["sample"]
        sample = Sample(stated["samples"], stated["robust_samples"], stated["ambiguous_samples"], stated["stopped"])
        estimate = Estimate(sample, int(stated["sampled_from"]), robust, total, delta, stated["seed"])
    return Measured(Fraction(robust, total), 1 - Fraction(broken, total), estimate)


def together(texts: Sequence[Measured], bound: Fraction, delta: Fraction) -> Together | None:
    """None of no texts at all."""
    if not texts:
        return None
    estimates = [text.estimate for text in texts if text.estimate is not None and not text.estimate.sample.listed]
    fixed = [one for one in estimates if one.sample.fixed]
    pooled = bool(fixed) and len(estimates) > 1
    spent = delta / 2 if pooled else delta
    ends = [text.ends(spent / max(1, len(estimates))) for text in texts]
    mean = average([low for low, _ in ends])[0], average([high for _, high in ends])[1]
    if pooled:
        low, high = pooled_mean(texts, ends, spent)
        narrow = max(mean[0], low), min(mean[1], high)
        mean = narrow if narrow[0] <= narrow[1] else mean  # they part only when one of them is wrong
    above = Fraction(sum(low > bound for low, _ in ends)), Fraction(sum(high > bound for _, high in ends))
    return Together(mean, (above[0] / len(texts), above[1] / len(texts)), 1 - delta if estimates else Fraction(1))


def pooled_mean(texts: Sequence[Measured], ends: Sequence[Ends], delta: Fraction) -> Ends:
    """The mean by Hoeffding's inequality over all samples whose number was fixed; the other texts by their ends."""
    low, high = [], []
    # The same text twice has the same seed and so the same draws: one draw that counts twice.
    shares: dict[tuple[str, int], Fraction] = {}
    for text, own in zip(texts, ends, strict=True):
        one = text.estimate
        if one is None or not one.sample.fixed:
            low.append(own[0])
            high.append(own[1])
            continue
        sample = one.sample
        low.append(one.widened(Fraction(sample.robust, sample.drawn)))
        high.append(one.widened(Fraction(sample.robust + sample.ambiguous, sample.drawn)))
        key = one.seed, sample.drawn
        shares[key] = shares.get(key, Fraction(0)) + rounded(Fraction(one.part, one.total))[1]
    squares = sum((share**2 / drawn for (_, drawn), share in shares.items()), Fraction(0))
    reach = hoeffding_reach(rounded(squares)[1], delta) / len(texts)
    return average(low)[0] - reach, average(high)[1] + reach


def average(values: Sequence[Fraction]) -> Ends:
    """Below and above the mean; both are it where all values are multiples of 2^-80."""
    below, above = (sum(rounded(value)[end] for value in values) for end in (0, 1))
    return Fraction(below) / len(values), Fraction(above) / len(values)


def rounded(value: Fraction) -> Ends:
    scaled = value * FINE
    return Fraction(scaled.__floor__(), FINE), Fraction(scaled.__ceil__(), FINE)
