"""The store of a run: a SQLite file with one row per text and stage, each on the disk as soon as it is known."""

from __future__ import annotations

import errno
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from swapproof.encodings.errors import BadInput

from ..interrupting import stops_after

APPLICATION = 0x53574150
"""Marks the file as ours ("SWAP")."""

VERSION = 2
"""Of the tables below; a store of another version is refused."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
LATER = "what is finished stays, and the same command goes on from there"

ILL_FORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What is met by whoever takes a value for another kind of value than it is."""

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE results (
    stage TEXT NOT NULL, id INTEGER NOT NULL, line TEXT NOT NULL, certificate TEXT, lost INTEGER NOT NULL, job TEXT,
    PRIMARY KEY (stage, id)
) WITHOUT ROWID;
CREATE TABLE leases (
    stage TEXT NOT NULL, id INTEGER NOT NULL, worker TEXT NOT NULL, since REAL NOT NULL, PRIMARY KEY (stage, id)
) WITHOUT ROWID;
"""


class Store:
    """What is known of a run.

    `facts` say what the run is about (hashes, settings). A result is the JSON line of one text at one stage, with the
    SHA-256 of its certificate; it is `lost` when the process that worked on it died, so that it is worth a second try.
    Its `job` is the digest of what it answers. A lease says who works on a text, and since when: it ends with the
    result. Only one process writes to a run (`held`), so whatever leases it finds are those of processes that died.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, str]) -> None:
        """Write a new store in one step: a killed process leaves either all of it or nothing under this name."""
        unfinished = path.with_name(f".{path.name}.unfinished")
        with writing(path):
            unfinished.unlink(missing_ok=True)
            connection = sqlite3.connect(unfinished, isolation_level=None)
            try:
                connection.executescript(SCHEMA)
                connection.executemany("INSERT INTO facts VALUES (?, ?)", sorted(facts.items()))
            except BaseException:
                connection.close()
                unfinished.unlink(missing_ok=True)
                raise
            connection.close()
            unfinished.replace(path)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> Store:
        """A store that exists; `readonly` never changes a byte of a run that nobody is writing."""
        if not is_store(path):
            raise BadInput(f"{path}: not the store of a run; give the folder of a run, or a new one")
        refuse_other_version(path)
        with intact(path), writing(path):
            if readonly:
                connection = reading(path)
            else:
                connection = sqlite3.connect(path, isolation_level=None, timeout=30)
                connection.execute("PRAGMA journal_mode = WAL")
                # What is committed is on the disk: a power cut takes nothing that was reported done.
                connection.execute("PRAGMA synchronous = FULL")
        return cls(path, connection)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """A store that was written and is not in use by another process becomes one plain file again."""
        with suppress(sqlite3.OperationalError):
            self.connection.execute("PRAGMA journal_mode = DELETE")
        self.connection.close()

    def facts(self) -> dict[str, str]:
        with intact(self.path):
            return dict(self.connection.execute("SELECT name, value FROM facts"))

    def set_facts(self, facts: Mapping[str, str], *, forget_results: bool = False) -> None:
        """In one transaction."""
        with self.together():
            if forget_results:
                for table in ("results", "leases", "facts"):
                    self._write(f"DELETE FROM {table}")
            for fact in sorted(facts.items()):
                self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)

    def put(
        self, stage: str, id: int, line: str, certificate: str | None, *, lost: bool = False, job: str | None = None
    ) -> None:
        """One result, which ends its lease; an earlier one of this text and stage is replaced."""
        with self.together():
            row = (stage, id, line, certificate, int(lost), job)
            self._write("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            self._write("DELETE FROM leases WHERE stage = ? AND id = ?", (stage, id))

    def forget(self, ids: Iterable[int]) -> None:
        """All that is known of these texts, at every stage."""
        with self.together():
            for id in ids:
                self._write("DELETE FROM results WHERE id = ?", (id,))
                self._write("DELETE FROM leases WHERE id = ?", (id,))

    def lease(self, stage: str, ids: Iterable[int], worker: str) -> None:
        """Says who works on texts from now on. A power cut may take it: then nobody works any more."""
        with stops_after():  # Ctrl-C between BEGIN and COMMIT: SQLite refuses to go back to FULL there
            self._write("PRAGMA synchronous = NORMAL")
            try:
                with self.together():
                    for id in ids:
                        row = (stage, id, worker, time.time())
                        self._write("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", row)
            finally:
                self._write("PRAGMA synchronous = FULL")

    def release(self, stage: str) -> None:
        """Nobody works on any text any more."""
        with self.together():
            self._write("DELETE FROM leases WHERE stage = ?", (stage,))

    def leased(self, stage: str) -> set[int]:
        """The texts that somebody began and has not ended."""
        with intact(self.path):
            return {id for (id,) in self.connection.execute("SELECT id FROM leases WHERE stage = ?", (stage,))}

    def jobs(self) -> dict[int, str]:
        """The digest of what each result answers, where there is one."""
        with intact(self.path):
            return dict(self.connection.execute("SELECT id, job FROM results WHERE job IS NOT NULL"))

    def finished(self, stage: str) -> Iterator[tuple[int, str | None]]:
        """(id, SHA-256 of its certificate) of every text that needs no second try."""
        with intact(self.path):
            yield from self.connection.execute(
                "SELECT id, certificate FROM results WHERE stage = ? AND NOT lost ORDER BY id", (stage,)
            )

    def lines(self, stage: str) -> Iterator[str]:
        """The JSON lines, by id, never all of them in memory."""
        with intact(self.path):
            for (line,) in self.connection.execute("SELECT line FROM results WHERE stage = ? ORDER BY id", (stage,)):
                yield line

    def results(self, stage: str) -> Iterator[dict[str, Any]]:
        """What the JSON lines say, by id."""
        with intact(self.path):
            for line in self.lines(stage):
                yield dict(json.loads(line))

    def result(self, stage: str, id: int) -> dict[str, Any]:
        """What the JSON line of a text says that has one."""
        with intact(self.path):
            return dict(json.loads(self.line(stage, id)))

    def line(self, stage: str, id: int) -> str:
        """The JSON line of a text that has one."""
        query = "SELECT line FROM results WHERE stage = ? AND id = ?"
        with intact(self.path):
            (line,) = self.connection.execute(query, (stage, id)).fetchone()
        return str(line)

    def count(self, stage: str) -> int:
        (number,) = self.connection.execute("SELECT count(*) FROM results WHERE stage = ?", (stage,)).fetchone()
        return int(number)

    @contextmanager
    def together(self) -> Iterator[None]:
        """One transaction of all that is written inside, on the disk when it ends."""
        if self.connection.in_transaction:
            yield
            return
        try:
            self._write("BEGIN IMMEDIATE")
            yield
            self._write("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def _write(self, statement: str, values: Sequence[object] = ()) -> None:
        with intact(self.path), writing(self.path):
            self.connection.execute(statement, values)


def reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, also where the folder is read-only."""
    name = path.absolute().as_uri()
    for mode in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(f"{name}?{mode}", uri=True, isolation_level=None)
        try:
            connection.execute("SELECT count(*) FROM facts").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if mode == "immutable=1":
                raise
            continue
        break
    return connection


def is_store(path: Path) -> bool:
    """Whether this file is a store of ours, by the marks in its first 100 bytes."""
    head = head_of(path)
    return head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big")


def refuse_other_version(path: Path) -> None:
    found = int.from_bytes(head_of(path)[60:64], "big")
    if found != VERSION:
        raise BadInput(
            f"{path}: a store of version {found}, and this swapproof reads {VERSION}; use the swapproof that made the "
            "run, or give --out a new folder"
        )


def head_of(path: Path) -> bytes:
    """The first 100 bytes; none where there is no file."""
    if not path.is_file():
        return b""  # opening a pipe would wait for its other end
    try:
        with path.open("rb") as file:
            return file.read(100)
    except PermissionError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    except OSError:
        return b""


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Turns what only damage to a store explains into one line."""
    try:
        yield
    except BadInput:
        raise
    except (sqlite3.Error, *ILL_FORMED) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise BadInput(f"{path}: damaged ({reason}); give --out a new folder") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the operating system or SQLite cannot write (a full disk, say) into one line."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: Exception) -> BadInput:
    """The path, the reason and what would help: room for a disk that is full, else another place."""
    if not isinstance(error, OSError):
        return BadInput(f"{path}: cannot be written ({error}); {LATER}")
    remedy = f"make room; {LATER}" if error.errno in NO_ROOM else "give another place"
    return BadInput(f"{path}: cannot be written ({error.strerror or error}); {remedy}")
