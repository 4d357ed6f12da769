"""Rows of labelled text from .tsv, .csv, .json, .jsonl (also .gz) and .parquet files, a broken row named by its line.

A row that cannot be used is a `Defect`: whoever reads the rows skips and counts it, or lists the first ten and stops.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from os import PathLike
from pathlib import Path

from .errors import BadInput, BrokenRows, Unsupported, one_line, unreadable


@dataclass(frozen=True)
class Row:
    """One text of a data file: `id` counts rows from 0, `label` and `answer` are as found, `where` is file and line."""

    id: int
    text: str
    label: str | int | None = None
    context: str | None = None
    where: str = ""
    answer: str | int | None = None


@dataclass(frozen=True)
class Defect:
    """Why a row cannot be used: one line, which names file and line."""

    what: str


class Defects:
    """The rows of a file that cannot be used: skipped and counted, or listed as what is wrong with the file."""

    def __init__(self, *, skip: bool = False) -> None:
        self.skip, self.number = skip, 0
        self.lines: list[str] = []
        """The first of them."""
        self.later = 0

    def add(self, what: str) -> None:
        self.number += 1
        if len(self.lines) < MOST_LISTED:
            self.lines.append(what)
        if not self.skip and self.number == MOST_LISTED:
            raise BrokenRows(self.lines)

    def passed(self) -> None:
        """One more row is read: after a defect not many more are, in search of others."""
        if self.lines and not self.skip:
            self.later += 1
            if self.later > READ_ON:
                raise BrokenRows(self.lines)

    def end(self, last: BadInput | None = None) -> None:
        """All is read, or this is what ended it."""
        if self.lines and not self.skip:
            raise BrokenRows([*self.lines, *([] if last is None else [str(last)])])
        if last is not None:
            raise last


MOST_ROWS = 10**15
MOST_LISTED = 10
"""Defects of a file that are listed."""
READ_ON = 10_000
"""Rows that are read after a defect to list the next ones."""
DELIMITERS = (",", "\t", ";", "|")
"""Those that the header of a file can show to be its own."""
Record = tuple[str, list[object]] | Defect  # where it stands, and the values of the columns asked for


@dataclass(frozen=True)
class Asked:
    """What a reader is to find in a file; it need not read more than so many rows."""

    columns: tuple[str, ...]
    limit: int | None = None
    delimiter: str | None = None


Reader = Callable[[Path, Asked], Iterator[Record]]


def read_rows(
    path: str | Path,
    *,
    text: str,
    label: str | None = None,
    context: str | None = None,
    answer: str | None = None,
    limit: int | None = None,
    delimiter: str | None = None,
) -> list[Row]:
    """The first `limit` rows, reading no further than that; BrokenRows lists those that are none."""
    defects = Defects()
    rows: list[Row] = []
    found = scan_rows(path, text=text, label=label, context=context, answer=answer, limit=limit, delimiter=delimiter)
    try:
        for one in islice(found, limit):
            defects.passed()
            if isinstance(one, Defect):
                defects.add(one.what)
            else:
                rows.append(one)
    except BrokenRows:
        raise
    except BadInput as error:
        defects.end(error)
    defects.end()
    if not rows:
        raise BadInput(f"{path}: has no rows")
    return rows


def scan_rows(
    path: str | Path,
    *,
    text: str,
    label: str | None = None,
    context: str | None = None,
    answer: str | None = None,
    limit: int | None = None,
    delimiter: str | None = None,
) -> Iterator[Row | Defect]:
    """Every row, or why it is none; `limit`: no more than so many will be looked at. Raises BadInput for what is wrong
    with the file as a whole, and where nobody can tell any more which row is which."""
    path = Path(path)
    if limit is not None and limit < 1:
        raise BadInput(f"{path}: a limit of {limit} rows: it must be at least 1")
    if limit is not None and limit > MOST_ROWS:
        raise BadInput(f"{path}: a limit of more than {MOST_ROWS:,} rows, which no file has; leave it out to read all")
    kind = kind_of(path)
    if kind not in READERS:
        raise Unsupported(f"{path}: not a kind of data file that can be read: {', '.join(READERS)}")
    if delimiter is not None and READERS[kind] not in (_tsv, _csv):
        raise BadInput(f"{path}: a delimiter has no effect here; only .csv and .tsv files have one")
    if path.is_dir():
        raise BadInput(f"{path}: a directory, where a file is needed")
    columns = tuple(dict.fromkeys(column for column in (text, label, context, answer) if column is not None))
    records = READERS[kind](path, Asked(columns, limit, delimiter))
    return rows_of(records, columns, text=text, label=label, context=context, answer=answer)


def rows_of(
    records: Iterable[Record],
    columns: Sequence[str],
    *,
    text: str,
    label: str | None,
    context: str | None,
    answer: str | None,
) -> Iterator[Row | Defect]:
    for index, record in enumerate(records):
        if isinstance(record, Defect):
            yield record
            continue
        where, values = record
        found = dict(zip(columns, values, strict=True))
        try:
            row = Row(
                id=index,
                text=_text(found[text], text, where),
                label=None if label is None else _label(found[label], label, where),
                context=None if context is None else _text(found[context], context, where),
                where=where,
                answer=None if answer is None else _label(found[answer], answer, where),
            )
        except BadInput as error:
            yield Defect(str(error))
        else:
            yield row


def kind_of(path: Path) -> str:
    """The suffix that says how a file is read, `.gz` with the one before it."""
    names = [suffix.lower() for suffix in path.suffixes]
    return "".join(names[-2:]) if names[-1:] == [".gz"] else "".join(names[-1:])


def header_of(path: str | Path, delimiter: str | None = None) -> tuple[tuple[str, ...], str | None]:
    """The names of the columns, or the keys of the first object; of .csv and .tsv also what divides them: the delimiter
    that finds the most names, the usual one where another finds no more."""
    path = Path(path)
    kind = kind_of(path)
    if kind not in READERS:
        raise Unsupported(f"{path}: not a kind of data file that can be read: {', '.join(READERS)}")
    if path.is_dir():
        raise BadInput(f"{path}: a directory, where a file is needed")
    if READERS[kind] in (_tsv, _csv):
        usual = "\t" if READERS[kind] is _tsv else ","
        line = next((line for _, line in _lines(path) if isinstance(line, str)), "").rstrip("\r\n")
        if not line.strip():
            raise BadInput(f"{path}: has no rows")
        headers = {sign: next(csv.reader([line], delimiter=sign), []) for sign in delimiter or (usual, *DELIMITERS)}
        sign = max(headers, key=lambda sign: len(headers[sign]))
        return tuple(headers[sign]), sign
    if READERS[kind] is _parquet:
        return _parquet_columns(path), None
    first = next(READERS[kind](path, Asked(())), None)
    if isinstance(first, Defect):
        raise BadInput(first.what)
    if first is None:
        raise BadInput(f"{path}: has no rows")
    return tuple(_first_object(path)), None


def _first_object(path: Path) -> dict[str, object]:
    """Of a list or of lines, known to be there."""
    lines = (line for _, line in _lines(path) if isinstance(line, str))
    found = json.loads(next(line for line in lines if line.strip()) if ".jsonl" in kind_of(path) else "".join(lines))
    first = found[0] if isinstance(found, list) else found
    return dict(first)


def _parquet_columns(path: Path) -> tuple[str, ...]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unsupported(f"{path}: a .parquet file needs pyarrow: pip install pyarrow") from error
    try:
        return tuple(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not a parquet file that can be read: {one_line(error)}") from error


WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0+)?", re.ASCII)


def label_index(
    value: str | int, labels: Sequence[str], where: str = "", spelt: Mapping[str, str] | None = None
) -> int:
    """The class a label means: one of the names, else an index unless names are numbers; of `spelt`, what stands in the
    data -> name, one of its keys and nothing else.

    What stands there exactly so wins; else spaces around it, capitals, and `1.0` for `1` do not matter, as long as only
    one class can be meant.
    """
    found = None
    if not isinstance(value, bool):
        found = class_of(str(value), tuple(labels), None if spelt is None else tuple(spelt.items()))
    if found is None:
        raise BadInput(f"{where + ': ' if where else ''}{unknown_label(value, labels, spelt)}")
    return found


@lru_cache(maxsize=4096)
def class_of(value: str, labels: tuple[str, ...], spelt: tuple[tuple[str, str], ...] | None) -> int | None:
    """A data set repeats the same few labels."""
    names = {name: name for name in labels} if spelt is None else dict(spelt)
    if value in names:
        return labels.index(names[value])
    same = {name for key, name in names.items() if loosely(key) == loosely(value)}
    if same:
        return labels.index(same.pop()) if len(same) == 1 else None
    numbers = any(WHOLE.fullmatch(loosely(name)) for name in labels)
    if spelt is None and not numbers and loosely(value) in map(str, range(len(labels))):
        return int(loosely(value))
    return None


def refuse_other_order(
    source: str | PathLike[str], classes: Sequence[str], labels: Sequence[str], spelt: Mapping[str, str] | None
) -> None:
    """A task that names the classes of a model as the model does, or else has them as keys of the map `spelt`, must
    have them in the model's order."""
    order = list(range(len(labels)))
    names = {name: name for name in labels}
    for known in (names, spelt or {}):
        places = [class_of(name, tuple(labels), tuple(known.items())) for name in classes]
        if places == order:
            return
        if len(places) != len(order) or set(places) != set(order):
            continue
        if known is names:
            right = json.dumps([labels[place] for place in places if place is not None], ensure_ascii=False)
        else:
            ordered = sorted(known.items(), key=lambda item: places.index(labels.index(item[1])))
            right = f"{{ {', '.join(f'{json.dumps(key)} = {json.dumps(name)}' for key, name in ordered)} }}"
        own = ", ".join(classes)
        raise BadInput(f"{source}: answers in the order {own}, and [model] labels in another: write labels = {right}")


