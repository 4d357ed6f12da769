"""A model of foreign code asked in a process of its own: one that ends its process, or is killed, has no answer."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from swapproof.models.deployed.classifier import Classifier, Identity, NoAnswer, Rows, Scores, Variants
from swapproof.models.deployed.swapped_text import Fields, SwapText
from swapproof.models.errors import BadInput

from ..runs.jobs.worker_process import Crash, Ready, Refusal, Worker
from ..tasks.deployed_model import Trust, open_deployed
from ..tasks.task import Task

MOST_DEATHS = 32
"""One text in 256 that ends the process is found by eight halvings."""


@dataclass(frozen=True)
class Asked:
    """What the process is handed."""

    task: Task
    trust: Trust
    threads: int

    @property
    def named(self) -> str:
        model = self.task.model
        return f"{model.kind} = {str(getattr(model, model.kind))!r}"

    def open(self) -> Asker:
        return Asker(open_deployed(self.task, self.trust, self.threads))


@dataclass(frozen=True)
class Swapped:
    """Sentences of a text, by the numbers of their options."""

    text: SwapText
    rows: Rows


@dataclass(eq=False)
class Asker:
    """The model there; of the text that it was asked about last, what it has of all sentences together."""

    classifier: Classifier
    last: tuple[SwapText, Variants] | None = None

    def settle(self, asked: Sequence[Fields] | Swapped | None) -> Any:
        """Without sentences, what it is."""
        try:
            match asked:
                case None:
                    return self.classifier.identity
                case Swapped(text, rows):
                    if self.last is None or self.last[0] != text:
                        self.last = text, self.classifier.variants(text)
                    return self.last[1].scores(rows)
            return self.classifier.scores(asked)
        except NoAnswer as error:
            return error


@dataclass(eq=False)
class Apart:
    """The same here. A process that died is followed by another, so many times."""

    asked: Asked
    workers: list[Worker] = field(default_factory=list)
    deaths: int = 0

    def __post_init__(self) -> None:
        weakref.finalize(self, ended, self.workers)

    @cached_property
    def identity(self) -> Identity:
        found: Identity = self.answer(None)
        return found

    def scores(self, sentences: Sequence[Fields]) -> Scores:
        found: Scores = self.answer(list(sentences))
        return found

    def variants(self, text: SwapText) -> Variants:
        return VariantsApart(self, text)

    def answer(self, asked: Sequence[Fields] | Swapped | None) -> Any:
        if not self.workers:
            self.workers.append(Worker.start(self.asked))
            self.heard("opened")
        self.workers[0].send([asked])
        return self.heard("asked")

    def heard(self, what: str) -> Any:
        try:
            answer = self.workers[0].pipe.recv()
        except (EOFError, OSError):
            answer, how = None, self.workers.pop().end()
            self.deaths += 1
            said = f"the process that {what} it {how}"
            if what == "opened" or self.deaths >= MOST_DEATHS:
                raise BadInput(f"[model] {self.asked.named}: {said}") from None
            raise NoAnswer(said) from None
        match answer:
            case Ready():
                return None
            case Refusal(message):
                raise BadInput(message)
            case Crash(trace):
                raise RuntimeError(f"a worker failed:\n{trace}")
            case NoAnswer():
                raise answer
        return answer


@dataclass(frozen=True, eq=False)
class VariantsApart:
    """Of a text, as the model there has them."""

    apart: Apart
    text: SwapText

    def scores(self, rows: Rows) -> Scores:
        found: Scores = self.apart.answer(Swapped(self.text, rows))
        return found


def ended(workers: list[Worker]) -> None:
    for worker in workers:
        worker.end()


def open_apart(task: Task, trust: Trust, threads: int = 1, kinds: Sequence[str] = ("callable",)) -> Classifier:
    """The model of a task for the process that is not to die with it, where it is of these kinds."""
    if task.model.kind not in kinds:
        return open_deployed(task, trust, threads)
    return Apart(Asked(task, trust, threads))
