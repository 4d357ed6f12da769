"""`certify`: every text of a task settled, stored at once, and summed up; a killed run goes on where it was."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.onnx_reading import Model, open_model

from ..engines import engines_named
from ..ladder.model_trial import Trial, length_of, tried
from ..ladder.run_certificates import Binding, Checker, binding_of
from ..pages.progress import progress as shown_progress
from ..pages.report_file import write_report
from ..runs.inputs import Inputs, read_inputs
from ..runs.results import lost, written
from ..runs.resuming import KEPT, Earlier, had_less
from ..runs.run_folder import Run, copy_atomically, held, refuse_foreign, remove_own, sha256, write_atomically
from ..runs.run_summary import STAGE, summary_of
from ..runs.station import Lost, Setting, Settled
from ..runs.store import Store, writing
from ..runs.store import intact as undamaged
from ..runs.task import DataSection, SwapsSection, Task, read_task
from ..runs.workers import settle_all

PREPARING, READY = "preparing", "ready"
SECONDS = 60.0
"""Time for one text, unless said; the command line says the same."""

WHAT = {  # facts that must be the same for a run to go on, and what to call them
    "task": "the task file",
    "model": "the model",
    "vocabulary": "the vocabulary",
    "texts": "the texts, their labels or their number (--limit)",
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
    binding = binding_of(model, inputs)
    checker = Checker.open(binding, model.path, model.path.parent)
    checker.try_network(trial.network)
    facts = facts_of(given, binding, inputs, trial, names, seconds)
    made = not run.folder.exists()
    with writing(run.folder):
        run.folder.mkdir(parents=True, exist_ok=True)
    with held(run):
        if resume and run.store.exists():
            refuse_changes(run, facts)
        begin(run, given, trial, binding, inputs, facts, made=made, anew=not resume)
        with Store.open(run.store) as store:
            store.set_facts({"radius": json.dumps(radius)})
            with writing(run.folder):  # those of what was known before; the new ones are written last
                run.results.unlink(missing_ok=True)
                run.summary.unlink(missing_ok=True)
                run.report.unlink(missing_ok=True)
            try:
                work(run, store, Setting(run.folder, binding, names, seconds), inputs, jobs, shown=progress)
            finally:
                export(run, store)
            summary = summary_of(store)
        write_atomically(run.summary, (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode())
        write_report(run)
    return Outcome(run.folder, summary, summary["verdict"]["exit_code"])


def require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise BadInput(otherwise)


def facts_of(
    task: Task, binding: Binding, inputs: Inputs, trial: Trial, engines: str, seconds: float | None
) -> dict[str, str]:
    """What the run is about: everything its results depend on, and what its report says of that."""
    freezing = inputs.freezing
    about = {
        "labels": list(inputs.labels),
        "remarks": list(trial.remarks),
        "swaps": {
            "source": inputs.source,
            "sha256": binding.spaces_sha256,
            "considered": freezing.considered,
            "removed": dict(freezing.removed),
            "kept": freezing.candidates,
            "fixed": dict(freezing.fixed),
            "dropped_on_reading": inputs.table,
        },
        "model": {**trial.facts(), "sha256": binding.model_sha256},
        "engines": engines.split(","),
        "seconds_per_text": seconds,
        "versions": versions("swapproof", "numpy", "onnx", "onnxruntime"),
    }
    return {
        "task": task.digest,
        "model": json.dumps([binding.model_sha256, *binding.tensors]),
        "vocabulary": inputs.vocabulary_sha256,
        "texts": inputs.digest,
        "spaces": binding.spaces_sha256,
        "engines": engines,
        "seconds": json.dumps(seconds),
        "total": json.dumps(len(inputs.texts)),
        "about": json.dumps(about, ensure_ascii=False),
        **versions("swapproof"),
    }


def versions(*distributions: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in distributions}


def refuse_changes(run: Run, facts: dict[str, str]) -> None:
    """What a run found of other inputs must not be mixed with what is found now."""
    with Store.open(run.store, readonly=True) as store:
        before = store.facts()
    if before.get("state") != READY:
        return
    changed = [what for name, what in WHAT.items() if before.get(name) != facts[name]]
    if changed:
        raise BadInput(
            f"{run.folder}: the run there is of another task: {', '.join(changed)} changed; give --out a new folder, "
            "or --no-resume to start anew here"
        )
    now, then = json.loads(facts["seconds"]), json.loads(before["seconds"])
    if now is not None and (then is None or now < then):
        raise BadInput(
            f"{run.folder}: the run there has {'no limit of' if then is None else f'{then:g}'} seconds for a text, and "
            f"--seconds {now:g} is less; give at least as many, --out a new folder, or --no-resume to start anew here"
        )


def begin(
    run: Run,
    task: Task,
    trial: Trial,
    binding: Binding,
    inputs: Inputs,
    facts: dict[str, str],
    *,
    made: bool,
    anew: bool,
) -> None:
    """Bring the folder to where texts can be settled.

    The store comes first and says `preparing` until all else is there, so a run killed here is recognised and begun
    again. When the store was not there before and the folder cannot be filled, nothing stays.
    """
    tensors = [name for name, _ in binding.tensors]
    existed = run.store.exists()
    try:
        if existed:
            with Store.open(run.store) as store:
                before = store.facts()
                if before.get("state") == READY and not anew:
                    if before["seconds"] != facts["seconds"]:
                        write_atomically(run.task, resolved(run, task, facts, inputs).encode())
                        store.set_facts({name: facts[name] for name in ("seconds", "about")})
                    return
                keep_sources(run, task)
                store.set_facts({**facts, "state": PREPARING}, forget_results=True)
            remove_own(run, own_tensors(before), store=False)
        else:
            Store.create(run.store, {**facts, "state": PREPARING})
        with writing(run.certificates):
            run.certificates.mkdir(exist_ok=True)
        copy_inputs(run, task, trial.model, binding, inputs)
        write_atomically(run.task, resolved(run, task, facts, inputs).encode())
        with Store.open(run.store) as store:
            store.set_facts({"state": READY})
    except BaseException:
        if not existed:
            remove_own(run, tensors, store=True)
            run.lock.unlink(missing_ok=True)
            if made:
                run.folder.rmdir()
        raise


def copy_inputs(run: Run, task: Task, model: Model, binding: Binding, inputs: Inputs) -> None:
    """Model, vocabulary, texts and frozen swaps into the run folder, so that it depends on nothing outside."""
    copy_atomically(model.path, run.model, binding.model_sha256)
    for name, digest in binding.tensors:
        copy_atomically(model.path.parent / name, run.folder / name, digest)
    copy_atomically(task.model.vocabulary, run.vocabulary, inputs.vocabulary_sha256)
    write_atomically(run.texts, text_lines(inputs))
    write_atomically(run.spaces, (f"{text.frozen.line}\n".encode() for text in inputs.texts))


def text_lines(inputs: Inputs) -> Iterator[bytes]:
    for text in inputs.texts:
        line = {"id": text.id, "text": text.encoded.text, "label": inputs.labels[text.label]}
        yield f"{json.dumps(line, ensure_ascii=False)}\n".encode()


def keep_sources(run: Run, task: Task) -> None:
    """Starting anew removes the run's own files, which must not be those it is to be made from."""
    own = {path.resolve() for path in run.contents()}
    for path in (task.model.onnx, task.model.vocabulary, task.data.file, task.swaps.frozen, task.swaps.file):
        if path is not None and path.resolve() in own:
            raise BadInput(f"{path}: would be removed by starting {run.folder} anew; give --out a new folder")


