"""Margins of nothing and of next to nothing: ties, multipliers, and the float32 rounding bound."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from proof_cases import (
    KINDS,
    Case,
    Maker,
    Prover,
    exact_logits,
    fused_constant,
    fused_residual,
    gone_on_with,
    joined_products,
    logits,
    make_case,
    numbers_of,
    one_sentence,
    sentences,
    space_of,
    statement,
)

from swapproof.proofs import check, lower
from swapproof.proofs.writing import certificate as c


def two_logits(table: list[float], weights: list[list[float]], hidden: bool = False) -> bytes:
    """Embedding of width 1 and two positions, optionally rectified, then weights[class][position]."""
    m = Maker(random.Random(0), 2)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array(table, np.float32).reshape(-1, 1)), "tokens"))
    flat = m.call("Relu", flat) if hidden else flat
    w = m.constant(np.array(weights, np.float32))
    return m.model(m.call("Gemm", flat, w, transB=1), len(weights))


def accepted(case: Case, level: c.Level, tree: c.Node, swaps: int = 2) -> bool:
    data = c.write_certificate(statement(case, lower=c.Lower(swaps, level, tree)))
    try:
        check.check_certificate(data, lower.read_model(case.data))
    except check.Refused:
        return False
    return True


@pytest.mark.parametrize("leaf", [c.Linear(), c.Enumerate()], ids=["linear", "enumerate"])
def test_a_tie_goes_to_the_lower_class_and_never_to_float32(leaf: c.Node) -> None:
    """Logits equal on every sentence: class 0 stands, class 1 is beaten, and rounding settles neither."""
    data = two_logits([1, 2, 3], [[1, 1], [1, 1]])
    zero, one = (Case(data, ((0, 1), (2,)), label, 2) for label in (0, 1))
    assert accepted(zero, "real", leaf)
    assert not accepted(zero, "float32", leaf)
    assert not accepted(one, "real", leaf)
    tie = statement(one, upper=c.Upper((), ("real",)))
    assert check.check_certificate(c.write_certificate(tie), lower.read_model(data)).high == 0
    lost = statement(one, upper=c.Upper((), ("real", "float32")))
    with pytest.raises(check.Refused, match="rounding"):
        check.check_certificate(c.write_certificate(lost), lower.read_model(data))


@pytest.mark.parametrize("leaf", [c.Linear(), c.Enumerate()], ids=["linear", "enumerate"])
def test_cancellation_beyond_float32_is_real_and_not_float32(leaf: c.Node) -> None:
    """2^24 + 1 - 2^24 is 1 over the reals and 0 in float32: the class stands at `real` only."""
    case = Case(two_logits([2.0**24, 1], [[1, 1], [1, 0]]), ((0,), (1,)), 0, 2)
    assert accepted(case, "real", leaf)
    assert not accepted(case, "float32", leaf)
    plain = Case(two_logits([2.0**10, 1], [[1, 1], [1, 0]]), ((0,), (1,)), 0, 2)
    assert accepted(plain, "float32", leaf)


def test_a_leaf_bound_can_be_sharper_than_the_bound_of_the_whole_space() -> None:
    """Unit 0 is large but off in this region: its rounding error does not count there."""
    case = Case(two_logits([-(2.0**22), 1, 2.0**22], [[1, 1], [1, 0]], hidden=True), ((0, 2), (1,)), 0, 2)
    assert accepted(case, "float32", c.Linear(), swaps=0)
    assert accepted(case, "float32", c.Enumerate(), swaps=0)
    assert not accepted(case, "float32", c.Linear(), swaps=1)


@cases(120)
@given(st.sampled_from(KINDS), st.integers(0, 10**6))
def test_any_slopes_bound_the_margin(kind: Callable[[Maker, int], bytes], seed: int) -> None:
    """Random slopes and joint groups: the recipe's minimum is below the margin of every sentence."""
    case = make_case(kind, seed)
    rng = random.Random(seed)
    space = space_of(case)
    network, words = space.network, space.sentences(4, space.masks)
    elements = {i: layer for layer in rectifiers(network) for i in range(layer.start, layer.start + layer.size)}
    slopes = {i: rng.randint(0, 64) for i in elements}
    first = [i for i, layer in elements.items() if layer.depth == 1]
    joint = {i: (i // 3, rng.randint(0, 64)) for i in first if rng.random() < 0.7}
    rival = case.rivals[-1]
    region = check.Region(space.masks, case.rivals, 0, slopes, joint)
    low, below = space.margin(case.label, rival, words, space.bounds(words), region)
    for sentence in sentences(case.choices, 4):
        z = exact_logits(network, sentence)
        assert Fraction(low, below << check.GRID) <= z[case.label] - z[rival]


def rectifiers(network: check.Network) -> list[check.Rectifier]:
    return [layer for layer in network.layers if isinstance(layer, check.Rectifier)]


@given(
    st.integers(1, 10**30),
    st.integers(1, 10**30),
    st.integers(0, 8),
    st.integers(-(10**9), 10**9).filter(bool),
    st.none() | st.integers(0, 64),
)
def test_relaxation_lines_bound_a_rectifier_at_its_kinks(
    below: int, above: int, p: int, c: int, slope: int | None
) -> None:
    """Over [-below, above], a piecewise linear function lies above a line iff it does at both ends and at 0."""
    p, q = (p, 8) if p else (0, 1)
    layer = check.Rectifier(start=0, size=1, scale=1, depth=1, sources=(0,), factors=[1], p=p, q=q)
    line, rest = check.relaxed(layer, c, -below, above, slope)
    for x in (-below, 0, above):
        y = x * q if x > 0 else x * p
        assert c * (y << check.SLOPE_BITS) >= c * (line * x + rest)


def float32_dot(
    weights: NDArray[np.float32], x: NDArray[np.float32], bias: np.float32, rng: random.Random
) -> np.float32:
    """A dot product in float32, summed by a random binary tree."""
    terms = [*(w * a for w, a in zip(weights, x, strict=True)), bias]
    while len(terms) > 1:
        rng.shuffle(terms)
        terms.append(np.float32(terms.pop() + terms.pop()))
    return np.float32(terms[0])


@cases(60)
@given(st.integers(0, 10**6))
def test_float32_evaluations_stay_within_the_bound(seed: int) -> None:
    """Random float32 weights, random summation trees: no float32 logit is further from the real one than its bound."""
    rng = random.Random(seed)
    noise = np.random.default_rng(seed)
    size = 12
    table = (noise.normal(size=(5, size)) * 10.0 ** noise.integers(-3, 3, size=(5, size))).astype(np.float32)
    w1, w2 = (noise.normal(size=shape).astype(np.float32) for shape in ((6, size), (2, 6)))
    b1, b2 = (noise.normal(size=n).astype(np.float32) for n in (6, 2))
    m = Maker(rng, 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(table), "tokens"))
    hidden = m.call("Relu", m.call("Gemm", flat, m.constant(w1), m.constant(b1), transB=1))
    data = m.model(m.call("Gemm", hidden, m.constant(w2), m.constant(b2), transB=1), 2)
    space = space_of(Case(data, ((0, 1, 2, 3, 4),), 0, 2))
    network, rounding = space.network, space.rounding
    for token in range(5):
        z, values = exact_logits(network, [token]), numbers_of(network, [token])
        errors = rounding.of_logits(network.later, one_sentence(network, values))
        assert all(a <= b for a, b in zip(errors, rounding.whole, strict=True))
        for _ in range(3):
            h = np.array(
                [max(float32_dot(w, table[token], b, rng), np.float32(0)) for w, b in zip(w1, b1, strict=True)]
            )
            for k in range(2):
                got = Fraction(float32_dot(w2[k], h, b2[k], rng).item())
                assert abs(got - z[k]) <= Fraction(errors[k], 1 << check.GRID)


def test_the_rounding_bound_is_within_a_small_factor_of_what_float32_does() -> None:
    """A chain of equal terms in the worst order: the bound is not so generous that it would say nothing."""
    n = 4096
    m = Maker(random.Random(0), n)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.full((2, 1), 1.1, np.float32)), "tokens"))
    weights = np.ones((2, n), np.float32)
    weights[1] = 0.5
    data = m.model(m.call("Gemm", flat, m.constant(weights), transB=1), 2)
    whole = space_of(Case(data, ((0,),) * n, 0, 2)).rounding.whole
    total = np.float32(0)
    for _ in range(n):
        total = np.float32(total + np.float32(1.1))
    real = float(np.float32(1.1)) * n
    assert 0 < abs(float(total) - real) < whole[0] / 2.0**check.GRID < 2 * n * 2.0**-24 * real


