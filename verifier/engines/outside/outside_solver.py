"""The loop of every outside solver: is one swap fewer than the best witness enough? Down until a solver says no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from swapproof.encodings.bounds.swap_differences import DOUBLE, Differences
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.query import Query

from ...interval import Interval
from ..greedy import descent
from ..protocol import Budget, Claimed, Disputed, Engine, Findings, Sentence, Stopped


@dataclass(frozen=True)
class Decision:
    """A solver's answer about at most k swaps: a sentence that breaks the text, none there, or why it does not say."""

    outcome: Literal["broken", "harmless", "unsettled"]
    by: str = ""
    tokens: tuple[int, ...] = ()
    detail: str = ""
    certain: bool = True
    """Whether the sentence must break the network over the reals, or may only do so."""


Decide = Callable[[int, Interval], Decision]
BOUNDS = "bounds"
"""Who claims what was settled before any solver was asked."""


def nothing_seen(top: int) -> int:
    return 0


Look = Callable[[int], int]
"""Of at most so many swaps, how many bounds alone call harmless."""


def narrowed(
    query: Query,
    interval: Interval,
    budget: Budget,
    decide: Decide,
    *,
    upwards: bool,
    prover: Engine | None,
    look: Look = nothing_seen,
) -> Findings:
    """Sentences, claims, and proofs of the claims where the prover finds one in the time there is.

    `upwards`: from the fewest swaps on, for solvers whose work grows with k faster than anything. The exact
    engine, as a prover, proves at once all swaps below a witness, so a solver's optimum is what tells it where to look.
    """
    asking = asked(query, interval, budget, decide, look, upwards=upwards)
    finding = next(asking, None)
    while finding is not None:
        interval = yield finding
        if isinstance(finding, Stopped):
            return
        try:
            finding = asking.send(interval)
        except StopIteration:
            finding = None
    if prover is not None and not interval.closed:
        yield from prover.narrow(query, interval, budget)


def asked(query: Query, interval: Interval, budget: Budget, decide: Decide, look: Look, *, upwards: bool) -> Findings:
    count = len(query.space.swappable)
    if interval.high is None and not interval.closed:
        differences = Differences.of(query)
        errors = differences.evaluation_errors(count, DOUBLE)
        for rival in range(len(query.rivals)):
            tokens = descent(differences, errors, rival, budget)
            if tokens is not None:
                interval = yield Sentence(tokens)
    harmless = max(interval.low - 1, 0)
    """Swaps of which nothing is left to ask: proved, or claimed."""
    seen = 0 if interval.closed else look(count if interval.high is None else interval.high - 1)
    if seen > harmless:
        harmless = seen
        interval = yield Claimed(seen + 1, BOUNDS, "before any solver was asked")
    while not interval.closed:
        top = count if interval.high is None else interval.high - 1
        if top <= harmless:
            return
        k = harmless + 1 if upwards else top
        decision = decide(k, interval)
        match decision.outcome:
            case "unsettled":
                yield Stopped(f"{k} swaps: {decision.detail}")
                return
            case "broken":
                before = interval
                interval = yield Sentence(decision.tokens)
                if interval is not before:
                    continue
                if decision.certain and not exactly_beaten(query, decision.tokens)[0]:
                    yield dispute(query, decision, k)
                else:
                    yield Stopped(f"{decision.by}: a sentence so near the border that onnxruntime keeps its class")
                return
            case "harmless":
                harmless = k
                interval = yield Claimed(k + 1, decision.by, decision.detail)


def dispute(query: Query, decision: Decision, k: int) -> Disputed:
    """The solver's sentence beside its evaluation."""
    from swapproof.encodings.evaluation import logits

    swaps = query.space.swaps_of(decision.tokens)
    found = logits(query.network, np.array([decision.tokens], dtype=np.int64))[0]
    return Disputed(
        f"{decision.by}'s sentence of {len(swaps)} swaps does not break the network",
        {
            "solver": {"by": decision.by, "k": k, "swaps": [list(swap) for swap in swaps], "detail": decision.detail},
            "evaluation": {"logits": found.tolist(), "label": query.label},
        },
    )
