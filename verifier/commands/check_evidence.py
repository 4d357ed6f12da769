"""`check`: a run, the runs of several radii, or one certificate of `verify --proof`: what the audit finds, printed.

What only some of these need is imported where it is met.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..audit.asked_again import Share, audit_replayed, is_run
from ..audit.certified_run import audit_run
from ..audit.findings import Audit
from ..audit.run_items import Unfinished
from ..exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..pages.printing.audit_printing import SHOWN, print_accepted, print_audit, print_findings
from ..pages.printing.json_printing import audited, print_json
from ..runs.measured_runs import holds_radii, question_of, runs_of
from ..runs.run_folder import Run
from ..runs.store import is_store
from ..tasks.deployed_model import Trust


def command(
    path: Path,
    *,
    exact: bool = False,
    jobs: int | None = None,
    quiet: bool = False,
    as_json: bool = False,
    share: float = 1.0,
    trust_pickle: bool = False,
    allow_endpoint: bool = False,
) -> int:
    """Whatever lies there; the exit code says what the last line says."""
    trust = Trust(trust_pickle, allow_endpoint)
    try:
        return checked(path, trust, exact=exact, jobs=jobs, quiet=quiet, as_json=as_json, share=share)
    except Unfinished as reason:
        if as_json:
            print_json(
                {"run": str(path), "exit_code": INCOMPLETE, "accepted": False, "remarks": [f"incomplete: {reason}"]}
            )
        else:
            print(f"incomplete: {reason}")
        return INCOMPLETE


def checked(
    path: Path, trust: Trust, *, exact: bool, jobs: int | None, quiet: bool, as_json: bool, share: float
) -> int:
    """The same of what is not in the middle of its beginning."""

    def shown(audit: Audit) -> int:
        if not as_json:
            return print_audit(audit, 0 if quiet else SHOWN)
        code, found = audited(audit)
        print_json({"run": str(path), **found})
        return code

    if path.is_file():
        return check_certificate(path, as_json=as_json)
    question = question_of(path) if is_store(Run(path).store) else None
    if question is not None and question["quantity"] == "attack":
        from ..audit.by_kind.attacked_run import audit_attacked

        return shown(audit_attacked(path, question, trust))
    if question is not None and question["quantity"] == "vote":
        from ..audit.by_kind.voted_run import audit_voted

        return shown(audit_voted(path, question))
    if question is not None and question["quantity"] == "msr":
        from ..audit.by_kind.measured_radius import audit_radii

        return shown(audit_radii(path, question))
    if question is not None and question["quantity"] == "kappa":
        from ..audit.by_kind.kappa_run import audit_kappa

        return shown(audit_kappa(path, exact=exact))
    if is_run(path):
        return shown(audit_replayed(path, trust, Share(share)))
    if holds_radii(path):
        return (
            check_radii_as_json(path, exact=exact) if as_json else check_radii(path, 0 if quiet else SHOWN, exact=exact)
        )
    question = question_of(path)
    if question is None:
        return shown(audit_run(path, exact=exact, jobs=jobs, trust=trust, share=Share(share)))
    from ..audit.measured_run import audit_measured

    return shown(audit_measured(path, question, exact=exact))


def check_radii(folder: Path, shown: int, *, exact: bool = False) -> int:
    """Each run as it is checked alone; last, `accepted N of N` once, for all of them."""
    from ..audit.measured_run import audit_measured
    from ..audit.several_radii import UNFINISHED_RADII, are_finished, asked, differences

    runs = runs_of(folder)
    codes, certificates, faults = [], 0, 0
    for radius, run in runs.items():
        print(f"radius {radius}:", flush=True)
        try:
            code, tally = print_findings(audit_measured(run.folder, asked(run, radius), exact=exact), shown)
        except Unfinished as reason:
            print(f"incomplete: {reason}")
            codes.append(INCOMPLETE)
            continue
        codes.append(code)
        certificates += tally.certificates
    finished = are_finished(folder, runs)
    for fault in differences(folder, runs) if finished else ():
        faults += 1
        print(f"refused: {fault.what}")
    refused = codes.count(UNCHECKED)
    if refused or faults:
        print(f"refused: {refused} of {len(runs)} radii, and what is said of all of them in {faults} places")
        return UNCHECKED
    if not finished:
        print(UNFINISHED_RADII)
    if not finished or INCOMPLETE in codes:
        return INCOMPLETE
    print_accepted(certificates)
    return HOLDS


def check_radii_as_json(folder: Path, *, exact: bool = False) -> int:
    """The same, each radius with what was found of it."""
    from ..audit.measured_run import audit_measured
    from ..audit.several_radii import UNFINISHED_RADII, are_finished, asked, differences

    runs = runs_of(folder)
    found = dict[str, dict[str, Any]]()
    for radius, run in runs.items():
        try:
            _, found[str(radius)] = audited(audit_measured(run.folder, asked(run, radius), exact=exact))
        except Unfinished as reason:
            found[str(radius)] = {"exit_code": INCOMPLETE, "accepted": False, "remarks": [f"incomplete: {reason}"]}
    finished = are_finished(folder, runs)
    faults = [fault.what for fault in differences(folder, runs)] if finished else []
    of_all = UNCHECKED if faults else HOLDS if finished else INCOMPLETE
    code = max(of_all, *(int(one["exit_code"]) for one in found.values()))
    said = {"remarks": [] if finished else [UNFINISHED_RADII], "runs": found}
    print_json({"run": str(folder), "exit_code": code, "accepted": code == HOLDS, "faults": faults, **said})
    return code


def check_certificate(path: Path, *, as_json: bool = False) -> int:
    """One certificate of `verify --proof`."""
    from ..queries.certificate_recheck import recheck

    found = recheck(path)
    if as_json:
        code = HOLDS if found.refusal is None else UNCHECKED
        said = {"accepted": code == HOLDS, "sentence": found.sentence, "refusal": found.refusal}
        print_json({"certificate": str(path), "exit_code": code, **said})
        return code
    if found.refusal is not None:
        print(f"refused {path.name}: {found.refusal}")
        print("refused 1 of 1")
        return UNCHECKED
    print(f"{path.name}: {found.sentence}")
    print_accepted(1)
    return HOLDS
