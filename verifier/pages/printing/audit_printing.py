"""What `check` prints: one line a text, what differs, and at the end why, or that all of it is accepted."""

from __future__ import annotations

from ...audit.findings import Audit, AuditCounts, Fault, Finding
from ...exit_codes import HOLDS, INCOMPLETE, UNCHECKED
from ..progress import progress

SHOWN = 24
"""Texts that are accepted have a line each, up to so many; what is refused always has one."""


def print_audit(audit: Audit, shown: int = SHOWN) -> int:
    """Last, `accepted N of N` when nothing was refused; the exit code says the same."""
    code, tally = print_findings(audit, shown)
    if code == HOLDS:
        print_accepted(tally.certificates)
    return code


def print_accepted(certificates: int) -> None:
    """Success is said once, last, and only then."""
    print(f"accepted {certificates} of {certificates}")


def print_findings(audit: Audit, shown: int = SHOWN) -> tuple[int, AuditCounts]:
    """All but the last line of success."""
    tally, accepted = AuditCounts(), 0
    with progress("check", audit.texts) as advance:
        for found in audit.findings:
            tally.add(found)
            match found:
                case Finding():
                    accepted += found.refusal is None
                    if found.refusal is not None or accepted <= shown:
                        print(line_of(audit, found), flush=True)
                    advance(1)
                case Fault(what):
                    print(f"refused: {what}")
    if accepted > shown > 0:
        print(f"and {accepted - shown:,} more texts of which nothing is refused")
    if not tally.accepted:
        print(
            f"refused {tally.refused} of {audit.texts} texts, and {tally.faults} of the things that the run's other "
            "files say"
        )
        return code_of(audit, tally), tally
    for remark in audit.remarks:
        print(remark)
    if audit.unclaimed is not None and not tally.certificates:
        print(audit.unclaimed)
        return code_of(audit, tally), tally
    if audit.closing is not None:
        print(audit.closing())
    if audit.kind in ("replay", "attack", "vote", "kappa"):
        return code_of(audit, tally), tally
    if audit.kind == "radius":
        print(f"points and words asked again; checked in exact arithmetic by check_ball.py: {tally.certificates}")
        return code_of(audit, tally), tally
    if tally.samples:
        print(f"{tally.samples} samples drawn again")
    exactly = tally.certificates - tally.screened
    print(
        f"screened in float64 with error bounds: {tally.screened}; checked in exact arithmetic by proofs/check.py: "
        f"{exactly}"
    )
    return code_of(audit, tally), tally


def code_of(audit: Audit, tally: AuditCounts) -> int:
    """The exit code of an audit whose findings were all counted."""
    if not tally.accepted:
        return UNCHECKED
    empty = audit.unclaimed is not None and not tally.certificates
    return INCOMPLETE if empty or audit.unsettled else HOLDS


def line_of(audit: Audit, found: Finding) -> str:
    name = f"{found.id:06d}.json" if found.has_certificate else f"text {found.id}"
    match audit.kind, found.refusal:
        case "certify" | "replay", None:
            return f"{name}: {found.sentence}"
        case "certify" | "replay", refusal:
            return f"refused {name}: {refusal}"
        case _, None:
            return f"text {found.id}: {found.sentence}"
        case _, refusal:
            return f"text {found.id}: refused: {refusal}"
