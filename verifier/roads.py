"""The two roads of `certify`: a model whose network can be read is proved about, any other is run.

Each road is imported when it is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from swapproof.encodings.solvers.one_thread import one_thread
from swapproof.models.deployed.kinds import WORD_READERS
from swapproof.models.deployed.passing_folder import PassingFolder

from .runs.jobs.ray_cluster import connected
from .runs.life import Outcome
from .runs.life import require as insist
from .runs.run_folder import Run, refuse_foreign
from .tasks.certify_options import CertifyOptions
from .tasks.deployed_model import FOREIGN, Trust
from .tasks.sections import refuse_unmeasured
from .tasks.task import Task, read_task

READABLE = ("onnx", *WORD_READERS)
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
    require: Sequence[str] = (),
    resume: bool = True,
    progress: bool = False,
    trust_pickle: bool = False,
    allow_endpoint: bool = False,
    baseline: str | Path | None = None,
    cluster: str | None = None,
) -> Outcome:
    """Find min_swaps of the first `limit` texts of a task file, as intervals with evidence at both ends.

    `radius`: the number of swaps that every text answered rightly must withstand; `require`: what else must hold, such
    as "certified@2 >= 0.70" or "mmws >= 3"; `baseline`: a run of the same texts and swaps that this one must not be
    worse than; all decide the exit code. `engines`: names separated by commas; of models that are run: attacks, greedy
    and simple. `seconds`: time per text, None for no limit. A folder with a run of the same task is resumed; its open
    texts are gone on with when there is more time than there was. `resume=False` starts it anew.
    `jobs`: texts worked on at a time, each in a process that is killed when it hangs; `cluster`: on the machines of a
    Ray cluster instead, "auto", "ray://HOST:PORT" or "HOST:PORT".
    Raises BadInput or Unsupported before anything is written when the task cannot be run.
    """
    insist(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    insist(radius is None or radius >= 0, f"radius = {radius}: at least 0")
    insist(
        seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0, and finite"
    )
    insist(jobs >= 1, f"jobs = {jobs}: at least 1")
    run = Run(Path(out))
    refuse_foreign(run.folder)
    trust = Trust(trust_pickle, allow_endpoint)
    against = None if baseline is None else Path(baseline)
    settings = CertifyOptions(limit, radius, engines, seconds, jobs, resume, progress, trust, against, cluster)
    given = read_task(task).requiring(require)
    refuse_unmeasured(given.require, "certify")
    with one_thread(), connected(cluster), PassingFolder() as place:
        return certify_task(run, given, settings, place)


def brief(said: str, task: Task) -> str:
    """Why a model is not read, without its name in front and without the list of all that would be read."""
    source = getattr(task.model, task.model.kind)
    for name in (f"{source}: ", f"{Path(source).name}: "):
        said = said.removeprefix(name)
    return said.partition("; supported: ")[0]


def certify_task(run: Run, given: Task, asked: CertifyOptions, place: Path) -> Outcome:
    """On the road that the model takes; `place`: an empty folder for what is made on the way."""
    from .derived.deployed_beside import beside_itself
    from .derived.exported_folder import exported_task
    from .derived.word_reading import read_words
    from .ladder.certifying import certify_reading, read, runs_rest, tried_out
    from .replaying.replayed_run import certify_running
    from .tasks.opened_model import opened

    obstacle, remarks = None, tuple[str, ...]()
    asked = replace(asked, apart=given.model.kind in FOREIGN)
    if given.model.kind == "hf":
        given, remarks = exported_task(given, asked.limit, place)
    if given.model.kind in READABLE and given.model.road != "run":
        try:
            if given.model.kind == "onnx":
                task, known = given, read(given, asked.limit)
                made = beside_itself(given, asked.trust) if runs_rest(given, known) and asked.engines is None else None
            else:
                task, inputs, made = read_words(given, asked.limit, asked.trust, place)
                known = tried_out(task, opened(task), inputs)
        except NotImplementedError as error:
            if given.model.road == "read":
                raise
            obstacle = brief(str(error), given)
        else:
            return certify_reading(run, task, known, asked, made=made, remarks=remarks)
    return certify_running(run, given, asked, obstacle=obstacle, remarks=remarks)
