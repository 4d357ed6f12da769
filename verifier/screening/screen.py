"""A proof screened: every leaf of its tree holds with more room than float64 can err, or the exact checker must look.

Screening never says no. It says yes only if the exact recipe, by FORMAT sections 5 to 8, says yes at every leaf:
* the tree's bytes, splits and limits are read exactly (tree.py);
* a linear leaf's m is known up to an error that covers rounding and every choice of the recipe that may have gone the
  other way (lines.py, substituted.py); m less the error must exceed an upper bound of E(r) (claims.py);
* every sentence of an enumerating leaf is evaluated likewise, and over the rationals where that decides nothing.

The network is read by `encodings`, and proofs/check.py reads the file by itself. That a false proof could be accepted
because of a wrong reading here is held off by three things: models whose operators are not all found one by one in the
network are not screened (coverage.py); before a model is screened its network must answer like the checker's on
sentences of the text (verdict.py); and the exact checker remains the reference, which `--exact` asks for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swapproof.encodings.evaluation import values
from swapproof.encodings.exact import exact_logits
from swapproof.encodings.network import Maximum, Network, Rectifier
from swapproof.encodings.query import Query

from . import claims
from .balls import Floats
from .coverage import Covered
from .joint import Groups
from .magnitudes import evaluation_errors, magnitudes
from .margins import Recipe
from .moves import Moves
from .sentences import sentences
from .sets import Batch, Sets
from .tree import EMPTY, LINEAR, Leaf, Reader, Settings
from .unsure import Unsure

AT_ONCE = 1 << 22
"""Numbers of the widest table of a batch: bounds memory."""
MOST_LEAVES = 512
MOST_SENTENCES, MOST_COUNTING = 20_000_000, 10_000_000
"""FORMAT section 9."""


@dataclass(eq=False)
class Text:
    """One text's space seen by one network, kept for its several proofs."""

    query: Query
    covered: Covered

    @property
    def network(self) -> Network:
        return self.query.network

    @cached_property
    def moves(self) -> Moves:
        return Moves.of(self.query)

    @cached_property
    def whole(self) -> dict[int, claims.Size]:
        return claims.whole_space(self.network, self.query.space, self.covered.merged)

    def screen(self, tree: bytes, swaps: int, level: Literal["real", "float32"], stop: float = float("inf")) -> None:
        """Raises Unsure unless every leaf of the proof surely holds, by `stop` in seconds of time.monotonic()."""
        if level == "float32" and not self.covered.float32:
            raise Unsure("level float32 is not screened for this model")
        sizes = [len(options) for options in self.query.space.choices]
        reader = Reader(tree, sizes, self.query.rivals, self.covered.named, swaps)
        leaves = reader.leaves()
        Screening(self, Sets(self.moves, reader.cells, swaps), level, stop).run(leaves)


