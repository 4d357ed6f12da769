"""Words in the order of their importance, of several texts at once: in each round every text tries its next word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..searches.importance_search import DIGITS, ByImportance
from .found_together import Found, best_of, ranges
from .several_texts import Several

Array = NDArray[Any]


def by_importance(search: ByImportance, several: Several) -> Found:
    """As ByImportance.run, text by text."""
    found, own = several.begun()
    scores, shares = own.scores.copy(), own.shares
    ranked, single = importance(search, several, found, shares)
    early = np.zeros(several.texts, dtype=bool)
    early[list(found.rows)] = True  # broken while words were ranked: the search ends after its first word
    states = several.states.copy()
    texts = several.word_text[ranked]
    turn = np.arange(len(texts)) - np.searchsorted(texts, texts)
    swapped: list[list[int]] = [[] for _ in range(several.texts)]
    for round in range(int(turn.max(initial=-1)) + 1):
        words = ranked[turn == round]
        at = several.word_text[words]
        made = np.fromiter((len(swapped[text]) for text in at.tolist()), np.int64, len(at))
        words = words[~found.done[at] & ~found.odd[at] & (made < several.most_swaps[at])]
        if not len(words):
            continue
        swaps, owners = ranges(several.first_swap[words], several.first_swap[words + 1])
        at = several.word_text[words]
        judged = several.judge_swapped(states[at], owners, swaps)
        unmoved = np.fromiter((not swapped[text] for text in at.tolist()), bool, len(at))
        known = unmoved[owners] & single  # asked about when the words were ranked
        found.count(at[owners], judged, new=~known)
        best = best_of(owners, judged.scores)
        better = best[judged.scores[best] > scores[at[owners[best]]]]
        for place in better.tolist():
            swapped[at[owners[place]]].append(int(swaps[place]))
        moved = at[owners[better]]
        states[moved] = several.swapped(states[moved], swaps[better])
        scores[moved] = judged.scores[better]
        found.done[at[early[at]]] = True
        won = np.flatnonzero(judged.won & ~early[at[owners]])
        for place in won[best_of(owners[won], judged.scores[won])].tolist():
            text = int(at[owners[place]])
            found.done[text] = True
            before = swapped[text][:-1] if text in set(moved.tolist()) else swapped[text]
            found.rows[text] = (*before, int(swaps[place]))
    return found


def importance(search: ByImportance, several: Several, found: Found, shares: Array) -> tuple[Array, bool]:
    """The words of every text, by text and then by importance; whether all single swaps were asked about."""
    texts = several.word_text
    if search.order == "delete":
        judged = several.without("delete")
        found.count(texts)
        worth, single = judged.scores, False
    else:
        judged = several.without("unknown")
        found.count(texts)
        worth, single = judged.scores, search.order == "saliency"
    if single:
        weights = np.exp(judged.shares - greatest(texts, judged.shares, several.texts)[texts])
        total = np.bincount(texts, weights, minlength=several.texts)
        worth = weights / total[texts] * gains(several, found, shares)
    return np.lexsort((np.arange(len(texts)), -np.round(worth, DIGITS), texts)), single


def gains(several: Several, found: Found, shares: Array) -> Array:
    """[words]: by how much the best option of each, alone, raises the share."""
    able = several.most_swaps[several.word_text] > 0
    with_words = np.unique(several.word_text)
    found.count(with_words, new=False)
    swaps = np.flatnonzero(able[several.swap_word])
    best = np.zeros(len(several.word_text))
    if len(swaps):
        judged = several.judge_swapped(several.states, several.swap_text[swaps], swaps)
        found.count(several.swap_text[swaps], judged)
        won = swaps[judged.won]
        for place in best_of(several.swap_text[won], judged.scores[judged.won]).tolist():
            found.rows[int(several.swap_text[won[place]])] = (int(won[place]),)
        best[able] = greatest(several.swap_word[swaps], judged.shares, len(best))[able]
        best[able] -= shares[several.word_text[able]]
    return best


def greatest(groups: Array, numbers: Array, many: int) -> Array:
    """[many]: of each group."""
    found = np.full(many, -np.inf)
    np.maximum.at(found, groups, numbers)
    return found
