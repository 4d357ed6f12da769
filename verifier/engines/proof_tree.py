"""The proof tree that a certificate states, of what a search did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swapproof.encodings.joint_bounds import GRID, Relaxation, Shallow
from swapproof.encodings.selection import Places
from swapproof.proofs.certificate import Enumerate, Linear, Node, Rivals, Words

from .word_search import Record


@dataclass(frozen=True, eq=False)
class Joint:
    """Sets upper slopes value / 64 and one common intercept per group of elements for a subtree, lower slopes for others.

    `groups`: rectifier node of the network and element -> value, group by group; `slopes`: the same for lower slopes.
    """

    groups: tuple[Mapping[tuple[int, int], int], ...]
    slopes: Mapping[tuple[int, int], int]
    inner: Node


def joint_tree(relaxation: Relaxation, shallow: Shallow, inner: Node) -> Joint:
    values = [round(slope * GRID) for slope in relaxation.slopes.tolist()]
    grouped = {neuron for group in relaxation.groups for neuron in group}
    return Joint(
        tuple({shallow.elements[neuron]: values[neuron] for neuron in group} for group in relaxation.groups),
        {
            element: values[neuron]
            for neuron, element in enumerate(shallow.elements)
            if neuron not in grouped and shallow.weights[neuron] > 0
        },
        inner,
    )


def tree_of(record: Record | None, places: Places) -> Node:
    """A region closed by its bound is a linear leaf; one with a last swap left, an enumeration."""
    if record is None:
        return Linear()
    if record.left <= 1:
        return Enumerate()
    # What remains beyond the last position is one sentence.
    tree: Node = Linear() if record.end < places.count else Enumerate()
    for place in range(record.end - 1, record.start - 1, -1):
        swapped = part_tree(record.parts.get(place, {}), place, places)
        tree = Words(int(places.positions[place]), frozenset({0}), tree, swapped)
    return tree


def part_tree(parts: Mapping[int, Record | None], place: int, places: Places) -> Node:
    """The regions in which the word at this place is swapped: one per choice listed, the others together."""
    waiting = [(choice + 1, tree_of(record, places)) for choice, record in sorted(parts.items())]
    unlisted = int(places.there[place].sum()) - len(parts)
    tree: Node = Linear() if unlisted else waiting.pop()[1]
    for option, inner in reversed(waiting):
        tree = Words(int(places.positions[place]), frozenset({option}), inner, tree)
    return tree


def against_all(trees: Mapping[int, Node]) -> Node:
    """One tree per rival class."""
    (first, tree), *others = sorted(trees.items(), reverse=True)
    del first
    for rival, inner in others:
        tree = Rivals(frozenset({rival}), inner, tree)
    return tree


def leaves(tree: Node) -> int:
    """How many leaves a tree has."""
    count, waiting = 0, [tree]
    while waiting:
        node = waiting.pop()
        inner = [getattr(node, side) for side in ("left", "right", "inner") if hasattr(node, side)]
        waiting.extend(inner)
        count += not inner
    return count
