"""One attempt to prove that k swaps are harmless: which bounds are used where, and what a sentence found means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.bounds.chosen_slopes import Relaxation
from swapproof.encodings.bounds.joint_bounds import Ascent, JointBound
from swapproof.encodings.bounds.linear_bounds import NO_HEIGHTS, Heights, LinearBounds
from swapproof.encodings.bounds.refined_bounds import RefinedBounds
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import Shallow, is_shallow, shallow_margin
from swapproof.encodings.bounds.slope_ascent import SlopeAscent
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.network import Maximum, Rectifier
from swapproof.encodings.query import Query
from swapproof.encodings.rounding.certified_margins import Certified
from swapproof.proofs.writing.certificate import Joint, Linear, Node, Open, Slopes
from swapproof.proofs.writing.tree_reader import preorder, replaced

from ..interval import Level
from ..process_copy import CORES, ProcessCopy
from .all_rivals import AllRivals
from .beside.choice_sets import Steps
from .beside.counting_heights import usual_heights
from .beside.lent_regions import Counts, Found, Lent, apart
from .open_leaves import Rest, kept_relaxation, listed_in, of_rivals, rest_of, unwrapped
from .proof_tree import (
    Planter,
    against_all,
    is_open,
    joint_tree,
    kept_heights,
    refined_tree,
    tree_of,
    with_heights,
)
from .protocol import Budget
from .word_search import Bounds, Record, Search, Unfinished, Waiting

Array = NDArray[Any]
Anew = Callable[[Array, int, int], Node]
"""(swaps made p * C + c, start, left) -> the tree of a search of its own for this region."""

LOOK = 0.05
"""Seconds between two looks at how many cores there are, while a copy is waited for."""
JOINT_STAGES = ((16, 24, 64), (256, 64, 512))
"""Patterns a group may have, steps of ascent, and neurons among which groups are sought, one after the other until the
bound of the whole space closes."""
AGAIN_STAGES = ((256, 16, 0),)
"""The same for a part of the space, from the slopes of the whole and with its groups."""
REFINED_STAGES = ((1, 12), (4, 12), (8, 16))
"""Neurons in a group, and steps of ascent, for the first layer of a deeper network."""
HOPELESS = 0.3
"""Share of the text's margin that a bound may miss before groups are tried: they won 0.2 of it at most."""
MOST_PATTERNS = 16_384
"""Of all groups together: every region costs a number for each."""
REACH, SHRINK = 0.3, 0.97
"""How much better a bound each step of the ascent aims at, at first, and the factor from step to step."""
NEARER = 0.5
"""The same of joint bounds that are far from the threshold, as a share of what the best so far lacks to it."""
GUARD = 64.0
"""Bounds must exceed this many times the error of a margin in float64: they add up a few times more terms."""
TOGETHER, TOGETHER_CELLS = 800, 1 << 22
"""Regions spent, after the time is up, on what can be counted of all rivals together; fewer where each is dear."""
STEPS = 40
"""Positions chosen one after the other: a search for more than two swaps is worth P bounds for each."""
MOST_RECORDS = 200_000
"""Regions that one attempt may have split: with the tree made of them about 3 KB each, measured."""
MOST_LISTED = 20_000_000
"""Sentences that the leaves of one tree may list (FORMAT.md, section 9)."""
NODES_A_RECORD = 8
"""Nodes of a tree that take as much memory."""
GRID = 2.0**-48
"""The checker rounds bounds to multiples of 2^-64, which weights may then magnify."""


@dataclass(eq=False)
class Broken(Exception):
    """A sentence that breaks the text over the reals."""

    tokens: tuple[int, ...]


@dataclass(eq=False)
class Unclaimable(Exception):
    """The margin of a sentence with so many swaps is inside the rounding bound: nothing can be claimed at float32."""

    swaps: int


class Doubt(Exception):
    """A sentence of which a count would have to be told apart whether it is robust."""


@dataclass(frozen=True)
class Effort:
    """How much time a search may take for a smaller proof."""

    before_joint: int = 200
    """Regions spent on linear bounds before the dearer joint bounds."""
    patience: int = 2_000
    """Regions of one search with joint bounds before what is left of it has its slopes found anew."""
    refine: bool = False
    """Whether slopes and groups are sought for parts of the space of deeper networks."""


