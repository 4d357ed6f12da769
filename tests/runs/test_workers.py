"""A text that hangs, crashes, grows or kills its worker costs nothing but itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from faulty_work import FaultyWork, text_of

from swapproof.verifier.process_copy import COPIES
from swapproof.verifier.runs import workers
from swapproof.verifier.runs.work import Lost, Settled
from swapproof.verifier.runs.workers import Bounds, settle_in_processes

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is looked up in /proc")


def settled(folder: Path, words: list[str], bounds: Bounds, jobs: int = 2) -> dict[int, Any]:
    texts = [text_of(number, word) for number, word in enumerate(words)]
    found = settle_in_processes(FaultyWork(folder), iter(texts), jobs, bounds)
    return {one.id if isinstance(one, Settled) else one.text.id: one for lot in found for one in lot}


def test_hanging_growing_and_crashing_texts_are_lost_and_no_others(tmp_path: Path) -> None:
    words = ["good", "hang", "good", "crash", "grow", "good", "dies once", "good"]
    found = settled(tmp_path, words, Bounds(seconds=6.0, megabytes=400))
    assert sorted(found) == list(range(len(words)))
    lost = {id: one.reason for id, one in found.items() if isinstance(one, Lost)}
    assert lost.pop(1) == "the process working on it was killed after 6 s without an answer"
    assert lost.pop(3) == "the process working on it was killed by SIGSEGV, 3 times"
    assert lost.pop(4).endswith("MB, for want of memory")
    assert not lost


COPIED = pytest.param("dies beside its copy", marks=pytest.mark.skipif(not COPIES, reason="no copies here"))


@pytest.mark.parametrize("word", ["starts another", COPIED])
def test_what_a_killed_worker_started_is_killed_with_it(word: str, tmp_path: Path) -> None:
    found = settled(tmp_path, [word], Bounds(seconds=6.0), jobs=1)
    assert isinstance(found[0], Lost)
    assert ("killed" in found[0].reason) == (word == "starts another")  # of a worker that died itself one hears at once
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and running(child):
        time.sleep(0.01)
    assert not running(child)


def running(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not COPIES, reason="no copies here")
def test_the_last_text_has_the_cores_of_all(tmp_path: Path) -> None:
    found = settled(tmp_path, ["good", "waits for cores", "good", "good"], Bounds(seconds=60.0), jobs=3)
    assert all(isinstance(one, Settled) for one in found.values())


def test_a_text_has_far_more_time_than_it_was_given_before_its_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Bounds.of(FaultyWork(tmp_path, seconds=60.0), 1).seconds == 300
    assert Bounds.of(FaultyWork(tmp_path, seconds=None), 1).seconds == float("inf")
    monkeypatch.setattr(workers, "machine_megabytes", lambda: 1000.0)
    assert Bounds.of(FaultyWork(tmp_path), 2).megabytes == 450


def test_what_was_found_is_heard_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers with texts ahead were once left alone for a fixed time, and had nothing to do towards its end."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    found = settled(tmp_path, ["good"] * 120, Bounds(), jobs=1)
    assert (sorted(found), slept) == (list(range(120)), [])
