"""The life of a run: begun, resumed or begun anew, worked on, published; the same for every command that makes one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.models.deployed.classifier import Copy

from ..pages.progress import progress
from ..synonyms.freezing import digest_of
from ..tasks.inputs import Inputs, text_lines, texts_digest
from ..tasks.sections import DataSection, SwapsSection
from ..tasks.task import Task
from ..versions import AT_WORK, versions
from .binding import OWN, Binding, copies_of
from .manifest import QUESTION, manifest_of, write_manifest
from .results import written
from .run_folder import Run, copy_atomically, held, remove_own, sha256, write_atomically
from .store import Store, writing
from .work import Lost, Settled, Work
from .workers import settle_all

if TYPE_CHECKING:
    from ..ladder.model_trial import Seen

PREPARING, READY, EXTENDING = "preparing", "ready", "extending"
"""States of a store: until all files are there, and from then on; and until those of more texts are there."""
WHAT = {  # of a run that settles text after text
    "task": "the task file",
    "model": "the model",
    "vocabulary": "the vocabulary",
    "texts": "the texts or their labels",
    "spaces": "the swaps",
    "engines": "--engines",
    "swapproof": "the version of swapproof",
}


@dataclass(frozen=True)
class Outcome:
    """A finished run: its folder, its summary (as in summary.json) and the exit code of its verdict."""

    folder: Path
    summary: dict[str, Any]
    exit_code: int


@dataclass(frozen=True)
class RunPlan:
    """What a run is made from, and what it is to answer."""

    run: Run
    task: Task
    inputs: Inputs
    binding: Binding
    copies: tuple[Copy, ...]
    """Files of the model and its vocabulary, of which the run keeps copies."""
    own: Mapping[str, Any]
    """Keys of [model] as they are in the folder of the run."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Of the store, besides those that follow from the rest."""
    given: Given | None = None
    """What the model was made from, where it was made from another."""
    matters: Mapping[str, str] = field(default_factory=lambda: WHAT)
    """Facts that must be the same for the run to go on, and what to call them."""
    from_itself: bool = False
    """Begun anew from its own copies, a run may keep them; else what a run wrote is removed before it begins anew."""
    extends: bool = True
    """What is known of a text is true whatever other texts there are: a run of more texts goes on with it."""

    @classmethod
    def of_network(
        cls, run: Run, task: Task, model: Model, inputs: Inputs, binding: Binding, facts: Mapping[str, str], **more: Any
    ) -> RunPlan:
        """Of a model that is read from an ONNX file."""
        if task.model.vocabulary is None:
            raise BadInput("[model] vocabulary is missing")
        copies = copies_of(model.path, task.model.vocabulary, binding, inputs.vocabulary_content)
        # The copy of a model that was made from the one given has one output, of logits.
        plain = {"output": None, "scores": "logits", "threshold": None, "column": None}
        own = OWN if model.given is None else OWN | plain
        return cls(run, task, inputs, binding, copies, own, facts, given=model.given, **more)

    @property
    def every_fact(self) -> dict[str, str]:
        return {
            "task": self.task.digest,
            "model": json.dumps([self.binding.model_sha256, *self.binding.tensors]),
            "vocabulary": self.inputs.vocabulary_sha256,
            "texts": self.inputs.digest,
            "spaces": self.binding.spaces_sha256,
            "total": json.dumps(len(self.inputs.texts)),
            **versions("swapproof"),
            **self.facts,
        }


def require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise BadInput(otherwise)


def settling_facts(
    binding: Binding,
    inputs: Inputs,
    trial: Seen,
    engines: str,
    seconds: float | None,
    remarks: Sequence[str] = (),
) -> dict[str, str]:
    """What a run that settles text after text depends on, and what its report says of that."""
    model = {**trial.facts(), "sha256": binding.model_sha256}
    return facts_about(binding, inputs, (*remarks, *trial.remarks), model, engines, seconds)


