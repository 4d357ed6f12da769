"""A network over the options of a few words, small enough to enumerate, as attacks ask about it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from swapproof.models.deployed.decision import Decision
from swapproof.verifier.attacks.attack_goals import Goal
from swapproof.verifier.attacks.attacked_text import Attacked
from swapproof.verifier.attacks.sentence_answers import Without

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class TinyNetwork:
    """logits = W relu(sum of the rows of the chosen options); `empty` is the row of a word taken away."""

    rows: Array
    """[words, options, hidden]."""
    out: Array
    """[hidden, classes]."""
    empty: Array
    decision: Decision

    @classmethod
    def drawn(cls, seed: int, options: tuple[int, ...], classes: int) -> TinyNetwork:
        random = np.random.default_rng(seed)
        rows = random.normal(size=(len(options), max(options), 5))
        return cls(rows, random.normal(size=(5, classes)), rows.mean(axis=(0, 1)), Decision(classes))

    def answered(self, rows: Array) -> Array:
        return self.logits(self.rows[np.arange(rows.shape[1]), rows].sum(axis=1))

    def logits(self, hidden: Array) -> Array:
        return np.asarray(np.maximum(hidden, 0) @ self.out)

    def without(self, words: Array, way: Without) -> Array:
        whole = self.rows[:, 0].sum(axis=0)
        place = self.empty if way == "unknown" else 0
        return self.logits(whole - self.rows[words, 0] + place)

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        hidden = self.rows[np.arange(len(row)), row].sum(axis=0)
        moves = self.rows[words, options] - self.rows[words, row[words]]
        return np.asarray((moves * (hidden > 0)) @ self.out)

    @property
    def label(self) -> int:
        """What it answers to the text itself."""
        return int(self.answered(np.zeros((1, len(self.rows)), dtype=np.int32))[0].argmax())


def sentences(options: tuple[int, ...]) -> Array:
    return np.array(list(itertools.product(*map(range, options))), dtype=np.int32)


def least_swaps(
    network: TinyNetwork, options: tuple[int, ...], target: int | None, most: int | None = None
) -> int | None:
    """By every sentence with at most so many swaps; None when none reaches the goal."""
    rows = sentences(options)
    answers = network.answered(rows).argmax(axis=1)
    won = answers != network.label if target is None else answers == target
    swaps = np.count_nonzero(rows[won], axis=1)
    return min((int(one) for one in swaps if most is None or one <= most), default=None)


def attacked(network: TinyNetwork, options: tuple[int, ...], target: int | None = None, **limits: Any) -> Attacked:
    return Attacked(
        network,
        Goal(target),
        network.label,
        options,
        limits.pop("most_swaps", len(options)),
        np.random.default_rng(limits.pop("seed", 1)),
        **limits,
    )


spaces = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)
