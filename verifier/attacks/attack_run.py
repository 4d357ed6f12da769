"""Runs of `attack`: every text attacked, every witness replayed and stored at once, and summed up.

What one road needs is imported when that road is taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.encodings.onnx_files.refusals import divides
from swapproof.encodings.solvers.one_thread import one_thread
from swapproof.models.deployed.passing_folder import PassingFolder
from swapproof.models.language_models.perplexity import CausalModel

from ..ladder.token_length import length_of
from ..runs.binding import binding_of
from ..runs.jobs.ray_cluster import connected
from ..runs.jobs.text_by_text import Hands
from ..runs.life import Outcome, RunPlan, begun, published, require, settle, settling_facts
from ..runs.manifest import QUESTION
from ..runs.run_folder import Run, refuse_foreign, sha256
from ..runs.store import Store
from ..synonyms.similarity import sentence_similarity
from ..tasks.deployed_model import FOREIGN, Trust
from ..tasks.inputs import Inputs, Text, filters_of, read_inputs, read_plain
from ..tasks.opened_model import opened, opened_in
from ..tasks.sections import refuse_unmeasured
from ..tasks.task import Task, read_task
from .attack_goals import Goal
from .attack_limits import Limits
from .attack_summary import summary_of_attack
from .attacking import STAGE, Attacking, Tokens
from .frozen_candidates import refrozen
from .recipes import recipe_named
from .sentence_answers import unknown_spelt
from .textattack.log_export import export_log
from .textattack.log_import import METHOD, accounts, imported
from .together.kept_searches import searched_and_kept
from .together.searched_text import Searched
from .together.searched_together import is_together, searched_together


@dataclass(frozen=True)
class AttackOptions:
    """`target`: the name of a class. `kappa` and `language_model`: for the attacks whose candidates come from them."""

    limit: int | None = None
    target: str | None = None
    limits: Limits = field(default_factory=Limits)
    seed: int = 1
    jobs: int = 1
    resume: bool = True
    progress: bool = False
    kappa: Path | None = None
    language_model: Path | None = None
    trust: Trust = field(default_factory=Trust)
    causal_model: Path | None = None
    """A folder of transformers, for perplexities."""
    log: Path | None = None
    """A log of TextAttack that is written when all texts are attacked."""
    cluster: str | None = None
    """Of Ray: auto, ray://HOST:PORT or HOST:PORT."""
    seconds: float | None = None
    """For each text."""


def attack(
    task: str | Path, out: str | Path, method: str, options: AttackOptions | None = None, *, imports: Path | None = None
) -> Outcome:
    """Attack the first texts of a task; a folder with a run of the same attack is resumed.

    `imports`: a log of TextAttack, whose sentences are replayed in place of an attack; `method` then only says what
    the space is. Raises BadInput or Unsupported before anything is written when the task cannot be run.
    """
    asked = AttackOptions() if options is None else options
    require(asked.limit is None or asked.limit >= 1, f"limit = {asked.limit}: at least 1")
    require(asked.jobs >= 1, f"jobs = {asked.jobs}: at least 1")
    require(asked.seed >= 0, f"seed = {asked.seed}: at least 0")
    require(
        asked.seconds is None or (asked.seconds > 0 and math.isfinite(asked.seconds)),
        f"seconds = {asked.seconds}: a time above 0, and finite",
    )
    recipe = recipe_named(method)
    run = Run(Path(out))
    refuse_foreign(run.folder)
    if asked.limits.similarity is not None or (recipe.natural and asked.causal_model is not None):
        sentence_similarity(0.0)
    require(
        asked.limits.perplexity is None or asked.causal_model is not None,
        f"--perplexity {asked.limits.perplexity}: give --causal-model FOLDER, a language model and its tokenizer as "
        "transformers saves them; none is downloaded",
    )
    causal = None if asked.causal_model is None else CausalModel.open(asked.causal_model).name
    given = read_task(task)
    foreign = given.model.kind in FOREIGN
    refuse_unmeasured(given.require, "attack")
    with one_thread(), connected(asked.cluster), PassingFolder() as place:
        if given.model.kind == "hf":
            from ..derived.exported_folder import exported_task

            given, _ = exported_task(given, asked.limit, place)
        goal = goal_of(given, asked.target)
        plan, work = prepared(run, given, method, goal, asked)
        said_of_log: tuple[str, ...] = ()
        if asked.causal_model is not None:
            work = replace(work, causal_model=asked.causal_model.absolute())
            plan = replace(plan, facts={**plan.facts, **question_of(method, goal, asked, causal=causal)})
        if imports is not None:
            method = METHOD
            work, said_of_log = imported(work, plan.inputs.texts, imports)
            plan = replace(plan, facts={**plan.facts, **question_of(method, goal, asked, sha256(imports), causal)})
        with begun(plan, resume=asked.resume, shown=asked.progress):
            hands = Hands(asked.jobs, asked.cluster, apart=foreign)
            work = work if imports is not None else ahead(plan, work, shown=asked.progress)
            settle(plan, work, hands, doing="attack", facts={}, shown=asked.progress)
            with Store.open(run.store, readonly=True) as store:
                lines = list(store.results(STAGE))
            labels = given.model.labels
            summary = summary_of_attack(lines, len(plan.inputs.texts), method, goal, asked.limits, labels)
            said = json.loads(plan.facts["about"])
            remarks = [*said["observed"], *said["remarks"], *said_of_log]
            summary |= {"remarks": remarks, "swaps_from": plan.inputs.source}
            summary |= {} if causal is None else {"causal_model": causal}
            summary |= {} if imports is None else {"textattack": accounts(lines)}
            if asked.log is not None:
                export_log(run, lines, plan.inputs.texts, goal, asked.trust, asked.log)
            outcome = published(run, summary)
            from ..pages.sheets.measured_page import write_page

            write_page(run, summary, lines)
            return outcome


