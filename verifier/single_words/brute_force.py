"""A[text, word] of any model at all: every replacement evaluated, after an estimate of the cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ladder.replay import NO_CLASS
from .subject import Subject

Answers = Callable[[NDArray[np.int64]], NDArray[Any]]
"""From sentences [n, length] to classes [n], NO_CLASS where the logits hold NaN."""

BATCHES = (64, 256, 1024, 4096)
SLOW = 0.25
"""CPU seconds of a batch that make no larger one worth its memory."""
TRIED = 16_384
"""Sentences evaluated for an estimate,"""
TRIED_SECONDS = 4.0
"""or as many as this many CPU seconds allow, shared by the lengths of texts."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds measured on `tried` sentences, extrapolated to all: a busy machine changes them little."""

    tried: int
    tried_seconds: float
    sentences: int
    seconds: float
    batch: int

    @property
    def each(self) -> float:
        """CPU seconds of one sentence."""
        return self.seconds / max(1, self.sentences)

    @property
    def sentence(self) -> str:
        return (
            f"{self.sentences:,} sentences through the model in batches of {self.batch:,}: "
            f"about {cpu_seconds(self.seconds)} ({self.tried:,} of them, drawn at random, took "
            f"{self.tried_seconds:.2f} s)"
        )


def cpu_seconds(seconds: float) -> str:
    return f"{seconds:,.0f} CPU s" if seconds >= 10 else f"{seconds:.1f} CPU s"


def cost_of(answers: Answers, words: NDArray[np.int64], subjects: Sequence[Subject], tried: int = TRIED) -> Cost:
    """Random single replacements, evaluated in batches of one length each."""
    generator = np.random.default_rng(0)
    by_length: dict[int, list[Subject]] = {}
    for subject in subjects:
        if subject.positions:
            by_length.setdefault(len(subject.tokens), []).append(subject)
    total = sum(map(len, by_length.values()))
    cost = Cost(0, 0.0, 0, 0.0, BATCHES[-1])
    for same in by_length.values():
        sentences = sum(len(subject.positions) for subject in same) * len(words)
        share = -(-min(tried, sentences) * len(same) // total)
        drawn = np.array([drawn_from(same, words, generator) for _ in range(share)], dtype=np.int64)
        count, seconds, batch = timed(answers, drawn, TRIED_SECONDS / len(by_length))
        cost = Cost(
            cost.tried + count,
            cost.tried_seconds + seconds,
            cost.sentences + sentences,
            cost.seconds + seconds / count * sentences,
            min(cost.batch, batch),
        )
    return cost


def drawn_from(subjects: Sequence[Subject], words: NDArray[np.int64], generator: np.random.Generator) -> list[int]:
    subject = subjects[int(generator.integers(len(subjects)))]
    tokens = list(subject.tokens)
    tokens[subject.positions[int(generator.integers(len(subject.positions)))]] = int(generator.choice(words))
    return tokens


def timed(answers: Answers, drawn: NDArray[np.int64], limit: float) -> tuple[int, float, int]:
    """How many of these sentences were evaluated in how many CPU seconds, and in batches of which size."""
    for batch in BATCHES:  # the first batch of a shape costs more, so that each is tried before it is timed
        started = time.process_time()
        answers(drawn[:batch])
        if time.process_time() - started > SLOW:
            break
    count, started, spent = 0, time.process_time(), 0.0
    while count < len(drawn) and spent <= limit:
        part = drawn[count : count + batch]
        answers(part)
        count, spent = count + len(part), time.process_time() - started
    return count, spent, batch


def flips_by_force(
    answers: Answers,
    words: NDArray[np.int64],
    subject: Subject,
    deadline: float = float("inf"),
    batch: int = BATCHES[-1],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """[V] each, of one text: which words flip it, and of which that is not known when time is up, or for a NaN."""
    flipped, strange = np.zeros(len(words), dtype=bool), np.zeros(len(words), dtype=bool)
    for position in subject.positions:
        rest = np.flatnonzero(~flipped)
        for first in range(0, len(rest), batch):
            if time.monotonic() > deadline:
                return flipped, ~flipped
            part = rest[first : first + batch]
            tokens = np.repeat(np.array(subject.tokens, dtype=np.int64)[None], len(part), axis=0)
            tokens[:, position] = words[part]
            changed = words[part] != subject.tokens[position]
            found = answers(tokens)
            strange[part] |= changed & (found == NO_CLASS)
            flipped[part] |= changed & (found != subject.label) & (found != NO_CLASS)
    return flipped, strange & ~flipped
