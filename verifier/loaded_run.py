"""A run folder as data: what was found of every text, its sentence that fools the model, and the words it could use.

Also the folder of a comparison.
"""

from __future__ import annotations

import csv
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

STAGES = {"certify": STAGE, "attack": "attack", "pr": "pr", "msr": "msr", "vote": "vote"}
"""Of the store, by what a run answers."""
KAPPA = "kappa"
"""Its texts are not settled one after the other: they stand in results.jsonl when all are known."""
COMPARED = "compare.json"


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
    def measured(self) -> tuple[float, float | None] | None:
        """What the run is about, as an interval: swaps (certify, attack), the share of sentences that keep the label
        (pr), the distance that vectors may move (msr), the swaps that a vote withstands (vote), the share of words that
        do not flip the text (kappa). An attack has no low end but 0. None of a text that was not measured."""
        if "words_that_flip_it" in self.line:
            flips, unknown, words = (self.line[name] for name in ("words_that_flip_it", "words_not_known", "words"))
            return (1 - (flips + unknown) / words, 1 - flips / words)
        names = ("min_swaps", "robust_fraction", "safe_radius", "smoothed_radius")
        ends = next((self.line[name] for name in names if self.line.get(name) is not None), None)
        if ends is None or (ends["low"] is None and ends.get("high") is None):
            return None
        return (ends["low"] or 0, ends.get("high"))

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open."""
        return self.status in ("exact", "unbreakable", "already_wrong")


@dataclass(frozen=True)
class LoadedRun:
    """A run folder, finished or not. Results are read from its store when they are asked for."""

    folder: Path
    question: str
    """`certify`, `attack`, `pr`, `msr`, `vote` or `kappa`."""

    def __iter__(self) -> Iterator[Result]:
        """By number; never all of them in memory. Of kappa, the texts that are answered rightly."""
        if self.question == KAPPA:
            yield from map(result_of, lines_in(Run(self.folder).results))
            return
        with Store.open(Run(self.folder).store, readonly=True) as store, intact(store.path):
            for line in store.results(STAGES[self.question]):
                yield result_of(line)

    def __len__(self) -> int:
        if self.question == KAPPA:
            return sum(1 for _ in self)
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

    @cached_property
    def words(self) -> dict[str, tuple[float, float]]:
        """Of kappa: every word of the vocabulary with the share of texts that it flips, the most dangerous first."""
        if self.question != KAPPA:
            raise BadInput(f"{self.folder}: a run of {self.question}; words are of measure --quantity kappa")
        path = self.folder / "kappa.csv"
        try:
            with intact(path), path.open(encoding="utf-8", newline="") as file:
                return {row["word"]: (float(row["low"]), float(row["high"])) for row in csv.DictReader(file)}
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

    def to_mlflow(self, uri: str, experiment: str = "swapproof") -> str:
        """Log it to the server or store at this address; the id of the run there."""
        from .pages.formats.mlflow_run import log_to_mlflow

        return log_to_mlflow(self.folder, self.summary, uri, experiment)

    def to_pandas(self) -> Any:
        """The texts as a DataFrame, a row for each."""
        from .pages.notebook_view import frame_of

        return frame_of(self.folder)


@dataclass(frozen=True)
class LoadedComparison:
    """What `compare` left in a folder."""

    folder: Path

    @property
    def findings(self) -> dict[str, Any]:
        """compare.json: every run by itself, and each beside the first."""
        path = self.folder / COMPARED
        with intact(path):
            return dict(json.loads(path.read_bytes()))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What changed, a sentence for each run."""
        return tuple(one["sentence"] for one in self.findings["against_the_first"])

    def _repr_html_(self) -> str:
        from .pages.notebook_view import html_of_comparison

        return html_of_comparison(self.folder, self.sentences)

    def to_pandas(self) -> Any:
        """compare.csv as a DataFrame: a row for each text."""
        from .pages.notebook_view import frame_of_file

        return frame_of_file(self.folder / "compare.csv")


def load_comparison(folder: str | Path) -> LoadedComparison:
    """What `compare` left in a folder. Raises BadInput for another one."""
    if not (Path(folder) / COMPARED).is_file():
        raise BadInput(f"{folder}: no {COMPARED}; give the --out of `swapproof compare`")
    return LoadedComparison(Path(folder))


def load(folder: str | Path) -> LoadedRun:
    """A run of `certify`, `attack` or `measure`. Raises BadInput for what is none."""
    if (Path(folder) / COMPARED).is_file():
        raise BadInput(f"{folder}: no run, but what `compare` left; load_comparison opens it")
    run = existing(Path(folder))
    with Store.open(run.store, readonly=True) as store:
        asked = store.facts().get(QUESTION)
    with intact(run.store):
        question = "certify" if asked is None else str(json.loads(asked)["quantity"])
    if question not in (*STAGES, KAPPA):
        raise BadInput(f"{folder}: a run of {question!r}, which load does not open; read its summary.json")
    return LoadedRun(run.folder, question)


def lines_in(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with intact(path), path.open(encoding="utf-8") as file:
            for raw in file:  # not splitlines: texts hold line separators of Unicode
                yield dict(json.loads(raw))
    except FileNotFoundError:
        raise BadInput(f"{path.parent}: not finished; give its command again") from None


def result_of(line: Mapping[str, Any]) -> Result:
    ends = line.get("min_swaps") or {}
    return Result(
        line["id"],
        line["text"],
        line["label"],
        line.get("predicted"),
        line.get("status", "measured"),
        ends.get("low"),
        ends.get("high"),
        line.get("level"),
        witness_of(line.get("witness")),
        line.get("seconds", 0.0),
        line,
    )


def witness_of(found: Mapping[str, Any] | None) -> Witness | None:
    if found is None:
        return None
    swaps = (Swap(swap["position"], swap["from"], swap["to"]) for swap in found["swaps"])
    return Witness(found["sentence"], tuple(swaps))
