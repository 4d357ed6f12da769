"""What a process that a test starts does; the test's own module is found only by pytest."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection

from swapproof.verifier.interrupting import leave_interrupts_to_parent


def tell_held_back(pipe: Connection) -> None:
    """Whether SIGINT is held back at the start, and after interrupts are left to the parent; one comes in between."""
    before = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    leave_interrupts_to_parent()
    os.kill(os.getpid(), signal.SIGINT)  # nothing happens
    pipe.send([before, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())])
