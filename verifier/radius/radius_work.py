"""Radii as the work of a run: what is settled of each text, and what the texts of a run share."""

from __future__ import annotations

import json
import time
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from ..runs.results import opening
from ..runs.run_folder import Run
from ..runs.store import Store
from ..runs.work import Lost, Settled
from ..tasks.inputs import Text
from ..tasks.task import read_task
from .ends.text_place import TextPlace
from .radius_setting import RadiusQuestion, RadiusSetting
from .text_radius import Measured, TextRadius

STAGE = "msr"
"""The stage of the store whose lines are results.jsonl."""
SHORT = "msr_seconds"
"""The stage that remembers which texts stayed open in how much time."""


@dataclass(frozen=True)
class RadiusWork:
    """Of every text of a run: the folder, what is asked, and the seconds for each."""

    folder: Path
    question: RadiusQuestion
    seconds: float

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = SHORT

    def open(self) -> RadiusSettler:
        run = Run(self.folder)
        setting = RadiusSetting.of(read_task(run.task), run.folder, every_word=True)
        question = self.question
        return RadiusSettler(setting, question, self.seconds, setting.diameter(question.norm, question.units))

    def moved(self, folder: Path) -> RadiusWork:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[RadiusWork, Set[int]]:
        """Again are measured the texts that stayed open in less time than there is now."""
        short = {id: json.loads(store.line(SHORT, id)) for id, _ in store.finished(SHORT)}
        return self, {id for id, then in short.items() if then is not None and then < self.seconds} & finished

    def lost(self, lost: Lost) -> dict[str, Any]:
        line = opening(lost.text, None) | {"status": "lost", "safe_radius": {"low": 0.0, "high": None}}
        return line | {"certificate": None, "seconds": round(lost.seconds, 4), "evaluations": 0, "reason": lost.reason}

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        is_open = settled.line["status"] == "open"
        return json.dumps(self.seconds if is_open else None) if is_open or again else None


@dataclass(frozen=True, eq=False)
class RadiusSettler:
    """One process's networks, for one text after the other."""

    setting: RadiusSetting
    question: RadiusQuestion
    seconds: float
    diameter: float

    def settle(self, text: Text) -> Settled:
        began = time.monotonic()
        widths = self.setting.widths(self.question.units)
        at = TextPlace(self.setting, self.question, text, widths, self.diameter, began + self.seconds)
        measured = TextRadius.of(at).measure()
        return Settled(text.id, self.line(text, at.predicted, measured, began), measured.certificate)

    def line(self, text: Text, predicted: int, measured: Measured, began: float) -> dict[str, Any]:
        name = None if measured.certificate is None else f"certificates/{text.id:06d}.json"
        asked = self.question.fact()
        return {
            **opening(text, predicted),
            "moving": asked.pop("words"),
            **asked,
            "dimensions": self.setting.vectors.shape[1],
            "diameter": self.diameter,
            **measured.part,
            "certificate": name,
            "seconds": round(time.monotonic() - began, 4),
            "evaluations": measured.evaluations,
        }
