"""`demo`: the example that comes with swapproof, certified, checked and shown."""

from __future__ import annotations

from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path

from ..audit.certified_run import audit_run
from ..exit_codes import UNCHECKED
from ..pages.printing.audit_printing import print_audit
from ..pages.printing.json_printing import audited, print_json
from ..pages.run_tables import highlighted, print_summary, rows_table
from ..pages.terminal import terminal
from ..roads import certify
from ..runs.run_folder import Run
from ..runs.run_summary import STAGE
from ..runs.store import Store

WITNESSES = 2
CHECKED = 3
"""Texts whose check is shown in words."""


def demo(out: Path, *, as_json: bool = False) -> int:
    """The exit code is that of the check when something did not check, else that of the run."""
    with as_file(files("swapproof.verifier").joinpath("example")) as example:
        outcome = certify(example / "task.toml", out, progress=True)
    if as_json:
        code, check = audited(audit_run(outcome.folder))
        code = UNCHECKED if code == UNCHECKED else outcome.exit_code
        print_json({"run": str(outcome.folder), "exit_code": code, "summary": outcome.summary, "check": check})
        return code
    print_summary(outcome.folder, outcome.summary)
    print()
    checked = print_audit(audit_run(outcome.folder), CHECKED)
    print()
    console = terminal()
    with Store.open(Run(outcome.folder).store, readonly=True) as store:
        lines = list(store.results(STAGE))
    console.print(rows_table(lines, 0, console.width))
    fooled = (line for line in lines if line["status"] == "exact" and line["min_swaps"]["low"] > 0)
    labels = outcome.summary["labels"]
    for line in islice(sorted(fooled, key=lambda line: (line["min_swaps"]["low"], line["id"])), WITNESSES):
        console.print()
        console.print(f"Text {line['id']}, {labels[line['label']]}, until these words are swapped:")
        console.print(highlighted(line))
    console.print()
    console.print(f"The run folder: {outcome.folder}, with report.html", soft_wrap=True)
    return UNCHECKED if checked == UNCHECKED else outcome.exit_code
