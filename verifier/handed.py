"""A run as it is handed over: its own words beside its certificates, without running the model.

`bundle --verify` has the certificates checked; here results.jsonl, summary.json, texts.jsonl and spaces.jsonl are
compared with what these state. What a model answers and how samples fell, only `check` finds out again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from swapproof.proofs.check import Refused, read_certificate

from .checking import read_lines
from .claims import OF_MEASURE, additions, exaggerations
from .rechecking import counted
from .run import CERTIFICATE, Run
from .run import sha256 as sha256_of
from .summary import summarise


def statements_of(folder: Path) -> dict[int, dict[str, Any]]:
    """What the certificates of a run folder state, by id. Raises Refused for what is none."""
    found = sorted(path for path in (folder / "certificates").iterdir() if CERTIFICATE.fullmatch(path.name))
    return {int(path.stem): read_certificate(path.read_bytes()) for path in found}


def compared(folder: Path) -> str:
    """How far the account was compared; Refused when it claims more than the certificates state."""
    run, statements = Run(folder), statements_of(folder)
    try:
        texts = {line["id"]: line for line in parsed_lines(run.texts)}
        spaces, lines = sha256_of(run.spaces), read_lines(run)
        summary = json.loads(run.summary.read_bytes())
        for id in sorted(lines.keys() | statements.keys()):
            for fault in faults(id, statements.get(id), lines.get(id), texts.get(id), spaces, summary):
                raise Refused(f"text {id}: {fault}")
        if "quantity" in summary:
            return (
                "results.jsonl counts what the certificates state; its samples and summary.json are the producer's "
                "account"
            )
        again = summarise((lines[id] for id in sorted(lines)), summary["radius"], len(texts))
    except Refused:
        raise
    except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
        raise Refused(f"the run's own account cannot be compared: {type(error).__name__}: {error}") from None
    for name, value in json.loads(json.dumps(again)).items():
        if summary.get(name) != value:
            raise Refused(f"summary.json says {name} = {summary.get(name)}, and the lines make {value}")
    return "results.jsonl and summary.json claim no more than the certificates state"


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
    spaces: str,
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
        if statement["synonyms"] != spaces:
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
    if line["robust_fraction"] is not None:
        counted(line, None if statement is None else statement["count"], summary["radius"])
