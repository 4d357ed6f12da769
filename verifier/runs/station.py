"""One text, from its space to its checked certificate; a station is the process that does this for text after text."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.onnx_reading import Model, network_of, open_model
from swapproof.encodings.query import Query
from swapproof.encodings.space import SwapSpace

from ..engines import engines_named
from ..engines.protocol import Bound, Budget
from ..ladder.climbing import Verdict, climb
from ..ladder.replay import Replay
from ..ladder.run_certificates import LONGEST, MODEL, Binding, Certificate, Checker
from .inputs import Text
from .results import result
from .resuming import Earlier, kept_line
from .run_folder import Run
from .store import intact as undamaged

CHECK_FACTOR = 5
"""Times the time for one text that checking its proof may take: the checker computes exactly, and in plain Python."""
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

    @classmethod
    def open(cls, work: Work) -> Station:
        path = work.folder / MODEL
        longest = LONGEST if work.seconds is None else CHECK_FACTOR * work.seconds
        model = open_model(path)
        checker = Checker.open(work.binding, path, work.folder, longest) if work.certified else None
        return cls(work, model, Replay.open(model), checker)

    @property
    def checker(self) -> Checker:
        if self.certifier is None:
            raise ValueError("a certificate where nothing was to be certified")
        return self.certifier

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

    def settle(self, station: Station, text: Text) -> Settled:
        """Climb the ladder; what is published has been accepted, as a whole, by the checker."""
        space, checker = text.frozen.space, station.checker
        query = Query.of(station.network(space), space, text.label)
        budget = Budget() if self.seconds is None else Budget(deadline=time.monotonic() + self.seconds)

        def check(bound: Bound) -> str | None:
            return checker.refusal(text, query, bound)

        before = self.earlier.get(text.id)
        with undamaged(Run(self.folder).store):
            known = None if before is None else before.known(query)
        if before is not None and (lower := before.lower(query)) is not None:
            checker.recall(text, query, lower)
        verdict = climb(query, station.replay, engines_named(self.engines), budget, check, known)
        verdict = verdict if before is None else before.added(verdict)
        certificate = checker.certificate(text, query, verdict)
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


def published(verdict: Verdict) -> Verdict:
    """What rounding decides is claimed at its high end only."""
    return unproved(verdict) if verdict.status == "ambiguous" else verdict


def contradicted(verdict: Verdict, contradiction: str) -> Verdict:
    return replace(verdict, status="open", reason=contradiction, contradiction=verdict.contradiction or contradiction)


def unproved(verdict: Verdict) -> Verdict:
    """Without a certificate no low end is claimed."""
    interval = replace(verdict.interval, low=0, low_float32=0, low_evidence=None)
    return replace(verdict, interval=interval)
