"""`measure --quantity vote`: how many swaps the vote of a smoothed classifier withstands."""

from __future__ import annotations

from pathlib import Path

from ...pages.printing.json_printing import print_run
from ...pages.printing.vote_printing import print_vote
from ...pages.sheets.measured_page import write_page
from ...runs.measured_runs import MeasureOptions
from ...runs.run_folder import Run
from ...smoothing.voting_runs import DELTA, SAMPLES, VoteOptions, measure_vote


def command(task: Path, out: Path, asked: MeasureOptions, *, as_json: bool = False) -> int:
    samples = SAMPLES if asked.samples is None else asked.samples
    delta = asked.delta or DELTA
    options = VoteOptions(
        asked.limit, samples, delta, jobs=asked.jobs, resume=asked.resume, progress=True, cluster=asked.cluster
    )
    outcome = measure_vote(task, out, options)
    write_page(Run(outcome.folder), outcome.summary)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    print_vote(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
