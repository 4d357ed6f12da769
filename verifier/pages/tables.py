"""Tables whose numbers are never cut: of one too wide for the terminal the rows become columns, or blocks of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNLIMITED = 10_000
"""Columns that no table takes."""


def print_table(console: Console, table: Table) -> None:
    """As it is when it fits; else turned over; else, when that is too wide too, one block of lines for each row."""
    for shape in (table, turned(table)):
        if console.measure(shape, options=console.options.update(width=UNLIMITED)).maximum <= console.width:
            console.print(shape)
            return
    first, *others = table.columns
    if table.title:
        console.print(table.title, style="italic")
    for name, *values in zip(first.cells, *(column.cells for column in others), strict=True):
        console.print(first.header, ": ", name, style="bold", sep="")
        for column, value in zip(others, values, strict=True):
            console.print("  ", column.header, ": ", value, sep="")


def turned(table: Table) -> Table:
    """Columns as rows: the first column becomes the header."""
    from rich.table import Table

    first, *others = table.columns
    found = Table(title=table.title, title_justify=table.title_justify, caption=table.caption, box=table.box)
    found.add_column(first.header)
    for name in first.cells:
        found.add_column(name, justify="right")
    for column in others:
        found.add_row(column.header, *column.cells)
    return found
