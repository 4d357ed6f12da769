"""Synonyms as a directed graph: an edge from a word to each word that may replace it, ranked by preference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

import networkx as nx


def graph_of(table: Mapping[str, Sequence[str]]) -> nx.DiGraph:
    """The graph of a table: the j-th candidate of a word gets `rank` j; repeats and self-loops are left out."""
    graph = nx.DiGraph()
    graph.add_nodes_from(table)
    for word, candidates in table.items():
        distinct = [candidate for candidate in dict.fromkeys(candidates) if candidate != word]
        graph.add_edges_from((word, candidate, {"rank": rank}) for rank, candidate in enumerate(distinct))
    return graph


def neighbours(graph: nx.DiGraph, word: str) -> tuple[str, ...]:
    """The candidates of a word, best first; none for a word the graph does not know."""
    if word not in graph:
        return ()
    edges = graph.adj[word]
    return tuple(sorted(edges, key=lambda candidate: (edges[candidate]["rank"], candidate)))


def table_of(graph: nx.DiGraph) -> dict[str, list[str]]:
    """The words that have candidates, in alphabetical order, each with its candidates, best first."""
    return {word: list(neighbours(graph, word)) for word in sorted(graph) if graph.out_degree(word)}


def symmetric(graph: nx.DiGraph) -> nx.DiGraph:
    """The symmetric closure: v replaces w wherever w replaces v.

    A word's own candidates keep their order; those gained come after them, the ones that preferred the word most first.
    """
    closed = {}
    for word in graph:
        own = neighbours(graph, word)
        gained = set(graph.predecessors(word)).difference(own, (word,))
        closed[word] = [*own, *sorted(gained, key=lambda other: (graph.edges[other, word]["rank"], other))]
    return graph_of(closed)


def without_antonyms(graph: nx.DiGraph, antonyms: Collection[frozenset[str]]) -> tuple[nx.DiGraph, int]:
    """The graph without the edges, in either direction, between words of an antonym pair, and how many those were."""
    kept = graph.copy()
    opposite = [(word, candidate) for word, candidate in graph.edges if frozenset((word, candidate)) in antonyms]
    kept.remove_edges_from(opposite)
    return kept, len(opposite)


def digest(graph: nx.DiGraph) -> str:
    """SHA-256 of the canonical JSON of the words that have candidates, whatever order the graph was built in."""
    canonical = json.dumps(table_of(graph), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
