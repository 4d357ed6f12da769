"""EUBA (Xu et al.): flips found by first-order scores, so a lower bound of kappa and an upper bound of rho.

Score of the word w at position i, with g_i the gradient of log p(y | .) at the embedding of position i:

    u(i, w) = log p(y | x with a mask at i) + <g_i, e_w - e_mask>

Phase 1 tries all (i, w) in ascending score, words that have succeeded left out; phase 2 tries the other words, those
that flipped most texts of this class first, each where its score is least. Each phase stops after m failures in a row.
`top1` tries each word in phase 1 where its score is least only; `no-mask` takes gradient and log p at the text itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...ladder.replay import NO_CLASS
from ..subject import Subject
from .euba_classifier import AT_ONCE, Classifier

Array = NDArray[Any]
Variant = Literal["paper", "top1", "no-mask"]
VARIANTS: tuple[Variant, ...] = ("paper", "top1", "no-mask")


FEWEST = 64
"""Sentences handed over together where fewer might do: before so many failures as end a phase no more are needed."""


@dataclass(eq=False)
class Euba:
    """Run text after text, in order: phase 2 looks at the successes so far. `queries` counts what the method asks."""

    classifier: Classifier
    words: NDArray[np.int64]
    mask: int
    m: int = 512
    variant: Variant = "paper"
    seconds: float = float("inf")
    """For each text: no further sentences are tried when they are over."""
    queries: int = 0
    successes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Class -> [V]: texts of it that each word flipped."""

    @cached_property
    def coordinates(self) -> Array:
        """[V, dimensions]."""
        return self.classifier.rows(self.words)

    def run(self, subjects: Sequence[Subject], advance: Callable[[int], None] = lambda n: None) -> NDArray[np.bool_]:
        """[texts, V]: the flips found."""
        found = []
        for subject in subjects:
            found.append(self.flips(subject))
            advance(1)
        return np.array(found).reshape(len(subjects), len(self.words))

    def flips(self, subject: Subject) -> NDArray[np.bool_]:
        deadline = time.monotonic() + self.seconds
        success = np.zeros(len(self.words), dtype=bool)
        if not subject.positions:
            return success
        scores = self.scores(subject)
        best = scores.argmin(axis=0)
        if self.variant == "top1":
            word = np.argsort(scores.min(axis=0), kind="stable")
            place = best[word]
        else:
            order = np.argsort(scores, axis=None, kind="stable")
            place, word = np.divmod(order, len(self.words))
        self.verify(subject, place, word, success, deadline)
        rest = np.argsort(-self.successes_of(subject.label), kind="stable")
        rest = rest[~success[rest]]
        self.verify(subject, best[rest], rest, success, deadline)
        self.remember(subject, success)
        return success

    def successes_of(self, label: int) -> NDArray[np.int64]:
        return self.successes.setdefault(label, np.zeros(len(self.words), dtype=np.int64))

    def remember(self, subject: Subject, success: NDArray[np.bool_]) -> None:
        """The text's flips, which phase 2 of the next texts looks at."""
        count = self.successes_of(subject.label)
        count += success

    def scores(self, subject: Subject) -> Array:
        """[positions, V]."""
        masked = self.variant != "no-mask"
        there = np.array([self.mask if masked else subject.tokens[position] for position in subject.positions])
        logs, gradients = self.classifier.first_order(subject, there)
        self.queries += len(there) if masked else 1
        at = self.classifier.rows(there)
        return np.asarray((logs - (gradients * at).sum(axis=1))[:, None] + gradients @ self.coordinates.T)

    def verify(self, subject: Subject, place: Array, word: Array, success: NDArray[np.bool_], deadline: float) -> None:
        """Try these in order, those of words that have succeeded left out, until m failures in a row."""
        own = np.array([subject.tokens[position] for position in subject.positions])
        failures, start = 0, 0
        while start < len(word):
            if time.monotonic() > deadline:
                return
            stop = start + min(AT_ONCE, max(FEWEST, self.m - failures))
            w, p = word[start:stop], place[start:stop]
            start, new = stop, ~success[w]
            w, p = w[new], p[new]
            if not len(w):
                continue
            answers = self.classifier.answers_with(subject, p, self.words[w])
            flipped = (answers != subject.label) & (answers != NO_CLASS) & (self.words[w] != own[p])
            for one, flips in zip(w.tolist(), flipped.tolist(), strict=True):
                if success[one]:
                    continue
                self.queries += 1
                if flips:
                    success[one], failures = True, 0
                    continue
                failures += 1
                if failures >= self.m:
                    return
