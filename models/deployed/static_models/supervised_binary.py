"""fastText's binary files of supervised models, .bin and .ftz, read within the bounds of the file."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import BadInput, Unsupported, unreadable, visible

Ids = NDArray[np.int64]
MAGIC, NEWEST = 793712314, 12
OLD_SUPERVISED = 11
"""In files of this version supervised models have no parts of words, whatever they say."""
SUPERVISED = 3
LOSSES = {1: "hs", 2: "ns", 3: "softmax", 4: "ova"}
CENTROIDS = 256
NOT_PRUNED = -1
LEAST_ENTRY = 10
"""Bytes of an entry of the dictionary: an empty word's end, a count, a type."""


class Matrix(Protocol):
    """Rows of numbers, some of them read at a time."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def rounded(self) -> bool:
        """Whether float64 cannot hold what the rows are."""

    def rows(self, ids: Ids) -> NDArray[np.float64]: ...


@dataclass(frozen=True, eq=False)
class Dense:
    values: NDArray[Any]

    rounded = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def rows(self, ids: Ids) -> NDArray[np.float64]:
        return self.values[ids].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Quantised:
    """Each row in parts, each part one of 256 centroids; times the row's norm, one of 256 as well."""

    codes: NDArray[np.uint8]
    centroids: tuple[NDArray[np.float32], ...]
    """For each part, [256, its width]."""
    norm_codes: NDArray[np.uint8] | None
    norms: NDArray[np.float32] | None

    rounded = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), sum(part.shape[1] for part in self.centroids)

    def rows(self, ids: Ids) -> NDArray[np.float64]:
        parts = [part[self.codes[ids, place]] for place, part in enumerate(self.centroids)]
        rows = np.concatenate(parts, axis=1).astype(np.float64)
        if self.norms is not None and self.norm_codes is not None:
            rows *= self.norms[self.norm_codes[ids]].astype(np.float64)[:, None]  # 24 bits each: exact
        return rows


@dataclass(frozen=True, eq=False)
class SupervisedModel:
    """What the file says. `kept`: where hashed ids went when the file was made smaller; None where none were."""

    loss: str
    grams: int
    """Words that are hashed together, at most."""
    buckets: int
    shortest: int
    longest: int
    """Characters of the parts of words."""
    words: dict[bytes, int]
    """Words and labels; labels come after all words."""
    labels: tuple[str, ...]
    label_counts: tuple[int, ...]
    kept: dict[int, int] | None
    vectors: Matrix
    outputs: NDArray[np.float64]
    number_of_words: int = field(kw_only=True)


