"""A table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"rows of {len(columns)} columns")
    lines = ["".join(f"| {cell} " if cell else "| " for cell in line) + "|\n" for line in (columns, *rows)]
    return "".join([lines[0], "|---" * len(columns) + "|\n", *lines[1:]])
