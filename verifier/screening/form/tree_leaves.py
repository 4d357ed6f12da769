"""The bytes of a proof tree as its leaves, by FORMAT sections 5 and 9: exact integers only, nothing is rounded here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .unsure import Unsure

MOST_NODES, MOST_ABOVE, MOST_JOINT = 5_000_000, 100_000, 8
LINEAR, ENUMERATE, OPEN, BROKEN = 1, 2, 3, 16
WORDS, RIVALS, SLOPES, JOINT = 4, 7, 8, 10
MOST_SLOPE, MOST_STAIRS = 64, 7
STAIRS = 128
"""The value of a maximum's element is its height, and so many times its stairs; of a rectifier's its slope, or its
height, and so many times its stairs and one more."""
NONE = -1
"""Instead of a cell: only the original stands at this position."""

Element = tuple[int, int]
"""A rectifier node of the network, or a maximum, and one of its elements."""
Joint = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Joint groups: the rectifier node of each, and (element, slope) pairs."""


@dataclass(frozen=True)
class Named:
    """A rectifier or a maximum that trees may name: node and size, and whether it reads what is affine in the words."""

    node: int
    size: int
    is_rectifier: bool
    reads_affine: bool
    counts_swaps: bool

    @property
    def most(self) -> int:
        """Times STAIRS, in the value of an element."""
        return (MOST_STAIRS + self.is_rectifier) * self.counts_swaps


@dataclass(frozen=True, eq=False)
class Settings:
    """The multipliers that hold in a subtree."""

    slopes: Mapping[Element, int] = field(default_factory=dict)
    """Heights and stairs, too, as one value."""
    joint: Joint = ()


class Leaf(NamedTuple):
    """A region to prove: `free` numbers the cells of positions that may be swapped, `forced` are (position, cell)."""

    kind: int
    free: int
    forced: tuple[tuple[int, int], ...]
    rivals: tuple[int, ...]
    settings: Settings
    swaps: int
    breaker: int | None = None
    """Of a leaf where all is broken: the rival that wins everywhere."""
    whole: bool = True
    """Whether no split by rivals lies above."""

    @property
    def spare(self) -> int:
        """Swaps that may be made beside the forced ones."""
        return self.swaps - len(self.forced)


class Cells:
    """The subsets of options met at words, numbered; words count those with two options or more."""

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
    settings: Settings
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
        several = [word for word, size in enumerate(sizes) if size > 1]
        self.index = {word: i for i, word in enumerate(several)}
        self.sizes = [sizes[word] for word in several]
        self.rivals, self.named, self.swaps = tuple(rivals), named, swaps
        self.cells = Cells(self.sizes)
        self.heights = False
        """Whether a table set heights."""

    def leaves(self) -> list[Leaf]:
        masks = tuple((1 << size) - 1 for size in self.sizes)
        free = np.array([self.cells.number(i, mask) for i, mask in enumerate(masks)], dtype=np.int32)
        stack = [Frame(masks, free, (), self.rivals, Settings(), 0, True)]
        found: list[Leaf] = []
        nodes = 0
        while stack:
            frame = stack.pop()
            nodes += 1
            expect(nodes <= MOST_NODES and frame.depth <= MOST_ABOVE, "the tree is too large or too deep")
            kind = self.byte()
            if kind in (LINEAR, ENUMERATE):
                found.append(self.leaf(kind, frame))
            elif kind in (OPEN, BROKEN):
                expect(self.counting and frame.whole, "an open or broken leaf where none is allowed")
                breaker = self.number() if kind == BROKEN else None
                expect(breaker is None or breaker in frame.rivals, "broken by a class that is no rival")
                found.append(self.leaf(kind, frame, breaker))
            elif kind == WORDS:
                stack += self.words(frame)
            elif kind == RIVALS:
                stack += self.split_rivals(frame)
            elif kind in (SLOPES, JOINT):
                stack.append(below(frame, settings=self.set(kind, frame.settings)))
            else:
                raise Unsure(f"tree byte {kind} is not screened")
        expect(self.at == len(self.data), "bytes after the end of the tree")
        return found

    def leaf(self, kind: int, frame: Frame, breaker: int | None = None) -> Leaf:
        free = self.cells.free_number(frame.free)
        return Leaf(kind, free, frame.forced, frame.rivals, frame.settings, self.swaps, breaker, frame.whole)

    # ---- splits, right child first: the stack hands out the left one next

    def words(self, frame: Frame) -> list[Frame]:
        word = self.number()
        expect(word in self.index, "a word with nothing to split")
        i = self.index[word]
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
            return Settings({**old.slopes, **self.table()}, old.joint)
        return Settings(old.slopes, self.groups())

    def table(self) -> dict[Element, int]:
        layers = self.number()
        expect(layers > 0, "an empty table")
        found: dict[Element, int] = {}
        last = -1
        for _ in range(layers):
            layer = self.number()
            expect(layer > last, "a table out of order")
            last, own = layer, self.layer(layer)
            pairs = self.pairs(own, self.number(), own.most)
            self.heights |= not own.is_rectifier or any(value >= STAIRS for _, value in pairs)
            found.update(((own.node, element), value) for element, value in pairs)
        return found

    def groups(self) -> Joint:
        groups: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        used = set[Element]()
        for _ in range(self.number()):
            rectifier = self.layer(self.number())
            expect(
                rectifier.is_rectifier and rectifier.reads_affine,
                "joint groups need pre-activations that are affine in the words",
            )
            members = self.number()
            expect(members <= MOST_JOINT, "too large a joint group")
            pairs = tuple(self.pairs(rectifier, members, 0))
            own = {(rectifier.node, element) for element, _ in pairs}
            expect(used.isdisjoint(own), "an element in two joint groups")
            used |= own
            groups.append((rectifier.node, pairs))
        return tuple(groups)

    def pairs(self, own: Named, count: int, most: int) -> list[tuple[int, int]]:
        """Elements and values, which are up to `most` times STAIRS, and then a slope or a height."""
        expect(count > 0, "an empty table")
        found: list[tuple[int, int]] = []
        element = 0
        for _ in range(count):
            step, value = self.number(), self.number()
            element += step
            if found and not step:
                raise Unsure("indices must ascend")
            if element >= own.size or value % STAIRS > MOST_SLOPE or value // STAIRS > most:
                raise Unsure("a table entry out of range")
            found.append((element, value))
        return found

    def layer(self, layer: int) -> Named:
        found = self.named.get(layer)
        if found is None:
            raise Unsure(f"layer {layer} is none that a tree may name here")
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
