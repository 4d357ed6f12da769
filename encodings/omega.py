"""Omega_r, the sentences with at most r swaps: how many there are, numbered from 0, and the sentence of each number.

Sentences are ordered by their number of swaps; among those with s swaps, positions are looked at in the order of the
text: first come the sentences that keep the original there, then those with its first alternative, then its second,
and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .sentence_counts import suffix_counts
from .space import SwapSpace

Array = NDArray[Any]
FITS = 2**62
"""Numbers of sentences below this are computed in int64, others as Python integers."""


@dataclass(frozen=True)
class Omega:
    """The sentences of a space with at most `radius` swaps, the original included."""

    space: SwapSpace
    radius: int

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise BadInput(f"a radius of {self.radius} swaps: at least 0")

    @property
    def most(self) -> int:
        """Swaps a sentence can have."""
        return min(self.radius, len(self.space.swappable))

    @cached_property
    def table(self) -> list[list[int]]:
        return suffix_counts([len(self.space.choices[p]) - 1 for p in self.space.swappable], self.most)

    @property
    def by_swaps(self) -> list[int]:
        """Number of sentences with exactly s swaps, s = 0 .. most."""
        return self.table[0]

    @property
    def total(self) -> int:
        return sum(self.table[0])

    @property
    def dtype(self) -> type[Any]:
        """Of sentence numbers: int64 when they fit, else object (Python integers)."""
        return np.int64 if self.total < FITS else object

    def choices(self, numbers: Array) -> NDArray[np.int64]:
        """[n, swappable positions]: which choice each numbered sentence makes there, 0 being the original."""
        rest = np.array(numbers, dtype=self.dtype)
        if len(rest) and not (rest.min() >= 0 and rest.max() < self.total):
            raise BadInput(f"sentence numbers go from 0 to {self.total - 1}")
        starts = np.array([0, *accumulate(self.by_swaps)], dtype=self.dtype)
        left = np.searchsorted(starts, rest, side="right").astype(np.int64) - 1
        rest = rest - starts[left]
        made = np.zeros((len(rest), len(self.space.swappable)), dtype=np.int64)
        for place in range(made.shape[1]):
            after = np.array([*self.table[place + 1], 0], dtype=self.dtype)
            staying, swapping = after[left], after[left - 1]  # left = 0 reads the 0 at the end, and stays
            moved = rest >= staying
            over = rest - staying
            each = np.where(moved, swapping, 1)
            made[:, place] = np.where(moved, over // each + 1, 0)
            rest = np.where(moved, over % each, rest)
            left = left - moved.astype(np.int64)
        return made

    def sentences(self, numbers: Array) -> NDArray[np.int64]:
        """[n, length]: the token ids of the numbered sentences."""
        made = self.choices(numbers)
        tokens = np.repeat(np.array(self.space.original, dtype=np.int64)[None], len(made), axis=0)
        for place, position in enumerate(self.space.swappable):
            tokens[:, position] = np.array(self.space.choices[position])[made[:, place]]
        return tokens

    def number(self, tokens: Sequence[int]) -> int:
        """The number of a sentence of at most `radius` swaps."""
        swaps = dict(self.space.swaps_of(tokens))
        if len(swaps) > self.most:
            raise BadInput(f"a sentence of {len(swaps)} swaps is not among those of at most {self.radius}")
        left, number = len(swaps), sum(self.by_swaps[: len(swaps)])
        for place, position in enumerate(self.space.swappable):
            if position in swaps:
                after = self.table[place + 1]
                choice = self.space.choices[position].index(swaps[position])
                number += after[left] + (choice - 1) * after[left - 1]
                left -= 1
        return number
