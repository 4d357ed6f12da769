"""Beams of several texts at once: in each round every text's beam is extended by one swap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..searches.beam_search import Beam
from .found_together import Found, best_of, ranges
from .several_texts import Several

Array = NDArray[Any]


def by_beam(search: Beam, several: Several) -> Found:
    """As Beam.run, text by text.

    A sentence is known by the sum of random integers of its swaps: whichever was made first, it is asked about once.
    Two of a text have the same sum once in 2^64.
    """
    found, _ = several.begun()
    names = np.random.default_rng(0).integers(0, 1 << 64, len(several.swap_word), dtype=np.uint64, endpoint=False)
    texts = np.flatnonzero(~found.odd)
    states, called = several.states[texts], np.zeros(len(texts), dtype=np.uint64)
    made = np.empty((len(texts), 0), dtype=np.int64)
    while len(texts):
        going = several.most_swaps[texts] > made.shape[1]
        texts, states, called, made = texts[going], states[going], called[going], made[going]
        first = several.first_swap_of_text
        swaps, members = ranges(first[texts], first[texts + 1])
        free = np.ones(len(swaps), dtype=bool)
        for column in made.T:
            free &= several.swap_word[column][members] != several.swap_word[swaps]
        swaps, members = swaps[free], members[free]
        if made.shape[1] and search.width != 1:
            swaps, members = first_of_each(texts[members], called[members] + names[swaps], swaps, members)
        if not len(swaps):
            break
        at = texts[members]
        judged = several.judge_swapped(states, members, swaps)
        found.count(at, judged)
        won = np.flatnonzero(judged.won)
        for place in won[best_of(at[won], judged.scores[won])].tolist():
            found.done[at[place]] = True
            found.rows[int(at[place])] = (*made[members[place]].tolist(), int(swaps[place]))
        lasting = np.flatnonzero(~found.done[at])
        kept = lasting[best_of(at[lasting], judged.scores[lasting], search.width or len(at))]
        parents, added = members[kept], swaps[kept]
        states = several.swapped(states[parents], added)
        called = called[parents] + names[added]
        made = np.concatenate([made[parents], added[:, None]], axis=1)
        texts = texts[parents]
    return found


def first_of_each(texts: Array, called: Array, swaps: Array, members: Array) -> tuple[Array, Array]:
    """Each sentence once, where it comes first."""
    order = np.lexsort((called, texts))
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (texts[order[1:]] == texts[order[:-1]]) & (called[order[1:]] == called[order[:-1]])
    kept = np.sort(order[~again])
    return swaps[kept], members[kept]
