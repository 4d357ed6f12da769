"""What an attack wants of a sentence, and how near it is to that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput
from swapproof.models.deployed.decision import Decision

Array = NDArray[Any]
FAR = -np.inf
"""The score of a sentence that the model answers NaN: no search goes on from it."""


@dataclass(frozen=True)
class Judged:
    """Of [n] sentences: `scores`, the greater the nearer to the goal; `shares`, the same from 0 to 1, as papers have
    it; `won`, which reach it; `silent`, which have no answer."""

    scores: Array
    shares: Array
    won: NDArray[np.bool_]
    silent: NDArray[np.bool_]


@dataclass(frozen=True)
class Goal:
    """Another class than the label (`target` None), or this one.

        untargeted  share = 1 - p(label)     targeted  share = p(target)     score = log(share / (1 - share))

    The score orders sentences as the share does, and goes on to do so where floats of the share are 0 or 1. Of a single
    score with a threshold there are no shares of classes: then the score is how far it is beyond the threshold.
    """

    target: int | None = None

    def judge(self, answered: Array, decision: Decision, label: int | Array) -> Judged:
        """`answered` [n, outputs]: the scores of the model, as it answers them; `label`: of all, or [n]."""
        values = decision.values(answered)
        silent = np.asarray(np.isnan(values).any(axis=1))
        answers = np.where(silent, -1, values.argmax(axis=1))
        wanted = np.broadcast_to(label if self.target is None else self.target, len(values))
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < decision.classes:
            raise BadInput(f"class {wanted.max()} of {decision.classes} classes")
        won = np.asarray(answers == wanted if self.target is not None else answers != label)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = logarithms(np.array(values, dtype=np.float64), decision, np.shape(answered)[-1])
            every = np.arange(len(logs))
            own = logs[every, wanted]
            logs[every, wanted] = -np.inf
            odds = own - log_sum(logs)
            scores = odds if self.target is not None else -odds
            scores = np.where(silent | np.isnan(scores), FAR, scores)
            shares = 1 / (1 + np.exp(-scores))
        return Judged(scores, shares, np.asarray(won & ~silent), silent)


def logarithms(values: Array, decision: Decision, outputs: int) -> Array:
    """[n, classes]: the logarithms of the classes' shares, up to what they have in common."""
    if decision.meaning == "probabilities" and not decision.compares(outputs):
        return np.asarray(np.log(values))
    return values


def log_sum(logs: Array) -> Array:
    """log(sum(exp(x))) of each row."""
    top = logs.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(safe + np.log(np.exp(logs - safe[:, None]).sum(axis=1)))
