"""A paper worked through: every command of its plan, every run checked, and its tables as page, LaTeX and JSON."""

from __future__ import annotations

import datetime
import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..defending.cell_steps import ANSWERED, Command, Step, as_process, take
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..pages.sheets.sheet import sheet_page
from ..runs.life import write_json
from ..runs.run_folder import write_atomically
from .paper_agreement import compared
from .paper_data import Dataset, datasets, synonyms_in
from .paper_estimate import expected
from .paper_page import latex_of, sheet_of
from .paper_plan import Made, Paper, Setting, SizeName, Table, json_in

NAME = "paper.json"


@dataclass(frozen=True)
class PaperOptions:
    size: SizeName = "small"
    data: Path | None = None
    jobs: int = 1
    cluster: str | None = None


def work_through(
    paper: Paper,
    out: Path,
    options: PaperOptions,
    *,
    command: Command = as_process,
    said: Callable[[str], None] = lambda line: None,
) -> tuple[Made, int]:
    """The same call goes on where a killed one was. The tables, and the exit code."""
    if options.data is not None and not options.data.is_dir():
        raise BadInput(f"--data {options.data}: no such folder")
    question = {"paper": paper.name, "size": options.size}
    refuse_strange(out, question)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / NAME, question | {"unfinished": True})
    folder = out.absolute()
    found, remarks = datasets(
        paper.datasets, options.data, folder / "data", paper.few if options.size == "small" else None
    )
    if not found:
        raise BadInput(f"none of the paper's data sets is there: {'; '.join(remarks)}")
    synonyms, from_where = synonyms_in(options.data, folder / "data")
    remarks += [origin(one) for one in found.values()]
    remarks.append(f"Synonyms: {from_where}; at most eight a word.")
    setting = Setting(folder, options.size, found, synonyms, options.jobs, options.cluster)
    setting.runs.mkdir(exist_ok=True)
    steps = list(paper.steps(setting))
    lines = [f"swapproof {shlex.join(step.named_from_home)}\n" for step in steps]
    write_atomically(out / "commands.sh", ("#!/bin/sh\n# In this folder.\n" + "".join(lines)).encode())
    said(expected(paper, setting, steps))
    failed = list(taken(steps, command, said))
    runs = runs_in(setting.runs)
    checked = {run.relative_to(folder).as_posix(): check(run, command, said) for run in runs}
    remarks += [f"{run.relative_to(folder).as_posix()} says little: {one}" for run in runs for one in vacuous_in(run)]
    agreed = compared(runs, folder)
    code = HOLDS if not failed and all(one == HOLDS for one in checked.values()) else INCOMPLETE
    code = UNCHECKED if UNCHECKED in checked.values() or agreed.disagreements else code
    made = Made(
        tuple(paper.tables(setting)),
        (*failed, *remarks),
        checked,
        tuple(agreed.disagreements),
        agreed.texts,
        spent(steps),
        last_day(steps),
    )
    publish(paper, setting, made, question, code)
    return made, code


def origin(data: Dataset) -> str:
    there, taken = data.rows
    learned = f"{taken:,} of {there:,}" if taken < there else f"{taken:,}"
    return f"{data.title}: from {data.from_where}, learned from {learned} texts."


def spent(steps: Sequence[Step]) -> dict[str, float]:
    """Processor seconds of every step that has ended, by its folder's name."""
    notes = ((step, json_in(step.done) or {}) for step in steps)
    return {step.out.name: note["cpu_seconds"] for step, note in notes if note.get("cpu_seconds") is not None}


def last_day(steps: Sequence[Step]) -> str:
    """On which a command ended."""
    ended = [step.done.stat().st_mtime for step in steps if step.done.is_file()]
    return datetime.date.fromtimestamp(max(ended)).isoformat() if ended else ""


def refuse_strange(out: Path, question: dict[str, str]) -> None:
    """A folder of something else, or of another paper or size."""
    before = json_in(out / NAME)
    if before is None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{out}: holds other things than a paper's tables; give --out a new folder")
        return
    for key, value in question.items():
        if before.get(key) != value:
            raise BadInput(f"{out}: of {key} {before.get(key)}, not {value}; give --out a new folder")


def taken(steps: Sequence[Step], command: Command, said: Callable[[str], None]) -> Iterator[str]:
    """Every step in turn; what failed, a line each: what needs it fails too, and the rest goes on."""
    begun, worked = time.monotonic(), 0
    for number, step in enumerate(steps):
        fresh = not step.done.is_file()
        if step.arguments[0] == "bench":
            step.out.mkdir(parents=True, exist_ok=True)
        ended = take(step, command, said)
        worked += fresh
        if ended.code not in ANSWERED:
            reason = (ended.said or f"exit code {ended.code}").replace(f"{step.home}/", "")
            yield f"`swapproof {step.arguments[0]}` for {step.out.name}: {reason}"
        left = len(steps) - number - 1
        if fresh and left:
            spent = time.monotonic() - begun
            said(f"{number + 1} of {len(steps)} commands; about {left * spent / worked / 60:.0f} min left at this pace")


def runs_in(folder: Path) -> list[Path]:
    """Every folder below that `check` checks."""
    found = sorted(path.parent for path in folder.rglob("manifest.json"))
    return [run for run in found if (run / "results.jsonl").is_file()]


def vacuous_in(run: Path) -> Sequence[str]:
    """Why a run of `certify` says little of its network."""
    return tuple((json_in(run / "summary.json") or {}).get("vacuous") or ())


def check(run: Path, command: Command, said: Callable[[str], None]) -> int:
    said(f"swapproof check {run} --quiet")
    return command(["check", str(run), "--quiet"]).code


def publish(paper: Paper, setting: Setting, made: Made, question: dict[str, str], code: int) -> None:
    folder = setting.folder
    write_atomically(folder / "paper.html", sheet_page(sheet_of(paper, setting, made, code)).written())
    write_atomically(folder / "paper.tex", latex_of(paper, made.tables).encode())
    write_json(folder / NAME, {**question, "title": paper.title, "exit_code": code, **as_json(setting, made)})


def as_json(setting: Setting, made: Made) -> dict[str, Any]:
    def told(table: Table) -> dict[str, Any]:
        rows = [[named(setting, asdict(cell)) for cell in row] for row in table.rows]
        return {"name": table.name, "caption": table.caption, "columns": table.columns, "rows": rows,
                "definition": table.definition, "notes": table.notes}  # fmt: skip

    tables = [told(table) for table in made.tables]
    found = {"tables": tables, "remarks": list(made.remarks), "checked": dict(made.checked),
             "disagreements": list(made.disagreements), "compared_texts": made.compared,
             "measured": made.measured, "cpu_seconds": round(sum(made.costs.values()), 1),
             "cpu_seconds_of": dict(made.costs)}  # fmt: skip
    return dict(json.loads(json.dumps(found)))


def named(setting: Setting, cell: dict[str, Any]) -> dict[str, Any]:
    run = cell["run"]
    return cell | {"run": None if run is None else run.relative_to(setting.folder).as_posix()}
