"""Which page belongs to a run of `measure` or `attack`, and how it is written from the run's own files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ...runs.run_folder import Run, write_atomically
from ...runs.store import ILL_FORMED
from ..packed_rows import Page
from .attacked_sheet import attack_sheet, attacks_sheet
from .kappa_sheet import kappa_sheet
from .radius_sheet import radius_sheet
from .robust_fraction_sheet import pr_sheet, radii_sheet
from .sheet import sheet_page
from .vote_sheet import vote_sheet

Lines = Sequence[Mapping[str, Any]]


def page_of_run(run: Run, summary: Mapping[str, Any], lines: Lines) -> Page:
    """By what the run measured; the lines as the run has them, with classes by number."""
    lines = with_names(run, lines)
    match summary["quantity"]:
        case "pr":
            return sheet_page(pr_sheet(summary, lines))
        case "kappa":
            return sheet_page(kappa_sheet(summary, words_in(run.folder / "kappa.csv"), lines))
        case "msr":
            return sheet_page(radius_sheet(summary, lines))
        case "vote":
            return sheet_page(vote_sheet(summary, lines))
        case "attack":
            return sheet_page(attack_sheet(summary, lines))
    raise ValueError(f"no page of {summary['quantity']!r}")


def page_of_radii(summary: Mapping[str, Any], runs: Mapping[int, Run]) -> Page:
    return sheet_page(radii_sheet(summary, {radius: with_names(run, lines_of(run)) for radius, run in runs.items()}))


def page_of_attacks(summary: Mapping[str, Any], runs: Mapping[str, Run]) -> Page:
    return sheet_page(attacks_sheet(summary, {name: with_names(run, lines_of(run)) for name, run in runs.items()}))


def write_page(run: Run, summary: Mapping[str, Any], lines: Lines | None = None) -> None:
    """RUN/report.html; without the lines, of results.jsonl."""
    write_atomically(run.report, page_of_run(run, summary, lines_of(run) if lines is None else lines).written())


def with_names(run: Run, lines: Lines) -> list[dict[str, Any]]:
    """The same with the names of their classes, as texts.jsonl has them."""
    with reading(run.texts), run.texts.open(encoding="utf-8") as file:
        names = {one["id"]: str(one["label"]) for one in map(json.loads, file)}
    return [{**line, "label": names[line["id"]]} for line in lines]


def lines_of(run: Run) -> list[dict[str, Any]]:
    with (
        reading(run.results),
        run.results.open(encoding="utf-8") as file,
    ):  # not splitlines: texts hold line separators of Unicode
        return [dict(json.loads(line)) for line in file]


def words_in(path: Path) -> list[tuple[str, float, float]]:
    with reading(path), path.open(encoding="utf-8", newline="") as file:
        return [(row["word"], float(row["low"]), float(row["high"])) for row in csv.DictReader(file)]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A file of the run that is lost or damaged is named, not the summary beside it."""
    again = "give the command that made the run again, which writes it anew"
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); {again}") from error
    except ILL_FORMED as error:
        met = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(f"{path}: damaged ({met}); {again}") from error
