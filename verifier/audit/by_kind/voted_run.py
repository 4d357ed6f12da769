"""The audit of a run of `measure --quantity vote`: every vote is taken again, with the same draws."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from swapproof.models.errors import BadInput

from ...runs.run_folder import Run, existing
from ...runs.store import ILL_FORMED
from ...smoothing.voting_runs import STAGE, Voting, summary_of_votes, voting_of
from ...tasks.inputs import Inputs, read_plain
from ...tasks.task import read_task
from ..findings import Audit, Fault, Finding, said_of_unsettled
from ..run_accounts import compared, files_noted_otherwise, page_differs
from ..run_items import read_lines, without_line

TIMES = ("seconds",)


def audit_voted(folder: Path, question: Mapping[str, Any]) -> Audit:
    """Seeds follow from the statements, so that nobody can have chosen the draws."""
    run = existing(folder)
    lines = read_lines(run)
    remark = "every vote was taken again with the draws that its statement names"
    found = findings_of(run, voting_of(run.folder, question), lines, Fraction(question["delta"]))
    missing = without_line(run, lines)
    said = (remark, *said_of_unsettled(missing, len(lines) + missing))
    return Audit("vote", len(lines), found, said, "the run's files agree", unsettled=missing)


def findings_of(
    run: Run, voting: Voting, lines: Mapping[int, Mapping[str, Any]], delta: Fraction
) -> Iterator[Finding | Fault]:
    booth = voting.open()
    inputs = read_plain(read_task(run.task), None)
    texts = {text.id: text for text in inputs.texts}
    for id in sorted(lines):
        stated = {name: value for name, value in lines[id].items() if name not in TIMES}
        try:
            if id not in texts:
                yield Finding(id, False, "", "is of no text of this run")
                continue
            if stated["status"] == "lost":
                yield Finding(id, False, "nothing is claimed", None)
                continue
            again = json.loads(json.dumps(booth.settle(texts[id]).line))
            differing = [name for name in stated.keys() | again.keys() if stated.get(name) != again.get(name)]
            differing = sorted(set(differing) - set(TIMES))
            refusal = f"the vote taken again gives another {differing[0]}" if differing else None
            yield Finding(id, again["status"] == "certified", sentence(again), refusal)
        except (BadInput, *ILL_FORMED) as error:
            yield Finding(id, False, "", f"the line cannot be understood: {type(error).__name__}: {error}")
    yield from map(Fault, differences(run, lines, inputs, delta))


def sentence(line: Mapping[str, Any]) -> str:
    radius = line["smoothed_radius"]["low"]
    return "nothing is claimed" if radius is None else f"the vote withstands {radius} swaps, taken again the same"


def differences(run: Run, lines: Mapping[int, Mapping[str, Any]], inputs: Inputs, delta: Fraction) -> Iterator[str]:
    def others(facts: Mapping[str, str]) -> Iterator[str]:
        yield from files_noted_otherwise(run)
        ordered = [lines[id] for id in sorted(lines)]
        made = json.loads(json.dumps(summary_of_votes(ordered, len(inputs.texts), delta, inputs.labels)))
        stated = json.loads(run.summary.read_bytes()) if run.summary.exists() else made
        for name, value in made.items():
            if stated.get(name) != value:
                yield f"summary.json says {name} = {stated.get(name)}, and the lines make {value}"
        yield from page_differs(run)

    return compared(run, STAGE, others)
