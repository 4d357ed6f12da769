"""A solver in a process of its own, killed when it overruns time or memory: solvers ignore limits, crash and hang."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from .one_thread import ONE_THREAD
from .solver_answer import Limits, Outcome

STARTING = 120.0
"""Seconds a child may take to load its solver and build the program."""
GRACE = 5.0
"""Seconds beyond its time limit after which a solver is killed."""
LOOK = 0.05
"""Seconds between two looks at the memory of a child."""


class Killed(Exception):
    """The child was ended, and why."""


@dataclass(eq=False)
class Apart:
    """A child for one problem after the other; `with Apart("scip") as child: child.solve(program, limits)`.

    It loads nothing but numpy and its solver, once. After it was killed, or died, the next problem gets a new one.
    """

    name: str
    grace: float = GRACE
    process: subprocess.Popen[bytes] | None = None
    pipe: Connection | None = None
    complaints: Any = field(default=None, repr=False)

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def solve(self, problem: Any, limits: Limits) -> Outcome:
        began = time.perf_counter()
        try:
            return self.dialogue(problem, limits)
        except Killed as reason:
            self.end()
            status = "memory" if "MB" in str(reason) else "time"
            return Outcome(status, seconds=time.perf_counter() - began, detail=f"killed {reason}")  # type: ignore[arg-type]
        except (EOFError, OSError):
            return Outcome("error", detail=self.last_words())

    def start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        if self.process is not None and self.pipe is not None and self.process.poll() is None:
            return self.process, self.pipe
        self.end()
        self.pipe, its = Pipe()
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        module = "swapproof.encodings.solvers.solver_process"
        command = [sys.executable, "-P", "-m", module, self.name, str(its.fileno())]
        with its:
            self.process = subprocess.Popen(
                command,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.complaints,
                env={**os.environ, **ONE_THREAD},
            )
        return self.process, self.pipe

    def dialogue(self, problem: Any, limits: Limits) -> Outcome:
        """Send the problem; hear of the start of the optimisation, then its outcome."""
        process, pipe = self.start()
        pipe.send((problem, limits))
        first = self.heard(process, pipe, STARTING, limits, f"as it had not started after {STARTING:.0f} s")
        if isinstance(first, Outcome):
            return first
        late = f"{self.grace:g} s after its time limit"
        outcome = self.heard(process, pipe, limits.seconds + self.grace, limits, late)
        if not isinstance(outcome, Outcome):
            raise EOFError
        return outcome

    def heard(
        self, process: subprocess.Popen[bytes], pipe: Connection, seconds: float, limits: Limits, late: str
    ) -> Any:
        """The next message. Raises Killed when it does not come in time, or the child grows too large."""
        until = time.monotonic() + seconds
        while not pipe.poll(max(0.0, min(LOOK, until - time.monotonic()))):
            used = megabytes_of(process.pid)
            if used > limits.megabytes:
                raise Killed(f"at {used:.0f} MB, where {limits.megabytes:.0f} are allowed")
            if time.monotonic() > until:
                raise Killed(late)
        return pipe.recv()

    def last_words(self) -> str:
        code = self.process.wait() if self.process is not None else None
        said = ""
        if self.complaints is not None:
            self.complaints.seek(0)
            said = (self.complaints.read().decode(errors="replace").strip().splitlines() or [""])[-1]
        self.end()
        return f"the process of {self.name} ended with code {code} {said}".strip()

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for file in (self.pipe, self.complaints):
            if file is not None:
                file.close()
        self.process = self.pipe = self.complaints = None


def solve_apart(name: str, problem: Any, limits: Limits, grace: float = GRACE) -> Outcome:
    """One problem in a child of its own."""
    with Apart(name, grace) as child:
        return child.solve(problem, limits)


def megabytes_of(pid: int) -> float:
    """Memory that a process holds; 0 where the system does not tell, and only its own limit holds."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def limit_memory(megabytes: float) -> None:
    """The system's own limit, half as much again: it holds where nobody looks, and between two looks."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(
            resource.RLIMIT_DATA, (int(1.5 * megabytes * 2**20), resource.getrlimit(resource.RLIMIT_DATA)[1])
        )


def serve(name: str, parent: Connection) -> None:
    """The child: one outcome for every problem, until nobody asks any more."""
    from .solver_table import SOLVERS

    (solver,) = (solver for solver in SOLVERS if solver.name == name)
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=receive, args=(parent, asked), daemon=True).start()
    while True:
        problem, limits = asked.get()
        limit_memory(limits.megabytes)
        parent.send(solver.answer(problem, limits, lambda: parent.send("started")))


def receive(parent: Connection, asked: queue.SimpleQueue[Any]) -> None:
    """Ends the process, in the midst of whatever it does, when nobody waits for the answer any more."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            asked.put(parent.recv())
    os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1], Connection(int(sys.argv[2])))
