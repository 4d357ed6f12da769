"""The ways of deciding a smooth network that are compared: our engines, plain enumeration, auto_LiRPA."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.query import Query
from swapproof.encodings.solvers.margin_problem import MarginProblem
from swapproof.encodings.space import SwapSpace
from swapproof.proofs.check import check_certificate
from swapproof.proofs.onnx_file import Refused, Unusable
from swapproof.proofs.writing.certificate import Lower, write_certificate

from ..engines.outside.margin_bounds import MarginBounds
from ..engines.outside.solver_asking import Effort
from ..engines.protocol import Budget
from ..engines.smooth_engines import Smooth
from ..interval import Proof
from ..ladder.climbing import climb
from ..ladder.replay import NO_CLASS, Replay
from ..ladder.run_certificates import Checker
from ..tasks.inputs import Text
from .deep_answers import Checked, DeepAnswer

BATCHES = (16, 64, 256, 1024)
"""Sizes of batches that enumeration tries."""
TRIED = 2048
"""Sentences on which it tries them."""

PATIENCE = 1.0
"""Times the seconds of a text that check.py has for its proof."""
NOT_ACCEPTED = "its proof was not accepted, or not in time"


@dataclass(frozen=True)
class Asked:
    """A text, and what it may cost."""

    text: Text
    query: Query
    replay: Replay
    radius: int
    seconds: float

    @property
    def words(self) -> int:
        return len(self.query.space.swappable)


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    def answer(self, asked: Asked) -> DeepAnswer: ...


class Stopwatch:
    """Of the wall and of this process."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    @property
    def spent(self) -> tuple[float, float]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


@dataclass(frozen=True)
class Ours:
    """An engine alone on the ladder, its witnesses replayed, and its last proof checked afterwards."""

    engine: Smooth
    checker: Checker

    @property
    def name(self) -> str:
        return self.engine.name

    def answer(self, asked: Asked) -> DeepAnswer:
        watch, engine = Stopwatch(), replace(self.engine, reach=asked.radius)
        budget = Budget(time.monotonic() + asked.seconds)
        verdict = climb(asked.query, asked.replay, [engine], budget, lambda bound: None)
        wall, cpu = watch.spent
        interval = verdict.interval
        proof = interval.low_evidence
        checked = None if proof is None else self.checked(asked, proof, interval.low - 1)
        counts = checked is None or checked.accepted
        return DeepAnswer(
            id=asked.text.id,
            engine=self.name,
            words=asked.words,
            harmless=max(0, interval.low - 1) if counts else 0,
            broken=interval.high,
            sentences=budget.evaluations,
            seconds=wall,
            cpu_seconds=cpu,
            reason=verdict.contradiction or ((verdict.reason or "") if counts else NOT_ACCEPTED),
            certificate=checked,
        )

    def checked(self, asked: Asked, proof: Proof, swaps: int) -> Checked:
        """In float64 with bounds, and by check.py."""
        checker, watch = self.checker, Stopwatch()
        statement = checker.statement(asked.text, asked.query)
        _, reading = watch.spent
        data = write_certificate(replace(statement, lower=Lower(swaps, proof.level, proof.tree)))
        watch = Stopwatch()
        screened = checker.screened(data, asked.seconds)
        _, screening = watch.spent
        refusal, patience, watch = None, PATIENCE * asked.seconds, Stopwatch()
        try:
            check_certificate(data, checker.model, checker.binding.vocabulary_sha256, patience)
        except (Refused, Unusable) as error:
            refusal = str(error)
        wall, exact = watch.spent
        if wall >= patience and refusal is not None:  # it said no more than that
            return Checked(len(data), proof.level, reading, screening, screened, None)
        return Checked(len(data), proof.level, reading, screening, screened, exact, refusal)


