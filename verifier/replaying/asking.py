"""One text put to the deployed model: the margins of its sentences, and whether a witness stands by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.cached import Cached
from swapproof.models.deployed.classifier import Classifier, NoAnswer, Rows, Variants
from swapproof.models.deployed.decision import NO_CLASS, Decision
from swapproof.models.deployed.swapped_text import SwapText
from swapproof.models.errors import BadInput

NEIGHBOURS = 7
"""Sentences among which a witness is asked about a second time."""


@dataclass(eq=False)
class Asking:
    """The sentences of one text. `evaluations` counts them, `seconds` the time that the model took."""

    classifier: Classifier
    decision: Decision
    text: SwapText
    label: int
    requests: int = 0
    evaluations: int = 0
    seconds: float = 0.0

    @cached_property
    def variants(self) -> Variants:
        return self.classifier.variants(self.text)

    @property
    def original(self) -> Rows:
        return np.zeros((1, len(self.text.spans)), dtype=np.int32)

    def scores(self, rows: Rows) -> NDArray[Any]:
        started = time.monotonic()
        with self.of_these_alone(service=True):
            found = self.variants.scores(rows)
        self.seconds += time.monotonic() - started
        self.requests += 1
        self.evaluations += len(rows)
        return found

    def judged(self, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
        """[n]: the classes of these sentences, and by how much the label wins."""
        scores = self.scores(rows)
        with self.of_these_alone():
            return self.decision.answers(scores), self.decision.margins(scores, self.label)

    def answer(self, row: NDArray[Any]) -> int:
        """The class of one sentence; NO_CLASS where that is another one put together from parts than spelt out."""
        answer = self.spelt_out(row)
        parts = self.scores(row[None])
        with self.of_these_alone():
            return answer if answer == int(self.decision.answers(parts)[0]) else NO_CLASS

    def spelt_out(self, row: NDArray[Any]) -> int:
        """The class of one sentence, read like any other text; NO_CLASS where that is another one alone and among
        neighbours."""
        sentence, others = self.text.sentence(row), [self.text.fields] * NEIGHBOURS
        together = [*others[: NEIGHBOURS // 2], sentence, *others[NEIGHBOURS // 2 :]]
        asked = self.classifier.classifier if isinstance(self.classifier, Cached) else self.classifier
        with self.of_these_alone(service=True):
            found = asked.scores([sentence])[0], asked.scores(together)[NEIGHBOURS // 2]
        self.requests += 2
        self.evaluations += 1 + len(together)
        with self.of_these_alone():
            alone, among = (int(self.decision.answers(one[None])[0]) for one in found)
        return alone if alone == among else NO_CLASS

    @contextmanager
    def of_these_alone(self, *, service: bool = False) -> Iterator[None]:
        """The model answered its first texts: what it cannot read or answer now is these sentences' affair, as too many
        tokens are. Unless a service says it, which says it of itself."""
        try:
            yield
        except BadInput as error:
            if service and isinstance(self.classifier, Cached):
                raise
            raise NoAnswer(str(error)) from error
