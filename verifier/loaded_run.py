"""A run folder as data: what was found of every text, its sentence that fools the model, and the words it could use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from .runs.manifest import QUESTION
from .runs.run_folder import Run, existing
from .runs.run_summary import STAGE, summary_of
from .runs.store import Store, intact

STAGES = {"certify": STAGE, "attack": "attack", "pr": "pr"}
"""Of the store, by what a run answers."""


@dataclass(frozen=True)
class Swap:
    """The word at this position, counted from 0, replaced by another."""

    position: int
    original: str
    replacement: str


@dataclass(frozen=True)
class Witness:
    """A sentence that fools the model, by these swaps."""

    sentence: str
    swaps: tuple[Swap, ...]


@dataclass(frozen=True)
class Result:
    """What is known of one text: its line of results.jsonl with names, and the whole of it in `line`."""

    id: int
    text: str
    label: int
    predicted: int | None
    status: str
    low: int | None
    """No sentence with fewer swaps changes the answer; None in a run of another question."""
    high: int | None
    """This many do; None where no such sentence is known."""
    level: str | None
    witness: Witness | None
    seconds: float
    line: Mapping[str, Any] = field(repr=False)

    @property
    def radius(self) -> float | None:
        """The number of swaps that the text withstands: infinite where none break it."""
        if self.low is None:
            return None
        return math.inf if self.status == "unbreakable" else max(0, self.low - 1)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open."""
        return self.status in ("exact", "unbreakable", "already_wrong")


@dataclass(frozen=True)
class LoadedRun:
    """A run folder, finished or not. Results are read from its store when they are asked for."""

    folder: Path
    question: str
    """`certify`, `attack` or `pr`."""

    def __iter__(self) -> Iterator[Result]:
        """By number; never all of them in memory."""
        with Store.open(Run(self.folder).store, readonly=True) as store, intact(store.path):
            for line in store.results(STAGES[self.question]):
                yield result_of(line)

    def __len__(self) -> int:
        with Store.open(Run(self.folder).store, readonly=True) as store:
            return store.count(STAGES[self.question])

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Of every text that is settled, by number."""
        return tuple(self)

    @property
    def witnesses(self) -> dict[int, Witness]:
        """The sentences that fool the model, by the number of their text."""
        return {result.id: result.witness for result in self if result.witness is not None}

    @cached_property
    def spaces(self) -> dict[int, tuple[tuple[str, ...], ...]]:
        """The words that may stand at each position of a text, the original first, by the number of the text."""
        path = Run(self.folder).spaces
        try:
            with intact(path), path.open(encoding="utf-8") as file:
                lines = [json.loads(raw) for raw in file]
                return {line["id"]: tuple(tuple(options) for options in line["choices"]) for line in lines}
        except OSError as error:
            raise BadInput(f"{path}: cannot be read ({error.strerror}); copy all of the run") from error

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json; of an unfinished run of `certify` what follows from the texts that are settled."""
        path = Run(self.folder).summary
        if path.is_file():
            with intact(path):
                return dict(json.loads(path.read_bytes()))
        if self.question != "certify":
            raise BadInput(f"{self.folder}: not finished; give its command again")
        with Store.open(Run(self.folder).store, readonly=True) as store:
            return summary_of(store)

    @property
    def exit_code(self) -> int:
        """Of the run's verdict."""
        return int(self.summary["verdict"]["exit_code"])

    def _repr_html_(self) -> str:
        """In a notebook: the claim and the numbers."""
        from .pages.notebook_view import html_of

        return html_of(self.folder, self.summary)

    def to_pandas(self) -> Any:
        """The texts as a DataFrame, a row for each."""
        from .pages.notebook_view import frame_of

        return frame_of(self.folder)


def load(folder: str | Path) -> LoadedRun:
    """A run of `certify`, `attack` or `measure --quantity pr`. Raises BadInput for what is none."""
    run = existing(Path(folder))
    with Store.open(run.store, readonly=True) as store:
        asked = store.facts().get(QUESTION)
    with intact(run.store):
        question = "certify" if asked is None else str(json.loads(asked)["quantity"])
    if question not in STAGES:
        raise BadInput(
            f"{folder}: a run of `measure --quantity {question}`; load opens runs of certify, attack and measure "
            "--quantity pr. Read its summary.json, and results.jsonl where there is one"
        )
    return LoadedRun(run.folder, question)


def result_of(line: Mapping[str, Any]) -> Result:
    ends = line.get("min_swaps") or {}
    return Result(
        line["id"],
        line["text"],
        line["label"],
        line["predicted"],
        line["status"],
        ends.get("low"),
        ends.get("high"),
        line.get("level"),
        witness_of(line.get("witness")),
        line["seconds"],
        line,
    )


def witness_of(found: Mapping[str, Any] | None) -> Witness | None:
    if found is None:
        return None
    swaps = (Swap(swap["position"], swap["from"], swap["to"]) for swap in found["swaps"])
    return Witness(found["sentence"], tuple(swaps))
