"""Box certificates in float64: what holds there the checker accepts, on thin margins; what does not hold is split."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from graph_builder import Builder
from numeric_models import Numeric, numeric
from onnx import TensorProto
from random_boxes import random_case, space_of

from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.verifier.screening.boxes import screened_tree
from swapproof.verifier.screening.boxes.float_bounds import FloatBounds
from swapproof.verifier.screening.boxes.float_network import FloatNetwork
from swapproof.verifier.screening.boxes.float_regions import joined
from swapproof.verifier.screening.boxes.screened_tree import screened, start
from swapproof.verifier.screening.form.unsure import Unsure
from swapproof.verifier.screening.numbers.float64_rounding import growth

FOLLOWED = ("dense", "leaky", "residual", "deep")
LEAF = tree.linear(tree.Multipliers([1]))


def shifted(case: check_box.Case, constant: Fraction) -> check_box.Case:
    first, *others = case.constraints
    return replace(case, constraints=[replace(first, constant=constant), *others])


def accepted(space: check_box.Space, case: check_box.Case) -> bool:
    scale = space.network.input_scale
    ends = tuple([(math.floor(low * scale), math.floor(high * scale)) for low, high in case.box])
    try:
        check_box.Tree(space, ends, case.constraints, case.tree, math.inf).walk()
    except check.Refused as error:
        if "does not hold" not in str(error):
            raise
        return False
    return True


def border(space: check_box.Space, case: check_box.Case) -> tuple[Fraction, Fraction] | None:
    """Constants of the first constraint, close together: the checker refuses the first and accepts the second."""
    low, high = Fraction(-64), Fraction(64)
    if accepted(space, shifted(case, low)) or not accepted(space, shifted(case, high)):
        return None
    while high - low > Fraction(1, 1 << 44):
        middle = (low + high) / 2
        low, high = (low, middle) if accepted(space, shifted(case, middle)) else (middle, high)
    return low, high


TIES = [("deep", 2), ("deep", 56), ("deep", 65), ("residual", 80)]
"""Small whole weights, where lines, signs and zeros are decided by ties."""


@pytest.mark.parametrize(
    ("kind", "source", "small"),
    [(kind, source, False) for kind in FOLLOWED for source in range(2)] + [(*each, True) for each in TIES],
)
def test_what_holds_in_float64_is_accepted(
    kind: str, source: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the constant at which the checker begins to accept: nothing below, and without ties all a bit above."""
    sample = numeric(kind, source, small=small)
    space, random = space_of(sample), np.random.default_rng([source, small, len(kind)])
    network, case = FloatNetwork(space), random_case(sample, space, random)
    found = border(space, case)
    monkeypatch.setattr(screened_tree, "DEEPEST", 0)
    if found is None:
        assert accepted(space, case) or screened(network, case, math.inf).unsure
        return
    for beyond in (50, 40, 30, 20):
        assert screened(network, shifted(case, found[0] - Fraction(1, 1 << beyond)), math.inf).unsure
    above = screened(network, shifted(case, found[1] + Fraction(1, 1 << 12)), math.inf)
    assert small or not above.unsure
    assert above.tree == case.tree


@pytest.mark.parametrize("source", range(6))
def test_below_a_cut_that_says_nothing_no_plane_is_known(source: int) -> None:
    """And the ends are those of the cuts above it: what the checker accepts holds, a bit above the border."""
    sample = numeric("deep", source)
    space, random = space_of(sample), np.random.default_rng(source)
    network, inputs = FloatNetwork(space), len(space.network.inputs)
    cuts = tree.cut(tree.Multipliers([1, 2])) + tree.renew() + tree.cut(tree.Multipliers([2, 1]))
    split = tree.split_input(int(random.integers(inputs)), 4, 1)
    below = tree.cut(tree.Multipliers([0, 0])) + split + 2 * tree.linear(tree.Multipliers([1, 3]))
    box = [(Fraction(-1, 2), Fraction(1, 2))] * inputs
    constraints = [
        check_box.Constraint(
            {0: Fraction(1)}, {i: Fraction(int(random.integers(-3, 4)), 4) for i in range(inputs)}, c, False
        )
        for c in (Fraction(0), Fraction(1, 4))
    ]
    case = check_box.Case(box, constraints, cuts + below)
    found = border(space, case)
    assert found is not None
    assert screened(network, shifted(case, found[1] + Fraction(1, 1 << 12)), math.inf).tree == case.tree
    assert screened(network, shifted(case, found[0] - Fraction(1, 1 << 20)), math.inf).tree != case.tree


