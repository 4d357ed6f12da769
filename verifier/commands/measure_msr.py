"""`measure --quantity msr`: how far the vectors of words may move before the class changes."""

from __future__ import annotations

from pathlib import Path

from ..pages.printing.json_printing import print_run
from ..pages.printing.radius_printing import print_radii
from ..radius.radius_run import measure_msr
from ..radius.radius_work import STAGE
from ..runs.measured_runs import MeasureOptions
from ..runs.run_folder import Run
from ..runs.store import Store


def command(task: Path, out: Path, asked: MeasureOptions, *, as_json: bool = False) -> int:
    """The command line's `measure --quantity msr`; the exit code."""
    outcome = measure_msr(
        task,
        out,
        asked.norm or "l2",
        asked.words or "one",
        asked.limit,
        asked.seconds,
        units=asked.units or "raw",
        padding=asked.padding,
        saliency=asked.saliency,
        lime=asked.lime or 0,
        same_part_of_speech=asked.same_part_of_speech,
        jobs=asked.jobs,
        resume=asked.resume,
        progress=True,
        cluster=asked.cluster,
    )
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    with Store.open(Run(outcome.folder).store, readonly=True) as store:
        print_radii(outcome.summary, list(store.results(STAGE)))
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code
