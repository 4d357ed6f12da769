"""One text after the other under attack, as the work of a process."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.onnx_files.onnx_reading import Model, network_for
from swapproof.encodings.query import Query
from swapproof.models.deployed.answers.score_rows import Unreachable
from swapproof.models.deployed.classifier import Classifier, NoAnswer, SpeltOut
from swapproof.models.deployed.decision import Decision
from swapproof.models.errors import BadInput as Misshapen
from swapproof.models.language_models.perplexity import CausalModel

from ..ladder.replay import Original
from ..runs.run_folder import Run
from ..runs.store import Store
from ..runs.work import Lost, Settled
from ..synonyms.similarity import sentence_similarity
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.inputs import Text
from ..tasks.opened_model import opened_in
from ..tasks.task import read_task
from .attack_goals import Goal
from .attack_limits import Encoder, FluentEnough, Limits, Natural, NearEnough
from .attack_line import line_of
from .attacked_text import Attacked, Check, Spent
from .deployed_answers import OfModel, answers_of_model
from .recipes import recipe_named
from .sentence_answers import Answers, OfNetwork, unknown_word
from .timed_answers import KeptAnswers, TimedAnswers
from .together.searched_text import Searched

STAGE = "attack"
SHORT = "attack kept"
"""The stage that remembers which texts ran out of how much time; null where they did not, later."""


@dataclass(eq=False)
class Station:
    """The model, opened from the run's own files."""

    work: Attacking
    classifier: Classifier
    decision: Decision
    unknown: str
    model: Model | None
    original: Original | None
    """The model as it was given, where the one that is read was made from it."""

    def settle(self, text: Text) -> Settled:
        return self.work.settle(self, text)

    @cached_property
    def encoder(self) -> Encoder:
        return sentence_similarity(0.0).encoder

    @cached_property
    def causal(self) -> CausalModel:
        if self.work.causal_model is None:
            raise ValueError("perplexity where no language model was given")
        return CausalModel.open(self.work.causal_model)


@dataclass(frozen=True)
class Tokens:
    """`reads`: whether the network answers, and not onnxruntime; `given`: what the model was made from, if it was;
    `unknown`: what the vocabulary reads as the unknown word."""

    reads: bool
    given: Given | None
    unknown: str


