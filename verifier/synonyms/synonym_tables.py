"""Tables of synonyms in whatever kind of file: a JSON object, or rows of a word and one synonym of it."""

from __future__ import annotations

from pathlib import Path

from swapproof.models.readers import kind_of, read_rows

from .sources import Source, read_table, source_of

PAIRS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""Endings of tables with one synonym a row."""


def read_synonyms(path: Path) -> Source:
    """Candidates in order of preference: `{"word": ["synonym", ...]}`, or the columns word and synonym."""
    return read_pairs(path) if kind_of(path) in PAIRS else read_table(path)


def read_pairs(path: Path) -> Source:
    table: dict[str, list[str]] = {}
    for row in read_rows(path, text="word", context="synonym"):
        table.setdefault(row.text, []).append(row.context or "")
    return source_of(path.name, table)
