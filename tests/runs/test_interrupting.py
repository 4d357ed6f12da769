"""A signal to the whole group finds no process of ours that has not yet left it to its parent."""

from __future__ import annotations

import os
import signal
from multiprocessing import get_context
from typing import Any

import pytest

from swapproof.verifier.interrupting import leave_interrupts_to_parent, stops_held_back

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks here")


def held() -> list[bool]:
    before = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    leave_interrupts_to_parent()
    os.kill(os.getpid(), signal.SIGINT)  # nothing happens
    return [before, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())]


def tell(pipe: Any) -> None:
    pipe.send(held())


def test_a_process_that_is_started_meanwhile_begins_with_it_held_back() -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=tell, args=(theirs,))
    with stops_held_back():
        process.start()
    assert ours.recv() == [True, False]
    process.join()
    assert process.exitcode == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