class Cursor:
    """Reads on in a file, never beyond its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0
        try:
            with path.open("rb") as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise unreadable(path, error) from error
        except ValueError as error:
            raise BadInput(f"{path}: an empty file, where a fastText model is needed") from error

    def refuse(self, what: str) -> BadInput:
        return BadInput(f"{self.path}: {what}")

    def need(self, size: int, what: str) -> None:
        left = len(self.data) - self.place
        if not 0 <= size <= left:
            raise self.refuse(f"{what} should take {size:,} bytes, and {left:,} are left: cut off or damaged")

    def numbers(self, form: str, what: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + form)
        self.need(size, what)
        found = struct.unpack_from("<" + form, self.data, self.place)
        self.place += size
        return found

    def array(self, kind: str, shape: tuple[int, ...], what: str) -> NDArray[Any]:
        """Of numbers that stay in the file until they are used."""
        count = 1
        for size in shape:
            if size < 0:
                raise self.refuse(f"{what} has a negative size: damaged")
            count *= size
        form = np.dtype(kind)
        self.need(count * form.itemsize, what)
        found = np.frombuffer(self.data, form, count, self.place).reshape(shape)
        self.place += count * form.itemsize
        return found

    def flag(self, what: str) -> bool:
        (value,) = self.numbers("B", what)
        if value > 1:
            raise self.refuse(f"{what} is {value}, where 0 or 1 is needed: damaged")
        return bool(value)


def read_supervised(path: Path) -> SupervisedModel:
    cursor = Cursor(path)
    magic, version = cursor.numbers("ii", "the head")
    if magic != MAGIC:
        raise cursor.refuse("not a binary file of fastText, which begins with 0x2f4f16ba")
    if version > NEWEST:
        raise Unsupported(f"{path}: version {version} of fastText's format; up to {NEWEST} is read")
    dim, _, _, _, _, grams, loss, kind, buckets, shortest, longest, _ = cursor.numbers("12i", "the settings")
    cursor.numbers("d", "the settings")
    if kind != SUPERVISED:
        raise Unsupported(f"{path}: vectors that fastText learnt without labels; a classifier is trained by supervised")
    if loss not in LOSSES or dim < 1 or grams < 0 or buckets < 0:
        raise cursor.refuse(f"settings that fastText does not write (loss {loss}, dim {dim}): damaged")
    if version == OLD_SUPERVISED:
        longest = 0
    words, names, counts, number_of_words, kept = read_dictionary(cursor)
    if buckets == 0 and (longest > 0 or grams > 1):
        raise cursor.refuse("has parts or groups of words and no buckets to hash them into: damaged")
    small = cursor.flag("whether vectors are quantised")
    vectors = read_matrix(cursor, small, "the vectors")
    if kept is not None and not small:
        raise cursor.refuse("pruned and not quantised: fastText refuses such files too; quantise the model again")
    outputs = read_matrix(cursor, cursor.flag("whether outputs are quantised") and small, "the outputs")
    hashed = buckets if longest > 0 or grams > 1 else 0
    rows = number_of_words + (hashed if kept is None else len(kept))
    if vectors.shape[1] != dim or vectors.shape[0] < rows:
        given = " x ".join(map(str, vectors.shape))
        raise cursor.refuse(f"vectors of {given}, where the dictionary needs {rows} x {dim}: damaged")
    if outputs.shape != (len(names), dim):
        given = " x ".join(map(str, outputs.shape))
        raise cursor.refuse(f"outputs of {given}, for {len(names)} labels of {dim} numbers: damaged")
    decoded = outputs.rows(np.arange(len(names)))
    if not np.isfinite(decoded).all():
        raise cursor.refuse("outputs that are not numbers: such a model answers nothing")
    return SupervisedModel(
        loss=LOSSES[loss],
        grams=grams,
        buckets=buckets,
        shortest=shortest,
        longest=max(longest, 0),
        words=words,
        labels=names,
        label_counts=counts,
        kept=kept,
        vectors=vectors,
        outputs=decoded,
        number_of_words=number_of_words,
    )


def read_dictionary(
    cursor: Cursor,
) -> tuple[dict[bytes, int], tuple[str, ...], tuple[int, ...], int, dict[int, int] | None]:
    """The words and labels by number, the labels' names and counts, the number of words, the ids kept."""
    size, number_of_words, number_of_labels = cursor.numbers("iii", "the dictionary")
    _, pruned = cursor.numbers("qq", "the dictionary")
    if number_of_labels < 1:
        raise cursor.refuse("a supervised model without labels: there is nothing to answer")
    if number_of_words < 0 or size != number_of_words + number_of_labels:
        raise cursor.refuse(f"{size} entries, of {number_of_words} words and {number_of_labels} labels: damaged")
    cursor.need(size * LEAST_ENTRY, "the dictionary")
    words: dict[bytes, int] = {}
    labels: list[str] = []
    counts: list[int] = []
    for number in range(size):
        end = cursor.data.find(b"\0", cursor.place)
        if end < 0:
            raise cursor.refuse("the dictionary's last word has no end: cut off or damaged")
        word = cursor.data[cursor.place : end]
        cursor.place = end + 1
        count, kind = cursor.numbers("qb", "an entry of the dictionary")
        if kind != (number >= number_of_words):
            raise cursor.refuse(f"entry {number} of the dictionary is not of the kind that its place says: damaged")
        words[word] = number
        if kind:
            labels.append(named(word))
            counts.append(count)
    if pruned == NOT_PRUNED:
        return words, tuple(labels), tuple(counts), number_of_words, None
    pairs = cursor.array("<i4", (pruned, 2), "the list of kept ids")
    if len(pairs) and not (pairs.min() >= 0 and pairs[:, 1].max() < pruned):
        raise cursor.refuse("the list of kept ids names rows that are not there: damaged")
    return words, tuple(labels), tuple(counts), number_of_words, dict(pairs.tolist())


def named(word: bytes) -> str:
    """Of a label, without the prefix."""
    return visible(word.decode("utf-8", "backslashreplace")).removeprefix("__label__")


def read_matrix(cursor: Cursor, quantised: bool, what: str) -> Matrix:
    if not quantised:
        rows, width = cursor.numbers("qq", what)
        return Dense(cursor.array("<f4", (rows, width), what))
    with_norms = cursor.flag(what)
    rows, width, size = cursor.numbers("qqi", what)
    place = cursor.place + size
    cursor.need(size, what)
    cursor.place, codes_at = place, cursor.place
    centroids = read_centroids(cursor, width, what)
    parts = len(centroids)
    if size != rows * parts:
        raise cursor.refuse(f"{what}: {size} codes for {rows} rows of {parts} parts: damaged")
    after, cursor.place = cursor.place, codes_at
    codes = cursor.array("u1", (rows, parts), what)
    cursor.place = after
    if not with_norms:
        return Quantised(codes, centroids, None, None)
    norm_codes = cursor.array("u1", (rows,), what)
    return Quantised(codes, centroids, norm_codes, read_centroids(cursor, 1, what)[0][:, 0])


def read_centroids(cursor: Cursor, width: int, what: str) -> tuple[NDArray[np.float32], ...]:
    """For each part of a row, what its 256 codes stand for; the last part may be narrower."""
    dim, parts, part, last = cursor.numbers("4i", what)
    if dim != width or part < 1 or parts != -(-dim // part) or last != dim - (parts - 1) * part:
        raise cursor.refuse(f"{what}: rows of {width} numbers in {parts} parts of {part}, the last {last}: damaged")
    found = tuple(
        cursor.array("<f4", (CENTROIDS, last if place == parts - 1 else part), what) for place in range(parts)
    )
    if not all(np.isfinite(array).all() for array in found):
        raise cursor.refuse(f"{what}: values that are not numbers: such a model answers nothing")
    return found
