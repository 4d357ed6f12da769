"""Checks swap certificates (FORMAT.md, version 2) with exact integers and nothing but the standard library.

    python -I -S proofs/check.py RUN                a run folder, or one certificate file

This file is the kernel of what has to be trusted. It knows nothing of ONNX: lower.py beside it reads the model and
writes it as a *canonical network*, bytes that any other reader must write as well; a certificate names their hash.
exact_network.py reads these bytes, and the leaves of networks with products and curves are in smooth_leaves.py, with
smooth_intervals.py, smooth_blocks.py and enclosures.py, in attention_leaf.py, and in expansion/; sums/ holds what adds
up. This file believes no number it can compute, says `accepted N of N` as its very last act and leaves with 0.
Otherwise it leaves with 4 (something was refused) or 2 (nothing to check).

To be read from top to bottom, after exact_network.py: sentences, the linear recipe (FORMAT section 7), the float32
level (8), the tree (5 and 6), the certificate (3), files (2).

For producers: `lower.read_model` once, then `check_certificate` for each certificate; both raise `Refused` or
`Unusable`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import compress
from math import inf
from operator import add, mul, sub
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

if TYPE_CHECKING or __package__:
    from . import attention_leaf as attention
    from . import exact_network as networks
    from . import expansion as room
    from . import lower as lowering
    from . import smooth_blocks, smooth_intervals, sums
    from . import smooth_leaves as leaves

    expansion = room.expansion_leaf
    swap_gains = sums.swap_gains
else:
    names = "lower exact_network sums/swap_gains sums/packed_columns sums/weighted_sums enclosures smooth_blocks"
    names += " smooth_intervals smooth_leaves attention_sums attention_leaf expansion/expansion_costs"
    names += " expansion/expansion_leaf"
    for name in names.split():
        path, name = Path(__file__).parent / f"{name}.py", name.rpartition("/")[2]
        beside = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(beside)
        beside.loader.exec_module(sys.modules[name])
    lowering, networks, attention = [sys.modules[name] for name in ("lower", "exact_network", "attention_leaf")]
    expansion, swap_gains = sys.modules["expansion_leaf"], sys.modules["swap_gains"]
    smooth_blocks, smooth_intervals, leaves = [
        sys.modules[f"smooth_{name}"] for name in ("blocks", "intervals", "leaves")
    ]

Refused, Unusable = lowering.Refused, lowering.Unusable
"""The certificate does not prove what it claims; there is nothing to check, or a model outside the format."""
require, need, in_time, sha256 = lowering.require, lowering.need, lowering.in_time, lowering.sha256

Network = networks.Network
Layer = networks.Layer
Embedding = networks.Embedding
Affine = networks.Affine
Rectifier = networks.Rectifier
Maximum = networks.Maximum
Reach = networks.Reach
Terms = networks.Terms
sources_of, substitute = networks.sources_of, networks.substitute

relaxed, SLOPE_BITS = swap_gains.relaxed, swap_gains.SLOPE_BITS

USUAL_PRECISION, WITNESS_PRECISION = 32, 64
"""In bits, in smooth networks: where no node sets another, and of witnesses."""
PRECISIONS = range(16, 65)
GRID = 64
"""Bounds of elements, and all that is said about float32, are integers in units of 2**-GRID, rounded safely."""
HEAVY = 1 << 40 + GRID
"""The most that may enter a float32 sum, in units of 2**-GRID."""

# Limits (FORMAT section 9).
MAX_CERTIFICATE = 1 << 26
MAX_FILE = 1 << 31
MAX_POSITIONS = 1 << 16
MAX_OPTIONS = 1_000_000
MAX_CLASSES = 1024
MAX_LEARNED = 1 << 22
MAX_KEPT = 1 << 22
SECONDS = 3600.0

NO_FLOAT32 = "no float32 claim is possible"

# ------------------------------------------------------------------------------------------------------------- bounds

Bounds = tuple[int, int]
"""The least and the greatest that a number can be, in units of 2**-GRID."""
Ends = Callable[[Layer], Sequence[Bounds]]
"""Bounds of what a nonlinear layer reads."""


def ceiling(above: int, below: int) -> int:
    """above / below, rounded up."""
    return -(-above // below)


def grid(number: int, scale: int) -> Bounds:
    """number / scale, rounded down and up to multiples of 2**-GRID."""
    return (number << GRID) // scale, ceiling(number << GRID, scale)


# ---------------------------------------------------------------------------------------------------------- sentences

Function = tuple[tuple[int, int], ...]
"""Affine in the words: the sum of c times the number of a slot, but for a constant."""
Members = list[tuple[int, int, int]]
"""Of a joint group: slots of the x, and a <= b, for the sum of max(a x, b x)."""
Ratio = tuple[int, int]
"""A number, and the scale that it is over."""
Word = tuple[int, Sequence[Sequence[int]]]
"""The position a word starts at, and its options, the original first."""


class Sentences:
    """Those that pick an option out of a mask for every word, and have at most so many swaps.

    Words with a mask that lacks options are `forced` to be swapped if it lacks the original, else `limited`; there is
    `room` for so many swaps besides those forced.
    """

    def __init__(self, space: Space, swaps: int, masks: tuple[int, ...]) -> None:
        self.space, self.swaps, self.masks = space, swaps, masks
        lacking = [(i, mask) for i, mask in enumerate(masks) if mask != space.masks[i]]
        self.forced = [(i, mask) for i, mask in lacking if not mask & 1]
        self.limited = [(i, mask) for i, mask in lacking if mask & 1]
        self.lacking = frozenset([i for i, _ in lacking])
        self.room = swaps - len(self.forced)
        self.empty = self.room < 0
        self.known: dict[int, Bounds] = {}

    def count(self) -> int:
        """The coefficients up to x**swaps of the product of (1 if the original is there) + (other options) x."""
        able = len(self.masks) - self.masks.count(1)
        require(able * min(able, self.swaps) <= 10**7, "too many words to count sentences")
        counts = [1]
        for own, others in [(mask & 1, (mask >> 1).bit_count()) for mask in self.masks if mask != 1]:
            counts = [own * n + others * m for n, m in zip([*counts, 0], [0, *counts], strict=True)][: self.swaps + 1]
        total = sum(counts)
        require(total.bit_length() <= 16_000, "2**16000 sentences or more")
        return total

    def element(self, slot: int) -> Bounds:
        """Bounds of an element of the cut."""
        if slot not in self.known:
            low, high = -self.space.maximum(self, ((slot, -1),)), self.space.maximum(self, ((slot, 1),))
            scale = self.space.scales[slot]
            self.known[slot] = grid(low, scale)[0], grid(high, scale)[1]
        return self.known[slot]


@dataclass(frozen=True)
class Region:
    """What a node of the tree has to prove, and what is set above it: slopes, heights and joint groups by element,
    precision."""

    masks: tuple[int, ...]
    rivals: tuple[int, ...]
    depth: int = 0
    slopes: dict[int, int] = field(default_factory=dict)
    joint: dict[int, tuple[int, int]] = field(default_factory=dict)
    precision: int = USUAL_PRECISION

    def child(self, **news: Any) -> Region:
        return replace(self, depth=self.depth + 1, **news)


NOWHERE = Region((), ())
"""For bounds that hold whatever a node sets."""


class Box(NamedTuple):
    """Bounds of what every nonlinear layer reads, of elements, and what is to be known of windows.

    That is the place in `sources` of the first with the greatest low bound, and whether it is the greatest of the
    window for certain; `lines` has what bounds the element of a maximum otherwise, and of a rectifier with a height.
    """

    inputs: dict[Layer, Sequence[Bounds]]
    known: dict[int, Bounds]
    picks: dict[Layer, list[tuple[int, bool]]]
    lines: dict[int, swap_gains.Line]


class Space:
    """The words of one text seen by one network: shared by all leaves of a certificate.

    `text` has the original integers of all positions. `shifts[i][slot]` is what each option of word i adds to the
    number of a slot, and `movers[slot]` has the same for every word that moves it.
    """

    def __init__(self, network: Network, words: Sequence[Word], label: int, text: Sequence[int], stop: float = inf):
        self.network, self.words, self.label, self.stop = network, words, label, stop
        require(len(text) == network.positions, f"the network has {network.positions} positions")
        self.masks = tuple([(1 << len(options)) - 1 for _, options in words])
        self.tokens = [{token} for token in text]
        for start, options in words:
            for p, tokens in enumerate(zip(*options, strict=True), start):
                self.tokens[p].update(tokens)
        self.values = network.start()
        network.evaluate(network.earlier, self.values, text)
        self.base = [self.values[i] for i in network.cut]
        self.scales = [network.owner[i].scale for i in network.cut]
        self.reach = network.reached = network.reached or Reach(network, stop)
        self.effects = 0
        self.shifts = list(map(self.shifts_of, words))
        self.movers: list[list[tuple[int, list[int]]]] = [[] for _ in network.cut]
        for i, shifts in enumerate(self.shifts):
            for slot, added in shifts.items():
                self.movers[slot].append((i, added))
        self.known_rules: dict[tuple[int, bool], smooth_intervals.Intervals] = {}
        self.known_enumerations: dict[tuple[int, bool], leaves.Enumeration] = {}
        self.known_attention: dict[int, attention.Attention] = {}
        self.counted = swap_gains.Counted(self)
        # Rules ask for the sentences of one region several times, and leaves for the same functions of the words.
        self.sentences = lru_cache(1)(partial(Sentences, self))
        self.rises = lru_cache(1 + MAX_LEARNED // (1 + sum([len(options) for _, options in words])))(self.learn)

    def shifts_of(self, word: Word) -> dict[int, list[int]]:
        """For the slots that a word moves, what each option adds: the sum over its positions."""
        start, options = word
        found: dict[int, list[int]] = {}
        if len(options) > 1:
            for p, tokens in enumerate(zip(*options, strict=True), start):
                kernels = self.reach.kernels.get(p, {})
                self.effects += len(kernels) * len(options)
                require(self.effects <= 1 << 25, "too many options for a network of this size")
                rows = [self.reach.looked_up(p, token) for token in tokens]
                deltas = [list(map(sub, row, rows[0])) for row in rows]
                for slot, kernel in kernels.items():
                    added = [sum(map(mul, kernel, delta)) for delta in deltas]
                    found[slot] = list(map(add, found[slot], added)) if slot in found else added
        return found

    def swapped(self, vector: list[int], i: int, option: int) -> list[int]:
        """The numbers of the cut when word i is swapped."""
        vector = vector.copy()
        for slot, added in self.shifts[i].items():
            vector[slot] += added[option]
        return vector

    def judged(self, vector: list[int], rivals: Sequence[int], float32: bool) -> int:
        """Of the sentence with these numbers of the cut: 1, no rival beats the label; -1, one does; 0, not certain."""
        network, values, rounding = self.network, self.values, self.rounding if float32 else None
        for i, number in zip(network.cut, vector, strict=True):
            values[i] = number
        network.evaluate(network.later, values)
        logits = [values[i] * factor for i, factor in zip(network.logits, network.factors, strict=True)]
        margins = {r: (logits[self.label] - logits[r]) << GRID for r in rivals}
        if rounding is None:
            return 1 if all(margin > 0 or (margin == 0 and self.label < r) for r, margin in margins.items()) else -1

        def exact(layer: Layer) -> list[Bounds]:
            return [grid(values[i], network.owner[i].scale) for i in sources_of(layer)]

        errors = {r: rounding.between(rounding.whole, self.label, r) * network.scale for r in rivals}
        for local in (False, True):
            if local:
                found = rounding.of_logits(network.later, exact)
                errors = {r: min(e, rounding.between(found, self.label, r) * network.scale) for r, e in errors.items()}
            if all(margins[r] > errors[r] for r in rivals):
                return 1
            if any(-margins[r] > errors[r] for r in rivals):
                return -1
        return 0

    @cached_property
    def rounding(self) -> Rounding:
        """For level float32; refused where no such claim is possible."""
        return Rounding(self.network, self.tokens)

    # ---- smooth networks (FORMAT section 15)

    @cached_property
    def blocks(self) -> smooth_blocks.Blocks:
        return smooth_blocks.Blocks(self.network, self.words)

    def ruled(self, precision: int, kernel: bool) -> smooth_intervals.Intervals:
        """Intervals of elements, at this precision and level."""
        key = precision, kernel
        if key not in self.known_rules:
            self.known_rules[key] = smooth_intervals.Intervals(self, self.blocks, *key)
        return self.known_rules[key]

    def attention(self, precision: int) -> attention.Attention:
        """Of the last precision; what its leaves share is kept."""
        if precision not in self.known_attention:
            self.known_attention = {precision: attention.Attention(self.ruled(precision, False))}
        return self.known_attention[precision]

    def enumeration(self, precision: int, kernel: bool) -> leaves.Enumeration:
        """One sentence after the other; what they share is kept."""
        key = precision, kernel
        if key not in self.known_enumerations:
            self.known_enumerations.clear()
            self.known_enumerations[key] = leaves.Enumeration(self.ruled(*key))
        return self.known_enumerations[key]

    # ---- functions of the words

    def learn(self, *functions: Function) -> swap_gains.Rises:
        """What is to be known of the sum of these functions; the halves of a sum are used again."""
        half = len(functions) // 2
        if half:
            one, other = self.rises(*functions[:half]), self.rises(*functions[half:])
            both = {i: list(map(add, xs, other.added[i])) for i, xs in one.added.items() if i in other.added}
            return swap_gains.Rises(one.base + other.base, {**one.added, **other.added, **both})
        terms: dict[int, list[tuple[int, list[int]]]] = {}
        for slot, c in functions[0]:
            for i, column in self.movers[slot]:
                terms.setdefault(i, []).append((c, column))
        added = {}
        for i, pairs in terms.items():
            factors, columns = zip(*pairs, strict=True)
            added[i] = [sum(map(mul, factors, row)) for row in zip(*columns, strict=True)]
        return swap_gains.Rises(sum([c * self.base[slot] for slot, c in functions[0]]), added)

    def maximum(self, words: Sentences, *functions: Function) -> int:
        """The greatest sum of these functions over some sentences.

        It is that of the original, what the forced words add at least, and the greatest gains of others: as many as
        there are swaps left. Of the words with all their options only the first in the order can be among these.
        """
        rises, room = self.rises(*functions), words.room
        gains = [gain for gain, i in rises.order[: room + len(words.lacking)] if i not in words.lacking]
        gains += [rises[key] for key in words.limited]
        gains.sort(reverse=True)
        return rises.base + sum([rises[key] for key in words.forced]) + sum(gains[:room])

    def joint_rise(self, words: Sentences, members: Members) -> int:
        """The greatest sum, over (slot, a, b) with a <= b, of max(a x, b x), x being the number of the slot.

        It is the greatest of the maxima of all functions with a or b chosen for each, which are affine in the words.
        One function reaches at most what its two halves reach apart, so they are tried in the order of that.
        """
        in_time(self.stop)
        half = len(members) // 2
        firsts, seconds = self.maxima(words, members[:half]), self.maxima(words, members[half:])
        highest = self.maximum(words, *firsts[0][1], *seconds[0][1])
        for most, parts in sorted([(x + y, f + g) for x, f in firsts for y, g in seconds if x + y > highest])[::-1]:
            if most <= highest:
                break
            highest = max(highest, self.maximum(words, *parts))
        return highest

    def maxima(self, words: Sentences, members: Members) -> list[tuple[int, tuple[Function, Function]]]:
        """All functions with a or b chosen for each (slot, a, b), and the maximum of each, greatest first.

        Where x has one sign the choice is plain. Each is the sum of all a x, and of some (b - a) x, which no slope
        changes.
        """
        low_ends = tuple([(slot, off) for slot, off, _ in members])
        chosen: list[Function] = [()]
        for slot, off, on in members:
            low, high = words.element(slot)
            more = [(*function, (slot, on - off)) for function in chosen]
            chosen = more if low >= 0 else chosen if high <= 0 else chosen + more
        return sorted([(self.maximum(words, low_ends, steps), (low_ends, steps)) for steps in chosen], reverse=True)

    # ---- the linear recipe (FORMAT section 7)

    def bounds(self, words: Sentences, heights: Mapping[int, int] = swap_gains.NO_HEIGHTS) -> Box:
        """Bounds of what every nonlinear layer reads."""
        box = Box({}, {}, {}, {})
        for layer in self.network.nonlinear:
            here = box.inputs[layer] = self.inputs_of(layer, words, box)
            found: list[Bounds] = []
            if isinstance(layer, Rectifier):
                for low, high in here:
                    above = high if high > 0 else ceiling(high * layer.p, layer.q)
                    found.append((low if low > 0 else low * layer.p // layer.q, above))
            elif isinstance(layer, Maximum):
                box.picks[layer] = []
                for top, window in enumerate(layer.windows, layer.start):
                    lows, highs = zip(*here[window.start : window.stop], strict=True)
                    at = lows.index(max(lows))
                    certain = max([*highs[:at], *highs[at + 1 :]], default=lows[at]) <= lows[at]
                    found.append((lows[at], max(highs)))
                    box.picks[layer].append((window.start + at, certain))
                    box.lines[top] = swap_gains.Line(lows[at], (max(highs), {}))
            for top in [i for i in heights if 0 <= i - layer.start < layer.size]:
                low, high = found[top - layer.start]
                line = self.counted.line(words, top, low, high, heights[top])
                if line is not None:
                    box.lines[top], found[top - layer.start] = line, (line.low, high)
            box.known.update(enumerate(found, layer.start))
        return box

    def inputs_of(self, layer: Layer, words: Sentences, box: Box) -> Sequence[Bounds]:
        return [self.bounds_of(i, words, box) for i in sources_of(layer)]

    def bounds_of(self, i: int, words: Sentences, box: Box) -> Bounds:
        """Bounds of an element, those of the nonlinear layers before it being known."""
        layer = self.network.owner[i]
        if not layer.depth:
            return words.element(self.network.slot[i])
        if i not in box.known:
            low, low_scale = self.minimum({i: 1}, layer.scale, words, box, NOWHERE)
            high, high_scale = self.minimum({i: -1}, layer.scale, words, box, NOWHERE)
            box.known[i] = low // low_scale, -(high // high_scale)
        return box.known[i]

    def margin(self, winner: int, loser: int, words: Sentences, box: Box, region: Region) -> Ratio:
        """A bound from below of z_winner - z_loser, as (number, scale) in units of the grid."""
        network, function = self.network, dict.fromkeys(self.network.logits, 0)
        function[network.logits[winner]] += network.factors[winner]
        function[network.logits[loser]] -= network.factors[loser]
        return self.minimum(function, network.scale, words, box, region)

    def minimum(self, function: dict[int, int], scale: int, words: Sentences, box: Box, region: Region) -> Ratio:
        """(number, below): number / below, in units of the grid, is at most sum of function[i] numbers[i] / scale.

        By backward substitution, with the slopes and the joint groups of the region. Coefficients are over `below`,
        which has SLOPE_BITS for each nonlinear layer on the way, so that no slope leaves a remainder.
        """
        in_time(self.stop)
        network, constant = self.network, 0
        shift = SLOPE_BITS * max([network.owner[i].depth for i in function])
        groups: dict[int, Members] = {}
        more: list[tuple[int, swap_gains.Gains]] = []

        def define(top: int, c: int) -> Terms | None:
            """Terms that c times an element is at least, but for the constant."""
            nonlocal constant
            layer = network.owner[top]
            at = top - layer.start
            if not layer.depth:
                return None
            if isinstance(layer, Affine):
                row = layer.rows[at]
                constant += c * row.bias << GRID
                return zip(layer.lists[row.read], [c * weight for weight in row.weights], strict=True)
            if not isinstance(layer, Maximum | Rectifier):
                raise Refused("a layer of which nothing is known")
            together = c < 0 and top in region.joint
            if isinstance(layer, Maximum):
                at, alone = box.picks[layer][at]
            else:
                low, high = box.inputs[layer][at]
                alone = together or low >= 0 or high <= 0
            line = box.lines.get(top)
            side = None if alone or line is None else line.below if c > 0 else line.above
            if side is not None:
                constant += c * layer.scale * side[0]
                more.append((abs(c) * layer.scale, side[1]))
                return ()
            source, own = layer.sources[at], c * layer.factors[at]
            if isinstance(layer, Maximum):
                return [(source, own)]
            if together:
                group, slope = region.joint[top]
                a = layer.q * slope << (SLOPE_BITS - 6)
                off, on = [-own * ((end << SLOPE_BITS) - a) >> SLOPE_BITS for end in (layer.p, layer.q)]
                groups.setdefault(group, []).append((network.slot[source], off, on))
            else:
                a, rest = relaxed(layer, c, low, high, region.slopes.get(top))
                constant += c * layer.scale * rest // (layer.q << SLOPE_BITS)
            return [(source, own * a >> SLOPE_BITS)]

        found = substitute({i: c << shift for i, c in function.items() if c}, define)
        falls = tuple([(network.slot[i], -c) for i, c in sorted(found.items())])
        rises = sum([self.joint_rise(words, members) for members in groups.values()])
        return constant - (rises << GRID) - self.counted.maximum(words, falls, more), scale << shift


# -------------------------------------------------------------------------------------------------- the float32 level


class Rounding:
    """Rounding errors of every float32 evaluation (FORMAT section 8), in units of 2**-GRID.

    For every element x: `magnitudes` A >= |x|, `errors` e >= |float32 result - x|, and `roundings` n, which is 0 for
    elements that are not affine. `whole` has the errors of the logits for all sentences.
    """

    def __init__(self, network: Network, tokens: Sequence[set[int]]) -> None:
        require(not network.no_float32, f"{NO_FLOAT32}: {network.no_float32}")
        self.network, self.tokens, size = network, tokens, len(network.owner)
        ends = [grid(number, network.owner[0].scale) for number in network.constants]
        self.magnitudes = [max(-low, high) for low, high in ends] + [0] * (size - len(ends))
        self.errors, self.roundings = [0] * size, [0] * size

        def whole(layer: Layer) -> list[Bounds]:
            sizes = self.magnitudes
            return [ends[i] if i < len(ends) else (-sizes[i], sizes[i]) for i in sources_of(layer)]

        self.whole = self.of_logits(network.layers, whole, True)

    def of_logits(self, layers: Iterable[Layer], bounds: Ends, first: bool = False) -> list[int]:
        """Errors of the logits, given bounds of what nonlinear layers read; the first time, the limits are checked."""
        for layer in layers:
            here = slice(layer.start, layer.start + layer.size)
            if isinstance(layer, Affine):
                self.affine(layer, first)
            elif isinstance(layer, Embedding):
                rows = [map(layer.row, self.tokens[p]) for p in layer.positions]
                columns = [column for found in rows for column in zip(*found, strict=True)]
                self.magnitudes[here] = [ceiling(max(map(abs, column)) << GRID, layer.scale) for column in columns]
            elif isinstance(layer, Maximum):
                ends, given = bounds(layer), [self.errors[i] for i in layer.sources]
                cut = [slice(window.start, window.stop) for window in layer.windows]
                held = [zip(*ends[window], strict=True) for window in cut]
                self.magnitudes[here] = [max(-max(lows), max(highs)) for lows, highs in held]
                self.errors[here] = [max(given[window]) for window in cut]
            elif isinstance(layer, Rectifier):
                ends, given = bounds(layer), [self.errors[i] for i in layer.sources]
                sizes = [max(-low if layer.p else 0, high) for low, high in ends]
                self.magnitudes[here] = sizes
                if layer.p:
                    reach = list(map(add, sizes, given))
                    require(not first or max(reach) <= HEAVY, f"{NO_FLOAT32}: the input of a LeakyRelu is too large")
                    grown = [(e << 32) + 4 * 257 * x for e, x in zip(given, reach, strict=True)]
                    self.errors[here] = [ceiling(e, 1 << 32) + 1 for e in grown]
                else:
                    self.errors[here] = [e if high + e > 0 else 0 for (_, high), e in zip(ends, given, strict=True)]
        return [self.errors[i] for i in self.network.logits]

    def affine(self, layer: Affine, first: bool) -> None:
        """A sum of products may be one with the sums that it reads: n = K + 3 + N roundings, on terms that sum to T.

        Sums that it adds as they are may go on from one another: N counts all of these, and the longest of the others.
        """
        exact = [[self.magnitudes[i] for i in elements] for elements in layer.lists]
        carried = [[self.errors[i] for i in elements] for elements in layer.lists]
        reach = [list(map(add, *both)) for both in zip(exact, carried, strict=True)]
        heavy = [max(each, default=0) > HEAVY for each in reach]
        inner = [[self.roundings[i] for i in elements] for elements in layer.lists]
        inner = [found if any(found) else [] for found in inner]
        scale, unit = layer.scale, layer.scale // layer.size_scale
        for at, row in enumerate(layer.rows, layer.start):
            terms, bias = list(map(mul, row.sizes, reach[row.read])), abs(row.bias) << GRID
            n = len(terms) - terms.count(0) + 3
            if inner[row.read]:
                known = [
                    (x, w == layer.size_scale)
                    for x, w, term in zip(inner[row.read], row.sizes, terms, strict=True)
                    if term
                ]
                n += sum([x for x, plain in known if plain]) + max([x for x, plain in known if not plain], default=0)
            total = sum(terms) * unit + bias
            if first:
                light = max(row.sizes, default=0) <= layer.size_scale << 40 and bias <= scale * HEAVY
                require(light, f"{NO_FLOAT32}: weights are too large")
                used = compress(reach[row.read], row.sizes) if heavy[row.read] else ()
                fits = n <= 65_280 and total <= scale * HEAVY and max(used, default=0) <= HEAVY
                require(fits, f"{NO_FLOAT32}: terms, their sums or their number are too large")
            grown = (sum(map(mul, row.sizes, carried[row.read])) * unit << 32) + n * 257 * total
            self.magnitudes[at] = ceiling(sum(map(mul, row.sizes, exact[row.read])) * unit + bias, scale)
            self.errors[at] = ceiling(grown, scale << 32) + 1
            self.roundings[at] = n

    def between(self, errors: Sequence[int], label: int, rival: int) -> int:
        """How far the difference of two float32 logits can be from the real one."""
        return errors[label] + errors[rival] + 1


# ----------------------------------------------------------------------------------------------------------- the tree


class Tree:
    """Reads a proof tree in preorder and proves every leaf; the children of a split are made here.

    With `counting` leaves may be open or broken: `open` and `broken` count the sentences in them.
    """

    def __init__(
        self, space: Space, data: bytes, rivals: Sequence[int], swaps: int, level: str, counting: bool = False
    ):
        self.space, self.data, self.at = space, data, 0
        self.rivals, self.swaps, self.counting = tuple(rivals), swaps, counting
        self.rounding, self.kernel = space.rounding if level == "float32" else None, level == "kernel"
        self.rules = SMOOTH_RULES if space.network.smooth else RULES
        self.enumerated = self.open = self.broken = 0
        self.root = Region(space.masks, self.rivals)

    def check(self) -> None:
        """Refused unless every leaf proves what it must."""
        stack, nodes = [self.root], 0
        while stack:
            region = stack.pop()
            nodes += 1
            require(nodes <= 5_000_000 and region.depth <= 100_000, "the tree is too large or too deep")
            held = len(region.masks) + len(region.slopes) + len(region.joint)
            require(len(stack) * held <= 1 << 23, "too many regions wait while they hold so much")
            in_time(self.space.stop)
            kind = self.byte()
            require(kind in self.rules, f"tree byte {kind} is not in version 2, or not for such a network")
            stack += reversed(self.rules[kind](self, region) or [])
        require(self.at == len(self.data), "bytes after the end of the tree")

    # ---- bytes

    def byte(self) -> int:
        require(self.at < len(self.data), "the tree ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """LEB128: seven bits a byte, the lowest first."""
        start = self.at
        while self.byte() > 127:
            require(self.at < start + 5, "a number in the tree is too large")
        found = self.data[start : self.at]
        value = sum([(byte & 127) << 7 * place for place, byte in enumerate(found)])
        minimal = found[-1] > 0 or len(found) == 1
        require(minimal and value < 1 << 31, "a number in the tree is not minimal or too large")
        return value

    def mask(self, bits: int) -> int:
        """A bit for each option, or rival, the lowest for the first."""
        value = int.from_bytes(bytes([self.byte() for _ in range((bits + 7) // 8)]), "little")
        require(value < 1 << bits, "a mask with bits beyond its options")
        return value

    def rectifier(self, kinds: Any = Rectifier) -> Any:
        """Named by its place among all layers; where `kinds` are more, it may be one of these."""
        index, layers = self.number(), self.space.network.layers
        layer = layers[index] if index < len(layers) else None
        require(isinstance(layer, kinds), f"layer {index} is not a rectifier, nor a maximum where a table may name one")
        return layer

    def values(self, most: int, highest: int, kinds: Any = Rectifier) -> tuple[Layer, dict[int, int]]:
        """A layer, and some of its elements, which ascend, with a value for each."""
        layer, count, i = self.rectifier(kinds), self.number(), -1
        found: dict[int, int] = {}
        require(0 < count <= min(most, layer.size), f"{count} elements of a layer")
        for _ in range(count):
            step = self.number()
            require(i < 0 or step > 0, "indices must ascend")
            i = max(i, 0) + step
            require(i < layer.size, "an element out of range")
            found[layer.start + i] = value = self.number()
            require(value <= highest, "a value out of range")
        return layer, found

    def table(self, highest: int, least: int = 1, kinds: Any = Rectifier) -> dict[int, int]:
        """Values for elements of several rectifiers, which ascend."""
        count, last = self.number(), -1
        found: dict[int, int] = {}
        require(count >= least, "an empty table")
        for _ in range(count):
            layer, values = self.values(1 << 31, highest, kinds)
            require(layer.start > last, "a table out of order")
            last = layer.start
            found.update(values)
        return found

    # ---- splits and settings

    def split_words(self, region: Region) -> list[Region]:
        """The first child keeps the chosen options of one word, the second its others."""
        i, masks = self.number(), region.masks
        require(i < len(masks) and self.space.masks[i] > 1, f"word {i} has nothing to split")
        chosen = self.mask(self.space.masks[i].bit_length())
        sides = chosen, masks[i] & ~chosen
        require(chosen & ~masks[i] == 0 and all(sides), f"a split of word {i} that splits nothing")
        return [region.child(masks=(*masks[:i], side, *masks[i + 1 :])) for side in sides]

    def split_rivals(self, region: Region) -> list[Region]:
        """The first child keeps the chosen rivals, the second the others."""
        chosen = self.mask(len(self.rivals))
        named = tuple([r for i, r in enumerate(self.rivals) if chosen >> i & 1])
        others = tuple([r for r in region.rivals if r not in named])
        require(set(named) <= set(region.rivals) and named and others, "a split of rivals that splits nothing")
        return [region.child(rivals=side) for side in (named, others)]

    def set_slopes(self, region: Region) -> list[Region]:
        """Slopes of lower lines, and heights of maxima, in 64ths, with stairs; those set above stay."""
        found = self.table(swap_gains.HIGHEST, kinds=Rectifier | Maximum)
        fits = [self.space.counted.may(*each) for each in found.items()]
        require(all(fits), "a value out of range, or a height of an element that does not count swaps")
        return [region.child(slopes={**region.slopes, **found})]

    def set_joint(self, region: Region) -> list[Region]:
        """Joint groups, each element with the slope of its line, in 64ths; those set above go."""
        joint: dict[int, tuple[int, int]] = {}
        for group in range(self.number()):
            layer, values = self.values(8, 64)
            require(layer.depth == 1, "joint groups need pre-activations that are affine in the words")
            require(joint.keys().isdisjoint(values), "an element in two joint groups")
            joint.update({element: (group, slope) for element, slope in values.items()})
        return [region.child(joint=joint)]

    def set_precision(self, region: Region) -> list[Region]:
        """Bits of the numbers below."""
        bits = self.number()
        require(bits in PRECISIONS, f"a precision of {bits} bits")
        return [region.child(precision=bits)]

    # ---- leaves

    def linear(self, region: Region) -> None:
        """The label beats every rival, by the linear recipe."""
        self.prove(region, [(self.space.label, rival) for rival in region.rivals])

    def leave_open(self, region: Region) -> None:
        """Nothing is said of these sentences."""
        require(self.counts(region), "an open leaf where none is allowed")
        self.open += self.sentences(region).count()

    def break_all(self, region: Region) -> None:
        """One rival beats the label in all of these sentences, by the linear recipe."""
        rival = self.number()
        require(self.counts(region), "a broken leaf where none is allowed")
        require(rival in region.rivals, f"class {rival} is no rival")
        self.prove(region, [(rival, self.space.label)])
        self.broken += self.sentences(region).count()

    def counts(self, region: Region) -> bool:
        """Sentences may be counted as open or broken here: no rivals node lies above."""
        return self.counting and region.rivals == self.rivals

    def sentences(self, region: Region) -> Sentences:
        return self.space.sentences(self.swaps, region.masks)

    def prove(self, region: Region, pairs: list[tuple[int, int]]) -> None:
        """In every sentence of the region the first class of each pair beats the second."""
        space, words, rounding, local = self.space, self.sentences(region), self.rounding, None
        if words.empty:
            return
        box = space.bounds(words, region.slopes)
        for winner, loser in pairs:
            number, below = space.margin(winner, loser, words, box, region)
            proved = number > 0 or (number == 0 and winner < loser)
            if rounding:
                proved = number > rounding.between(rounding.whole, winner, loser) * below
                if not proved:
                    local = local or rounding.of_logits(space.network.later, box.inputs.__getitem__)
                    proved = number > rounding.between(local, winner, loser) * below
            shown = f"class {winner} against {loser}, margin {number * 1000 // (below << GRID)}/1000 at least"
            require(proved, f"a linear leaf does not hold: {shown}")

    def enumerate(self, region: Region) -> None:
        """Every sentence is evaluated by itself: exactly, or in a smooth network by intervals."""
        space, words = self.space, self.sentences(region)
        self.enumerated += words.count()
        require(self.enumerated <= 20_000_000, "too many sentences to enumerate")
        if words.empty:
            return
        free = [(i, mask) for i, mask in enumerate(region.masks) if mask & 1 and mask != 1]
        order = words.forced + free
        swapped: Callable[..., list[int]] = space.swapped
        judged: Callable[..., int] = partial(space.judged, float32=self.rounding is not None)
        original = space.base
        if space.network.smooth:
            swapped, original = with_option, [0] * len(space.words)
            judged = space.enumeration(region.precision, self.kernel).judged
        # Where in the order to go on, the numbers of the cut or the options, and the swaps left.
        stack = [(0, original, self.swaps)]
        while stack:
            at, vector, left = stack.pop()
            in_time(space.stop)
            if at < len(order):
                i, mask = order[at]
                options = [option for option in range(1, mask.bit_length()) if mask >> option & 1] if left else []
                stack += [(at + 1, swapped(vector, i, option), left - 1) for option in options]
                stack += [(at + 1, vector, left)] * (mask & 1)
                continue
            found = judged(vector, region.rivals)
            require(found > 0 or self.counts(region), "an enumerated sentence is not safe")
            self.broken += found < 0
            self.open += found == 0

    def boxes(self, region: Region) -> None:
        """The label beats every rival, by intervals for every number of swaps; segments of layers depend on a word."""
        space, free = self.space, 0
        segments = []
        for _ in range(self.number()):
            first, layers, word = free + self.number(), self.number(), self.number()
            free = first + layers
            fits = layers > 0 and free <= len(space.network.layers) and word < len(space.words)
            require(fits, "a segment that is empty, or beyond the layers or words")
            segments.append(leaves.Segment(first, layers, word))
        if not self.sentences(region).empty:
            boxes = leaves.Boxes(space.ruled(region.precision, self.kernel), region.masks, self.swaps, segments)
            require(boxes.proved(region.rivals), "a boxes leaf does not hold")

    def attend(self, region: Region) -> None:
        """The label beats every rival, by what single swaps do and what they do together."""
        require(not self.kernel, "an attention leaf at another level than real")
        if not self.sentences(region).empty:
            leaf = self.space.attention(region.precision)
            require(leaf.proved(region.masks, self.swaps, region.rivals), "an attention leaf does not hold")

    def expand(self, region: Region) -> None:
        """The label beats every rival, by the margin expanded at one sentence; chains of layers tell swaps apart."""
        reach, chains = self.number(), expansion.chains_of(self.number, len(self.space.network.layers))
        if not self.sentences(region).empty:
            rules = self.space.ruled(region.precision, self.kernel)
            leaf = expansion.Expansion(rules, region.masks, self.swaps, reach, chains)
            require(leaf.proved(region.rivals), "an expansion leaf does not hold")


def with_option(options: list[int], i: int, option: int) -> list[int]:
    return [*options[:i], option, *options[i + 1 :]]


RULES: dict[int, Callable[[Tree, Region], list[Region] | None]] = {
    1: Tree.linear,
    2: Tree.enumerate,
    3: Tree.leave_open,
    4: Tree.split_words,
    7: Tree.split_rivals,
    8: Tree.set_slopes,
    10: Tree.set_joint,
    16: Tree.break_all,
}
"""By the first byte of a node: what it proves, or which children it has."""
SMOOTH_RULES: dict[int, Callable[[Tree, Region], list[Region] | None]] = {
    **{byte: RULES[byte] for byte in (2, 3, 4, 7)},
    11: Tree.set_precision,
    24: Tree.boxes,
    25: Tree.attend,
    26: Tree.expand,
}
"""The same in the tree of a smooth network."""


# ---------------------------------------------------------------------------------------------------- the certificate

# Patterns: an expression for strings; a range of integers; a value itself; a list of one pattern for an array of any
# length; a tuple for an array of as many; a dictionary for an object with these keys.
HASH = re.compile("[0-9a-f]{64}")
NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
DECIMAL = re.compile("0|[1-9][0-9]{0,4816}")
NUMBER_OF_FILE = re.compile("([0-9]{6})[.]json")
BASE64 = re.compile("[A-Za-z0-9+/=]*")
INTEGER = range(1 << 31)
LEVEL, RECIPE = re.compile("real|float32|kernel"), re.compile("linear-2|smooth-1")
TREE = {"level": LEVEL, "recipe": RECIPE, "swaps": range(10**6 + 1), "tree": BASE64}
FILE = {"file": NAME, "sha256": HASH}
CHECKED_ELSEWHERE = {"swapproof ball certificate": "check_ball.py", "swapproof box certificate": "check_box.py"}
CERTIFICATE = {
    "format": "swapproof certificate",
    "version": 2,
    "id": range(1 << 63),
    "model": {**FILE, "tensors": [(NAME, HASH)]},
    "network": HASH,
    "vocabulary": FILE,
    "text": HASH,
    "synonyms": HASH,
    "inputs": [(re.compile("words|constant"), [INTEGER])],
    "words": [(range(MAX_POSITIONS), [[INTEGER]])],
    "label": range(MAX_CLASSES),
    "rivals": [range(MAX_CLASSES)],
    "lower": TREE,
    "count": {**TREE, "robust": DECIMAL, "broken": DECIMAL, "total": DECIMAL},
    "upper": {
        "levels": [re.compile("real|float32|kernel|replay")],
        "swaps": [(range(MAX_POSITIONS), range(MAX_POSITIONS))],
    },
}
MAY_BE_NULL = ("vocabulary", "synonyms", "lower", "count", "upper")


def expect(value: Any, pattern: Any, what: str) -> None:
    """The value is as the pattern says."""
    if isinstance(pattern, dict):
        fits = type(value) is dict and value.keys() == pattern.keys()
        require(fits, f"{what} must have exactly the keys {sorted(pattern)}")
        for name, inner in pattern.items():
            if value[name] is not None or name not in MAY_BE_NULL:
                expect(value[name], inner, name)
    elif isinstance(pattern, list | tuple):
        require(type(value) is list, f"{what} must be an array")
        inners = pattern if isinstance(pattern, tuple) else pattern * len(value)
        require(len(value) == len(inners), f"{what} must be an array of {len(inners)}")
        for item, inner in zip(value, inners, strict=True):
            expect(item, inner, what)
    elif isinstance(pattern, re.Pattern):
        require(type(value) is str and pattern.fullmatch(value), f"{what} is {value!r:.40}, not as it should be")
    elif isinstance(pattern, range):
        if type(value) is not int or value not in pattern:
            raise Refused(f"{what} is {value!r:.40}, not an integer from {pattern[0]} to {pattern[-1]}")
    else:
        require(type(value) is type(pattern) and value == pattern, f"{what} is {value!r:.40}, not {pattern}")


def parse_canonical(data: bytes) -> Any:
    """The value of canonical JSON (FORMAT section 2).

    What may stand in strings, that numbers are integers, that true and false are not there, and the depth of nesting
    are left to `expect`.
    """
    require(len(data) <= MAX_CERTIFICATE, "the certificate is too large")
    require(sum(map(data.count, (b"[", b"{", b","))) <= 4 * MAX_OPTIONS, "the certificate has too many parts")
    try:
        value = json.loads(data.decode("ascii"))
        canonical = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except UnicodeDecodeError:
        raise Refused("the certificate is not ASCII") from None
    except (ValueError, RecursionError):
        raise Refused("the certificate is not JSON, is nested deeply, or has a number of thousands of digits") from None
    require(data == canonical, "the certificate is not in canonical form")
    return value


class Count(NamedTuple):
    """Of `total` sentences with at most `swaps` swaps, at least these many are robust, and at least these broken."""

    swaps: int
    level: str
    robust: int
    broken: int
    total: int


@dataclass(frozen=True)
class Verdict:
    """An accepted certificate in numbers, and what it says in one plain sentence."""

    id: int
    low: int
    high: int | None
    level: str | None
    witness_levels: tuple[str, ...]
    sentence: str
    count: Count | None = None


def read_certificate(data: bytes) -> dict[str, Any]:
    """The object of a certificate: its keys and values of the right kinds, its words within its inputs."""
    top: dict[str, Any] = parse_canonical(data)
    for other, checker in CHECKED_ELSEWHERE.items():
        require(type(top) is not dict or top.get("format") != other, f"a {other}, which {checker} checks")
    expect(top, CERTIFICATE, "a certificate")
    names = [name for name, _ in top["model"]["tensors"]]
    require(names == sorted(set(names)), "tensor files must ascend")
    require(top["lower"] or top["count"] or top["upper"], "a certificate that claims nothing")
    inputs = top["inputs"]
    require(all(tokens for _, tokens in inputs), "an input without positions")
    require(any(role == "words" for role, _ in inputs), "no input holds words")
    text = [token for _, tokens in inputs for token in tokens]
    require(len(text) <= MAX_POSITIONS, "too many positions")
    within = [number for number, (role, tokens) in enumerate(inputs) for _ in tokens]
    integers, free = 0, 0
    for start, options in top["words"]:
        require(options and options[0], "a word without options, or without integers")
        end = start + len(options[0])
        integers += len(options) * len(options[0])
        require(len(options) <= MAX_POSITIONS and integers <= MAX_OPTIONS, "too many options")
        require(all(len(option) == end - start for option in options), "options of a word differ in length")
        require(len(set(map(tuple, options))) == len(options), "a word lists an option twice")
        require(start >= free and end <= len(text), "words overlap, do not ascend, or reach beyond the text")
        require(within[start] == within[end - 1], "a word reaches over two inputs")
        require(inputs[within[start]][0] == "words", "a word in an input that is constant")
        require(text[start:end] == options[0], "the first option of a word is not what its input says")
        free = end
    return top


def check_certificate(
    data: bytes, model: lowering.Model, vocabulary_sha256: str | None = None, seconds: float = SECONDS
) -> Verdict:
    """Check one certificate against a model; the caller has hashed the vocabulary file, if there is one.

    Raises Refused when the certificate does not prove its claims, Unusable when the model is outside the format.
    """
    return check_claims(read_certificate(data), model, vocabulary_sha256, time.monotonic() + seconds)


NETWORKS: dict[str, Network] = {}
"""By hash: certificates of texts of one length share them."""


def network_of(top: dict[str, Any], model: lowering.Model, stop: float) -> Network:
    """The network that the certificate names must be what the model is for its inputs and words."""
    lowered = model.lower(top["inputs"], top["words"], stop)
    require(lowered.sha256 == top["network"], "made for another network: its SHA-256 differs")
    if lowered.sha256 not in NETWORKS:
        if sum([len(network.owner) for network in NETWORKS.values()]) > MAX_KEPT:
            NETWORKS.clear()
        NETWORKS[lowered.sha256] = Network(lowered.data, lowered.numbers, lowered.no_float32)
    return NETWORKS[lowered.sha256]


def check_claims(top: dict[str, Any], model: lowering.Model, vocabulary_sha256: str | None, stop: float) -> Verdict:
    """As `check_certificate`, of a certificate that has been read."""
    label, rivals, vocabulary = top["label"], top["rivals"], top["vocabulary"]
    require(top["model"]["sha256"] == model.sha256, "made for another model: the SHA-256 differs")
    require(dict(top["model"]["tensors"]) == model.tensors, "made for other external tensors")
    require(vocabulary is None or vocabulary["sha256"] == vocabulary_sha256, "made for another vocabulary")
    network = network_of(top, model, stop)
    classes = len(network.logits)
    require(max(label, *rivals, 0) < classes, f"label and rivals must be below {classes}")
    require(rivals and rivals == sorted(set(rivals)) and label not in rivals, "impossible rivals")
    lower, count, upper = top["lower"], top["count"], top["upper"]
    recipe, foreign = ("smooth-1", "float32") if network.smooth else ("linear-2", "kernel")
    for part in filter(None, (lower, count)):
        require(part["recipe"] == recipe, f"the recipe {part['recipe']} for a network of {recipe}")
    levels = [part["level"] for part in (lower, count) if part] + (upper["levels"] if upper else [])
    require(foreign not in levels, f"the level {foreign} for a network of {recipe}")
    require(not lower or not count or count["swaps"] > lower["swaps"], "a count that adds nothing to lower")
    space = Space(network, top["words"], label, [token for _, tokens in top["inputs"] for token in tokens], stop)
    if lower:
        read_tree(lower, space, rivals).check()
    counted = check_count(count, read_tree(count, space, rivals, counting=True)) if count else None
    if upper:
        check_witness(upper, space, rivals)
    require(not lower or not upper or len(upper["swaps"]) > lower["swaps"], "upper and lower contradict each other")
    return verdict_of(top, classes, counted)


def verdict_of(top: Mapping[str, Any], classes: int, count: Count | None) -> Verdict:
    """What was found to hold."""
    lower, upper, rivals = top["lower"], top["upper"], top["rivals"]
    against = "the class" if len(rivals) == classes - 1 else f"the class to one of {rivals}"
    parts: list[str] = []
    low, high = lower["swaps"] + 1 if lower else 0, len(upper["swaps"]) if upper else None
    if lower:
        able = sum([len(options) > 1 for _, options in top["words"]])
        extent = "however many swaps" if low > able else f"at most {swaps(lower['swaps'])}"
        parts.append(f"no sentence with {extent} changes {against} ({lower['level']})")
    if count:
        extent = f"of the {top['count']['total']} sentences with at most {swaps(count.swaps)}"
        found = f"{top['count']['robust']} do not change {against}, {top['count']['broken']} do"
        rest = "; the others are open" if count.robust + count.broken < count.total else ""
        parts.append(f"{extent}, {found} ({count.level}{rest})")
    if upper:
        how = ", ".join(["replay as recorded, not checked" if name == "replay" else name for name in upper["levels"]])
        found = f"a sentence with {swaps(high)} changes it" if high else "the text itself is answered wrongly"
        parts.append(f"{found} ({how})")
    if low == high and upper["levels"] != ["replay"] and (not high or len(rivals) == classes - 1):
        parts.append(f"min_swaps = {high}")
    sentence = f"text {top['id']}, class {top['label']}: " + "; ".join(parts)
    level, levels = lower and lower["level"], tuple(upper["levels"]) if upper else ()
    return Verdict(top["id"], low, high, level, levels, sentence, count)


def swaps(number: int) -> str:
    return f"{number} swap" if number == 1 else f"{number} swaps"


def decimal(number: int) -> str:
    """Python itself refuses to write more than 4,300 digits."""
    return str(number) if number < 10**4000 else str(number // 10**4000) + str(number % 10**4000).zfill(4000)


# ---- the three claims


def read_tree(entry: dict[str, Any], space: Space, rivals: list[int], counting: bool = False) -> Tree:
    try:
        data = base64.b64decode(entry["tree"], validate=True)
    except ValueError:
        raise Refused("the tree is not base64") from None
    require(base64.b64encode(data).decode() == entry["tree"], "the tree is not canonical base64")
    return Tree(space, data, rivals, entry["swaps"], entry["level"], counting)


def check_count(entry: dict[str, Any], tree: Tree) -> Count:
    """The numbers of a count claim are those of its tree."""
    tree.check()
    total = tree.sentences(tree.root).count()
    count = Count(entry["swaps"], entry["level"], total - tree.broken - tree.open, tree.broken, total)
    for name, number in (("total", total), ("broken", count.broken), ("robust", count.robust)):
        require(entry[name] == decimal(number), f"the number of sentences {name} is another")
    return count


def check_witness(entry: dict[str, Any], space: Space, rivals: list[int]) -> None:
    """A rival beats the label when these words are swapped, at every level named but replay, which is not checked."""
    levels = entry["levels"]
    ordered = [name for name in ("real", "float32", "kernel", "replay") if name in levels]
    require(levels and levels == ordered, "impossible levels")
    vector, last, options = space.base, -1, [0] * len(space.words)
    for i, option in entry["swaps"]:
        require(last < i < len(space.words), "words of a witness must ascend, and be words of the text")
        require(0 < option < len(space.words[i][1]), f"option {option} is no swap of word {i}")
        options[i] = option
        vector, last = space.swapped(vector, i, option), i
    if space.network.smooth:
        for name in ("real", "kernel"):
            found = name in levels and space.enumeration(WITNESS_PRECISION, name == "kernel").judged(options, rivals)
            require(name not in levels or found < 0, f"the witness changes nothing for certain ({name})")
        return
    if "real" in levels:
        require(space.judged(vector, rivals, False) < 0, "the witness changes nothing over the reals")
    if "float32" in levels:
        require(space.judged(vector, rivals, True) < 0, "the witness is within the float32 rounding error")


# -------------------------------------------------------------------------------------------------- files and folders


def read_file(path: Path, limit: int) -> bytes:
    """At most so many bytes and one more, by which its reader sees that there are too many."""
    try:
        need(path.is_file(), f"{path} cannot be read: there is no such regular file")
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None


class Files:
    """The files of a run folder; models are parsed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models: dict[tuple[str, ...], lowering.Model] = {}

    def model(self, bound: dict[str, Any]) -> lowering.Model:
        names = bound["file"], *[name for name, _ in bound["tensors"]]
        if names not in self.models:
            data, *tensors = [read_file(self.folder / name, MAX_FILE) for name in names]
            require(sha256(data) == bound["sha256"], "made for another model: the SHA-256 differs")
            self.models[names] = lowering.read_model(data, dict(zip(names[1:], tensors, strict=True)))
        return self.models[names]

    def check(self, path: Path, seconds: float) -> tuple[Verdict, bytes]:
        data = read_file(path, MAX_CERTIFICATE)
        top = read_certificate(data)
        numbered = NUMBER_OF_FILE.fullmatch(path.name)
        require(numbered is None or int(numbered[1]) == top["id"], f"the file is {path.name}, its id {top['id']}")
        bound = top["vocabulary"]
        vocabulary = sha256(read_file(self.folder / bound["file"], MAX_FILE)) if bound else None
        return check_claims(top, self.model(top["model"]), vocabulary, time.monotonic() + seconds), data