def test_a_leaf_that_does_not_hold_is_cut_or_split_until_it_does() -> None:
    """And the checker accepts the tree that comes of it."""
    sample = numeric("deep", 5)
    space = space_of(sample)
    inputs, leaf = len(space.network.inputs), tree.linear(tree.Multipliers([1]))
    box = [(Fraction(-1, 2), Fraction(1, 2))] * inputs
    case = check_box.Case(box, [check_box.Constraint({0: Fraction(1)}, {}, Fraction(0), False)], leaf)
    found = border(space, case)
    assert found is not None
    thin = shifted(case, found[0] - Fraction(1, 64))
    assert not accepted(space, thin)
    mended = screened(FloatNetwork(space), thin, math.inf)
    assert not mended.unsure
    assert mended.nodes > 1
    assert accepted(space, replace(thin, tree=mended.tree))


def test_what_the_checker_cannot_read_is_refused() -> None:
    """In its own words: no such byte, bytes after the tree, a tree that ends too early, a slope above 1."""
    sample = numeric("deep", 5)
    space = space_of(sample)
    case = random_case(sample, space, np.random.default_rng(0))
    first = next(i for i, layer in enumerate(space.network.layers) if isinstance(layer, check.Rectifier))
    steep = tree.linear(tree.Multipliers([1] * len(case.constraints), {first: {0: 65}}))
    for data, words in (
        (b"\0", "byte 0"),
        (case.tree + b"\1", "after the end"),
        (case.tree[:-1], "too early"),
        (steep, "range"),
    ):
        with pytest.raises(check.Refused, match=words):
            screened(FloatNetwork(space), replace(case, tree=data), math.inf)


def test_maxima_are_left_to_the_checker() -> None:
    with pytest.raises(Unsure):
        FloatNetwork(space_of(numeric("maximum", 1)))


def wide(weights: list[float], biases: list[float], outer: list[float]) -> Numeric:
    """Sum of outer_i relu(weights_i x_0 + biases_i), of two inputs."""
    g = Builder()
    inner = g.constant(np.array([weights, np.zeros(len(weights))]))
    hidden = g.call("Relu", g.call("Gemm", "X", inner, g.constant(np.array(biases))))
    g.node("Gemm", [hidden, g.constant(np.array([outer]).T), g.constant(np.zeros(1))], ["Y"])
    ports = [("X", TensorProto.DOUBLE, (1, 2))], [("Y", TensorProto.DOUBLE, (1, 1))]
    return Numeric(g.proto(*ports, name="wide", opset=13), (1, 2), 1, "wide", 0)


LOST = 2.0**-53 * (1 - 2.0**-7)
"""Added to a number from 1 to 2 it is lost, and the next one too."""


def test_allowances_cover_the_sums_of_weights_that_500_neurons_hand_to_one_input() -> None:
    """However they are added up: one after another they lose six times what the fan of two inputs would allow."""
    weights = [1 + 2.0**-20] + [LOST] * 499
    sample = wide(weights, [0.0] * 500, [1.0] * 500)
    network = FloatNetwork(space_of(sample))
    case = check_box.Case([(Fraction(1), Fraction(1))] * 2, [], b"")
    costs = FloatBounds.of(network, start(network, case)).costs[0][0]
    total = 0.0
    for weight in weights:
        total += weight
    lost = sum(map(Fraction, weights)) - Fraction(total)
    assert lost > 6 * Fraction(float(growth(4 * 2 + 8 + 64)))
    assert lost <= Fraction(float(costs.sum()))


def test_lower_bounds_of_500_neurons_that_cancel_stay_below_the_exact_value() -> None:
    """Where the products of matrices add up in the order that loses most, as they may."""
    large, small = 1 + 2.0**-20, 2.0**-20
    sample = wide([large] + [LOST] * 499, [small - large] + [LOST] * 499, [1.0] + [-1.0] * 499)
    space = space_of(sample)
    network = FloatNetwork(space)
    one = check_box.Constraint({0: Fraction(1)}, {}, Fraction(0), False)
    case = check_box.Case([(Fraction(1), Fraction(1))] * 2, [one], LEAF)
    regions = joined([start(network, case)] * 2)
    ends = ((network.space.network.input_scale,) * 2,) * 2
    rows = network.constraints(check_box.Tree(space, ends, [one], LEAF, math.inf))
    none = np.zeros((2, network.neurons))
    found = FloatBounds.of(network, regions).weighed(rows, np.ones((2, 1)), none - 1, none).least(regions)
    exact = Fraction(small) - 2 * 499 * Fraction(LOST)
    assert all(Fraction(float(least)) <= exact for least in found[:, 0])
    assert found.min() > 0
