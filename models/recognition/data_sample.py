"""What a data file holds: its columns, what stands in each, and rows spread over the whole file."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput
from ..readers import READERS, Asked, Defect, header_of, kind_of

MOST_SPELLINGS = 1000
"""Different values of a column that are counted; one with more holds no labels."""
LONGEST_LABEL = 100
"""Characters."""


@dataclass(frozen=True)
class Column:
    """`spellings`: how often each value stands there, over the whole file; None when there are too many."""

    name: str
    spellings: Counter[str] | None
    words: float
    """Words of a value, on average over the rows looked at."""
    texts: bool
    """Whether values are strings, those that are missing not counted."""


@dataclass(frozen=True)
class Sample:
    """`rows`: at most so many as were asked for, in the order of the file, drawn from all with a fixed seed."""

    path: Path
    columns: tuple[Column, ...]
    rows: tuple[dict[str, object], ...]
    count: int
    """Rows of the file."""
    delimiter: str | None
    """What divides the columns of a .csv or .tsv file."""
    broken: tuple[str, ...]
    """Why rows cannot be read, a line each."""

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(repr(column.name) for column in self.columns)
        raise BadInput(f"{self.path}: no column {name!r}: there are {known}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def sample_of(path: Path, at_most: int, delimiter: str | None = None) -> Sample:
    """Every row is read once; `at_most` of them are kept, each as likely as any other."""
    names, found = header_of(path, delimiter)
    delimiter = delimiter or found
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{path}: has more than one column {twice!r}")
    counted: dict[str, Counter[str] | None] = {name: Counter() for name in names}
    kept: list[tuple[int, dict[str, object]]] = []
    draw = random.Random(0)
    count, broken = 0, []
    for record in READERS[kind_of(path)](path, Asked(names, None, delimiter)):
        if isinstance(record, Defect):
            broken.append(record.what)
            continue
        row = dict(zip(names, record[1], strict=True))
        for name, value in row.items():
            counted[name] = tallied(counted[name], value)
        count += 1
        place = count - 1 if count <= at_most else draw.randrange(count)
        if place < at_most:
            kept[place : place + 1] = [(count, row)]
    if not count:
        raise BadInput(broken[0] if broken else f"{path}: has no rows")
    rows = tuple(row for _, row in sorted(kept, key=lambda one: one[0]))
    columns = tuple(column_of(name, counted[name], [row[name] for row in rows]) for name in names)
    return Sample(path, columns, rows, count, delimiter, tuple(broken))


def column_of(name: str, spellings: Counter[str] | None, values: list[object]) -> Column:
    strings = [value for value in values if isinstance(value, str) and value.strip()]
    words = sum(len(value.split()) for value in strings) / max(1, len(strings))
    return Column(name, spellings, words, bool(strings) and all(isinstance(value, str | None) for value in values))


def tallied(counted: Counter[str] | None, value: object) -> Counter[str] | None:
    """None once the column cannot be one of labels; a value that is missing is counted as nothing."""
    if counted is None or isinstance(value, list | dict):
        return None
    spelt = "" if value is None else str(value)
    if len(spelt) > LONGEST_LABEL:
        return None
    counted[spelt] += 1
    return counted if len(counted) <= MOST_SPELLINGS else None
