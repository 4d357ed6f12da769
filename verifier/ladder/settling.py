"""One text, from its space to its checked certificate, as the work of a station."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from swapproof.encodings.agreement import SINGLE, lost_in_float32
from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

from ..derived.deployed_beside import Beside
from ..engines.engine_table import engines_named
from ..engines.protocol import Bound, Budget, Unchecked
from ..runs.binding import Binding
from ..runs.results import lost as unsettled
from ..runs.results import result, witness_of
from ..runs.run_folder import Run
from ..runs.run_summary import STAGE
from ..runs.store import Store
from ..runs.store import intact as undamaged
from ..runs.work import Lost, Settled
from ..tasks.deployed_model import Trust
from ..tasks.inputs import Text
from ..tasks.opened_model import opened_in
from .climbing import Climb, Steps, climb
from .replay import Original
from .rereading import Reading
from .resuming import KEPT, STEP, Earlier, Spent, kept_line, left_open, read_begun, write_begun
from .run_certificates import Certificate, Checker, Denied
from .station import Station
from .text_verdict import Verdict

MOST_LOST = 2.0**-4
"""Of the largest logit, what float32 may round away of a text that proofs over the reals are published of."""
SEARCHING, CHECKING, ENDING = 0.8, 1.0, 1.1
"""Of the time for one text, when its search ends, when no proof is checked any more, and when its witness and what it
leaves open must have been checked: whatever a search finds at its end can still be checked."""


@dataclass(frozen=True)
class Settling:
    """The least number of swaps: the model's folder, what certificates are bound to, engines, time per text."""

    folder: Path
    binding: Binding
    engines: str | None
    seconds: float | None
    trust: Trust = field(default_factory=Trust)
    earlier: Mapping[int, Earlier] = field(default_factory=dict)
    """Of open texts, what was found in less time."""
    given: Given | None = None
    """The model as it was given, where that of the run was made from it."""

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = KEPT

    def open(self) -> Station:
        run = Run(self.folder)
        station = Station.of(self, Checker.open(self.binding, opened_in(run)), Beside.of(run, self.trust))
        station.smooth = True
        if self.given is not None:
            station.original = Original.of(station.model, self.given)
        return station

    def moved(self, folder: Path) -> Settling:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Settling, Set[int]]:
        """Again are settled the texts that less time left open, with nothing that did not check."""
        earlier = {}
        for id, line, kept in left_open(run, store, finished, self.seconds):
            if "contradiction" not in line:
                data = None if line["certificate"] is None else run.certificate(id).read_bytes()
                earlier[id] = Earlier(line, data, kept)
        return replace(self, earlier=earlier), earlier.keys()

    def lost(self, lost: Lost) -> dict[str, Any]:
        return unsettled(lost.text, lost.reason, lost.seconds)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return settled.kept or ("{}" if again else None)

    def end(self, started: float, share: float) -> float:
        """The end of this share of a text's time, in seconds of time.monotonic()."""
        return float("inf") if self.seconds is None else started + share * self.seconds

    def settle(self, station: Station, text: Text) -> Settled:
        """Climb the ladder; what is published has been accepted, as a whole, by the checker."""
        space, checker = text.frozen.space, station.checker
        try:
            station.prepare(space)
            refuse_lossy(station.network(space), space)
        except Unsupported as error:
            return Settled(text.id, unsettled(text, str(error), 0.0), None)
        except BadInput as error:  # of a length that was not tried
            met = f"{error}; the text has {space.length} tokens: [model] length says to how many it is padded or cut"
            return Settled(text.id, unsettled(text, met, 0.0), None)
        started = time.monotonic()
        query = Query.of(station.network(space), space, text.label)
        budget = Budget() if self.seconds is None else Budget(deadline=self.end(started, SEARCHING))
        checker.until = self.end(started, CHECKING)

        def check(bound: Bound) -> str | None:
            return checker.refusal(text, query, bound)

        before = self.earlier.get(text.id)
        with undamaged(Run(self.folder).store):
            known = None if before is None else before.known(query)
        if before is not None and (lower := before.lower(query)) is not None:
            checker.recall(text, query, lower)
        replay = station.replay.of(space)
        earlier, steps = Spent(), None
        if (begun := Run(self.folder).begun(text.id)).exists():
            if (found := read_begun(begun, query, check)) is not None and (known is None or found[0].low >= known.low):
                known, earlier = found

            def keep(state: Climb) -> None:
                spent = Spent(
                    earlier.seconds + time.monotonic() - started,
                    earlier.evaluations + budget.evaluations,
                    earlier.requests + replay.requests - requests,
                )
                write_begun(begun, query, state, spent)

            requests, steps = replay.requests, Steps(STEP, keep)
        verdict = climb(query, replay, engines_named(self.engines), budget, check, known, steps)
        verdict = earlier.added(verdict if before is None else before.added(verdict))
        verdict = as_given(station.original, text, reread(station.reading, text, verdict))
        verdict = fooling_both(station.beside, text, verdict)
        checker.until = self.end(started, ENDING)
        verdict, certificate = in_time(checker, text, query, verdict)
        kept = kept_line(self.seconds, verdict.interval.cover, query) if verdict.status == "open" else None
        refused = checker.refused_proof(text, query, verdict.refused[0]) if verdict.refused else None
        match certificate:
            case Certificate(data, levels, count, missing):
                name = f"certificates/{text.id:06d}.json"
                if missing is not None:
                    verdict = contradicted(verdict, f"the count of an open text is refused: {missing}")
                line = result(text, published(verdict), name, levels, count)
                return Settled(text.id, line, data, kept, refused)
            case None:
                return Settled(text.id, result(text, unproved(verdict), None, ()), None, kept, refused)
            case Denied(reason):
                verdict = contradicted(unproved(verdict), f"the certificate is refused: {reason}")
                return Settled(text.id, result(text, verdict, None, ()), None, kept, refused)


