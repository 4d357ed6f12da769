"""`certify`: the least number of swaps of every text, as intervals with evidence at both ends."""

from __future__ import annotations

from pathlib import Path

from ..engines import small_proofs as smaller
from ..ladder.certifying import certify
from ..pages.run_tables import print_summary


def command(
    task: Path,
    out: Path,
    limit: int | None,
    radius: int | None,
    engines: str | None,
    seconds: float,
    jobs: int,
    *,
    small_proofs: bool,
    resume: bool,
) -> int:
    """The exit code is that of the run's verdict."""
    engines = smaller(engines) if small_proofs else engines
    outcome = certify(task, out, limit, radius, engines, seconds, jobs, resume=resume, progress=True)
    print_summary(outcome.folder, outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
