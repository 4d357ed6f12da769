"""A run as it is handed over: its own words beside its certificates, without running the model.

`bundle --verify` has the certificates checked; here they are compared with texts.jsonl and spaces.jsonl, and
results.jsonl, summary.json and task.toml with all three. What a model answers and how samples fell, only `check` finds
out again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from swapproof.proofs.onnx_file import Refused

from ...counting.whole_runs.pr_summary import summarise as summarise_measured
from ...gates.requirements import required_in
from ...ladder.rereading import misread
from ...runs.keys_once import once
from ...runs.left_out_swaps import counts_differ
from ...runs.run_folder import Run
from ...runs.run_summary import summarise
from ...tasks.opened_model import opened_in
from ..count_rules import counted, has_sample
from ..line_claims import OF_A_RUN, OF_MEASURE, additions, exaggerations
from ..run_accounts import (
    about_differs,
    binding_as_it_lies,
    names_differ,
    names_that_differ,
    network_differs,
    noted_otherwise,
    texts_differ,
)
from ..run_items import own_inputs, read_lines, statements_of
from ..text_rules import Spaces, agree, bind, described

ANY = Fraction(1, 2)
"""A probability to be wrong, where nothing depends on one."""


def differences(folder: Path) -> Iterator[str]:
    """Where the account claims more than the certificates state; one that cannot be compared does."""
    try:
        yield from differing(Run(folder))
    except Refused as refusal:
        yield str(refusal)
    except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
        yield f"the run's own account cannot be compared: {type(error).__name__}: {error}"


def differing(run: Run) -> Iterator[str]:
    statements = statements_of(run.folder)
    texts = {line["id"]: line for line in parsed_lines(run.texts)}
    spaces, lines = Spaces.at(run), read_lines(run)
    summary = json.loads(run.summary.read_bytes(), object_pairs_hook=once)
    for id in sorted(lines.keys() | statements.keys()):
        for fault in faults(id, statements.get(id), lines.get(id), texts.get(id), spaces, summary):
            yield f"text {id}: {fault}"
    yield from beside_files(run, statements, lines, summary)
    in_order = [lines[id] for id in sorted(lines)]
    if any(map(has_sample, in_order)):
        return
    again = json.loads(json.dumps(summary_of(in_order, summary, len(texts))))
    for name in names_that_differ({name: summary.get(name) for name in again}, again):
        yield f"summary.json says {name} = {summary.get(name)}, and the lines make {again[name]}"
    others = {name: value for name, value in summary.items() if name not in again}
    for fault in beside_summary(run, others, measured="quantity" in summary):
        yield f"summary.json {fault}"


def how_far(folder: Path) -> str:
    """An account without differences was compared."""
    lines = read_lines(Run(folder)).values()
    if any(map(has_sample, lines)):
        return (
            "results.jsonl counts what the certificates state; its samples and summary.json are the producer's account"
        )
    unsure = sum(line["status"] == "ambiguous" for line in lines)
    rest = f", but that rounding decides {unsure} texts, which count in no mean: `swapproof check` finds that out"
    return "results.jsonl and summary.json claim no more than the certificates state" + (rest if unsure else "")


def beside_files(
    run: Run,
    statements: Mapping[int, Mapping[str, Any]],
    lines: Mapping[int, Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> Iterator[str]:
    """Where certificates and lines are about other texts, swaps or classes than lie beside them."""
    yield from names_differ(run)
    inputs, spaces = own_inputs(run), Spaces.at(run)
    for text in inputs.texts:
        statement, line = statements.get(text.id), lines.get(text.id)
        try:
            if statement is not None:
                bind(statement, text, spaces, len(inputs.labels))
            if line is not None and "min_swaps" in line:
                agree(line, text, statement)
            elif line is not None:
                described(line, text)
        except Refused as fault:
            yield f"text {text.id}: {fault}"
    yield from texts_differ(run, inputs)
    yield from misread(run, inputs, lines.values())
    yield from noted_otherwise(run, inputs, summary)


def summary_of(lines: Iterable[Mapping[str, Any]], stated: Mapping[str, Any], texts: int) -> dict[str, Any]:
    """What these lines make; those of a measurement are without samples, and so say nothing of their confidence."""
    if "quantity" in stated:
        return summarise_measured(lines, stated["radius"], texts, ANY)
    return summarise(lines, stated["radius"], texts, required_in(stated), stated)


def beside_summary(run: Run, about: Mapping[str, Any], *, measured: bool) -> Iterator[str]:
    """What the summary says of model and swaps, beside these; that of a measurement says less."""
    inputs = own_inputs(run)
    if measured:
        if about.keys() != {"remarks", "swaps"} or about["swaps"].keys() != OF_A_RUN["swaps"].keys():
            yield f"says other things than a measurement does: {', '.join(sorted(about))}"
        yield from counts_differ(run, inputs, about["swaps"])
        return
    yield from about_differs(run, inputs, about, binding_as_it_lies(run, inputs))
    yield from network_differs(opened_in(run), inputs, about, run)


def parsed_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of one JSON object a line."""
    for number, raw in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield dict(json.loads(raw))
        except (ValueError, TypeError, RecursionError) as error:
            reason = getattr(error, "msg", None) or "not an object"
            raise Refused(f"{path.name} line {number}: not JSON ({reason})") from None


def faults(
    id: int,
    statement: Mapping[str, Any] | None,
    line: Mapping[str, Any] | None,
    text: Mapping[str, Any] | None,
    spaces: Spaces,
    summary: Mapping[str, Any],
) -> Iterator[str]:
    """What results.jsonl and texts.jsonl say of one text beyond its certificate."""
    if line is None or text is None:
        yield "is not in both results.jsonl and texts.jsonl"
        return
    if line["text"] != text["text"]:
        yield "results.jsonl has another text than texts.jsonl"
    if statement is not None:
        if statement["text"] != sha256(line["text"].encode()).hexdigest() or statement["label"] != line["label"]:
            yield "the certificate is about another text or label"
        if statement["synonyms"] not in spaces.of(id):
            yield "the certificate is about other swaps than spaces.jsonl"
    if "quantity" not in summary:
        for fault in exaggerations(line, id, statement, line["positions"]):
            yield f"the line {fault}"
        return
    if "min_swaps" in line:
        yield "the line is not one of `measure`, and summary.json is"
        return
    for fault in additions(line, OF_MEASURE):
        yield f"the line {fault}"
    if line["certificate"] != (None if statement is None else f"certificates/{id:06d}.json"):
        yield f"the line names {line['certificate']} as its certificate"
    if line["robust_fraction"] is not None:
        counted(line, None if statement is None else statement["count"], summary["radius"])
