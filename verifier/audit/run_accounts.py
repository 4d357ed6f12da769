"""The accounts that a run gives of itself must be one: store, summary and report say what results.jsonl says.

`check` compares results.jsonl with the certificates. Nothing else proves what the other files say, and people read
those: so a finished run whose store.sqlite, summary.json or report.html says anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.proofs.writing.certificate import merkle_root

from ..counting.whole_runs.black_box import are_of_black_box
from ..ladder.model_trial import facts_on, remarks_on, seen_when_tried
from ..ladder.rereading import misread
from ..pages.beside.shown_beside import beside
from ..pages.packed_rows import Page, read_choices
from ..pages.page import page, weakness
from ..pages.sheets.measured_page import lines_of as page_lines
from ..pages.sheets.measured_page import page_of_run
from ..runs.binding import Binding, binding_of
from ..runs.keys_once import once
from ..runs.left_out_swaps import counts_differ, list_differs
from ..runs.manifest import deployed_differs, made_otherwise, read_manifest, remarks_of_export, settings_of
from ..runs.manifest import differences as manifest_differences
from ..runs.run_folder import Run
from ..runs.run_folder import sha256 as sha256_of
from ..runs.run_summary import STAGE, summarise, summary_from
from ..runs.store import Store
from ..tasks.inputs import Inputs, text_lines
from ..tasks.opened_model import opened_in
from ..tasks.task import read_task
from .line_claims import OF_A_RUN, additions
from .run_items import AGAIN, Unfinished

ANOTHER_PAGE = (
    "report.html is not the page that this version of swapproof makes of results.jsonl; `swapproof report` writes it "
    "anew"
)


def differences(run: Run, inputs: Inputs) -> Iterator[str]:
    """What a run of `certify` says in one place and not in the other; `inputs` are those of the run's own files."""

    def others(facts: Mapping[str, str]) -> Iterator[str]:
        yield from files_differ(run, inputs, facts)
        for fault in network_differs(opened_in(run), inputs, json.loads(facts["about"]), run):
            yield f"store.sqlite {fault}"
        lines = lines_of(run)
        yield from pages_differ(run, facts, lines)
        yield from misread(run, inputs, lines)

    return compared(run, STAGE, others)


def measured_differences(run: Run, inputs: Inputs, stage: str, *, deployed: bool) -> Iterator[str]:
    """The same of a run of `measure`, whose summary is compared elsewhere and which has no page."""

    def others(facts: Mapping[str, str]) -> Iterator[str]:
        yield from files_differ(run, inputs, facts)
        yield from page_differs(run)
        model, about = opened_in(run), json.loads(facts["about"])
        faults = unread_differs(model, inputs, about) if deployed else network_differs(model, inputs, about, run)
        for fault in faults:
            yield f"store.sqlite {fault}"

    return compared(run, stage, others)


def files_noted_otherwise(run: Run) -> Iterator[str]:
    """Where the manifest says another thing of the task, the spaces, or the model where a copy of it lies there."""
    manifest = read_manifest(run.manifest.read_bytes())
    yield from made_otherwise(run, manifest)
    noted = manifest["sha256"]
    if sha256_of(run.spaces) != noted["spaces"]:
        yield "manifest.json notes another SHA-256 of the spaces"
    if run.model.exists() and sha256_of(run.model) != noted["model"]:
        yield "manifest.json notes another SHA-256 of the model"


def page_differs(run: Run) -> Iterator[str]:
    """The page of a run of `measure` or `attack`, beside the one that its summary and lines make."""
    if run.report.exists() and run.summary.exists():
        summary = json.loads(run.summary.read_bytes(), object_pairs_hook=once)
        if not page_of_run(run, summary, page_lines(run)).is_at(run.report):
            yield ANOTHER_PAGE


def compared(run: Run, stage: str, others: Callable[[Mapping[str, str]], Iterable[str]]) -> Iterator[str]:
    """The lines first: where these differ, nothing else is looked at."""
    with Store.open(run.store, readonly=True) as store:
        facts, other = store.facts(), line_that_differs(run, store, stage)
        certificates = list(store.finished(stage))
    if other is not None:
        yield f"results.jsonl and store.sqlite differ in {other}; {AGAIN}"
        return
    try:
        yield from certificates_differ(run, certificates)
        yield from others(facts)
    except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
        yield f"the run's own account of itself cannot be compared: {type(error).__name__}: {error}"


