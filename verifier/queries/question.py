"""One case of a property as floats: a box that holds the exact one, and atoms as functions of the network's stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from swapproof.encodings.bounds.normal_form import Functions, Stack
from swapproof.encodings.network import Floats
from swapproof.encodings.vnnlib.linear_property import Case


@dataclass(frozen=True, eq=False)
class Question:
    """Is there an x with low <= x <= high at which all rows of `atoms` are <= 0?

    `low` and `high` are rounded outwards.
    """

    stack: Stack
    case: Case
    low: Floats
    high: Floats
    atoms: Functions

    @classmethod
    def of(cls, stack: Stack, case: Case) -> Question:
        low = np.array([floor_float(bound) for bound in case.low])
        high = np.array([-floor_float(-bound) for bound in case.high])
        return cls(stack, case, low, high, atom_functions(stack, case))


def floor_float(number: Fraction) -> float:
    """The greatest float64 that is not above."""
    found = float(number)
    return float(np.nextafter(found, -np.inf)) if Fraction(found) > number else found


def atom_functions(stack: Stack, case: Case) -> Functions:
    """The left sides of the atoms, their outputs replaced by what the stack says they are."""
    count, outputs = len(case.atoms), len(stack.output)
    of_outputs, of_inputs = np.zeros((count, outputs)), np.zeros((count, stack.inputs))
    for row, atom in enumerate(case.atoms):
        fill(of_outputs[row], list(atom.outputs.items()))
        fill(of_inputs[row], list(atom.inputs.items()))
    result = stack.output.mapped(of_outputs, outputs + 4)
    weights, sizes = dict(result.weights), dict(result.sizes)
    zero = np.zeros((count, stack.inputs))
    weights[0] = weights.get(0, zero) + of_inputs
    sizes[0] = sizes.get(0, zero) + np.abs(of_inputs)
    constant = np.array([float(atom.constant) for atom in case.atoms])
    return Functions(weights, result.bias + constant, sizes, result.bias_size + np.abs(constant), result.roundings + 4)


def fill(row: Floats, terms: Sequence[tuple[int, Fraction]]) -> None:
    for place, coefficient in terms:
        row[place] = float(coefficient)