def test_float32_is_refused_where_its_conditions_fail() -> None:
    """Weights beyond 2^40, double precision, constants computed from constants but for small whole numbers."""
    assert not accepted(Case(two_logits([1, 2], [[2.0**41, 0], [0, 0]]), ((0, 1), (0,)), 0, 2), "float32", c.Linear())
    m = Maker(random.Random(0), 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array([[3.0], [4.0]], np.float32)), "tokens"))
    for weight, exact in ((2.0, True), (2.5, False), (2.0**24, False)):
        parts = [m.constant(np.array([[number, 0.0]], np.float32)) for number in (weight, 1.0)]
        case = Case(m.model(m.call("MatMul", flat, m.call("Add", *parts)), 2), ((0, 1),), 0, 2)
        assert accepted(case, "real", c.Linear())
        assert accepted(case, "float32", c.Linear()) is exact


@cases(60)
@given(st.integers(0, 10**6))
def test_a_joint_group_is_bounded_exactly(seed: int) -> None:
    """The rise of a group is the greatest that any sentence of the region reaches."""
    case = make_case(KINDS[0], seed, most=4)
    rng = random.Random(seed)
    swaps, space = rng.randint(1, 4), space_of(case)
    words = space.sentences(swaps, space.masks)
    weights = [sorted((rng.randint(-5, 5), rng.randint(-5, 5))) for _ in range(3)]
    members = [(e, a, b) for e, (a, b) in zip(rng.sample(range(5), 3), weights, strict=True)]
    found = []
    for sentence in sentences(case.choices, swaps):
        values = numbers_of(space.network, sentence)
        x = [values[i] for i in space.network.cut]
        found.append(sum(max(a * x[e], b * x[e]) for e, a, b in members))
    assert space.joint_rise(words, members) == max(found)


