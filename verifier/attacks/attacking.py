"""One text after the other under attack, as the work of a process."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.encodings.network import Network
from swapproof.encodings.onnx_files.model_ports import Given
from swapproof.encodings.onnx_files.onnx_reading import Model
from swapproof.encodings.query import Query
from swapproof.models.deployed.answers.score_rows import Unreachable
from swapproof.models.deployed.classifier import Classifier, NoAnswer, SpeltOut
from swapproof.models.deployed.decision import Decision
from swapproof.models.errors import BadInput as Misshapen
from swapproof.models.language_models.perplexity import CausalModel

from ..ladder.kept_networks import kept_network
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
from .attack_limits import Encoder, FluentEnough, Limits, NearEnough
from .attack_line import line_of
from .attacked_text import Attacked, Check, Spent
from .deployed_answers import OfModel, answers_of_model
from .recipes import recipe_named
from .sentence_answers import Answers, OfNetwork

STAGE = "attack"
UNKNOWN_WORD = "[UNK]"
"""Stands for a word taken away where the task names no unknown word, as in TextAttack."""


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
    networks: OrderedDict[Any, Network] = field(default_factory=OrderedDict)

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
    """`reads`: whether the network answers, and not onnxruntime; `given`: what the model was made from, if it was."""

    reads: bool
    given: Given | None


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

    stage: ClassVar[str] = STAGE
    kept_stage: ClassVar[str] = "attack kept"
    seconds: ClassVar[float | None] = None

    def open(self) -> Station:
        run = Run(self.folder)
        task = read_task(run.task)
        classifier = open_deployed(task, self.trust, self.threads)
        unknown = task.model.unknown if isinstance(task.model.unknown, str) else UNKNOWN_WORD
        model = None if self.tokens is None else opened_in(run)
        given = None if self.tokens is None else self.tokens.given
        original = None if model is None or given is None else Original.of(model, given)
        return Station(self, classifier, task.model.decision, unknown, model, original)

    def moved(self, folder: Path) -> Attacking:
        return replace(self, folder=folder)

    def resumed(self, run: Run, store: Store, finished: Set[int]) -> tuple[Attacking, Set[int]]:
        return self, set()

    def lost(self, lost: Lost) -> dict[str, Any]:
        spent = {"requests": 0, "evaluations": 0, "seconds": round(lost.seconds, 4)}
        return line_of(lost.text, self.method, None, None, spent, failed=lost.reason)

    def kept(self, settled: Settled, *, again: bool) -> str | None:
        return None

    def settle(self, station: Station, text: Text) -> Settled:
        started = time.monotonic()
        deployed = answers_of_model(station.classifier, station.decision, text.swaps, text.label, station.unknown)
        if self.tokens is not None and self.tokens.reads:  # few sentences are left to ask it
            deployed.asking.variants = SpeltOut(station.classifier, text.swaps)
        near = None
        if self.limits.similarity is not None:
            near = NearEnough(station.encoder, text.swaps, self.limits.similarity)
        fluent = None
        if self.causal_model is not None:
            fluent = FluentEnough(station.causal.perplexities, text.swaps, self.limits.perplexity)
        checks = [check for check in (near, fluent) if check is not None]
        attacked = self.attacked(text, deployed, checks)
        predicted: int | None = None
        witness: NDArray[Any] | None = None
        failed: str | None = None
        try:
            predicted = int(deployed.asking.judged(deployed.asking.original)[0][0])
            if predicted < 0:
                predicted, failed = None, "the model answers NaN to the text"
            elif predicted != text.label:
                witness = attacked.original
            elif self.goal.target != text.label:
                attacked.answers = self.answers(station, text, deployed)
                witness = self.search(station, text, attacked, deployed)
        except Unreachable as error:  # no sentence's fault: the text is tried again when the run is gone on with
            raise BadInput(f"{error}; what is finished stays, and the same command goes on from there") from None
        except (NoAnswer, BadInput, Misshapen) as error:
            failed = f"the model cannot answer: {error}"
        spent: dict[str, Any] = {"requests": attacked.requests, "evaluations": attacked.evaluations}
        spent |= {"gradients": attacked.gradients} if attacked.gradients else {}
        spent |= {"answered_nan": attacked.silent} if attacked.silent else {}
        spent["seconds"] = round(time.monotonic() - started, 4)
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
        query = Query.of(kept_network(station.networks, station.model, space, smooth=True), space, text.label)
        return OfNetwork.of(query, text.encoded.places, deployed)

    def search(self, station: Station, text: Text, attacked: Attacked, deployed: OfModel) -> NDArray[Any] | None:
        """The sentence with the fewest swaps that was found and stands when it is replayed."""
        with suppress(Spent):
            recipe_named(self.method).search.run(attacked)
        for _, (_, row) in sorted(attacked.found.items()):
            if self.stands(station, text, row, deployed):
                return row
        return None

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
