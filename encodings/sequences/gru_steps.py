"""The steps of GRUs among the pieces of a program, those that multiply by the recurrence before they reset.

h = (1 - z) n + z h',    z, r = sigmoid(rows), n = tanh(x + r inner)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..network import Indices
from ..regions.program import Blend, Curve, Dense, Operation, Product, Program, Stretch


@dataclass(frozen=True, eq=False)
class Gated:
    """One step: pieces by number. Its columns are z, r, what is reset, and x."""

    rows: int
    inner: int
    taken: int
    """x, which is affine in the word."""
    sum: int
    """x + r inner."""
    rest: int
    """1 - z."""
    mixed: int
    """(1 - z) n, and behind it z h'."""
    state: int
    others: frozenset[int]
    """Pieces that nobody else reads."""
    gates: slice
    """z and r among the columns."""
    before: tuple[Stretch, ...]
    """h', as the step mixes it in."""


@lru_cache(maxsize=64)
def gated_of(program: Program) -> Mapping[int, Gated]:
    """By their state."""
    found = [gated_at(program, number) for number in range(len(program.pieces))]
    return {
        cell.state: cell
        for cell in found
        if cell and all(program.readers[piece] <= {*cell.others, cell.state} for piece in cell.others)
    }


def gated_at(program: Program, state: int) -> Gated | None:
    """Where this piece is the state of a step."""
    of, size = program.operation_of, program.pieces[state].size
    whole, half = slice(0, size), slice(size, 2 * size)

    def sum_of(operation: Operation | None) -> tuple[Stretch, Stretch] | None:
        match operation:
            case Blend((Stretch() as one, Stretch() as other), weights, bias) if (
                covers(whole, one.place, other.place) and not bias.any() and all((each == 1).all() for each in weights)
            ):
                return one, other
        return None

    mixed = sum_of(program.pieces[state].operation)
    if mixed is None or mixed[0].piece != mixed[1].piece:
        return None
    if not (covers(whole, mixed[0].index) and covers(half, mixed[1].index)):
        return None
    match of(mixed[0]):
        case Product((Stretch() as rest, Stretch() as keep), (Stretch() as new, *before)):
            less, bend = of(rest), of(new)
        case _:
            return None
    match less, bend:
        case Blend((Stretch() as taken,), (weights,), bias), Curve((Stretch() as bent,), "tanh"):
            total = sum_of(of(bent))
        case _:
            return None
    if total is None or (weights != -1).any() or (bias != 1).any():
        return None
    if taken.piece != keep.piece or not covers(whole, taken.index, keep.index):
        return None
    x, reduced = total if isinstance(of(total[0]), Dense) else total[::-1]
    match of(x), of(reduced), of(keep):
        case Dense(), Product((Stretch() as reset,), (Stretch() as inner,)), Curve((Stretch() as rows,), "sigmoid"):
            pass
        case _:
            return None
    parts = (x, reduced, inner, bent, new, rest)
    if reset.piece != keep.piece or not isinstance(of(inner), Dense) or not isinstance(of(rows), Dense):
        return None
    if not all(covers(whole, part.index) and program.pieces[part.piece].size == size for part in parts):
        return None
    if not covers(slice(0, 2 * size), rows.index) or program.pieces[rows.piece].size != 2 * size:
        return None
    if not covers(half, reset.index):
        return None
    if not (covers(whole, rest.place, new.place) and covers(half, keep.place)):
        return None
    others = {mixed[0].piece, keep.piece, rows.piece, *(part.piece for part in parts)}
    return Gated(
        rows.piece,
        inner.piece,
        x.piece,
        bent.piece,
        rest.piece,
        mixed[0].piece,
        state,
        frozenset(others),
        slice(0, 2 * size),
        tuple(before),
    )


def covers(wanted: slice, *indices: slice | Indices) -> bool:
    """Whether all of these are this slice; an array of places is none."""
    return all(isinstance(index, slice) and index == wanted for index in indices)