def test_a_joint_margin_takes_each_group_by_itself() -> None:
    """- relu(x) - relu(-x) with x in [-1, 1] and slopes 0: -1 when they are one group, -2 when they are two."""
    m = Maker(random.Random(0), 1)
    x = m.call("Flatten", m.call("Gather", m.constant(np.array([[0], [-1], [1]], np.float32)), "tokens"))
    both = m.call("Relu", m.call("MatMul", x, m.constant(np.array([[1, -1]], np.float32))))
    w = m.constant(np.array([[-1, -1], [0, 0]], np.float32))
    data = m.model(m.call("Gemm", both, w, m.constant(np.array([1.5, 0], np.float32)), transB=1), 2)
    prover = Prover(Case(data, ((0, 1, 2),), 0, 2), 1, "real", random.Random(0))
    (origin, size), region = prover.first[0], prover.tree.root
    assert size == 2
    (together,) = prover.children(region, c.Joint(((origin, {0: 0, 1: 0}),), c.Open()))
    (apart,) = prover.children(region, c.Joint(((origin, {0: 0}), (origin, {1: 0})), c.Open()))
    assert prover.holds(prover.tree.linear, together)
    assert not prover.holds(prover.tree.linear, apart)


@pytest.mark.parametrize(
    ("alpha", "bounds", "expected"),
    [
        (0.0, (-7, -5), (0, 0)),
        (0.0, (-7, -4), (0, 5)),
        (0.0, (-7, 3), (3, 5)),
        (0.25, (-7, 3), (7, 7)),
    ],
)
def test_rounding_errors_pass_through_rectifiers(
    alpha: float, bounds: tuple[int, int], expected: tuple[int, int]
) -> None:
    """A Relu that is off over the reals is off in float32 only if the error, 5 units here, cannot lift it."""
    m = Maker(random.Random(0), 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array([[1.0]], np.float32)), "tokens"))
    y = m.call("LeakyRelu", flat, alpha=alpha) if alpha else m.call("Relu", flat)
    data = m.model(m.call("Concat", y, flat, axis=1), 2)
    space = space_of(Case(data, ((0,),), 0, 2))
    rounding, layer = space.rounding, space.network.nonlinear[0]
    (source,) = check.sources_of(layer)
    rounding.errors[source] = 5
    rounding.of_logits(space.network.later, lambda layer: [bounds])
    assert (rounding.magnitudes[layer.start], rounding.errors[layer.start]) == expected


