"""One text after the other put to a deployed model, as the work of a process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.decision import Decision

from ..attacks.sentence_answers import unknown_word
from ..ladder.resuming import KEPT, left_open
from ..runs.results import lost as unsettled
from ..runs.run_folder import Run, write_atomically
from ..runs.run_summary import STAGE
from ..runs.store import ILL_FORMED, Store
from ..runs.work import Lost, Settled
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.inputs import Text
from ..tasks.task import read_task
from .asking import Asking
from .replayed_line import LEVEL, line_of
from .simple_prover import Found, Ways, prove
from .transcript import known_from, read_transcript, statement_of, transcript_of, written

SPENT = ("seconds", "evaluations", "requests")


@dataclass(eq=False)
class Station:
    """The model, opened from the run's own files."""

    work: Replaying
    classifier: Classifier
    decision: Decision
    unknown: str

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)


@dataclass(frozen=True)
class Replaying:
    """The least number of swaps, as far as every sentence with fewer was evaluated; `seconds` for each text."""

    folder: Path
    seconds: float | None
    trust: Trust
    threads: int = 1
    beside: bool = False
    """Whether the model is the one in the folder `deployed` of the run."""
    engines: tuple[str, ...] = ("greedy", "simple")
    """Attacks, then the cheap one, then the enumeration."""
    earlier: Mapping[int, tuple[Mapping[str, Any], bytes | None]] = field(default_factory=dict)
    """Of texts that less time left open: their lines and transcripts."""

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = KEPT

    def open(self) -> Station:
        run = Run(self.folder)
        task = read_task(run.deployed / "task.toml" if self.beside else run.task)
        classifier = open_deployed(task, self.trust, self.threads)
        return Station(self, classifier, task.model.decision, unknown_word(task.model.unknown))

    def moved(self, folder: Path) -> Replaying:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Replaying, Set[int]]:
        """Again are settled the texts that less time left open."""
        earlier = {
            id: (line, run.transcript(id).read_bytes() if line["transcript"] else None)
            for id, line, _ in left_open(run, store, finished, self.seconds)
        }
        return replace(self, earlier=earlier), earlier.keys()

    def lost(self, lost: Lost) -> dict[str, Any]:
        return unsettled(lost.text, lost.reason, lost.seconds) | {"level": LEVEL, "transcript": None}

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return settled.kept or ("{}" if again else None)

    def settle(self, station: Station, text: Text) -> Settled:
        started = time.monotonic()
        swaps = text.swaps
        asking = Asking(station.classifier, station.decision, swaps, text.label)
        statement = statement_of(text.id, station.classifier.identity, station.decision, swaps, text.label)
        transcript, before = self.known(text, statement)
        known = None if transcript is None else known_from(transcript, swaps)
        until = float("inf") if self.seconds is None else started + self.seconds

        def spent_until_now() -> dict[str, Any]:
            now = time.monotonic() - started, asking.evaluations, asking.requests
            return {name: value + before.get(name, 0) for name, value in zip(SPENT, now, strict=True)}

        def keep(found: Found) -> None:
            begun = {"transcript": transcript_of(statement, swaps, found), "spent": spent_until_now()}
            run = Run(self.folder)
            run.transcripts.mkdir(exist_ok=True)
            write_atomically(run.begun(text.id), json.dumps(begun).encode(), durable=False)

        found = prove(asking, until, known, keep, self.ways(station, text))
        transcript = transcript_of(statement, swaps, found)
        spent = spent_until_now()
        spent["seconds"] = round(spent["seconds"], 4)
        name = None if transcript is None else f"transcripts/{text.id:06d}.json"
        line = line_of(text, found, name, spent)
        kept = json.dumps({"seconds": self.seconds}) if line["status"] == "open" else None
        data = None if transcript is None else written(transcript)
        return Settled(text.id, line, None, kept=kept, transcript=data)

    def ways(self, station: Station, text: Text) -> Ways:
        attacks = [name for name in self.engines if name not in ("greedy", "simple")]
        ways = Ways(cheap="greedy" in self.engines, enumerates="simple" in self.engines)
        if not attacks:
            return ways
        from .attacks_first import AttacksFirst

        return replace(ways, attacks=AttacksFirst(attacks, station.unknown, text.id).sentences)

    def known(self, text: Text, statement: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
        """What an earlier try found of a text, and what it spent: one that was killed, or had less time."""
        with suppress(OSError, *ILL_FORMED):
            begun = json.loads(Run(self.folder).begun(text.id).read_bytes())
            found = read_transcript(json.dumps(begun["transcript"]).encode(), "")
            if found | json.loads(written(statement)) == found:  # of this text, model and decision
                return found, {name: begun["spent"][name] for name in SPENT}
        line, data = self.earlier.get(text.id, ({}, None))
        known = None if data is None else read_transcript(data, f"text {text.id}")
        return known, {name: line[name] for name in SPENT if name in line}
