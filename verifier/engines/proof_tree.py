"""The proof tree that a certificate states, of what a search did."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swapproof.encodings.bounds.chosen_slopes import Multipliers, Relaxation
from swapproof.encodings.bounds.linear_bounds import NO_HEIGHT, Heights
from swapproof.encodings.bounds.selection import Places
from swapproof.encodings.bounds.shallow_margin import Shallow
from swapproof.encodings.canonical import canonical_of
from swapproof.encodings.network import Network, Rectifier
from swapproof.encodings.pools.counted_swaps import HEIGHTS, STAIRS
from swapproof.encodings.sentence_counts import suffix_counts, up_to
from swapproof.proofs.writing.certificate import Enumerate, Joint, Linear, Node, Open, Rivals, Slopes, Words
from swapproof.proofs.writing.tree_reader import below, preorder

from .word_search import Record

LEAF = 100
"""Sentences that cost a checker no more than a linear leaf: measured, 110 to 420 on four networks."""
ORIGINAL = frozenset({0})
"""The word of the text itself, as trees name it."""
OPEN = float("inf")
"""The cost of an open leaf: no tree with one is exchanged for a list of sentences that nobody looked at."""


def rectifier_layers(network: Network) -> dict[int, int] | None:
    """Rectifier node -> its layer in the canonical network, by which trees name it; None where that is not known."""
    layers = canonical_of(network).layer_of
    rectifiers = [index for index, node in enumerate(network.nodes) if isinstance(node.layer, Rectifier)]
    return {index: layers[index] for index in rectifiers} if layers.keys() >= set(rectifiers) else None


def with_heights(heights: Heights, network: Network, inner: Node) -> Node:
    """The heights and stairs of what counts swaps, for a whole tree."""
    if not heights:
        return inner
    layers = canonical_of(network).layer_of
    tables = {layers[index]: dict(enumerate(values.tolist())) for index, values in heights.items()}
    return Slopes({layer: {i: v for i, v in table.items() if v != NO_HEIGHT} for layer, table in tables.items()}, inner)


def kept_heights(tree: Node, network: Network) -> tuple[Heights, Node]:
    """The heights and stairs that are set for a whole tree, and the tree below: the inverse."""
    if not isinstance(tree, Slopes):
        return {}, tree
    nodes, found = {layer: index for index, layer in canonical_of(network).layer_of.items()}, {}
    for layer, table in tree.values.items():
        node = network.nodes[nodes[layer]]
        bend = isinstance(node.layer, Rectifier)
        if bend and min(table.values()) < STAIRS:
            return {}, tree
        found[nodes[layer]] = np.full(node.size, NO_HEIGHT if bend else HEIGHTS)
        found[nodes[layer]][list(table)] = list(table.values())
    return found, tree.inner


def joint_tree(
    relaxation: Relaxation, shallow: Shallow, layers: Mapping[int, int], inner: Node, nested: bool = False
) -> Node:
    """Joint groups, and the lower slopes of the other neurons, for a whole tree; nested trees unset what is above.

    `layers`: rectifier node -> its layer in the canonical network.
    """
    grouped = {neuron for group in relaxation.groups for neuron in group}
    lower: dict[int, dict[int, int]] = {}
    for neuron, (index, element) in enumerate(shallow.elements):
        if neuron not in grouped and shallow.weights[neuron] > 0:
            lower.setdefault(layers[index], {})[element] = relaxation.steps[neuron]
    groups = [
        (
            layers[shallow.elements[group[0]][0]],
            {shallow.elements[neuron][1]: relaxation.steps[neuron] for neuron in group},
        )
        for group in relaxation.groups
    ]
    tree = Slopes(lower, inner) if lower else inner
    return Joint(tuple(groups), tree) if groups or nested else tree


def refined_tree(multipliers: Multipliers, layers: Mapping[int, int], inner: Node) -> Node:
    """The groups and slopes of a deeper network, for a whole tree."""
    slopes: dict[int, dict[int, int]] = {}
    for index, steps in multipliers.steps.items():
        alone = {element: step for element, step in steps.items() if multipliers.grouped[index][element] < 0}
        if alone:
            slopes[layers[index]] = alone
    groups = tuple(
        (layers[index], {element: multipliers.steps[index][element] for element in members})
        for index, members in multipliers.groups
    )
    tree = Slopes(slopes, inner) if slopes else inner
    return Joint(groups, tree) if groups else tree


def tree_of(record: Record | None, places: Places) -> Node:
    """The tree of a whole search: a region closed by its bound is a linear leaf; with a last swap left, enumerated.

    What the search left open are open leaves.
    """
    return Linear() if record is None else Planter(places, record.left).region(record)[0]


class Planter:
    """Trees with what they cost a checker, in sentences: regions of few sentences are rather enumerated."""

    def __init__(self, places: Places, k: int) -> None:
        self.places = places
        self.words: list[int] = places.words.tolist()
        self.choices: list[int] = places.there.sum(axis=1).tolist()
        """At each position."""
        self.counts = up_to(suffix_counts(self.choices, k))
        """[start][left]: sentences with at most `left` swaps from position `start` on."""

    def region(self, record: Record, ways: int = 1) -> tuple[Node, float]:
        """`ways`: how many combinations of choices it leaves open of the swaps made before."""
        if record.tree is not None and record.cost is not None:
            return record.tree, record.cost
        if record.tree is not None:
            return record.tree, OPEN if is_open(record.tree) else LEAF * leaves(record.tree)
        if not record.expanded:
            return Open(), OPEN
        sentences = ways * self.counts[record.start][record.left]
        if record.left <= 1 and record.end == self.places.count and not record.parts:
            return Enumerate(), sentences
        tree, total = self.closed(ways, record.end, record.left)
        if record.end == self.places.count:  # one sentence for each way, evaluated and not bounded
            tree, total = Enumerate(), float(ways)
        if record.left <= 1:
            for place in range(record.end - 1, record.start - 1, -1):
                own = ways * self.choices[place]
                swapped, cost = self.closed(own, place + 1, 0) if place in record.parts else (Enumerate(), float(own))
                tree, total = Words(self.words[place], ORIGINAL, tree, swapped), total + cost
            return (Enumerate(), sentences) if sentences <= total else (tree, total)
        for place in range(record.end - 1, record.start - 1, -1):
            swapped, cost = self.part(record.parts.get(place, {}), place, record.left - 1, ways)
            tree = Words(self.words[place], ORIGINAL, tree, swapped)
            total += cost
        return (Enumerate(), sentences) if sentences <= total < OPEN else (tree, total)

    def part(
        self, parts: Mapping[tuple[int, ...], Record | None], place: int, left: int, before: int
    ) -> tuple[Node, float]:
        """The regions in which the word at this place is swapped: those listed, and the other choices together."""

        def listed(ways: int, record: Record | None) -> tuple[Node, float]:
            return self.closed(ways, place + 1, left) if record is None else self.region(record, ways)

        waiting = [(choices, listed(before * len(choices), record)) for choices, record in sorted(parts.items())]
        there = self.choices[place]
        unlisted = there - sum(len(choices) for choices in parts)
        tree, total = self.closed(before * unlisted, place + 1, left) if unlisted else waiting.pop()[1]
        for choices, (inner, cost) in reversed(waiting):
            options = frozenset(choice + 1 for choice in choices)
            tree, total = Words(self.words[place], options, inner, tree), total + cost
        sentences = before * there * self.counts[place + 1][left]
        return (Enumerate(), sentences) if sentences <= total < OPEN else (tree, total)

    def closed(self, ways: int, start: int, left: int) -> tuple[Node, float]:
        sentences = ways * self.counts[start][left]
        return (Enumerate(), sentences) if sentences < LEAF else (Linear(), LEAF)


def against_all(trees: Mapping[int, Node]) -> Node:
    """One tree per rival class."""
    (first, tree), *others = sorted(trees.items(), reverse=True)
    del first
    for rival, inner in others:
        tree = Rivals(frozenset({rival}), inner, tree)
    return tree


def is_open(tree: Node) -> bool:
    """Whether anything in it is left to prove."""
    return any(isinstance(node, Open) for node in preorder(tree))


def leaves(tree: Node) -> int:
    """How many leaves a tree has."""
    return sum(not below(node) for node in preorder(tree))
