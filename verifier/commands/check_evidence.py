"""`check`: a run, the runs of several radii, or one certificate of `verify --proof`: what the audit finds, printed."""

from __future__ import annotations

from pathlib import Path

from ..audit.certified_run import audit_run
from ..audit.measured_run import audit_measured
from ..audit.several_radii import asked, differences
from ..exit_codes import HOLDS, UNCHECKED
from ..pages.audit_printing import print_accepted, print_audit, print_findings
from ..queries.certificate_recheck import recheck
from ..runs.measured_runs import holds_radii, question_of, runs_of


def command(path: Path, *, exact: bool = False, jobs: int | None = None) -> int:
    """Whatever lies there; the exit code says what the last line says."""
    if path.is_file():
        return check_certificate(path)
    if holds_radii(path):
        return check_radii(path, exact=exact)
    question = question_of(path)
    if question is None:
        return print_audit(audit_run(path, exact=exact, jobs=jobs))
    return print_audit(audit_measured(path, question, exact=exact))


def check_radii(folder: Path, *, exact: bool = False) -> int:
    """Each run as it is checked alone; last, `accepted N of N` once, for all of them."""
    runs = runs_of(folder)
    certificates = refused = faults = 0
    for radius, run in runs.items():
        print(f"radius {radius}:", flush=True)
        code, tally = print_findings(audit_measured(run.folder, asked(run, radius), exact=exact))
        refused, certificates = refused + (code != HOLDS), certificates + tally.certificates
    for fault in differences(folder, runs):
        faults += 1
        print(f"refused: {fault.what}")
    if refused or faults:
        print(f"refused: {refused} of {len(runs)} radii, and what is said of all of them in {faults} places")
        return UNCHECKED
    print_accepted(certificates)
    return HOLDS


def check_certificate(path: Path) -> int:
    """One certificate of `verify --proof`."""
    found = recheck(path)
    if found.refusal is not None:
        print(f"refused {path.name}: {found.refusal}")
        print("refused 1 of 1")
        return UNCHECKED
    print(f"{path.name}: {found.sentence}")
    print_accepted(1)
    return HOLDS