def own_tensors(facts: dict[str, str]) -> list[str]:
    """External tensor files that an earlier beginning of this run may have copied."""
    return [name for name, _ in json.loads(facts.get("model", '[""]'))[1:]]


def resolved(run: Run, task: Task, facts: dict[str, str], inputs: Inputs) -> str:
    """The task of the copies in this folder, which `certify` can run again; above it, what it was made from."""
    hashes = {name: facts[name] for name in ("model", "vocabulary", "texts", "spaces", "task")}
    ours = versions("swapproof", "numpy", "onnx", "onnxruntime")
    notes = [
        "The model, vocabulary, texts and frozen swaps of this run, as they lie in this folder.",
        "SHA-256:",
        *(f"  {name} {value}" for name, value in hashes.items()),
        "Versions:",
        *(f"  {name} {version}" for name, version in ours.items()),
        f"  python {platform.python_version()} on {platform.platform()}",
        f"Engines {facts['engines']}; seconds per text {facts['seconds']}; swaps from {inputs.source}.",
    ]
    return of_copies(run, task, notes)


def of_copies(run: Run, task: Task, notes: Sequence[str]) -> str:
    """The task of the files that `copy_inputs` leaves; above it these notes, and the task they were made from."""
    model = {"onnx": Path(run.model.name), "vocabulary": Path(run.vocabulary.name)}
    data = DataSection.model_construct(file=Path(run.texts.name), text="text", label="label")
    swaps = SwapsSection.model_construct(frozen=Path(run.spaces.name), swap_unknown=task.swaps.swap_unknown)
    copied = task.model_copy(update={"model": task.model.model_copy(update=model), "data": data, "swaps": swaps})
    origin = [f"  {line}" for line in task.placeless.resolved().splitlines()]
    return copied.resolved([*notes, "", "It was made from:", *origin, ""])


