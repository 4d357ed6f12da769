"""`bench --html`: the pages hold the numbers of their tables, and replace nothing but an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest
import unreadable
from report_rows import rows_in
from tiny import ROWS, write_task

from swapproof.verifier.cli import main

Capture = pytest.CaptureFixture[str]


def test_the_page_holds_every_text_and_its_definition(tmp_path: Path, capsys: Capture) -> None:
    task, page = write_task(tmp_path / "task"), tmp_path / "bench.html"
    asked = ["bench", "exact", str(task), "--engines", "exact,enumerate", "--html", str(page)]
    assert main(asked) == 0
    assert main(asked) == 0
    text = page.read_text()
    assert "Time: wall clock of one thread" in text
    columns, _, rows = rows_in(text)
    names = [column[0] for column in columns]
    assert names == ["text", "exact", "exact, s", "enumerate", "enumerate, s"]
    assert len(rows) == len(ROWS)
    assert all(row[0][1] == row[0][3] for row in rows)
    capsys.readouterr()
    assert main([*asked[:-1], str(task)]) == 2
    assert "give --html a new file" in capsys.readouterr().err


def test_the_page_of_a_smooth_network(tmp_path: Path) -> None:
    task, page = write_task(tmp_path / "task"), tmp_path / "deep.html"
    unreadable.lstm(task.parent / "model.onnx")
    asked = ["bench", "deep", str(task), "--engines", "boxes,sequence", "--limit", "3", "--radius", "2"]
    assert main([*asked, "--html", str(page)]) == 0
    text = page.read_text()
    assert "Avoided: all sentences with 1 to 2 swaps" in text
    assert "either of ours" in text
    columns, _, rows = rows_in(text)
    assert [column[0] for column in columns] == [
        "text",
        "words",
        "boxes",
        "boxes, CPU s",
        "sequence",
        "sequence, CPU s",
    ]
    assert rows
    assert all(row[0][2] == row[0][4] for row in rows)
    assert all([head for head, _, _ in details] == ["boxes", "sequence"] for _, details in rows)


def test_the_pages_of_checkers_and_of_a_model_that_is_run(tmp_path: Path, capsys: Capture) -> None:
    task, run, page = write_task(tmp_path / "task"), tmp_path / "run", tmp_path / "page.html"
    assert main(["certify", str(task), "--out", str(run)]) == 0
    assert main(["bench", "check", str(run), "--html", str(page)]) == 0
    text = page.read_text()
    assert "check.py accepts the run" in text
    assert "accepted 8 of 8" in text
    capsys.readouterr()
    assert main(["bench", "run", str(task), "--limit", "4", "--html", str(page)]) == 2
    assert "give --html a new file" in capsys.readouterr().err
    page.unlink()
    assert main(["bench", "run", str(task), "--limit", "4", "--html", str(page)]) == 0
    assert "as certify asks" in page.read_text()
