"""The leaf `attention` of smooth networks (FORMAT.md, section 17): what single moves do, and what moves do together.

    Attention(intervals).proved(masks, swaps, rivals)           all sentences of a region

This file is trusted, as check.py is, which loads it. Standard library only, exact integers only: x stands for x 2**-q.
What cannot be proved raises `Refused`, or is not proved. Order: forms, secants, views of a region, the leaf.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, repeat
from math import isqrt
from operator import add, mul, neg
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING or __package__:
    from . import attention_sums as sums
    from . import enclosures, onnx_file
    from . import exact_network as networks
    from . import smooth_blocks as blocks_of_network
    from . import smooth_intervals as rules
else:
    enclosures, networks, onnx_file = [sys.modules[name] for name in ("enclosures", "exact_network", "onnx_file")]
    blocks_of_network, rules = [sys.modules[f"smooth_{name}"] for name in ("blocks", "intervals")]
    sums = sys.modules["attention_sums"]

require, in_time = onnx_file.require, onnx_file.in_time
ceiling = rules.ceiling
EXP, TANH, SIGMOID, ERF, RECIPROCAL, SQRT = range(1, 7)
ERF_SLOPE = 1_128_379_167, 1_128_379_168, 10**9
"""2 / sqrt(pi) lies between the first two over the third."""
MAX_SYMBOLS = 1 << 16
PACKED = 4
"""So many rows with one list are multiplied at once."""
SLOT = 512
"""Bits of a number where many are packed in one."""
Ends = sums.Ends
Moves = sums.Moves

# -------------------------------------------------------------------------------------------------------------- forms


class Form(NamedTuple):
    """What a number is with no move and what each move adds; then coefficients 2**-q times symbols; but for an error.

    Symbols are what moves do together: with one move at most they are not there.
    """

    centre: int
    gains: list[int]
    coefficients: dict[int, int]
    error: int


Added = tuple[list[int], list[int]]
"""The least and the greatest that something adds, for each move."""


class Below(NamedTuple):
    """Of a denominator D: with each move alone; its least; and, in units of 2**-3q, the ends of 1 / D less 1 / each."""

    each: list[int]
    least: int
    lows: list[int]
    highs: list[int]


class Symbol(NamedTuple):
    """The sum over the moves of a number for each, packed, times 1 / D - 1 / (D with that move alone), D at `below`.

    Without `below` it is any number up to that sum in magnitude.
    """

    below: int | None
    packed: int
    size: int


class Bounded(NamedTuple):
    """An affine function of the moves, below and above: what it is without any, and what each adds."""

    low: int
    high: int
    lows: list[int]
    highs: list[int]


def pack(numbers: Sequence[int]) -> int:
    require(max(map(abs, numbers), default=0).bit_length() <= SLOT // 2 - 8, "what moves add is too large")
    return sum([number << SLOT * at for at, number in enumerate(numbers)])


# -------------------------------------------------------------------------------------------------------------- secants

# The slope between two points of a curve is (f(x) - f(origin)) / (x - origin), and the derivative where they are one.


def rectifier_slopes(q: int, p: int, scale: int, origin: int, low: int, high: int) -> Ends:
    """It does not fall in x, since the function is convex."""

    def slope(x: int, at_zero: int) -> tuple[int, int]:
        if x == origin:
            return (scale if x > 0 else p if x < 0 else at_zero), scale
        y, z = [max(x * scale, x * p) for x in (x, origin)]
        return (y - z, scale * (x - origin)) if x > origin else (z - y, scale * (origin - x))

    (a, b), (c, d) = slope(low, p), slope(high, scale)
    return (a << q) // b, ceiling(c << q, d)


def curve_slopes(curves: enclosures.Curves, function: int, origin: int, low: int, high: int) -> Ends:
    one = 1 << curves.q
    if function == RECIPROCAL:
        return -ceiling(one**3, low * origin), -(one**3 // (high * origin))
    if function == SQRT:
        least = isqrt(low * one) + isqrt(origin * one)
        return one * one // (isqrt(high * one) + isqrt(origin * one) + 2), ceiling(one * one, least)
    low, high = min(low, origin), max(high, origin)
    floors = curves.floors(function, [low, high])
    if function == EXP:
        return floors[0], floors[1] + 1
    return slopes_of(curves, function, low, high, [floors[0], 0, floors[1]])


def curve_values(curves: enclosures.Curves, function: int, numbers: list[int]) -> list[int]:
    """Rounded down."""
    q = curves.q
    if function == RECIPROCAL:
        require(min(numbers) > 0, f"1/x where x may be 0 or less, at precision {q}")
        return [(1 << 2 * q) // x for x in numbers]
    if function == SQRT:
        require(min(numbers) > 0, f"the root of what may be 0 or less, at precision {q}")
        return [isqrt(x << q) for x in numbers]
    require(function != EXP or max(numbers) <= 28 << q, f"exp of more than 28 at precision {q}")
    return curves.floors(function, numbers)


def slopes_of(curves: enclosures.Curves, function: int, low: int, high: int, floors: list[int]) -> Ends:
    """The least and the greatest slope of tanh, sigmoid or erf."""
    q, one = curves.q, 1 << curves.q
    if function == SIGMOID:
        ends = [x * (one - x) for x in (max(floors[0], 0), min(floors[2] + 1, one))]
        inside = 2 * floors[0] <= one <= 2 * floors[2] + 2
        return min(ends) >> q, one >> 2 if inside else ceiling(max(ends), one)
    low, high = (floors[0], floors[2] + 1) if function == TANH else (low, high)
    far, near = max(-low, high), 0 if low <= 0 <= high else min(abs(low), abs(high))
    if function == TANH:
        return one - ceiling(far * far, one), one - (near * near >> q)
    least, most = curves.floors(EXP, [-ceiling(far * far, one), -(near * near >> q)])
    return ERF_SLOPE[0] * least // ERF_SLOPE[2], ceiling(ERF_SLOPE[1] * (most + 1), ERF_SLOPE[2])


# --------------------------------------------------------------------------------------------------- views of a region


class View(sums.Meanings):
    """Forms of elements."""

    def __init__(self, text: Attention, options: Sequence[tuple[int, ...]], free: frozenset[int], room: int) -> None:
        super().__init__(text, options, free, room)
        self.whole = text
        self.places = {move: at for at, move in enumerate(self.moves)}
        self.symbols: list[Symbol] = []
        self.forms: dict[int, Form] = {}
        self.belows: dict[int | None, Below] = {}
        self.ranges: dict[int, Ends] = {}
        self.beyonds: dict[int, Added] = {}
        self.inner: dict[tuple[int, int], View] = {}
        self.total = 0
        """Of the sizes of symbols."""

    def given(self, word: int, option: int) -> View:
        """The sentences of these in which a word has its option of this place."""
        if (word, option) not in self.inner:
            in_time(self.text.space.stop)
            options = [own if w != word else own[option : option + 1] for w, own in enumerate(self.options)]
            room = self.room - (option > 0 and word not in self.free)
            view = self.inner[word, option] = View(self.whole, options, self.free, room)
            view.conditions = False
        return self.inner[word, option]

    def learn(self, elements: Iterable[int]) -> None:
        """What these elements mean here, and all that they are computed from, layer by layer."""
        waiting, needed = [*elements], set[int]()
        while waiting:
            i = waiting.pop()
            if i not in needed and i not in self.meanings:
                needed.add(i)
                waiting.extend(self.sources(i))
        of_layers = groupby(sorted(needed), lambda i: self.text.network.owner[i])
        for layer, group in of_layers:
            forms = []
            for i in group:
                found = self.meaning(i)
                if found is None:
                    forms.append(i)
                else:
                    self.meanings[i] = found
            if forms:
                require(layer.depth, "no layer")
                FORMS[type(layer)](self, layer, forms)

    # ---- symbols

    def below(self, at: int | None) -> Below:
        if at not in self.belows:
            q, count = self.text.q, len(self.moves)
            found = Below([1 << q] * count, 1 << q, [0] * count, [0] * count)
            if at is not None:
                whole, one = self.meanings[at], 1 << 4 * q
                require(isinstance(whole, sums.Sum), "no sum")
                floor = whole.low + sum([min(lows) for lows, _ in whole.parts.values()])
                require(floor > 0, f"a denominator that may be 0, at precision {q}")
                down, up = [self.differences(whole, side) for side in (0, 1)]
                low, high = whole.first
                each = [low + x for x in down]
                lows = [max(floor, x + y) for x, y in zip(each, self.beside(down), strict=True)]
                highs = [high + x - y for x, y in zip(up, self.beside([*map(neg, up)]), strict=True)]
                least = [one // x - ceiling(one, y) for x, y in zip(highs, each, strict=True)]
                most = [ceiling(one, x) - one // y for x, y in zip(lows, each, strict=True)]
                found = Below(each, max(floor, low + self.least(down)), least, most)
            self.belows[at] = found
        return self.belows[at]

    def differences(self, whole: sums.Sum, side: int) -> list[int]:
        """What each move adds to the lows, or the highs."""
        found = []
        for w, o in self.moves:
            part = whole.parts.get(w)
            found.append(part[side][o] - part[side][0] if part else 0)
        return found

    def opened(self, i: int) -> Form:
        """Of what is not a form: a sum, a quotient, an element of an own word."""
        meaning, q, nothing = self.meanings[i], self.text.q, [0] * len(self.moves)
        if isinstance(meaning, sums.Inner):
            found = self.of_word(meaning.word, [(i, 1)])
            low, high, lows, highs = found.low >> q, ceiling(found.high, 1 << q), found.lows, found.highs
            ends = [(x >> q, ceiling(y, 1 << q)) for x, y in zip(lows, highs, strict=True)]
            gains = [x + y >> 1 for x, y in ends]
            sizes = [max(y - g, g - x, 0) for (x, y), g in zip(ends, gains, strict=True)]
            error = (high - low + 1 >> 1) + 1
            if self.most <= 1:
                return Form(low + high >> 1, gains, {}, error + max(sizes, default=0))
            return Form(low + high >> 1, gains, {self.noise(sizes): 1 << q}, error)
        require(isinstance(meaning, sums.Sum | sums.Quotient), "a part of a quotient that is read by itself")
        above, at = (meaning.above, meaning.below) if isinstance(meaning, sums.Quotient) else (meaning, None)
        if at is None and not above.parts and above.shift is None:
            return Form(above.low, nothing, {}, above.high - above.low)
        whole = self.meanings[at] if at is not None else sums.Sum(None, 1 << q, 1 << q, {})
        require(isinstance(whole, sums.Sum) and above.shift == whole.shift, "powers that nothing divides")
        below = self.below(at)
        (low, high), (least, most) = above.first, whole.first
        ratio = (low << q) // least
        slack = low - (ratio * least >> q) + high - low + ceiling(abs(ratio) * (most - least), 1 << q) + 1
        slack += self.most * (above.width + ceiling(abs(ratio) * whole.width, 1 << q) + 1)
        error = ceiling(slack << q, below.least) + self.most
        pairs = zip(self.differences(above, 0), self.differences(whole, 0), strict=True)
        moves = [n - (ratio * d >> q) for n, d in pairs]
        gains = [(m << q) // d for m, d in zip(moves, below.each, strict=True)]
        if at is None:
            return Form(ratio, gains, {}, error)
        least_of_each, most_of_each = self.together_with(at, moves, 3 * q)
        size = -min(self.least(least_of_each), self.least([*map(neg, most_of_each)]))
        if self.most <= 1:
            return Form(ratio, gains, {}, error + size + 1)
        return Form(ratio, gains, {self.new_symbol(Symbol(at, pack(moves), size + 1)): 1 << q}, error)

    def together_with(self, at: int | None, moves: Sequence[int], bits: int) -> Added:
        """A number for each move, times the ends of 1 / D less 1 / each, in units finer than 2**-4q by so many bits."""
        below = self.below(at)
        ends = [*zip(moves, below.lows, below.highs, strict=True)]
        lows = [m * (x if m > 0 else y) >> bits for m, x, y in ends]
        return lows, [-(-m * (y if m > 0 else x) >> bits) for m, x, y in ends]

    def new_symbol(self, symbol: Symbol) -> int:
        require(len(self.symbols) < MAX_SYMBOLS, "too many symbols")
        self.symbols.append(symbol)
        self.total += symbol.size
        return len(self.symbols) - 1

    def noise(self, sizes: list[int]) -> int:
        """A new symbol of these sizes."""
        return self.new_symbol(Symbol(None, pack(sizes), -self.least([*map(neg, sizes)])))

    # ---- forms

    def form(self, i: int) -> Form:
        if i not in self.forms:
            found = self.meanings[i]
            self.forms[i] = found if isinstance(found, Form) else self.opened(i)
        return self.forms[i]

    @property
    def lost(self) -> int:
        """What a form can lose by rounding its centre, gains and coefficients."""
        return (self.total >> self.text.q) + self.most + 2

    def beyond(self, coefficients: Mapping[int, int]) -> Added:
        """What the symbols of a form can add for each move, in units of 2**-2q."""
        q, count, totals = self.text.q, len(self.moves), dict[int | None, int]()
        require(sum(map(abs, coefficients.values())).bit_length() < SLOT // 2, "coefficients that are too large")
        for number, c in coefficients.items():
            symbol = self.symbols[number]
            totals[symbol.below] = totals.get(symbol.below, 0) + (abs(c) if symbol.below is None else c) * symbol.packed
        lows, highs = [0] * count, [0] * count
        for at, total in totals.items():
            numbers = rules.weighted.fields_of(count, SLOT).unpacked(total)
            ends = ([*map(neg, numbers)], numbers) if at is None else self.together_with(at, numbers, 3 * q)
            lows, highs = list(map(add, lows, ends[0])), list(map(add, highs, ends[1]))
        return lows, highs

    def beyond_of(self, i: int) -> Added:
        if i not in self.beyonds:
            self.beyonds[i] = self.beyond(self.form(i).coefficients)
        return self.beyonds[i]

    def bounded(self, form: Form, ends: Added) -> Bounded:
        """In units of 2**-2q, the form being in units of 2**-q; `ends` are what its symbols add."""
        q, gains = self.text.q, [gain << self.text.q for gain in form.gains]
        lows, highs = [list(map(add, gains, side)) for side in ends]
        return Bounded(form.centre - form.error << q, form.centre + form.error << q, lows, highs)

    def together(self, pairs: Moves) -> Bounded:
        """Of the sum of coefficients times elements."""
        self.learn([i for i, _ in pairs])
        by_word, forms = dict[int, Moves](), []
        for i, c in pairs:
            meaning = self.meanings[i]
            if isinstance(meaning, sums.Inner):
                by_word.setdefault(meaning.word, []).append((i, c))
            else:
                forms.append((c, self.form(i)))
        whole = self.sum_of(forms)
        low, high, lows, highs = self.bounded(whole, self.beyond(whole.coefficients))
        for word, each in by_word.items():
            found = self.of_word(word, each)
            low, high = low + found.low, high + found.high
            lows, highs = list(map(add, lows, found.lows)), list(map(add, highs, found.highs))
        return Bounded(low, high, lows, highs)

    def sum_of(self, pairs: Iterable[tuple[int, Form]]) -> Form:
        """Not rounded."""
        centre, error, gains, coefficients = 0, 0, [0] * len(self.moves), dict[int, int]()
        for factor, form in pairs:
            centre, error = centre + factor * form.centre, error + abs(factor) * form.error
            gains = list(map(add, gains, map(mul, repeat(factor), form.gains)))
            for at, c in form.coefficients.items():
                coefficients[at] = coefficients.get(at, 0) + factor * c
        return Form(centre, gains, coefficients, error)

    def of_word(self, word: int, pairs: Moves) -> Bounded:
        """Of elements of an own word: with its first option as that view has it, and what its moves add to that."""
        views = [self.given(word, option) for option in range(len(self.options[word]))]
        first, *others = [view.together(pairs) for view in views]
        lows, highs = [0] * len(self.moves), [0] * len(self.moves)
        for move, low, high in zip(views[0].moves, first.lows, first.highs, strict=True):
            lows[self.places[move]], highs[self.places[move]] = low, high
        for option, (view, found) in enumerate(zip(views[1:], others, strict=True), 1):
            at = [views[0].places[move] for move in view.moves]
            less = [x - first.lows[i] for x, i in zip(found.lows, at, strict=True)]
            more = [first.highs[i] - x for x, i in zip(found.highs, at, strict=True)]
            lows[self.places[word, option]] = found.low - first.low + view.least(less)
            highs[self.places[word, option]] = found.high - first.high - view.least(more)
        return Bounded(first.low, first.high, lows, highs)

    def range(self, i: int) -> Ends:
        """The least and the greatest that an element can be."""
        if i not in self.ranges:
            layer, meaning, q = self.text.network.owner[i], self.meanings[i], self.text.q
            found = (
                self.of_word(meaning.word, [(i, 1)])
                if isinstance(meaning, sums.Inner)
                else self.bounded(self.form(i), self.beyond_of(i))
            )
            low = found.low + self.least(found.lows) >> q
            high = ceiling(found.high - self.least([*map(neg, found.highs)]), 1 << q)
            if isinstance(meaning, Form):
                read = blocks_of_network.read_by(layer, [i - layer.start])
                if not isinstance(layer, networks.Affine) or all(map(self.is_bent, read)):
                    least, most = self.text.ruled(i, {y: self.range(y) for y in read})
                    low, high = max(low, least), min(high, most)
            require(low <= high, "an empty range")
            self.ranges[i] = low, high
        return self.ranges[i]

    def is_bent(self, i: int) -> bool:
        return isinstance(self.meanings[i], Form) and not isinstance(self.text.network.owner[i], networks.Affine)

    def ranges_with(self, i: int) -> tuple[list[int], list[Ends]]:
        """For each move what symbols can add, and the range of an element in the sentences with that move."""
        q, x, (low, high) = self.text.q, self.form(i), self.range(i)
        ends = self.beyond_of(i)
        downs = [(g << q) + a for g, a in zip(x.gains, ends[0], strict=True)]
        ups = [-(g << q) - b for g, b in zip(x.gains, ends[1], strict=True)]
        found = []
        for a, b, c, d in zip(downs, ups, self.beside(downs), self.beside(ups), strict=True):
            least, most = x.centre - x.error + (a + c >> q), x.centre + x.error - (b + d >> q)
            found.append((min(max(low, least), high), max(min(high, most), low)))
        return [-(-(b if a + b > 0 else -a) >> q) for a, b in zip(*ends, strict=True)], found

    def bent(
        self, i: int, source: int, value: Callable[[list[int]], list[int]], slopes: Callable[[int, int, int], Ends]
    ) -> None:
        """f(x): `value` is f, rounded down, and `slopes` are the ends of its secants from a point to an interval."""
        q, x, one = self.text.q, self.form(source), 1 << self.text.q
        first, *others = value([x.centre, *[x.centre + gain for gain in x.gains]])
        gains = [y - first for y in others]
        low, high = slopes(x.centre, *self.range(source))
        more, ranges = self.ranges_with(source)
        if self.most <= 1:
            each = [slopes(x.centre + gain, *ends) for gain, ends in zip(x.gains, ranges, strict=True)]
            steepest = max([max(-down, up) for down, up in [(low, high), *each]])
            self.meanings[i] = Form(first, gains, {}, ceiling(steepest * x.error, one) + 2 * self.lost)
            return
        error = ceiling(max(-low, high) * x.error, one) + 2 * self.lost
        slope = low + high >> 1
        sizes = []
        for gain, own, beyond, ends in zip(x.gains, gains, more, ranges, strict=True):
            furthest = max([abs(gain * s - (own << q)) for s in slopes(x.centre, *ends)])
            sizes.append((furthest + max(high - slope, slope - low) * beyond >> q) + 2)
        inner = {at: slope * c >> q for at, c in x.coefficients.items()}
        self.meanings[i] = Form(first, gains, inner | {self.noise(sizes): one}, error)

    def affine_forms(self, layer: networks.Affine, elements: list[int]) -> None:
        q, scale, below = self.text.q, layer.size_scale, layer.size_scale * layer.bias_scale

        def list_of(i: int) -> int:
            return layer.pairs[i - layer.start][0]

        for at, group in groupby(sorted(elements, key=list_of), list_of):
            here = [*group]
            forms = [self.form(y) for y in layer.lists[at]]
            rows = [layer.weights[layer.pairs[i - layer.start][1]] for i in here]
            if len(rows) < PACKED:
                found = [self.sum_of(zip(row, forms, strict=True)) for row in rows]
            else:
                found = self.whole.multiplied(rows, forms, len(self.moves))
            for i, form in zip(here, found, strict=True):
                centre = form.centre * layer.bias_scale + (layer.biases[i - layer.start] * scale << q)
                gains = [gain // scale for gain in form.gains]
                inner = {at: c // scale for at, c in form.coefficients.items()}
                self.meanings[i] = Form(centre // below, gains, inner, ceiling(form.error, scale) + self.lost)

    def rectifier_forms(self, layer: networks.Rectifier, elements: list[int]) -> None:
        def value(numbers: list[int]) -> list[int]:
            return [x if x > 0 else x * layer.p // layer.q for x in numbers]

        def slopes(origin: int, low: int, high: int) -> Ends:
            return rectifier_slopes(self.text.q, layer.p, layer.q, origin, low, high)

        for i in elements:
            source = layer.sources[i - layer.start]
            low, high = self.range(source)
            if low >= 0:
                self.meanings[i] = self.form(source)
            elif high <= 0 and not layer.p:
                self.meanings[i] = Form(0, [0] * len(self.moves), {}, 0)
            else:
                self.bent(i, source, value, slopes)

    def maximum_forms(self, layer: networks.Maximum, elements: list[int]) -> None:
        for i in elements:
            window = layer.windows[i - layer.start]
            read = layer.sources[window.start : window.stop]
            forms, ends = [*map(self.form, read)], [*map(self.range, read)]
            best = max(range(len(read)), key=lambda at: ends[at][0])
            require(ends[best][0] > -self.text.intervals.limit, "a line that is masked whole")
            if all(high <= ends[best][0] for at, (_, high) in enumerate(ends) if at != best):
                self.meanings[i] = forms[best]
                continue
            centre = max([form.centre for form in forms])
            columns = zip(*[[form.centre + gain for gain in form.gains] for form in forms], strict=True)
            gains = [max(column) - centre for column in columns]
            inner, error = dict[int, int](), max([form.error for form in forms])
            if self.most > 1:
                sizes = []
                for gain, each in zip(gains, zip(*[self.ranges_with(y)[1] for y in read], strict=True), strict=True):
                    low, high = max([low for low, _ in each]), max([high for _, high in each])
                    sizes.append(max(high - centre - gain, centre + gain - low) + abs(gain))
                inner = {self.noise(sizes): 1 << self.text.q}
            self.meanings[i] = Form(centre, gains, inner, error)

    def product_forms(self, layer: networks.Product, elements: list[int]) -> None:
        q, one = self.text.q, 1 << self.text.q
        for i in elements:
            pair = layer.firsts[i - layer.start], layer.seconds[i - layer.start]
            x, y = map(self.form, pair)
            low, high = self.range(pair[1])
            centre = x.centre * y.centre >> q
            both = zip(x.gains, y.gains, strict=True)
            gains = [((x.centre + a) * (y.centre + b) >> q) - centre for a, b in both]
            centres = [x.centre, *[x.centre + a for a in x.gains if self.most <= 1]]
            error = ceiling(max(-low, high) * x.error + max(map(abs, centres)) * y.error, one) + 2 * self.lost
            if self.most <= 1:
                self.meanings[i] = Form(centre, gains, {}, error)
                continue
            middle = low + high >> 1
            more, (_, ranges) = self.ranges_with(pair[0])[0], self.ranges_with(pair[1])
            sizes = []
            for a, b, beyond, (least, most) in zip(x.gains, y.gains, more, ranges, strict=True):
                far = max(abs(least - y.centre - b), abs(most - y.centre - b))
                sizes.append((abs(a) * far + max(high - middle, middle - low) * beyond >> q) + 2)
            sums = self.sum_of([(middle, x), (x.centre, y)]).coefficients
            inner = {at: c >> q for at, c in sums.items()}
            self.meanings[i] = Form(centre, gains, inner | {self.noise(sizes): one}, error)

    def curve_forms(self, layer: networks.Curve, elements: list[int]) -> None:
        curves, function = self.text.intervals.curves, layer.function
        for i in elements:
            source = layer.sources[i - layer.start]
            low, high = self.range(source)
            require(low > 0 or function not in (RECIPROCAL, SQRT), "1/x, or a root, of what may be 0 or less")
            require(high <= 28 << self.text.q or function != EXP, "exp of more than 28")
            self.bent(i, source, partial(curve_values, curves, function), partial(curve_slopes, curves, function))


FORMS: dict[type[networks.Layer], Callable[[View, Any, list[int]], None]] = {
    networks.Affine: View.affine_forms,
    networks.Rectifier: View.rectifier_forms,
    networks.Maximum: View.maximum_forms,
    networks.Product: View.product_forms,
    networks.Curve: View.curve_forms,
}


# --------------------------------------------------------------------------------------------------------------- leaf


class Attention(sums.Text):
    """The leaf in regions of one text, at one precision."""

    def __init__(self, intervals: rules.Intervals) -> None:
        super().__init__(intervals)
        self.matrices: dict[tuple[int, ...], rules.weighted.Matrix] = {}

    def proved(self, masks: Sequence[int], swaps: int, rivals: Sequence[int]) -> bool:
        view = self.view(masks, swaps)
        return all(self.beats(view, rival) for rival in rivals)

    def view(self, masks: Sequence[int], swaps: int) -> View:
        free = frozenset([w for w, mask in enumerate(masks) if not mask & 1])
        options = [tuple([o for o in range(mask.bit_length()) if mask >> o & 1]) for mask in masks]
        return View(self, options, free, swaps - len(free))

    def margin(self, view: View, rival: int) -> tuple[int, int]:
        """The least, and its scale."""
        margin = self.intervals.margin(self.space.label, rival)
        elements = margin.pick([*range(len(self.network.owner))]) if margin.coefficients else ()
        found = view.together([(i, c) for i, c in zip(elements, margin.coefficients, strict=True) if c])
        low = found.low + view.least(found.lows) + (margin.constant << 2 * self.q)
        return low, margin.scale << 2 * self.q

    def beats(self, view: View, rival: int) -> bool:
        low, _ = self.margin(view, rival)
        return low > 0 or (low == 0 and self.space.label < rival)

    def multiplied(self, rows: list[list[int]], forms: Sequence[Form], moves: int) -> list[Form]:
        """The sums of forms with each row as factors."""
        key = tuple(map(id, rows))
        matrix = self.matrices[key] = self.matrices.get(key) or rules.weighted.Matrix(rows)
        numbers = [*dict.fromkeys(number for form in forms for number in form.coefficients)]
        columns = [[form.centre for form in forms], *map(list, zip(*[form.gains for form in forms], strict=True))]
        columns += [[form.coefficients.get(number, 0) for form in forms] for number in numbers]
        errors = [form.error for form in forms]
        bits = max([max(map(abs, column)) for column in [*columns, errors]]).bit_length()
        width = -(-(matrix.norm.bit_length() + bits + 2) // 64) * 64
        (weights, sizes), unpacked = matrix.columns(width), matrix.fields(width).unpacked
        found = [unpacked(sum(map(mul, column, weights))) for column in columns]
        lost = unpacked(sum(map(mul, errors, sizes)))
        return [
            Form(centre, [*rest[:moves]], dict(zip(numbers, rest[moves:], strict=True)), error)
            for (centre, *rest), error in zip(zip(*found, strict=True), lost, strict=True)
        ]
