"""PR of one text: which share of the sentences with at most r swaps keeps its label, exactly, bracketed, or sampled."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from swapproof.encodings.incremental import Differences
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.certificate import Count, encode_tree

from ..engines.protocol import Budget, Unchecked
from ..interval import Level
from ..replay import Replay
from .binomial import clopper_pearson, hoeffding, outwards
from .cells import Partition, Tally
from .certificates import tree_of
from .draws import seed_of
from .sampling import Sample, remainders, sampled, sampled_deployed, sampled_open

Kind = Literal["exact", "deterministic", "sampled"]
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
    delta: Fraction
    count: bool = True
    seconds: float | None = 10.0
    deployed: bool = False
    """Whether onnxruntime judges the samples: for models whose network cannot be read."""


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

    def widened(self, ends: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """Of the share in the part, what it says of the whole."""
        return tuple(Fraction(self.known + self.part * end) / self.total for end in ends)  # type: ignore[return-value]

    @property
    def share(self) -> Fraction:
        """The point estimate; ambiguous sentences count as failures."""
        return (self.known + self.part * Fraction(self.sample.robust, self.sample.drawn)) / self.total

    @property
    def clopper_pearson(self) -> tuple[Fraction, Fraction]:
        """Sound for both readings of ambiguous sentences: failures at the low end, robust at the high end."""
        return self.widened(self.bracket(clopper_pearson))

    @property
    def hoeffding(self) -> tuple[Fraction, Fraction]:
        return self.widened(self.bracket(hoeffding))

    def bracket(self, ends: Callable[[int, int, Fraction], tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
        sample = self.sample
        low = ends(sample.robust, sample.drawn, self.delta)[0]
        return low, ends(sample.robust + sample.ambiguous, sample.drawn, self.delta)[1]

    def line(self) -> dict[str, Any]:
        low, high = outwards(*self.clopper_pearson)
        other = outwards(*self.hoeffding)
        return {
            "share": round(float(self.share), 12),
            "clopper_pearson": {"low": low, "high": high},
            "hoeffding": {"low": other[0], "high": other[1]},
            "confidence": float(1 - self.delta),
            "samples": self.sample.drawn,
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
            return self.estimate.clopper_pearson
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
            counting = replace(budget, deadline=started + (1 - SAMPLING_SHARE) * settings.seconds)
        partition = Partition(query, settings.radius, most_enumerated(settings.seconds))
        partition.run(counting)
        try:
            found = counted(partition, settings, about, budget, check)
            if isinstance(found, RobustFraction):
                return replace(found, evaluations=counting.evaluations, seconds=time.monotonic() - started)
            reason = contradiction = f"the certificate of the count is refused: {found}"
        except Unchecked as unchecked:
            reason = f"the count is not used: {unchecked}"
        budget = Budget()
    omega = Omega(query.space, settings.radius)
    seed = seed_of(about)
    sample = sampled(Differences.of(query), settings.radius, seed, settings.samples, budget)
    estimate = None
    if sample.complete:
        estimate = Estimate(sample, omega.total, 0, omega.total, settings.delta, seed.hex())
    elif reason is None:
        reason = "out of time before anything was sampled"
    seconds = time.monotonic() - started
    return RobustFraction(
        "sampled", omega.total, None, "real", estimate, None, budget.evaluations, seconds, reason, contradiction
    )


def deployed_fraction(
    replay: Replay, space: SwapSpace, label: int, settings: Settings, about: Mapping[str, Any]
) -> RobustFraction:
    """Sampled, each sentence judged by onnxruntime: for any model."""
    started = time.monotonic()
    budget = Budget() if settings.seconds is None else Budget(started + settings.seconds)
    total, seed = Omega(space, settings.radius).total, seed_of(about)
    sample = sampled_deployed(replay, space, label, settings.radius, seed, settings.samples, budget)
    estimate = Estimate(sample, total, 0, total, settings.delta, seed.hex()) if sample.complete else None
    reason = None if sample.complete else "out of time before anything was sampled"
    spent = time.monotonic() - started
    return RobustFraction("sampled", total, None, "replay", estimate, None, budget.evaluations, spent, reason)


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
            return RobustFraction(kind, tally.total, tally, level, estimate, part, 0, 0.0, reason)
    return refusal


def estimate_open(
    partition: Partition, part: Count, settings: Settings, about: Mapping[str, Any], budget: Budget
) -> Estimate | None:
    """Whatever the count has settled is known; only the rest is sampled."""
    open = part.total - part.robust - part.broken
    query = partition.query
    tree = encode_tree(part.tree, [len(options) for options in query.space.choices], query.rivals)
    seed = seed_of({**about, "tree": base64.b64encode(tree).decode()})
    more = Budget(budget.deadline + SAMPLING_SHARE * (settings.seconds or 0.0))
    sample = sampled_open(partition.jury, remainders(partition), seed, settings.samples, more)
    if not sample.complete:
        return None
    return Estimate(sample, open, part.robust, part.total, settings.delta, seed.hex())
