"""`check FILE`: a box certificate checked again, and its cases compared with the query that lies beside it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from swapproof.encodings.errors import BadInput
from swapproof.encodings.vnnlib.linear_property import Atom
from swapproof.encodings.vnnlib.vnnlib_reading import read_vnnlib
from swapproof.proofs import check, check_box

from ..exit_codes import HOLDS, UNCHECKED

Fact = tuple[frozenset[tuple[int, Fraction]], Fraction, bool]
Ends = tuple[tuple[Fraction, Fraction], ...]


def recheck(certificate: Path) -> int:
    """Prints what is proved and, last, `accepted 1 of 1`; or why it is refused."""
    data = check.read_file(certificate, check.MAX_CERTIFICATE)
    if b'"swapproof box certificate"' not in data:
        raise BadInput(
            f"{certificate}: not a certificate of `verify --proof`; others are checked with their run folder"
        )
    try:
        sentence = check_box.check_file(certificate).sentence + compared(certificate, data)
    except check.Refused as error:
        print(f"refused {certificate.name}: {error}")
        print("refused 1 of 1")
        return UNCHECKED
    print(f"{certificate.name}: {sentence}")
    print("accepted 1 of 1")
    return HOLDS


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
