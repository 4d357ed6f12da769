"""Attacks as engines: searches that ask about sentences of the space alone; what they find is replayed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.query import Query

from ..attacks.attack_goals import Goal
from ..attacks.attacked_text import Attacked, Spent
from ..attacks.recipes import RECIPES
from ..attacks.searches.importance_search import ByImportance
from ..attacks.searches.search_protocol import Search
from ..attacks.sentence_answers import OfNetwork
from ..attacks.timed_answers import TimedAnswers
from ..interval import Interval
from .protocol import Budget, Findings, Sentence

Array = NDArray[Any]
SEED = 1


@dataclass(frozen=True)
class Attack:
    """The attack of this name on sentences with fewer swaps than the best one known. Draws depend on the space alone.

    Its own seed, and not that of `attack`: two runs of `certify` find the same.
    """

    name: str
    search: Search

    def narrow(self, query: Query, interval: Interval, budget: Budget) -> Findings:
        places = tuple((position, position + 1) for position in query.space.swappable)
        most = len(places) if interval.high is None else interval.high - 1
        if not places or interval.closed or most < max(1, interval.low):
            return
        attacked = Attacked(
            TimedAnswers(OfNetwork.of(query, places), budget.deadline),
            Goal(),
            query.label,
            tuple(len(query.space.choices[position]) for position in query.space.swappable),
            most,
            np.random.default_rng([SEED, int(query.space.digest[:16], 16)]),
        )
        with suppress(Spent):
            self.search.run(attacked)
        budget.evaluations += attacked.evaluations
        for _, (_, row) in sorted(attacked.found.items()):
            before = interval
            interval = yield Sentence(sentence_of(query, row))
            if interval is not before:
                return


def sentence_of(query: Query, row: Array) -> tuple[int, ...]:
    """Of the option at every position that has options."""
    pairs = zip(query.space.swappable, row.tolist(), strict=True)
    return query.space.sentence((position, query.space.choices[position][option]) for position, option in pairs)


def asks_beyond(search: Search) -> bool:
    """Whether it asks about the text without a word, which is no sentence of the space."""
    return isinstance(search, ByImportance) and search.order in ("unknown", "delete", "saliency")


ATTACKS: tuple[Attack, ...] = tuple(
    Attack(name, recipe.search)
    for name, recipe in RECIPES.items()
    if recipe.transformation == "task" and not asks_beyond(recipe.search) and name != "greedy"
)
"""By the names of their recipes. `greedy` is the engine of this name, which does the same and undoes needless swaps."""
