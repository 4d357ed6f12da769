"""What commands print with `--json`: one JSON object, and nothing else, on the standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...audit.findings import Audit, AuditCounts, Fault, Finding
from ..progress import progress
from .audit_printing import code_of


def print_json(found: Mapping[str, Any]) -> None:
    print(json.dumps(found, indent=2, ensure_ascii=False))


def print_run(folder: Path, code: int, summary: Mapping[str, Any]) -> int:
    """A run, with the content of its summary.json; the exit code."""
    print_json({"run": str(folder), "exit_code": code, "summary": summary})
    return code


def audited(audit: Audit) -> tuple[int, dict[str, Any]]:
    """The exit code, and what was accepted and refused; texts that are accepted are only counted."""
    tally, refused, faults = AuditCounts(), [], []
    with progress("check", audit.texts) as advance:
        for found in audit.findings:
            tally.add(found)
            match found:
                case Finding(id, refusal=refusal):
                    if refusal is not None:
                        refused.append({"id": id, "refusal": refusal})
                    advance(1)
                case Fault(what):
                    faults.append(what)
    code = code_of(audit, tally)
    remarks = [*audit.remarks] if tally.accepted else []
    if tally.accepted and audit.closing is not None:
        remarks.append(audit.closing())
    return code, {
        "exit_code": code,
        "accepted": tally.accepted,
        "texts": audit.texts,
        "certificates": tally.certificates,
        "screened": tally.screened,
        "samples": tally.samples,
        "refused": refused,
        "faults": faults,
        "remarks": remarks,
    }
