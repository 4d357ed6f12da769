"""The leaf `expansion` of smooth networks (FORMAT.md, section 18): intervals told apart by the last swap, a bound.

    Expansion(intervals, masks, swaps, reach, chains).proved(rivals)            all sentences of a region

This file is trusted, as check.py is, which loads it. Standard library only, exact integers only. What cannot be proved
raises `Refused`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, groupby
from math import lcm
from operator import add, mul, or_
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING or __package__:
    from .. import onnx_file
    from .. import smooth_intervals as rules
    from .. import smooth_leaves as leaves
    from . import expansion_costs as costs_of_elements
else:
    onnx_file, rules, leaves = [sys.modules[name] for name in ("onnx_file", "smooth_intervals", "smooth_leaves")]
    costs_of_elements = sys.modules["expansion_costs"]

require, in_time = onnx_file.require, onnx_file.in_time
Block = rules.Block
Result = rules.Result
Rests = costs_of_elements.Rests
Weights = costs_of_elements.Weights

Move = tuple[int, int]
"""A word and its option."""


class Chain(NamedTuple):
    """So many layers from the first on, which read words in ascending or descending order."""

    first: int
    layers: int
    descending: int

    def ordered(self, words: int) -> list[int]:
        """Some words (a bit for each), the earliest first."""
        found = [w for w in range(words.bit_length()) if words >> w & 1]
        return found[::-1] if self.descending else found


def chains_of(number: Callable[[], int], layers: int) -> list[Chain]:
    """Those that the next numbers of a tree give, of so many layers in all."""
    found, free = [], 0
    for _ in range(number()):
        chain = Chain(free + number(), number(), number())
        free = chain.first + chain.layers
        fits = chain.layers > 0 and free <= layers and chain.descending < 2
        require(fits, "a chain that is empty, beyond the layers, or in no order")
        found.append(chain)
    return found


class Expansion:
    """One region. `reference` are the results N of all blocks, `widest` the A of those that are known."""

    def __init__(
        self, intervals: rules.Intervals, masks: Sequence[int], swaps: int, reach: int, chains: Sequence[Chain]
    ) -> None:
        self.intervals, self.space, self.blocks = intervals, intervals.space, intervals.blocks.found
        self.masks, self.swaps, self.reach, self.store = masks, swaps, reach, intervals.new_store()
        lacking = [mask for mask in masks if not mask & 1]
        fits = all(mask.bit_count() == 1 for mask in lacking)
        require(fits, "a word that lacks its original, with several options, in an expansion")
        read = reduce(or_, [block.words for block in self.blocks])
        self.moving = read & sum([1 << w for w, mask in enumerate(masks) if mask.bit_count() > 1])
        self.room = min(self.moving.bit_count(), swaps - len(lacking))
        self.options = [(mask & -mask).bit_length() - 1 for mask in masks]
        self.order = [w for w in range(len(masks)) if self.moving >> w & 1]
        network = intervals.network
        place = {layer.start: at for at, layer in enumerate(network.layers)}
        within = {at: chain for chain in chains for at in range(chain.first, chain.first + chain.layers)}
        self.chain_of = [within.get(place[b.layer.start]) if b.layer.depth else None for b in self.blocks]
        self.words = [block.words & self.moving for block in self.blocks]
        self.reference: dict[int, Result] = {}
        for block in self.blocks:
            sources = [self.reference[number] for number in block.sources]
            here = self.numbers(block, self.options) if not block.layer.depth else self.computed(block, sources)
            self.reference[block.number] = here
        self.center = [0] * len(network.owner)
        for block in self.blocks:
            self.center[block.start : block.stop] = self.reference[block.number].columns[0]
        self.rests = Rests(intervals, self.center)
        self.known_widest: dict[int, Result] = {}
        self.known_swapped: dict[tuple[int, Move], Result] = {}

    # ---- results

    def numbers(self, block: Block, options: Sequence[int]) -> Result:
        """Of a block affine in the words, in one sentence."""
        exact = leaves.exact_numbers(self.space, block, options)
        return self.intervals.exact(block, exact, exact)

    def swapped(self, block: Block, move: Move) -> Result:
        """The same where one word of the references is swapped."""
        if (block.number, move) not in self.known_swapped:
            options = list(self.options)
            options[move[0]] = move[1]
            self.known_swapped[block.number, move] = self.numbers(block, options)
        return self.known_swapped[block.number, move]

    def widest(self, number: int) -> Result:
        """A of a block; of those affine in the words when it is asked for."""
        if number not in self.known_widest:
            space, block = self.space, self.blocks[number]
            sentences = space.sentences(self.swaps, tuple(self.masks))
            first = self.intervals.network.slot[block.start]
            slots = range(first, first + block.stop - block.start)
            lows = [-space.maximum(sentences, ((slot, -1),)) for slot in slots]
            highs = [space.maximum(sentences, ((slot, 1),)) for slot in slots]
            self.known_widest[number] = self.intervals.exact(block, lows, highs)
        return self.known_widest[number]

    def computed(self, block: Block, sources: Iterable[Result]) -> Result:
        """By the rule of the layer, from results of what it reads, which are then in the store."""
        in_time(self.space.stop)
        for number, found in zip(block.sources, sources, strict=True):
            if self.store.stamps[number] != found.stamp:
                self.store.write(self.blocks[number], found)
        return self.intervals.computed(block, self.store)

    def hull(self, parts: Sequence[Result]) -> Result:
        """The least of lows, and the greatest of all else."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*[part.columns for part in parts], strict=True)
        found = [[*map(max if at else min, *each)] for at, each in enumerate(columns)]
        return Result(tuple(found), next(self.intervals.stamps))

    # ---- the bound

    def proved(self, rivals: Sequence[int]) -> bool:
        """Whether the label beats all rivals for certain."""
        if self.room < 0:
            return True
        strict = self.intervals.kernel
        margins = [number for number, _ in self.margins(rivals)]
        pairs = zip(margins, rivals, strict=True)
        return all(least > 0 or (least == 0 and not strict and self.space.label < rival) for least, rival in pairs)

    def margins(self, rivals: Sequence[int]) -> list[tuple[int, int]]:
        """(number, below) of each: number / below is not above the margin, less what float32 may be off."""
        intervals, label = self.intervals, self.space.label
        weighed = [Weights(self.rests, label, rival) for rival in rivals]
        outside = [0] * len(rivals)
        traces: list[Traces] = []
        later = [block for block in self.blocks if block.layer.depth]
        for chain, group in groupby(later, lambda block: self.chain_of[block.number]):
            if chain:
                traces.append(Traces(self, chain, list(group), weighed))
                continue
            for block in group:
                found = self.computed(block, [self.widest(number) for number in block.sources])
                self.known_widest[block.number] = found
                outside = list(map(add, outside, self.rests.costs(block, found, self.store, weighed)))
        margins = []
        for at, (rival, weights) in enumerate(zip(rivals, weighed, strict=True)):
            error = 0
            if intervals.kernel:
                error = sum([self.error(intervals.network.logits[each]) for each in (label, rival)]) + 1
            total, unit = self.bound(weights, outside[at], [trace.charges(at) for trace in traces])
            margins.append((total - (unit * error << intervals.q), unit << 2 * intervals.q))
        return margins

    def error(self, i: int) -> int:
        """Of an element, at level kernel, over the region."""
        block = self.blocks[self.intervals.blocks.block_of[i]]
        return self.widest(block.number).columns[4][i - block.start]

    def bound(self, weights: Weights, outside: int, chains: Sequence[Charges]) -> tuple[int, int]:
        """A number that the margin is not below, and the unit that it is in: 2**(2 q) of these are 1."""
        space, q = self.space, self.intervals.q
        affine = [block for block in self.blocks if not block.layer.depth]
        common = lcm(*{block.layer.scale for block in affine})
        unit = weights.unit * common << q
        fixed = (weights.base * common << q) + unit * outside
        rises = {move: 0 for w in self.order for move in self.moves(w)}
        for block in affine:
            more, scale = common // block.layer.scale, block.layer.scale
            mu = weights.mu[block.start : block.stop]
            exact = leaves.exact_numbers(space, block, self.options)
            for c, x, n in zip(mu, exact, self.center[block.start : block.stop], strict=True):
                fixed += c * ((x << q) - n * scale) * more
            if self.intervals.kernel:
                errors = self.reference[block.number].columns[4]
                charged = map(weights.charged, range(block.start, block.stop))
                fixed -= sum(map(mul, charged, errors)) * weights.scale * common
            first = self.intervals.network.slot[block.start]
            for word in [w for w in block.order if self.moving >> w & 1]:
                shifts = [space.shifts[word].get(at) for at in range(first, first + len(mu))]
                for move in self.moves(word):
                    changes = [column[move[1]] if column else 0 for column in shifts]
                    rises[move] += sum(map(mul, mu, changes)) * more << q
        return fixed + least_of_sets(self, rises, chains, unit), unit

    def moves(self, w: int) -> list[Move]:
        return [(w, option) for option in range(1, self.masks[w].bit_length()) if self.masks[w] >> option & 1]


