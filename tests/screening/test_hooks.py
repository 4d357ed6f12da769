"""`certify` and `check` screen: with the same outcome as the exact checker alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import ROWS, write_task

from swapproof.verifier.cli import main


@pytest.mark.parametrize(
    "command", [["certify"], ["measure", "--quantity", "pr", "--radius", "2"]], ids=["proofs", "counts"]
)
def test_check_says_the_same_with_and_without_screening(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but the line that tells how many certificates were screened."""
    assert main([*command, str(write_task(tmp_path / "task")), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    found = []
    for arguments in ([], ["--exact"]):
        assert main(["check", str(tmp_path / "run"), "--jobs", "1", *arguments]) == 0
        found.append(capsys.readouterr().out.splitlines())
    screened, exact = (next(line for line in lines if line.startswith("screened")) for lines in found)
    assert f"bounds: {len(ROWS)};" in screened
    assert "bounds: 0;" in exact
    assert [line for line in found[0] if line != screened] == [line for line in found[1] if line != exact]
