"""A tree read back from its bytes is the tree that was written; anything else is refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swapproof.proofs.writing.certificate import (
    Boxes,
    Broken,
    Enumerate,
    Joint,
    Linear,
    Node,
    Open,
    Precision,
    Rivals,
    Segment,
    Slopes,
    Words,
    encode_tree,
)
from swapproof.proofs.writing.errors import BadInput
from swapproof.proofs.writing.tree_reader import decode_tree, preorder, replaced

SIZES = (1, 3, 9, 20)
RIVALS = (0, 2, 5)
small = st.integers(0, 300)
pairs = st.dictionaries(small, st.integers(0, 64), min_size=1, max_size=3)
tables = st.dictionaries(small, pairs, min_size=1, max_size=3)


def in_order(parts: list[tuple[int, int, int]]) -> Boxes:
    """Segments from (layers before it, layers, word)."""
    found: list[Segment] = []
    free = 0
    for gap, layers, word in parts:
        found.append(Segment(free + gap, layers, word))
        free += gap + layers
    return Boxes(tuple(found))


leaves = st.one_of(
    st.lists(st.tuples(small, st.integers(1, 300), small), max_size=4).map(in_order),
    st.builds(Linear),
    st.builds(Enumerate),
    st.builds(Open),
    st.builds(Broken, st.sampled_from(RIVALS)),
)


def above(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    words = st.integers(0, len(SIZES) - 1).flatmap(
        lambda at: st.builds(Words, st.just(at), st.frozensets(st.integers(0, SIZES[at] - 1)), inner, inner)
    )
    return st.one_of(
        words,
        st.builds(Rivals, st.frozensets(st.sampled_from(RIVALS)), inner, inner),
        st.builds(Slopes, tables, inner),
        st.builds(Precision, st.integers(16, 64), inner),
        st.builds(Joint, st.lists(st.tuples(small, pairs), max_size=3).map(tuple), inner),
    )


trees = st.recursive(leaves, above, max_leaves=12)


@given(trees)
def test_what_was_written_is_read(tree: Node) -> None:
    data = encode_tree(tree, SIZES, RIVALS)
    read = decode_tree(data, SIZES, RIVALS)
    assert encode_tree(read, SIZES, RIVALS) == data
    assert [node for node in preorder(read) if isinstance(node, Boxes)] == [
        node for node in preorder(tree) if isinstance(node, Boxes)
    ]
    assert [type(node) for node in preorder(read)] == [type(node) for node in preorder(tree)]


@given(trees)
def test_cut_or_prolonged_it_is_refused(tree: Node) -> None:
    data = encode_tree(tree, SIZES, RIVALS)
    for wrong in (data[:-1], data + b"\1"):
        with pytest.raises(BadInput, match=r"ends too early|after the end"):
            decode_tree(wrong, SIZES, RIVALS)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        tree = decode_tree(data, SIZES, RIVALS)
    except BadInput:
        return
    assert isinstance(tree, Node)


def test_a_deep_tree_costs_no_recursion() -> None:
    tree: Node = Open()
    for _ in range(20_000):
        tree = Words(1, frozenset({0}), tree, Linear())
    data = encode_tree(tree, SIZES, RIVALS)
    assert encode_tree(decode_tree(data, SIZES, RIVALS), SIZES, RIVALS) == data


def test_other_subtrees_stand_where_they_are_put() -> None:
    tree = Words(1, frozenset({0}), Open(), Words(2, frozenset({1}), Linear(), Open()))
    nodes = preorder(tree)
    opened = [number for number, node in enumerate(nodes) if isinstance(node, Open)]
    done = replaced(nodes, {opened[0]: Enumerate(), opened[1]: Words(3, frozenset({0}), Linear(), Open())})
    kinds = [type(node) for node in preorder(done)]
    assert kinds == [Words, Enumerate, Words, Linear, Words, Linear, Open]
    assert [type(node) for node in preorder(replaced(preorder(tree), {2: Linear()}))] == [Words, Open, Linear]
