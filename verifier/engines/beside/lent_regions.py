"""Regions that wait in a search, lent to a copy of this process.

A search goes down from one batch of regions to all that is left open below them before it takes the next one, and what
becomes of a batch depends on no other. So a copy may search one that waits. It keeps its place on the stack, where the
search takes back what was found: the tree, the counts, and what is raised first are those of one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from swapproof.proofs.writing.certificate import Node, Open
from swapproof.proofs.writing.tree_reader import below, joined, preorder, replaced

from ...process_copy import ProcessCopy

if TYPE_CHECKING:
    from ..word_search import Waiting


@dataclass(frozen=True, eq=False)
class Counts:
    regions: int
    evaluations: int
    listed: int
    records: int = 0

    def since(self, before: Counts) -> Counts:
        return Counts(
            self.regions - before.regions,
            self.evaluations - before.evaluations,
            self.listed - before.listed,
            self.records - before.records,
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Of one batch."""

    nodes: list[list[Node]]
    """Of each of its regions the tree: in preorder, each node above nothing, so that depth costs no recursion."""
    costs: list[float]
    """What these trees cost a checker."""
    own: Counts
    """Of the search itself, ..."""
    all: Counts
    """... and of those inside it."""
    doubtful: list[NDArray[Any]]
    unfinished: bool
    raised: Exception | None

    @property
    def trees(self) -> list[Node]:
        return [replaced(nodes, {}) for nodes in self.nodes]


@dataclass(frozen=True, eq=False)
class Lent:
    regions: Waiting
    copy: ProcessCopy[Found]


def apart(tree: Node) -> list[Node]:
    """The nodes of a tree in preorder, each above nothing."""
    return [joined(node, [Open()] * len(below(node))) for node in preorder(tree)]
