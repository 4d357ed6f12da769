"""What EUBA asks of a model: the embeddings of words, log p with its gradient there, and the answers to sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..subject import Subject

Array = NDArray[Any]
Tokens = NDArray[np.int64]

AT_ONCE = 1024
"""Sentences handed to a model together."""


class Classifier(Protocol):
    """A model, asked about single replacements of words in a text."""

    def rows(self, tokens: Tokens) -> Array:
        """[n, dimensions]: their embeddings."""

    def first_order(self, subject: Subject, there: Tokens) -> tuple[Array, Array]:
        """log p(label) [positions] and its gradient [positions, dimensions] at the embedding of each position in turn.

        `there` [positions]: the token that stands at the position instead of the text's own.
        """

    def answers_with(self, subject: Subject, places: Array, words: Tokens) -> Array:
        """[n]: the classes of the text with words[k] at positions[places[k]]."""


class Differentiable(Protocol):
    """A model, asked about whole sentences [n, length]."""

    def rows(self, tokens: Tokens) -> Array: ...

    def gradients(self, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        """log p(label) [n] and its gradient [n, dimensions] at the embedding of positions[k] of sentences[k]."""

    def answers(self, sentences: Tokens) -> Array:
        """[n]: argmax, the lowest index winning ties."""


@dataclass(frozen=True, eq=False)
class WholeSentences:
    """Single replacements as the sentences that they are: any differentiable model is a classifier for EUBA."""

    model: Differentiable

    def rows(self, tokens: Tokens) -> Array:
        return self.model.rows(tokens)

    def first_order(self, subject: Subject, there: Tokens) -> tuple[Array, Array]:
        positions = np.array(subject.positions)
        sentences = replaced(subject, np.arange(len(positions)), there)
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(positions), AT_ONCE)]
        found = [self.model.gradients(sentences[part], positions[part], subject.label) for part in parts]
        logs, gradients = (np.concatenate(column) for column in zip(*found, strict=True))
        return logs, gradients

    def answers_with(self, subject: Subject, places: Array, words: Tokens) -> Array:
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(words), AT_ONCE)]
        found = [self.model.answers(replaced(subject, places[part], words[part])) for part in parts]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def replaced(subject: Subject, places: Array, words: Sequence[int] | Tokens) -> Tokens:
    """[n, length]: the text with words[k] at positions[places[k]]."""
    sentences = np.repeat(np.array(subject.tokens, dtype=np.int64)[None], len(places), axis=0)
    sentences[np.arange(len(places)), np.array(subject.positions, dtype=np.int64)[places]] = words
    return sentences


def log_probability(logits: Array, label: int) -> Array:
    """log softmax at the label."""
    top = logits.max(axis=1)
    return np.asarray(logits[:, label] - top - np.log(np.exp(logits - top[:, None]).sum(axis=1)))
