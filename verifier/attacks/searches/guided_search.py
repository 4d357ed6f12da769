"""Our own attack for few requests: only swaps that an estimate praises are asked about, then shorter sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import Unsupported

from ..attacked_text import Attacked
from .beam_search import Beam
from .search_protocol import shorten, undo_needless

Array = NDArray[Any]


@dataclass(frozen=True)
class Guided:
    """An estimate says what each swap adds to the score: its slope at the sentence, where a network has gradients; else
    what it added alone, one request for each single swap (the first options of all words first, and with a limit of
    requests no more than half of them).

        descend   make the swap that the estimate praises most, until the goal is reached; drop swaps not needed
        again     ask about the `width` best, go on from the best of these, as long as that can give a shorter sentence
        exchange  in place of every two swaps the `width` best single ones by the estimate; again while that is shorter
        then, as far as requests last: any one swap in place of two, and a beam of 4 with the same end
    """

    width: int = 5

    def run(self, attacked: Attacked) -> None:
        attacked.ask(attacked.original[None])
        if attacked.broken or not attacked.movable:
            return
        estimate = Estimate.of(attacked)
        for width in (1, self.width):
            descend(attacked, estimate, width)
            undo_needless(attacked)
        while (fewest := attacked.fewest) is not None and fewest > 1:
            for pair in combinations(np.flatnonzero(attacked.best).tolist(), 2):
                row = attacked.best
                row = np.where(np.isin(np.arange(len(row)), pair), 0, row).astype(np.int32)
                attacked.ask(estimate.best(attacked, row, self.width))
                if attacked.fewest != fewest:
                    break
            if attacked.fewest == fewest:
                break
        shorten(attacked)
        found = attacked.fewest
        Beam(4).shorter(attacked)
        if attacked.fewest != found:
            shorten(attacked)


def descend(attacked: Attacked, estimate: Estimate, width: int) -> None:
    row, known, swaps = attacked.original, attacked.fewest, 0
    while attacked.fewest == known and (known is None or swaps + 1 < known):
        rows = estimate.best(attacked, row, width)
        if not len(rows):
            return
        row = rows[attacked.ask(rows).scores.argmax()]
        swaps += 1


@dataclass(frozen=True, eq=False)
class Estimate:
    """`alone` [single swaps]: what each added by itself; None where there are gradients."""

    alone: Array | None

    @classmethod
    def of(cls, attacked: Attacked) -> Estimate:
        pairs = attacked.alternatives
        try:
            attacked.slopes(attacked.original, pairs[:1, 0], pairs[:1, 1])
        except Unsupported:
            return cls(added_alone(attacked))
        return cls(None)

    def best(self, attacked: Attacked, row: Array, width: int) -> Array:
        """Of the sentences with one swap more, those whose swap adds most."""
        rows = attacked.extensions(row)
        if not len(rows):
            return rows
        words = (rows != row).argmax(axis=1)
        options = rows[np.arange(len(rows)), words]
        if self.alone is None:
            adds = attacked.slopes(row, words, options)
        else:
            first = np.searchsorted(attacked.alternatives[:, 0], words)
            adds = self.alone[first + options - 1]
        return np.asarray(rows[np.argsort(-adds, kind="stable")[:width]])


def added_alone(attacked: Attacked) -> Array:
    """[single swaps]: the score of each sentence with one swap, -inf where it is not allowed or was not asked about."""
    pairs = attacked.alternatives
    order = np.argsort(pairs[:, 1], kind="stable")
    if attacked.most_requests is not None:
        order = order[: max(1, (attacked.most_requests - attacked.requests) // 2)]
    rows = np.zeros((len(order), attacked.words), dtype=np.int32)
    rows[np.arange(len(order)), pairs[order, 0]] = pairs[order, 1]
    fine = attacked.permits(rows)
    found = np.full(len(pairs), -np.inf)
    if fine.any():
        found[order[fine]] = attacked.ask(rows[fine]).scores
    return found
