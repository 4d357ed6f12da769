"""Networks of several hidden layers: which words flip which texts, by boxes of words around evaluated centers.

With |x - c| <= r for a word's coordinates, J the slope of the cut and rho(v) the bound that layer by layer absolute
weights give of how far anything moves when the cut moves by at most v,

    |margin(x) - margin(c)| <= rho(|J| r)

for all texts alike. In few dimensions this settles most words of most texts; with a maximum over time another bound
does (`pooled_bounds.py`); the others are evaluated one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.one_word import Tail
from swapproof.encodings.network import Network
from swapproof.encodings.rounding.float_errors import SLOP, rounding_errors

from .blocks import Decide, parts
from .pooled_bounds import Pooled, WordScreen
from .word_boxes import PARTS, Boxes

Array = NDArray[Any]

CELLS = 1 << 17
"""Numbers in one block of values at the cut."""
FIRST = 16
"""Boxes tried first: larger ones hardly ever hold."""
TEXTS = 64
"""Texts that go through the boxes together."""


@dataclass(frozen=True, eq=False)
class Group:
    """Texts with any word at one position, and the tail that serves them all."""

    position: int
    texts: NDArray[np.int64]
    here: Array
    """[n, columns]: the columns of the cut that differ, with a word of coordinates 0."""
    reach: Array
    """[n, rivals]: margins beyond these are certain."""
    tail: Tail


class TailSearch:
    """Fills `flipped` [texts, words]; hands margins that have to be looked at to `decide`."""

    def __init__(
        self,
        network: Network,
        coordinates: Array,
        boxes: Boxes | None,
        pooled: Pooled | None,
        label: int,
        rivals: Sequence[int],
        flipped: NDArray[np.bool_],
        decide: Decide,
    ) -> None:
        """`coordinates` [words, dimensions]; without boxes and features every word is evaluated."""
        self.network, self.coordinates, self.boxes, self.flipped = network, coordinates, boxes, flipped
        self.pooled = pooled
        self.screen: tuple[Array, WordScreen] | None = None
        """The one used last, and J's columns that it was made from: they are the same at most positions."""
        self.label, self.rivals, self.decide = label, list(rivals), decide
        self.marked = np.zeros((len(flipped), 0 if boxes is None else len(boxes.start)), dtype=bool)
        """[texts, boxes]: every word of the box flips the text."""
        self.first = np.zeros(0, dtype=np.int64) if boxes is None else boxes.level_of(FIRST)
        self.bounded = self.evaluated = 0

    def at(
        self, position: int, numbers: Array, cuts: Array, origin: Array, slope: Array, far: Array, guards: Array
    ) -> None:
        """Texts with any word there: their `cuts`, these with a word of coordinates 0.

        Margins beyond `far` are certain, and bounds of margins beyond `guards`.
        """
        if self.boxes is None and self.at_features(position, numbers, origin, slope, far, guards):
            return
        columns = np.flatnonzero((slope != 0).any(axis=0))
        table = (self.coordinates @ slope[:, columns]).astype(np.float32)
        far, start = far.astype(np.float32), origin[:, columns].astype(np.float32)
        if self.boxes is not None:
            centers = (self.boxes.center @ slope[:, columns]).astype(np.float32)
            spans = self.spans(slope)
        # Where the word moves the whole cut, nothing of the text is left that a tail could know.
        together = TEXTS if self.boxes is not None and len(columns) == cuts.shape[1] else 1
        for part in parts(len(numbers), together):
            tail = Tail(self.network, cuts[part][0].astype(np.float32), columns)
            group = Group(position, numbers[part], start[part], far[part], tail)
            if self.boxes is None:
                at, words = np.zeros(len(table), dtype=np.int64), np.arange(len(table))
            else:
                at, words = self.opened(self.boxes, group, centers, spans)
            free = ~self.flipped[group.texts[at], words]
            self.evaluate(group, table, at[free], words[free])

    def at_features(
        self, position: int, numbers: Array, origin: Array, slope: Array, far: Array, guards: Array
    ) -> bool:
        """Only the words that no bound settles are evaluated; False where there are no such bounds."""
        pooled = self.pooled
        if pooled is None:
            return False
        columns = np.flatnonzero((slope != 0).any(axis=0))
        rests = np.concatenate([pooled.without(origin[part], columns) for part in parts(len(numbers), TEXTS)])
        # Else a feature is a sum of parts that are larger than itself, which errors of margins do not allow for.
        if not (rests >= 0).all():
            return False
        screen = self.screen_at(pooled, slope[:, columns], columns)
        for number, rest, start, reach, guard in zip(numbers, rests, origin[:, columns], far, guards, strict=True):
            places = screen.open_words(rest, start, guard)
            places = places[~self.flipped[number, screen.order[places]]]
            self.bounded += len(screen.blocks)
            self.evaluated += len(places)
            if len(places):
                margins, words = screen.margins(rest, start, places), screen.order[places]
                texts = np.full(len(words), number)
                for rival in range(len(self.rivals)):
                    certain = np.full(len(words), reach[rival], dtype=np.float32)
                    self.decide(position, rival, texts, words, margins[:, rival], certain)
        return True

    def screen_at(self, pooled: Pooled, slope: Array, columns: Array) -> WordScreen:
        owner = pooled.owner[columns]
        last = self.screen
        if last is None or not (np.array_equal(last[0], slope) and np.array_equal(last[1].owners, owner)):
            last = self.screen = slope, WordScreen(self.coordinates @ slope, owner, pooled)
        return last[1]

    def evaluate(self, group: Group, table: Array, at: Array, words: Array) -> None:
        """Each of these words in texts[at]."""
        self.evaluated += len(words)
        for part in parts(len(words), max(1, CELLS // max(1, table.shape[1]))):
            rows, some = at[part], words[part]
            cut = table[some]
            cut += group.here if len(group.here) == 1 else group.here[rows]
            margins = self.margins(group.tail, cut)
            for rival in range(len(self.rivals)):
                far = group.reach[rows, rival]
                self.decide(group.position, rival, group.texts[rows], some, margins[:, rival], far)

    def margins(self, tail: Tail, cut: Array) -> Array:
        logits = tail.logits(cut)
        return np.asarray(logits[:, [self.label]] - logits[:, self.rivals])

    def opened(self, boxes: Boxes, group: Group, centers: Array, spans: Array) -> tuple[Array, Array]:
        """Texts and words that no box settles; boxes that flip their text are marked, and their words noted."""
        texts = group.texts
        at, some = np.repeat(np.arange(len(texts)), len(self.first)), np.tile(self.first, len(texts))
        found = [(at[:0], some[:0])]
        while len(some):
            free = ~self.marked[texts[at], some]
            at, some = at[free], some[free]
            self.bounded += len(some)
            blocks = parts(len(some), max(1, CELLS // max(1, centers.shape[1])))
            margins = [self.margins(group.tail, group.here[at[block]] + centers[some[block]]) for block in blocks]
            margin = np.concatenate([np.zeros((0, len(self.rivals)), np.float32), *margins])
            certain = spans[some] + group.reach[at]
            flips = (margin < -certain).any(axis=1)
            self.marked[texts[at[flips]], some[flips]] = True
            for text, box in zip(texts[at[flips]].tolist(), some[flips].tolist(), strict=True):
                self.flipped[text, boxes.points(box)] = True
            left = ~flips & ~(margin > certain).all(axis=1)
            at, some = at[left], some[left]
            last = boxes.first[some] < 0
            found.append((at[last], some[last]))
            at = np.repeat(at[~last], PARTS)
            some = (boxes.first[some[~last], None] + np.arange(PARTS)).reshape(-1)
        at, some = (np.concatenate(column) for column in zip(*found, strict=True))
        sizes = boxes.stop[some] - boxes.start[some]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(at, sizes), boxes.order[np.repeat(boxes.start[some], sizes) + within]

    def spans(self, slope: Array) -> Array:
        """[boxes, rivals]: rho(|J| r), which is how errors of the cut propagate."""
        boxes = self.boxes
        if boxes is None:
            raise ValueError("spans of boxes, where there are none")
        network, last, found = self.network, len(self.network.nodes) - 1, []
        for part in parts(len(boxes.start), max(1, CELLS // max(1, slope.shape[1]))):
            moved = boxes.radius[part] @ np.abs(slope) * SLOP
            nothing = {i: np.broadcast_to(0.0, (len(moved), *node.shape)) for i, node in enumerate(network.nodes)}
            logits = rounding_errors(network, nothing, 0.0, network.split_cut(moved))[last][:, 0, :]
            found.append((logits[:, self.rivals] + logits[:, [self.label]]) * SLOP)
        return np.concatenate(found).astype(np.float32)
