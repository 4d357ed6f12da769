"""What stands on top of pooled vectors: layers with ReLU of model2vec, the losses of fastText."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..classifier import NoAnswer, Scores
from ..decision import Answered

Floats = NDArray[np.float64]
NO_DIVISION = float(np.float32(1e-32))
"""What model2vec adds to a norm, in its single precision, lest it divide by 0."""


@dataclass(frozen=True, eq=False)
class Layer:
    """x -> weight x + bias."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class PooledLayers:
    """The mean of the vectors, its L2 norm made 1 if `normal`, then linear layers with ReLU between.

    `half`: the mean and the normal vector are kept in half precision, as model2vec does where its vectors are.
    """

    layers: tuple[Layer, ...]
    activation: str
    normal: bool
    half: bool

    @property
    def answers(self) -> str:
        return "logits" if self.activation == "identity" else "probabilities"

    @property
    def answered(self) -> Answered | None:
        """Of a head that ends in no activation nobody but the task says what its numbers mean."""
        return None if self.activation == "identity" else Answered("probabilities", len(self.layers[-1].bias))

    def scores(self, sums: Floats, counts: NDArray[np.int64]) -> Scores:
        return self.activated(self.logits(self.pooled(sums, counts)))

    def activated(self, found: Floats) -> Scores:
        if self.activation == "sigmoid":
            power = np.exp(-np.abs(found))
            return np.asarray(np.where(found >= 0, 1 / (1 + power), power / (1 + power)))
        if self.activation == "softmax":
            powers = np.exp(found - found.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        return found

    def pooled(self, sums: Floats, counts: NDArray[np.int64]) -> Floats:
        mean = self.kept(sums / np.maximum(counts, 1)[:, None])
        if not self.normal:
            return mean
        return self.kept(mean / (np.sqrt((mean * mean).sum(axis=1, keepdims=True)) + NO_DIVISION))

    def kept(self, values: Floats) -> Floats:
        return values.astype(np.float16).astype(np.float64) if self.half else values

    def logits(self, found: Floats) -> Floats:
        for place, layer in enumerate(self.layers):
            found = (np.maximum(found, 0) if place else found) @ layer.weight.T + layer.bias
        return found


SIGMOID_STEPS, SIGMOID_END = 512, 8


def sigmoid_table() -> Floats:
    """fastText's sigmoid: what it is at 513 places, and between them what it is at the one before."""
    places = np.arange(SIGMOID_STEPS + 1) * (2 * SIGMOID_END / SIGMOID_STEPS) - SIGMOID_END
    return single(1 / (1 + single(np.exp(-places))))


def single(values: Floats) -> Floats:
    """Rounded to single precision."""
    return values.astype(np.float32).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LabelLoss:
    """The probabilities of fastText's labels from the mean of the vectors.

    fastText ranks labels by log(p + 0.00001) in single precision and lets the later of equal ones win. The scores are
    the probabilities, and where that makes another label win than the first of the greatest, its score is raised by
    the last bit.
    """

    loss: str
    outputs: Floats
    counts: tuple[int, ...]
    """How often each label was in the training data: they shape the tree of a hierarchical softmax."""

    answers = "probabilities"

    @property
    def answered(self) -> Answered:
        return Answered("probabilities", len(self.counts))

    def scores(self, sums: Floats, counts: NDArray[np.int64]) -> Scores:
        if (counts == 0).any():
            raise NoAnswer("fastText answers nothing: it knows no word of the text, and no end of line")
        hidden = sums / counts[:, None]
        if not np.isfinite(hidden).all():
            raise NoAnswer("fastText answers nothing: a vector of the text is not a number")
        values = hidden @ self.outputs.T
        if self.loss == "hs":
            return self.down_the_tree(values)
        found = softmax(values) if self.loss == "softmax" else stepped(values)
        keys = np.log(found + 1e-5).astype(np.float32)
        last = keys.shape[1] - 1 - keys[:, ::-1].argmax(axis=1)
        return with_winner(found, last)

    @cached_property
    def tree(self) -> list[tuple[int, int]]:
        """The two below each inner node: the lightest of what is left, leaves from the rarest label up."""
        return built_tree(self.counts)

    def down_the_tree(self, values: Floats) -> Scores:
        """Of every label, from the root down; and which of them fastText's walk, left before right, keeps."""
        labels = len(self.counts)
        found = np.zeros((len(values), labels))
        best = np.full(len(values), -np.inf, dtype=np.float32)
        winner = np.full(len(values), -1)
        least = np.float32(np.log(1e-5))
        nodes = [(2 * labels - 2, np.zeros(len(values), dtype=np.float32), np.ones(len(values), dtype=np.bool_))]
        while nodes:
            node, score, alive = nodes.pop()
            alive = alive & (score >= least) & ~((winner >= 0) & (score < best))
            if node < labels:
                found[:, node] = np.exp(score.astype(np.float64))
                best = np.where(alive, score, best)
                winner = np.where(alive, node, winner)
                continue
            left, right = self.tree[node - labels]
            with np.errstate(over="ignore"):
                share = single(1 / (1 + np.exp(-values[:, node - labels])))
            nodes.append((right, (score + np.log(share + 1e-5).astype(np.float32)).astype(np.float32), alive))
            nodes.append(
                (left, (score + np.log(single(1 - share) + 1e-5).astype(np.float32)).astype(np.float32), alive)
            )
        if (winner < 0).any():
            raise NoAnswer("fastText answers nothing: no label has a probability above 0.00001")
        return with_winner(found, winner)


def softmax(values: Floats) -> Floats:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return single(powers / powers.sum(axis=1, keepdims=True))


def stepped(values: Floats) -> Floats:
    """By fastText's table: 0 below -8, 1 above 8."""
    places = ((np.clip(values, -SIGMOID_END, SIGMOID_END) + SIGMOID_END) * SIGMOID_STEPS / SIGMOID_END / 2).astype(int)
    found = sigmoid_table()[places]
    return np.asarray(np.where(values < -SIGMOID_END, 0.0, np.where(values > SIGMOID_END, 1.0, found)))


def with_winner(scores: Floats, winner: NDArray[np.int64]) -> Floats:
    """The winner's score above all others."""
    rows = np.flatnonzero(scores.argmax(axis=1) != winner)
    scores[rows, winner[rows]] = np.nextafter(scores[rows].max(axis=1), 2.0)
    return scores


def built_tree(counts: Sequence[int]) -> list[tuple[int, int]]:
    labels = len(counts)
    weights = [*counts, *[10**15] * (labels - 1)]
    leaf, node = labels - 1, labels
    below = []
    for parent in range(labels, 2 * labels - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        below.append((pair[0], pair[1]))
        weights[parent] = weights[pair[0]] + weights[pair[1]]
    return below
