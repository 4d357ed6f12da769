"""How many sentences regions hold: exact integers (FORMAT sections 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from swapproof.encodings.sentence_counts import counts

from ..numbers.region_extremes import Sets
from .tree_leaves import Leaf
from .unsure import Unsure

MOST_ENUMERATED, MOST_COUNTING, MOST_BITS = 20_000_000, 10_000_000, 16_000
"""FORMAT section 9."""


@dataclass(eq=False)
class Census:
    """Of the regions of one proof."""

    sets: Sets
    enumerated: int = 0
    known: dict[tuple[int, int], int] = field(default_factory=dict)
    """(free, spare) -> sentences with at most so many of these swaps."""

    def sentences(self, leaf: Leaf) -> int:
        """Of the region."""
        positions = len(self.sets.cells.sizes)
        if positions * min(positions, self.sets.k) > MOST_COUNTING:
            raise Unsure("too many positions to count sentences")
        if leaf.spare < 0:
            return 0
        key = leaf.free, leaf.spare
        if key not in self.known:
            options = [self.options(int(cell)) for cell in self.sets.cells.rows[leaf.free] if cell >= 0]
            most = min(leaf.spare, len(options))
            self.known[key] = limited(sum(counts([number - 1 for number in options], most)))
        product = self.known[key]
        for _, cell in leaf.forced:
            product *= self.options(cell)
        return limited(product)

    def enumerate(self, leaf: Leaf) -> None:
        """Raises Unsure when with this leaf more sentences are enumerated than the format allows."""
        self.enumerated += self.sentences(leaf)
        if self.enumerated > MOST_ENUMERATED:
            raise Unsure("too many sentences to enumerate")

    def options(self, cell: int) -> int:
        """The original among them, of a free cell."""
        return self.sets.cells.listed[cell][1].bit_count()


def limited(count: int) -> int:
    if count.bit_length() > MOST_BITS:
        raise Unsure("a count beyond the format")
    return count
