"""Answers while there is time, kept on the disk as they come: an attack that is killed repeats its search without the
model, and comes to where it was."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swapproof.models.deployed.classifier import Rows
from swapproof.models.deployed.decision import Decision

from ..runs.store import writing
from .attacked_text import Spent
from .sentence_answers import Answers, Without

Array = NDArray[Any]

TOGETHER = 256
"""Sentences between two looks at the clock."""
EVERY, AGAIN = 5.0, 1.0
"""Seconds of answers that a kill may cost; and of a text at which a process died before."""
MOST = 1 << 28
"""Bytes that are kept of a text."""
HEAD = struct.Struct("<IIII")
"""Of a block: the CRC of its content, sentences, words, scores of each."""


@dataclass(eq=False)
class KeptAnswers:
    """A file of blocks, each with its CRC, so that one that was not wholly written ends it."""

    path: Path
    about: bytes
    """SHA-256 of what was asked: answers to anything else are none."""
    every: float
    known: dict[bytes, Array] = field(default_factory=dict, repr=False)
    fresh: list[tuple[Rows, Array]] = field(default_factory=list, repr=False)
    since: float = field(default_factory=time.monotonic)
    size: int = 0

    @classmethod
    def at(cls, path: Path, about: object) -> KeptAnswers:
        digest = hashlib.sha256(json.dumps(about).encode()).digest()
        kept = cls(path, digest, AGAIN if path.exists() else EVERY)
        with suppress(OSError):
            kept.read(path.read_bytes())
        return kept

    def read(self, data: bytes) -> None:
        if data[: len(self.about)] != self.about:
            return
        at = len(self.about)
        while at + HEAD.size <= len(data):
            crc, number, words, scores = HEAD.unpack_from(data, at)
            middle, end = at + HEAD.size + 4 * number * words, at + HEAD.size + number * (4 * words + 8 * scores)
            if end > len(data) or zlib.crc32(data[at + HEAD.size : end]) != crc:
                break
            rows = np.frombuffer(data[at + HEAD.size : middle], dtype="<i4").reshape(number, words)
            found = np.frombuffer(data[middle:end], dtype="<f8").reshape(number, scores)
            self.known |= {row.tobytes(): one for row, one in zip(rows, found, strict=True)}
            at = end
        self.size = at

    def add(self, rows: Rows, found: Array) -> None:
        self.fresh.append((rows, found))
        if time.monotonic() - self.since >= self.every:
            self.write()

    def write(self) -> None:
        rows = np.concatenate([one for one, _ in self.fresh]).astype("<i4")
        found = np.concatenate([one for _, one in self.fresh]).astype("<f8")
        self.fresh.clear()
        self.since = time.monotonic()
        if self.size >= MOST:
            return
        content = rows.tobytes() + found.tobytes()
        block = HEAD.pack(zlib.crc32(content), *rows.shape, found.shape[1]) + content
        with writing(self.path):
            self.path.parent.mkdir(exist_ok=True)
            with self.path.open("r+b" if self.path.exists() else "w+b") as file:
                file.truncate(self.size)
                file.seek(self.size)
                file.write(block if self.size else self.about + block)
                self.size = file.tell()


@dataclass(eq=False)
class TimedAnswers:
    """Those of another, until so many seconds of time.monotonic()."""

    answers: Answers
    until: float = float("inf")
    kept: KeptAnswers | None = None
    late: bool = False

    @property
    def decision(self) -> Decision:
        return self.answers.decision

    def look(self) -> None:
        if time.monotonic() > self.until:
            self.late = True
            raise Spent

    def answered(self, rows: Rows) -> Array:
        found = []
        for first in range(0, len(rows), TOGETHER):
            self.look()
            found.append(self.block(rows[first : first + TOGETHER]))
        return np.concatenate(found)

    def block(self, rows: Rows) -> Array:
        kept = self.kept
        if kept is None:
            return np.asarray(self.answers.answered(rows))
        rows = np.ascontiguousarray(rows, dtype="<i4")
        known = [kept.known.get(row.tobytes()) for row in rows]
        new = [place for place, one in enumerate(known) if one is None]
        if new:
            found = np.asarray(self.answers.answered(rows[new]), dtype=np.float64)
            found = found[:, None] if found.ndim == 1 else found
            kept.add(rows[new], found)
            for place, one in zip(new, found, strict=True):
                known[place] = one
        return np.stack([one for one in known if one is not None])

    def without(self, words: Array, way: Without) -> Array:
        self.look()
        return self.answers.without(words, way)

    def slopes(self, row: Array, words: Array, options: Array) -> Array:
        self.look()
        return self.answers.slopes(row, words, options)
