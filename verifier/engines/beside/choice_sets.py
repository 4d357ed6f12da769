"""Steps of a search's paths that leave open which of several choices of a position is made.

A path numbers its swaps, p * C + c. A step that is any of a set of choices of p is numbered P C + p 2^C + bits, a bit
for each choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import Forced

Array = NDArray[Any]

WIDEST = 40
"""Choices of a position that have bits: with the position they stay within 64."""


@dataclass(frozen=True)
class Steps:
    """Of paths [n, k] over P positions with C choices, -1 where a path has ended."""

    count: int
    width: int

    @property
    def singles(self) -> int:
        return self.count * self.width

    def number(self, place: int, choices: Iterable[int]) -> int:
        choices = list(choices)
        if len(choices) == 1:
            return place * self.width + choices[0]
        if self.width > WIDEST:
            raise ValueError(f"position {place} has {self.width} choices, and sets of at most {WIDEST} are numbered")
        return self.singles + (place << self.width) + sum(1 << choice for choice in choices)

    def places(self, steps: Array) -> Array:
        """Of any shape; of sets and swaps alike."""
        return np.where(steps >= self.singles, (steps - self.singles) >> self.width, steps // self.width)

    def choices(self, steps: Array) -> Array:
        """[..., C]: those that these steps, which are sets, leave open; all False for others."""
        bits = np.where(steps >= self.singles, steps - self.singles, 0)
        return (bits[..., None] >> np.arange(self.width)) & 1 > 0

    def ways(self, paths: Array) -> Array:
        """[n]: how many paths without sets each stands for."""
        if not (paths >= self.singles).any():
            return np.ones(len(paths), dtype=np.int64)
        return np.asarray(np.maximum(self.choices(paths).sum(axis=2), 1).prod(axis=1))

    def forced(self, paths: Array) -> Forced | None:
        """The sets of these paths; None where there are none."""
        sets = paths >= self.singles
        if not sets.any():
            return None
        first = np.argsort(~sets, axis=1, kind="stable")[:, : int(sets.sum(axis=1).max())]
        steps = np.take_along_axis(paths, first, axis=1)
        return Forced(np.where(steps >= self.singles, self.places(steps), -1), self.choices(steps))

    def spread(self, paths: Array) -> tuple[Array, Array]:
        """The paths without sets that these stand for, and which of these [n] each came from."""
        rows = np.arange(len(paths))
        for step in range(paths.shape[1]):
            sets = paths[:, step] >= self.singles
            if not sets.any():
                continue
            open_choices = self.choices(paths[:, step])
            open_choices[~sets, 0] = True
            at, choice = np.nonzero(open_choices)
            paths, rows, sets = paths[at], rows[at], sets[at]
            paths[sets, step] = self.places(paths[sets, step]) * self.width + choice[sets]
        return paths, rows
