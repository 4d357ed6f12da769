"""From the scores of a model to the class that the deployed code answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput

Array = NDArray[Any]
Meaning = Literal["logits", "probabilities", "log_probabilities", "sigmoid"]
NO_CLASS = -1
"""The answer where a score is NaN: nothing wins."""
SHARES = frozenset({"probabilities", "sigmoid"})
"""Compared alike."""


@dataclass(frozen=True)
class Answered:
    """What the scores of a model mean and how many a text has, where its kind says so, so that it has an answer too."""

    meaning: Meaning
    outputs: int


@dataclass(frozen=True)
class Decision:
    """Which class wins: argmax, the lowest index of equal ones; of a single score, whether it exceeds a threshold.

    `column`: the one of several scores that decides between two classes, the other scores being other questions. The
    threshold is a probability; of scores that are `logits`, it is compared with their sigmoid.
    """

    classes: int
    meaning: Meaning = "logits"
    threshold: float | None = None
    column: int | None = None

    def values(self, scores: Array) -> Array:
        """[n, classes]: the class with the greatest wins, the lowest index of equal ones."""
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim == 1:
            scores = scores[:, None]
        if self.column is not None:
            if self.column >= scores.shape[1]:
                raise BadInput(f"the model answers {scores.shape[1]} scores; there is no column {self.column}")
            scores = scores[:, self.column : self.column + 1]
        if scores.shape[1] == 1 and self.classes == 2:
            return np.concatenate([np.zeros_like(scores), scores - self.border], axis=1)
        if scores.shape[1] != self.classes:
            given = scores.shape[1]
            raise BadInput(f"the model answers {given} scores, and [model] labels names {self.classes} classes")
        if self.threshold is not None:
            if self.classes != 2:
                raise BadInput(f"[model] threshold decides between two classes, and labels names {self.classes}")
            return np.stack([np.zeros(len(scores)), self.second(scores) - self.border], axis=1)
        return scores

    def compares(self, outputs: int) -> bool:
        """Whether one of so many scores is compared with a border, so that what they mean decides."""
        return outputs == 1 or self.threshold is not None or self.column is not None

    def refuse_other_meaning(self, source: str | PathLike[str], own: Answered) -> None:
        """A score compared as what it is not would answer otherwise than the model itself."""
        if self.meaning == own.meaning or {self.meaning, own.meaning} <= SHARES or not self.compares(own.outputs):
            return
        raise BadInput(
            f'{source}: its scores are {own.meaning}, and [model] scores = "{self.meaning}" compares them with another '
            f'border than the model\'s own: write scores = "{own.meaning}"'
        )

    @property
    def border(self) -> float:
        """What a single score must exceed."""
        share = 0.5 if self.threshold is None else self.threshold
        if self.meaning == "logits":
            return 0.0 if share == 0.5 else math.log(share / (1 - share))
        return share

    def second(self, scores: Array) -> Array:
        """Of two scores, what the threshold is compared with: the second class's share, or its logit."""
        if self.meaning == "logits":
            return np.asarray(scores[:, 1] - scores[:, 0])
        return np.asarray(np.exp(scores[:, 1]) if self.meaning == "log_probabilities" else scores[:, 1])

    def answers(self, scores: Array) -> NDArray[np.int64]:
        values = self.values(scores)
        return np.where(np.isnan(values).any(axis=1), NO_CLASS, values.argmax(axis=1))

    def margins(self, scores: Array, label: int) -> Array:
        """[n]: the value of the label less the greatest of the others; NaN where there is none."""
        values = self.values(scores)
        others = np.delete(values, label, axis=1).max(axis=1)
        with np.errstate(invalid="ignore"):  # between two infinities there is no margin
            return np.asarray(values[:, label] - others)

    def keeps(self, scores: Array, label: int) -> NDArray[np.bool_]:
        """[n]: whether the label wins."""
        return np.asarray(self.answers(scores) == label)
