"""`check` says the same in one process and in several, whichever certificates come first there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import write_task

from swapproof.verifier.audit import examiner as checking
from swapproof.verifier.cli import main


@pytest.mark.parametrize("large", [1, 1 << 20], ids=["each alone", "together"])
def test_several_processes_say_what_one_says(
    large: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the texts, and one that is refused is refused in both."""
    run = tmp_path / "run"
    assert main(["certify", str(write_task(tmp_path / "task")), "--out", str(run)]) == 0
    broken = sorted((run / "certificates").glob("*.json"))[-1]
    broken.write_bytes(broken.read_bytes().replace(b'"swaps":', b'"swap":'))
    capsys.readouterr()
    monkeypatch.setattr(checking, "LARGE", large)
    monkeypatch.setattr(checking, "PATIENCE", 0)
    found = []
    for jobs in ("1", "2"):
        assert main(["check", str(run), "--jobs", jobs]) == 4
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert f"refused {broken.name}" in found[0]
