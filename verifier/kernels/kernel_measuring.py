"""`doctor --kernels`: all of it measured, on all cores."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from swapproof.encodings.errors import BadInput

from ..interrupting import leave_interrupts_to_parent
from .kernel_functions import FUNCTIONS
from .kernel_samples import divisions, gates, short_arrays, softmaxes
from .kernel_sweep import Measured, parts, sweep_by_name
from .kernel_table import Runtime, Table

SAMPLE = 1 << 20
"""Numbers drawn for each gate, and for divisions."""
ROWS = 20_000
"""Rows of scores of each width and spread."""
SHORT = 1 << 14
"""Numbers evaluated once more in short arrays."""


def measure(every: int) -> Iterator[Table | str]:
    """A line for each function as it is done, then the table."""
    functions = dict[str, Measured]()
    for name, found, seconds in swept(every):
        functions[name] = found
        yield f"{name}: {found.inputs:,} inputs, {seconds:.0f} s"
    short = {function.name: short_arrays(function, SHORT) for function in FUNCTIONS}
    yield Table(Runtime.here(), every, functions, gates(SAMPLE), short, divisions(SAMPLE), softmaxes(ROWS))


def swept(every: int) -> Iterator[tuple[str, Measured, float]]:
    """Function after function, with the seconds that it took."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=leave_interrupts_to_parent) as pool:
        try:
            for function in FUNCTIONS:
                began, total = time.monotonic(), Measured()
                begun: list[Future[Measured]] = [pool.submit(sweep_by_name, *part) for part in parts(function, every)]
                for future in begun:
                    total = total.or_(future.result())
                yield function.name, total, time.monotonic() - began
        except BrokenProcessPool:
            raise BadInput("a process that was measuring died, perhaps for want of memory") from None
        finally:
            pool.shutdown(cancel_futures=True)
