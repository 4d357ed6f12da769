"""The page of measured papers is written from what papers left; the words of people in it stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swapproof.verifier.cli import main
from swapproof.verifier.papers.paper_table import PAPERS

PAGE = Path(__file__).parents[2] / "verifier" / "PAPERS-MEASURED.md"


def left(folder: Path, **more: Any) -> Path:
    """What `paper` leaves, by hand."""
    folder.mkdir()
    cell = {"ours": "2.1", "published": "1.99", "run": "runs/certified/report.html"}
    table = {"name": "Table 4", "caption": "MMWS", "columns": ["data", "MMWS"], "definition": "A mean.",
             "rows": [[{"ours": "a | b", "published": "", "run": None}, cell]], "notes": ["Chosen so."]}  # fmt: skip
    paper = {"paper": "mmws", "title": "Minimum swaps", "size": "small", "exit_code": 0, "measured": "2026-11-19",
             "checked": {"runs/certified": 0}, "compared_texts": 1200, "disagreements": [], "cpu_seconds": 61.3,
             "cpu_seconds_of": {"certified": 61.3}, "remarks": ["From here."], "tables": [table]}  # fmt: skip
    (folder / "paper.json").write_text(json.dumps(paper | more))
    return folder


def test_tables_and_the_words_between_the_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, seconds = tmp_path / "page.md", tmp_path / "seconds.json"
    command = ["bench", "papers", str(left(tmp_path / "mmws")), "--out", str(page), "--seconds", str(seconds)]
    assert main(command) == 0
    text = page.read_text()
    assert "| mmws | 2026-11-19 | 0 | 1 of 1 | 1,200 | 0 | 61 s |" in text
    assert "### Table 4. MMWS\n\n| data | MMWS |\n|---|---|\n| a \\| b | 2.1 (1.99) |\n\nA mean.\n* Chosen so." in text
    assert json.loads(seconds.read_text()) == {"mmws": {"certified": 61.3}}
    page.write_text(text.replace("<!-- end -->", "What holds up.\n<!-- end -->"))
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(page)
    assert "<!-- words mmws -->\nWhat holds up.\n<!-- end -->" in page.read_text()


def test_what_is_unfinished_or_not_a_page_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "paper.json").write_text('{"paper": "mmws", "unfinished": true}')
    assert main(["bench", "papers", str(tmp_path / "begun"), "--out", str(tmp_path / "page.md")]) == 2
    assert "unfinished" in capsys.readouterr().err
    (tmp_path / "mine.md").write_text("# Mine\n")
    assert main(["bench", "papers", str(left(tmp_path / "mmws")), "--out", str(tmp_path / "mine.md")]) == 2
    assert (tmp_path / "mine.md").read_text() == "# Mine\n"


def test_the_page_has_words_about_every_paper() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in PAPERS:
        words = text.partition(f"<!-- words {name} -->")[2].partition("<!-- end -->")[0]
        assert len(words.strip().split("\n\n")) == 2, name
