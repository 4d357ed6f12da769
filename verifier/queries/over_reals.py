"""Whether an input satisfies the query over the reals, be it a witness in floats or no float at all: by exact
rationals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from swapproof.encodings.exact_evaluation import exact_values, single_term
from swapproof.encodings.network import Affine, Floats, Network
from swapproof.encodings.vnnlib.linear_property import Atom, Case, Property

from .input_witness import InputWitness

MOST_PRODUCTS = 2_000_000
"""Of one exact evaluation, which takes about a second then; larger networks are not asked."""


def rounded_into(property: Property, network: Network, kind: str, witness: InputWitness) -> str | None:
    """What is to be said of a witness that only rounding makes one; None when it is one, or nobody can tell."""
    if network.inexact or products(network) > MOST_PRODUCTS:
        return None
    x = dict(enumerate(map(Fraction, witness.inputs)))
    y = dict(enumerate(exact_outputs(network, list(x.values()))))
    in_floats = dict(enumerate(map(Fraction, witness.outputs)))
    missed: Atom | None = None
    for case in property.cases:
        if not all(low <= x[i] <= high for i, (low, high) in enumerate(zip(case.low, case.high, strict=True))):
            continue
        broken = next((atom for atom in case.atoms if not atom.holds(x, y)), None)
        if broken is None:
            return None
        if all(atom.holds(x, in_floats) for atom in case.atoms):
            missed = broken
    if missed is None:
        return None
    value = missed.value(x, y)
    by = f"by {float(value):.3g}" if value else "its strict bound is met exactly"
    return (
        f"this witness holds in {kind} only: over the reals it fails the fact on line {missed.line} ({by}), which only "
        "the answer that onnxruntime rounded satisfies; another input may satisfy it"
    )


def satisfied(case: Case, network: Network, points: Iterable[Floats]) -> bool:
    """Whether one of these points, moved into the exact box, is an answer over the reals; False where it takes long."""
    if network.inexact or products(network) > MOST_PRODUCTS:
        return False
    for point in points:
        inputs = [
            min(max(Fraction(float(value)), low), high)
            for value, low, high in zip(point, case.low, case.high, strict=True)
        ]
        x, y = dict(enumerate(inputs)), dict(enumerate(exact_outputs(network, inputs)))
        if all(atom.holds(x, y) for atom in case.atoms):
            return True
    return False


def products(network: Network) -> int:
    return sum(
        node.layer.weight.shape[1] * network.nodes[node.inputs[0]].size
        for node in network.nodes
        if isinstance(node.layer, Affine)
    )


def exact_outputs(network: Network, inputs: Sequence[Fraction]) -> list[Fraction]:
    """The flat output over the reals; node 0 is the input."""
    first = network.nodes[0]
    below = lcm(*(value.denominator for value in inputs))
    integers = np.array([int(value * below) for value in inputs], dtype=object).reshape(first.shape or (1,))
    given = {0: single_term(integers, Fraction(1, below), rounded=True)}
    last = exact_values(network, given=given)[len(network.nodes) - 1]
    return [Fraction(int(value)) * last.scale for value in last.integers.reshape(-1)]
