"""A network that was read, as EUBA asks of it: one word moves the cut linearly, so cuts are moved, not computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.one_word import OneWord
from swapproof.encodings.evaluation import values
from swapproof.encodings.network import Network

from ..subject import Subject
from .euba_classifier import Tokens, log_probability

Array = NDArray[Any]
STEP = 2.0**-20
"""Gradients are central differences of this step in float64; a rectifier's kink inside it is met by chance only."""


@dataclass(frozen=True, eq=False)
class OneLength:
    """The network for sentences of one length; `slopes` are those known so far, by position."""

    one_word: OneWord
    slopes: dict[int, Array] = field(default_factory=dict)

    def slope(self, position: int) -> Array:
        if position not in self.slopes:
            self.slopes[position] = self.one_word.slope(position)
        return self.slopes[position]

    def cut(self, subject: Subject) -> Array:
        return np.asarray(self.one_word.cuts(np.array([subject.tokens], dtype=np.int64))[0])

    def logits(self, cuts: Array) -> Array:
        """[n, classes] of values at the cut [n, width]."""
        network = self.one_word.network
        return np.asarray(values(network, given=network.split_cut(cuts))[len(network.nodes) - 1].reshape(len(cuts), -1))


class KnownNetwork:
    """`network` gives that of each length; answers are those of float64."""

    def __init__(self, network: Callable[[int], Network], length: int) -> None:
        """`length` is one that the model takes."""
        self.network = network
        self.lengths = {length: OneLength(OneWord(network(length)))}
        self.embedding = self.lengths[length].one_word

    def of(self, subject: Subject) -> OneLength:
        length = len(subject.tokens)
        if length not in self.lengths:
            self.lengths[length] = OneLength(OneWord(self.network(length)))
        return self.lengths[length]

    def rows(self, tokens: Tokens) -> Array:
        return self.embedding.rows(tokens)

    def first_order(self, subject: Subject, there: Tokens) -> tuple[Array, Array]:
        one = self.of(subject)
        cut, own, centers = one.cut(subject), self.own(subject), self.rows(there)
        logs, gradients = [], []
        for position, row, center in zip(subject.positions, own, centers, strict=True):
            slope = one.slope(position)
            at = cut + (center - row) @ slope
            moved = np.concatenate([at[None], at + STEP * slope, at - STEP * slope])
            found = log_probability(one.logits(moved), subject.label)
            dimensions = len(slope)
            logs.append(found[0])
            gradients.append((found[1 : dimensions + 1] - found[dimensions + 1 :]) / (2 * STEP))
        return np.array(logs), np.array(gradients)

    def answers_with(self, subject: Subject, places: Array, words: Tokens) -> Array:
        one = self.of(subject)
        cuts = np.repeat(one.cut(subject)[None], len(words), axis=0)
        moved = self.rows(words) - self.own(subject)[places]
        for place in np.unique(places).tolist():
            here = np.flatnonzero(places == place)
            cuts[here] += moved[here] @ one.slope(subject.positions[place])
        return np.asarray(one.logits(cuts).argmax(axis=1))

    def own(self, subject: Subject) -> Array:
        """[positions, dimensions]: of the words that stand there."""
        return self.rows(np.array([subject.tokens[position] for position in subject.positions], dtype=np.int64))
