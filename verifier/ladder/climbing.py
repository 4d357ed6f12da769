"""Runs engines from cheap to dear until the interval of one text closes, believing only what it has checked itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swapproof.encodings.query import Query
from swapproof.proofs.onnx_file import Refused

from ..engines.enumeration import Enumeration, Sweep
from ..engines.protocol import (
    Bound,
    Budget,
    Claimed,
    Covered,
    Disputed,
    Doubtful,
    Engine,
    Finding,
    Findings,
    Sentence,
    Stopped,
    Unchecked,
    shared,
)
from ..interval import Interval, Proof, Witness
from .replay import NO_CLASS, Replay
from .text_verdict import Divided, Known, Status, Step, Verdict
from .truth import beaten, firm_within, refutes

Check = Callable[[Bound], str | None]
"""Builds and checks the certificate of a bound: None when accepted, else the refusal. May raise Unchecked."""


@dataclass(frozen=True)
class Steps:
    """How long an engine is asked at a time, and who keeps what is known after each."""

    seconds: float
    keep: Callable[[Climb], None]


@dataclass
class Climb:
    """The state of one text on the ladder."""

    query: Query
    replay: Replay
    check: Check
    interval: Interval
    engine: str = "replay"
    reasons: tuple[str, ...] = ()
    contradiction: str | None = None
    claims: tuple[Claimed, ...] = ()
    dispute: Mapping[str, Any] | None = None
    refused: tuple[Bound, ...] = ()
    refusal: str | None = None
    history: tuple[Step, ...] = ()
    divided: Divided | None = None
    late: bool = False
    """Whether the last proof could not be checked in time."""

    def recall(self, known: Known) -> None:
        """Begin where an earlier climb ended; its witness is replayed."""
        if known.proof is not None:
            self.interval = self.interval.raised(known.low, known.proof)
        if known.witness is not None:
            self.witness(known.witness, known.engine)
        self.interval, self.engine = self.interval.covered(known.cover), known.engine
        self.history = known.history

    def take(self, finding: Finding, engine: str) -> None:
        """Narrow the interval by a finding, after replaying or checking it."""
        match finding:
            case Sentence(tokens):
                self.witness(tokens, engine)
            case Doubtful(sentences):
                flipped = ~np.isin(self.replay.answers(sentences), (self.query.label, NO_CLASS))
                together = len(sentences) > 1
                for row in np.flatnonzero(flipped) if together else (0,):  # one alone was met in no batch yet
                    self.witness(tuple(int(token) for token in sentences[row]), engine, among=together)
            case Bound():
                self.bound(finding, engine)
            case Covered(cover):
                self.interval = self.interval.covered(cover)
            case Claimed():
                self.claims = (*self.claims, finding)
                self.compare_claims()
            case Disputed(reason, sides):
                self.contradiction, self.dispute = f"{engine}: {reason}", dict(sides)
            case Stopped(reason):
                self.reasons = (*self.reasons, f"{engine}: {reason}")

    def tell(self, engine: str, seconds: float) -> None:
        """Of what the engine did, for readers; nothing is built on it."""
        self.history = (*self.history, Step(engine, self.interval.low, self.interval.high, seconds))

    def witness(self, tokens: tuple[int, ...], engine: str, *, among: bool = False) -> None:
        """`among`: whether a batch was met in which the sentence changes the class."""
        swaps = self.query.space.swaps_of(tokens)
        if self.interval.high is not None and len(swaps) >= self.interval.high:
            return
        if not self.replay.breaks(np.array(tokens, dtype=np.int64), self.query.label):
            self.tell_apart(tokens, among=among)
            return
        if len(swaps) < self.interval.low_float32:
            self.contradiction = (
                f"a sentence of {len(swaps)} swaps fools onnxruntime, and {self.interval.low_float32 - 1} were proved "
                f"harmless for every float32 evaluation: {list(swaps)}"
            )
        self.interval = self.interval.lowered(Witness(swaps, beaten(self.query, tokens)[0], engine))
        self.engine = engine
        self.compare_claims()

    def tell_apart(self, tokens: tuple[int, ...], *, among: bool) -> None:
        """Keep a sentence that is no witness and breaks the text nevertheless, in some way of evaluating it."""
        swaps = self.query.space.swaps_of(tokens)
        if self.divided is not None and len(self.divided.swaps) <= len(swaps):
            return
        sentence, whole = np.array(tokens, dtype=np.int64), (self.query.label, NO_CLASS)
        where = {
            "over the reals": beaten(self.query, tokens)[0],
            "in onnxruntime alone": self.replay.answers(sentence[None])[0] not in whole,
            "in a batch": among or self.replay.answer_among_neighbours(sentence) not in whole,
        }
        if any(where.values()):
            self.divided = Divided(swaps, where)

    def compare_claims(self) -> None:
        """A solver's claim against the best witness: one of them is wrong where the witness is beyond its tolerance."""
        witness = self.interval.high_evidence
        wrong = [] if witness is None else [claim for claim in self.claims if claim.low > len(witness.swaps)]
        if witness is None or not wrong or self.dispute is not None:
            return
        margin = refutes(self.query, self.query.space.sentence(witness.swaps))
        if margin is not None:
            (claim, *_) = wrong
            self.contradiction = (
                f"{claim.by} claims that {claim.low - 1} swaps are harmless, and {len(witness.swaps)} were replayed "
                f"that are not: {list(witness.swaps)}"
            )
            self.dispute = {
                "claim": {"by": claim.by, "low": claim.low, "detail": claim.detail},
                "witness": {"swaps": [list(swap) for swap in witness.swaps], "margin": margin, "by": witness.engine},
            }

    def look_for_rounding(self, budget: Budget) -> None:
        """Where only the reals settle the text: replay every sentence that rounding could decide, as far as these are
        enumerated. One that fools onnxruntime makes the interval contradictory."""
        if not self.interval.closed or self.interval.low_float32 >= self.interval.low or self.query.network.is_smooth:
            return
        if firm_within(self.query, self.interval.low - 1):
            return
        steps = Sweep(self.query, budget, Enumeration.most).witnesses(self.interval)
        finding = next(steps, None)
        while finding is not None:
            self.take(finding, Enumeration.name)
            try:
                finding = steps.send(self.interval)
            except StopIteration:
                finding = None

    def bound(self, bound: Bound, engine: str) -> None:
        try:
            refusal = self.check(bound)
            if refusal is not None and bound.level != "real":
                bound = replace(bound, level="real")  # the checker's bound on rounding may be the wider one
                refusal = self.check(bound)
        except Unchecked as unchecked:
            self.reasons, self.late = (*self.reasons, f"{engine}: {unchecked}"), True
            return
        if refusal is not None:
            found = f"the proof of {engine} that {bound.low - 1} swaps are harmless is refused: {refusal}"
            self.refusal, self.refused = self.refusal or found, (*self.refused, bound)
            return
        raised = self.interval.raised(bound.low, Proof(bound.tree, bound.level, engine))
        if raised is not self.interval:
            self.interval, self.engine = raised, engine


