"""Whether a witness, confirmed in floats, also satisfies the query over the reals: by exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from swapproof.encodings.exact_evaluation import constant, exact_values
from swapproof.encodings.network import Affine, Network
from swapproof.encodings.vnnlib.linear_property import Atom, Property

from .input_witness import InputWitness

MOST_PRODUCTS = 2_000_000
"""Of one exact evaluation, which takes about a second then; larger networks are not asked."""


def rounded_into(property: Property, network: Network, kind: str, witness: InputWitness) -> str | None:
    """What is to be said of a witness that only rounding makes one; None when it is one, or nobody can tell."""
    if network.inexact or products(network) > MOST_PRODUCTS:
        return None
    x = dict(enumerate(map(Fraction, witness.inputs)))
    y = dict(enumerate(exact_outputs(network, witness)))
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


def products(network: Network) -> int:
    return sum(
        node.layer.weight.shape[1] * network.nodes[node.inputs[0]].size
        for node in network.nodes
        if isinstance(node.layer, Affine)
    )


def exact_outputs(network: Network, witness: InputWitness) -> list[Fraction]:
    """The flat output over the reals; node 0 is the input."""
    first = network.nodes[0]
    given = {0: constant(np.array(witness.inputs).reshape(first.shape or (1,)))}
    last = exact_values(network, given=given)[len(network.nodes) - 1]
    return [Fraction(int(value)) * last.scale for value in last.integers.reshape(-1)]
