"""`measure --quantity kappa`: which words of the vocabulary, put anywhere, flip how many texts; and rho."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported

from ..ladder.run_certificates import binding_of
from ..pages.kappa_printing import print_kappa
from ..runs.run_folder import Run, held, refuse_foreign, sha256, write_atomically
from ..runs.store import Store, writing
from ..runs.task import read_task
from ..single_words.euba.euba_estimate import Method, beside, classifier_of, costs, method_of, ways
from ..single_words.euba.euba_flips import VARIANTS, Variant
from ..single_words.flip_matrix import Found, by_euba, by_force, exactly
from ..single_words.kappa_publishing import published
from ..single_words.kappa_setting import Setting, set_up
from ..single_words.kept_parts import Kept
from .certify import PREPARING, READY, Outcome, copy_inputs, of_copies, require

NAME = "measure"
WHAT = {"task": "the task file", "model": "the model", "vocabulary": "the vocabulary", "texts": "the texts"}


def command(
    task: Path,
    out: Path,
    limit: int | None,
    *,
    seconds: float | None,
    brute_force: bool,
    euba: int | None,
    variant: Any,
    resume: bool,
    for_pr: bool,
) -> int:
    """The command line's `measure --quantity kappa`; the exit code. `for_pr`: options of pr are given."""
    require(not for_pr, "--radius, --sampled and --stop-when-width belong to --quantity pr")
    outcome = measure_kappa(
        task,
        out,
        limit,
        brute_force=brute_force,
        seconds=seconds,
        euba=euba,
        variant=variant,
        resume=resume,
        progress=True,
    )
    print_kappa(outcome.summary)
    print(f"\nThe run folder: {outcome.folder}")
    return outcome.exit_code


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
) -> Outcome:
    """kappa of every word and rho, over the reals and exactly, for every network we can read.

    `brute_force`: as deployed in onnxruntime instead, for any model. `euba`: also what EUBA finds that stops after so
    many failures, in this variant; alone, without brute force, for a model that we cannot read. `seconds`: for each
    text, of brute force or EUBA; what is not reached leaves an interval. A folder with such a run is resumed.
    """
    require(limit is None or limit >= 1, f"limit = {limit}: at least 1")
    require(seconds is None or (seconds > 0 and math.isfinite(seconds)), f"seconds = {seconds}: a time above 0")
    require(euba is None or euba >= 1, f"euba = {euba}: at least 1 failure")
    require(variant in VARIANTS, f"--euba-variant {variant!r}: can be {', '.join(VARIANTS)}")
    run = Run(Path(out))
    refuse_foreign(run.folder)
    setting = set_up(read_task(task), limit, deployed=brute_force)
    if setting.network is None and not brute_force and euba is None:
        raise Unsupported(f"{setting.obstacle}; {ways(setting)}")
    limit_each = math.inf if seconds is None else seconds
    method = None if euba is None else method_of(setting, classifier_of(setting), euba, variant, limit_each)
    if progress:
        for line in costs(setting, method, brute_force=brute_force):
            print(line, file=sys.stderr, flush=True)
    facts = facts_of(setting)
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        prepare(run, setting, facts, anew=not resume)
        with Store.open(run.store) as store:
            found, about = measured(setting, store, method, limit_each, brute_force=brute_force, shown=progress)
        summary = published(run, setting, found, about)
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def measured(
    setting: Setting, store: Store, method: Method | None, seconds: float, *, brute_force: bool, shown: bool
) -> tuple[Found, dict[str, Any]]:
    """A, as exact as asked for, and what EUBA says of it."""
    words, subjects = setting.candidates.tokens, setting.answered.subjects
    found = None
    if brute_force:
        kept = Kept(store, f"brute force, {seconds} seconds a text")
        found = by_force(setting.replay.answers, words, subjects, seconds, setting.cost.batch, kept, shown=shown)
    elif setting.network is not None:
        found = exactly(setting.network, words, subjects, Kept(store, "exact"), shown=shown)
    flips = None if method is None else by_euba(method.euba, subjects, Kept(store, method.stage), shown=shown)
    return beside(found, flips, method, same_model=setting.network is None)


def facts_of(setting: Setting) -> dict[str, str]:
    """What everything in the run depends on."""
    return {
        NAME: json.dumps({"quantity": "kappa"}),
        "state": READY,
        "task": setting.task.digest,
        "model": sha256(setting.model.path),
        "vocabulary": setting.inputs.vocabulary_sha256,
        "texts": setting.inputs.digest,
    }


def prepare(run: Run, setting: Setting, facts: Mapping[str, str], *, anew: bool) -> None:
    """A run folder with copies of what is measured; one of the same is gone on with."""
    if run.store.exists():
        with Store.open(run.store, readonly=True) as store:
            before = store.facts()
        if before.get(NAME) != facts[NAME]:
            raise BadInput(f"{run.folder}: the run there is another one; give --out a new folder")
        changed = [what for name, what in WHAT.items() if before.get(name) != facts[name]]
        ready = before.get("state") == READY
        if changed and ready and not anew:
            raise BadInput(
                f"{run.folder}: the run there is of another task: {', '.join(changed)} changed; give --out a new "
                "folder, or --no-resume to start anew here"
            )
        if ready and not anew:
            return
        run.summary.unlink(missing_ok=True)
        run.store.unlink()
    Store.create(run.store, {**facts, "state": PREPARING})
    copy_inputs(run, setting.task, setting.model, binding_of(setting.model, setting.inputs), setting.inputs)
    notes = ["What was measured, as it lies in this folder.", *(f"{name} {facts[name]}" for name in (NAME, *WHAT))]
    write_atomically(run.task, of_copies(run, setting.task, notes).encode())
    with Store.open(run.store) as store:
        store.set_facts({"state": READY})
