"""Runs of `certify` of models that are run: every text settled by asking the model, stored at once, and summed up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.behaviour import Remark, observe
from swapproof.models.deployed.classifier import Classifier
from swapproof.models.deployed.onnx_classifier import OnnxClassifier

from ..gates.baseline import required_of
from ..runs.binding import binding_of_deployed
from ..runs.life import Outcome, RunPlan, begun, facts_about, require
from ..runs.run_folder import Run
from ..runs.vacuity import mostly_unknown
from ..tasks.certify_options import CertifyOptions
from ..tasks.deployed_model import FOREIGN
from ..tasks.inputs import Inputs, read_plain
from ..tasks.task import Task
from .apart_classifier import open_apart
from .attacks_first import engines_of_running
from .estimate import Estimate, duration, estimated
from .replaying import Replaying

TRIED = 256
"""Texts that the model is tried on before anything is claimed."""
SAID_ANYWAY = (
    *("constant_output", "one_class", "near_chance", "too_few_texts", "labels_permuted", "answers_differ"),
    "unanswered",
)
"""What the summary says of a run by its lines."""


def certify_running(
    run: Run, task: Task, asked: CertifyOptions, *, obstacle: str | None, remarks: tuple[str, ...]
) -> Outcome:
    """`obstacle`: why the model is not read, where that was tried; `remarks`: what else is to be said."""
    from ..ladder.certifying import settle_and_report  # it has certify on the other road below it

    threads = threads_of(task, asked.jobs, asked.cluster)
    engines = engines_of_running(asked.engines, obstacle)
    inputs = read_plain(task, asked.limit)
    classifier = open_apart(task, asked.trust, threads, FOREIGN)
    said = (*why_run(obstacle), *remarks)
    plan, seen = plan_of(run, task, inputs, classifier, ",".join(engines), asked.seconds, said)
    plan = required_of(asked.baseline, plan)
    work = Replaying(run.folder, asked.seconds, asked.trust, threads, engines=engines)
    with begun(plan, resume=asked.resume, shown=asked.progress):
        if asked.progress:
            swaps = [text.swaps for text in inputs.texts]
            guess = estimated(classifier, swaps, seen.right, jobs=asked.jobs, limit=asked.seconds)
            say_beforehand(guess, asked.seconds)
        return settle_and_report(plan, work, asked)


def threads_of(task: Task, jobs: int, cluster: str | None) -> int:
    """Of each process that asks the model."""
    alone = jobs == 1 and cluster is None
    require(
        task.model.kind != "endpoint" or alone,
        "--jobs, --cluster: one process asks an endpoint, which has its own pace",
    )
    return 1 if cluster else max(1, (os.cpu_count() or 1) // jobs)


def plan_of(
    run: Run,
    task: Task,
    inputs: Inputs,
    classifier: Classifier,
    engines: str,
    seconds: float | None,
    said: tuple[str, ...] = (),
) -> tuple[RunPlan, Seen]:
    """The plan of a run that asks this model, which was tried on the first texts; `said`: the first remarks."""
    identity = classifier.identity
    binding = binding_of_deployed(identity, inputs)
    model = {"file": identity.name, "kind": identity.kind, **identity.facts, "sha256": binding.model_sha256}
    seen = seen_of(classifier, task, inputs)
    odd = [remark.sentence for remark in seen.remarks if not remark.vacuous]
    vacuous = [*unread(classifier, inputs), *(remark.sentence for remark in seen.remarks if remark.vacuous)]
    remarks = (*said, *identity.remarks, *odd)
    facts = facts_about(binding, inputs, remarks, model, engines, seconds, observed=vacuous)
    own = {**{name: Path(value) for name, value in identity.opened_by.items()}, "road": "run"}
    return RunPlan(run, task, inputs, binding, identity.files, own, facts), seen


@dataclass(frozen=True)
class Seen:
    """What the model does to the first texts: whether it answers them rightly, and what a reader of the report should
    know."""

    remarks: tuple[Remark, ...]
    right: tuple[bool, ...]


def seen_of(classifier: Classifier, task: Task, inputs: Inputs) -> Seen:
    some = inputs.texts[:TRIED]
    seen = observe(
        classifier,
        task.model.decision,
        [text.fields for text in some],
        [text.label for text in some],
        names=inputs.labels,
    )
    guessed = "scores" not in task.model.model_fields_set and task.model.decision.compares(seen.scores.shape[1])
    for remark in seen.remarks:
        if guessed and remark.kind == "probabilities_not_logits":
            raise BadInput(f'[model] {remark.sentence}, or scores = "logits" if they are')
    right = task.model.decision.answers(seen.scores) == [text.label for text in some]
    remarks = tuple(remark for remark in seen.remarks if remark.kind not in SAID_ANYWAY)
    return Seen(remarks, tuple(right.tolist()))


def unread(classifier: Classifier, inputs: Inputs) -> Iterator[str]:
    """What a tokenizer does not know; other models count words in ways of their own."""
    if isinstance(classifier, OnnxClassifier):
        said = mostly_unknown(*classifier.unknown([text.fields for text in inputs.texts[:TRIED]]))
        yield from () if said is None else (said,)


def say_beforehand(estimate: Estimate | None, seconds: float | None) -> None:
    each = "without a limit of time" if seconds is None else f"at most {seconds:g} s for each text"
    for line in estimate.lines if estimate is not None else ():
        print(f"certify: {line}", file=sys.stderr)
    whole = f", {duration(estimate.most)} in all" if estimate is not None and seconds is not None else ""
    print(f"certify: a text ends with the first sentence that breaks it; {each}{whole}", file=sys.stderr, flush=True)


def why_run(obstacle: str | None) -> tuple[str, ...]:
    reason = "" if obstacle is None else f" ({obstacle})"
    return (f"the model is run, not read{reason}: below a low end every sentence was evaluated, and nothing is proved",)