def climb(
    query: Query,
    replay: Replay,
    engines: Sequence[Engine],
    budget: Budget,
    check: Check,
    known: Known | None = None,
    steps: Steps | None = None,
) -> Verdict:
    """Narrow min_swaps of one text; the original sentence is judged first, and settles texts already wrong.

    An engine whose proof is refused, or could not be checked in time, is not asked on: it would find the same proof
    again. The next may settle the text, and a refusal stays in the verdict. Where evidence contradicts evidence nothing
    more is asked. With `steps` an engine that can go on from what it covered is asked for so many seconds at a time.
    """
    started, requests, evaluations = time.monotonic(), replay.requests, replay.evaluations
    original = query.space.original
    state = Climb(query, replay, check, Interval(ceiling=len(query.space.swappable) + 1))
    predicted = int(replay.answers(np.array([original], dtype=np.int64))[0])
    doubt = None
    wrong, agreed = beaten(query, original)
    if not agreed:
        doubt = "the text's own margin is within the rounding of the model's arithmetic"
    elif predicted == NO_CLASS:
        doubt = "the model answers NaN"
    state.witness(original, "replay")
    if agreed and wrong != (state.interval.high == 0) and doubt is None:
        state.contradiction = (
            f"the network's logits for the text itself {'break' if wrong else 'keep'} its label beyond any rounding, "
            f"and onnxruntime answers {predicted}"
        )
    if known is not None and doubt is None and state.contradiction is None and state.interval.high != 0:
        state.recall(known)
    for number, engine in enumerate(engines):
        if state.interval.closed or state.contradiction or budget.spent:
            break
        own, began = shared(budget, engines[number + 1 :], query, state.interval), time.monotonic()
        if steps is None or not getattr(engine, "goes_on", False):
            ask(engine, state, own)
        else:
            step_by_step(engine, state, own, steps)
        if own is not budget:
            budget.evaluations += own.evaluations
        state.tell(engine.name, time.monotonic() - began)
        if steps is not None:
            steps.keep(state)
    if doubt is None and state.contradiction is None:
        state.look_for_rounding(budget)
    status, reason = judged(state, doubt, budget)
    return Verdict(
        interval=settled(state.interval),
        status=status,
        reason=reason,
        predicted=predicted,
        engine=state.engine,
        seconds=time.monotonic() - started,
        evaluations=budget.evaluations + replay.evaluations - evaluations,
        requests=replay.requests - requests,
        contradiction=state.contradiction or state.refusal,
        claims=state.claims,
        dispute=state.dispute,
        refused=state.refused,
        unproved="real" if query.network.is_smooth else "float32",
        history=state.history,
        divided=state.divided,
    )


