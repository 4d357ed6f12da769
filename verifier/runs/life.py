"""The life of a run: begun, resumed or begun anew, worked on, published; the same for every command that makes one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.models.deployed.classifier import Copy

from ..tasks.inputs import Inputs, text_lines
from ..tasks.sections import DataSection, SwapsSection
from ..tasks.task import Task
from ..versions import AT_WORK, versions
from .binding import OWN, Binding, copies_of
from .jobs.job_digest import digests_of
from .jobs.text_by_text import Hands, settle_texts
from .manifest import QUESTION, manifest_of, write_manifest
from .run_folder import CERTIFICATE, Run, copy_atomically, held, remove_own, write_atomically
from .store import Store, writing
from .work import Work

if TYPE_CHECKING:
    from ..ladder.model_trial import Seen

PREPARING, READY, EXTENDING = "preparing", "ready", "extending"
"""States of a store: until all files are there, and from then on; and until those of more texts are there."""
OF_TEXTS = {"task", "texts", "spaces"}
"""Facts that may change with some texts, while what was found of the others stands."""
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

    def _repr_html_(self) -> str:
        """In a notebook: the claim and the numbers."""
        from ..pages.notebook_view import html_of

        return html_of(self.folder, self.summary)

    def to_pandas(self) -> Any:
        """The texts as a DataFrame, a row for each."""
        from ..pages.notebook_view import frame_of

        return frame_of(self.folder)


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
    """Facts that must be the same for the run to go on as it is, and what to call them."""
    from_itself: bool = False
    """Begun anew from its own copies, a run may keep them; else what a run wrote is removed before it begins anew."""
    extends: bool = True
    """What is known of a text is true whatever other texts there are: a run of other texts goes on with it."""
    model: Model | None = field(default=None, repr=False, compare=False)
    """Kept until its file is copied: the file of one that was made from another is gone with it."""

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
        return cls(run, task, inputs, binding, copies, own, facts, given=model.given, model=model, **more)

    @property
    def every_fact(self) -> dict[str, str]:
        return {
            "task": self.task.digest,
            "model section": self.task.model_digest,
            "model": json.dumps([self.binding.model_sha256, *self.binding.tensors]),
            "vocabulary": self.inputs.vocabulary_sha256,
            "texts": self.inputs.digest,
            "spaces": self.binding.spaces_sha256,
            "total": json.dumps(len(self.inputs.texts)),
            **versions("swapproof"),
            **self.facts,
        }

    @cached_property
    def jobs(self) -> dict[int, str]:
        """What is asked of each text, as a digest."""
        return digests_of(self.every_fact, self.inputs.texts)


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
        "data": data_of(inputs),
        "versions": versions(*AT_WORK),
    }
    return {"engines": engines, "seconds": json.dumps(seconds), "about": json.dumps(about, ensure_ascii=False)}


def data_of(inputs: Inputs) -> dict[str, Any]:
    """What was skipped of the data; `ended`: of a shard behind which the others have no text."""
    ended = {"ended": True} if inputs.ended else {}
    return {"skipped": inputs.skipped, "defects": list(inputs.defects), **ended}


@contextmanager
def begun(plan: RunPlan, *, resume: bool, shown: bool = False) -> Iterator[None]:
    """Inside, the run is ours alone and ready for results; one of the same is gone on with, unless begun anew."""
    run = plan.run
    made = not run.folder.exists()
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        if shown and plan.inputs.short:
            print(f"swapproof: {plan.inputs.short}", file=sys.stderr)
        if resume and run.store.exists():
            others = refuse_changes(plan)
            if shown and others:
                print(
                    f"{run.folder}: {others} of {len(plan.inputs.texts)} texts are not those of the run there, or have "
                    "other swaps: they are done again",
                    file=sys.stderr,
                )
        begin(plan, made=made, anew=not resume)
        yield


def refuse_changes(plan: RunPlan) -> int:
    """What a run found of other inputs must not be mixed with what is found now; how many results will be dropped."""
    run, facts = plan.run, plan.every_fact
    with Store.open(run.store, readonly=True) as store:
        before, jobs = store.facts(), store.jobs()
    if before.get(QUESTION) != facts.get(QUESTION):
        own = "attack" if json.loads(facts.get(QUESTION, "{}")).get("quantity") == "attack" else "measure"
        what = f"is not of `{own}`" if QUESTION not in before else f"answers another question, {before[QUESTION]}"
        raise BadInput(
            f"{run.folder}: the run there is another one, it {what}; give --out a new folder, or --no-resume to start "
            "anew here"
        )
    if before.get("state") not in (READY, EXTENDING):
        return 0
    changed = {name: what for name, what in plan.matters.items() if before.get(name) != facts.get(name)}
    if changed and plan.extends and (held := number_held(plan, before)) is not None:
        raise BadInput(
            f"{run.folder}: the run there has {held} texts, of which these are the first {len(plan.inputs.texts)}; ask "
            "for as many or more, or give --out a new folder"
        )
    others = sum(plan.jobs.get(id) != job for id, job in jobs.items())
    if changed and not (plan.extends and changed.keys() <= OF_TEXTS and (not jobs or others < len(jobs))):
        raise BadInput(
            f"{run.folder}: the run there is of another task: {', '.join(changed.values())} changed; give --out a new "
            "folder, or --no-resume to start anew here"
        )
    now, then = (json.loads(found.get("seconds", "null")) for found in (facts, before))
    if now is not None and (then is None or now < then):
        raise BadInput(
            f"{run.folder}: the run there has {'no limit of' if then is None else f'{then:g}'} seconds for a text, and "
            f"--seconds {now:g} is less; give at least as many, --out a new folder, or --no-resume to start anew here"
        )
    return others if changed else 0


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
                if not anew and (state == EXTENDING or (state == READY and has_other_texts(plan, before))):
                    extend(plan, store)
                    return
                if state == READY and not anew:
                    if not has_its_files(plan):
                        copy_inputs(plan)
                        write_accounts(plan)
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


def has_its_files(plan: RunPlan) -> bool:
    """Whether all that a run is made from is there, as long as it was: a folder may have been copied in part."""
    run = plan.run
    sizes = {run.texts: sum(map(len, text_lines(plan.inputs)))}
    sizes[run.spaces] = sum(len(text.frozen.line.encode()) + 1 for text in plan.inputs.texts)
    for copy in plan.copies:
        source = copy.path.stat().st_size if copy.content is None else len(copy.content)
        sizes[run.folder / copy.name] = source
    here = all(path.is_file() and path.stat().st_size == size for path, size in sizes.items())
    return here and run.certificates.is_dir() and run.task.is_file() and run.manifest.is_file()


def has_other_texts(plan: RunPlan, before: Mapping[str, str]) -> bool:
    return any(before.get(name) != plan.every_fact[name] for name in OF_TEXTS & plan.matters.keys())


def extend(plan: RunPlan, store: Store) -> None:
    """More texts, or other ones: what is known of those that were there, with the same swaps, stays.

    The store comes first, and says so until the files are there: a run killed here is extended again.
    """
    run = plan.run
    with store.together():
        store.set_facts({**plan.every_fact, "state": EXTENDING})
        store.forget(id for id, job in store.jobs().items() if plan.jobs.get(id) != job)
    known = store.jobs()
    with writing(run.folder):
        for folder in (run.certificates, run.transcripts, run.refused):
            for path in folder.iterdir() if folder.is_dir() else ():
                if CERTIFICATE.fullmatch(path.name) and int(path.stem) not in known:
                    path.unlink()
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


def settle(plan: RunPlan, work: Work, hands: Hands, *, doing: str, facts: Mapping[str, str], shown: bool) -> None:
    """Settle what is not settled yet, and leave results.jsonl, whatever happens; `facts` are those of this try."""
    run = plan.run
    with Store.open(run.store) as store:
        store.set_facts({"require": json.dumps(plan.task.require.model_dump(mode="json")), **facts})
        with writing(run.folder):  # those of what was known before; the new ones are written last
            for path in (run.results, run.summary, run.report):
                path.unlink(missing_ok=True)
        try:
            settle_texts(run, store, work, plan.inputs.texts, plan.jobs, hands, doing=doing, shown=shown)
        finally:
            write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(work.stage)))


def published(run: Run, summary: dict[str, Any]) -> Outcome:
    """summary.json, which says that a run is finished."""
    write_json(run.summary, summary)
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
