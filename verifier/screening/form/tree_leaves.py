"""The bytes of a proof tree as its leaves, by FORMAT sections 5 and 9: exact integers only, nothing is rounded here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .swap_budgets import Group
from .unsure import Unsure

MOST_NODES, MOST_ABOVE, MOST_JOINT = 5_000_000, 100_000, 8
EMPTY, LINEAR, ENUMERATE, OPEN, BROKEN = 0, 1, 2, 3, 16
WORDS, PHASE, BUDGET, RIVALS, SLOPES, BETAS, JOINT = 4, 5, 6, 7, 8, 9, 10
MOST_GROUPS = 64
"""Of one region that is screened; the format has no limit."""
NONE = -1
"""Instead of a cell: only the original stands at this position."""

Element = tuple[int, int]
"""A rectifier node of the network, and one of its elements."""
Joint = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Joint groups: the rectifier node of each, and (element, slope) pairs."""


@dataclass(frozen=True)
class Named:
    """A rectifier that trees may name: its node and size, whether it is a plain Relu, and reads affine values."""

    node: int
    size: int
    plain: bool
    reads_affine: bool


@dataclass(frozen=True, eq=False)
class Settings:
    """The multipliers that hold in a subtree."""

    slopes: Mapping[Element, int] = field(default_factory=dict)
    betas: Mapping[Element, float] = field(default_factory=dict)
    joint: Joint = ()


class Leaf(NamedTuple):
    """A region to prove: `free` numbers the cells of positions that may be swapped, `forced` are (position, cell)."""

    kind: int
    free: int
    forced: tuple[tuple[int, int], ...]
    rivals: tuple[int, ...]
    phases: Mapping[Element, int]
    settings: Settings
    groups: tuple[Group, ...]
    """Of swappable positions; when one is all there is, `high` says what it says."""
    high: int
    breaker: int | None = None
    """Of a leaf where all is broken: the rival that wins everywhere."""
    whole: bool = True
    """Whether no split by phases or rivals lies above."""

    @property
    def spare(self) -> int:
        """Swaps that may be made beside the forced ones."""
        return self.high - len(self.forced)


