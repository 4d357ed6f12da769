"""What the certificate of an open text says beyond its low end: of how many sentences a search had disposed.

The tree of a search that had to stop proves that no sentence in its closed leaves changes the class. Its sentences are
counted exactly: a region is a product of choices, and with at most k swaps the coefficients up to x**k of

    x**forced * ways * product over undecided positions of (1 + alternatives x)

are summed. What is published is cut to the leaves that dispose of most sentences: an auditor checks each exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swapproof.encodings.errors import BadInput
from swapproof.encodings.sentence_counts import counts
from swapproof.encodings.space import SwapSpace
from swapproof.encodings.word_options import option_counts
from swapproof.proofs.writing.certificate import Count, Enumerate, Joint, Linear, Node, Open, Slopes, Words
from swapproof.proofs.writing.tree_reader import below, preorder, replaced

from ..engines.open_leaves import after_each
from ..engines.proof_tree import LEAF
from ..interval import Cover

MOST_LEAVES = 128
"""Linear leaves that are published, about; an enumerating leaf counts by its sentences."""
MOST_BITS = 15_000
"""Of a count: the format allows a little more."""
MOST_NODES = 30_000
"""Whose sentences are counted, those of the largest regions first: what lies below them disposes of little."""


@dataclass(frozen=True)
class Part:
    """The sentences of a region: x**forced * ways * series, undecided positions in the series only."""

    forced: int
    ways: int
    series: tuple[int, ...]

    @property
    def sentences(self) -> int:
        return self.ways * sum(self.series[: max(0, len(self.series) - self.forced)])

    def decided(self, alternatives: int) -> tuple[int, ...]:
        """The series without the factor 1 + alternatives x of one position."""
        rest: list[int] = []
        for coefficient in self.series:
            rest.append(coefficient - (alternatives * rest[-1] if rest else 0))
        return tuple(rest)


def counted(cover: Cover, space: SwapSpace) -> Count | None:
    """The count that the cover proves; None when it disposes of nothing."""
    nodes = preorder(cover.together or cover.tree)
    sizes = option_counts(space)
    if not all(isinstance(node, Words | Joint | Slopes | Linear | Enumerate | Open) for node in nodes):
        return None
    sentences = sentences_of(nodes, sizes, cover.swaps)
    tree, robust = cut(nodes, sentences)
    if not robust or sentences[0].bit_length() > MOST_BITS:
        return None
    return Count(cover.swaps, cover.level, tree, robust, 0, sentences[0])


def sentences_of(nodes: Sequence[Node], sizes: Sequence[int], k: int) -> list[int]:
    """Of each node's region, in preorder; 0 where the regions are too small to matter."""
    found = [0] * len(nodes)
    ends = after_each(nodes)
    whole = Part(0, 1, tuple(counts([size - 1 for size in sizes], k)))
    waiting: list[tuple[int, int, Part, dict[int, int]]] = [(0, 0, whole, {})]
    """(less its sentences, node, its region, words that were swapped -> options left there)."""
    for _ in range(MOST_NODES):
        if not waiting:
            break
        _, number, part, swapped = heapq.heappop(waiting)
        found[number] = part.sentences
        match node := nodes[number]:
            case Words():
                sides = split(part, swapped, node, sizes)
                for child, (side, now) in zip(children(nodes, ends, number), sides, strict=True):
                    heapq.heappush(waiting, (-side.sentences, child, side, now))
            case _:
                for child in children(nodes, ends, number):
                    heapq.heappush(waiting, (-part.sentences, child, part, swapped))
    return found


def split(
    part: Part, swapped: dict[int, int], node: Words, sizes: Sequence[int]
) -> tuple[tuple[Part, dict[int, int]], tuple[Part, dict[int, int]]]:
    """Both sides of a split as searches make them: the original first, then some alternatives against the others."""
    word, chosen = node.word, len(node.left_options)
    if word in swapped:
        every = swapped[word]
        one, other = (
            (Part(part.forced, part.ways // every * ways, part.series), {**swapped, word: ways})
            for ways in (chosen, every - chosen)
        )
        return one, other
    if node.left_options != {0}:
        raise BadInput(f"a kept tree that splits word {word} otherwise than a search does")
    alternatives = sizes[word] - 1
    series = part.decided(alternatives)
    away = Part(part.forced + 1, part.ways * alternatives, series)
    return (Part(part.forced, part.ways, series), swapped), (away, {**swapped, word: alternatives})


def cut(nodes: Sequence[Node], sentences: Sequence[int]) -> tuple[Node, int]:
    """The tree with the closed leaves that dispose of most, and the sentences these dispose of."""
    ends = after_each(nodes)
    closed = [0] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        is_closed = isinstance(nodes[number], Linear | Enumerate)
        closed[number] = sentences[number] if is_closed else sum(closed[i] for i in children(nodes, ends, number))
    kept = [False] * len(nodes)
    robust, cost = 0, 0.0
    waiting = [(-closed[0], 0)]
    while waiting and cost < MOST_LEAVES:
        _, number = heapq.heappop(waiting)
        if isinstance(nodes[number], Linear | Enumerate):
            kept[number] = True
            robust += sentences[number]
            cost += 1 if isinstance(nodes[number], Linear) else sentences[number] / LEAF
        for child in children(nodes, ends, number):
            if closed[child]:
                heapq.heappush(waiting, (-closed[child], child))
    for number in range(len(nodes) - 1, -1, -1):
        kept[number] = kept[number] or any(kept[i] for i in children(nodes, ends, number))
    return replaced(nodes, {number: Open() for number, has in enumerate(kept) if not has}), robust


def children(nodes: Sequence[Node], ends: Sequence[int], number: int) -> Iterator[int]:
    child = number + 1
    for _ in below(nodes[number]):
        yield child
        child = ends[child]
