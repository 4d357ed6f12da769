"""`certify`: the least number of swaps of every text, as intervals with evidence at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..engines.engine_table import small_proofs as smaller
from ..pages.printing.json_printing import print_run
from ..pages.run_tables import print_summary
from ..roads import certify


def command(
    task: Path,
    out: Path,
    limit: int | None,
    radius: int | None,
    engines: str | None,
    seconds: float,
    jobs: int,
    *,
    require: Sequence[str],
    small_proofs: bool,
    resume: bool,
    trust_pickle: bool = False,
    allow_endpoint: bool = False,
    as_json: bool = False,
    baseline: Path | None = None,
    cluster: str | None = None,
) -> int:
    """The exit code is that of the run's verdict."""
    engines = smaller(engines) if small_proofs else engines
    outcome = certify(
        task,
        out,
        limit,
        radius,
        engines,
        seconds,
        jobs,
        require=require,
        resume=resume,
        progress=True,
        trust_pickle=trust_pickle,
        allow_endpoint=allow_endpoint,
        baseline=baseline,
        cluster=cluster,
    )
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    print_summary(outcome.folder, outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
