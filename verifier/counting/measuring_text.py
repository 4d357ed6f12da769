"""The robust fraction of one text, from its space to its checked certificate, as the work of a station."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from swapproof.encodings.query import Query
from swapproof.encodings.word_options import inputs_of, words_of
from swapproof.proofs.writing.certificate import Count, Statement, write_certificate

from ..ladder.run_certificates import Checker
from ..ladder.station import Station
from ..ladder.truth import beaten
from ..runs.binding import Binding
from ..runs.results import opening
from ..runs.run_folder import Run
from ..runs.store import Store
from ..runs.work import Lost, Settled
from ..tasks.inputs import Text
from ..tasks.opened_model import opened_in
from .fraction import CHECKING, RobustFraction, Settings, deployed_fraction, robust_fraction

STAGE = "pr"
"""The stage of the store whose lines are results.jsonl."""
SHORT = "pr_seconds"
"""The stage that remembers which texts ran out of how much time; null where they did not, later."""


@dataclass(frozen=True)
class Measuring:
    """Of every text of a run: the model's folder, what certificates are bound to, and how a text is measured."""

    folder: Path
    binding: Binding
    settings: Settings

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = SHORT

    @property
    def seconds(self) -> float | None:
        return self.settings.seconds

    def open(self) -> Station:
        if not self.settings.count:
            return Station.of(self, None)
        return Station.of(self, Checker.open(self.binding, opened_in(Run(self.folder))))

    def moved(self, folder: Path) -> Measuring:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Measuring, Set[int]]:
        """Again are measured the texts that ran out of less time than there is now."""
        short = {id: json.loads(store.line(SHORT, id)) for id, _ in store.finished(SHORT)}
        less = {id for id, then in short.items() if then is not None and (self.seconds is None or then < self.seconds)}
        return self, less & finished

    def lost(self, lost: Lost) -> dict[str, Any]:
        return unmeasured(lost)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        """The time that a text ran out of."""
        short = out_of_time(settled.line)
        return json.dumps(self.seconds if short else None) if short or again else None

    def settle(self, station: Station, text: Text) -> Settled:
        if not self.settings.deployed:
            station.prepare(text.frozen.space)
        started = time.monotonic()
        space = text.frozen.space
        replay = station.replay.of(space)
        outputs = replay.outputs(np.array([space.original], dtype=np.int64))
        predicted = int(replay.answers(np.array([space.original], dtype=np.int64))[0])
        line = opening(text, predicted)
        rivals = tuple(rival for rival in range(outputs.shape[1]) if rival != text.label)
        about = self.about(text, rivals)
        status = self.left_out(station, text, predicted)
        if status is not None:
            line |= {"status": status, "robust_fraction": None}
            return Settled(text.id, finished(line, None, started, 0, None), None)
        if self.settings.deployed:
            found = deployed_fraction(replay.answers, space, text.label, self.settings, about)
            return Settled(text.id, self.told(line, found, None, started), None)
        query = Query.of(station.network(space), space, text.label)
        if self.seconds is not None and station.certifier is not None:
            station.certifier.until = started + CHECKING * self.seconds

        def counted(part: Count) -> Statement:
            return replace(station.checker.statement(text, query), count=part)

        found = robust_fraction(query, self.settings, about, lambda part: station.checker.refused(counted(part)))
        data = None if found.part is None else write_certificate(counted(found.part))
        name = None if data is None else f"certificates/{text.id:06d}.json"
        return Settled(text.id, self.told(line, found, name, started), data)

    def told(
        self, line: dict[str, Any], found: RobustFraction, certificate: str | None, started: float
    ) -> dict[str, Any]:
        line |= {
            "status": found.kind,
            "level": found.level,
            "radius": self.settings.radius,
            "robust_fraction": found.line(),
        }
        if found.contradiction is not None:
            line["contradiction"] = found.contradiction
        return finished(line, certificate, started, found.evaluations, found.reason)

    def left_out(self, station: Station, text: Text, predicted: int) -> str | None:
        """The status of a text whose own answer is not certainly right; None for a text to be measured."""
        if self.settings.deployed:
            return None if predicted == text.label else "already_wrong"
        space = text.frozen.space
        beats, agreed = beaten(Query.of(station.network(space), space, text.label), space.original)
        if not beats and predicted == text.label:
            return None
        return "already_wrong" if agreed else "ambiguous"

    def about(self, text: Text, rivals: tuple[int, ...]) -> dict[str, Any]:
        """What a sample's seed is the SHA-256 of: everything that is claimed but the answer."""
        return {
            "format": "swapproof sample",
            "version": 2,
            "model": self.binding.model_sha256,
            "tensors": sorted(digest for _, digest in self.binding.tensors),
            "vocabulary": self.binding.vocabulary_sha256,
            "text": hashlib.sha256(text.encoded.text.encode()).hexdigest(),
            "inputs": inputs_of(text.frozen.space),
            "words": words_of(text.frozen.space),
            "label": text.label,
            "rivals": list(rivals),
            "radius": self.settings.radius,
            "samples": self.settings.announced,
        }


def unmeasured(lost: Lost) -> dict[str, Any]:
    """The line of a text whose process died: nothing is known of it."""
    line = opening(lost.text, None) | {"status": "lost", "robust_fraction": None, "certificate": None}
    return line | {"seconds": round(lost.seconds, 4), "evaluations": 0, "reason": lost.reason}


def out_of_time(line: Mapping[str, Any]) -> bool:
    """Whether more would have been found in more time."""
    found = line["robust_fraction"]
    if found is None or found["kind"] == "exact" or ("sample" in found and found["sample"]["stopped"] == "all"):
        return False
    return found["kind"] == "deterministic" or "sample" not in found or bool(found["sample"]["stopped"] == "time")


def finished(
    line: dict[str, Any], certificate: str | None, started: float, evaluations: int, reason: str | None
) -> dict[str, Any]:
    line |= {
        "certificate": certificate,
        "seconds": round(time.monotonic() - started, 4),
        "evaluations": evaluations,
    }
    if reason is not None:
        line["reason"] = reason
    return line
