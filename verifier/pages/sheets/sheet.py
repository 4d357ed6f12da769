"""A page as data: what is claimed, what to be wary of, cards, parts with figures and tables, and rows to look through.

The same bytes for the same content; everything that users wrote is escaped, and the rows are packed as in report.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from ...exit_codes import HOLDS, INCOMPLETE, UNCHECKED, VIOLATED
from ..packed_rows import Page, compact
from ..page import PACKED, own_file

if TYPE_CHECKING:
    from jinja2 import Template

BANNERS: Mapping[int, str] = {
    HOLDS: "holds",
    VIOLATED: "violated",
    INCOMPLETE: "incomplete",
    UNCHECKED: "unchecked",
}
"""Exit code -> class of the banner: one rule for the page and for whoever runs the command."""
MOST_ROWS = 200_000
"""Rows that a page holds: what a browser can still unpack."""
Kind = Literal["number", "choice", "text", "plain"]


@dataclass(frozen=True)
class Card:
    number: str
    words: str
    meaning: str


@dataclass(frozen=True)
class Figure:
    """A drawing of ours, with what its marks mean and how its numbers are defined."""

    caption: str
    drawing: Markup
    definition: str
    keys: tuple[tuple[str, str], ...] = ()
    """(class of the mark, or how it is drawn, name)"""


@dataclass(frozen=True)
class Grid:
    """A table of numbers; every one has a line that defines them."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    definition: str
    id: str = ""
    notes: tuple[str, ...] = ()
    """Footnotes."""


@dataclass(frozen=True)
class Part:
    heading: str
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """Of the rows: numbers sort by value, choices have a filter, a text shows the swaps of its row."""

    name: str
    kind: Kind = "plain"


Detail = tuple[str, str, Sequence[Mapping[str, Any]]]
Row = tuple[Sequence[Any], Sequence[Detail]]


@dataclass(frozen=True)
class Rows:
    """What can be searched, sorted, filtered and opened. `each` goes through rows of cells and details; a detail is
    (heading, text, swaps) where swaps are those of a witness, or none."""

    caption: str
    columns: tuple[Column, ...]
    number: int
    each: Callable[[], Iterable[Row]]
    definition: str
    noun: str = "texts"
    opens: bool = True
    """Whether rows have details."""


@dataclass(frozen=True)
class Sheet:
    """`banner`: holds, violated, incomplete or unchecked, by the exit code of a run; neutral of what is no verdict."""

    title: str
    lead: str
    banner: str
    claim: str
    said: str = ""
    warnings: tuple[str, ...] = ()
    definition: str = ""
    cards: tuple[Card, ...] = ()
    parts: tuple[Part, ...] = ()
    rows: Rows | None = None
    facts: tuple[tuple[str, str], ...] = ()
    closing: str = ""


def sheet_page(sheet: Sheet) -> Page:
    text = template().render(sheet=sheet, most=MOST_ROWS, css=own_file("report.css"), js=script())
    before, after = text.split(PACKED)
    return Page(f"{before}{PACKED}".encode(), lambda: packed_rows(sheet.rows), after.encode())


def packed_rows(rows: Rows | None) -> Iterator[bytes]:
    """First the columns, then a line for each row: its cells, and its details."""
    if rows is None:
        yield b"[]\n"
        return
    columns = [[column.name, column.kind] for column in rows.columns]
    yield f"{compact([columns, rows.noun])}\n".encode()
    for number, (cells, details) in enumerate(rows.each()):
        if number < MOST_ROWS:
            yield f"{compact([list(cells), [[head, text, list(swaps)] for head, text, swaps in details]])}\n".encode()


@lru_cache(maxsize=1)
def template() -> Template:
    from jinja2 import Environment

    # No loader and no file of the user's: the template is ours, and everything put into it is escaped.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(here("sheet.html"))


def script() -> Markup:
    return Markup(here("sheet.js"))


@lru_cache(maxsize=2)
def here(name: str) -> str:
    return files("swapproof.verifier.pages.sheets").joinpath(name).read_text(encoding="utf-8")
