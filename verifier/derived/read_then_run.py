"""Runs of a network of one layer of attention: every text is read, and what that leaves open is run.

A text that is proved about stands on a certificate; one that had to be run stands on what the model answered.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..ladder.resuming import KEPT
from ..replaying.replaying import Replaying
from ..replaying.replaying import Station as Running
from ..runs.results import lost as unsettled
from ..runs.run_folder import Run
from ..runs.run_summary import STAGE
from ..runs.store import Store
from ..runs.work import Lost, Settled, Settler
from ..tasks.inputs import Text

if TYPE_CHECKING:
    from ..ladder.settling import Settling

READING = 1 / 3
"""Of the time for one text, what reading it may take before the model is run."""
LONGEST = 64
"""Words of a text that is read: of longer ones the checker takes as long to read the network as all else together."""


@dataclass(eq=False)
class Station:
    work: ReadThenRun
    reading: Settler
    running: Running

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)


@dataclass(frozen=True)
class ReadThenRun:
    """`seconds` for each text, `reading` with its share of it."""

    folder: Path
    reading: Settling
    running: Replaying

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = KEPT

    @classmethod
    def of(cls, reading: Settling, running: Replaying) -> ReadThenRun:
        share = None if reading.seconds is None else READING * reading.seconds
        return cls(reading.folder, replace(reading, seconds=share), running)

    @property
    def seconds(self) -> float | None:
        return self.running.seconds

    def open(self) -> Station:
        return Station(self, self.reading.open(), self.running.open())

    def moved(self, folder: Path) -> ReadThenRun:
        return replace(self, folder=folder, reading=self.reading.moved(folder), running=self.running.moved(folder))

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[ReadThenRun, Set[int]]:
        """What was run is run on, and what was read is read on first."""
        ran = {id for id in finished if "transcript" in store.result(STAGE, id)}
        reading, read_again = self.reading.resumed(run, store, {*finished} - ran)
        running, run_again = self.running.resumed(run, store, ran)
        return replace(self, reading=reading, running=running), {*read_again, *run_again}

    def lost(self, lost: Lost) -> dict[str, Any]:
        return unsettled(lost.text, lost.reason, lost.seconds)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return settled.kept or ("{}" if again else None)

    def settle(self, station: Station, text: Text) -> Settled:
        if len(text.encoded.words) > LONGEST or text.id in self.running.earlier:
            return station.running.settle(text)
        started = time.monotonic()
        read = station.reading.settle(text)
        if read.line["status"] != "open" or "contradiction" in read.line:
            return read
        left = None if self.seconds is None else max(0.0, self.seconds - (time.monotonic() - started))
        ran = replace(self.running, seconds=left).settle(station.running, text)
        return ran if narrower(ran.line, read.line) else read


def narrower(ran: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """Whether running says more of a text at both ends, and not only otherwise."""
    if ran["status"] == "ambiguous":
        return False
    (low, high), (own, most) = [(line["min_swaps"]["low"], line["min_swaps"]["high"]) for line in (ran, read)]
    above, below = (float("inf") if high is None else high), (float("inf") if most is None else most)
    return low >= own and above <= below and (low, above) != (own, below)
