"""Sums over the words, and quotients of them, in a region of a network that attends (FORMAT.md, 17.1 and 17.2).

    Meanings(text, options, free, room).meaning(i)              of a text: Text(intervals)

This file is trusted, as check.py is. Standard library only, exact integers only: x stands for x 2**-q.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import and_, sub
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import enclosures, onnx_file
    from . import exact_network as networks
    from . import smooth_blocks as blocks_of_network
    from . import smooth_intervals as rules
    from . import smooth_leaves as leaves
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]
    blocks_of_network, rules, leaves = [sys.modules[f"smooth_{name}"] for name in ("blocks", "intervals", "leaves")]

require = onnx_file.require
ceiling = rules.ceiling
EXP, RECIPROCAL = enclosures.EXP, enclosures.RECIPROCAL
MAX_KEPT = 1 << 23
"""Elements whose ends are kept."""

Ends = tuple[int, int]
Moves = list[tuple[int, int]]
Columns = tuple[list[int], list[int]]


class Sum(NamedTuple):
    """low..high plus, for every word, one of its ends by the option; times exp of what is read at `shift`, if any."""

    shift: int | None
    low: int
    high: int
    parts: dict[int, Columns]

    @property
    def first(self) -> Ends:
        """With the first option of every word."""
        lows, highs = [sum([ends[side][0] for ends in self.parts.values()]) for side in (0, 1)]
        return self.low + lows, self.high + highs

    @property
    def width(self) -> int:
        """The greatest of a part."""
        return max([max(map(sub, highs, lows)) for lows, highs in self.parts.values()], default=0)


class Quotient(NamedTuple):
    """A sum over the sum at an element."""

    above: Sum
    below: int


class Opened(NamedTuple):
    """One over the sum at an element."""

    below: int


class Inner(NamedTuple):
    """An element of an own word."""

    word: int


class Text:
    """The elements of one text at one precision: their ends in single sentences, and the words they depend on."""

    def __init__(self, intervals: rules.Intervals) -> None:
        require(not intervals.kernel, "an attention leaf at another level than real")
        self.intervals, self.space, self.network, self.q = intervals, intervals.space, intervals.network, intervals.q
        self.blocks = intervals.blocks
        self.words = blocks_of_network.words_of_elements(self.network, self.space.words)
        self.known: dict[tuple[int, tuple[int, ...]], rules.Result] = {}
        self.kept = 0
        self.store = intervals.new_store()
        self.commons: dict[int, dict[int, int]] = {}
        self.singles: dict[tuple[int, tuple[int, ...]], Sum] = {}
        self.slots = {i: slot for slot, i in enumerate(self.network.cut)}

    def common(self, i: int, moving: int) -> int:
        """The words that all parts of an element depend on, as the page says."""
        known = self.commons.setdefault(moving, {})
        waiting = [i]
        while waiting:
            at = waiting[-1]
            own = self.words[at] & moving
            layer = self.network.owner[at]
            if at in known:
                waiting.pop()
                continue
            if own.bit_count() <= 2 or not layer.depth:
                known[at] = own if own.bit_count() <= 2 else 0
                continue
            every = blocks_of_network.read_by(layer, [at - layer.start])
            read = [y for y in every if (self.words[y] & moving).bit_count() > 1]
            read = read or [y for y in every if self.words[y] & moving]
            missing = [y for y in read if y not in known]
            if missing:
                waiting += missing
            else:
                known[at] = reduce(and_, [known[y] for y in read])
        return known[i]

    def affine_sum(self, i: int, view: Meanings, words: Sequence[int]) -> Sum:
        """Of an element that is affine in several words."""
        slot, q = self.slots[i], self.q
        scale = self.space.scales[slot]
        base = self.space.base[slot]
        parts = {}
        for w, own in enumerate(view.options):
            added = self.space.shifts[w].get(slot)
            if added and w in words:
                numbers = [added[o] << q for o in own]
                parts[w] = [x // scale for x in numbers], [ceiling(x, scale) for x in numbers]
            elif added:
                base += added[own[0]]
        return Sum(None, (base << q) // scale, ceiling(base << q, scale), parts)

    def ends(self, i: int, options: Sequence[int]) -> Ends:
        """Of an element in one sentence."""
        result = self.result(self.blocks.found[self.blocks.block_of[i]], options)
        at = i - self.blocks.found[self.blocks.block_of[i]].start
        return result.columns[0][at], result.columns[1][at]

    def result(self, wanted: rules.Block, options: Sequence[int]) -> rules.Result:
        known, found = self.known, self.blocks.found
        waiting = [wanted]
        while waiting:
            block = waiting[-1]
            key = block.number, tuple([options[w] for w in block.order])
            if key in known:
                waiting.pop()
                continue
            read = [found[number] for number in block.sources]
            keys = [(each.number, tuple([options[w] for w in each.order])) for each in read]
            missing = [each for each, own in zip(read, keys, strict=True) if own not in known]
            if missing:
                waiting += missing
                continue
            for each, own in zip(read, keys, strict=True):
                self.store.write(each, known[own])
            self.kept += block.stop - block.start
            require(self.kept <= MAX_KEPT, "too many elements to keep")
            if block.layer.depth:
                known[key] = self.intervals.computed(block, self.store)
            else:
                numbers = leaves.exact_numbers(self.space, block, options)
                known[key] = self.intervals.exact(block, numbers, numbers)
        return known[wanted.number, tuple([options[w] for w in wanted.order])]

    def ruled(self, i: int, ranges: Mapping[int, Ends]) -> Ends:
        """By the rule of its layer, from these ends of what it reads."""
        for y, (low, high) in ranges.items():
            self.store.columns[0][y], self.store.columns[1][y] = low, high
        layer = self.network.owner[i]
        block = blocks_of_network.Block(-1 - i, layer, i, i + 1, 0)
        result = self.intervals.computed(block, self.store)
        return result.columns[0][0], result.columns[1][0]


class Meanings:
    """What elements are in the sentences with one of some options for every word, and so many moves.

    The first option of a word is its reference; a move is another one. `free` words may move whatever the `room`; where
    there is no room the others keep their first option.
    """

    def __init__(self, text: Text, options: Sequence[tuple[int, ...]], free: frozenset[int], room: int) -> None:
        self.text, self.free, self.room = text, free, room
        self.options = [own if room or w in free else own[:1] for w, own in enumerate(options)]
        self.moves = [(w, o) for w, own in enumerate(self.options) for o in range(1, len(own))]
        self.spans = [(w, [*group]) for w, group in groupby(range(len(self.moves)), lambda at: self.moves[at][0])]
        self.moving = sum([1 << w for w, _ in self.spans])
        costly = sum([w not in free for w, _ in self.spans])
        self.most = len(self.spans) - costly + min(room, costly)
        """Words that move at once."""
        self.meanings: dict[int, Any] = {}
        """Of elements: a Sum, a Quotient, Opened, Inner, or what others make of them."""
        self.tops: dict[int, int] = {}
        self.conditions = True
        """Whether elements may have a word of their own."""

    def least(self, gains: Sequence[int]) -> int:
        """The least that moves can add."""
        found, others = 0, []
        for w, span in self.spans:
            gain = min([gains[at] for at in span])
            if gain < 0:
                if w in self.free:
                    found += gain
                else:
                    others.append(gain)
        return found + sum(sorted(others)[: self.room])

    def beside(self, gains: Sequence[int]) -> list[int]:
        """For each move the least that moves of other words can add to it."""
        found, own, others = 0, {}, []
        for w, span in self.spans:
            gain = own[w] = min(0, *[gains[at] for at in span])
            if w in self.free:
                found += gain
            else:
                others.append((gain, w))
        others = sorted(others)[: self.room]
        whole, rest = sum([gain for gain, _ in others]), sum([gain for gain, _ in others[: self.room - 1]])
        among = {w for _, w in others}
        least = {
            w: found - gain + whole if w in self.free else found + (whole - gain if w in among else rest)
            for w, gain in own.items()
        }
        return [least[w] for w, _ in self.moves]

    # ---- what elements are

    def words(self, i: int) -> int:
        found: int = self.text.words[i] & self.moving
        return found

    def shift_of(self, i: int) -> tuple[int, int] | None:
        """Of exp(x - greatest): the elements x and greatest."""
        layer = self.text.network.owner[i]
        if not isinstance(layer, networks.Curve) or layer.function != EXP:
            return None
        source = layer.sources[i - layer.start]
        inner = self.text.network.owner[source]
        if not isinstance(inner, networks.Affine) or not inner.depth or inner.biases[source - inner.start]:
            return None
        at, of = inner.pairs[source - inner.start]
        elements, one = inner.lists[at], inner.size_scale
        if len(elements) != 2 or inner.weights[of] != [one, -one]:
            return None
        greatest = self.text.network.owner[elements[1]]
        if not isinstance(greatest, networks.Maximum) or self.words(elements[0]).bit_count() > 1:
            return None
        return elements[0], elements[1]

    def is_single(self, i: int) -> bool:
        """Whether the rules give its ends for every option."""
        return self.words(i).bit_count() <= 1 or not self.text.network.owner[i].depth

    def sources(self, i: int) -> Iterable[int]:
        if self.is_single(i) or self.shift_of(i) or self.own(i) is not None:
            return ()
        layer = self.text.network.owner[i]
        return blocks_of_network.read_by(layer, [i - layer.start])

    def own(self, i: int) -> int | None:
        if not self.conditions:
            return None
        common = self.text.common(i, self.moving)
        return (common & -common).bit_length() - 1 if common and self.words(i).bit_count() > 1 else None

    def meaning(self, i: int) -> Sum | Quotient | Opened | Inner | None:
        """None of forms."""
        layer = self.text.network.owner[i]
        if self.is_single(i):
            return self.single(i)
        own, shift = self.own(i), self.shift_of(i)
        if own is not None:
            return Inner(own)
        if shift:
            return self.shifted(*shift)
        place = i - layer.start
        if isinstance(layer, networks.Affine):
            at, of = layer.pairs[place]
            read = [self.meanings[y] for y in layer.lists[at]]
            above = [y.above if isinstance(y, Quotient) else y for y in read]
            below = {y.below if isinstance(y, Quotient) else None for y in read}
            sums = [y for y in above if isinstance(y, Sum)]
            bias = layer.biases[place]
            if len(below) > 1 or len(sums) < len(read) or len({y.shift for y in sums}) > 1:
                return None
            if bias and (below != {None} or sums[0].shift is not None):
                return None
            found = self.added(layer, layer.weights[of], sums, bias)
            return found if below == {None} else Quotient(found, below.pop() or 0)
        if isinstance(layer, networks.Curve) and layer.function == RECIPROCAL:
            source = layer.sources[place]
            return Opened(source) if isinstance(self.meanings[source], Sum) else None
        if isinstance(layer, networks.Product):
            pair = layer.firsts[place], layer.seconds[place]
            for x, y in (pair, pair[::-1]):
                one, other = self.meanings[x], self.meanings[y]
                if isinstance(one, Sum) and isinstance(other, Opened):
                    below = self.meanings[other.below]
                    if isinstance(below, Sum) and below.shift == one.shift:
                        return Quotient(one, other.below)
                if isinstance(one, Quotient) and isinstance(other, Sum) and other.shift is None:
                    both = self.multiplied(one.above, other)
                    if both:
                        return Quotient(both, one.below)
        return None

    # ---- sums

    def single(self, i: int) -> Sum:
        """Of elements that depend on one word at most it is kept for all views."""
        own = self.text.words[i]
        key = i, self.options[own.bit_length() - 1] if own else ()
        if own & own - 1:
            return self.single_here(i)
        if key not in self.text.singles:
            self.text.singles[key] = self.single_here(i)
        return self.text.singles[key]

    def single_here(self, i: int) -> Sum:
        words = [w for w, _ in self.spans if self.text.words[i] >> w & 1]
        if len(words) > 1:
            return self.text.affine_sum(i, self, words)
        reference = [own[0] for own in self.options]
        if not words:
            return Sum(None, *self.text.ends(i, reference), {})
        found = []
        for option in self.options[words[0]]:
            reference[words[0]] = option
            found.append(self.text.ends(i, reference))
        lows, highs = zip(*found, strict=True)
        return Sum(None, 0, 0, {words[0]: ([*lows], [*highs])})

    def shifted(self, x: int, greatest: int) -> Sum:
        """exp(x - top), top being the highest end of all that the maximum reads."""
        if greatest not in self.tops:
            layer = self.text.network.owner[greatest]
            read = blocks_of_network.read_by(layer, [greatest - layer.start])
            require(all(map(self.is_single, read)), "a maximum of more than sums over the words")
            found = [self.single(i) for i in read]
            require(all(len(each.parts) <= 1 for each in found), "a maximum of sums over several words")
            ends = [[each.high + x for _, highs in each.parts.values() for x in highs] or [each.high] for each in found]
            self.tops[greatest] = max(map(max, ends))
            require(self.tops[greatest] > -self.text.intervals.limit, "a line that is masked whole")
        top, own = self.tops[greatest], self.single(x)
        require(len(own.parts) <= 1, "a power of a sum over several words")

        def powers(numbers: Sequence[int], up: int) -> list[int]:
            shifted = [number - top for number in numbers]
            floors = self.text.intervals.curves.floors(EXP, shifted)
            return [floor + (up and x != 0) for floor, x in zip(floors, shifted, strict=True)]

        if not own.parts:
            return Sum(greatest, powers([own.low], 0)[0], powers([own.high], 1)[0], {})
        parts = {w: (powers(ends[0], 0), powers(ends[1], 1)) for w, ends in own.parts.items()}
        return Sum(greatest, 0, 0, parts)

    def added(self, layer: networks.Affine, weights: Sequence[int], sums: Sequence[Sum], bias: int) -> Sum:
        q, scale = self.text.q, layer.size_scale
        middle = bias * scale << q
        low = high = 0
        columns: dict[int, tuple[list[int], list[int]]] = {}
        for w, each in zip(weights, sums, strict=True):
            ends = (each.low, each.high) if w > 0 else (each.high, each.low)
            low, high = low + w * ends[0], high + w * ends[1]
            for word, part in each.parts.items():
                own = columns.setdefault(word, ([0] * len(part[0]), [0] * len(part[0])))
                for side in (0, 1):
                    given = part[side if w > 0 else 1 - side]
                    own[side][:] = [x + w * y for x, y in zip(own[side], given, strict=True)]
        parts = {
            word: ([x // scale for x in lows], [ceiling(x, scale) for x in highs])
            for word, (lows, highs) in columns.items()
        }
        below = scale * layer.bias_scale
        low, high = (low * layer.bias_scale + middle) // below, ceiling(high * layer.bias_scale + middle, below)
        return Sum(sums[0].shift, low, high, parts)

    def multiplied(self, one: Sum, other: Sum) -> Sum | None:
        """Of sums over one word at most, the same."""
        words = {*one.parts, *other.parts}
        if len(words) > 1 or (one.parts and (one.low or one.high)) or (other.parts and (other.low or other.high)):
            return None

        def ends(low: int, high: int, least: int, most: int) -> Ends:
            found = low * least, low * most, high * least, high * most
            return min(found) >> self.text.q, -(-max(found) >> self.text.q)

        if not words:
            return Sum(one.shift, *ends(one.low, one.high, other.low, other.high), {})
        word = words.pop()
        count = len(self.options[word])
        both = [each.parts.get(word, ([each.low] * count, [each.high] * count)) for each in (one, other)]
        lows, highs = zip(*map(ends, *both[0], *both[1]), strict=True)
        return Sum(one.shift, 0, 0, {word: ([*lows], [*highs])})
