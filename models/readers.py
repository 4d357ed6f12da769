"""Rows of labelled text from .tsv, .csv, .jsonl (also .gz) and .parquet files; a broken row is named by its line."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .errors import BadInput, Unsupported, one_line, unreadable


@dataclass(frozen=True)
class Row:
    """One text of a data file: `id` counts rows from 0, `label` is as found, `where` names file and line."""

    id: int
    text: str
    label: str | int | None = None
    context: str | None = None
    where: str = ""


MOST_ROWS = 10**15
Record = tuple[str, list[object]]  # where it stands, and the values of the columns asked for
Reader = Callable[[Path, Sequence[str], int | None], Iterator[Record]]


def read_rows(
    path: str | Path,
    *,
    text: str,
    label: str | None = None,
    context: str | None = None,
    limit: int | None = None,
) -> list[Row]:
    """The first `limit` rows, reading no further than that."""
    path = Path(path)
    if limit is not None and limit < 1:
        raise BadInput(f"{path}: a limit of {limit} rows: it must be at least 1")
    if limit is not None and limit > MOST_ROWS:
        raise BadInput(f"{path}: a limit of more than {MOST_ROWS:,} rows, which no file has; leave it out to read all")
    names = [suffix.lower() for suffix in path.suffixes]
    kind = "".join(names[-2:]) if names[-1:] == [".gz"] else "".join(names[-1:])
    if kind not in READERS:
        raise Unsupported(f"{path}: not a kind of data file that can be read: {', '.join(READERS)}")
    if path.is_dir():
        raise BadInput(f"{path}: a directory, where a file is needed")
    columns = list(dict.fromkeys(column for column in (text, label, context) if column is not None))
    rows: list[Row] = []
    for index, (where, values) in enumerate(islice(READERS[kind](path, columns, limit), limit)):
        found = dict(zip(columns, values, strict=True))
        rows.append(
            Row(
                id=index,
                text=_text(found[text], text, where),
                label=None if label is None else _label(found[label], label, where),
                context=None if context is None else _text(found[context], context, where),
                where=where,
            )
        )
    if not rows:
        raise BadInput(f"{path}: has no rows")
    return rows


def label_index(value: str | int, labels: Sequence[str], where: str = "") -> int:
    """The class a label means: one of the names, else an index. Names win, so that "1" to "5" may be classes."""
    spelt = str(value)
    if not isinstance(value, bool):
        if spelt in labels:
            return labels.index(spelt)
        if spelt in map(str, range(len(labels))):
            return int(spelt)
    known = ", ".join(repr(name) for name in labels)
    raise BadInput(
        f"{where + ': ' if where else ''}label {value!r} is outside the classes: {known}, or 0 to {len(labels) - 1}"
    )


def _text(value: object, column: str, where: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where}: {column} is {_shown(value)}, not a text")
    if "\0" in value:
        raise BadInput(f"{where}: {column} holds a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput(f"{where}: {column} holds half a surrogate pair, which is no character")
    return value


def _label(value: object, column: str, where: str) -> str | int:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise BadInput(f"{where}: {column} is {_shown(value)}, neither a name nor an integer")


def _shown(value: object) -> str:
    shown = json.dumps(value, default=repr)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _tsv(path: Path, columns: Sequence[str], limit: int | None) -> Iterator[Record]:
    """Fields between tabs, and no quoting: a quotation mark is a character like any other."""
    return _table(path, ((number, line.rstrip("\r\n").split("\t")) for number, line in _lines(path)), columns)


def _csv(path: Path, columns: Sequence[str], limit: int | None) -> Iterator[Record]:
    return _table(path, _csv_fields(path), columns)


def _csv_fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((line for _, line in _lines(path)), strict=True)
    while True:
        first = reader.line_num + 1  # a quoted field may span lines: the row is named by where it begins
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(f"{path} line {first}: broken row: {error}") from error
        yield first, fields


def _table(path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[str]) -> Iterator[Record]:
    """The asked columns of rows below a header; blank lines are allowed at the end only."""
    _, header = next(rows, (0, []))
    if not any(header):
        raise BadInput(f"{path} line 1: no header: the first line must name the columns")
    places = [_place(column, header, path) for column in columns]
    blank: int | None = None
    for number, fields in rows:
        if fields in ([], [""]):
            blank = blank or number
            continue
        if blank is not None:
            raise BadInput(f"{path} line {blank}: a blank line between rows")
        if len(fields) != len(header):
            raise BadInput(f"{path} line {number}: {len(fields)} fields, where the header has {len(header)}")
        yield f"{path} line {number}", [fields[place] for place in places]


def _place(column: str, header: Sequence[str], path: Path) -> int:
    if header.count(column) > 1:
        raise BadInput(f"{path}: has more than one column {column!r}")
    if column not in header:
        raise _no_column(str(path), column, header)
    return header.index(column)


def _no_column(where: str, column: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"{where}: no column {column!r}: there are {', '.join(map(repr, known)) or 'none'}")


def _jsonl(path: Path, columns: Sequence[str], limit: int | None) -> Iterator[Record]:
    """One JSON object a line; blank lines are allowed at the end only."""
    blank: int | None = None
    for number, line in _lines(path):
        where = f"{path} line {number}"
        if not line.strip():
            blank = blank or number
            continue
        if blank is not None:
            raise BadInput(f"{path} line {blank}: a blank line between rows")
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(f"{where}: not JSON ({error.msg}, column {error.colno})") from error
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: not JSON ({one_line(error)})") from error
        if not isinstance(record, dict):
            raise BadInput(f"{where}: not a JSON object but {_shown(record)}")
        for column in columns:
            if column not in record:
                raise _no_column(where, column, record)
        yield where, [record[column] for column in columns]


def _parquet(path: Path, columns: Sequence[str], limit: int | None) -> Iterator[Record]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unsupported(f"{path}: a .parquet file needs `pip install swapproof[parquet]`") from error
    try:
        with parquet.ParquetFile(path) as file:
            known = file.schema_arrow.names
            for column in columns:
                _place(column, known, path)
            number = 0
            for batch in file.iter_batches(batch_size=min(limit or 4096, 4096), columns=list(columns)):
                for record in batch.to_pylist():
                    yield f"{path} row {number} (counted from 0)", [record[column] for column in columns]
                    number += 1
    except pyarrow.ArrowException as error:
        raise BadInput(f"{path}: not a parquet file that can be read: {one_line(error)}") from error
    except OSError as error:
        raise unreadable(path, error) if error.errno else BadInput(f"{path}: broken: {one_line(error)}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, divided at line feeds only: texts may hold other line separators."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    number = 0
    try:
        with opened(path, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                if b"\0" in raw:
                    raise BadInput(f"{path} line {number}: holds a NUL byte")
                try:
                    line = str(raw, "utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise BadInput(f"{path} line {number}: not UTF-8 ({error.reason})") from error
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} line {number + 1}: broken gzip: {one_line(error)}") from error
    except OSError as error:
        raise unreadable(path, error) from error


READERS: dict[str, Reader] = {
    ".tsv": _tsv,
    ".tsv.gz": _tsv,
    ".csv": _csv,
    ".csv.gz": _csv,
    ".jsonl": _jsonl,
    ".jsonl.gz": _jsonl,
    ".parquet": _parquet,
}
