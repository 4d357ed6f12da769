"""`check` and `report` of what `measure --radius 1,2,3` leaves: a run for each radius, and the summary of all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput

from ..audit.run_accounts import names_that_differ
from ..exit_codes import HOLDS, UNCHECKED
from ..pages.pr_printing import print_measured
from ..runs.run_folder import CERTIFICATE, Run, refuse_strange
from ..runs.store import Store, is_store
from .check_measured import check_measured, question_of
from .measure_pr import shown, summary_in, together

FOLDER = re.compile(r"radius-(0|[1-9][0-9]*)")
SHARED = ("model", "vocabulary", "texts", "spaces", "total")
"""What the store of every run must say alike, for the radii to be compared."""


def runs_of(folder: Path) -> dict[int, Run]:
    """The runs in this folder, by their radius."""
    refuse_strange(Run(folder))
    found = ((FOLDER.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    runs = {int(named[1]): Run(path) for named, path in found if named and is_store(path / "store.sqlite")}
    return dict(sorted(runs.items()))


def holds_radii(folder: Path) -> bool:
    """Whether this is no run but the folder of several."""
    return not is_store(Run(folder).store) and bool(runs_of(folder))


def check_radii(folder: Path, *, exact: bool = False) -> int:
    """Each run as `check` checks it alone; last, `accepted N of N` once, for all of them."""
    runs = runs_of(folder)
    certificates = refused = 0
    for radius, run in runs.items():
        print(f"radius {radius}:", flush=True)
        with redirect_stdout(StringIO()) as said:
            code = check_measured(run.folder, asked(run, radius), exact=exact)
        lines = said.getvalue().splitlines()
        print("\n".join(lines[:-1] if code == HOLDS else lines), flush=True)
        refused += code != HOLDS
        certificates += sum(CERTIFICATE.fullmatch(path.name) is not None for path in run.certificates.glob("*"))
    faults = list(differences(folder, runs))
    for fault in faults:
        print(f"refused: {fault}")
    if refused or faults:
        print(f"refused: {refused} of {len(runs)} radii, and what is said of all of them in {len(faults)} places")
        return UNCHECKED
    print(f"accepted {certificates} of {certificates}")
    return HOLDS


def report_radii(folder: Path) -> int:
    """Show what all of them found, as the measurement did; the exit code is that of the worst."""
    return shown(folder, print_measured)


def asked(run: Run, radius: int) -> dict[str, Any]:
    question = question_of(run.folder)
    if question is None or question.get("radius") != radius:
        raise BadInput(f"{run.folder}: not a run of `measure --quantity pr --radius {radius}`")
    return question


def differences(folder: Path, runs: dict[int, Run]) -> Iterator[str]:
    """Where the summary of all says other than those of the runs, and whether they are of one task."""
    facts = []
    for run in runs.values():
        with Store.open(run.store, readonly=True) as store:
            facts.append(store.facts())
    for name in SHARED:
        if len({fact[name] for fact in facts}) > 1:
            yield f"the runs are of different tasks: {name} differs"
    stated = summary_in(folder)
    again = together([summary_in(run.folder) for run in runs.values()])
    order = stated.get("radii")  # as they were asked for
    if isinstance(order, list) and len(order) == len(runs) and all(radius in order for radius in runs):
        again["radii"] = order
    for name in names_that_differ(stated, again):
        yield f"summary.json says another {name} than the runs"
