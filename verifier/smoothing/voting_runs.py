"""Runs of `measure --quantity vote`: how many swaps the vote over random texts withstands, text by text."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.classifier import NoAnswer
from swapproof.models.deployed.decision import Decision
from swapproof.models.deployed.smoothing.smoothed_classifier import SmoothedClassifier, rewritten

from .. import exit_codes
from ..counting.whole_runs.sample_request import share
from ..runs.binding import binding_of_deployed
from ..runs.jobs.ray_cluster import connected
from ..runs.jobs.text_by_text import Hands
from ..runs.life import Outcome, RunPlan, begun, facts_about, published, require, settle
from ..runs.manifest import QUESTION
from ..runs.results import opening
from ..runs.run_folder import Run, refuse_foreign
from ..runs.store import Store
from ..runs.vacuity import little_said
from ..runs.work import Lost, Settled
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.inputs import Text, read_plain
from ..tasks.sections import refuse_unmeasured
from ..tasks.task import read_task
from .smoothed_vote import vote_line, voted

STAGE = "vote"
SAMPLES = 1000
MOST_ASKED = 5000
"""Random texts up to which all of them are asked."""
DELTA = "0.001"

DEFINITION = (
    "smoothed radius: swaps of words that change the class of the vote over all random texts of no sentence, for the "
    "texts whose class has more than half of them for certain. The chance of the class is known where all random texts "
    "were asked, and otherwise at least Clopper-Pearson's one-sided lower end at the stated confidence, of each text "
    "by itself. Released claim: what the released code would say of the same votes, which is not sound."
)


@dataclass(frozen=True)
class VoteOptions:
    limit: int | None = None
    samples: int = SAMPLES
    delta: str = DELTA
    most_asked: int = MOST_ASKED
    jobs: int = 1
    resume: bool = True
    progress: bool = False
    cluster: str | None = None
    """Of Ray: auto, ray://HOST:PORT or HOST:PORT."""


@dataclass(eq=False)
class Booth:
    """The classifier, opened from the run's own files."""

    work: Voting
    classifier: SmoothedClassifier
    decision: Decision

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)


@dataclass(frozen=True)
class Voting:
    """The vote about every text."""

    folder: Path
    samples: int
    delta: Fraction
    most_asked: int

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = "vote kept"
    seconds: ClassVar[float | None] = None

    def moved(self, folder: Path) -> Voting:
        return replace(self, folder=folder)

    def open(self) -> Booth:
        task = read_task(Run(self.folder).task)
        return Booth(self, smoothed(open_deployed(task, Trust())), task.model.decision)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Voting, Set[int]]:
        return self, set()

    def lost(self, lost: Lost) -> dict[str, Any]:
        return unknown(lost.text, lost.reason, lost.seconds)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return None

    def settle(self, booth: Booth, text: Text) -> Settled:
        started = time.monotonic()
        classifier = booth.classifier
        sentence = text.swaps.text
        words = [sentence[start:end] for start, end in text.swaps.spans]

        def answers(texts: list[list[str]]) -> Any:
            spelt = [(rewritten(sentence, text.swaps.spans, one),) for one in texts]
            known = list(dict.fromkeys(spelt))
            found = booth.decision.answers(classifier.base.scores(known))
            place = {one: number for number, one in enumerate(known)}
            return np.array([found[place[one]] for one in spelt])

        try:
            about = self.about(classifier, text)
            vote = voted(classifier.noise, words, text.label, answers, self.samples, self.most_asked, self.delta, about)
        except NoAnswer as error:
            return Settled(text.id, unknown(text, str(error), time.monotonic() - started), None)
        said = vote_line(classifier.noise, words, text.swaps.options, vote, text.label, self.delta)
        most = max(vote.others, key=lambda one: (vote.others[one], -one))
        line = opening(text, most) | said | {"level": "replay", "certificate": None, "evaluations": vote.samples}
        return Settled(text.id, line | {"seconds": round(time.monotonic() - started, 4)}, None)

    def about(self, classifier: SmoothedClassifier, text: Text) -> dict[str, Any]:
        """What a sample's seed is the SHA-256 of: everything that is claimed but the answer."""
        return {
            "format": "swapproof vote",
            "version": 1,
            "model": {copy.name: copy.sha256 for copy in classifier.identity.files},
            "text": hashlib.sha256(text.swaps.text.encode()).hexdigest(),
            "options": [list(options) for options in text.swaps.options],
            "label": text.label,
            "samples": self.samples,
            "delta": str(self.delta),
        }


def unknown(text: Text, reason: str, seconds: float) -> dict[str, Any]:
    line = opening(text, None) | {"status": "lost", "smoothed_radius": None, "released_claim": None, "vote": None}
    return line | {"certificate": None, "evaluations": 0, "seconds": round(seconds, 4), "reason": reason}


