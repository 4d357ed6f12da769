"""The least value of an affine function of the words over a region, with the multipliers that prove it.

Sentences pick x[p, c] = 1 for one choice c of every position p; s_p = sum over c > 0 of x[p, c] is 1 where a word is
swapped. A region allows some choices at every position, and at most k swaps. The linear program of this is integral,
and its dual has one price nu >= 0 of a swap:

    sum of g[p, c] x[p, c] >= sum over p of min over allowed c of (g[p, c] + nu [c > 0]) - nu k

Swaps are taken, best first, while there is room; nu is what the first one without room would have taken off.
Functions have whole coefficients: whoever has fractions multiplies them by a common denominator first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

Key = Hashable
Costs = Mapping[tuple[int, int], int]
"""(position, choice > 0) -> what this choice adds."""


@dataclass(frozen=True)
class Words:
    """`sizes`: number of choices of every swappable position. `allowed`: which of them; `excluded`: key of the row
    - sum over the others of x[p, c] >= 0, for positions where some are not. `most` is k, `most_key` names its row."""

    sizes: Mapping[int, int]
    allowed: Mapping[int, frozenset[int]]
    excluded: Mapping[int, Key]
    most: int
    most_key: Key

    def swaps(self, position: int) -> list[int]:
        return sorted(self.allowed[position] - {0})

    def forced(self, position: int) -> bool:
        return 0 not in self.allowed[position]

    @property
    def room(self) -> int:
        """Swaps that may be made beside the forced ones."""
        return self.most - sum(map(self.forced, self.sizes))

    def undecided(self) -> list[int]:
        """Positions at which sentences of the region may differ."""
        open_positions = [p for p in self.sizes if len(self.allowed[p]) > 1]
        return [p for p in open_positions if self.forced(p) or self.room > 0]


def least(words: Words, function: Costs) -> tuple[int, dict[Key, int]] | None:
    """The minimum of sum function[p, c] x[p, c], and what adds up to function >= it; None for an empty region."""
    room = words.room
    if room < 0:
        return None
    gains = [
        -min(function.get((p, c), 0) for c in words.swaps(p))
        for p in words.sizes
        if words.swaps(p) and not words.forced(p)
    ]
    worth = sorted((gain for gain in gains if gain > 0), reverse=True)
    price = worth[room] if room < len(worth) else 0
    value, multipliers = priced(words, function, price)
    return value - price * words.most, {**multipliers, **({words.most_key: -price} if price else {})}


def priced(words: Words, function: Costs, price: int) -> tuple[int, dict[Key, int]]:
    """What is least when every swap costs so much more, whatever their number; and what adds up to it."""
    costs: dict[int, dict[int, int]] = {}
    for (p, c), g in function.items():
        costs.setdefault(p, {})[c] = g
    multipliers: dict[Key, int] = {}
    value = 0
    for p in words.sizes:
        if not price and p not in costs:
            continue
        given = costs.get(p, {})
        reduced = [given.get(c, 0) + (price if c else 0) for c in range(words.sizes[p])]
        low = min(reduced[c] for c in words.allowed[p])
        lift = max((low - reduced[c] for c in range(words.sizes[p]) if c not in words.allowed[p]), default=0)
        value += low
        multipliers["one", p] = low
        lift = max(lift, 0)
        if lift:
            multipliers[words.excluded[p]] = lift
        for c, cost in enumerate(reduced):
            multipliers["choice", p, c] = cost - low + (lift if c not in words.allowed[p] else 0)
    return value, {key: factor for key, factor in multipliers.items() if factor}


def contradiction(words: Words) -> dict[Key, int] | None:
    """Multipliers of rows that add up to 0 >= a positive number, when more swaps are forced than allowed; else None."""
    if words.room >= 0:
        return None
    every = {(p, c): 1 for p in words.sizes for c in range(1, words.sizes[p])}
    return {**priced(words, every, 0)[1], words.most_key: -1}