Sums = list[int]
"""Of the elements with at most so many words, which are those of all with at most 0, 1, ... words."""


class Charges(NamedTuple):
    """Of a chain and a rival: sums of costs by N, and by T_j of every move, for j = 1, 2, ..."""

    descending: int
    fixed: Sums
    moved: Sequence[Mapping[Move, Sums]]


def least_of_sets(region: Expansion, rises: Mapping[Move, int], chains: Sequence[Charges], unit: int) -> int:
    """The least over all sets of moves of different words; words ascend, and the move of the last one is looked at.

    In ascending chains costs of a move end where the next word of the set is read, in descending ones where that before
    is read.
    """
    words, ups, downs = region.order, [c for c in chains if not c.descending], [c for c in chains if c.descending]
    end = len(words)

    def until(some: Sequence[Charges], j: int, move: Move | None, place: int) -> int:
        """What a move, as the j-th in the order, costs in some chains, in elements with at most so many words."""
        return unit * sum([each.moved[j - 1][move][place] if move else each.fixed[place] for each in some])

    found = until(chains, 0, None, end)
    for s in range(1, region.room + 1):
        best: dict[Move, int] = {}
        for i in range(1, s + 1):
            before, best = best, {}
            for u, word in enumerate(words):
                starts = [(end, until(ups, 0, None, u))] if i == 1 else []
                for t in range(u if i > 1 else 0):
                    ways = [before[m] + until(ups, i - 1, m, u) for m in region.moves(words[t]) if m in before]
                    starts += [(end - 1 - t, min(ways))] if ways else []
                for move in region.moves(word) if starts else []:
                    best[move] = rises[move] + min([x + until(downs, s + 1 - i, move, place) for place, x in starts])
        place = {word: end - 1 - u for u, word in enumerate(words)}
        last = [x + until(ups, s, m, end) + until(downs, 0, None, place[m[0]]) for m, x in best.items()]
        found = min([found, *last])
    return found