def smoothed(classifier: object) -> SmoothedClassifier:
    if not isinstance(classifier, SmoothedClassifier):
        raise BadInput('--quantity vote is of a smoothed classifier: [model] smoothed = "smoothing.toml"')
    return classifier


def measure_vote(task: str | Path, out: str | Path, options: VoteOptions | None = None) -> Outcome:
    """The smoothed radius of the first texts of a task, each at the stated confidence; a killed run goes on."""
    asked = VoteOptions() if options is None else options
    require(asked.limit is None or asked.limit >= 1, f"limit = {asked.limit}: at least 1")
    require(asked.samples >= 1, f"samples = {asked.samples}: at least 1")
    require(asked.jobs >= 1, f"jobs = {asked.jobs}: at least 1")
    delta = share("delta", asked.delta)
    require(0 < delta < Fraction(1, 2), f"delta = {asked.delta}: between 0 and 1/2")
    run = Run(Path(out))
    refuse_foreign(run.folder)
    given = read_task(task)
    refuse_unmeasured(given.require, "measure --quantity vote")
    inputs = read_plain(given, asked.limit)
    identity = smoothed(open_deployed(given, Trust())).identity
    binding = binding_of_deployed(identity, inputs)
    about = {"file": identity.name, "kind": identity.kind, **identity.facts, "sha256": binding.model_sha256}
    question = {"quantity": "vote", "samples": asked.samples, "delta": str(delta), "most_asked": asked.most_asked}
    facts = facts_about(binding, inputs, identity.remarks, about, STAGE, None, observed=())
    facts |= {QUESTION: json.dumps(question)}
    own = {**{name: Path(value) for name, value in identity.opened_by.items()}, "road": "run"}
    plan = RunPlan(run, given, inputs, binding, identity.files, own, facts, extends=False)
    with connected(asked.cluster), begun(plan, resume=asked.resume):
        work, hands = voting_of(run.folder, question), Hands(asked.jobs, asked.cluster)
        settle(plan, work, hands, doing="vote", facts={}, shown=asked.progress)
        with Store.open(run.store, readonly=True) as store:
            summary = summary_of_votes(store.results(STAGE), len(inputs.texts), delta, inputs.labels)
        return published(run, summary)


def voting_of(folder: Path, question: Mapping[str, Any]) -> Voting:
    return Voting(folder, int(question["samples"]), Fraction(question["delta"]), int(question["most_asked"]))


def summary_of_votes(
    lines: Iterable[Mapping[str, Any]], texts: int, delta: Fraction, labels: Sequence[str]
) -> dict[str, Any]:
    """Of these lines of results.jsonl, of `texts` texts asked for."""
    lines = list(lines)
    sure = [line for line in lines if line["status"] == "certified"]
    radii = [line["smoothed_radius"]["low"] for line in sure]
    claims = [line["released_claim"] or 0 for line in lines if line["vote"] is not None]
    sound = [(line["smoothed_radius"]["low"] or 0) for line in lines if line["vote"] is not None]
    lost = [line for line in lines if line["status"] == "lost"]
    complete = len(lines) == texts and not lost
    top = max([1, *radii])
    little = little_said(lines, labels)
    sentence = "every text was voted about" if complete else f"{texts - len(lines) + len(lost)} texts are open"
    return {
        "quantity": "vote",
        "texts": texts,
        "certified": len(sure),
        "already_wrong": sum(line["status"] == "already_wrong" for line in lines),
        "open": sum(line["status"] == "open" for line in lines),
        "lost": len(lost),
        "all_asked": sum(line["vote"] is not None and line["vote"]["kind"] == "exact" for line in lines),
        "accuracy": part(len(sure), texts),
        "certified_accuracy": {str(r): part(sum(one >= r for one in radii), texts) for r in range(1, min(top, 10) + 1)},
        "mean_radius": round(sum(radii) / len(radii), 6) if radii else None,
        "released": {
            "claims": sum(one > 0 for one in claims),
            "greater_than_sound": sum(one > own for one, own in zip(claims, sound, strict=True)),
            "vanish": sum(one > 0 and own == 0 for one, own in zip(claims, sound, strict=True)),
            "mean": round(sum(claims) / len(claims), 6) if claims else None,
        },
        "confidence": float(1 - delta),
        "seconds": round(sum(line["seconds"] for line in lines), 3),
        "definition": DEFINITION,
        "verdict": {
            "exit_code": exit_codes.HOLDS if complete else exit_codes.INCOMPLETE,
            "sentence": "; ".join([*(f"this says little: {one}" for one in little), sentence]),
        },
        **({"vacuous": little} if little else {}),
    }


def part(number: int, whole: int) -> float:
    return round(number / whole, 6) if whole else 0.0
