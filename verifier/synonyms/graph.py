"""Synonyms as a directed graph: from a word to each word that may replace it, in order of preference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

Graph = Mapping[str, tuple[str, ...]]
"""The candidates of each word, best first, without repeats and the word itself."""


def graph_of(table: Mapping[str, Sequence[str]]) -> Graph:
    """The graph of a table, repeats and self-loops left out."""
    return {
        word: tuple(candidate for candidate in dict.fromkeys(candidates) if candidate != word)
        for word, candidates in table.items()
    }


def neighbours(graph: Graph, word: str) -> tuple[str, ...]:
    """The candidates of a word, best first; none for a word the graph does not know."""
    return graph.get(word, ())


def table_of(graph: Graph) -> dict[str, list[str]]:
    """The words that have candidates, in alphabetical order, each with its candidates, best first."""
    return {word: list(graph[word]) for word in sorted(graph) if graph[word]}


def symmetric(graph: Graph) -> Graph:
    """The symmetric closure: v replaces w wherever w replaces v.

    A word's own candidates keep their order; those gained come after them, the ones that preferred the word most first.
    """
    gained: dict[str, list[tuple[int, str]]] = {word: [] for word in graph}
    for word, candidates in graph.items():
        for rank, candidate in enumerate(candidates):
            gained.setdefault(candidate, []).append((rank, word))
    return graph_of(
        {word: [*neighbours(graph, word), *(other for _, other in sorted(gained[word]))] for word in gained}
    )


def digest(graph: Graph) -> str:
    """SHA-256 of the canonical JSON of the words that have candidates, whatever order the graph was built in."""
    canonical = json.dumps(table_of(graph), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
