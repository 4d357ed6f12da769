"""What stops a command from outside (a batch system, a container, a terminal that closes), taken as Ctrl-C is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

STOPS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def stopped_like_ctrl_c() -> Iterator[list[int]]:
    """Inside, the first such signal raises KeyboardInterrupt in the main thread, and the next ones are ignored. Gives
    the list of all that were heard, Ctrl-C too: what C code is in just then may make another error of it."""
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    ours = [number for number in STOPS if signal.getsignal(number) == signal.SIG_DFL]  # nohup's stays ignored
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def interrupt(number: int, frame: object) -> None:
        heard.append(number)
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # what was found is being saved
        raise KeyboardInterrupt

    for number in (*ours, signal.SIGINT) if hears else ours:
        signal.signal(number, interrupt)
    try:
        yield heard
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def leave_interrupts_to_parent() -> None:
    """For a process of ours: a signal to the whole group means the parent, which decides what becomes of the others."""
    for number in (signal.SIGINT, *STOPS):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, *STOPS))


@contextmanager
def stops_held_back() -> Iterator[None]:
    """A process that is started inside begins without such signals, and has the time to say that it leaves them to its
    parent: in the middle of its imports one would end it with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started later, it would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, *STOPS))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stops_after() -> Iterator[None]:
    """What stops this process while it is inside is obeyed at the end. No mask would do: another thread may hear it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *STOPS)}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in heard[:1]:
            signal.raise_signal(number)
