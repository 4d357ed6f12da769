"""Texts settled one after the other in this process, or several at a time in processes that may die.

A worker that dies, killed or out of memory, costs its text only: the text is reported lost, and another worker takes
the dead one's place. What is found does not depend on how many workers there are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.one_thread import ONE_THREAD

from ..interrupting import leave_interrupts_to_parent, stops_held_back
from ..tasks.inputs import Text
from .work import Lost, Settled, Settler, Work

DEATHS = 3
"""Workers in a row that may die before they have loaded the model."""
PATIENCE = 5.0
"""Seconds a worker gets to leave before it is killed."""


@dataclass(frozen=True)
class Ready:
    """A worker has loaded the model."""


@dataclass(frozen=True)
class Refusal:
    """A worker met bad input."""

    message: str


@dataclass(frozen=True)
class Crash:
    """A worker met a bug."""

    trace: str


Answer = Ready | Refusal | Crash | Settled | Lost


def settle_all(work: Work, texts: Iterable[Text], jobs: int) -> Generator[Settled | Lost, None, None]:
    """What is found of each text, in the order in which it is found."""
    if jobs == 1:
        station = work.open()
        for text in texts:
            yield settle_here(station, text)
        return
    with closing(settle_in_processes(work, iter(texts), jobs)) as found:
        yield from found


def settle_here(station: Settler, text: Text) -> Settled | Lost:
    started = time.monotonic()
    try:
        return station.settle(text)
    except MemoryError:
        return Lost(text, "out of memory", time.monotonic() - started)


@dataclass(eq=False)
class Worker:
    """A process, our end of the pipe to it, and what it works on."""

    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    text: Text | None = None
    started: float = 0.0

    @classmethod
    def start(cls, work: Work) -> Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, work), daemon=True)
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)  # read when the worker loads numpy
        try:
            with stops_held_back():
                process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()
        return cls(process, ours)

    def give(self, text: Text) -> None:
        self.text, self.started = text, time.monotonic()
        with suppress(OSError):  # it died just now: its end of the pipe says so next
            self.pipe.send(text)

    def answer(self) -> Answer | None:
        """What it sent; None when it is dead."""
        try:
            answer: Answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return answer

    def bury(self) -> str:
        """What became of it, in words that follow `the process`."""
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()
        code = self.process.exitcode
        self.process.close()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            memory = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
            return f"was killed by {name}{memory}"
        return f"ended with exit code {code}"

    def dismiss(self) -> None:
        self.process.kill()
        self.bury()


def settle_in_processes(work: Work, texts: Iterator[Text], jobs: int) -> Generator[Settled | Lost, None, None]:
    """Each worker has one text at a time; texts are taken from the iterator as workers become free."""
    waiting = next(texts, None)
    workers: list[Worker] = []
    deaths = 0
    try:
        while waiting is not None or any(worker.text is not None for worker in workers):
            while waiting is not None and len(workers) < jobs:
                workers.append(Worker.start(work))
            for worker in workers:
                if waiting is not None and worker.ready and worker.text is None:
                    worker.give(waiting)
                    waiting = next(texts, None)
            by_pipe = {worker.pipe: worker for worker in workers}
            for pipe in wait(list(by_pipe)):
                worker = by_pipe[pipe]  # type: ignore[index]
                match worker.answer():
                    case None:
                        workers.remove(worker)
                        deaths += not worker.ready
                        how = worker.bury()
                        if worker.text is not None:
                            reason = f"the process working on it {how}"
                            yield Lost(worker.text, reason, time.monotonic() - worker.started)
                        elif deaths == DEATHS:
                            raise BadInput(f"workers cannot start: the process {how}; try --jobs 1")
                    case Ready():
                        worker.ready, deaths = True, 0
                    case Refusal(message):
                        raise BadInput(message)
                    case Crash(trace):
                        raise RuntimeError(f"a worker failed:\n{trace}")
                    case Settled() | Lost() as found:
                        worker.text = None
                        yield found
    finally:
        for worker in workers:
            worker.dismiss()


def serve(pipe: Connection, work: Work) -> None:
    """What a worker process does: load the model once, then settle the texts it is given until the pipe closes."""
    leave_interrupts_to_parent()
    threading.Thread(target=die_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            station = work.open()
            pipe.send(Ready())
            while True:
                pipe.send(settle_here(station, pipe.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except (BadInput, NotImplementedError) as error:
            pipe.send(Refusal(str(error)))
        except Exception:
            pipe.send(Crash(traceback.format_exc()))


def die_with_parent() -> None:
    """A killed parent cannot dismiss its workers, so they notice."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
