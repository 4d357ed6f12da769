"""Leaves of smooth networks (FORMAT.md, section 15.4): `enumerate`, one sentence after the other, and `boxes`.

    Enumeration(intervals).judged(options, rivals)                  one sentence, an option for every word
    Boxes(intervals, masks, swaps, segments).proved(rivals)         all sentences of a region

This file is trusted, as check.py is, which loads it. Standard library only, exact integers only. What cannot be proved
raises `Refused`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import onnx_file
    from . import smooth_intervals as rules
else:
    onnx_file, rules = sys.modules["onnx_file"], sys.modules["smooth_intervals"]

require, in_time = onnx_file.require, onnx_file.in_time
Block = rules.Block
Intervals = rules.Intervals
Result = rules.Result
Store = rules.Store

MAX_KEPT = 1 << 21
"""Elements in the results that the enumeration keeps."""


class Enumeration:
    """One sentence after the other: results of blocks are shared by the options of the words that they depend on.

    The store has those of the last sentence, `held` the options they are for; `kept` those that other blocks read.
    """

    def __init__(self, intervals: Intervals) -> None:
        self.intervals, self.store = intervals, intervals.new_store()
        self.held: list[tuple[int, ...] | None] = [None] * len(intervals.blocks.found)
        self.kept: dict[tuple[int, tuple[int, ...]], Result] = {}
        self.size = 0

    def judged(self, options: Sequence[int], rivals: Sequence[int]) -> int:
        """Of one sentence: 1, the label beats all rivals for certain; -1, some rival beats it; 0, neither."""
        intervals, label = self.intervals, self.intervals.space.label
        self.fill(options)
        if all(intervals.certain(self.store, label, rival) for rival in rivals):
            return 1
        return -1 if any(intervals.certain(self.store, rival, label) for rival in rivals) else 0

    def fill(self, options: Sequence[int]) -> None:
        """Intervals of this sentence to the store: what is asked for and not there, the last blocks asking first."""
        blocks, missing = self.intervals.blocks, []
        asked = bytearray(len(blocks.found))
        for number in blocks.ends:
            asked[number] = 1
        for block in reversed(blocks.found):
            key = tuple([options[i] for i in block.order])
            if not asked[block.number] or self.held[block.number] == key:
                continue
            found = self.kept.pop((block.number, key), None)
            if found:
                self.kept[block.number, key] = found
                self.store.write(block, found)
                self.held[block.number] = key
                continue
            missing.append((block, key))
            for number in block.sources:
                asked[number] = 1
        for block, key in reversed(missing):
            in_time(self.intervals.space.stop)
            result = self.computed(block, options)
            self.store.write(block, result)
            self.held[block.number] = key
            if block.outside:
                self.keep(block, key, result)

    def computed(self, block: Block, options: Sequence[int]) -> Result:
        if block.layer.depth:
            return self.intervals.computed(block, self.store)
        numbers = exact_numbers(self.intervals.space, block, options)
        return self.intervals.exact(block, numbers, numbers)

    def keep(self, block: Block, key: tuple[int, ...], result: Result) -> None:
        """The results that were not asked for longest go first."""
        self.kept[block.number, key] = result
        self.size += block.stop - block.start
        while self.size > MAX_KEPT:
            number, _ = oldest = next(iter(self.kept))
            del self.kept[oldest]
            self.size -= self.intervals.blocks.found[number].stop - self.intervals.blocks.found[number].start


def exact_numbers(space: Any, block: Block, options: Sequence[int]) -> list[int]:
    """Of a block affine in the words, in one sentence."""
    slot = space.network.slot[block.start]
    found: list[int] = space.base[slot : slot + block.stop - block.start]
    for i in block.order:
        if options[i]:
            shifts = space.shifts[i]
            found = [x + (shifts[at][options[i]] if at in shifts else 0) for at, x in enumerate(found, slot)]
    return found


class Segment(NamedTuple):
    """So many layers from the first on, conditioned on the options of a word."""

    first: int
    layers: int
    word: int


class Boxes:
    """Intervals B_j of elements in the sentences of a region in which at most j of their words are swapped.

    `stores[j]` has the B_j, but none for elements of a segment that nothing beyond it reads. A block with fewer words
    than j has the same for all numbers from that on.
    """

    def __init__(self, intervals: Intervals, masks: Sequence[int], swaps: int, segments: Sequence[Segment]) -> None:
        self.intervals, self.space, self.masks = intervals, intervals.space, masks
        self.moving = sum([1 << i for i, mask in enumerate(masks) if mask != 1])
        self.stores = [intervals.new_store() for _ in range(min(swaps, self.moving.bit_count()) + 1)]
        layers = {each.start: index for index, each in enumerate(intervals.network.layers)}
        word_of = {
            index: segment for segment in segments for index in range(segment.first, segment.first + segment.layers)
        }

        def place(block: Block) -> tuple[Segment | None, bool]:
            """The segment of a block, and whether its word is among those of the block."""
            segment = word_of.get(layers.get(block.layer.start, -1)) if block.layer.depth else None
            return segment, segment is not None and bool(self.words(block) >> segment.word & 1)

        affine = [block for block in intervals.blocks.found if not block.layer.depth]
        for block in affine:
            self.write(block, [self.extremes(block, swapped) for swapped in self.numbers(block)])
        later = [block for block in intervals.blocks.found if block.layer.depth]
        for segment, group in groupby(later, lambda block: place(block)[0]):
            in_time(self.space.stop)
            blocks = list(group)
            apart = [block for block in blocks if place(block)[1]]
            for block in blocks:
                if block not in apart:
                    self.write(block, [self.box(block, self.stores[j]) for j in self.numbers(block)])
            if segment and apart:
                self.conditioned(apart, segment.word)

    def words(self, block: Block) -> int:
        """W of its elements."""
        return block.words & self.moving

    def numbers(self, block: Block) -> range:
        """The j for which B_j may differ from each other."""
        return range(min(self.words(block).bit_count() + 1, len(self.stores)))

    def write(self, block: Block, found: Sequence[Result | None]) -> None:
        """The B_j for j = 0, 1, ..., the last one for all numbers after it too."""
        for j, store in enumerate(self.stores):
            store.write(block, found[min(j, len(found) - 1)])

    def box(self, block: Block, store: Store) -> Result | None:
        """By the rule of the layer; none where something that it reads is none."""
        if any(store.stamps[number] is None for number in block.sources):
            return None
        return self.intervals.computed(block, store)

    def options(self, word: int, swapped: int) -> list[int]:
        """Of a word, in the region, with at most so many swaps."""
        return [
            option
            for option in range(self.masks[word].bit_length())
            if self.masks[word] >> option & 1 and (swapped or not option)
        ]

    def extremes(self, block: Block, swapped: int) -> Result | None:
        """Of a block affine in the words: the least and the greatest with at most so many swaps of its words."""
        space, moving = self.space, [i for i in block.order if self.masks[i] != 1]
        if len(moving) > 1:
            masks = [self.masks[i] if block.words >> i & 1 else mask for i, mask in enumerate(space.masks)]
            sentences = space.sentences(swapped, tuple(masks))
            if sentences.empty:
                return None
            first = space.network.slot[block.start]
            slots = range(first, first + block.stop - block.start)
            lows = [-space.maximum(sentences, ((slot, -1),)) for slot in slots]
            return self.intervals.exact(block, lows, [space.maximum(sentences, ((slot, 1),)) for slot in slots])
        options = [0] * len(self.masks)
        rows = []
        for option in self.options(moving[0], swapped) if moving else [0]:
            if moving:
                options[moving[0]] = option
            rows.append(exact_numbers(space, block, options))
        columns = list(zip(*rows, strict=True))
        return self.intervals.exact(block, map(min, columns), map(max, columns)) if rows else None

    def conditioned(self, blocks: list[Block], word: int) -> None:
        """Blocks of a segment that depend on its word: for each of its options by themselves, then the hulls, where
        others read them."""
        every, own = self.intervals.blocks.found, {block.number for block in blocks}
        read = {number for block in blocks for number in block.sources} - own
        given = [every[number] for number in sorted(read) if self.words(every[number]) >> word & 1]
        fits = all(not block.layer.depth and self.words(block) == 1 << word for block in given)
        require(fits, f"layers of a segment read what depends on word {word} otherwise than its option")
        most = max([self.numbers(block)[-1] for block in blocks])
        found: list[list[list[Result]]] = [[[] for _ in blocks] for _ in range(most + 1)]
        options = [0] * len(self.masks)
        for option in self.options(word, 1):
            options[word] = option
            exact = [exact_numbers(self.space, block, options) for block in given]
            results = [self.intervals.exact(*each) for each in zip(given, exact, exact, strict=True)]
            for j in range(option != 0, most + 1):
                in_time(self.space.stop)
                store = self.stores[j - (option != 0)]
                for block, result in zip(given, results, strict=True):
                    store.write(block, result)
                for block, parts in zip(blocks, found[j], strict=True):
                    box = self.box(block, store)
                    store.write(block, box)
                    parts += [box] if box else []
        for block in given:
            self.write(block, [self.extremes(block, swapped) for swapped in self.numbers(block)])
        handed = {number for block in every if block.number not in own for number in block.sources}
        handed |= {*self.intervals.blocks.ends}
        for at, block in enumerate(blocks):
            self.write(block, [self.hull(row[at]) for row in found] if block.number in handed else [None])

    def hull(self, parts: Sequence[Result]) -> Result | None:
        """The least of lows, and the greatest of all else."""
        if len(parts) < 2:
            return parts[0] if parts else None
        columns = zip(*[part.columns for part in parts], strict=True)
        found = [[*map(max if at else min, *each)] for at, each in enumerate(columns)]
        return Result(tuple(found), next(self.intervals.stamps))

    def proved(self, rivals: Sequence[int]) -> bool:
        """Whether the label beats all rivals for certain."""
        store, label = self.stores[-1], self.space.label
        require(None not in [store.stamps[number] for number in self.intervals.blocks.ends], "boxes of no sentence")
        return all(self.intervals.certain(store, label, rival) for rival in rivals)