@dataclass(frozen=True)
class Attacking:
    """The attack `method` on every text. What is found of a text depends on `seed` and its number alone."""

    folder: Path
    method: str
    goal: Goal
    limits: Limits
    seed: int
    trust: Trust
    threads: int = 1
    tokens: Tokens | None = None
    """Of texts as a vocabulary reads them; else they are words for the deployed model."""
    causal_model: Path | None = None
    """A folder: sentences are scored, and limited, by their perplexity."""
    seconds: float | None = None
    """For each text; what was found until then stands."""
    searched: Mapping[int, Searched] = field(default_factory=dict)
    """What the search gave of texts that were searched together; what it found is replayed like any other."""

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = SHORT

    def open(self) -> Station:
        run = Run(self.folder)
        task = read_task(run.task)
        classifier = open_deployed(task, self.trust, self.threads)
        unknown = unknown_word(task.model.unknown) if self.tokens is None else self.tokens.unknown
        model = None if self.tokens is None else opened_in(run)
        given = None if self.tokens is None else self.tokens.given
        original = None if model is None or given is None else Original.of(model, given)
        return Station(self, classifier, task.model.decision, unknown, model, original)

    def moved(self, folder: Path) -> Attacking:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Attacking, Set[int]]:
        """Again are attacked the texts that ran out of less time than there is now."""
        short = {id: json.loads(store.line(SHORT, id)) for id, _ in store.finished(SHORT)}
        less = {id for id, then in short.items() if then is not None and (self.seconds is None or then < self.seconds)}
        return self, less & finished

    def lost(self, lost: Lost) -> dict[str, Any]:
        spent = {"requests": 0, "evaluations": 0, "seconds": round(lost.seconds, 4)}
        return line_of(lost.text, self.method, None, None, spent, failed=lost.reason)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        short = settled.line["attack"].get("out_of_time", False)
        return json.dumps(self.seconds if short else None) if short or again else None

    def settle(self, station: Station, text: Text) -> Settled:
        started = time.monotonic()
        deployed = answers_of_model(station.classifier, station.decision, text.swaps, text.label, station.unknown)
        if self.tokens is not None and self.tokens.reads:  # few sentences are left to ask it
            deployed.asking.variants = SpeltOut(station.classifier, text.swaps)
        near = None
        natural = self.causal_model is not None and recipe_named(self.method).natural
        if self.limits.similarity is not None or natural:
            near = NearEnough(station.encoder, text.swaps, self.limits.similarity or 0.0)
        fluent = None
        if self.causal_model is not None:
            fluent = FluentEnough(station.causal.perplexities, text.swaps, self.limits.perplexity)
        checks = [check for check in (near, fluent) if check is not None]
        attacked = self.attacked(text, deployed, checks)
        if natural and near is not None and fluent is not None:
            choice = Natural(near, fluent)
            attacked.checks, attacked.worth = [*checks, choice.allows], choice.worth
        predicted: int | None = None
        witness: NDArray[Any] | None = None
        failed: str | None = None
        late = False
        try:
            predicted = int(deployed.asking.judged(deployed.asking.original)[0][0])
            if predicted < 0:
                predicted, failed = None, "the model answers NaN to the text"
            elif predicted != text.label:
                witness = attacked.original
            elif self.goal.target != text.label and (before := self.searched.get(text.id)) is not None:
                witness = self.replayed(station, text, attacked, deployed, before)
            elif self.goal.target != text.label:
                kept = KeptAnswers.at(Run(self.folder).begun(text.id), [text.swaps.fields, text.swaps.options])
                timed = TimedAnswers(self.answers(station, text, deployed), self.end(started), kept)
                attacked.answers = timed
                witness = self.search(station, text, attacked, deployed)
                late = timed.late
        except Unreachable as error:  # no sentence's fault: the text is tried again when the run is gone on with
            raise BadInput(f"{error}; what is finished stays, and the same command goes on from there") from None
        except (NoAnswer, BadInput, Misshapen) as error:
            failed = f"the model cannot answer: {error}"
        spent: dict[str, Any] = {"requests": attacked.requests, "evaluations": attacked.evaluations}
        spent |= {"gradients": attacked.gradients} if attacked.gradients else {}
        spent |= {"answered_nan": attacked.silent} if attacked.silent else {}
        spent |= {"out_of_time": True} if late else {}
        before = self.searched.get(text.id)
        spent["seconds"] = round(time.monotonic() - started + (0.0 if before is None else before.seconds), 4)
        measured: dict[str, float] = {}
        if near is not None and witness is not None:
            measured["similarity"] = float(near.similarities(witness[None])[0])
        if (
            fluent is not None
            and witness is not None
            and math.isfinite(ratio := float(fluent.ratios(witness[None])[0]))
        ):
            measured["perplexity_ratio"] = ratio
        line = line_of(text, self.method, predicted, witness, spent, failed=failed, measured=measured)
        return Settled(text.id, line, None)

    def end(self, started: float) -> float:
        """Of the search, in seconds of time.monotonic()."""
        return math.inf if self.seconds is None else started + self.seconds

    def attacked(self, text: Text, answers: Answers, checks: Sequence[Check]) -> Attacked:
        words = len(text.frozen.words)
        return Attacked(
            answers,
            self.goal,
            text.label,
            tuple(map(len, text.frozen.words)),
            self.limits.most_swaps(words),
            np.random.default_rng([self.seed, text.id]),
            self.limits.most_requests(words),
            checks,
        )

    def answers(self, station: Station, text: Text, deployed: OfModel) -> Answers:
        if station.model is None or self.tokens is None or not self.tokens.reads:
            return deployed
        space = text.frozen.space
        query = Query.of(network_for(station.model, space, smooth=True), space, text.label)
        return OfNetwork.of(query, text.encoded.places, deployed)

    def search(self, station: Station, text: Text, attacked: Attacked, deployed: OfModel) -> NDArray[Any] | None:
        """The sentence with the fewest swaps that was found and stands when it is replayed."""
        with suppress(Spent):
            recipe_named(self.method).search.run(attacked)
        for _, (_, row) in sorted(attacked.found.items()):
            if self.stands(station, text, row, deployed):
                return row
        return None

    def replayed(
        self, station: Station, text: Text, attacked: Attacked, deployed: OfModel, searched: Searched
    ) -> NDArray[Any] | None:
        attacked.requests, attacked.evaluations = searched.requests, searched.evaluations
        attacked.silent = searched.silent
        row = searched.row(len(text.frozen.words))
        return row if row is not None and self.stands(station, text, row, deployed) else None

    def stands(self, station: Station, text: Text, row: NDArray[Any], deployed: OfModel) -> bool:
        """Spelt out, alone, among others; and by the model as it was given, where another is read."""
        answer = deployed.asking.answer(row)
        if answer < 0 or (answer == text.label if self.goal.target is None else answer != self.goal.target):
            return False
        if station.original is None:
            return True
        space = text.frozen.space
        swaps = []
        for word in np.flatnonzero(row).tolist():
            first = text.encoded.places[word][0]
            swaps.append((first, space.choices[first][int(row[word])]))
        return station.original.breaks(space, np.array(space.sentence(swaps), dtype=np.int64), text.label)
