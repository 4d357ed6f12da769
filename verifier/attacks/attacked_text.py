"""One text under attack: which sentences are allowed, how near each is to the goal, and what was asked so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.deployed.classifier import Rows

from .attack_goals import Goal, Judged
from .sentence_answers import Answers, Without

Array = NDArray[Any]
Check = Callable[[Rows], NDArray[np.bool_]]
"""Which of these sentences are allowed, whatever the number of their swaps."""
Worth = Callable[[Rows], NDArray[np.float64]]


class Spent(Exception):
    """The text's requests are used up: the search ends here."""


@dataclass(eq=False)
class Attacked:
    """Searches see nothing else. `options[w]` is the number of options of word w, its own the first.

    requests     sentences that the search asked about
    evaluations  those of them that the model was asked about: no sentence twice
    gradients    backward passes
    """

    answers: Answers
    goal: Goal
    label: int
    options: tuple[int, ...]
    most_swaps: int
    random: np.random.Generator
    most_requests: int | None = None
    checks: Sequence[Check] = ()
    requests: int = 0
    evaluations: int = 0
    gradients: int = 0
    silent: int = 0
    """Sentences that the model answered NaN."""
    found: dict[int, tuple[float, Array]] = field(default_factory=dict)
    """Number of swaps -> of the sentences that reached the goal the one with the best score, and that score."""
    outputs: int | None = None
    """Scores that the model answers to a sentence."""
    known: dict[bytes, Array] = field(default_factory=dict, repr=False)
    worth: Worth | None = None
    """By which of several sentences with as many swaps the best is kept; None: by its score."""

    @property
    def words(self) -> int:
        return len(self.options)

    @property
    def original(self) -> Array:
        return np.zeros(self.words, dtype=np.int32)

    @property
    def movable(self) -> list[int]:
        return [word for word, number in enumerate(self.options) if number > 1]

    @property
    def fewest(self) -> int | None:
        """Swaps of the best sentence so far."""
        return min(self.found, default=None)

    @property
    def broken(self) -> bool:
        return bool(self.found)

    @property
    def best(self) -> Array:
        """The sentence with the fewest swaps that reached the goal."""
        return self.found[min(self.found)][1]

    def allowed(self, rows: Rows) -> Rows:
        """Those of these sentences that break no limit; asking about this costs no request."""
        rows = np.asarray(rows, dtype=np.int32).reshape(-1, self.words)
        return rows[self.permits(rows)]

    def permits(self, rows: Rows) -> NDArray[np.bool_]:
        kept = np.count_nonzero(rows, axis=1) <= self.most_swaps
        for check in self.checks:
            if kept.any():
                kept[kept] = check(rows[kept])
        return np.asarray(kept)

    def ask(self, rows: Rows) -> Judged:
        """Raises Spent when there are requests for some of them only, and these were asked."""
        rows = np.asarray(rows, dtype=np.int32).reshape(-1, self.words)
        left = len(rows) if self.most_requests is None else max(0, self.most_requests - self.requests)
        part = rows[:left]
        self.requests += len(part)
        judged = self.judged(part)
        self.take(part, judged)
        if len(part) < len(rows):
            raise Spent
        return judged

    def judged(self, rows: Rows) -> Judged:
        keys = [row.tobytes() for row in rows]
        new = {key: place for place, key in enumerate(keys) if key not in self.known}
        if new:
            places = sorted(new.values())
            answered = np.asarray(self.answers.answered(rows[places]), dtype=np.float64)
            if answered.ndim == 1:
                answered = answered[:, None]
            self.evaluations += len(places)
            if self.outputs is not None and answered.shape[1] != self.outputs:
                raise BadInput(
                    f"{self.outputs} scores for one sentence of the text and {answered.shape[1]} for another"
                )
            self.outputs = answered.shape[1]
            self.known |= {keys[place]: row for place, row in zip(places, answered, strict=True)}
        if not keys:
            return Judged(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
        judged = self.goal.judge(np.stack([self.known[key] for key in keys]), self.answers.decision, self.label)
        self.silent += int(judged.silent[sorted(new.values())].sum())
        return judged

    def take(self, rows: Rows, judged: Judged) -> None:
        """Sentences beyond a limit are nothing found, whoever asked about them."""
        won = np.flatnonzero(judged.won)
        won = won[self.permits(rows[won])]
        worth = judged.scores[won] if self.worth is None or not len(won) else self.worth(rows[won])
        for place, score in zip(won.tolist(), worth.tolist(), strict=True):
            swaps = int(np.count_nonzero(rows[place]))
            if swaps not in self.found or score > self.found[swaps][0]:
                self.found[swaps] = score, rows[place].copy()

    def without(self, words: Sequence[int], way: Without) -> Judged:
        """The text without each of these words, one request each; Spent when there are none left."""
        if self.most_requests is not None and self.requests + len(words) > self.most_requests:
            raise Spent
        self.requests += len(words)
        self.evaluations += len(words)
        answered = self.answers.without(np.array(words, dtype=np.int64), way)
        return self.goal.judge(answered, self.answers.decision, self.label)

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        """[n]: to first order, by how much each of these swaps raises the score; one gradient."""
        self.gradients += 1
        found = np.asarray(self.answers.slopes(row, words, options))
        here = self.answers.decision.values(self.answers.answered(np.asarray(row, dtype=np.int32)[None]))[0]
        if not np.isfinite(here).all():
            raise Unsupported("no gradient where a score is not finite")
        wanted = self.label if self.goal.target is None else self.goal.target
        others = np.delete(np.arange(len(here)), wanted)
        weights = np.exp(here[others] - here[others].max())
        rise = found[:, wanted] - found[:, others] @ (weights / weights.sum())
        return np.asarray(rise if self.goal.target is not None else -rise)

    @cached_property
    def alternatives(self) -> Array:
        """[single swaps, 2]: word and option of each, by word."""
        pairs = [(word, option) for word in self.movable for option in range(1, self.options[word])]
        return np.array(pairs, dtype=np.int32).reshape(-1, 2)

    def swaps_of(self, row: Array, words: Sequence[int]) -> Rows:
        """The sentences that have another option, not the word of the text, at one of these words, and are allowed."""
        here = np.zeros(self.words, dtype=bool)
        here[list(words)] = True
        word, option = self.alternatives[here[self.alternatives[:, 0]]].T
        other = option != row[word]
        made = np.repeat(np.asarray(row, dtype=np.int32)[None], int(other.sum()), axis=0)
        made[np.arange(len(made)), word[other]] = option[other]
        return self.allowed(made)

    def extensions(self, row: Array) -> Rows:
        """The sentences with one swap more, that are allowed: a word that was swapped is left alone."""
        return self.swaps_of(row, [word for word in self.movable if not row[word]])

    def removals(self, row: Array) -> Rows:
        """The sentences with one swap less, that are allowed."""
        swapped = np.flatnonzero(row)
        made = np.repeat(np.asarray(row, dtype=np.int32)[None], len(swapped), axis=0)
        made[np.arange(len(swapped)), swapped] = 0
        return self.allowed(made)


def distinct(rows: Rows) -> Rows:
    """Each of these sentences once, in the order in which they come."""
    seen = {row.tobytes(): place for place, row in reversed(list(enumerate(rows)))}
    return rows[sorted(seen.values())]
