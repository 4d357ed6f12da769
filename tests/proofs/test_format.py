"""The examples of FORMAT.md, and trees far deeper than Python's stack."""

from __future__ import annotations

import random

import numpy as np
import pytest
from proof_cases import Case, Maker, space_of, statement

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c
from swapproof.proofs.writing.errors import BadInput

SIZES = (1, 1, 1, 3, 1, 2)


def example() -> Case:
    """Six positions, two of them with choices; class 0 always wins by one at least."""
    m = Maker(random.Random(0), 6)
    table = np.zeros((41, 2), np.float32)
    table[:, 0] = 1
    x = m.call("ReduceSum", m.call("Gather", m.constant(table), "tokens"), m.constant([1]), keepdims=0)
    data = m.model(m.call("Add", m.call("Relu", x), m.constant(np.array([1, 0], np.float32))), 2)
    return Case(data, ((1,), (2,), (3,), (12, 40, 7), (4,), (9, 2)), 0, 2)


def accepted(case: Case, swaps: int, tree: c.Node) -> bool:
    data = c.write_certificate(statement(case, lower=c.Lower(swaps, "real", tree)))
    try:
        check.check_certificate(data, lower.read_model(case.data))
    except check.Refused:
        return False
    return True


def test_the_tree_of_the_example_has_the_bytes_of_the_example() -> None:
    """With k = 2 one sentence is enumerated, with k = 1 none is left there; and the leaves prove what they say."""
    inner = c.Words(5, frozenset({0}), c.Linear(), c.Enumerate())
    tree = c.Words(3, frozenset({0}), c.Linear(), inner)
    assert c.encode_tree(tree, SIZES, (1,)) == bytes.fromhex("040301010405010102")
    case = example()
    for swaps in (0, 1, 2):
        assert accepted(case, swaps, tree)


def test_the_relaxation_of_the_example() -> None:
    """l = -1, u = 2: slope 43691 / 65536, intercept the same, lower line x."""
    low, high = -1 << check.GRID, 2 << check.GRID
    relu = check.Rectifier(start=0, size=1, scale=1, depth=1, sources=(0,), factors=[1], p=0, q=1)
    assert check.relaxed(relu, -1, low, high, None) == (43691, 43691 << check.GRID)
    assert check.relaxed(relu, 1, low, high, None) == (1 << 16, 0)
    assert check.relaxed(relu, 1, low, high, 32) == (1 << 15, 0)


def test_the_rounding_bound_of_the_example() -> None:
    """A = 2^10 and 1: T = 1025, and e about 3.07e-4."""
    m = Maker(random.Random(0), 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array([[1024, 1]], np.float32)), "tokens"))
    data = m.model(m.call("MatMul", flat, m.constant(np.ones((2, 2), np.float32))), 2)
    space = space_of(Case(data, ((0,),), 0, 2))
    rounding = space.rounding
    one = 1 << check.GRID
    last = space.network.logits[0]
    assert (rounding.magnitudes[last], rounding.errors[last]) == (1025 * one, rounding.whole[0])
    assert rounding.whole[0] == check.ceiling(5 * 257 * 1025 * one, 1 << 32) + 1
    assert rounding.whole[0] / one == pytest.approx(3.07e-4, rel=1e-2)


def test_trees_of_any_depth_are_written_and_read() -> None:
    """Thirty thousand nested nodes are accepted; beyond the limit of 100,000 they are refused."""
    case = example()
    for depth, fine in ((30_000, True), (100_001, False)):
        tree: c.Node = c.Linear()
        for _ in range(depth):
            tree = c.Slopes({2: {0: 1}}, tree)
        assert accepted(case, 2, tree) == fine


def test_what_cannot_be_written_is_refused() -> None:
    """Numbers out of range, options out of range, empty tables."""
    for tree in (
        c.Broken(-1),
        c.Slopes({0: {1 << 31: 0}}, c.Open()),
        c.Words(3, frozenset({3}), c.Open(), c.Open()),
        c.Slopes({}, c.Open()),
        c.Slopes({1: {}}, c.Open()),
    ):
        with pytest.raises(BadInput):
            c.encode_tree(tree, SIZES, (1,))
