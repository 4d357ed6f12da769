"""`swapproof merge`: the runs of the shards of one task, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...pages.printing.attack_printing import print_attack
from ...pages.printing.json_printing import print_run
from ...pages.printing.pr_printing import print_measured
from ...pages.printing.radius_printing import print_radii
from ...pages.printing.vote_printing import print_vote
from ...pages.run_tables import print_summary
from ...sharding.merged_run import merge

PRINTED: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "attack": print_attack,
    "pr": print_measured,
    "msr": partial(print_radii, lines=()),
    "vote": print_vote,
}


def command(runs: Sequence[Path], out: Path, *, as_json: bool = False) -> int:
    """The exit code is that of the verdict of all texts."""
    outcome = merge(runs, out)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    printed = PRINTED.get(outcome.summary.get("quantity", "certify"))
    if printed is None:
        print_summary(outcome.folder, outcome.summary)
    else:
        printed(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
