"""Forms of cells of one structure, in float64 (FORMAT sections 17.2 and 17.3): centres, gains, symbols and errors.

Arrays are [views, rows, ...]. What is a sum over the words has its exact centre and gains; a quotient has those of what
is above, until a form reads it. Of forms rounding is counted in units of 2**-32, far above what float64 loses there;
of sums by `losses`, which are what it may have come to however steep the weights and curves below are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from swapproof.encodings.network import Floats, Indices
from swapproof.proofs import exact_network as exact

from .cell_moves import CellMoves
from .cell_plan import CUT, FAR, POWER, SEVERAL, SINGLE, Plan, Shape, TooLoose, Unfit
from .secant_slopes import Bent, needs_positive, slopes, value

UNIT = 2.0**-32
LARGEST = 2.0**12
"""Numbers beyond this are left to the exact leaf: they lose more by rounding than is counted."""
EPS = 2.0**-42
"""What computing a sum over the words loses beside what it reads has lost, for numbers of 1: far above float64, and
above the units of the exact leaf at 48 bits."""
HIDES_LESS = "a mask that hides less than it should"
SUM, SHIFTED, OPENED, QUOTIENT, FORM = "sum", "shifted", "opened", "quotient", "form"

Turns = dict[int, Floats]
"""By the row of what is below: numbers of the moves, [views, rows, moves]."""


class Symbols(NamedTuple):
    """Coefficients of noises, [views, rows, noises], and turns."""

    noises: Floats
    turns: Turns


class Cells:
    """Cells of one plan. `base`: [views, cut] numbers with the references; `gains`: [cut, moves]; `sizes`: [cut] the
    magnitudes of what these were added up from."""

    def __init__(
        self,
        shape: Shape,
        moves: CellMoves,
        plans: Sequence[Plan],
        slots: Indices,
        base: Floats,
        gains: Floats,
        sizes: Floats,
    ) -> None:
        self.shape, self.moves, self.plan = shape, moves, plans[0]
        self.elements = np.array([plan.elements for plan in plans])
        self.views, self.count, self.width = len(plans), len(self.plan.rows), len(moves)
        self.numbers = np.zeros((self.views, self.count, 1 + self.width))
        """Centre and gains."""
        self.errors = np.zeros((self.views, self.count))
        self.losses = np.zeros((self.views, self.count))
        """Of sums and what is above quotients: how far a number, alone or with a move, may be from the truth."""
        self.sunk = shape.raised[self.elements]
        """[views, rows]: raised, or a sum with what is."""
        self.kinds = [""] * self.count
        self.below = [-1] * self.count
        """What is below quotients, as a row; of sums with a shift a number below -1."""
        self.shifts: dict[tuple[int, ...], int] = {}
        """Numbers of the windows whose greatest is taken off."""
        self.held: dict[int, tuple[Symbols, int]] = {}
        """Of forms: the symbols of a group of rows, and which of these."""
        self.noises = np.zeros((self.views, 0, self.width))
        self.sizes = np.zeros(self.views)
        self.thetas: dict[int, tuple[Floats, Floats]] = {}
        self.lows = np.full((self.views, self.count), np.nan)
        self.highs = self.lows.copy()
        self.alone = (moves.most <= 1)[:, None, None]
        """Views in which one word moves at most: symbols are nothing there."""
        self.read_cut(slots, base, gains, sizes)
        by_layer: dict[int, list[int]] = {}
        for at, row in enumerate(self.plan.rows):
            if row.kind != CUT:
                by_layer.setdefault(row.layer, []).append(at)
        for number in sorted(by_layer):
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no bound
                self.compute(shape.network.layers[number], by_layer[number])
            if shape.raised.any():
                self.sink(shape.network.layers[number], by_layer[number])
            if not np.abs(self.numbers[:, by_layer[number]]).max(initial=0.0) < LARGEST:
                raise Unfit("numbers that are too large")

    def sink(self, layer: exact.Layer, rows: list[int]) -> None:
        """What hangs on raised numbers is to be far below the greatest beside it."""
        for at in rows:
            row, values = self.plan.rows[at], self.values([at])[:, 0]
            low = self.sunk[:, list(row.reads)].any(axis=1)
            if isinstance(layer, exact.Affine):
                low = self.sunk[:, at] = low | self.shape.raised[self.elements[:, at]]
                fits = (values.max(axis=1) < -FAR / 2) & (row.kind == SINGLE)
            elif isinstance(layer, exact.Maximum):
                fits = (values.min(axis=1) > 700 - FAR / 2) & (row.kind == SINGLE)
            elif row.kind == POWER:
                fits = self.values(row.reads[1:]).max(axis=(1, 2)) > 700 - FAR / 2
            else:  # exp
                fits = values.max(axis=1) == 0
            if not fits[low].all():
                raise Unfit(HIDES_LESS)

    def read_cut(self, slots: Indices, base: Floats, gains: Floats, sizes: Floats) -> None:
        cut = [at for at, row in enumerate(self.plan.rows) if row.kind == CUT]
        own = slots[self.elements[:, cut]]
        self.numbers[:, cut, 0] = np.take_along_axis(base, own, axis=1)
        self.numbers[:, cut, 1:] = gains[own] * self.moves.mask[:, None, :]
        self.losses[:, cut] = EPS * (1 + sizes[own])
        for at in cut:
            self.kinds[at] = SUM
        if not (self.values(cut).max(axis=2, initial=-np.inf)[self.sunk[:, cut]] < -FAR / 2).all():
            raise Unfit(HIDES_LESS)

    def greatest_of(self, rows: Sequence[int]) -> Floats:
        """[views, rows]: the greatest magnitude of their numbers."""
        return np.asarray(np.abs(self.values(rows)).max(axis=2) + self.losses[:, list(rows)])

    def lose(self, layer: exact.Affine, rows: Sequence[int]) -> None:
        """Of sums that are weighted."""
        read = sorted({y for at in rows for y in self.plan.rows[at].reads})
        lost = np.zeros((self.views, self.count, 1))
        lost[:, read, 0] = self.losses[:, read] + EPS * self.greatest_of(read)
        found = self.weighted(layer, rows, lost, bias=False, sizes=True)[..., 0]
        biases = self.shape.weights_of(layer).biases[self.elements[:, list(rows)] - layer.start]
        self.losses[:, list(rows)] = found + EPS * (1 + np.abs(biases))

    def lose_product(self, rows: Sequence[int], firsts: Sequence[int], seconds: Sequence[int]) -> None:
        x, y = self.greatest_of(firsts), self.greatest_of(seconds)
        lost = x * self.losses[:, list(seconds)] + y * self.losses[:, list(firsts)]
        self.losses[:, list(rows)] = lost + EPS * (1 + x * y)

    def lose_bent(self, layer: Bent, rows: Sequence[int], read: Sequence[int]) -> None:
        """By the steepest slope where x may be; that of a rectifier is at most 1."""
        x, lost = self.values(read), self.losses[:, list(read)]
        if isinstance(layer, exact.Curve):
            low, high = x.min(axis=2) - lost, x.max(axis=2) + lost
            lost = lost * np.maximum(*np.abs(slopes(layer, low, low, high)))
        self.losses[:, list(rows)] = lost + EPS * (1 + np.abs(value(layer, x)).max(axis=2))

    def compute(self, layer: exact.Layer, rows: list[int]) -> None:
        by_kind: dict[str, list[int]] = {}
        for at in rows:
            by_kind.setdefault(self.plan.rows[at].kind, []).append(at)
        if POWER in by_kind:
            self.powers(by_kind[POWER])
        if SINGLE in by_kind:
            self.singles(layer, by_kind[SINGLE])
        if SEVERAL in by_kind:
            COMPUTED[type(layer)](self, layer, by_kind[SEVERAL])

    def reads(self, rows: Sequence[int], place: int = 0) -> list[int]:
        return [self.plan.rows[at].reads[place] for at in rows]

    # ---- sums over the words

    def singles(self, layer: exact.Layer, rows: list[int]) -> None:
        """Of one word at most: the values themselves."""
        for at in rows:
            self.kinds[at] = SUM
        match layer:
            case exact.Affine():
                self.numbers[:, rows] = self.weighted(layer, rows, self.numbers)
                self.lose(layer, rows)
            case exact.Product():
                x, y = [self.values(self.reads(rows, place)) for place in (0, 1)]
                self.set_values(rows, x * y)
                self.lose_product(rows, self.reads(rows), self.reads(rows, 1))
            case exact.Maximum():
                for at in rows:
                    read = list(self.plan.rows[at].reads)
                    self.set_values([at], self.values(read).max(axis=1)[:, None])
                    self.losses[:, at] = self.losses[:, read].max(axis=1) + EPS
            case exact.Rectifier() | exact.Curve():
                self.set_values(rows, value(layer, self.values(self.reads(rows))))
                self.lose_bent(layer, rows, self.reads(rows))
            case _:
                raise Unfit("a layer of which nothing is known")

    def values(self, rows: Sequence[int]) -> Floats:
        """[views, rows, 1 + moves]: with no move, and with each alone."""
        found = self.numbers[:, list(rows)]
        found[..., 1:] += found[..., :1]
        return found

    def set_values(self, rows: Sequence[int], found: Floats) -> None:
        found[..., 1:] -= found[..., :1]
        self.numbers[:, list(rows)] = found

    def powers(self, rows: list[int]) -> None:
        """exp(x - top), top the greatest that the maximum reads can be."""
        by_window: dict[tuple[int, ...], list[int]] = {}
        for at in rows:
            by_window.setdefault(self.plan.rows[at].reads[1:], []).append(at)
        for window, here in by_window.items():
            if not all(self.kinds[at] == SUM for at in window):
                raise Unfit("a maximum of more than sums over the words")
            top = self.values(window).max(axis=(1, 2))
            read = self.reads(here)
            self.set_values(here, np.exp(self.values(read) - top[:, None, None]))
            if self.losses[:, read].max(initial=0.0) > 1:
                raise Unfit("exponents that rounding decides")
            self.losses[:, here] = 2 * self.losses[:, read] + EPS * (1 + np.abs(top)[:, None] + self.greatest_of(read))
            for at in here:
                self.kinds[at], self.below[at] = SHIFTED, -2 - self.shifts.setdefault(window, len(self.shifts))

    def groups(self, rows: Sequence[int]) -> Iterator[tuple[list[int], Indices, Indices]]:
        """Rows of an affine layer: lists of one length that are multiplied by the same weights. Yields which weights,
        places among the rows [lists, weights], and what the lists read [lists, length]."""
        by_list: dict[tuple[int, ...], list[int]] = {}
        for place, at in enumerate(rows):
            by_list.setdefault(self.plan.rows[at].reads, []).append(place)
        alike: dict[tuple[int, tuple[int, ...]], list[tuple[list[int], tuple[int, ...]]]] = {}
        for read, places in by_list.items():
            weights = tuple([self.plan.rows[rows[place]].weights for place in places])
            alike.setdefault((len(read), weights), []).append((places, read))
        for (_, own), pairs in alike.items():
            yield [*own], np.array([places for places, _ in pairs]), np.array([read for _, read in pairs])

    def weighted(
        self,
        layer: exact.Affine,
        rows: Sequence[int],
        numbers: Floats,
        bias: bool = True,
        within: Indices | None = None,
        sizes: bool = False,
    ) -> Floats:
        """Weighted sums of rows of `numbers` [views, rows, ...], the first of which have biases; `within`: where a row
        stands in them; `sizes`: by the magnitudes of the weights."""
        weights = self.shape.weights_of(layer)
        found = np.empty((self.views, len(rows), numbers.shape[2]))
        for own, places, read in self.groups(rows):
            matrix = np.array([weights.lists[of] for of in own])
            matrix = np.abs(matrix) if sizes else matrix
            at = read if within is None else within[read]
            if at.shape[1] <= 2 or matrix.shape[0] == 1:
                for row, column in zip(matrix, places.T, strict=True):
                    found[:, column] = sum([w * numbers[:, at[:, j]] for j, w in enumerate(row)])
            else:
                found[:, places] = matrix @ numbers[:, at]
        if bias:
            found[..., 0] += weights.biases[self.elements[:, list(rows)] - layer.start]
        return found

    # ---- symbols

    def symbols(self, rows: Sequence[int]) -> Symbols:
        noises = np.zeros((self.views, len(rows), self.noises.shape[1]))
        turns: Turns = {}
        groups: dict[int, tuple[Symbols, list[int], list[int]]] = {}
        for place, at in enumerate(rows):
            if at in self.held:
                symbols, own = self.held[at]
                _, places, owns = groups.setdefault(id(symbols), (symbols, [], []))
                places.append(place)
                owns.append(own)
        for symbols, places, owns in groups.values():
            noises[:, places, : symbols.noises.shape[2]] = symbols.noises[:, owns]
            for at, numbers in symbols.turns.items():
                if at not in turns:
                    turns[at] = np.zeros((self.views, len(rows), self.width))
                turns[at][:, places] = numbers[:, owns]
        return Symbols(noises, turns)

    def hold(self, rows: Sequence[int], symbols: Symbols) -> None:
        for place, at in enumerate(rows):
            self.held[at], self.kinds[at] = (symbols, place), FORM

    def added(self, symbols: Symbols) -> tuple[Floats, Floats]:
        """The ends of what symbols add for each move."""
        size = np.abs(symbols.noises) @ self.noises
        low, high = -size, size
        for at, numbers in symbols.turns.items():
            ends = [numbers * theta[:, None] for theta in self.thetas[at]]
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        return low, high

    def with_noises(self, rows: Sequence[int], symbols: Symbols, sizes: Floats) -> None:
        """The symbols of new forms, each with a noise of its own."""
        sizes = np.where(self.alone, 0.0, sizes) * self.moves.mask[:, None, :]
        first = self.noises.shape[1]
        self.noises = np.concatenate([self.noises, sizes], axis=1)
        self.sizes = self.sizes - self.moves.least(-sizes).sum(axis=1)
        noises = np.zeros((self.views, len(rows), first + len(rows)))
        noises[..., : symbols.noises.shape[2]] = symbols.noises
        each = np.arange(len(rows))
        noises[:, each, first + each] = 1.0
        self.hold(rows, Symbols(noises, symbols.turns))

    @property
    def lost(self) -> Floats:
        """[views, 1]"""
        return np.asarray(((self.sizes + self.moves.most + 2) * UNIT)[:, None])

    # ---- forms

    def open(self, rows: Sequence[int]) -> None:
        """Quotients become forms, and what is a sum stays one."""
        by_below: dict[int, list[int]] = {}
        for at in sorted({*rows}):
            if self.kinds[at] == QUOTIENT:
                by_below.setdefault(self.below[at], []).append(at)
            elif self.kinds[at] == SUM:
                self.errors[:, at] = (2 * self.moves.most + 1) * self.losses[:, at]
            elif self.kinds[at] != FORM:
                raise Unfit("powers that nothing divides")
        for below, here in by_below.items():
            whole = self.numbers[:, below]
            first, rises = whole[:, :1], whole[:, 1:]
            least = self.turn(below)
            above = self.numbers[:, here]
            ratio = above[..., :1] / first[:, None]
            numbers = above[..., 1:] - ratio * rises[:, None]
            self.numbers[:, here] = np.concatenate([ratio, numbers / (first + rises)[:, None]], axis=2)
            words = 16 * (len(self.moves.words) + 4) * (self.moves.most + 1)
            self.errors[:, here] = UNIT * words[:, None] * (1 + np.abs(ratio[..., 0])) / least
            share = np.abs(ratio[..., 0]) + np.abs(numbers).max(axis=2, initial=0.0) / least
            lost = self.losses[:, here] + (1 + share) * self.losses[:, [below]]
            self.errors[:, here] += 8 * (self.moves.most + 2)[:, None] * lost / least
            self.hold(here, Symbols(np.zeros((self.views, len(here), 0)), {below: numbers}))

    def turn(self, below: int) -> Floats:
        """The ends of 1 / D less 1 / (D with a move alone); returns the least of D, [views, 1]."""
        whole = self.numbers[:, [below]]
        first, rises = whole[..., :1], whole[..., 1:]
        floor = first[..., 0]
        if self.width:
            floor = floor + np.minimum(np.minimum.reduceat(rises, self.moves.starts, axis=-1), 0.0).sum(axis=-1)
        if not (floor > 4 * (self.moves.most + 2)[:, None] * self.losses[:, [below]]).all():
            raise TooLoose("a denominator that may be 0")
        each = first + rises
        low = np.maximum(floor[..., None], each + self.moves.beside(rises))
        high = each - self.moves.beside(-rises)
        self.thetas[below] = (1 / high - 1 / each)[:, 0], (1 / low - 1 / each)[:, 0]
        return np.asarray(np.maximum(floor, first[..., 0] + self.moves.least(rises)))

    def affine(self, layer: exact.Affine, rows: list[int]) -> None:
        biases = self.shape.weights_of(layer).biases[self.elements[:, rows] - layer.start]
        plain, forms = list[int](), list[int]()
        for at, biased in zip(rows, (biases != 0).any(axis=0), strict=True):
            read = self.plan.rows[at].reads
            kinds = {self.kinds[y] for y in read}
            below = {self.below[y] for y in read}
            one = kinds == {SUM} or (kinds in ({SHIFTED}, {QUOTIENT}) and len(below) == 1 and not biased)
            if one:
                self.kinds[at], self.below[at] = kinds.pop(), below.pop() if kinds != {SUM} else -1
            (plain if one else forms).append(at)
        if plain:
            self.numbers[:, plain] = self.weighted(layer, plain, self.numbers)
            self.lose(layer, plain)
        if forms:
            self.affine_forms(layer, forms)

    def affine_forms(self, layer: exact.Affine, rows: list[int]) -> None:
        read = sorted({y for at in rows for y in self.plan.rows[at].reads})
        self.open(read)
        symbols = self.symbols(read)
        within = np.full(self.count, -1)
        within[read] = np.arange(len(read))
        packed = np.concatenate([symbols.noises, *symbols.turns.values()], axis=2)
        found = self.weighted(layer, rows, packed, bias=False, within=within)
        cuts = [symbols.noises.shape[2] + self.width * place for place in range(len(symbols.turns))]
        noises, *turns = np.split(found, cuts, axis=2) if cuts else [found]
        self.numbers[:, rows] = self.weighted(layer, rows, self.numbers)
        errors = self.weighted(layer, rows, self.errors[..., None], bias=False, sizes=True)
        self.errors[:, rows] = errors[..., 0] + self.lost
        self.hold(rows, Symbols(noises, dict(zip(symbols.turns, turns, strict=True))))

    def bent(self, layer: Bent, rows: list[int]) -> None:
        if isinstance(layer, exact.Curve) and layer.function == exact.FUNCTIONS[4]:
            opened = [at for at in rows if self.kinds[self.reads([at])[0]] in (SUM, SHIFTED)]
            for at in opened:
                self.kinds[at], self.below[at] = OPENED, self.reads([at])[0]
            rows = [at for at in rows if self.kinds[at] != OPENED]
            if not rows:
                return
        read = self.reads(rows)
        self.open(read)
        beyond, (lows, highs) = self.ranges_with(read)
        low, high = self.lows[:, read], self.highs[:, read]
        x, gains = self.values(read), self.numbers[:, read, 1:]
        if needs_positive(layer) and not (low > 0).all():
            raise TooLoose("1/x, or a root, of what may be 0 or less")
        found = value(layer, x)
        found[..., 1:] -= found[..., :1]
        least, most = slopes(layer, x[..., 0], low, high)
        down, up = slopes(layer, x[..., :1], lows, highs)
        steepest = np.maximum(-least, most)
        if self.alone.any():
            ends = slopes(layer, x[..., 1:], lows, highs)
            each = np.maximum(-ends[0], ends[1]).max(axis=2, initial=0.0)
            steepest = np.where(self.alone[..., 0], np.maximum(steepest, each), steepest)
        errors = steepest * self.errors[:, read] + 2 * self.lost
        slope = (least + most) / 2
        furthest = np.maximum(np.abs(gains * down - found[..., 1:]), np.abs(gains * up - found[..., 1:]))
        sizes = furthest + (np.maximum(most - slope, slope - least))[..., None] * beyond
        symbols = self.symbols(read)
        factor = np.broadcast_to(slope, slope.shape)
        if isinstance(layer, exact.Rectifier):
            linear = low >= 0
            nothing = ~linear & (high <= 0) & (layer.p == 0)
            factor = np.where(linear, 1.0, np.where(nothing, 0.0, slope))
            errors = np.where(linear, self.errors[:, read], np.where(nothing, 0.0, errors))
            sizes = np.where((linear | nothing)[..., None], 0.0, sizes)
            found = np.where(linear[..., None], self.numbers[:, read], np.where(nothing[..., None], 0.0, found))
        self.numbers[:, rows], self.errors[:, rows] = found, errors
        scaled = {at: numbers * factor[..., None] for at, numbers in symbols.turns.items()}
        self.with_noises(rows, Symbols(symbols.noises * factor[..., None], scaled), sizes)

    def product(self, layer: exact.Product, rows: list[int]) -> None:
        forms = [at for at in rows if not self.is_quotient(at)]
        if not forms:
            return
        firsts, seconds = self.reads(forms), self.reads(forms, 1)
        self.open([*firsts, *seconds])
        (beyond, _), (_, (lows, highs)) = self.ranges_with(firsts), self.ranges_with(seconds)
        x, y = self.values(firsts), self.values(seconds)
        low, high = self.lows[:, seconds], self.highs[:, seconds]
        found = x * y
        found[..., 1:] -= found[..., :1]
        centre = np.where(self.alone[..., 0], np.abs(x).max(axis=2), np.abs(x[..., 0]))
        errors = np.maximum(-low, high) * self.errors[:, firsts] + centre * self.errors[:, seconds] + 2 * self.lost
        middle = (low + high) / 2
        far = np.maximum(np.abs(lows - y[..., 1:]), np.abs(highs - y[..., 1:]))
        sizes = np.abs(self.numbers[:, firsts, 1:]) * far
        sizes += np.maximum(high - middle, middle - low)[..., None] * beyond
        one, other = self.symbols(firsts), self.symbols(seconds)
        a, b = middle[..., None], x[..., :1]
        turns = {at: a * numbers for at, numbers in one.turns.items()}
        for at, numbers in other.turns.items():
            turns[at] = turns[at] + b * numbers if at in turns else b * numbers
        self.numbers[:, forms], self.errors[:, forms] = found, errors
        self.with_noises(forms, Symbols(a * one.noises + b * other.noises, turns), sizes)

    def is_quotient(self, at: int) -> bool:
        """Whether a product is of a sum and one over another, or of a quotient and a sum: that is set down."""
        pair = self.plan.rows[at].reads
        for x, y in (pair, pair[::-1]):
            if self.kinds[x] in (SUM, SHIFTED) and self.kinds[y] == OPENED:
                if self.below[x] == self.below[self.below[y]]:
                    self.numbers[:, at], self.losses[:, at] = self.numbers[:, x], self.losses[:, x]
                    self.kinds[at], self.below[at] = QUOTIENT, self.below[y]
                    return True
            elif self.kinds[x] == QUOTIENT and self.kinds[y] == SUM and self.of_one_word(x, y):
                self.set_values([at], self.values([x]) * self.values([y]))
                self.lose_product([at], [x], [y])
                self.kinds[at], self.below[at] = QUOTIENT, self.below[x]
                return True
        return False

    def of_one_word(self, x: int, y: int) -> bool:
        """Whether what is above a quotient, and a sum, move with one word at most in every view."""
        moved = (self.numbers[:, [x, y], 1:] != 0).any(axis=1)
        if not self.width:
            return True
        return bool((np.logical_or.reduceat(moved, self.moves.starts, axis=1).sum(axis=1) <= 1).all())

    def maximum(self, layer: exact.Maximum, rows: list[int]) -> None:
        raise Unfit("a maximum of what several words move")

    # ---- ranges

    def find_ranges(self, rows: Sequence[int]) -> None:
        """The least and the greatest of each, by its form and by the rule of its layer."""
        new = sorted({at for at in rows if np.isnan(self.lows[0, at])})
        if not new:
            return
        low, high = self.added(self.symbols(new))
        centre, gains, errors = self.numbers[:, new, 0], self.numbers[:, new, 1:], self.errors[:, new]
        self.lows[:, new] = centre - errors + self.moves.least(gains + low)
        self.highs[:, new] = centre + errors - self.moves.least(-(gains + high))
        for at in new:
            row = self.plan.rows[at]
            bent = [self.is_bent(y) for y in row.reads]
            if self.kinds[at] == FORM and (self.is_bent(at) or all(bent)):
                self.find_ranges(row.reads)
                least, most = self.ruled(at)
                slack = 16 * UNIT * (1 + np.maximum(np.abs(least), np.abs(most)))
                self.lows[:, at] = np.maximum(self.lows[:, at], least - slack)
                self.highs[:, at] = np.minimum(self.highs[:, at], most + slack)

    def is_bent(self, at: int) -> bool:
        layer = self.shape.network.layers[self.plan.rows[at].layer]
        return self.kinds[at] == FORM and self.plan.rows[at].kind == SEVERAL and not isinstance(layer, exact.Affine)

    def ruled(self, at: int) -> tuple[Floats, Floats]:
        """By the ranges of what it reads."""
        row = self.plan.rows[at]
        layer = self.shape.network.layers[row.layer]
        lows, highs = self.lows[:, row.reads], self.highs[:, row.reads]
        match layer:
            case exact.Affine():
                weights = self.shape.weights_of(layer)
                own, bias = weights.lists[row.weights], weights.biases[self.elements[:, at] - layer.start]
                ends = lows * own, highs * own
                return np.minimum(*ends).sum(axis=1) + bias, np.maximum(*ends).sum(axis=1) + bias
            case exact.Product() if row.reads[0] == row.reads[1]:
                both = np.abs(lows[:, 0]), np.abs(highs[:, 0])
                within = (lows[:, 0] <= 0) & (highs[:, 0] >= 0)
                return np.where(within, 0.0, np.minimum(*both) ** 2), np.maximum(*both) ** 2
            case exact.Product():
                corners = [x * y for x in (lows[:, 0], highs[:, 0]) for y in (lows[:, 1], highs[:, 1])]
                return np.min(corners, axis=0), np.max(corners, axis=0)
            case exact.Rectifier() | exact.Curve():
                ends = value(layer, lows[:, 0]), value(layer, highs[:, 0])
                return np.minimum(*ends), np.maximum(*ends)
            case _:
                raise Unfit("a layer of which nothing is known")

    def ranges_with(self, rows: Sequence[int]) -> tuple[Floats, tuple[Floats, Floats]]:
        """For each move the greatest magnitude of what symbols add, and the range with that move."""
        self.find_ranges(rows)
        low, high = self.added(self.symbols(rows))
        gains, errors = self.numbers[:, rows, 1:], self.errors[:, rows][..., None]
        centre = self.numbers[:, rows, :1]
        down, up = gains + low, -(gains + high)
        lows = centre - errors + down + self.moves.beside(down)
        highs = centre + errors - up - self.moves.beside(up)
        least, most = self.lows[:, rows][..., None], self.highs[:, rows][..., None]
        within = np.minimum(np.maximum(lows, least), most), np.maximum(np.minimum(highs, most), least)
        return np.maximum(-low, high), within

    # ---- what terms come to

    def ends(self, coefficients: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Of the sum of coefficients [views, terms] times terms: its low and high without moves, and of each move."""
        rows = list(self.plan.terms)
        self.open(rows)
        symbols = self.symbols(rows)
        by = coefficients[:, None, :]
        low, high = self.added(Symbols(by @ symbols.noises, {at: by @ own for at, own in symbols.turns.items()}))
        found = (by @ self.numbers[:, rows])[:, 0]
        error = (np.abs(coefficients) * self.errors[:, rows]).sum(axis=1)
        gains = found[:, 1:]
        return found[:, 0] - error, found[:, 0] + error, gains + low[:, 0], gains + high[:, 0]


COMPUTED: dict[type[exact.Layer], Callable[[Cells, Any, list[int]], None]] = {
    exact.Affine: Cells.affine,
    exact.Rectifier: Cells.bent,
    exact.Maximum: Cells.maximum,
    exact.Product: Cells.product,
    exact.Curve: Cells.bent,
}
