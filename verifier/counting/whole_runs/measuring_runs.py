"""Runs of `measure --quantity pr`: robust fractions of a whole data set; a killed run goes on where it was."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.solvers.one_thread import one_thread

from ...ladder.model_trial import Trial, tried
from ...ladder.run_certificates import Checker
from ...ladder.token_length import length_of
from ...runs.binding import binding_of
from ...runs.jobs.ray_cluster import connected
from ...runs.jobs.text_by_text import Hands
from ...runs.left_out_swaps import FACT, LEFT_OUT, left_out
from ...runs.life import Outcome, RunPlan, begun, published, require, settle, settling_facts, write_json
from ...runs.manifest import QUESTION
from ...runs.measured_runs import folder_of, refuse_foreign_radii, together
from ...runs.run_folder import Run, refuse_foreign, write_atomically
from ...runs.store import Store
from ...tasks.inputs import Inputs, read_inputs
from ...tasks.opened_model import opened
from ...tasks.sections import refuse_unmeasured
from ...tasks.task import Task, read_task
from ..fraction import Settings
from ..measuring_text import STAGE, Measuring
from ..sampling import BATCH
from .black_box import BlackBox, black_box
from .pr_summary import summarise
from .sample_request import DELTA, EPSILON, Sampling

SECONDS = 10.0
MOST = 1_000_000
"""Swaps: the certificate format's limit."""


@dataclass(frozen=True)
class PrOptions:
    """How robust fractions are measured, whatever the radius; as `measure_pr` says."""

    limit: int | None = None
    seconds: float | None = SECONDS
    sampling: Sampling = field(default_factory=lambda: Sampling.of(None, EPSILON, DELTA))
    jobs: int = 1
    count: bool = True
    resume: bool = True
    progress: bool = False
    cluster: str | None = None


def measure_pr(
    task: str | Path,
    out: str | Path,
    radius: int,
    limit: int | None = None,
    seconds: float | None = SECONDS,
    sampling: Sampling | None = None,
    jobs: int = 1,
    *,
    count: bool = True,
    resume: bool = True,
    progress: bool = False,
    cluster: str | None = None,
) -> Outcome:
    """The robust fraction of every text among its sentences of at most `radius` swaps.

    `count` splits each space into cells and publishes certified counts; without it the space is only sampled.
    `seconds`: time per text, None for no limit. `sampling`: how many samples; by default as many as Hoeffding's
    inequality needs for epsilon 0.025 and delta 0.005. A folder with a run of the same question is resumed; texts that
    ran out of time are measured again when there is more. `cluster`: of Ray, whose machines work.
    """
    sampling = Sampling.of(None, EPSILON, DELTA) if sampling is None else sampling
    options = PrOptions(limit, seconds, sampling, jobs, count, resume, progress, cluster)
    return measure_radius(task, out, radius, options)


def measure_radius(task: str | Path, out: str | Path, radius: int, options: PrOptions) -> Outcome:
    with one_thread(), connected(options.cluster):
        return measured_radius(task, out, radius, options)


def measured_radius(task: str | Path, out: str | Path, radius: int, options: PrOptions) -> Outcome:
    limit, seconds, sampling = options.limit, options.seconds, options.sampling
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(0 <= radius <= MOST, f"radius = {radius}: from 0 to {MOST}")
    require(
        seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0, and finite"
    )
    require(options.jobs >= 1, f"jobs = {options.jobs}: at least 1")
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task)
    refuse_unmeasured(given.require, "measure --quantity pr")
    model = opened(given)
    inputs = read_inputs(given, length_of(given, model), limit, model.roles)
    trial = readable(model, given, inputs, count=options.count)
    binding = binding_of(model.path, inputs)
    if options.count and isinstance(trial, Trial):
        Checker.open(binding, model).try_network(trial.network)
    deployed = not isinstance(trial, Trial)
    batch = BATCH if trial.batch_dependence is None else 1
    settings = Settings(
        radius, sampling.samples, sampling.delta, options.count, seconds, deployed, sampling.width, batch
    )
    question = question_of(settings)
    facts = settling_facts(binding, inputs, trial, QUESTION, seconds) | {QUESTION: json.dumps(question)}
    plan = RunPlan.of_network(run, given, model, inputs, binding, facts)
    with begun(plan, resume=options.resume, shown=options.progress):
        listed = write_atomically(run.folder / LEFT_OUT, left_out(inputs.freezing))
        work = Measuring(run.folder, binding, settings)
        settle(
            plan,
            work,
            Hands(options.jobs, options.cluster),
            doing="measure",
            facts={FACT: listed},
            shown=options.progress,
        )
        with Store.open(run.store, readonly=True) as store:
            lines = list(store.results(STAGE))
        summary = summarise(lines, radius, len(inputs.texts), settings.delta)
        said = json.loads(facts["about"])
        summary |= {"remarks": said["remarks"], "swaps": said["swaps"]}
        outcome = published(run, summary)
        draw(lines, radius, run.folder / "robust_fraction.png")
        from ...pages.sheets.measured_page import write_page

        write_page(run, summary, lines)
    return outcome


def question_of(settings: Settings) -> dict[str, Any]:
    """What a run with these settings answers, as its store says it."""
    return {
        "quantity": "pr",
        "radius": settings.radius,
        "samples": settings.samples,
        "delta": str(settings.delta),
        "width": None if settings.width is None else str(settings.width),
        "count": settings.count,
        "deployed": settings.deployed,
        "batch": settings.batch,
    }


def readable(model: Model, task: Task, inputs: Inputs, *, count: bool) -> Trial | BlackBox:
    """The model tried; one that cannot be read is sampled only."""
    try:
        return tried(model, length_of(task, model), inputs)
    except Unsupported as error:
        if count:
            raise Unsupported(f"{error}; --sampled samples any model through onnxruntime") from None
        return black_box(model, str(error), inputs)


def draw(lines: Sequence[Mapping[str, Any]], radius: int, file: Path) -> None:
    """The figure; a machine without matplotlib does without."""
    found = [line["robust_fraction"] for line in lines if line["robust_fraction"] is not None]
    if not found:
        return
    try:
        from ...pages.pr_plots import distribution

        distribution([(one["low"], one["high"]) for one in found], radius, file)
    except ImportError:
        return


def measure_radii(task: str | Path, out: str | Path, radii: Sequence[int], options: PrOptions) -> Outcome:
    """One run per radius, in folders `radius-1`, `radius-2`, ...; beside them the curve of their means."""
    folder = Path(out)
    refuse_foreign_radii(folder, radii)
    outcomes = [measure_radius(task, folder_of(folder, radius), radius, options) for radius in radii]
    summaries = [outcome.summary for outcome in outcomes]
    summary = together(summaries)
    write_json(folder / "summary.json", summary)
    from ...pages.sheets.measured_page import page_of_radii

    runs = {radius: Run(folder_of(folder, radius)) for radius in radii}
    write_atomically(Run(folder).report, page_of_radii(summary, runs).written())
    try:
        from ...pages.pr_plots import curve

        if all(one["measured"] for one in summaries):
            curve(summaries, folder / "curve.png")
    except ImportError:
        pass
    return Outcome(folder, summary, max(outcome.exit_code for outcome in outcomes))
