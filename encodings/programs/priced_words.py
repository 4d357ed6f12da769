"""The least value of an affine function of the words over a region, with the multipliers that prove it.

Sentences pick x[p, c] = 1 for one choice c of every position p; s_p = sum over c > 0 of x[p, c] is 1 where a word is
swapped. A region allows some choices at every position and, for nested or disjoint groups of positions, low <= sum of
s_p <= high. The linear program of this is integral, and its dual has a price nu for every group:

    sum of g[p, c] x[p, c] >= sum over p of min over allowed c of (g[p, c] + nu_p [c > 0]) - cost of the prices

with nu_p the price in the smallest group around p. Swaps are taken, best first, while they are worth more than that.
Functions have whole coefficients: whoever has fractions multiplies them by a common denominator first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

Key = Hashable


@dataclass(frozen=True)
class Group:
    """Between `low` and `high` swaps at these positions; the keys name the rows that say so, if any is needed."""

    positions: frozenset[int]
    low: int
    high: int
    low_key: Key | None = None
    high_key: Key | None = None


@dataclass(frozen=True)
class Words:
    """`sizes`: number of choices of every swappable position. `allowed`: which of them; `excluded`: key of the row
    - sum over the others of x[p, c] >= 0, for positions where some are not."""

    sizes: Mapping[int, int]
    allowed: Mapping[int, frozenset[int]]
    excluded: Mapping[int, Key]
    groups: tuple[Group, ...]

    def swaps(self, position: int) -> list[int]:
        return sorted(self.allowed[position] - {0})

    def forced(self, position: int) -> bool:
        return 0 not in self.allowed[position]

    def undecided(self) -> list[int]:
        """Positions at which sentences of the region may differ."""
        forced = sum(self.forced(p) for p in self.sizes)
        everything = next(group for group in self.groups if group.positions >= self.sizes.keys())
        none_left = len(self.groups) == 1 and forced >= everything.high
        return [p for p in self.sizes if len(self.allowed[p]) > 1 and (self.forced(p) or not none_left)]


@dataclass(frozen=True)
class Level:
    """What a group can do: at least `least` swaps, then up to `most` of the gains, best first."""

    group: Group
    children: tuple[int, ...]
    least: int
    gains: tuple[int, ...]
    must: int
    room: int

    @property
    def empty(self) -> bool:
        return self.must > len(self.gains) or self.must > self.room


def levels(words: Words, gains: Mapping[int, int]) -> list[Level]:
    """Of every group, smallest first, up to one that is empty. gains[p]: the most that a swap at p takes off."""
    found: list[Level] = []
    left = [p for p in words.sizes if words.allowed[p] != {0}]
    tops: list[int] = []
    for group in sorted(words.groups, key=lambda group: len(group.positions)):
        inside = [p for p in left if p in group.positions]
        left = [p for p in left if p not in group.positions]
        children = tuple(at for at in tops if found[at].group.positions <= group.positions)
        tops = [at for at in tops if at not in children]
        least = sum(words.forced(p) for p in inside)
        values = [gains.get(p, 0) for p in inside if not words.forced(p)]
        for at in children:
            child = found[at]
            least += child.least + child.must
            values += child.gains[child.must : child.room]
        values.sort(reverse=True)
        found.append(Level(group, children, least, tuple(values), max(group.low - least, 0), group.high - least))
        tops.append(len(found) - 1)
        if found[-1].empty:
            break
    return found


def least(words: Words, function: Mapping[tuple[int, int], int]) -> tuple[int, dict[Key, int]] | None:
    """The minimum of sum function[p, c] x[p, c], and what adds up to function >= it; None for an empty region."""
    costs: dict[int, dict[int, int]] = {}
    for (p, c), g in function.items():
        costs.setdefault(p, {})[c] = g
    gains = {p: -min(given.get(c, 0) for c in words.swaps(p)) for p, given in costs.items() if words.swaps(p)}
    found = levels(words, gains)
    if found and found[-1].empty:
        return None
    multipliers: dict[Key, int] = {}
    value = 0
    prices = [0] * len(found)
    price_at: dict[int, int] = {}
    for at in range(len(found) - 1, -1, -1):
        level, outer = found[at], prices[at]
        wanted = sum(gain > outer for gain in level.gains)
        price = outer
        if wanted > level.room:
            price = level.gains[level.room]
            multipliers[level.group.high_key] = outer - price
            value += (outer - price) * level.group.high
        elif wanted < level.must:
            price = level.gains[level.must - 1]
            multipliers[level.group.low_key] = outer - price
            value += (outer - price) * level.group.low
        for child in level.children:
            prices[child] = price
        if price:
            price_at.update(dict.fromkeys(level.group.positions & words.sizes.keys(), price))
        else:
            for p in level.group.positions & price_at.keys():
                del price_at[p]
    for p in words.sizes:
        given, price = costs.get(p, {}), price_at.get(p, 0)
        if not given and not price:
            continue
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
    """Multipliers of rows that add up to 0 >= a positive number, when no choice of swaps fits; else None."""
    found = levels(words, {})
    if not found or not found[-1].empty:
        return None
    level = found[-1]
    group, low = level.group, level.room >= 0
    if low and level.must <= len(level.gains):  # more swaps are asked for than are allowed
        return {group.low_key: 1, group.high_key: -1}
    sign = -1 if low else 1
    inner = tuple(other.group for other in found[:-1] if other.group.positions <= group.positions)
    function = {(p, c): sign for p in group.positions & words.sizes.keys() for c in range(1, words.sizes[p])}
    proved = least(replace(words, groups=inner), function)
    if proved is None:
        raise ArithmeticError("a group inside an empty one is empty too")
    return {**proved[1], (group.low_key if low else group.high_key): -sign}
