"""Branch and bound on words, in one fixed order of positions, over many regions at once.

A region is: some swaps made, the positions before `start` decided, at most `left` swaps among the others. It is
expanded into one part per position from `start` on ("the next swap is here"), until what remains without these is
closed by its bound. A part is closed as a whole, or falls into one region per choice. With one swap left, the sentences
that the bound does not exclude are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.linear_bounds import LinearBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.pools.next_swaps import NextSwaps
from swapproof.proofs.writing.certificate import Node

from .beside.choice_sets import WIDEST, Steps
from .beside.lent_regions import Found, Lent

Array = NDArray[Any]

BATCH = 128
"""Regions expanded together."""
LENT_ANEW = 4
"""Searches of their own that a copy of the process makes."""
LENT_FROM = 2_000
"""Regions of a search before others may help: most are done sooner than a copy of the process is made."""
REGIONS = 1024
"""Regions bounded between two looks at the clock."""
CELLS = 1 << 22
"""Numbers in one block of states: bounds memory."""
ANEW = 3
"""Swaps that a region must have left to be searched anew."""
SHARE = 0.6
"""How far its bound must be below the threshold, by how far that of the whole is."""
SENTENCE_CELLS = 1 << 18
"""The same for sentences: few enough that a block stays in the cache."""
MANY = 4_000
"""Sentences that take as long as the bounds that may spare some of them."""
WIDE = 24
"""Ways to get to a last swap from which on bounds are asked for each position where it may be."""
SPARED = 4_000_000
"""Sentences listed in a proof before bounds are spent on listing fewer: its leaves may list 20,000,000."""
MOST_WAYS = 16
"""Paths that one with several choices at some positions may stand for: with a swap left all are listed."""
JOINED = 0.3
"""How much worse than the worst of its choices the bound of a set may be, as a share of what that lacks."""
BISECTIONS = 3
"""Refreshed bounds spent on finding an earlier end of the positions to go through."""


Group = tuple[int, int, int, int]
"""(node, place, first, end) of swaps in a row."""


class Unfinished(Exception):
    """Raised by `pause`: the search ends, and what it has not closed stays open."""


class Bounds(Protocol):
    """Lower bounds of one margin on regions; `places` are in the order in which the search decides them."""

    @property
    def places(self) -> Places: ...
    @property
    def base(self) -> Array:
        """[width]: the state of the original sentence."""
        ...

    @property
    def rows(self) -> Array:
        """[P, C, width]: what each swap adds to the state."""
        ...

    @property
    def k(self) -> int: ...
    @property
    def inherits(self) -> bool:
        """Whether a part of a region that `inherited` closes is also closed by its own bound."""
        ...

    @property
    def following(self) -> NextSwaps | None:
        """All sentences one swap further, where the network lets them be evaluated together."""
        ...

    @property
    def joining(self) -> LinearBounds | None:
        """These, where regions may leave open which of several swaps was made at some positions."""
        ...

    def margins(self, states: Array) -> Array:
        """[n]: the margins of these sentences."""
        ...

    def low(
        self, states: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        """[n]: lower bounds on regions. `swapped`: positions where moreover a swap is made, one of `allowed` [n, C]."""
        ...

    def inherited(self, states: Array, start: Array, left: Array) -> tuple[Array, Array]:
        """[n, P + 1]: lower bounds of the region from position t on; [n, P, C]: of it with its first swap there."""
        ...


@dataclass(eq=False)
class Record:
    """How a region was closed: it goes through the positions from `start` to `end`, and what remains is closed."""

    start: int
    end: int
    left: int
    parts: dict[int, dict[tuple[int, ...], Record | None]] = field(default_factory=dict)
    """Position -> choices -> their region (None: closed by its bound). Choices not listed are closed together."""
    tree: Node | None = None
    """Instead of all that: what another search proved the region with."""
    cost: float | None = None
    """What this tree costs a checker, where that is known."""
    expanded: bool = False
    """Whether the region was gone through; else all of it is open."""


@dataclass(eq=False)
class Closed:
    """Choices at a position after a node, each of which closes alone; the most clearly closed come first."""

    node: int
    place: int
    there: list[int]
    """All choices of the position."""
    parts: dict[tuple[int, ...], Record | None]
    """The regions of this position that the proof lists one by one; the others are one region together."""
    choices: list[int]
    joining: int
    """How many of the choices, from the first on, may yet join that region."""

    @property
    def may_join(self) -> bool:
        others = len(self.there) > len(self.choices) + len(self.parts)
        return self.joining > 0 and (len(self.choices) > 1 or others)

    def with_joining(self) -> list[int]:
        """The region of what is not listed, with those that may join it."""
        apart = self.choices[self.joining :]
        return [c for c in self.there if (c,) not in self.parts and c not in apart]

    def joined(self) -> None:
        self.choices, self.joining = self.choices[self.joining :], 0

    def halve(self) -> None:
        self.joining //= 2


@dataclass(eq=False)
class Opened:
    """Choices at a position after a node that stay open; the one with the lowest bound comes first."""

    node: int
    place: int
    choices: list[int]
    lows: list[float]

    @property
    def low(self) -> float:
        return self.lows[0]

    def halves(self) -> list[Opened]:
        half = (len(self.choices) + 1) // 2
        return [
            Opened(self.node, self.place, self.choices[part], self.lows[part])
            for part in (slice(half), slice(half, None))
        ]


@dataclass(eq=False)
class Waiting:
    """Regions to expand, the lowest bound last; the path of a region numbers its swaps, filled with -1 (`Steps`)."""

    paths: Array
    start: Array
    left: Array
    records: list[Record]
    anew: bool | None = None
    """Whether each has a search of its own; None: that is not known yet."""

    def split(self, count: int) -> tuple[Waiting, Waiting]:
        at = max(0, len(self.records) - count)
        first, second = (
            Waiting(self.paths[part], self.start[part], self.left[part], self.records[part], self.anew)
            for part in (slice(0, at), slice(at, None))
        )
        return first, second

    def ordered(self, order: Array) -> Waiting:
        records = [self.records[i] for i in order]
        return Waiting(self.paths[order], self.start[order], self.left[order], records, self.anew)


@dataclass(eq=False)
class Search:
    """Proves that the margin exceeds `threshold` for all sentences with at most k swaps, but for those `judge` excuses.

    `judge(margins, paths)` is told of the sentences whose margin is not above the threshold, the lowest first; it
    returns when they are robust all the same, and raises otherwise. `pause` is told of regions about to be bounded and
    may raise Unfinished.
    """

    bounds: Bounds
    threshold: float
    judge: Callable[[Array, Array], None]
    pause: Callable[[int], None]
    anew: Callable[[Array, int, int], Node] | None = None
    """(swaps made p * C + c, start, left) -> the tree of a search of its own for this region."""
    patience: int = 0
    """Regions after which those that wait are searched anew."""
    room: Callable[[int, int], None] | None = None
    """Is told of regions about to be kept in memory and of sentences to be listed, and may raise Unfinished."""
    far: float = float("inf")
    """Bounds below which regions are worth a search of their own."""
    regions: int = 0
    evaluations: int = 0
    listed: int = 0
    unfinished: bool = False
    """Whether parts were left open."""
    stack: list[Waiting | Lent] = field(default_factory=list)
    returned: Callable[[Lent], Found | None] | None = None
    """Waits for what was found of regions that were lent, and counts it; None: they are to be searched here."""

    def run(self) -> Record | None:
        """None: the whole space is closed by its bound."""
        bounds, k = self.bounds, self.bounds.k
        zero, most = np.zeros(1, dtype=np.int64), np.full(1, k)
        path = np.full((1, k), -1)
        root = Record(0, bounds.places.count, k)
        try:
            self.evaluate(path)
            low = self.low(path, zero, most)
            if low[0] > self.threshold:
                return None
            self.far = self.threshold - SHARE * (self.threshold - float(low[0]))
            if k:
                self.stack.append(Waiting(path, zero, most, [root]))
                self.work()
            root.expanded = True
        except Unfinished:
            self.unfinished = True
        return root

    def go_on(self, regions: Waiting) -> None:
        """Search these regions only, which an earlier search left open."""
        try:
            low = self.low(regions.paths, regions.start, regions.left)
            self.far = self.threshold - SHARE * (self.threshold - float(low.min(initial=self.threshold)))
            self.stack.append(regions.ordered(np.argsort(-low, kind="stable")))
            self.work()
        except Unfinished:
            self.unfinished = True

    def work(self) -> None:
        try:
            self.go_through()
        except Unfinished:
            for lent in reversed(self.lent()):  # to copies that are out of time now, too
                with suppress(Unfinished):
                    self.take_back(lent)
            raise
        finally:
            for lent in self.lent():
                lent.copy.end()

    def go_through(self) -> None:
        while self.stack:
            last = self.stack.pop()
            if isinstance(last, Lent):
                self.take_back(last)
                continue
            rest, batch = last.split(1 if last.anew else BATCH)
            if rest.records:
                self.stack.append(rest)
            if batch.anew is None and self.anew is not None and self.regions > self.patience:
                self.stack += [part for part in self.told_apart(batch) if part.records]
                continue
            if batch.anew and self.anew is not None:
                self.search_anew(batch, self.anew)
            elif batch.records:
                self.expand(batch)
            for record in batch.records:
                record.expanded = True

    @cached_property
    def steps(self) -> Steps:
        return Steps(*self.bounds.places.swaps.shape)

    @property
    def divides(self) -> bool:
        """Whether from now on no batch depends on what was counted in those before it."""
        alike = self.bounds.following is None or self.listed > SPARED
        return alike and self.regions > LENT_FROM and (self.anew is None or self.regions > self.patience)

    def lend(self, begin: Callable[[Waiting], Lent]) -> bool:
        """One batch of what was put off first, the one that the search would take first; False where none waits."""
        for place, waiting in enumerate(self.stack):
            if isinstance(waiting, Waiting):
                rest, batch = waiting.split(LENT_ANEW if waiting.anew else BATCH)
                self.stack[place : place + 1] = [*([rest] if rest.records else []), begin(batch)]
                return True
        return False

    def lent(self) -> list[Lent]:
        return [waiting for waiting in self.stack if isinstance(waiting, Lent)]

    def take_back(self, lent: Lent) -> None:
        found = None if self.returned is None else self.returned(lent)
        if found is None:
            self.stack.append(lent.regions)
            return
        self.regions += found.own.regions
        self.evaluations += found.own.evaluations
        self.listed += found.own.listed
        if found.raised is not None:
            raise found.raised
        for record, tree, cost in zip(lent.regions.records, found.trees, found.costs, strict=True):
            record.tree, record.cost = tree, cost
        if found.unfinished:
            raise Unfinished

    def told_apart(self, nodes: Waiting) -> tuple[Waiting, Waiting]:
        """Those to go through, and those with many swaps left: these get searches of their own, with positions and
        slopes chosen for them."""
        places_left = nodes.start < self.bounds.places.count
        many = (nodes.left >= ANEW) & (nodes.left < self.bounds.k) & places_left & (self.steps.ways(nodes.paths) == 1)
        many[many] = self.low(nodes.paths[many], nodes.start[many], nodes.left[many]) < self.far
        here, anew = nodes.ordered(np.flatnonzero(~many)), nodes.ordered(np.flatnonzero(many))
        return replace(here, anew=False), replace(anew, anew=True)

    def search_anew(self, nodes: Waiting, anew: Callable[[Array, int, int], Node]) -> None:
        for path, start, left, record in zip(nodes.paths, nodes.start, nodes.left, nodes.records, strict=True):
            self.pause(0)
            record.tree = anew(path[path >= 0], int(start), int(left))

    def states(self, paths: Array) -> Array:
        """What neighbours in the list have in common but for their last swap is added up once."""
        if not len(paths):
            return np.empty((0, len(self.bounds.base)))
        made = (paths >= 0).sum(axis=1)
        numbers = np.arange(len(paths))
        last = np.where(made > 0, paths[numbers, made - 1], -1) if paths.shape[1] else np.full(len(paths), -1)
        before = paths.copy()
        before[numbers[made > 0], made[made > 0] - 1] = -1
        new = np.append(True, (before[1:] != before[:-1]).any(axis=1))
        states = self.added_up(before[new])[np.cumsum(new) - 1]
        return self.moved(states, last)

    def added_up(self, paths: Array) -> Array:
        states = np.repeat(self.bounds.base[None], len(paths), axis=0)
        for step in range(paths.shape[1]):
            states = self.moved(states, paths[:, step])
        return states

    def moved(self, states: Array, swaps: Array) -> Array:
        """`states`, changed in place, after one swap more each; -1 for none, and none for a set of them."""
        rows = self.bounds.rows.reshape(-1, len(self.bounds.base))
        taken = (swaps >= 0) & (swaps < self.steps.singles)
        if self.bounds.following is not None:
            place, choice = np.divmod(swaps[taken], self.bounds.places.swaps.shape[1])
            self.bounds.following.move(states, np.flatnonzero(taken), place, choice)
        elif taken.all():
            states += rows[swaps]
        elif taken.any():
            states[taken] += rows[swaps[taken]]
        return states

    def blocks(self, count: int, most: int = CELLS, cells: int = CELLS) -> list[slice]:
        size = min(most, max(1, cells // max(1, len(self.bounds.base))))
        return [slice(first, first + size) for first in range(0, count, size)]

    def evaluate(self, paths: Array) -> None:
        for block in self.blocks(len(paths), cells=SENTENCE_CELLS):
            self.pause(0)
            margins = self.bounds.margins(self.states(paths[block]))
            self.evaluations += len(margins)
            unsure = np.flatnonzero(~(margins > self.threshold))
            if len(unsure):
                unsure = unsure[np.argsort(margins[unsure], kind="stable")]
                self.judge(margins[unsure], paths[block][unsure])

    def low(
        self, paths: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        found = [np.zeros(0)]
        for block in self.blocks(len(paths), REGIONS):
            self.pause(len(paths[block]))
            chosen, among = (None if one is None else one[block] for one in (swapped, allowed))
            forced = self.steps.forced(paths[block])
            given = self.states(paths[block]), start[block], left[block], chosen, among
            found.append(self.bounds.low(*given) if forced is None else self.joining.low(*given, forced))
            self.regions += len(found[-1])
        return np.concatenate(found)

    def closed(
        self, paths: Array, start: Array, left: Array, swapped: Array | None = None, allowed: Array | None = None
    ) -> Array:
        return np.asarray(self.low(paths, start, left, swapped, allowed) > self.threshold)

    def expand(self, nodes: Waiting) -> None:
        bounds = self.bounds
        count, width = bounds.places.swaps.shape
        states = self.states(nodes.paths)
        if bounds.following is not None:
            asked = np.arange(count) >= nodes.start[:, None]
            alone = np.flatnonzero((self.steps.ways(nodes.paths) == 1) | (nodes.left == 1))
            one = nodes.ordered(alone)
            self.evaluate_next(bounds.following, one.paths, states[alone], asked[alone], one.left)
            inner = nodes.left > 1
            nodes, states = nodes.ordered(np.flatnonzero(inner)), states[inner]
            if not nodes.records:
                return
        forced = self.steps.forced(nodes.paths)
        given = states, nodes.start, nodes.left
        after, parts = bounds.inherited(*given) if forced is None else self.joining.inherited(*given, forced)
        places = np.arange(count)
        several = np.flatnonzero(nodes.left > 1)
        end = self.ends(nodes, after, several)
        # With a last swap left the end is inherited, which no bound of the rest itself confirms: all of it is listed.
        for record, stop in zip(nodes.records, np.where(nodes.left > 1, end, count).tolist(), strict=True):
            record.end = stop
        self.evaluate_unbounded(nodes.paths[(nodes.left > 1) & (end == count)])
        inside = (places >= nodes.start[:, None]) & (places < end[:, None])
        live = bounds.places.there & ~(parts > self.threshold) & inside[:, :, None]
        # A part with several live choices may be closed as a whole; one that inherits nothing must be.
        asked = inside if not bounds.inherits else live.sum(axis=2) > 1
        node, place = np.nonzero(asked & (nodes.left > 1)[:, None])
        if len(node):
            whole = self.closed(nodes.paths[node], place + 1, nodes.left[node] - 1, place)
            live[node[whole], place[whole]] = False
            if not bounds.inherits:
                live[node[~whole], place[~whole]] = bounds.places.there[place[~whole]]
        node, place, choice = np.nonzero(live)
        if not len(node):
            return
        paths = nodes.paths[node]
        paths[np.arange(len(node)), bounds.k - nodes.left[node]] = place * width + choice
        left = nodes.left[node]
        inner = left > 1
        if bounds.following is None:
            self.evaluate(self.steps.spread(paths)[0])
        else:
            last = left == 2
            self.finish(bounds.following, nodes, states, (node[last], place[last], choice[last]), paths[last])
            inner = left > 2
        self.put(nodes, node[inner], place[inner], choice[inner], paths[inner])

    def finish(
        self, following: NextSwaps, nodes: Waiting, states: Array, swaps: tuple[Array, Array, Array], paths: Array
    ) -> None:
        """The regions after these swaps of nodes, with one more to make: all sentences that no bound closes.

        Those of a position are one record: whichever swap it was, the same positions are gone through.
        """
        node, place, choice = swaps
        groups = runs(node, place)
        if not groups:
            return
        n, p, first, after = np.array(groups).T
        members = after - first
        ways = self.steps.ways(nodes.paths[n]) * members
        end = self.last_ends(nodes.paths[n], p, ways * (following.starts[-1] - following.starts[p + 1]))
        asked = self.parts_open(nodes.paths[n], p, end, groups, choice)
        sentences = int((ways * (asked @ np.diff(following.starts) + 1)).sum())
        self.listed += sentences
        if self.room is not None:
            self.room(len(groups), sentences)
        group = np.repeat(np.arange(len(groups)), members)
        unbounded = np.flatnonzero((end[group] == self.bounds.places.count) & (ways[group] > members[group]))
        self.evaluate_unbounded(paths[unbounded])
        listed = np.flatnonzero(asked[group].any(axis=1))
        for block in self.blocks(len(listed), BATCH):
            rows = listed[block]
            made = states[node[rows]]
            following.move(made, np.arange(len(made)), place[rows], choice[rows])
            one = np.ones(len(made), dtype=np.int64)
            self.evaluate_next(following, paths[rows], made, asked[group[rows]], one)
        for (row, at, first, last), stop, mine in zip(groups, end.tolist(), asked, strict=True):
            closed = np.flatnonzero(~mine[at + 1 : stop]) + at + 1
            record = Record(at + 1, stop, 1, {q: {} for q in closed.tolist()}, expanded=True)
            nodes.records[row].parts.setdefault(at, {})[tuple(choice[first:last].tolist())] = record

    def evaluate_unbounded(self, paths: Array) -> None:
        """Of those that stand for several: their own sentences, which were not evaluated before."""
        several = paths[self.steps.ways(paths) > 1]
        for block in self.blocks(len(several), max(1, CELLS // max(1, MOST_WAYS * len(self.bounds.base)))):
            self.evaluate(self.steps.spread(several[block])[0])

    def parts_open(self, paths: Array, place: Array, end: Array, groups: list[Group], choice: Array) -> Array:
        """[n, P]: where the last swap may be, after these and some swap of the group, if no bound closes it there."""
        places = np.arange(self.bounds.places.count)
        asked = (places > place[:, None]) & (places < end[:, None])
        if self.bounds.joining is None or self.steps.width > WIDEST or self.listed <= SPARED:
            return asked
        sets = paths.copy()
        sets[:, self.bounds.k - 2] = [self.steps.number(at, choice[a:b].tolist()) for _, at, a, b in groups]
        row, last = np.nonzero(asked & (self.steps.ways(sets) >= WIDE)[:, None])
        if len(row):
            none = np.zeros(len(row), dtype=np.int64)
            closed = self.closed(sets[row], last + 1, none, last)
            asked[row[closed], last[closed]] = False
        return asked

    def last_ends(self, paths: Array, place: Array, sentences: Array) -> Array:
        """[n]: positions from which on one more swap is closed, after these and some swap at `place`; there are so
        many sentences otherwise."""
        known_open, end = place + 1, np.full(len(place), self.bounds.places.count)
        many = (sentences > MANY) | (self.listed > SPARED)
        for _ in range(BISECTIONS):
            wide = np.flatnonzero(many & (end - known_open > 2))
            if not len(wide):
                break
            middle = (end[wide] + known_open[wide]) // 2
            closes = self.closed(paths[wide], middle, np.ones(len(wide), dtype=np.int64), place[wide])
            end[wide[closes]] = middle[closes]
            known_open[wide[~closes]] = middle[~closes]
        return end

    def evaluate_next(self, following: NextSwaps, paths: Array, states: Array, asked: Array, left: Array) -> None:
        """All sentences one swap further than these, at the positions asked for [n, P]."""
        some = asked.any(axis=1)
        if not some.all():
            paths, states, asked, left = paths[some], states[some], asked[some], left[some]
        most = int(self.steps.ways(paths).max(initial=1))
        if most > 1:
            for block in self.blocks(len(paths), max(1, BATCH // most)):
                plain, row = self.steps.spread(paths[block])
                self.evaluate_next(following, plain, self.states(plain), asked[block][row], left[block][row])
            return
        count, width = self.bounds.places.swaps.shape
        made = np.zeros((len(paths), count))
        row, step = np.nonzero(paths >= 0)
        made[row, paths[row, step] // width] = 1.0
        order = np.argsort(asked.argmax(axis=1), kind="stable")
        for block in self.blocks(len(order), cells=SENTENCE_CELLS):
            self.pause(0)
            own = order[block]
            places = np.flatnonzero(asked[own].any(axis=0))
            margins = following.margins(states[own], made[own], places)
            swaps = following.swaps_at(places)
            place, choice = following.place[swaps], following.choice[swaps]
            wanted = asked[own][:, place]
            self.evaluations += int(wanted.sum())
            node, swap = np.nonzero(wanted & ~(margins > self.threshold))
            if len(node):
                lowest = np.argsort(margins[node, swap], kind="stable")
                node, swap = node[lowest], swap[lowest]
                found = paths[own[node]]
                found[np.arange(len(found)), self.bounds.k - left[own[node]]] = place[swap] * width + choice[swap]
                self.judge(margins[node, swap], found)

    def put(self, nodes: Waiting, node: Array, place: Array, choice: Array, paths: Array) -> None:
        """The regions after these swaps, those that stay open on the stack."""
        if not len(node):
            return
        start, left = place + 1, nodes.left[node] - 1
        low = self.low(paths, start, left)
        opened = ~(low > self.threshold)
        if self.room is not None:
            self.room(int(opened.sum()), 0)
        self.together(nodes, node[~opened], place[~opened], choice[~opened], low[~opened])
        found = self.joined(nodes, node[opened], place[opened], choice[opened], low[opened])
        if found:
            found.sort(key=lambda one: -one.low)
            parents = np.array([one.node for one in found])
            paths, left = nodes.paths[parents], nodes.left[parents] - 1
            paths[np.arange(len(found)), self.bounds.k - left - 1] = [
                self.steps.number(one.place, one.choices) for one in found
            ]
            records = [
                Record(one.place + 1, self.bounds.places.count, swaps)
                for one, swaps in zip(found, left.tolist(), strict=True)
            ]
            for one, record in zip(found, records, strict=True):
                nodes.records[one.node].parts.setdefault(one.place, {})[tuple(sorted(one.choices))] = record
            self.stack.append(Waiting(paths, np.array([one.place + 1 for one in found]), left, records))

    @property
    def joining(self) -> LinearBounds:
        if self.bounds.joining is None:
            raise ValueError("a set of choices in a search whose bounds know of none")
        return self.bounds.joining

    def joined(self, nodes: Waiting, node: Array, place: Array, choice: Array, low: Array) -> list[Opened]:
        """Regions that are open one by one, several choices of a position as one where its bound is hardly worse."""
        before = self.steps.ways(nodes.paths)
        found, waiting = list[Opened](), list[Opened]()
        for n, p, first, last in runs(node, place):
            worst_first = first + np.argsort(low[first:last], kind="stable")
            waiting.append(Opened(n, p, choice[worst_first].tolist(), low[worst_first].tolist()))
        joins = self.bounds.joining is not None and self.anew is None and self.steps.width <= WIDEST
        while waiting:
            wide = [one for one in waiting if len(one.choices) > 1]
            found += [one for one in waiting if len(one.choices) == 1]
            asked = [one for one in wide if joins and before[one.node] * len(one.choices) <= MOST_WAYS]
            lows = self.sets_low(nodes, [(one.node, one.place, one.choices) for one in asked])
            whole = {id(one): least for one, least in zip(asked, lows, strict=True)}
            waiting = []
            for one in wide:
                least = whole.get(id(one))
                if least is not None and least >= one.low - JOINED * (self.threshold - one.low):
                    found.append(Opened(one.node, one.place, one.choices, [least]))
                else:
                    waiting += one.halves()
        return found

    def together(self, nodes: Waiting, node: Array, place: Array, choice: Array, low: Array) -> None:
        """Record choices closed one by one, several of a position as one region where its bound allows."""
        if not len(node):
            return
        there = self.bounds.places.there
        found: list[Closed] = []
        for n, p, first, last in runs(node, place):
            best_first = first + np.argsort(-low[first:last], kind="stable")
            parts = nodes.records[n].parts.setdefault(p, {})
            found.append(
                Closed(n, p, np.flatnonzero(there[p]).tolist(), parts, choice[best_first].tolist(), last - first)
            )
        # What is not listed is a region already: first all join it, then the half that is closed more clearly. Each
        # that joins, and each set that is closed as a whole, is a leaf of the proof less.
        for _ in range(2):
            asked = [one for one in found if one.may_join]
            done = self.sets_closed(nodes, [(one.node, one.place, one.with_joining()) for one in asked])
            for one, is_closed in zip(asked, done, strict=True):
                one.joined() if is_closed else one.halve()
        apart = [one for one in found if len(one.choices) > 1]
        whole = self.sets_closed(nodes, [(one.node, one.place, one.choices) for one in apart])
        for one, is_closed in zip(apart, whole, strict=True):
            if is_closed:
                one.parts[tuple(sorted(one.choices))] = None
                one.choices = []
        for one in found:
            one.parts.update(((c,), None) for c in one.choices)

    def sets_closed(self, nodes: Waiting, sets: list[tuple[int, int, list[int]]]) -> list[bool]:
        """Whether the regions with a swap among these choices of a position are closed, each as a whole."""
        return [low > self.threshold for low in self.sets_low(nodes, sets)]

    def sets_low(self, nodes: Waiting, sets: list[tuple[int, int, list[int]]]) -> list[float]:
        """The bounds of these regions."""
        if not sets:
            return []
        node, place = (np.array([one[at] for one in sets]) for at in (0, 1))
        allowed = np.zeros((len(sets), self.bounds.places.swaps.shape[1]), dtype=bool)
        for row, (_, _, choices) in enumerate(sets):
            allowed[row, choices] = True
        found: list[float] = self.low(nodes.paths[node], place + 1, nodes.left[node] - 1, place, allowed).tolist()
        return found

    def ends(self, nodes: Waiting, after: Array, several: Array) -> Array:
        """[n]: the first position from which on what remains is closed; all positions for the others than `several`."""
        count = self.bounds.places.count
        closed = (after > self.threshold) & (np.arange(count + 1) >= nodes.start[:, None])
        closed[:, count] = True
        end = closed.argmax(axis=1)
        if not self.bounds.inherits:
            doubtful = several[end[several] < count]
            while len(doubtful):
                failed = doubtful[~self.closed(nodes.paths[doubtful], end[doubtful], nodes.left[doubtful])]
                end[failed] = np.minimum(count, end[failed] + 1 + (end[failed] - nodes.start[failed]) // 4)
                doubtful = failed[end[failed] < count]
        known_open = nodes.start.copy()
        for _ in range(BISECTIONS):
            wide = several[end[several] - known_open[several] > 2]
            if not len(wide):
                break
            middle = (end[wide] + known_open[wide]) // 2
            closes = self.closed(nodes.paths[wide], middle, nodes.left[wide])
            end[wide[closes]] = middle[closes]
            known_open[wide[~closes]] = middle[~closes]
        return np.asarray(end)


def runs(node: Array, place: Array) -> list[Group]:
    """Of those that follow one another."""
    ends = np.flatnonzero((np.diff(node, append=-1) != 0) | (np.diff(place, append=-1) != 0)) + 1
    firsts = [0, *ends[:-1].tolist()] if len(ends) else []
    return [(int(node[at]), int(place[at]), at, end) for at, end in zip(firsts, ends.tolist(), strict=True)]
