"""Rules of what `measure --radius 1,2,3` leaves beside a run for each radius: one task, and a summary of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..pages.sheets.measured_page import page_of_radii
from ..runs.measured_runs import question_of, summary_in, together
from ..runs.run_folder import Run
from ..runs.store import Store
from .findings import Fault
from .run_accounts import ANOTHER_PAGE, names_that_differ

SHARED = ("model", "vocabulary", "texts", "spaces", "total")
"""What the store of every run must say alike, for the radii to be compared."""


UNFINISHED_RADII = "incomplete: not all of the radii are measured; give the same command again"


def are_finished(folder: Path, runs: Mapping[int, Run]) -> bool:
    """Whether every radius has its summary, and all of them theirs: it is the last that is written."""
    return all(run.summary.exists() for run in (Run(folder), *runs.values()))


def asked(run: Run, radius: int) -> dict[str, Any]:
    question = question_of(run.folder)
    if question is None or question.get("radius") != radius:
        raise BadInput(f"{run.folder}: not a run of `measure --quantity pr --radius {radius}`")
    return question


def differences(folder: Path, runs: Mapping[int, Run]) -> Iterator[Fault]:
    """Where the summary of all says other than those of the runs, and whether they are of one task."""
    facts = []
    for run in runs.values():
        with Store.open(run.store, readonly=True) as store:
            facts.append(store.facts())
    for name in SHARED:
        if len({fact[name] for fact in facts}) > 1:
            yield Fault(f"the runs are of different tasks: {name} differs")
    stated = summary_in(folder)
    again = together([summary_in(run.folder) for run in runs.values()])
    order = stated.get("radii")  # as they were asked for
    if isinstance(order, list) and len(order) == len(runs) and all(radius in order for radius in runs):
        again["radii"] = order
    for name in names_that_differ(stated, again):
        yield Fault(f"summary.json says another {name} than the runs")
    page = Run(folder).report
    if page.exists() and not page_of_radii(again, runs).is_at(page):
        yield Fault(ANOTHER_PAGE)
