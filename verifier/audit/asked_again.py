"""The audit of a run whose model was run: every sentence of every claim is asked again, or a random share of them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import Classifier, NoAnswer, Rows
from swapproof.models.deployed.decision import NO_CLASS, Decision
from swapproof.proofs.onnx_file import Refused

from ..counting.draws import drawn, seed_of
from ..replaying.apart_classifier import open_apart
from ..replaying.asking import Asking
from ..replaying.replayed_line import line_of
from ..replaying.sentence_order import SentenceOrder
from ..replaying.simple_prover import Found, Partly, counted
from ..replaying.transcript import read_transcript, row_of, statement_of
from ..runs.binding import binding_of_deployed
from ..runs.run_folder import Run, existing
from ..tasks.deployed_model import Trust
from ..tasks.inputs import Inputs, Text, read_plain
from ..tasks.task import Task, read_task
from .findings import Audit, Fault, Finding, said_of_unsettled
from .run_accounts import bound_otherwise, compared, lines_of, pages_differ
from .run_items import read_lines
from .text_rules import described, expect

AT_ONCE = 4096
"""Sentences asked together."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Share:
    """How many of the sentences of a claim are asked again: all of them, or as many drawn at random."""

    share: float = 1.0
    seed: str = field(default_factory=lambda: secrets.token_hex(8))

    def numbers(self, total: int, about: object) -> Iterator[list[int]]:
        """Of 0 .. total - 1, a block at a time."""
        if self.share >= 1:
            for start in range(0, total, AT_ONCE):
                yield list(range(start, min(total, start + AT_ONCE)))
            return
        wanted = max(1, math.ceil(total * self.share))
        for found in drawn(seed_of([self.seed, about]), total, wanted):
            for start in range(0, len(found), AT_ONCE):
                yield [int(number) for number in found[start : start + AT_ONCE]]


def is_run(folder: Path) -> bool:
    """Whether this is a run of `certify` whose model was run, not read."""
    path = Run(folder).task
    return path.is_file() and Run(folder).store.is_file() and read_task(path, check_files=False).model.road == "run"


def audit_replayed(folder: Path, trust: Trust, share: Share) -> Audit:
    run = existing(folder)
    task = read_task(run.task)
    inputs = read_plain(task)
    lines = read_lines(run)
    again = Again(run, task, open_apart(task, trust), task.model.decision, share)
    missing = len(inputs.texts) - len(lines)
    unclaimed = (
        f"the run's files agree, and claim nothing: of none of its {len(lines)} texts is there an evaluation to repeat"
    )
    found = findings(again, inputs, lines)
    said = said_of_unsettled(missing, len(inputs.texts))
    return Audit("replay", len(lines), found, said, unclaimed, again.said, missing)


def findings(again: Again, inputs: Inputs, lines: Mapping[int, Mapping[str, Any]]) -> Iterator[Finding | Fault]:
    texts = {text.id: text for text in inputs.texts}
    for id in sorted(lines):
        yield again.finding(id, texts.get(id), lines[id])
    yield from map(Fault, differences(again, inputs))


def differences(again: Again, inputs: Inputs) -> Iterator[str]:
    """What the run says in one place and not in the other."""

    def others(facts: Mapping[str, str]) -> Iterator[str]:
        binding = binding_of_deployed(again.classifier.identity, inputs)
        yield from bound_otherwise(again.run, inputs, facts, binding)
        yield from pages_differ(again.run, facts, lines_of(again.run))

    yield from compared(again.run, "min_swaps", others)


