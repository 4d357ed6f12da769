"""A signal to the whole group finds no process of ours that has not yet left it to its parent."""

from __future__ import annotations

import signal
from multiprocessing import get_context

import pytest
from started_process import tell_held_back

from swapproof.verifier.interrupting import stops_held_back

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks here")


def test_a_process_that_is_started_meanwhile_begins_with_it_held_back() -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=tell_held_back, args=(theirs,))
    with stops_held_back():
        process.start()
    theirs.close()  # a process that dies ends the wait
    assert ours.recv() == [True, False]
    process.join()
    assert process.exitcode == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
