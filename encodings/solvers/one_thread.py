"""How numerical libraries are held to one thread: the environment that they read when they are loaded, or later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""The same sums in the same order on every machine; and processes beside each other do not fight for its cores."""


@contextmanager
def one_thread() -> Iterator[None]:
    """For a program that loaded numpy itself: one thread until the end, unless the environment says how many. With
    small matrices more threads mostly wait for each other."""
    if any(variable in os.environ for variable in ONE_THREAD):
        yield
        return
    import numpy as np  # noqa: F401 (what is not loaded yet is not held)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