class Traces:
    """The blocks of one chain: T_j of every move, from the fewest swaps on, and B_j where others read it."""

    def __init__(self, region: Expansion, chain: Chain, blocks: list[Block], weighed: Sequence[Weights]) -> None:
        self.region, self.chain, self.blocks, self.weighed = region, chain, blocks, weighed
        self.order = chain.ordered(region.moving)
        self.level = {block.number: region.words[block.number].bit_count() for block in blocks}
        for block in blocks if region.room else []:
            first = self.order[: self.level[block.number]]
            require(sum([1 << w for w in first]) == region.words[block.number], "a chain that does not read in order")
        fits = not region.room or max(self.level.values()) == len(self.order)
        require(fits, "a chain that does not read all words")
        self.old = {number: max(0, level - 1 - region.reach) for number, level in self.level.items()}
        """Block -> so many words are old in it."""
        self.handed, self.held = self.read_elsewhere()
        self.boxes: list[dict[int, Result]] = [{block.number: region.reference[block.number] for block in blocks}]
        self.fixed = self.nothing()
        for block in blocks:
            found = region.computed(block, [region.reference[number] for number in block.sources])
            self.charge(self.fixed, block, found)
        self.fresh: dict[Move, list[Sums]] = {}
        """Move -> costs by the level, for each rival, up to where the word is old."""
        self.moved: list[dict[Move, list[Sums]]] = []
        self.ends: dict[int, dict[int, Result]] = {}
        """Place of a word -> block -> the hull over its moves, where a block in which the word is old reads it."""
        for j in range(1, region.room + 1):
            self.swap(j)
        region.known_widest.update(self.boxes[-1])

    def nothing(self) -> list[Sums]:
        return [[0] * (len(self.order) + 1) for _ in self.weighed]

    def charges(self, at: int) -> Charges:
        """Of one rival."""
        moved = [{move: [*accumulate(found[at])] for move, found in each.items()} for each in self.moved]
        return Charges(self.chain.descending, [*accumulate(self.fixed[at])], moved)

    def read_elsewhere(self) -> tuple[set[int], dict[int, int]]:
        """The blocks that one with other words, or outside the chain, reads, or a margin; and of each how many words
        are old in one that reads it."""
        handed = {number for number in self.region.intervals.blocks.ends if number in self.level}
        held = dict.fromkeys(self.level, 0)
        for block in self.region.blocks:
            for number in block.sources:
                if number in self.level:
                    if self.level.get(block.number) != self.level[number]:
                        handed.add(number)
                    held[number] = max(held[number], self.old.get(block.number, 0))
        return handed, held

    def charge(self, totals: list[Sums], block: Block, found: Result) -> None:
        """Adds the costs of a block that has just been computed."""
        region = self.region
        for sums, cost in zip(totals, region.rests.costs(block, found, region.store, self.weighed), strict=True):
            sums[self.level[block.number]] += cost

    def swap(self, j: int) -> None:
        """T_j of all moves, and B_j."""
        region = self.region
        hulls = {number: self.boxes[j - 1][number] for number in self.handed}
        for a, w in enumerate(self.order):
            blocks = [b for b in self.blocks if self.old[b.number] <= a < self.level[b.number]]
            if j <= a + 1:  # with fewer words before it T_j is that of j - 1
                self.trace(j, a, region.moves(w), blocks, hulls)
        past: dict[int, Result] = {}
        shared = self.nothing()
        for block in self.blocks:
            if self.old[block.number]:
                found = region.computed(block, [self.behind(block, number, past) for number in block.sources])
                past[block.number] = found
                self.charge(shared, block, found)
                if block.number in self.handed:
                    hulls[block.number] = region.hull([hulls[block.number], found])
        self.moved.append({})
        for a, w in enumerate(self.order):
            kept = a + 2 + region.reach
            for move in region.moves(w):
                pairs = zip(self.fresh[move], shared, strict=True)
                self.moved[-1][move] = [own[:kept] + others[kept:] for own, others in pairs]
        self.boxes.append(hulls)

    def trace(self, j: int, a: int, moves: list[Move], blocks: list[Block], hulls: dict[int, Result]) -> None:
        """Every move of a word, up to where it is old."""
        region = self.region
        ends = self.ends[a] = dict[int, Result]()
        for move in moves:
            totals = self.fresh[move] = self.nothing()
            known: dict[int, Result] = {}
            for block in blocks:
                sources = [self.named(j, a, move, number, known) for number in block.sources]
                found = known[block.number] = region.computed(block, sources)
                self.charge(totals, block, found)
                if block.number in self.handed:
                    hulls[block.number] = region.hull([hulls[block.number], found])
                if self.held[block.number] > a:
                    ends[block.number] = region.hull([ends[block.number], found]) if block.number in ends else found

    def named(self, j: int, a: int, move: Move, number: int, known: Mapping[int, Result]) -> Result:
        """What stands for a source of a block that a move reaches, a being the place of its word in the order."""
        region = self.region
        words, block = region.words[number], region.blocks[number]
        if not words:
            return region.reference[number]
        if number in self.level:
            return known[number] if self.level[number] > a else self.boxes[j - 1][number]
        if block.layer.depth:
            return region.widest(number)
        return region.swapped(block, move) if words == 1 << move[0] else self.unmoved(number, a)

    def unmoved(self, number: int, a: int) -> Result:
        """Of a block affine in the words, where no word of the order beyond a place is swapped."""
        others = sum([1 << w for w in self.order[a + 1 :]])
        region = self.region
        return region.reference[number] if not region.words[number] & ~others else region.widest(number)

    def behind(self, block: Block, number: int, past: Mapping[int, Result]) -> Result:
        """What stands for a source of a block in which words are old."""
        region, old = self.region, self.old[block.number]
        if not region.words[number]:
            return region.reference[number]
        if number not in self.level:
            return region.widest(number) if region.blocks[number].layer.depth else self.unmoved(number, old - 1)
        require(self.level[number] >= old, "an element of a chain that reads around old words")
        fresh = [self.ends[a][number] for a in range(self.old[number], old)]
        return region.hull([*([past[number]] if number in past else []), *fresh])
