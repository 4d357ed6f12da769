"""Sentences that break a text, fewest swaps first, by the order that adding up single swaps gives.

The margin of several swaps is nearly the sum of what each of them changes: a superb order, and no proof. A beam keeps
the sentences of each size with the smallest margins, and tries the best single swaps beside them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .assignments import NONE, Choices
from .region_search import Broken, Search

WIDTH = 8
BESIDE = 12
"""Sentences kept of each size, and single swaps tried beside each."""


def beamed(search: Search, most: int) -> Iterator[Broken]:
    """Sentences of at most so many swaps that a rival wins, the first ones with the fewest that were found."""
    question = search.question
    whole = question.whole(most)
    singles = single_swaps(whole)
    if not singles.size:
        return
    rows, own = search.singles
    margins, beam = np.empty(len(singles)), singles
    margins[rows[rows[:, 0] >= 0, 0]] = own[rows[:, 0] >= 0]
    for size in range(1, whole.most + 1):
        order = np.argsort(margins, kind="stable")
        if margins[order[0]] <= 0:
            for place in order[margins[order] <= 0][:WIDTH]:
                yield search.broken(whole, beam[place], float(margins[place]))
            return
        if search.effort.spent or size == whole.most:
            return
        if size == 1:
            best = beam[order, 0]
        beam = extended(whole, beam[order[:WIDTH]], best, size)
        if not len(beam):
            return
        beam, margins = search.margins(whole, beam)


def single_swaps(choices: Choices) -> NDArray[np.int32]:
    rows = np.full((len(choices.word_of), choices.most), NONE, dtype=np.int32)
    rows[:, :1] = np.arange(len(rows), dtype=np.int32)[:, None]
    return rows


def extended(choices: Choices, beam: NDArray[np.int32], best: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """Each sentence with one more of the best single swaps, at words that it has not swapped."""
    found = []
    for row in beam:
        used = set(choices.word_of[row[:size]].tolist())
        free = [swap for swap in best.tolist() if int(choices.word_of[swap]) not in used]
        seen = set[int]()
        for swap in free:
            word = int(choices.word_of[swap])
            if word in seen:
                continue  # the best option of a word is enough
            seen.add(word)
            more = row.copy()
            more[: size + 1] = np.sort(np.append(row[:size], swap))
            found.append(more)
            if len(seen) == BESIDE:
                break
    if not found:
        return np.zeros((0, choices.most), dtype=np.int32)
    return np.unique(np.array(found, dtype=np.int32), axis=0)
