"""The audit of a run of `certify`: its certificates, its lines, and its accounts of itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import NoAnswer
from swapproof.proofs.onnx_file import Refused

from ..derived.deployed_beside import Beside
from ..runs.manifest import deployed_uncovered
from ..runs.run_folder import Run, existing
from ..tasks.deployed_model import Trust
from ..tasks.inputs import Text, read_plain
from ..tasks.task import read_task
from .asked_again import Again, Share
from .examiner import findings
from .findings import Audit, Fault, Finding, said_of_unsettled
from .run_accounts import differences
from .run_items import Item, items_of, own_inputs
from .text_rules import tokens


def audit_run(
    folder: Path,
    *,
    exact: bool = False,
    jobs: int | None = None,
    trust: Trust | None = None,
    share: Share | None = None,
) -> Audit:
    """Proofs are screened in float64 with error bounds, and those that this leaves unsure are checked by
    proofs/check.py; with `exact` all are. Texts that were run are asked again. A run that claims nothing is neither
    refused nor accepted."""
    run = existing(folder)
    inputs = own_inputs(run)
    items = list(items_of(run, inputs))
    named = any(item.line is None or item.line.get("certificate") is not None for item in items)
    if not items or (named and not any(item.certificate for item in items)):
        raise BadInput(f"{folder}: holds no certificates; run certify again")
    replayed = [item for item in items if item.line is not None and "transcript" in item.line]
    beside, remarks = deployed_beside(run, trust or Trust())
    again = None
    if replayed and beside is None:
        raise BadInput(f"{folder}: {len(replayed)} texts were run, and their model cannot be asked: {remarks[0]}")
    if replayed and beside is not None:
        task = read_task(run.deployed / "task.toml")
        again = Again(run, task, beside.classifier, beside.decision, share or Share())
    proved = [item for item in items if item not in replayed]
    found: Iterator[Finding | Fault] = chain[Finding | Fault](
        findings(run, proved, jobs or os.cpu_count() or 1, exact=exact),
        again_findings(again, replayed, inputs.texts),
        map(Fault, chain(differences(run, inputs), answered_otherwise(beside, proved))),
    )
    missing = len(inputs.texts) - sum(item.line is not None for item in items)
    uncovered = deployed_uncovered(run)
    remarks = (*remarks, *([] if uncovered is None else [uncovered]), *said_of_unsettled(missing, len(inputs.texts)))
    closing = None if again is None else again.said
    return Audit("certify", len(items), found, remarks, nothing_claimed(items), closing, missing)


def again_findings(again: Again | None, items: Sequence[Item], own: Sequence[Text]) -> Iterator[Finding]:
    """Of the texts on which the deployed model was run, beside those that were read. `own`: as the run read them, which
    holds where its network is the deployed model itself."""
    if again is None:
        return
    itself = again.task.model.kind == "onnx"
    texts = {text.id: text for text in (own if itself else read_plain(again.task).texts)}
    for item in items:
        if item.line is not None:
            yield again.finding(item.id, texts.get(item.id), item.line)


def deployed_beside(run: Run, trust: Trust) -> tuple[Beside | None, tuple[str, ...]]:
    """The deployed model that the run's network was made of; what to say where it cannot be opened."""
    try:
        return Beside.of(run, trust), ()
    except (ValueError, NotImplementedError) as error:
        return None, (f"witnesses were replayed on the network, not on the deployed model it was made of: {error}",)


def answered_otherwise(beside: Beside | None, items: Sequence[Item]) -> Iterator[str]:
    """Where the deployed model answers otherwise than a line says of the text, or of its witness."""
    if beside is None:
        return
    some = [(item.line, item.text) for item in items if item.line is not None and item.text is not None]
    answers = answers_to(beside, [text for _, text in some])
    for (line, text), answer in zip(some, answers, strict=True):
        predicted = line["predicted"]
        undecided = type(predicted) is int and predicted >= beside.decision.classes
        if predicted is not None and predicted != answer and not undecided:
            told = "has no answer" if answer is None else f"answers {answer}"
            yield f"text {text.id}: the deployed model {told}, and the line says {predicted}"
        if line["witness"] is None:
            continue
        try:
            unfooled = beside.unfooled(text, swaps_in(line, text))
        except (Refused, LookupError, TypeError, ValueError) as error:  # its swaps are none of the text's
            unfooled = str(error)
        if unfooled is not None:
            yield f"text {text.id}: {unfooled}"


def answers_to(beside: Beside, texts: Sequence[Text]) -> list[int | None]:
    """The class of each, None where the model has no answer."""
    try:
        found: list[int | None] = beside.decision.answers(
            beside.classifier.scores([text.swaps.fields for text in texts])
        ).tolist()
    except NoAnswer:
        return [None] if len(texts) == 1 else [answer for text in texts for answer in answers_to(beside, [text])]
    return found


def swaps_in(line: Mapping[str, Any], text: Text) -> tuple[tuple[int, int], ...]:
    if not isinstance(line["witness"], dict):
        raise Refused("its witness has no swaps")
    return tuple((position, token) for position, token in tokens(text, line["witness"]["swaps"]))


def nothing_claimed(items: Sequence[Item]) -> str:
    """Of a run in which no text was proved or broken, whose files agree."""
    counts = Counter(str(item.line.get("status")) for item in items if item.line is not None)
    listed = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    return (
        f"the run's files agree, and claim nothing: no text was proved or broken ({listed}), so there is no "
        "certificate to check"
    )
