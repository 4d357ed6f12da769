"""A formula over exact rationals as an SMT-LIB 2 file in the logic QF_LRA, for any solver of that logic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ..errors import Unsupported
from .formula import Formula, Linear


def rational(value: Fraction) -> str:
    """3.0, (/ 3.0 8.0), (- 3.0): decimals, since the logic knows no whole numbers."""
    size = abs(value)
    text = f"{size.numerator}.0" if size.denominator == 1 else f"(/ {size.numerator}.0 {size.denominator}.0)"
    return f"(- {text})" if value < 0 else text


def smtlib_text(problem: Formula, remarks: Sequence[str] = ()) -> str:
    """sat: some sentence with at most k swaps is broken; its swaps are the true Booleans. unsat: none is."""
    if problem.fewest:
        raise Unsupported("SMT-LIB has no word for the fewest swaps; ask about a number of them")
    return "\n".join(lines(problem, remarks)) + "\n"


def lines(problem: Formula, remarks: Sequence[str]) -> Iterator[str]:
    yield from (f"; {line}".rstrip() for line in remarks)
    yield "(set-logic QF_LRA)"
    swaps = [f"swap_{position}_{token}" for position, token in problem.swaps]
    units = [f"unit_{number}" for number in range(len(problem.units))]
    yield from (f"(declare-const {name} Bool)" for name in swaps)
    yield from (f"(declare-const {name} Real) ; {unit.name}" for name, unit in zip(units, problem.units, strict=True))
    known = [*(f"(ite {name} 1.0 0.0)" for name in swaps), *units]
    for position, members in problem.positions.items():
        if len(members) > 1:
            yield f"; one word at position {position}"
            for place, first in enumerate(members):
                for second in members[place + 1 :]:
                    yield f"(assert (not (and {swaps[first]} {swaps[second]})))"
    if problem.k < len(problem.positions):
        yield f"; at most {problem.k} swap{'' if problem.k == 1 else 's'}"
        yield f"(assert (<= {added([known[number] for number in range(len(swaps))])} {problem.k}.0))"
    for number, (name, unit) in enumerate(zip(units, problem.units, strict=True)):
        inputs = [f"input_{number}_{place}" for place in range(len(unit.inputs))]
        for variable, linear in zip(inputs, unit.inputs, strict=True):
            yield f"(define-fun {variable} () Real {sum_of(linear, known)})"
        yield from (f"(assert (>= {name} {variable}))" for variable in inputs)
        yield f"(assert {either([f'(<= {name} {variable})' for variable in inputs])})"
    yield "; some class wins against the label"
    wins = [f"({'<=' if one.wins_ties else '<'} {sum_of(one.value, known)} 0.0)" for one in problem.margins]
    yield f"(assert {either(wins)})"
    yield "(check-sat)"


def sum_of(linear: Linear, known: Sequence[str]) -> str:
    terms = [known[term] if factor == 1 else f"(* {rational(factor)} {known[term]})" for term, factor in linear.terms]
    return added([rational(linear.constant), *terms] if linear.constant or not terms else terms)


def added(terms: Sequence[str]) -> str:
    if not terms:
        return "0.0"
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def either(parts: Sequence[str]) -> str:
    if not parts:
        return "false"
    return parts[0] if len(parts) == 1 else f"(or {' '.join(parts)})"
