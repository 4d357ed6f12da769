"""How far a run is: a live bar on a terminal, else one plain line now and then; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 30.0
"""Seconds between plain lines."""

Advance = Callable[[int], None]


@contextmanager
def progress(doing: str, total: int, done: int = 0, *, shown: bool = True) -> Iterator[Advance]:
    """`with progress("certify", 100) as advance: advance(1)`; `done` were finished before."""
    if not shown:
        yield lambda number: None
    elif sys.stderr.isatty():
        with bar(doing, total, done) as advance:
            yield advance
    else:
        yield plain(doing, total, done)


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
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(doing, total=total, completed=done)
        yield lambda number: live.advance(task, number)


def plain(doing: str, total: int, done: int) -> Advance:
    started = last = time.monotonic()
    finished = done

    def advance(number: int) -> None:
        nonlocal last, finished
        finished += number
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            left = (now - started) / (finished - done) * (total - finished)
            print(f"{doing}: {finished} of {total}, about {left:.0f} s left", file=sys.stderr, flush=True)

    return advance
