"""Branch and bound on words, in one fixed order of positions, over many regions at once.

A region is: some swaps made, the positions before `start` decided, at most `left` swaps among the others. It is expanded into
one part per position from `start` on ("the first further swap is here"), until what remains without these is closed by
its bound. A part is closed as a whole, or falls into one region per choice. With one swap left, the sentences that the
bound does not exclude are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.selection import Places

Array = NDArray[Any]

BATCH = 128
"""Regions expanded together."""
BISECTIONS = 3
"""Refreshed bounds spent on finding an earlier end of the positions to go through."""


class Bounds(Protocol):
    """Lower bounds of one margin on regions. `places` are in the order in which the search decides them."""

    places: Places
    base: Array
    """[width]: the state of the original sentence."""
    rows: Array
    """[P, C, width]: what each swap adds to the state."""
    k: int

    def margins(self, states: Array) -> Array:
        """[n]: the margins of these sentences."""
        ...

    def low(self, states: Array, start: Array, left: Array, swapped: Array | None = None) -> Array:
        """[n]: lower bounds on regions. `swapped`: positions where moreover some swap, whichever, is made."""
        ...

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array, Array]:
        """low [n]; [n, P + 1]: of the region from position t on; [n, P, C]: after a swap there and nowhere before."""
        ...


@dataclass(eq=False)
class Record:
    """How a region was closed: `end` is the first position not gone through; a part is one choice's region or None."""

    start: int
    end: int
    left: int
    parts: dict[int, dict[int, Record | None]] = field(default_factory=dict)
    """Position -> choice -> its region (None: closed by its bound); a position not listed is closed as a whole, and so
    are, together, the choices not listed."""


@dataclass(eq=False)
class Nodes:
    """Regions waiting, the lowest bound last."""

    states: Array
    start: Array
    left: Array
    low: Array
    records: list[Record]

    def __len__(self) -> int:
        return len(self.records)

    def split(self, count: int) -> tuple[Nodes, Nodes]:
        at = max(0, len(self) - count)
        first, second = (
            Nodes(self.states[part], self.start[part], self.left[part], self.low[part], self.records[part])
            for part in (slice(0, at), slice(at, None))
        )
        return first, second


class Interrupted(Exception):
    """A witness, or the end of the budget."""


@dataclass(eq=False)
class Search:
    """Proves that `bounds.margins` > threshold for all sentences with at most k swaps, or finds one that is not.

    `judge(margins, swaps)` is told of the sentences whose margin is not above the threshold; it returns when they are
    robust all the same, and raises otherwise. `pause` is called once a batch.
    """

    bounds: Bounds
    threshold: float
    judge: Callable[[Array, Array], None]
    pause: Callable[[], None]
    regions: int = 0
    evaluations: int = 0
    waiting: list[Nodes] = field(default_factory=list)

    def run(self) -> Record | None:
        """None: the whole space is closed by its bound."""
        bounds, k = self.bounds, self.bounds.k
        zero, most = np.zeros(1, dtype=np.int64), np.full(1, k)
        states = bounds.base[None]
        self.check(bounds.margins(states), states)
        low = bounds.low(states, zero, most)
        self.regions += 1
        if low[0] > self.threshold:
            return None
        root = Record(0, bounds.places.count, k)
        if k:
            self.waiting.append(Nodes(states, zero, most, low, [root]))
        while self.waiting:
            self.pause()
            rest, batch = self.waiting.pop().split(BATCH)
            if len(rest):
                self.waiting.append(rest)
            self.expand(batch)
        return root

    def check(self, margins: Array, states: Array) -> None:
        self.evaluations += len(margins)
        unsure = np.flatnonzero(~(margins > self.threshold))
        if len(unsure):
            unsure = unsure[np.argsort(margins[unsure], kind="stable")]
            self.judge(margins[unsure], states[unsure])

    def expand(self, nodes: Nodes) -> None:
        bounds, threshold = self.bounds, self.threshold
        count = bounds.places.count
        _, after, of_child = bounds.inherited(nodes.states, nodes.start, nodes.left)
        numbers = np.arange(count + 1)
        closed = (after > threshold) & (numbers >= nodes.start[:, None])
        closed[:, count] = True
        end = closed.argmax(axis=1)
        several = np.flatnonzero(nodes.left > 1)
        end[several] = self.bisected(nodes, several, end[several])
        live = bounds.places.there & ~(of_child > threshold)
        live &= ((numbers[:-1] >= nodes.start[:, None]) & (numbers[:-1] < end[:, None]))[:, :, None]
        for record, stop in zip(nodes.records, end.tolist(), strict=True):
            record.end = stop
        # A position with several live choices may be closed as a whole.
        pairs = live.sum(axis=2)
        node, place = np.nonzero((pairs > 1) & (nodes.left > 1)[:, None])
        if len(node):
            low = bounds.low(nodes.states[node], place + 1, nodes.left[node] - 1, place)
            self.regions += len(node)
            whole = low > threshold
            live[node[whole], place[whole]] = False
        node, place, choice = np.nonzero(live)
        if not len(node):
            return
        states = nodes.states[node] + bounds.rows[place, choice]
        self.check(bounds.margins(states), states)
        inner = nodes.left[node] > 1
        node, place, choice, states = node[inner], place[inner], choice[inner], states[inner]
        if not len(node):
            return
        start, left = place + 1, nodes.left[node] - 1
        low = bounds.low(states, start, left)
        self.regions += len(node)
        opened = low <= threshold
        records = []
        for n, p, c, s, remaining, is_open in zip(
            node.tolist(), place.tolist(), choice.tolist(), start.tolist(), left.tolist(), opened.tolist(), strict=True
        ):
            record = Record(s, count, remaining) if is_open else None
            nodes.records[n].parts.setdefault(p, {})[c] = record
            if record is not None:
                records.append(record)
        if records:
            order = np.argsort(-low[opened], kind="stable")
            self.waiting.append(
                Nodes(
                    states[opened][order], start[opened][order], left[opened][order], low[opened][order],
                    [records[i] for i in order],
                )
            )  # fmt: skip

    def bisected(self, nodes: Nodes, several: Array, end: Array) -> Array:
        """An earlier end of the positions to go through, by bounds of what remains from there."""
        known_open = nodes.start[several].copy()
        for _ in range(BISECTIONS):
            wide = np.flatnonzero(end - known_open > 2)
            if not len(wide):
                break
            middle = (end[wide] + known_open[wide]) // 2
            chosen = several[wide]
            low = self.bounds.low(nodes.states[chosen], middle, nodes.left[chosen])
            self.regions += len(wide)
            closed = low > self.threshold
            end[wide[closed]] = middle[closed]
            known_open[wide[~closed]] = middle[~closed]
        return end
