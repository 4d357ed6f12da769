"""Copies of this process that compute one thing each and end, on the cores that there are for them."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import Generic, TypeVar

Share = TypeVar("Share")
Result = TypeVar("Result")

COPIES = sys.platform == "linux"
"""Elsewhere numerical libraries do not survive the copy of a process."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""


class Cores:
    """The cores of this process and its copies: one byte in a pipe for each that has nothing to do, as make does it.

    Whoever takes a byte may begin a copy; the copy puts it back.
    """

    def __init__(self) -> None:
        self.count, self.owed = 1, 0
        self.ends: tuple[int, int] | None = None

    def may_use(self, count: int) -> None:
        """So many from now on, this process included."""
        if not COPIES:
            return
        if self.ends is None:
            self.ends = os.pipe()
            os.set_blocking(self.ends[0], False)
        for _ in range(self.count, count):
            self.give()
        for _ in range(count, self.count):
            self.take_back()
        self.count = count

    def take(self) -> bool:
        """Whether there was one."""
        with suppress(BlockingIOError):
            return self.ends is not None and bool(os.read(self.ends[0], 1))
        return False

    def give(self) -> None:
        if self.owed:
            self.owed -= 1
        elif self.ends is not None:
            os.write(self.ends[1], b"+")

    def take_back(self) -> None:
        """One that is used meanwhile is not given the next time."""
        self.owed += not self.take()


CORES = Cores()


@dataclass(eq=False)
class ProcessCopy(Generic[Result]):
    """Has all that this process has: neither the network nor what is known of the text is sent to it."""

    pid: int
    pipe: Connection

    @classmethod
    def begin(cls, work: Callable[[], Result]) -> ProcessCopy[Result]:
        """On a core that was taken. Raises OSError where the system has no room for another process."""
        import ctypes

        (ours, theirs), parent = Pipe(duplex=False), os.getpid()
        with theirs:
            try:
                with warnings.catch_warnings():
                    # Of threads: ours only wait for what the parent says, and the copy asks none of them for anything.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    pid = os.fork()
            except OSError:
                CORES.give()
                raise
            if pid:
                return cls(pid, ours)
            try:
                ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
                if os.getppid() == parent:  # else it died before
                    CORES.owed = 0
                    found = pickle.dumps(work())
                    CORES.give()
                    theirs.send_bytes(found)
            finally:
                os._exit(0)

    def done_within(self, seconds: float) -> bool:
        return self.pipe.poll(seconds)

    def result(self) -> Result | None:
        """Waits for it, and ends the copy; None when the copy died before."""
        found = self.received()
        self.close(gave=found is not None)
        return None if found is None else pickle.loads(found)

    def end(self) -> None:
        if not self.pipe.closed:
            self.close(gave=self.pipe.poll(0) and self.received() is not None)

    def received(self) -> bytes | None:
        with suppress(EOFError, OSError):
            return self.pipe.recv_bytes()
        return None

    def close(self, *, gave: bool) -> None:
        """`gave`: whether it put its core back before."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        if not gave:
            CORES.give()


def divided(work: Callable[[Share], Result], shares: Sequence[Share]) -> list[Result]:
    """work(share) of each, never None: the first here, the others by copies, or here where there is none or it died."""
    copies: list[ProcessCopy[Result]] = []
    try:
        with suppress(OSError):
            copies.extend(ProcessCopy.begin(partial(work, share)) for share in shares[1:])
        results = [work(share) for share in shares[:1]]
        for place, share in enumerate(shares[1:]):
            found = copies[place].result() if place < len(copies) else None
            results.append(work(share) if found is None else found)
        return results
    finally:
        for copy in copies:
            copy.end()
