"""`check` of a run of `measure --quantity pr`: certificates again, samples drawn again, lines compared with both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.encodings.query import Query
from swapproof.encodings.reading import open_model
from swapproof.proofs.check import Refused, parse_canonical

from .checking import Bench, Item, described, expect, items_of, own_inputs
from .counting.binomial import outwards
from .counting.fraction import Settings
from .counting.station import Station
from .counting.summary import summarise
from .counting.transcripts import drawn_again, drawn_again_deployed
from .evidence import binding_of
from .inputs import Inputs, Text
from .progress import progress
from .run import Run, existing
from .store import Store

HOLDS, UNCHECKED = 0, 4
COUNTED = ("exact", "deterministic")


def question_of(folder: Path) -> dict[str, Any] | None:
    """What a run of `measure` answers; None for a run of another command."""
    run = existing(folder)
    with Store.open(run.store, readonly=True) as store:
        asked = store.facts().get("measure")
    return None if asked is None else dict(json.loads(asked))


def check_measured(folder: Path, question: dict[str, Any]) -> int:
    """One line per text and, last, `accepted N of N` when nothing was refused; the exit code says the same."""
    if question["quantity"] != "pr":
        raise BadInput(f"{folder}: kappa has no certificates; measure it again to compare")
    run = existing(folder)
    inputs = own_inputs(run)
    model = open_model(run.model)
    settings = Settings(
        question["radius"],
        question["samples"],
        Fraction(question["delta"]),
        count=False,
        seconds=None,
        deployed=question["deployed"],
    )
    station = Station.open(run.folder, binding_of(model, inputs), settings)
    bench = Bench.open(run.folder, exact=True)
    items = list(items_of(run, inputs))
    certificates = samples = refused = 0
    with progress("check", len(items)) as advance:
        for item in items:
            certificates += item.certificate is not None
            finding = bench.examine(Item(item.id, None, item.certificate, item.text))
            refusal = finding.refusal or line_refusal(station, item)
            refused += refusal is not None
            again = has_sample(item.line)
            samples += again
            sentence = "its sample drawn again is the same" if again and item.certificate is None else finding.sentence
            print(f"text {item.id}: " + (sentence if refusal is None else f"refused: {refusal}"), flush=True)
            advance(1)
    refusal = summary_refusal(run, items, question, inputs)
    if refusal is not None:
        refused += 1
        print(f"refused: {refusal}")
    if refused:
        print(f"refused {refused}, of {certificates} certificates")
        return UNCHECKED
    if samples:
        print(f"{samples} samples drawn again")
    print(f"accepted {certificates} of {certificates}")
    return HOLDS


def has_sample(line: Mapping[str, Any] | None) -> bool:
    return line is not None and line.get("robust_fraction") is not None and "sample" in line["robust_fraction"]


def line_refusal(station: Station, item: Item) -> str | None:
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
        left_out(station, line, text)
        if fraction is None:
            expect(part is None, "counts nothing, and has a certificate", "line")
            return None
        counted(line, part, station.settings.radius)
        if "sample" not in fraction:
            return None
        space = text.frozen.space
        settings, drawn = station.settings, fraction["sample"]["samples"]
        classes = station.replay.outputs(np.array([space.original], dtype=np.int64)).shape[1]
        about = station.about(text, tuple(rival for rival in range(classes) if rival != text.label))
        if settings.deployed:
            again = drawn_again_deployed(station.replay, space, text.label, about, settings, drawn)
        else:
            query = Query.of(station.network(space.length), space, text.label)
            again = drawn_again(query, about, settings.radius, settings.delta, drawn, part)
        if again.line() != fraction["sample"]:
            return "the sample drawn again is another"
        if part is None and (fraction["low"], fraction["high"]) != outwards(*again.clopper_pearson):
            return "the interval is not that of the sample"
    except Refused as error:
        return str(error)
    except Exception as error:  # whatever an ill-formed line does to us, it is not accepted
        return f"the check met {type(error).__name__}: {error}"
    return None


def left_out(station: Station, line: Mapping[str, Any], text: Text) -> None:
    """Raises Refused unless exactly the texts that are not answered rightly are left out of the mean."""
    predicted = int(station.replay.answers(np.array([text.frozen.space.original], dtype=np.int64))[0])
    said = line["predicted"]
    expect(said == predicted, f"says the model answers {said}; it answers {predicted}", "line")
    status = station.left_out(text, predicted)
    if status is not None or line["robust_fraction"] is None:
        stated = line["status"] if line["robust_fraction"] is None else "measured"
        expect(stated == status, f"says {stated}, and the text is {status or 'answered rightly'}", "line")


def counted(line: Mapping[str, Any], part: Mapping[str, Any] | None, radius: int) -> None:
    """Raises Refused when the line and the certificate's count differ."""
    fraction = line["robust_fraction"]
    if (part is not None) != (line["status"] in COUNTED) or line["status"] != fraction["kind"]:
        raise Refused("the line claims a count that no certificate proves, or the other way round")
    if part is None:
        return
    robust, broken, total = (int(part[name]) for name in ("robust", "broken", "total"))
    stated = [fraction["robust"], fraction["broken"], fraction["total"], line["radius"], radius, line["level"]]
    if stated != [part[name] for name in ("robust", "broken", "total", "swaps", "swaps", "level")]:
        raise Refused("the line claims another count than the certificate")
    low, high = Fraction(robust, total), 1 - Fraction(broken, total)
    ends = (float(low), float(high)) if low == high else outwards(low, high)
    if (fraction["low"], fraction["high"]) != ends or (line["status"] == "exact") != (low == high):
        raise Refused("the line's fractions are not those of its counts")


def summary_refusal(run: Run, items: list[Item], question: dict[str, Any], inputs: Inputs) -> str | None:
    lines = [item.line for item in items if item.line is not None]
    try:
        stated = json.loads(run.summary.read_text(encoding="utf-8"))
        again = summarise(lines, question["radius"], len(inputs.texts))
        differing = [name for name, value in json.loads(json.dumps(again)).items() if stated.get(name) != value]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"summary.json cannot be compared with results.jsonl: {type(error).__name__}: {error}"
    return f"summary.json says another {differing[0]} than the lines of results.jsonl" if differing else None
