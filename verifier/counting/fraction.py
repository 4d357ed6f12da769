"""PR of one text: which share of the sentences with at most r swaps keeps its label, exactly, bracketed, or sampled."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from swapproof.encodings.bounds.swap_differences import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import option_counts
from swapproof.proofs.writing.certificate import Count, encode_tree

from ..engines.protocol import Budget, Unchecked
from ..interval import Level
from .binomial import hoeffding, outwards
from .cells import Partition, Tally
from .count_tree import tree_of
from .draws import seed_of
from .sampling import BATCH, Classify, remainders, sampled, sampled_deployed, sampled_open
from .stopping import Sample, Stop

Kind = Literal["exact", "deterministic", "sampled"]
COUNTING, CHECKING = 0.6, 0.9
"""Of the time of a text, when its count ends, and when its certificate must have been checked."""
SAMPLING_SHARE = 0.1
"""Of the time of a text, kept for sampling what the count leaves open."""
MOST_ENUMERATED = 10_000_000
ENUMERATED_PER_SECOND = 100_000
"""Sentences enumerated, in all and for each second of a text: the checker evaluates each in exact arithmetic."""


@dataclass(frozen=True)
class Settings:
    """How one text is measured; `count`: whether cells are counted before anything is sampled."""

    radius: int
    samples: int
    """So many; with `width` no more than so many."""
    delta: Fraction
    count: bool = True
    seconds: float | None = 10.0
    deployed: bool = False
    """Whether onnxruntime judges the samples: for models whose network cannot be read."""
    width: Fraction | None = None
    """Sampling stops as soon as the interval around the robust fraction is no wider."""
    batch: int = BATCH
    """Sentences that onnxruntime is given together."""

    def stop(self, part: int, total: int, clock: int | None = None) -> Stop:
        """For sampling `part` of `total` sentences; `clock`: where it stopped a sample that is drawn again."""
        width = None if self.width is None else self.width * total / part
        return Stop(self.samples, self.delta, width, clock)

    @property
    def announced(self) -> int | None:
        """The number of samples fixed beforehand, which the seed depends on."""
        return self.samples if self.width is None else None

    def shortfall(self, sample: Sample) -> str | None:
        """Why fewer samples were drawn, or a wider interval found, than was asked for."""
        match sample.stopped:
            case "time":
                return f"out of time after {sample.drawn:,} samples"
            case "some":
                return f"out of time after {sample.drawn:,} sentences, each judged once"
            case "most":
                return f"the interval is wider than asked for after {sample.drawn:,} samples"
            case _:
                return None


@dataclass(frozen=True)
class Estimate:
    """A share of sentences that a sample speaks of, and what follows for the whole space at confidence 1 - delta.

    `part`: the sentences sampled from, of `total`; `known`: robust ones among the others.
    """

    sample: Sample
    part: int
    known: int
    total: int
    delta: Fraction
    seed: str

    def widened(self, share: Fraction) -> Fraction:
        """The share in the whole when it is this in the part."""
        return (self.known + self.part * share) / self.total

    @property
    def share(self) -> Fraction:
        """The point estimate; ambiguous sentences count as failures."""
        return self.widened(Fraction(self.sample.robust, self.sample.drawn))

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        sample = self.sample
        if sample.listed:  # what was not judged counts as broken at the low end and as robust at the high end
            broken = sample.drawn - sample.robust - sample.ambiguous
            return self.widened(Fraction(sample.robust, self.part)), self.widened(1 - Fraction(broken, self.part))
        low, high = sample.ends(self.delta)
        return self.widened(low), self.widened(high)

    @property
    def hoeffding(self) -> tuple[Fraction, Fraction]:
        """Of a sample whose number was fixed beforehand."""
        sample = self.sample
        low = hoeffding(sample.robust, sample.drawn, self.delta)[0]
        return self.widened(low), self.widened(hoeffding(sample.robust + sample.ambiguous, sample.drawn, self.delta)[1])

    def line(self) -> dict[str, Any]:
        names = ("low", "high")
        ends = dict(zip(names, outwards(*self.ends), strict=True))
        intervals: dict[str, Any] = {"anytime": ends}
        if self.sample.listed:
            intervals = {"enumerated": ends}
        if self.sample.fixed:
            other = dict(zip(names, outwards(*self.hoeffding), strict=True))
            intervals = {"clopper_pearson": ends, "hoeffding": other}
        return {
            "share": round(float(self.share), 12),
            **intervals,
            "confidence": 1.0 if self.sample.listed else float(1 - self.delta),
            "samples": self.sample.drawn,
            "stopped": self.sample.stopped,
            "robust_samples": self.sample.robust,
            "ambiguous_samples": self.sample.ambiguous,
            "sampled_from": str(self.part),
            "seed": self.seed,
        }


@dataclass(frozen=True)
class RobustFraction:
    """[low, high] encloses PR: with certainty when counted, at confidence 1 - delta when sampled."""

    kind: Kind
    total: int
    tally: Tally | None
    level: Level | Literal["replay"]
    estimate: Estimate | None
    part: Count | None
    """For a certificate, of everything counted."""
    evaluations: int
    seconds: float
    reason: str | None = None
    contradiction: str | None = None
    """An answer that did not check: the run must not be trusted."""

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        if self.tally is not None:
            return Fraction(self.tally.robust, self.total), 1 - Fraction(self.tally.broken, self.total)
        if self.estimate is not None:
            return self.estimate.ends
        return Fraction(0), Fraction(1)

    def line(self) -> dict[str, Any]:
        """The value of `robust_fraction` in results.jsonl."""
        low, high = outwards(*self.ends)
        if self.kind == "exact":
            low = high = float(self.ends[0])
        found: dict[str, Any] = {"low": low, "high": high, "kind": self.kind, "total": str(self.total)}
        if self.tally is not None:
            found |= {
                "robust": str(self.tally.robust),
                "broken": str(self.tally.broken),
                "open": str(self.tally.open),
                "rounding_may_decide": str(self.tally.infirm),
            }
        if self.estimate is not None:
            found["sample"] = self.estimate.line()
        return found


def robust_fraction(
    query: Query, settings: Settings, about: Mapping[str, Any], check: Callable[[Count], str | None]
) -> RobustFraction:
    """`about` is the statement the seed comes from; `check` says why a count's certificate is refused, None if not.

    `check` may raise Unchecked. A count without an accepted certificate is not used: the whole space is then sampled.
    """
    started = time.monotonic()
    budget = Budget() if settings.seconds is None else Budget(started + settings.seconds)
    reason = contradiction = None
    if settings.count:
        counting = budget
        if settings.seconds is not None:
            counting = replace(budget, deadline=started + COUNTING * settings.seconds)
        partition = Partition(query, settings.radius, most_enumerated(settings.seconds))
        partition.run(counting)
        try:
            found = counted(partition, settings, about, budget, check)
            if isinstance(found, RobustFraction):
                return replace(found, evaluations=counting.evaluations, seconds=time.monotonic() - started)
            reason = contradiction = f"the certificate of the count is refused: {found}"
        except Unchecked as unchecked:
            reason = f"the count is not used: {unchecked}"
        budget = last(budget, settings)
    total, seed = Omega(query.space, settings.radius).total, seed_of(about)
    # A count that no certificate proves is not claimed by another name.
    listing, stop = not settings.count, settings.stop(total, total)
    sample = sampled(Differences.of(query), settings.radius, seed, stop, budget, listing=listing)
    estimate = Estimate(sample, total, 0, total, settings.delta, seed.hex()) if sample.complete else None
    reasons = [one for one in (reason, settings.shortfall(sample)) if one is not None]
    seconds = time.monotonic() - started
    return RobustFraction(
        kind_of(estimate),
        total,
        None,
        "real",
        estimate,
        None,
        budget.evaluations,
        seconds,
        "; ".join(reasons) or None,
        contradiction,
    )


def deployed_fraction(
    classify: Classify, space: SwapSpace, label: int, settings: Settings, about: Mapping[str, Any]
) -> RobustFraction:
    """Sampled, each sentence judged by the classifier itself: for any model."""
    started = time.monotonic()
    budget = Budget() if settings.seconds is None else Budget(started + settings.seconds)
    total, seed = Omega(space, settings.radius).total, seed_of(about)
    stop = settings.stop(total, total)
    sample = sampled_deployed(classify, space, label, settings.radius, seed, stop, budget, settings.batch)
    estimate = Estimate(sample, total, 0, total, settings.delta, seed.hex()) if sample.complete else None
    spent, reason = time.monotonic() - started, settings.shortfall(sample)
    return RobustFraction(kind_of(estimate), total, None, "replay", estimate, None, budget.evaluations, spent, reason)


def kind_of(estimate: Estimate | None) -> Kind:
    """Of what no certificate counts: where every sentence was judged nothing was sampled."""
    if estimate is None or not estimate.sample.listed:
        return "sampled"
    low, high = estimate.ends
    return "exact" if low == high else "deterministic"


def most_enumerated(seconds: float | None) -> float:
    return MOST_ENUMERATED if seconds is None else min(MOST_ENUMERATED, ENUMERATED_PER_SECOND * seconds)


def counted(
    partition: Partition,
    settings: Settings,
    about: Mapping[str, Any],
    budget: Budget,
    check: Callable[[Count], str | None],
) -> RobustFraction | str | None:
    """The count and its accepted certificate, what is open sampled; or why the certificate is refused."""
    tally = partition.tally()
    tree = tree_of(partition)
    levels: tuple[Level, ...] = ("real",)
    if partition.jury.certifiable and tally.infirm == 0:
        levels = ("float32", "real")
    refusal = None
    for level in levels:
        part = Count(partition.radius, level, tree, tally.robust, tally.broken, tally.total)
        refusal = check(part)
        if refusal is None:
            kind: Kind = "deterministic" if tally.open else "exact"
            reason = f"out of time, with {tally.open} of {tally.total} sentences in open cells" if tally.open else None
            estimate = estimate_open(partition, part, settings, about, budget) if tally.open else None
            if estimate is not None and (shortfall := settings.shortfall(estimate.sample)) is not None:
                reason = f"{reason}; sampling these: {shortfall}"
            return RobustFraction(kind, tally.total, tally, level, estimate, part, 0, 0.0, reason)
    return refusal


def last(budget: Budget, settings: Settings) -> Budget:
    """For sampling at the end: what is left of a text's time, and some in any case."""
    share = SAMPLING_SHARE * (settings.seconds or 0.0)
    return Budget(max(budget.deadline, time.monotonic() + share))


def estimate_open(
    partition: Partition, part: Count, settings: Settings, about: Mapping[str, Any], budget: Budget
) -> Estimate | None:
    """Whatever the count has settled is known; only the rest is sampled."""
    open = part.total - part.robust - part.broken
    query = partition.query
    tree = encode_tree(part.tree, option_counts(query.space), query.rivals)
    seed = seed_of({**about, "tree": base64.b64encode(tree).decode()})
    stop = settings.stop(open, part.total)
    sample = sampled_open(partition.jury, remainders(partition), seed, stop, last(budget, settings))
    if not sample.complete:
        return None
    return Estimate(sample, open, part.robust, part.total, settings.delta, seed.hex())
