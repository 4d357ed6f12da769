"""One text, from its space to its checked certificate; a station is the process that does this for text after text."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.network import Network
from swapproof.encodings.query import Query
from swapproof.encodings.reading import Model, network_of, open_model

from .engines import engines_named
from .engines.protocol import Bound, Budget, Engine
from .evidence import LONGEST, MODEL, Binding, Certificate, Checker
from .inputs import Text
from .ladder import Verdict, climb
from .replay import Replay
from .results import result

CHECK_FACTOR = 5
"""Times the time for one text that checking its proof may take: the checker computes exactly, and in plain Python."""
NETWORKS = 4
"""Networks kept for a model that takes any length: each holds the weights once more."""


@dataclass(frozen=True)
class Setting:
    """What all texts of a run share: the model's folder, what certificates are bound to, engines, time per text."""

    folder: Path
    binding: Binding
    engines: str | None
    seconds: float | None


@dataclass(frozen=True)
class Settled:
    """The line of a text, and its certificate unless nothing could be proved or shown."""

    id: int
    line: dict[str, Any]
    certificate: bytes | None


@dataclass(frozen=True)
class Lost:
    """The process that worked on a text died."""

    text: Text
    reason: str
    seconds: float


@dataclass(eq=False)
class Station:
    """A model loaded for reading, replaying and checking."""

    setting: Setting
    model: Model
    replay: Replay
    checker: Checker
    engines: Sequence[Engine]
    networks: OrderedDict[int, Network] = field(default_factory=OrderedDict)

    @classmethod
    def open(cls, setting: Setting) -> Station:
        model = open_model(setting.folder / MODEL)
        return cls(
            setting,
            model,
            Replay.open(model),
            Checker.open(
                setting.binding,
                setting.folder / MODEL,
                setting.folder,
                LONGEST if setting.seconds is None else CHECK_FACTOR * setting.seconds,
            ),
            engines_named(setting.engines),
        )

    def network(self, length: int) -> Network:
        network = self.networks.pop(length, None) or network_of(self.model, length)
        self.networks[length] = network
        if len(self.networks) > NETWORKS:
            self.networks.popitem(last=False)
        return network

    def settle(self, text: Text) -> Settled:
        """Climb the ladder; what is published has been accepted, as a whole, by the checker."""
        space = text.frozen.space
        query = Query.of(self.network(space.length), space, text.label)
        seconds = self.setting.seconds
        budget = Budget() if seconds is None else Budget(deadline=time.monotonic() + seconds)

        def check(bound: Bound) -> str | None:
            return self.checker.refusal(text, query, bound)

        verdict = climb(query, self.replay, self.engines, budget, check)
        certificate = self.checker.certificate(text, query, verdict)
        match certificate:
            case Certificate(data, levels):
                name = f"certificates/{text.id:06d}.json"
                return Settled(text.id, result(text, published(verdict), name, levels), data)
            case None:
                return Settled(text.id, result(text, unproved(verdict), None, ()), None)
            case refusal:
                verdict = contradicted(unproved(verdict), f"the certificate is refused: {refusal}")
                return Settled(text.id, result(text, verdict, None, ()), None)


def published(verdict: Verdict) -> Verdict:
    """What rounding decides is claimed at its high end only."""
    return unproved(verdict) if verdict.status == "ambiguous" else verdict


def contradicted(verdict: Verdict, contradiction: str) -> Verdict:
    return replace(verdict, status="open", reason=contradiction, contradiction=verdict.contradiction or contradiction)


def unproved(verdict: Verdict) -> Verdict:
    """Without a certificate no low end is claimed."""
    interval = replace(verdict.interval, low=0, low_float32=0, low_evidence=None)
    return replace(verdict, interval=interval)
