"""The synonym graph keeps preference, closes symmetrically, loses antonyms, and has one digest per content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swapproof.verifier.synonyms.graph import Graph, digest, graph_of, neighbours, symmetric, table_of

WORDS = st.sampled_from(["good", "fine", "bad", "film", "movie", "picture"])
TABLES = st.dictionaries(WORDS, st.lists(WORDS, max_size=5), max_size=6)


def test_neighbours_come_in_the_order_of_the_table() -> None:
    graph = graph_of({"good": ["zesty", "fine", "able"]})
    assert neighbours(graph, "good") == ("zesty", "fine", "able")
    assert neighbours(graph, "fine") == neighbours(graph, "unheard") == ()


def test_self_loops_and_repeats_are_left_out() -> None:
    graph = graph_of({"good": ["good", "fine", "fine", "able"]})
    assert neighbours(graph, "good") == ("fine", "able")


def test_symmetric_closure_puts_what_a_word_gains_after_its_own_candidates() -> None:
    closed = symmetric(graph_of({"film": ["movie"], "picture": ["image", "film"], "cinema": ["film"]}))
    assert neighbours(closed, "film") == ("movie", "cinema", "picture")
    assert neighbours(closed, "movie") == ("film",)


@given(TABLES)
def test_symmetric_closure_is_symmetric_keeps_every_edge_and_its_order_and_is_its_own_closure(
    table: dict[str, list[str]],
) -> None:
    graph = graph_of(table)
    closed = symmetric(graph)
    edges = edges_of(graph)
    assert edges_of(closed) == edges | {(other, word) for word, other in edges}
    for word in graph:
        own = neighbours(graph, word)
        assert neighbours(closed, word)[: len(own)] == own
    assert digest(symmetric(closed)) == digest(closed)


def edges_of(graph: Graph) -> set[tuple[str, str]]:
    return {(word, other) for word, candidates in graph.items() for other in candidates}


@given(TABLES)
def test_digest_depends_on_content_and_preference_only(table: dict[str, list[str]]) -> None:
    graph = graph_of(table)
    again = graph_of(dict(reversed(table.items())))
    assert digest(again) == digest(graph)
    assert digest(graph_of(table_of(graph))) == digest(graph)


def test_digest_tells_preferences_apart() -> None:
    assert digest(graph_of({"a": ["b", "c"]})) != digest(graph_of({"a": ["c", "b"]}))
    assert digest(graph_of({})) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of "{}"
