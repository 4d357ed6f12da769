"""A worker: a process that loads the model once and settles the texts it is given, until nobody asks any more.

Its parent kills it, with all that it started, when a text takes too long or too much memory.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any, Protocol

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.one_thread import ONE_THREAD
from swapproof.models.errors import BadInput as Misshapen

from ...interrupting import leave_interrupts_to_parent, stops_held_back
from ...process_copy import CORES
from ..work import Lost, Settled, Settler

if TYPE_CHECKING:
    from ...tasks.inputs import Text

SACRIFICE = "800"
"""To the system's killer for want of memory a worker is worth less than its parent, which has the results."""


@dataclass(frozen=True)
class Ready:
    """A worker has loaded the model."""


@dataclass(frozen=True)
class Allowed:
    """So many cores, itself included, may a worker use from now on."""

    cores: int


@dataclass(frozen=True)
class Refusal:
    """A worker met bad input."""

    message: str


@dataclass(frozen=True)
class Crash:
    """A worker met a bug."""

    trace: str


Answer = Ready | Refusal | Crash | Settled | Lost


class Opened(Protocol):
    """What a worker is handed: work, or anything else that is opened there and asked."""

    def open(self) -> Any: ...


@dataclass(eq=False)
class Worker:
    """A process, our end of the pipe to it, and what it works on."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    ready: bool = False
    dead: bool = False
    texts: deque[Text] = field(default_factory=deque)
    """The one it works on, and those after it."""
    started: float = 0.0
    """When it began with its text."""
    cores: int = 1
    """How many it was told that it may use."""

    @classmethod
    def start(cls, work: Opened) -> Worker:
        """In a process group of its own, and without the script that we were called from."""
        ours, theirs = Pipe()
        with theirs, stops_held_back():
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a model prints is none of our results
                env={**os.environ, **ONE_THREAD},
                process_group=0,
            )
        worker = cls(process, ours)
        worker.send(sys.path)
        worker.send(work)
        return worker

    @property
    def name(self) -> str:
        return f"process {self.process.pid}"

    def send(self, message: Any) -> None:
        with suppress(OSError):  # it died just now: its end of the pipe says so next
            self.pipe.send(message)

    def give(self, texts: Sequence[Text]) -> None:
        if not self.texts:
            self.started = time.monotonic()
        self.texts.extend(texts)
        self.send(list(texts))

    def may_use(self, cores: int) -> None:
        if cores != self.cores:
            self.cores = cores
            self.send(Allowed(cores))

    def done(self) -> None:
        """With the first of its texts."""
        self.texts.popleft()
        self.started = time.monotonic()

    def answers(self) -> Iterator[Answer]:
        """What it sent so far; at the end it may be found to be dead."""
        try:
            while self.pipe.poll(0):
                yield self.pipe.recv()
        except (EOFError, OSError):
            self.dead = True

    def end(self) -> str:
        """Kills it, if it is not dead, and all that it started; what became of it, in words that follow `the process`.

        Its group first: as long as nobody asked how it ended, no other group has its number."""
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.pipe.close()
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            memory = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
            return f"was killed by {name}{memory}"
        return f"ended with exit code {code}"


def settle_here(station: Settler, text: Text) -> Settled | Lost:
    started = time.monotonic()
    try:
        return station.settle(text)
    except MemoryError:
        return Lost(text, "out of memory", time.monotonic() - started)


def serve(pipe: Connection) -> None:
    """What a worker does; it ends with its parent, whatever it is doing then."""
    leave_interrupts_to_parent()
    with suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, SACRIFICE.encode())
        os.close(score)
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    sys.path[:] = pipe.recv()
    threading.Thread(target=receive, args=(pipe, asked), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            work: Opened = asked.get()
            station = work.open()
            pipe.send(Ready())
            while True:
                for text in asked.get():
                    pipe.send(settle_here(station, text))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except (BadInput, Misshapen, NotImplementedError) as error:
            pipe.send(Refusal(str(error)))
        except Exception:
            pipe.send(Crash(traceback.format_exc()))


def receive(pipe: Connection, asked: queue.SimpleQueue[Any]) -> None:
    """Ends the process when nobody waits for the answer any more: a killed parent cannot dismiss its workers."""
    with suppress(EOFError, OSError):
        while True:
            message = pipe.recv()
            if isinstance(message, Allowed):
                CORES.may_use(message.cores)
            else:
                asked.put(message)
    os._exit(1)


if __name__ == "__main__":
    # Under its own name, by which messages know its classes.
    from swapproof.verifier.runs.jobs import worker_process

    worker_process.serve(Connection(int(sys.argv[1])))