def test_rounding_errors_pass_through_maxima() -> None:
    """The greatest error of the window; and the greatest low and high end bound the greatest element."""
    m = Maker(random.Random(0), 1)
    x = m.call("Gather", m.constant(np.array([[1.0, 2.0, 3.0]], np.float32)), "tokens")
    top = m.call("ReduceMax", m.call("Gather", x, m.constant([0, 2]), axis=2), axes=[1, 2], keepdims=0)
    one = m.call("Reshape", top, m.constant([1, 1]))
    data = m.model(m.call("Concat", one, one, axis=1), 2)
    space = space_of(Case(data, ((0,),), 0, 2))
    rounding, layer = space.rounding, space.network.nonlinear[0]
    for i, e in zip(check.sources_of(layer), (5, 6), strict=True):
        rounding.errors[i] = e
    for bounds, expected in (([(-7, 3), (-2, 4)], (4, 6)), ([(-7, 1), (-9, 0)], (7, 6))):
        rounding.of_logits(space.network.later, lambda layer, here=bounds: here)  # type: ignore[misc]
        assert (rounding.magnitudes[layer.start], rounding.errors[layer.start]) == expected


def test_numbers_that_cancel_in_a_sum_do_not_hide_its_rounding_error() -> None:
    """x + 2^24 - 2^24 is 0 in float32 for x = 1: the constants count with their magnitudes."""
    m = Maker(random.Random(0), 1)
    flat = m.call("Flatten", m.call("Gather", m.constant(np.array([[1.0, 0.0]], np.float32)), "tokens"))
    large = [m.constant(np.array([value], np.float32)) for value in (2.0**24, -(2.0**24))]
    case = Case(m.model(m.call("Sum", flat, *large), 2), ((0,),), 0, 2)
    assert accepted(case, "real", c.Linear(), swaps=0)
    assert not accepted(case, "float32", c.Linear(), swaps=0)


def looked_up(made: tuple[Any, Callable[[Maker, str], str]]) -> Case:
    """A text of one word, which may become another; class 0 is the label."""
    table, then = made
    m = Maker(random.Random(0), 1)
    x = m.call("Flatten", m.call("Gather", m.constant(np.array(table, np.float32)), "tokens"))
    return Case(m.model(then(m, x), 2), ((0, 1),), 0, 2)


@pytest.mark.parametrize("made", [fused_constant(), fused_residual()], ids=["constant", "residual"])
@pytest.mark.parametrize("leaf", [c.Linear(), c.Enumerate()], ids=["linear", "enumerate"])
def test_a_sum_that_a_runtime_joins_with_the_next_is_bounded_as_one(made: tuple[Any, Any], leaf: c.Node) -> None:
    """Class 0 wins over the reals, and loses where onnxruntime starts a product from the other addend."""
    case = looked_up(made)
    assert accepted(case, "real", leaf, swaps=1)
    assert not accepted(case, "float32", leaf, swaps=1)
    assert 1 in logits(case.data, [[0], [1]]).argmax(axis=1)


