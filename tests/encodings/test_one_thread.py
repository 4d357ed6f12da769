"""Libraries that a program has loaded are held to one thread while we work, and given back."""

from __future__ import annotations

import pytest
import threadpoolctl as control

from swapproof.encodings.solvers.one_thread import ONE_THREAD, one_thread


def test_what_is_loaded_already_is_held_unless_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def most() -> int:
        return max((int(each["num_threads"]) for each in control.threadpool_info()), default=1)

    with control.threadpool_limits(limits=2):
        before = most()
        for variable in ONE_THREAD:
            monkeypatch.delenv(variable, raising=False)
        with one_thread():
            assert most() == 1
        assert most() == before
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with one_thread():
            assert most() == before
