"""A table on a narrow terminal: whatever the width, every number is there whole."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from swapproof.verifier.pages.tables import print_table

words = st.text("abcdefgh 0123456789.%", min_size=1, max_size=14).map(str.strip).filter(bool)


def printed(width: int, names: list[str], rows: list[list[str]]) -> list[str]:
    table = Table(title="A title")
    for name in names:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_table(console, table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@given(st.integers(40, 120), st.integers(2, 12), st.data())
def test_no_cell_is_cut_and_no_line_is_longer_than_the_terminal(width: int, columns: int, data: st.DataObject) -> None:
    names = data.draw(st.lists(words, min_size=columns, max_size=columns))
    rows = data.draw(st.lists(st.lists(words, min_size=columns, max_size=columns), min_size=1, max_size=5))
    lines = printed(width, names, rows)
    assert all(len(line) <= width for line in lines)
    for cell in [*names, *(cell for row in rows for cell in row)]:
        assert any(cell in line for line in lines)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize(("width", "form"), [(60, "as it is"), (30, "turned"), (22, "blocks")])
def test_the_form_follows_from_the_width(width: int, form: str) -> None:
    names = ["radius", "texts", "exact", "bracketed"]
    lines = printed(width, names, [["1", "800", "70", "5"], ["2", "800", "60", "6"]])
    if form == "as it is":
        assert any(row.split() == ["│", "1", "│", "800", "│", "70", "│", "5", "│"] for row in lines)
    elif form == "turned":
        assert any(row.split() == ["│", "texts", "│", "800", "│", "800", "│"] for row in lines)
    else:
        one = ["radius: 1", "  texts: 800", "  exact: 70", "  bracketed: 5"]
        other = ["radius: 2", "  texts: 800", "  exact: 60", "  bracketed: 6"]
        assert lines == ["A title", *one, *other]
