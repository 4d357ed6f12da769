"""`measure --quantity vote`: how many swaps the vote of a smoothed classifier withstands."""

from __future__ import annotations

from pathlib import Path

from ...pages.printing.json_printing import print_run
from ...pages.terminal import terminal
from ...runs.life import require
from ...runs.measured_runs import MeasureOptions
from ...smoothing.voting_runs import DELTA, SAMPLES, VoteOptions, measure_vote


def command(task: Path, out: Path, asked: MeasureOptions, *, as_json: bool = False) -> int:
    require(asked.radius is None, "--radius belongs to --quantity pr; a vote has its radius")
    require(not asked.of_radii, "--norm, --words, --units and --padding belong to --quantity msr")
    require(asked.cluster is None and not asked.require, "--cluster and --require are not for --quantity vote")
    require(not asked.brute_force and asked.euba is None, "--brute-force and --euba belong to --quantity kappa")
    samples = SAMPLES if asked.samples is None else asked.samples
    delta = DELTA if asked.delta == "0.005" else asked.delta
    options = VoteOptions(asked.limit, samples, delta, jobs=asked.jobs, resume=asked.resume, progress=True)
    outcome = measure_vote(task, out, options)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    found, released = outcome.summary, outcome.summary["released"]
    print(
        f"{found['texts']} texts: {found['certified']} with more than half of all random texts for certain, "
        f"{found['already_wrong']} answered wrongly, {found['open']} open; "
        f"of {found['all_asked']} all random texts were asked"
    )
    for radius, part in found["certified_accuracy"].items():
        print(f"robust to {radius} swaps: {part:.2%} of all texts, each at confidence {found['confidence']:g}")
    print(
        f"the released formula would claim a radius of {released['claims']} texts; of {released['greater_than_sound']} "
        f"a greater one than is sound, and of {released['vanish']} where none is"
    )
    terminal().print(found["definition"], style="dim")
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
