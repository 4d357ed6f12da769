"""What a search over several texts has found and spent so far, of each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attack_goals import Judged

Array = NDArray[Any]


@dataclass(eq=False)
class Found:
    """Requests, evaluations and answers of NaN are counted as text by text."""

    texts: int
    done: NDArray[np.bool_] = field(init=False)
    odd: NDArray[np.bool_] = field(init=False)
    """Those that the network answers otherwise before any swap: they are attacked alone."""
    requests: Array = field(init=False)
    evaluations: Array = field(init=False)
    silent: Array = field(init=False)
    rows: dict[int, tuple[int, ...]] = field(init=False, default_factory=dict)
    """Of each text for which a sentence reached the goal, the numbers of its swaps."""

    def __post_init__(self) -> None:
        self.done, self.odd = np.zeros(self.texts, dtype=bool), np.zeros(self.texts, dtype=bool)
        self.requests, self.evaluations, self.silent = (np.zeros(self.texts, dtype=np.int64) for _ in range(3))

    def count(self, texts: Array, judged: Judged | None = None, *, new: Array | bool = True) -> None:
        """A sentence of each of these texts was asked about; `new`: which were not known."""
        fresh = np.broadcast_to(new, texts.shape)
        self.requests += self.times(texts)
        self.evaluations += self.times(texts[fresh])
        if judged is not None:
            self.silent += self.times(texts[judged.silent & fresh])

    def times(self, texts: Array) -> Array:
        """[texts]: how often each of them occurs."""
        return np.bincount(texts, minlength=self.texts)


def best_of(groups: Array, scores: Array, most: int = 1) -> Array:
    """Places of the `most` greatest scores of each group, the first of equal ones first; groups ascend."""
    order = np.lexsort((-scores, groups))
    ordered = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.asarray(order[rank < most])


def ranges(starts: Array, stops: Array) -> tuple[Array, Array]:
    """All integers of these ranges, and which range each is of."""
    sizes = stops - starts
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes - starts, sizes), owners
