"""A proof screened: every leaf of its tree holds with more room than float64 can err, or the exact checker must look.

Screening never says no. It says yes only if the exact recipe, by FORMAT sections 5 to 8, says yes at every leaf:
* the tree's bytes, splits and limits are read exactly (tree_leaves.py);
* a linear leaf's m is known up to an error that covers rounding and every choice of the recipe that may have gone the
  other way (relaxed_lines.py, substituted_lines.py); m less the error must exceed an upper bound of E(r)
  (encodings/rounding/certified_float32.py);
* every sentence of an enumerating leaf is evaluated likewise, and over the rationals where that decides nothing.

The network is read by `encodings`, and proofs/lower.py reads the file by itself. Before a model is screened both must
have written the same canonical network (agreed_network.py), and the certificate must name its SHA-256. The exact
checker remains the reference, which `--exact` asks for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.exact_evaluation import exactly_beaten
from swapproof.encodings.network import Maximum, Network, Rearrangement, Rectifier
from swapproof.encodings.pools.first_maxima import beyond_cut, pool_of

from ..process_copy import CORES, divided
from .form.sentence_census import Census
from .form.tree_leaves import BROKEN, ENUMERATE, LINEAR, OPEN, Leaf, Reader, Settings
from .form.unsure import Unsure
from .maxima.counted_lines import Counting, Pairs
from .maxima.taken_roots import Lowered, Lowering
from .numbers.enumerated_leaves import Block, PooledLeaves, Swaps, blocks, cut_of
from .numbers.float64_rounding import Floats
from .numbers.joint_groups import Groups, Number, Tables
from .numbers.margins import Recipe
from .numbers.region_extremes import Batch, Sets
from .numbers.values_beyond_cut import evaluation_errors, magnitudes
from .screened_text import Text

Flags = NDArray[np.bool_]

AT_ONCE = 1 << 22
"""Numbers of the widest table of a batch: bounds memory."""
AGAIN = 32
"""Windows of maxima are gone through so often that they should stay in the cache: of 6,336 elements those of 16 leaves
take less time for each leaf than those of 1, and than those of 64."""
MOST_LEAVES = 512
WORTH_A_COPY = 4
"""Batches that are screened sooner by a copy of the process, with that it is made."""
ONE_LEAF = bytes([LINEAR])
MOST_EXACT = 1_000
"""Sentences of one block that are evaluated over the rationals: beyond, check.py does that as well."""


@dataclass(frozen=True)
class Tally:
    """Sentences of a proof; those shown broken, in broken leaves or one by one; those in open leaves."""

    total: int
    broken: int
    open: int


def screen(
    text: Text,
    tree: bytes,
    sizes: Sequence[int],
    swaps: int,
    level: Literal["real", "float32"],
    stop: float = float("inf"),
    counting: bool = False,
) -> Tally:
    """Raises Unsure unless every leaf of the proof surely holds, by `stop` in seconds of time.monotonic().

    `sizes` are the numbers of options of the words that the tree names.
    """
    if level == "float32" and text.whole is None:
        raise Unsure("level float32 is not screened for this model")
    if tree == ONE_LEAF and not counting and (swaps, level) in text.proved:
        return Tally(0, 0, 0)
    reader = Reader(tree, sizes, text.query.rivals, text.agreed.named, swaps, counting)
    leaves = reader.leaves()
    return Screening(text, Sets(text.moves, reader.cells, swaps), level, stop, counting, reader.heights).run(leaves)


@dataclass(eq=False)
class Screening:
    """One proof of one text."""

    text: Text
    sets: Sets
    level: Literal["real", "float32"]
    stop: float
    counting: bool
    heights: bool
    """Whether maxima or rectifiers count swaps somewhere in the proof."""
    broken: int = 0
    open: int = 0

    def run(self, leaves: list[Leaf]) -> Tally:
        if not np.isfinite(self.claimable[list(self.text.query.rivals)]).all():
            raise Unsure("level float32 is beyond the format")
        census = Census(self.sets)
        linear: list[Leaf] = []
        listed: list[Leaf] = []
        for leaf in leaves:
            if leaf.kind == ENUMERATE:
                census.enumerate(leaf)
            if leaf.kind == OPEN:
                self.open += census.sentences(leaf)
            elif leaf.kind == BROKEN:
                self.broken += census.sentences(leaf)
            if leaf.kind == OPEN or leaf.spare < 0:
                continue
            if leaf.kind == ENUMERATE:
                listed.append(leaf)
            else:
                linear.append(leaf)
        # Regions that share their free positions share tables.
        linear.sort(key=lambda leaf: leaf.free)
        batches = [linear[start : start + self.at_once] for start in range(0, len(linear), self.at_once)]
        parts = 1
        while parts < len(batches) // WORTH_A_COPY and CORES.take():
            parts += 1
        unsure = divided(
            partial(self.first_unsure, batches), [range(first, len(batches), parts) for first in range(parts)]
        )
        if first := min(filter(None, unsure), default=()):
            raise Unsure(first[1])
        self.enumerate(listed)
        return Tally(census.sentences(self.everything) if self.counting else 0, self.broken, self.open)

    def first_unsure(self, batches: Sequence[list[Leaf]], numbers: Sequence[int]) -> tuple[int, str] | tuple[()]:
        """The number of the first of these batches that does not surely hold, and why."""
        for number in numbers:
            try:
                self.look_at_the_clock()
                self.linear(batches[number])
            except Unsure as reason:
                return number, str(reason)
        return ()

    def look_at_the_clock(self) -> None:
        if time.monotonic() >= self.stop:
            raise Unsure("out of time")

    # ---- numbers for the whole proof

    @cached_property
    def everything(self) -> Leaf:
        """The whole space as a region."""
        cells = np.arange(len(self.sets.cells.sizes), dtype=np.int32)  # those that a reader numbers first
        return Leaf(LINEAR, self.sets.cells.free_number(cells), (), (), Settings(), self.sets.k)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """[width]: the extremes of the cut over the whole space."""
        low, high = Batch(self.sets, [self.everything]).ends
        return low[0], high[0]

    @cached_property
    def sizes(self) -> dict[int, Floats]:
        moves = self.sets.moves
        low, high = self.ends
        reach = np.maximum(np.abs(low), np.abs(high)) + moves.errors(self.sets.k)
        if self.heights:  # the bound of an element may add to it, for each swap, what one adds to the cut
            reach = reach * (2 * self.sets.k + 1)
        return magnitudes(self.text.network, {index: reach[part] for index, part in moves.parts.items()})

    @cached_property
    def own_errors(self) -> dict[int, Floats]:
        """Node -> [size]: of values evaluated in float64."""
        moves = self.sets.moves
        error = moves.errors(self.sets.k)
        cut = {index: error[part] for index, part in moves.parts.items()}
        return evaluation_errors(self.text.network, cut, self.sizes)

    @cached_property
    def claimable(self) -> Floats:
        """[classes]: an upper bound of E_whole; 0 at level real."""
        if self.level == "real":
            return np.zeros(self.text.network.classes)
        return self.text.claimable

    @cached_property
    def at_once(self) -> int:
        """Leaves in a batch."""
        network, sets = self.text.network, self.sets
        deep = [network.nodes[index].size for index in bounded_by_functions(network)]
        functions = 2 * max(deep, default=0) + 1
        swaps = sets.allowed.shape[1] * len(sets.moves.touched)
        cells = functions * max(swaps, sets.moves.width, max(node.size for node in network.nodes))
        for node in network.nodes:
            if isinstance(node.layer, Maximum):
                cells = max(cells, AGAIN * network.nodes[node.inputs[0]].size, swaps * node.size)
            if isinstance(node.layer, Rectifier) and self.heights:
                cells = max(cells, swaps * node.size)
        return max(1, min(MOST_LEAVES, AT_ONCE // max(1, cells)))

    # ---- leaves

    @cached_property
    def pairs(self) -> dict[tuple[int, int], Pairs]:
        """What is kept of elements that count swaps from batch to batch; and so is the other."""
        return {}

    @cached_property
    def lowering(self) -> Lowering:
        return Lowering(self.sets)

    @cached_property
    def tables(self) -> dict[Number, Tables]:
        return {number: Tables(self.sets, number) for number in (np.float32, np.float64)}

    def linear(self, leaves: list[Leaf], number: Number = np.float32) -> None:
        """The label against the rivals of each leaf; where all is broken, the rival that does it against the label.

        Joint groups are bounded in float32, and in float64 where that is not enough.
        """
        batch = Batch(self.sets, leaves)
        maxima = Counting(batch, self.pairs), Lowered(batch, self.lowering)
        recipe = Recipe(batch, self.sizes, Groups(self.tables[number], batch), *maxima)
        holds = np.ones(len(leaves), dtype=np.bool_)
        label = self.text.query.label
        for rival in self.text.query.rivals:
            robust = np.array([leaf.kind == LINEAR and rival in leaf.rivals for leaf in leaves])
            broken = np.array([leaf.breaker == rival for leaf in leaves])
            for asked, winner, loser in ((robust, label, rival), (broken, rival, label)):
                if not asked.any():
                    continue
                margin, error = recipe.margin(winner, loser)
                sure = (margin - error > self.claimable[rival]) | ~asked
                holds &= sure
                at = int(np.argmin(sure))
                if not sure[at] and (number is np.float64 or not leaves[at].settings.joint):
                    raise Unsure(
                        f"a linear leaf, class {winner} against {loser}: {margin[at]:.3g}, error {error[at]:.3g}, "
                        f"needed {self.claimable[rival]:.3g}"
                    )
        if not holds.all():
            self.linear([leaf for leaf, held in zip(leaves, holds, strict=True) if not held], np.float64)

    def enumerate(self, leaves: list[Leaf]) -> None:
        """Every sentence of these leaves is robust, or counted as broken where that is allowed."""
        query, network = self.text.query, self.text.network
        if not leaves:
            return
        rivals = list(query.rivals)
        asked = np.array([[rival in leaf.rivals for rival in rivals] for leaf in leaves])
        may_break = np.array([self.counting and leaf.whole for leaf in leaves])
        last = len(network.nodes) - 1
        errors = self.own_errors[last]
        doubt = errors[query.label] + errors[rivals]
        for block in self.blocks(leaves):
            self.look_at_the_clock()
            logits = values(network, given=self.given(block))[last][:, 0]
            margins = logits[:, [query.label]] - logits[:, rivals]
            judged = Judged.of(margins, asked[block.region], self.claimable[rivals] + doubt)
            near = np.flatnonzero(judged.unsure)
            if len(near):
                rows = values(network, given=network.split_cut(cut_of(self.sets, block, near)))
                closely = self.closely(rows, margins[near], block.swaps[near], asked[block.region[near]], doubt)
                judged.robust[near], judged.broken[near] = closely.robust, closely.broken
            refuted = judged.unsure | (judged.broken & ~may_break[block.region])
            if refuted.any():
                raise Unsure(f"an enumerated sentence: margins {margins[int(np.argmax(refuted))]}, error {doubt}")
            self.broken += int(judged.broken.sum())

    def blocks(self, leaves: list[Leaf]) -> Iterator[Block]:
        """Their sentences, each under the number of its leaf."""
        single = [number for number, leaf in enumerate(leaves) if leaf.spare == 1]
        pooled = PooledLeaves.of(self.sets, len(single)) if pool_of(self.text.network) is not None else None
        if pooled is None:
            yield from blocks(self.sets, leaves)
            return
        yield from pooled.blocks([(number, leaves[number]) for number in single])
        others = [number for number, leaf in enumerate(leaves) if leaf.spare != 1]
        for block in blocks(self.sets, [leaves[number] for number in others]):
            yield replace(block, region=np.array(others)[block.region])

    def given(self, block: Block) -> dict[int, Floats]:
        """What the values of these sentences go on from."""
        network, pool = self.text.network, pool_of(self.text.network)
        if block.cut is not None:
            return beyond_cut(network, block.cut)
        if pool is None or block.pooled is None:
            raise Unsure("sentences without values")
        return {pool.node: block.pooled.reshape(-1, *network.nodes[pool.node].shape)}

    def closely(self, found: dict[int, Floats], margins: Floats, swaps: Swaps, asked: Flags, doubt: Floats) -> Judged:
        """Sentences that the whole space's numbers do not decide: by their own rounding, or over the rationals."""
        if self.level == "float32":
            own = self.text.claimable_alone(found, self.own_errors)
            return Judged.of(margins, asked, own[:, list(self.text.query.rivals)] + doubt)
        if len(swaps) > MOST_EXACT:
            raise Unsure(f"{len(swaps)} enumerated sentences are nearly tied")
        broken = np.zeros(len(swaps), dtype=np.bool_)
        for row, (own_swaps, against) in enumerate(zip(swaps, asked, strict=True)):
            self.look_at_the_clock()
            rivals = [rival for rival, is_asked in zip(self.text.query.rivals, against, strict=True) if is_asked]
            broken[row] = exactly_beaten(self.text.query, self.tokens(own_swaps), rivals)[0]
        return Judged(~broken, broken)

    def tokens(self, swaps: NDArray[np.int64]) -> list[int]:
        space = self.text.query.space
        tokens = list(space.original)
        for swap in swaps[swaps >= 0]:
            i = int(np.searchsorted(self.sets.first, swap, side="right")) - 1
            position = space.swappable[i]
            tokens[position] = space.choices[position][int(swap - self.sets.first[i]) + 1]
        return tokens


def bounded_by_functions(network: Network) -> set[int]:
    """The nodes whose elements are bounded by a function each: the others from these and from the cut."""
    waiting = [node.inputs[0] for node in network.nodes if isinstance(node.layer, Rectifier | Maximum)]
    found, seen = set[int](), set[int]()
    while waiting:
        index = waiting.pop()
        if index in seen or index in network.linear:
            continue
        seen.add(index)
        if isinstance(network.nodes[index].layer, Rearrangement | Rectifier | Maximum):
            waiting += network.nodes[index].inputs
        else:
            found.add(index)
    return found


@dataclass(frozen=True, eq=False)
class Judged:
    """[n]: which sentences are surely robust, which surely broken."""

    robust: Flags
    broken: Flags

    @classmethod
    def of(cls, margins: Floats, asked: Flags, needed: Floats) -> Judged:
        """By margins [n, rivals] that must exceed what is needed; of the rivals asked for."""
        slack = 4 * np.spacing(np.abs(margins))
        robust = (margins - slack > needed) | ~asked
        return cls(robust.all(axis=1), ((-margins - slack > needed) & asked).any(axis=1))

    @property
    def unsure(self) -> Flags:
        return ~(self.robust | self.broken)