def test_sums_that_may_go_on_from_one_another_count_the_roundings_of_all() -> None:
    """Six products added by one Sum: class 0 wins over the reals, and loses where each goes on from the one before."""
    made = joined_products()
    case, (first, second) = looked_up(made), gone_on_with(made[0])
    assert second > first
    assert accepted(case, "real", c.Linear(), swaps=1)
    assert not accepted(case, "float32", c.Linear(), swaps=1)
    assert not accepted(case, "float32", c.Enumerate(), swaps=1)


def chained(m: Maker, x: str) -> str:
    """Three affine layers, a Relu between the second and the third."""
    first = m.call("MatMul", x, m.constant(np.ones((3, 2), np.float32)))
    second = m.call("Add", first, m.constant(np.array([1, 2], np.float32)))
    return m.call("MatMul", m.call("Relu", second), m.constant(np.eye(2, dtype=np.float32)))


def test_roundings_add_up_along_affine_layers_and_begin_anew_after_others() -> None:
    """n = K + 3 + N: 6 for three terms, 10 for one term that is such a sum, 4 for one that is a rectifier's."""
    space = space_of(looked_up(([[1, 1, 1], [2, 2, 2]], chained)))
    roundings, layers = space.rounding.roundings, space.network.layers
    assert [roundings[layer.start] for layer in layers] == [0, 6, 10, 0, 4]


LEAVES = pytest.mark.parametrize("leaf", [c.Linear(), c.Enumerate()], ids=["linear", "enumerate"])


@LEAVES
def test_a_real_margin_one_unit_short_proves_nothing(leaf: c.Node) -> None:
    """Logits that differ by the smallest float32 number, or by nothing: then class 0 has it."""
    for unit, winner in ((2.0**-149, 0), (0.0, 0), (-(2.0**-149), 1)):
        data = two_logits([1, unit], [[1, 1], [1, 0]])
        for label in (0, 1):
            assert accepted(Case(data, ((0,), (1,)), label, 2), "real", leaf, swaps=0) is (label == winner)


@LEAVES
def test_a_float32_margin_one_unit_short_proves_nothing(leaf: c.Node) -> None:
    """Logits 1 and 1 + j 2**-23: accepted from the first j on that is beyond the bound."""
    found = []
    for j in range(9):
        case = Case(two_logits([1 + j * 2.0**-23, 1], [[1, 0], [0, 1]]), ((0,), (1,)), 0, 2)
        rounding = space_of(case).rounding
        found.append(j << (check.GRID - 23) > rounding.between(rounding.whole, 0, 1))
        assert accepted(case, "float32", leaf, swaps=0) is found[-1]
    assert found == sorted(found)
    assert len(set(found)) == 2


@LEAVES
def test_a_margin_equal_to_the_rounding_bound_proves_nothing(leaf: c.Node) -> None:
    """The margin is 2**-10; the bound is set to that, and to one unit less."""
    case = Case(two_logits([1 + 2.0**-10, 1], [[1, 0], [0, 1]]), ((0,), (1,)), 0, 2)
    for less, fine in ((0, False), (1, True)):
        space = space_of(case)
        bound = (1 << (check.GRID - 10)) - less
        for logit, error in zip(space.network.logits, (bound - 1, 0), strict=True):
            space.rounding.errors[logit] = error
        space.rounding.whole = [bound - 1, 0]
        tree = check.Tree(space, c.encode_tree(leaf, (1, 1), (1,)), (1,), 0, "float32")
        if fine:
            tree.check()
        else:
            with pytest.raises(check.Refused, match=r"does not hold|not safe"):
                tree.check()
