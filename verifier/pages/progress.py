"""How far a run is: a live bar on a terminal, else one plain line every half minute; always on stderr."""

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


class Advance(Protocol):
    """Called with so many more that are done, and of which kind they turned out to be."""

    def __call__(self, number: int, kind: str = "") -> None: ...


@dataclass
class Count:
    """What is done so far, and since when."""

    doing: str
    total: int
    done: int
    kinds: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    before: int = field(init=False)
    """What was finished before we began."""

    def __post_init__(self) -> None:
        self.before = self.done

    def __call__(self, number: int, kind: str = "") -> None:
        self.done += number
        if kind:
            self.kinds[kind] += number

    @property
    def told(self) -> str:
        """`52 exact, 8 open`."""
        return ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in sorted(self.kinds.items()))

    @property
    def line(self) -> str:
        spent = time.monotonic() - self.began
        own = self.done - self.before
        rest = f"about {spent / own * (self.total - self.done):.0f} s left" if own else f"{spent:.0f} s so far"
        return f"{self.doing}: {self.done} of {self.total}{f' ({self.told})' if self.told else ''}, {rest}"


@contextmanager
def progress(doing: str, total: int, done: int = 0, *, shown: bool = True) -> Iterator[Advance]:
    """`with progress("certify", 100) as advance: advance(1, "exact")`; `done` were finished before."""
    if not shown:
        yield lambda number, kind="": None
    elif sys.stderr.isatty():
        with bar(doing, total, done) as advance:
            yield advance
    else:
        count = Count(doing, total, done)
        with repeated(lambda: print(count.line, file=sys.stderr, flush=True)):
            yield count


@contextmanager
def bar(doing: str, total: int, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    count = Count(doing, total, done)
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(doing, total=total, completed=done, told="")

        def advance(number: int, kind: str = "") -> None:
            count(number, kind)
            live.update(task, advance=number, told=count.told)

        yield advance


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
