"""The audit of a run of `measure --quantity pr`: certificates again, samples drawn again, lines compared with both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.omega import Omega
from swapproof.encodings.query import Query
from swapproof.proofs.check import parse_canonical
from swapproof.proofs.onnx_file import Refused

from ..counting.binomial import outwards
from ..counting.fraction import kind_of
from ..counting.measuring_text import STAGE, Measuring
from ..counting.whole_runs.pr_summary import summarise
from ..ladder.station import Station
from ..runs.binding import binding_of
from ..runs.keys_once import once
from ..runs.left_out_swaps import uncovered
from ..runs.measured_runs import settings_of
from ..runs.run_folder import Run, existing
from ..runs.store import Store
from ..tasks.inputs import Inputs, Text
from ..tasks.opened_model import opened_in
from .count_rules import counted, has_sample
from .examiner import AT_ONCE, Examiner
from .findings import Audit, Fault, Finding, said_of_unsettled
from .line_claims import OF_MEASURE, additions
from .redrawn_samples import drawn_again, drawn_again_deployed
from .run_accounts import measured_differences, names_that_differ
from .run_items import Item, items_of, own_inputs
from .text_rules import described, expect


def audit_measured(folder: Path, question: dict[str, Any], *, exact: bool = False) -> Audit:
    """Counts are screened in float64 with error bounds like other proofs, unless `exact`."""
    if question["quantity"] != "pr":
        quantity = question["quantity"]
        raise BadInput(f"{folder}: a run of {quantity} is handed over as its folder, which `swapproof check` checks")
    run = existing(folder)
    inputs = own_inputs(run)
    items = list(items_of(run, inputs))
    with Store.open(run.store, readonly=True) as store:
        remark = uncovered(run, store.facts())
    found = findings_of(run, inputs, items, question, exact=exact)
    missing = len(inputs.texts) - sum(item.line is not None for item in items)
    said = (*(() if remark is None else (remark,)), *said_of_unsettled(missing, len(inputs.texts)))
    return Audit("measure", len(items), found, said, unsettled=missing)


def findings_of(
    run: Run, inputs: Inputs, items: list[Item], question: dict[str, Any], *, exact: bool
) -> Iterator[Finding | Fault]:
    """Samples are drawn again where the certificates and lines are as they must be."""
    measuring = Measuring(run.folder, binding_of(opened_in(run).path, inputs), settings_of(question))
    station, examiner = Station.of(measuring, None), Examiner.open(run.folder, exact=exact)
    for item, proof in zip(items, proofs(examiner, items), strict=True):
        refusal = proof.refusal or line_refusal(measuring, station, item)
        sampled = has_sample(item.line)
        again = sampled and item.certificate is None
        sentence = "its sample drawn again is the same" if again else proof.sentence
        yield replace(proof, sentence=sentence, refusal=refusal, sampled=sampled)
    differing = measured_differences(run, inputs, STAGE, deployed=question["deployed"])
    yield from map(Fault, chain(summary_refusals(run, items, question, inputs), differing))


def proofs(examiner: Examiner, items: list[Item]) -> Iterator[Finding]:
    """What the certificates prove, whatever the lines say."""
    for start in range(0, len(items), AT_ONCE):
        some = items[start : start + AT_ONCE]
        yield from examiner.examine([Item(item.id, None, item.certificate, item.text) for item in some])


def line_refusal(measuring: Measuring, station: Station, item: Item) -> str | None:
    """What the line claims beyond its certificate and its sample; None when it claims no more."""
    line, text = item.line, item.text
    if line is None:
        return "a certificate without a line in results.jsonl"
    if text is None:
        return "the run has no such text"
    part = None
    try:
        fraction = line["robust_fraction"]
        if item.certificate is not None:
            part = parse_canonical(item.certificate.read_bytes())["count"]
        described(line, text)
        for fault in additions(line, OF_MEASURE):
            raise Refused(f"the line {fault}")
        name = None if item.certificate is None else f"certificates/{item.certificate.name}"
        expect(line["certificate"] == name, f"names {line['certificate']} as its certificate, not {name}", "line")
        if line["status"] == "lost":
            expect(part is None and fraction is None, "of a text that was not measured claims something", "line")
            return None
        left_out(measuring, station, line, text)
        if fraction is None:
            expect(part is None, "counts nothing, and has a certificate", "line")
            return None
        counted(line, part, measuring.settings.radius)
        if part is None:
            level = "replay" if measuring.settings.deployed else "real"
            expect(line["level"] == level, f"claims {line['level']}; its sample holds at {level}", "line")
            total = str(Omega(text.frozen.space, measuring.settings.radius).total)
            expect(fraction["total"] == total, f"says {fraction['total']} sentences, and there are {total}", "line")
        if "sample" not in fraction:
            return None
        space = text.frozen.space
        settings, stated = measuring.settings, fraction["sample"]
        replay = station.replay.of(space)
        classes = replay.outputs(np.array([space.original], dtype=np.int64)).shape[1]
        about = measuring.about(text, tuple(rival for rival in range(classes) if rival != text.label))
        if settings.deployed:
            again = drawn_again_deployed(replay.answers, space, text.label, about, settings, stated)
        else:
            query = Query.of(station.network(space), space, text.label)
            again = drawn_again(query, about, settings, stated, part)
        if again.line() != stated:
            return "the sample drawn again is another"
        if part is None and line["status"] != kind_of(again):
            return f"the line says {line['status']}, and its sample is {kind_of(again)}"
        exactly = (float(again.ends[0]),) * 2 if line["status"] == "exact" else outwards(*again.ends)
        if part is None and (fraction["low"], fraction["high"]) != exactly:
            return "the interval is not that of the sample"
    except Refused as error:
        return str(error)
    except Exception as error:  # whatever an ill-formed line does to us, it is not accepted
        return f"the check met {type(error).__name__}: {error}"
    return None


def left_out(measuring: Measuring, station: Station, line: Mapping[str, Any], text: Text) -> None:
    """Raises Refused unless exactly the texts that are not answered rightly are left out of the mean."""
    space = text.frozen.space
    predicted = int(station.replay.of(space).answers(np.array([space.original], dtype=np.int64))[0])
    said = line["predicted"]
    expect(said == predicted, f"says the model answers {said}; it answers {predicted}", "line")
    status = measuring.left_out(station, text, predicted)
    if status is not None or line["robust_fraction"] is None:
        stated = line["status"] if line["robust_fraction"] is None else "measured"
        expect(stated == status, f"says {stated}, and the text is {status or 'answered rightly'}", "line")


def summary_refusals(run: Run, items: list[Item], question: dict[str, Any], inputs: Inputs) -> Iterator[str]:
    lines = [item.line for item in items if item.line is not None]
    try:
        stated = json.loads(run.summary.read_bytes(), object_pairs_hook=once)
        again = summarise(lines, question["radius"], len(inputs.texts), Fraction(question["delta"]))
        with Store.open(run.store, readonly=True) as store:
            about = json.loads(store.facts()["about"])
        again |= {name: about[name] for name in ("remarks", "swaps")}
        differing = names_that_differ(stated, json.loads(json.dumps(again)))
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        yield f"summary.json cannot be compared with results.jsonl: {what}"
        return
    if differing:
        yield f"summary.json says another {differing[0]} than the lines of results.jsonl"
