"""A cheap attack on a model that is only run: the worst single swaps together, then no more of them than are needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swapproof.models.deployed.classifier import Rows

from .asking import Asking
from .sentence_order import SentenceOrder


def dangerous(asking: Asking, order: SentenceOrder) -> Iterator[Rows]:
    """[1, words] each: sentences that another class wins, with fewer and fewer swaps. `order`: by danger."""
    together = np.zeros((len(order.ranked), order.words), dtype=np.int32)
    for place, (word, alternatives) in enumerate(order.ranked):
        together[place:, word] = alternatives[-1]
    answers, _ = asking.judged(together)
    broken = np.flatnonzero(answers != asking.label)
    if not len(broken):
        return
    row = together[broken[0]]
    yield row[None]
    while True:
        swapped = np.flatnonzero(row)
        if len(swapped) < 3:  # one swap is looked at anyway
            return
        fewer = np.repeat(row[None], len(swapped), axis=0)
        fewer[np.arange(len(swapped)), swapped] = 0
        answers, margins = asking.judged(fewer)
        broken = np.flatnonzero(answers != asking.label)
        if not len(broken):
            return
        row = fewer[broken[margins[broken].argmin()]]
        yield row[None]
