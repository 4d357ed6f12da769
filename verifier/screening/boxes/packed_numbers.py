"""Numbers of a proof tree and tables of them (FORMAT.md, section 5), many at once."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from swapproof.proofs import check
from swapproof.proofs.writing.certificate import number

Numbers = NDArray[np.int64]
LONGEST, ENDED = 5, 1 << 31
"""Bytes of a number, and what it is below."""


def packed(values: Numbers) -> tuple[bytes, Numbers]:
    """Their bytes, seven bits in each, and where each number begins; then the end."""
    if values.max(initial=0) < 128:
        return values.astype(np.uint8).tobytes(), np.arange(len(values) + 1)
    parts = values[:, None] >> 7 * np.arange(LONGEST)
    used = parts > 0
    used[:, 0] = True
    data = (parts & 127) + 128 * (parts > 127)
    begins = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return data[used].astype(np.uint8).tobytes(), begins


def unpacked(data: bytes) -> tuple[Numbers, Numbers]:
    """All numbers that the bytes are, and where each begins; then the end. Of longer ones, which may be inputs to
    split at, -1. Raises Refused where one has no end, or would have a shorter form."""
    raw = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(raw < 128)
    check.require(len(ends) > 0 and ends[-1] == len(raw) - 1, "the tree ends too early")
    begins = np.concatenate([[0], ends + 1])
    lengths = np.diff(begins)
    check.require(not (raw[ends[lengths > 1]] == 0).any(), "a number in the tree is not minimal")
    values = raw[begins[:-1]].astype(np.int64) & 127
    for place in range(1, LONGEST):
        more = np.flatnonzero(lengths > place)
        values[more] |= (raw[begins[more] + place].astype(np.int64) & 127) << 7 * place
    values[(lengths > LONGEST) | (values >= ENDED)] = -1
    return values, begins


def tables(layers: Sequence[tuple[int, Numbers]], rows: int) -> list[bytes]:
    """Of each row a table of layers with numbers [rows, size] of their elements; none where one is below 0."""
    parts, held = [bytearray() for _ in range(rows)], np.zeros(rows, dtype=np.int64)
    for name, values in sorted(layers, key=itemgetter(0)):
        row, place = np.nonzero(values >= 0)
        first = np.searchsorted(row, np.arange(rows + 1))
        steps = np.diff(place, prepend=0)
        some = np.flatnonzero(np.diff(first))
        steps[first[some]] = place[first[some]]
        data, begins = packed(np.stack([steps, values[row, place]], axis=1).ravel())
        head, ends = number(name), begins[2 * first].tolist()
        for at in some.tolist():
            parts[at] += head + number(int(first[at + 1] - first[at])) + data[ends[at] : ends[at + 1]]
        held[some] += 1
    return [number(count) + part for count, part in zip(held.tolist(), parts, strict=True)]
