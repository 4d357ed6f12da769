"""Texts settled one after the other in this process, or several at a time in processes that may die.

A text that kills its worker, hangs or takes all memory costs nothing but itself: another worker takes the dead one's
place, the text is tried again after all others, and is reported lost when it does the same again. When no texts are
left to give, those that are worked on may use the cores of the others. What is found does not depend on how many
workers there are.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
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
FEW = 150
"""Texts that are worked on in this process: to start another one takes as long as some dozens of easy ones."""
SHARE = 0.9
"""Of the machine's memory, for all workers together."""
LATE, GRACE = 2.0, 180.0
"""A text whose time is up ends by itself; a worker is killed after so many times its time, and seconds more: whatever
all texts share is read when the first one comes, outside its time."""

AHEAD, MOST_AHEAD = 0.25, 32
"""Seconds of work, and texts, that a worker has before it: it does not wait while what it found is being written."""
GATHERING, MOST_TOGETHER = 0.05, 64
"""Seconds for which what was found waits for more to be written to the disk together with it, and texts."""
TAIL = 4
"""Of what is left each worker gets no more than a so small part of its share: nobody waits for one who has many."""
FORGETTING = 0.9
"""What earlier texts or batches count beside the last one: of one alone, where some texts take a thousand times as long
as others, nothing follows for the next."""

Lot = Sequence[Settled | Lost]
"""Found of several texts, to be written to the disk together."""
Taken = Callable[[Sequence["Text"], str], None]
"""Hears who begins to work on texts."""


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


def unheard(texts: Sequence[Text], worker: str) -> None:
    """For whom it does not matter who works on a text."""


def settle_all(
    work: Work, texts: Iterable[Text], jobs: int, *, apart: bool = False, taken: Taken = unheard
) -> Generator[Lot, None, None]:
    """What is found of each text, in the order in which it is found; `apart`: not in this process."""
    if jobs == 1 and not apart:
        station = work.open()
        for text in texts:
            taken([text], f"process {os.getpid()}")
            yield [settle_here(station, text)]
        return
    with closing(settle_in_processes(work, texts, jobs, Bounds.of(work, jobs), taken)) as found:
        yield from found


def settle_in_processes(
    work: Work, texts: Iterable[Text], jobs: int, bounds: Bounds, taken: Taken = unheard
) -> Generator[Lot, None, None]:
    """So many workers; each has the text it works on, and some quick ones ahead."""
    crew = Crew(work, jobs, bounds)
    try:
        yield from crew.settle(texts, taken)
    finally:
        crew.dismiss()


@dataclass(frozen=True)
class Pace:
    """Seconds of work and texts of the last ones, earlier ones counting less."""

    seconds: float = 0.0
    texts: float = 0.0

    @property
    def each(self) -> float:
        return self.seconds / self.texts if self.texts else 0.0

    def after(self, seconds: float, texts: int) -> Pace:
        return Pace(FORGETTING * self.seconds + seconds, FORGETTING * self.texts + texts)