def refuse_lossy(network: Network, space: SwapSpace) -> None:
    """Unsupported where float32 is far from what proofs over the reals speak of: where finite masks hide a whole line,
    the scores that they are added to are rounded away."""
    if network.is_smooth and network.unit >= SINGLE:
        lost = lost_in_float32(network, np.array([space.original], dtype=np.int64))
        if not lost <= MOST_LOST:
            raise Unsupported(f"float32 changes the logits of this text by {lost:.2g} of the largest: run the model")


def reread(reading: Reading, text: Text, verdict: Verdict) -> Verdict:
    """Without its witness when that is another sentence for the model than its swaps of tokens: then these swaps should
    not have been allowed, nothing that counts swaps of this text means what it says, and the run must not be trusted.
    """
    witness = witness_of(text, verdict.interval, ())
    if witness is None or verdict.interval.high_evidence is None:
        return verdict
    judged = text.frozen.space.sentence(verdict.interval.high_evidence.swaps)
    fault = reading.misreads(witness["sentence"], judged)
    if fault is None:
        return verdict
    return contradicted(unshown(verdict), f"{fault}; leave these candidates out of the swaps")


def fooling_both(beside: Beside | None, text: Text, verdict: Verdict) -> Verdict:
    """Without its witness when that fools the network alone, and not the deployed model it was made of."""
    witness = verdict.interval.high_evidence
    unfooled = None if beside is None or witness is None else beside.unfooled(text, witness.swaps)
    return verdict if unfooled is None else because(unshown(verdict), unfooled)


def as_given(original: Original | None, text: Text, verdict: Verdict) -> Verdict:
    """Without its witness when only the model that was made from the one given is fooled by it: their sums are rounded
    otherwise beside a threshold."""
    witness, space = verdict.interval.high_evidence, text.frozen.space
    if original is None or witness is None:
        return verdict
    if original.breaks(space, np.array(space.sentence(witness.swaps), dtype=np.int64), text.label):
        return verdict
    return because(unshown(verdict), f"the sentence with {len(witness.swaps)} swaps does not fool the model as given")


def in_time(
    checker: Checker, text: Text, query: Query, verdict: Verdict
) -> tuple[Verdict, Certificate | Denied | None]:
    """The certificate, and the verdict without what could not be checked in time: first the witness, then all."""
    try:
        return verdict, checker.certificate(text, query, verdict)
    except Unchecked as late:
        shorter = because(unshown(verdict), str(late))
    try:
        return shorter, checker.certificate(text, query, shorter)
    except Unchecked as late:
        return because(unproved(shorter), str(late)), None


def because(verdict: Verdict, reason: str) -> Verdict:
    """With one more reason to be open."""
    return replace(verdict, reason=reason if verdict.reason is None else f"{verdict.reason}; {reason}")


def unshown(verdict: Verdict) -> Verdict:
    """Open, without the witness, which no step of its history tells of either."""
    interval = replace(verdict.interval, high=None, high_evidence=None)
    history = tuple(replace(step, high=None) for step in verdict.history)
    return replace(verdict, interval=interval, history=history, status="open")


def published(verdict: Verdict) -> Verdict:
    """What rounding decides is claimed at its high end only."""
    return unproved(verdict) if verdict.status == "ambiguous" else verdict


def contradicted(verdict: Verdict, contradiction: str) -> Verdict:
    return replace(verdict, status="open", reason=contradiction, contradiction=verdict.contradiction or contradiction)


def unproved(verdict: Verdict) -> Verdict:
    """Without a certificate no low end is claimed."""
    interval = replace(verdict.interval, low=0, low_float32=0, low_evidence=None)
    return replace(verdict, interval=interval)
