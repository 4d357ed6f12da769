"""A[text, word] of any model that onnxruntime runs: every replacement evaluated, after an estimate of the cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..replay import Replay
from .flips import Subject

BATCH = 4096
TRIED = 16_384
"""Sentences evaluated for an estimate."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds measured on `tried` sentences, extrapolated to all: a busy machine changes them little."""

    tried: int
    tried_seconds: float
    sentences: int

    @property
    def seconds(self) -> float:
        return self.tried_seconds / max(1, self.tried) * self.sentences

    @property
    def sentence(self) -> str:
        return (
            f"{self.sentences:,} sentences through onnxruntime in batches of {BATCH:,}: "
            f"about {self.seconds:,.0f} CPU s ({self.tried:,} of them, drawn at random, took "
            f"{self.tried_seconds:.2f} s)"
        )


def cost_of(replay: Replay, words: NDArray[np.int64], subjects: Sequence[Subject], tried: int = TRIED) -> Cost:
    """Random single replacements, evaluated in batches of one length each."""
    sentences = sum(len(subject.positions) for subject in subjects) * len(words)
    generator = np.random.default_rng(0)
    by_length: dict[int, list[Subject]] = {}
    for subject in subjects:
        if subject.positions:
            by_length.setdefault(len(subject.tokens), []).append(subject)
    count, seconds = 0, 0.0
    for same in by_length.values():
        share = -(-min(tried, sentences) * len(same) // max(1, sum(map(len, by_length.values()))))
        rows = []
        for _ in range(share):
            subject = same[generator.integers(len(same))]
            tokens = list(subject.tokens)
            tokens[subject.positions[generator.integers(len(subject.positions))]] = int(generator.choice(words))
            rows.append(tokens)
        drawn = np.array(rows, dtype=np.int64)
        if len(drawn):
            replay.answers(drawn[:BATCH])  # the first batch of a shape costs more
        started = time.process_time()
        for first in range(0, len(drawn), BATCH):
            replay.answers(drawn[first : first + BATCH])
        seconds, count = seconds + time.process_time() - started, count + len(drawn)
    return Cost(count, seconds, sentences)


def flips_by_force(
    replay: Replay, words: NDArray[np.int64], subject: Subject, deadline: float = float("inf")
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """[V] each, of one text: which words flip it, and of which that is not known when time is up."""
    flipped = np.zeros(len(words), dtype=bool)
    for position in subject.positions:
        rest = np.flatnonzero(~flipped)
        for first in range(0, len(rest), BATCH):
            if time.monotonic() > deadline:
                return flipped, ~flipped
            part = rest[first : first + BATCH]
            tokens = np.repeat(np.array(subject.tokens, dtype=np.int64)[None], len(part), axis=0)
            tokens[:, position] = words[part]
            changed = ~(tokens == np.array(subject.tokens)).all(axis=1)
            flipped[part] |= changed & (replay.answers(tokens) != subject.label)
    return flipped, np.zeros(len(words), dtype=bool)
