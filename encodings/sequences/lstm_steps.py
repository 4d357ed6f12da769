"""The steps of LSTMs among the pieces of a program, so that each is computed at once.

c = f c' + i g,    h = o tanh(c),    i, o, f = sigmoid(rows), g = tanh(rows)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..network import Indices
from ..regions.program import Blend, Curve, Dense, Product, Program, Stretch


@dataclass(frozen=True, eq=False)
class Cell:
    """One step: pieces by number, and where in the rows each gate is."""

    rows: int
    memory: int
    state: int
    inner: frozenset[int]
    """Pieces that nobody else reads."""
    gates: slice
    take: slice
    forget: slice
    show: slice
    fresh: slice
    before: tuple[Stretch, ...]
    """c', as the memory reads it."""


@lru_cache(maxsize=64)
def cells_of(program: Program) -> Mapping[int, Cell]:
    """By their rows."""
    found = [cell_at(program, number) for number in range(len(program.pieces))]
    return {
        cell.rows: cell
        for cell in found
        if cell
        and all(program.readers[piece] <= {*cell.inner, cell.memory, cell.state} for piece in (cell.rows, *cell.inner))
    }


def cell_at(program: Program, state: int) -> Cell | None:
    """Where this piece is the state of a step."""
    of, size = program.operation_of, program.pieces[state].size
    whole, half = slice(0, size), slice(size, 2 * size)
    match program.pieces[state].operation:
        case Product((Stretch() as show,), (Stretch() as shown,)) if ends(show, shown) == (whole, whole):
            gates, bent = of(show), of(shown)
        case _:
            return None
    match gates, bent:
        case Curve((Stretch(index=slice() as first) as rows,), "sigmoid"), Curve((Stretch() as memory,), "tanh"):
            blend = of(memory)
        case _:
            return None
    match blend:
        case Blend((Stretch() as kept, Stretch() as added), weights, bias) if (
            kept.piece == added.piece and not bias.any() and all((each == 1).all() for each in weights)
        ):
            products = of(kept)
        case _:
            return None
    match products:
        case Product((Stretch() as forget, Stretch() as take), (*before, Stretch() as last)) if (
            forget.piece == take.piece == show.piece
        ):
            fresh = of(last)
        case _:
            return None
    match fresh:
        case Curve((Stretch(index=slice() as own) as bent_rows,), "tanh") if bent_rows.piece == rows.piece:
            pass
        case _:
            return None
    if not isinstance(of(rows), Dense) or program.pieces[memory.piece].size != size:
        return None
    places = (*ends(kept, added), *ends(forget, take), *ends(memory, last))
    if places != (whole, whole, whole, half, whole, half) or (kept.index, added.index) != (whole, half):
        return None
    if (shown.index, memory.index, last.index) != (whole, whole, whole):
        return None
    places_of = [part.index for part in (take, forget, show) if isinstance(part.index, slice)]
    if len(places_of) < 3 or own.stop - own.start != size or (own.start < first.stop and first.start < own.stop):
        return None
    i, f, o = (slice(first.start + each.start, first.start + each.stop) for each in places_of)
    inner = frozenset([show.piece, shown.piece, kept.piece, last.piece])
    return Cell(rows.piece, memory.piece, state, inner, first, i, f, o, own, tuple(before))


def ends(*parts: Stretch) -> tuple[slice | Indices, ...]:
    return tuple(part.place for part in parts)
