"""Gradients of an ONNX model at its embedding by central finite differences through onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported

from ...ladder.replay import Replay
from ..subject import Subject
from .embedded_onnx import EmbeddedModel
from .euba_classifier import AT_ONCE, Tokens, log_probability, replaced

Array = NDArray[Any]

STEP = 2.0**-8
"""Of the spread of the embedding: longer, and kinks of rectifiers and maxima come in; shorter, and rounding does."""
TOLERANCE = 1e-3
"""Of the logits' size: onnxruntime may sum in another order, and nothing more."""
COMPARED = 8
"""Gradients whose accuracy is looked at."""


@dataclass(frozen=True, eq=False)
class ByDifferences:
    """Differentiable: d log p / d e_j ~ (log p(e + h_j) - log p(e - h_j)) / 2 h."""

    replay: Replay
    embedded: EmbeddedModel
    step: float

    @classmethod
    def of(cls, replay: Replay, step: float = STEP) -> ByDifferences:
        embedded = EmbeddedModel.of(replay.model)
        spread = max(float((table.astype(np.float64) - table.mean(axis=0)).std()) for table in embedded.tables)
        return cls(replay, embedded, step * (spread or 1.0))

    @property
    def dimensions(self) -> int:
        return sum(table.shape[1] for table in self.embedded.tables)

    @property
    def sentences_per_gradient(self) -> int:
        return 2 * self.dimensions + 1

    def rows(self, tokens: Tokens) -> Array:
        return self.embedded.rows(tokens)

    def answers(self, sentences: Tokens) -> Array:
        return self.replay.answers(sentences)

    def gradients(self, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        logs, gradients = np.zeros(len(sentences)), np.zeros((len(sentences), self.dimensions))
        centers = sentences[np.arange(len(sentences)), positions]
        for center in np.unique(centers).tolist():
            here = np.flatnonzero(centers == center)
            logs[here], gradients[here] = self.around(center, sentences[here], positions[here], label)
        return logs, gradients

    def around(self, center: int, sentences: Tokens, positions: Array, label: int) -> tuple[Array, Array]:
        """Of sentences with this token at the positions."""
        kind = self.embedded.tables[0].dtype
        middle = self.rows(np.array([center]))
        steps = self.step * np.eye(self.dimensions)
        rows = np.concatenate([middle, middle + steps, middle - steps]).astype(kind).astype(np.float64)
        width = (rows[1 : self.dimensions + 1] - rows[self.dimensions + 1 :]).diagonal()
        moved = np.repeat(sentences, len(rows), axis=0)
        own = self.embedded.size + np.tile(np.arange(len(rows)), len(sentences))
        moved[np.arange(len(moved)), np.repeat(positions, len(rows))] = own
        parts = [moved[first : first + AT_ONCE] for first in range(0, len(moved), AT_ONCE)]
        found = np.concatenate([log_probability(self.embedded.logits(part, rows), label) for part in parts])
        found = found.reshape(len(sentences), len(rows))
        up, down = found[:, 1 : self.dimensions + 1], found[:, self.dimensions + 1 :]
        return found[:, 0], (up - down) / width

    def refuse_other_readers(self, subject: Subject) -> None:
        """With copies of its own rows in place of its words a text must be answered as before."""
        sentence = np.array([subject.tokens], dtype=np.int64)
        positions = list(subject.positions)
        copied = sentence.copy()
        copied[0, positions] = self.embedded.size + np.arange(len(positions))
        rows = self.rows(sentence[0, positions])
        plain, other = self.embedded.logits(sentence, rows), self.embedded.logits(copied, rows)
        if not (np.abs(plain - other) <= TOLERANCE * (1.0 + np.abs(plain).max())).all():
            raise Unsupported(
                f"{self.replay.model.path}: reads tokens in other ways than by its embedding, so that no gradient "
                "says what another word does"
            )

    def accuracy(self, subject: Subject, token: int) -> str:
        """How these gradients are made, and what a step twice as long makes of some of them."""
        positions = np.array(subject.positions[:COMPARED])
        sentences = replaced(subject, np.arange(len(positions)), np.full(len(positions), token))
        twice = replace(self, step=2 * self.step)
        one, two = (model.gradients(sentences, positions, subject.label)[1] for model in (self, twice))
        sizes = np.maximum(np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1))
        apart = np.linalg.norm(one - two, axis=1) / np.where(sizes > 0, sizes, 1.0)
        changed = float(np.median(apart)) if len(apart) else 0.0
        return (
            f"by central differences of {self.step:.2g} in onnxruntime; a step twice as long changes them by "
            f"{changed:.2%} (median of {len(apart)})"
        )
