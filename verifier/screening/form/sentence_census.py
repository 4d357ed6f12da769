"""How many sentences regions hold: exact integers (FORMAT sections 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        self.try_counting()
        return self.within_number(leaf)

    def enumerate(self, leaf: Leaf) -> None:
        """Raises Unsure when with this leaf more sentences are enumerated than the format allows."""
        self.try_counting()
        self.enumerated += self.within_number(leaf)
        if self.enumerated > MOST_ENUMERATED:
            raise Unsure("too many sentences to enumerate")

    def try_counting(self) -> None:
        positions = len(self.sets.cells.sizes)
        if positions * min(positions, self.sets.k) > MOST_COUNTING:
            raise Unsure("too many positions to count sentences")

    def within_number(self, leaf: Leaf) -> int:
        if leaf.spare < 0:
            return 0
        key = leaf.free, leaf.spare
        if key not in self.known:
            options = [self.options(int(cell)) for cell in self.sets.cells.rows[leaf.free] if cell >= 0]
            self.known[key] = limited(sum(self.product(options, leaf.spare)))
        product = self.known[key]
        for _, cell in leaf.forced:
            product *= self.forced_options(cell)
        return limited(product)

    def product(self, options: list[int], most: int) -> list[int]:
        """Of 1 + n x for every number of options, up to x**most."""
        counts = [1]
        for n in options:
            pairs = zip([*counts, 0], [0, *counts], strict=True)
            counts = [same + n * fewer for same, fewer in pairs][: most + 1]
        return counts

    def options(self, cell: int) -> int:
        """Beside the original."""
        return self.sets.cells.listed[cell][1].bit_count() - 1

    def forced_options(self, cell: int) -> int:
        return self.sets.cells.listed[cell][1].bit_count()


def limited(count: int) -> int:
    if count.bit_length() > MOST_BITS:
        raise Unsure("a count beyond the format")
    return count