def facts_about(
    binding: Binding,
    inputs: Inputs,
    remarks: Sequence[str],
    model: Mapping[str, Any],
    engines: str,
    seconds: float | None,
    observed: Sequence[str] = (),
) -> dict[str, str]:
    """The same of a model of which these facts are to be shown; `observed`: what was seen of its scores, and makes
    whatever is claimed of it say little."""
    freezing = inputs.freezing
    about = {
        "labels": list(inputs.labels),
        "remarks": list(remarks),
        "observed": list(observed),
        "swaps": {
            "source": inputs.source,
            "sha256": binding.spaces_sha256,
            "considered": freezing.considered,
            "removed": dict(freezing.removed),
            "kept": freezing.candidates,
            "fixed": dict(freezing.fixed),
            "dropped_on_reading": inputs.table,
        },
        "model": dict(model),
        "engines": engines.split(","),
        "seconds_per_text": seconds,
        "data": {"skipped": inputs.skipped, "defects": list(inputs.defects)},
        "versions": versions(*AT_WORK),
    }
    return {"engines": engines, "seconds": json.dumps(seconds), "about": json.dumps(about, ensure_ascii=False)}


@contextmanager
def begun(plan: RunPlan, *, resume: bool) -> Iterator[None]:
    """Inside, the run is ours alone and ready for results; one of the same is gone on with, unless begun anew."""
    run = plan.run
    made = not run.folder.exists()
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        if resume and run.store.exists():
            refuse_changes(plan)
        begin(plan, made=made, anew=not resume)
        yield


def refuse_changes(plan: RunPlan) -> None:
    """What a run found of other inputs must not be mixed with what is found now."""
    run, facts = plan.run, plan.every_fact
    with Store.open(run.store, readonly=True) as store:
        before = store.facts()
    if before.get(QUESTION) != facts.get(QUESTION):
        what = "is not of `measure`" if QUESTION not in before else f"answers another question, {before[QUESTION]}"
        raise BadInput(
            f"{run.folder}: the run there is another one, it {what}; give --out a new folder, or --no-resume to start "
            "anew here"
        )
    if before.get("state") not in (READY, EXTENDING):
        return
    longer = begins(plan, before)
    changed = [
        what
        for name, what in plan.matters.items()
        if before.get(name) != facts.get(name) and not (longer and name in ("texts", "spaces"))
    ]
    if changed and plan.extends and (held := number_held(plan, before)) is not None:
        raise BadInput(
            f"{run.folder}: the run there has {held} texts, of which these are the first {len(plan.inputs.texts)}; ask "
            "for as many or more, or give --out a new folder"
        )
    if changed:
        raise BadInput(
            f"{run.folder}: the run there is of another task: {', '.join(changed)} changed; give --out a new folder, "
            "or --no-resume to start anew here"
        )
    now, then = (json.loads(found.get("seconds", "null")) for found in (facts, before))
    if now is not None and (then is None or now < then):
        raise BadInput(
            f"{run.folder}: the run there has {'no limit of' if then is None else f'{then:g}'} seconds for a text, and "
            f"--seconds {now:g} is less; give at least as many, --out a new folder, or --no-resume to start anew here"
        )


def begins(plan: RunPlan, before: Mapping[str, str]) -> bool:
    """Whether the texts that are there, and their swaps, are the first of more."""
    there = json.loads(before.get("total", "0"))
    first = plan.inputs.texts[:there]
    return (
        plan.extends
        and 0 < there < len(plan.inputs.texts)
        and texts_digest(first) == before.get("texts")
        and digest_of(text.frozen for text in first) == before.get("spaces")
    )


def number_held(plan: RunPlan, before: Mapping[str, str]) -> int | None:
    """How many texts are there, if nothing is another but that there are more."""
    there, facts = json.loads(before.get("total", "0")), plan.every_fact
    others = (name for name in plan.matters if name not in ("texts", "spaces"))
    if there <= len(plan.inputs.texts) or any(before.get(name) != facts.get(name) for name in others):
        return None
    try:
        with plan.run.texts.open("rb") as file:
            same = all(raw == line for raw, line in zip(file, text_lines(plan.inputs), strict=False))
    except OSError:
        return None
    return there if same else None


