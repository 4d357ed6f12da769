"""The accounts that a run gives of itself must be one: store, summary and report say what results.jsonl says.

`check` compares results.jsonl with the certificates. Nothing else proves what the other files say, and people read
those: so a finished run whose store.sqlite, summary.json or report.html says anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.encodings.reading import Model, network_of, open_model
from swapproof.proofs.certificate import merkle_root

from .evidence import binding_of
from .inputs import Inputs
from .page import hardness, page
from .run import Run
from .run import sha256 as sha256_of
from .store import Store
from .summary import STAGE, summary_from
from .task import read_task
from .trial import facts_on, remarks_on

AGAIN = "give the same command again to bring the run's files to one state"


def differences(run: Run, inputs: Inputs) -> Iterator[str]:
    """What a run of `certify` says in one place and not in the other; `inputs` are those of the run's own files."""
    return compared(run, STAGE, lambda facts: chain(files_differ(run, inputs, facts), pages_differ(run, inputs, facts)))


def measured_differences(run: Run, inputs: Inputs, stage: str) -> Iterator[str]:
    """The same of a run of `measure`, whose summary is compared elsewhere and which has no page."""
    return compared(run, stage, lambda facts: files_differ(run, inputs, facts))


def compared(run: Run, stage: str, others: Callable[[Mapping[str, str]], Iterable[str]]) -> Iterator[str]:
    """The lines first: where these differ, nothing else is looked at."""
    with Store.open(run.store, readonly=True) as store:
        facts, other = store.facts(), line_that_differs(run, store, stage)
        certificates = list(store.finished(stage))
    if other is not None:
        yield f"results.jsonl and store.sqlite differ in {other}; {AGAIN}"
        return
    for id, stated in certificates:
        path = run.certificate(id)
        if stated != (sha256_of(path) if path.exists() else None):
            yield f"{path.name} is another certificate than the store recorded"
    stated_root = run.certificates / "root"
    if stated_root.exists():
        leaves = [(run.certificate(id).name, run.certificate(id).read_bytes()) for id, stated in certificates if stated]
        if stated_root.read_bytes() != f"{merkle_root(leaves)}\n".encode():
            yield "certificates/root is not the Merkle root of the certificates"
    try:
        yield from others(facts)
    except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
        yield f"the run's own account of itself cannot be compared: {type(error).__name__}: {error}"


def line_that_differs(run: Run, store: Store, stage: str) -> str | None:
    """Where the lines of the file and of the store part. A killed run, whose store is ahead, is to be finished."""
    number = 0
    with run.results.open("rb") as file:
        for number, (raw, line) in enumerate(zip_longest(file, store.lines(stage)), start=1):
            if raw is None and not run.summary.exists():
                raise BadInput(f"{run.folder}: the run was killed before it wrote what it found; {AGAIN}")
            if raw is None or line is None or raw != f"{line}\n".encode():
                return f"line {number}"
    return None


def files_differ(run: Run, inputs: Inputs, facts: Mapping[str, str]) -> Iterator[str]:
    """What the store and the task file say the run is about, beside the files of the run."""
    task = read_task(run.task)
    own = {"onnx": run.model, "vocabulary": run.vocabulary, "data": run.texts, "frozen": run.spaces}
    named = (task.model.onnx, task.model.vocabulary, task.data.file, task.swaps.frozen)
    for (name, path), other in zip(own.items(), named, strict=True):
        if other is None or other.resolve() != path.resolve():
            yield f"task.toml names {other} as {name}, not the run's own {path.name}"
    about, binding = json.loads(facts["about"]), binding_of(open_model(run.model), inputs)
    spaces = sha256_of(run.spaces)
    compared = {
        "the model": (json.loads(facts["model"]), [binding.model_sha256, *map(list, binding.tensors)]),
        "the vocabulary": (facts["vocabulary"], binding.vocabulary_sha256),
        "the texts and labels": (facts["texts"], inputs.digest),
        "the number of texts": (json.loads(facts["total"]), len(inputs.texts)),
        "the frozen swaps": (facts["spaces"], spaces),
        "the swaps shown": (about["swaps"]["sha256"], spaces),
        "the number of swaps": (about["swaps"]["kept"], sum(one.frozen.space.candidates for one in inputs.texts)),
        "the model shown": (about["model"]["sha256"], binding.model_sha256),
        "the names of the classes": (about["labels"], list(inputs.labels)),
    }
    for name, (stated, found) in compared.items():
        if stated != found:
            yield f"store.sqlite says another thing of {name} than the files of the run"


def pages_differ(run: Run, inputs: Inputs, facts: Mapping[str, str]) -> Iterator[str]:
    """Summary and report, beside those that the lines and the network make."""
    yield from network_differs(open_model(run.model), inputs, json.loads(facts["about"]))
    with run.results.open("rb") as file:
        lines = sorted((json.loads(raw) for raw in file), key=hardness)
    summary = summary_from(sorted(lines, key=lambda line: int(line["id"])), facts)
    if run.summary.exists():
        stated = json.loads(run.summary.read_bytes(), object_pairs_hook=once)
        for name in sorted(stated.keys() | summary.keys()):
            if stated.get(name) != summary.get(name):
                yield f"summary.json says {name} = {stated.get(name)}, and the lines make {summary.get(name)}"
    if run.report.exists() and sha256_of(run.report) != digest(page(summary, facts, lines)):
        yield (
            "report.html is not the page that this version of swapproof makes of results.jsonl; `swapproof report` "
            "writes it anew"
        )


def network_differs(model: Model, inputs: Inputs, about: Mapping[str, Any]) -> Iterator[str]:
    """What the report says of the network, beside the network. Of a model of any length, that of its first text."""
    first = inputs.texts[0].frozen.space
    network = network_of(model, first.length, first.choices)
    unnamed = network.vocabulary_size - inputs.vocabulary.size
    for name, found in facts_on(model, network, unnamed).items():
        free = name == "hidden_units" and model.length is None  # one number for texts of different lengths
        if about["model"][name] != found and not free:
            yield f"store.sqlite says {name} = {about['model'][name]} of the model, and it is {found}"
    for remark in remarks_on(network, unnamed):
        if remark not in about["remarks"]:
            yield f"store.sqlite does not remark that {remark}"


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values for one key counts is the reader's guess."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def digest(parts: Iterable[bytes]) -> str:
    found = sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
