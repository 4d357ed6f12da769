"""The rows inside report.html: lines of results.jsonl as JSON, deflated, in base64; read back without trust.

Two programs may deflate the same bytes otherwise, so a page is compared with what it unpacks to.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from swapproof.encodings.errors import BadInput

BLOCK = 3 << 14
"""Bytes that are encoded together: a multiple of three, so that base64 needs no padding in between."""
LEVEL = 9
MOST_CANDIDATES = 16 << 20
"""Characters that say what may be swapped for what, beyond which a page is given without."""


@dataclass(frozen=True)
class Choices:
    """What the words of texts can be swapped for: `options` are JSON lists, a word and its candidates, each kept once;
    `places` are the words of a text that can be swapped, by its id: JSON of [[position, number of its options], ...].
    """

    options: tuple[str, ...]
    places: Mapping[int, str]


@dataclass(frozen=True)
class Page:
    """A page: what stands before its rows and behind them, and the rows, which can be gone through again."""

    head: bytes
    rows: Callable[[], Iterator[bytes]]
    tail: bytes

    def written(self) -> Iterator[bytes]:
        yield self.head
        yield from packed(self.rows())
        yield self.tail

    def is_at(self, path: Path) -> bool:
        """Whether this file is this page, however its rows were deflated."""
        inner = path.stat().st_size - len(self.head) - len(self.tail)
        if inner < 0:
            return False
        with path.open("rb") as file:
            if file.read(len(self.head)) != self.head or not unpacks_to(file, inner, self.rows()):
                return False
            return file.read(len(self.tail) + 1) == self.tail


def packed(rows: Iterable[bytes]) -> Iterator[bytes]:
    press = zlib.compressobj(LEVEL)
    kept = b""
    for row in rows:
        kept += press.compress(row)
        if len(kept) >= BLOCK:
            yield base64.b64encode(kept[:BLOCK])
            kept = kept[BLOCK:]
    yield base64.b64encode(kept + press.flush())


def unpacks_to(file: IO[bytes], length: int, rows: Iterable[bytes]) -> bool:
    """Whether so many bytes of base64 are these rows and nothing else; no more is unpacked than there should be."""
    expected, size = sha256(), 0
    for row in rows:
        expected.update(row)
        size += len(row)
    found, press = sha256(), zlib.decompressobj()
    try:
        while length:
            block = file.read(min(length, BLOCK // 3 * 4))
            if not block:
                return False
            length -= len(block)
            left = base64.b64decode(block, validate=True)
            while left:
                part = press.decompress(left, BLOCK)
                found.update(part)
                size -= len(part)
                left = press.unconsumed_tail
                if size < 0 or press.unused_data or (press.eof and length):
                    return False
    except (zlib.error, binascii.Error):
        return False
    return press.eof and size == 0 and found.digest() == expected.digest()


def rows_of(about: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], choices: Choices | None) -> Iterator[bytes]:
    """First what the rows are about, then a row for each line: the line, and the words of it that can be swapped."""
    options = "null" if choices is None else f"[{','.join(choices.options)}]"
    yield f"[{compact(about)},{options}]\n".encode()
    for line in lines:
        places = None if choices is None else choices.places.get(line["id"])
        yield f"[{compact(line)},{places or 'null'}]\n".encode()


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_choices(spaces: Path) -> Choices | None:
    """What can be swapped, of a file of frozen spaces; None when that is too much for a page, or the file lacks."""
    try:
        with spaces.open("rb") as file:
            return kept_once((int(line["id"]), line["choices"]) for line in map(json.loads, file))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, LookupError) as error:
        raise BadInput(f"{spaces}: not a file of frozen spaces ({error})") from None


def kept_once(spaces: Iterable[tuple[int, Sequence[Sequence[str]]]]) -> Choices | None:
    """Of the choices of texts, by their ids."""
    numbers: dict[str, int] = {}
    places: dict[int, str] = {}
    size = 0
    for id, choices in spaces:
        found = []
        for position, options in enumerate(choices):
            if len(options) > 1:
                text = compact(options)
                size += 0 if text in numbers else len(text)
                found.append([position, numbers.setdefault(text, len(numbers))])
        places[id] = compact(found)
        size += len(places[id])
        if size > MOST_CANDIDATES:
            return None
    return Choices(tuple(numbers), places)