def begin(plan: RunPlan, *, made: bool, anew: bool) -> None:
    """Bring the folder to where texts can be settled.

    The store comes first and says `preparing` until all else is there, so a run killed here is recognised and begun
    again. When the store was not there before and the folder cannot be filled, nothing stays.
    """
    run, facts = plan.run, plan.every_fact
    existed = run.store.exists()
    try:
        if existed:
            with Store.open(run.store) as store:
                before = store.facts()
                state = before.get("state")
                if not anew and (state == EXTENDING or (state == READY and begins(plan, before))):
                    extend(plan, store)
                    return
                if state == READY and not anew:
                    if before.get("seconds") != facts.get("seconds") or not run.manifest.exists():
                        write_accounts(plan)
                        store.set_facts({name: facts[name] for name in ("seconds", "about") if name in facts})
                    return
                if not plan.from_itself:
                    keep_sources(plan)
                store.set_facts({**facts, "state": PREPARING}, forget_results=True)
            if not plan.from_itself:
                remove_own(run, own_tensors(before), store=False)
        else:
            Store.create(run.store, {**facts, "state": PREPARING})
        copy_inputs(plan)
        write_accounts(plan)
        with Store.open(run.store) as store:
            store.set_facts({"state": READY})
    except BaseException:
        if not existed:
            remove_own(run, [name for name, _ in plan.binding.tensors], store=True)
            run.lock.unlink(missing_ok=True)
            if made:
                run.folder.rmdir()
        raise


def extend(plan: RunPlan, store: Store) -> None:
    """More texts, those that were there first among them: what is known of these stays.

    The store comes first, and says so until the files are there: a run killed here is extended again.
    """
    store.set_facts({**plan.every_fact, "state": EXTENDING})
    copy_inputs(plan)
    write_accounts(plan)
    store.set_facts({"state": READY})


def keep_sources(plan: RunPlan) -> None:
    """Starting anew removes the run's own files, which must not be those it is to be made from."""
    run, task = plan.run, plan.task
    own = {path.resolve() for path in run.contents()}
    for path in (value for _, section in task for _, value in section):
        if isinstance(path, Path) and path.resolve() in own:
            raise BadInput(f"{path}: would be removed by starting {run.folder} anew; give --out a new folder")


def own_tensors(facts: Mapping[str, str]) -> list[str]:
    """External tensor files that an earlier beginning of this run may have copied."""
    return [name for name, _ in json.loads(facts.get("model", '[""]'))[1:]]


def copy_inputs(plan: RunPlan) -> None:
    """Model, vocabulary, texts and frozen swaps into the run folder, so that it depends on nothing outside."""
    run, inputs = plan.run, plan.inputs
    with writing(run.certificates):
        run.certificates.mkdir(exist_ok=True)
    for copy in plan.copies:
        (run.folder / copy.name).parent.mkdir(parents=True, exist_ok=True)
        if copy.content is None:
            copy_atomically(copy.path, run.folder / copy.name, copy.sha256)
        else:
            write_atomically(run.folder / copy.name, [copy.content])
    write_atomically(run.texts, text_lines(inputs))
    write_atomically(run.spaces, (f"{text.frozen.line}\n".encode() for text in inputs.texts))


def write_accounts(plan: RunPlan) -> None:
    """The manifest, and the task of the copies in this folder, which can be run again."""
    run, task = plan.run, plan.task
    write_manifest(run, manifest_of(task, plan.binding, plan.inputs, plan.every_fact, plan.given))
    if all(text.answer is None for text in plan.inputs.texts):
        task = task.model_copy(update={"data": task.data.model_copy(update={"answer": None})})
    copied = copied_task(run, task, plan.own)
    notes = [
        "The model, vocabulary, texts and frozen swaps of this run, as they lie in this folder.",
        f"{run.manifest.name} says what they were made from.",
    ]
    write_atomically(run.task, copied.resolved(notes).encode())


