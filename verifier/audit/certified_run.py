"""The audit of a run of `certify`: its certificates, its lines, and its accounts of itself."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from swapproof.encodings.errors import BadInput

from ..runs.inputs import Inputs
from ..runs.run_folder import Run, existing
from .examiner import COLLECTED, findings
from .findings import Audit, Fault, Finding
from .run_accounts import differences
from .run_items import Item, items_of, own_inputs


def audit_run(folder: Path, *, exact: bool = False, jobs: int | None = None) -> Audit:
    """Proofs are screened in float64 with error bounds, and those that this leaves unsure are checked by
    proofs/check.py; with `exact` all are. A run that claims nothing is neither refused nor accepted."""
    gc.set_threshold(*COLLECTED)
    run = existing(folder)
    inputs = own_inputs(run)
    items = list(items_of(run, inputs))
    named = any(item.line is None or item.line.get("certificate") is not None for item in items)
    if not items or (named and not any(item.certificate for item in items)):
        raise BadInput(f"{folder}: holds no certificates; run certify again")
    found = findings_of(run, inputs, items, jobs or os.cpu_count() or 1, exact=exact)
    missing = len(inputs.texts) - sum(item.line is not None for item in items)
    remark = f"{missing} of the run's {len(inputs.texts)} texts have no line in results.jsonl: they are not settled"
    return Audit("certify", len(items), found, (remark,) if missing else (), nothing_claimed(items))


def findings_of(run: Run, inputs: Inputs, items: list[Item], jobs: int, *, exact: bool) -> Iterator[Finding | Fault]:
    yield from findings(run, items, jobs, exact=exact)
    yield from map(Fault, differences(run, inputs))


def nothing_claimed(items: Sequence[Item]) -> str:
    """Of a run in which no text was proved or broken, whose files agree."""
    counts = Counter(str(item.line.get("status")) for item in items if item.line is not None)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return (
        f"the run's files agree, and claim nothing: no text was proved or broken ({listed}), so there is no "
        "certificate to check"
    )
