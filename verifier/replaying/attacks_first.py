"""Attacks on a model that is run, before its sentences are evaluated one by one: they give high ends."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.errors import BadInput, Unsupported
from swapproof.models.deployed.classifier import Rows
from swapproof.models.deployed.decision import Decision

from ..attacks.attack_goals import Goal
from ..attacks.attacked_text import Attacked, Spent
from ..attacks.deployed_answers import OfModel
from ..attacks.recipes import RECIPES
from ..attacks.sentence_answers import Without
from .asking import Asking

Array = NDArray[Any]
CHEAP, SIMPLE = "greedy", "simple"
"""The cheap attack and the enumeration, the default: these follow the attacks."""
ABLE = tuple(name for name, one in RECIPES.items() if one.transformation == "task" and not one.gradients)


def engines_of_running(names: str | None, obstacle: str | None) -> tuple[str, ...]:
    """Of a model that is run: attacks by the names of their recipes, then `greedy`, then `simple`; `obstacle`: why it
    is not read."""
    if names is None:
        return (CHEAP, SIMPLE)
    run = "this model is run" + (f" ({obstacle})" if obstacle else "")
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    known = (*ABLE, SIMPLE)
    for name in chosen:
        if name in RECIPES and name not in ABLE:
            raise Unsupported(
                f"--engines {names}: {name} needs gradients or candidates of its own, and {run}; there are "
                f"{', '.join(known)}"
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise Unsupported(f"--engines {names}: {name!r} is no engine of models that are run, and {run}; {hint}")
    if len(set(chosen)) < len(chosen) or not chosen or names.rstrip().endswith(","):
        raise BadInput(f"--engines {names}: name each engine once, and end with a name")
    if SIMPLE in chosen[:-1] or CHEAP in chosen[: -2 if chosen[-1] == SIMPLE else -1]:
        raise BadInput(f"--engines {names}: of a model that is run, attacks come first, then {CHEAP}, then {SIMPLE}")
    return tuple(chosen)


@dataclass(frozen=True, eq=False)
class InTime:
    """What the model answers, until the time is up."""

    model: OfModel
    until: float

    @property
    def decision(self) -> Decision:
        return self.model.decision

    def answered(self, rows: Rows) -> Array:
        if time.monotonic() >= self.until:
            raise Spent
        return self.model.asking.scores(rows)

    def without(self, words: Array, way: Without) -> Array:
        return self.model.without(words, way)

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        return self.model.slopes(row, words, options)


@dataclass(frozen=True)
class AttacksFirst:
    """`unknown`: the word that stands for a word taken away; `seed`: of what is drawn."""

    names: Sequence[str]
    unknown: str
    seed: int

    def sentences(self, asking: Asking, until: float) -> Iterator[tuple[str, Array]]:
        """What each attack finds, with the fewest swaps first; later ones look for fewer swaps only."""
        options = tuple(map(len, asking.text.options))
        most = len(options)
        for name in self.names:
            answers = InTime(OfModel(asking, self.unknown), until)
            random = np.random.default_rng([self.seed, len(name)])
            attacked = Attacked(answers, Goal(), asking.label, options, most, random)
            with suppress(Spent):
                RECIPES[name].search.run(attacked)
            if attacked.broken:
                yield name, attacked.best
                most = int(np.count_nonzero(attacked.best)) - 1