def copied_task(run: Run, task: Task, own: Mapping[str, Any], up: str = "") -> Task:
    """The task of a run's own copies, for a file in its folder, or in one below it (`up`: "../")."""
    data = DataSection.model_construct(
        file=Path(up + run.texts.name),
        text="text",
        label="label",
        context=None if task.data.context is None else "context",
        first=task.data.first,
        answer=None if task.data.answer is None else "answer",
    )
    swaps = SwapsSection.model_construct(frozen=Path(up + run.spaces.name), swap_unknown=task.swaps.swap_unknown)
    model = task.model.model_copy(update={**own, "label_map": None})
    return task.model_copy(update={"model": model, "data": data, "swaps": swaps})


def settle(plan: RunPlan, work: Work, jobs: int, *, doing: str, facts: Mapping[str, str], shown: bool) -> None:
    """Settle what is not settled yet, and leave results.jsonl, whatever happens; `facts` are those of this try."""
    run = plan.run
    with Store.open(run.store) as store:
        store.set_facts({"require": json.dumps(plan.task.require.model_dump(mode="json")), **facts})
        with writing(run.folder):  # those of what was known before; the new ones are written last
            for path in (run.results, run.summary, run.report):
                path.unlink(missing_ok=True)
        try:
            settle_texts(plan, store, work, jobs, doing=doing, shown=shown)
        finally:
            write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(work.stage)))


def settle_texts(plan: RunPlan, store: Store, work: Work, jobs: int, *, doing: str, shown: bool) -> None:
    """This process alone writes, one transaction per text, its certificate first."""
    run, texts = plan.run, plan.inputs.texts
    finished = {id for id, certificate in store.finished(work.stage) if intact(run, id, certificate)}
    work, again = work.resumed(run, store, finished)
    todo = [text for text in texts if text.id not in finished or text.id in again]
    deployed = {text.id: {"answer": text.answer} for text in todo if text.answer is not None}
    if not todo:
        return
    with (
        progress(doing, len(texts), len(texts) - len(todo), shown=shown) as advance,
        closing(settle_all(work, todo, min(jobs, len(todo)))) as found,
    ):
        for one in found:
            match one:
                case Lost(text) if text.id in again:
                    pass  # what was known of it stays
                case Lost(text):
                    store.put(work.stage, text.id, written(work.lost(one) | deployed.get(text.id, {})), None, lost=True)
                case Settled(id, line):
                    line = line | deployed.get(id, {})
                    store.put(work.stage, id, written(line), write_evidence(run, one))
                    kept = work.kept(one, again=id in again)
                    if kept is not None:
                        store.put(work.kept_stage, id, kept, None)
            if isinstance(one, Settled):
                run.begun(one.id).unlink(missing_ok=True)
            advance(1)


def intact(run: Run, id: int, evidence: str | None) -> bool:
    """Whether the certificate or transcript of a finished text is still the one that was written."""
    paths = (run.certificate(id), run.transcript(id))
    return evidence is None or any(path.is_file() and sha256(path) == evidence for path in paths)


def write_evidence(run: Run, settled: Settled) -> str | None:
    """The SHA-256 of the certificate or transcript; a proof that was refused is written beside."""
    path, digest = run.certificate(settled.id), None
    if settled.transcript is not None:
        with writing(run.transcripts):
            run.transcripts.mkdir(exist_ok=True)
        digest = write_atomically(run.transcript(settled.id), settled.transcript, durable=False)
    if settled.certificate is not None:
        digest = write_atomically(path, settled.certificate, durable=False)
    if settled.refused is not None:
        with writing(run.refused):
            run.refused.mkdir(exist_ok=True)
        write_atomically(run.refused / path.name, settled.refused)
    return digest


def published(run: Run, summary: dict[str, Any]) -> Outcome:
    """summary.json, which says that a run is finished."""
    write_json(run.summary, summary)
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
