"""EUBA (Xu et al.): flips found by first-order scores, so a lower bound of kappa and an upper bound of rho.

Score of the word w at position i, with g_i the gradient of log p(y | .) at the embedding of position i:

    u(i, w) = log p(y | x with a mask at i) + <g_i, e_w - e_mask>

Phase 1 tries all (i, w) in ascending score, words that have succeeded left out; phase 2 tries the other words, those
that flipped most texts of this class first, each where its score is least. Each phase stops after m failures in a row.
`top1` tries each word in phase 1 where its score is least only; `no-mask` takes gradient and log p at the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Network
from swapproof.encodings.one_word import OneWord

from .flips import Subject

Array = NDArray[Any]
Variant = Literal["paper", "top1", "no-mask"]
VARIANTS: tuple[Variant, ...] = ("paper", "top1", "no-mask")
STEP = 2.0**-20
"""Gradients are central differences of this step in float64; a rectifier's kink inside it is met by chance only."""
CHUNK = 1 << 10
"""Sentences evaluated together; those after the one where a phase stops are not counted."""


@dataclass(eq=False)
class Euba:
    """Run text after text, in order: phase 2 looks at the successes so far. `queries` counts what the method asks."""

    network: Network
    words: NDArray[np.int64]
    mask: int
    m: int = 512
    variant: Variant = "paper"
    queries: int = 0
    successes: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Class -> [V]: texts of it that each word flipped."""

    @cached_property
    def one_word(self) -> OneWord:
        return OneWord(self.network)

    @cached_property
    def coordinates(self) -> Array:
        return self.one_word.rows(self.words)

    @cached_property
    def slopes(self) -> dict[int, Array]:
        return {}

    def slope(self, position: int) -> Array:
        if position not in self.slopes:
            self.slopes[position] = self.one_word.slope(position)
        return self.slopes[position]

    def logits(self, cuts: Array) -> Array:
        """[n, classes] of values at the cut [n, width]."""
        given, start = {}, 0
        for index in self.network.cut:
            node = self.network.nodes[index]
            given[index] = cuts[:, start : start + node.size].reshape(len(cuts), *node.shape)
            start += node.size
        last = len(self.network.nodes) - 1
        return np.asarray(values(self.network, given=given)[last].reshape(len(cuts), -1))

    def run(self, subjects: Sequence[Subject], advance: Callable[[int], None] = lambda n: None) -> NDArray[np.bool_]:
        """[texts, V]: the flips found."""
        found = []
        for subject in subjects:
            found.append(self.flips(subject))
            advance(1)
        return np.array(found).reshape(len(subjects), len(self.words))

    def flips(self, subject: Subject) -> NDArray[np.bool_]:
        count = self.successes.setdefault(subject.label, np.zeros(len(self.words), dtype=np.int64))
        success = np.zeros(len(self.words), dtype=bool)
        if not subject.positions:
            return success
        cut = self.one_word.cuts(np.array([subject.tokens], dtype=np.int64))[0]
        scores = self.scores(subject, cut)
        best = scores.argmin(axis=0)
        if self.variant == "top1":
            word = np.argsort(scores.min(axis=0), kind="stable")
            place = best[word]
        else:
            order = np.argsort(scores, axis=None, kind="stable")
            place, word = np.divmod(order, len(self.words))
        self.verify(subject, cut, place, word, success)
        rest = np.argsort(-count, kind="stable")
        rest = rest[~success[rest]]
        self.verify(subject, cut, best[rest], rest, success)
        count += success
        return success

    def scores(self, subject: Subject, cut: Array) -> Array:
        """[positions, V]."""
        own = self.one_word.rows(np.array([subject.tokens[position] for position in subject.positions]))
        masked = self.variant != "no-mask"
        mask = self.one_word.rows(np.array([self.mask]))[0]
        rows = []
        for position, row in zip(subject.positions, own, strict=True):
            slope = self.slope(position)
            center = mask if masked else row
            at = cut + (center - row) @ slope
            moved = np.concatenate([at[None], at + STEP * slope, at - STEP * slope])
            logs = log_probability(self.logits(moved), subject.label)
            dimensions = len(slope)
            gradient = (logs[1 : dimensions + 1] - logs[dimensions + 1 :]) / (2 * STEP)
            rows.append(logs[0] + (self.coordinates - center) @ gradient)
            self.queries += masked
        self.queries += not masked
        return np.array(rows)

    def verify(self, subject: Subject, cut: Array, place: Array, word: Array, success: NDArray[np.bool_]) -> None:
        """Try these in order, those of words that have succeeded left out, until m failures in a row."""
        failures = 0
        own = self.one_word.rows(np.array([subject.tokens[position] for position in subject.positions]))
        slopes = [self.slope(position) for position in subject.positions]
        for start in range(0, len(word), CHUNK):
            w, p = word[start : start + CHUNK], place[start : start + CHUNK]
            new = ~success[w]
            w, p = w[new], p[new]
            cuts = np.repeat(cut[None], len(w), axis=0)
            for number in np.unique(p):
                rows = np.flatnonzero(p == number)
                cuts[rows] += (self.coordinates[w[rows]] - own[number]) @ slopes[number]
            same = self.words[w] == np.array([subject.tokens[position] for position in subject.positions])[p]
            flipped = (self.logits(cuts).argmax(axis=1) != subject.label) & ~same if len(w) else np.zeros(0, bool)
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


def log_probability(logits: Array, label: int) -> Array:
    """log softmax at the label."""
    top = logits.max(axis=1)
    return np.asarray(logits[:, label] - top - np.log(np.exp(logits - top[:, None]).sum(axis=1)))