def loosely(value: str | int) -> str:
    """How a label is compared: without spaces around, in one case, whole numbers without decimals."""
    text = str(value).strip().casefold()
    whole = WHOLE.fullmatch(text)
    return whole[1] if whole else text


def unknown_label(value: str | int, labels: Sequence[str], spelt: Mapping[str, str] | None) -> str:
    """Why a label is no class, and the map that would say which it is."""
    met = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
    if spelt is not None:
        return f"label {met} is not in the map [model] labels: {', '.join(map(repr, spelt))}"
    indices = [str(index) for index in range(len(labels))]
    known = ", ".join(map(repr, labels))
    if not any(WHOLE.fullmatch(loosely(name)) for name in labels):
        known += f", or 0 to {len(labels) - 1}"
    match loosely(value):
        case "-1" if len(labels) == 2:
            keys = ["-1", "1"]
        case found if found == str(len(labels)):
            keys = [str(index + 1) for index in range(len(labels))]
        case _ if len(str(value)) > 40:
            return f"label {met} is outside the classes: {known}; it has {len(str(value))} characters: is it a label?"
        case _:
            keys = [str(value), *indices[1:]]
    pairs = ", ".join(f"{json.dumps(key)} = {json.dumps(name)}" for key, name in zip(keys, labels, strict=True))
    return f"label {met} is outside the classes: {known}; say what stands in the data: labels = {{ {pairs} }}"


