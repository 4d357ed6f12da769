"""`check FILE`: a box certificate checked again, and its cases compared with the query that lies beside it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.encodings.vnnlib.linear_property import Atom
from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.proofs import check, check_box

Fact = tuple[frozenset[tuple[str, int, Fraction]], Fraction, bool]
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
        own = (box, frozenset(map(fact, case.atoms)))
        check.require(own in proved, f"case {number} of {query.name} is not in the certificate")
    return f"; {query.name} read again: all its cases are there"


def fact(constraint: check_box.Constraint | Atom) -> Fact:
    """Of a certificate's constraint, or of an atom of the query."""
    coefficients = [("Y", *pair) for pair in constraint.outputs.items()]
    coefficients += [("X", *pair) for pair in constraint.inputs.items()]
    return frozenset(pair for pair in coefficients if pair[2]), constraint.constant, constraint.strict