class Cells:
    """The subsets of choices met at positions, numbered; positions count the swappable ones only."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.known: dict[tuple[int, int], int] = {}
        self.listed: list[tuple[int, int]] = []
        self.free: dict[bytes, int] = {}
        self.rows: list[NDArray[np.int32]] = []

    def number(self, position: int, mask: int) -> int:
        key = position, mask
        if key not in self.known:
            self.known[key] = len(self.listed)
            self.listed.append(key)
        return self.known[key]

    def free_number(self, row: NDArray[np.int32]) -> int:
        key = row.tobytes()
        if key not in self.free:
            self.free[key] = len(self.rows)
            self.rows.append(row)
        return self.free[key]


class Frame(NamedTuple):
    """What holds where the next node of the tree stands."""

    masks: tuple[int, ...]
    free: NDArray[np.int32]
    forced: tuple[tuple[int, int], ...]
    rivals: tuple[int, ...]
    phases: Mapping[Element, int]
    settings: Settings
    groups: tuple[Group, ...]
    depth: int
    whole: bool


class Reader:
    """Goes through the bytes once; whatever is not as it should be ends in Unsure, for the exact checker to judge."""

    def __init__(
        self,
        data: bytes,
        sizes: Sequence[int],
        rivals: Sequence[int],
        named: Mapping[int, Named],
        swaps: int,
        counting: bool = False,
    ) -> None:
        self.data, self.at, self.counting = data, 0, counting
        self.positions = [position for position, size in enumerate(sizes) if size > 1]
        self.index = {position: i for i, position in enumerate(self.positions)}
        self.sizes = [sizes[position] for position in self.positions]
        self.rivals, self.named, self.swaps = tuple(rivals), named, swaps
        self.length = len(sizes)
        self.everywhere = frozenset(range(len(sizes)))
        self.cells = Cells(self.sizes)
        self.swappable: dict[tuple[Group, ...], tuple[Group, ...]] = {}
        """Groups of positions of the text -> of swappable ones."""

    def leaves(self) -> list[Leaf]:
        masks = tuple((1 << size) - 1 for size in self.sizes)
        free = np.array([self.cells.number(i, mask) for i, mask in enumerate(masks)], dtype=np.int32)
        stack = [Frame(masks, free, (), self.rivals, {}, Settings(), ((self.everywhere, 0, self.swaps),), 0, True)]
        found: list[Leaf] = []
        nodes = 0
        while stack:
            frame = stack.pop()
            nodes += 1
            expect(nodes <= MOST_NODES and frame.depth <= MOST_ABOVE, "the tree is too large or too deep")
            kind = self.byte()
            if kind in (EMPTY, LINEAR, ENUMERATE):
                found.append(self.leaf(kind, frame))
            elif kind in (OPEN, BROKEN):
                expect(self.counting and frame.whole, "an open or broken leaf where none is allowed")
                breaker = self.number() if kind == BROKEN else None
                expect(breaker is None or breaker in frame.rivals, "broken by a class that is no rival")
                found.append(self.leaf(kind, frame, breaker))
            elif kind == WORDS:
                stack += self.words(frame)
            elif kind == PHASE:
                stack += self.phase(frame)
            elif kind == BUDGET:
                stack += self.budget(frame)
            elif kind == RIVALS:
                stack += self.split_rivals(frame)
            elif kind in (SLOPES, BETAS, JOINT):
                stack.append(below(frame, settings=self.set(kind, frame.settings)))
            else:
                raise Unsure(f"tree byte {kind} is not screened")
        expect(self.at == len(self.data), "bytes after the end of the tree")
        return found

    def leaf(self, kind: int, frame: Frame, breaker: int | None = None) -> Leaf:
        groups = self.swappable.get(frame.groups)
        if groups is None:
            groups = tuple((frozenset(self.index[p] for p in g if p in self.index), a, b) for g, a, b in frame.groups)
            self.swappable[frame.groups] = groups
        high = next(b for g, _, b in frame.groups if g is self.everywhere or g == self.everywhere)
        free = self.cells.free_number(frame.free)
        return Leaf(
            kind,
            free,
            frame.forced,
            frame.rivals,
            frame.phases,
            frame.settings,
            groups,
            high,
            breaker,
            frame.whole,
        )

    # ---- splits, right child first: the stack hands out the left one next

    def words(self, frame: Frame) -> list[Frame]:
        position = self.number()
        expect(position in self.index, "a position with nothing to split")
        i = self.index[position]
        chosen = self.mask(self.sizes[i])
        before = frame.masks[i]
        left, right = before & chosen, before & ~chosen
        expect(left == chosen and left != 0 and right != 0, "a split that splits nothing")
        return [self.with_mask(frame, i, side) for side in (right, left)]

    def with_mask(self, frame: Frame, i: int, mask: int) -> Frame:
        masks = (*frame.masks[:i], mask, *frame.masks[i + 1 :])
        free, forced = frame.free, frame.forced
        if mask & 1:
            now = NONE if mask == 1 else self.cells.number(i, mask)
        else:
            now = NONE
            forced = (*(pair for pair in forced if pair[0] != i), (i, self.cells.number(i, mask)))
        if free[i] != now:
            free = free.copy()
            free[i] = now
        return below(frame, masks=masks, free=free, forced=forced)

    def phase(self, frame: Frame) -> list[Frame]:
        rectifier = self.rectifier(plain=True)
        element = self.number()
        key = rectifier.node, element
        expect(element < rectifier.size and key not in frame.phases, "a phase out of range or set twice")
        return [below(frame, phases={**frame.phases, key: sign}, whole=False) for sign in (1, -1)]

    def budget(self, frame: Frame) -> list[Frame]:
        count = self.number()
        expect(0 < count <= self.length, "a group of impossible size")
        members: list[int] = []
        for _ in range(count):
            step = self.number()
            expect(not members or step > 0, "indices must ascend")
            members.append(step + (members[-1] if members else 0))
            expect(members[-1] < self.length, "a group beyond the text")
        group, bound = frozenset(members), self.number()
        low, high, others = 0, count, []
        for other in frame.groups:
            if other[0] == group:
                low, high = other[1:]
                continue
            expect(group < other[0] or other[0] < group or not group & other[0], "a group that overlaps another")
            others.append(other)
        expect(len(others) < MOST_GROUPS, "more groups than are screened")
        sides = (group, max(low, bound + 1), high), (group, low, min(high, bound))
        return [below(frame, groups=(*others, side)) for side in sides]

    def split_rivals(self, frame: Frame) -> list[Frame]:
        chosen = self.mask(len(self.rivals))
        named = tuple(rival for bit, rival in enumerate(self.rivals) if chosen >> bit & 1)
        left = tuple(rival for rival in frame.rivals if rival in named)
        right = tuple(rival for rival in frame.rivals if rival not in named)
        expect(left == named and bool(left) and bool(right), "a split of rivals that splits nothing")
        return [below(frame, rivals=side, whole=False) for side in (right, left)]

    # ---- multipliers

    def set(self, kind: int, old: Settings) -> Settings:
        if kind == SLOPES:
            return Settings({**old.slopes, **self.table(plain=False, highest=64)}, old.betas, old.joint)
        if kind == BETAS:
            exponent = self.number()
            expect(exponent <= 30, "betas finer than 2**-30")
            table = self.table(plain=True, highest=(1 << 31) - 1)
            betas = {key: value * 2.0**-exponent for key, value in table.items()}  # exact
            return Settings(old.slopes, {**old.betas, **betas}, old.joint)
        return Settings(old.slopes, old.betas, self.groups())

    def table(self, *, plain: bool, highest: int) -> dict[Element, int]:
        layers = self.number()
        expect(layers > 0, "an empty table")
        found: dict[Element, int] = {}
        last = -1
        for _ in range(layers):
            at = self.at
            origin = self.number()
            expect(origin > last, "a table out of order")
            last, self.at = origin, at
            rectifier = self.rectifier(plain=plain)
            pairs = self.pairs(rectifier.size, self.number(), highest)
            found.update(((rectifier.node, element), value) for element, value in pairs)
        return found

    def groups(self) -> Joint:
        groups: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        used = set[Element]()
        for _ in range(self.number()):
            rectifier = self.rectifier(plain=False)
            expect(rectifier.reads_affine, "joint groups need pre-activations that are affine in the words")
            members = self.number()
            expect(members <= MOST_JOINT, "too large a joint group")
            pairs = tuple(self.pairs(rectifier.size, members, 64))
            own = {(rectifier.node, element) for element, _ in pairs}
            expect(used.isdisjoint(own), "an element in two joint groups")
            used |= own
            groups.append((rectifier.node, pairs))
        return tuple(groups)

    def pairs(self, size: int, count: int, highest: int) -> list[tuple[int, int]]:
        expect(count > 0, "an empty table")
        found: list[tuple[int, int]] = []
        element = 0
        for _ in range(count):
            step, value = self.number(), self.number()
            element += step
            if found and not step:
                raise Unsure("indices must ascend")
            if element >= size or value > highest:
                raise Unsure("a table entry out of range")
            found.append((element, value))
        return found

    def rectifier(self, *, plain: bool) -> Named:
        origin = self.number()
        found = self.named.get(origin)
        if found is None or (plain and not found.plain):
            raise Unsure(f"node {origin} is not a {'Relu' if plain else 'rectifier'} the logits depend on")
        return found

    # ---- bytes

    def byte(self) -> int:
        expect(self.at < len(self.data), "the tree ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """LEB128, minimal, below 2**31."""
        first = self.data[self.at : self.at + 1]
        if first and first[0] < 128:
            self.at += 1
            return first[0]
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                expect((byte > 0 or shift == 0) and value < 1 << 31, "a number that is not minimal or too large")
                return value
        raise Unsure("a number in the tree is too large")

    def mask(self, bits: int) -> int:
        end = self.at + (bits + 7) // 8
        expect(end <= len(self.data), "the tree ends too early")
        value = int.from_bytes(self.data[self.at : end], "little")
        self.at = end
        expect(value < 1 << bits, "a mask with bits beyond its options")
        return value


def below(frame: Frame, **news: Any) -> Frame:
    return frame._replace(depth=frame.depth + 1, **news)


def expect(fact: bool, otherwise: str) -> None:
    if not fact:
        raise Unsure(otherwise)