def _text(value: object, column: str, where: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where}: {column} is {_shown(value)}, not a text")
    if "\0" in value:
        raise BadInput(f"{where}: {column} holds a NUL character")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput(f"{where}: {column} holds half a surrogate pair, which is no character")
    return value


def _label(value: object, column: str, where: str) -> str | int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise BadInput(f"{where}: {column} is {_shown(value)}, neither a name nor an integer")


def _shown(value: object) -> str:
    shown = json.dumps(value, default=repr)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _tsv(path: Path, asked: Asked) -> Iterator[Record]:
    """Fields between tabs, and no quoting: a quotation mark is a character like any other."""
    delimiter = asked.delimiter or _delimiter(path, asked.columns, "\t")
    return _table(path, _tab_fields(path) if delimiter == "\t" else _csv_fields(path, delimiter), asked.columns)


def _csv(path: Path, asked: Asked) -> Iterator[Record]:
    delimiter = asked.delimiter or _delimiter(path, asked.columns, ",")
    return _table(path, _csv_fields(path, delimiter), asked.columns)


def _delimiter(path: Path, columns: Sequence[str], usual: str) -> str:
    """The one by which the header names all columns asked for; the usual one where none does, or it does too."""
    line = next((line for _, line in _lines(path) if isinstance(line, str)), "")
    fitting = []
    for delimiter in DELIMITERS:
        try:
            header = next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), [])
        except csv.Error:
            continue
        if all(header.count(column) == 1 for column in columns):
            fitting.append(delimiter)
    return fitting[0] if len(fitting) == 1 else usual


def _tab_fields(path: Path) -> Iterator[tuple[int, list[str]] | Defect]:
    for number, line in _lines(path):
        yield line if isinstance(line, Defect) else (number, line.rstrip("\r\n").split("\t"))


