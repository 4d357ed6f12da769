"""Box certificates in float64: what holds there the checker accepts, on thin margins; what does not hold is split."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numeric_models import Numeric, numeric

from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree
from swapproof.verifier.screening.boxes import screened_tree
from swapproof.verifier.screening.boxes.float_network import FloatNetwork
from swapproof.verifier.screening.boxes.screened_tree import screened
from swapproof.verifier.screening.form.unsure import Unsure

FOLLOWED = ("dense", "leaky", "residual", "deep")
CHANCES = {tree.LINEAR: 1, tree.CUT: 4, tree.RENEW: 1, tree.INPUT: 2, tree.PHASE: 2}


def space_of(sample: Numeric) -> check_box.Space:
    model = check_box.read_model(sample.model.SerializeToString())
    lowered = model.lower()
    return check_box.Space(check_box.Network(lowered.data, lowered.numbers, 5 << check.GRID), math.inf)


def random_tree(space: check_box.Space, random: np.random.Generator, constraints: int) -> bytes:
    """Of all kinds of nodes, with any multipliers."""
    network = space.network
    layers = [(i, layer.size) for i, layer in enumerate(network.layers) if isinstance(layer, check.Rectifier)]

    def table(highest: int) -> dict[int, dict[int, int]]:
        drawn = {i: random.integers(0, highest, size=size) for i, size in layers if random.random() < 0.5}
        return {i: dict(enumerate(map(int, values))) for i, values in drawn.items()}

    def multipliers() -> tree.Multipliers:
        weights = [int(w) for w in random.integers(0, 5, size=constraints)]
        weights[0] += 1
        return tree.Multipliers(weights, table(65), int(random.integers(0, 4)), table(4))

    def made(depth: int, decided: frozenset[tuple[int, int]]) -> bytes:
        kinds = list(CHANCES)
        weights = np.array([CHANCES[kind] for kind in kinds], dtype=np.float64)
        kind = tree.LINEAR if depth == 0 else int(random.choice(kinds, p=weights / weights.sum()))
        if kind == tree.CUT:
            return tree.cut(multipliers()) + made(depth - 1, decided)
        if kind == tree.RENEW:
            return tree.renew() + made(depth - 1, decided)
        if kind == tree.INPUT:
            split = tree.split_input(int(random.integers(len(network.inputs))), 4, int(random.integers(-12, 13)))
            return split + made(depth - 1, decided) + made(depth - 1, decided)
        layer, size = layers[int(random.integers(len(layers)))]
        neuron = layer, int(random.integers(size))
        if kind == tree.PHASE and neuron not in decided:
            split = tree.split_phase(*neuron)
            return split + made(depth - 1, decided | {neuron}) + made(depth - 1, decided | {neuron})
        return tree.linear(multipliers())

    return made(5, frozenset())


def random_case(sample: Numeric, space: check_box.Space, random: np.random.Generator) -> check_box.Case:
    """A box with ends that are floats, or that are not, and constraints on outputs and inputs."""
    below = 10 if random.random() < 0.5 else 8

    def some(count: int, chance: float) -> dict[int, Fraction]:
        return {i: Fraction(int(random.integers(1, 9)), 4) for i in range(count) if random.random() < chance}

    inputs = len(space.network.inputs)
    ends = np.sort(random.integers(-10, 11, size=(inputs, 2)), axis=1)
    constraints = [
        check_box.Constraint(some(sample.outputs, 0.7) or {0: Fraction(-1)}, some(inputs, 0.3), Fraction(0), False)
        for _ in range(int(random.integers(1, 4)))
    ]
    box = [(Fraction(int(low), below), Fraction(int(high), below)) for low, high in ends]
    return check_box.Case(box, constraints, random_tree(space, random, len(constraints)))


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
