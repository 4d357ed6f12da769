"""Texts settled one after the other in this process, or several at a time in processes that may die.

A text that kills its worker, hangs or takes all memory costs nothing but itself: another worker takes the dead one's
place, the text is tried again after all others, and is reported lost when it does the same again. What is found does
not depend on how many workers there are.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from swapproof.encodings.errors import BadInput
from swapproof.encodings.solvers.solver_process import megabytes_of

from .jobs.worker_process import Crash, Ready, Refusal, Worker, settle_here
from .work import Lost, Settled, Work

if TYPE_CHECKING:
    from ..tasks.inputs import Text

DEATHS = 3
"""Workers in a row that may die before they have loaded the model."""
TRIES = 3
"""Workers that a text may kill before it is lost."""
LOOK = 0.25
"""Seconds between two looks at the clock and the memory of workers."""
FEW = 100
"""Texts that are worked on in this process: to start another one takes as long as some dozens of easy ones."""
SHARE = 0.9
"""Of the machine's memory, for all workers together."""
LATE, GRACE = 2.0, 180.0
"""A text whose time is up ends by itself; a worker is killed after so many times its time, and seconds more: whatever
all texts share is read when the first one comes, outside its time."""

Taken = Callable[["Text", str], None]
"""Hears who begins to work on a text."""


@dataclass(frozen=True)
class Bounds:
    """How long and how large a worker may get."""

    seconds: float = math.inf
    megabytes: float = math.inf

    @classmethod
    def of(cls, work: Work, jobs: int) -> Bounds:
        seconds = math.inf if work.seconds is None else LATE * work.seconds + GRACE
        return cls(seconds, SHARE * machine_megabytes() / jobs)


def machine_megabytes() -> float:
    """The memory of this machine, or what its container may have of it."""
    with suppress(OSError, ValueError):
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
        with suppress(OSError, ValueError):
            whole = min(whole, int(Path("/sys/fs/cgroup/memory.max").read_text()) / 2**20)
        return whole
    return math.inf


def unheard(text: Text, worker: str) -> None:
    """For whom it does not matter who works on a text."""


def settle_all(
    work: Work, texts: Iterable[Text], jobs: int, *, apart: bool = False, taken: Taken = unheard
) -> Generator[Settled | Lost, None, None]:
    """What is found of each text, in the order in which it is found; `apart`: not in this process."""
    if jobs == 1 and not apart:
        station = work.open()
        for text in texts:
            taken(text, f"process {os.getpid()}")
            yield settle_here(station, text)
        return
    with closing(settle_in_processes(work, iter(texts), jobs, Bounds.of(work, jobs), taken)) as found:
        yield from found


def settle_in_processes(
    work: Work, texts: Iterator[Text], jobs: int, bounds: Bounds, taken: Taken = unheard
) -> Generator[Settled | Lost, None, None]:
    """Each worker has one text at a time; texts are taken from the iterator as workers become free."""
    crew = Crew(work, jobs, bounds)
    try:
        yield from crew.settle(texts, taken)
    finally:
        crew.dismiss()


@dataclass(eq=False)
class Crew:
    """Workers, which stay warm from one lot of texts to the next."""

    work: Work
    jobs: int
    bounds: Bounds
    workers: list[Worker] = field(default_factory=list)

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def settle(self, texts: Iterator[Text], taken: Taken = unheard) -> Generator[Settled | Lost, None, None]:
        workers = self.workers
        again: deque[Text] = deque()
        killed: Counter[int] = Counter()
        deaths = 0

        def following() -> Text | None:
            text = next(texts, None)
            return again.popleft() if text is None and again else text

        waiting = following()
        while waiting is not None or any(worker.text is not None for worker in workers):
            while waiting is not None and len(workers) < self.jobs:
                workers.append(Worker.start(self.work))
            for worker in workers:
                if waiting is not None and worker.ready and worker.text is None:
                    taken(waiting, worker.name)
                    worker.give(waiting)
                    waiting = following()
            by_pipe = {worker.pipe: worker for worker in workers}
            for pipe in wait(list(by_pipe), LOOK):
                worker = by_pipe[pipe]  # type: ignore[index]
                match worker.answer():
                    case None:
                        workers.remove(worker)
                        deaths += not worker.ready
                        how = worker.end()
                        if worker.text is not None:
                            killed[worker.text.id] += 1
                            if killed[worker.text.id] < TRIES:
                                again.append(worker.text)
                                waiting = following() if waiting is None else waiting
                                continue
                            reason = f"the process working on it {how}, {TRIES} times"
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
            for worker, reason in beyond(workers, self.bounds):
                workers.remove(worker)
                text, seconds = worker.text, time.monotonic() - worker.started
                worker.end()
                if text is not None:
                    yield Lost(text, reason, seconds)


def beyond(workers: Iterable[Worker], bounds: Bounds) -> list[tuple[Worker, str]]:
    """Those that are too late or too large with a text, and what to say of it."""
    found = []
    for worker in workers:
        if worker.text is None:
            continue
        if time.monotonic() - worker.started > bounds.seconds:
            found.append((worker, f"the process working on it was killed after {bounds.seconds:g} s without an answer"))
        elif (used := megabytes_of(worker.process.pid)) > bounds.megabytes:
            found.append((worker, f"the process working on it was killed at {used:.0f} MB, for want of memory"))
    return found
