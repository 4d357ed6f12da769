"""The audit of a run of `attack`: every witness is put to the model again, and the summary is made again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swapproof.models.deployed.classifier import Classifier, NoAnswer
from swapproof.models.deployed.decision import Decision
from swapproof.models.errors import BadInput
from swapproof.proofs.onnx_file import Refused

from ...attacks.attack_goals import Goal
from ...attacks.attack_limits import Limits
from ...attacks.attack_summary import summary_of_attack
from ...attacks.attacking import STAGE
from ...replaying.apart_classifier import open_apart
from ...runs.results import pieces
from ...runs.run_folder import Run, existing
from ...runs.store import ILL_FORMED
from ...tasks.deployed_model import Trust
from ...tasks.task import Task, read_task
from ..findings import Audit, Fault, Finding, said_of_unsettled
from ..run_accounts import compared, files_noted_otherwise, page_differs
from ..run_items import read_lines, without_line
from ..text_rules import expect


def audit_attacked(folder: Path, question: Mapping[str, Any], trust: Trust) -> Audit:
    """What is not repeated: the search itself, its counts, similarities and perplexities."""
    run = existing(folder)
    task = read_task(run.task)
    limits, goal = Limits.of(question), Goal(question["target"])
    again = Witnesses(run, task, open_apart(task, trust), goal, limits, question["method"])
    lines = read_lines(run)
    remark = "the witnesses were replayed; requests, evaluations, similarities and perplexities are not counted again"
    texts, missing = by_id(run.texts), without_line(run, lines)
    said = (remark, *said_of_unsettled(missing, len(texts)))
    found = again.findings(lines, texts)
    nothing = "the run's files agree, and no text is broken"
    return Audit("attack", len(lines), found, said, nothing, unsettled=missing)


@dataclass(frozen=True, eq=False)
class Witnesses:
    """The model of a run, opened from the run's own files and asked again."""

    run: Run
    task: Task
    classifier: Classifier
    goal: Goal
    limits: Limits
    method: str

    @property
    def decision(self) -> Decision:
        return self.task.model.decision

    def findings(self, lines: Mapping[int, Mapping[str, Any]], texts: Mapping[int, Any]) -> Iterator[Finding | Fault]:
        spaces = by_id(self.run.spaces)
        for id in sorted(lines):
            line = lines[id]
            try:
                expect(id in texts and id in spaces, "is of no text of this run")
                yield Finding(id, bool(line["witness"]), self.replayed(line, texts[id], spaces[id]["choices"]), None)
            except Refused as refusal:
                yield Finding(id, bool(line.get("witness")), "", str(refusal))
            except (NoAnswer, BadInput, *ILL_FORMED) as error:
                yield Finding(id, False, "", f"the line cannot be understood: {type(error).__name__}: {error}")
        yield from map(Fault, self.differences(lines, len(texts)))

    def replayed(self, line: Mapping[str, Any], text: Mapping[str, Any], choices: list[list[str]]) -> str:
        """What the line says, once it is true. Raises Refused for what is not."""
        labels, high, low = self.task.model.labels, line["min_swaps"]["high"], line["min_swaps"]["low"]
        expect(line["text"] == text["text"], "is of another text")
        expect(labels[line["label"]] == text["label"], "is for another label")
        expect(line["positions"] == len(choices), "counts other words")
        expect(line["candidates"] == sum(map(len, choices)) - len(choices), "counts other candidates")
        expect(line["certificate"] is None and line["level"] == "replay", "claims more than an attack can")
        failed = bool(line["attack"].get("failed"))
        if not failed:
            answer = self.answer(text, line["text"])
            expect(line["predicted"] == answer, f"the model answers {answer} to the text")
            wrong = answer != line["label"]
            expect(line["status"] == ("already_wrong" if wrong else "open"), "has another status than its answer")
            expect((low, high) == (0, 0) if wrong else low is None and high != 0, "claims another low or high end")
        if line["witness"] is None:
            expect(high is None, "claims a high end without a witness")
            return line["reason"] if failed else "no sentence was found, and nothing is claimed"
        expect(not failed, "has a witness of a text without an answer")
        self.fools(line, text, choices, high)
        return f"its sentence with {high} {'swap' if high == 1 else 'swaps'} is answered as claimed"

    def fools(self, line: Mapping[str, Any], text: Mapping[str, Any], choices: list[list[str]], high: int) -> None:
        swaps, end = line["witness"]["swaps"], -1
        expect(len(swaps) == high <= self.limits.most_swaps(len(choices)), "has more swaps than it says or may have")
        for swap in swaps:
            position, (start, stop) = swap["position"], swap["characters"]
            own, *others = choices[position]
            expect(start >= end, "swaps a word twice, or words out of order")
            expect(own == swap["from"] and line["text"][start:stop].lower() == own.lower(), "swaps another word")
            expect(swap["to"] in others, f"swaps {own!r} for what is not among its choices")
            end = stop
        expect(len({swap["position"] for swap in swaps}) == high, "swaps a word twice")
        sentence = "".join(piece.after for piece in pieces(line["text"], swaps))
        expect(line["witness"]["sentence"] == sentence, "spells its sentence otherwise than its swaps")
        if high:
            answer = self.answer(text, sentence)
            reached = answer not in (-1, line["label"]) if self.goal.target is None else answer == self.goal.target
            expect(reached, f"the model answers {answer} to its sentence")

    def answer(self, text: Mapping[str, Any], moved: str) -> int:
        other = (text["context"],) if "context" in text else ()
        fields = (*other, moved) if self.task.data.moving else (moved, *other)
        return int(self.decision.answers(self.classifier.scores([fields]))[0])

    def differences(self, lines: Mapping[int, Mapping[str, Any]], texts: int) -> Iterator[str]:
        """Where the run's other files say another thing."""

        def others(facts: Mapping[str, str]) -> Iterator[str]:
            yield from files_noted_otherwise(self.run)
            ordered = [lines[id] for id in sorted(lines)]
            labels = self.task.model.labels
            made = summary_of_attack(ordered, texts, self.method, self.goal, self.limits, labels)
            stated = json.loads(self.run.summary.read_bytes()) if self.run.summary.exists() else made
            for name, value in made.items():
                if stated.get(name) != value:
                    yield f"summary.json says {name} = {stated.get(name)}, and the lines make {value}"
            yield from page_differs(self.run)

        return compared(self.run, STAGE, others)


def by_id(path: Path) -> dict[int, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            return {one["id"]: one for one in map(json.loads, file)}
    except (OSError, *ILL_FORMED) as error:
        raise BadInput(f"{path}: cannot be read ({type(error).__name__}: {error})") from None
