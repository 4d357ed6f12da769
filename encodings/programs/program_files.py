"""Integer programs as LP and MPS files that every solver reads, and such LP names: swap_3_17 for swap[3,17].

Numbers are written with as many digits as a float64 needs, so reading a file gives the program back. Programs with
indicator or special ordered set constraints have no form that all solvers share, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import Unsupported
from .integer_program import Program, Row, Variable

WIDTH = 100
"""Characters after which a line of an LP file is broken: some readers stop at 255 or 560."""
CONSTANT = "constant"
"""A column fixed at 1 that carries the constant of the objective, which not every reader takes as such."""


def file_name(variable: Variable) -> str:
    return "_".join([variable.kind, *map(str, variable.index)])


def row_names(rows: Sequence[Row]) -> list[str]:
    """class_1 for class[1]; a number is added to names met before."""
    found: list[str] = []
    seen: set[str] = set()
    for number, row in enumerate(rows):
        name = re.sub(r"[^A-Za-z0-9_]+", "_", row.name).strip("_") or "row"
        name = f"{name}_{number}" if name in seen or not name[0].isalpha() else name
        seen.add(name)
        found.append(name)
    return found


def columns_of(program: Program) -> list[str]:
    if program.indicators or program.exclusives:
        raise Unsupported("indicator and special ordered set constraints are not written; use the big-M program")
    names = [file_name(variable) for variable in program.variables]
    if len(set(names)) < len(names):
        raise Unsupported("two variables of one name")
    return names


def lp_text(program: Program, remarks: Sequence[str] = ()) -> str:
    """The program in the LP format of CPLEX, remarks as comments on top."""
    return "\n".join(lp_lines(program, remarks)) + "\n"


def lp_lines(program: Program, remarks: Sequence[str]) -> Iterator[str]:
    names = columns_of(program)
    yield from (f"\\ {line}".rstrip() for line in remarks)
    yield "Minimize"
    costs = [(name, variable.cost) for name, variable in zip(names, program.variables, strict=True) if variable.cost]
    costs += [(CONSTANT, program.offset)] if program.offset or not costs else []
    yield from broken(" obj:", costs)
    yield "Subject To"
    for name, row in zip(row_names(program.rows), program.rows, strict=True):
        terms = [(names[column], float(c)) for column, c in zip(row.columns, row.coefficients, strict=True)]
        if not terms:
            terms = [(CONSTANT, 0.0)]
        if row.low == row.high:
            yield from broken(f" {name}:", terms, f"= {row.low!r}")
            continue
        if np.isfinite(row.low):
            yield from broken(f" {name}{'_low' if row.sides > 1 else ''}:", terms, f">= {float(row.low)!r}")
        if np.isfinite(row.high):
            yield from broken(f" {name}{'_high' if row.sides > 1 else ''}:", terms, f"<= {float(row.high)!r}")
    yield "Bounds"
    if mentions_constant(program):
        yield f" {CONSTANT} = 1"
    for name, variable in zip(names, program.variables, strict=True):
        low = "-inf" if variable.low == -np.inf else repr(float(variable.low))
        high = "+inf" if variable.high == np.inf else repr(float(variable.high))
        yield f" {low} <= {name} <= {high}"
    binaries = [name for name, variable in zip(names, program.variables, strict=True) if variable.binary]
    if binaries:
        yield "Binaries"
        yield from (f" {name}" for name in binaries)
    yield "End"


def mentions_constant(program: Program) -> bool:
    no_costs = not any(variable.cost for variable in program.variables)
    return bool(program.offset) or no_costs or any(not len(row.columns) for row in program.rows)


def broken(start: str, terms: Sequence[tuple[str, float]], end: str = "") -> Iterator[str]:
    """A sum, over as many lines as it needs."""
    line = start
    for name, coefficient in terms:
        term = f"{'-' if coefficient < 0 else '+'} {abs(float(coefficient))!r} {name}"
        if len(line) + len(term) > WIDTH:
            yield line
            line = "  "
        line += f" {term}"
    yield f"{line} {end}".rstrip()


def mps_text(program: Program, remarks: Sequence[str] = ()) -> str:
    """The program in free MPS, remarks as comments on top."""
    return "\n".join(mps_lines(program, remarks)) + "\n"


def mps_lines(program: Program, remarks: Sequence[str]) -> Iterator[str]:
    names, rows = columns_of(program), row_names(program.rows)
    yield from (f"* {line}".rstrip() for line in remarks)
    yield "NAME swapproof"
    yield "ROWS"
    yield " N obj"
    for name, row in zip(rows, program.rows, strict=True):
        yield f" {sense(row)} {name}"
    entries: list[list[tuple[str, float]]] = [[] for _ in names]
    for name, row in zip(rows, program.rows, strict=True):
        for column, coefficient in zip(row.columns, row.coefficients, strict=True):
            entries[column].append((name, float(coefficient)))
    yield "COLUMNS"
    if mentions_constant(program):
        yield f" {CONSTANT} obj {program.offset!r}"
    whole = False
    markers = 0
    for name, variable, column in zip(names, program.variables, entries, strict=True):
        if variable.binary != whole:
            whole = variable.binary
            yield f" MARKER{markers} 'MARKER' '{'INTORG' if whole else 'INTEND'}'"
            markers += 1
        if variable.cost or not column:
            yield f" {name} obj {float(variable.cost)!r}"
        yield from (f" {name} {row} {coefficient!r}" for row, coefficient in column)
    if whole:
        yield f" MARKER{markers} 'MARKER' 'INTEND'"
    yield "RHS"
    for name, row in zip(rows, program.rows, strict=True):
        side = row.low if np.isfinite(row.low) else row.high
        if side:
            yield f" RHS {name} {float(side)!r}"
    ranged = [(name, row) for name, row in zip(rows, program.rows, strict=True) if row.sides > 1]
    if ranged:
        yield "RANGES"
        yield from (f" RNG {name} {float(row.high - row.low)!r}" for name, row in ranged)
    yield "BOUNDS"
    if mentions_constant(program):
        yield f" FX BND {CONSTANT} 1"
    for name, variable in zip(names, program.variables, strict=True):
        yield from bounds_of(name, variable)
    yield "ENDATA"


def sense(row: Row) -> str:
    if row.low == row.high:
        return "E"
    return "G" if np.isfinite(row.low) else "L"


def bounds_of(name: str, variable: Variable) -> Iterator[str]:
    low, high = float(variable.low), float(variable.high)
    if variable.binary and (low, high) == (0.0, 1.0):
        yield f" BV BND {name}"
    elif low == high:
        yield f" FX BND {name} {low!r}"
    else:
        yield f" MI BND {name}" if low == -np.inf else f" LO BND {name} {low!r}"
        yield f" PL BND {name}" if high == np.inf else f" UP BND {name} {high!r}"
