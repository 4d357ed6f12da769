"""`measure --quantity kappa`: which words of the vocabulary, put anywhere, flip how many texts; and rho."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported

from ..pages.pr_plots import without_figures
from ..pages.printing.json_printing import print_run
from ..pages.printing.kappa_printing import print_kappa
from ..runs.binding import binding_of
from ..runs.life import Outcome, RunPlan, begun, require
from ..runs.manifest import QUESTION
from ..runs.measured_runs import MeasureOptions
from ..runs.run_folder import Run, refuse_foreign
from ..runs.store import Store
from ..single_words.euba.euba_estimate import Method, beside, classifier_of, costs, method_of, ways
from ..single_words.euba.euba_flips import VARIANTS, Variant
from ..single_words.flip_matrix import Crowd, FlipMatrix, by_euba, by_force, exactly
from ..single_words.kappa_publishing import published
from ..single_words.kappa_setting import Setting, set_up
from ..single_words.kept_parts import Kept
from ..tasks.sections import refuse_unmeasured
from ..tasks.task import read_task

WHAT = {"task": "the task file", "model": "the model", "vocabulary": "the vocabulary", "texts": "the texts"}
"""Facts that must be the same for a run to go on: kappa does not depend on the swaps."""


def command(task: Path, out: Path, asked: MeasureOptions, *, as_json: bool = False) -> int:
    """The command line's `measure --quantity kappa`; the exit code."""
    outcome = measure_kappa(
        task,
        out,
        asked.limit,
        brute_force=asked.brute_force,
        seconds=asked.seconds,
        euba=asked.euba,
        variant=named(asked.variant or "paper"),
        resume=asked.resume,
        progress=True,
        require_of=asked.require,
        jobs=asked.jobs,
    )
    if (remark := without_figures()) is not None:
        print(remark, file=sys.stderr)
    if as_json:
        return print_run(outcome.folder, outcome.exit_code, outcome.summary)
    print_kappa(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code


def named(variant: str) -> Variant:
    found = next((one for one in VARIANTS if one == variant), None)
    if found is None:
        raise BadInput(f"--euba-variant {variant!r}: can be {', '.join(VARIANTS)}")
    return found


def measure_kappa(
    task: str | Path,
    out: str | Path,
    limit: int | None = None,
    *,
    brute_force: bool = False,
    seconds: float | None = None,
    euba: int | None = None,
    variant: Variant = "paper",
    resume: bool = True,
    progress: bool = False,
    require_of: Sequence[str] = (),
    jobs: int = 1,
) -> Outcome:
    """kappa of every word and rho, over the reals and exactly, for every network we can read.

    `brute_force`: as deployed in onnxruntime instead, for any model. `euba`: also what EUBA finds that stops after so
    many failures, in this variant; alone, without brute force, for a model that we cannot read. `seconds`: for each
    text; what is not reached leaves an interval. `jobs`: parts that are worked on at a time, each in a process; EUBA
    visits texts in order, in one. A folder with such a run is resumed.
    `require_of`: what must hold besides [require] of the task, such as "rho >= 0.9".
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(
        seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0, and finite"
    )
    require(euba is None or euba >= 1, f"euba = {euba}: at least 1 failure")
    variant = named(variant)
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task).requiring(require_of)
    refuse_unmeasured(given.require, "measure --quantity kappa")
    setting = set_up(given, limit, deployed=brute_force)
    if setting.network is None and not brute_force and euba is None:
        raise Unsupported(f"{setting.obstacle}; {ways(setting)}")
    limit_each = math.inf if seconds is None else seconds
    method = None if euba is None else method_of(setting, classifier_of(setting), euba, variant, limit_each)
    if progress:
        for line in costs(setting, method, brute_force=brute_force):
            print(line, file=sys.stderr, flush=True)
    binding = binding_of(setting.model.path, setting.inputs)
    facts = {QUESTION: json.dumps({"quantity": "kappa"})}
    plan = RunPlan.of_network(
        run,
        setting.task,
        setting.model,
        setting.inputs,
        binding,
        facts,
        matters=WHAT,
        from_itself=True,
        extends=False,
    )
    require(jobs >= 1, f"jobs = {jobs}: at least 1")
    with begun(plan, resume=resume):
        run.summary.unlink(missing_ok=True)
        with Store.open(run.store) as store:
            crowd = Crowd(run.folder, jobs)
            found, about = measured(setting, store, method, limit_each, crowd, brute_force=brute_force, shown=progress)
        summary = published(run, setting, found, about)
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def measured(
    setting: Setting,
    store: Store,
    method: Method | None,
    seconds: float,
    crowd: Crowd,
    *,
    brute_force: bool,
    shown: bool,
) -> tuple[FlipMatrix, dict[str, Any]]:
    """A, as exact as asked for, and what EUBA says of it."""
    words, subjects = setting.candidates.tokens, setting.answered.subjects
    found = None
    if brute_force:
        kept = Kept(store, f"brute force, {seconds} seconds a text")
        answers, batch = setting.replay.answers, setting.cost.batch
        found = by_force(answers, words, subjects, seconds, batch, kept, shown=shown, crowd=crowd)
    elif setting.network is not None:
        kept = Kept(store, "exact" if seconds == math.inf else f"exact, {seconds} seconds a text")
        found = exactly(setting.network, words, subjects, kept, shown=shown, seconds=seconds, crowd=crowd)
    flips = None if method is None else by_euba(method.euba, subjects, Kept(store, method.stage), shown=shown)
    return beside(found, flips, method, same_model=setting.network is None)
