"""A witness that could not be checked in time stands nowhere in the line, and the run is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_runs import results
from tiny import ROWS, write_task

from swapproof.verifier.cli import main
from swapproof.verifier.engines.protocol import Unchecked
from swapproof.verifier.ladder.run_certificates import Checker


def test_its_history_does_not_tell_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Checker.certificate

    def late(self: Checker, text: Any, query: Any, verdict: Any) -> Any:
        if verdict.interval.high_evidence is not None:
            raise Unchecked("no time")
        return certificate(self, text, query, verdict)

    task, run = write_task(tmp_path / "task", ROWS[:2]), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Checker, "certificate", late)
        assert main(["certify", str(task), "--out", str(run)]) == 0
    for line in results(run):
        assert line["status"] == "open"
        assert line["min_swaps"]["high"] is None
        assert line["min_swaps"]["low"] > 0
        assert [step["high"] for step in line["history"]] == [None] * len(line["history"])
    assert main(["check", str(run)]) == 0
