"""`bench exact --html`: the page holds the table's numbers, and replaces nothing but an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest
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