def stopping(steps: Findings) -> Findings:
    """An engine that asks the checker itself, and is told that time is up or numbers are too large, gives up."""
    try:
        yield from steps
    except Refused as refused:
        yield Stopped(str(refused))


def ask(engine: Engine, state: Climb, budget: Budget) -> None:
    """All that it finds, taken; an engine whose proof is refused or too late is asked no further."""
    steps = stopping(engine.narrow(state.query, state.interval, budget))
    finding = next(steps, None)
    while finding is not None:
        refused, state.late = len(state.refused), False
        state.take(finding, engine.name)
        if state.contradiction or state.late or len(state.refused) > refused:
            steps.close()
            break
        try:
            finding = steps.send(state.interval)
        except StopIteration:
            finding = None


def step_by_step(engine: Engine, state: Climb, budget: Budget, steps: Steps) -> None:
    """The same, a little at a time; twice as long where a step came no further."""
    seconds, began, earlier = steps.seconds, time.monotonic(), state.history
    while True:
        before, reasons, refused = state.interval, state.reasons, len(state.refused)
        step = Budget(min(budget.deadline, time.monotonic() + seconds))
        ask(engine, state, step)
        budget.evaluations += step.evaluations
        state.tell(engine.name, time.monotonic() - began)
        steps.keep(state)
        state.history = earlier
        over = state.interval.closed or state.contradiction or state.late or len(state.refused) > refused
        if over or budget.spent or not step.spent:
            return
        state.reasons = reasons
        seconds *= 1 if state.interval is not before else 2


def judged(state: Climb, doubt: str | None, budget: Budget) -> tuple[Status, str | None]:
    interval = state.interval
    if doubt is not None:
        return "ambiguous", doubt
    if interval.contradictory:
        return "ambiguous", (
            f"over the reals no sentence with fewer than {interval.low} swaps breaks the text, and onnxruntime's "
            f"rounding lets {interval.high} break it"
        )
    if interval.high == 0:
        return "already_wrong", None
    if interval.low == interval.high:
        return "exact", None
    if interval.low == interval.ceiling:
        return "unbreakable", None
    claimed = [f"claimed by {claim.by}: {claim.low - 1} swaps are harmless (not proved)" for claim in state.claims]
    reasons = (*state.reasons, *claimed[-1:])
    if not reasons and state.divided is not None and not budget.spent:
        return "open", state.divided.said
    return "open", "; ".join(reasons) or ("out of time" if budget.spent else "no engine could do more")


def settled(interval: Interval) -> Interval:
    """Where the levels of truth contradict each other, only what holds in every float32 evaluation counts as low."""
    if not interval.contradictory:
        return interval
    return replace(interval, low=min(interval.low_float32, interval.high or 0))
