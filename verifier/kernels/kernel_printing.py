"""The table of kernels on the terminal, and what it says of the stated bounds."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from swapproof.encodings.rounding.kernel_errors import KERNEL_ERRORS, KernelError

from .kernel_sweep import Measured, Peak
from .kernel_table import Table

if TYPE_CHECKING:
    from rich.table import Table as Drawn

COLUMNS = ("function", "inputs", "largest error", "at", "stated", "ulp", "outside", "falls", "holds")
"""outside: how far values leave the function's range; falls: how often one is on the wrong side of its neighbour's;
holds: the stated bound, at every input measured."""
SAMPLED = "sampled"


def drawn_table(table: Table) -> Drawn:
    from rich.table import Table as Drawn

    drawn = Drawn()
    for column in COLUMNS:
        drawn.add_column(column, no_wrap=column in ("inputs", "largest error"))
    for name, one in table.functions.items():
        drawn.add_row(name, *row(one, KERNEL_ERRORS[name]))
    for gate, one in table.gates.items():
        drawn.add_row(f"LSTM {gate}", *row(one, KERNEL_ERRORS["tanh" if gate == "cell" else "sigmoid"]))
    return drawn


def row(one: Measured, stated: KernelError) -> tuple[str, ...]:
    peak, kind = (one.relative, "relative") if stated.relative else (one.absolute, "absolute")
    return (
        str(one.inputs),
        f"{power(peak.value)} {kind}",
        shown(peak),
        power(float(stated.relative or stated.absolute)),
        f"{one.ulp.value:.4g}",
        f"{one.outside.value:.3g}" if one.outside.value > 0 else "no",
        str(one.times_fallen or "no"),
        "yes" if not one.exceeded else f"not at {one.exceeded}",
    )


def power(value: float) -> str:
    return f"2^{log2(value):.2f}" if value > 0 else "0"


def shown(peak: Peak) -> str:
    return "" if peak.at is None else f"{peak.at:.6g}"


def lines(table: Table) -> list[str]:
    """What the table does not hold, and whether the stated bounds do."""
    softmax, division, differ = table.softmax, table.division, sum(table.short.values())
    covered = "every float32 input of its domain" if table.every == 1 else f"every {table.every}th float32 input"
    return [
        f"{table.runtime}: {covered}; gates of an LSTM are {SAMPLED}",
        f"softmax, {SAMPLED} at {softmax['inputs']:,} shares: absolute error {power(softmax['absolute'])}, relative "
        f"{power(softmax['relative'])}, at most {softmax['part_of_stated']:.0%} of what is stated for width and spread",
        f"division, {SAMPLED} at {division['inputs']:,} quotients: relative error {power(division['relative'])}",
        f"arrays shorter than one instruction, {SAMPLED}: "
        + (f"{differ} results differ" if differ else "every result is the same"),
        *(table.exceeding or ("every stated bound holds",)),
    ]