@dataclass(eq=False)
class Enumerating:
    """Every sentence through onnxruntime, fewest swaps first, in batches of the size that was fastest at first."""

    name: str = "enumerate"
    batch: int | None = None

    def answer(self, asked: Asked) -> DeepAnswer:
        space, replay = asked.query.space, asked.replay
        self.batch = self.batch or best_batch(space, replay, asked.radius)
        watch, until = Stopwatch(), time.monotonic() + asked.seconds
        done, harmless, broken, reason = 0, 0, None, ""
        for swaps in range(1, min(asked.radius, asked.words) + 1):
            for tokens in batches(sentences(space, swaps), self.batch):
                answers = replay.answers(tokens)
                done += len(tokens)
                wrong = np.flatnonzero((answers != asked.query.label) & (answers != NO_CLASS))
                if any(replay.breaks(tokens[row], asked.query.label) for row in wrong):
                    broken = swaps
                    break
                if time.monotonic() > until:
                    reason = f"out of time among the sentences of {swaps} swaps"
                    break
            if broken is not None or reason:
                break
            harmless = swaps
        wall, cpu = watch.spent
        return DeepAnswer(asked.text.id, self.name, asked.words, harmless, broken, done, wall, cpu, reason=reason)


def sentences(space: SwapSpace, swaps: int) -> Iterator[NDArray[np.int64]]:
    """[n, length]: all with exactly so many swaps, some for each set of words."""
    original = np.array(space.original, dtype=np.int64)
    for words in combinations(space.swappable, swaps):
        options = np.meshgrid(*(np.array(space.choices[word][1:]) for word in words), indexing="ij")
        found = np.tile(original, (options[0].size, 1))
        for word, chosen in zip(words, options, strict=True):
            found[:, word] = chosen.ravel()
        yield found


def batches(parts: Iterator[NDArray[np.int64]], size: int) -> Iterator[NDArray[np.int64]]:
    """The same, so many at once."""
    held, count = list[NDArray[np.int64]](), 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count >= size:
            whole = np.concatenate(held)
            for start in range(0, count - size + 1, size):
                yield whole[start : start + size]
            held = [whole[count - count % size :]]
            count %= size
    if count:
        yield np.concatenate(held)


def best_batch(space: SwapSpace, replay: Replay, radius: int) -> int:
    """By CPU seconds on the same sentences."""
    tokens = np.concatenate([np.array([space.original]), *few(space, radius)])
    tokens = np.tile(tokens, (-(-TRIED // len(tokens)), 1))[:TRIED]
    spent = {}
    for size in BATCHES:
        watch = Stopwatch()
        for start in range(0, len(tokens), size):
            replay.outputs(tokens[start : start + size])
        spent[size] = watch.spent[1]
    return min(spent, key=spent.__getitem__)


def few(space: SwapSpace, radius: int) -> list[NDArray[np.int64]]:
    found, count = [], 0
    for swaps in range(1, min(radius, len(space.swappable)) + 1):
        for part in sentences(space, swaps):
            found.append(part)
            count += len(part)
            if count >= TRIED:
                return found
    return found


@dataclass(frozen=True)
class Claiming:
    """auto_LiRPA: its time is that of bounding alone, in its own process; it finds no sentences."""

    engine: MarginBounds

    @property
    def name(self) -> str:
        return self.engine.name

    def answer(self, asked: Asked) -> DeepAnswer:
        effort, last = Effort(), min(asked.radius, asked.words)
        harmless, reason = 0, ""
        if last:
            problem = MarginProblem.of(asked.query, 1, last)
            outcome = self.engine.asked(problem, Budget(time.monotonic() + asked.seconds), effort)
            margins: Any = () if outcome.solution is None else outcome.solution
            harmless = next((k for k, margin in enumerate(margins) if not margin > 0), len(margins))
            reason = "" if harmless >= last else outcome.detail if outcome.status != "optimal" else "no bound"
            if outcome.status == "time" and not effort.cpu_seconds:  # it was killed
                effort.seconds = effort.cpu_seconds = asked.seconds
        return DeepAnswer(
            asked.text.id,
            self.name,
            asked.words,
            harmless,
            None,
            0,
            effort.seconds,
            effort.cpu_seconds,
            claimed=True,
            reason=reason,
        )
