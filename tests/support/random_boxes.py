"""Random cases of box certificates about small networks, with trees of all kinds of nodes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numeric_models import Numeric

from swapproof.proofs import check, check_box
from swapproof.proofs.writing import box_certificate as tree

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
