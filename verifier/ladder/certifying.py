"""Runs of `certify`: every text of a task settled, stored at once, and summed up; a killed run goes on where it was."""

from __future__ import annotations

import json
import math
from pathlib import Path

from swapproof.encodings.onnx_files.onnx_reading import open_model

from ..engines import engines_named
from ..pages.report_file import write_report
from ..runs.binding import binding_of
from ..runs.inputs import read_inputs
from ..runs.life import Outcome, RunPlan, begun, published, require, settle, settling_facts
from ..runs.run_folder import Run, refuse_foreign
from ..runs.run_summary import summary_of
from ..runs.store import Store
from ..runs.task import read_task
from .model_trial import tried
from .run_certificates import Checker
from .settling import Settling
from .token_length import length_of

SECONDS = 60.0
"""Time for one text, unless said; the command line says the same."""


def certify(
    task: str | Path,
    out: str | Path,
    limit: int | None = None,
    radius: int | None = None,
    engines: str | None = None,
    seconds: float | None = SECONDS,
    jobs: int = 1,
    *,
    resume: bool = True,
    progress: bool = False,
) -> Outcome:
    """Find min_swaps of the first `limit` texts of a task file, as intervals with evidence at both ends.

    `radius`: the number of swaps every text must withstand, which decides the exit code. `engines`: names separated by
    commas. `seconds`: time per text, None for no limit. A folder with a run of the same task is resumed; its open texts
    are gone on with when there is more time than there was. `resume=False` starts it anew. Raises BadInput or
    Unsupported before anything is written when the task cannot be run. With `jobs` > 1 the calling script needs the
    usual `if __name__ == "__main__":`.
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(radius is None or radius >= 0, f"radius = {radius}: at least 0")
    require(seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0")
    require(jobs >= 1, f"jobs = {jobs}: at least 1")
    names = ",".join(engine.name for engine in engines_named(engines))
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task)
    model = open_model(given.model.onnx)
    inputs = read_inputs(given, length_of(given, model), limit)
    trial = tried(model, length_of(given, model), inputs)
    binding = binding_of(model.path, inputs)
    Checker.open(binding, model.path, model.path.parent).try_network(trial.network)
    facts = settling_facts(binding, inputs, trial, names, seconds)
    plan = RunPlan(run, given, model, inputs, binding, facts)
    work = Settling(run.folder, binding, names, seconds)
    with begun(plan, resume=resume):
        settle(plan, work, jobs, doing="certify", facts={"radius": json.dumps(radius)}, shown=progress)
        with Store.open(run.store, readonly=True) as store:
            summary = summary_of(store)
        outcome = published(run, summary)
        write_report(run)
    return outcome