def _csv_fields(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]] | Defect]:
    def whole(line: str | Defect) -> str:
        if isinstance(line, Defect):  # a quoted field may go on in the next line: no row is known to begin there
            raise BadInput(line.what)
        return line

    reader = csv.reader((whole(line) for _, line in _lines(path)), delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1  # a quoted field may span lines: the row is named by where it begins
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(f"{path} line {first}: broken row: {error}") from error
        yield first, fields


def _table(path: Path, rows: Iterator[tuple[int, list[str]] | Defect], columns: Sequence[str]) -> Iterator[Record]:
    """The asked columns of rows below a header; blank lines are allowed at the end only."""
    first = next(rows, (0, []))
    if isinstance(first, Defect):
        raise BadInput(first.what)
    _, header = first
    if not any(header):
        raise BadInput(f"{path} line 1: no header: the first line must name the columns")
    places = [_place(column, header, path) for column in columns]
    blank: int | None = None
    for row in rows:
        if isinstance(row, Defect):
            yield row
            continue
        number, fields = row
        if fields in ([], [""]):
            blank = blank or number
            continue
        if blank is not None:
            yield Defect(f"{path} line {blank}: a blank line between rows")
            blank = None
        if len(fields) != len(header):
            yield Defect(f"{path} line {number}: {len(fields)} fields, where the header has {len(header)}")
            continue
        yield f"{path} line {number}", [fields[place] for place in places]


def _place(column: str, header: Sequence[str], path: Path) -> int:
    if header.count(column) > 1:
        raise BadInput(f"{path}: has more than one column {column!r}")
    if column not in header:
        raise _no_column(str(path), column, header)
    return header.index(column)


def _no_column(where: str, column: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"{where}: no column {column!r}: there are {', '.join(map(repr, known)) or 'none'}")


def _jsonl(path: Path, asked: Asked) -> Iterator[Record]:
    """One JSON object a line; blank lines are allowed at the end only."""
    blank: int | None = None
    for number, line in _lines(path):
        where = f"{path} line {number}"
        if isinstance(line, Defect):
            yield line
            continue
        if not line.strip():
            blank = blank or number
            continue
        if blank is not None:
            yield Defect(f"{path} line {blank}: a blank line between rows")
            blank = None
        try:
            record = json.loads(line.rstrip("\r\n"), object_pairs_hook=keys_once)
        except json.JSONDecodeError as error:
            yield Defect(f"{where}: not JSON ({error.msg}, column {error.pos + 1})")
        except (ValueError, RecursionError) as error:
            yield Defect(f"{where}: not JSON ({one_line(error)})")
        else:
            yield _object(where, record, asked.columns)


def _json(path: Path, asked: Asked) -> Iterator[Record]:
    """One list of objects, read as a whole."""
    lines = list(_lines(path))
    if broken := next((line for _, line in lines if isinstance(line, Defect)), None):
        raise BadInput(broken.what)
    try:
        records = json.loads("".join(line for _, line in lines if isinstance(line, str)), object_pairs_hook=keys_once)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({one_line(error)})") from error
    if not isinstance(records, list):
        raise BadInput(f"{path}: not a list of objects but {_shown(records)}; one object a line is a .jsonl file")
    for number, record in enumerate(records):
        yield _object(f"{path} item {number} (counted from 0)", record, asked.columns)


class KeyTwice(ValueError):
    """In one object of a JSON file."""


def keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """JSON keeps the last of two values of a key, and people see the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise KeyTwice(f"the key {twice!r} is there twice")
    return found


def _object(where: str, record: object, columns: Sequence[str]) -> Record:
    if not isinstance(record, dict):
        return Defect(f"{where}: not a JSON object but {_shown(record)}")
    for column in columns:
        if column not in record:
            return Defect(str(_no_column(where, column, record)))
    return where, [record[column] for column in columns]


def _parquet(path: Path, asked: Asked) -> Iterator[Record]:
    columns, limit = asked.columns, asked.limit
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise Unsupported(f"{path}: a .parquet file needs pyarrow: pip install pyarrow") from error
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


def _lines(path: Path) -> Iterator[tuple[int, str | Defect]]:
    """Numbered lines with their ends, divided at line feeds only: texts may hold other line separators."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    number = 0
    try:
        with opened(path, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                if b"\0" in raw:
                    yield number, Defect(f"{path} line {number}: holds a NUL byte")
                    continue
                try:
                    line = str(raw, "utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    yield number, Defect(f"{path} line {number}: not UTF-8 ({error.reason})")
                    continue
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
    ".json": _json,
    ".json.gz": _json,
    ".jsonl": _jsonl,
    ".jsonl.gz": _jsonl,
    ".parquet": _parquet,
}