@dataclass(eq=False)
class Crew:
    """Workers, which stay warm from one lot of texts to the next."""

    work: Work
    jobs: int
    bounds: Bounds
    workers: list[Worker] = field(default_factory=list)
    pace: Pace = Pace()
    deaths: int = 0
    """Of workers in a row, before they had loaded the model."""

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def settle(self, texts: Iterable[Text], taken: Taken = unheard) -> Generator[Lot, None, None]:
        """Whatever a worker that died had before it goes to others; the text it was at comes after all others."""
        waiting, killed = deque(texts), Counter[int]()
        again: deque[Text] = deque()
        found: list[Settled | Lost] = []
        since = 0.0
        while waiting or again or found or any(worker.texts for worker in self.workers):
            wanted = min(self.jobs, len(waiting) + len(again) + sum(bool(worker.texts) for worker in self.workers))
            while len(self.workers) < wanted:
                self.workers.append(Worker.start(self.work))
            for worker in self.workers:
                if worker.ready and len(worker.texts) <= self.ahead(len(waiting)) // 2:
                    self.give(worker, waiting, again, taken)
            self.share_cores(bool(waiting or again))
            busy = any(worker.texts for worker in self.workers)
            if found and (not busy or len(found) >= MOST_TOGETHER or time.monotonic() - since >= GATHERING):
                yield found
                found = []
                continue
            fresh = len(found)
            for worker in self.heard(GATHERING if found else LOOK):
                for answer in worker.answers():
                    if isinstance(answer, Settled | Lost):
                        self.pace = self.pace.after(time.monotonic() - worker.started, 1)
                        worker.done()
                        found.append(answer)
                    else:
                        self.hear(worker, answer)
                if worker.dead and (lost := self.buried(worker, waiting, again, killed)) is not None:
                    found.append(lost)
            for worker, reason in beyond(self.workers, self.bounds):
                seconds = time.monotonic() - worker.started
                text, *others = self.removed(worker)
                waiting.extendleft(reversed(others))
                found.append(Lost(text, reason, seconds))
            if found and not fresh:
                since = time.monotonic()

    def heard(self, seconds: float) -> list[Worker]:
        """Those who say something, or died, within so many seconds."""
        by_pipe = {worker.pipe: worker for worker in self.workers}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe), seconds)]  # type: ignore[index]

    def ahead(self, left: int) -> int:
        """Texts that a worker may have: as many as AHEAD seconds are enough for, and towards the end fewer."""
        if not self.pace.texts:
            return 1
        most = min(MOST_AHEAD, math.ceil(AHEAD / max(self.pace.each, AHEAD / MOST_AHEAD)))
        return most if self.jobs == 1 else max(1, min(most, left // (TAIL * self.jobs)))

    def give(self, worker: Worker, waiting: deque[Text], again: deque[Text], taken: Taken) -> None:
        """As many as it may have; those that killed a worker come last, and one at a time."""
        room = self.ahead(len(waiting)) - len(worker.texts)
        texts = [waiting.popleft() for _ in range(min(room, len(waiting)))]
        if not texts and again and not worker.texts:
            texts = [again.popleft()]
        if texts:
            taken(texts, worker.name)
            worker.give(texts)

    def share_cores(self, all_busy: bool) -> None:
        """Workers that have nothing to do leave their cores to the others: one text may use several."""
        working = [worker for worker in self.workers if worker.texts]
        for number, worker in enumerate(working):
            idle = 0 if all_busy else self.jobs - len(working)
            worker.may_use(1 + idle // len(working) + (number < idle % len(working)))

    def hear(self, worker: Worker, answer: Ready | Refusal | Crash) -> None:
        match answer:
            case Ready():
                worker.ready, self.deaths = True, 0
            case Refusal(message):
                raise BadInput(message)
            case Crash(trace):
                raise RuntimeError(f"a worker failed:\n{trace}")

    def removed(self, worker: Worker) -> list[Text]:
        """The texts that it had, the one it worked on first."""
        self.workers.remove(worker)
        worker.end()
        return list(worker.texts)

    def buried(self, worker: Worker, waiting: deque[Text], again: deque[Text], killed: Counter[int]) -> Lost | None:
        """What becomes of the texts of a worker that died: its own is tried again, but not for ever."""
        self.workers.remove(worker)
        self.deaths += not worker.ready
        how = worker.end()
        if not worker.texts:
            if self.deaths == DEATHS:
                raise BadInput(f"workers cannot start: the process {how}; try --jobs 1")
            return None
        text, *others = worker.texts
        waiting.extendleft(reversed(others))
        killed[text.id] += 1
        if killed[text.id] < TRIES:
            again.append(text)
            return None
        return Lost(text, f"the process working on it {how}, {TRIES} times", time.monotonic() - worker.started)


def beyond(workers: Iterable[Worker], bounds: Bounds) -> list[tuple[Worker, str]]:
    """Those that are too late or too large with a text, and what to say of it."""
    found = []
    for worker in workers:
        if not worker.texts:
            continue
        if time.monotonic() - worker.started > bounds.seconds:
            found.append((worker, f"the process working on it was killed after {bounds.seconds:g} s without an answer"))
        elif (used := megabytes_of(worker.process.pid)) > bounds.megabytes:
            found.append((worker, f"the process working on it was killed at {used:.0f} MB, for want of memory"))
    return found