@dataclass(eq=False)
class Screening:
    """One proof of one text."""

    text: Text
    sets: Sets
    level: Literal["real", "float32"]
    stop: float

    def run(self, leaves: list[Leaf]) -> None:
        linear: dict[Settings, list[Leaf]] = {}
        listed: list[Leaf] = []
        for leaf in leaves:
            if self.sets.is_empty(leaf):
                continue
            if leaf.kind == EMPTY:
                raise Unsure("a leaf said to be empty is not")
            if leaf.kind == LINEAR:
                linear.setdefault(leaf.settings, []).append(leaf)
            else:
                listed.append(leaf)
        self.count(listed)
        for settings, group in linear.items():
            groups = Groups(self.sets, settings)
            # Regions that share their free positions share tables.
            group.sort(key=lambda leaf: leaf.free)
            for start in range(0, len(group), self.at_once):
                self.look_at_the_clock()
                self.linear(group[start : start + self.at_once], settings, groups)
        for leaf in listed:
            self.enumerate(leaf)

    def look_at_the_clock(self) -> None:
        if time.monotonic() >= self.stop:
            raise Unsure("out of time")

    # ---- numbers for the whole proof

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """[width]: the extremes of the cut over the whole space."""
        everything = np.arange(len(self.sets.cells.sizes), dtype=np.int32)  # the cells a reader numbers first
        groups = ((frozenset(everything.tolist()), 0, self.sets.k),)
        leaf = Leaf(LINEAR, self.sets.cells.free_number(everything), (), (), {}, Settings(), groups, self.sets.k)
        low, high = Batch(self.sets, [leaf]).ends
        return low[0], high[0]

    @cached_property
    def sizes(self) -> dict[int, Floats]:
        moves = self.sets.moves
        low, high = self.ends
        reach = np.maximum(np.abs(low), np.abs(high)) + moves.errors(self.sets.k)
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
        return np.asarray(claims.margin_errors(self.text.whole, self.text.query.label)[0])

    @cached_property
    def at_once(self) -> int:
        """Leaves in a batch."""
        network, moves = self.text.network, self.sets.moves
        sources = [node.inputs[0] for node in network.nodes if isinstance(node.layer, Rectifier | Maximum)]
        deep = [network.nodes[index].size for index in sources if index not in network.linear]
        functions = 2 * max(deep, default=0) + 1
        cells = functions * max(self.sets.swaps.size, moves.width, max(node.size for node in network.nodes))
        return max(1, min(MOST_LEAVES, AT_ONCE // max(1, cells)))

    # ---- leaves

    def linear(self, leaves: list[Leaf], settings: Settings, groups: Groups) -> None:
        recipe = Recipe(Batch(self.sets, leaves), self.sizes, settings, groups)
        for rival in self.text.query.rivals:
            asked = np.array([rival in leaf.rivals for leaf in leaves])
            if asked.any():
                number, error = recipe.margin(rival)
                sure = (number - error > self.claimable[rival]) | recipe.void | ~asked
                if not sure.all():
                    at = int(np.argmin(sure))
                    raise Unsure(
                        f"a linear leaf against class {rival}: {number[at]:.3g}, error {error[at]:.3g}, "
                        f"needed {self.claimable[rival]:.3g}"
                    )

    def count(self, leaves: Iterable[Leaf]) -> None:
        """Sentences to enumerate, as the checker counts them."""
        positions = len(self.sets.cells.sizes)
        total = 0
        known: dict[tuple[int, int], int] = {}
        for leaf in leaves:
            if positions * min(positions, self.sets.k) > MOST_COUNTING:
                raise Unsure("too many positions to count sentences")
            key = leaf.free, leaf.spare
            if key not in known:
                known[key] = self.sentences_of(leaf)
            product = known[key]
            for _, cell in leaf.forced:
                product *= self.sets.cells.listed[cell][1].bit_count()
            total += product
            if total > MOST_SENTENCES:
                raise Unsure("too many sentences to enumerate")

    def sentences_of(self, leaf: Leaf) -> int:
        """With at most as many free swaps as are left."""
        counts = [1]
        for cell in self.sets.cells.rows[leaf.free]:
            if cell >= 0:
                options = self.sets.cells.listed[int(cell)][1].bit_count() - 1
                pairs = zip([*counts, 0], [0, *counts], strict=True)
                counts = [same + options * fewer for same, fewer in pairs][: leaf.spare + 1]
                if max(counts) > 1 << 16000:
                    raise Unsure("a count beyond the format")
        return sum(counts)

    def enumerate(self, leaf: Leaf) -> None:
        query, moves = self.text.query, self.sets.moves
        last = len(self.text.network.nodes) - 1
        rivals = list(leaf.rivals)
        errors = self.own_errors[last]
        needed = self.claimable[rivals] + errors[query.label] + errors[rivals]
        for cut, swaps in sentences(self.sets, leaf):
            self.look_at_the_clock()
            given = {
                index: cut[:, part].reshape(len(cut), *self.text.network.nodes[index].shape)
                for index, part in moves.parts.items()
            }
            found = values(self.text.network, given=given)
            logits = found[last][:, 0]
            margins = logits[:, [query.label]] - logits[:, rivals]
            near = np.flatnonzero(~(margins - 4 * np.spacing(np.abs(margins)) > needed).all(axis=1))
            if len(near):
                self.closely({index: array[near] for index, array in found.items()}, margins[near], swaps[near], rivals)

    def closely(self, found: dict[int, Floats], margins: Floats, swaps: NDArray[np.int64], rivals: list[int]) -> None:
        """Sentences that the whole space's numbers do not decide: by their own rounding, or over the rationals."""
        query, network = self.text.query, self.text.network
        if self.level == "float32":
            sources = [node.inputs[0] for node in network.nodes if isinstance(node.layer, Rectifier | Maximum)]
            far = {index: self.own_errors[index].reshape(1, *network.nodes[index].shape) for index in sources}
            sizes = claims.of_sentences(network, self.text.whole, found, far, self.text.covered.merged)
            own = claims.margin_errors(sizes, query.label)[:, rivals]
            errors = self.own_errors[len(network.nodes) - 1]
            needed = np.minimum(own, self.claimable[rivals]) + errors[query.label] + errors[rivals]
            if not (margins - 4 * np.spacing(np.abs(margins)) > needed).all():
                raise Unsure(f"an enumerated sentence: margin {margins.min():.3g}, needed {needed.min():.3g}")
            return
        for row in swaps:
            logits, _ = exact_logits(network, self.tokens(row))
            own_logit = logits[query.label]
            if any(logits[r] > own_logit or (logits[r] == own_logit and r < query.label) for r in rivals):
                raise Unsure("an enumerated sentence is not safe")

    def tokens(self, swaps: NDArray[np.int64]) -> list[int]:
        space = self.text.query.space
        tokens = list(space.original)
        for swap in swaps[swaps >= 0]:
            i = int(np.searchsorted(self.sets.first, swap, side="right")) - 1
            position = space.swappable[i]
            tokens[position] = space.choices[position][int(swap - self.sets.first[i]) + 1]
        return tokens
