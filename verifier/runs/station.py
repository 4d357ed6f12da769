"""One text, from its space to its checked certificate; a station is the process that does this for text after text."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

from ..audit.rereading import Reading
from ..engines import engines_named
from ..engines.protocol import Bound, Budget, Unchecked
from ..ladder.climbing import Verdict, climb
from ..ladder.replay import Replay
from ..ladder.run_certificates import MODEL, Binding, Certificate, Checker
from .inputs import Text
from .results import result, witness_of
from .resuming import Earlier, kept_line
from .run_folder import Run
from .store import intact as undamaged

SEARCHING, CHECKING, ENDING = 0.8, 1.0, 1.1
"""Of the time for one text, when its search ends, when no proof is checked any more, and when its witness and what it
leaves open must have been checked: whatever a search finds at its end can still be checked."""
NETWORKS = 4
"""Networks kept for a model that takes any length: each holds the weights once more."""


@dataclass(frozen=True)
class Settled:
    """The line of a text, and its certificate unless nothing could be proved or shown."""

    id: int
    line: dict[str, Any]
    certificate: bytes | None
    kept: str | None = None
    """Of an open text: for a later try with more time."""
    refused: bytes | None = None
    """A proof that the checker did not accept, for inspection."""


@dataclass(frozen=True)
class Lost:
    """The process that worked on a text died."""

    text: Text
    reason: str
    seconds: float


class Work(Protocol):
    """What is done to every text of a run, and what all of them share; processes are handed it."""

    @property
    def folder(self) -> Path: ...

    @property
    def binding(self) -> Binding: ...

    @property
    def seconds(self) -> float | None:
        """Time for one text."""

    @property
    def certified(self) -> bool:
        """Whether anything is to be certified."""

    def settle(self, station: Station, text: Text) -> Settled: ...


@dataclass(eq=False)
class Station:
    """A model loaded for reading, replaying and checking."""

    work: Work
    model: Model
    replay: Replay
    certifier: Checker | None
    networks: OrderedDict[int, Network] = field(default_factory=OrderedDict)
    prepared: set[int] = field(default_factory=set)
    """Lengths of texts whose network the checker has read."""

    @classmethod
    def open(cls, work: Work) -> Station:
        path = work.folder / MODEL
        model = open_model(path)
        checker = Checker.open(work.binding, path, work.folder) if work.certified else None
        return cls(work, model, Replay.open(model), checker)

    @property
    def checker(self) -> Checker:
        if self.certifier is None:
            raise ValueError("a certificate where nothing was to be certified")
        return self.certifier

    @cached_property
    def reading(self) -> Reading:
        return Reading.of(Run(self.work.folder))

    def prepare(self, space: SwapSpace) -> None:
        """Before the clock of a text starts: what all texts of its length share, read when the first one comes."""
        network = self.network(space)
        if self.certifier is not None and network.choices is None and space.length not in self.prepared:
            self.prepared.add(space.length)
            self.certifier.prepare(space)

    def network(self, space: SwapSpace) -> Network:
        return kept_network(self.networks, self.model, space)

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)


def kept_network(networks: OrderedDict[int, Network], model: Model, space: SwapSpace) -> Network:
    """The network for these texts' length, or for this text alone when the model computes with tokens; the last few
    are kept."""
    network = networks.pop(space.length, None)
    if network is None or network.choices not in (None, space.choices):
        network = network_of(model, space.length, space.choices)
    networks[space.length] = network
    if len(networks) > NETWORKS:
        networks.popitem(last=False)
    return network


@dataclass(frozen=True)
class Setting:
    """The least number of swaps: the model's folder, what certificates are bound to, engines, time per text."""

    folder: Path
    binding: Binding
    engines: str | None
    seconds: float | None
    earlier: Mapping[int, Earlier] = field(default_factory=dict)
    """Of open texts, what was found in less time."""

    @property
    def certified(self) -> bool:
        return True

    def end(self, started: float, share: float) -> float:
        """The end of this share of a text's time, in seconds of time.monotonic()."""
        return float("inf") if self.seconds is None else started + share * self.seconds

    def settle(self, station: Station, text: Text) -> Settled:
        """Climb the ladder; what is published has been accepted, as a whole, by the checker."""
        station.prepare(text.frozen.space)
        started = time.monotonic()
        space, checker = text.frozen.space, station.checker
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
        verdict = climb(query, station.replay, engines_named(self.engines), budget, check, known)
        verdict = verdict if before is None else before.added(verdict)
        verdict = reread(station.reading, text, verdict)
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
            case refusal:
                verdict = contradicted(unproved(verdict), f"the certificate is refused: {refusal}")
                return Settled(text.id, result(text, verdict, None, ()), None, kept, refused)


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


def in_time(checker: Checker, text: Text, query: Query, verdict: Verdict) -> tuple[Verdict, Certificate | str | None]:
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
    """Open, without the witness."""
    interval = replace(verdict.interval, high=None, high_evidence=None)
    return replace(verdict, interval=interval, status="open")


def published(verdict: Verdict) -> Verdict:
    """What rounding decides is claimed at its high end only."""
    return unproved(verdict) if verdict.status == "ambiguous" else verdict


def contradicted(verdict: Verdict, contradiction: str) -> Verdict:
    return replace(verdict, status="open", reason=contradiction, contradiction=verdict.contradiction or contradiction)


def unproved(verdict: Verdict) -> Verdict:
    """Without a certificate no low end is claimed."""
    interval = replace(verdict.interval, low=0, low_float32=0, low_evidence=None)
    return replace(verdict, interval=interval)
