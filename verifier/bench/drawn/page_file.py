"""A page of what was measured, in a file of the user's choice: it replaces nothing but an earlier one of its kind."""

from __future__ import annotations

from pathlib import Path

from markupsafe import escape

from ...pages.sheets.sheet import Sheet, sheet_page
from ...runs.overwriting import refuse_to_replace
from ...runs.run_folder import write_atomically

BEGINNING = 1 << 12
"""Bytes among which the title of a page stands."""


def refuse_other_files(file: Path | None, title: str) -> None:
    """Before anything is measured: what `--html` names is no file, or a page with this title."""

    def is_page(path: Path) -> bool:
        return f"<title>swapproof: {escape(title)}".encode() in path.read_bytes()[:BEGINNING]

    if file is not None:
        refuse_to_replace(file, is_page, "--html")


def write_page(file: Path | None, sheet: Sheet) -> None:
    if file is not None:
        write_atomically(file, sheet_page(sheet).written())
