"""`bench check` runs every checker on a run, times them, and says when one refuses or is stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from folder_bytes import folder_bytes
from tiny import ROWS, write_task

from swapproof.encodings.errors import BadInput
from swapproof.verifier.cli import main
from swapproof.verifier.commands.benches.bench_check import bench_check, made_in
from swapproof.verifier.runs.run_folder import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    assert main(["certify", str(write_task(folder / "task")), "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_every_checker_accepts_and_is_timed(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """swapproof check, check.py, and check.js where there is node; the figures also go into a file."""
    assert main(["bench", "check", str(run), "--json", str(tmp_path / "figures.json")]) == 0
    shown = capsys.readouterr().out
    figures = json.loads((tmp_path / "figures.json").read_text())
    names = [timing["checker"] for timing in figures["checkers"]]
    assert names == ["swapproof check", "check.py", *(["check.js"] if shutil.which("node") else [])]
    for timing in figures["checkers"]:
        assert timing["accepted"] is True
        assert timing["last"] == f"accepted {len(ROWS)} of {len(ROWS)}"
        assert timing["seconds"] > 0
        assert timing["checker"] in shown
    assert figures["texts"] == figures["certificates"] == len(ROWS)
    assert figures["made_seconds"] > 0


def test_a_refusal_is_exit_code_4(run: Path, tmp_path: Path) -> None:
    """A run with a certificate of another id than its file says."""
    broken = shutil.copytree(run, tmp_path / "broken")
    first = sorted((broken / "certificates").glob("*.json"))[0]
    top = json.loads(first.read_text())
    top["id"] += 1
    first.write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
    timings = bench_check(broken)
    assert timings.exit_code == 4
    assert [timing.accepted for timing in timings.checkers] == [False] * len(timings.checkers)


def test_a_checker_that_is_stopped_is_exit_code_3(run: Path) -> None:
    """And nothing is said of what it would have found."""
    timings = bench_check(run, seconds=0.01)
    assert timings.exit_code == 3
    assert all(timing.accepted is None and "stopped" in timing.last for timing in timings.checkers)


def test_the_seconds_of_texts_with_odd_line_ends_are_read(tmp_path: Path) -> None:
    """Only a line feed ends a line of results.jsonl, whatever characters a text has."""
    lines = [{"text": "a\u2028b\x85c", "seconds": 0.25}, {"text": "d", "seconds": 0.5}]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    assert made_in(Run(tmp_path)) == (2, 0.75)


def test_a_folder_without_certificates_is_bad_input(run: Path, tmp_path: Path) -> None:
    """One line, not a table of failures."""
    empty = shutil.copytree(run, tmp_path / "empty")
    for path in (empty / "certificates").glob("*.json"):
        path.unlink()
    with pytest.raises(BadInput, match="no certificates"):
        bench_check(empty)


def test_the_files_of_the_run_are_not_replaced_and_earlier_figures_are(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any checker is started."""
    copy = shutil.copytree(run, tmp_path / "copy")
    before = folder_bytes(copy)
    for path in (path for path in copy.rglob("*.*") if path.stat().st_size and path.is_file()):
        assert main(["bench", "check", str(copy), "--json", str(path)]) == 2
        error = capsys.readouterr().err
        assert f"{path}: exists" in error
        assert error.count("\n") == 1
    with pytest.raises(BadInput, match="cannot be written"):
        bench_check(copy, json_file=tmp_path / "absent" / "figures.json")
    assert folder_bytes(copy) == before
    for _ in range(2):
        assert bench_check(copy, 0.01, tmp_path / "figures.json").exit_code == 3
        assert len(json.loads((tmp_path / "figures.json").read_text())["checkers"]) >= 2