def folder_of(path: Path) -> Path:
    """The run folder of a certificate."""
    parent = path.absolute().parent
    return parent.parent if parent.name == "certificates" else parent


def check_file(path: Path | str, seconds: float = SECONDS) -> Verdict:
    """Check one certificate file with the files beside it (or beside its folder `certificates`)."""
    return Files(folder_of(Path(path))).check(Path(path), seconds)[0]


def merkle_root(leaves: Sequence[tuple[str, bytes]]) -> str:
    """Over (file name, bytes), in the order given; FORMAT section 2."""
    level = [hashlib.sha256(b"\0" + name.encode() + b"\n" + data).digest() for name, data in leaves]
    while len(level) > 1:
        paired = [hashlib.sha256(b"\1" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()


def check_run(path: Path, seconds: float, say: Callable[[str], None]) -> tuple[int, int]:
    """(accepted, all) certificates of a run folder or of one file."""
    folder, found, held = folder_of(path), [path], path / "certificates"
    if path.is_dir():
        need(held.is_dir(), f"{path} holds no folder `certificates`")
        folder, found = path, sorted([item for item in held.iterdir() if item.name.endswith(".json")])
        named = found and all(NUMBER_OF_FILE.fullmatch(item.name) for item in found)
        need(named, f"{held} holds no certificates, or files that are none")
    files, leaves = Files(folder), []
    for item in found:
        try:
            verdict, data = files.check(item, seconds)
        except Unusable:
            raise
        except Exception as error:
            met = "" if isinstance(error, Refused) else f"the checker met {type(error).__name__}: "
            say(f"refused {item.name}: {met}{error}")
        else:
            say(f"{item.name}: {verdict.sentence}")
            leaves.append((item.name, data))
    if path.is_dir() and len(leaves) == len(found):
        root = merkle_root(leaves)
        say(f"Merkle root {root}")
        stated = held / "root"
        if (stated.exists() or stated.is_symlink()) and read_file(stated, 65) != root.encode() + b"\n":
            say(f"refused: {stated} says another Merkle root")
            return 0, len(found)
    return len(leaves), len(found)


def main(arguments: list[str]) -> int:
    """Exit code 0 after `accepted N of N`; 4 when something was refused; 2 when there is nothing to check."""

    def say(line: str, stream: TextIO = sys.stdout) -> None:
        print(line.encode("ascii", "backslashreplace").decode(), flush=True, file=stream)

    seconds = SECONDS
    if len(arguments) == 3 and arguments[0] == "--seconds" and re.fullmatch("[0-9]{1,9}", arguments[1]):
        seconds, arguments = float(arguments[1]), arguments[2:]
    try:
        usable = len(arguments) == 1 and not arguments[0].startswith("--")
        need(usable, "usage: check.py [--seconds S] RUN_OR_FILE")
        accepted, total = check_run(Path(arguments[0]), seconds, say)
    except Unusable as error:
        say(f"check.py: {error}", sys.stderr)
        return 2
    if accepted != total:
        say(f"refused {total - accepted} of {total}")
        return 4
    say(f"accepted {accepted} of {total}")
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except OSError:  # what was to be said could not be written; nor could what is left of it at the usual end
        os._exit(2)
    sys.exit(code)