def certificates_differ(run: Run, recorded: Iterable[tuple[int, str | None]]) -> Iterator[str]:
    """The certificates (or transcripts), and their root if there is one, beside what the store recorded of them."""
    leaves = []
    transcripts = run.transcripts.is_dir()
    for id, stated in recorded:
        path = run.transcript(id) if transcripts and run.transcript(id).exists() else run.certificate(id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = None
        if stated != (None if data is None else sha256(data).hexdigest()):
            yield f"{path.name} is another certificate than the store recorded"
        elif data is not None:
            leaves.append((path.name, data))
    root = run.certificates / "root"
    if root.exists() and root.read_bytes() != f"{merkle_root(leaves)}\n".encode():
        yield "certificates/root is not the Merkle root of the certificates"


def line_that_differs(run: Run, store: Store, stage: str) -> str | None:
    """Where the lines of the file and of the store part. A killed run, whose store is ahead, is to be finished."""
    number = 0
    with run.results.open("rb") as file:
        for number, (raw, line) in enumerate(zip_longest(file, store.lines(stage)), start=1):
            if raw is None and not run.summary.exists():
                raise Unfinished(f"{run.folder}: the run was killed before it wrote what it found; {AGAIN}")
            if raw is None or line is None or raw != f"{line}\n".encode():
                return f"line {number}"
    return None


def files_differ(run: Run, inputs: Inputs, facts: Mapping[str, str]) -> Iterator[str]:
    """What the store and the task file say the run is about, beside the files of the run."""
    yield from names_differ(run)
    yield from bound_otherwise(run, inputs, facts, binding_as_it_lies(run, inputs))


def bound_otherwise(run: Run, inputs: Inputs, facts: Mapping[str, str], binding: Binding) -> Iterator[str]:
    """What the store says of texts, swaps and model, beside what lies there."""
    yield from texts_differ(run, inputs)
    about = json.loads(facts["about"])
    compared = {
        "the model": (json.loads(facts["model"]), [binding.model_sha256, *map(list, binding.tensors)]),
        "the vocabulary": (facts["vocabulary"], binding.vocabulary_sha256),
        "the texts and labels": (facts["texts"], inputs.digest),
        "the number of texts": (json.loads(facts["total"]), len(inputs.texts)),
        "the frozen swaps": (facts["spaces"], binding.spaces_sha256),
    }
    for name, (stated, found) in compared.items():
        if stated != found:
            yield f"store.sqlite says another thing of {name} than the files of the run"
    for fault in about_differs(run, inputs, about, binding):
        yield f"store.sqlite {fault}"
    yield from list_differs(run, inputs, facts, about["swaps"]["removed"])
    manifest = read_manifest(run.manifest.read_bytes())
    yield from manifest_differences(manifest, binding, inputs)
    yield from made_otherwise(run, manifest)
    yield from deployed_differs(run, manifest)
    if manifest["sha256"]["task"] != facts["task"]:
        yield "manifest.json and store.sqlite were made from other tasks"
    if manifest["settings"] != settings_of(facts):
        yield "manifest.json and store.sqlite were asked for other things"
    yield from versions_differ(manifest, about, "store.sqlite")


def binding_as_it_lies(run: Run, inputs: Inputs) -> Binding:
    """Of the very bytes of spaces.jsonl, not of what was read there."""
    return binding_of(run.model, inputs, run.spaces)


def noted_otherwise(run: Run, inputs: Inputs, summary: Mapping[str, Any]) -> Iterator[str]:
    """The manifest of a run without its store, beside its files and its summary."""
    manifest = read_manifest(run.manifest.read_bytes())
    yield from manifest_differences(manifest, binding_as_it_lies(run, inputs), inputs)
    yield from made_otherwise(run, manifest)
    yield from versions_differ(manifest, summary, "summary.json")


def versions_differ(manifest: Mapping[str, Any], about: Mapping[str, Any], where: str) -> Iterator[str]:
    for name, version in about.get("versions", {}).items():
        if manifest["versions"].get(name) != version:
            yield f"{where} and manifest.json name other versions of {name}"


def names_differ(run: Run) -> Iterator[str]:
    """The task file must name the run's own files."""
    task = read_task(run.task)
    own = {"onnx": run.model, "vocabulary": run.vocabulary, "data": run.texts, "frozen": run.spaces}
    named = (task.model.onnx, task.model.vocabulary, task.data.file, task.swaps.frozen)
    for (name, path), other in zip(own.items(), named, strict=True):
        if other is None or other.resolve() != path.resolve():
            yield f"task.toml names {other} as {name}, not the run's own {path.name}"


def texts_differ(run: Run, inputs: Inputs) -> Iterator[str]:
    """Their ids, which nobody reads as long as the order is right, and what else is there."""
    if run.texts.read_bytes() != b"".join(text_lines(inputs)):
        yield "texts.jsonl is not the file that a run writes of these texts and labels"


def about_differs(run: Run, inputs: Inputs, about: Mapping[str, Any], binding: Binding) -> Iterator[str]:
    """What store or summary say of labels, swaps and model files."""
    compared = {
        "the swaps shown": (about["swaps"]["sha256"], sha256_of(run.spaces)),
        "the number of swaps": (about["swaps"]["kept"], sum(one.frozen.space.candidates for one in inputs.texts)),
        "the model shown": (about["model"]["sha256"], binding.model_sha256),
        "the names of the classes": (about["labels"], list(inputs.labels)),
    }
    for name, (stated, found) in compared.items():
        if stated != found:
            yield f"says another thing of {name} than the files of the run"
    of_lines = summarise(())  # these names are not for the run to say, and never shown as it says them
    shown = {name: value for name, value in about.items() if name not in of_lines}
    run_not_read = read_task(run.task).model.road == "run"
    yield from additions(shown, OF_A_RUN | {"model": None} if run_not_read else OF_A_RUN, what="run")
    yield from counts_differ(run, inputs, about["swaps"])


def lines_of(run: Run) -> list[dict[str, Any]]:
    """What results.jsonl says, by id."""
    with run.results.open("rb") as file:
        return sorted((json.loads(raw) for raw in file), key=lambda line: int(line["id"]))


def pages_differ(run: Run, facts: Mapping[str, str], lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Summary and report, beside those that the lines make."""
    summary = summary_from(lines, facts)
    if run.summary.exists():
        stated = json.loads(run.summary.read_bytes(), object_pairs_hook=once)
        for name in names_that_differ(stated, summary):
            yield f"summary.json says {name} = {stated.get(name)}, and the lines make {summary.get(name)}"
    if run.report.exists() and not page_of(run, facts, lines, summary).is_at(run.report):
        yield ANOTHER_PAGE


def page_of(run: Run, facts: Mapping[str, str], lines: Iterable[Mapping[str, Any]], summary: Mapping[str, Any]) -> Page:
    ordered = sorted(lines, key=weakness)
    return page(summary, facts, ordered, read_choices(run.spaces), beside(run, summary, ordered))


def network_differs(model: Model, inputs: Inputs, about: Mapping[str, Any], run: Run) -> Iterator[str]:
    """What the report says of the network, beside that of the first text."""
    network = network_for(model, inputs.texts[0].frozen.space, smooth=True)
    unnamed = network.vocabulary_size - inputs.vocabulary.size
    # Texts of other lengths, or with another mask, have networks of their own, and one of them is told.
    frames = {text.frozen.space.frame for text in inputs.texts}
    several = model.length is None or network.choices is not None or len(frames) > 1
    for name, found in facts_on(model, network, unnamed).items():
        free = name == "hidden_units" and several
        if about["model"][name] != found and not free:
            yield f"says {name} = {about['model'][name]} of the model, and it is {found}"
    remarks = [*remarks_on(model, network, unnamed), *remarks_of_export(run)]
    yield from remarks_differ(about["remarks"], remarks, run.deployed.is_dir())


def unread_differs(model: Model, inputs: Inputs, about: Mapping[str, Any]) -> Iterator[str]:
    """The same of a model that was only run."""
    if about["model"]["opset"] != model.opset:
        yield f"says opset = {about['model']['opset']} of the model, and it is {model.opset}"
    if not are_of_black_box(about["remarks"]):
        yield "remarks other things than that the network cannot be read"


def remarks_differ(stated: Iterable[str], found: Sequence[str], of_deployed: bool) -> Iterator[str]:
    """What must be remarked, and nothing else but what only the machine that made the run could see; or, where a
    network was made of a deployed model, what that is."""
    for remark in found:
        if remark not in stated:
            yield f"does not remark that {remark}"
    for remark in stated:
        if remark not in found and not of_deployed and not seen_when_tried(remark):
            yield f"remarks {remark!r}, which no run does of this model"


def names_that_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Keys whose values are written otherwise: true is not 1."""
    names = sorted(one.keys() | other.keys())
    return [name for name in names if written(one, name) != written(other, name)]


def written(summary: Mapping[str, Any], name: str) -> str | None:
    return json.dumps(summary[name], sort_keys=True) if name in summary else None
