"""The proof tree of a count: words are split, cells are leaves."""

from __future__ import annotations

from swapproof.proofs.writing.certificate import Broken, Enumerate, Linear, Node, Open, Words

from .cells import Cell, Partition


def tree_of(partition: Partition) -> Node:
    """Open cells are open leaves, in the order of `partition.cells()`."""
    trees: dict[int, Node] = {}
    for cell in reversed(list(partition.cells())):  # parts come after the cell that was split into them
        trees[id(cell)] = node_of(partition, cell, trees)
    return trees[id(partition.root)]


def node_of(partition: Partition, cell: Cell, trees: dict[int, Node]) -> Node:
    match cell.kind:
        case "robust":
            return Linear()
        case "broken":
            if cell.rival is None:
                raise ValueError("a broken cell without the rival that breaks it")
            return Broken(cell.rival)
        case "enumerated":
            return Enumerate()
        case "open":
            return Open()
        case "split":
            if cell.stay is None:
                raise ValueError("a split cell without parts")
            word = int(partition.places.words[cell.start])
            stay = trees[id(cell.stay)]
            return Words(word, frozenset({0}), stay, swapped(word, cell.swapped, trees))


def swapped(word: int, parts: list[Cell], trees: dict[int, Node]) -> Node:
    """One part per alternative; those that are enumerated make one leaf, the last."""
    alone = [(option, trees[id(part)]) for option, part in enumerate(parts, start=1) if part.kind != "enumerated"]
    tree = Enumerate() if len(alone) < len(parts) else alone.pop()[1]
    for option, inner in reversed(alone):
        tree = Words(word, frozenset({option}), inner, tree)
    return tree
