"""`compare`: several runs over the same texts and frozen swaps, side by side."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ...comparing.comparison_findings import findings
from ...comparing.same_question import ComparedRun, compared_runs
from ...comparing.standings import moved
from ...exit_codes import HOLDS
from ...pages.printing.compare_printing import print_comparison_of_runs
from ...pages.printing.json_printing import print_json
from ...pages.sheets.compared_sheet import compared_sheet
from ...pages.sheets.sheet import sheet_page
from ...runs.life import write_json
from ...runs.run_folder import Run, write_atomically
from ...runs.store import is_store, writing

NAME = "compare"
FILES = tuple(f"{NAME}.{ending}" for ending in ("json", "csv", "html"))


def command(folders: Sequence[Path], out: Path, *, as_json: bool = False) -> int:
    refuse_place(out)
    runs = compared_runs(folders)
    found = findings(runs)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / f"{NAME}.html", sheet_page(compared_sheet(found, runs)).written())
    write_atomically(out / f"{NAME}.csv", (row.encode() for row in csv_rows(runs)))
    write_json(out / f"{NAME}.json", found)
    if as_json:
        print_json({"folder": str(out), "exit_code": HOLDS, **found})
        return HOLDS
    print_comparison_of_runs(found, runs)
    print(f"\n{out / f'{NAME}.html'}")
    return HOLDS


def refuse_place(out: Path) -> None:
    """A run's own folder, and one with other things in it."""
    if is_store(Run(out).store):
        raise BadInput(f"{out}: the folder of a run; give --out a new folder")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: exists and is not a folder; give --out a new folder")
    strange = sorted(path.name for path in out.iterdir() if path.name not in FILES) if out.is_dir() else []
    if strange:
        raise BadInput(f"{out}: holds {strange[0]}, which is no file of a comparison; give --out a new folder")


def csv_rows(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """A row for each text: the ends of every run, the swaps of its witness, and how it moved."""
    head = [f"{run.name}: {what}" for run in runs for what in ("low", "high", "wrong", "swaps")]
    yield row_of(["id", "label", *head, *(f"{run.name}: moved" for run in runs[1:]), "text"])
    for id, text in enumerate(runs[0].texts):
        standings = [run.standing(id) for run in runs]
        cells: list[object] = [id, text["label"]]
        for run, one in zip(runs, standings, strict=True):
            cells += [end(one.low), end(one.high), int(one.wrong), witness(run.lines.get(id))]
        yield row_of([*cells, *(moved(standings[0], one) for one in standings[1:]), text["text"]])


def end(value: float) -> object:
    return "" if value == math.inf else value


def witness(line: Mapping[str, Any] | None) -> str:
    found = None if line is None else line.get("witness")
    swaps = () if found is None else found["swaps"]
    return " ".join(f"{swap['position']}:{swap['from']}>{swap['to']}" for swap in swaps)


def row_of(cells: Sequence[object]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