FAST, SMALL = Effort(), Effort(before_joint=30, refine=True)


@dataclass(eq=False)
class Attempt:
    """Proves that no sentence with at most k swaps breaks the text, at one level of truth."""

    query: Query
    places: Places
    errors: Array
    """[rivals]: how far the margin of any sentence, evaluated in float64, can be from the real one."""
    k: int
    level: Level
    budget: Budget
    layers: Mapping[int, int] | None = None
    """Rectifier node -> its layer in the canonical network, when joint bounds may be used."""
    effort: Effort = FAST
    allowed: float = float("inf")
    """Regions that may be bounded."""
    regions: int = 0
    unfinished: bool = False
    """Out of time, of memory, or of the regions allowed: leaves of the tree are open."""
    records: int = 0
    listed: int = 0
    heights: Heights = field(default_factory=dict)
    """Those set above the tree that is being made."""
    doubtful: list[Array] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    """Those that go on, each inside the one before it."""

    def run(self, kept: Node | None = None) -> Node:
        """The tree, going on from one that was left open. Raises Broken or Unclaimable."""
        before = of_rivals(kept, self.query.rivals)
        if kept is not None:
            self.records = len(preorder(kept)) // NODES_A_RECORD
            self.listed = sum(listed_in(tree, self.places, self.k) for tree in before.values())
        trees: dict[int, Node] = {}
        for number, rival in enumerate(self.query.rivals):
            known = before[rival]
            if not is_open(known) or self.unfinished:
                trees[rival] = known
            else:
                trees[rival] = self.against(number, known)
        return against_all(trees)

    def against(self, rival: int, kept: Node) -> Node:
        """With maxima that count swaps, unless the bound of the whole closes it without, or a kept tree has none."""
        network, usual = self.query.network, self.usual_heights
        self.heights, inner = kept_heights(kept, network)
        if isinstance(kept, Open) and usual and not self.closes(LinearBounds(self.places, rival, self.k), rival):
            self.heights = usual
        try:
            return with_heights(self.heights, network, self.below_heights(rival, inner))
        finally:
            self.heights = NO_HEIGHTS

    @property
    def usual_heights(self) -> Heights:
        return usual_heights(self.places, self.layers, slopes=self.effort.refine) if self.k >= 2 else NO_HEIGHTS

    def closes(self, bounds: LinearBounds, rival: int) -> bool:
        """Whether the bound of the whole space does."""
        return bool(bounds.of_whole[0][0] > self.threshold(rival))

    def below_heights(self, rival: int, kept: Node) -> Node:
        groups = self.layers is not None and self.k >= 2 and is_shallow(self.query.network)
        if isinstance(kept, Joint | Slopes) or not (groups or isinstance(kept, Open)):
            return self.further(self.places, rival, self.k, kept)
        if self.layers is None or not groups:
            return self.linearly(self.places, rival, self.k)
        allowed = self.allowed
        self.allowed = min(allowed, self.regions + self.effort.before_joint)
        tree = self.linearly(self.places, rival, self.k)
        self.allowed = allowed
        if not self.unfinished or self.out_of_time:
            return tree
        self.unfinished = False
        return self.jointly(shallow_margin(self.places, rival), rival, self.k, self.layers)

    def together(self) -> Node | None:
        """A tree of few regions that proves what it can against all rivals at once; None when it finds a doubt."""
        rivals = range(len(self.query.rivals))
        first = self.in_order(LinearBounds(self.places, 0, self.k))
        bounds = AllRivals(first.places, [self.threshold(rival) for rival in rivals], self.k)
        most = min(TOGETHER, TOGETHER_CELLS // first.cells) // len(rivals)

        def pause(regions: int) -> None:
            if search.regions > most:
                raise Unfinished

        search = Search(bounds, 0.0, refuse, pause)
        try:
            return tree_of(search.run(), bounds.places)
        except Doubt:
            return None

    def linearly(self, places: Places, rival: int, k: int) -> Node:
        """Linear bounds; the region is a leaf when its own bound closes it, or with slopes and groups of its own."""
        bounds = LinearBounds(places, rival, k, self.heights)
        if self.closes(bounds, rival):
            return Linear()
        refined = self.refined(bounds, rival)
        if refined is not None:
            return refined
        bounds = self.in_order(bounds)
        return self.searched(bounds, rival, self.linear_parts(bounds, rival))

    def in_order(self, bounds: LinearBounds) -> LinearBounds:
        """With the positions in the order in which they are decided."""
        places, rival, k = bounds.places, bounds.rival, bounds.k
        careful = any(isinstance(node.layer, Maximum) for node in self.query.network.nodes)
        steps = STEPS if k > 2 else 1
        order = bounds.careful_order(self.threshold(rival), steps) if careful and k > 1 else bounds.order()
        return LinearBounds(places.reordered(order), rival, k, self.heights)

    def refined(self, bounds: LinearBounds, rival: int) -> Node | None:
        """A leaf with slopes and joint groups found for it; None where they do not close it."""
        network, threshold = self.query.network, self.threshold(rival)
        bent = any(isinstance(network.nodes[index].layer, Rectifier) for index in self.heights)
        if not self.effort.refine or self.layers is None or is_shallow(network) or bounds.k < 2 or bent:
            return None  # an element has a slope or a height, and a kept tree may have heights
        margin = float(bounds.margins(bounds.base[None])[0])
        ascent = SlopeAscent(bounds)
        for size, steps in REFINED_STAGES:
            if size > 1:
                ascent.group(size)
            for step in range(steps):
                if self.out_of_time:
                    return None
                if ascent.step(REACH * SHRINK**step) > threshold:
                    break
            if ascent.best < threshold - HOPELESS * margin:
                return None
            if ascent.best > threshold:
                multipliers = ascent.multipliers()
                own = RefinedBounds(bounds.places, rival, bounds.k, multipliers, self.heights)
                if own.of_whole[0][0] > threshold:
                    return refined_tree(multipliers, self.layers, Linear())
        return None

    def jointly(
        self, shallow: Shallow, rival: int, k: int, layers: Mapping[int, int], before: Relaxation | None = None
    ) -> Node:
        """Joint bounds; when the search is long, what is left of it has its slopes found anew, from those `before`."""
        relaxation, threshold = before, self.threshold(rival)
        concave = int((shallow.weights < 0).sum())
        for most, steps, among in JOINT_STAGES if before is None else AGAIN_STAGES:
            ascent = Ascent(shallow, k, group_size(concave, most), relaxation, among)
            reach = REACH
            for step in range(steps):
                if ascent.step(reach * SHRINK**step, threshold) > threshold:
                    break
                far = threshold - ascent.best  # without end where nothing can be claimed of float32
                reach = max(REACH, NEARER * far) if math.isfinite(far) else REACH
            found = ascent.relaxation()
            if ascent.best > threshold:
                if ascent.bound(found.slopes) > threshold:
                    self.regions += 1
                    return joint_tree(found, shallow, layers, Linear(), nested=before is not None)
                break
            relaxation = before or found
        bounds = JointBound(shallow, found, k)
        inner = self.searched(bounds, rival, self.joint_parts(bounds, rival, layers), self.effort.patience)
        return joint_tree(found, shallow, layers, inner, nested=before is not None)

    def linear_parts(self, bounds: LinearBounds, rival: int) -> Anew | None:
        def anew(path: Array, start: int, left: int) -> Node:
            return self.linearly(after(bounds, path, start), rival, left)

        return anew if self.effort.refine else None

    def joint_parts(self, bounds: JointBound, rival: int, layers: Mapping[int, int]) -> Anew:
        def anew(path: Array, start: int, left: int) -> Node:
            return self.jointly(bounds.shallow.after(path.tolist(), start), rival, left, layers, bounds.relaxation)

        return anew

    def searched(self, bounds: Bounds, rival: int, anew: Anew | None, patience: int = 0) -> Node:
        with self.search(bounds, rival, anew, patience) as search:
            return tree_of(search.run(), bounds.places)

    @contextmanager
    def search(self, bounds: Bounds, rival: int, anew: Anew | None, patience: int) -> Iterator[Search]:
        judge, threshold = self.judge(bounds, rival), self.threshold(rival)
        search = Search(bounds, threshold, judge, self.pause, anew, patience, self.room, returned=self.returned)
        self.searches.append(search)
        try:
            yield search
        finally:
            self.searches.pop()
            self.unfinished |= search.unfinished
            self.budget.evaluations += search.evaluations

    def further(self, places: Places, rival: int, k: int, kept: Node) -> Node:
        """The kept tree with its open leaves searched: those of one search together, those of others one by one."""
        joint, slopes, _ = unwrapped(kept)
        bounds: Bounds
        anew: Anew | None
        if self.layers is not None and (joint or slopes):
            shallow = shallow_margin(places, rival)
            bounds = JointBound(shallow, kept_relaxation(joint, slopes, shallow, self.layers, k), k)
            anew, patience = self.joint_parts(bounds, rival, self.layers), self.effort.patience
        else:
            bounds = self.in_order(LinearBounds(places, rival, k, self.heights))
            anew, patience = self.linear_parts(bounds, rival), 0
        nodes, others = preorder(kept), dict[int, Node]()
        rest = list(rest_of(nodes, bounds.places, (joint is not None) + (slopes is not None)))
        together = [one for one in rest if isinstance(one.tree, Open) and one.leads]
        waiting = waiting_of(together, bounds)
        with self.search(bounds, rival, anew, patience) as search:
            search.go_on(waiting)
        planted = zip(together, planted_of(search, waiting), strict=True)
        others |= {one.number: tree for one, (tree, _) in planted}

        def alone(one: Rest) -> Node:
            if self.unfinished:
                return one.tree
            inner, left = one.places(bounds.places), bounds.k - len(one.made)
            if isinstance(one.tree, Joint | Slopes):
                return self.further(inner, rival, left, one.tree)
            if isinstance(bounds, JointBound) and self.layers is not None:
                return self.jointly(shallow_margin(inner, rival), rival, left, self.layers, bounds.relaxation)
            return self.linearly(inner, rival, left)

        for one in rest:
            if one.number not in others and not self.unfinished and is_open(one.tree):
                others[one.number] = one.proved_with(alone, bounds.places)
        return replaced(nodes, others)

    def pause(self, regions: int) -> None:
        self.regions += regions
        if self.regions > self.allowed or self.full or self.out_of_time:
            raise Unfinished
        self.lend()

    def lend(self) -> None:
        """Copies of this process get regions that wait, of the outermost search that has some."""
        if self.allowed < math.inf or self.out_of_time:
            return
        with suppress(OSError):  # no room for another process
            for search in self.searches:
                while search.divides and CORES.take():
                    if not search.lend(partial(self.lent, search)):
                        CORES.give()
                        break

    def lent(self, search: Search, regions: Waiting) -> Lent:
        return Lent(regions, ProcessCopy.begin(lambda: self.found(search, regions)))

    def found(self, search: Search, regions: Waiting) -> Found:
        """What a copy does with these regions of a search, its own counters beginning with 0."""
        self.regions = self.records = self.listed = self.budget.evaluations = 0
        self.doubtful, self.unfinished, raised = [], False, None
        own = Counts(search.regions, search.evaluations, search.listed)
        search.stack, self.searches = [regions], [search]
        try:
            search.work()
        except Unfinished:
            self.unfinished = True
        except (Broken, Unclaimable) as met:
            raised = met
        planted = [] if raised else planted_of(search, regions)
        return Found(
            [apart(tree) for tree, _ in planted],
            [cost for _, cost in planted],
            Counts(search.regions, search.evaluations, search.listed).since(own),
            Counts(self.regions, self.budget.evaluations, self.listed, self.records),
            self.doubtful,
            self.unfinished,
            raised,
        )

    def returned(self, lent: Lent) -> Found | None:
        """None when the copy died, or there is no room for what it found: where that ends is found here."""
        CORES.give()  # this process only waits
        try:
            while not lent.copy.done_within(LOOK):
                if self.full:
                    return None
                self.lend()
        finally:
            CORES.take_back()
        found = lent.copy.result()
        if found is None or self.records + found.all.records > MOST_RECORDS:
            return None
        if self.listed + found.all.listed > MOST_LISTED:
            return None
        self.regions += found.all.regions
        self.records += found.all.records
        self.listed += found.all.listed
        self.budget.evaluations += found.all.evaluations
        self.doubtful += found.doubtful
        return found

    def room(self, records: int, listed: int) -> None:
        self.records += records
        self.listed += listed
        if self.full:
            raise Unfinished

    @property
    def full(self) -> bool:
        """Whether there is no room for more."""
        return bool(self.short_of)

    @property
    def short_of(self) -> str:
        """What there is no room in, if so."""
        return "memory" * (self.records > MOST_RECORDS) or "the sentences a proof may list" * (
            self.listed > MOST_LISTED
        )

    @property
    def out_of_time(self) -> bool:
        return self.budget.spent

    @property
    def certified(self) -> Certified:
        return Certified.of(self.places.differences.query)

    def threshold(self, rival: int) -> float:
        """What a bound must exceed to be believed."""
        claimable = self.certified.claimable[rival] if self.level == "float32" else 0.0
        return float(claimable) + GUARD * float(self.errors[rival]) + GRID

    def judge(self, bounds: Bounds, rival: int) -> Any:
        certified, error = self.certified, float(self.errors[rival])
        label, other = self.query.label, self.query.rivals[rival]
        alone = Query(self.query.network, self.query.space, label, (other,))

        def judged(margins: Array, paths: Array) -> None:
            sentences = np.array([self.sentence(bounds, path) for path in paths], dtype=np.int64)
            if margins[0] < -error:
                raise Broken(tuple(sentences[0].tolist()))
            own = [certified.own_errors(sentence[None]) for sentence in sentences]
            doubt, claimable = (np.array([part[end][0, rival] for part in own]) for end in (0, 1))
            unsure = margins <= error
            for row in np.flatnonzero(unsure):
                tokens = tuple(sentences[row].tolist())
                won, plain = exactly_beaten(alone, tokens)
                if won:
                    raise Broken(tokens)
                unsure[row] = not plain
            doubtful = np.where(margins > error, margins <= error + doubt, unsure)
            if doubtful.any():
                self.doubtful.append(sentences[doubtful])
            if self.level == "float32" and (margins <= error + claimable).any():
                close = np.flatnonzero(margins <= error + claimable)
                raise Unclaimable(min(self.swaps(sentences[row]) for row in close))

        return judged

    def sentence(self, bounds: Bounds, path: Array) -> tuple[int, ...]:
        places = bounds.places
        return places.differences.sentence((*places.made, *places.swaps.reshape(-1)[path[path >= 0]].tolist()))

    def swaps(self, sentence: Array) -> int:
        return int((sentence != np.array(self.query.space.original)).sum())


def planted_of(search: Search, regions: Waiting) -> list[tuple[Node, float]]:
    """The trees of regions that were searched, and what they cost a checker."""
    planter = Planter(search.bounds.places, search.bounds.k)
    ways = search.steps.ways(regions.paths).tolist()
    return [planter.region(record, combined) for record, combined in zip(regions.records, ways, strict=True)]


def refuse(margins: Array, paths: Array) -> None:
    raise Doubt


def after(bounds: Bounds, path: Array, start: int) -> Places:
    """What is left to decide after these swaps, from position `start` on."""
    return bounds.places.after(bounds.places.swaps.reshape(-1)[path].tolist(), start)


def waiting_of(rest: list[Rest], bounds: Bounds) -> Waiting:
    """Open leaves as a search meets them."""
    paths, steps = np.full((len(rest), bounds.k), -1), Steps(*bounds.places.swaps.shape)
    for row, one in enumerate(rest):
        paths[row, : len(one.made)] = [steps.number(at, choices) for at, choices in one.made]
    start = np.array([len(one.decided) for one in rest], dtype=np.int64)
    left = np.array([bounds.k - len(one.made) for one in rest], dtype=np.int64)
    ends = zip(start.tolist(), left.tolist(), strict=True)
    return Waiting(paths, start, left, [Record(at, bounds.places.count, swaps) for at, swaps in ends])


def group_size(neurons: int, most: int) -> int:
    """The largest size of groups whose patterns are at most `most` each and, if they can, MOST_PATTERNS in all."""
    sizes = range(most.bit_length() - 1, 4, -1)
    return next((size for size in sizes if -(-neurons // size) * 2**size <= MOST_PATTERNS), 4)
