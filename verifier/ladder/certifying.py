"""Runs of `certify` of models that are read: every text settled with proofs, stored at once, and summed up."""

from __future__ import annotations

import json

from swapproof.encodings.errors import Unsupported
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.onnx_files.refusals import divides
from swapproof.encodings.smooth.attention_depth import attention_layers

from ..derived.deployed_beside import Made, keep_deployed
from ..derived.mixed_work import MixedWork
from ..derived.read_then_run import ReadThenRun
from ..engines.engine_table import engines_named
from ..gates.baseline import required_of
from ..pages.report_file import write_report
from ..replaying.replaying import Replaying
from ..runs.binding import binding_of
from ..runs.jobs.text_by_text import Hands
from ..runs.left_out_swaps import FACT, LEFT_OUT, left_out
from ..runs.life import Outcome, RunPlan, begun, published, settle, settling_facts
from ..runs.manifest import note_export
from ..runs.run_folder import Run, write_atomically
from ..runs.run_summary import summary_of
from ..runs.store import Store
from ..runs.work import Work
from ..tasks.certify_options import CertifyOptions
from ..tasks.inputs import Inputs, read_inputs
from ..tasks.opened_model import opened
from ..tasks.task import Task
from .model_trial import Trial, tried
from .run_certificates import Checker
from .settling import Settling
from .token_length import length_of

ATTENTION = (
    "attention of several layers, or another division by what the words say: read where [model] says "
    'road = "read", which takes longer than to run it'
)
Known = tuple[Model, Inputs, Trial]
"""A model, its texts as tokens, and what was seen when both were tried."""


def read(task: Task, limit: int | None) -> Known:
    """Raises Unsupported for a model that cannot be read."""
    model = opened(task)
    return tried_out(task, model, read_inputs(task, length_of(task, model), limit, model.roles))


def tried_out(task: Task, model: Model, inputs: Inputs) -> Known:
    trial = tried(model, length_of(task, model), inputs, smooth=True)
    if task.model.road is None and divides(trial.network.nodes) and not reads_divisions(task, trial):
        raise Unsupported(ATTENTION)
    Checker.open(binding_of(model.path, inputs), model).try_network(trial.network)
    return model, inputs, trial


def reads_divisions(task: Task, trial: Trial) -> bool:
    """Of one layer of attention, or none, as far as the task leaves the road open: what reading leaves open is run."""
    return task.model.kind == "onnx" and attention_layers(trial.network.nodes) <= 1


def runs_rest(task: Task, known: Known) -> bool:
    """Whether texts that reading leaves open are run."""
    return task.model.road is None and divides(known[2].network.nodes)


def certify_reading(
    run: Run, task: Task, known: Known, asked: CertifyOptions, *, made: Made | None, remarks: tuple[str, ...]
) -> Outcome:
    """`made`: of a network that was made of a deployed model, that model; `remarks`: what else is to be said."""
    model, inputs, trial = known
    names = ",".join(engine.name for engine in engines_named(asked.engines, smooth=trial.network.is_smooth))
    binding = binding_of(model.path, inputs)
    said = remarks if made is None else (*remarks, *made.remarks, *made.identity.remarks)
    facts = settling_facts(binding, inputs, trial, names, asked.seconds, said)
    plan = required_of(asked.baseline, RunPlan.of_network(run, task, model, inputs, binding, facts))
    reading = Settling(run.folder, binding, names, asked.seconds, asked.trust, given=model.given)
    work: Work = reading
    if made is not None and task.model.road is None and task is made.task:
        work = ReadThenRun.of(reading, Replaying(run.folder, asked.seconds, asked.trust, beside=True))
    elif made is not None and made.misfits:
        running = Replaying(run.folder, asked.seconds, asked.trust, beside=True)
        work = MixedWork(run.folder, work, running, frozenset(made.misfits))
    with begun(plan, resume=asked.resume, shown=asked.progress):
        if made is not None:
            keep_deployed(run, made)
        if remarks:
            note_export(run, remarks)
        return settle_and_report(plan, work, asked)


def settle_and_report(plan: RunPlan, work: Work, asked: CertifyOptions) -> Outcome:
    """What is left to do of a run that has begun, on either road."""
    listed = write_atomically(plan.run.folder / LEFT_OUT, left_out(plan.inputs.freezing))
    facts = {"radius": json.dumps(asked.radius), FACT: listed}
    hands = Hands(asked.jobs, asked.cluster, apart=asked.apart)
    settle(plan, work, hands, doing="certify", facts=facts, shown=asked.progress)
    with Store.open(plan.run.store, readonly=True) as store:
        outcome = published(plan.run, summary_of(store))
    write_report(plan.run)
    return outcome
