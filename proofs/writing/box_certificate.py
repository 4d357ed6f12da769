"""Writes box certificates: statements and the nodes of proof trees in, the bytes of FORMAT.md section 14 out."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .certificate import File, entries, number

LINEAR, CUT, RENEW, INPUT, PHASE = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Multipliers:
    """Weights of the constraints; slopes / 64 and betas / 2**exponent by layer and element."""

    weights: Sequence[int]
    slopes: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    exponent: int = 0
    betas: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    def encoded(self) -> bytes:
        weights = b"".join(map(number, self.weights))
        return weights + table(self.slopes) + number(self.exponent) + table(self.betas)


def table(values: Mapping[int, Mapping[int, int]]) -> bytes:
    return number(len(values)) + b"".join(entries(layer, chosen) for layer, chosen in sorted(values.items()))


def linear(multipliers: Multipliers) -> bytes:
    """A leaf."""
    return bytes([LINEAR]) + multipliers.encoded()


def cut(multipliers: Multipliers) -> bytes:
    """Followed by its only child."""
    return bytes([CUT]) + multipliers.encoded()


def renew() -> bytes:
    """Followed by its only child, whose bounds are found anew."""
    return bytes([RENEW])


def split_input(place: int, exponent: int, mantissa: int) -> bytes:
    """At mantissa / 2**exponent; followed by the child with inputs up to that and the child with the others."""
    value = 2 * mantissa if mantissa >= 0 else -2 * mantissa - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([INPUT]) + number(place) + number(exponent) + bytes(out) + bytes([value])


def split_phase(layer: int, element: int) -> bytes:
    """Followed by the child with the pre-activation <= 0 and the child with >= 0."""
    return bytes([PHASE]) + number(layer) + number(element)


@dataclass(frozen=True)
class Constraint:
    """sum of inputs[i] x_i + sum of outputs[j] y_j + constant <= 0, or < 0 when strict."""

    inputs: Mapping[int, Fraction]
    outputs: Mapping[int, Fraction]
    constant: Fraction
    strict: bool


@dataclass(frozen=True)
class Case:
    """A box, constraints, and the proof that no input of the box satisfies them all."""

    box: Sequence[tuple[Fraction, Fraction]]
    constraints: Sequence[Constraint]
    tree: bytes = field(repr=False)


@dataclass(frozen=True)
class Statement:
    """`query` is the VNN-LIB file that the cases came from, `network` the hash of the canonical network."""

    model: File
    tensors: Sequence[File]
    network: str
    query: File
    inputs: int
    outputs: int
    cases: Sequence[Case]


def write_box_certificate(statement: Statement) -> bytes:
    value = {
        "format": "swapproof box certificate",
        "version": 2,
        "recipe": "box-2",
        "model": {
            "file": statement.model.name,
            "sha256": statement.model.sha256,
            "tensors": sorted([file.name, file.sha256] for file in statement.tensors),
        },
        "network": statement.network,
        "query": {"file": statement.query.name, "sha256": statement.query.sha256},
        "inputs": statement.inputs,
        "outputs": statement.outputs,
        "cases": list(map(case_part, statement.cases)),
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def case_part(case: Case) -> dict[str, object]:
    return {
        "box": [[str(low), str(high)] for low, high in case.box],
        "constraints": list(map(constraint_part, case.constraints)),
        "tree": base64.b64encode(case.tree).decode(),
    }


def constraint_part(constraint: Constraint) -> dict[str, object]:
    coefficients = {f"X_{place}": str(c) for place, c in constraint.inputs.items() if c}
    coefficients |= {f"Y_{place}": str(c) for place, c in constraint.outputs.items() if c}
    return {"coefficients": coefficients, "constant": str(constraint.constant), "strict": int(constraint.strict)}
