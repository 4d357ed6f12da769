"""The rows of a data file that a run is about, the first or drawn ones; what cannot be used is skipped or refused.

A sample depends on the file, the seed and nothing else. Row r of the file, counted from 0, has as its key the SHA-256
of the text `swapproof sample 1:SEED:r`; the sample are the rows with the least keys, in ascending order of these. So a
sample of 200 begins with that of 20 of the same seed, and its first 20 are a uniform sample themselves. A balanced
sample takes as many rows of every class, chosen and ordered in the same way within each, one class after the other in
turn.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from swapproof.encodings.errors import BadInput
from swapproof.models.encoded import Encoded
from swapproof.models.errors import BadInput as BadText
from swapproof.models.errors import BrokenRows
from swapproof.models.readers import Defect, Defects, Row, label_index, scan_rows

from .sections import DataSection, ModelSection


@dataclass(frozen=True)
class Labelled:
    """A row with its class, and the class that the deployed system answered if the data say it."""

    row: Row
    label: int
    answer: int | None


Given = tuple[Labelled, Encoded]
Encode = Callable[[str], Encoded]
"""Raises models' BadInput for a text that the model cannot be given."""


def given_rows(
    data: DataSection, model: ModelSection, encode: Encode, limit: int | None = None
) -> tuple[list[Given], Defects]:
    """The rows, and those that were skipped."""
    found, defects, _ = rows_and_end(data, model, encode, limit)
    return found, defects


def rows_and_end(
    data: DataSection, model: ModelSection, encode: Encode, limit: int | None = None
) -> tuple[list[Given], Defects, bool]:
    """The same, and whether the data of a shard end with them, so that the shards behind it have no texts: rows were
    skipped that had been counted. One row more is read to know it."""
    defects = Defects(skip=data.on_error == "skip")
    begin, end = (0, None) if data.rows is None else data.rows
    limits = [most for most in (None if limit is None else begin + limit, data.limit, end) if most is not None]
    most = min(limits) if limits else None
    may_end = data.shard_of is not None and defects.skip and most is not None
    beyond = most + 1 if may_end and most is not None else most
    try:
        rows = labelled_rows(data, model, most, defects)
        if data.sample is None:
            found = list(first(rows, encode, beyond, defects))
        else:
            found = drawn(rows, encode, data, len(model.labels), defects)[:beyond]
    except BrokenRows:
        raise
    except BadText as error:
        defects.end(error)
    defects.end()
    if not found:
        skipped = f", but for {defects.number} that were skipped: {defects.lines[0]}" if defects.lines else ""
        raise BadInput(f"{data.file}: has no rows{skipped}")
    ended = may_end and most is not None and len(found) <= most
    if begin >= len(found):
        none = "; the shards before it have them all, and merge needs no run of this one" if ended else ""
        raise BadInput(f"{data.file}: {len(found)} texts, and [data] rows begins at {begin}, counted from 0{none}")
    return found[begin:most], defects, ended


def labelled_rows(data: DataSection, model: ModelSection, most: int | None, defects: Defects) -> Iterator[Labelled]:
    """Every row that has a label; no further than `most` are looked at where a defect is none to skip."""
    exact = most if data.sample is None and data.on_error == "stop" else None
    found = scan_rows(
        data.file,
        text=data.text,
        label=data.label,
        context=data.context,
        answer=data.answer,
        limit=exact,
        delimiter=data.delimiter,
    )

    def index(value: str | int | None, where: str, what: str) -> int:
        if value is None:
            raise BadText(f"{where}: has no {what}")
        return label_index(value, model.labels, where, model.label_map)

    for number, one in enumerate(found):
        if exact is not None and number >= exact:
            return
        defects.passed()
        if isinstance(one, Defect):
            defects.add(one.what)
            continue
        try:
            label = index(one.label, one.where, "label")
            answer = None if data.answer is None else index(one.answer, f"{one.where}: {data.answer}", "answer")
        except BadText as error:
            defects.add(str(error))
        else:
            yield Labelled(one, label, answer)


def first(rows: Iterable[Labelled], encode: Encode, most: int | None, defects: Defects) -> Iterator[Given]:
    number = 0
    for row in rows:
        encoded = encoded_or_none(row, encode, defects)
        if encoded is None:
            continue
        yield row, encoded
        number += 1
        if number == most:
            return


def encoded_or_none(row: Labelled, encode: Encode, defects: Defects) -> Encoded | None:
    try:
        return encode(row.row.text)
    except BadText as error:
        defects.add(f"{row.row.where}: {error}")
        return None


def drawn(rows: Iterable[Labelled], encode: Encode, data: DataSection, classes: int, defects: Defects) -> list[Given]:
    """The sample, of which no more is in memory than will be in it."""
    size = data.sample or 0
    groups = classes if data.balanced else 1
    shares = [size // groups + (group < size % groups) for group in range(groups)]
    kept: list[list[tuple[str, int, Given]]] = [[] for _ in shares]
    for row in rows:
        group = row.label if data.balanced else 0
        found, share = kept[group], shares[group]
        key = key_of(data.seed or 0, row.row.id)
        if share == 0 or (len(found) == share and key > found[-1][0]):
            continue
        encoded = encoded_or_none(row, encode, defects)
        if encoded is not None:
            insort(found, (key, row.row.id, (row, encoded)), key=lambda one: one[:2])
            del found[share:]
    for group, (found, share) in enumerate(zip(kept, shares, strict=True)):
        if len(found) < share and not (defects.lines and not defects.skip):
            of = f" of class {group}" if data.balanced else ""
            raise BadInput(
                f"{data.file}: {len(found)} rows{of}, and a sample of {size} needs {share}: set [data] sample"
            )
    return [one[2] for turn in zip_longest(*kept) for one in turn if one is not None]


def key_of(seed: int, row: int) -> str:
    return hashlib.sha256(f"swapproof sample 1:{seed}:{row}".encode()).hexdigest()
