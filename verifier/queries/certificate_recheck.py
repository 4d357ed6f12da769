"""`check FILE`: a box certificate checked again, and its cases compared with the query that lies beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.encodings.vnnlib.linear_property import Atom
from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.proofs import check, check_box

Fact = tuple[frozenset[tuple[int, Fraction]], Fraction, bool]
Ends = tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class Rechecked:
    """What is proved, or why the certificate is refused."""

    sentence: str
    refusal: str | None


def recheck(certificate: Path) -> Rechecked:
    data = check.read_file(certificate, check.MAX_CERTIFICATE)
    if b'"swapproof box certificate"' not in data:
        raise BadInput(
            f"{certificate}: not a certificate of `verify --proof`; others are checked with their run folder"
        )
    try:
        return Rechecked(check_box.check_file(certificate).sentence + compared(certificate, data), None)
    except check.Refused as error:
        return Rechecked("nothing is proved", str(error))


def compared(certificate: Path, data: bytes) -> str:
    """Raises Refused when the query has a case that the certificate lacks."""
    top, cases = check_box.read_certificate(data)
    query = certificate.parent / top["query"]["file"]
    if not query.exists():
        return ""
    property = read_vnnlib(query)
    sizes = (property.inputs.size, property.outputs.size)
    check.require(sizes == (top["inputs"], top["outputs"]), f"{query.name} has other numbers of inputs and outputs")
    proved = {(tuple(case.box), frozenset(map(fact, case.constraints))) for case in cases}
    for number, case in enumerate(property.cases, 1):
        box = tuple(zip(case.low, case.high, strict=True))
        own = (box, frozenset(fact_of(atom, property.outputs.size) for atom in case.atoms))
        check.require(own in proved, f"case {number} of {query.name} is not in the certificate")
    return f"; {query.name} read again: all its cases are there"


def fact(constraint: check_box.Constraint) -> Fact:
    return coefficients(constraint.coefficients.items()), constraint.constant, constraint.strict


def fact_of(atom: Atom, outputs: int) -> Fact:
    """As the certificate counts: the outputs first."""
    found = [*atom.outputs.items(), *((outputs + place, c) for place, c in atom.inputs.items())]
    return coefficients(found), atom.constant, atom.strict


def coefficients(found: Iterable[tuple[int, Fraction]]) -> frozenset[tuple[int, Fraction]]:
    return frozenset((place, c) for place, c in found if c)