def work(run: Run, store: Store, setting: Setting, inputs: Inputs, jobs: int, *, shown: bool) -> None:
    """Settle what is not settled yet. This process alone writes, one transaction per text, its certificate first."""
    finished = {id for id, certificate in store.finished(STAGE) if intact(run, id, certificate)}
    setting = replace(setting, earlier=open_before(run, store, finished, setting.seconds))
    finished -= setting.earlier.keys()
    todo = [text for text in inputs.texts if text.id not in finished]
    with (
        shown_progress("certify", len(inputs.texts), len(finished), shown=shown) as advance,
        closing(settle_all(setting, todo, min(jobs, max(1, len(todo))))) as found,
    ):
        for one in found if todo else ():
            match one:
                case Lost(text) if text.id in setting.earlier:
                    pass  # what was known of it stays
                case Lost(text, reason, seconds):
                    store.put(STAGE, text.id, written(lost(text, reason, seconds)), None, lost=True)
                case Settled(id, line, certificate, kept, refused):
                    digest = None
                    if certificate is not None:
                        digest = write_atomically(run.certificate(id), certificate, durable=False)
                    if refused is not None:
                        with writing(run.refused):
                            run.refused.mkdir(exist_ok=True)
                        write_atomically(run.refused / run.certificate(id).name, refused)
                    store.put(STAGE, id, written(line), digest)
                    if kept is not None or id in setting.earlier:
                        store.put(KEPT, id, kept or "{}", None)
            advance(1)


def open_before(run: Run, store: Store, finished: set[int], seconds: float | None) -> dict[int, Earlier]:
    """The texts that less time left open, with nothing that did not check."""
    kept = {id: store.line(KEPT, id) for id, _ in store.finished(KEPT)}
    found = {}
    for id in sorted(finished):
        line = store.result(STAGE, id)
        with undamaged(run.store):
            less = had_less(kept.get(id), seconds)
        if line["status"] == "open" and "contradiction" not in line and less:
            data = None if line["certificate"] is None else run.certificate(id).read_bytes()
            found[id] = Earlier(line, data, kept.get(id))
    return found


def intact(run: Run, id: int, certificate: str | None) -> bool:
    """Whether the certificate of a finished text is still the one that was written."""
    path = run.certificate(id)
    return certificate is None or (path.is_file() and sha256(path) == certificate)


def export(run: Run, store: Store) -> None:
    """results.jsonl, from the store."""
    write_atomically(run.results, (f"{line}\n".encode() for line in store.lines(STAGE)))
