"""A solver in a process of its own, killed when it overruns: solvers ignore their own time limits, crash and hang."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection, Pipe

from .milp import Program
from .solvers import SOLVERS, Outcome

STARTING = 120.0
"""Seconds a child may take to load its solver and build the program."""
GRACE = 5.0
"""Seconds beyond its time limit after which a solver is killed."""


def solve_apart(name: str, program: Program, seconds: float, threads: int = 1, grace: float = GRACE) -> Outcome:
    """Solve in a child that loads nothing but numpy and its solver."""
    ours, its = Pipe()
    command = [sys.executable, "-P", "-m", "swapproof.encodings.solver_process", name, str(its.fileno())]
    with ours, tempfile.TemporaryFile() as complaints:
        with its:
            process = subprocess.Popen(
                command,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
            )
        try:
            return dialogue(ours, program, seconds, threads, grace)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = process.wait()
            complaints.seek(0)
            last = (complaints.read().decode(errors="replace").strip().splitlines() or [""])[-1]
            return Outcome("error", detail=f"the process of {name} ended with code {code} {last}".strip())
        finally:
            process.kill()
            process.wait()


def dialogue(child: Connection, program: Program, seconds: float, threads: int, grace: float) -> Outcome:
    """Send the program; hear of the start of the optimisation, then its outcome."""
    child.send((program, seconds, threads))
    if not child.poll(STARTING):
        return Outcome("error", detail=f"not started after {STARTING:.0f} s")
    first = child.recv()
    if isinstance(first, Outcome):
        return first
    began = time.perf_counter()
    if not child.poll(seconds + grace):
        waited = time.perf_counter() - began
        return Outcome("time", seconds=waited, detail=f"killed {grace:g} s after its time limit")
    outcome = child.recv()
    if not isinstance(outcome, Outcome):
        raise EOFError
    return outcome


def serve(name: str, parent: Connection) -> None:
    """The child: one program, one outcome."""
    (solver,) = (solver for solver in SOLVERS if solver.name == name)
    program, seconds, threads = parent.recv()
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    parent.send(solver.here(program, seconds, threads, lambda: parent.send("started")))


def end_with(parent: Connection) -> None:
    """Nobody waits for the answer any more."""
    with contextlib.suppress(EOFError, OSError):
        parent.recv()
    os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1], Connection(int(sys.argv[2])))
