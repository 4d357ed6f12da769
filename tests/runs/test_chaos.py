"""Whatever is killed whenever: the same answers as in peace, and nothing that was finished is lost or done again."""

from __future__ import annotations

from pathlib import Path

from random_killing import contents, finished, killed_at_random
from tiny import ROWS, write_task

from swapproof.verifier.roads import certify


def test_killing_at_random_changes_nothing(tmp_path: Path) -> None:
    """After every so many texts more something is killed, not after so much time: a slow machine sees as many kills."""
    task = write_task(tmp_path / "task", ROWS * 24)
    run = tmp_path / "run"
    marks = [5, 40, 75, 110, 150]

    def patience() -> bool:
        if not marks or len(finished(run)) < marks[0]:
            return True
        marks.pop(0)
        return False

    killed, faults = killed_at_random(task, run, ["--jobs", "2"], patience, seed=3)
    assert not faults
    assert sum(killed.values()) == 5
    assert len(killed) > 1
    assert contents(run) == contents(certify(task, tmp_path / "peaceful").folder)
