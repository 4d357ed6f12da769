"""VNN-LIB files written: a property of boxes and linear facts, in version 1.0 or 2.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from ..errors import Unsupported
from .linear_property import Atom, Case, Property, Tensor

DIGITS = 2000
"""Decimal digits a number may need: that is enough for every float64."""


def decimal(value: Fraction) -> str:
    """Exactly, without an exponent; version 2.0 wants a point in numbers of floats."""
    context = Context(prec=DIGITS)
    found = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(found) != value:
        raise Unsupported(f"{value} has no finite decimal form")
    text = format(found, "f")
    return text if "." in text else f"{text}.0"


def vnnlib_text(property: Property, remarks: Sequence[str] = ()) -> str:
    return "\n".join(lines(property, remarks)) + "\n"


def lines(property: Property, remarks: Sequence[str]) -> Iterator[str]:
    yield from (f"; {line}".rstrip() for line in remarks)
    inputs, outputs = property.inputs, property.outputs
    if property.version == 2:
        yield "(vnnlib-version <2.0>)"
        yield f"(declare-network {property.network}"
        for word, tensor in (("input", inputs), ("output", outputs)):
            yield f"  (declare-{word} {tensor.name} {tensor.kind} [{','.join(map(str, tensor.shape))}])"
        yield ")"
    else:
        for tensor in (inputs, outputs):
            yield from (f"(declare-const {tensor.element(place)} Real)" for place in range(tensor.size))
    cases = property.cases
    if not cases:
        raise Unsupported("a property without cases has no boxes to write")
    low = [min(case.low[place] for case in cases) for place in range(inputs.size)]
    high = [max(case.high[place] for case in cases) for place in range(inputs.size)]
    for place in range(inputs.size):
        yield from (f"(assert {text})" for text in interval(inputs, place, low[place], high[place]))
    shared = [atom for atom in cases[0].atoms if all(atom in case.atoms for case in cases)]
    yield from (f"(assert {atom_text(atom, inputs, outputs)})" for atom in shared)
    parts = [list(own_part(case, low, high, shared, inputs, outputs)) for case in cases]
    if all(parts):
        options = [part[0] if len(part) == 1 else f"(and {' '.join(part)})" for part in parts]
        if len(options) == 1:
            yield f"(assert {options[0]})"
        else:
            yield "(assert (or"
            yield from (f"  {option}" for option in options)
            yield "))"


def own_part(
    case: Case,
    low: Sequence[Fraction],
    high: Sequence[Fraction],
    shared: Sequence[Atom],
    inputs: Tensor,
    outputs: Tensor,
) -> Iterator[str]:
    """What a case says beyond the box around all of them and the atoms they share."""
    for place in range(inputs.size):
        first, last = interval(inputs, place, case.low[place], case.high[place])
        if case.low[place] != low[place]:
            yield first
        if case.high[place] != high[place]:
            yield last
    yield from (atom_text(atom, inputs, outputs) for atom in case.atoms if atom not in shared)


def interval(tensor: Tensor, place: int, low: Fraction, high: Fraction) -> tuple[str, str]:
    name = tensor.element(place)
    return f"(>= {name} {decimal(low)})", f"(<= {name} {decimal(high)})"


def atom_text(atom: Atom, inputs: Tensor, outputs: Tensor) -> str:
    """What is subtracted on the right, what is added on the left."""
    sides: list[list[str]] = [[], []]
    pairs: tuple[tuple[Tensor, Mapping[int, Fraction]], ...] = ((inputs, atom.inputs), (outputs, atom.outputs))
    for tensor, coefficients in pairs:
        for place, value in coefficients.items():
            name = tensor.element(place)
            sides[value < 0].append(name if abs(value) == 1 else f"(* {decimal(abs(value))} {name})")
    if atom.constant:
        sides[atom.constant < 0].append(decimal(abs(atom.constant)))
    left, right = ("0.0" if not side else side[0] if len(side) == 1 else f"(+ {' '.join(side)})" for side in sides)
    return f"({'<' if atom.strict else '<='} {left} {right})"
