"""`certify` and `check` screen: with the same outcome as the exact checker alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny import ROWS, write_task

from swapproof.encodings.canonical import Canonical, canonical_of
from swapproof.encodings.network import Network
from swapproof.verifier.cli import main
from swapproof.verifier.screening.form import agreed_network


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


def test_two_readings_of_a_model_that_differ_end_every_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of them is wrong, whichever: nothing is published, and nothing that was is accepted."""
    task, run = str(write_task(tmp_path / "task")), str(tmp_path / "run")
    assert main(["certify", task, "--out", run]) == 0

    def misread(network: Network) -> Canonical:
        found = canonical_of(network)
        assert found.data is not None
        return replace(found, data=found.data + b"?")

    monkeypatch.setattr(agreed_network, "canonical_of", misread)
    for command in (["check", run, "--jobs", "1"], ["certify", task, "--out", str(tmp_path / "other")]):
        capsys.readouterr()
        assert main(command) == 4
        shown = capsys.readouterr()
        assert "read in two ways" in shown.out + shown.err
    assert not list((tmp_path / "other").glob("certificates/*.json"))
