"""Runs of a network that was made of a deployed model: texts for which it holds are read, the others run."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ..ladder.resuming import KEPT
from ..runs.run_folder import Run
from ..runs.run_summary import STAGE
from ..runs.store import Store
from ..runs.work import Lost, Settled, Settler, Work
from ..tasks.inputs import Text


@dataclass(eq=False)
class MixedStation:
    reading: Settler
    running: Settler
    misfits: frozenset[int]

    def settle(self, text: Text) -> Settled:
        return (self.running if text.id in self.misfits else self.reading).settle(text)


@dataclass(frozen=True)
class MixedWork:
    """`misfits`: the ids of the texts on which the model is run."""

    folder: Path
    reading: Work
    running: Work
    misfits: frozenset[int]

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = KEPT

    @property
    def seconds(self) -> float | None:
        return self.reading.seconds

    def open(self) -> MixedStation:
        return MixedStation(self.reading.open(), self.running.open(), self.misfits)

    def moved(self, folder: Path) -> MixedWork:
        reading, running = self.reading.moved(folder), self.running.moved(folder)
        return replace(self, folder=folder, reading=reading, running=running)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[MixedWork, Set[int]]:
        reading, read_again = self.reading.resumed(run, store, {*finished} - self.misfits)
        running, run_again = self.running.resumed(run, store, {*finished} & self.misfits)
        return replace(self, reading=reading, running=running), {*read_again, *run_again}

    def lost(self, lost: Lost) -> dict[str, Any]:
        return (self.running if lost.text.id in self.misfits else self.reading).lost(lost)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return (self.running if settled.id in self.misfits else self.reading).kept(settled, again=again)
