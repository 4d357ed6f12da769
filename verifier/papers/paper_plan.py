"""What a paper's protocol is made of: recipes, commands that leave folders, and tables whose cells name these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from swapproof.encodings.errors import BadInput

from ..defending.cell_steps import Step
from ..pages.sheets.sheet import Figure
from ..runs.run_folder import write_atomically
from ..tasks.task import toml_value
from .paper_data import Dataset

SizeName = Literal["small", "full"]
PARALLEL = ("certify", "attack", "measure", "defend")
"""Commands that work on several texts, and on several machines, at a time."""


@dataclass(frozen=True)
class Setting:
    """Where a paper is worked on, how large, and with which data."""

    folder: Path
    size: SizeName
    data: Mapping[str, Dataset]
    synonyms: Path
    jobs: int = 1
    cluster: str | None = None

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def pick(self, small: Any, full: Any) -> Any:
        return small if self.size == "small" else full

    def recipe(
        self,
        name: str,
        data: Dataset,
        network: Mapping[str, object],
        training: Mapping[str, object],
        *,
        vocabulary: int | None = 20_000,
        defence: Mapping[str, object] | None = None,
    ) -> Path:
        """The recipe of a network on one data set; `vocabulary` is None of one with a tokenizer of its own."""
        words = {} if vocabulary is None else {"size": vocabulary, "split": "words"}
        sections: dict[str, Mapping[str, object]] = {
            "data": {
                "train": f"../data/{data.train.name}",
                "text": "text",
                "label": "label",
                "labels": data.labels,
                "strip_html": data.name == "imdb",
                "held_out": f"../data/{data.test.name}",
            },
            "vocabulary": {**words, "length": data.length},
            "network": network,
            "training": training,
            "swaps": {"file": f"../data/{self.synonyms.name}", "max_per_word": 8},
        }
        if defence is not None:
            sections["defence"] = defence
        lines = ["# Written by swapproof paper."]
        for section, values in sections.items():
            lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
        return self.write(f"{name}.toml", "\n".join(lines) + "\n")

    def write(self, name: str, text: str) -> Path:
        """A file below the folder that a command reads."""
        path = self.folder / "recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.read_text(encoding="utf-8") != text:
            raise BadInput(f"{path}: says something else than would be written now; give --out a new folder")
        if not path.is_file():
            write_atomically(path, text.encode())
        return path

    def step(self, name: str, command: str, *arguments: object) -> Step:
        """A command whose --out is the folder `name` of the runs."""
        out = self.runs / name
        words = tuple(map(str, arguments))
        shared: tuple[str, ...] = ("--jobs", str(self.jobs)) if command in PARALLEL else ()
        if self.cluster is not None and command in PARALLEL and "kappa" not in words:
            shared += ("--cluster", self.cluster)
        return Step(out, (command, *words, "--out", str(out), *shared), self.folder)

    def bench(self, name: str, kind: str, *arguments: object) -> Step:
        """A comparison of engines: it leaves answers and a page in the folder `name` of the runs."""
        out = self.runs / name
        files = ("--json", str(out / "answers.jsonl"), "--html", str(out / "report.html"))
        return Step(out, ("bench", kind, *map(str, arguments), *files), self.folder)


@dataclass(frozen=True)
class Cell:
    """What we found, what the paper printed at the same place, and the run that it is from."""

    ours: str
    published: str = ""
    run: Path | None = None


@dataclass(frozen=True)
class Table:
    """`name` is the paper's own, such as "Table 3"."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    definition: str
    notes: tuple[str, ...] = ()
    """Footnotes: where paper and code disagree, or a definition had to be chosen."""
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    datasets: tuple[str, ...]
    steps: Callable[[Setting], Iterator[Step]]
    tables: Callable[[Setting], Iterator[Table]]
    out_of_scope: tuple[str, ...] = ()
    """What of the paper is not run, and why."""
    few: Mapping[str, int] = field(default_factory=dict)
    """Training rows at --size small, of data sets that have more than it needs."""


@dataclass(frozen=True)
class Made:
    """A finished paper: its tables, what was left out, and how every run was checked."""

    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    disagreements: Sequence[str] = ()
    """Where two runs contradict each other."""
    compared: int = 0
    """Texts that several runs of one network spoke of."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Processor seconds of every command, by its folder's name."""
    measured: str = ""
    """The day on which the last command ended."""


Told = str | tuple[str, str]
"""What we found; or that, and what was published."""


def row(labels: Sequence[str], run: Path | None, *found: Told | Cell) -> tuple[Cell, ...]:
    """`run`: the page that every number of the row is from, if it does not bring its own."""

    def cell(one: Told | Cell) -> Cell:
        if isinstance(one, Cell):
            return one
        ours, published = (one, "") if isinstance(one, str) else one
        return Cell(ours, published, run)

    return (*(Cell(label) for label in labels), *map(cell, found))


def report(run: Path) -> Path:
    return run / "report.html"


def json_in(path: Path) -> Any:
    """None where there is no such file yet."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def lines_in(run: Path) -> list[dict[str, Any]]:
    return rows_in(run / "results.jsonl")


def rows_in(path: Path) -> list[dict[str, Any]]:
    """Of a file of JSON lines; none where it is not there yet."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return []


def share(part: Mapping[str, Any] | None, digits: int = 1) -> str:
    """{"share": 0.5} as 50.0."""
    return "-" if part is None else f"{100 * part['share']:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f}"


def ends(part: Mapping[str, Any] | None, digits: int = 2, factor: float = 1.0) -> str:
    """An interval, or its one value where the ends meet."""
    if part is None or part.get("low") is None:
        return "-"
    low, high = (None if part.get(end) is None else f"{factor * part[end]:.{digits}f}" for end in ("low", "high"))
    return str(low) if low == high else f"[{low}, {high or '?'}]"


def figures(setting: Setting, run: str, method: str) -> tuple[dict[str, Any], Path]:
    """The row of a defence in the table of a run of `defend`, and where it stands."""
    path = setting.runs / run / "table.json"
    rows = (json_in(path) or {}).get("rows", ())
    found: dict[str, Any] = next((row["figures"] for row in rows if row["defence"] == method), {})
    return found, path.with_name("table.html")


def mean(found: Mapping[str, Any], name: str) -> float | None:
    part = found.get(name)
    return None if part is None else float(part["mean"])
