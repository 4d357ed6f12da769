"""`swapproof merge`: the runs of the shards of one task, put together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...pages.printing.json_printing import print_run
from ...pages.run_tables import print_summary
from ...sharding.merged_run import merge


def command(runs: Sequence[Path], out: Path, *, as_json: bool = False) -> int:
    """The exit code is that of the verdict of all texts."""
    outcome = merge(runs, out)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    print_summary(outcome.folder, outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
