"""A copy of this process that computes one thing and ends, and the cores that there are for such copies."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Generic, TypeVar

Result = TypeVar("Result")

COPIES = sys.platform == "linux"
"""Elsewhere numerical libraries do not survive the copy of a process."""


@dataclass
class Cores:
    """How many a process may use, itself included; whoever gives it work says so, at any time."""

    count: int = 1


CORES = Cores()


@dataclass(eq=False)
class ProcessCopy(Generic[Result]):
    """Has all that this process has: neither the network nor what is known of the text is sent to it."""

    pid: int
    pipe: Connection

    @classmethod
    def begin(cls, work: Callable[[], Result]) -> ProcessCopy[Result]:
        """Raises OSError where the system has no room for another process."""
        ours, theirs = Pipe(duplex=False)
        with theirs:
            with warnings.catch_warnings():
                # Of threads: ours only wait for what the parent says, and the copy asks none of them for anything.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid:
                return cls(pid, ours)
            try:
                # Else nobody would notice that this process died, as long as its copy holds its end of their pipe.
                os.closerange(3, theirs.fileno())
                os.closerange(theirs.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
                CORES.count = 1
                theirs.send_bytes(pickle.dumps(work()))
            finally:
                os._exit(0)

    def done_within(self, seconds: float) -> bool:
        return self.pipe.closed or self.pipe.poll(seconds)

    def result(self) -> Result | None:
        """Waits for it, and ends the copy; None when the copy died before."""
        found: Result | None = None
        with suppress(EOFError, OSError):
            found = pickle.loads(self.pipe.recv_bytes())
        self.end()
        return found

    def end(self) -> None:
        if not self.pipe.closed:
            self.pipe.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
