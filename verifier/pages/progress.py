"""How far a run is: a live bar on a terminal, else one plain line every half minute; always on stderr.

What is left is estimated by what is done, and said once after the first seconds of long work.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

EVERY = 30.0
"""Seconds between plain lines."""
EARLY, LONG = 5.0, 10.0
"""Seconds after which what is left is estimated for the first time, and less than which is not worth saying."""
ENOUGH = 3
"""Things that must be done before."""
LONGEST = 10 * 365 * 86_400.0


class Advance(Protocol):
    """Called with so many more that are done, of which kind they turned out to be, and how large they were."""

    def __call__(self, number: int, kind: str = "", size: float = 0.0) -> None: ...

    def working(self, what: str) -> None:
        """What is being worked on."""


class Unseen:
    """Where nobody looks."""

    def __call__(self, number: int, kind: str = "", size: float = 0.0) -> None: ...

    def working(self, what: str) -> None: ...


@dataclass
class Count:
    """What is done so far, and since when."""

    doing: str
    total: int
    done: int
    size: float = 0.0
    """Of all that is to be done, in any unit: what is left is estimated by it, or else by numbers."""
    most: float | None = None
    """Seconds that each may take, by so many at a time."""
    say: Callable[[str], None] = lambda line: None
    kinds: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    at: str = ""
    before: int = field(init=False)
    """What was finished before we began."""
    done_size: float = field(init=False, default=0.0)
    told_early: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.before = self.done

    def __call__(self, number: int, kind: str = "", size: float = 0.0) -> None:
        self.done += number
        self.done_size += size
        if kind:
            self.kinds[kind] += number
        if not self.told_early and time.monotonic() - self.began >= EARLY and self.done - self.before >= ENOUGH:
            self.told_early = True
            if (left := self.left) is not None and left >= LONG:
                self.say(f"{self.doing}: {self.forecast(left)}")

    def working(self, what: str) -> None:
        self.at = what

    def forecast(self, left: float) -> str:
        """`about 6 min for the other 860, by their single swaps; 14 h at most`."""
        by = ", by their single swaps" if self.size and self.done_size else ""
        rest = self.total - self.done
        bound = "" if self.most is None else f"; {duration(self.most * rest)} at most"
        return f"about {duration(left)} for the other {rest:,}{by}{bound}"

    @property
    def left(self) -> float | None:
        """Seconds; None where nothing is known yet."""
        spent, own = time.monotonic() - self.began, self.done - self.before
        if not own:
            return None
        parts = (self.done_size, self.size - self.done_size) if self.done_size else (own, self.total - self.done)
        found = spent / parts[0] * max(0.0, parts[1])
        return found if self.most is None else min(found, self.most * (self.total - self.done))

    @property
    def told(self) -> str:
        """`52 exact, 8 open`."""
        return ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in sorted(self.kinds.items()))

    @property
    def line(self) -> str:
        left = self.left
        rest = f"{time.monotonic() - self.began:.0f} s so far" if left is None else f"about {duration(left)} left"
        at = f", at {self.at}" if self.at else ""
        return f"{self.doing}: {self.done} of {self.total}{f' ({self.told})' if self.told else ''}, {rest}{at}"


@contextmanager
def progress(
    doing: str, total: int, done: int = 0, *, shown: bool = True, size: float = 0.0, most: float | None = None
) -> Iterator[Advance]:
    """`with progress("certify", 100) as advance: advance(1, "exact")`; `done` were finished before; `size`: of the
    others together, in the unit that `advance` is told; `most`: seconds that each of them may take on average."""
    if not shown:
        yield Unseen()
    elif sys.stderr.isatty():
        with bar(Count(doing, total, done, size, most)) as advance:
            yield advance
    else:
        count = Count(doing, total, done, size, most, say_on_stderr)
        with repeated(lambda: say_on_stderr(count.line)):
            yield count


def say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def bar(count: Count) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[at]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(count.doing, total=count.total, completed=count.done, told="", left="", at="")
        count.say = lambda line: live.console.print(line, markup=False, highlight=False)

        class Live(Unseen):
            def __call__(self, number: int, kind: str = "", size: float = 0.0) -> None:
                count(number, kind, size)
                left = count.left
                said = "" if left is None else f"about {duration(left)} left"
                live.update(task, advance=number, told=count.told, left=said)

            def working(self, what: str) -> None:
                live.update(task, at=what)

        yield Live()


@contextmanager
def repeated(say: Callable[[], None]) -> Iterator[None]:
    """Every half minute while something is done, however long one step of it takes."""
    over = threading.Event()

    def wait() -> None:
        while not over.wait(EVERY):
            say()

    thread = threading.Thread(target=wait, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= LONGEST / 2:
            return "years"
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s at most"