def goal_of(task: Task, target: str | None) -> Goal:
    labels = task.model.labels
    if target is None:
        return Goal()
    if target not in labels:
        raise BadInput(f"--target {target!r}: the classes are {', '.join(labels)}")
    return Goal(labels.index(target))


def prepared(run: Run, task: Task, method: str, goal: Goal, asked: AttackOptions) -> tuple[RunPlan, Attacking]:
    """On the road that the model takes: read where that is possible and the candidates are the task's own."""
    recipe = recipe_named(method)
    obstacle = ""
    if task.model.kind == "onnx" and task.model.road != "run" and recipe.transformation == "task":
        try:
            return reading(run, task, method, goal, asked)
        except NotImplementedError as error:
            if task.model.road == "read":
                raise
            obstacle = f" ({error})"
    if recipe.gradients:
        raise Unsupported(
            f"{method} needs gradients, of a network that is read; the model of this task is run{obstacle}"
        )
    return running(run, task, method, goal, asked)


def reading(run: Run, task: Task, method: str, goal: Goal, asked: AttackOptions) -> tuple[RunPlan, Attacking]:
    """Texts as the vocabulary reads them. Smooth networks are faster in onnxruntime: they are read for gradients."""
    from ..ladder.certifying import ATTENTION
    from ..ladder.model_trial import tried

    model = opened(task)
    inputs = read_inputs(task, length_of(task, model), asked.limit, model.roles)
    trial = tried(model, length_of(task, model), inputs, smooth=True)
    if task.model.road is None and divides(trial.network.nodes):
        raise Unsupported(ATTENTION)
    inputs = candidates_of(inputs, task, method, asked)
    binding = binding_of(model.path, inputs)
    facts = settling_facts(binding, inputs, trial, method, asked.seconds) | question_of(method, goal, asked)
    plan = RunPlan.of_network(run, task, model, inputs, binding, facts, extends=False)
    reads = recipe_named(method).gradients or not trial.network.is_smooth
    tokens = Tokens(reads=reads, given=model.given, unknown=unknown_spelt(inputs.vocabulary))
    work = Attacking(
        run.folder, method, goal, asked.limits, asked.seed, asked.trust, tokens=tokens, seconds=asked.seconds
    )
    return plan, work


def ahead(plan: RunPlan, work: Attacking, *, shown: bool = False) -> Attacking:
    """With what a search over all texts at once gives, where there is one: of a run that has begun.

    --seconds is of each text, which is then searched by itself."""
    search, vocabulary = recipe_named(work.method).search, plan.inputs.vocabulary
    if work.tokens is None or work.seconds is not None or not is_together(search, vocabulary, work.limits):
        return work
    model = opened_in(plan.run)
    fixed = length_of(plan.task, model) is not None

    def at_once(texts: Sequence[Text]) -> Iterator[dict[int, Searched | None]]:
        return searched_together(search, model, vocabulary, texts, work.goal, work.limits, fixed=fixed)

    with Store.open(plan.run.store) as store:
        found = searched_and_kept(store, STAGE, plan.inputs.texts, at_once, shown=shown)
    return replace(work, searched=found)


def running(run: Run, task: Task, method: str, goal: Goal, asked: AttackOptions) -> tuple[RunPlan, Attacking]:
    from ..replaying.apart_classifier import open_apart
    from ..replaying.replayed_run import plan_of, threads_of

    threads = threads_of(task, asked.jobs, asked.cluster)
    inputs = candidates_of(read_plain(task, asked.limit), task, method, asked)
    classifier = open_apart(task, asked.trust, threads, FOREIGN)
    plan, _ = plan_of(run, task, inputs, classifier, method, asked.seconds)
    plan = replace(plan, facts={**plan.facts, **question_of(method, goal, asked)}, extends=False)
    work = Attacking(run.folder, method, goal, asked.limits, asked.seed, asked.trust, threads, seconds=asked.seconds)
    return plan, work


def candidates_of(inputs: Inputs, task: Task, method: str, asked: AttackOptions) -> Inputs:
    kind = recipe_named(method).transformation
    filters = () if kind == "task" else filters_of(task.swaps)
    return refrozen(inputs, kind, asked.limits.k_max, asked.kappa, asked.language_model, filters)


def question_of(
    method: str, goal: Goal, asked: AttackOptions, log: str | None = None, causal: str | None = None
) -> dict[str, str]:
    """What the run answers; its results depend on all of it. `log`: the SHA-256 of one that is imported; `causal`: the
    language model."""
    limits = asked.limits
    question: dict[str, Any] = {"quantity": "attack", "method": method, "target": goal.target, "seed": asked.seed}
    question |= {name: getattr(limits, name) for name in ("k_max", "rho_max", "rho_up", "q_max", "similarity")}
    question |= {} if limits.queries is None else {"queries": limits.queries}
    question |= {} if log is None else {"log_sha256": log}
    question |= {} if causal is None else {"perplexity": limits.perplexity, "causal_model": causal}
    return {QUESTION: json.dumps(question)}
