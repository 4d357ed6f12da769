"""A folder for what is made on the way: gone when it is done with, and after a kill when another process wants one."""

from __future__ import annotations

import os
import stat
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import BinaryIO

PREFIX = "swapproof-"
LOCK, CONTENT = "lock", "content"


class PassingFolder:
    """An empty folder, `path`, that is gone with its block, with `remove`, with an owner, or with this process."""

    def __init__(self) -> None:
        sweep(Path(gettempdir()))
        outer = Path(mkdtemp(prefix=PREFIX))
        self.path = outer / CONTENT
        self.path.mkdir()
        unfinished = outer / f"{LOCK}.unfinished"
        unfinished.touch()
        lock = held(unfinished)
        if lock is not None:
            unfinished.rename(outer / LOCK)  # it has its name when it is held: who finds it free is right
        self._finalizer = weakref.finalize(self, removed, outer, lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        self._finalizer()

    def owned_by(self, owner: object) -> None:
        """From now on it lasts as long as its owner does."""
        weakref.finalize(owner, self.remove)


def removed(outer: Path, lock: BinaryIO | None, process: int) -> None:
    """By the process that made it: those that it forked inherit the lock, and remove nothing."""
    if os.getpid() == process:
        rmtree(outer, ignore_errors=True)
    if lock is not None:
        lock.close()


def sweep(place: Path) -> None:
    """Remove what killed processes of this user left: folders with a lock that nobody holds any more."""
    if sys.platform == "win32":
        return
    for outer in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # none with a lock, or another process sweeps too
            found = outer.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            lock = held(outer / LOCK)
            if lock is not None:
                rmtree(outer, ignore_errors=True)
                lock.close()


def held(path: Path) -> BinaryIO | None:
    """The file, locked until it is closed and no process has it any more; None where another has it, or the system
    knows no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    file = os.fdopen(os.open(path, os.O_RDWR | os.O_NOFOLLOW), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