@dataclass(eq=False)
class Again:
    """The model of a run, opened from the run's own files and asked again."""

    run: Run
    task: Task
    classifier: Classifier
    decision: Decision
    share: Share
    asked: int = 0
    claimed: int = 0

    def said(self) -> str:
        if self.share.share >= 1:
            return f"asked again: all {self.claimed:,} sentences of the claims"
        most = 1 - (1 - CONFIDENCE) ** (1 / self.asked) if self.asked else 1.0
        return (
            f"asked again: {self.asked:,} of the {self.claimed:,} sentences of the claims, drawn with the seed "
            f"{self.share.seed}; with {CONFIDENCE:.0%} confidence fewer than {100 * most:.2g} % of them break"
        )

    def finding(self, id: int, text: Text | None, line: Mapping[str, Any]) -> Finding:
        has = line.get("transcript") is not None
        try:
            if text is None:
                raise Refused("the run has no such text")
            sentence = self.examined(text, line)
        except (Refused, BadInput, NoAnswer) as error:
            return Finding(id, has, "", str(error))
        except Exception as error:  # whatever an ill-formed file does to us, it is not accepted
            return Finding(id, has, "", f"the check met {type(error).__name__}: {error}")
        return Finding(id, has, sentence, None)

    def examined(self, text: Text, line: Mapping[str, Any]) -> str:
        """What is claimed of the text, once it was asked again."""
        described(line, text)
        expect("contradiction" not in line, "says that an answer did not check", "line")
        asking = Asking(self.classifier, self.decision, text.swaps, text.label)
        name = f"transcripts/{text.id:06d}.json"
        found = Found(ambiguous=line["status"] == "ambiguous")
        said = "nothing is claimed"
        if line["transcript"] is not None:
            expect(line["transcript"] == name, f"names {line['transcript']} as its transcript, not {name}", "line")
            transcript = read_transcript(self.run.transcript(text.id).read_bytes(), name)
            found = self.found(transcript, asking, text)
            said = sentence_of(transcript)
        elif line["engine"] is None and line["status"] == "open":
            expect(line["min_swaps"] == {"low": 0, "high": None}, "claims something without a transcript", "line")
            return said
        elif line["predicted"] is not None:
            found.predicted = int(asking.judged(asking.original)[0][0])
        spent = {name: line[name] for name in ("seconds", "evaluations", "requests")}
        found.engine, found.reason = line["engine"], line.get("reason")
        made_again = line_of(text, found, line["transcript"], spent)
        made_again |= {} if text.answer is None else {"answer": text.answer}
        for key in line:
            expect(key in made_again, f"has the key {key!r}, which no line of this text has", "line")
        for key, value in made_again.items():
            expect(
                line.get(key) == value,
                f"has {line.get(key)!r} as its {key}, and its transcript makes {value!r}",
                "line",
            )
        return said

    def found(self, transcript: Mapping[str, Any], asking: Asking, text: Text) -> Found:
        """What the transcript claims, each part asked again."""
        about = statement_of(text.id, self.classifier.identity, self.decision, text.swaps, text.label)
        for key, value in about.items():
            expect(transcript[key] == value, f"is about another {key}", "transcript")
        found = Found(harmless=-1, predicted=int(asking.judged(asking.original)[0][0]))
        order = SentenceOrder.of_text(text.swaps.options)
        lower, beyond, upper = (transcript[part] for part in ("lower", "beyond", "upper"))
        if lower is not None:
            swaps = lower["swaps"]
            expect(type(swaps) is int and 0 <= swaps < len(order.counts), "claims an odd number of swaps", "transcript")
            total = sum(order.counts[: swaps + 1])
            expect(lower["sentences"] == str(total), f"counts other sentences than {total}", "transcript")
            for numbers in self.share.numbers(total, transcript):
                self.keeps(asking, order.up_to(swaps, numbers), text)
            self.claimed += total
            found.harmless = swaps
        if beyond is not None:
            found.partly = self.partly(beyond, asking, text, found)
        if upper is not None:
            row = row_of(upper, text.swaps)
            expect(len({place for place, _ in upper}) == len(upper), "swaps a word twice", "transcript")
            expect(all(option > 0 for _, option in upper), "swaps nothing", "transcript")
            expect(asking.answer(row) not in (text.label, NO_CLASS), "does not fool the model", "witness")
            found.witness = row
        return found

    def partly(self, beyond: Mapping[str, Any], asking: Asking, text: Text, found: Found) -> Partly:
        own = SentenceOrder.of_text(text.swaps.options)
        ranked = tuple((word, tuple(options)) for word, options in beyond["ranked"])
        plain = sorted((word, tuple(sorted(options))) for word, options in ranked)
        expect(plain == sorted(own.ranked), "orders other sentences than the text has", "transcript")
        order, swaps, evaluated = SentenceOrder(ranked, own.words), beyond["swaps"], int(beyond["evaluated"])
        expect(swaps == found.harmless + 1 < len(own.counts), "goes on elsewhere than its claim ends", "transcript")
        total = own.counts[swaps]
        expect(beyond["sentences"] == str(total), f"counts other sentences than {total}", "transcript")
        expect(0 < evaluated <= total, "evaluated an odd number of sentences", "transcript")
        for numbers in self.share.numbers(evaluated, [transcript_key(beyond), "beyond"]):
            self.keeps(asking, order.rows(swaps, np.array(numbers, dtype=object)), text)
        self.claimed += evaluated
        return Partly(swaps, order, evaluated, total)

    def keeps(self, asking: Asking, rows: Rows, text: Text) -> None:
        answers, _ = asking.judged(rows)
        self.asked += len(rows)
        broken = np.flatnonzero(answers != text.label)
        if len(broken):
            sentence = text.swaps.moved(rows[broken[0]])
            swaps = counted(int(np.count_nonzero(rows[broken[0]])))
            raise Refused(f"a sentence with {swaps} that was to keep its label does not: {sentence[:200]!r}")


def transcript_key(beyond: Mapping[str, Any]) -> list[Any]:
    return [beyond["swaps"], beyond["evaluated"], beyond["ranked"]]


def sentence_of(transcript: Mapping[str, Any]) -> str:
    """What it claims, in words."""
    parts = []
    lower, upper = transcript["lower"], transcript["upper"]
    if lower is not None:
        number, swaps = int(lower["sentences"]), int(lower["swaps"])
        kept = f"all {number:,} sentences with at most {counted(swaps)} keep the class"
        parts.append(kept if swaps else "the text itself keeps the class")
    if upper is not None:
        shown = (
            f"a sentence with {counted(len(upper))} changes it" if upper else "the text itself is answered otherwise"
        )
        parts.append(shown)
    if lower is not None and upper and len(upper) == lower["swaps"] + 1:
        parts.append(f"min_swaps = {len(upper)}")
    return f"text {transcript['id']}, class {transcript['label']}: {'; '.join(parts)} (replay)"
